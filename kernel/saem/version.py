"""Which version of Saem is this?  (``jax.version``)"""

from __future__ import annotations

import sys

# The package states it; it is loaded before its modules.
__version__: str = sys.modules["saem"].__version__
__version_info__: tuple[int, ...] = sys.modules["saem"].__version_info__

__all__ = ["__version__", "__version_info__"]

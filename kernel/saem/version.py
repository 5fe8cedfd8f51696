"""Which version of Saem is this?  (``jax.version``)"""

from __future__ import annotations

from saem import __version__

__version_info__ = tuple(int(part) for part in __version__.split("."))

__all__ = ["__version__", "__version_info__"]

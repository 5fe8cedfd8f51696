"""Which types does one write in annotations?"""

from __future__ import annotations

import numpy as np

from saem._jaxlib import Array

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type | np.dtype

__all__ = ["Array", "ArrayLike", "DTypeLike"]

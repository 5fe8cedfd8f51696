"""Which types does one write in annotations?

Read before: nothing.
Invariant: ``ArrayLike`` and ``DTypeLike`` are the names that ``jax.typing`` has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from saem._jaxlib import Array


@runtime_checkable
class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type | np.dtype | SupportsDType
Axis = int | Sequence[int] | None
Shape = Sequence[int]

__all__ = ["Array", "ArrayLike", "DTypeLike"]

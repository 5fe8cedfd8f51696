"""What can one ask of anything array-like without computing?

Read before: ``core.avals``.
Invariant: no operation is recorded or run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core.avals import aval_of
from saem.numpy.axes import canonical_axes
from saem.numpy.promote import check_arraylike

s_ = index_exp = np.s_


def shape(a: Any) -> tuple[int, ...]:
    """Return the sizes of the axes of ``a``."""
    check_arraylike("shape", a)
    return aval_of(a).shape


def ndim(a: Any) -> int:
    """Return the number of axes of ``a``."""
    check_arraylike("ndim", a)
    return len(aval_of(a).shape)


def size(a: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """Return the number of elements of ``a``, or along ``axis``.

    Raises: ValueError for an axis that does not exist.
    """
    check_arraylike("size", a)
    sizes = aval_of(a).shape
    if axis is None:
        return aval_of(a).size
    chosen = canonical_axes(axis, len(sizes))
    return int(np.prod([sizes[i] for i in chosen], dtype=int))

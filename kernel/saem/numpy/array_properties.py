"""What can one ask of anything array-like without computing?

Read before: ``core.avals``.
Invariant: no operation is recorded or run.
"""

from __future__ import annotations

import math

import numpy as np

from saem.core.avals import is_array_like, represented_aval
from saem.numpy.axes import canonical_axes
from saem.typing import ArrayLike

s_, index_exp = np.s_, np.index_exp


def shape(a: ArrayLike) -> tuple[int, ...]:
    """Return the sizes of the axes of ``a``: an array, or what NumPy makes an array of.

    >>> jnp.shape([[1, 2, 3], [4, 5, 6]])
    (2, 3)
    """
    return represented_aval(a).shape if is_array_like(a) else np.shape(a)


def ndim(a: ArrayLike) -> int:
    """Return the number of axes of ``a``, an array or a list.

    >>> jnp.ndim([[1, 2], [3, 4]])
    2
    """
    return len(shape(a))


def size(a: ArrayLike, axis: int | tuple[int, ...] | None = None) -> int:
    """Return the number of elements of ``a``, or along ``axis``.

    Raises: ValueError for an axis that does not exist.

    >>> jnp.size([[1, 2], [3, 4]])
    4
    """
    sizes = shape(a)
    if axis is None:
        return math.prod(sizes)
    chosen = canonical_axes(axis, len(sizes))
    return int(np.prod([sizes[i] for i in chosen], dtype=int))

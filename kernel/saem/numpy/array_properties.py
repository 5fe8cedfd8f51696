"""What can one ask of anything array-like without computing?

Read before: ``core.avals``.
Invariant: no operation is recorded or run.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from saem.core.avals import is_array_like, represented_aval
from saem.numpy.axes import canonical_axes
from saem.typing import ArrayLike

s_, index_exp = np.s_, np.index_exp


def shape(a: ArrayLike) -> tuple[int, ...]:
    """Return the sizes of the axes of ``a``: an array, or, with a warning, what NumPy makes one of.

    >>> jnp.shape(jnp.zeros((2, 3)))
    (2, 3)
    """
    if not is_array_like(a) and hasattr(a, "shape"):
        return a.shape
    return _shape("shape", a)


def _shape(name: str, a: ArrayLike) -> tuple[int, ...]:
    """Return the shape of ``a``; warn, on behalf of ``name``, if ``a`` is no array."""
    if isinstance(a, int):  # also one that no dtype holds
        return ()
    if type(a) is np.ndarray or isinstance(a, np.generic):
        return a.shape  # of text and dates, too
    if is_array_like(a):
        return represented_aval(a).shape
    warnings.warn(
        f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In a future "
        "JAX release this will be an error.", DeprecationWarning, stacklevel=3)
    return np.shape(a)


def ndim(a: ArrayLike) -> int:
    """Return the number of axes of ``a``.

    >>> jnp.ndim(jnp.zeros((2, 2)))
    2
    """
    return len(_shape("ndim", a))


def size(a: ArrayLike, axis: int | tuple[int, ...] | None = None) -> int:
    """Return the number of elements of ``a``, or along ``axis``.

    Raises: ValueError for an axis that does not exist.

    >>> jnp.size(jnp.zeros((2, 2)))
    4
    """
    sizes = _shape("size", a)
    if axis is None:
        return math.prod(sizes)
    chosen = canonical_axes(axis, len(sizes))
    return int(np.prod([sizes[i] for i in chosen], dtype=int))

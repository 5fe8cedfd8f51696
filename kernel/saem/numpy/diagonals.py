"""How is the diagonal of two axes read?

Read before: ``numpy.indexing``, ``numpy.matrices``.
Invariant: as numpy.diagonal and numpy.trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core import errors
from saem.core.avals import aval_of
from saem.core.dimensions import Dim, larger, smaller
from saem.core.placement_types import Seen
from saem.core.sharded import entries_of
from saem.core.trace import Tracer
from saem.jit.library import library_function
from saem.numpy import reductions
from saem.numpy.axes import canonical_axis, numbers_may_be_arrays, refuse_out
from saem.numpy.indexing import getitem
from saem.numpy.manipulation import moveaxis
from saem.numpy.matrices import eye
from saem.numpy.promote import check_arraylike
from saem.ops.filling import iota
from saem.ops.linear import permute
from saem.typing import Array, ArrayLike, DTypeLike


def _diagonal(name: str, a: Any, offset: int, axis1: int, axis2: int) -> Any:
    check_arraylike(name, a)
    rank = len(aval_of(a).shape)
    if rank < 2:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C1",
            f"{name} requires an array of at least two dimensions.",
            advice="Use jnp.diag to make a matrix of a vector.")
    first, second = canonical_axis(axis1, rank), canonical_axis(axis2, rank)
    if first == second:
        raise ValueError(f"{name}: axis1 and axis2 cannot be the same, both are {axis1}.")
    rest = [i for i in range(rank) if i not in (first, second)]
    matrices = permute(a, (*rest, first, second))
    rows, columns = aval_of(matrices).shape[-2:]
    count = larger(0, smaller(rows + min(offset, 0), columns - max(offset, 0)))
    along = iota(np.dtype("int32"), count) if type(count) is Dim else np.arange(count)
    return getitem(matrices, (Ellipsis, along - min(offset, 0), along + max(offset, 0)))


@library_function(static_argnames=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the elements whose places on the two axes differ by ``offset``, as the last axis.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _diagonal("diagonal", a, offset, axis1, axis2)


def _is_sharded(a: Any, *axes: int) -> bool:
    """Return whether a value is sharded along one of ``axes`` of an Explicit mesh."""
    entries = entries_of(aval_of(a)) if Seen.placements else ()
    return len(entries) > 1 and any(
        entries[canonical_axis(axis, len(entries))] is not None for axis in axes)


@numbers_may_be_arrays
@library_function(static_argnames=("offset", "axis1", "axis2", "dtype"))
def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1,
          dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Return the sum of the diagonal.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    refuse_out("trace", out)
    dtype = reductions.requested_dtype("trace", dtype)
    check_arraylike("trace", a)
    if isinstance(offset, Tracer) or _is_sharded(a, axis1, axis2):
        # All elements are read, those of the diagonal are added.
        matrices = moveaxis(a, (axis1, axis2), (-2, -1))
        known = eye(*matrices.shape[-2:], k=offset, dtype=bool)
        return reductions.sum(matrices, axis=(-2, -1), dtype=dtype, where=known)
    return reductions.sum(_diagonal("trace", a, offset, axis1, axis2), axis=-1, dtype=dtype)

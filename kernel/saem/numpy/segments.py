"""What is the sum of the rows that belong together?  (``jax.ops``)

Each row of the data goes to the row of the result that its segment id names; ids outside are
dropped, negative ones too.

Read before: ``ops.scatter``.
Invariant: a segment without rows holds what the reduction starts from.
Source: the documentation of jax.ops.segment_sum and related functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import is_nonnegative
from saem.core.trace import Tracer, is_concrete
from saem.numpy.axes import array_argument, known_number
from saem.numpy.manipulation import broadcast_to
from saem.numpy.reductions import max as _max
from saem.ops import reduce
from saem.ops.filling import full, iota
from saem.ops.linear import broadcast_in_dim, literal, reduce_sum
from saem.ops.reshard import freely
from saem.ops.scatter import scatter_add, scatter_max, scatter_min, scatter_mul
from saem.ops.shape import concatenate
from saem.ops.windows import ScatterDimensionNumbers
from saem.typing import Array, ArrayLike


def _count(name: str, segment_ids: Any, num_segments: Any) -> int:
    """Return the number of segments, from the ids if it is not given."""
    if num_segments is None:
        if isinstance(segment_ids, Tracer) and not is_concrete(segment_ids):
            raise errors.ConcretizationTypeError(
                segment_ids, f"{name}() `num_segments` argument.",
                advice="Give the number of segments: inside jit the shape of the result "
                "cannot depend on the ids.")
        num_segments = int(_max(segment_ids)) + 1
    count = known_number(num_segments, "num_segments")
    if is_nonnegative(count) is False:
        raise errors.explained(errors.ArgumentError, "segment.C1",
                               "num_segments must be non-negative.",
                               advice="Give the number of rows that the result shall have.")
    return count


class Combination(NamedTuple):
    """How rows are combined: where they are scattered to, and over an axis; from which start."""

    name: str
    scatter: Callable
    over: Callable
    start: Callable[[Any], Any]  # of the dtype


SUM = Combination("segment_sum", scatter_add, reduce_sum, lambda dtype: 0)
PRODUCT = Combination("segment_prod", scatter_mul, reduce.reduce_prod, lambda dtype: 1)
LARGEST = Combination("segment_max", scatter_max, reduce.reduce_max, reduce.lowest)
SMALLEST = Combination("segment_min", scatter_min, reduce.reduce_min, reduce.highest)


def _segmented(how: Combination, data: Any, segment_ids: Any, num_segments: Any,
               bucket_size: int | None, mode: Any, out_sharding: Any, **options: bool) -> Any:
    """Return ``data`` combined by segment; ``options`` state what is known of the ids."""
    name, scatter, over, start = how
    data, ids = array_argument(name, data, segment_ids)
    if out_sharding is not None:
        num_segments = _count(name, ids, num_segments)
        return freely(lambda data, ids: _segmented(
            how, data, ids, num_segments, bucket_size, mode, None, **options),
            out_sharding, name, data, ids)
    if not dtypes.is_integer(ids.dtype):
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C2",
            f"Indexer must have integer or boolean type, got indexer with type {ids.dtype.name}",
            advice="Convert segment_ids: segment_ids.astype(int).")
    count = _count(name, ids, num_segments)
    aval, shape = aval_of(data), aval_of(ids).shape
    row = aval.shape[1:]
    mode = "fill" if mode is None else mode
    if bucket_size is None or 0 in shape:
        out = full((count, *row), literal(start(aval.dtype), aval.dtype))
        if 0 in shape:  # no ids: the data goes nowhere
            return out
        axes = len(shape)
        index = broadcast_in_dim(ids, (*shape, 1), tuple(range(axes)))
        inner = tuple(range(axes, axes + len(row)))
        numbers = ScatterDimensionNumbers(inner, (0,), (0,))
        return scatter(out, index, broadcast_to(data, (*shape, *row)), numbers, mode=mode,
                       **options)
    # Neighbouring rows are added up in buckets of their own, then the buckets: fewer roundings.
    if not aval.ndim:  # a number is the row of every id
        data = broadcast_in_dim(data, shape, ())
    rows = aval_of(data).shape[0]
    buckets = -(-rows // bucket_size)
    out = full((buckets, count, *row), start(aval.dtype), aval.dtype)
    index = broadcast_in_dim(ids, (rows, 1), (0,))
    which = broadcast_in_dim(iota(aval_of(ids).dtype, rows), (rows, 1), (0,)) // bucket_size
    numbers = ScatterDimensionNumbers(tuple(range(1, 1 + len(row))), (0, 1), (0, 1))
    parts = scatter(out, concatenate([which, index], 1), data, numbers, mode=mode, **options)
    return over(parts, (0,))


def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Array:
    """Return the sums of the rows of ``data`` with equal ids; 0 where there are none.

    >>> jax.ops.segment_sum(jnp.array([1, 5, 2]), jnp.array([0, 0, 1]), num_segments=2)
    Array([6, 2], dtype=int32)
    """
    return _segmented(SUM, data, segment_ids, num_segments, bucket_size, mode, out_sharding,
                      indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None, mode: Any = None,
                 out_sharding: Any = None) -> Array:
    """Return the products of the rows of ``data`` with equal ids; 1 where there are none.

    >>> jax.ops.segment_prod(jnp.array([2, 5, 3]), jnp.array([0, 0, 1]), num_segments=2)
    Array([10,  3], dtype=int32)
    """
    return _segmented(PRODUCT, data, segment_ids, num_segments, bucket_size, mode, out_sharding,
                      indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Array:
    """Return the largest of the rows of ``data`` with equal ids; the lowest number if none.

    >>> jax.ops.segment_max(jnp.array([1, 5, 2]), jnp.array([0, 0, 1]), num_segments=2)
    Array([5, 2], dtype=int32)
    """
    return _segmented(LARGEST, data, segment_ids, num_segments, bucket_size, mode, out_sharding,
                      indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Array:
    """Return the smallest of the rows of ``data`` with equal ids; the highest number if none.

    >>> jax.ops.segment_min(jnp.array([1, 5, 2]), jnp.array([0, 0, 1]), num_segments=2)
    Array([1, 2], dtype=int32)
    """
    return _segmented(SMALLEST, data, segment_ids, num_segments, bucket_size, mode, out_sharding,
                      indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)

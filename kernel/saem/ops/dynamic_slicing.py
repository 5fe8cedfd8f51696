"""How is a rectangular part of an array read and written whose place is known only when running?

``dynamic_slice`` reads one; its transpose is ``dynamic_update_slice``, which writes one.  Mapped
over many places they become a gather and a scatter.

Read before: ``ops.slicing``, ``ops.gather``, ``ops.scatter``.  Read after: ``saem.numpy.indexing``.
Invariant: the part always lies inside the array: its start is moved until it does (clamped).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile import regions
from saem.compile.text import physical_aval
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import Dim, Size, as_shape, as_size, is_static
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.sharded import shard_like
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.arithmetic import add
from saem.ops.compare import lt
from saem.ops.convert import convert_element_type, holds
from saem.ops.gather import slice_windows
from saem.ops.linear import broadcast_in_dim, held_dims, literal, stacked, zeros_of
from saem.ops.scatter import update_windows
from saem.ops.select import select_n
from saem.ops.shape import (
    canonical_axis,
    check_same_dtypes,
    concatenate,
    expand_dims,
    reshape,
    squeeze,
)
from saem.typing import Array, ArrayLike


def check_count(name: str, starts: Sequence[Any], x: ShapedArray) -> None:
    """Refuse start indices that are not one for each axis."""
    if len(starts) != x.ndim:
        raise errors.explained(
            errors.ShapeError, f"{name}.C1",
            f"Length of slice indices must match number of operand dimensions ({len(starts)} vs "
            f"{x.shape})", advice=f"Give one start for each axis, or use lax.{name}_in_dim.")


def check_starts(name: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    """Refuse start indices that are not one integer scalar, all of one dtype, for each axis."""
    check_count(name, starts, x)
    if any(s.shape for s in starts):
        raise errors.explained(
            errors.ShapeError, f"{name}.C2",
            f"start_indices arguments to {name} must be scalars, got indices {tuple(starts)}",
            advice="To read at many places, index with an array: x[indices].")
    if starts and (any(s.dtype != starts[0].dtype for s in starts)
                   or not dtypes.is_integer(starts[0].dtype)):
        raise errors.explained(
            errors.DTypeError, f"{name}.C3",
            f"index arguments to {name} must be integers of the same type, got: "
            f"{', '.join(s.dtype.name for s in starts)}",
            advice="Convert them, for example with jnp.int32(i).")


def clamped(starts: Sequence[np.ndarray], room: Sequence[int]) -> list[int]:
    """Return each start moved into 0..room."""
    return [min(max(int(s), 0), r) for s, r in zip(starts, room)]


def index_vector(starts: Sequence[Any]) -> Any:
    """Return integers as one vector of 32 bits; without any, as an empty one."""
    if not starts:
        return broadcast_in_dim(np.int32(0), (0,), ())
    numbers = [x if aval_of(x).dtype == np.int32 else convert_element_type(x, np.int32)
               for x in starts]
    return concatenate([reshape(x, (1,)) for x in numbers], 0)


@primitive("dynamic_slice")
class DynamicSlice(Primitive):
    """The part of ``slice_sizes`` that begins at the given start indices, clamped.

    Source: StableHLO specification, dynamic_slice.
    """

    slice_sizes: tuple[int, ...]

    passes_nan = True
    linear = True
    shard_results = sharding_rules.dynamic_slice
    sum_results = sum_rules.reduced_unchanged

    def window(self, values):
        return index_vector(values[1:]), range(len(self.slice_sizes)), self.slice_sizes

    def typing(self, x, *starts):
        check_starts("dynamic_slice", x, starts)
        sizes = self.slice_sizes
        if len(sizes) != x.ndim or any(not 0 <= m <= n for m, n in zip(sizes, x.shape)):
            raise errors.explained(
                errors.ShapeError, "dynamic_slice.C4",
                f"slice slice_sizes must be greater than or equal to zero, got slice_sizes of "
                f"{sizes}." if any(m < 0 for m in sizes) else
                "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
                f"{sizes} for operand shape {x.shape}.",
                advice="Give the size of the part along each axis.")
        return ShapedArray(sizes, x.dtype, x.weak_type)

    def evaluate(self, x, *starts):
        room = [n - m for n, m in zip(x.shape, self.slice_sizes)]
        places = clamped(starts, room)
        return x[tuple(slice(s, s + m) for s, m in zip(places, self.slice_sizes))]

    def lower(self, ctx, x, *starts):
        starts = (*starts, *held_starts(ctx, len(self.slice_sizes) - len(starts)))
        if not starts:
            return x
        return regions.read_part(ctx, x, starts, physical_aval(ctx.out_avals[0]))

    def jvp(self, primals, tangents):
        t = tangents[0]
        return bind(self, *primals), None if t is None else bind(self, t, *primals[1:])

    def transpose(self, ct, x, *starts):
        zeros = zeros_of(shard_like(ShapedArray(x.shape, aval_of(ct).dtype), x.aval.to_ct_aval()))
        return [bind(DynamicUpdateSlice(), zeros, ct, *starts), *(None for _ in starts)]

    def batch(self, size, xs, dims):
        x, *starts = xs
        d, *start_dims = dims
        if any(s is not None for s in start_dims):
            return slice_windows(size, x, d, starts, start_dims, self.slice_sizes), 0
        zero = literal(0, aval_of(starts[0]).dtype) if starts else np.int32(0)
        sizes = (*self.slice_sizes[:d], size, *self.slice_sizes[d:])
        return bind(DynamicSlice(sizes), x, *starts[:d], zero, *starts[d:]), d

    def physical(self, in_avals, out_avals):
        return DynamicSlice((*self.slice_sizes, *held_dims(in_avals[0])))


@primitive("dynamic_update_slice")
class DynamicUpdateSlice(Primitive):
    """The operand with ``update`` written over the part that begins at the start indices, clamped.

    Source: StableHLO specification, dynamic_update_slice.
    """

    passes_nan = True
    linear = True
    shard_results = sharding_rules.dynamic_update_slice
    sum_results = sum_rules.unchanged

    def window(self, values):
        sizes = aval_of(values[1]).shape
        return index_vector(values[2:]), range(len(sizes)), sizes

    def typing(self, x, update, *starts):
        check_count("dynamic_update_slice", starts, x)
        check_same_dtypes("dynamic_update_slice", (x, update), "Convert the update first.")
        if update.ndim != x.ndim:
            raise errors.explained(
                errors.ShapeError, "dynamic_update_slice.C4",
                "dynamic_update_slice update must have the same rank as operand, got update shape "
                f"{update.shape} for operand shape {x.shape}.",
                advice="Add the missing axes: update[None].")
        if any(m > n for m, n in zip(update.shape, x.shape)):
            raise errors.explained(
                errors.ShapeError, "dynamic_update_slice.C5",
                "dynamic_update_slice update shape must be smaller than operand shape, got update "
                f"shape {update.shape} for operand shape {x.shape}.",
                advice="The update must fit into the operand.")
        check_starts("dynamic_update_slice", x, starts)
        return x.strip_weak_type()

    def evaluate(self, x, update, *starts):
        room = [n - m for n, m in zip(x.shape, update.shape)]
        out = np.array(x)
        out[tuple(slice(s, s + m) for s, m in zip(clamped(starts, room), update.shape))] = \
            update
        return out

    def lower(self, ctx, x, update, *starts):
        held = len(held_dims(ctx.in_avals[0]))
        if ctx.module.is_partitioned:  # the partitioner would leave starts as they are
            room = [n - m for n, m in zip(ctx.in_avals[0].shape, ctx.in_avals[1].shape)]
            starts = tuple([clamped_start(ctx, s, r) for s, r in zip(starts, room)])
        starts = (*starts, *held_starts(ctx, held))
        if not starts:
            return update
        return ctx.emit(f"stablehlo.dynamic_update_slice {x}, {update}, {', '.join(starts)}",
                        x, update, *starts)

    def jvp(self, primals, tangents):
        x, update, *starts = primals
        parts = [zeros_of(aval_of(p).to_tangent_aval()) if t is None else t
                 for p, t in zip((x, update), tangents)]
        return bind(self, *primals), bind(self, *parts, *starts)

    def transpose(self, ct, x, update, *starts):
        ct_x = ct_update = None
        if isinstance(x, UndefinedPrimal):
            aval = aval_of_linear(update)
            zeros = zeros_of(shard_like(
                ShapedArray(aval.shape, aval_of(ct).dtype), aval.to_ct_aval()))
            ct_x = bind(self, ct, zeros, *starts)
        if isinstance(update, UndefinedPrimal):
            ct_update = bind(DynamicSlice(update.shape), ct, *starts)
        return [ct_x, ct_update, *(None for _ in starts)]

    def batch(self, size, xs, dims):
        x, update, *starts = xs
        dx, du, *start_dims = dims
        x, update = stacked(size, (x, update), (dx, du))
        if any(s is not None for s in start_dims):
            return update_windows(size, x, update, starts, start_dims), 0
        zero = literal(0, aval_of(starts[0]).dtype) if starts else np.int32(0)
        return bind(self, x, update, zero, *starts), 0


def aval_of_linear(x: Any) -> ShapedArray:
    """Return the aval of an argument of a transpose rule, linear or not."""
    return x.aval if isinstance(x, UndefinedPrimal) else aval_of(x)


def clamped_start(ctx: Any, start: str, room: Size) -> str:
    """Write ``start`` moved into 0..room, where that is known."""
    aval = ctx.avals[start]
    if not is_static((room,)):
        return start
    high = ctx.constant(min(room, dtypes.iinfo(aval.dtype).max), aval)
    return ctx.elementwise("stablehlo.clamp", ctx.constant(0, aval), start, high, out=aval)


def held_starts(ctx: Any, count: int) -> list[str]:
    """Return ``count`` zeros, the starts along the axes by which extended dtypes are held."""
    starts = [a for a in ctx.in_avals if not a.shape and dtypes.is_integer(a.dtype)]
    aval = starts[-1] if starts else ShapedArray((), np.int32)
    return [ctx.constant(0, ShapedArray((), aval.dtype)) for _ in range(count)]


# -- functions, with the names and signatures of jax.lax -------------------------------------------


def wrapped_starts(operand: Any, start_indices: Any, allow_negative: bool | Sequence[bool]
                   ) -> list[Any]:
    """Return start indices, those that count from the end made to count from 0."""
    shape = aval_of(operand).shape
    if getattr(start_indices, "ndim", None) == 1:
        start_indices = [start_indices[i] for i in range(start_indices.shape[0])]
    starts = list(start_indices)
    allowed = [allow_negative] * len(starts) if isinstance(allow_negative, bool) \
        else list(allow_negative)
    if len(starts) != len(shape):
        return starts
    if not all(map(index_holds, starts, shape)):  # all starts have one dtype
        starts = [convert_element_type(s, np.int32) for s in starts]
    return [(wrapped if ok else not_negative)(s, n) for s, n, ok in zip(starts, shape, allowed)]


def index_holds(start: Any, n: Size) -> bool:
    """Whether the dtype of ``start`` holds the size ``n``, as that of a Python number does."""
    return type(start) is int or holds(aval_of(start).dtype, n)


def not_negative(start: Any, n: int) -> Any:
    """Return an index; refuse a negative number, which would count from the end of ``n``."""
    if isinstance(start, (int, np.integer)) and start < 0:
        raise errors.explained(
            errors.ArgumentError, "dynamic_slice.C5",
            f"Index {start} is out of bounds for dimension {n} if allow_negative_indices=False",
            advice="Add the size of the axis, or leave allow_negative_indices out.")
    return start


def wrapped(start: Any, n: Any) -> Any:
    """Return ``start`` with ``n`` added if it is negative."""
    aval = aval_of(start)
    if aval.shape or not dtypes.is_integer(aval.dtype) or dtypes.is_unsigned(aval.dtype):
        return start
    own = aval.dtype.type
    if isinstance(start, (int, np.integer)):
        return own(start + n if start < 0 else start)
    negative = lt(start, own(0))
    size = convert_element_type(n, aval.dtype) if isinstance(n, Dim) else own(n)
    return select_n(negative, start, add(convert_element_type(start, aval.dtype), size))


def dynamic_slice(operand: Array, start_indices: Array | Sequence[ArrayLike],
                  slice_sizes: Sequence[int], *,
                  allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """Return the part of ``slice_sizes`` of ``operand`` that begins at ``start_indices``.

    A negative start counts from the end; then starts are clamped so that the part lies inside.
    Raises: ShapeError or DTypeError for starts that are not integer scalars, one for each axis.

    >>> lax.dynamic_slice(jnp.arange(5), (2,), (2,))
    Array([2, 3], dtype=int32)
    """
    sizes, starts = tuple(slice_sizes), wrapped_starts(
        operand, start_indices, allow_negative_indices)
    check_count("dynamic_slice", starts, aval_of(operand))
    if len(starts) != len(sizes):
        raise errors.explained(
            errors.ShapeError, "dynamic_slice.sizes",
            "Length of slice sizes must match number of operand dimensions, got "
            f"{len(sizes)} for {aval_of(operand).str_short()}.")
    return bind(DynamicSlice(as_shape(sizes)), operand, *starts)


def dynamic_update_slice(operand: ArrayLike, update: ArrayLike,
                         start_indices: Array | Sequence[ArrayLike], *,
                         allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """Return ``operand`` with ``update`` written over the part that begins at ``start_indices``.

    Starts are as in ``dynamic_slice``.

    >>> lax.dynamic_update_slice(jnp.zeros(4), jnp.array([1., 2.]), (1,))
    Array([0., 1., 2., 0.], dtype=float32)
    """
    starts = wrapped_starts(operand, start_indices, allow_negative_indices)
    return bind(DynamicUpdateSlice(), operand, update, *starts)


def _along(operand: Any, index: Any, axis: int) -> tuple[int, list[Any]]:
    ndim = len(aval_of(operand).shape)
    axis = canonical_axis(axis, ndim)
    dtype = aval_of(index).dtype
    zero = literal(0, dtype) if dtypes.is_integer(dtype) else 0
    return axis, [index if i == axis else zero for i in range(ndim)]


def dynamic_slice_in_dim(operand: ArrayLike, start_index: ArrayLike, slice_size: int,
                         axis: int = 0, *, allow_negative_indices: bool = True) -> Array:
    """Return ``slice_size`` elements of ``operand`` along ``axis`` from ``start_index`` on.

    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 2, 2)
    Array([2, 3], dtype=int32)
    """
    axis, starts = _along(operand, start_index, axis)
    sizes = list(aval_of(operand).shape)
    sizes[axis] = as_size(slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(operand: ArrayLike, index: ArrayLike, axis: int = 0,
                         keepdims: bool = True, *, allow_negative_indices: bool = True) -> Array:
    """Return the part of ``operand`` at ``index`` along ``axis``, which ``keepdims`` keeps.

    >>> lax.dynamic_index_in_dim(jnp.array([5, 6, 7]), 1, keepdims=False)
    Array(6, dtype=int32)
    """
    part = dynamic_slice_in_dim(operand, index, 1, axis,
                                allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice_in_dim(operand: ArrayLike, update: ArrayLike, start_index: ArrayLike,
                                axis: int, *, allow_negative_indices: bool = True) -> Array:
    """Return ``operand`` with ``update`` written along ``axis`` from ``start_index`` on.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.array([1., 2.]), 1, 0)
    Array([0., 1., 2., 0.], dtype=float32)
    """
    axis, starts = _along(operand, start_index, axis)
    return dynamic_update_slice(operand, update, starts,
                                allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand: ArrayLike, update: ArrayLike, index: ArrayLike,
                                axis: int, *, allow_negative_indices: bool = True) -> Array:
    """Return ``operand`` with ``update`` (with or without ``axis``) written at ``index``.

    >>> lax.dynamic_update_index_in_dim(jnp.zeros(3), 5., 1, 0)
    Array([0., 5., 0.], dtype=float32)
    """
    axis = canonical_axis(axis, len(aval_of(operand).shape))
    if len(aval_of(update).shape) != len(aval_of(operand).shape):
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, update, index, axis,
                                       allow_negative_indices=allow_negative_indices)

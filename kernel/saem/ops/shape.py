"""Which operations change where elements stand, but not the elements?

Reshape, squeeze, concatenate, split, reverse, tile.  All are linear: their derivatives are
themselves.

Read before: ``ops.linear``.  Read after: ``ops.slicing``, where slice and pad are; ``ops.filling``.
Invariant: elements keep their row-major order unless the operation says where they go.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile.text import physical_aval
from saem.core import errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import batch_entry
from saem.core.dimensions import as_shape, as_size, differ
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.sharded import like_type, shard_like, with_entry
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.linear import (
    Linear,
    broadcast_in_dim,
    held_dims,
    moveaxis,
    permute,
    reduce_sum,
    shift_axes,
    stacked,
    unchanged,
    zeros_of,
)
from saem.placement.shardings import requested_sharding
from saem.typing import Array, ArrayLike


def check_same_dtypes(name: str, avals: Sequence[ShapedArray], advice: str) -> None:
    """Refuse avals of unequal dtype, as constraint C2 of primitive ``name``."""
    if any(a.dtype != avals[0].dtype for a in avals):
        got = ", ".join(a.dtype.name for a in avals)
        raise errors.explained(
            errors.DTypeError, f"{name}.C2",
            f"lax.{name} requires arguments to have the same dtypes, got {got}.", advice=advice)


def check_axes(name: str, axes: Sequence[int], x: ShapedArray) -> None:
    """Refuse axes that repeat or that ``x`` does not have, as constraint C1 of ``name``."""
    if len(set(axes)) != len(axes):
        raise errors.explained(
            errors.ShapeError, f"{name}.C1",
            f"{name} dimensions must be unique, got {tuple(axes)}.", advice="Name each axis once.")
    if not all(0 <= a < x.ndim for a in axes):
        raise errors.explained(
            errors.ShapeError, f"{name}.C1",
            f"{name} dimensions must have every element be nonnegative, got {tuple(axes)}."
            if any(a < 0 for a in axes) else
            f"{name} dimensions must all be less than operand ndim, got dimensions {tuple(axes)} "
            f"for operand ndim {x.ndim}.",
            advice=f"The axes of {x.str_short(True)} are 0..{x.ndim - 1}.")


def canonical_axis(axis: int, ndim: int) -> int:
    """Return ``axis`` counted from the front.

    Raises: ValueError if an array of ``ndim`` axes has no such axis.
    """
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise errors.explained(
            errors.AxisError, "axis.bounds",
            f"axis {axis} is out of bounds for array of dimension {ndim}",
            advice=f"Axes are -{ndim}..{ndim - 1}." if ndim else "A scalar has no axes.")
    return axis + ndim if axis < 0 else axis


@primitive("reshape")
class Reshape(Linear):
    """Give the elements, in row-major order, the shape ``new_sizes``.

    Source: StableHLO specification, reshape.
    """

    new_sizes: tuple[int, ...]
    dimensions: None = None
    sharding: Any = None

    passes_nan = True
    shard_results = sharding_rules.reshape
    sum_results = sum_rules.reshape
    requested_sharding = property(operator.attrgetter("sharding"))

    def typing(self, x):
        if any(n < 0 for n in self.new_sizes):
            raise errors.explained(
                errors.ShapeError, "reshape.C1",
                f"reshape new_sizes must all be positive, got {self.new_sizes}.",
                advice="Only jnp.reshape accepts -1 for a size to be worked out.")
        if differ(math.prod(self.new_sizes), x.size):
            raise errors.explained(
                errors.ShapeError, "reshape.C2",
                f"reshape total size must be unchanged, got new_sizes {self.new_sizes} (of total "
                f"size {math.prod(self.new_sizes)}) for shape {x.shape} (of total size {x.size}).",
                advice="The product of the sizes must stay.")
        return ShapedArray(self.new_sizes, x.dtype, x.weak_type)

    def evaluate(self, x):
        return np.reshape(x, self.new_sizes)

    def lower(self, ctx, x):
        return ctx.reshape_as(x, ctx.out_avals[0])

    def transpose(self, ct, x):
        sharding = like_type(x.aval.to_ct_aval(), aval_of(ct))
        return [reshape(ct, x.shape) if sharding is None else
                bind(Reshape(x.shape, None, sharding), ct)]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        sharding = with_entry(self.sharding, 0, batch_entry()) if self.sharding else None
        sizes = (size, *self.new_sizes)
        return reshape(moveaxis(x, d, 0), sizes, out_sharding=sharding), 0

    def physical(self, in_avals, out_avals):
        return Reshape((*self.new_sizes, *held_dims(in_avals[0])))


@primitive("squeeze")
class Squeeze(Linear):
    """Drop the axes ``dimensions``, all of size 1."""

    dimensions: tuple[int, ...]

    passes_nan = True
    shard_results = sharding_rules.squeeze
    sum_results = sum_rules.unchanged

    def typing(self, x):
        check_axes("squeeze", self.dimensions, x)
        if any(x.shape[d] != 1 for d in self.dimensions):
            raise errors.explained(
                errors.ShapeError, "squeeze.C2",
                "cannot select an axis to squeeze out which has size not equal to one, got "
                f"shape={x.shape} and dimensions={self.dimensions}",
                advice="To drop an axis of another size, index it or reduce over it.")
        shape = tuple(n for i, n in enumerate(x.shape) if i not in self.dimensions)
        return ShapedArray(shape, x.dtype, x.weak_type)

    def evaluate(self, x):
        return np.squeeze(x, self.dimensions)

    def lower(self, ctx, x):
        return ctx.reshape_as(x, ctx.out_avals[0])

    def transpose(self, ct, x):
        return [reshape(ct, x.shape)]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        dropped = shift_axes(self.dimensions, d)
        return bind(Squeeze(dropped), x), d - sum(a < d for a in dropped)


@primitive("concatenate")
class Concatenate(Primitive):
    """Join operands along axis ``dimension``.  Source: StableHLO specification, concatenate."""

    dimension: int

    passes_nan = True
    linear = True
    shard_results = sharding_rules.concatenate
    sum_results = sum_rules.unchanged

    def typing(self, *avals):
        self.check(avals)
        first, axis = avals[0], self.dimension
        size = sum(a.shape[axis] for a in avals)
        shape = (*first.shape[:axis], size, *first.shape[axis + 1:])
        return ShapedArray(shape, first.dtype, all(a.weak_type for a in avals))

    def check(self, avals: Sequence[ShapedArray]) -> None:
        """Refuse operands that cannot be joined."""
        if not avals:
            raise errors.explained(
                errors.ArgumentError, "concatenate.C4",
                "concatenate requires a non-empty sequences of arrays",
                advice="Give at least one array.")
        shapes = ", ".join(str(a.shape) for a in avals)
        first, axis = avals[0], self.dimension
        if any(a.ndim != first.ndim for a in avals):
            raise errors.explained(
                errors.ShapeError, "concatenate.C1",
                f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}.",
                advice="Add the missing axis with x[None] or jnp.expand_dims.")
        if not 0 <= axis < first.ndim:
            raise errors.explained(
                errors.ShapeError, "concatenate.C5",
                f"concatenate dimension out of bounds: dimension {axis} for shapes {shapes}.",
                advice="To join along a new axis, use jnp.stack.")
        rest = {a.shape[:axis] + a.shape[axis + 1:] for a in avals}
        if len(rest) > 1:
            raise errors.explained(
                errors.ShapeError, "concatenate.C3",
                "Cannot concatenate arrays with shapes that differ in dimensions other than the "
                f"one being concatenated: concatenating along dimension {axis} for shapes "
                f"{shapes}.", advice="All other axes must have equal sizes.")
        check_same_dtypes("concatenate", avals, "jnp.concatenate promotes dtypes by itself.")

    def evaluate(self, *xs):
        return np.concatenate(xs, self.dimension)

    def lower(self, ctx, *xs):
        return ctx.emit(f'"stablehlo.concatenate"({", ".join(xs)}) '
                        f"<{{dimension = {self.dimension} : i64}}>", *xs)

    def jvp(self, primals, tangents):
        parts = [zeros_of(aval_of(x).to_tangent_aval()) if t is None else t
                 for x, t in zip(primals, tangents)]
        return bind(self, *primals), bind(self, *parts)

    def transpose(self, ct, *xs):
        sizes = tuple(aval_of(x).shape[self.dimension] if not isinstance(x, UndefinedPrimal)
                      else x.shape[self.dimension] for x in xs)
        parts = bind(Split(sizes, self.dimension), ct)
        return [p if isinstance(x, UndefinedPrimal) else None for p, x in zip(parts, xs)]

    def batch(self, size, xs, dims):
        dim = next(d for d in dims if d is not None)
        stacks = stacked(size, xs, dims, dim)
        return bind(Concatenate(self.dimension + (self.dimension >= dim)), *stacks), dim


@primitive("split")
class Split(Primitive):
    """Cut an array along ``axis`` into pieces of ``sizes``: several results."""

    sizes: tuple[int, ...]
    axis: int

    passes_nan = True
    multiple_results = True

    shard_results = sharding_rules.split
    sum_results = sum_rules.unchanged

    def typing(self, x):
        check_axes("split", (self.axis,), x)
        if any(n < 0 for n in self.sizes):
            raise errors.explained(
                errors.ArgumentError, "split.C2",
                f"Sizes passed to split must be nonnegative, got {list(self.sizes)}",
                advice="Give the size of each piece.")
        if sum(self.sizes) != x.shape[self.axis]:
            raise errors.explained(
                errors.ArgumentError, "split.C3",
                f"Sum of sizes {sum(self.sizes)} must be equal to dimension {self.axis} of the "
                f"operand shape {list(x.shape)}",
                advice="lax.split takes sizes; jnp.split takes indices or a number of pieces.")
        before, after = x.shape[:self.axis], x.shape[self.axis + 1:]
        return [ShapedArray((*before, n, *after), x.dtype, x.weak_type) for n in self.sizes]

    def evaluate(self, x):
        return np.split(x, np.cumsum(self.sizes[:-1], dtype=int), self.axis) if self.sizes else []

    def lower(self, ctx, x):
        sizes = (*ctx.in_avals[0].shape, *held_dims(ctx.avals[x]))
        starts, limits = [0] * len(sizes), list(sizes)
        outs, start = [], 0
        for n, out in zip(self.sizes, ctx.out_avals):
            starts[self.axis], limits[self.axis] = start, start + n
            outs.append(ctx.slice(x, starts, limits, out=out))
            start += n
        return outs

    def jvp(self, primals, tangents):
        outs = bind(self, *primals)
        (t,) = tangents
        return outs, [None] * len(outs) if t is None else bind(self, t)

    def transpose(self, cts, x):
        shape = x.shape
        parts = [zeros_of(shard_like(ShapedArray(
            (*shape[:self.axis], n, *shape[self.axis + 1:]), x.dtype), x.aval.to_ct_aval()))
                 if ct is None else ct for ct, n in zip(cts, self.sizes)]
        return [concatenate(parts, self.axis)]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(Split(self.sizes, self.axis + (self.axis >= d)), x), [d] * len(self.sizes)


@primitive("rev")
class Rev(Linear):
    """Reverse the order along axes ``dimensions``.  Source: StableHLO specification, reverse."""

    dimensions: tuple[int, ...]

    passes_nan = True
    shard_results = sharding_rules.unchanged

    def typing(self, x):
        check_axes("rev", self.dimensions, x)
        return x

    def evaluate(self, x):
        return np.flip(x, self.dimensions)

    def lower(self, ctx, x):
        return ctx.emit(f"stablehlo.reverse {x}, dims = {list(self.dimensions)}", x)

    def transpose(self, ct, x):
        return [rev(ct, self.dimensions)]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(Rev(shift_axes(self.dimensions, d)), x), d


@primitive("tile")
class Tile(Linear):
    """Repeat the whole array ``reps[i]`` times along axis i."""

    reps: tuple[int, ...]

    passes_nan = True
    shard_results = sharding_rules.tile

    def typing(self, x):
        if len(self.reps) != x.ndim:
            raise errors.explained(
                errors.ShapeError, "tile.C1",
                "reps length must be equal to the ndim of x, got "
                f"len(reps)={len(self.reps)} and x.ndim={x.ndim}.",
                advice="jnp.tile adds the missing axes by itself.")
        if any(r < 0 for r in self.reps):
            raise errors.explained(
                errors.ArgumentError, "tile.C2",
                f"tile reps must be nonnegative, got {self.reps}.",
                advice="Repeat 0 or more times.")
        shape = tuple(r * n for r, n in zip(self.reps, x.shape))
        return ShapedArray(shape, x.dtype, x.weak_type)

    def interleaved(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return (reps[0], shape[0], reps[1], shape[1], …)."""
        return tuple(n for pair in zip(self.reps, shape) for n in pair)

    def evaluate(self, x):
        return np.tile(x, self.reps)

    def lower(self, ctx, x):
        aval = physical_aval(ctx.in_avals[0])
        wide = ShapedArray(self.interleaved(aval.shape), aval.dtype)
        name = ctx.broadcast_as(x, wide, [2 * i + 1 for i in range(aval.ndim)])
        return ctx.reshape_as(name, ctx.out_avals[0])

    def physical(self, in_avals, out_avals):
        return Tile((*self.reps, *(1 for _ in held_dims(in_avals[0]))))

    def transpose(self, ct, x):
        wide = reshape(ct, self.interleaved(x.shape))
        return [reduce_sum(wide, tuple(range(0, 2 * len(self.reps), 2)))]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(Tile((*self.reps[:d], 1, *self.reps[d:])), x), d


# -- functions, with the names and signatures of jax.lax -------------------------------------------


def sizes_of(shape: Any) -> Sequence[Any]:
    """Return a shape argument as a sequence: an integer is one size."""
    one = hasattr(type(shape), "__index__") and not getattr(shape, "shape", ())
    return (shape,) if one else shape


def reshape(operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None,
            *, out_sharding: Any = None) -> Array:
    """Return the elements of ``operand`` (axes read in order ``dimensions``) as ``new_sizes``.

    Raises: ShapeError if the number of elements would change.

    >>> lax.reshape(jnp.arange(6), (2, 3))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if dimensions is not None:
        dimensions, shape = tuple(map(operator.index, dimensions)), aval_of(operand).shape
        if sorted(dimensions) != list(range(len(shape))):
            raise errors.explained(
                errors.ShapeError, "reshape.C3",
                "reshape dimensions must be a permutation of operand dimensions, got dimensions "
                f"{dimensions} for shape {shape}.", advice="Give each axis once.")
        operand = permute(operand, dimensions)
    new_sizes = as_shape(sizes_of(new_sizes))
    sharding = requested_sharding(out_sharding, len(new_sizes), "reshape")
    if sharding is None and aval_of(operand).shape == new_sizes:
        return unchanged(operand)
    return bind(Reshape(new_sizes, None, sharding), operand)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Return ``array`` without its axes ``dimensions``, all of size 1.

    Raises: ShapeError if one of them has another size.

    >>> lax.squeeze(jnp.array([[1, 2]]), (0,))
    Array([1, 2], dtype=int32)
    """
    ndim = len(aval_of(array).shape)
    dimensions = tuple(sorted(canonical_axis(d, ndim) for d in dimensions))
    if len(set(dimensions)) != len(dimensions):
        raise errors.explained(
            errors.ArgumentError, "squeeze.C1",
            f"dimensions are not unique: {dimensions}", advice="Name each axis once.")
    return bind(Squeeze(dimensions), array) if dimensions else unchanged(array)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Return ``array`` with new axes of size 1, which stand at ``dimensions`` of the result.

    Raises: ArgumentError if two of them are one.

    >>> lax.expand_dims(jnp.array([1, 2]), (0,))
    Array([[1, 2]], dtype=int32)
    """
    shape = aval_of(array).shape
    ndim = len(shape) + len(dimensions)
    places = {canonical_axis(d, ndim) for d in dimensions}
    if len(places) != len(dimensions):
        raise errors.explained(
            errors.ArgumentError, "expand_dims.C1",
            f"repeated axis in lax.expand_dims: {tuple(dimensions)}", advice="Name each axis once.")
    kept = [i for i in range(ndim) if i not in places]
    out = [1] * ndim
    for i, n in zip(kept, shape):
        out[i] = n
    return broadcast_in_dim(array, out, kept)


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Return ``operand`` repeated along new leading axes of ``sizes``.

    >>> lax.broadcast(jnp.array([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    sizes = tuple(sizes)
    if not sizes and out_sharding is None:
        return unchanged(operand)
    shape = (*as_shape(sizes), *aval_of(operand).shape)
    return broadcast_in_dim(operand, shape, tuple(range(len(sizes), len(shape))),
                            out_sharding=out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Return ``x`` with leading axes of size 1 up to ``rank`` axes.

    >>> lax.broadcast_to_rank(jnp.array([1, 2]), 3).shape
    (1, 1, 2)
    """
    return expand_dims(x, tuple(range(rank - len(aval_of(x).shape))))


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Return ``operand`` with axes ``start_dimension`` to ``stop_dimension`` made one.

    >>> lax.collapse(jnp.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    shape = aval_of(operand).shape
    low, high, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if high < low:
        raise errors.explained(
            errors.ArgumentError, "collapse.C1",
            f"Invalid dimension range passed to collapse: {shape}"
            f"[{start_dimension}:{stop_dimension}]",
            advice="The axes from start to stop become one.")
    return reshape(operand, (*shape[:low], math.prod(shape[low:high]), *shape[high:]))


def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """Return ``operands``, equal in all other axes, joined along axis ``dimension``.

    Raises: ShapeError, DTypeError or ArgumentError if they cannot be joined.

    >>> lax.concatenate([jnp.array([1]), jnp.array([2, 3])], 0)
    Array([1, 2, 3], dtype=int32)
    """
    if len(operands) == 1:
        return unchanged(operands[0])
    return bind(Concatenate(operator.index(dimension)), *operands)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Return ``operand`` cut along ``axis`` into pieces of ``sizes``.

    Raises: ArgumentError if the sizes do not add up.

    >>> lax.split(jnp.arange(5), (2, 3))
    [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    axis = canonical_axis(axis, len(aval_of(operand).shape))
    return bind(Split(tuple([as_size(n) for n in sizes]), axis), operand)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Return ``operand`` with the order reversed along ``dimensions``.

    >>> lax.rev(jnp.array([1, 2, 3]), (0,))
    Array([3, 2, 1], dtype=int32)
    """
    dimensions = tuple(operator.index(d) for d in dimensions)
    return bind(Rev(dimensions), operand) if dimensions else unchanged(operand)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Return ``operand`` repeated ``reps[i]`` times along axis i.

    >>> lax.tile(jnp.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    return bind(Tile(tuple(as_size(r) for r in reps)), operand)



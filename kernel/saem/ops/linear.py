"""Which linear operations do all other rules stand on?

Stretching and its transpose, summing; permuting axes; adding cotangents.  Derivative, transpose and
batch rules everywhere are written with these four and the helpers below.

Read before: ``core.primitive``.  Read after: ``ops.families``.
Invariant: broadcast_in_dim and reduce_sum transpose into each other, and everything here is linear.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from saem.compile.dispatch import put_value
from saem.core import config, dtypes, errors
from saem.core.avals import ShapedArray, aval_of, kept
from saem.core.axes import batch_entry, batching
from saem.core.dimensions import as_shape
from saem.core.lazy import later
from saem.core.memory_spaces import HOST, space_of
from saem.core.placement_types import Seen
from saem.core.primitive import (
    Primitive,
    UndefinedPrimal,
    equal_one,
    primitive,
    remembered,
)
from saem.core.sharded import (
    entries_of,
    entries_on,
    like_type,
    with_entry,
)
from saem.core.trace import bind, eval_trace, state
from saem.ops import sharding_rules, sum_rules
from saem.placement.shardings import requested_sharding
from saem.typing import Array, ArrayLike

# Zeros may have to be placed, by operations whose rules are made of this file.
device_sums: Any = later("saem.ops.device_sums")
reshard: Any = later("saem.ops.reshard")
transfers: Any = later("saem.jit.transfers")


class Linear(Primitive):
    """Linear in its one operand: the tangent goes through the same operation."""

    linear = True
    __slots__ = ()
    joint_jvp = True

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        return bind(self, x), None if t is None else bind(self, t)


class Identity(Linear):
    """The value itself: what such an operation says is about its place or its name."""

    __slots__ = ()
    joint_jvp = False

    def typing(self, x):
        return x

    def evaluate(self, x):
        return x

    def lower(self, ctx, x):
        return x

    def transpose(self, ct, x):
        return [bind(self, ct)]

    def batch(self, size, xs, dims):
        return bind(self, xs[0]), dims[0]


@primitive("broadcast_in_dim")
class BroadcastInDim(Linear):
    """Place operand axis i at output axis ``broadcast_dimensions[i]`` and repeat along the others.

    Source: StableHLO specification, broadcast_in_dim.
    """

    shape: tuple[int, ...]
    broadcast_dimensions: tuple[int, ...] = ()
    sharding: Any = None

    passes_nan = True
    shard_results = sharding_rules.broadcast_in_dim
    sum_results = sum_rules.wanted_or_unchanged
    requested_sharding = property(operator.attrgetter("sharding"))

    def misfit(self, x: ShapedArray) -> str:
        """Return why ``x`` does not fit along the dimensions of the result, in words."""
        dims, shape = self.broadcast_dimensions, self.shape
        if len(dims) != x.ndim:
            return ("broadcast_dimensions must have length equal to operand ndim; got "
                    f"broadcast_dimensions {dims} for operand ndim {x.ndim}.")
        if len(shape) < x.ndim:
            return ("target broadcast shape must have equal or higher rank to the operand shape; "
                    f"got operand ndim {x.ndim} and target broadcast ndim {len(shape)}.")
        if any(d < 0 for d in dims):
            return f"broadcast_dimensions must have every element be nonnegative, got {dims}."
        if any(d >= len(shape) for d in dims):
            return (f"broadcast_dimensions must be a subset of output dimensions, got {dims} for "
                    f"operand ndim {x.ndim} and shape {shape}.")
        if len(set(dims)) < len(dims):
            return ("broadcast_dimensions must not contain duplicates, got broadcast_dimensions "
                    f"{dims}")
        return ("operand dimension sizes must either be 1, or be equal to their corresponding "
                f"dimensions in the target broadcast shape; got operand of shape {x.shape}, "
                f"target broadcast shape {shape}, broadcast_dimensions {dims}")

    def printed_params(self):
        dims = self.broadcast_dimensions
        return {"broadcast_dimensions": dims} if dims else {}

    def memory(self, spaces):
        return spaces[:1]

    @remembered
    def typing(self, x):
        dims, shape = self.broadcast_dimensions, self.shape
        if any(type(n) is int and n < 0 for n in shape):
            raise errors.explained(
                errors.ShapeError, "broadcast_in_dim.C2",
                f"broadcast_in_dim shape must have every element be nonnegative, got {shape}.",
                advice="A size of 0 gives an empty array.")
        if not (len(dims) == x.ndim == len(set(dims)) and all(
                0 <= d < len(shape) and n in (1, shape[d]) for d, n in zip(dims, x.shape))):
            raise errors.explained(
                errors.ShapeError, "broadcast_in_dim.C1",
                f"broadcast_in_dim {self.misfit(x)}",
                advice="One dimension is needed for each operand axis. jnp.broadcast_to aligns "
                "trailing axes.")
        return ShapedArray(shape, x.dtype, x.weak_type)

    def evaluate(self, x):
        expanded = [1] * len(self.shape)
        for d, n in zip(self.broadcast_dimensions, x.shape):
            expanded[d] = n
        in_order = x.transpose(np.argsort(self.broadcast_dimensions)) if x.ndim > 1 else x
        return np.broadcast_to(in_order.reshape(expanded), self.shape)

    def lower(self, ctx, x):
        return ctx.broadcast_as(x, ctx.out_avals[0], self.broadcast_dimensions)

    def transpose(self, ct, x):
        dims, ct_shape = self.broadcast_dimensions, aval_of(ct).shape
        stretched = [d for d, n in zip(dims, x.shape) if n == 1 and ct_shape[d] != 1]
        summed = [d for d in range(len(ct_shape)) if d not in dims or d in stretched]
        out = reduce_sum(ct, tuple(summed))
        places = [d for d in dims if d not in stretched]
        out = permute(out, tuple([sorted(places).index(d) for d in places]))
        kept = tuple([i for i, d in enumerate(dims) if d not in stretched])
        return [broadcast_in_dim(out, x.shape, kept) if stretched else out]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        x = moveaxis(x, d, 0)
        placed = (0, *(b + 1 for b in self.broadcast_dimensions))
        if self.sharding is None:
            return broadcast_in_dim(x, (size, *self.shape), placed), 0
        sharding = with_entry(self.sharding, 0, batch_entry())
        return bind(BroadcastInDim((size, *self.shape), placed, sharding), x), 0

    def physical(self, in_avals, out_avals):
        held = held_dims(in_avals[0])
        rank = len(self.shape)
        return BroadcastInDim((*self.shape, *held), (*self.broadcast_dimensions,
                                                     *range(rank, rank + len(held))))


def check_width(aval: ShapedArray) -> None:
    """Refuse to sum floats of 16 bits in 16 bits.

    Raises: ValueError.
    """
    if dtypes.is_float(aval.dtype) and aval.dtype.itemsize == 2:
        raise errors.explained(
            errors.ArgumentError, "reduce_sum.C3",
            f"reduce_sum on operand {aval.str_short(True)} is not allowed when "
            "jax_allow_f16_reductions=False.",
            advice="Convert first, x.astype(jnp.float32); jnp.sum does so by itself.")


@primitive("reduce_sum")
class ReduceSum(Linear):
    """Sum over ``axes``.  Source: StableHLO specification, reduce."""

    axes: tuple[int, ...]
    out_sharding: Any = None

    folds_many = True
    shard_results = sharding_rules.reduction
    sum_results = sum_rules.reduce_sum
    requested_sharding = property(operator.attrgetter("out_sharding"))

    @remembered
    def typing(self, x):
        shape = reduced_shape(self, x)
        if not (dtypes.is_inexact(x.dtype) or dtypes.is_integer(x.dtype)):
            raise errors.explained(
                errors.DTypeError, "reduce_sum.C2", f"reduce_sum does not accept dtype "
                f"{x.dtype.name}. Accepted dtypes are subtypes of number.",
                advice="Use jnp.sum, which counts booleans as integers.")
        return ShapedArray(shape, x.dtype, x.weak_type)

    def evaluate(self, x):
        return np.sum(x, axis=self.axes, dtype=x.dtype)

    def lower(self, ctx, x):
        if not config.allow_f16_reductions.value:  # asked where each setting has its own text
            check_width(ctx.avals[x])
        return ctx.reduce("add", x, 0, self.axes)

    def transpose(self, ct, x):
        shape = x.aval.shape
        kept = tuple([i for i in range(len(shape)) if i not in self.axes])
        sharding = like_type(x.aval.to_ct_aval()) if Seen.placements else None
        return [bind(equal_one(BroadcastInDim, shape, kept, sharding), ct) if self.axes else ct]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(ReduceSum(shift_axes(self.axes, d)), x), dim_after_reduce(self.axes, d)


@primitive("transpose")
class Transpose(Linear):
    """Permute axes: output axis i is operand axis ``permutation[i]``."""

    permutation: tuple[int, ...]

    passes_nan = True
    shard_results = sharding_rules.transpose
    sum_results = sum_rules.unchanged

    @remembered
    def typing(self, x):
        if sorted(self.permutation) != list(range(x.ndim)):
            raise errors.explained(
                errors.ShapeError, "transpose.C1",
                f"transpose permutation isn't a permutation of operand dimensions, got permutation "
                f"{self.permutation} for operand shape {x.shape}.",
                advice=f"Give each of 0..{x.ndim - 1} once.")
        return ShapedArray(tuple(x.shape[p] for p in self.permutation), x.dtype, x.weak_type)

    def evaluate(self, x):
        return np.transpose(x, self.permutation)

    def lower(self, ctx, x):
        return ctx.emit(f"stablehlo.transpose {x}, dims = {list(self.permutation)}", x)

    def transpose(self, ct, x):
        return [permute(ct, inverse_order(self.permutation))]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return permute(x, (d, *shift_axes(self.permutation, d))), 0

    def physical(self, in_avals, out_avals):
        rank = len(self.permutation)
        held = held_dims(in_avals[0])
        return Transpose((*self.permutation, *range(rank, rank + len(held))))


@primitive("add_any")
class AddAny(Primitive):
    """Add two cotangents (or tangents) of the same value."""

    adds = True
    shard_results = sharding_rules.elementwise
    sum_results = sum_rules.add

    def typing(self, x, y):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise errors.explained(
                errors.ShapeError, "add_any.C1",
                f"add_any: tangents must have one type, got {x.str_short(True)} and "
                f"{y.str_short(True)}.",
                advice="A derivative rule returned a tangent of the wrong type.")
        return x if not x.weak_type else y

    def evaluate(self, x, y):
        return np.add(x, y)

    def lower(self, ctx, x, y):
        return ctx.elementwise("stablehlo.add", x, y)

    def jvp(self, primals, tangents):
        out = bind(self, *primals)
        tx, ty = tangents
        return out, ty if tx is None else tx if ty is None else bind(self, tx, ty)

    def transpose(self, ct, x, y):
        return [ct if isinstance(a, UndefinedPrimal) else None for a in (x, y)]

    def batch(self, size, xs, dims):
        (x, y), (dx, dy) = xs, dims
        if dx is None:
            x, dx = broadcast_new_dim(x, size, dy), dy
        elif dy is None:
            y = broadcast_new_dim(y, size, dx)
        elif dx != dy:
            y = moveaxis(y, dy, dx)
        return bind(self, x, y), dx

    def physical(self, in_avals, out_avals):
        return out_avals[0].dtype.addition(out_avals[0])


add_any_p = AddAny()


class Reducing(Protocol):
    """A primitive that takes ``axes`` away."""

    name: str
    axes: tuple[int, ...]


def reduced_shape(prim: Reducing, x: ShapedArray) -> tuple[int, ...]:
    """Return the shape of ``x`` without ``prim.axes``, which must be distinct axes of it."""
    axes = prim.axes
    if len(set(axes)) != len(axes) or not all(0 <= a < x.ndim for a in axes):
        raise errors.explained(
            errors.ShapeError, f"{prim.name}.C1",
            f"reduction axes {axes} contains out-of-bounds indices for {x.str_short()}."
            if len(set(axes)) == len(axes) else
            f"duplicate value in 'axes' of reduction: {axes}",
            advice="Axes are distinct; negative ones are allowed in jax.numpy functions only.")
    return tuple(n for i, n in enumerate(x.shape) if i not in axes)


def held_dims(aval: ShapedArray) -> tuple[int, ...]:
    """Return the trailing shape by which one element of an extended dtype is held."""
    return aval.dtype.physical[0] if isinstance(aval.dtype, dtypes.ExtendedDType) else ()


def shift_axes(axes: Sequence[int], dim: int) -> tuple[int, ...]:
    """Return ``axes`` of one example as axes of the stack whose batch axis is ``dim``."""
    return tuple(a + (a >= dim) for a in axes)


def dim_after_reduce(axes: Sequence[int], dim: int) -> int:
    """Return where batch axis ``dim`` stands after ``axes`` (of one example) are removed."""
    return dim - sum(a < dim for a in axes)


def unchanged(x: Any) -> Any:
    """Return ``x``, which an operation leaves as it is: an array, also of a number.

    While a program is recorded NumPy arrays stay, since they become its constants.
    """
    if isinstance(x, (np.generic, float, complex, int)) or (
            isinstance(x, np.ndarray) and state.trace is eval_trace):
        return put_value(x)
    return x


def broadcast_in_dim(operand: ArrayLike, shape: Sequence[int],
                     broadcast_dimensions: Sequence[int], *,
                     out_sharding: Any = None) -> Array:
    """Return ``operand`` with axis i at axis ``broadcast_dimensions[i]`` of ``shape``, repeated.

    It is ``operand`` itself if that changes nothing.  ``out_sharding`` shards the result along
    Explicit mesh axes.  Raises: TypeError if an axis does not fit.

    >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    shape = as_shape(shape)
    places = tuple([operator.index(d) for d in broadcast_dimensions])
    sharding = None
    if out_sharding is not None:
        sharding = requested_sharding(out_sharding, len(shape), "broadcast_in_dim")
    if sharding is None and aval_of(operand).shape == shape and places == tuple(range(len(shape))):
        return unchanged(operand)
    return bind(equal_one(BroadcastInDim, shape, places, sharding), operand)


def broadcast_new_dim(x: Any, size: int, dim: int, sharding: Any = None) -> Any:
    """Return ``x`` repeated ``size`` times along a new axis ``dim``.

    ``sharding`` is that of the new axis alone, along Explicit mesh axes; by default an axis that a
    batch rule adds is sharded as the axis mapped over.
    """
    aval = aval_of(x)
    if sharding is None and Seen.placements:
        axis = batching()
        if axis is not None and axis.size == size:
            sharding = axis.sharding
    shape = aval.shape
    dims = tuple(i for i in range(len(shape) + 1) if i != dim)
    if sharding is not None:
        own = entries_on(sharding, entries_of(aval), aval.sums)
        sharding = with_entry(own, dim, sharding.spec.partitions[0])
    return bind(BroadcastInDim((*shape[:dim], size, *shape[dim:]), dims, sharding), x)


def stacked(size: int, xs: Sequence[Any], dims: Sequence[int | None], at: int = 0) -> list[Any]:
    """Return stacks of ``size`` with their batch axes, now at ``dims``, at ``at``.

    What has none (None) is repeated.
    """
    return [broadcast_new_dim(x, size, at) if d is None else moveaxis(x, d, at)
            for x, d in zip(xs, dims)]


def stretch(x: Any, shape: tuple[int, ...]) -> Any:
    """Return ``x``, of rank 0 or of the rank of ``shape`` with axes of size 1, as ``shape``."""
    have = aval_of(x).shape
    return x if have == shape else bind(BroadcastInDim(shape, tuple(range(len(have)))), x)


def unbroadcast(ct: Any, aval: Any) -> Any:
    """Return ``ct`` summed over the axes along which its operand, of ``aval``, was stretched."""
    have, shape = aval_of(ct).shape, aval.shape
    if have == shape:
        return ct
    if not shape:
        return reduce_sum(ct, tuple(range(len(have))))
    axes = tuple([i for i, (n, m) in enumerate(zip(have, shape)) if n != m])
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    return broadcast_in_dim(reduce_sum(ct, axes), shape, kept)


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Return the sum of ``operand`` over ``axes``; ``operand`` itself if there are none.

    ``out_sharding`` shards the result along Explicit mesh axes.

    >>> lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int32)
    """
    axes = tuple(map(operator.index, axes))
    sharding = None
    if out_sharding is not None:
        sharding = requested_sharding(out_sharding, len(aval_of(operand).shape) - len(axes),
                                      "reduce_sum")
    if not axes and sharding is None:
        return unchanged(operand)
    return bind(equal_one(ReduceSum, axes, sharding), operand)


def permute(x: Any, permutation: tuple[int, ...]) -> Any:
    """Return ``x`` with its axes permuted; ``x`` itself if the order stays."""
    if permutation == tuple(range(len(permutation))) and len(permutation) == aval_of(x).ndim:
        return unchanged(x)
    return bind(equal_one(Transpose, permutation), x)


def inverse_order(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes ``permutation``."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def moveaxis(x: Any, source: int, target: int) -> Any:
    """Return ``x`` with axis ``source`` moved to ``target``, which may be negative."""
    rank = len(aval_of(x).shape)
    target = target + rank if target < 0 else target
    if source == target:
        return x
    order = [i for i in range(rank) if i != source]
    order.insert(target, source)
    return permute(x, tuple(order))


def full(aval: ShapedArray, value: Any) -> Any:
    """Return an array of ``aval`` filled with the Python number ``value``."""
    if dtypes.scalar_kind(aval.dtype) == "float0":
        return np.zeros(aval.shape, dtypes.float0)
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        scalar = aval.dtype.zero() if value == 0 else aval.dtype.filled((), value)
    else:
        scalar = literal(value, aval.dtype)
    if aval.weak_type and aval_of(scalar.item()).dtype == aval.dtype:
        scalar = scalar.item()  # a Python number is what makes the result weak
    like = aval.explicit
    filled = bind(BroadcastInDim(aval.shape, (), like), scalar) if aval.shape else \
        scalar if like is None else bind(reshard.Reshard(like, entries_on(like, ())), scalar)
    if space_of(aval) is not HOST:
        return filled
    (there,) = bind(transfers.DevicePut((HOST,)), filled)
    return there


def literal(value: Any, dtype: Any) -> Any:
    """Return the number ``value`` as a scalar of ``dtype``, of 64 bits also where those are off."""
    return kept(np.asarray(value, dtype)[()])


def number_like(x: Any, value: float) -> Any:
    """Return ``value`` as a scalar of the dtype and weakness of ``x``.

    Where weak numbers of Python have another dtype, since ``enable_x64`` was changed after ``x``
    was made, it is strong.
    """
    aval = aval_of(x)
    if aval.weak_type and dtypes.is_inexact(aval.dtype):
        number = complex(value) if dtypes.is_complex(aval.dtype) else float(value)
        if aval_of(number).dtype == aval.dtype:
            return number
    return literal(value, aval.dtype)


def constant_like(x: Any, value: float) -> Any:
    """Return ``value`` as a scalar of the dtype of ``x``: weak if ``x`` is a weak scalar.

    Beside a weak array of higher rank it is strong, and so is what is computed of both.
    """
    aval = aval_of(x)
    return literal(value, aval.dtype) if aval.shape else number_like(x, value)


def zeros_of(aval: ShapedArray) -> Any:
    """Return zeros of ``aval``; of dtype float0 for the tangents of integers."""
    zeros = full(aval, 0)
    if aval.placement is None:
        return zeros
    # Inside shard_map they differ as what they stand for does.
    _, vma, _, (unreduced, reduced) = aval.placement
    for kind, axes in ((device_sums.PVary, vma | unreduced),
                       (device_sums.VaryUnreducedCast, unreduced), (device_sums.PReduced, reduced)):
        if axes:
            zeros = bind(kind(tuple(sorted(axes, key=str))), zeros)
    return zeros


def varying_as(x: Any, aval: ShapedArray) -> Any:
    """Return ``x`` made to vary along the mesh axes along which a value of ``aval`` does."""
    if aval.placement is None:
        return x
    missing = aval.vma - aval_of(x).vma
    return bind(device_sums.PVary(tuple(sorted(missing, key=str))), x) if missing else x


def ones_of(aval: ShapedArray) -> Any:
    """Return ones of ``aval``, which vary as it does."""
    return varying_as(full(aval, 1), aval)


def add_cotangents(a: Any, b: Any) -> Any:
    """Return the sum of two cotangents, either of which may be None (zero)."""
    return b if a is None else a if b is None else bind(add_any_p, a, b)

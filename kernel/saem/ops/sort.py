"""How is an axis put in order, and which are its greatest?

``sort`` orders several arrays together by the first ``num_keys`` of them.  Its derivative carries
tangents along by the same permutation, which is a sort of positions.

Read before: ``ops.compare``, ``ops.gather``.  Read after: ``saem.numpy`` (sort, argsort, unique).
Invariant: NaN comes last, zeros of either sign are equal; ``top_k`` instead keeps the total order
of bits, where -0 is below 0 and a NaN stands at the end its sign says.
Source: StableHLO specification, sort; IEEE 754-2019, 5.10 (totalOrder).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import Dim, as_size, bit_length, is_nonnegative
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.sharded import sharding_of
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.compare import total_order
from saem.ops.filling import broadcasted_iota
from saem.ops.gather import gather
from saem.ops.linear import broadcast_in_dim, stacked
from saem.ops.shape import canonical_axis
from saem.ops.windows import GatherDimensionNumbers, GatherScatterMode
from saem.typing import Array, ArrayLike

BOOL = ShapedArray((), bool)
I32 = np.dtype("int32")


def take_sorted(x: Any, places: Any, axis: int) -> Any:
    """Return ``x`` at ``places`` (of its rank) along ``axis``, which are known to be inside."""
    shape = aval_of(places).shape
    if not aval_of(x).shape[axis]:
        return x
    others = tuple(i for i in range(len(shape)) if i != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    starts = broadcast_in_dim(places, (*shape, 1), tuple(range(len(shape))))
    return gather(x, starts, numbers, (1,) * len(shape),
                  mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def real_parts(x: np.ndarray) -> list[np.ndarray]:
    """Return the real arrays by which ``x`` is ordered, the first one first."""
    return [x.real, x.imag] if dtypes.is_complex(x.dtype) else [x]


def settled(x: np.ndarray) -> np.ndarray:
    """Return numbers that order as ``x`` does with NaN last and zeros equal."""
    if not dtypes.is_float(x.dtype):
        return x
    wide = x.astype(np.float64)
    wide[wide == 0] = 0.0
    return wide


@primitive("sort")
class Sort(Primitive):
    """Order operands together along ``dimension`` by the first ``num_keys`` of them."""

    dimension: int
    is_stable: bool = True
    num_keys: int = 1

    passes_nan = True
    multiple_results = True
    handed_on = ("is_stable",)

    shard_results = sharding_rules.sort

    def memory(self, spaces):
        return spaces

    def typing(self, *avals):
        for a in avals:
            if dtypes.is_extended(a.dtype):
                raise TypeError(f"sort does not accept dtype {a.dtype}: it orders numbers and "
                                "truth values. Try: jax.random.key_data(keys)")
        if any(a.shape != avals[0].shape for a in avals):
            raise errors.explained(
                errors.ShapeError, "sort.C1", "Arguments to sort must have equal shapes, got: "
                + " ".join(str(a.shape) for a in avals), advice="Broadcast them to one shape.")
        if not 0 <= self.dimension < max(avals[0].ndim, 1):
            raise errors.explained(
                errors.ArgumentError, "sort.C2",
                f"dimension {self.dimension} is out of bounds for {avals[0].str_short(True)}",
                advice="Count axes from 0.")
        return list(avals)

    def evaluate(self, *xs):
        keys = [settled(part) for x in xs[: self.num_keys] for part in real_parts(x)]
        order = np.lexsort(keys[::-1], axis=self.dimension)
        return [np.take_along_axis(x, order, self.dimension) for x in xs]

    def lower(self, ctx, *xs):
        scalars = [ShapedArray((), ctx.avals[x].dtype) for x in xs for _ in range(2)]
        region = ctx.region(scalars, lambda *pairs: [self.before(ctx, pairs)])
        return ctx.emit_many(
            f'"stablehlo.sort"({", ".join(xs)}) <{{dimension = {self.dimension} : i64, '
            f'is_stable = {str(self.is_stable).lower()}}}>', *xs, outs=ctx.out_avals,
            regions=[region])

    def before(self, ctx: Any, pairs: Sequence[str]) -> str:
        """Write whether the first of each pair of scalars comes before the second."""
        keys = []
        for number in range(self.num_keys):
            keys += comparable(ctx, pairs[2 * number], pairs[2 * number + 1])
        # From the last key to the first: before there, or equal there and before in the rest.
        less = None
        for a, b in reversed(keys):
            floating = dtypes.is_float(ctx.avals[a].dtype)
            here = ctx.compare("LT", a, b, total_order=floating)
            if less is not None:
                equal = ctx.compare("EQ", a, b, total_order=floating)
                rest = ctx.elementwise("stablehlo.and", equal, less, out=BOOL)
                here = ctx.elementwise("stablehlo.or", here, rest, out=BOOL)
            less = here
        return less

    def jvp(self, primals, tangents):
        if all(t is None for t in tangents):
            return bind(self, *primals), list(tangents)
        shape = aval_of(primals[0]).shape
        size = shape[self.dimension]
        dtype = np.dtype("uint32" if bit_length(size) <= 32 else "uint64")
        positions = broadcasted_iota(dtype, shape, self.dimension,
                                     out_sharding=sharding_of(aval_of(primals[0])))
        *outs, places = bind(self, *primals, positions)
        return outs, [None if t is None else take_sorted(t, places, self.dimension)
                      for t in tangents]

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        first = next(d for d in dims if d is not None)
        moved = Sort(self.dimension + (first <= self.dimension), self.is_stable, self.num_keys)
        return bind(moved, *stacked(size, xs, dims, first)), [first] * len(xs)


def comparable(ctx: Any, a: str, b: str) -> list[tuple[str, str]]:
    """Write pairs whose total order is the order of keys: one zero, one NaN, parts of complex."""
    aval = ctx.avals[a]
    if dtypes.is_complex(aval.dtype):
        part = ShapedArray((), dtypes.real_dtype(aval.dtype))
        pairs = [tuple(ctx.emit(f"stablehlo.{op} {x}", x, out=part) for x in (a, b))
                 for op in ("real", "imag")]
    else:
        pairs = [(a, b)]
    if not dtypes.is_inexact(aval.dtype):
        return pairs
    return [(_one_zero_one_nan(ctx, a), _one_zero_one_nan(ctx, b)) for a, b in pairs]


def _one_zero_one_nan(ctx: Any, x: str) -> str:
    aval = ctx.avals[x]
    zero, nan = ctx.constant(0, aval), ctx.constant(np.nan, aval)
    settled = ctx.choose(ctx.compare("EQ", x, zero), zero, x)
    return ctx.choose(ctx.compare("NE", x, x), nan, settled)


@primitive("top_k")
class TopK(Primitive):
    """The ``k`` greatest along ``axis``, greatest first, and their places."""

    k: int
    axis: int

    passes_nan = True
    multiple_results = True

    shard_results = sharding_rules.top_k

    def typing(self, x):
        if dtypes.is_extended(x.dtype):
            raise TypeError(f"top_k does not accept dtype {x.dtype}: it orders numbers. Try: "
                            "jax.random.key_data(keys)")
        if dtypes.is_complex(x.dtype):
            raise errors.explained(
                errors.ArgumentError, "top_k.C2", "top_k is not compatible with complex inputs.",
                advice="Order by jnp.abs(x), or by the real part.")
        if not 0 <= self.axis < x.ndim:
            raise errors.explained(
                errors.ArgumentError, "top_k.C1",
                f"axis {self.axis} is out of bounds for {x.str_short(True)}",
                advice="top_k needs at least one axis.")
        if not 0 <= self.k <= x.shape[self.axis]:
            raise errors.explained(
                errors.ArgumentError, "top_k.C3",
                "k argument to top_k must be no larger than size along axis; got "
                f"k={self.k} with shape={list(x.shape)} and axis={self.axis}",
                advice="Ask for at most as many as there are.")
        shape = tuple(self.k if i == self.axis else n for i, n in enumerate(x.shape))
        return [ShapedArray(shape, x.dtype, x.weak_type), ShapedArray(shape, I32, x.weak_type)]

    def evaluate(self, x):
        ordered = total_order(x) if dtypes.is_float(x.dtype) else x
        # Reversed twice, so that of equals the first comes first.
        order = np.flip(np.argsort(np.flip(ordered, self.axis), axis=self.axis, kind="stable"),
                        self.axis)
        places = x.shape[self.axis] - 1 - order
        places = np.take(places, np.arange(self.k), axis=self.axis)
        return [np.take_along_axis(x, places, self.axis), places.astype(I32)]

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        last = aval.ndim - 1
        order = [i for i in range(aval.ndim) if i != self.axis] + [self.axis]
        back = [int(i) for i in np.argsort(order)]
        moved = x if self.axis == last else ctx.emit(
            f"stablehlo.transpose {x}, dims = {order}", x,
            out=aval.update(shape=tuple(aval.shape[i] for i in order)))
        outs = [a.update(shape=tuple(a.shape[i] for i in order)) for a in ctx.out_avals]
        wide = moved if aval.dtype.name != "bool" else ctx.convert(moved, np.dtype("uint8"))
        made = [outs[0].update(dtype=ctx.avals[wide].dtype), outs[1]]
        if isinstance(self.k, Dim):
            count = ctx.number(self.k)
            values, places = ctx.emit_many(
                f"stablehlo.custom_call @stablehlo.dynamic_top_k({wide}, {count})", wide, count,
                outs=made, attributes={"api_version": "2 : i32"})
        else:
            values, places = ctx.emit_many(f'"chlo.top_k"({wide}) <{{k = {self.k} : i64}}>', wide,
                                           outs=made)
        values = ctx.convert(values, aval.dtype)
        if self.axis == last:
            return [values, places]
        return [ctx.emit(f"stablehlo.transpose {v}, dims = {back}", v, out=a)
                for v, a in zip((values, places), ctx.out_avals)]

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        values, places = bind(self, x)
        moved = None if t is None else take_sorted(t, places, self.axis)
        return [values, places], [moved, None]

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(TopK(self.k, self.axis + (d <= self.axis)), x), [d, d]


def sort(operand: Array | Sequence[Array], dimension: int = -1, is_stable: bool = True,
         num_keys: int = 1) -> Array | tuple[Array, ...]:
    """Return ``operand`` (or each of several) in ascending order of the first ``num_keys``.

    Raises: ValueError if ``num_keys`` is out of range; ShapeError for unequal shapes.
    Source: StableHLO, sort.

    >>> lax.sort((jnp.array([3, 1, 2]), jnp.array([30, 10, 20])), num_keys=1)
    (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    several = isinstance(operand, Sequence)
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise errors.explained(
            errors.ArgumentTypeError, "sort.C3", "Sort requires at least one operand",
            advice="Pass one array, or a tuple of arrays.")
    if not 1 <= num_keys <= len(operands):
        raise errors.explained(
            errors.ArgumentError, "sort.C4",
            f"num_keys={num_keys} must be between 1 and len(operand)={len(operands)}",
            advice="Only operands can be keys.")
    axis = canonical_axis(dimension, aval_of(operands[0]).ndim)
    outs = bind(Sort(axis, bool(is_stable), int(num_keys)), *operands)
    return tuple(outs) if several else outs[0]


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """Return the ``k`` greatest along ``axis``, greatest first, and their places (int32).

    Raises: ValueError if ``k`` is negative or too large, or for complex numbers.

    >>> lax.top_k(jnp.array([4., 1., 3.]), 2)
    [Array([4., 3.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    k = as_size(k)
    if is_nonnegative(k) is False:
        raise errors.explained(
            errors.ArgumentError, "top_k.C3", f"k argument to top_k must be nonnegative, got {k}",
            advice="Ask for 0 or more.")
    return bind(TopK(k, canonical_axis(axis, aval_of(operand).ndim)), operand)

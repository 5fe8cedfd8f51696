"""How does an axis fold into one value: extreme, product, and, or, xor, place of the extreme?

Sums are in ``ops.linear``, since they transpose broadcasts.  Each block here names the StableHLO
operation that folds two values, its neutral value, and the NumPy function that says the same.

Read before: ``ops.families``.  Read after: ``ops.cumulative``, which keeps the values in between.
Invariant: reducing an empty axis gives the neutral value; argmax and argmin refuse it.
Source: StableHLO specification, reduce.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.lazy import later
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.arithmetic import div, mul
from saem.ops.compare import eq
from saem.ops.convert import convert_element_type
from saem.ops.families import is_discrete, is_number, refused_dtype
from saem.ops.linear import (
    add_cotangents,
    dim_after_reduce,
    permute,
    reduce_sum,
    reduced_shape,
    shift_axes,
)
from saem.ops.shape import concatenate, reshape
from saem.typing import Array, ArrayLike, DTypeLike

slicing: Any = later("saem.ops.slicing")

SCALAR_BOOL = ShapedArray((), bool)


def lowest(dtype: Any) -> Any:
    """Return the least value of ``dtype``: minus infinity where there is one."""
    return _extreme(dtype, -np.inf, "min")


def highest(dtype: Any) -> Any:
    """Return the greatest value of ``dtype``: infinity where there is one."""
    return _extreme(dtype, np.inf, "max")


def _extreme(dtype: Any, infinity: float, limit: str) -> Any:
    if dtypes.is_bool(dtype):
        return limit == "max"
    if dtypes.is_complex(dtype):
        return complex(infinity, 0)
    if dtypes.is_float(dtype):
        with np.errstate(all="ignore"):
            value = np.asarray(infinity).astype(dtype)
        return value if np.isinf(value) else getattr(dtypes.finfo(dtype), limit)
    return int(getattr(dtypes.iinfo(dtype), limit))


class Fold(Primitive):
    """Fold ``axes`` by one associative operation.

    A member gives ``hlo`` (the StableHLO operation on two values), ``initial`` (dtype to neutral
    value), ``numpy`` (a ufunc), and ``accepts``.
    """

    __slots__ = ()
    hlo: ClassVar[str]
    numpy: ClassVar[Any]
    initial: ClassVar[Callable[[Any], Any]]
    accepts: ClassVar[Callable[[Any], bool]]
    needs: ClassVar[str]
    axes: tuple[int, ...]

    shard_results = sharding_rules.reduction

    def typing(self, x):
        shape = reduced_shape(self, x)
        if not type(self).accepts(x.dtype):
            raise self.refused(x)
        return ShapedArray(shape, x.dtype, x.weak_type)

    @classmethod
    def refused(cls, x: ShapedArray) -> Exception:
        """Return the error for an operand of another dtype."""
        return refused_dtype(cls.name, x.dtype, cls.needs, tag="C2")

    def evaluate(self, x):
        start = np.asarray(type(self).initial(x.dtype), x.dtype)
        out = np.empty(reduced_shape(self, x), x.dtype)
        out[...] = type(self).numpy.reduce(x, axis=self.axes, initial=start[()])
        return out

    def lower(self, ctx, x):
        dtype = ctx.avals[x].dtype
        initial = type(self).initial(dtype)
        if not self.is_divisible(dtype):
            x = ctx.unsharded(x, self.axes)
        return fold_text(ctx, self.hlo, x, initial, self.axes, ctx.out_avals[0])

    def is_divisible(self, dtype: Any) -> bool:
        """Return whether XLA folds parts on each of several devices, and their results."""
        return not dtypes.is_complex(dtype) or self.hlo == "multiply"

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(type(self)(shift_axes(self.axes, d)), x), dim_after_reduce(self.axes, d)


def fold_text(ctx: Any, op: str, x: str, initial: Any, axes: Sequence[int], out: ShapedArray
              ) -> str:
    """Write the fold of ``x`` along ``axes`` by ``op``; complex extremes are by real part first."""
    if not (dtypes.is_complex(out.dtype) and op in ("maximum", "minimum")):
        return ctx.reduce(op, x, initial, axes, out=out)
    direction = "GT" if op == "maximum" else "LT"
    return ctx.reduce_by(
        lambda a, b: [ctx.choose(better_and_equal(ctx, direction, a, b)[0], a, b)],
        [x], [initial], axes, [out])[0]


def better_and_equal(ctx: Any, direction: str, a: str, b: str) -> tuple[str, str]:
    """Write whether ``a`` is better than ``b``, and whether equal; complex by real, then imag."""
    aval = ctx.avals[a]
    if not dtypes.is_complex(aval.dtype):
        return ctx.compare(direction, a, b), ctx.compare("EQ", a, b)
    part = aval.update(dtype=dtypes.real_dtype(aval.dtype))
    (ra, rb), (ia, ib) = ([ctx.emit(f"stablehlo.{op} {v}", v, out=part) for v in (a, b)]
                          for op in ("real", "imag"))
    tie = ctx.compare("EQ", ra, rb)
    return (ctx.choose(tie, ctx.compare(direction, ia, ib), ctx.compare(direction, ra, rb)),
            ctx.compare("EQ", a, b))


class Extremum(Fold):
    """Largest or smallest: the tangent is the mean of the tangents where it is reached."""

    __slots__ = ()
    accepts = staticmethod(lambda dtype: is_number(dtype) or dtypes.is_bool(dtype))
    needs = "number, bool"

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        if t is None:
            return out, None
        shape = tuple(1 if i in self.axes else n for i, n in enumerate(aval_of(x).shape))
        here = convert_element_type(eq(x, reshape(out, shape)), aval_of(x).dtype)
        count = reduce_sum(here, self.axes)
        return out, div(reduce_sum(mul(t, here), self.axes), count)


@primitive("reduce_max")
class ReduceMax(Extremum):
    passes_nan = True
    hlo, numpy, initial = "maximum", np.maximum, staticmethod(lowest)
    axes: tuple[int, ...]


@primitive("reduce_min")
class ReduceMin(Extremum):
    passes_nan = True
    hlo, numpy, initial = "minimum", np.minimum, staticmethod(highest)
    axes: tuple[int, ...]


@primitive("reduce_prod")
class ReduceProd(Fold):
    """Product.  Its derivative multiplies pairs, never divides, so zeros need no special care."""

    folds_many = True
    hlo, numpy, initial = "multiply", np.multiply, staticmethod(lambda dtype: 1)
    accepts = staticmethod(is_number)
    needs = "number"
    axes: tuple[int, ...]

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        shape = aval_of(x).shape
        length = math.prod(shape[a] for a in self.axes)
        if t is None or not length:
            return bind(self, x), None
        kept = tuple(i for i in range(len(shape)) if i not in self.axes)
        rows = (length, *(shape[i] for i in kept))
        x, t = (reshape(permute(v, (*self.axes, *kept)), rows) for v in (x, t))
        while length > 1:
            half = length // 2
            (xa, ta), (xb, tb), rest = (
                [slicing.slice_in_dim(v, a, b) for v in (x, t)]
                for a, b in ((0, half), (half, 2 * half), (2 * half, length)))
            x, t = mul(xa, xb), add_cotangents(mul(ta, xb), mul(xa, tb))
            if length % 2:
                x, t = concatenate([x, rest[0]], 0), concatenate([t, rest[1]], 0)
            length -= half
        return reshape(x, rows[1:]), reshape(t, rows[1:])


class Bitwise(Fold):
    """And, or, exclusive or: of booleans, or of all bits of integers."""

    __slots__ = ()
    accepts = staticmethod(is_discrete)

    def typing(self, x):
        return super().typing(x).strip_weak_type()

    @classmethod
    def refused(cls, x):
        return errors.explained(
            errors.DTypeError, f"{cls.name}.C2",
            f"logical reduction requires operand dtype bool or int, got {x.dtype.name}.",
            advice="Convert the operand first, for example with x.astype(bool).")

    def is_divisible(self, dtype):
        return dtypes.is_bool(dtype) and self.hlo != "xor"

    def jvp(self, primals, tangents):
        return bind(self, *primals), None


@primitive("reduce_and")
class ReduceAnd(Bitwise):
    hlo, numpy = "and", np.bitwise_and
    initial = staticmethod(lambda dtype: highest(dtype) if not dtypes.is_integer(dtype)
                           or dtypes.is_unsigned(dtype) else -1)
    axes: tuple[int, ...]


@primitive("reduce_or")
class ReduceOr(Bitwise):
    hlo, numpy, initial = "or", np.bitwise_or, staticmethod(lambda dtype: 0)
    axes: tuple[int, ...]


@primitive("reduce_xor")
class ReduceXor(Bitwise):
    hlo, numpy, initial = "xor", np.bitwise_xor, staticmethod(lambda dtype: 0)
    axes: tuple[int, ...]


class ArgExtremum(Primitive):
    """The first place of the extremum along one axis; NaN counts as the extremum."""

    __slots__ = ()
    direction: ClassVar[str]
    numpy: ClassVar[Callable]
    worst: ClassVar[Callable[[Any], Any]]
    axes: tuple[int, ...]
    index_dtype: Any

    shard_results = sharding_rules.reduction

    def typing(self, x):
        if not dtypes.is_integer(np.dtype(self.index_dtype)):
            raise errors.explained(
                errors.DTypeError, f"{self.name}.C2",
                f"index_dtype must be an integer type, but got {np.dtype(self.index_dtype).name}",
                advice="Use jnp.int32.")
        (axis,) = self.axes
        if not 0 <= axis < x.ndim:
            raise errors.explained(
                errors.ArgumentError, f"{self.name}.C1",
                f"Invalid axis {axis} for operand shape {x.shape}",
                advice="Negative axes are allowed in jax.numpy functions only.")
        if not x.shape[axis]:
            raise errors.explained(
                errors.ArgumentError, f"{self.name}.C3",
                "argmin and argmax require non-empty reduced dimension. "
                f"operand.shape={x.shape} axis={axis}",
                advice="There is no place of an extremum among no elements.")
        if dtypes.is_complex(x.dtype):
            raise errors.explained(
                errors.DTypeError, f"{self.name}.C4",
                f"{self.direction.lower()} does not accept dtype {x.dtype.name} at position 0. "
                "Accepted dtypes at position 0 are subtypes of integer, floating, bool.",
                advice="Complex numbers have no order: compare their absolute values.")
        return ShapedArray(reduced_shape(self, x), self.index_dtype)

    def evaluate(self, x):
        (axis,) = self.axes
        if dtypes.is_float(x.dtype):
            x = x.astype(np.float64)
        return type(self).numpy(x, axis=axis).astype(self.index_dtype)

    def lower(self, ctx, x):
        (axis,), aval = self.axes, ctx.avals[x]
        index = ShapedArray(aval.shape, self.index_dtype)
        places = ctx.iota(axis, index)
        outs = [ShapedArray(ctx.out_avals[0].shape, a.dtype) for a in (aval, index)]
        return ctx.reduce_by(functools.partial(self.choose, ctx), [x, places],
                             [type(self).worst(aval.dtype), 0], self.axes, outs)[1]

    def choose(self, ctx, a, i, b, j):
        """Write which of (value a, place i) and (b, j) wins: better, NaN, or earlier if equal."""
        better, equal = better_and_equal(ctx, self.direction, a, b)
        if dtypes.is_inexact(ctx.avals[a].dtype):
            nan = ctx.compare("NE", a, a)
            better = ctx.elementwise("stablehlo.or", better, nan, out=SCALAR_BOOL)
        earlier = ctx.compare("LT", i, j)
        tie = ctx.elementwise("stablehlo.and", equal, earlier, out=SCALAR_BOOL)
        place = ctx.elementwise("stablehlo.or", better, tie, out=SCALAR_BOOL)
        return [ctx.choose(better, a, b), ctx.choose(place, i, j)]

    def jvp(self, primals, tangents):
        return bind(self, *primals), None

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        shifted = dataclasses.replace(self, axes=shift_axes(self.axes, d))
        return bind(shifted, x), dim_after_reduce(self.axes, d)


@primitive("argmax")
class ArgMax(ArgExtremum):
    direction, numpy, worst = "GT", staticmethod(np.argmax), staticmethod(lowest)
    axes: tuple[int, ...]
    index_dtype: Any


@primitive("argmin")
class ArgMin(ArgExtremum):
    direction, numpy, worst = "LT", staticmethod(np.argmin), staticmethod(highest)
    axes: tuple[int, ...]
    index_dtype: Any


def checked_axes(name: str, x: Any, axes: Sequence[int], of: type[Fold] | None = None
                 ) -> tuple[int, ...]:
    """Return ``axes`` as integers within the rank of ``x``.

    Raises: ValueError if one is not; before that TypeError for a dtype that ``of`` does not fold.
    """
    aval = aval_of(x)
    if of is not None and not of.accepts(aval.dtype):
        raise of.refused(aval)
    axes = tuple(int(a) for a in axes)
    if any(not 0 <= a < aval.ndim for a in axes):
        raise errors.explained(
            errors.AxisError, f"{name}.C1",
            f"reduction axes {axes} contains out-of-bounds indices for "
            f"{aval.str_short()}.",
            advice="Axes of lax reductions count from 0; jax.numpy functions accept negative ones.")
    return axes


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the largest along ``axes``.  Source: StableHLO, reduce with maximum.

    >>> lax.reduce_max(jnp.array([[1, 5], [3, 2]]), (0,))
    Array([3, 5], dtype=int32)
    """
    return bind(ReduceMax(checked_axes("reduce_max", operand, axes)), operand)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the smallest along ``axes``.  Source: StableHLO, reduce with minimum.

    >>> lax.reduce_min(jnp.array([[1, 5], [3, 2]]), (0,))
    Array([1, 2], dtype=int32)
    """
    return bind(ReduceMin(checked_axes("reduce_min", operand, axes)), operand)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the product along ``axes``.  Source: StableHLO, reduce with multiply.

    >>> lax.reduce_prod(jnp.array([2, 3, 4]), (0,))
    Array(24, dtype=int32)
    """
    return bind(ReduceProd(checked_axes("reduce_prod", operand, axes)), operand)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return whether all along ``axes`` are true (bitwise and, for integers).

    >>> lax.reduce_and(jnp.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return bind(ReduceAnd(checked_axes("reduce_and", operand, axes, ReduceAnd)), operand)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return whether any along ``axes`` is true (bitwise or, for integers).

    >>> lax.reduce_or(jnp.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return bind(ReduceOr(checked_axes("reduce_or", operand, axes, ReduceOr)), operand)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the exclusive or along ``axes`` (bitwise, for integers).

    >>> lax.reduce_xor(jnp.array([6, 3]), (0,))
    Array(5, dtype=int32)
    """
    return bind(ReduceXor(checked_axes("reduce_xor", operand, axes, ReduceXor)), operand)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the first place of the largest along ``axis``, as ``index_dtype``.

    >>> lax.argmax(jnp.array([2., 7., 5.]), 0, jnp.int32)
    Array(1, dtype=int32)
    """
    index_dtype = dtypes.canonicalize(index_dtype, explicit=True, where="argmax")
    return bind(ArgMax((operator.index(axis),), index_dtype), operand)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the first place of the smallest along ``axis``, as ``index_dtype``.

    >>> lax.argmin(jnp.array([2., 7., 5.]), 0, jnp.int32)
    Array(0, dtype=int32)
    """
    index_dtype = dtypes.canonicalize(index_dtype, explicit=True, where="argmin")
    return bind(ArgMin((operator.index(axis),), index_dtype), operand)

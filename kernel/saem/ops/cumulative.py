"""How are all partial folds of an axis found at once?

``cumsum`` is linear, and its transpose is itself from the other end.  The others are differentiated
as what they are, an associative fold of pairs (value, tangent): a prefix scan that halves the axis
again and again, so its depth is logarithmic.

Read before: ``ops.reduce``.  Read after: ``saem.numpy`` (cumsum, cumprod).
Invariant: element i is the fold of elements 0…i, or of i…n-1 if ``reverse``.
Source: Blelloch 1990, "Prefix sums and their applications"; StableHLO specification, reduce_window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import is_static
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.arithmetic import add, mul, sub
from saem.ops.compare import eq
from saem.ops.families import is_number, refused_dtype
from saem.ops.filling import full_like
from saem.ops.linear import add_cotangents, broadcast_new_dim
from saem.ops.maths import exp, log, log1p
from saem.ops.numbers import complex, is_finite, real
from saem.ops.numbers import max as larger
from saem.ops.numbers import min as smaller
from saem.ops.reduce import better_and_equal, highest, lowest
from saem.ops.select import select_n
from saem.ops.shape import concatenate, reshape, rev
from saem.ops.slicing import slice_in_dim
from saem.typing import Array

Pair = tuple[Any, Any]


class Cumulative(Primitive):
    """Partial folds along ``axis``.

    A member gives ``numpy`` (accumulates along an axis), ``initial`` (dtype to neutral value),
    ``fold`` (writes one step of StableHLO), and ``combine`` (one step on values with tangents).
    """

    __slots__ = ()
    numpy: ClassVar[Callable]
    initial: ClassVar[Callable[[Any], Any]]
    accepts: ClassVar[Callable[[Any], bool]] = staticmethod(is_number)
    needs: ClassVar[str] = "number"
    hlo: ClassVar[str] = ""
    axis: int
    reverse: bool

    folds_many = True
    shard_results = sharding_rules.cumulative

    def typing(self, x):
        if not 0 <= self.axis < x.ndim:
            raise errors.explained(
                errors.ArgumentError, f"{self.name}.C1",
                f"axis {self.axis} is out of bounds for array of shape {x.shape}"
                if self.axis >= 0 else "XLA operations do not allow negative axes",
                advice="Negative axes are allowed in jax.numpy functions only.")
        if not type(self).accepts(x.dtype):
            raise refused_dtype(self.name, x.dtype, self.needs, tag="C2")
        return x

    def evaluate(self, x):
        turned = np.flip(x, self.axis) if self.reverse else x
        out = type(self).numpy(turned, axis=self.axis, dtype=x.dtype)
        return np.flip(out, self.axis) if self.reverse else out

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        if not aval.size:
            return x
        n, scalar = aval.shape[self.axis], ShapedArray((), aval.dtype)
        window = [n if i == self.axis else 1 for i in range(aval.ndim)]
        before, after = (0, n - 1) if self.reverse else (n - 1, 0)
        padding = [[before, after] if i == self.axis else [0, 0] for i in range(aval.ndim)]
        start = ctx.constant(type(self).initial(aval.dtype), scalar)
        if not is_static(aval.shape):
            ones = (1,) * aval.ndim
            return ctx.reduce_window(
                x, start, lambda a, b: self.fold(ctx, a, b), aval, dims=window, strides=ones,
                padding=padding, base=ones, dilation=ones)
        region = ctx.region([scalar, scalar], lambda a, b: [self.fold(ctx, a, b)])
        return ctx.emit(
            f'"stablehlo.reduce_window"({x}, {start}) <{{window_dimensions = array<i64: '
            f"{', '.join(map(str, window))}>, padding = dense<{padding}> : "
            f"tensor<{aval.ndim}x2xi64>}}>", x, start, regions=[region])

    def fold(self, ctx: Any, a: str, b: str) -> str:
        """Write the fold of two scalars."""
        return ctx.elementwise(f"stablehlo.{self.hlo}", a, b, out=ctx.avals[a])

    def combine(self, x: Pair, y: Pair) -> Pair:
        """Return the fold of two values with their tangents."""
        raise NotImplementedError

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        if t is None:
            return bind(self, x), None
        self.typing(aval_of(x))
        pair = (x, t)
        if self.reverse:
            pair = tuple(rev(v, (self.axis,)) for v in pair)
        pair = prefix_scan(self.combine, pair, self.axis)
        if self.reverse:
            pair = tuple(rev(v, (self.axis,)) for v in pair)
        return pair

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(type(self)(self.axis + (d <= self.axis), self.reverse), x), d


def prefix_scan(combine: Callable[[Pair, Pair], Pair], pair: Pair, axis: int) -> Pair:
    """Return all partial folds of a pair of arrays along ``axis``.

    Neighbours are folded, those are scanned, and the gaps are filled from them.
    """
    n = aval_of(pair[0]).shape[axis]
    if n < 2:
        return pair

    def part(pair: Pair, start: int, stop: int, step: int = 1) -> Pair:
        return tuple(slice_in_dim(v, start, stop, step, axis) for v in pair)

    half = n // 2
    folded = combine(part(pair, 0, 2 * half, 2), part(pair, 1, 2 * half, 2))
    odd = prefix_scan(combine, folded, axis)
    even = part(pair, 0, 1)
    if n > 2:
        count = (n - 1) // 2
        rest = combine(part(odd, 0, count), part(pair, 2, n, 2))
        even = tuple(concatenate([e, r], axis) for e, r in zip(even, rest))
    return tuple(interleave(e, o, axis) for e, o in zip(even, odd))


def interleave(even: Any, odd: Any, axis: int) -> Any:
    """Return even[0], odd[0], even[1], …; ``even`` has as many elements, or one more."""
    shape = aval_of(odd).shape
    pairs = shape[axis]
    first = slice_in_dim(even, 0, pairs, 1, axis)
    both = concatenate([broadcast_new_dim(v, 1, axis + 1) for v in (first, odd)], axis + 1)
    mixed = reshape(both, (*shape[:axis], 2 * pairs, *shape[axis + 1:]))
    if aval_of(even).shape[axis] == pairs:
        return mixed
    return concatenate([mixed, slice_in_dim(even, pairs, pairs + 1, 1, axis)], axis)


@primitive("cumsum")
class CumSum(Cumulative):
    hlo, numpy, initial = "add", staticmethod(np.cumsum), staticmethod(lambda dtype: 0)
    axis: int
    reverse: bool = False

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        return bind(self, x), None if t is None else bind(self, t)

    def transpose(self, ct, x):
        return [bind(CumSum(self.axis, not self.reverse), ct)]


@primitive("cumprod")
class CumProd(Cumulative):
    hlo, numpy, initial = "multiply", staticmethod(np.cumprod), staticmethod(lambda dtype: 1)
    axis: int
    reverse: bool = False

    def combine(self, x, y):
        return mul(x[0], y[0]), add_cotangents(mul(x[1], y[0]), mul(x[0], y[1]))


class CumExtremum(Cumulative):
    """Running extremum: the tangent of what was chosen, the mean of both where they are equal."""

    __slots__ = ()

    def fold(self, ctx, a, b):
        if not dtypes.is_complex(ctx.avals[a].dtype):
            return super().fold(ctx, a, b)
        direction = "GT" if self.hlo == "maximum" else "LT"
        return ctx.choose(better_and_equal(ctx, direction, a, b)[0], a, b)

    def combine(self, x, y):
        out = (larger if self.hlo == "maximum" else smaller)(x[0], y[0])
        first, second = eq(x[0], out), eq(y[0], out)
        zero, one, half = (full_like(out, v) for v in (0, 1, 0.5))
        weights = (select_n(a, zero, select_n(b, one, half))
                   for a, b in ((first, second), (second, first)))
        wx, wy = weights
        return out, add_cotangents(mul(x[1], wx), mul(y[1], wy))


@primitive("cummax")
class CumMax(CumExtremum):
    hlo, initial = "maximum", staticmethod(lowest)
    numpy = staticmethod(lambda x, axis, dtype: np.maximum.accumulate(x, axis=axis))
    axis: int
    reverse: bool = False


@primitive("cummin")
class CumMin(CumExtremum):
    hlo, initial = "minimum", staticmethod(highest)
    numpy = staticmethod(lambda x, axis, dtype: np.minimum.accumulate(x, axis=axis))
    axis: int
    reverse: bool = False


def _logsumexp(x: np.ndarray, axis: int, dtype: Any) -> np.ndarray:
    if dtypes.is_complex(x.dtype):
        top = np.max(x.real, axis, keepdims=True, initial=0)
        return top + np.log(np.cumsum(np.exp(x - top), axis))
    wide = x.astype(np.float32) if dtypes.itemsize_bits(x.dtype) < 32 else x
    return np.logaddexp.accumulate(wide, axis=axis)


def _log_of_sum(x: Any, y: Any) -> Any:
    """Return log(exp(x) + exp(y)) without overflow; of complex numbers the principal value."""
    if dtypes.is_complex(aval_of(x).dtype):
        top = larger(real(x), real(y))
        top = select_n(is_finite(top), full_like(top, 0), top)
        shift = complex(top, full_like(top, 0))
        return add(shift, log(add(exp(sub(x, shift)), exp(sub(y, shift)))))
    gap, larger_one = sub(x, y), larger(x, y)
    summed = add(larger_one, log1p(exp(sub(smaller(x, y), larger_one))))
    return select_n(eq(gap, gap), add(x, y), summed)


@primitive("cumlogsumexp")
class CumLogSumExp(Cumulative):
    """The logarithm of the running sum of exponentials, without overflow."""

    numpy, initial = staticmethod(_logsumexp), staticmethod(lowest)
    accepts, needs = staticmethod(dtypes.is_inexact), "floating, complexfloating"
    axis: int
    reverse: bool = False

    def fold(self, ctx, a, b):
        scalar = ctx.avals[a]
        if dtypes.is_complex(scalar.dtype):
            return self.complex_fold(ctx, a, b)

        def write(op: str, *xs: str) -> str:
            return ctx.elementwise(f"stablehlo.{op}", *xs, out=scalar)

        gap = write("subtract", a, b)
        tail = write("log_plus_one", write("exponential", write("negate", write("abs", gap))))
        summed = write("add", write("maximum", a, b), tail)
        # Two equal infinities have no gap: their sum is the answer.
        return ctx.choose(ctx.compare("NE", gap, gap), write("add", a, b), summed)

    def complex_fold(self, ctx: Any, a: str, b: str) -> str:
        """Write log(exp(a) + exp(b)), with an imaginary part from -π to π."""
        whole = ctx.avals[a]
        part = ShapedArray((), dtypes.real_dtype(whole.dtype))
        zero = ctx.constant(0, part)
        x, y = (ctx.emit(f"stablehlo.real {v}", v, out=part) for v in (a, b))
        top = ctx.elementwise("stablehlo.maximum", x, y, out=part)
        finite = ctx.emit(f"stablehlo.is_finite {top}", top, out=ShapedArray((), np.dtype(bool)))
        real_part = ctx.choose(finite, top, zero)
        top = ctx.emit(f"stablehlo.complex {real_part}, {zero}", real_part, zero, out=whole)

        def write(op: str, *xs: str) -> str:
            return ctx.elementwise(f"stablehlo.{op}", *xs, out=whole)

        terms = (write("exponential", write("subtract", v, top)) for v in (a, b))
        return write("add", top, write("log", write("add", *terms)))

    def combine(self, x, y):
        out = _log_of_sum(x[0], y[0])
        zero = full_like(out, 0)

        def weight(v: Any) -> Any:
            infinite = full_like(out, np.inf)
            return exp(sub(*(select_n(eq(w, infinite), w, zero) for w in (v, out))))

        return out, add_cotangents(mul(x[1], weight(x[0])), mul(y[1], weight(y[0])))


def _bind(make: type, operand: Any, axis: int, reverse: bool) -> Any:
    return bind(make(int(axis), bool(reverse)), operand)


def cumsum(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Return running sums along ``axis``.  Raises: ValueError for no such axis; DTypeError.

    >>> lax.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _bind(CumSum, operand, axis, reverse)


def cumprod(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Return running products along ``axis``.  Raises: as ``cumsum``.

    >>> lax.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _bind(CumProd, operand, axis, reverse)


def cummax(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Return the largest so far along ``axis``.  Raises: as ``cumsum``.

    >>> lax.cummax(jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _bind(CumMax, operand, axis, reverse)


def cummin(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Return the smallest so far along ``axis``.  Raises: as ``cumsum``.

    >>> lax.cummin(jnp.array([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return _bind(CumMin, operand, axis, reverse)


def cumlogsumexp(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
    """Return running logarithms of sums of exponentials along ``axis``.  Raises: as ``cumsum``.

    >>> lax.cumlogsumexp(jnp.array([0., 0., 0.]))
    Array([0.       , 0.6931472, 1.0986123], dtype=float32)
    """
    return _bind(CumLogSumExp, operand, axis, reverse)

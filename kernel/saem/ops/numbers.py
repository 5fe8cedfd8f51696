"""How are numbers rounded, ordered, raised to powers, and complex ones taken apart?

Rounding and signs do not move with small changes, so their tangent is zero; maximum and minimum
pass the tangent of the operand they return, half of each where both are equal.

Read before: ``ops.maths``, ``ops.select``.  Read after: ``special.functions``.
Invariant: NaN in an operand of max or min comes through; x rem 0 is x for integers.
Source: StableHLO specification: sign, floor, round_nearest_even, maximum, remainder, power, atan2,
real, imag, complex; CHLO dialect: next_after.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import UndefinedPrimal, absent, primitive
from saem.core.trace import bind
from saem.ops.arithmetic import add, div, mul, neg, sub
from saem.ops.compare import complex_extremum, eq, ge, is_ordered
from saem.ops.convert import convert
from saem.ops.families import (
    BOOL,
    Discrete,
    Nary,
    Unary,
    is_number,
    is_real_number,
    join_shapes,
    refused_dtype,
)
from saem.ops.linear import full, literal, number_like, ones_of, stretch, unbroadcast, zeros_of
from saem.ops.maths import in_32_bits, log, square
from saem.ops.reshard import reshard_like
from saem.ops.select import select_n
from saem.typing import Array, ArrayLike

COMPLEX = staticmethod(dtypes.is_complex)
FLOAT = staticmethod(dtypes.is_float)


# -- signs and rounding ----------------------------------------------------------------------------


def _sign(x):
    """Return the sign of ``x``; a zero keeps its own sign, NaN stays."""
    if dtypes.is_float(x.dtype):
        return np.where(x == 0, x, np.sign(x))
    return np.sign(x)


@primitive("sign")
class Sign(Discrete):
    """-1, 0 or 1; of a complex number, it divided by its absolute value."""

    passes_nan = True
    hlo, numpy, accepts = "sign", staticmethod(in_32_bits(_sign)), staticmethod(is_number)

    def lower(self, ctx, x):
        aval = ctx.in_avals[0]
        if not dtypes.is_unsigned(aval.dtype):
            return ctx.elementwise("stablehlo.sign", x)
        # StableHLO's sign is for signed numbers.
        return ctx.elementwise("stablehlo.minimum", x, ctx.constant(1, aval))


@primitive("floor")
class Floor(Discrete):
    passes_nan = True
    hlo, numpy, accepts, needs = "floor", staticmethod(np.floor), FLOAT, "floating"


@primitive("ceil")
class Ceil(Discrete):
    passes_nan = True
    hlo, numpy, accepts, needs = "ceil", staticmethod(np.ceil), FLOAT, "floating"


class RoundingMethod(enum.IntEnum):
    """Where ``round`` sends numbers halfway between two integers.

    >>> lax.round(jnp.array([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@in_32_bits
def _round_away(x):
    whole = np.trunc(x)
    return np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x).astype(x.dtype)


@primitive("round")
class Round(Discrete):
    """The nearest integer; ``rounding_method`` says where halves go."""

    rounding_method: RoundingMethod
    passes_nan = True
    accepts, needs = FLOAT, "floating"

    def printed_params(self):
        return {"rounding_method": int(self.rounding_method)}

    def evaluate(self, x):
        if self.rounding_method == RoundingMethod.TO_NEAREST_EVEN:
            return np.rint(x)
        return np.where(np.isfinite(x), _round_away(np.where(np.isfinite(x), x, 0)), x)

    def lower(self, ctx, x):
        even = self.rounding_method == RoundingMethod.TO_NEAREST_EVEN
        return ctx.elementwise(f"stablehlo.round_nearest_{'even' if even else 'afz'}", x)


@primitive("is_finite")
class IsFinite(Discrete):
    numpy, accepts, needs = staticmethod(np.isfinite), FLOAT, "floating"

    def result_dtype(self, dtype):
        return BOOL

    def lower(self, ctx, x):
        return ctx.emit(f"stablehlo.is_finite {x}", x)


def _has_abs(dtype: Any) -> bool:
    return is_number(dtype) and not dtypes.is_unsigned(dtype)


@primitive("abs")
class Abs(Unary):
    """The absolute value.  At 0 the derivative is taken as 1 (real) or 0 (complex)."""

    passes_nan = True
    numpy, accepts = staticmethod(np.abs), staticmethod(_has_abs)
    needs = "floating, complexfloating, signedinteger"

    def result_dtype(self, dtype):
        return dtypes.real_dtype(dtype)

    def lower(self, ctx, x):
        return ctx.emit(f"stablehlo.abs {x}", x)

    def tangent(self, t, x, out):
        if not dtypes.is_complex(aval_of(x).dtype):
            return select_n(ge(x, number_like(x, 0)), neg(t), t)
        length = convert(out, aval_of(x).dtype)
        safe = select_n(eq(length, number_like(length, 0)), length, ones_like(length))
        return real(mul(t, div(conj(x), safe)))


def ones_like(x: Any) -> Any:
    return ones_of(aval_of(x))


@primitive("nextafter")
class Nextafter(Discrete):
    """The next number after the first operand on the way to the second."""

    passes_nan = True
    numpy, accepts, needs = staticmethod(np.nextafter), FLOAT, "floating"
    jvp = absent("it moves in steps between neighbouring floats, so it has no derivative",
                 NotImplementedError)

    def lower(self, ctx, x, y):
        shape = ctx.out_avals[0].shape
        x, y = ctx.stretch(x, shape), ctx.stretch(y, shape)
        return ctx.emit(f'"chlo.next_after"({x}, {y})', x, y)


# -- the larger, the smaller, the rest -------------------------------------------------------------


def _share(t, out, x, y):
    """Return the part of ``t`` that comes through where ``x`` is the extremum ``out``."""
    zero, one, two = (full(aval_of(out), n) for n in range(3))
    mine = select_n(eq(x, out), zero, one)
    return mul(t, div(mine, select_n(eq(y, out), one, two)))


class Extremum(Nary):
    """Max or min; complex numbers are ordered by real part, then imaginary part."""

    __slots__ = ()
    accepts = staticmethod(lambda dtype: is_ordered(dtype) or dtypes.is_complex(dtype))
    needs = "integer, bool, floating, complexfloating"
    partials = (_share, lambda t, out, x, y: _share(t, out, y, x))
    greater: ClassVar[bool]

    def evaluate(self, x, y):
        if not dtypes.is_complex(x.dtype):
            with np.errstate(all="ignore"):
                return type(self).numpy(x, y)
        x, y = np.broadcast_arrays(x, y)
        compare = np.greater if self.greater else np.less
        first = np.where(x.real == y.real, compare(x.imag, y.imag), compare(x.real, y.real))
        return np.where(first, x, y)

    def lower(self, ctx, x, y):
        aval = ctx.out_avals[0]
        if not dtypes.is_complex(aval.dtype):
            return ctx.elementwise(f"stablehlo.{self.hlo}", x, y)
        x, y = ctx.stretch(x, aval.shape), ctx.stretch(y, aval.shape)
        return complex_extremum(ctx, x, y, aval, self.greater)


@primitive("max")
class Max(Extremum):
    passes_nan = True
    hlo, numpy, greater = "maximum", staticmethod(np.maximum), True
    promoting = "maximum"


@primitive("min")
class Min(Extremum):
    passes_nan = True
    hlo, numpy, greater = "minimum", staticmethod(np.minimum), False
    promoting = "minimum"


def _remainder(x, y):
    if dtypes.is_integer(x.dtype):
        with np.errstate(all="ignore"):
            return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y).astype(y.dtype)))
    return in_32_bits(np.fmod)(x, y)


def _whole(x, y):
    """Return x / y rounded towards zero."""
    ratio = div(x, y)
    return mul(sign(ratio), floor(abs(ratio)))


@primitive("rem")
class Rem(Nary):
    """The remainder of division towards zero: it has the sign of the first operand."""

    hlo, numpy, accepts = "remainder", staticmethod(_remainder), staticmethod(is_real_number)
    needs = "integer, floating"
    partials = (lambda t, out, x, y: t, lambda t, out, x, y: mul(neg(t), _whole(x, y)))


# -- powers and angles -----------------------------------------------------------------------------


def _strong(x):
    """Return ``x`` without its weakness: the tangent of a power is strong, as JAX's is."""
    return convert(x, aval_of(x).dtype, False)


def _power_by_base(t, out, x, y):
    x, y = _strong(x), _strong(y)
    dtype = aval_of(x).dtype
    if not dtypes.is_integer(aval_of(y).dtype):
        return mul(t, mul(y, pow(x, sub(y, number_like(y, 1.0)))))
    exponent = convert(y, dtype)
    less = sub(exponent, number_like(exponent, 1.0))
    zero = eq(exponent, number_like(exponent, 0.0))
    # x ** 0 is constant, also at 0, where x ** -1 is infinite.
    safe = select_n(zero, exponent, ones_like(exponent))
    slope = mul(safe, pow(x, less))
    aval = aval_of(slope)
    zero = reshard_like(stretch(zero, aval.shape), aval)
    return mul(t, select_n(zero, slope, zeros_of(aval)))


def _power_by_exponent(t, out, x, y):
    # At x = 0 the logarithm is taken of 1: the power stays 0 for every positive exponent.
    safe = select_n(eq(x, number_like(x, 0.0)), x, ones_like(x))
    return _strong(mul(t, mul(log(safe), out)))


@primitive("pow")
class Pow(Nary):
    """x to the power y; y has the dtype of x, or is an integer."""

    partials = (_power_by_base, _power_by_exponent)

    def typing(self, x, y):
        shape = join_shapes(self, (x, y))
        if not dtypes.is_inexact(x.dtype):
            raise refused_dtype(self.name, x.dtype, "floating, complexfloating", 0)
        if x.dtype != y.dtype and not dtypes.is_integer(y.dtype):
            raise errors.explained(
                errors.DTypeError, "pow.C2",
                "the first argument to pow must have an inexact dtype (float or complex), and the "
                "second argument must have an inexact or integer dtype, and two inexact dtypes "
                f"must match, but got {x.dtype.name} and {y.dtype.name} respectively.",
                advice="Use jnp.power, which promotes.")
        return ShapedArray(shape, x.dtype, x.weak_type and y.weak_type)

    def evaluate(self, x, y):
        return in_32_bits(np.power)(x, y.astype(x.dtype))

    def lower(self, ctx, x, y):
        return ctx.elementwise("stablehlo.power", x, ctx.convert(y, ctx.in_avals[0].dtype))


def _angle(y, x):
    if dtypes.is_complex(y.dtype):
        return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))
    return np.arctan2(y, x)


@primitive("atan2")
class Atan2(Nary):
    """The angle of the point (second operand, first operand)."""

    hlo, numpy = "atan2", staticmethod(in_32_bits(_angle))
    accepts, needs = staticmethod(dtypes.is_inexact), "floating, complexfloating"
    partials = (lambda t, out, y, x: mul(t, div(x, _radius(x, y))),
                lambda t, out, y, x: mul(t, div(neg(y), _radius(x, y))))


def _radius(x, y):
    return add(square(x), square(y))


# -- complex numbers -------------------------------------------------------------------------------


class Part(Unary):
    """One of the two parts of a complex number."""

    __slots__ = ()
    accepts, needs = COMPLEX, "complexfloating"

    def result_dtype(self, dtype):
        return dtypes.real_dtype(dtype)

    def lower(self, ctx, x):
        return ctx.emit(f"stablehlo.{self.hlo} {x}", x)

    def tangent(self, t, x, out):
        return bind(self, t)


def zero_beside(ct: Any) -> Any:
    """Return the zero part beside ``ct``, never weak: so is the cotangent, as in JAX."""
    return literal(0, aval_of(ct).dtype)


@primitive("real")
class Real(Part):
    passes_nan = True
    linear = True
    hlo, numpy = "real", staticmethod(np.real)

    def transpose(self, ct, x):
        return [complex(ct, zero_beside(ct))]


@primitive("imag")
class Imag(Part):
    passes_nan = True
    linear = True
    hlo, numpy = "imag", staticmethod(np.imag)

    def transpose(self, ct, x):
        return [complex(zero_beside(ct), neg(ct))]


def _has_complex(dtype: Any) -> bool:
    return dtype in (np.dtype(np.float32), np.dtype(np.float64))


@primitive("complex")
class Complex(Nary):
    """The complex number of a real and an imaginary part."""

    passes_nan = True
    linear = True
    hlo, accepts, needs = "complex", staticmethod(_has_complex), "float32, float64"
    partials = (lambda t, out, x, y: complex(t, number_like(t, 0.0)),
                lambda t, out, x, y: complex(number_like(t, 0.0), t))

    def result_dtype(self, dtype):
        return dtypes.complex_dtype(dtype)

    def evaluate(self, x, y):
        out = np.empty(np.broadcast_shapes(x.shape, y.shape), dtypes.complex_dtype(x.dtype))
        out.real, out.imag = x, y
        return out

    def lower(self, ctx, x, y):
        shape = ctx.out_avals[0].shape
        x, y = ctx.stretch(x, shape), ctx.stretch(y, shape)
        return ctx.emit(f'"stablehlo.complex"({x}, {y})', x, y)

    def jvp(self, primals, tangents):
        out = bind(self, *primals)
        if all(t is None for t in tangents):
            return out, None
        parts = [zeros_of(aval_of(x)) if t is None else t for x, t in zip(primals, tangents)]
        return out, bind(self, *parts)

    def transpose(self, ct, x, y):
        return [unbroadcast(real(ct), x.aval) if isinstance(x, UndefinedPrimal) else None,
                unbroadcast(neg(imag(ct)), y.aval) if isinstance(y, UndefinedPrimal) else None]


def _has_conj(dtype: Any) -> bool:
    return _has_complex(dtype) or dtypes.is_complex(dtype)


@primitive("conj")
class Conj(Unary):
    """The complex conjugate; a real number becomes complex.  ``input_dtype`` is the operand's."""

    input_dtype: Any
    passes_nan = True
    linear = True
    accepts, needs = staticmethod(_has_conj), "float32, complexfloating, float64"

    def result_dtype(self, dtype):
        return dtypes.complex_dtype(dtype)

    def evaluate(self, x):
        return np.conj(x).astype(dtypes.complex_dtype(x.dtype))

    def lower(self, ctx, x):
        aval = ctx.in_avals[0]
        if not dtypes.is_complex(aval.dtype):
            zero = ctx.constant(0, aval)
            return ctx.emit(f'"stablehlo.complex"({x}, {zero})', x, zero)
        part = ShapedArray(aval.shape, dtypes.real_dtype(aval.dtype))
        re, im = (ctx.emit(f"stablehlo.{p} {x}", x, out=part) for p in ("real", "imag"))
        im = ctx.elementwise("stablehlo.negate", im, out=part)
        return ctx.emit(f'"stablehlo.complex"({re}, {im})', re, im)

    def tangent(self, t, x, out):
        return bind(self, t)

    def transpose(self, ct, x):
        back = conj(ct)
        return [back if dtypes.is_complex(x.dtype) else real(back)]


# -- functions -------------------------------------------------------------------------------------


def sign(x: ArrayLike) -> Array:
    """Return -1, 0 or 1, the sign of ``x``; x / |x| of complex ``x``.

    Raises: DTypeError.  Source: StableHLO specification, sign.

    >>> lax.sign(jnp.array([-3, 0, 2]))
    Array([-1,  0,  1], dtype=int32)
    """
    return bind(Sign(), x)


def floor(x: ArrayLike) -> Array:
    """Return the largest integers not above ``x``.

    Raises: DTypeError.  Source: StableHLO specification, floor.

    >>> lax.floor(jnp.array([1.8, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """
    return bind(Floor(), x)


def ceil(x: ArrayLike) -> Array:
    """Return the smallest integers not below ``x``.

    Raises: DTypeError.  Source: StableHLO specification, ceil.

    >>> lax.ceil(jnp.array([1.2, -1.2]))
    Array([ 2., -1.], dtype=float32)
    """
    return bind(Ceil(), x)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Return the nearest integers to ``x``; halves go where ``rounding_method`` says.

    Raises: DTypeError.  Source: StableHLO specification, round_nearest_afz, round_nearest_even.

    >>> lax.round(jnp.array([0.5, 1.5, -0.5]))
    Array([ 1.,  2., -1.], dtype=float32)
    """
    return bind(Round(RoundingMethod(rounding_method)), x)


def is_finite(x: ArrayLike) -> Array:
    """Return where ``x`` is neither infinite nor NaN.

    Raises: DTypeError.  Source: StableHLO specification, is_finite.

    >>> lax.is_finite(jnp.array([1., jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    return bind(IsFinite(), x)


def abs(x: ArrayLike) -> Array:
    """Return the absolute value of ``x``, real also for complex ``x``.

    Raises: DTypeError.  Source: StableHLO specification, abs.

    >>> lax.abs(jnp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    """
    return bind(Abs(), x)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the next float after ``x1`` towards ``x2``.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: CHLO dialect, next_after.

    >>> lax.nextafter(jnp.float32(1), jnp.float32(2)) > 1
    Array(True, dtype=bool)
    """
    return bind(Nextafter(), x1, x2)


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the larger of ``x`` and ``y``, NaN if either is.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, maximum.

    >>> lax.max(jnp.array([1, 5]), jnp.array([3, 3]))
    Array([3, 5], dtype=int32)
    """
    return bind(Max(), x, y)


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the smaller of ``x`` and ``y``, NaN if either is.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, minimum.

    >>> lax.min(jnp.array([1, 5]), jnp.array([3, 3]))
    Array([1, 3], dtype=int32)
    """
    return bind(Min(), x, y)


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Return what division of ``x`` by ``y`` towards zero leaves.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, remainder.

    >>> lax.rem(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    return bind(Rem(), x, y)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Return ``x`` to the power ``y``, which has the dtype of ``x`` or is an integer.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, power.

    >>> lax.pow(jnp.array([2., 3.]), 2)
    Array([4., 9.], dtype=float32)
    """
    return bind(Pow(), x, y)


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the angle of the point (y, x), in -pi..pi.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, atan2.

    >>> lax.atan2(jnp.array([1., -1.]), jnp.array([0., -1.]))
    Array([ 1.5707964, -2.3561945], dtype=float32)
    """
    return bind(Atan2(), x, y)


def real(x: ArrayLike) -> Array:
    """Return the real part of complex ``x``.

    Raises: DTypeError.  Source: StableHLO specification, real.

    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return bind(Real(), x)


def imag(x: ArrayLike) -> Array:
    """Return the imaginary part of complex ``x``.

    Raises: DTypeError.  Source: StableHLO specification, imag.

    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return bind(Imag(), x)


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x + iy.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, complex.

    >>> lax.complex(jnp.array([1.]), jnp.array([2.]))
    Array([1.+2.j], dtype=complex64)
    """
    return bind(Complex(), x, y)


def conj(x: ArrayLike) -> Array:
    """Return the complex conjugate of ``x``, complex also for real ``x``.

    Raises: DTypeError.
    """
    return bind(Conj(aval_of(x).dtype), x)

"""How are the functions of calculus computed, from exponentials to hyperbolic arcs?

Each block is one primitive: what StableHLO (or CHLO, its extension) calls it, what NumPy does, its
derivative.  Derivatives reuse the output where that saves a function.

Read before: ``ops.arithmetic``.  Read after: ``ops.numbers``, ``special.functions``.
Invariant: numbers of 16 bits are computed in 32 and rounded once; branch cuts are C99's.
Source: StableHLO specification; DLMF chapter 4 (derivatives and branch cuts).
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import primitive
from saem.core.record import Record
from saem.core.trace import bind
from saem.ops.arithmetic import add, div, integer_pow, mul, neg, sub
from saem.ops.families import Unary, is_number
from saem.ops.linear import constant_like, number_like
from saem.typing import Array, ArrayLike


def in_32_bits(function: Callable) -> Callable:
    """Return ``function`` computed in float32 where operands are narrower, rounded at the end."""

    @functools.wraps(function)
    def computed(*xs: np.ndarray) -> np.ndarray:
        dtype = xs[0].dtype
        with np.errstate(all="ignore"):
            if dtypes.is_float(dtype) and dtype.itemsize < 4:
                return np.asarray(function(*[x.astype(np.float32) for x in xs])).astype(dtype)
            return function(*xs)

    return computed


class AccuracyMode(enum.Enum):
    """How exactly a function is wanted: as the platform likes, or as well as it can."""

    HIGHEST = 1
    DEFAULT = 2

    def __repr__(self) -> str:
        return str(self)

    @property
    def text(self) -> str:
        return f"mode = #stablehlo.result_accuracy_mode<{self.name}>"


class Tolerance(Record):
    """How exactly a function is wanted: absolute and relative error, units in the last place.

    Raises: ValueError for a negative one, or if none is given.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set. "
                             "As in Tolerance(rtol=1e-5).")
        if min(atol, rtol, ulps) < 0:
            raise ValueError("Tolerances must be non-negative. "
                             f"It got atol={atol}, rtol={rtol}, ulps={ulps}.")
        super().__init__(atol, rtol, ulps)

    @property
    def text(self) -> str:
        return (f"atol = {float(self.atol):e}, rtol = {float(self.rtol):e}, ulps = {self.ulps}, "
                "mode = #stablehlo.result_accuracy_mode<TOLERANCE>")


class Analytic(Unary):
    """A function of calculus: of real and complex numbers, with a derivative.

    ``chlo`` marks operations of the extension dialect, which the compiler expands.
    """

    __slots__ = ()
    chlo: ClassVar[bool] = False
    handed_on = ("accuracy",)
    accepts, needs = staticmethod(dtypes.is_inexact), "floating, complexfloating"

    def lower(self, ctx, x):
        if self.chlo:
            return ctx.emit(f'"chlo.{self.hlo}"({x})', x)
        return ctx.emit(f"stablehlo.{self.hlo} {x}", x, attributes=self.wanted())

    def wanted(self) -> dict[str, str] | None:
        """Return the attribute that asks for an accuracy, None by default."""
        accuracy = getattr(self, "accuracy", None)
        if accuracy is None:
            return None
        if not isinstance(accuracy, (AccuracyMode, Tolerance)):
            raise NotImplementedError(f"Accuracy {accuracy} not supported: a lax.Tolerance or a "
                                      "lax.AccuracyMode is")
        return {"result_accuracy": f"#stablehlo.result_accuracy<{accuracy.text}>"}

    def printed_params(self):
        return {k: v for k, v in self.params.items() if v is not None}


@primitive("exp")
class Exp(Analytic):
    accuracy: Any = None
    hlo, numpy = "exponential", staticmethod(in_32_bits(np.exp))
    quick_code = False

    def tangent(self, t, x, out):
        return mul(t, out)


@primitive("exp2")
class Exp2(Analytic):
    accuracy: Any = None
    passes_nan = True
    separate_code = False  # it is a product and an exponential, which are joined
    hlo, numpy = "exponential", staticmethod(in_32_bits(np.exp2))

    def lower(self, ctx, x):
        base = ctx.constant(np.log(2.0), ctx.out_avals[0])
        scaled = ctx.elementwise("stablehlo.multiply", base, x)
        return ctx.emit(f"stablehlo.exponential {scaled}", scaled, attributes=self.wanted())

    def tangent(self, t, x, out):
        return mul(number_like(x, np.log(2.0)), mul(t, out))


@primitive("expm1")
class Expm1(Analytic):
    """exp(x) - 1, exact near 0."""

    accuracy: Any = None
    hlo, numpy = "exponential_minus_one", staticmethod(in_32_bits(np.expm1))

    def tangent(self, t, x, out):
        return mul(t, add(out, number_like(out, 1.0)))


@primitive("log")
class Log(Analytic):
    accuracy: Any = None
    hlo, numpy = "log", staticmethod(in_32_bits(np.log))
    quick_code = False

    def tangent(self, t, x, out):
        return div(t, x)


@primitive("log1p")
class Log1p(Analytic):
    """log(1 + x), exact near 0."""

    accuracy: Any = None
    hlo, numpy = "log_plus_one", staticmethod(in_32_bits(np.log1p))
    quick_code = False

    def tangent(self, t, x, out):
        return div(t, add(x, number_like(x, 1.0)))


@primitive("sqrt")
class Sqrt(Analytic):
    accuracy: Any = None
    hlo, numpy = "sqrt", staticmethod(in_32_bits(np.sqrt))

    def tangent(self, t, x, out):
        return mul(t, div(number_like(out, 0.5), out))


@primitive("rsqrt")
class Rsqrt(Analytic):
    """One by the square root."""

    accuracy: Any = None
    hlo, numpy = "rsqrt", staticmethod(in_32_bits(lambda x: np.reciprocal(np.sqrt(x))))

    def tangent(self, t, x, out):
        return mul(t, mul(number_like(x, -0.5), div(out, x)))


@primitive("cbrt")
class Cbrt(Analytic):
    accuracy: Any = None
    hlo, numpy = "cbrt", staticmethod(in_32_bits(np.cbrt))
    accepts, needs = staticmethod(dtypes.is_float), "floating"
    quick_code = False

    def tangent(self, t, x, out):
        return mul(t, mul(number_like(x, 1 / 3), integer_pow(out, -2)))


@primitive("logistic")
class Logistic(Analytic):
    """1 / (1 + exp(-x)), the sigmoid."""

    accuracy: Any = None
    hlo, numpy = "logistic", staticmethod(in_32_bits(lambda x: 1 / (1 + np.exp(-x))))

    def lower(self, ctx, x):
        inverse = ctx.elementwise("stablehlo.negate", x)
        inverse = ctx.emit(f"stablehlo.exponential {inverse}", inverse,
                           attributes=self.wanted())
        one = ctx.constant(1, ctx.out_avals[0])
        return ctx.elementwise(
            "stablehlo.divide", one, ctx.elementwise("stablehlo.add", one, inverse))

    def tangent(self, t, x, out):
        return mul(t, mul(out, sub(number_like(out, 1.0), out)))


class Circular(Analytic):
    """The sine and the cosine: of complex numbers by parts, so that 0 times infinity is not asked.

    sin(x + iy) = sin(x) cosh(y) + i cos(x) sinh(y) and cos(x + iy) = cos(x) cosh(y) - i sin(x)
    sinh(y); on the imaginary axis, x = 0, the part with sin(x) is 0 also where y overflows.
    """

    __slots__ = ()

    def parts(self, by_sine: Callable, by_cosine: Callable, sinh: str, cosh: str,
              negative: Callable) -> tuple[str, str]:
        """Return the real and the imaginary part, of factors times the sine or cosine of x."""
        raise NotImplementedError(f"{type(self).__name__} does not say its parts")

    def lower(self, ctx, z):
        whole = ctx.avals[z]
        if not dtypes.is_complex(whole.dtype) or self.wanted() is not None:
            return super().lower(ctx, z)
        part = ShapedArray(whole.shape, dtypes.real_dtype(whole.dtype))

        def write(op: str, *xs: str) -> str:
            return ctx.elementwise(f"stablehlo.{op}", *xs, out=part)

        x, y = (ctx.emit(f"stablehlo.{p} {z}", z, out=part) for p in ("real", "imag"))
        zero, half, one = (ctx.constant(n, part) for n in (0, 0.5, 1))
        up, down = (write("exponential_minus_one", n) for n in (y, write("negate", y)))
        sinh = write("multiply", half, write("subtract", up, down))
        cosh = write("add", one, write("multiply", half, write("add", up, down)))
        on_axis, sin, cos = ctx.compare("EQ", x, zero), write("sine", x), write("cosine", x)

        def by_sine(n: str) -> str:
            return ctx.choose(on_axis, zero, write("multiply", sin, n))

        def by_cosine(n: str) -> str:
            return write("multiply", cos, n)

        re, im = self.parts(by_sine, by_cosine, sinh, cosh, lambda n: write("negate", n))
        return ctx.emit(f"stablehlo.complex {re}, {im}", re, im, out=whole)


@primitive("sin")
class Sin(Circular):
    accuracy: Any = None
    hlo, numpy = "sine", staticmethod(in_32_bits(np.sin))

    def parts(self, by_sine, by_cosine, sinh, cosh, negative):
        return by_sine(cosh), by_cosine(sinh)

    def tangent(self, t, x, out):
        return mul(t, cos(x, accuracy=self.accuracy))


@primitive("cos")
class Cos(Circular):
    accuracy: Any = None
    hlo, numpy = "cosine", staticmethod(in_32_bits(np.cos))

    def parts(self, by_sine, by_cosine, sinh, cosh, negative):
        return by_cosine(cosh), by_sine(negative(sinh))

    def tangent(self, t, x, out):
        return neg(mul(t, sin(x, accuracy=self.accuracy)))


@primitive("tan")
class Tan(Analytic):
    accuracy: Any = None
    hlo, numpy = "tan", staticmethod(in_32_bits(np.tan))
    quick_code = False

    def tangent(self, t, x, out):
        return mul(t, add(constant_like(out, 1.0), square(out)))


@primitive("tanh")
class Tanh(Analytic):
    accuracy: Any = None
    hlo, numpy = "tanh", staticmethod(in_32_bits(np.tanh))

    def tangent(self, t, x, out):
        return mul(add(t, mul(t, out)), sub(number_like(out, 1.0), out))


@primitive("asin")
class Asin(Analytic):
    hlo, numpy = "asin", staticmethod(in_32_bits(np.arcsin))
    chlo = True
    separate_code = False

    def tangent(self, t, x, out):
        return mul(t, rsqrt(sub(number_like(x, 1.0), square(x))))


@primitive("acos")
class Acos(Analytic):
    hlo, numpy = "acos", staticmethod(in_32_bits(np.arccos))
    chlo = True
    separate_code = False

    def tangent(self, t, x, out):
        return mul(t, neg(rsqrt(sub(number_like(x, 1.0), square(x)))))


@primitive("atan")
class Atan(Analytic):
    hlo, numpy = "atan", staticmethod(in_32_bits(np.arctan))
    chlo = True
    separate_code = False
    quick_code = False

    def tangent(self, t, x, out):
        return div(t, add(constant_like(x, 1.0), square(x)))


@primitive("sinh")
class Sinh(Analytic):
    hlo, numpy = "sinh", staticmethod(in_32_bits(np.sinh))
    chlo = True
    separate_code = False

    def tangent(self, t, x, out):
        return mul(t, cosh(x))


@primitive("cosh")
class Cosh(Analytic):
    hlo, numpy = "cosh", staticmethod(in_32_bits(np.cosh))
    chlo = True
    separate_code = False

    def tangent(self, t, x, out):
        return mul(t, sinh(x))


@primitive("asinh")
class Asinh(Analytic):
    hlo, numpy = "asinh", staticmethod(in_32_bits(np.arcsinh))
    chlo = True
    separate_code = False
    quick_code = False

    def tangent(self, t, x, out):
        return mul(t, rsqrt(add(square(x), number_like(x, 1.0))))


@primitive("acosh")
class Acosh(Analytic):
    hlo, numpy = "acosh", staticmethod(in_32_bits(np.arccosh))
    chlo = True
    separate_code = False

    def tangent(self, t, x, out):
        one = number_like(x, 1.0)
        if dtypes.is_complex(aval_of(x).dtype):
            # The root of a product would leave the branch of acosh in half of the plane.
            return mul(t, mul(rsqrt(sub(x, one)), rsqrt(add(x, one))))
        return mul(t, rsqrt(sub(square(x), one)))


@primitive("atanh")
class Atanh(Analytic):
    hlo, numpy = "atanh", staticmethod(in_32_bits(np.arctanh))
    chlo = True
    separate_code = False
    quick_code = False

    def tangent(self, t, x, out):
        one = number_like(x, 1.0)
        return mul(integer_pow(add(one, x), -1), div(t, sub(one, x)))


@primitive("square")
class Square(Analytic):
    passes_nan = True
    multiplies = True
    hlo, numpy = "square", staticmethod(in_32_bits(np.square))
    chlo = True
    separate_code = False
    accepts, needs = staticmethod(is_number), "integer, floating, complexfloating"

    def lower(self, ctx, x):
        if dtypes.is_complex(ctx.in_avals[0].dtype):
            return super().lower(ctx, x)
        return ctx.elementwise("stablehlo.multiply", x, x)

    def tangent(self, t, x, out):
        return mul(t, mul(constant_like(x, 2.0), x))


# -- functions -------------------------------------------------------------------------------------


def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return e to the power ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, exponential.

    >>> lax.exp(jnp.array([0., 1.]))
    Array([1.       , 2.7182817], dtype=float32)
    """
    return bind(Exp(accuracy), x)


def exp2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return 2 to the power ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, exponential.

    >>> lax.exp2(jnp.array([0., 3.]))
    Array([1., 8.], dtype=float32)
    """
    return bind(Exp2(accuracy), x)


def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return exp(x) - 1, exact for small ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, exponential_minus_one.

    >>> lax.expm1(jnp.array([0., 1e-6]))
    Array([0.0000000e+00, 1.0000005e-06], dtype=float32)
    """
    return bind(Expm1(accuracy), x)


def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return the natural logarithm of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, log.

    >>> lax.log(jnp.array([1., jnp.e]))
    Array([0., 1.], dtype=float32)
    """
    return bind(Log(accuracy), x)


def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return log(1 + x), exact for small ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, log_plus_one.

    >>> lax.log1p(jnp.array([0., 1e-6]))
    Array([0.000000e+00, 9.999995e-07], dtype=float32)
    """
    return bind(Log1p(accuracy), x)


def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return the square root of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, sqrt.

    >>> lax.sqrt(jnp.array([4., 9.]))
    Array([2., 3.], dtype=float32)
    """
    return bind(Sqrt(accuracy), x)


def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return one by the square root of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, rsqrt.

    >>> lax.rsqrt(jnp.array([1., 4.]))
    Array([1. , 0.5], dtype=float32)
    """
    return bind(Rsqrt(accuracy), x)


def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return the real cube root of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, cbrt.

    >>> lax.cbrt(jnp.array([8., -27.]))
    Array([ 2., -3.], dtype=float32)
    """
    return bind(Cbrt(accuracy), x)


def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return 1 / (1 + exp(-x)), elementwise.

    Raises: DTypeError.  Source: StableHLO specification, logistic.

    >>> lax.logistic(jnp.array([0., 2.]))
    Array([0.5     , 0.880797], dtype=float32)
    """
    return bind(Logistic(accuracy), x)


def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return the sine of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, sine.

    >>> lax.sin(jnp.array([0., jnp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    return bind(Sin(accuracy), x)


def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return the cosine of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, cosine.

    >>> lax.cos(jnp.array([0., jnp.pi]))
    Array([ 1., -1.], dtype=float32)
    """
    return bind(Cos(accuracy), x)


def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return the tangent of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, tan.

    >>> lax.tan(jnp.array([0., 1.]))
    Array([0.       , 1.5574077], dtype=float32)
    """
    return bind(Tan(accuracy), x)


def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Return the hyperbolic tangent of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, tanh.

    >>> lax.tanh(jnp.array([0., 1.]))
    Array([0.       , 0.7615942], dtype=float32)
    """
    return bind(Tanh(accuracy), x)


def asin(x: ArrayLike) -> Array:
    """Return the arc sine of ``x``, elementwise.

    Raises: DTypeError.  Source: CHLO dialect, asin.

    >>> lax.asin(jnp.array([0., 1.]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return bind(Asin(), x)


def acos(x: ArrayLike) -> Array:
    """Return the arc cosine of ``x``, elementwise.

    Raises: DTypeError.  Source: CHLO dialect, acos.

    >>> lax.acos(jnp.array([1., 0.]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return bind(Acos(), x)


def atan(x: ArrayLike) -> Array:
    """Return the arc tangent of ``x``, elementwise.

    Raises: DTypeError.  Source: CHLO dialect, atan.

    >>> lax.atan(jnp.array([0., 1.]))
    Array([0.       , 0.7853981], dtype=float32)
    """
    return bind(Atan(), x)


def sinh(x: ArrayLike) -> Array:
    """Return the hyperbolic sine of ``x``, elementwise.

    Raises: DTypeError.  Source: CHLO dialect, sinh.

    >>> lax.sinh(jnp.array([0., 1.]))
    Array([0.       , 1.1752012], dtype=float32)
    """
    return bind(Sinh(), x)


def cosh(x: ArrayLike) -> Array:
    """Return the hyperbolic cosine of ``x``, elementwise.

    Raises: DTypeError.  Source: CHLO dialect, cosh.

    >>> lax.cosh(jnp.array([0., 1.]))
    Array([1.       , 1.5430806], dtype=float32)
    """
    return bind(Cosh(), x)


def asinh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic sine of ``x``, elementwise.

    Raises: DTypeError.  Source: CHLO dialect, asinh.

    >>> lax.asinh(jnp.array([0., 1.]))
    Array([0.        , 0.88137364], dtype=float32)
    """
    return bind(Asinh(), x)


def acosh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic cosine of ``x``, elementwise.

    Raises: DTypeError.  Source: CHLO dialect, acosh.

    >>> lax.acosh(jnp.array([1., 2.]))
    Array([0.      , 1.316958], dtype=float32)
    """
    return bind(Acosh(), x)


def atanh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic tangent of ``x``, elementwise.

    Raises: DTypeError.  Source: CHLO dialect, atanh.

    >>> lax.atanh(jnp.array([0., 0.5]))
    Array([0.        , 0.54930615], dtype=float32)
    """
    return bind(Atanh(), x)


def square(x: ArrayLike) -> Array:
    """Return the square of ``x``, elementwise.

    Raises: DTypeError.  Source: StableHLO specification, multiply.

    >>> lax.square(jnp.array([2, -3]))
    Array([4, 9], dtype=int32)
    """
    return bind(Square(), x)

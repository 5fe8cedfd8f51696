"""How are the error function, the gamma function and related functions computed?

XLA has operations for them (CHLO dialect); NumPy has none, so ``evaluate`` computes them in double
precision from their defining series and integrals.

Read before: ``ops.maths``.  Read after: ``special.incomplete``.
Invariant: values are those of the operations of XLA, to the rounding of the dtype.
Source: CHLO dialect; DLMF chapters 5 (gamma), 7 (error functions), 10 (Bessel), 25 (zeta).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes
from saem.core.avals import aval_of
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops.arithmetic import add, integer_pow, mul, neg, sub
from saem.ops.compare import gt
from saem.ops.families import Nary, Unary
from saem.ops.linear import number_like, stretch
from saem.ops.maths import exp, log, square
from saem.ops.numbers import abs, ones_like, sign
from saem.ops.select import select_n
from saem.special.formula import Formula, Value

# Even Bernoulli numbers B2, B4, …, for sums by Euler and Maclaurin (DLMF 24.2).
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)

# Coefficients of Stirling's series of log gamma (DLMF 5.11.1), and from where it is exact.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
            -3617 / 122400)
STIRLING_FROM = 16.0


def stirling_rest(x: Any) -> Any:
    """Return what Stirling's formula lacks of log gamma(x): its series, from STIRLING_FROM on."""
    square = 1.0 / (x * x)
    series = STIRLING[-1]
    for c in reversed(STIRLING[:-1]):
        series = series * square + c
    return series / x


def in_double(function: Callable) -> Callable:
    """Return ``function`` computed in float64 and rounded to the dtype of its operands."""

    @functools.wraps(function)
    def computed(*xs: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            wide = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in xs])
            return np.asarray(function(*wide)).astype(xs[0].dtype)

    return computed


def one_by_one(function: Callable[[float], float]) -> Callable:
    """Return a function of Python floats as a function of arrays."""
    return in_double(np.vectorize(function, otypes=[np.float64]))


# -- values in double precision --------------------------------------------------------------------


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _digamma(x: float) -> float:
    """Reflect to the right half line, climb by recurrence, then use the asymptotic series."""
    if math.isnan(x) or x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.nan
    if x == math.inf:
        return x
    if x < 0:
        return _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    climbed = 0.0
    while x < 12:
        climbed -= 1 / x
        x += 1
    series = sum(b / (2 * (n + 1) * x ** (2 * n + 2)) for n, b in enumerate(BERNOULLI))
    return climbed + math.log(x) - 1 / (2 * x) - series


def _erf_inv(x: float) -> float:
    """Solve erf(y) = x by Halley's method from a starting point of elementary functions."""
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if x in (-1, 1) else math.nan
    if x == 0:
        return x
    # Winitzki's approximation, good to two digits.
    log = math.log((1 - x) * (1 + x))
    half = 2 / (math.pi * 0.147) + log / 2
    y = math.sqrt(math.sqrt(half * half - log / 0.147) - half)
    for _ in range(4):
        # 1 - erf loses digits far out, erfc does not.
        miss = (1 - math.fabs(x)) - math.erfc(y) if y > 1 else math.erf(y) - math.fabs(x)
        step = miss * math.sqrt(math.pi) / 2 * math.exp(y * y)
        y -= step / (1 + y * step)
    return math.copysign(y, x)


def _zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Sum the first terms of Hurwitz's series, the rest by Euler and Maclaurin (DLMF 25.11.5)."""
    terms = 12
    total = sum((q + k) ** -s for k in range(terms))
    w = q + terms
    total = total + w ** (1 - s) / (s - 1) + 0.5 * w ** -s
    factor = s
    for n, b in enumerate(BERNOULLI):
        total = total + b / math.factorial(2 * n + 2) * factor * w ** -(s + 2 * n + 1)
        factor = factor * (s + 2 * n + 1) * (s + 2 * n + 2)
    # At a pole the sum is infinite from both sides only for even s.
    pole = (q <= 0) & (q == np.floor(q))
    total = np.where(pole, np.where(s % 2 == 0, np.inf, np.nan), total)
    total = np.where((q < 0) & ~pole & (s != np.floor(s)), np.nan, total)
    return np.where(s < 1, np.nan, np.where(s == 1, np.inf, total))


def _polygamma(m: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the m-th derivative of digamma, a zeta function (DLMF 5.15.2)."""
    factorial = np.exp(lgamma_in_double(m + 1))
    out = np.where(m % 2 == 0, -1.0, 1.0) * factorial * _zeta(m + 1, x)
    out = np.where(m == 0, digamma_in_double(x), out)
    return np.where((m < 0) | (m != np.floor(m)), np.nan, out)


lgamma_in_double = one_by_one(_lgamma)
digamma_in_double = one_by_one(_digamma)
zeta_in_double = in_double(_zeta)


def bessel(order: int) -> Callable:
    """Return exp(-|x|) I_order(x): the integral of DLMF 10.32.3, or for large x series 10.40.1."""
    nodes = (np.arange(512) + 0.5) * (np.pi / 512)
    cosine, weight = np.cos(nodes), np.cos(order * nodes) / 512

    def computed(x: np.ndarray) -> np.ndarray:
        size = np.abs(x)
        inner = np.minimum(size, 500.0)
        near = np.sum(np.exp(inner[..., None] * (cosine - 1)) * weight, axis=-1)
        far, term = np.ones_like(size), np.ones_like(size)
        outer = np.maximum(size, 500.0)
        for k in range(1, 10):
            term = -term * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * outer)
            far = far + term
        out = np.where(size <= 500, near, far / np.sqrt(2 * np.pi * outer))
        return np.where(np.isnan(x), x, np.where(x < 0, (-1.0) ** order * out, out))

    return computed


# -- primitives with an operation of XLA -----------------------------------------------------------


class Special(Unary):
    """A function of real numbers that CHLO calls ``hlo``."""

    __slots__ = ()
    separate_code = False
    accepts, needs = staticmethod(dtypes.is_float), "floating"

    def lower(self, ctx, x):
        return ctx.emit(f'"chlo.{self.hlo}"({x})', x)


def _gauss(x: Any, factor: float) -> Any:
    """Return factor * exp(-x * x)."""
    return mul(number_like(x, factor), exp(neg(square(x))))


@primitive("erf")
class Erf(Special):
    hlo, numpy = "erf", staticmethod(one_by_one(math.erf))
    quick_code = False

    def tangent(self, t, x, out):
        return mul(t, _gauss(x, 2 / math.sqrt(math.pi)))


@primitive("erfc")
class Erfc(Special):
    """1 - erf(x), exact where erf is almost 1."""

    hlo, numpy = "erfc", staticmethod(one_by_one(math.erfc))

    def tangent(self, t, x, out):
        return mul(t, _gauss(x, -2 / math.sqrt(math.pi)))


@primitive("erf_inv")
class ErfInv(Special):
    hlo, numpy = "erf_inv", staticmethod(one_by_one(_erf_inv))

    def tangent(self, t, x, out):
        return mul(number_like(x, math.sqrt(math.pi) / 2), mul(t, exp(square(out))))


@primitive("lgamma")
class Lgamma(Special):
    """The logarithm of the absolute value of the gamma function."""

    hlo, numpy = "lgamma", staticmethod(lgamma_in_double)

    def tangent(self, t, x, out):
        return mul(t, digamma(x))


@primitive("digamma")
class Digamma(Special):
    """The derivative of lgamma."""

    hlo, numpy = "digamma", staticmethod(digamma_in_double)

    def tangent(self, t, x, out):
        return mul(t, polygamma(stretch(number_like(x, 1.0), aval_of(x).shape), x))


class SpecialPair(Nary):
    """A function of two real numbers that CHLO calls ``hlo``."""

    __slots__ = ()
    separate_code = False
    accepts, needs = staticmethod(dtypes.is_float), "floating"

    def lower(self, ctx, x, y):
        shape = ctx.out_avals[0].shape
        x, y = ctx.stretch(x, shape), ctx.stretch(y, shape)
        return ctx.emit(f'"chlo.{self.hlo}"({x}, {y})', x, y)


def no_derivative(primitive_name: str, operand: str) -> Callable:
    """Return a partial derivative that raises that it is not known."""

    def refuse(t, out, *xs):
        raise ValueError(
            f"{primitive_name} gradient with respect to {operand} is not supported: it has no "
            "formula here. Hold that operand constant, with lax.stop_gradient.")

    return refuse


def _zeta_slope(s: Any, q: Any) -> Any:
    """Return the derivative of zeta by ``s``: that of Euler and Maclaurin's sum, term by term."""
    terms = 12
    total = None
    for k in range(terms):
        base = add(q, number_like(q, float(k)))
        part = mul(log(base), exp(mul(neg(s), log(base))))
        total = part if total is None else add(total, part)
    w = add(q, number_like(q, float(terms)))
    log_w, power = log(w), exp(mul(neg(s), log(w)))
    beyond = sub(s, number_like(s, 1.0))
    inverse = integer_pow(beyond, -1)
    total = add(total, mul(mul(w, power), mul(inverse, add(log_w, inverse))))
    total = add(total, mul(number_like(s, 0.5), mul(log_w, power)))
    # Each further term has the factor s (s + 1) …, whose logarithmic derivative grows beside it.
    factor, growth = s, integer_pow(s, -1)
    for n, b in enumerate(BERNOULLI):
        scale = number_like(s, b / math.factorial(2 * n + 2))
        weight = mul(scale, mul(factor, mul(power, integer_pow(w, -(2 * n + 1)))))
        total = add(total, mul(weight, sub(log_w, growth)))
        for j in (2 * n + 1, 2 * n + 2):
            step = add(s, number_like(s, float(j)))
            factor, growth = mul(factor, step), add(growth, integer_pow(step, -1))
    return neg(total)


@primitive("zeta")
class Zeta(SpecialPair):
    """Hurwitz's zeta function: the sum of (q + k) ** -s over k = 0, 1, …"""

    hlo, numpy = "zeta", staticmethod(zeta_in_double)
    partials = (lambda t, out, s, q: mul(t, _zeta_slope(s, q)), lambda t, out, s, q: mul(
        t, mul(neg(s), zeta(add(s, number_like(s, 1.0)), q))))


@primitive("polygamma")
class Polygamma(SpecialPair):
    """The m-th derivative of digamma."""

    hlo, numpy = "polygamma", staticmethod(in_double(_polygamma))
    partials = (no_derivative("polygamma", "m"), lambda t, out, m, x: mul(
        t, polygamma(add(m, number_like(m, 1.0)), x)))


# -- Bessel functions ------------------------------------------------------------------------------


@functools.cache
def _chebyshev(far: bool) -> tuple[float, ...]:
    """Return Chebyshev coefficients of I0e: in x/4 - 1 on 0..8, else of sqrt(x) I0e in 16/x - 1."""
    values = bessel(0)
    if far:
        def function(u):
            x = 16 / np.maximum(u + 1, 1e-9)
            return np.sqrt(x) * values(x)
    else:
        def function(u):
            return values(4 * (u + 1))
    found = np.polynomial.chebyshev.chebinterpolate(function, 40)
    last = max(i for i, c in enumerate(found) if math.fabs(c) > 1e-15)
    return tuple(found[: last + 1].tolist())


def _clenshaw(u: Value, coefficients: tuple[float, ...]) -> Value:
    """Return the sum of coefficient k times the Chebyshev polynomial k at ``u``."""
    b1, b2 = u * 0.0, u * 0.0
    for c in coefficients[:0:-1]:
        b1, b2 = 2.0 * u * b1 - b2 + c, b1
    return u * b1 - b2 + coefficients[0]


@primitive("bessel_i0e")
class BesselI0e(Formula):
    """exp(-|x|) times the modified Bessel function of order 0."""

    partials = (lambda t, out, x: mul(t, sub(bessel_i1e(x), mul(sign(x), out))),)

    def evaluate(self, x):
        return in_double(bessel(0))(x)

    @staticmethod
    def formula(of, x):
        size = x.abs()
        near = _clenshaw(size / 4.0 - 1.0, _chebyshev(False))
        outer = of.where(size > 8.0, size, 8.0)
        far = _clenshaw(16.0 / outer - 1.0, _chebyshev(True)) / outer.sqrt()
        return of.where(size > 8.0, far, near)


@primitive("bessel_i1e")
class BesselI1e(Special):
    """exp(-|x|) times the modified Bessel function of order 1."""

    hlo, numpy = "bessel_i1e", staticmethod(in_double(bessel(1)))

    def tangent(self, t, x, out):
        # At 0 the formula divides by x; the slope there is 1/2.
        tiny = number_like(x, float(dtypes.finfo(aval_of(x).dtype).eps))
        large = gt(abs(x), tiny)
        safe = select_n(large, mul(tiny, ones_like(x)), x)
        slope = sub(bessel_i0e(safe), mul(out, add(sign(safe), integer_pow(safe, -1))))
        half = mul(number_like(x, 0.5), ones_like(x))
        return mul(t, select_n(large, half, slope))


# -- functions -------------------------------------------------------------------------------------


def erf(x: Any) -> Any:
    """Return the error function of ``x``, elementwise.  Raises: DTypeError.  Source: DLMF 7.2.1.

    >>> lax.erf(jnp.array([0., 1.]))
    Array([0.        , 0.84270084], dtype=float32)
    """
    return bind(Erf(), x)


def erfc(x: Any) -> Any:
    """Return 1 - erf(x), exact where erf is almost 1, elementwise.

    Raises: DTypeError.  Source: DLMF 7.2.2.

    >>> lax.erfc(jnp.array([0., 1.]))
    Array([1.        , 0.15729924], dtype=float32)
    """
    return bind(Erfc(), x)


def erf_inv(x: Any) -> Any:
    """Return the number whose error function is ``x``, elementwise.

    Raises: DTypeError.  Source: DLMF 7.17.

    >>> lax.erf_inv(jnp.array([0., 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """
    return bind(ErfInv(), x)


def lgamma(x: Any) -> Any:
    """Return the logarithm of the absolute value of the gamma function, elementwise.

    Raises: DTypeError.  Source: DLMF 5.2.1.

    >>> lax.lgamma(jnp.array([1., 4.]))
    Array([4.7683716e-07, 1.7917603e+00], dtype=float32)
    """
    return bind(Lgamma(), x)


def digamma(x: Any) -> Any:
    """Return the derivative of lgamma, elementwise.  Raises: DTypeError.  Source: DLMF 5.2.2.

    >>> lax.digamma(jnp.array([1., 2.]))
    Array([-0.5772154 ,  0.42278463], dtype=float32)
    """
    return bind(Digamma(), x)


def bessel_i0e(x: Any) -> Any:
    """Return exp(-|x|) times the modified Bessel function I0, elementwise.

    Raises: DTypeError.  Source: DLMF 10.25.2.

    >>> lax.bessel_i0e(jnp.array([0., 1.]))
    Array([1.0000001 , 0.46575963], dtype=float32)
    """
    return bind(BesselI0e(), x)


def bessel_i1e(x: Any) -> Any:
    """Return exp(-|x|) times the modified Bessel function I1, elementwise.

    Raises: DTypeError.  Source: DLMF 10.25.2.

    >>> lax.bessel_i1e(jnp.array([0., 1.]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return bind(BesselI1e(), x)


def zeta(x: Any, q: Any) -> Any:
    """Return Hurwitz's zeta function: the sum of (q + k) ** -x.

    Shapes: of both one, or rank 0, or size 1.
    Raises: ShapeError, DTypeError.  Source: DLMF 25.11.1.

    >>> lax.zeta(jnp.array([2.]), jnp.array([1.]))
    Array([1.644934], dtype=float32)
    """
    return bind(Zeta(), x, q)


def polygamma(m: Any, x: Any) -> Any:
    """Return the ``m``-th derivative of digamma.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.  Source: DLMF 5.15.

    >>> lax.polygamma(jnp.array([1.]), jnp.array([1.]))
    Array([1.644934], dtype=float32)
    """
    return bind(Polygamma(), m, x)

"""How are incomplete gamma and beta functions computed?

By power series where the argument is small, by continued fractions where it is large; the
derivative by the parameter goes term by term through both.

Read before: ``special.formula``, ``special.functions``.
Invariant: igamma + igammac = 1, and neither loses its small values to a subtraction from 1.
Source: DLMF 5.7.3 (log gamma), 5.11.1 (Stirling), 8.2.6, 8.7.1 (series), 8.9.2 (fraction), 8.17.22
(beta);
Thompson and Barnett 1986, "Coulomb and Bessel functions of complex arguments and order" (Lentz's
method, modified).
"""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar

import numpy as np

from saem.core.avals import aval_of
from saem.core.infer import infer
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops.arithmetic import add, mul, neg, sub
from saem.ops.convert import convert
from saem.ops.families import stretch
from saem.ops.linear import number_like
from saem.ops.maths import exp, log, log1p
from saem.special.formula import Formula, OnArrays, Value
from saem.special.functions import (
    STIRLING_FROM,
    digamma,
    digamma_in_double,
    lgamma,
    lgamma_in_double,
    no_derivative,
    stirling_rest,
    zeta_in_double,
)
from saem.transform.jvp import jvp_flat

STEPS = 2000
FUNCTIONS = {"lgamma": lgamma_in_double, "digamma": digamma_in_double}


def _series(of, a, x, active):
    """Return the sum of x^k / ((a+1) … (a+k)) from k = 0, and its derivative by a."""
    eps = float(np.finfo(of.dtype).eps)

    def body(k, term, slope, total, total_slope):
        ratio = x / (a + k)
        slope = slope * ratio - term * ratio / (a + k)
        term = term * ratio
        total, total_slope = total + term, total_slope + slope
        return [term, slope, total, total_slope], (term > total * eps)

    one, zero = of.number(1.0), of.number(0.0)
    return of.loop(STEPS, body, [one, zero, one, zero], active)[2:]


def _fraction(of, a, x, active):
    """Return 1 / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / …)), and its derivative by a.

    ``c`` and ``d`` are the ratios of successive numerators and denominators.
    """
    eps = float(np.finfo(of.dtype).eps)

    def body(k, c, dc, d, dd, h, dh):
        top, dtop = k * (a - k), k
        bottom = x + (2.0 * k + 1.0) - a
        inverse = top * d + bottom
        d_new = 1.0 / inverse
        dd_new = -(dtop * d + top * dd - 1.0) * d_new * d_new
        dc_new = (dtop - top * dc / c) / c - 1.0
        c_new = bottom + top / c
        delta = c_new * d_new
        step = h * (dc_new * d_new + c_new * dd_new)
        dh = dh * delta + step
        # Where a is a whole number the fraction ends, but its slope does not.
        more = ((delta - 1.0).abs() > eps) | (step.abs() > dh.abs() * eps)
        return [c_new, dc_new, d_new, dd_new, h * delta, dh], more

    first = x + 1.0 - a
    start = 1.0 / first
    # c starts as 1 / tiny: a fraction cut before its first numerator.
    huge, zero = of.number(1e30), of.number(0.0)
    slope = start * start
    return of.loop(STEPS, body, [huge, zero, start, slope, start, slope], active)[4:]


def _parts(of, a, x):
    """Return where the fraction serves, and series and fraction with their slopes by a."""
    ordinary = (x > 0.0) & (a > 0.0) & (x < np.inf) & (a < np.inf)
    far = ordinary & (x >= 1.0) & ((x > a + 1.0) | (a < 0.5))
    a, x = of.where(ordinary, a, 1.0), of.where(ordinary, x, 1.0)
    return far, a, x, _series(of, a, x, ordinary & ~far), _fraction(
        of, of.where(far, a, 1.0), of.where(far, x, 3.0), far)


def _edges(of, a, x, out, at_zero, at_end):
    """Put in the values at the edges of the domain, NaN outside of it."""
    out = of.where(x.equals(0.0) | a.equals(np.inf), at_zero, out)
    out = of.where(x.equals(np.inf) | a.equals(0.0), at_end, out)
    inside = (a >= 0.0) & (x >= 0.0) & ((a > 0.0) | (x > 0.0))
    return of.where(inside, out, np.nan)


def _lower_and_upper(of, a, x):
    """Return the regularized lower and upper incomplete gamma functions."""
    far, safe_a, safe_x, (series, _), (fraction, _) = _parts(of, a, x)
    weight = (safe_a * safe_x.log() - safe_x - safe_a.lgamma()).exponential()
    lower, upper = weight * series / safe_a, weight * fraction
    return of.where(far, 1.0 - upper, lower), of.where(far, upper, 1.0 - lower)


@functools.cache
def _lgamma_coefficients() -> list[float]:
    """Return the coefficients of (log gamma(1 + a) + log(1 + a)) / a, by powers of a."""
    k = np.arange(2.0, 28.0)
    rest = (-1) ** k * zeta_in_double(k, 2.0) / k
    return [1.0 - np.euler_gamma, *rest.tolist()]


def _little_upper(of, a, x):
    """Return igammac where 0 < a < 1/2 and 0 < x < 1: there 1 less igamma is lost in rounding.

    igamma is e^l M(a, a + 1, -x), with e^l = x^a / gamma(1 + a): the 1 of M leaves 1 - e^l, and
    each other term of M has the factor a.
    """
    eps = float(np.finfo(of.dtype).eps)
    here = (a > 0.0) & (a < 0.5) & (x > 0.0) & (x < 1.0)
    a, x = of.where(here, a, 0.25), of.where(here, x, 0.5)

    def body(k, power, total):
        power = -power * x / k
        total = total + power / (a + k)
        return [power, total], (power.abs() > total.abs() * eps)

    total = of.loop(STEPS, body, [of.number(1.0), of.number(0.0)], here)[1]
    ratio = of.number(0.0)
    for c in reversed(_lgamma_coefficients()):
        ratio = ratio * a + c
    log = a * x.log() + a.log_plus_one() - a * ratio
    return here, -(log.exponential_minus_one() + log.exponential() * a * total)


def _density(a, x):
    """Return the derivative of igamma by x: the density of the gamma distribution."""
    return exp(sub(add(neg(x), mul(sub(a, number_like(a, 1.0)), log(x))), lgamma(a)))


class GammaFormula(Formula):
    __slots__ = ()
    functions = FUNCTIONS
    operations: ClassVar = {"lgamma": lgamma, "digamma": digamma}


class Slope(GammaFormula):
    """A derivative by the parameter: its own derivatives go term by term through the loops."""

    __slots__ = ()

    def jvp(self, primals, tangents):
        (out,), (tangent,) = jvp_flat(self.on_arrays, primals, tangents)
        return out, tangent


@primitive("igamma")
class Igamma(GammaFormula):
    """The regularized lower incomplete gamma function P(a, x)."""

    partials = (lambda t, out, a, x: mul(t, igamma_grad_a(a, x)),
                lambda t, out, a, x: mul(t, _density(a, x)))

    @staticmethod
    def formula(of, a, x):
        return _edges(of, a, x, _lower_and_upper(of, a, x)[0], 0.0, 1.0)


@primitive("igammac")
class Igammac(GammaFormula):
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""

    partials = (lambda t, out, a, x: neg(mul(t, igamma_grad_a(a, x))),
                lambda t, out, a, x: neg(mul(t, _density(a, x))))

    @staticmethod
    def formula(of, a, x):
        out = of.where(*_little_upper(of, a, x), _lower_and_upper(of, a, x)[1])
        return _edges(of, a, x, out, 1.0, 0.0)


@primitive("igamma_grad_a")
class IgammaGradA(Slope):
    """The derivative of igamma by its first argument."""

    @staticmethod
    def formula(of, a, x):
        far, safe_a, safe_x, (series, dseries), (fraction, dfraction) = _parts(of, a, x)
        log = safe_x.log()
        weight = (safe_a * log - safe_x - safe_a.lgamma()).exponential()
        psi = (1.0 + safe_a).digamma()  # that of a + 1/a: near 0 these two cancel
        lower = weight / safe_a * ((log - psi) * series + dseries)
        upper = weight * ((log - psi + 1.0 / safe_a) * fraction + dfraction)
        out = of.where(weight.equals(0.0), 0.0, of.where(far, -upper, lower))
        return of.where(a.equals(0.0), np.nan, _edges(of, a, x, out, 0.0, 0.0))


@primitive("random_gamma_grad")
class RandomGammaGrad(Slope):
    """How a gamma sample moves with its parameter, its quantile held: -(dP/da) / (dP/dx).

    Source: Figurnov, Mohamed and Mnih 2018, "Implicit Reparameterization Gradients".
    """

    @staticmethod
    def formula(of, a, x):
        far, safe_a, safe_x, (series, dseries), (fraction, dfraction) = _parts(of, a, x)
        log, psi = safe_x.log(), (1.0 + safe_a).digamma()
        lower = -safe_x / safe_a * ((log - psi) * series + dseries)
        upper = safe_x * ((log - psi + 1.0 / safe_a) * fraction + dfraction)
        out = _edges(of, a, x, of.where(far, upper, lower), 0.0, 0.0)
        return of.where(a.equals(0.0), np.nan, out)


def _beta_fraction(of, a, b, x, active):
    """Return the continued fraction of DLMF 8.17.22, two of its levels a step."""
    eps = float(np.finfo(of.dtype).eps)

    def level(top, c, d, h):
        d = 1.0 / (1.0 + top * d)
        c = 1.0 + top / c
        return c, d, h * c * d, c * d

    def body(k, c, d, h):
        even = k * (b - k) * x / ((a + 2.0 * k - 1.0) * (a + 2.0 * k))
        c, d, h, _ = level(even, c, d, h)
        odd = -(a + k) * (a + b + k) * x / ((a + 2.0 * k) * (a + 2.0 * k + 1.0))
        c, d, h, delta = level(odd, c, d, h)
        return [c, d, h], (delta - 1.0).abs() > eps

    start = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    return of.loop(STEPS, body, [of.number(1.0), start, start], active)[2]


def _log_beta(of, a, b):
    """Return log|beta(a, b)|.

    The three log gammas of it cancel where an argument is large: of positive ones Stirling's
    formula is taken there, and what cancels in it is left out.
    """
    swap = a > b
    p, q = of.where(swap, b, a), of.where(swap, a, b)
    far = (q >= STIRLING_FROM) & (p >= 0.0)
    p1, q1 = of.where(far, 1.0, p), of.where(far, 1.0, q)
    near = p1.lgamma() + q1.lgamma() - (p1 + q1).lgamma()

    p2, q2 = of.where(far, p, 1.0), of.where(far, q, STIRLING_FROM)
    ratio = p2 / q2
    growth = ratio.log_plus_one()  # log(p + q) - log q
    rest = stirling_rest(q2) - stirling_rest(p2 + q2)
    one = p2.lgamma() - p2 * (q2.log() + growth - 1.0) - (q2 - 0.5) * growth
    both = ((p2 - 0.5) * (ratio / (1.0 + ratio)).log() - q2 * growth - 0.5 * q2.log()
            + 0.5 * math.log(2 * math.pi))
    p3 = of.where(p2 >= STIRLING_FROM, p2, STIRLING_FROM)
    stirling = of.where(p2 >= STIRLING_FROM, both + stirling_rest(p3), one) + rest
    return of.where(far, stirling, near)


def log_beta(a: Any, b: Any) -> Any:
    """Return log|beta(a, b)| by operations that have all derivatives; weak if both are."""
    aval = infer(Igamma(), [aval_of(a), aval_of(b)])
    of = OnArrays(aval.dtype, aval, GammaFormula.operations)
    values = [Value(of, stretch(convert(x, aval.dtype), aval.shape)) for x in (a, b)]
    return convert(_log_beta(of, *values).raw, aval.dtype, aval.weak_type)


def _beta_density(t, out, a, b, x):
    one = number_like(x, 1.0)
    powers = add(mul(sub(a, one), log(x)), mul(sub(b, one), log1p(neg(x))))
    return mul(t, exp(sub(powers, log_beta(a, b))))


@primitive("regularized_incomplete_beta")
class RegularizedIncompleteBeta(GammaFormula):
    """The regularized incomplete beta function I_x(a, b)."""

    quick_code = False  # its logarithms are of quotients, whose rounding each generator chooses
    partials = (no_derivative("betainc", "a"), no_derivative("betainc", "b"), _beta_density)

    @staticmethod
    def formula(of, a, b, x):
        # In the limits all lies at 0, so that the part up to any x above is 1, or all at 1.
        at_zero = a.equals(0.0) | b.equals(np.inf)
        at_one = b.equals(0.0) | a.equals(np.inf)
        between = (x > 0.0) & (x < 1.0)
        ordinary = (a > 0.0) & (b > 0.0) & ~at_zero & ~at_one & between
        a1, b1, x1 = (of.where(ordinary, v, 0.5) for v in (a, b, x))
        # I_x(a, b) = 1 - I_{1-x}(b, a): the fraction converges fast on one side of the mode.
        # Of a small b nearly all is left of 1, and 1 less it would be lost in rounding.
        swap = (x1 > (a1 + 1.0) / (a1 + b1 + 2.0)) & ((b1 >= 0.5) | (x1 > 0.99))
        p, q = of.where(swap, b1, a1), of.where(swap, a1, b1)
        y = of.where(swap, 1.0 - x1, x1)
        powers = p * y.log() + q * (-y).log_plus_one() - _log_beta(of, p, q)
        value = powers.exponential() / p * _beta_fraction(of, p, q, y, ordinary)
        out = of.where(swap, 1.0 - value, value)
        out = of.where(at_zero, 1.0, of.where(at_one, 0.0, out))
        out = of.where(x.equals(0.0), 0.0, of.where(x.equals(1.0), 1.0, out))
        inside = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0) & ~(at_zero & at_one)
        return of.where(inside, out, np.nan)


# -- functions -------------------------------------------------------------------------------------


def igamma(a: Any, x: Any) -> Any:
    """Return the regularized lower incomplete gamma function P(a, x).

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.

    >>> lax.igamma(jnp.array([1.]), jnp.array([1.]))
    Array([0.6321202], dtype=float32)
    """
    return bind(Igamma(), a, x)


def igammac(a: Any, x: Any) -> Any:
    """Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.

    >>> lax.igammac(jnp.array([1.]), jnp.array([1.]))
    Array([0.36787927], dtype=float32)
    """
    return bind(Igammac(), a, x)


def igamma_grad_a(a: Any, x: Any) -> Any:
    """Return the derivative of igamma by ``a``.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.

    >>> lax.igamma_grad_a(jnp.array([1.]), jnp.array([1.]))
    Array([-0.43172967], dtype=float32)
    """
    return bind(IgammaGradA(), a, x)


def random_gamma_grad(a: Any, x: Any) -> Any:
    """Return how a sample ``x`` of the gamma distribution moves with its parameter ``a``.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.

    >>> lax.random_gamma_grad(jnp.array([1.]), jnp.array([1.]))
    Array([1.1735635], dtype=float32)
    """
    return bind(RandomGammaGrad(), a, x)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Return the regularized incomplete beta function I_x(a, b).

    Shapes: of all one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.

    >>> lax.betainc(1., 2., jnp.array([0.5]))
    Array([0.75000006], dtype=float32)
    """
    return bind(RegularizedIncompleteBeta(), a, b, x)

"""How are integrals of elementary functions computed that are not elementary themselves?

The exponential, sine and cosine integrals, Fresnel's, and the dilogarithm: by their power series
near the origin, by continued fractions or the complex error function elsewhere.

Read before: ``special.operands``, ``special.faddeeva``.
Invariant: each has the derivative that its integrand is, in every mode and order; values are
SciPy's (tests/kernel/scipy/test_special.py).
Source: DLMF 6.2, 6.6 (series), 6.9.1 (fraction), 7.2.8 (Fresnel), 8.19.17 (generalized), 25.12
(dilogarithm); Press et al., "Numerical Recipes", section 6.3 (Lentz's method).
"""

from __future__ import annotations

import math

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes
from saem.custom_derivatives import custom_jvp
from saem.jit.library import library_function
from saem.numpy.promote import promote_args_inexact
from saem.scipy.special.faddeeva import of_upper
from saem.scipy.special.gammas import _bernoulli_numbers
from saem.scipy.special.normal import single_or_double
from saem.scipy.special.operands import elementwise, horner, refuse_complex
from saem.typing import Array, ArrayLike

EULER = float(np.euler_gamma)


def _fraction(n: Array, x: Array, steps: int) -> Array:
    """Return E_n(x) exp(x) for x well away from 0: 1/(x+n- 1·n/(x+n+2- 2(n+1)/(x+n+4- …)))."""
    one = lax.full_like(n, 1)

    def level(i, inner):
        k = steps - i * one
        top = k * (n + k - 1)
        return top.astype(x.dtype) / (x + n + 2 * k - inner)

    return 1 / (x + n - lax.fori_loop(0, steps, level, jnp.zeros_like(x)))


def _steps(x: Array) -> int:
    """Return the length of fractions and series that serve from |x| = 1 on."""
    return 140 if dtypes.itemsize_bits(dtypes.real_dtype(x.dtype)) == 64 else 50


# -- exponential integrals -------------------------------------------------------------------------


def _exp1_positive(x: Array) -> Array:
    """Return E1 of x > 0."""
    near = jnp.where(x <= 1, x, 1)
    # -log(x) - gamma + x - x²/(2·2!) + x³/(3·3!) - …
    series = horner([-((-1) ** k) / (k * math.factorial(k)) for k in range(20, 0, -1)], near)
    inner = -jnp.log(near) - EULER + near * series
    far = jnp.where(x <= 1, 2, x)
    outer = jnp.exp(-far) * _fraction(lax.full_like(far, 1), far, _steps(x))
    return jnp.where(x <= 1, inner, outer)


@custom_jvp
def _exp1(x: Array) -> Array:
    inside = (x > 0) & (x < np.inf)
    out = _exp1_positive(jnp.where(inside, x, 1))
    return jnp.where(inside, out, jnp.where(x == 0, np.inf, jnp.where(x > 0, 0, np.nan)))


_exp1.defjvps(lambda dx, out, x: -dx * jnp.exp(-x) / x)


@elementwise
def exp1(x: ArrayLike) -> Array:
    """Return the integral of exp(-t) / t from x to infinity; NaN for x < 0.

    >>> exp1(jnp.array([0., 1.]))
    Array([      inf, 0.2193839], dtype=float32)
    """
    return _exp1(x)


# Up to here Ei is its power series, beyond it the asymptotic one has full precision.
SERIES_END = 40.0


def _expi_positive(x: Array) -> Array:
    """Return Ei of x > 0: gamma + log(x) + sum of x^k / (k k!), or its asymptotic series."""
    near = jnp.where(x <= SERIES_END, x, 1)

    def step(k, state):
        term, total = state
        k = (k + 1).astype(x.dtype)
        term = term * near / k
        return term, total + term / k

    zero = jnp.zeros_like(near)
    _, series = lax.fori_loop(0, 130, step, (zero + 1, zero))
    inner = EULER + jnp.log(near) + series
    far = jnp.where(x > SERIES_END, x, 100)
    outer = jnp.exp(far) / far * horner([math.factorial(k) for k in range(24, -1, -1)], 1 / far)
    return jnp.where(x <= SERIES_END, inner, outer)


@custom_jvp
def _expi(x: Array) -> Array:
    finite = jnp.isfinite(x) & (x != 0)
    positive = _expi_positive(jnp.where(finite & (x > 0), x, 1))
    negative = -_exp1_positive(jnp.where(finite & (x < 0), -x, 1))
    out = jnp.where(x > 0, positive, negative)
    edge = jnp.where(x == 0, -np.inf, jnp.where(x == np.inf, np.inf, -0.0))
    return jnp.where(finite, out, jnp.where(jnp.isnan(x), x, edge))


_expi.defjvps(lambda dx, out, x: dx * jnp.exp(x) / x)


@elementwise
def expi(x: ArrayLike) -> Array:
    """Return the principal value of the integral of exp(t) / t from -infinity to x.

    >>> expi(1.0)
    Array(1.8951179, dtype=float32)
    """
    return _expi(x)


@custom_jvp
def _expn(n: Array, x: Array) -> Array:
    inside = (x > 0) & (n > 0) & (n == jnp.floor(n)) & (x < np.inf)
    order = jnp.where(inside, n, 1)
    near = jnp.where(inside & (x <= 1), x, 0.5)

    def step(k, state):
        # Terms (-x)^k / ((k - n + 1) k!); the one with k = n - 1 has a logarithm instead.
        term, total, harmonic = state
        whole = jnp.asarray(k, x.dtype)
        gap = whole - order + 1
        at = gap == 0
        plain = -term / jnp.where(at, 1, gap)
        special = term * (-jnp.log(near) - EULER + harmonic)
        harmonic = harmonic + jnp.where(whole + 1 < order, 1 / (whole + 1), 0)
        return -term * near / (whole + 1), total + jnp.where(at, special, plain), harmonic

    zero = jnp.zeros_like(near)
    # Beyond the series the fraction converges too, from x = 1 or for large n.
    inner = lax.fori_loop(0, 24, step, (zero + 1, zero, zero))[1]
    series_serves = (x <= 1) & (order <= 20)
    far = jnp.where(inside & ~series_serves, x, 2)
    outer = jnp.exp(-far) * _fraction(order, far, _steps(x))
    out = jnp.where(series_serves, inner, outer)
    at_zero = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), np.inf)
    flat = jnp.where(x == 0, at_zero, jnp.exp(-x) / jnp.where(x == 0, 1, x))
    edge = jnp.where((n == 0) | (x == 0), flat, jnp.where(x == np.inf, 0, np.nan))
    wrong = (n < 0) | (n != jnp.floor(n)) | (x < 0) | jnp.isnan(x)
    return jnp.where(inside, out, jnp.where(wrong, np.nan, edge))


_expn.defjvps(None, lambda dx, out, n, x: -dx * jnp.where(
    n >= 1, _expn(jnp.maximum(n - 1, 0), x), jnp.exp(-x) * (x + 1) / (x * x)))


@library_function(whole=True)
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the integral of exp(-x t) / t**n from 1 to infinity, for whole n ≥ 0 and x ≥ 0.

    >>> expn(2, jnp.array([0., 1.]))
    Array([1.       , 0.1484955], dtype=float32)
    """
    n, x = promote_args_inexact("expn", jnp.asarray(n), jnp.asarray(x))
    refuse_complex("expn", x)
    return _expn(*jnp.broadcast_arrays(n, x))


# -- sine, cosine and Fresnel integrals ------------------------------------------------------------


@custom_jvp
def _sici(x: Array) -> tuple[Array, Array]:
    size = jnp.abs(x)
    near = jnp.where(size <= 4, size, 1)
    square = near * near
    count = range(18, -1, -1)
    sine = near * horner([(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in count],
                         square)
    cosine = EULER + jnp.log(near) + square * horner(
        [-((-1) ** k) / ((2 * k + 2) * math.factorial(2 * k + 2)) for k in count], square)
    # E1(i x) = -Ci(x) + i (Si(x) - pi/2), by the continued fraction.
    far = jnp.where((size > 4) & jnp.isfinite(size), size, 5)
    turned = lax.complex(jnp.zeros_like(far), far)
    fraction = _fraction(lax.full_like(turned, 1), turned, _steps(x))
    wave = lax.complex(jnp.cos(far), -jnp.sin(far)) * fraction
    si = jnp.where(size <= 4, sine, wave.imag + np.pi / 2)
    ci = jnp.where(size <= 4, cosine, -wave.real)
    si = jnp.where(jnp.isinf(size), np.pi / 2, jnp.where(jnp.isnan(x), x, si))
    ci = jnp.where(jnp.isinf(size), jnp.where(x > 0, 0, np.nan), jnp.where(jnp.isnan(x), x, ci))
    return jnp.where(x < 0, -si, si), jnp.where(size == 0, -np.inf, ci)


@_sici.defjvp
def _sici_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _sici(x), (dx * jnp.sinc(x / np.pi), dx * jnp.cos(x) / x)


@elementwise(complex_too=True)
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Return the sine integral and the cosine integral of |x|.

    Returns: the integral of sin(t) / t from 0 to x, and that of cos(t) / t from infinity.
    Raises: ValueError for complex x.

    >>> [round(float(y), 6) for y in sici(1.0)]
    [0.946083, 0.337404]
    """
    refuse_complex("sici", x)
    return _sici(x)


@custom_jvp
def _fresnel(x: Array) -> tuple[Array, Array]:
    size = jnp.abs(x)
    near = jnp.where(size <= 1, size, 0.5)
    quarter, half = near ** 4, np.pi / 2
    count = range(12, -1, -1)
    cosine = near * horner([(-1) ** k * half ** (2 * k) / (math.factorial(2 * k) * (4 * k + 1))
                            for k in count], quarter)
    sine = near ** 3 * horner([(-1) ** k * half ** (2 * k + 1)
                               / (math.factorial(2 * k + 1) * (4 * k + 3)) for k in count], quarter)
    # C + i S = (1 + i)/2 (1 - exp(i pi x²/2) w(sqrt(pi)/2 (1 + i) x)).
    far = jnp.where((size > 1) & (size < 1e9), size, 2)
    root = math.sqrt(math.pi) / 2
    w = of_upper(lax.complex(root * far, root * far))
    whole = jnp.floor(far)
    rest = far - whole
    # x² modulo 4 from whole and rest, so that large x keep their phase.
    turn = lax.rem(whole, lax.full_like(whole, 4)) ** 2 + lax.rem(
        2 * whole * rest, lax.full_like(whole, 4)) + rest * rest
    wave = lax.complex(jnp.cos(half * turn), jnp.sin(half * turn)) * w
    outer = 0.5 * (1 + 1j) * (1 - wave)
    s = jnp.where(size <= 1, sine, jnp.where(size >= 1e9, 0.5, outer.imag))
    c = jnp.where(size <= 1, cosine, jnp.where(size >= 1e9, 0.5, outer.real))
    s, c = (jnp.where(jnp.isnan(x), x, y) for y in (s, c))
    return jnp.where(x < 0, -s, s), jnp.where(x < 0, -c, c)


@_fresnel.defjvp
def _fresnel_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    angle = np.pi / 2 * x * x
    return _fresnel(x), (dx * jnp.sin(angle), dx * jnp.cos(angle))


@elementwise(complex_too=True)
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Return Fresnel's integrals of sin(pi t² / 2) and of cos(pi t² / 2) from 0 to x.

    Raises: NotImplementedError for complex x.

    >>> [round(float(y), 6) for y in fresnel(1.0)]
    [0.438259, 0.779893]
    """
    refuse_complex("fresnel", x, NotImplementedError)
    return _fresnel(x)


# -- dilogarithm -----------------------------------------------------------------------------------

# Coefficients of u^(2k + 1) in the dilogarithm of 1 - exp(-u).
DEBYE = [float(b) / math.factorial(2 * k + 1)
         for k, b in enumerate(_bernoulli_numbers(40)[0::2])][:18]


def _near_one(x: Array) -> Array:
    """Return the dilogarithm of 1 - x for x in [1/2, 2], a series in u = -log(x)."""
    u = -jnp.log(x)
    return u * horner(DEBYE[::-1], u * u) - u * u / 4


@custom_jvp
def _spence(x: Array) -> Array:
    high = x > 2
    y = jnp.where(high, 1 / jnp.where(high, x, 1), jnp.where(x > 0, x, 1))
    low = y < 0.5
    core = _near_one(jnp.where(low, 1 - y, y))
    reflected = np.pi ** 2 / 6 - jnp.log(y) * jnp.log1p(-jnp.where(low, y, 0)) - core
    out = jnp.where(low, reflected, core)
    out = jnp.where(high, -0.5 * jnp.log(y) ** 2 - out, out)
    out = jnp.where(x == 0, np.pi ** 2 / 6, jnp.where(x == np.inf, -np.inf, out))
    return jnp.where(x >= 0, out, np.nan)


_spence.defjvps(lambda dx, out, x: dx * jnp.where(
    x == 1, -1, -jnp.log(x) / jnp.where(x == 1, 1, x - 1)))


def spence(x: Array) -> Array:
    """Return the integral of -log(t) / (t - 1) from 1 to x: the dilogarithm of 1 - x.

    x: float32 or float64.  Raises: TypeError for other dtypes.

    >>> spence(jnp.array([0.]))
    Array([1.644934], dtype=float32)
    """
    return _composed_spence(single_or_double("spence", x))


_composed_spence = library_function(lambda x: _spence(x), whole=True)

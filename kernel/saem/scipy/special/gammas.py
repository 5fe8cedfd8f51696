"""How are the gamma function, and what is built of it, computed?

Real arguments go through the logarithm of its modulus, an operation of XLA, and its sign; complex
ones through Stirling's series far from the origin, with recurrence and reflection.

Read before: ``special.operands``, ``saem.special.functions``, ``saem.special.incomplete``.
Invariant: the relative error is that of exp(gammaln): the logarithm times the rounding unit.  What
is a ratio of gamma functions is computed by the beta function where that keeps more digits
(tests/kernel/scipy/test_special.py).
Source: DLMF 5.5.1 (recurrence), 5.5.3 (reflection), 5.11.1 (Stirling), 24.2 (Bernoulli numbers);
Hare 1997, "Computing the principal branch of log-gamma".
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes, errors
from saem.core.trace import concrete_or_error
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.numpy.promote import promote_args_inexact, with_rank
from saem.scipy.special.operands import elementwise, refuse_complex
from saem.special.functions import STIRLING_FROM, stirling_rest
from saem.special.incomplete import log_beta
from saem.typing import Array, ArrayLike

# -- the gamma function ----------------------------------------------------------------------------


@elementwise(complex_too=True)
def gammaln(x: ArrayLike) -> Array:
    """Return log|gamma(x)|.

    >>> gammaln(jnp.array([0., 3.]))
    Array([      inf, 0.6931472], dtype=float32)
    """
    return lax.lgamma(x)


def at_pole(x: Array) -> Array:
    """Return where gamma(x) has a pole: at 0, -1, -2, …"""
    return (x <= 0) & (x == jnp.floor(x))


def gamma_sign(x: Array) -> Array:
    """Return the sign of gamma(x), NaN at the poles below 0."""
    down = jnp.floor(x)
    odd = lax.rem(down, lax.full_like(down, 2)) != 0
    below = jnp.where(x == down, np.nan, jnp.where(odd, -1, 1))
    at_zero = jnp.where(jnp.signbit(x), -1, 1).astype(x.dtype)
    return jnp.where(jnp.isnan(x), np.nan, jnp.where(x < 0, below, at_zero))


@elementwise
def gammasgn(x: ArrayLike) -> Array:
    """Return the sign of gamma(x): 1 or -1, NaN at the poles below 0.

    >>> gammasgn(jnp.array([-0.5, 2.]))
    Array([-1.,  1.], dtype=float32)
    """
    return gamma_sign(x)


SHIFTS = 16


def _complex_loggamma(z: Array) -> Array:
    """Return the principal branch: analytic but for a cut along the negative real axis."""
    upper = jnp.where(z.imag < 0, jnp.conj(z), z)
    # Each logarithm below is continuous in the upper half plane; far left they would cancel.
    left = upper.real < -4
    w = jnp.where(left, 1 - upper, upper)
    far, logs = w, jnp.zeros_like(w)
    for _ in range(SHIFTS):
        logs = logs + jnp.log(far)
        far = far + 1
    right = ((far - 0.5) * jnp.log(far) - far + 0.5 * math.log(2 * math.pi) + stirling_rest(far)
             - logs)
    # log sin(pi z) on the branch that is continuous in the upper half plane.
    sine = 0.5j * np.pi - math.log(2) - 1j * np.pi * upper + jnp.log1p(-jnp.exp(2j * np.pi * upper))
    out = jnp.where(left, math.log(math.pi) - sine - right, right)
    return jnp.where(z.imag < 0, jnp.conj(out), out)


@elementwise(complex_too=True)
def loggamma(x: ArrayLike) -> Array:
    """Return the principal branch of log(gamma(x)); NaN for real x ≤ 0.

    >>> loggamma(3.0)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    if dtypes.is_complex(x.dtype):
        return _complex_loggamma(x)
    return jnp.where(x > 0, lax.lgamma(jnp.where(x > 0, x, 1)), np.nan)


@elementwise(complex_too=True)
def gamma(x: ArrayLike) -> Array:
    """Return the gamma function: (x - 1)! for whole x; NaN at its poles but 0.

    >>> gamma(jnp.array([0.5, 5.]))
    Array([ 1.7724539, 24.000002 ], dtype=float32)
    """
    if dtypes.is_complex(x.dtype):
        return jnp.exp(_complex_loggamma(x))
    return gamma_sign(x) * jnp.exp(lax.lgamma(x))


@elementwise
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Return gamma(z + m) / gamma(z), the rising factorial z (z + 1) … (z + m - 1).

    >>> poch(1.0, 4.0)
    Array(24.000011, dtype=float32)
    """
    z, m = jnp.broadcast_arrays(z, m)
    top = z + m
    z_pole, top_pole = (at_pole(x) for x in (z, top))
    # Where both are poles the ratio is that of the reflected functions, with a sign.
    both = z_pole & top_pole
    over = jnp.where(both, 1 - z, top)
    under = jnp.where(both, 1 - top, z)
    # Of a large z the log gammas cancel; their difference is in the beta function of z and m.
    large = (z >= STIRLING_FROM) & (m >= 1e-3)
    z1, m1 = jnp.where(large, z, STIRLING_FROM), jnp.where(large, m, 1)
    rise = jnp.where(large, lax.lgamma(m1) - log_beta(z1, m1), lax.lgamma(over) - lax.lgamma(under))
    ratio = jnp.exp(rise) * gamma_sign(over) * gamma_sign(under)
    odd = lax.rem(jnp.floor(m), lax.full_like(m, 2)) != 0
    ratio = jnp.where(both & odd, -ratio, ratio)
    ratio = jnp.where((m == 0) & ~jnp.isfinite(ratio), 1, ratio)  # the slope by m stays elsewhere
    return jnp.where(z_pole & ~top_pole, 0, ratio)


@elementwise(complex_too=True)
def _factorial(n: Array) -> Array:
    return jnp.where(n < 0, 0, jnp.exp(lax.lgamma(n + 1)))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Return gamma(n + 1), and 0 for n < 0.

    Raises: NotImplementedError for ``exact``: arrays hold no long integers.

    >>> factorial(jnp.array([0., 3.]))
    Array([1., 6.], dtype=float32)
    """
    if exact:
        raise errors.explained(
            NotImplementedError, "factorial.exact", "factorial with exact=True",
            advice="math.factorial gives exact integers.")
    return _factorial(array_argument("factorial", n))


@library_function(static_argnames=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Return in how many ways ``k`` of ``N`` things are chosen; 0 where there is none.

    repetition: a thing may be chosen again.

    >>> comb(5, 2)
    Array(10.000005, dtype=float32, weak_type=True)
    """
    N, k = promote_args_inexact("comb", *array_argument("comb", N, k))
    if repetition:
        N = N + k - 1
    possible = (k >= 0) & (N >= 0) & (k <= N)
    N, k = jnp.where(possible, N, 1), jnp.where(possible, k, 0)
    ways = jnp.exp(-log_beta(k + 1.0, N - k + 1.0)) / (N + 1.0)
    return jnp.where(possible, ways, 0)


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Return the logarithm of the multivariate gamma function of dimension ``d``, a whole number.

    Raises: TypeError if ``d`` is an array; ConcretizationTypeError if it is traced.

    >>> multigammaln(3.0, 1)
    Array(0.6931474, dtype=float32)
    """
    d = concrete_or_error(int, d, "d argument of multigammaln")
    return _multigammaln(a, d)


@library_function(static_argnames=("d",))
def _multigammaln(a, d):
    (a,) = promote_args_inexact("multigammaln", array_argument("multigammaln", a))
    halves = with_rank((np.arange(d) / 2).astype(a.dtype), (d,), a.ndim + 1)
    parts = lax.lgamma(jnp.expand_dims(a, -1) - halves)
    return jnp.sum(parts, -1) + d * (d - 1) / 4 * math.log(math.pi)


# -- beta and incomplete functions -----------------------------------------------------------------


@elementwise(complex_too=True)
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Return log|beta(a, b)|.

    >>> betaln(2.0, 2.0)
    Array(-1.7917594, dtype=float32, weak_type=True)
    """
    return log_beta(*jnp.broadcast_arrays(a, b))


@elementwise
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Return gamma(a) gamma(b) / gamma(a + b).

    >>> beta(2.0, 2.0)
    Array(0.16666652, dtype=float32)
    """
    sign = gamma_sign(a) * gamma_sign(b) * gamma_sign(a + b)
    return sign * jnp.exp(log_beta(*jnp.broadcast_arrays(a, b)))


@elementwise
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized incomplete beta function at x in [0, 1].

    >>> betainc(1.0, 1.0, 0.25)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return lax.betainc(*jnp.broadcast_arrays(a, b, x))


@elementwise(complex_too=True)
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized lower incomplete gamma function.

    >>> gammainc(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.igamma(*jnp.broadcast_arrays(a, x))


@elementwise(complex_too=True)
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized upper incomplete gamma function, 1 - gammainc(a, x).

    >>> gammaincc(1.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.igammac(*jnp.broadcast_arrays(a, x))


# -- derivatives of the logarithm ------------------------------------------------------------------


@elementwise(complex_too=True)
def digamma(x: ArrayLike) -> Array:
    """Return the derivative of gammaln.

    >>> digamma(1.0)
    Array(-0.5772154, dtype=float32, weak_type=True)
    """
    return lax.digamma(x)


@elementwise(complex_too=True)
def _polygamma(n: Array, x: Array) -> Array:
    return lax.polygamma(*jnp.broadcast_arrays(n, x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the n-th derivative of digamma; ``n`` are integers.

    Raises: ValueError if ``n`` are not integers or ``x`` is complex.

    >>> polygamma(1, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    n = array_argument("polygamma", n)
    if not dtypes.is_integer(n.dtype):
        raise errors.explained(
            errors.ArgumentError, "polygamma.C1",
            f"Argument `n` to polygamma must be of integer type. Got dtype {n.dtype}.",
            advice="It counts derivatives.")
    x = array_argument("polygamma", x)
    refuse_complex("polygamma", x)
    return _polygamma(n, x)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Return the Hurwitz zeta function, the sum of (k + q)**-x over k = 0, 1, …

    Raises: NotImplementedError without ``q``.

    >>> zeta(2.0, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    if q is None:
        raise errors.explained(
            NotImplementedError, "zeta.C1", "Riemann zeta function not implemented; pass q != None "
            "to compute the Hurwitz Zeta function.", advice="With q=1 it is Riemann's.")
    return _zeta(x, q)


@elementwise(complex_too=True)
def _zeta(x: Array, q: Array) -> Array:
    return lax.zeta(*jnp.broadcast_arrays(x, q))


def bernoulli(n: int) -> Array:
    """Return the Bernoulli numbers B0, …, Bn, where B1 is -1/2.

    Returns: [n + 1].  Raises: ValueError for negative n.

    >>> bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)
    """
    n = concrete_or_error(operator.index, n, "Argument n of bernoulli")
    if n < 0:
        raise errors.explained(errors.ArgumentError, "bernoulli.C1",
                               "n must be a non-negative integer.", advice=f"Got {n}.")
    return jnp.array([float(b) for b in _bernoulli_numbers(n)])


def _bernoulli_numbers(n: int) -> list[Fraction]:
    """Return B0, …, Bn exactly, each from those before it (DLMF 24.5.3)."""
    found = [Fraction(1)]
    for m in range(1, n + 1):
        if m > 1 and m % 2:
            found.append(Fraction(0))
            continue
        rest = sum((math.comb(m + 1, k) * b for k, b in enumerate(found)), Fraction(0))
        found.append(-rest / (m + 1))
    return found

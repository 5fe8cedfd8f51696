"""How are the normal distribution's probabilities, quantiles and logarithms computed?

By erfc, which keeps its digits in the tail; the quantile by rational functions, and the logarithm
of the tail by an asymptotic series.

Read before: ``special.operands``, ``saem.special.functions``.  Read after: ``scipy.stats``.
Invariant: in both tails the relative error stays that of the dtype
(tests/kernel/scipy/test_special.py).
Source: Wichura 1988, "Algorithm AS 241: The percentage points of the normal distribution"; DLMF
7.12.1 (asymptotic series); Owen 1956, "Tables for computing bivariate normal probabilities".
"""

from __future__ import annotations

import math

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes, errors
from saem.custom_derivatives import custom_jvp
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.numpy.promote import with_rank
from saem.scipy.special.operands import elementwise, horner
from saem.typing import Array, ArrayLike

ROOT_2, ROOT_2PI = math.sqrt(2), math.sqrt(2 * math.pi)
LOG_ROOT_2PI = math.log(2 * math.pi) / 2


@elementwise(complex_too=True)
def erf(x: ArrayLike) -> Array:
    """Return the error function, 2 / sqrt(pi) times the integral of exp(-t²) from 0 to x.

    >>> erf(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.erf(x)


@elementwise(complex_too=True)
def erfc(x: ArrayLike) -> Array:
    """Return 1 - erf(x), with all its digits where it is small.

    >>> erfc(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.erfc(x)


@elementwise(complex_too=True)
def erfinv(x: ArrayLike) -> Array:
    """Return the number whose error function is x; infinite at -1 and 1.

    >>> erfinv(jnp.array([0., 1.]))
    Array([ 0., inf], dtype=float32)
    """
    return lax.erf_inv(x)


def single_or_double(name: str, x: ArrayLike) -> Array:
    """Return ``x`` as an array of float32 or float64.  Raises: TypeError for other dtypes."""
    x = jnp.asarray(x)
    x = lax.convert_element_type(x, x.dtype)  # never weak
    if x.dtype not in (np.float32, np.float64):
        raise errors.explained(
            errors.DTypeError, f"{name}.C1",
            f"x.dtype={x.dtype} is not supported, see docstring for supported types.",
            advice="Convert it first: x.astype('float32').")
    return x


def ndtr(x: ArrayLike) -> Array:
    """Return the probability that a normal number is below x, float32 or float64.

    Raises: TypeError for other dtypes.

    >>> ndtr(0.0)
    Array(0.5, dtype=float32)
    """
    return _ndtr(single_or_double("ndtr", x))


@library_function
def _ndtr(x):
    return 0.5 * lax.erfc(-x * (1 / ROOT_2))


# -- quantiles -------------------------------------------------------------------------------------

# Numerators and denominators, constant first, in the middle, the tails, and far out.
MIDDLE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3))
TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9))
FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15))


def _ratio(polynomials: tuple, x: Array) -> Array:
    top, bottom = polynomials
    return horner(top[::-1], x) / horner(bottom[::-1], x)


@custom_jvp
def _quantile(p: Array) -> Array:
    centred = p - 0.5
    middle = jnp.abs(centred) <= 0.425
    near = jnp.where(middle, centred, 0)
    inner = near * _ratio(MIDDLE, 0.180625 - near * near)
    inside = (p > 0) & (p < 1)
    tail = jnp.where(inside & ~middle, jnp.minimum(p, 1 - p), 0.05)
    r = jnp.sqrt(-jnp.log(tail))
    outer = jnp.where(r <= 5, _ratio(TAIL, r - 1.6), _ratio(FAR, r - 5))
    out = jnp.where(middle, inner, jnp.where(centred < 0, -outer, outer))
    edge = jnp.where(p == 0, -np.inf, jnp.where(p == 1, np.inf, np.nan))
    return jnp.where(inside, out, edge)


_quantile.defjvps(lambda dp, out, p: dp * ROOT_2PI * jnp.exp(out * out / 2))


def ndtri(p: ArrayLike) -> Array:
    """Return the number below which a normal number is with probability p: the inverse of ndtr.

    Raises: TypeError for dtypes but float32 and float64, and for lists.

    >>> ndtri(jnp.array([0., 0.5]))
    Array([-inf,   0.], dtype=float32)
    """
    return _ndtri(single_or_double("ndtri", p if p is None else array_argument("ndtri", p)))


_ndtri = library_function(lambda p: _quantile(p), whole=True)


# -- logarithm -------------------------------------------------------------------------------------

# Below the first the asymptotic series serves, above the second 1 minus the other tail.
SEGMENTS = {32: (-10.0, 5.0), 64: (-20.0, 8.0)}


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Return log(ndtr(x)), exact where ndtr underflows.

    x: float32 or float64.  series_order: the terms of the asymptotic series far below 0, 0 to 30.
    Raises: TypeError for other dtypes or an order that is no int; ValueError for other orders.

    >>> log_ndtr(jnp.array([-100., 100.]))
    Array([-5005.524,    -0.   ], dtype=float32)
    """
    if not isinstance(series_order, int):
        raise errors.explained(errors.ArgumentTypeError, "log_ndtr.C2",
                               "series_order must be a Python integer.", advice="It counts terms.")
    if series_order < 0 or series_order > 30:
        limit = "non-negative" if series_order < 0 else "<= 30"
        raise errors.explained(
            errors.ArgumentError, "log_ndtr.C3", f"series_order must be {limit}.",
            advice="3 is enough for float32.")
    return _log_ndtr(single_or_double("log_ndtr", x), series_order)


def _log_probability(x: Array, order: int) -> Array:
    low, high = SEGMENTS[dtypes.itemsize_bits(x.dtype)]
    above = -_ndtr(-jnp.maximum(x, high))
    inside = jnp.clip(x, low, high)
    # Above 0 the other tail is the smaller, so its digits are the ones to keep.
    between = jnp.where(x > 0, jnp.log1p(-_ndtr(-jnp.maximum(inside, 0))),
                        jnp.log(_ndtr(jnp.minimum(inside, 0))))
    below = jnp.minimum(x, low)
    square = below * below
    # 1 - 1/x² + 1·3/x⁴ - …, times the density over -x.
    series, term = jnp.ones_like(x), jnp.ones_like(x)
    for n in range(1, order + 1):
        term = -term * (2 * n - 1) / square
        series = series + term
    tail = -0.5 * square - jnp.log(-below) - LOG_ROOT_2PI + jnp.log(series)
    return jnp.where(x > high, above, jnp.where(x > low, between, tail))


_ruled_log_probability = custom_jvp(_log_probability, nondiff_argnums=(1,))


@_ruled_log_probability.defjvp
def _log_probability_jvp(order, primals, tangents):
    (x,), (dx,) = primals, tangents
    out = _ruled_log_probability(x, order)
    return out, dx * jnp.exp(-0.5 * x * x - LOG_ROOT_2PI - out)


_log_ndtr = library_function(lambda x, order: _ruled_log_probability(x, order), static_argnums=(1,),
                             whole=True)


# -- two dimensions --------------------------------------------------------------------------------

NODES, WEIGHTS = (half / 2 for half in np.polynomial.legendre.leggauss(48))


@custom_jvp
def _owens_t(h: Array, a: Array) -> Array:
    size, slope = jnp.abs(h), jnp.abs(a)
    # The integral runs over slopes up to 1; steeper ones are exchanged with the other axis.
    steep = slope > 1
    inner = jnp.where(steep, size * slope, size)
    width = jnp.where(steep, 1 / jnp.where(steep, slope, 1), slope)
    nodes, weights = (with_rank(x.astype(h.dtype), x.shape, h.ndim + 1)
                      for x in (NODES + 0.5, WEIGHTS))
    t = width[..., None] * nodes
    square = 1 + t * t
    kernel = jnp.exp(-0.5 * inner[..., None] ** 2 * square) / square
    flat = width / (2 * np.pi) * jnp.sum(kernel * weights, -1)
    near, far = lax.erfc(size / ROOT_2), lax.erfc(inner / ROOT_2)
    # ½Φ(h) + ½Φ(ah) - Φ(h)Φ(ah), written with tails.
    exchanged = 0.25 * (near + far) - 0.25 * near * far - flat
    out = jnp.where(steep, exchanged, flat)
    out = jnp.where(jnp.isinf(size), 0, jnp.where(jnp.isinf(slope), 0.25 * near, out))
    out = jnp.where(a < 0, -out, out)
    return jnp.where(jnp.isnan(a), a, out)


_owens_t.defjvps(
    lambda dh, out, h, a: dh * -lax.erf(a * h / ROOT_2) * jnp.exp(-h * h / 2) / (2 * ROOT_2PI),
    lambda da, out, h, a: da * jnp.exp(-h * h * (1 + a * a) / 2) / (2 * np.pi * (1 + a * a)))


@elementwise(wide=True)
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Return Owen's T: the probability that X > h and 0 < Y < a X for normal X and Y.

    The result has the default floating dtype.

    >>> owens_t(0.0, 1.0)
    Array(0.125, dtype=float32)
    """
    return _owens_t(*jnp.broadcast_arrays(h, a))



"""How do uniform numbers become other distributions?

Mostly by inversion: a number uniform over (0, 1) is put through the inverse of a cumulative
distribution.  The normal is the square root of two times the inverse error function.

Read before: ``random.basic``.  Read after: ``random.discrete``.
Invariant: same key, shape and dtype give the numbers of JAX (test_random.py).
Source: Devroye 1986, "Non-Uniform Random Variate Generation", chapter II.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import saem.numpy as jnp
from saem import lax
from saem.core import dtypes
from saem.core.avals import aval_of
from saem.numpy.promote import check_arraylike
from saem.ops.linear import literal
from saem.random.basic import mode_of_gumbel, signs, standard, two_keys, unit_interval
from saem.random.keys import (
    as_dtype,
    as_shape,
    check_parameters,
    drawn,
    float_dtype,
    joined_shape,
    placed,
    takes_any_key,
    used,
)
from saem.typing import Array, ArrayLike, DTypeLike, Shape


def least_normal(dtype: Any) -> Any:
    """Return the smallest positive normal number of ``dtype``."""
    return literal(dtypes.finfo(dtype).smallest_normal, dtype)


def above_minus_one(dtype: Any) -> Any:
    """Return the number next to -1, towards 0."""
    return literal(-1 + float(dtypes.finfo(dtype).epsneg), dtype)


def constant_like(x: Any, value: float) -> Any:
    """Return ``value`` as a scalar of the dtype of ``x``."""
    return literal(value, aval_of(x).dtype)


def to_rank_of(x: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return a parameter of a distribution in ``dtype``, stretchable over ``shape``."""
    return lax.broadcast_to_rank(lax.convert_element_type(x, dtype), len(shape))


# -- normal ----------------------------------------------------------------------------------------


def standard_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return normal numbers of mean 0 and variance 1, of typed ``key``."""
    if dtypes.is_complex(dtype):
        part = dtypes.real_dtype(dtype)
        real, imag = (lax.convert_element_type(standard_normal(k, shape, part), dtype)
                      for k in two_keys(key))
        both = lax.add(real, lax.mul(literal(1j, dtype), imag))
        return lax.div(both, literal(np.asarray(np.sqrt(2), part), dtype))
    even = unit_interval(key, shape, dtype, above_minus_one(dtype), literal(1, dtype))
    return lax.mul(literal(np.sqrt(2), dtype), lax.erf_inv(even))


_normal = takes_any_key(2, same_rounding=True, called="normal")(standard_normal)


def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
           out_sharding: Any = None) -> Array:
    """Return normal numbers of mean 0 and variance 1 (of the modulus, if complex).

    The same key gives the same numbers; ``split`` it for others.

    Raises: ValueError for a dtype that is neither float nor complex.

    >>> jax.random.normal(jax.random.key(0), (3,))
    Array([ 1.6226422 ,  2.0252647 , -0.43359444], dtype=float32)
    """
    if out_sharding is not None:
        return placed(normal, out_sharding, key, shape, dtype)
    dtype = as_dtype("normal", dtype, float, dtypes.is_inexact, "a float or complex")
    used(key)
    return _normal(key, as_shape(shape), dtype)


@takes_any_key(2)
def _truncated_normal(key, shape, dtype, lower, upper):
    lower, upper = (to_rank_of(x, shape, dtype) for x in (lower, upper))
    root = literal(np.sqrt(2), dtype)
    low, high = (lax.erf(lax.div(x, root)) for x in (lower, upper))
    out = lax.mul(root, lax.erf_inv(unit_interval(key, shape, dtype, low, high)))
    # Rounding must not reach the bounds.
    floor = lax.nextafter(lax.stop_gradient(lower), lax.full_like(lower, np.inf))
    ceiling = lax.nextafter(lax.stop_gradient(upper), lax.full_like(upper, -np.inf))
    return lax.min(ceiling, lax.max(floor, out))


def truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Shape | None = None,
                     dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return normal numbers given that they are between ``lower`` and ``upper``.

    Raises: ValueError for a dtype that is not float, or bounds that do not broadcast to shape.

    >>> jax.random.truncated_normal(jax.random.key(0), -1., 1., (2,))
    Array([0.8618594, 0.9412883], dtype=float32)
    """
    if out_sharding is not None:
        return placed(truncated_normal, out_sharding, key, lower, upper, shape, dtype)
    dtype = float_dtype("truncated_normal", dtype)
    shape = joined_shape("truncated_normal", shape, lower, upper)
    used(key)
    return _truncated_normal(key, shape, dtype, lower, upper)


def lognormal(key: ArrayLike, sigma: ArrayLike = np.float32(1.0), shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return exponentials of normal numbers of deviation ``sigma``.

    >>> jax.random.lognormal(jax.random.key(0), 1., (2,))
    Array([5.066459, 7.578117], dtype=float32)
    """
    if out_sharding is not None:
        return placed(lognormal, out_sharding, key, sigma, shape, dtype)
    dtype = as_dtype("lognormal", dtype, float, dtypes.is_inexact, "a float or complex")
    check_parameters("lognormal", dtype, sigma)
    shape = joined_shape("lognormal", shape, sigma)
    used(key)
    return _lognormal(key, shape, dtype, sigma)


@takes_any_key(2)
def _lognormal(key, shape, dtype, sigma):
    return lax.exp(lax.mul(standard_normal(key, shape, dtype), to_rank_of(sigma, shape, dtype)))


def standard_maxwell(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return lengths of vectors of three normal numbers, of typed ``key``."""
    corners = standard_normal(key, (*shape, 3), dtype)
    return lax.sqrt(lax.reduce_sum(lax.mul(corners, corners), (len(shape),)))


_maxwell = takes_any_key(2, called="maxwell")(standard_maxwell)


def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
            out_sharding: Any = None) -> Array:
    """Return lengths of vectors of three normal numbers.

    >>> jax.random.maxwell(jax.random.key(0), (2,)).shape
    (2,)
    """
    return drawn(maxwell, _maxwell, key, shape, dtype, out_sharding)


@takes_any_key(2)
def _double_sided_maxwell(key, shape, dtype, loc, scale):
    first, second = two_keys(key)
    sided = lax.mul(signs(second, shape, dtype), standard_maxwell(first, shape, dtype))
    return sided * jnp.asarray(scale) + jnp.asarray(loc)


def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (),
                         dtype: DTypeLike | None = None) -> Array:
    """Return Maxwell numbers of either sign, times ``scale``, plus ``loc``.

    The shape is ``shape`` followed by what those of ``loc`` and ``scale`` broadcast to; for an
    empty ``shape`` the latter comes twice, as in JAX.

    >>> jax.random.double_sided_maxwell(jax.random.key(0), 0., 1., (2,)).shape
    (2,)
    """
    dtype = float_dtype("double_sided_maxwell", dtype)
    together = joined_shape("double_sided_maxwell", None, loc, scale)
    shape = (*(as_shape(shape) or together), *together)
    used(key)
    return _double_sided_maxwell(key, shape, dtype, loc, scale)


# -- exponential and related functions ------------------------------------------------------------


def standard_exponential(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return exponential numbers of mean 1, of typed ``key``."""
    return lax.neg(lax.log1p(lax.neg(standard(key, shape, dtype))))


_exponential = takes_any_key(2, called="exponential")(standard_exponential)


def exponential(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
                out_sharding: Any = None) -> Array:
    """Return exponential numbers of mean 1.

    >>> jax.random.exponential(jax.random.key(0), (2,))
    Array([2.950128 , 3.8434246], dtype=float32)
    """
    return drawn(exponential, _exponential, key, shape, dtype, out_sharding)


@takes_any_key(2)
def _laplace(key, shape, dtype):
    even = unit_interval(key, shape, dtype, above_minus_one(dtype), literal(1, dtype))
    return lax.mul(lax.sign(even), lax.log1p(lax.neg(lax.abs(even))))


def laplace(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
            out_sharding: Any = None) -> Array:
    """Return Laplace numbers: exponential ones of either sign.

    >>> jax.random.laplace(jax.random.key(0), (2,))
    Array([-2.2569816, -3.1502788], dtype=float32)
    """
    return drawn(laplace, _laplace, key, shape, dtype, out_sharding)


@takes_any_key(2)
def _logistic(key, shape, dtype):
    even = unit_interval(key, shape, dtype, least_normal(dtype), literal(1, dtype))
    return lax.sub(lax.log(even), lax.log1p(lax.neg(even)))


def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
             out_sharding: Any = None) -> Array:
    """Return logistic numbers: logarithms of odds.

    >>> jax.random.logistic(jax.random.key(0), (2,))
    Array([2.896376 , 3.8217716], dtype=float32)
    """
    return drawn(logistic, _logistic, key, shape, dtype, out_sharding)


@takes_any_key(2)
def _cauchy(key, shape, dtype):
    even = unit_interval(key, shape, dtype, literal(dtypes.finfo(dtype).eps, dtype),
                         literal(1, dtype))
    turned = lax.sub(even, literal(0.5, dtype))
    return lax.tan(lax.mul(literal(np.pi, dtype), turned))


def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
           out_sharding: Any = None) -> Array:
    """Return Cauchy numbers: tangents of a uniform angle.

    >>> jax.random.cauchy(jax.random.key(0), (2,)).shape
    (2,)
    """
    return drawn(cauchy, _cauchy, key, shape, dtype, out_sharding)


def standard_gumbel(key: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    """Return Gumbel numbers of typed ``key``; adding them to logits makes argmax a sample."""
    if mode != "high":
        even = unit_interval(key, shape, dtype, least_normal(dtype), literal(1, dtype))
        return lax.neg(lax.log(lax.neg(lax.log(even))))
    both = standard(key, (2, *shape), dtype)
    first, second = (lax.squeeze(lax.slice_in_dim(both, i, i + 1, axis=0), (0,)) for i in (0, 1))
    fine = lax.mul(literal(dtypes.finfo(dtype).eps, dtype), second)
    filled = lax.add(lax.add(first, fine), least_normal(dtype))
    even = lax.select_n(lax.ge(first, literal(0.5, dtype)), filled, first)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(even)))))


_gumbel = takes_any_key(3, called="gumbel")(standard_gumbel)


def gumbel(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None,
           mode: str | None = None, *, out_sharding: Any = None) -> Array:
    """Return Gumbel numbers; ``mode`` 'high' is exact in the tails.

    Raises: ValueError for an unknown mode or a dtype that is not float.

    >>> jax.random.gumbel(jax.random.key(0), (2,))
    Array([2.9233725, 3.8326178], dtype=float32)
    """
    if out_sharding is not None:
        return placed(gumbel, out_sharding, key, shape, dtype, mode)
    mode = mode_of_gumbel("gumbel", mode)
    dtype = float_dtype("gumbel", dtype)
    used(key)
    return _gumbel(key, as_shape(shape), dtype, mode)


@takes_any_key(2)
def _pareto(key, shape, dtype, b):
    return lax.exp(lax.div(standard_exponential(key, shape, dtype), to_rank_of(b, shape, dtype)))


def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None,
           *, out_sharding: Any = None) -> Array:
    """Return Pareto numbers of shape parameter ``b``.

    >>> jax.random.pareto(jax.random.key(0), 2., (2,)).shape
    (2,)
    """
    return drawn(pareto, _pareto, key, shape, dtype, out_sharding, b)


@takes_any_key(2)
def _weibull_min(key, shape, dtype, scale, concentration):
    even = standard(key, shape, dtype)
    base = lax.neg(lax.log1p(lax.neg(even)))
    concentration = jnp.asarray(concentration)
    # A floating concentration is inverted in its own precision.
    one = 1 if dtypes.is_inexact(concentration.dtype) else constant_like(base, 1)
    power = one / concentration
    return base ** power * jnp.asarray(scale)


def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (),
                dtype: DTypeLike | None = None) -> Array:
    """Return Weibull numbers of ``scale`` and ``concentration``.

    One number is drawn for each place of ``shape``, then stretched over the parameters.

    >>> jax.random.weibull_min(jax.random.key(0), 1., 2., (2,)).shape
    (2,)
    """
    check_arraylike("weibull_min", scale, concentration)
    dtype, shape = float_dtype("weibull_min", dtype), as_shape(shape)
    used(key)
    return _weibull_min(key, shape, dtype, scale, concentration)


@takes_any_key(2)
def _rayleigh(key, shape, dtype, scale):
    even = standard(key, shape, dtype)
    tail = lax.mul(lax.log(even), literal(-2, dtype))
    return lax.mul(to_rank_of(scale, shape, dtype), lax.sqrt(tail))


def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return Rayleigh numbers of ``scale``: lengths of vectors of two normal numbers.

    >>> jax.random.rayleigh(jax.random.key(0), 1., (2,)).shape
    (2,)
    """
    return drawn(rayleigh, _rayleigh, key, shape, dtype, out_sharding, scale)


@takes_any_key(2)
def _triangular(key, shape, dtype, left, mode, right):
    left, mode, right = (to_rank_of(x, shape, dtype) for x in (left, mode, right))
    peak = lax.div(lax.sub(mode, left), lax.sub(right, left))
    even = standard(key, shape, dtype)
    width = lax.sub(right, left)
    up = lax.add(left, lax.sqrt(lax.mul(lax.mul(even, width), lax.sub(mode, left))))
    rest = lax.mul(lax.mul(lax.sub(literal(1, dtype), even), width), lax.sub(right, mode))
    down = lax.sub(right, lax.sqrt(rest))
    return lax.select_n(lax.lt(even, peak), down, up)


def triangular(key: ArrayLike, left: ArrayLike, mode: ArrayLike, right: ArrayLike,
               shape: Shape | None = None, dtype: DTypeLike | None = None, *,
               out_sharding: Any = None) -> Array:
    """Return numbers between ``left`` and ``right``, most of them near ``mode``.

    >>> jax.random.triangular(jax.random.key(0), 0., 0.5, 1., (2,)).shape
    (2,)
    """
    return drawn(triangular, _triangular, key, shape, dtype, out_sharding, left, mode, right)


@takes_any_key(2)
def _wald(key, shape, dtype, mean):
    first, second = two_keys(key)
    mean = to_rank_of(mean, shape, dtype)
    mean = lax.broadcast_in_dim(mean, shape, tuple(range(len(shape))))
    squares = lax.integer_pow(standard_normal(first, shape, dtype), 2)
    even = standard(second, shape, dtype)
    mean_squared = lax.integer_pow(mean, 2)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(literal(4, dtype), mean), squares),
                            lax.mul(mean_squared, lax.integer_pow(squares, 2))))
    middle = lax.add(mean, lax.div(lax.mul(mean_squared, squares), literal(2, dtype)))
    x = lax.sub(middle, lax.mul(lax.div(mean, literal(2, dtype)), root))
    inside = lax.le(even, lax.div(mean, lax.add(mean, x)))
    return lax.select_n(inside, lax.div(mean_squared, x), x)


def wald(key: ArrayLike, mean: ArrayLike, shape: Shape | None = None,
         dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return Wald (inverse Gaussian) numbers of ``mean`` and scale 1.

    Source: Michael, Schucany, Haas 1976, "Generating random variates using transformations with
    multiple roots".

    >>> jax.random.wald(jax.random.key(0), 1., (2,)).shape
    (2,)
    """
    return drawn(wald, _wald, key, shape, dtype, out_sharding, mean)

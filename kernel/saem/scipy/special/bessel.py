"""How are Bessel functions and spherical harmonics computed?

The modified functions are operations of XLA or short formulas; those of the first kind come from
their recurrence run downwards, harmonics from the recurrence of Legendre functions run upwards,
each in the direction in which errors do not grow.

Read before: ``special.operands``, ``saem.special.functions``.
Invariant: rows 0 … v of ``bessel_jn`` satisfy J0 + 2 J2 + 2 J4 + … = 1; harmonics are orthonormal
(tests/kernel/scipy/test_special.py).
Source: DLMF 3.6 and 10.74 (Miller's algorithm), 10.12.4 (normalization), 14.10.3 and 14.30.1
(harmonics).
"""

from __future__ import annotations

import operator

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import errors
from saem.core.avals import aval_of
from saem.core.trace import concrete_or_error
from saem.jit.library import library_function
from saem.scipy.special.operands import elementwise, floats
from saem.typing import Array, ArrayLike


@elementwise(complex_too=True)
def i0e(x: ArrayLike) -> Array:
    """Return exp(-|x|) times the modified Bessel function of order 0.

    >>> i0e(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.bessel_i0e(x)


@elementwise(complex_too=True)
def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function of order 0.

    >>> i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return jnp.exp(jnp.abs(x)) * lax.bessel_i0e(x)


@elementwise(complex_too=True)
def i1e(x: ArrayLike) -> Array:
    """Return exp(-|x|) times the modified Bessel function of order 1.

    >>> i1e(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.bessel_i1e(x)


@elementwise(complex_too=True)
def i1(x: ArrayLike) -> Array:
    """Return the modified Bessel function of order 1.

    >>> i1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return jnp.exp(jnp.abs(x)) * lax.bessel_i1e(x)


@library_function(static_argnames=("v", "n_iter"), whole=True)
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Return the Bessel functions of the first kind of orders 0, …, v at z.

    n_iter: the order at which the recurrence starts, above v and |z|.
    Returns: [v + 1, *z.shape].  Raises: TypeError if v is no int.

    >>> bessel_jn(jnp.array([0., 1.]), v=1)
    Array([[1.        , 0.76519775],
           [0.        , 0.44005063]], dtype=float32)
    """
    v = concrete_or_error(operator.index, v, "Argument v of bessel_jn.")
    (z,) = floats("bessel_jn", z)
    flat = z == 0
    safe = jnp.where(flat, 1, z)

    def down(carry, order):
        above, here, total = carry
        below = 2 * order.astype(z.dtype) / safe * here - above
        # Orders grow fast downwards: what has become large is scaled, and all that came before.
        scale = jnp.where(jnp.abs(below) > 1e8, 1 / jnp.abs(below), 1)
        below, here, total = below * scale, here * scale, total * scale
        even = (order - 1) % 2 == 0
        total = total + jnp.where(even, jnp.where(order == 1, below, 2 * below), 0)
        return (here, below, total), (below, scale)

    zero = jnp.zeros_like(z)
    start = (zero, zero + np.asarray(1e-6, z.dtype), zero)
    (_, _, total), (rows, scales) = lax.scan(down, start, jnp.arange(n_iter, 0, -1))
    # The last row is order 0; a row carries the scales of all later ones.
    later = lax.cumprod(scales, axis=0, reverse=True) / scales
    orders = (rows * later / total[None])[::-1][:v + 1]
    if v + 1 > n_iter:
        orders = jnp.concatenate([orders, jnp.zeros((v + 1 - n_iter, *z.shape), z.dtype)])
    first = jnp.arange(v + 1).reshape(-1, *[1] * z.ndim) == 0
    return jnp.where(flat[None], jnp.where(first, 1, 0), orders)


def sph_harm_y(n: Array, m: Array, theta: Array, phi: Array, diff_n: int | None = None,
               n_max: int | None = None) -> Array:
    """Return the spherical harmonics of degree n and order m, elementwise.

    theta: polar angle in [0, pi].  phi: azimuth in [0, 2 pi].
    n_max: the largest degree, taken from ``n`` if None; elements of a larger degree are NaN.
    Returns: complex.  Raises: NotImplementedError for ``diff_n``.

    >>> sph_harm_y(jnp.array([0]), jnp.array([0]), jnp.array([0.5]), jnp.array([0.5]))
    Array([0.2820948+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise errors.explained(
            NotImplementedError, "sph_harm_y.diff_n",
            "The 'diff_n' argument to jax.scipy.special.sph_harm_y is not supported.",
            advice="Use jax.jvp in theta and phi.")
    if n_max is None:
        n_max = int(np.max(concrete_or_error(
            np.asarray, n, "The `n_max` argument of `jnp.scipy.special.sph_harm_y` must be "
            "statically specified to use `sph_harm_y` within JAX transformations.")))
    return _harmonics(jnp.asarray(n), jnp.asarray(m), theta, phi, operator.index(n_max))


@library_function(static_argnums=(4,), whole=True)
def _harmonics(n, m, theta, phi, n_max):
    theta, phi = floats("sph_harm_y", theta, phi)
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    dtype, order = aval_of(theta).dtype, jnp.abs(m)
    x, s = jnp.cos(theta), jnp.sin(theta)
    # Order m, degree m: a product of m factors, with the phase of Condon and Shortley.
    here = jnp.full_like(theta, np.sqrt(1 / (4 * np.pi)))
    for k in range(1, n_max + 1):
        factor = np.asarray(-np.sqrt((2 * k + 1) / (2 * k)), dtype)
        here = jnp.where(k <= order, here * factor * s, here)
    below, mm = jnp.zeros_like(here), order.astype(dtype)
    for degree in range(1, n_max + 1):
        climbs = (degree > order) & (degree <= n)
        square = jnp.where(climbs, degree * degree - mm * mm, 1)
        a = jnp.sqrt((4 * degree * degree - 1) / square)
        b = jnp.sqrt(jnp.maximum(((degree - 1) ** 2 - mm * mm) * (2 * degree + 1)
                                 / (square * max(2 * degree - 3, 1)), 0))
        # The root is no function to differentiate, and theta is not under it.
        above = a * x * here - b * below
        below, here = jnp.where(climbs, here, below), jnp.where(climbs, above, here)
    angle = mm * phi
    out = lax.complex(here * jnp.cos(angle), here * jnp.sin(angle))
    odd = order % 2 == 1
    negative = jnp.where(odd, -jnp.conj(out), jnp.conj(out))
    out = jnp.where(m < 0, negative, out)
    valid = (order <= n) & (n <= n_max)
    return jnp.where(valid, out, jnp.where(n <= n_max, 0, np.nan))

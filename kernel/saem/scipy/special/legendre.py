"""How are tables of associated Legendre functions computed?

For one order m they obey a recurrence in the degree, which starts at degree m with a product; all
orders climb together.  With Condon and Shortley's phase P(m, l) is (-s)^m times the m-th derivative
of the Legendre polynomial of degree l, where s is the root of 1 - z^2.

Read before: ``scipy.special.operands``.
Invariant: values are those of SciPy's ``lpmv``, tables those of JAX
(tests/kernel/scipy/test_legendre.py).
Source: DLMF 14.10.3 (the recurrence) and 14.7.10; observed behaviour of jax.scipy.special.lpmn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem._jaxlib import Array
from saem.core import errors
from saem.core.avals import aval_of
from saem.jit.library import library_function


def lpmn(m: int, n: int, z: Array) -> tuple[Array, Array]:
    """Return the associated Legendre functions of all orders and degrees to m = n, and derivatives.

    z: float32 or float64, of rank 1.  Returns: two arrays of shape (m + 1, n + 1, len(z)), zero
    where the order is larger than the degree.
    Raises: NotImplementedError if m is not n; TypeError or ValueError for another z; ValueError if
    n is negative.
    """
    return _with_derivatives(_checked(m, n, z), z)


def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Array:
    """Return the associated Legendre functions of all orders and degrees to m = n.

    z: float32 or float64, of rank 1.  With ``is_normalized`` each is scaled as spherical harmonics
    are, whose squares have the integral one over the sphere.  Returns: shape (m + 1, n + 1,
    len(z)), zero where the order is larger than the degree.
    Raises: NotImplementedError if m is not n; TypeError or ValueError for another z; ValueError if
    n is negative.
    """
    return _values(_checked(m, n, z), bool(is_normalized), z)


def _checked(m: int, n: int, z: Any) -> int:
    aval = aval_of(z)
    if aval.dtype.name not in ("float32", "float64"):
        raise errors.explained(
            errors.DTypeError, "lpmn.C1", f"z.dtype={aval.dtype} is not supported.",
            advice="Convert z to float32 or float64 with z.astype(jnp.float32).")
    if len(aval.shape) != 1:
        raise errors.explained(
            errors.ArgumentError, "lpmn.C2", f"z must be a 1D array, got shape {aval.shape}.",
            advice="Pass z.ravel().")
    if m != n:
        raise errors.explained(
            NotImplementedError, "lpmn.C3",
            f"Computations for m!=n are not yet supported, got m={m} and n={n}.",
            advice="Ask for the larger of both, and slice the table.")
    if n < 0:
        raise errors.explained(
            errors.ArgumentError, "lpmn.C4", f"The largest degree must not be negative, got n={n}.",
            advice="With n=0 the table has one function, the constant.")
    return int(n)


def _climb(z: Array, start: Array, a: np.ndarray, b: np.ndarray) -> Array:
    """Return the table [order, degree, point] of y(l) = a(l) z y(l - 1) - b(l) y(l - 2).

    ``start[m]`` is y(m) of order m, and y is zero at smaller degrees; the coefficients are tables
    [degree, order].
    """
    dtype = aval_of(z).dtype
    orders = np.arange(a.shape[1])

    def step(rows: tuple, table: tuple) -> tuple:
        row, below = rows
        degree, a_row, b_row = table
        here = a_row[:, None] * z * row - b_row[:, None] * below
        here = jnp.where(orders[:, None] == degree, start, here)
        return (here, row), here

    zeros = jnp.zeros_like(start)
    tables = np.arange(a.shape[0]), np.asarray(a, dtype), np.asarray(b, dtype)
    return lax.scan(step, (zeros, zeros), tables)[1].swapaxes(0, 1)


def _below_degree(degrees: int, orders: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return degree, order (1 and 0 where it is not smaller than the degree), and where it is."""
    degree, order = np.ogrid[:degrees, :orders]
    below = order < degree
    return np.where(below, degree, 1.0), np.where(below, order, 0.0), below


@library_function(static_argnums=(0, 1), whole=True)
def _values(n, is_normalized, z):
    k = np.arange(1, n + 1)
    l, m, below = _below_degree(n + 1, n + 1)
    if is_normalized:
        first, factors = np.sqrt(0.25 / np.pi), np.sqrt((2 * k + 1) / (2 * k))
        a = np.sqrt((4 * l**2 - 1) / (l**2 - m**2))
        b = a * np.sqrt(np.maximum((l - 1)**2 - m**2, 0) / np.abs(4 * (l - 1)**2 - 1))
    else:
        first, factors = 1.0, 2 * k - 1
        a, b = (2 * l - 1) / (l - m), (l + m - 1) / (l - m)
    dtype = aval_of(z).dtype
    s = jnp.sqrt(1 - z * z)
    start = jnp.concatenate([jnp.full_like(z, first)[None],
                             -np.asarray(factors, dtype)[:, None] * s[None]])
    return _climb(z, jnp.cumprod(start, 0), a * below, b * below)


@library_function(static_argnums=(0,))
def _with_derivatives(n, z):
    dtype = aval_of(z).dtype
    l, m, below = _below_degree(n + 1, n + 2)
    a, b = (2 * l - 1) / (l - m), (l + m - 1) / (l - m)
    # Derivatives of the polynomials, of one order more than is returned.
    start = np.cumprod(np.concatenate([[1.0], 2.0 * np.arange(1, n + 2) - 1]))
    start = jnp.broadcast_to(np.asarray(start, dtype)[:, None], (n + 2, *z.shape))
    table = _climb(z, start, a * below, b * below)
    order = np.arange(n + 1)[:, None, None]
    sign = np.asarray((-1.0)**order, dtype)
    s = jnp.sqrt(1 - z * z)
    power = jnp.concatenate([jnp.ones_like(z)[None], jnp.cumprod(
        jnp.broadcast_to(s, (n, *z.shape)), 0)])[:, None]
    less = jnp.concatenate([jnp.zeros_like(power[:1]), 1 / s[None, None], power[:-2]])[:n + 1]
    slope = power * table[1:] - np.asarray(order, dtype) * z * less * table[:-1]
    inside = order <= np.arange(n + 1)[None, :, None]
    return jnp.where(inside, sign * power * table[:-1], 0), jnp.where(inside, sign * slope, 0)

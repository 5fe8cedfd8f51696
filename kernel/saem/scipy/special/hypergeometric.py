"""How are hypergeometric series summed?

Term by term until a term no longer counts, after a transformation that brings the argument to where
the series converges and its terms have one sign.

Read before: ``special.operands``.
Invariant: derivatives of every order and by every parameter exist in both modes; values agree with
SciPy's where the series converges (tests/kernel/scipy/test_special.py).
Source: DLMF 13.2.2, 13.2.39 (Kummer); 15.2.1, 15.8.1 (Pfaff), 15.8.4 (near 1), 15.4.20 (Gauss).
"""

from __future__ import annotations

import functools
import operator

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core.avals import aval_of
from saem.core.dtypes import finfo
from saem.jit.library import library_function
from saem.numpy.promote import promote_args_inexact
from saem.scipy.special.gammas import at_pole, gamma_sign
from saem.scipy.special.operands import by_partials, refuse_complex
from saem.typing import Array, ArrayLike

TERMS = 20_000


def summed(x: Array, above: tuple[Array, ...], below: tuple[Array, ...], active: Array) -> Array:
    """Return 1 + sum of the products of (above + k) / (below + k) x / (k + 1), where ``active``."""
    # Derivatives by parameters converge a little later than the sum: go beyond its last digit.
    enough = 1e-3 * float(finfo(aval_of(x).dtype).eps)

    def unfinished(state):
        k, _, _, more = state
        return jnp.any(more) & (k < TERMS)

    def step(state):
        k, term, total, _ = state
        for a in above:
            term = term * (a + k)
        for b in below:
            bottom = b + k
            # A whole negative parameter above ends the series before one below has its pole.
            term = jnp.where(term == 0, 0, term / jnp.where((term == 0) & (bottom == 0), 1, bottom))
        term = term * x / (k + 1)
        total = total + term
        return k + 1, term, total, active & (jnp.abs(term) > enough * jnp.abs(total)) \
            & jnp.isfinite(total)

    one = jnp.ones_like(x)
    start = (jnp.zeros((), aval_of(x).dtype), one, one, active)
    return lax.while_loop(unfinished, step, start)[2]


def _hyp1f1(a: Array, b: Array, x: Array) -> Array:
    # For x < 0 terms alternate; Kummer's transformation gives them one sign.
    negative = x < 0
    total = summed(jnp.abs(x), (jnp.where(negative, b - a, a),), (b,), jnp.isfinite(x))
    out = jnp.where(negative, jnp.exp(jnp.minimum(x, 0)) * total, total)
    pole = at_pole(b) & ~(at_pole(a) & (a >= b))
    return jnp.where(jnp.isnan(a + b + x), np.nan, jnp.where(pole, np.inf, out))


_ruled_hyp1f1 = by_partials(_hyp1f1)


@library_function(whole=True)
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return Kummer's function, the sum of (a)_k / (b)_k x**k / k!.

    >>> hyp1f1(1.0, 1.0, 0.0)
    Array(1., dtype=float32)
    """
    a, b, x = promote_args_inexact("hyp1f1", *map(jnp.asarray, (a, b, x)))
    refuse_complex("hyp1f1", x)
    return _ruled_hyp1f1(*jnp.broadcast_arrays(a, b, x))


def _gamma_ratio(above: tuple[Array, ...], below: tuple[Array, ...]) -> Array:
    """Return the product of gamma functions ``above`` over that of those ``below``; 0 at a pole."""
    logs = sum(map(lax.lgamma, above)) - sum(map(lax.lgamma, below))
    poles = functools.reduce(operator.or_, map(at_pole, below))
    signs = 1
    for x in (*above, *below):
        signs = signs * jnp.where(at_pole(x), 1, gamma_sign(x))
    return jnp.where(poles, 0, signs * jnp.exp(jnp.where(poles, 0, logs)))


def _hyp2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    # A parameter above that is 0, -1, … ends the series: it is a polynomial, whatever x is.
    ends = at_pole(a) | at_pole(b)
    inside = jnp.isfinite(x) & ((x < 1) | ends)
    # Pfaff's transformation brings x < -1/2 into (1/3, 1).
    left = (x < -0.5) & ~ends
    y = jnp.where(left, x / jnp.where(left, x - 1, 1), x)
    second = jnp.where(left, c - b, b)
    gap = c - a - second
    # Near 1 two series in 1 - y are shorter, unless their factors have a pole: whole c - a - b.
    whole_gap = jnp.abs(gap - jnp.round(gap)) < 1e-3
    near_one = inside & ~ends & (y > 0.75) & ~whole_gap
    rest = jnp.where(near_one, 1 - y, 0)
    plain = summed(jnp.where(inside & ~near_one, y, 0), (a, second), (c,), inside & ~near_one)
    safe_gap = jnp.where(near_one, gap, 0.5)
    first = _gamma_ratio((c, safe_gap), (c - a, c - second)) * summed(
        rest, (a, second), (1 - safe_gap,), near_one)
    other = _gamma_ratio((c, -safe_gap), (a, second)) * summed(
        rest, (c - a, c - second), (1 + safe_gap,), near_one)
    close = first + jnp.where(near_one, rest, 1) ** safe_gap * other
    out = jnp.where(near_one, close, plain)
    out = jnp.where(left, jnp.where(left, 1 - x, 1) ** -a * out, out)
    at_one = jnp.where(c - a - b > 0, _gamma_ratio((c, c - a - b), (c - a, c - b)), np.inf)
    return jnp.where(inside, out, jnp.where((x == 1) & ~jnp.isnan(a + b + c), at_one, np.nan))


_ruled_hyp2f1 = by_partials(_hyp2f1)


@library_function(whole=True)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Return Gauss's function, the sum of (a)_k (b)_k / (c)_k x**k / k!, for x ≤ 1.

    >>> hyp2f1(1.0, 1.0, 2.0, 0.0)
    Array(1., dtype=float32)
    """
    a, b, c, x = promote_args_inexact("hyp2f1", *map(jnp.asarray, (a, b, c, x)))
    refuse_complex("hyp2f1", x, TypeError)
    return _ruled_hyp2f1(*jnp.broadcast_arrays(a, b, c, x))

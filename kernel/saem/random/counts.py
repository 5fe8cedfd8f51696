"""How are counts made: Poisson, binomial and multinomial?

Small ones by waiting times: how many uniform numbers until their logarithms sum to too much.  Large
ones by rejection from a hat over the transformed distribution.  Both are made for every element,
each with harmless parameters where the other serves, and one is chosen: so both may draw from
one key, of which one has a clone.

Read before: ``random.gamma``.  Read after: nothing.
Invariant: same key gives the counts of JAX (tests/kernel/test_random_rejection.py).
Source: Hörmann 1993, "The transformed rejection method for generating Poisson random variables"
and "The generation of binomial random variates"; Knuth, TAOCP volume 2, 3.4.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saem import lax
from saem.core import dtypes, errors
from saem.core.avals import aval_of, kept
from saem.core.dimensions import unwrapped
from saem.numpy.promote import join_types
from saem.numpy.selection import clip
from saem.ops.keys import THREEFRY
from saem.ops.linear import literal
from saem.ops.random_bits import random_clone, random_split
from saem.random.basic import standard, two_keys
from saem.random.continuous import to_rank_of
from saem.random.discrete import take
from saem.random.gamma import keys_of
from saem.random.keys import (
    as_dtype,
    float_dtype,
    generator,
    joined_shape,
    key_impl,
    placed,
    takes_any_key,
    used,
)
from saem.typing import Array, ArrayLike, DTypeLike, Shape

# What Stirling's formula lacks of log k!, for k = 0, …, 9.
STIRLING_REST = [math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + (k + 1)
                 - math.log(2 * math.pi) / 2 for k in range(10)]


def everywhere(x: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return a parameter of a distribution in ``dtype`` and of ``shape``."""
    return lax.broadcast_in_dim(to_rank_of(x, shape, dtype), shape, tuple(range(len(shape))))


def check_real(name: str, p: Any, error: type[errors.Explained]) -> None:
    """Refuse probabilities ``p`` that are complex, by the class of ``error``."""
    if dtypes.is_complex(aval_of(p).dtype):
        raise errors.explained(
            error, f"{name}.C1", f"{name} got complex probabilities, of dtype "
            f"{aval_of(p).dtype.name}.", advice="Complex numbers have no order: use p.real.")


def any_true(x: Any) -> Any:
    """Return whether any of ``x`` is true."""
    return lax.reduce_or(x, tuple(range(aval_of(x).ndim)))


def where(condition: Any, yes: Any, no: float) -> Any:
    """Return ``yes`` where ``condition``, else the number ``no``."""
    return lax.select(condition, yes, lax.full_like(yes, no))


# -- Poisson ---------------------------------------------------------------------------------------


def waited_poisson(key: Any, rate: Any, dtype: Any) -> Any:
    """Return how many uniform numbers it takes until their product falls below exp(-rate)."""
    shape, part = aval_of(rate).shape, aval_of(rate).dtype

    def draw(state: Any) -> Any:
        count, key, total = state
        key, now = two_keys(key)
        count = lax.select(total > -rate, count + 1, count)
        return count, key, total + lax.log(standard(now, shape, part))

    start = (lax.full(shape, 0, dtype), key, lax.full_like(rate, 0))
    return lax.while_loop(lambda s: any_true(s[2] > -rate), draw, start)[0] - 1


def rejected_poisson(key: Any, rate: Any, dtype: Any) -> Any:
    """Return Poisson counts by transformed rejection (PTRD), for rates of 10 or more."""
    shape, part = aval_of(rate).shape, aval_of(rate).dtype
    log_rate = lax.log(rate)
    b = 0.931 + 2.53 * lax.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def attempt(state: Any) -> Any:
        out, accepted, key = state
        key, first, second = keys_of(key, 3)
        u = standard(first, shape, part) - 0.5
        v = standard(second, shape, part)
        edge = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / edge + b) * u + rate + 0.43)
        bound = lax.log(v * inverse_alpha / (a / (edge * edge) + b))
        height = -rate + k * log_rate - lax.lgamma(k + 1)
        quick = (edge >= 0.07) & (v <= v_r)
        refused = (k < 0) | ((edge < 0.013) & (v > edge))
        taken = quick | (~refused & (bound <= height))
        return lax.select(taken, k, out), accepted | taken, key

    start = (lax.full_like(rate, -1), lax.full(shape, False, bool), key)
    out = lax.while_loop(lambda s: any_true(~s[1]), attempt, start)[0]
    return lax.convert_element_type(out, dtype)


@takes_any_key(2)
def _poisson(key, shape, dtype, rate):
    rate = everywhere(rate, shape, np.dtype("float32"))  # whatever its dtype
    small = (rate != rate) | (rate < 10)
    waited = waited_poisson(key, where(small, rate, 0), dtype)
    rejected = rejected_poisson(random_clone(key),
                                lax.select(small, lax.full_like(rate, 1e5), rate), dtype)
    out = lax.select(small, waited, rejected)
    return lax.select(rate == 0, lax.full_like(out, 0), out)


def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None,
            dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return Poisson counts of rate ``lam``.

    Raises: NotImplementedError for keys of another generator than threefry2x32.

    >>> jax.random.poisson(jax.random.key(0), 3., (3,))
    Array([0, 0, 4], dtype=int32)
    """
    if out_sharding is not None:
        return placed(poisson, out_sharding, key, lam, shape, dtype)
    dtype = as_dtype("poisson", dtype, int, dtypes.is_integer, "an integer")
    name = key_impl(key) if hasattr(key, "dtype") and dtypes.is_extended(key.dtype) else \
        generator().name
    if name != THREEFRY.name:
        raise errors.explained(
            NotImplementedError, "poisson.C1",
            f"`poisson` is only implemented for the threefry2x32 RNG, not {name}",
            advice="Make the key with jax.random.key(seed, impl='threefry2x32').")
    lam = unwrapped(lam)
    shape = joined_shape("poisson", shape, lam)
    used(key)
    return _poisson(key, shape, dtype, lam)


# -- binomial --------------------------------------------------------------------------------------


def waited_binomial(key: Any, n: Any, log_miss: Any) -> Any:
    """Return how many waits for a success fit into ``n`` trials; log_miss is log(1 - p)."""
    shape, dtype = aval_of(n).shape, aval_of(n).dtype

    def draw(state: Any) -> Any:
        count, passed, key = state
        now, key = two_keys(key)
        count = lax.select(passed <= n, count + 1, count)
        wait = lax.ceil(lax.log(standard(now, shape, dtype)) / log_miss)
        return count, passed + wait, key

    start = (lax.full_like(n, 0), lax.full_like(n, 0), key)
    return lax.while_loop(lambda s: any_true(s[1] <= n), draw, start)[0] - 1


def stirling_remainder(k: Any) -> Any:
    """Return what Stirling's formula lacks of log k!."""
    low = lax.clamp(literal(0, aval_of(k).dtype), k, literal(9, aval_of(k).dtype))
    square = (low + 1) * (low + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (low + 1)
    table = kept(np.asarray(STIRLING_REST, aval_of(k).dtype))
    return lax.select(k <= 9, take(table, lax.convert_element_type(low, np.dtype("int32")), 0),
                      series)


def rejected_binomial(key: Any, n: Any, p: Any) -> Any:
    """Return binomial counts by transformed rejection (BTRS), for n p of 10 or more."""
    shape, dtype = aval_of(n).shape, aval_of(n).dtype
    spread = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    mode = lax.floor((n + 1) * p)

    def attempt(state: Any) -> Any:
        out, accepted, key = state
        key, first, second = keys_of(key, 3)
        u, v = standard(first, shape, dtype), standard(second, shape, dtype)
        u = u - 0.5
        edge = 0.5 - lax.abs(u)
        quick = (edge >= 0.07) & (v <= v_r)
        k = lax.floor((2 * a / edge + b) * u + c)
        refused = (k < 0) | (k > n)
        v = lax.log(v * alpha / (a / (edge * edge) + b))
        height = ((mode + 0.5) * lax.log((mode + 1) / (odds * (n - mode + 1)))
                  + (n + 1) * lax.log((n - mode + 1) / (n - k + 1))
                  + (k + 0.5) * lax.log(odds * (n - k + 1) / (k + 1))
                  + stirling_remainder(mode) + stirling_remainder(n - mode)
                  - stirling_remainder(k) - stirling_remainder(n - k))
        taken = quick | (~refused & (v <= height))
        return lax.select(taken, k, out), accepted | taken, key

    start = (lax.full_like(n, -1), lax.full(shape, False, bool), key)
    return lax.while_loop(lambda s: any_true(~s[1]), attempt, start)[0]


def binomials(key: Any, n: Any, p: Any) -> Any:
    """Return binomial counts of arrays ``n`` and ``p``, of typed ``key``.

    Where successes are the likelier failures are counted.
    """
    likely = ~(p < 0.5)
    q = lax.select(likely, 1 - p, p)
    bad_n, endless, bad_q = (n != n) | (n < 0), lax.abs(n) == np.inf, (q != q) | (q < 0)
    q_safe = lax.select(bad_q, lax.full_like(q, 0.01), q)
    small = bad_n | (n * q_safe <= 10)
    n = lax.floor(n)
    waited = waited_binomial(key, where(small, n, 0), lax.log1p(-q_safe))
    rejected = rejected_binomial(
        random_clone(key), lax.select(small, lax.full_like(n, 10000), n),
        lax.select(small, lax.full_like(n, 0.5), q_safe))
    out = lax.select(small, waited, rejected)
    bad = bad_n | bad_q
    out = lax.select(bad, lax.full_like(out, np.nan), out)
    out = lax.select(endless & ~bad, lax.full_like(out, np.inf), out)
    return lax.select(likely & ~bad & ~endless, n - out, out)


@takes_any_key(2)
def _binomial(key, shape, dtype, n, p):
    part = dtypes.to_inexact(aval_of(p).dtype)  # the precision is that of p
    out = binomials(key, everywhere(n, shape, part), everywhere(p, shape, part))
    return lax.convert_element_type(out, dtype)


def binomial(key: Array, n: ArrayLike, p: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None) -> Array:
    """Return, as floats, how many of ``n`` trials of probability ``p`` succeed.

    >>> jax.random.binomial(jax.random.key(0), 10, 0.5, (3,)).shape
    (3,)
    """
    dtype, shape = float_dtype("binomial", dtype), joined_shape("binomial", shape, n, p)
    check_real("binomial", p, errors.ArgumentTypeError)
    used(key)
    return _binomial(key, shape, dtype, n, p)


@takes_any_key(3)
def _multinomial(key, shape, dtype, unroll, n, p):
    part = dtypes.to_inexact(join_types((n, p))[0])
    last = len(shape) - 1
    n, p = everywhere(n, shape[:-1], part), everywhere(p, shape, part)
    left = lax.cumsum(p, last, reverse=True)
    share = p / lax.select(left == 0, lax.full_like(left, 1), left)
    share = lax.transpose(share, (last, *range(last)))

    def step(rest: Any, row: Any) -> Any:
        share, key = row
        count = binomials(key, rest, clip(share, 0, 1))
        return rest - count, count

    counts = lax.scan(step, n, (share, random_split(key, (shape[-1],))), unroll=unroll)[1]
    counts = lax.transpose(counts, (*range(1, last + 1), 0))
    return lax.convert_element_type(counts, dtype)


def multinomial(key: Array, n: ArrayLike, p: ArrayLike, *, shape: Shape | None = None,
                dtype: DTypeLike | None = None, unroll: int | bool = 1) -> Any:
    """Return how many of ``n`` trials end in each of the ways of probabilities ``p``.

    Shapes: p ["*batch ways"], n ["*batch"], result [*shape], which ends with the ways.

    >>> jax.random.multinomial(jax.random.key(0), 10, jnp.array([0.5, 0.5])).sum()
    Array(10., dtype=float32)
    """
    dtype = as_dtype("multinomial", dtype, float, lambda d: not dtypes.is_extended(d), "a number")
    check_real("multinomial", p, errors.ArgumentError)
    shape = joined_shape("multinomial", shape, p)
    joined_shape("multinomial", shape[:-1], n)
    used(key)
    return _multinomial(key, shape, dtype, unroll, n, p)

"""How are gamma variates made, and what is made of them?

By rejection: a cube of a normal number is proposed, and accepted by comparison with a second
number; each element does so with a key of its own until one is accepted.  Beta, Dirichlet,
chi-square, Student's t, F and the generalized normal are made of gammas.

Read before: ``random.continuous``, ``loops.while_loop``.  Read after: ``random.counts``.
Invariant: same key, shape and dtype give the numbers of JAX but for the last bits
(tests/kernel/test_random_rejection.py).
Source: Marsaglia and Tsang 2000, "A simple method for generating gamma variables"; Figurnov,
Mohamed and Mnih 2018, "Implicit Reparameterization Gradients".
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import saem.numpy as jnp
from saem import lax
from saem.core import config, errors
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from saem.core.jaxpr import ClosedJaxpr
from saem.core.primitive import NOT_LINEAR, Primitive, absent, primitive
from saem.core.sharded import plain
from saem.core.trace import bind
from saem.derivatives.stop_gradient import stop_gradient
from saem.jit.call import JitCall
from saem.numpy.axes import known_number
from saem.ops import sharding_rules
from saem.ops.keys import THREEFRY
from saem.ops.linear import literal, stacked
from saem.ops.random_bits import random_split
from saem.random.basic import signs, standard, two_keys
from saem.random.continuous import least_normal, standard_exponential, standard_normal, to_rank_of
from saem.random.keys import as_shape, drawn, float_dtype, joined_shape, placed, takes_any_key, used
from saem.transform.mapping import vmap
from saem.transform.staging import trace_flat
from saem.typing import Array, ArrayLike, DTypeLike, Shape


def keys_of(key: Any, count: int) -> list[Any]:
    """Return ``count`` new keys of a typed key."""
    many = random_split(key, (count,))
    return [lax.squeeze(lax.slice(many, (i,), (i + 1,)), (0,)) for i in range(count)]


# -- one variate, and the primitive that makes many ------------------------------------------------


def one_gamma(key: Any, alpha: Any, log_space: bool) -> Any:
    """Return one gamma variate of the scalar ``alpha`` (or its logarithm) of a typed key.

    Below 1 a variate of alpha + 1 is made, and made smaller by a power of a uniform number.
    """
    dtype = aval_of(alpha).dtype
    third = literal(1 / 3, dtype)
    large = lax.ge(alpha, literal(1, dtype))
    d = lax.select(large, alpha, alpha + 1) - third
    c = third / lax.sqrt(d)
    key, last = two_keys(key)

    def propose(state: Any) -> Any:
        key, normal = two_keys(state[0])
        x = standard_normal(normal, (), dtype)
        return key, x, 1 + x * c

    def refused(state: Any) -> Any:
        _, square, cube, even = state
        steep = even >= 1 - 0.0331 * (square * square)
        return steep & (lax.log(even) >= square * 0.5 + d * ((1 - cube) + lax.log(cube)))

    def attempt(state: Any) -> Any:
        key, first, second = keys_of(state[0], 3)
        start = (first, literal(0, dtype), literal(-1, dtype))
        _, x, v = lax.while_loop(lambda s: s[2] <= 0, propose, start)
        return key, x * x, v * v * v, standard(second, (), dtype)

    start = (key, literal(0, dtype), literal(1, dtype), literal(2, dtype))
    cube = lax.while_loop(refused, attempt, start)[2]
    if log_space:
        shrink = lax.neg(standard_exponential(last, (), dtype))
        whole = large | (shrink == 0)
        boost = lax.select(whole, lax.full_like(shrink, 0), shrink * (1 / alpha))
        return lax.log(d) + lax.log(cube) + boost
    even = 1 - standard(last, (), dtype)
    return d * cube * lax.select(large, lax.full_like(even, 1), lax.pow(even, 1 / alpha))


@functools.lru_cache(256)
def program(keys: ShapedArray, alpha: ShapedArray, log_space: bool,
            partitionable: bool) -> ClosedJaxpr:
    """Return the program of ``random_gamma``: each key is split for the elements under it."""

    def run(keys: Any, alpha: Any) -> list[Any]:
        count = math.prod(alpha.shape[keys.ndim:])
        each = lax.reshape(random_split(keys, (count,)), (alpha.size,))
        flat = lax.reshape(alpha, (alpha.size,))
        if keys.dtype.impl == THREEFRY:
            out = vmap(lambda k, a: one_gamma(k, a, log_space))(each, flat)
        else:  # of a stack of keys XLA's generator would use the first alone
            out = lax.map(lambda pair: one_gamma(*pair, log_space), (each, flat))
        return [lax.reshape(out, alpha.shape)]

    with config.threefry_partitionable(partitionable):
        return trace_flat(run, [keys, alpha], name="random_gamma", debug_name="random_gamma")


@primitive("random_gamma")
class RandomGamma(Primitive):
    """Gamma variates (or their logarithms) of keys and shapes that begin with those of the keys."""

    log_space: bool
    partitionable: bool = True  # a setting; equations do not show it

    shard_results = sharding_rules.random_gamma
    params = property(lambda self: {"log_space": self.log_space})
    consumes_key = True
    quick_code = False

    def typing(self, keys, alpha):
        if alpha.shape[:keys.ndim] != keys.shape:
            raise errors.explained(
                errors.ShapeError, "random_gamma.C1",
                f"random_gamma got keys of shape {keys.shape} for parameters of shape "
                f"{alpha.shape}, which must begin with it.",
                advice="Use jax.vmap for a stack of keys.")
        return ShapedArray(alpha.shape, alpha.dtype)

    def physical(self, in_avals, out_avals):
        made = program(*map(plain, in_avals), self.log_space, self.partitionable)
        return JitCall(made, "random_gamma")

    evaluate = absent("on the arrays that hold keys its program runs in its place")
    lower = absent("on the arrays that hold keys its program runs in its place")

    def jvp(self, primals, tangents):
        keys, alpha = primals
        out, t = bind(self, keys, alpha), tangents[1]
        if t is None:
            return out, None
        sample = out
        if self.log_space:
            sample = lax.exp(out)
            least = lax.full_like(sample, least_normal(aval_of(out).dtype))
            sample = lax.select(sample == 0, least, sample)
        slope = lax.random_gamma_grad(alpha, sample)
        return out, lax.mul(t, lax.div(slope, sample) if self.log_space else slope)

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        return bind(self, *stacked(size, xs, dims)), 0


random_gamma_p = RandomGamma


# -- gamma -----------------------------------------------------------------------------------------


def gammas(key: Any, shape: tuple[int, ...], dtype: Any, log_space: bool, alpha: Any) -> Any:
    """Return gamma variates, or their logarithms, of typed ``key``."""
    alpha = lax.broadcast_in_dim(to_rank_of(alpha, shape, dtype), shape, tuple(range(len(shape))))
    return bind(RandomGamma(log_space, config.threefry_partitionable.value), key, alpha)


_gamma = takes_any_key(3, called="gamma")(gammas)


def gamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None,
          *, out_sharding: Any = None) -> Array:
    """Return gamma variates of shape parameter ``a`` and scale 1.

    >>> jax.random.gamma(jax.random.key(0), 2., (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return placed(gamma, out_sharding, key, a, shape, dtype)
    dtype, shape = float_dtype("gamma", dtype), joined_shape("gamma", shape, a)
    used(key)
    return _gamma(key, shape, dtype, False, a)


def loggamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return logarithms of gamma variates, exact where the variates would vanish.

    >>> jax.random.loggamma(jax.random.key(0), 2., (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return placed(loggamma, out_sharding, key, a, shape, dtype)
    dtype, shape = float_dtype("gamma", dtype), joined_shape("gamma", shape, a)
    used(key)
    return _gamma(key, shape, dtype, True, a)


# -- quotients of gammas ---------------------------------------------------------------------------


@takes_any_key(2)
def _beta(key, shape, dtype, a, b):
    first, second = two_keys(key)
    log_x, log_y = gammas(first, shape, dtype, True, a), gammas(second, shape, dtype, True, b)
    larger = lax.max(log_x, log_y)
    x, y = lax.exp(log_x - larger), lax.exp(log_y - larger)
    return x / (x + y)


def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None,
         dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return beta variates of parameters ``a`` and ``b``.

    >>> jax.random.beta(jax.random.key(0), 2., 3., (2,)).shape
    (2,)
    """
    return drawn(beta, _beta, key, shape, dtype, out_sharding, a, b)


@takes_any_key(2)
def _dirichlet(key, shape, dtype, alpha):
    logs = gammas(key, shape, dtype, True, alpha)
    last = len(shape) - 1

    def whole(x: Any) -> Any:
        return lax.broadcast_in_dim(x, (*shape[:-1], 1), tuple(range(last)))

    most = lax.max(literal(-np.inf, dtype), lax.reduce_max(logs, (last,)))
    parts = lax.exp(logs - stop_gradient(whole(most)))
    return parts / whole(lax.reduce_sum(parts, (last,)))


def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return positive numbers that sum to 1 along the last axis, of weights ``alpha``.

    Shapes: alpha ["*batch n"], result [*shape n], where batch broadcasts to shape.
    Raises: ValueError if ``alpha`` is a scalar or does not fit ``shape``.

    >>> jax.random.dirichlet(jax.random.key(0), jnp.ones(3)).sum().round(3)
    Array(1., dtype=float32)
    """
    if out_sharding is not None:
        return placed(dirichlet, out_sharding, key, alpha, shape, dtype)
    dtype, sizes = float_dtype("dirichlet", dtype), aval_of(alpha).shape
    if not sizes:
        raise errors.explained(
            errors.ArgumentError, "dirichlet.C1",
            f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {len(sizes)}",
            advice="Its last axis holds the weights.")
    batch = joined_shape("dirichlet", shape, ShapeDtypeStruct(sizes[:-1], dtype))
    used(key)
    return _dirichlet(key, (*batch, sizes[-1]), dtype, alpha)


def chisquares(key: Any, shape: tuple[int, ...], dtype: Any, df: Any) -> Any:
    """Return chi-square variates, of typed ``key``."""
    half = lax.convert_element_type(df, dtype) / literal(2, dtype)
    return lax.exp(gammas(key, shape, dtype, True, half)) * literal(2, dtype)


_chisquare = takes_any_key(2, called="chisquare")(chisquares)


def chisquare(key: ArrayLike, df: ArrayLike, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return chi-square variates of ``df`` degrees of freedom.

    >>> jax.random.chisquare(jax.random.key(0), 3., shape=(2,)).shape
    (2,)
    """
    return drawn(chisquare, _chisquare, key, shape, dtype, out_sharding, df)


@takes_any_key(2)
def _t(key, shape, dtype, df):
    first, second = two_keys(key)
    normal = standard_normal(first, shape, dtype)
    half = lax.convert_element_type(df, dtype) / literal(2, dtype)
    spread = gammas(second, shape, dtype, False, half)
    return normal * lax.sqrt(to_rank_of(half, shape, dtype) / spread)


def t(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *,
      out_sharding: Any = None) -> Array:
    """Return variates of Student's t distribution with ``df`` degrees of freedom.

    >>> jax.random.t(jax.random.key(0), 3., (2,)).shape
    (2,)
    """
    return drawn(t, _t, key, shape, dtype, out_sharding, df)


@takes_any_key(2)
def _f(key, shape, dtype, dfnum, dfden):
    second, first = two_keys(key)
    dfnum, dfden = (lax.convert_element_type(x, dtype) for x in (dfnum, dfden))
    # No ``to_rank_of``: XLA turns a quotient of quotients by scalars into one, as it does for JAX.
    over = chisquares(first, shape, dtype, dfnum) / dfnum
    under = chisquares(second, shape, dtype, dfden) / dfden
    return over / under


def f(key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None,
      dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return variates of the F distribution with ``dfnum`` and ``dfden`` degrees of freedom.

    >>> jax.random.f(jax.random.key(0), 2., 3., (2,)).shape
    (2,)
    """
    return drawn(f, _f, key, shape, dtype, out_sharding, dfnum, dfden)


# -- generalized normal ----------------------------------------------------------------------------


def generalized_normals(key: Any, shape: tuple[int, ...], dtype: Any, p: Any) -> Any:
    """Return numbers of density exp(-|x|^p), of typed ``key``."""
    first, second = two_keys(key)
    inverse = 1 / p
    return signs(second, shape, dtype) * gammas(first, shape, dtype, False, inverse) ** inverse


@takes_any_key(2)
def _generalized_normal(key, shape, dtype, p):
    return generalized_normals(key, shape, dtype, jnp.asarray(p))


def generalized_normal(key: ArrayLike, p: float, shape: Shape = (), dtype: DTypeLike | None = None,
                       *, out_sharding: Any = None) -> Array:
    """Return numbers of density proportional to exp(-|x|^p).

    >>> jax.random.generalized_normal(jax.random.key(0), 2., (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return placed(generalized_normal, out_sharding, key, p, shape, dtype)
    dtype, shape = float_dtype("generalized_normal", dtype), as_shape(shape)
    joined_shape("generalized_normal", shape, p)
    used(key)
    return _generalized_normal(key, shape, dtype, p)


@takes_any_key(3)
def _ball(key, d, shape, dtype, p):
    first, second = two_keys(key)
    p = jnp.asarray(p)
    g = generalized_normals(first, (*shape, d), dtype, p)
    e = standard_exponential(second, shape, dtype)
    powers = lax.abs(g) ** p
    total = lax.reduce_sum(powers, (powers.ndim - 1,)) + e
    return g / jnp.expand_dims(total ** (1 / p), -1)


def ball(key: ArrayLike, d: int, p: float = 2, shape: Shape = (), dtype: DTypeLike | None = None, *,
         out_sharding: Any = None) -> Any:
    """Return points uniform over the ball of ``d`` dimensions in the norm ``p``.

    Shapes: [*shape d]; an array ``p`` broadcasts to it.
    Raises: TypeError if ``d`` is not an integer.

    >>> jax.random.ball(jax.random.key(0), 2).shape
    (2,)
    """
    if out_sharding is not None:
        return placed(ball, out_sharding, key, d, p, shape, dtype)
    dtype, shape = float_dtype("ball", dtype), as_shape(shape)
    d = known_number(d, "d")
    joined_shape("ball", (*shape, d), p)
    used(key)
    return _ball(key, d, shape, dtype, p)

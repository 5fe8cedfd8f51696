"""jax alone: keys, loops, ragged and sparse arrays, jaxprs read and evaluated, settings."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from curves import record
from jax import lax
from jax.experimental import checkify, jet, sparse

key = jax.random.key(7)
assert jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()
a, b, c = jax.random.split(key, 3)
record("keys", jax.random.key_data(jax.random.split(a, (2, 2))))
record("folded", jax.vmap(lambda i: jax.random.normal(jax.random.fold_in(b, i)))(jnp.arange(4)))
record("wrapped", jax.random.bits(jax.random.wrap_key_data(jax.random.key_data(c)), (3,)))
for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
    record(impl, jax.random.uniform(jax.random.key(3, impl=impl), (4,)))
record("where of keys", jax.random.normal(jnp.where(True, a, b), (2,)))


def draw(key, _):
    key, inner = jax.random.split(key)
    return key, jax.random.gamma(inner, 2.)


record("keys in a scan", lax.scan(draw, key, None, 4)[1])

# A sampler in a scan, a while loop with a dynamic bound, a search, associative scan.
log_p = lambda x: -jnp.sum((x ** 2 - 1) ** 2)


def metropolis(carry, key):
    x, accepted = carry
    k1, k2 = jax.random.split(key)
    proposal = x + 0.5 * jax.random.normal(k1, x.shape)
    take = jnp.log(jax.random.uniform(k2)) < log_p(proposal) - log_p(x)
    return (jnp.where(take, proposal, x), accepted + take), x


(last, accepted), chain = jax.jit(lambda k: lax.scan(metropolis, (jnp.zeros(2), 0),
                                                     jax.random.split(k, 50)))(key)
record("metropolis", chain)
record("accepted", accepted)
record("collatz", jax.vmap(lambda n: lax.while_loop(
    lambda c: c[0] != 1, lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1),
    (n, 0))[1])(jnp.arange(1, 12)))
record("linear recurrence", lax.associative_scan(
    lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (jnp.linspace(0.5, 1, 7), jnp.arange(7.)))[1])
record("switch", jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x))(
    jnp.array([0, 1, 2, 5]), jnp.arange(4.)))
record("fori", lax.fori_loop(0, 5, lambda i, x: x.at[i].add(x[i - 1]), jnp.arange(5.)))
record("map", lax.map(lambda x: jnp.linalg.inv(x + 2 * jnp.eye(2)),
                      jnp.arange(12.).reshape(3, 2, 2), batch_size=2))

# Sparse and ragged arrays.
dense = jnp.where(jax.random.uniform(key, (5, 4)) > 0.6, jax.random.normal(a, (5, 4)), 0.)
M = sparse.BCOO.fromdense(dense)
v = jnp.arange(4.)
record("bcoo", jax.jit(lambda m, v: m @ v)(M, v))
record("bcoo gradient", jax.grad(lambda data: (sparse.BCOO((data, M.indices), shape=M.shape) @ v)
                                 .sum())(M.data))
record("bcoo transposed", (M.T @ jnp.ones(5)))
record("sparsify", sparse.sparsify(lambda m, v: (2 * m) @ v + m @ v)(M, v))
record("bcsr", sparse.BCSR.fromdense(dense) @ jnp.eye(4))
batched = sparse.BCOO.fromdense(jnp.stack([dense, 2 * dense]), n_batch=1)
record("batched sparse", jax.vmap(lambda m: m @ v)(batched))
record("sparse product", (M @ sparse.BCOO.fromdense(dense.T)).todense())
record("gradient of sparse", sparse.grad(lambda m: jnp.sum((m @ v) ** 2))(M).data)
record("ragged dot", lax.ragged_dot(jnp.arange(12.).reshape(6, 2), jnp.arange(12.).reshape(3, 2, 2),
                                    jnp.array([1, 3, 2])))
record("segments", jax.ops.segment_sum(jnp.arange(6.), jnp.array([0, 0, 2, 1, 2, 2]), 4))


# Checks and Taylor series.
@checkify.checkify
def safe(x, i):
    checkify.check(i >= 0, "index {i} must not be negative", i=i)
    return jnp.log(x)[i]


error, out = jax.jit(safe)(jnp.arange(1., 4.), -1)
assert "index -1" in error.get(), error.get()
error, out = jax.jit(checkify.checkify(lambda x: jnp.log(x), errors=checkify.float_checks))(-1.)
assert "nan" in error.get(), error.get()
record("jet", jnp.stack(jet.jet(lambda x: jnp.exp(jnp.sin(x)), (0.5,), ((1., 0., 0.),))[1]))


# An interpreter of jaxprs that inverts a function.
INVERSE = {"exp": lax.log, "tanh": lax.atanh, "neg": lax.neg, "log": lax.exp}


def inverse(fun):
    @functools.wraps(fun)
    def wrapped(*args):
        closed = jax.make_jaxpr(fun)(*args)
        env = dict(zip(closed.jaxpr.outvars, args))
        for eqn in closed.jaxpr.eqns[::-1]:
            env[eqn.invars[0]] = INVERSE[eqn.primitive.name](env[eqn.outvars[0]])
        return env[closed.jaxpr.invars[0]]
    return wrapped


record("inverse", inverse(lambda x: jnp.exp(jnp.tanh(-x)))(jnp.exp(jnp.tanh(-0.3))))
closed = jax.make_jaxpr(lambda x: lax.scan(lambda c, _: (c * x, c), 1., None, 3))(2.)
record("eval_jaxpr", jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.)[1])
assert [e.primitive.name for e in closed.jaxpr.eqns][-1] == "scan"

# Settings for a while.
with jax.enable_x64(True):
    record("x64", jnp.sin(jnp.arange(3)) * 1e-12)
with jax.debug_nans(True):
    try:
        jnp.log(-jnp.ones(2)).block_until_ready()
        raise SystemExit("no error")
    except FloatingPointError:
        pass
with jax.disable_jit():
    record("disable_jit", lax.fori_loop(0, 3, lambda i, x: x + i, 0.))
with jax.default_matmul_precision("highest"):
    record("precision", jnp.ones((2, 3)) @ jnp.ones((3, 2)))


@jax.jit
def named(x):
    with jax.named_scope("part"):
        return jnp.sin(x)


assert "part" in named.lower(1.).as_text(debug_info=True)
with jax.checking_leaks():
    record("no leaks", jax.jit(lambda x: x * 2)(jnp.arange(3.)))
record("eval_shape", jax.eval_shape(
    lambda a: a @ a.T, jax.ShapeDtypeStruct((5, 2), jnp.float32)).shape)
record("numpy meets jax", np.asarray(jnp.arange(3) + np.float32(1)) + jax.device_get(jnp.ones(3)))
ref = jax.new_ref(jnp.zeros(3))


@jax.jit
def into(ref, x):
    ref[...] += x
    ref[0] = 5.


into(ref, jnp.arange(3.))
record("reference", ref[...])

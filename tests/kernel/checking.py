"""What do the tests of checkify share?  Functions that check, and what a checked one tells.

Read before: ``both.py``.  Read after: ``test_checkify.py``, ``test_checkify_nested.py``.
"""

from __future__ import annotations

import numpy as np

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.experimental import checkify as c

F, I = jnp.float32, jnp.int32
X = jnp.arange(4.0)
M = jnp.arange(4.0).reshape(2, 2)


def said(f, *args, errors=c.all_checks, jit=False):
    """Return the error of ``f`` in words, its class, and the results beside it."""
    g = c.checkify(f, errors=errors)
    err, out = (jax.jit(g) if jit else g)(*args)
    return err.get() or "", type(err.get_exception()).__name__, jax.tree.leaves(out)


def chk(x, text="bad {}"):
    c.check(jnp.all(x > 0), text, x)
    return x


def ln(x):
    c.check(x > 0, "ln {}", x)
    return jnp.log(x)


@jax.custom_jvp
def cj(x):
    c.check(x > 0, "cj {}", x)
    return jnp.sin(x)


@cj.defjvp
def cj_rule(primals, tangents):
    c.check(primals[0] > 5, "rule {}", primals[0])
    return jnp.sin(primals[0]), 3 * jnp.cos(primals[0]) * tangents[0]


@jax.custom_vjp
def cv(x):
    c.check(x > 0, "cv {}", x)
    return jnp.sin(x)


def cv_fwd(x):
    c.check(x > 5, "fwd {}", x)
    return jnp.sin(x), x


def cv_bwd(r, ct):
    c.check(r > 8, "bwd {}", r)
    return (10 * ct / r,)


cv.defvjp(cv_fwd, cv_bwd)


# -- with references -------------------------------------------------------------------------------


def whole(x):
    ref = jax.new_ref(x)
    ref[...] = jnp.log(ref[...])
    c.check(ref[0] > 0, "ref {}", ref[0])
    return ref[...]


def loop(x):
    ref = jax.new_ref(x)

    def body(i, _):
        ref[i] = ref[i] * 2
        c.check(ref[i] < 5, "body {} {}", i, ref[i])

    lax.fori_loop(0, 4, body, None)
    return ref[...]


def branch(x):
    ref = jax.new_ref(x)

    def yes():
        ref[0] = 5.0
        c.check(ref[0] < 1, "cond {}", ref[0])

    lax.cond(x[1] > 0, yes, lambda: None)
    return ref[...]


# -- on devices ------------------------------------------------------------------------------------

P = jax.sharding.PartitionSpec


def on_four(f, spec, **options):
    """Map ``f`` over four devices in a row, named d."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("d",))
    return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, **options)


def on_square(f, spec, **options):
    """Map ``f`` over two by two devices, named a and b."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))
    return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, **options)


# -- with rules of their own -----------------------------------------------------------------------


@jax.custom_jvp
def quiet(x):
    return jnp.sin(x)


quiet.defjvp(lambda xs, dxs: (jnp.sin(xs[0]), 3 * jnp.cos(xs[0]) * dxs[0]))


def closing(x):
    """A function with a rule that closes over what the rule is not given."""
    @jax.custom_vjp
    def inner(y):
        return jnp.log(y - z)

    inner.defvjp(lambda y: (jnp.log(y - 9), y), lambda r, ct: (7 * ct,))
    z = jnp.asarray(9.0) + jnp.sum(X) * 0
    return inner(x)


@jax.custom_batching.custom_vmap
def stacked(x):
    return jnp.log(x)


@stacked.def_vmap
def stacked_rule(size, batched, x):
    return 2 * x, True

"""Does a checkpoint save from inside a loop what its policy names?

What is kept is what JAX keeps, a row for each step; values and derivatives are those of the plain
function, and the programs are JAX's but for the names of the calls around them.

Read before: ``test_checkpoint.py``.
Invariant: every expected value comes from JAX, or from the function without a checkpoint.
"""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from both import same

import saem as jax
import saem.numpy as jnp
from saem import ad_checkpoint, lax
from saem.ad_checkpoint import checkpoint_name
from saem.core.infer import check_jaxpr

cp = jax.checkpoint_policies
W = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32) / 2)
x = jnp.arange(3.0)


def layer(w, c):
    h = checkpoint_name(jnp.tanh(w @ c), "h")
    return jax.jit(lambda a: checkpoint_name(jnp.sin(a) * 2, "g"))(h) + c


def stack(W, x):
    def body(c, w):
        c = layer(w, c)
        return c, jnp.sum(c ** 2)
    c, ys = lax.scan(body, x, W)
    return (c * ys.sum()).sum()


def nested(W, x):
    def outer(c, w):
        c, _ = lax.scan(lambda d, _: (layer(w, d), None), c, None, length=2)
        return checkpoint_name(c, "c"), None
    return lax.scan(outer, x, W)[0].sum()


def counted(W, x):
    return lax.fori_loop(0, 3, lambda i, c: layer(W[0], c) * i, x).sum()


def backwards(W, x):
    c, ys = lax.scan(lambda c, w: (layer(w, c), checkpoint_name(c * 2, "h")), x, W,
                     reverse=True, unroll=2)
    return c.sum() + (ys ** 2).sum()


def ignorant(W, x):
    s, _ = lax.scan(lambda c, w: (layer(w, c), None), jnp.ones(3), W)
    return (s * x).sum()


def half_known(W, x):
    def body(c, w):
        k, c = c
        return (k * 2. + 1., layer(w, c) * k), None
    (k, c), _ = lax.scan(body, (1., x), W)
    return (k * c).sum()


functions = {"stack": stack, "nested": nested, "counted": counted, "backwards": backwards,
             "ignorant": ignorant, "half_known": half_known}
policies = {
    "dots": cp.dots_saveable,
    "h": cp.save_only_these_names("h"),
    "gc": cp.save_only_these_names("g", "c"),
    "nothing": cp.nothing_saveable,
    "any": cp.save_any_names_but_these("h"),
    "offload": cp.save_and_offload_only_these_names(
        names_which_can_be_saved=["g"], names_which_can_be_offloaded=["h"],
        offload_src="device", offload_dst="pinned_host"),
}


def kept(f):
    """Return the types of what is saved of ``f``, beside its arguments and constants."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        ad_checkpoint.print_saved_residuals(f, W, x)
    lines = [line for line in out.getvalue().splitlines()
             if "from the argument" not in line and "constant" not in line]
    return sorted(line.split()[0] for line in lines)


def test_what_is_kept_is_what_jax_keeps(jax_oracle):
    def program():
        return [[name, policy, kept(jax.checkpoint(f, policy=p))]
                for name, f in functions.items() for policy, p in policies.items()]

    same(jax_oracle, program)
    mine = program()
    assert ["stack", "h", ["f32[2,3]"]] in mine and ["nested", "dots", ["f32[2,2,3]"]] in mine


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("name", ["stack", "nested", "counted", "backwards", "ignorant",
                                  "half_known"])
def test_values_and_derivatives_are_those_of_the_function(name):
    def derivatives(f):
        return [f(W, x), jax.grad(f, (0, 1))(W, x), jax.jit(jax.grad(f))(W, x),
                jax.jvp(jax.grad(f, 1), (W, x), (W, x))[1],
                jax.vmap(jax.grad(f), (None, 0))(W, jnp.stack([x, 2 * x]))]

    f = functions[name]
    got = [derivatives(f), *(derivatives(jax.checkpoint(f, policy=p)) for p in policies.values())]
    plain, *checkpointed = [jax.tree.leaves(each) for each in got]
    for leaves in checkpointed:
        for mine, wanted in zip(leaves, plain, strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=2e-4, atol=1e-3)


def test_a_saved_product_is_not_computed_again():
    """Of each step one product forward, two backward: none between, and no stack but its own."""
    def f(w, x):
        return lax.scan(lambda c, _: (jnp.sin(w @ c), None), x, None, length=4)[0].sum()

    def products(policy):
        g = jax.grad(jax.checkpoint(f, policy=policy), (0, 1))
        closed = jax.make_jaxpr(g)(jnp.ones((3, 3)), jnp.ones(3))
        check_jaxpr(closed)
        return str(closed).count("dot_general[")

    policies = jax.checkpoint_policies
    assert products(policies.nothing_saveable) == 4
    assert products(policies.dots_saveable) == 3

"""jax alone, in the manner of its tutorials: derivatives, custom rules, checkpoints, pytrees."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from curves import record
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.flatten_util import ravel_pytree

key = jax.random.key(0)


# A function that is stable only with a rule of its own.
@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1. + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    x, = primals
    x_dot, = tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * x_dot


record("custom_jvp", [jax.grad(log1pexp)(100.), jax.grad(jax.grad(log1pexp))(1.),
                      jax.jit(jax.vmap(jax.grad(log1pexp)))(jnp.arange(3.))[1]])


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def clip_gradient(lo, hi, x):
    return x


clip_gradient.defvjp(lambda lo, hi, x: (x, None), lambda lo, hi, _, g: (jnp.clip(g, lo, hi),))
record("custom_vjp", jax.vmap(jax.grad(
    lambda t: jnp.sin(clip_gradient(-0.75, 0.75, t))))(jnp.linspace(0, 10, 9)))


# A fixed point with its implicit derivative, itself a fixed point.
@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, x_guess):
    return lax.while_loop(lambda c: jnp.abs(c[0] - c[1]) > 1e-6, lambda c: (c[1], f(a, c[1])),
                          (x_guess, f(a, x_guess)))[1]


def fixed_point_fwd(f, a, x_init):
    x_star = fixed_point(f, a, x_init)
    return x_star, (a, x_star)


def fixed_point_rev(f, res, x_star_bar):
    a, x_star = res
    _, vjp_a = jax.vjp(lambda a: f(a, x_star), a)

    def step(packed, u):
        a, x_star, x_star_bar = packed
        _, vjp_x = jax.vjp(lambda x: f(a, x), x_star)
        return x_star_bar + vjp_x(u)[0]

    a_bar, = vjp_a(fixed_point(step, (a, x_star, x_star_bar), x_star_bar))
    return a_bar, jnp.zeros_like(x_star)


fixed_point.defvjp(fixed_point_fwd, fixed_point_rev)
newton = lambda a: fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)
record("implicit", [newton(2.), jax.grad(newton)(2.), jax.grad(jax.grad(newton))(2.)])

# Jacobians, Hessians, products with them.
W = jax.random.normal(key, (3, 4))
f = lambda W, x: jnp.tanh(W @ x) ** 2
x = jnp.arange(4.) / 4
record("jacfwd", jax.jacfwd(f)(W, x))
record("jacrev", jax.jacrev(f, argnums=(0, 1))(W, x)[1])
record("hessian", jax.hessian(lambda x: f(W, x).sum())(x))
hvp = lambda v: jax.jvp(jax.grad(lambda x: f(W, x).sum()), (x,), (v,))[1]
record("hvp", jax.vmap(hvp)(jnp.eye(4)))
y, pushforward = jax.linearize(functools.partial(f, W), x)
pullback = jax.linear_transpose(pushforward, x)
record("linear_transpose", jax.vmap(lambda c: pullback(c)[0])(jnp.eye(3)))
record("has_aux", jax.value_and_grad(lambda x: (x @ x, x * 2), has_aux=True)(x)[0][1])
record("complex", [jax.grad(lambda z: (z * jnp.conj(z)).real)(1. + 2j).imag,
                   jax.grad(jnp.sin, holomorphic=True)(1j).real])
per_example = jax.jit(jax.vmap(jax.grad(lambda w, x, y: (jnp.tanh(w @ x) - y) ** 2), (None, 0, 0)))
record("per example", per_example(x, jax.random.normal(key, (5, 4)), jnp.ones(5)))


# Rematerialization: the same gradient by every policy, alone, in a scan and in a branch.
def layer(W, x):
    return jnp.sin(W @ jnp.cos(W @ x))


square = jax.random.normal(key, (4, 4)) / 2
policies = jax.checkpoint_policies
for name, policy in {
        "nothing": policies.nothing_saveable, "everything": policies.everything_saveable,
        "dots": policies.dots_saveable,
        "no batch": policies.dots_with_no_batch_dims_saveable,
        "names": policies.save_only_these_names("inner"),
        "other names": policies.save_any_names_but_these("inner")}.items():
    @functools.partial(jax.checkpoint, policy=policy)
    def step(W, x):
        return jnp.sin(W @ checkpoint_name(jnp.cos(W @ x), "inner"))

    def deep(W, x, step=step):
        out, trail = lax.scan(lambda c, _: (step(W, c), c.sum()), x, None, length=3)
        return lax.cond(out.sum() > 0, lambda c: step(W, c), lambda c: 2 * step(W, c), out).sum() \
            + trail.sum()
    record(f"checkpoint: {name}", jax.jit(jax.grad(deep))(square, x))


# Pytrees: own nodes, dataclasses, paths.
@jax.tree_util.register_pytree_with_keys_class
class Special:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def tree_flatten_with_keys(self):
        return (((jax.tree_util.GetAttrKey("x"), self.x), (jax.tree_util.GetAttrKey("y"), self.y)),
                None)

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weight", "inner"],
                   meta_fields=["power"])
@dataclasses.dataclass
class Model:
    weight: jax.Array
    inner: Special
    power: int


model = Model(jnp.arange(3.), Special(jnp.ones(2), [jnp.zeros(()), 4.]), 3)
grads = jax.grad(lambda m: jnp.sum(m.weight ** m.power) * m.inner.x.sum() + m.inner.y[1])(model)
flat, unravel = ravel_pytree(grads)
record("pytree", flat)
paths = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(model)]
assert paths == [".weight", ".inner.x", ".inner.y[0]", ".inner.y[1]"], paths
record("unraveled", unravel(flat * 2).inner.y[1])
scaled = [jax.tree.map(lambda a, i=i: jnp.asarray(a) * i, model) for i in range(3)]
stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *scaled)
record("transposed trees", jax.vmap(lambda m: ravel_pytree(m)[0])(stacked))
record("reduce", jax.tree.reduce(lambda a, b: a + jnp.sum(b), model, 0.))
record("static", jax.tree_util.Partial(jnp.power, 2.)(jnp.arange(3.)))
record("broadcast prefix", [np.size(leaf) for leaf in jax.tree.leaves(
    jax.tree.broadcast(1., {"a": jnp.ones(3), "b": (1, 2)}))])

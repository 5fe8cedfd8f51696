"""Are the derivatives of loops and branches JAX's, and are their programs well formed?

Each function is differentiated, mapped and staged in many orders; the numbers are JAX's, and those
of the same loop written out in Python.

Read before: ``test_control.py``.  Read after: ``test_control_programs.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import ours, same, same_error, source_of

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.infer import check_jaxpr

pytestmark = pytest.mark.usefixtures("little_effort")

x = jnp.asarray([0.3, -1.2, 0.8])
y = jnp.asarray([2.0, -1.0, 0.5])
W = jnp.asarray(np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3))


@jax.custom_jvp
def twice(a):
    return jnp.sin(a)


twice.defjvp(lambda p, t: (twice(*p), 2 * jnp.cos(p[0]) * t[0]))


# A rule that is right, since JAX forgets rules in second derivatives of loops.
@jax.custom_jvp
def sine(a):
    return jnp.sin(a)


sine.defjvp(lambda p, t: (sine(*p), jnp.cos(p[0]) * t[0]))


@jax.custom_vjp
def thrice(a):
    return jnp.sin(a)


thrice.defvjp(lambda a: (thrice(a), a), lambda a, ct: (3 * jnp.cos(a) * ct,))


# Functions of one vector to one number.
SMOOTH = {
    "cond": "lambda v: lax.cond(v.sum() > 0, lambda a: jnp.sin(a) @ y, lambda a: a @ a, v)",
    "cond, closed over": "lambda v: lax.cond(y[0] > 0, lambda: jnp.sin(v) @ y, lambda: v @ v)",
    "cond, one side constant": "lambda v: lax.cond(v[0] > 0, lambda a: a @ W @ a, lambda a: 1., v)",
    "cond, carry of several": """lambda v: sum(map(jnp.sum, lax.cond(v[0] > 0,
        lambda a: (a * a, jnp.cos(a)), lambda a: (a, a * y), v)))""",
    "switch": """lambda v: lax.switch(1, [jnp.sin, lambda a: a * jnp.exp(a), jnp.cos], v).sum()""",
    "scan": "lambda v: lax.scan(lambda c, a: (c * jnp.sin(a) + a, c * 2), 1., v)[0]",
    "scan, outputs": "lambda v: lax.scan(lambda c, a: (c * jnp.sin(a) + a, c * a), 1., v)[1] @ y",
    "scan, both": """lambda v: (lambda c, z: c * (z @ y))(
        *lax.scan(lambda c, a: (c * jnp.sin(a), c * a), v[0], v))""",
    "scan, reversed": """lambda v: lax.scan(lambda c, a: (jnp.tanh(c + a), c * a), 0.5, v,
        reverse=True)[1].sum()""",
    "scan, unrolled": """lambda v: lax.scan(lambda c, a: (jnp.tanh(c + a), c * a), 0.5, v,
        unroll=2)[1].sum()""",
    "scan, closed over": """lambda v: lax.scan(
        lambda c, a: (jnp.tanh(c @ W * v), c @ v), v, W)[1].sum()""",
    "scan, fixed work": """lambda v: lax.scan(
        lambda c, a: (c * jnp.sin(v).sum() * a, c), 1., y)[0]""",
    "scan, no rows": """lambda v: lax.scan(lambda c, _: (jnp.sin(c) * v, None), v,
        length=4)[0].sum()""",
    "scan, counter": """lambda v: lax.scan(lambda c, a: ((c[0] + 1, c[1] * a + c[0]), c[1]),
        (0, 1.), v)[0][1]""",
    "scan, empty": "lambda v: lax.scan(lambda c, a: (c * a, c), v.sum(), v[:0])[0]",
    "scan, growing carry": """lambda v: lax.scan(lambda c, a: ((c[1], c[2], c[0] * a), c[0]),
        (1., 1., v[0]), jnp.concatenate([v, v]))[0][0]""",
    "scan in scan": """lambda v: lax.scan(lambda c, a: (c + lax.scan(
        lambda d, b: (d * b * a, d), c, v)[0], c), 1., v)[0]""",
    "cond in scan": """lambda v: lax.scan(lambda c, a: (lax.cond(a > 0,
        lambda d: jnp.sin(d) * a, lambda d: d + a * a, c), c), 1., v)[1].sum()""",
    "scan in cond": """lambda v: lax.cond(v[0] > 0, lambda: lax.scan(
        lambda c, a: (c * a, None), 1., v)[0], lambda: v.sum())""",
    "fori": "lambda v: lax.fori_loop(0, 4, lambda i, c: c * jnp.sin(v) + i, v).sum()",
    "map": "lambda v: lax.map(lambda a: jnp.sin(a) * v, v).sum()",
    "map, batches": "lambda v: lax.map(lambda a: jnp.sin(a) * a, v, batch_size=2).sum()",
    "associative_scan": "lambda v: lax.associative_scan(jnp.multiply, v) @ y",
    "jit inside": """lambda v: lax.scan(
        lambda c, a: (jax.jit(lambda p, q: jnp.sin(p * q))(c, a), c), 1., v)[0]""",
    "rule inside": "lambda v: lax.scan(lambda c, a: (sine(c * a) + a, c), 1., v)[1].sum()",
    "all inside one another": """lambda v: lax.cond(v[0] < 9, lambda: lax.scan(
        jax.checkpoint(lambda c, a: (jax.jit(sine)(c * a),
                       lax.fori_loop(0, 2, lambda i, d: sine(d) * c + i, a))), 1., v)[1].sum(),
        lambda: lax.map(sine, v).sum())""",
    "while beside": "lambda v: v @ v * lax.while_loop(lambda c: c < 5, lambda c: c * 2, 1.)",
}
FORWARD = {
    "while": """lambda v: lax.while_loop(lambda c: c[0] < 3,
        lambda c: (c[0] + 1, jnp.sin(c[1]) * v), (0, v))[1].sum()""",
    "while, by value": """lambda v: lax.while_loop(
        lambda c: c.sum() < 20, lambda c: c * 2 + 1, v)[0]""",
    "fori, unknown": """lambda v: jax.jit(lambda m, v: lax.fori_loop(
        0, m, lambda i, c: c * jnp.sin(v), v).sum())(3, v)""",
    "while, condition closed over": """lambda v: lax.while_loop(
        lambda c: c < v @ v * 10, lambda c: c * 2 + v @ v, 1.)""",
    "while in scan": """lambda v: lax.scan(lambda c, a: (lax.while_loop(
        lambda d: d < 2, lambda d: d * 2 + a * a, jnp.abs(c)), c), 1., v)[1].sum()""",
}


# What JAX is asked, and in which other ways the same numbers must come out here.
ASKED = {
    "value": ("f(x)", "jax.value_and_grad(f)(x)[0]"),
    "jvp": ("jax.jvp(f, (x,), (y,))[1]", "jax.linearize(f, x)[1](y)", "jax.jacfwd(f)(x) @ y",
            "jax.jvp(jax.jit(f), (x,), (y,))[1]"),
    "second": ("jax.jvp(lambda v: jax.jvp(f, (v,), (y,))[1], (x,), (y,))[1]",
               "y @ jax.jacfwd(jax.jacfwd(f))(x) @ y"),
    "vmap": ("jax.vmap(f)(W)", "jax.vmap(jax.vmap(f))(W[None])[0]", "jax.vmap(f, 1)(W.T)"),
    "vmap of jvp": ("jax.vmap(lambda v: jax.jvp(f, (v,), (y,))[1])(W)",
                    "jax.jvp(jax.vmap(f), (W,), (jnp.stack([y, y, y]),))[1]",
                    "jax.linearize(jax.vmap(f), W)[1](jnp.stack([y, y, y]))"),
    "grad": ("jax.grad(f)(x)", "jax.jacfwd(f)(x)", "jax.grad(jax.jit(f))(x)",
             "jax.jit(jax.grad(f))(x)"),
    "hessian": ("jax.jvp(jax.grad(f), (x,), (y,))[1]", "jax.grad(lambda v: jax.grad(f)(v) @ y)(x)",
                "jax.grad(lambda v: jax.jvp(f, (v,), (y,))[1])(x)", "jax.hessian(f)(x) @ y"),
    "vmap of grad": ("jax.vmap(jax.grad(f))(W)", "jax.grad(lambda m: jax.vmap(f)(m).sum())(W)",
                     "jax.jit(jax.vmap(jax.grad(f)))(W)"),
}
REVERSE = ("grad", "hessian", "vmap of grad")


@pytest.mark.parametrize("name", {**SMOOTH, **FORWARD})
def test_modes(jax_oracle, name):
    """JAX's numbers, by XLA and by NumPy, in every order of the transformations.

    Each program is well formed.  The numbers are compared within a tolerance, so XLA need not spend
    time on them.
    """
    asked = {k: v for k, v in ASKED.items() if name in SMOOTH or k not in REVERSE}
    f = ours(({**SMOOTH, **FORWARD})[name], __name__)
    first = f"lambda f, x, W: [{', '.join(ways[0] for ways in asked.values())}]"
    program = f"jax.jit({first}, static_argnums=0)({({**SMOOTH, **FORWARD})[name]}, x, W)"
    wanted = jax_oracle.run(source_of(program, __name__)).value
    agree(ours(program, __name__), wanted)
    for (kind, ways), want in zip(asked.items(), wanted):
        kept = [w for w in ways if name in SMOOTH or "grad" not in w]
        g = ours(f"lambda x, W: [{', '.join(kept)}]", __name__, f=f)
        closed = jax.make_jaxpr(g)(x, W)
        check_jaxpr(closed)
        agree(jax.evaluate(closed, x, W), [want] * len(kept), kind)


def agree(got, wanted, kind=""):
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-3, atol=1e-4, err_msg=kind)


def derived(f, derive):
    """Return derivatives of ``f`` outside a compiled function, as strong arrays."""
    found = [f(x), derive(f)(x), jax.vmap(derive(f))(W), jax.jvp(f, (x,), (y,)),
             jax.jit(jax.linearize(f, x)[1])(y)]
    return jax.tree.map(lambda a: jnp.asarray(a) * 1, found)


@pytest.mark.parametrize("name", ["cond", "scan, counter", "while"])
def test_outside_jit(jax_oracle, name):
    derive = "jax.grad" if name in SMOOTH else "jax.jacfwd"
    same(jax_oracle, f"derived({({**SMOOTH, **FORWARD})[name]}, {derive})", rtol=2e-4,
         within=__name__)


def test_scan_is_its_steps_written_out():
    """Values and derivatives, reversed and unrolled, of a random recurrence."""
    rng = np.random.default_rng(5)
    xs, w = rng.normal(size=(5, 3)).astype("float32"), rng.normal(size=(3, 3)).astype("float32")

    def written_out(w, xs, reverse):
        carry, ys = jnp.ones(3), [None] * 5
        for i in reversed(range(5)) if reverse else range(5):
            carry, ys[i] = jnp.tanh(w @ carry + xs[i]), carry * xs[i]
        return (carry * jnp.stack(ys)).sum()

    def scanned(w, xs, reverse, unroll):
        carry, ys = lax.scan(lambda c, x: (jnp.tanh(w @ c + x), c * x), jnp.ones(3), xs,
                             reverse=reverse, unroll=unroll)
        return (carry * ys).sum()

    scanned = jax.jit(jax.value_and_grad(scanned, (0, 1)), static_argnums=(2, 3))
    written_out = jax.jit(jax.value_and_grad(written_out, (0, 1)), static_argnums=2)
    for reverse in (False, True):
        want = written_out(w, xs, reverse)
        for unroll in (1, 3, True):
            got = scanned(w, xs, reverse, unroll)
            for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_differences():
    """The derivative of a loop of branches is the limit of differences, in double precision."""
    with jax.enable_x64(True):
        def f(v):
            def step(c, a):
                return lax.cond(a > 0, lambda: c * jnp.sin(a), lambda: c + a * a), c

            return lax.scan(step, v.sum(), v)[1] @ v

        v = np.array([0.4, -0.7, 1.1, 0.2])
        slope = jax.grad(f)(v)
        for i, unit in enumerate(np.eye(4)):
            difference = (f(v + 1e-6 * unit) - f(v - 1e-6 * unit)) / 2e-6
            np.testing.assert_allclose(slope[i], difference, rtol=1e-7)


def test_backward_rules_inside(jax_oracle):
    def program():
        def f(v):
            def step(c, a):
                return lax.cond(a > 0, thrice, twice, c * a) + a, c

            return lax.scan(step, 1.0, v)[1].sum()

        def g(v):
            return lax.while_loop(lambda c: c < 2, lambda c: c + 1, 0) * lax.map(thrice, v).sum()

        def ways(x, W):
            return [jax.grad(f)(x), jax.vmap(jax.grad(f))(W), jax.grad(g)(x),
                    jax.grad(lambda m: jax.vmap(f)(m).sum())(W)]

        return jax.jit(ways)(x, W)

    same(jax_oracle, program, rtol=1e-5)


def test_branches_not_taken_do_not_reach_the_derivative(jax_oracle):
    """sqrt has an infinite slope at 0, which the other branch must not multiply by zero."""
    def program():
        f = lambda a, b: lax.cond(a > 0, lambda: jnp.sqrt(a) * b, lambda: a * a * b)
        g = lambda b: jax.vmap(lambda a: lax.cond(a > 0, lambda: jnp.log(a * b), lambda: b))(
            jnp.asarray([0.0, -1.0, 2.0])
        ).sum()
        return [
            jax.vmap(jax.grad(f, (0, 1)), (0, None))(jnp.asarray([0.0, -1.0, 4.0]), 2.0),
            jax.grad(lambda v: jax.vmap(f, (0, None))(v, 2.0).sum())(jnp.asarray([0.0, -1.0, 4.0])),
            jax.grad(g)(3.0),
        ]

    same(jax_oracle, program)


def test_integers_along_the_way(jax_oracle):
    def program():
        def f(v, i):
            def step(c, k):
                return (c[0] + k, c[1] * v[c[0] % 3]), (c[0], c[1])

            (_, z), (js, zs) = lax.scan(step, (i, 1.0), jnp.arange(4))
            return z + zs.sum(), js

        v = jnp.asarray([0.3, 2.0, -1.0])
        return [
            jax.grad(f, has_aux=True)(v, 1),
            jax.jvp(lambda v: f(v, 1)[0], (v,), (v,)),
            jax.grad(lambda v, i: f(v, i)[0], (0, 1), allow_int=True)(v, 2)[0],
        ]

    same(jax_oracle, program)


def test_complex_loops(jax_oracle):
    def program():
        f = lambda z: jnp.abs(lax.fori_loop(0, 3, lambda i, c: c * c + z, z)) ** 2
        z = jnp.complex64(0.2 + 0.3j)
        return [jax.grad(f)(z), jax.vmap(jax.grad(f))(jnp.stack([z, 2 * z]))]

    same(jax_oracle, program, rtol=1e-4)


def test_linear_loops_transpose(jax_oracle):
    """A loop that is linear as it stands is transposed without being linearized."""
    def program():
        A = jnp.asarray([[1.0, 2.0], [0.0, 3.0]])
        f = lambda v: lax.scan(lambda c, a: (A @ c, c * 2), v, None, length=3)
        out, pull = jax.vjp(f, jnp.ones(2))
        return [out, pull(out)]

    same(jax_oracle, program)


def test_a_while_loop_beside_the_derivative_is_no_hindrance(jax_oracle):
    def program():
        def f(v):
            n = lax.while_loop(lambda c: c < 10, lambda c: c + 3, 0)
            k = lax.while_loop(lambda c: c.sum() < 9.0, lambda c: c + 1, lax.stop_gradient(v))
            return (v * n * k).sum()

        return jax.grad(f)(jnp.ones(2))

    same(jax_oracle, program)
    same_error(jax_oracle, "jax.grad(lambda v: jax.jit(lambda v: lax.while_loop("
               "lambda c: c.sum() < 9., lambda c: c * 2, v))(v).sum())(jnp.ones(2))",
               "Reverse-mode differentiation does not work for lax.while_loop")

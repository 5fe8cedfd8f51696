"""Does a function with a batching rule do what JAX's does?

Rules that add 100 show that it is they who are asked.

Read before: ``both.py``, ``saem.derivatives.custom_vmap``.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import same, same_error

import saem as jax
from saem import numpy as jnp
from saem.core.infer import check_jaxpr
from saem.custom_batching import custom_vmap, sequential_vmap

seen = []


@custom_vmap
def f(x, y):
    return x * y


@f.def_vmap
def f_rule(size, batched, x, y):
    seen.append([size, list(batched), jnp.shape(x), jnp.shape(y)])
    return x * y + 100.0, batched[0] or batched[1]


@sequential_vmap
def s(x, y):
    return jnp.sin(x) * y


X = np.linspace(0, 1, 3, dtype=np.float32)


def test_the_rule_is_what_vmap_does(jax_oracle):
    def program(x):
        x = jnp.asarray(x)
        seen.clear()
        values = [
            f(x[1], 2.0),
            jax.jit(f)(x, x),
            jax.vmap(f)(x, x),
            jax.vmap(f, (0, None))(x, 2.0),
            jax.vmap(f, (1, None), 1)(jnp.ones((2, 3)), x[:2]),
            jax.jit(jax.vmap(f))(x, x),
            jax.vmap(jax.jit(f))(x, x),
            jax.vmap(lambda a: jax.vmap(lambda b: f(a, b))(x))(x),
            f(x=x, y=2.0),
            jax.vmap(lambda a: jax.lax.scan(lambda c, _: (f(c, 2.0), None), a, None, length=2)[0])(
                x
            ),
        ]
        return [values, seen]

    same(jax_oracle, program, x=X)


def test_forward_mode_differentiates_the_rule(jax_oracle):
    def program(x):
        x = jnp.asarray(x)
        v = jax.vmap(f)
        return [
            jax.jvp(f, (x, x), (x, x)),
            jax.jvp(v, (x, x), (x, x)),
            jax.vmap(lambda a: jax.jvp(f, (a, 2.0), (a, 1.0)))(x),
            # JAX's tangent has the weak type of its primal.
            [a.astype("float32") for a in jax.vmap(lambda t: jax.jvp(f, (1.0, 2.0), (t, 1.0)))(x)],
            jax.jacfwd(f)(1.0, 2.0),
            jax.jit(lambda x: jax.jvp(jax.jit(v), (x, x), (x, x)))(x),
            jax.grad(lambda x: v(x, x).sum())(x),
        ]

    same(jax_oracle, program, x=X)


def test_reverse_mode_needs_a_rule_around(jax_oracle):
    for call in ("jax.grad(f)(1., 2.)", "jax.jit(jax.grad(jax.jit(f)))(1., 2.)"):
        same_error(jax_oracle, call, "Linearization failed to produce known values",
                   within=__name__)

    def program(x):
        x = jnp.asarray(x)

        @jax.custom_vjp
        @custom_vmap
        def w(x, y):
            return jnp.sin(x) * y

        @w.def_vmap
        def w_rule(size, batched, xs, ys):
            return jnp.cos(xs) * ys, True

        w.defvjp(
            lambda x, y: (w(x, y), (jnp.cos(x), jnp.sin(x), y)),
            lambda r, g: (r[0] * g * r[2], r[1] * g),
        )
        return [jax.vmap(w)(x, x), jax.grad(w)(0.0, 1.0), jax.vmap(jax.grad(w))(x, x)]

    same(jax_oracle, program, x=X)


def test_sequential_vmap_is_a_loop(jax_oracle):
    def program(x):
        x = jnp.asarray(x)
        return [
            jax.vmap(s)(x, x),
            jax.vmap(s, (0, None))(x, 2.0),
            s(x, 2.0),
            jax.vmap(lambda a: jax.vmap(lambda b: s(a, b))(x))(x),
            jax.jit(jax.vmap(s))(x, x),
            jax.vmap(lambda x: jax.jvp(s, (x, x), (x, x)))(x),
        ]

    same(jax_oracle, program, x=X)
    seen = []

    @jax.custom_batching.sequential_vmap
    def f(x):
        jax.debug.callback(lambda value: seen.append((value.shape, float(value))), x)
        return x + 1

    np.testing.assert_array_equal(jax.vmap(f)(jnp.arange(3.)), [1., 2., 3.])
    jax.effects_barrier()
    assert seen == [((), 0.), ((), 1.), ((), 2.)]


def test_programs_print_as_jax_prints_them(jax_oracle):
    def program(x):
        x = jnp.asarray(x)

        def shown(f, *args):
            """Return the program of ``f`` without the addresses of functions."""
            named = r"<function (?:[\w<>]*\.)*(\w+) at 0x\w+>"
            return re.sub(named, r"\1", str(jax.make_jaxpr(f)(*args)))

        def closed(c):
            @custom_vmap
            def g(x):
                return x * c

            g.def_vmap(f_rule)
            return g(2.0)

        return [
            shown(f, 1.0, 2.0),
            shown(closed, 1.0),
            shown(jax.vmap(f), x, x),
            shown(jax.vmap(s, (0, None)), x, 2.0),
        ]

    same(jax_oracle, program, x=X)


def refused(rule):
    """Return what ``vmap`` gives of a function with a wrong rule."""
    g = custom_vmap(lambda x: {"a": x})
    g.def_vmap(rule)
    return jax.vmap(g)(jnp.arange(3.0))


@pytest.mark.parametrize(("rule", "sentence"), [
    ("(x, True)", "structure of output returned by custom vmap rule (<lambda>) does not match"),
    ("({'a': x}, True)", "structure of output value and output batching specification returned"),
])
def test_wrong_rules_are_refused_with_jax_s_classes(jax_oracle, rule, sentence):
    same_error(jax_oracle, f"refused(lambda size, batched, x: {rule})", sentence, within=__name__)


def test_missing_rules_and_wrong_stacks_are_refused(jax_oracle):
    same_error(jax_oracle, "jax.custom_batching.custom_vmap(jax.numpy.sin)(1.)",
               "No batching rule defined for custom_vmap function sin using def_vmap.")
    g = jax.custom_batching.custom_vmap(lambda x: x)
    for rule, sentence in ((lambda n, b, x: (x.sum(), True), "its first axis is not the batch"),
                           (lambda n, b, x: x, "must return a pair")):
        g.def_vmap(rule)
        with pytest.raises(ValueError, match=sentence):
            jax.vmap(g)(X)
    with pytest.raises(NotImplementedError, match="closed-over value is batched"):
        jax.vmap(lambda c: outer(c)(2.))(X)
    same(jax_oracle, "jax.vmap(lambda x: x)(x)", x=X)


def outer(c):
    g = jax.custom_batching.custom_vmap(lambda x: x * c)
    g.def_vmap(lambda n, b, x: (x, b[0]))
    return g


def test_programs_are_well_formed():
    g = jax.custom_batching.custom_vmap(lambda x, y: jnp.sin(x) * y)
    g.def_vmap(lambda n, b, x, y: (jnp.sin(x) * y, True))
    for function in (g, jax.vmap(g), lambda x, y: jax.jvp(jax.vmap(g), (x, y), (x, y)),
                     jax.vmap(lambda x, y: jax.jvp(g, (x, y), (x, y)))):
        check_jaxpr(jax.make_jaxpr(function)(X, X))

"""Are programs printed as JAX prints them: those inside others, those that repeat, long lines?

Read before: ``core.pretty``.  Read after: ``test_jaxpr``, ``tests/lens/test_jaxpr_model``.
Invariant: every expected text is real JAX's, letter for letter.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import ours, same, source_of

import saem as jax
import saem.numpy as jnp
from saem import lax

P = jax.sharding.PartitionSpec
x = np.ones(3, np.float32)
mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))


def chain(n, op=jnp.sin):
    def f(x):
        for _ in range(n):
            x = op(x)
        return x

    return f


def named(name, n=11):
    f = chain(n)
    f.__name__ = name
    return f


g = jax.jit(lambda x: jnp.sin(x) * 2)
h = jax.jit(lambda x: g(x) + 1)


@jax.jit
def a(x):
    return jnp.sin(x)


@jax.jit
def b(x):
    return a(x) + 1


@jax.jit
def c(x):
    return b(x) * a(x)


@jax.custom_jvp
def own_jvp(x):
    return chain(11)(x)


@jax.custom_vjp
def own_vjp(x):
    return chain(11)(x)


own_jvp.defjvp(lambda p, t: (p[0], t[0]))
own_vjp.defvjp(lambda x: (x, None), lambda r, ct: (ct,))


def body(carry, _):
    return jnp.sin(carry), carry


def shown(function, *args):
    return str(jax.make_jaxpr(function)(*args))


PROGRAMS = {
    # What stands twice is written in front, under its function's name.
    "twice": "lambda x: g(g(x)), x",
    "once": "lambda x: g(x), x",
    "a program that does nothing, twice": "lambda x: (lambda i: i(i(x)))(jax.jit(lambda x: x)), x",
    "what stands in one used twice stands twice": "lambda x: h(h(x)), x",
    "first met, first written": "lambda x: h(h(g(x))), x",
    "once inside, once after": "lambda x: g(h(x)), x",
    "once inside, once before": "lambda x: h(g(x)), x",
    "level by level": "lambda x: c(b(c(a(x)))), x",
    "level by level again": "lambda x: a(b(c(c(b(x))))), x",
    "an inner one inside a repeated one": "lambda x: (lambda q: q(q(x)))("
        "jax.jit(lambda v: jnp.cos(jax.jit(lambda u: jnp.sin(u))(v)))), x",
    # What has more than ten equations is written in front, too.
    **{f"{n} equations": f"lambda x: jax.jit(chain({n}))(x), x" for n in (9, 10, 11)},
    "long inside long": "lambda x: jax.jit(lambda x: chain(10)(jax.jit(chain(11))(x)))(x), x",
    # Names.
    "two of one name": "lambda x: jax.jit(chain(12))(jax.jit(chain(11))(x)), x",
    "three without a name": "lambda x: jax.checkpoint(chain(13))(jax.checkpoint(chain(12))("
        "jax.checkpoint(chain(11))(x))), x",
    "a function called jaxpr": "lambda x: jax.jit(named('jaxpr'))("
        "jax.checkpoint(chain(11))(x)), x",
    "numbers clash as in JAX": "lambda x: jax.checkpoint(chain(12))(jax.jit(named('jaxpr1'))("
        "jax.checkpoint(chain(11))(x))), x",
    **{f"a name of {n} letters": f"lambda x: (lambda f: f(f(x)))(jax.jit(named('n' * {n}, 1))), x"
       for n in (21, 22, 23, 24)},
    # Every kind of program inside another.
    "checkpoint": "lambda x: (lambda f: f(f(x)))(jax.checkpoint(chain(2))), x",
    "branches": "lambda x: lax.cond(x[0] > 0, g, g, x), x",
    "one long branch": "lambda x: lax.cond(x[0] > 0, chain(12), chain(3), x), x",
    "branches that are calls": "lambda x: lax.cond(x[0] > 0, jax.jit(chain(11)),"
        " jax.jit(chain(12)), x), x",
    "branches without anything": "lambda p: lax.cond(p, lambda: None, lambda: None), True",
    "switch": "lambda i, x: lax.switch("
        "i, [chain(1), chain(11), chain(2), chain(11, jnp.cos)], x), 0, x",
    "scan": "lambda x: lax.scan(body, lax.scan(body, x, None, length=3)[0], None, length=3), x",
    "while": "lambda x: lax.while_loop(lambda v: chain(11, jnp.cos)(v)[0] > 0, chain(11), x), x",
    "custom_jvp": "lambda x: own_jvp(own_jvp(x)), x",
    "custom_vjp": "lambda x: own_vjp(own_vjp(x)), x",
    "shard_map": "lambda x: jax.shard_map(chain(11), mesh=mesh, in_specs=P('d'),"
        " out_specs=P('d'))(x), x",
    "linear solve": "lambda x: lax.custom_linear_solve("
        "lambda v: 2 * v, x, lambda matvec, b: chain(11)(b)), x",
    # What transformations make.
    "vmap": "jax.vmap(lambda x: g(g(x))), np.ones((2, 3), np.float32)",
    "grad": "jax.grad(lambda x: g(g(x)).sum()), x",
    "jvp": "lambda x: jax.jvp(jax.jit(chain(12)), (x,), (x,)), x",
    "loops in loops": "lambda x: lax.scan(lambda c, _: (lax.cond("
        "c[0] > 0, chain(11), chain(1), c), None), x, None, length=2), x",
    # The names of a call's inputs and outputs.
    "one value given thrice": "lambda x: jax.jit(lambda a, b, c: a * b + c)(x, x, x), x",
    "one value returned twice": "lambda x: jax.jit(lambda a: (lambda s: (s, s))(jnp.sin(a)))(x), x",
    "an input returned": "lambda x: jax.jit(lambda a: (a, jnp.sin(jnp.cos(a))))(x), x",
    "a number returned": "lambda x: jax.jit(lambda a: (jnp.sin(jnp.cos(a)), 1.0))(x), x",
    # Parameters.
    "how a call was asked for": "lambda x: jax.jit(chain(2), inline=True, keep_unused=True,"
        " donate_argnums=0)(x), x",
    "a function as policy": "lambda x: jax.checkpoint(chain(2),"
        " policy=jax.checkpoint_policies.everything_saveable)(x), x",
    "an object as policy": "lambda x: jax.checkpoint(chain(2),"
        " policy=jax.checkpoint_policies.dots_saveable)(x), x",
    "no axes": "lambda x: lax.with_sharding_constraint("
        "x, jax.sharding.NamedSharding(mesh, P())), x",
    # Long lines.
    **{f"{n} inputs": f"lambda *xs: jax.checkpoint(lambda *xs: xs[0] + 1)(*xs), *[x] * {n}"
       for n in (7, 8, 9, 24)},
    "scalars": "lambda *xs: xs[0] + 1, *[1.0] * 30",
    "long types": "lambda *xs: xs[0] + 1,"
        " *[np.ones((1, 2, 3, 4, 5)[:n], np.float32) for n in (1, 2, 3, 4, 5, 1, 2, 3)]",
    "many operands": "lambda *xs: lax.concatenate(xs, 0), *[x] * 40",
    "operands to the edge": "lambda *xs: (lambda f: (f(*xs), f(*xs)))("
        "jax.jit(lambda *xs: xs[0] + xs[-1])), *[x] * 22",
    "many results": "lambda *xs: lax.sort(xs), *[x] * 12",
    "more results than fit": "lambda *xs: lax.sort(xs, num_keys=2), *[x] * 40",
    "a wide loop": "lambda *xs: lax.scan("
        "lambda c, _: (tuple(v * 2 for v in c), None), xs, None, length=2), *[x] * 30",
    "many constants": "lambda x: [x + np.arange(3.0) + i for i in range(10)], x",
}


@pytest.fixture(scope="module")
def printed(jax_oracle):
    """Each program's text, ours and JAX's."""
    program = "[" + ", ".join(f"shown({source})" for source in PROGRAMS.values()) + "]"
    there = jax_oracle.run(source_of(program, __name__)).value
    return dict(zip(PROGRAMS, zip(ours(program, __name__), there, strict=True), strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_print_as_in_jax(printed, name):
    here, there = printed[name]
    assert here == there


def test_an_equation_prints_by_itself(jax_oracle):
    def program():
        inner = jax.jit(lambda x: x * 2)
        programs = [
            jax.jit(lambda x: (jnp.sin(x), inner(inner(x)))[1]),
            lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=3),
            lambda x: jnp.sin(x),
            lambda x: x * 2.0,
        ]
        equations = [jax.make_jaxpr(f)(np.ones(3, np.float32)).eqns for f in programs]
        return [text for (eqn,) in equations for text in (str(eqn), repr(eqn), f"{[eqn]}")]

    same(jax_oracle, program)


def test_a_program_inside_another_prints_by_itself(jax_oracle):
    def program():
        f = jax.jit(lambda x: jnp.sin(x) * 2)
        closed = jax.make_jaxpr(jax.jit(lambda x: f(f(x))))(np.ones(3, np.float32))
        inner = closed.eqns[0].params["jaxpr"]
        return [str(inner), repr(inner.jaxpr), closed.pretty_print(use_color=False)]

    same(jax_oracle, program)


def test_deep_sharing_prints_in_short_time():
    # Forty levels, each used twice by the next: 2**40 places, forty programs.
    f = jax.jit(lambda x: x + 1)
    for _ in range(40):
        f = jax.jit(lambda x, f=f: f(f(x)))
    assert shown(f, 1.0).count("\nlet ") == 39

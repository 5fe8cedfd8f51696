"""Do programs with loops and branches print as JAX's, and is work where it should be?

Read before: ``test_control_derivatives.py``.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import ours, same, source_of

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.infer import check_jaxpr
from saem.transform.staging import dead_code_free

X = np.arange(3, dtype="float32")
y = jnp.ones(3)

PROGRAMS = {
    "cond": "lambda x: lax.cond(x.sum() > 0, lambda a: a * y, lambda a: a + 1, x)",
    "cond, closed over": "lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: x + y)",
    "cond, constants": "lambda x: lax.cond(x.sum() > 0, lambda a: a * y, lambda a: x * a, x)",
    "cond, number": "lambda x: lax.cond(x[0], lambda a: a, lambda a: -a, x)",
    "cond, known": "lambda x: lax.cond(2, lambda a: a, lambda a: x * a, x)",
    "switch": "lambda x: lax.switch(x[0].astype(int), [lambda a: a, lambda a: a * 2, jnp.sin], x)",
    "while": """lambda x: lax.while_loop(lambda c: c[0].sum() < 10,
        lambda c: (c[0] + y, c[1] + 1), (x, 0))""",
    "while, unchanged": """lambda x: lax.while_loop(lambda c: c[0] < 10,
        lambda c: (c[0] + 1, c[1] * c[2], c[2]), (0, x, y))""",
    "while, weak": "lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + np.float32(1), 0)",
    "fori": "lambda x: lax.fori_loop(0, 10, lambda i, c: c + y * i, x)",
    "fori, unrolled": "lambda x: lax.fori_loop(0, 10, lambda i, c: c + 1, x, unroll=2)",
    "fori, unknown": """lambda x: lax.fori_loop(0, x[0].astype(int), lambda i, c: c + y * i, x)""",
    "scan": "lambda x: lax.scan(lambda c, a: (c + a * y.sum(), c * 2), 0., x)",
    "scan, closed over": "lambda x: lax.scan(lambda c, a: (c + a * x, c * 2), x, x)",
    "scan, no rows": """lambda x: lax.scan(lambda c, a: (c + x, c * 2), x, None, length=4,
        reverse=True, unroll=2)""",
    "scan, unrolled": "lambda x: lax.scan(lambda c, a: (c + a, c), 0., x, unroll=True)",
    "scan, weak": "lambda x: lax.scan(lambda c, a: (c + a, c), 0, x)",
    "map": "lambda x: lax.map(lambda a: a * 2, x)",
    "associative_scan": "lambda x: lax.associative_scan(jnp.add, jnp.concatenate([x, y]))",
    "vmap of cond": "jax.vmap(lambda x: lax.cond(x > 0, lambda a: jnp.sin(a), lambda a: a * a, x))",
    "vmap of while": "jax.vmap(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c + x, x))",
    "vmap of scan": "jax.vmap(lambda x: lax.scan(lambda c, a: (c + a * x, c), x, y))",
    "jvp of while": """lambda x: jax.jvp(lambda x: lax.while_loop(lambda c: c[0] < 10,
        lambda c: (c[0] + 1, c[1] * x), (0, x))[1], (x,), (x,))""",
    "jvp of scan": """lambda x: jax.jvp(lambda x: lax.scan(lambda c, a: (c * a, c), x, y),
        (x,), (x,))""",
    "grad of fori": """jax.grad(
        lambda x: lax.fori_loop(0, 10, lambda i, c: c * jnp.sin(x), x).sum())""",
}


def shown(f, x):
    return str(jax.make_jaxpr(f)(jnp.asarray(x)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_print_as_jax_prints_them(jax_oracle, name):
    source = PROGRAMS[name]
    if "vmap" in name:
        source = f"lambda x: ({source})(x)"
    program = f"shown({source}, x)"
    wanted = jax_oracle.run(source_of(program, __name__, ["x"]), x=X).value
    # JAX's NumPy axes print as np.int64(1) in places; the number is what counts.
    wanted = wanted.replace("np.int64(1)", "1").replace("np.int64(0)", "0")
    wanted = wanted.replace("np.int64(2)", "2")
    assert squeezed(ours(program, __name__, x=X)) == squeezed(wanted)


def squeezed(text):
    """Return a jaxpr without its line breaks, which depend on what was replaced."""
    return " ".join(text.split())


def primitives_in(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def scans(closed):
    return [eqn.operation for eqn in closed.jaxpr.eqns if eqn.primitive.name == "scan"]


def test_work_on_constants_is_done_once():
    """What a body computes of its constants alone is outside the loop, its residual not stacked."""
    closed = jax.make_jaxpr(jax.grad(lambda w: lax.scan(
        lambda c, a: (c * jnp.sin(w) * a, None), 1.0, jnp.ones(5))[0]))(0.3)
    first, second = scans(closed)
    assert {"sin", "cos"} <= set(primitives_in(closed.jaxpr))
    assert not {"sin", "cos"} & set(primitives_in(first.jaxpr.jaxpr))
    assert not {"sin", "cos"} & set(primitives_in(second.jaxpr.jaxpr))


def test_rows_that_are_residuals_are_read_again():
    """The backward pass reads the operand itself, not a copy that the forward pass stacked."""
    rows = jnp.ones((50, 20))
    closed = jax.make_jaxpr(jax.grad(lambda c: lax.scan(
        lambda c, a: (c * a, None), c, rows)[0].sum()))(jnp.ones(20))
    first, second = (eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "scan")
    assert len(first.outvars) == 1
    (operand,) = closed.jaxpr.constvars
    assert operand in first.invars and operand in second.invars


def test_a_residual_of_one_branch_is_shared_by_type():
    closed = jax.make_jaxpr(jax.grad(lambda x: lax.switch(
        1, [jnp.sin, jnp.cos, jnp.exp], x).sum()))(jnp.ones(4))
    first = next(eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "cond")
    assert [v.aval.shape for v in first.outvars] == [(4,), (4,)]


def test_the_text_is_one_loop():
    text = jax.jit(lambda x: lax.scan(lambda c, a: (jnp.sin(c) + a, c), 0.0, x)).lower(
        jnp.ones(100)).as_text()
    assert text.count("stablehlo.while") == 1 and text.count("stablehlo.sine") == 1
    unrolled = jax.jit(lambda x: lax.scan(lambda c, a: (jnp.sin(c) + a, c), 0.0, x,
                                          unroll=3)).lower(jnp.ones(100)).as_text()
    # Three in the loop, and the hundredth after it.
    assert unrolled.count("stablehlo.while") == 1 and unrolled.count("stablehlo.sine") == 4
    straight = jax.jit(lambda x: lax.scan(lambda c, a: (jnp.sin(c) + a, c), 0.0, x,
                                          unroll=True)).lower(jnp.ones(4)).as_text()
    assert "stablehlo.while" not in straight and straight.count("stablehlo.sine") == 4


def test_the_text_does_not_depend_on_what_is_closed_over():
    def program(number):
        array = jnp.full(3, number)
        return jax.jit(lambda x: lax.scan(lambda c, a: (c + a * array, None), x, x)[0]).lower(
            jnp.ones(3)).as_text()

    assert program(1.0) == program(2.0)


def test_parameters_are_those_of_jax(jax_oracle):
    def program(x):
        def params(f, *args):
            return sorted(jax.make_jaxpr(f)(*args).jaxpr.eqns[-1].params)

        return [
            params(lambda x: lax.scan(lambda c, a: (c + a, c), 0.0, x), x),
            params(lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: c + 1, x), x),
            params(lambda p, x: lax.cond(p, lambda a: a, lambda a: -a, x), True, x),
        ]

    same(jax_oracle, program, x=X)


def test_dead_code_inside_loops_and_branches_is_dropped():
    """What nobody reads is not computed: carries, rows, constants; the rest is as it was."""
    def f(x, w):
        _, (ys, _) = lax.scan(lambda c, a: ((c[0] + a, jnp.sin(c[1]) * w), (c[0], c[1])),
                              (0., w), x)
        _, kept, _ = lax.while_loop(lambda c: c[0] < 3,
                                    lambda c: (c[0] + 1, c[1] * 2, jnp.cos(c[2]) * w), (0, ys, w))
        out, _ = lax.cond(x[0] > 0, lambda: (kept, jnp.tanh(w)), lambda: (-kept, w))
        return out

    x, w = jnp.arange(3.0), jnp.float32(0.5)
    closed = jax.make_jaxpr(f)(x, w)
    trimmed = closed.replace(jaxpr=dead_code_free(closed.jaxpr))
    check_jaxpr(trimmed)
    scan, loop, choice = (eqn for eqn in trimmed.jaxpr.eqns
                          if eqn.primitive.name in ("scan", "while", "cond"))
    assert len(scan.invars) == 2 and len(scan.outvars) == 2
    assert len(loop.invars) == 2 and len(loop.outvars) == 2
    assert len(choice.invars) == 2 and len(choice.outvars) == 1
    for name in ("sin", "cos", "tanh"):
        assert name in str(closed) and f" {name} " not in str(trimmed)
    np.testing.assert_array_equal(jax.evaluate(trimmed, x, w)[0], f(x, w))


def test_lines_inside_loops_keep_their_places():
    def body(c, a):
        return jnp.sin(c) + a, c

    def f(x):
        return lax.cond(x[0] > 0, lambda: lax.scan(body, 0.0, x)[0], lambda: jnp.cos(x[0]))

    text = jax.jit(f).lower(jnp.ones(4)).as_text(debug_info=True)
    line = body.__code__.co_firstlineno + 1
    (place,) = re.findall(rf'(#loc\d*) = loc\(".*test_control_programs\.py":{line}:\d+\)', text)
    (name,) = re.findall(rf'(#loc\d*) = loc\("[^"]*/sin"\({place}\)\)', text)
    assert re.search(rf"stablehlo\.sine .*loc\({name}\)", text)

"""Does a program print what JAX's prints, when JAX's does, under every transformation?"""

from __future__ import annotations

import io
import logging
import sys

import numpy as np
import pytest
from both import same_error
from printing import both_print

import saem as jax
import saem.numpy as jnp
from saem import debug, lax
from saem.core.events import Compile, bus
from saem.effects.breakpoints import DebuggerQuit

X = np.arange(3.0, dtype=np.float32)
x = jnp.arange(3.0)
P = jax.debug.print

# Each program prints with ordered=True wherever the order of lines is not otherwise determined.
PROGRAMS = {
    "positional and keyword": "P('{} {a} {b[0]} {x.shape}', x, a=1, b=[2, 3], x=x)",
    "formats": "jax.jit(lambda x: P('{x:.3f} {x!r} {x!s:>10}|', x=x))(1.5)",
    "width from an argument": "P('{x:{w}}|', x=1., w=8)",
    "dtypes": """
        jax.jit(lambda x: P('{} {} {} {}', x.astype(jnp.bfloat16), x > 1, x.astype(jnp.int8),
                            x + 1j))(x)
    """,
    "strings and none": "jax.jit(lambda x: P('{} {a}', 's', a=[x, 't', None, 3]))(x)",
    "no placeholders": "(P('a {{}} b'), P('a', x, skip_format_check=True))",
    "many numbers": "jax.jit(lambda x: P('{}', x))(jnp.arange(2000))",
    "skipping the check": "P('a {}', x, x, skip_format_check=True)",
    "without a string": "P(ordered=True)('{}', x)",
    "vmap": "jax.vmap(lambda x: (P('{}', x), x)[1])(x)",
    "vmap of nothing batched": "jax.vmap(lambda x: (P('once {}', 1.), x)[1])(x)",
    "vmap twice": """
        jax.vmap(jax.vmap(lambda x, y: P('{} {}', x, y, ordered=True), (0, None)), (None, 0))(
            x[:2], x)
    """,
    "jit of vmap": "jax.jit(jax.vmap(lambda x: P('{}', x, ordered=True)))(x)",
    "grad": "jax.grad(lambda x: (P('{}', x), x * x)[1])(3.)",
    "grad of jit": "jax.grad(jax.jit(lambda x: (P('{}', x), jnp.sin(x))[1]))(3.)",
    "jit of grad": "jax.jit(jax.grad(lambda x: (P('{}', x), jnp.sin(x))[1]))(3.)",
    "jvp": "jax.jvp(lambda x: (P('{}', x), x * x)[1], (3.,), (1.,))",
    "second derivative": "jax.grad(jax.grad(lambda x: (P('{}', x), x * x)[1]))(3.)",
    "scan": """
        print(lax.scan(lambda c, y: (P('c={} {}', c, y, ordered=True), (c * y, c))[1], 2.,
                       jnp.arange(1., 4.))[0])
    """,
    "while": """
        lax.while_loop(lambda i: i < 3, lambda i: (P('i={}', i, ordered=True), i + 1)[1], 0)
    """,
    "while, its condition": "lax.while_loop(lambda i: (P('{}', i), i < 3)[1], lambda i: i + 1, 0)",
    "fori": "lax.fori_loop(0, 3, lambda i, c: (P('{} {}', i, c, ordered=True), c * 2)[1], 1)",
    "map": "lax.map(lambda x: (P('{}', x, ordered=True), x)[1], x)",
}


def printing(function):
    """Take one more program, named after its function."""
    PROGRAMS[function.__name__.replace("_", " ")] = function
    return function


@printing
def print_options_of_the_call():
    with np.printoptions(precision=2):
        f = jax.jit(lambda x: P("{}", x / 3)).lower(x).compile()
    f(x)


@printing
def jit():
    f = jax.jit(lambda x: (P("x={x} {}", x + 1, x=x), x * 2)[1])
    f(x), f(x)


@printing
def in_order():
    @jax.jit
    def f(x):
        P("first {}", x, ordered=True)
        y = jax.jit(lambda x: (P("second {}", x, ordered=True), x + 1)[1])(x)
        P("third {}", y, ordered=True)
        return y

    y = x
    for _ in range(4):
        y = f(y)


@printing
def eager_after_jit():
    f = jax.jit(lambda x: (P("in jit {}", x[0], ordered=True), x)[1])
    f(jnp.ones(200000))
    P("after", ordered=True)


@printing
def scan_backwards_unrolled():
    f = lambda c, y: (P("c={}", c, ordered=True), (c * y, c))[1]
    jax.jit(lambda x: lax.scan(f, 2.0, x, reverse=True, unroll=2)[0])(jnp.arange(1.0, 6.0))


@printing
def grad_of_scan():
    f = lambda c, y: (P("c={}", c, ordered=True), (c * y, c))[1]
    jax.grad(lambda x: lax.scan(f, x, jnp.arange(1.0, 4.0))[0])(2.0)


@printing
def vmap_of_scan():
    f = lambda c, y: (P("c={}", c, ordered=True), (c * y, c))[1]
    jax.vmap(lambda x: lax.scan(f, x, jnp.arange(1.0, 3.0))[0])(x[:2])


@printing
def while_its_condition_in_order():
    c = lambda s: (P("c={}", s[0], ordered=True), s[0] < s[2])[1]
    b = lambda s: (P("b={}", s[0], ordered=True), (s[0] + 1, s[1] * 2, s[2]))[1]
    twice = lambda n: lax.fori_loop(0, 2, lambda i, s: lax.while_loop(c, b, (0, s, n))[1], 1)
    print(jax.jit(twice)(3))


@printing
def while_of_different_lengths():
    f = lambda i: (P("i={}", i, ordered=True), i + 1)[1]
    print(jax.vmap(lambda x: lax.while_loop(lambda i: i < x, f, 0.0))(x))


@printing
def cond():
    f = lambda x: (P("yes {}", x, ordered=True), x + 1)[1]
    g = jax.jit(lambda x: lax.cond(x > 1, f, lambda x: x, x))
    g(2.0), g(0.0), jax.grad(g)(3.0)


@printing
def cond_each_its_own():
    f = lambda x: (P("yes {}", x, ordered=True), x + 1)[1]
    g = lambda x: (P("no {}", x, ordered=True), x)[1]
    jax.vmap(lambda x: lax.cond(x > 1, f, g, x))(x)


@printing
def custom_jvp():
    f = jax.custom_jvp(lambda x: (P("in f {}", x, ordered=True), x * 2)[1])
    f.defjvp(lambda p, t: (f(p[0]), (P("tangent {}", t[0]), t[0] * 2)[1]))
    f(1.0), jax.jvp(f, (1.0,), (1.0,)), jax.grad(f)(1.0), jax.jit(f)(1.0), jax.jit(jax.grad(f))(1.0)


@printing
def custom_vjp():
    f = jax.custom_vjp(lambda x: (P("in f {}", x), x * 2)[1])
    f.defvjp(
        lambda x: (P("forward {}", x), (x * 2, x))[1],
        lambda r, ct: (P("backward {} {}", r, ct), (ct * 2,))[1],
    )
    jax.grad(f)(3.0), jax.jit(jax.grad(f))(3.0), jax.jit(f)(3.0)


@printing
def checkpoint():
    f = jax.checkpoint(lambda x: (P("c={}", x, ordered=True), jnp.sin(x))[1])
    jax.jit(f)(2.0), jax.grad(f)(2.0), jax.jit(jax.grad(f))(2.0)
    jax.jit(jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]))(2.0)


@printing
def custom_vmap():
    f = jax.custom_batching.custom_vmap(lambda x: (P("one {}", x, ordered=True), x)[1])
    f.def_vmap(lambda n, b, x: ((P("all {}", x, ordered=True), x)[1], b[0]))
    jax.jit(f)(2.0), jax.jit(jax.vmap(f))(x)


@printing
def a_linear_solve():
    solve = lambda b: lax.custom_linear_solve(
        lambda x: 2 * x, b, lambda _, b: (P("b={}", b, ordered=True), b / 2)[1], symmetric=True
    )
    jax.jit(lambda b: (P("first", ordered=True), solve(b))[1])(3.0), jax.jit(jax.grad(solve))(3.0)


@printing
def without_jit():
    with jax.disable_jit():
        f = lambda c, y: (P("c={}", c), (c * y, c))[1]
        jax.jit(lambda x: lax.scan(f, x, jnp.arange(1.0, 4.0))[0])(2.0)


@printing
def callback():
    def show(*args, **kwargs):
        print([np.asarray(a).tolist() for a in args], sorted(kwargs), flush=True)

    jax.debug.callback(show, x, k=x)
    jax.jit(lambda x: jax.debug.callback(show, x, 1, k=x))(x)
    jax.vmap(lambda x: jax.debug.callback(show, x))(x)
    jax.grad(lambda x: (jax.debug.callback(show, x), x)[1])(1.0)
    jax.debug.callback(ordered=True)(show, x)


@pytest.fixture(scope="module")
def printed(jax_oracle):
    """What each program prints, here and in JAX."""
    return both_print(jax_oracle, PROGRAMS, __name__)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_printed_is_what_jax_prints(printed, name):
    here, there = printed[name]
    assert there and "raised" not in there, "the program is meant to print"
    assert here == there


@pytest.mark.parametrize(("program", "words"), [
    ("jax.debug.print('{} {}', 1)", "tuple index out of range"),
    ("jax.debug.print('{}', 1, 2)", "Unused positional arguments to `jax.debug.print`: [2]"),
    ("jax.debug.print('{a}', x=1)", "a"),
    ("jax.jit(lambda x: jax.debug.print(f'{x}', x=x))(1.)", "You may be passing an f-string"),
    ("jax.debug.print('a {')", "Single '{' encountered in format string"),
    ("jax.debug.print(1)", "expected str, got"),
    ("jax.debug.callback(3)", "first argument to jax.debug.callback must be callable"),
])
def test_a_format_that_does_not_fit_is_refused_where_it_is_written(jax_oracle, program, words):
    same_error(jax_oracle, program, words)


def test_the_jaxpr_shows_the_print_as_jax_does(jax_oracle):
    source = "lambda x: (jax.debug.print('{} {a}', 's', a=x, ordered=True), x)[1]"
    assert str(jax.make_jaxpr(eval(source))(X)) == jax_oracle.jaxpr(source, X)


def test_a_key_prints_the_words_that_hold_it(capsys):
    jax.jit(lambda k: debug.print("{}", k))(jax.random.key(3))
    jax.effects_barrier()
    assert "[0 3]" in capsys.readouterr().out


def test_log_goes_to_the_log_with_the_line_of_the_call(caplog):
    with caplog.at_level(logging.INFO, "saem.debug"):
        jax.jit(lambda x: debug.log("x is {}", x))(2.0)
        jax.effects_barrier()
    record = next(r for r in caplog.records if r.name == "saem.debug")
    assert record.getMessage() == "x is 2.0" and record.pathname == __file__


def test_equal_prints_are_compiled_once():
    def fresh():
        return jax.jit(lambda x: (debug.print("compiled once {}", x), x + 41)[1])

    compiled = []
    stop = bus.subscribe(compiled.append)
    try:
        fresh()(1.0), fresh()(2.0)
    finally:
        stop()
    assert [e.found for e in compiled if isinstance(e, Compile)] == [False, True]


# -- breakpoints -----------------------------------------------------------------------------------


def inner(y):
    k = 7
    z = y * 2
    debug.breakpoint()
    return z + k


def outer(x):
    w = {"sine": jnp.sin(x), "name": "abc"}
    return inner(w["sine"]) + 1


def at_breakpoint(monkeypatch, capsys, commands, program):
    """Run ``program`` with ``commands`` typed at its breakpoints; returns what was shown."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(commands) + "\n"))
    result = program()
    jax.effects_barrier()
    return result, capsys.readouterr().out


@pytest.mark.parametrize("run", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_breakpoint_shows_values_in_every_frame(monkeypatch, capsys, run):
    result, shown = at_breakpoint(
        monkeypatch, capsys,
        ["p k", "p z[1]", "p w", "u", "p w['name']", "pp w['sine'][1]", "bt", "d", "l", "k + 1",
         "p nothing", "c"], lambda: run(outer)(X))
    np.testing.assert_allclose(result, 2 * np.sin(X) + 8, rtol=1e-6)
    assert shown.startswith("Entering jdb:\n(jdb) 7\n")
    assert "(jdb) Array(1.682942, dtype=float32)" in shown or "1.68294" in shown
    assert "*** NameError: name 'w' is not defined" in shown
    assert "(jdb) 'abc'\n" in shown and "0.841" in shown
    assert "->      debug.breakpoint()" in shown and "(jdb) 8\n" in shown
    trace = shown[shown.index("Traceback:"):]
    assert trace.index("in outer") < trace.index("in inner")
    assert "*** NameError: name 'nothing' is not defined" in shown


def how_deep(n=0):
    """Return how many calls Python allows from here on."""
    try:
        return how_deep(n + 1)
    except RecursionError:
        return n


def test_a_breakpoint_beside_what_is_no_pytree_costs_no_depth(monkeypatch, capsys):
    inside = []
    inside.append({"itself": [inside]})
    unsortable = [[{1: X, "a": X}], (i for i in range(3))]

    def among(x):
        odd = inside, unsortable
        return inner(x * len(odd))

    before = how_deep()
    for _ in range(3):
        _, shown = at_breakpoint(monkeypatch, capsys, ["p z", "u", "p odd[1][0][0]['a'][0]", "c"],
                                 lambda: among(jnp.float32(1)))
    assert how_deep() == before
    assert "(jdb) Array(4., dtype=float32)" in shown and "(jdb) np.float" in shown


def test_a_breakpoint_stops_once_per_example_and_in_the_forward_pass(monkeypatch, capsys):
    _, shown = at_breakpoint(monkeypatch, capsys, ["p y", "c"] * 3, lambda: jax.vmap(outer)(X))
    assert shown.count("Entering jdb:") == 3
    _, shown = at_breakpoint(monkeypatch, capsys, ["p y", "c"], lambda: jax.grad(outer)(0.5))
    assert "0.479" in shown


def test_q_gives_the_program_up_and_the_engine_goes_on(monkeypatch, capsys):
    with pytest.raises(DebuggerQuit):
        at_breakpoint(monkeypatch, capsys, ["q"], lambda: outer(X))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        at_breakpoint(monkeypatch, capsys, ["q"], lambda: jax.jit(outer)(X))
    assert isinstance(caught.value.__cause__, DebuggerQuit)
    assert float(jax.jit(lambda x: x + 1)(1.0)) == 2.0
    with pytest.raises(ValueError, match="backend"):
        debug.breakpoint(backend="web")


def test_a_breakpoint_in_a_branch_stops_only_there(monkeypatch, capsys):
    def f(x):
        return lax.cond(x > 1, inner, lambda y: y, x)

    _, shown = at_breakpoint(monkeypatch, capsys, ["p y", "c"], lambda: jax.jit(f)(0.0))
    assert shown == ""
    _, shown = at_breakpoint(monkeypatch, capsys, ["p y", "c"], lambda: jax.jit(f)(5.0))
    assert "5." in shown

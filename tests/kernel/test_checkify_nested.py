"""Does an error come out of every program inside a program, and out of no step that was not taken?

Loops, branches, calls, custom rules, checkpoints, maps, devices, derivatives and checked functions
inside checked functions: messages and results are JAX's where JAX has them.

Read before: ``test_checkify.py``, ``saem.experimental.checkify.transform``.
"""

from __future__ import annotations

import checking
import numpy as np
import pytest
from both import ours, same, same_error
from drawing import inputs, programs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import saem as jax
from saem import lax
from saem import numpy as jnp
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import evaluate
from saem.experimental import checkify

pytestmark = pytest.mark.usefixtures("little_effort")

CONTROL = [
    "said(lambda x: lax.cond(x > 0, lambda x: chk(x - 5, 't {}'), lambda x: chk(x, 'f {}'), x), "
    "F(1))",
    "said(lambda x: lax.cond(x > 0, lambda x: chk(x - 5, 't {}'), jnp.log, x), F(-1))",
    "said(lambda x: lax.cond(x > 0, lambda x: x, lambda x: chk(x, 'f {}'), x), F(1))",
    *(f"said(lambda i, x: lax.switch(i, [lambda x: chk(x, 'zero {{}}'), lambda x: chk(x - 9, 'one "
      f"{{}}'), lambda x: x / 0], x), I({i}), F(1))" for i in range(3)),
    "said(lambda x: lax.while_loop(lambda x: x < 5, lambda x: chk(x + 1), x), F(-5))",
    "said(lambda x: lax.while_loop(lambda x: chk(x, 'c {}') < 5, lambda x: x + 1, x), F(-5))",
    "said(lambda x: lax.while_loop(lambda x: chk(5 - x, 'c {}') > 0, lambda x: x + 1, x), F(3))",
    "said(lambda x: lax.while_loop(lambda x: chk(x, 'c {}') < 5, lambda x: chk(x + 1, 'b {}'), x),"
    " F(-5), jit=True)",
    "said(lambda x: lax.while_loop(lambda x: x < 5, lambda x: jnp.log(x) + 6, x), F(-5))",
    "said(lambda x: lax.while_loop(lambda x: x < 5, lambda x: chk(x + 1), x), F(9))",
    "said(lambda x: lax.while_loop(lambda x: chk(x) < 5, lambda x: chk(x + 1), x), F(-5), "
    "errors=c.index_checks)",
    "said(lambda x: lax.fori_loop(0, 5, lambda i, x: chk(x - 1), x), F(3))",
    "said(lambda x: lax.fori_loop(0, 5, lambda i, x: (c.check(i < 3, 'i {i} {x}', i=i, x=x), "
    "x - 1)[1], x), F(3))",
    "said(lambda n, x: lax.fori_loop(0, n, lambda i, x: chk(x - 1), x), I(5), F(3))",
    "said(lambda x: lax.scan(lambda s, x: (s + x, chk(x)), F(0), x), 2 - X)",
    "said(lambda x: lax.scan(lambda s, x: (s + x, chk(x)), F(0), x, reverse=True), 2 - X, "
    "jit=True)",
    "said(lambda x: lax.scan(lambda s, x: (s + x, chk(x)), F(0), x), jnp.zeros(0))",
    "said(lambda x: lax.scan(lambda s, x: (chk(s, 's {}') + x, chk(x, 'x {}')), F(1), x), 1 - X)",
    "said(lambda x: lax.scan(lambda s, x: (s + x, x), F(0), x), X, errors=c.user_checks)",
    "said(lambda x: lax.scan(lambda s, x: (s, chk(x)), F(0), x), X, errors=c.nan_checks)",
    "said(lambda x: lax.scan(lambda s, i: (s + x[i], lax.scan(lambda s, x: (s, chk(x)), s, x)), "
    "F(0), jnp.array([0, 9])), X)",
    "said(lambda x: lax.map(chk, x), 1 - X)",
    "said(lambda x: lax.associative_scan(lambda a, b: a / b, x), X)",
    "said(lambda x: lax.scan(lambda s, x: lax.cond(x > 1, lambda s: (s, chk(s, 'in {}')), lambda "
    "s: (s - 2, x), s), F(1), x), X)",
]
DERIVATIVES = [
    "said(jax.grad(ln), F(-1))", "said(jax.value_and_grad(ln), F(-1), errors=c.user_checks)",
    "said(jax.grad(jax.jit(ln)), F(-1))",
    "said(jax.jit(jax.grad(jax.jit(ln))), F(-1), errors=c.user_checks, jit=True)",
    "said(jax.grad(jnp.sqrt), F(0))",
    "said(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.)), F(0))",
    "said(lambda x: jax.jvp(ln, (x,), (x,)), F(-1), errors=c.user_checks)",
    "said(jax.hessian(ln), F(-1), errors=c.user_checks)",
    "said(jax.grad(lambda x: lax.cond(x > 0, lambda x: chk(x - 5) ** 2, lambda x: x, x)), F(1), "
    "errors=c.user_checks)",
    "jax.grad(lambda x: c.checkify(ln)(x)[1])(F(-1))",
    "jax.grad(lambda x: c.checkify(jax.jit(ln))(x)[1])(F(-1))",
    "(lambda r: (r[0][1].get(), r[1]))(jax.value_and_grad(lambda x: c.checkify(ln, "
    "errors=c.all_checks)(x)[::-1], has_aux=True)(F(-1)))",
    "jax.grad(lambda x: c.checkify(lambda x: lax.scan(lambda s, x: (s * chk(x), None), F(1), x)[0]"
    ")(x)[1])(2 - X)",
    "jax.grad(lambda x: c.checkify(lambda x: lax.cond(x > 0, lambda x: chk(x - 5) ** 2, lambda x: "
    "x, x))(x)[1])(F(1))",
    "jax.jvp(lambda x: c.checkify(lambda x: lax.while_loop(lambda x: x < 5, lambda x: chk(x * 2),"
    " x))(x)[1], (F(1),), (F(1),))",
    "said(cj, F(-1))", "said(jax.grad(cj), F(-1))", "said(jax.grad(cj), F(6))",
    "said(jax.jit(jax.grad(jax.jit(cj))), F(-1))",
    "jax.grad(lambda x: c.checkify(cj)(x)[1])(F(6))",
    "said(cv, F(-1))", "said(jax.grad(cv), F(-1))", "said(jax.grad(cv), F(6))",
    "said(jax.grad(cv), F(9))", "said(jax.grad(jax.jit(cv)), F(9))",
    "jax.grad(lambda x: c.checkify(cv)(x)[1])(F(9))",
    "said(jax.checkpoint(ln), F(-1))",
    "said(jax.grad(jax.checkpoint(ln)), F(-1), errors=c.user_checks)",
    "jax.grad(lambda x: c.checkify(jax.checkpoint(ln))(x)[1])(F(-1))",
]
MAPPED = [
    "said(jax.vmap(chk), 1 - X)", "said(jax.vmap(jax.vmap(chk)), M - 2)",
    "jax.vmap(c.checkify(chk))(1 - X)[0].get()",
    "jax.vmap(jax.vmap(c.checkify(chk)))(M - 2)[0].get()",
    "jax.vmap(c.checkify(jax.vmap(chk)))(M - 2)[0].get()",
    "jax.jit(jax.vmap(c.checkify(chk)))(1 - X)[0].get()",
    "jax.vmap(c.checkify(lambda x, y: (chk(y), x)[1]), in_axes=(0, None))(X, F(-1))[0].get()",
    "jax.vmap(c.checkify(lambda x: x / x, errors=c.all_checks))(X)[0].get()",
    "jax.vmap(c.checkify(lambda x: (ln(x), c.check(x > -1, 'two'))))(1 - X)[0].get()",
    "jax.vmap(c.checkify(lambda x: (c.check(x > -1, 'two'), ln(x))))(1 - X)[0].get()",
    "jax.vmap(c.checkify(lambda x, i: x[i], errors=c.all_checks))(M, jnp.array([0, 4]))[0].get()",
    "said(jax.vmap(lambda x: lax.cond(x > 0, lambda x: chk(x - 5, 't {}'), lambda x: chk(x, "
    "'f {}'), x)), jnp.array([9., 1., -1.]))",
    "jax.vmap(c.checkify(lambda x: lax.cond(x > 0, lambda x: chk(x - 5, 't {}'), lambda x: chk(x, "
    "'f {}'), x)))(jnp.array([9., 1., -1.]))[0].get()",
    "said(jax.vmap(lambda x: lax.scan(lambda s, x: (s + x, chk(x)), F(0), x)), M - 1)",
    "jax.vmap(c.checkify(lambda x: lax.scan(lambda s, x: (s + x, chk(x)), F(0), x)))(M - 1)[0]"
    ".get()",
    "said(jax.vmap(lambda x: lax.psum(x, 'i') / x, axis_name='i'), X)",
]
NESTED = [
    f"said(lambda x: (lambda r: (c.check_error(r[0]), r[1])[1])(c.checkify(ln, errors={inner})(x))"
    f", F(-1), errors={outer})"
    for inner in ("c.nan_checks", "c.nan_checks | c.user_checks")
    for outer in ("c.all_checks", "c.user_checks", "c.nan_checks", "c.div_checks")] + [
    "said(lambda x: (c.check_error(c.checkify(jnp.log, errors=c.nan_checks)(x)[0]), "
    "c.check(x > 0, 'after')), F(-1))",
    "said(lambda x: c.check_error(jax.vmap(c.checkify(ln))(x)[0]), X)",
    "said(jax.vmap(lambda x: c.check_error(c.checkify(ln)(x)[0])), X, errors=c.user_checks)",
    "said(jax.jit(lambda x: c.checkify(chk)(x)[0].throw()), X)",
    "c.checkify(c.checkify(ln, errors=c.nan_checks))(F(-1))[1][0].get()",
]
Y = "jnp.array([1., 2., -1., -2.])"
ON_DEVICES = [
    *(f"said(on_four({f}, P('d'), check_vma={check}), {Y}, jit={jit})"
      for f in ("chk", "jnp.log", "lambda x: jnp.log(x * x) / lax.psum(x * x, 'd')")
      for check, jit in ((True, True), (False, False))),
    f"said(jax.jit(on_four(chk, P('d'))), {Y})",
    "on_four(lambda x: (lambda e, y: (jax.tree.map(lambda a: a[None], e), y))(*c.checkify(chk)(x)"
    f"), P('d'))({Y})[0].get()",
    f"said(jax.pmap(chk), {Y})", f"jax.pmap(c.checkify(chk))({Y})[0].get()",
    f"said(jax.pmap(jnp.log), {Y})",
    "said(on_square(chk, P('a', 'b')), jnp.array([[1., -2.], [3., -4.]]))",
    "jax.vmap(c.checkify(on_square(chk, P('a'))))(jnp.array([[1., -2.], [3., -4.]]))[0].get()",
    "jax.grad(lambda x: c.checkify(on_square(lambda x: chk(x) ** 2, P('a')))(x)[1].sum())"
    "(jnp.array([1., -2.]))",
]


@pytest.mark.parametrize("expression", [*CONTROL, *DERIVATIVES, *MAPPED, *NESTED])
def test_checks_inside_say_what_jax_says(jax_oracle, expression):
    same(jax_oracle, expression, within=checking)


@pytest.mark.parametrize("expression", [
    "said(whole, X)", "said(jax.jit(whole), X + 2, jit=True)", "said(loop, X)",
    "said(loop, X, jit=True)", "said(branch, X)", "said(branch, -X, jit=True)"])
def test_references_say_what_jax_says(jax_oracle, expression):
    same(jax_oracle, expression, within=checking)


@pytest.mark.parametrize("expression", ON_DEVICES)
def test_devices_say_what_jax_says(jax_oracle, expression):
    same(jax_oracle, expression, within=checking)


REFUSED = [
    ("said(jax.vmap(lambda x: lax.while_loop(lambda x: x < 5, lambda x: jnp.log(x), x)), X)",
     "Checkify does not support batched while-loops (checkify-of-vmap-of-while)."),
    ("jax.grad(lambda x: c.checkify(cj)(x)[1])(F(-1))", "rule -1.0 (`check` failed)"),
    ("jax.grad(lambda x: c.checkify(cv)(x)[1])(F(-1))", "fwd -1.0 (`check` failed)"),
]


@pytest.mark.parametrize(("source", "sentence"), REFUSED)
def test_refusals_are_jaxs(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, within=checking)


# -- where JAX loses an error, or finds one that is none -------------------------------------------


def said(expression):
    return ours(expression, within=checking)


def test_a_check_in_a_scan_is_not_lost_when_it_is_differentiated():
    f = "lambda x: lax.scan(lambda s, x: (s * chk(x), None), F(1), x)[0]"
    assert said(f"said(jax.grad({f}), 2 - X)")[0] == "bad 0.0 (`check` failed)"
    assert said(f"said(jax.grad({f}), 2 + X)")[0] == ""


def test_a_branch_that_no_example_takes_does_not_fail():
    f = "jax.vmap(lambda x: lax.cond(x > 2, lambda x: x, lambda x: chk(3 - x), x))"
    assert said(f"said({f}, X + 3)")[0] == ""
    assert said(f"said({f}, X)")[0] == ""
    f = f.replace("3 - x", "x")
    assert said(f"said({f}, X)")[0] == "bad 0.0 (`check` failed)"
    nested = f"jax.vmap(lambda x: lax.cond(x[0] > 2, lambda x: x, {f}, x))"
    assert said(f"said({nested}, M)")[0] == "bad 0.0 (`check` failed)"
    assert said(f"said({nested}, M + 3)")[0] == ""


def test_each_example_of_a_loop_fails_for_itself():
    f = "c.checkify(lambda x: lax.while_loop(lambda x: x < 5, lambda x: chk(x + 1), x))"
    errs, out = said(f"jax.vmap({f})(jnp.array([-5., -2., 3.]))")
    assert errs.get() == ("at mapped index 0: bad -4.0 (`check` failed)\n"
                          "at mapped index 1: bad -1.0 (`check` failed)")
    np.testing.assert_array_equal(out, [5, 5, 5])


def test_a_loop_on_a_stack_checks_the_examples_that_are_not_done():
    loop = "jax.vmap(lambda x: lax.while_loop(lambda x: {}, lambda x: chk(x + 1, 'b {{}}'), x))"
    users = "errors=c.user_checks"
    text, _, (out,) = said(f"said({loop.format('x < 5')}, jnp.array([-5., -2., 3.]), {users})")
    assert text == "b -1.0 (`check` failed)"  # both fail in the first step; the last one is said
    np.testing.assert_array_equal(out, [5, 5, 5])
    for start, wanted in (("[1., -9.]", "b -8.0 (`check` failed)"), ("[9., 9.]", ""), ("[]", "")):
        assert said(f"said({loop.format('x < 5')}, jnp.array({start}), {users})")[0] == wanted
    # An example that is done and would fail does not; its condition is asked, and may.
    down = "jax.vmap(lambda x: lax.while_loop(lambda x: x > 2, lambda x: chk(x - 2), x))"
    assert said(f"said({down}, jnp.array([3., 9.]), {users})")[0] == ""
    assert said(f"said({down}, jnp.array([3., 9., 2.1]) - .5, {users})")[0] == ""
    assert said(f"said(jax.vmap({down}), jnp.array([[3., 9.], [-4., 5.]]), {users})")[0] == ""
    assert said(f"said({down.replace('x - 2', 'x - 4')}, jnp.array([3., 2., -4.]), {users})")[
        0] == "bad -1.0 (`check` failed)"
    assert said(f"said({loop.format('chk(x, str()) < 5')}, jnp.array([3., -1.]), {users})")[
        0].endswith("(`check` failed)")
    held = "lambda k, x: jax.vmap(lambda x: lax.while_loop(lambda c: c[1] < k, lambda c: (chk(" \
        "c[0] - k), c[1] + 1), (x, 0))[0])(x)"
    assert said(f"said({held}, I(2), jnp.array([9., 5.]), {users})")[0] == ""
    text = said(f"said({held}, I(3), jnp.array([9., 5.]), {users})")[0]
    assert text == "bad -1.0 (`check` failed)"


def test_a_custom_rule_beside_keeps_the_error_of_its_function():
    f = "jax.value_and_grad(lambda x: c.checkify({}, errors=c.all_checks)(x)[::-1], has_aux=True)"
    (value, err), slope = said(f"{f.format('cj')}(F(np.inf))")
    assert err.get() == "nan generated by primitive: sin." and np.isnan(slope)
    for name in ("cj", "jax.jit(quiet)", "lambda x: lax.scan(lambda s, _: (quiet(s), 0), x, X)[0]"):
        (value, err), slope = said(f"{f.format(name)}(F(6))")
        steps, x, wanted = 4 if "scan" in name else 1, 6.0, 1.0
        for _ in range(steps):
            x, wanted = np.sin(x), wanted * 3 * np.cos(x)
        assert err.get() is None
        np.testing.assert_allclose((value, slope), (x, wanted), rtol=1e-5)
    (value, err), slope = said(f"{f.format('cv')}(F(9))")
    assert err.get() is None
    np.testing.assert_allclose(slope, 10 / 9, rtol=1e-6)
    # What a rule is not given, the function closes over.
    err, slopes = said("jax.vmap(jax.grad(lambda x: (lambda e, y: (y, e))(*c.checkify(closing, "
                       "errors=c.all_checks)(x)), has_aux=True))(X + 8)[::-1]")
    assert err.get() == "at mapped index 0: nan generated by primitive: log."
    np.testing.assert_array_equal(slopes, [7, 7, 7, 7])


def test_a_custom_vmap_rule_keeps_the_error_of_its_function():
    assert said("said(stacked, F(-1))")[0] == "nan generated by primitive: log."
    errs, out = said("jax.vmap(c.checkify(stacked, errors=c.all_checks))(X - 1)")
    assert errs.get() == "at mapped index 0: nan generated by primitive: log."
    np.testing.assert_array_equal(out, [-2, 0, 2, 4])


def test_checks_on_one_device_and_on_several_mix():
    f = """lambda x: (c.check(x[0, 0] > 0, 'before'), on_square(chk, P('a', 'b'))(x),
        c.check(jnp.sum(x) > 100, 'sum {}', jnp.sum(x)))"""
    assert said(f"said({f}, jnp.array([[1., -2.], [3., -4.]]))")[0] == (
        "at mapped index 1: bad [[-2.]] (`check` failed)\n"
        "at mapped index 3: bad [[-4.]] (`check` failed)")
    assert said(f"said({f}, -M - 1)")[0] == "before (`check` failed)"
    assert said(f"said({f}, M + 1)")[0] == "sum 10.0 (`check` failed)"
    branch = f"lambda x: lax.cond(x[0, 0] > 1, {f}, lambda x: (None, x, None), x)"
    assert said(f"said({branch}, M - 9, jit=True)")[0] == ""
    assert said(f"said({branch}, 2 - M)")[0].startswith("at mapped index 2: bad [[0.]]")
    mapped = "said(jax.vmap(on_square(chk, P('a'))), jnp.array([[1., -2.], [3., -4.]]))"
    assert said(mapped)[0].count("bad [-4.]") == 2


# -- whatever the program --------------------------------------------------------------------------

law = settings(max_examples=12, deadline=None, derandomize=True, report_multiple_bugs=False,
               phases=(Phase.generate,), suppress_health_check=list(HealthCheck))


@law
@given(programs().flatmap(lambda f: st.tuples(st.just(f), inputs(f))))
def test_a_checked_program_computes_what_the_program_computes(drawn):
    f, x = drawn
    g = checkify.checkify(f, errors=checkify.all_checks)
    closed = jax.make_jaxpr(g)(x)
    check_jaxpr(closed)
    wanted = jax.jit(f)(x)
    err, out = jax.jit(g)(x)
    np.testing.assert_array_equal(np.asarray(out), np.asarray(wanted))
    with np.errstate(all="ignore"):
        flags = [v for v in evaluate(closed, x)[:-1] if v.dtype == bool]
    assert bool(np.any(flags)) == (err.get() is not None)


def test_a_loop_carries_no_more_than_it_must():
    """One flag, one code and one payload for each kind, however many checks there are."""
    def body(i, x):
        for _ in range(5):
            x = jnp.log(x) / 2
        return x

    f = checkify.checkify(lambda x: lax.fori_loop(0, 9, body, x), errors=checkify.float_checks)
    (eqn,) = jax.make_jaxpr(f)(1.0).eqns
    assert eqn.params["num_carry"] == 2 + 2 * 2

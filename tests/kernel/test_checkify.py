"""Does a checked program say what JAX's says: which error, in which words, beside which results?

Messages, classes and results are JAX's; what JAX gets wrong or refuses is held against what the
program itself does.

Read before: ``checking.py``, ``saem.experimental.checkify.checks``.
Read after: ``test_checkify_nested.py``.
"""

from __future__ import annotations

import traceback

import checking
import numpy as np
import pytest
from both import ours, same, same_error

import saem as jax
from saem import numpy as jnp
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import evaluate
from saem.experimental import checkify
from saem.experimental import checkify as c
from saem.experimental.checkify.checks import CHECK, Error, Kind, NaNError, Site, Slot

USER = [
    "said(chk, F(1))", "said(chk, F(-1))", "said(chk, F(-1), jit=True)",
    "said(jax.jit(chk), F(-1))", "said(jax.jit(chk), F(-1), jit=True)",
    "said(chk, F(-1), errors=c.nan_checks)", "said(jax.jit(chk), X, errors=c.index_checks)",
    "said(lambda x: c.check(x[0] > 0, 'a {} b {n:.2f} {}', x[0], x.sum(), n=x[1]), X)",
    "said(lambda: c.check(jnp.array(False), 'm {a[x]:.3f} {b[0]}', a={'x': F(3)}, b=I(7)[None]))",
    "said(lambda: c.check(jnp.array(False), 'm {} {} {}', {'a': X}, (X > 1,), None))",
    "said(lambda: c.check(jnp.array(False), 'm {} {}', np.ones(2), jnp.ones(2, bool)))",
    "said(lambda: c.check(False, 'plain'))", "said(lambda: c.check(True, 'plain'))",
    "said(lambda x: (chk(x, 'one'), chk(x, 'two {}'), chk(x, 'three')), F(-1))",
    "said(lambda x: (chk(x, 'two {}'), chk(x, 'one')), F(-1))",
    "said(lambda x: (chk(x[:2], 'pair {}'), chk(x, 'all {}')), -X)",
    "said(lambda x: (chk(x + 5, 'fine {}'), chk(x, 'all {}')), -X)",
    "said(lambda x: c.debug_check(x > 0, 'debug {}', x), F(-1))",
    "said(jax.jit(lambda x: c.debug_check(x > 0, 'debug {}', x)), F(-1))",
    "jax.jit(lambda x: (c.debug_check(x > 0, 'debug {}', x), x)[1])(F(-1))",
    "c.checkify(lambda x, y=None: chk(x) + y)(X, y=F(1))[0].get()",
    "c.checkify(lambda x, s: x + len(s) if int(x) else x)(F(1), 'abc')[1]",
    "str(c.init_error) + str(c.checkify(ln)(F(-1))[0])",
]
AUTOMATIC = [
    "said(jnp.log, F(-1))", "said(jax.jit(jnp.log), F(-1), jit=True)",
    "said(lambda x: 1 / x, F(0))", "said(lambda x: x / x, F(0))", "said(lambda x: 1 / x, X)",
    "said(lambda x: lax.div(jnp.int32(1), x), I(0))", "said(lambda x, y: x // y, I(4), I(0))",
    "said(lambda x: lax.rem(jnp.int32(1), x), I(0))", "said(lambda x: lax.rem(F(1), x), F(0))",
    "said(lambda x: x ** -1, F(0))", "said(lax.rsqrt, F(0))", "said(lambda x: x + 1, F(np.nan))",
    "said(lambda x: x - x, F(np.inf))", "said(lambda x: jnp.full((2,), np.nan) + x, F(0))",
    "said(lambda x: jnp.broadcast_to(x, (3,)), F(np.nan))", "said(jnp.abs, F(np.nan))",
    "said(lambda x: jnp.where(x > 0, x, np.nan), F(-1))", "said(jnp.sort, X - np.inf)",
    "said(jnp.log, jnp.complex64(np.nan))", "said(jnp.cumsum, jnp.array([1., np.inf, -np.inf]))",
    "said(lambda x: jnp.where(jnp.isnan(x), 0, x), jnp.array([np.nan]))",
    "said(lambda x: x.mean(), jnp.zeros(0))", "said(lambda x: (x / 0, jnp.log(x)), F(-1))",
    "said(lambda x: (jnp.log(x - 1), 1 / x), F(0))",
    "said(lambda x: (1 / x, jnp.log(x - 1)), F(0))",
    "said(lambda x: (jnp.log(x), chk(x)), F(-1))", "said(lambda x: (chk(x), jnp.log(x)), F(-1))",
    "said(jnp.log, F(-1), errors=c.div_checks)", "said(lambda x: 1 / x, F(0), errors=c.nan_checks)",
    "said(lambda x: x / x, F(0), errors=c.nan_checks)",
    "said(lambda x: lax.custom_linear_solve(lambda v: 2 * v, x, lambda f, b: b / 0, "
    "symmetric=True), X, errors=c.nan_checks)",
]
INDEX = [
    "said(lambda x, i: x[i], X, I(7))", "said(lambda x, i: x[i], X, I(-7))",
    "said(lambda x, i: x[i], X, I(-4))", "said(lambda x: (x[7], x[-9]), X)",
    "said(lambda x: x[1, 7], M)", "said(lambda x, i: x[i], X, jnp.array([0, 1, 9, -9]))",
    "said(lambda x, i, j: x[i, j], M, jnp.array([0, 1]), jnp.array([1, 5]))",
    "said(lambda x, i: x[:, i], M, jnp.array([0, 3]))", "said(lambda x: x[jnp.array([9])], X)",
    "said(lambda x, i, j: x[i, :, j], jnp.zeros((2, 3, 4)), jnp.array([0, 1, 1]), "
    "jnp.array([0, 9, -7]))", "said(lambda x: x[jnp.array([], int)], X)",
    *(f"said(lambda x, i: x.at[i].{kind}(1.), X, jnp.array([1, 7]))"
      for kind in ("set", "add", "mul", "min", "max")),
    "said(lambda x, i: x.at[i].apply(jnp.sin), X, jnp.array([1, 7]))",
    "said(lambda x, i: x.at[:, i].set(1.), M, I(2))",
    "said(lambda x, i: x.at[i].set(1., mode='drop'), X, I(7))",
    "said(lambda x, i: x.at[i].get(mode='fill'), X, I(7))",
    "said(lambda x, i: x.at[i].get(mode='clip'), X, I(7))", "said(jnp.take, X, I(7))",
    "said(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), X, I(3))",
    "said(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), X, I(2))",
    "said(lambda x, i: lax.dynamic_slice(x, (i, i), (2, 1)), M, I(1))",
    "said(lambda x, i: lax.dynamic_update_slice(x, jnp.ones(2), (i,)), X, I(3))",
    "said(lambda x, i: lax.dynamic_index_in_dim(x, i), X, I(-9))",
    "said(lambda x, i: x[i], X, I(7), errors=c.float_checks)",
    "said(jax.grad(lambda x, i: x[i]), X, I(9))",
    "said(jax.vmap(lambda x, i: x[i]), M, jnp.array([0, 4]))",
    "said(lambda x: jnp.nonzero(x, size=5), X)",
    *(f"said(lambda x, i: jnp.put(x, i, 1., mode={mode!r}, inplace=False), X, "
      "jnp.array([0, 5, -9, -1]))" for mode in (None, "clip", "wrap")),
]


@pytest.mark.parametrize("expression", [*USER, *AUTOMATIC, *INDEX])
def test_checks_say_what_jax_says(jax_oracle, expression):
    same(jax_oracle, expression, within=checking)


REFUSED = [
    ("c.check(1, 'x')", "check takes a scalar pred as argument, got 1"),
    ("c.check(X > 1, 'x')", "check takes a scalar pred as argument"),
    ("c.check(True, 'x {} {}', 1)", "need to be PyTrees of arrays, but got 1 of type"),
    ("c.check(False, 'x {}', 'text')", "but got 'text' of type <class 'str'>"),
    ("c.check_error(3)", "check_error takes an Error as argument, got type <class 'int'> instead"),
    ("c.checkify(lambda x: 'text')(X)", "returned a value of type <class 'str'>"),
    ("chk(F(-1))", "bad -1.0 (`check` failed)"),
    ("c.checkify(chk)(F(-1))[0].throw()", "bad -1.0 (`check` failed)"),
    ("jax.vmap(chk)(X - 1)", "bad 0.0 (`check` failed)"),
    ("jax.grad(ln)(F(-1))", "ln -1.0 (`check` failed)"),
    ("jax.checkpoint(ln)(F(-1))", "ln -1.0 (`check` failed)"),
    *((call, "Cannot abstractly evaluate a checkify.check which was not functionalized")
      for call in ("jax.jit(chk)(F(1))", "jax.grad(jax.jit(ln))(F(1))",
                   "lax.scan(lambda s, x: (s, chk(x)), F(0), X)", "lax.cond(True, ln, ln, F(1))",
                   "jax.jit(lambda x: c.check_error(c.checkify(ln)(x)[0]))(F(1))",
                   "jax.jit(lambda x: c.checkify(ln)(x)[0].throw())(F(1))")),
    ("jax.jit(lambda x: c.checkify(ln)(x)[0].get())(F(1))", "Attempted boolean conversion"),
    ("c.check_error(jax.vmap(c.checkify(ln))(jnp.array([0., -1., 1.]))[0])",
     "ln -1.0 (`check` failed)"),
]


@pytest.mark.parametrize(("source", "sentence"), REFUSED)
def test_refusals_are_jaxs(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, within=checking)


def test_the_names_are_jaxs(jax_oracle):
    def program():
        groups = {name: sorted(kind.__name__ for kind in getattr(c, name))
                  for name in dir(c) if name.endswith("_checks")}
        public = [name for name in dir(c) if name[0] != "_"]
        return groups, public, issubclass(c.JaxRuntimeError, ValueError)

    same(jax_oracle, program)


# -- what holds whatever JAX does ------------------------------------------------------------------


def test_a_failure_says_where():
    def lowered(x):
        y = jnp.log(x)
        return y + 1

    err, _ = checkify.checkify(lowered, errors=checkify.all_checks)(jnp.float32(-1))
    with pytest.raises(checkify.JaxRuntimeError) as caught:
        err.throw()
    assert "y = jnp.log(x)" in caught.value.__notes__[0]
    assert err.get_exception().where.function.endswith("lowered")


def test_what_failed_first_stays_and_codes_follow_the_program():
    def f(x):
        checkify.check(x > 2, "first")
        checkify.check(x > 1, "second")
        checkify.check(x > 0, "third {}", x)

    f = jax.jit(f)
    f_checked = jax.jit(checkify.checkify(lambda x: (checkify.check(x > 3, "zeroth"), f(x))))
    for x, wanted in ((5, None), (2.5, "zeroth"), (1.5, "zeroth"), (-1, "zeroth")):
        said = f_checked(jnp.float32(x))[0].get()
        assert said == (wanted and f"{wanted} (`check` failed)")
    for x, wanted in ((1.5, "first"), (0.5, "first"), (-1, "first")):
        assert jax.jit(checkify.checkify(f))(jnp.float32(x))[0].get().startswith(wanted)


def test_an_inner_program_traced_before_does_not_come_before():
    inner = jax.jit(lambda x: (checkify.check(x > 0, "inner"), x)[1])
    with pytest.raises(ValueError, match="not functionalized"):
        inner(jnp.float32(1))

    def outer(x):
        checkify.check(x > 0, "outer {}", x)
        return inner(x)

    assert checkify.checkify(outer)(jnp.float32(-1))[0].get() == "outer -1.0 (`check` failed)"


def test_the_same_function_checked_again_is_the_same_program():
    def text():
        return jax.jit(checkify.checkify(lambda x: jnp.log(x) / x, errors=checkify.all_checks)
                       ).lower(jnp.float32(1)).as_text()

    checkify.checkify(jnp.sin, errors=checkify.all_checks)(jnp.float32(1))
    assert text() == text()


def test_an_error_has_one_structure_however_often_it_is_traced():
    f = checkify.checkify(lambda x: 1 / x, errors=checkify.all_checks)
    one, two = (f(jnp.float32(x))[0] for x in (0, 1))
    assert jax.tree.structure(one) == jax.tree.structure(two)
    chosen = jax.lax.cond(True, lambda: one, lambda: two)
    assert chosen.get() == "division by zero" and two.get() is None


def test_a_program_without_anything_to_check_is_left_alone():
    closed = jax.make_jaxpr(checkify.checkify(jax.jit(lambda x: x + 1)))(1.0)
    assert str(closed) == str(jax.make_jaxpr(jax.jit(lambda x: x + 1))(1.0))


def test_checks_are_effects_of_the_program_until_they_are_taken_out():
    def f(x):
        checkify.check(x > 0, "f {}", x)
        return x

    assert CHECK in jax.make_jaxpr(jax.jit(f))(1.0).effects
    assert not jax.make_jaxpr(checkify.checkify(jax.jit(f)))(1.0).effects
    assert not jax.make_jaxpr(checkify.checkify(f, errors=checkify.nan_checks))(1.0).effects


def test_no_operation_that_makes_nan_is_missed():
    """NaN from finite numbers, infinities or zeros: found in whatever operation makes it."""
    inf, zero = np.float32(np.inf), np.float32(0)
    makers = [
        (jnp.sin, inf), (jnp.log, -1.0), (jnp.sqrt, -1.0), (jnp.arccos, 2.0), (jnp.arctanh, 2.0),
        (lambda x: x - x, inf), (lambda x: x * 0, inf), (lambda x: x / x, zero),
        (lambda x: jnp.power(x, 0.5), -1.0), (lambda x: jnp.dot(x[None], zero[None]), inf),
        (lambda x: jnp.sum(jnp.stack([x, -x])), inf), (lambda x: jnp.remainder(x, 1.0), inf),
        (lambda x: jax.lax.digamma(x), zero - 1), (lambda x: jax.lax.erf_inv(x), 2.0),
        (lambda x: jnp.cumsum(jnp.stack([x, -x])), inf), (lambda x: x ** 3 - x ** 3, inf),
    ]
    for f, x in makers:
        x = jnp.float32(x)
        assert np.isnan(np.asarray(f(x))).any()
        err, _ = checkify.checkify(f, errors=checkify.nan_checks)(x)
        assert err.get() is not None, f(x)


def test_the_evaluator_agrees_with_xla():
    def f(x, i):
        checkify.check(x[i] > 1, "small {} {}", x[i], i)
        return jnp.log(x)[i] / x

    g = checkify.checkify(f, errors=checkify.all_checks)
    closed = jax.make_jaxpr(g)(jnp.ones(3), jnp.int32(0))
    check_jaxpr(closed)
    for x, i in ((np.array([-1, 0, 3]), 0), (np.array([2, 2, 3]), 1), (np.array([1, 2, 3]), 5)):
        x, i = x.astype(np.float32), np.int32(i)
        with np.errstate(all="ignore"):
            wanted = evaluate(closed, x, i)
        for a, b in zip(jax.tree.leaves(jax.jit(g)(x, i)), wanted):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)


def test_joining_keeps_the_first_of_each_kind():
    """The algebra of errors, on numbers: joining is associative, and ``init_error`` its unit."""
    rng = np.random.default_rng(0)

    def some(number):
        kind = Kind(NaNError, (), ())
        slot = Slot(np.bool_(rng.integers(2)), np.int32(0), ())
        return Error({kind: slot}, (Site(NaNError, f"op{number}", None, False),))

    for _ in range(40):
        a, b, c = map(some, range(3))
        left, right = a.then(b).then(c), a.then(b.then(c))
        assert left.get() == right.get() == next(
            (e.get() for e in (a, b, c) if e.get()), None)
        assert checkify.init_error.then(a).get() == a.then(checkify.init_error).get() == a.get()


def test_errors_are_values_that_transformations_carry():
    errs = ours("jax.vmap(c.checkify(ln))(jnp.array([2., -1.]))[0]", within=checking)
    assert [bool(x) for x in errs.slots[next(iter(errs.slots))].pred] == [False, True]
    doubled = jax.tree.map(lambda x: jnp.concatenate([x, x]), errs)
    assert doubled.get() == ("at mapped index 1: ln -1.0 (`check` failed)\n"
                             "at mapped index 3: ln -1.0 (`check` failed)")


def test_an_error_knows_where_it_was():
    def f(x):
        return jnp.log(x)

    line = f.__code__.co_firstlineno + 1
    for fun, x in ((f, -1.0), (jax.vmap(f), jnp.array([1.0, -1.0]))):
        error = checkify.checkify(fun, errors=checkify.float_checks)(x)[0].get_exception()
        (found,) = traceback.extract_tb(error.traceback_info.as_python_traceback())
        assert (found.filename, found.lineno) == (__file__, line) and error.where.line == line
    assert NaNError("a").where is None
    assert NaNError("a").traceback_info.as_python_traceback() is None

"""Do programs that read, print and rewrite jaxprs find what they find in JAX's?

Where a program came from, where each equation was written and under which names, how it is printed
on request, and interpreters of the user's own that run, invert and rewrite it.

Read before: ``both.py``.  Read after: ``test_readers.py``, ``test_pretty.py``.
Invariant: every expected text comes from JAX, every expected number from JAX or NumPy.
"""

from __future__ import annotations

import traceback

import numpy as np
import pytest
from both import ours, same

import saem as jax
import saem.numpy as jnp
from saem.core.infer import check_jaxpr
from saem.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun, new_jaxpr_eqn

# Text, since what is compared names lines of the programs and functions around them.
PROGRAMS = """
import re
def f(x, y=2., *, k):
    with jax.named_scope("inner"):
        z = jnp.sin(x)
    return {"a": z * y, "b": (k, x)}

@jax.jit
def g(x):
    y = jnp.sin(x)
    return jnp.cos(y)

def h(x):
    with jax.named_scope("outer"):
        return g(x) * 2

def several(x, y):
    z = jnp.sin(jnp.cos(x)) * y + x.sum()
    return z + jnp.arange(3.)

def looped(x):
    return jax.lax.scan(lambda c, a: (c + a, c), 0., x)

def shown(x):
    jax.debug.print("x is {}", x)
    return x

def told(fun, *args, **words):
    text = fun(*args).pretty_print(**words)
    return re.sub(r"[^ ]*<?(both|oracle|string|[a-z]*)>?[^ ]*:[0-9]+:[0-9]+ ", "HERE ", text)

x3, x33 = jnp.ones(3), jnp.ones((3, 3))
make = jax.make_jaxpr
"""


def both_say(oracle, expression, **arguments):
    source = f"{PROGRAMS}\nresult = {expression}"
    mine, theirs = ours(source, **arguments), oracle.run(source, **arguments).value
    assert mine == theirs
    return mine


@pytest.mark.parametrize("words", [
    "print_shapes=False", "name_stack=True", "source_info=True",
    "source_info=True, name_stack=True", "use_color=False"])
def test_a_program_prints_what_it_is_asked_for(jax_oracle, words):
    texts = both_say(jax_oracle, f"""[told(make(fun), *args, {words}) for fun, args in (
        (lambda x: f(x, k=3), (1.,)), (h, (1.,)), (jax.grad(h), (1.,)), (jax.vmap(h), (x3,)),
        (several, (x33, x33)), (looped, (x3,)), (lambda x: jnp.sin(jnp.cos(x)), (1.,)))]""")
    assert not any("\U000f0000" in text for text in texts)


def test_places_are_those_of_the_operations():
    text = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.).pretty_print(source_info=True)
    line = test_places_are_those_of_the_operations.__code__.co_firstlineno + 1
    first, second = text.splitlines()
    assert f"test_jaxpr_api.py:{line}:36 (test_places_are_those_of_the_operations" in first
    assert second.strip().startswith("# ")


def test_effects_are_printed_on_request(jax_oracle):
    both_say(jax_oracle, "told(make(lambda x: jnp.sin(x)), 1., print_effects=True)")
    text = ours(f"{PROGRAMS}\nresult = told(make(shown), 1., print_effects=True)")
    assert text.endswith("in (a,) : { Debug } }")


def test_a_combination_is_printed_with_its_scatter(jax_oracle):
    for body in ("x.at[0].add(1.).at[1].add(2.)", "x.at[0].mul(1.).at[1].min(2.)",
                 "x.at[jnp.array([0, 1])].set(2.)", "x.at[0].subtract(1.)"):
        assert str(jax.make_jaxpr(ours(f"lambda x: {body}"))(np.ones(3, np.float32))) \
            == jax_oracle.jaxpr(f"lambda x: {body}", np.ones(3, np.float32))
    eqn = jax.make_jaxpr(lambda x: x.at[0].add(1.))(jnp.ones(3)).eqns[-1]
    assert [e.primitive.name for e in eqn.params["update_jaxpr"].eqns] == ["add"]
    again = eqn.primitive.bind(jnp.ones(3), jnp.zeros(1, int), jnp.float32(2), **eqn.params)
    np.testing.assert_array_equal(again, [3, 1, 1])


def test_a_program_knows_its_origin(jax_oracle):
    """Names of arguments and results, what traced the function, and the function's own name."""
    infos = both_say(jax_oracle, """[
        [info.traced_for, info.func_name, info.func_lineno, info.arg_names, info.result_paths]
        for info in (
            make(f)(1., k=[3., 4.]).jaxpr.debug_info,
            make(f)(1., 2., k=3.).debug_info,
            jax.jit(lambda x: (x, x)).trace(1.).jaxpr.jaxpr.debug_info,
            make(jax.grad(lambda x: x * x))(1.).debug_info,
            make(lambda *args, z: args)(1., {"a": 2.}, z=3.).debug_info,
            make(looped)(x3).eqns[-1].params["jaxpr"].debug_info,
            make(lambda x: jax.lax.cond(x > 0, lambda a: a, lambda b: -b, x))(1.)
                .eqns[-1].params["branches"][0].debug_info,
            make(g)(1.).eqns[0].params["jaxpr"].debug_info)]""")
    assert infos[0][3] == ("x", "k[0]", "k[1]") and infos[0][1] == "f"


def test_a_derived_program_has_as_many_names_as_arguments():
    closed = jax.make_jaxpr(jax.vmap(jax.jit(lambda a, b: a * b)))(jnp.ones(3), jnp.ones(3))
    info = closed.eqns[0].params["jaxpr"].debug_info
    assert len(info.arg_names) == 2 and len(info.result_paths) == 1
    held = jnp.arange(3.)
    inner = jax.make_jaxpr(
        lambda x: jax.lax.scan(lambda c, a: (c + held[0], a), x, jnp.ones(2)))(1.)
    info = inner.eqns[-1].params["jaxpr"].debug_info
    assert info.arg_names[-2:] == ("c", "a")


def test_equations_tell_names_and_places(jax_oracle):
    both_say(jax_oracle, """[
        [str(e.source_info.name_stack) for e in make(fun)(*args).eqns]
        for fun, args in ((lambda x: f(x, k=1), (1.,)), (jax.grad(h), (1.,)), (jax.vmap(h), (x3,)),
                          (jax.jvp, (jnp.sin, (1.,), (1.,)))[:0] or (h, (1.,)))]""")
    eqn = jax.make_jaxpr(lambda x: jnp.sin(x))(1.).eqns[0]
    (frame,) = eqn.source_info.traceback.frames
    assert frame.file_name == __file__
    assert frame.line_num == test_equations_tell_names_and_places.__code__.co_firstlineno + 5
    (line,) = traceback.format_tb(eqn.source_info.traceback.as_python_traceback())
    assert line.startswith(f'  File "{__file__}", line {frame.line_num}, in ')
    assert "eqn = jax.make_jaxpr(lambda x: jnp.sin(x))(1.).eqns[0]" in line
    renamed = eqn.replace(source_info=eqn.source_info.replace(
        name_stack=eqn.source_info.name_stack.extend("mine")))
    assert str(renamed.source_info.name_stack) == "mine"
    with eqn.ctx.manager:
        assert eqn.ctx.threefry_partitionable is True


def test_parts_are_replaced():
    closed = jax.make_jaxpr(lambda x: (jnp.sin(x), x))(1.)
    jaxpr, eqn = closed.jaxpr, closed.eqns[0]
    other = jaxpr.replace(eqns=[eqn.replace(primitive=jax.lax.cos_p)], effects=set(), is_high=False)
    check_jaxpr(other)
    assert "cos a" in str(other) and other.debug_info == jaxpr.debug_info
    np.testing.assert_allclose(jaxpr_as_fun(closed.replace(jaxpr=other))(1.)[0], np.cos(1.), 1e-6)
    less = jaxpr.replace(outvars=jaxpr.outvars[:1],
                         debug_info=jaxpr.debug_info._replace(result_paths=("sine",)))
    assert less.debug_info.result_paths == ("sine",) and less.debug_info.func_name == "<lambda>"
    with pytest.raises(ValueError, match="Unknown keyword arguments"):
        jaxpr.replace(equations=[])
    made = Jaxpr([], jaxpr.invars, jaxpr.outvars, jaxpr.eqns, set(), jaxpr.debug_info)
    assert str(made) == str(jaxpr) and made.debug_info == jaxpr.debug_info
    assert closed.invars == jaxpr.invars and closed.outvars == jaxpr.outvars and not closed.is_high


undo = {jax.lax.exp_p: jnp.log, jax.lax.tanh_p: jnp.arctanh, jax.lax.neg_p: lambda y: -y}


def run(jaxpr, consts, args, seen):
    values = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, args))

    def read(a):
        return a.val if type(a).__name__ == "Literal" else values[a]

    for eqn in jaxpr.eqns:
        seen.append(eqn.primitive.name)
        ins = [read(a) for a in eqn.invars]
        if eqn.primitive.name == "jit":
            outs = run(eqn.params["jaxpr"].jaxpr, eqn.params["jaxpr"].consts, ins, seen)
        else:
            funs, params = eqn.primitive.get_bind_params(eqn.params), None
            funs, params = funs if isinstance(funs, tuple) else ([], funs)
            outs = eqn.primitive.bind(*funs, *ins, **params)
            outs = outs if eqn.primitive.multiple_results else [outs]
        values.update(zip(eqn.outvars, outs))
    return [read(a) for a in jaxpr.outvars]


def inverse(fun):
    def inverted(*ys):
        closed = jax.make_jaxpr(fun)(*ys)
        values = dict(zip(closed.jaxpr.outvars, ys))
        for eqn in reversed(closed.jaxpr.eqns):
            (before,), (after,) = eqn.invars, eqn.outvars
            values[before] = undo[eqn.primitive](values[after])
        return values[closed.jaxpr.invars[0]]

    return inverted


def test_interpreters_of_the_users_own(jax_oracle):
    """A program is run by hand, under grad, jit and vmap too; one of bijections runs backwards."""

    def program():
        def f(x, n):
            y = jax.jit(lambda a: jnp.sin(a) * n)(x)
            y = jax.lax.cond(y[0] > 0, lambda a: a * 2, lambda a: a - 1, y)
            y, ys = jax.lax.scan(lambda c, a: (c * a, c), y, x)
            return jnp.sort(ys.sum(0)), y.at[0].add(1.0)

        x = jnp.asarray([0.3, 0.8, 1.2])
        closed = jax.make_jaxpr(f)(x, 2.0)

        def again(x):
            return run(closed.jaxpr, closed.consts, [x, 2.0], seen)

        seen = []
        return [
            again(x),
            jax.jit(again)(x),
            jax.grad(lambda x: again(x)[0].sum())(x),
            jax.vmap(again)(jnp.stack([x, 2 * x])),
        ]

    same(jax_oracle, program)

    def program():
        bijection = inverse(lambda x: jnp.exp(jnp.tanh(-x)))
        return [
            bijection(jnp.float32(1.5)),
            jax.grad(bijection)(1.5),
            jax.vmap(bijection)(jnp.asarray([1.1, 1.5])),
            str(jax.make_jaxpr(bijection)(1.5)),
        ]

    same(jax_oracle, program)


def test_equations_are_written_by_hand():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x))(1.)
    (eqn,), aval = closed.eqns, closed.in_avals[0]
    double = new_jaxpr_eqn([eqn.outvars[0], Literal(2., aval)], [type(eqn.outvars[0])(aval)],
                           jax.lax.mul_p, {}, set(), eqn.source_info)
    jaxpr = closed.jaxpr.replace(eqns=[eqn, double], outvars=double.outvars)
    check_jaxpr(jaxpr)
    np.testing.assert_allclose(jaxpr_as_fun(ClosedJaxpr(jaxpr, []))(1.)[0], 2 * np.sin(1.), 1e-6)
    assert double.source_info.traceback == eqn.source_info.traceback


def made_by_hand(x):
    """An equation put together from the parts of another, as rewriting libraries do."""
    closed = jax.make_jaxpr(lambda x: x + 1.)(x)
    (eqn,) = closed.eqns
    assert isinstance(eqn, JaxprEqn) and not isinstance(closed, JaxprEqn)
    made = JaxprEqn(list(eqn.invars), list(eqn.outvars), jax.lax.max_p, {}, set(),
                    eqn.source_info, eqn.ctx)
    assert isinstance(made, JaxprEqn)
    jaxpr = Jaxpr([], closed.jaxpr.invars, closed.jaxpr.outvars, [made])
    assert str(made.source_info.name_stack) == str(eqn.source_info.name_stack)
    return [str(jaxpr), jax.core.eval_jaxpr(jaxpr, [], x)]


def test_an_equation_may_be_made_by_its_class(jax_oracle):
    same(jax_oracle, made_by_hand, x=np.float32(3))

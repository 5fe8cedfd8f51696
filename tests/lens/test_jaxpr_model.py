"""Jaxprs as models: the text is the printer's, ids agree, graphs are well formed."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem.core.avals import ShapedArray
from saem.jit.jitted import make_jit
from saem.observe.graph import dot, quoted
from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.schema import JaxprModel
from saem.observe.typed_json import from_json, to_json
from saem.ops.arithmetic import add, mul, neg
from saem.transform.staging import trace_flat

F3 = ShapedArray((3,), np.dtype("float32"))
PLACES = ShapedArray((2,), np.dtype("int32"))


def traced(fun, *avals):
    return trace_flat(lambda *xs: [fun(*xs)], avals, name="make_jaxpr")


def long(x):
    for _ in range(4):
        x = add(mul(x, x), 2.0)
    return x


def nested(x):
    inner = make_jit(lambda a, b: neg(mul(a, b)))
    return add(inner(x, x), inner(x, x))


def deep(x):
    one = make_jit(long)
    two = make_jit(lambda a: neg(one(a)))
    return add(two(x), 1.0)


def in_front(x):
    one = make_jit(long)
    two = make_jit(lambda a: neg(one(a)))
    many = make_jit(lambda a: long(long(two(a))))
    return add(many(two(x)), one(x))


def adds(x, places):
    return jnp.asarray(x).at[places].add(1)


def shows(x):
    jax.debug.print("{}", x)
    return x


PROGRAMS = {
    "one equation": lambda: traced(neg, F3),
    "no equation": lambda: traced(lambda x: x, F3),
    "two inputs": lambda: traced(mul, F3, F3),
    "unused input": lambda: traced(lambda x, y: neg(x), F3, F3),
    "constant": lambda: traced(lambda x: add(x, np.arange(3, dtype="float32")), F3),
    "long": lambda: traced(long, F3),
    "nested": lambda: traced(nested, F3),
    "deep": lambda: traced(deep, F3),
    "in front": lambda: traced(in_front, F3),
    "an addition by index": lambda: traced(lambda x, i: adds(x, i), F3, PLACES),
    "additions by index": lambda: traced(lambda x, i: adds(adds(x, i), i), F3, PLACES),
    "a call without results": lambda: traced(shows, F3),
}


@pytest.fixture(params=PROGRAMS)
def program(request):
    return PROGRAMS[request.param]()


def text(model):
    return "\n".join(" " * n.indent + "".join(t.text for t in n.tokens) for n in model.lines)


def equations(body):
    for equation in body.equations:
        yield equation
        for inner in equation.nested:
            yield from equations(inner.body)


def test_the_lines_are_the_printed_jaxpr(program):
    # The printer may write two short equations on one line; here each has its own, to point at.
    assert re.split(r"[;\s]+", text(jaxpr_model(program))) == re.split(r"[;\s]+", str(program))


def test_lines_and_tokens_know_their_equation_and_variable(program):
    model = jaxpr_model(program)
    known = {e.id: e for e in equations(model.body)}
    assert len(known) == len(list(equations(model.body)))
    assert {n.equation for n in model.lines} - {None} == set(known)
    shown = {t.id for n in model.lines for t in n.tokens} - {None}
    bound = {a.id for e in known.values() for a in e.outputs} | {
        a.id for a in (*model.body.constants, *model.body.inputs)}
    for equation in known.values():
        for inner in equation.nested:
            bound |= {a.id for a in inner.body.inputs}
    assert shown == bound - {None}
    for line in model.lines:
        for token in line.tokens:
            if token.kind == "primitive":
                assert token.text == known[line.equation].primitive


def test_what_reads_and_writes_references_is_printed_as_in_python():
    def program(x):
        ref = jax.new_ref(x)
        ref[0] = 2.0
        ref[1:] += x[1:]
        return ref[...]

    closed = jax.make_jaxpr(program)(jnp.ones(3))
    lines = text(jaxpr_model(closed))
    assert "[0] <- 2.0" in lines
    assert re.split(r"[;\s]+", lines) == re.split(r"[;\s]+", str(closed))


def test_the_model_is_json(program):
    model = jaxpr_model(program, "title")
    assert from_json(JaxprModel, to_json(model)) == model


def test_equations_know_the_line_they_were_written_on():
    model = jaxpr_model(traced(long, F3))
    places = {model.places[e.place].text for e in equations(model.body)}
    assert places == {"x = add(mul(x, x), 2.0)"}
    (block,) = model.sources
    place = model.places[model.body.equations[0].place]
    assert block.file == place.file == __file__
    assert block.lines[place.line - block.first_line].strip() == place.text


def test_the_graph_has_every_equation(program):
    model = jaxpr_model(program)
    for equation in equations(model.body):
        assert f"id={quoted(equation.id)}" in dot(model.body)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_accepts_the_graph(program):
    source = dot(jaxpr_model(program).body)
    subprocess.run(["dot", "-Tsvg"], input=source.encode(), capture_output=True, check=True)


@pytest.mark.parametrize("label", ['a"];x[label="', "back\\", 'tail\\"', "two\nlines", "<b>x</b>"])
def test_a_quoted_label_ends_where_it_should(label):
    shown = quoted(label)
    assert shown[0] == shown[-1] == '"'
    inner = shown[1:-1].replace("\\\\", "").replace('\\"', "")
    assert '"' not in inner
    assert not inner.endswith("\\")
    assert "\n" not in shown



def test_a_program_used_twice_is_opened_where_it_is_used_first():
    model = jaxpr_model(traced(nested, F3))
    first, second, _ = model.body.equations
    assert [n.label for n in first.nested] == ["jaxpr"] and second.nested == ()
    named = {p.name: p.value for p in second.parameters}
    assert named["jaxpr"] == "lambda"
    assert model.lines[0].equation == first.id
    assert "".join(t.text for t in model.lines[0].tokens).startswith("let lambda = { lambda ; ")

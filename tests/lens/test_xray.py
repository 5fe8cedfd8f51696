"""The X-ray: what each line sees is what the interpreters say, and nothing stays behind."""

from __future__ import annotations

import sys

import pytest

import saem as jax
import saem.numpy as jnp
from saem.core.trace import state
from saem.observe import cards
from saem.observe.look import looking
from saem.observe.xray import Xray, text

X = jnp.ones(3)


def activate(y):
    y = jnp.tanh(y)
    return y


def model(w, x):
    size = len(x)
    h = x
    for _ in range(4):
        h = activate(w * h)
    total = jnp.sum(h)
    return total * size


def asks(x):
    total = jnp.sum(x)
    if total > 0:
        return total
    return -total


def seen(fun, *args):
    error = None
    with looking(), Xray() as xray:
        try:
            fun(*args)
        except Exception as raised:
            error = raised
    return xray.model("t", error)


def values(function):
    return {(v.name, v.kind, v.type) for line in function.lines for v in line.values}


def test_kinds_of_locals_under_grad_and_under_jit():
    function = seen(jax.grad(model), X, X).functions[0]
    assert {("size", "plain", "int 3"), ("h", "concrete", "f32[3]"),
            ("total", "concrete", "f32[]")} <= values(function)
    assert {(a.name, a.kind) for a in function.arguments} == {("w", "concrete"), ("x", "array")}
    assert function.stack == ("grad",)
    function = seen(jax.jit(lambda w, x: model(w, x)), X, X).functions[1]
    assert ("h", "abstract", "f32[3]") in values(function)
    assert function.stack == ("jit",)


def test_the_stack_tells_the_axis_and_size_of_a_batch():
    batched = jax.vmap(model, (None, 1))
    function = seen(jax.jit(lambda w, xs: batched(w, xs)), X, jnp.ones((3, 5))).functions[1]
    stacks = {a.name: a.stack for a in function.arguments}
    assert stacks == {"w": ("jit",), "x": ("jit", "vmap[axis=1 size=5]")}


def test_an_unrolled_loop_is_counted_with_its_equations():
    function = next(f for f in seen(jax.make_jaxpr(model), X, X).functions if f.name == "model")
    (loop,) = function.loops
    # Each round multiplies and takes a tanh.
    assert (loop.times, loop.equations) == (4, 8)
    assert "h = activate" in function.lines[loop.line + 1 - function.lines[0].line].text


def test_questions_are_noted_and_refused():
    found = seen(jax.jit(asks), X)
    (attempt,) = found.functions[0].attempts
    assert (attempt.what, attempt.allowed, attempt.name) == ("bool", False, "gt")
    assert found.error.startswith("TracerBoolConversionError")
    card = cards.CARDS["TracerBoolConversionError"]
    assert (found.explained.title, found.explained.needed) == (card.title, card.needed)
    assert card.title.ko in text(found, "ko")


def test_an_error_of_the_learners_own_stays_as_it_is():
    def fails(x):
        raise KeyError("mine")

    found = seen(jax.jit(fails), X)
    assert (found.error, found.explained) == ("KeyError: 'mine'", None)


def test_a_known_value_may_be_asked():
    def scaled(x):
        return x * int(x)

    (attempt,) = seen(jax.grad(scaled), jnp.float32(2.0)).functions[0].attempts
    assert (attempt.what, attempt.allowed) == ("int", True)


def test_libraries_are_not_followed_and_nothing_stays():
    with pytest.raises(ZeroDivisionError), Xray():
        raise ZeroDivisionError
    assert sys.gettrace() is None or "Xray" not in repr(sys.gettrace())
    assert state.watcher is None
    names = [f.name for f in seen(jax.jit(model), X, X).functions]
    assert names == ["model", "activate"]


class Proxy:
    """Answers no question."""

    @property
    def __class__(self):
        raise RuntimeError("not bound")


@jax.tree_util.register_pytree_node_class
class Unfinished:
    """A container that cannot be taken apart yet."""

    def tree_flatten(self):
        return (self.missing,), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls()


def holding_itself():
    made = [1]
    made.append(made)
    return made


def deep():
    made = ()
    for _ in range(2_000):
        made = (made,)
    return made


@pytest.mark.parametrize(("make", "shown"), [
    (lambda: {1: 2, "a": 3}, "dict(int 2, int 3)"), (holding_itself, "list(int 1)"),
    (lambda: vars(sys), None), (lambda: [0] * 1_000_000, "list(int 0, int 0, int 0, …)"),
    (lambda: [[] for _ in range(1_000_000)], "list()"), (deep, "tuple()"),
    (lambda: 1 << 100_000, "int"), (Proxy, "Proxy"), (Unfinished, "Unfinished"),
    (lambda: [Proxy(), 1], "list(Proxy, int 1)"), (lambda: {"a": [1, 2], "b": (3, {"c": 4})},
                                                   "dict(int 1, int 2, int 3, …)"),
], ids=range(11))
def test_no_local_variable_stops_the_program(make, shown):
    def calls(x):
        odd = make()
        held = x, odd
        return jnp.sin(held[0])

    found = seen(jax.jit(calls), X)
    assert found.error is None
    types = {v.name: v.type for line in found.functions[0].lines for v in line.values}
    assert types["odd"] == (types["odd"] if shown is None else shown)
    assert types["held"].startswith("tuple(f32[3]")


def test_a_container_that_holds_itself_costs_no_levels_of_calls():
    def levels():
        return 1 + levels_below(0)

    def levels_below(depth):
        try:
            return levels_below(depth + 1)
        except RecursionError:
            return depth

    before = levels()
    seen(jax.jit(lambda x: [x, holding_itself()][0]), X)
    assert levels() >= before - 2

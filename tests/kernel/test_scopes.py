"""Do named scopes reach what is shown, and change nothing else?"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import same_error, source_of

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.events import Compile, bus
from saem.core.trace import Scope

X = np.arange(3.0, dtype=np.float32)


def layers(x):
    with jax.named_scope("first"):
        y = jnp.sin(x)
        with jax.named_scope("inner"):
            y = jnp.cos(y)
    return jax.named_call(lambda z: jnp.tanh(z), name="called")(y)


def names(fun, *args):
    """Return the names of the operations in the text that XLA is given, inside ``jit(...)/``."""
    text = jax.jit(fun).lower(*args).as_text(debug_info=True)
    return [name.partition(")/")[2] if name.startswith("jit(") else name
            for name in re.findall(r'loc\("([^"]*)"\(', text)]


def test_operations_carry_their_scopes():
    assert names(layers, X) == ["first/sin", "first/inner/cos", "called/tanh"]
    assert names(jax.vmap(layers), X) == [
        "vmap(first)/sin", "vmap(first)/inner/cos", "vmap(called)/tanh"]


@pytest.mark.parametrize("fun", [layers, jax.jit(layers)], ids=["written out", "jitted"])
def test_derivatives_stay_in_the_scopes_of_what_they_are_derivatives_of(fun):
    got = names(jax.grad(lambda x: jnp.sum(fun(x))), X)
    plain = [re.sub(r"\w+\(([^()]*)\)", r"\1", re.sub(r"\w+\(([^()]*)\)", r"\1", n)) for n in got]
    assert {"first/cos", "first/inner/sin", "first/inner/mul", "called/mul"} <= set(plain)
    assert not any(name.startswith("first/first") for name in plain)


def test_the_scopes_are_those_of_jax(jax_oracle):
    def program(x):
        text = jax.jit(layers).lower(x).as_text(debug_info=True)
        return re.findall(r'loc\("jit\(layers\)/([^"]*)"\(', text)

    assert names(layers, X) == jax_oracle.run(source_of(program), x=X).value


def deep(x):
    with jax.named_scope("bar"):
        y = layers(x) * jnp.sum(x)
        with jax.named_scope("baz"):
            return jnp.cos(y) * y


def looped(x):
    with jax.named_scope("loop"):
        return lax.scan(lambda c, _: (layers(c), c), x, None, 3)[0]


def gradient(fun):
    return jax.grad(lambda x: jnp.sum(fun(x)))


def linear(fun):
    return lambda x: jax.linearize(fun, x)[1](x)


def jitted_gradient(fun):
    return jax.vmap(gradient(jax.jit(fun)))


def twice_mapped(fun):
    return jax.vmap(jax.jit(jax.vmap(fun)))


def second(fun):
    return gradient(gradient(fun))


def mapped_inside(fun):
    return gradient(jax.vmap(fun))


def mapped_outside(fun):
    return jax.vmap(gradient(fun))


def names_inside(jaxpr):
    """Return the names under which the operations of a program and those inside it are written.

    Without moves of axes, of which Saem needs fewer.
    """
    found = set()
    for eqn in jaxpr.eqns:
        if eqn.primitive.name not in ("reshape", "transpose", "remat2", "closed_call"):
            found.add(f"{eqn.primitive.name}: {eqn.source_info.name_stack}")
        for value in eqn.params.values():
            for part in value if isinstance(value, tuple) else (value,):
                if hasattr(part, "jaxpr") or hasattr(part, "eqns"):
                    found |= names_inside(getattr(part, "jaxpr", part))
    return found


@pytest.mark.parametrize("transformed", [
    jax.vmap, gradient, linear, jitted_gradient, twice_mapped, second, mapped_inside,
    mapped_outside], ids=lambda f: f.__name__)
@pytest.mark.parametrize("fun", [deep, looped])
def test_stacks_of_names_under_transformations_are_those_of_jax(jax_oracle, fun, transformed):
    name = transformed.__name__
    how = "jax.vmap" if transformed is jax.vmap else name
    made = f"jax.make_jaxpr({how}({fun.__name__}))(np.ones((2, 2, 2)))"
    own = names_inside(jax.make_jaxpr(transformed(fun))(np.ones((2, 2, 2))).jaxpr)
    assert sorted(own) == jax_oracle.run(
        source_of(f"sorted(names_inside({made}.jaxpr))", __name__)).value


def looping(x):
    with jax.named_scope("loop"):
        return lax.while_loop(lambda c: jnp.sin(c) < 3, lambda c: jnp.cos(c), x)


def choosing(x):
    with jax.named_scope("choice"):
        return lax.cond(x > 0, lambda x: jax.named_call(jnp.sin, name="yes")(x), jnp.cos, x)


def paths_in_hlo(fun):
    text = jax.jit(fun).lower(1.0).as_text("hlo", debug_info=True)
    return sorted(set(re.findall('op_name="(jit[^"]*)"', text)))


@pytest.mark.parametrize("program", [
    "paths_in_hlo(looping)", "paths_in_hlo(choosing)", "paths_in_hlo(layers)",
    "paths_in_hlo(jax.checkpoint(layers))",
])
def test_paths_in_hlo_are_those_of_jax(jax_oracle, program):
    own = eval(program, globals())
    assert own == jax_oracle.run(source_of(program, __name__)).value


def test_a_scope_around_a_call_is_that_of_the_call_and_not_of_what_is_called():
    inner = jax.jit(layers)

    def outer(x):
        with jax.named_scope("outer"):
            return inner(x) + 1

    got = names(outer, X)
    assert "first/sin" in got and "outer/jit(layers)" in got and "outer/add" in got


def test_as_a_decorator_each_call_has_its_own():
    @jax.named_scope("once")
    def count(x, n):
        return x if n == 0 else count(x + 1, n - 1)

    assert names(lambda x: count(x, 2), X)[-1] == "once/once/add"
    assert [e.stack[-1] for e in jax.make_jaxpr(lambda x: count(x, 1))(X).eqns] == ["once"]


def test_the_stack_is_restored_when_the_block_raises():
    def f(x):
        try:
            with jax.named_scope("left"):
                raise KeyError
        except KeyError:
            return jnp.sin(x)

    assert names(f, X) == ["sin"]


def test_names_may_be_any_text_and_do_not_compile_anything_again():
    def named(name):
        def f(x):
            with jax.named_scope(name):
                return x * 12345.0
        return f

    assert set(names(named('a "b"\n한글'), X)) == {
        r"a \22b\22\0A" + "".join(f"\\{byte:02X}" for byte in "한글".encode()) + "/mul"}
    found = []
    stop = bus.subscribe(lambda e: found.append(e.found) if isinstance(e, Compile) else None)
    try:
        for name in ("one", 'a "b"\n한글'):
            np.testing.assert_array_equal(jax.jit(named(name))(X), X * 12345)
    finally:
        stop()
    assert found == [False, True]


def test_a_name_is_text(jax_oracle):
    same_error(jax_oracle, "jax.named_scope(3).__enter__()",
               "named_scope name argument must be a string.")


def test_stacks_without_scopes_do_not_depend_on_scopes_elsewhere(monkeypatch):
    def stacks():
        closed = jax.make_jaxpr(jax.vmap(jax.grad(lambda x: lax.sin(lax.mul(x, x)))))(X)
        return [eqn.stack for eqn in closed.eqns]

    monkeypatch.setattr(Scope, "used", False)
    before = stacks()
    monkeypatch.setattr(Scope, "used", True)
    assert stacks() == before and before[-1][-1] == "transpose"

"""Is whoever holds a leaked tracer named, where it is used and (when asked) where it leaks?"""

from __future__ import annotations

import collections
import functools
import gc
import importlib
import re
import sys

import numpy as np
import pytest
from both import same_error

import saem as jax
import saem.numpy as jnp
from saem import errors, lax
from saem.core import leaks

X = np.arange(3.0, dtype=np.float32)


@pytest.fixture(scope="module")
def leaky():
    """The places of ``leaky.py``, made anew after all older objects were set aside."""
    gc.collect()
    gc.freeze()
    sys.modules.pop("leaky", None)
    return importlib.import_module("leaky")


@pytest.fixture(autouse=True)
def _forget(leaky):
    yield
    leaky.forget()


@pytest.mark.parametrize("way", ["a global", "a list", "a dict", "an attribute",
                                 "deep in an attribute", "a slot", "a class"])
def test_the_error_at_use_names_the_holder(leaky, way):
    leak, get, name = leaky.WAYS[way]

    def f(x):
        leak(jnp.sin(x))
        return x

    jax.jit(f)(1.0)
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        get() + 1
    text = str(caught.value)
    assert f"It is held by {name}." in text
    assert "It was made in" in text and "leak(jnp.sin(x))" in text
    leaky.kept.clear()
    with jax.checking_leaks(), pytest.raises(Exception, match=re.escape(name)) as caught:
        jax.jit(lambda x: f(x))(1.0)
    assert "Leaked trace" in str(caught.value)


def test_a_closure_is_named():
    def make():
        seen, last = [], None

        def f(x):
            nonlocal last
            last = x * 2
            seen.append(last)
            return x

        return f, seen

    f, seen = make()
    jax.jit(f)(1.0)
    tracer = seen.pop()
    seen = None
    assert leaks.holder(tracer).startswith("the closure variable `last` of `")
    assert "make.<locals>.f" in leaks.holder(tracer)


def test_a_default_argument_and_a_local_variable_are_named():
    def f(x, cache=[]):  # noqa: B006 - this is the mistake being tested
        cache.append(x + 1)
        return x

    jax.jit(lambda x: f(x))(1.0)
    name = leaks.holder(f.__defaults__[0][0])
    assert "a default argument of" in name and name.endswith(".f`")

    def outer():
        queue = collections.deque()
        jax.jit(functools.partial(lambda queue, x: (queue.append(x + 1), x)[1], queue))(1.0)
        return leaks.holder(queue[0])

    assert outer() == "the local variable `queue[0]` of `outer`"


def test_what_nobody_holds_has_no_holder():
    assert leaks.holder(object()) == ""


@pytest.mark.parametrize("transform", ["jax.jit", "jax.vmap"])
def test_checking_leaks_refuses_what_jax_refuses(jax_oracle, transform):
    same_error(jax_oracle, f"held_after({transform})", "Leaked trace", within=__name__)


def held_after(transform):
    """Keep a value of a traced function while leaks are looked for."""
    held = []

    def f(x):
        held.append(x * 2)
        return x

    with jax.checking_leaks():
        transform(f)(jnp.arange(3.0))


def test_checking_leaks_finds_those_of_grad_and_scan_too(leaky):
    def leave(x):
        leaky.kept.append(x * 2)
        return x

    with jax.checking_leaks():
        with pytest.raises(Exception, match=r"`kept\[0\]`"):
            jax.grad(leave)(1.0)
        with pytest.raises(Exception, match="Leaked trace"):
            lax.scan(lambda c, x: (leave(c), x), 0.0, X)


@pytest.mark.parametrize("program", [
    lambda: jax.jit(lambda x: jnp.sum(x) * 2)(X),
    lambda: jax.jit(lambda x: jax.jit(lambda z: z * x)(x))(X),
    lambda: jax.hessian(lambda x: jnp.sum(jnp.sin(x)))(X),
    lambda: jax.jit(jax.vmap(jax.grad(lambda x: jnp.sin(x) ** 2)))(X),
    lambda: jax.grad(lambda x: lax.scan(lambda c, y: (c * y, c), x, X)[0])(1.0),
    lambda: jax.grad(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0),
    lambda: jax.make_jaxpr(lambda x: jnp.linspace(0, 1, 5) + x)(1.0),
    lambda: jax.vjp(lambda x: jnp.sin(x), 1.0)[1](1.0),
    lambda: jax.linearize(lambda x: jnp.sin(x), 1.0)[1](1.0),
])
def test_programs_without_leaks_pass(program):
    with jax.checking_leaks():
        program()


@pytest.mark.parametrize("transform", [
    jax.jit, jax.grad, jax.vmap, jax.make_jaxpr, jax.hessian,
    lambda f: lambda x: jax.jvp(f, (x,), (x,)), lambda f: lambda x: jax.lax.scan(
        lambda c, _: (f(c), None), x, length=3)], ids=[
    "jit", "grad", "vmap", "make_jaxpr", "hessian", "jvp", "scan"])
def test_nothing_is_searched_where_nobody_holds_a_tracer(transform):
    searched = []

    def seen(phase, about):
        searched.append((phase, about["generation"]))

    x = jnp.arange(3.) if transform is jax.vmap else 1.
    with jax.checking_leaks():
        transform(lambda x: jnp.sin(x) * 2)(x)
        gc.callbacks.append(seen)
        try:
            transform(lambda x: jnp.sin(x) * 2)(x)
        finally:
            gc.callbacks.remove(seen)
    assert ("start", 2) not in searched

"""When a traced value is asked for its number, is it shown how it came about?"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core import paths


def shown(fun, *args):
    """Return the lines of the error that ``fun`` raises."""
    with pytest.raises(TypeError) as caught:
        fun(*args)
    return str(caught.value).splitlines()


def f(x, y):
    z = x * 2
    w = z + jnp.mean(y)
    if w:
        return x
    return y


TRANSFORMS = {
    "jit": jax.jit,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "jit of vmap": lambda f: jax.jit(lambda x, y: jax.vmap(f)(x[None], y[None])),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_the_path_leads_from_an_argument_to_the_question(transform):
    lines = shown(transform(f), jnp.float32(1), jnp.float32(2))
    assert any(line.endswith(" → z → w → bool") for line in lines)
    assert any("z: " in line and "z = x * 2" in line for line in lines)
    assert any("w: " in line and "w = z + jnp.mean(y)" in line for line in lines)
    assert "  Arguments it depends on: x, y." in lines
    assert any("if w:" in line for line in lines), "the place of the question itself"


@pytest.mark.parametrize(("asked", "name"), [
    (int, "int"), (float, "float"), (np.asarray, "array"), (lambda x: [1, 2][x], "index"),
    (lambda x: x.item(), "item"),
])
def test_every_question_ends_the_path(asked, name):
    def g(n):
        k = n + 1
        return asked(k)

    lines = shown(jax.jit(g), 1)
    assert any(line.endswith(f"n → k → {name}") for line in lines)


def test_leaves_of_arguments_have_their_own_names():
    def g(params, unused):
        total = params["w"] @ params["b"]
        return float(total)

    lines = shown(jax.jit(g), {"w": np.ones(2), "b": np.ones(2)}, 3.0)
    assert any(line.endswith("params['w'] → total → float") for line in lines)
    assert "  Arguments it depends on: params['b'], params['w']." in lines


def test_the_path_goes_on_in_the_function_around():
    def outer(x):
        outside = jnp.sin(x)

        def inner(y):
            inside = outside + 1
            return bool(inside)

        return jax.jit(inner)(2.0)

    lines = shown(jax.jit(outer), 1.0)
    assert any(line.endswith("x → outside → inside → bool") for line in lines)


def test_in_a_loop_the_carry_is_an_argument():
    def body(carry, row):
        total = carry + row
        return (total if total > 1 else carry), row

    lines = shown(lambda: lax.scan(body, 0.0, np.ones(3, np.float32)))
    assert any(" → total → " in line and line.endswith("bool") for line in lines)


@pytest.mark.parametrize(("line", "name"), [
    ("z = x + 1", "z"), ("z += 1", "z"), ("z: float = x", "z"), ("a, b = f(x)", "a, b"),
    ("self.h = x", "self.h"), ("z == x", None), ("return z", None), ("f(x, y=z)", None),
    ("if x <= y:", None), ("z //= 2", "z"),
])
def test_what_a_line_assigns_to(line, name):
    found = paths.assigned(line)
    assert found == name


def test_a_value_with_no_record_has_no_path():
    lines = shown(jax.vmap(lambda x: bool(x)), np.ones(3, np.float32))
    assert not any("How it came about" in line for line in lines)

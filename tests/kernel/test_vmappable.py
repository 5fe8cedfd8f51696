"""Does vmap map over objects of registered classes as in JAX?  (``batching.register_vmappable``)

The class ``Rows`` holds a stack and a value that is no array; mujoco.mjx registers one like it.
"""

from __future__ import annotations

import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.interpreters import batching
from saem.transform.vmappable import vmappables


class Rows:
    def __init__(self, rows, fixed=7):
        self.rows = rows
        self.fixed = fixed


seen: list = []


def to_elt(element_of, index, stack, spec):
    seen.append(("to", spec))
    return Rows(element_of(stack.rows, spec), stack.fixed)


def to_elt_by_index(element_of, index, stack, spec):
    return Rows(element_of(stack.rows, spec), index())


def from_elt(stack_of, size, element, spec):
    seen.append(("from", size, spec))
    return Rows(stack_of(size, element.rows, spec), element.fixed)


def register(to=to_elt):
    seen.clear()
    batching.register_vmappable(Rows, int, int, to, from_elt, None)


def stacked():
    return Rows(jnp.arange(6.0).reshape(3, 2))


@pytest.fixture(autouse=True)
def nothing_stays_registered():
    yield
    vmappables.clear()


def test_arguments(jax_oracle):
    def program():
        register()
        x = stacked()
        results = [
            jax.vmap(lambda r, y: r.rows.sum() + y)(x, jnp.ones(3)),
            jax.vmap(lambda r: r.rows.sum(), axis_size=3)(x),
            jax.vmap(lambda r, y: r.rows.sum(), in_axes=(-1, 0))(x, jnp.ones(2)),
            jax.vmap(lambda r, y: r.rows.sum() + y, in_axes=(None, 0))(x, jnp.ones(2)),
            jax.vmap(lambda y, d: d["r"][0].rows * y)(jnp.ones(3), {"r": [x]}),
            jax.vmap(lambda y, r: r.rows * y)(jnp.ones(3), r=x),
            jax.vmap(lambda r, y: r.rows.rows.sum() * y)(Rows(x), jnp.ones(3)),
        ]
        return results, seen

    same(jax_oracle, program)


def test_results(jax_oracle):
    def program():
        register()
        x = stacked()
        results = [
            jax.vmap(lambda r, y: Rows(r.rows * y, 8))(x, jnp.ones(3)),
            jax.vmap(lambda y: {"a": Rows(y * jnp.ones(2), 8)}["a"], out_axes=1)(jnp.ones(3)),
            jax.vmap(lambda y: Rows(jnp.ones(2)))(jnp.ones(3)),
            jax.vmap(lambda y: Rows(jnp.ones(2)), out_axes=None)(jnp.ones(3)),
            jax.vmap(lambda r: r, in_axes=None, axis_size=2)(x),
            jax.vmap(lambda r, y: Rows(Rows(y)))(x, jnp.ones(3)).rows,
        ]
        return [(r.rows, r.fixed) for r in results], seen

    same(jax_oracle, program)


def test_under_other_transformations(jax_oracle):
    def program():
        register()
        x = stacked()
        inner = lambda rows: jax.vmap(lambda r, z: r.rows.sum() * z)(Rows(rows), jnp.ones(3))
        return [
            jax.jit(inner)(x.rows), jax.jvp(inner, (x.rows,), (x.rows,)),
            jax.vmap(lambda y: inner(x.rows * y))(jnp.arange(2.0)),
            jax.grad(lambda rows: inner(rows).sum())(x.rows),
            jax.vmap(lambda r: r.rows * jax.lax.axis_index("i"), axis_name="i", axis_size=3)(x),
            jax.vmap(lambda r: jax.lax.psum(r.rows, "i"), axis_name="i", axis_size=3)(x),
        ]

    same(jax_oracle, program)


def test_the_number_of_an_example(jax_oracle):
    def program():
        register(to_elt_by_index)
        return jax.vmap(lambda r, y: r.rows.sum() * r.fixed)(stacked(), jnp.ones(3))

    same(jax_oracle, program)


def only_the_object():
    register()
    jax.vmap(lambda r: r.rows)(stacked())


def no_axis():
    register()
    jax.vmap(lambda r, y: r.rows)(Rows(2.0), jnp.ones(3))


def differs():
    register()
    jax.vmap(lambda y: Rows(y), out_axes=None)(jnp.ones(3))


def no_array():
    register()
    jax.vmap(lambda y: Rows(None))(jnp.ones(3))


@pytest.mark.parametrize(("program", "sentence"), [
    (only_the_object, "vmap must have at least one non-None value in in_axes"),
    (no_axis, "axis 0 is out of bounds for array of dimension 0"),
    (differs, "at vmap out_axes, got axis spec None but output was batched on axis 0"),
    (no_array, "is not a valid JAX type")])
def test_refusals(jax_oracle, program, sentence):
    same_error(jax_oracle, program, sentence)


def test_other_kinds_of_specs_are_refused():
    with pytest.raises(NotImplementedError, match="spec_type=int only"):
        batching.register_vmappable(Rows, str, int, to_elt, from_elt, None)
    register()
    batching.unregister_vmappable(Rows)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.vmap(lambda r: r.rows)(stacked())

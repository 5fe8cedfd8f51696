"""Does vmap place axes as JAX does, equal a loop, and refuse what does not fit?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error
from oracle import JaxError

import saem as jax
from saem import lax
from saem.core.infer import check_jaxpr

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)
S = np.asarray([1.0, 2.0, 3.0], np.float32)


def test_vmap_equals_a_loop():
    f = lambda x, y: lax.sub(lax.mul(x, lax.sin(y)), x)
    rng = np.random.RandomState(0)
    xs, ys = rng.randn(5, 2, 3).astype(np.float32), rng.randn(2, 3, 5).astype(np.float32)
    wanted = np.stack([f(xs[i], ys[:, :, i]) for i in range(5)], axis=1)
    np.testing.assert_allclose(jax.vmap(f, (0, 2), 1)(xs, ys), wanted, rtol=1e-6)


@pytest.mark.parametrize("source", [
    "jax.vmap(lax.sin)(a)",
    "jax.vmap(lax.sin, in_axes=1)(a)",
    "jax.vmap(lax.sin, in_axes=-1, out_axes=-1)(a)",
    "jax.vmap(lax.sin, in_axes=(-2,), out_axes=1)(a)",
    "jax.vmap(lambda x, y: lax.mul(x, y), in_axes=(1, None))(a, np.ones(2, np.float32))",
    "jax.vmap(lambda x, y: (x, y), in_axes=[1, 0])(a, s)",
    "jax.vmap(lambda p: (p['x'], p['y']), in_axes=({'x': 0, 'y': None},))({'x': s, 'y': a})",
    "jax.vmap(lambda p, q: (p[0], q), in_axes=((1, None), 0))((a, s), s)",
    "jax.vmap(lambda p: p, in_axes=(0,), out_axes={'x': 1, 'y': 0})({'x': b, 'y': s})",
    "jax.vmap(lambda x: (x, 3.), out_axes=(0, None))(s)",
    "jax.vmap(lambda x: (x, 3.))(s)",
    "jax.vmap(lambda x: np.ones(2, np.float32))(s)",
    "jax.vmap(lambda x: np.ones(2, np.float32), out_axes=-1)(s)",
    "jax.vmap(lambda: np.float32(2), axis_size=3)()",
    "jax.vmap(lambda x: x, in_axes=None, axis_size=2)(s)",
    "jax.vmap(lambda x, k: lax.mul(x, k))(s, k=s)",
    "jax.vmap(lambda x, *, k: lax.mul(x, k))(s, k=s)",
    "jax.vmap(lambda x: None)(s)",
    "jax.vmap(lambda x: {'shape': x.shape})(b)",
    "jax.vmap(jax.vmap(lambda x, y: lax.mul(x, y), (None, 0)), (0, None))(s, s)",
    "jax.vmap(lambda x: lax.reduce_sum(x, (0,)))(b)",
    "jax.vmap(lambda x: lax.transpose(x, (1, 0)), in_axes=1)(np.ones((2, 3, 4), np.float32))",
    "jax.vmap(lambda x, y: lax.dot(x, y), in_axes=(None, 1))(a, np.ones((3, 5, 4), np.float32))",
    "jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(b, np.asarray([0, 1, 9]))",
    "jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), (None, 0))(s, np.asarray([0, 1]))",
    "jax.vmap(lambda p, x, y: lax.select(p, x, y))(np.asarray([True, False, True]), s, s)",
    "jax.vmap(lambda x: lax.convert_element_type(x, np.int32))(s)",
    "jax.vmap(lambda x: lax.mul(x, 2.))(np.asarray([1, 2], np.float16).astype(np.float32))",
    "jax.vmap(lambda x: x)(np.zeros((0, 2), np.float32))",
])
def test_axes_are_those_of_jax(jax_oracle, source):
    same(jax_oracle, source, a=A, b=B, s=S)


@pytest.mark.parametrize(("source", "sentence"), [
    ("jax.vmap(3)", "Expected a callable value, got 3"),
    ("jax.vmap(lambda x: x, in_axes='a')",
     "vmap in_axes must be an int, None, or a tuple of entries"),
    ("jax.vmap(lambda x: x, in_axes=(0, 1))(s)", "vmap in_axes must be an int, None, or a tuple"),
    ("jax.vmap(lambda x: x, in_axes=({'a': 0},))(s)",
     "vmap in_axes specification must be a tree prefix of the corresponding value"),
    ("jax.vmap(lambda x, y: x)(s, a)", "vmap got inconsistent sizes for array axes to be mapped"),
    ("jax.vmap(lambda x: x, axis_size=2)(s)", "vmap got inconsistent"),
    ("jax.vmap(lambda x: x, in_axes=None)(s)", "vmap must have at least one non-None value in"),
    ("jax.vmap(lambda: 1)()", "vmap wrapped function must be passed at least one argument"),
    ("jax.vmap(lambda x: x, in_axes=1)(s)", "vmap was requested to map its argument along axis 1"),
    ("jax.vmap(lambda x: x, in_axes=-2)(s)", "vmap was requested to map its argument along axis"),
    ("jax.vmap(lambda x: x)(2.)", "vmap was requested to map its argument along axis 0"),
    ("jax.vmap(lambda x: x, out_axes=None)(s)",
     "at vmap out_axes, got axis spec None but output was batched on axis 0"),
    ("jax.vmap(lambda x: (x, x), out_axes=(0,))(s)", "vmap out_axes specification must be a tree"),
    ("jax.vmap(lambda x: x, out_axes=2)(s)", "axis 2 is out of bounds for array of dimension 1"),
    ("jax.vmap(lambda x: 'text')(s)", "is not a valid JAX type"),
    ("jax.vmap(lambda x: x)('text')", "is not a valid JAX type"),
])
def test_refusals_are_those_of_jax(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, a=A, s=S)


def test_sizes_that_differ_are_named_in_the_callers_words():
    with pytest.raises(ValueError, match=r"axis 0 of argument params\['w'\], of shape \(2, 3\)"):
        jax.vmap(lambda params, x: x)({"w": A}, S)


def test_what_is_the_same_for_all_stays_unbatched():
    closed = jax.make_jaxpr(jax.vmap(lambda x, y: lax.add(x, lax.sin(y)), (0, None)))(S, 2.0)
    check_jaxpr(closed)
    (sine,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "sin"]
    assert sine.outvars[0].aval.shape == ()


def test_a_jitted_function_is_batched_once_per_pattern():
    inner = jax.jit(lambda x, y: lax.mul(x, y))
    closed = jax.make_jaxpr(lambda a, b: (jax.vmap(inner, (0, None))(a, b),
                                          jax.vmap(inner, (0, None))(a, b)))(S, 2.0)
    check_jaxpr(closed)
    programs = {id(eqn.params["jaxpr"]) for eqn in closed.eqns if eqn.primitive.name == "jit"}
    assert len(programs) == 1


def selected_among_numbers(shape):
    """What decides may have axes of its own where the cases are numbers for all examples."""
    places = np.arange(np.prod(shape)).reshape(shape) % 3
    def one(x):
        return lax.select(x < 1, 0., 1.)
    return [jax.vmap(one)(places), jax.vmap(one, in_axes=-1)(places),
            jax.jit(jax.vmap(one))(places), jax.vmap(jax.vmap(one))(places),
            jax.grad(lambda t: jax.vmap(lambda x: lax.select(x < 1, t, 2 * t))(places).sum())(3.)]


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(3, 1), (3, 2), (2, 3, 1)])
def test_select_among_numbers(jax_oracle, shape):
    same(jax_oracle, selected_among_numbers, shape=shape)


@pytest.mark.parametrize("call", [
    "jax.vmap(lambda a: lax.fft(a, 'fft', (2,)))(np.ones(2, np.complex64))",
    "jax.vmap(lambda a: lax.fft(a, 'rfft', (3, 2)))(np.ones((3, 2), np.float32))",
    "jax.vmap(lambda a: lax.bitcast_convert_type(a, np.int32))(np.ones(4, np.int8))",
    "jax.vmap(jax.random.wrap_key_data)(np.ones(2, np.uint32))",
    "jax.vmap(lambda a: lax.clamp(0., a, np.ones(2, np.float32)))(np.ones(2, np.float32))"])
def test_the_axis_of_the_stack_is_none_of_an_example(jax_oracle, call):
    """What is refused of one example is refused of a stack, whose axis is not one of its own."""
    with pytest.raises(JaxError):
        jax_oracle.run(call)
    with pytest.raises((TypeError, ValueError), match=r"\(\)|\(2,\)"):
        eval(call, {"jax": jax, "lax": lax, "np": np})  # one of the lines above

"""When Python asks a tracer for its numbers, does it get them, or an error that helps?"""

from __future__ import annotations

import copy
from collections.abc import Hashable

import numpy as np
import pytest
from both import ours, same, same_error

import saem as jax
import saem.numpy as jnp
from saem import errors, lax

X = np.asarray([1.0, 2.0], np.float32)

ASKED = {
    "bool": ("bool(x)", errors.TracerBoolConversionError, "Attempted boolean conversion of"),
    "if": ("1 if x else 0", errors.TracerBoolConversionError, "Attempted boolean conversion of"),
    "int": ("int(x)", errors.ConcretizationTypeError, "Abstract tracer value encountered"),
    "float": ("float(x)", errors.ConcretizationTypeError, "Abstract tracer value encountered"),
    "complex": ("complex(x)", errors.ConcretizationTypeError, "Abstract tracer value encountered"),
    "item": ("x.item()", errors.ConcretizationTypeError, "Abstract tracer value encountered"),
    "numpy": ("np.asarray(x)", errors.TracerArrayConversionError,
              "The numpy.ndarray conversion method __array__() was called on"),
    "sum": ("np.sin(x)", errors.TracerArrayConversionError,
            "The numpy.ndarray conversion method __array__() was called on"),
    "tolist": ("x.tolist()", errors.ConcretizationTypeError, "Abstract tracer value encountered"),
}


@pytest.mark.parametrize("name", ASKED)
def test_an_abstract_tracer_says_what_jax_says(jax_oracle, name):
    asked, error, sentence = ASKED[name]
    same_error(jax_oracle, f"jax.jit(lambda x: {asked})(2.)", sentence)
    with pytest.raises(error) as caught:
        jax.jit(lambda x: eval(asked, {"x": x, "np": np}))(2.0)
    assert "float32[]" in str(caught.value) and "jit" in str(caught.value)


def test_an_abstract_integer_is_no_index(jax_oracle):
    source = "jax.jit(lambda i: [1, 2, 3][i])(1)"
    same_error(jax_oracle, source, "The __index__() method was called on traced array")
    with pytest.raises(errors.TracerIntegerConversionError):
        jax.jit(lambda i: list(range(i)))(1)


@pytest.mark.parametrize("how", ["jax.jit({})(x)", "jax.vmap({})(jnp.stack([x, x]))", "({})(x)"])
@pytest.mark.parametrize(("x", "asked", "sentence"), [
    ("jnp.ones(2)", "float(x)", "Only scalar arrays can be converted to Python scalars"),
    ("jnp.ones(1)", "int(x)", "Only scalar arrays can be converted to Python scalars"),
    ("jnp.ones(2)", "complex(x)", "Only scalar arrays can be converted to Python scalars"),
    ("jnp.ones(2)", "bool(x)", "The truth value of an array with more than one element"),
    ("jnp.zeros(0)", "bool(x)", "The truth value of an empty array is ambiguous."),
    ("jnp.bool_(True)", "[1, 2][x]", "Only integer scalar arrays can be converted to a scalar"),
    ("jnp.float32(1)", "range(x)", "Only integer scalar arrays can be converted to a scalar"),
    ("jnp.ones(1, int)", "[1, 2][x]", "Only integer scalar arrays can be converted to a scalar"),
])
def test_what_is_no_single_number_is_refused_alike_traced_or_not(jax_oracle, how, x, asked,
                                                                  sentence):
    call = how.format(f"lambda x: ({asked}, x)[1]")
    same_error(jax_oracle, f"(lambda x: {call})({x})", sentence)


def test_a_boolean_picks_from_numpys_arrays_as_a_mask(jax_oracle):
    same(jax_oracle, "np.arange(3.)[jnp.bool_(True)].shape, np.arange(3.)[jnp.array(False)].shape")
    same(jax_oracle, "written(np.arange(3.), jnp.bool_(True))", within=__name__)


def written(values, mask):
    values[mask] = 9
    return values


def test_a_derivative_does_not_delete_the_array_of_its_caller(jax_oracle):
    source = "jax.grad(lambda x: (x.delete(), x.sum())[1])(jnp.ones(2))"
    same_error(jax_oracle, source, "Abstract tracer value encountered where concrete value is")
    x = jnp.ones(2)
    with pytest.raises(errors.ConcretizationTypeError):
        jax.grad(lambda x: (x.delete(), x.sum())[1])(x)
    assert not x.is_deleted()


@pytest.mark.parametrize("asked", ["bool(x)", "int(x)", "x.item()", "1. if x else 0."])
def test_under_eager_grad_the_numbers_are_there(jax_oracle, asked):
    same(jax_oracle, f"seen_by_grad(lambda x: {asked})", within=__name__)


def seen_by_grad(ask):
    """Return what a function saw that ``grad`` ran."""
    seen = []

    def f(x):
        seen.append(ask(x))
        return lax.mul(x, x)

    jax.grad(f)(2.0)
    return seen


@pytest.mark.parametrize("asked", ["float(x)", "complex(x)", "np.asarray(x)", "np.sin(x)"])
def test_under_eager_grad_what_would_lose_the_derivative_is_refused(jax_oracle, asked):
    same_error(jax_oracle, f"jax.grad(lambda x: {asked})(2.)", "")


def test_under_jit_of_grad_they_are_not():
    with pytest.raises(errors.TracerBoolConversionError, match="under jit"):
        jax.jit(jax.grad(lambda x: x if x else -x))(2.0)
    with pytest.raises(errors.TracerBoolConversionError):
        jax.vmap(jax.grad(lambda x: x if x else -x))(X)


def test_length_and_shape_are_known_while_tracing():
    seen = []

    @jax.jit
    def f(x):
        seen.append((len(x), x.shape, x.ndim, x.size, x.dtype))
        return x

    f(np.ones((2, 3), np.float32))
    assert seen == [(2, (2, 3), 2, 6, np.dtype(np.float32))]
    with pytest.raises(TypeError, match="unsized"):
        jax.jit(len)(2.0)
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        jax.jit(lambda x: list(x))(2.0)


def test_a_tracer_prints_without_numbers():
    seen = []

    @jax.jit
    def f(x):
        seen.append((repr(x), f"{x}"))
        return x

    f(X)
    jax.vmap(lambda x: seen.append(repr(x)) or x)(X)
    jax.grad(lambda x: seen.append(repr(x)) or x)(2.0)
    (inside, formatted), mapped, differentiated = seen
    assert inside == formatted == "JitTracer(float32[2])"
    assert "VmapTracer" in mapped and "float32[2]" in mapped
    assert "GradTracer(primal=2.0" in differentiated


def test_a_tracer_has_no_hash_and_no_assignment():
    with pytest.raises(TypeError, match="unhashable"):
        jax.jit(lambda x: {x: 1})(2.0)
    seen = []

    def look(x):  # as caches of libraries do
        seen.append(isinstance(x, Hashable))
        return x

    jax.jit(look)(2.0), jax.grad(look)(2.0), jax.vmap(look)(X)
    assert seen == [False] * 3

    def assign(x):
        x[0] = 1.0
        return x

    with pytest.raises(TypeError, match=r"(?s)immutable.*x\.at\[idx\]\.set"):
        jax.jit(assign)(X)


def test_a_tracer_is_an_array_to_isinstance():
    seen = []
    jax.jit(lambda x: seen.append(isinstance(x, jax.Array)) or x)(X)
    assert seen == [True] and isinstance(jax.device_put(X), jax.Array)
    assert not isinstance(X, jax.Array)


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy])
def test_a_copied_tracer_is_the_same_value(clone):
    np.testing.assert_array_equal(jax.jit(lambda x: lax.add(clone(x), x))(X), [2, 4])


class Held:
    """What an array converts from."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return jnp.asarray(self.value)


@pytest.mark.parametrize("derivative", [
    lambda f, x: jax.grad(f)(x), lambda f, x: jax.jit(jax.grad(f))(x),
    lambda f, x: jax.jvp(f, (x,), (1.0,))[1], lambda f, x: jax.vjp(f, x)[1](1.0)[0],
    lambda f, x: jax.linearize(f, x)[1](1.0)])
def test_what_only_stands_for_an_array_is_no_argument_and_no_result(derivative):
    """JAX has it so; an operand of a library function it may be."""
    assert derivative(lambda x: x * Held(x), 3.0) == 6.0  # the derivative of x²
    with pytest.raises(ValueError, match="Triggering __jax_array__"):
        derivative(lambda x: Held(x * x), 3.0)
    with pytest.raises(ValueError, match="Triggering __jax_array__"):
        derivative(lambda x: x * x, Held(3.0))


def called_before(fun, like, x):
    """Return ``fun(x)`` after calls with arrays of its type, which C++ may remember."""
    for _ in range(3):
        fun(like)
        fun(jnp.asarray(like))
    return fun(x)


UNREADABLE = {
    "bytes in another order": "np.array([1, 2, 3], '{}').astype(np.dtype('{}').newbyteorder('S'))",
    "a mask": "np.ma.array(np.array([1, 2, 3], '{}'), mask=[0, 1, 0])",
}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint16", "float16", "complex64"])
@pytest.mark.parametrize("fun", [
    "lax.neg", "lambda x: lax.add(x, x)", "lambda x: lax.mul(x, x)",
    "lambda x: lax.reshape(x, (3, 1))", "lambda x: lax.concatenate([x, x], 0)",
    "lambda x: lax.select(np.array(True), x, x)", "lambda x: lax.sort(x)", "lax.sign",
    "lambda x: lax.reduce_sum(x, (0,))", "lambda x: lax.slice(x, (1,), (2,))",
    "lambda x: lax.dynamic_slice(x, (1,), (1,))", "lambda x: lax.cumsum(x)"])
def test_numpy_arrays_that_c_cannot_read_are_refused_after_others_too(jax_oracle, fun, dtype, kind):
    if dtype == "complex64" and "sort" in fun:
        dtype = "float32"
    x = UNREADABLE[kind].format(dtype, dtype)
    program = f"called_before({fun}, np.array([1, 2, 3], '{dtype}'), {x})"
    same_error(jax_oracle, program, "masked arrays" if kind == "a mask" else "", within=__name__)
    with pytest.raises((TypeError, ValueError), match=r"masked arrays|is not a valid JAX|as a JAX"):
        ours(program, __name__)

"""Do the functions of the array API standard give its shapes, its dtypes and NumPy's values?

Hypothesis draws operands as the standard describes arrays: any shape, empty ones and rank 0
included, every dtype of 64 bits and fewer, special values, operands that broadcast, and indices.
NumPy keeps the same standard; where it promotes otherwise than the standard says, or the standard
leaves a value open, the operands are not drawn.

The tests draw the same few examples in each run; ``SAEM_EXAMPLES=300`` draws other ones, and more.

Read before: ``test_array_api``.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import saem as jax
import saem.numpy as jnp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Hypothesis notes that its extra is for the standard's arrays
    from hypothesis.extra.array_api import make_strategies_namespace

    xps = make_strategies_namespace(jnp)

EXAMPLES = int(os.environ.get("SAEM_EXAMPLES", "12"))
some = settings(max_examples=EXAMPLES, deadline=None, derandomize="SAEM_EXAMPLES" not in os.environ)

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REALS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
KINDS = {"bool": ("bool",), "integer": INTEGERS, "real": REALS, "complex": COMPLEX,
         "integral": ("bool", *INTEGERS), "ordered": (*INTEGERS, *REALS),
         "floating": (*REALS, *COMPLEX), "numeric": (*INTEGERS, *REALS, *COMPLEX),
         "any": ("bool", *INTEGERS, *REALS, *COMPLEX)}
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3).map(tuple)

# Which dtypes the standard gives each function.
UNARY = {
    "abs": "ordered", "negative": "numeric", "positive": "numeric", "square": "numeric",
    "sign": "ordered", "ceil": "ordered", "floor": "ordered", "trunc": "ordered",
    "round": "ordered", "isfinite": "numeric", "isinf": "numeric", "isnan": "numeric",
    "signbit": "real", "logical_not": "bool", "bitwise_invert": "integral",
    "real": "complex", "imag": "complex", "conj": "numeric", "reciprocal": "real",
    "sqrt": "real", "exp": "real", "expm1": "real", "log": "real", "log1p": "real",
    "log2": "real", "log10": "real", "sin": "real", "cos": "real", "tan": "real", "asin": "real",
    "acos": "real", "atan": "real", "sinh": "real", "cosh": "real", "tanh": "real",
    "asinh": "real", "acosh": "real", "atanh": "real",
}
BINARY = {
    "add": "numeric", "subtract": "numeric", "multiply": "numeric", "divide": "real",
    "floor_divide": "ordered", "remainder": "ordered", "maximum": "ordered",
    "minimum": "ordered", "equal": "any", "not_equal": "any", "less": "ordered",
    "less_equal": "ordered", "greater": "ordered", "greater_equal": "ordered",
    "logical_and": "bool", "logical_or": "bool", "logical_xor": "bool",
    "bitwise_and": "integral", "bitwise_or": "integral", "bitwise_xor": "integral",
    "atan2": "real", "copysign": "real", "hypot": "real", "logaddexp": "real",
    "nextafter": "real", "pow": "real",
}
REDUCTIONS = {"sum": "numeric", "prod": "numeric", "mean": "real", "var": "real", "std": "real",
              "max": "ordered", "min": "ordered", "all": "any", "any": "any",
              "count_nonzero": "any", "argmax": "ordered", "argmin": "ordered"}


@pytest.fixture(autouse=True)
def with_64_bits():
    with jax.enable_x64(True):
        yield


def array(dtype, shape=SHAPES):
    """Draw an array; floating ones hold numbers that neither overflow nor lose all their digits."""
    if dtype in REALS:
        ordinary = xps.from_dtype(getattr(jnp, dtype), min_value=-1e4, max_value=1e4,
                                  allow_subnormal=False)
        elements = ordinary | st.sampled_from([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    elif dtype in COMPLEX:
        elements = st.builds(complex, st.integers(-8, 8), st.integers(-8, 8))
    else:
        elements = xps.from_dtype(getattr(jnp, dtype))
    return xps.arrays(getattr(jnp, dtype), shape, elements=elements)


def arrays_of(kind, shape=SHAPES):
    return st.sampled_from(KINDS[kind]).flatmap(lambda dtype: array(dtype, shape))


def is_finite(*arrays):
    return all(np.isfinite(np.asarray(x)).all() for x in arrays)


def promotes(one, two):
    """Return whether the standard says what the two dtypes promote to."""
    kinds = [next(kind for kind in ("bool", "integer", "floating") if name in KINDS[kind])
             for name in (one, two)]
    signed = [name for name in (one, two) if name.startswith("int")]
    return kinds[0] == kinds[1] and not (signed and "uint64" in (one, two))


def check(got, wanted, what, size=1.0, exact=False):
    """Check shape, dtype and values; floating ones to rounding, relative to ``size`` at least."""
    assert got.shape == wanted.shape, what
    assert got.dtype == wanted.dtype, (what, got.dtype, wanted.dtype)
    if exact or wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(np.asarray(got), wanted, err_msg=str(what))
    else:
        digits = 3e-5 if wanted.dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=digits, atol=digits * size,
                                   err_msg=str(what))


def numpys(name, *operands, **how):
    if name == "reshape":  # by its place: the argument has had its name since NumPy 2.1
        (x,), shape = operands, how["shape"]
        return np.reshape(np.asarray(x), shape)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of means of nothing
        return np.asarray(getattr(np, name)(*map(np.asarray, operands), **how))


@some
@given(st.data())
def test_functions_of_one_array(data):
    name = data.draw(st.sampled_from(sorted(UNARY)))
    x = data.draw(arrays_of(UNARY[name]))
    check(getattr(jnp, name)(x), numpys(name, x), (name, x))


@some
@given(st.data())
def test_functions_of_two_arrays(data):
    name = data.draw(st.sampled_from(sorted(BINARY)))
    dtypes = [data.draw(st.sampled_from(KINDS[BINARY[name]])) for _ in range(2)]
    assume(promotes(*dtypes))
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3))
    x, y = (data.draw(array(*both)) for both in zip(dtypes, shapes.input_shapes, strict=True))
    if name in ("floor_divide", "remainder"):  # the standard leaves the others open
        assume(is_finite(x, y) and (np.abs(np.asarray(y)) > 1e-3).all())
    got = getattr(jnp, name)(x, y)
    assert got.shape == shapes.result_shape
    check(got, numpys(name, x, y), (name, x, y))


@some
@given(st.data())
def test_reductions(data):
    name = data.draw(st.sampled_from(sorted(REDUCTIONS)))
    x = data.draw(arrays_of(REDUCTIONS[name]))
    axes = st.none()
    if x.ndim:
        axes |= st.integers(-x.ndim, x.ndim - 1)
        axes |= xps.valid_tuple_axes(x.ndim) if not name.startswith("arg") else st.nothing()
    axis, keepdims = data.draw(axes), data.draw(st.booleans())
    over = range(x.ndim) if axis is None else np.atleast_1d(axis).astype(int)
    if name not in ("sum", "prod", "all", "any", "count_nonzero"):
        assume(all(x.shape[d] for d in over))  # of nothing these have no value
    assume(is_finite(x) or name in ("all", "any", "count_nonzero", "max", "min"))
    # Sums cancel, so rounding is relative to what was added; a product stays in range.
    largest = float(np.max(np.abs(np.asarray(x)), initial=1, where=np.isfinite(np.asarray(x))))
    assume(name != "prod" or x.dtype.kind not in "fc" or largest < 30)
    size = {"sum": 100 * largest, "mean": largest, "var": largest**2, "std": 300 * largest}
    check(getattr(jnp, name)(x, axis=axis, keepdims=keepdims),
          numpys(name, x, axis=axis, keepdims=keepdims), (name, x, axis, keepdims),
          size.get(name, 1.0))


@some
@given(st.data())
def test_indexing(data):
    x = data.draw(arrays_of("any"))
    basic = data.draw(st.booleans())
    if basic:
        key = here = data.draw(xps.indices(x.shape, max_dims=4, allow_newaxis=True))
    else:
        key = data.draw(array("bool", st.just(x.shape)))
        here = np.asarray(key)
    check(x[key], np.asarray(np.asarray(x)[here]), (x, key), exact=True)
    changed = np.array(x)
    changed[here] = 1
    check(x.at[key].set(jnp.ones((), x.dtype)), changed, (x, key), exact=True)


@some
@given(st.data())
def test_moving_elements(data):
    x = data.draw(arrays_of("any", SHAPES.filter(len)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    shift = data.draw(st.integers(-4, 4))
    order = tuple(data.draw(st.permutations(range(x.ndim))))
    wider = data.draw(xps.broadcastable_shapes(x.shape, min_dims=x.ndim, max_dims=4,
                                                 min_side=0, max_side=3))
    name, how = data.draw(st.sampled_from([
        ("flip", {"axis": axis}), ("roll", {"shift": shift, "axis": axis}),
        ("roll", {"shift": shift}), ("expand_dims", {"axis": axis}),
        ("permute_dims", {"axes": order}),
        ("moveaxis", {"source": axis, "destination": order[0]}),
        ("repeat", {"repeats": abs(shift), "axis": axis}), ("tile", {"reps": (2, 1)}),
        ("broadcast_to", {"shape": np.broadcast_shapes(wider, x.shape)}),
        ("reshape", {"shape": (*x.shape[::-1], 1)}), ("reshape", {"shape": (x.size, 1)})]))
    check(getattr(jnp, name)(x, **how), numpys(name, x, **how), (name, x, how), exact=True)
    joined = data.draw(st.sampled_from(["stack", "concat"]))
    check(getattr(jnp, joined)([x, x], axis=axis),
          getattr(np, joined)([np.asarray(x)] * 2, axis=axis), (joined, x, axis), exact=True)


@some
@given(st.data())
def test_sorting_and_sets(data):
    x = data.draw(arrays_of("ordered", SHAPES.filter(len)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    here = np.asarray(x)
    check(jnp.sort(x, axis=axis), np.sort(here, axis=axis), (x, axis), exact=True)
    check(jnp.argsort(x, axis=axis, stable=True), np.argsort(here, axis=axis, stable=True),
          (x, axis), exact=True)
    if not np.isnan(here).any():
        # NumPy sorts upwards only; backwards in a reversed array, equal elements keep their order.
        back = np.argsort(np.flip(here, axis), axis=axis, stable=True)
        down = np.flip(here.shape[axis] - 1 - back, axis)
        check(jnp.argsort(x, axis=axis, stable=True, descending=True), down, (x, axis), exact=True)
    for got, wanted in zip(jnp.unique_all(x), np.unique_all(here), strict=True):
        check(got, wanted, x, exact=True)


@some
@given(st.data())
def test_conversions(data):
    one, two = (data.draw(st.sampled_from(KINDS["any"])) for _ in range(2))
    assume(one not in COMPLEX or two in COMPLEX)
    x = data.draw(array(one))
    if one in REALS and two in INTEGERS:  # what does not fit is left open
        assume(is_finite(x))
        x = jnp.round(jnp.abs(x) % 100)
    check(jnp.astype(x, two), np.asarray(x).astype(two), (x, two), exact=True)

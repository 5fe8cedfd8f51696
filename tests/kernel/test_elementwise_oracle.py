"""Do elementwise operations give what real JAX gives: bits, weakness, derivatives, refusals?

The matrix holds the rules against each other; here the conventions are JAX's own: values at the
edges of domains, derivatives at kinks, weak types, the first sentence of errors.

Read before: ``oracle``.
"""

from __future__ import annotations

import warnings

import numpy as np
import oracle
import pytest

import saem._wiring
import saem.compile.arrays  # noqa: F401 - gives results their methods
from saem.ops import arithmetic, compare, convert, maths, numbers, select
from saem.special import functions as special
from saem.special import incomplete
from saem.transform.linearize import linearize_flat

MODULES = (arithmetic, compare, convert, select, maths, numbers, special, incomplete)

EDGE = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 2.5, -2.5, 1e-6, 37.25, 3e38, np.inf, -np.inf,
                 np.nan, 0.999], np.float32)
INTEGERS = np.array([0, 1, -1, 5, -7, 31, 32, 2**31 - 1, -(2**31), 100], np.int32)
SMALL = np.array([0.3, 0.7, 1.2, 2.5, 5.0, 11.0], np.float32)
COMPLEX = np.array([1 + 2j, -0.5 + 0.1j, 2 - 3j, -1j, 0.3], np.complex64)

UNARY = ("exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
         "sqrt rsqrt cbrt logistic square sign floor ceil round is_finite abs erf erfc erf_inv "
         "lgamma digamma bessel_i1e neg").split()
BINARY = "add sub mul div rem max min pow atan2 nextafter eq ne lt le gt ge".split()
OF_INTEGERS = ("bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical "
               "shift_right_arithmetic div rem add mul max min eq lt").split()
OF_COMPLEX = ("exp log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt rsqrt "
              "logistic square sign abs real imag conj neg").split()


def function(name):
    """Return the function that lax calls ``name``."""
    return next(getattr(m, name) for m in MODULES if hasattr(m, name))


def same_bits(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if got.dtype.kind == "V" or got.dtype.itemsize < 4:  # NumPy finds no NaN in narrow floats
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", UNARY)
def test_unary_values(jax_oracle, name):
    same_bits(function(name)(EDGE), jax_oracle.run(f"lax.{name}(x)", x=EDGE).value)


@pytest.mark.parametrize("name", BINARY)
def test_binary_values(jax_oracle, name):
    x, y = (a.reshape(-1) for a in np.meshgrid(EDGE, EDGE))
    same_bits(function(name)(x, y), jax_oracle.run(f"lax.{name}(x, y)", x=x, y=y).value)


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_integer_values(jax_oracle, name):
    x, y = (a.reshape(-1) for a in np.meshgrid(INTEGERS, INTEGERS))
    same_bits(function(name)(x, y), jax_oracle.run(f"lax.{name}(x, y)", x=x, y=y).value)


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_values(jax_oracle, name):
    got = np.asarray(function(name)(COMPLEX))
    want = jax_oracle.run(f"lax.{name}(x)", x=COMPLEX).value
    if name in ("sin", "cos"):  # JAX writes them as real functions, we as one operation
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    else:
        same_bits(got, want)


@pytest.mark.parametrize("new", ["int32", "uint8", "int8", "bool", "bfloat16", "float16",
                                 "complex64", "float8_e4m3fn"])
def test_conversions(jax_oracle, new):
    for x in (EDGE, INTEGERS):
        want = jax_oracle.run(f"lax.convert_element_type(x, '{new}')", x=x).value
        same_bits(convert.convert_element_type(x, want.dtype), want)


@pytest.mark.parametrize("name", ["igamma", "igammac", "random_gamma_grad", "betainc",
                                  "bessel_i0e", "zeta", "polygamma"])
def test_values_with_formulas_of_our_own(jax_oracle, name):
    a, x = (v.reshape(-1) for v in np.meshgrid(SMALL, SMALL))
    args = {"betainc": (a, x[::-1].copy(), np.float32(0.08) * x),
            "bessel_i0e": (np.concatenate([x, -7 * x, 100 * x]),), "zeta": (a + 1, x),
            "polygamma": (np.round(a), x)}.get(name, (a, x))
    names = [f"a{i}" for i in range(len(args))]
    want = jax_oracle.run(f"lax.{name}({', '.join(names)})", **dict(zip(names, args))).value
    np.testing.assert_allclose(np.asarray(function(name)(*args)), want, rtol=2e-4, atol=1e-6)


# Where a derivative has a kink, a pole or an edge, JAX's choice is the convention.
GRADIENTS = {
    "max(x, y)": [(1.0, 1.0), (1.0, 2.0), (np.nan, 1.0)],
    "min(x, y)": [(1.0, 1.0), (1.0, 2.0)],
    "abs(x)": [(0.0,), (-0.0,), (-2.0,)],
    "sqrt(x)": [(0.0,), (4.0,)], "rsqrt(x)": [(4.0,)], "cbrt(x)": [(0.0,), (-8.0,)],
    "pow(x, y)": [(0.0, 2.0), (2.0, 0.0), (0.0, 0.0), (-2.0, 3.0), (2.0, 0.5)],
    "rem(x, y)": [(5.0, 3.0), (-5.0, 3.0)],
    "atan2(x, y)": [(0.0, 0.0), (1.0, -2.0)],
    "sign(x)": [(0.0,), (2.0,)], "floor(x)": [(1.0,)], "round(x)": [(0.5,)],
    "clamp(x, y, z)": [(0.0, 0.0, 1.0), (0.0, 1.0, 1.0), (0.0, 2.0, 1.0), (1.0, 0.0, 2.0),
                       (2.0, 1.5, 1.0)],
    "log(x)": [(0.0,), (2.0,)], "log1p(x)": [(-1.0,)], "tanh(x)": [(20.0,), (0.5,)],
    "logistic(x)": [(-100.0,), (0.5,)], "acosh(x)": [(1.0,), (3.0,)], "asin(x)": [(1.0,)],
    "erf_inv(x)": [(0.5,), (1.0,)], "lgamma(x)": [(3.0,)], "digamma(x)": [(3.0,)],
    "integer_pow(x, 3)": [(2.0,)], "integer_pow(x, 0)": [(0.0,)], "integer_pow(x, -2)": [(2.0,)],
    "igamma(x, y)": [(2.0, 1.5), (1.5, 6.0)], "bessel_i1e(x)": [(0.0,), (1.5,)],
    "bessel_i0e(x)": [(0.0,), (1.5,)], "div(x, y)": [(1.0, 0.0), (1.0, 2.0)],
    "reduce_precision(x, 5, 3)": [(1.3,)], "nextafter(x, y)": [], "exp2(x)": [(0.3,)],
}


@pytest.mark.parametrize("call", [c for c in GRADIENTS if GRADIENTS[c]])
def test_gradients(jax_oracle, call):
    name = call.split("(")[0]
    for point in GRADIENTS[call]:
        args = [np.float32(p) for p in point]
        letters = "xyz"[: len(args)]
        named = dict(zip(letters, args))
        want = jax_oracle.run(
            f"jax.grad(lambda {', '.join(letters)}: lax.{call}, argnums={tuple(range(len(args)))})"
            f"({', '.join(letters)})", **named).value
        fixed = [int(s) for s in call[:-1].split(", ")[len(args):]] if name in (
            "integer_pow", "reduce_precision") else []
        _, linear = linearize_flat(lambda *xs, fixed=fixed: [function(name)(*xs, *fixed)], args,
                                   [True] * len(args))
        got = linear.backward([np.float32(1.0)]) if linear.nonzero_out[0] else [None] * len(args)
        for g, w in zip(got, want):
            np.testing.assert_allclose(0.0 if g is None else np.asarray(g), w, rtol=2e-5,
                                       err_msg=f"{call} at {point}")


WEAK = ["eq(1., 2.)", "sin(1.)", "is_finite(1.)", "complex(1., 2.)", "real(1j)", "abs(1j)",
        "convert_element_type(1., np.float32)", "select_n(True, 1., 2.)",
        "select_n(True, 1., np.float32(2))", "clamp(1., np.float32(2), 3.)", "clamp(1., 2., 3.)",
        "max(1., np.float32(2))", "bitcast_convert_type(1., np.int32)",
        "reduce_precision(1., 5, 3)", "pow(1., 2)", "pow(np.float32(1.), 2)",
        "pow(1., np.int32(2))", "population_count(1)", "shift_left(1, 2)", "bitwise_not(1)",
        "integer_pow(2., 3)", "add(1, 2)", "conj(1.)"]


@pytest.mark.parametrize("call", WEAK)
def test_weak_types(jax_oracle, call):
    name = call.split("(")[0]
    answer = jax_oracle.run(f"lax.{call}")
    got = eval(call, {"np": np, name: function(name)})
    assert (got.aval.dtype, got.aval.weak_type) == (answer.value.dtype, answer.weak)


REFUSED = ["lt(1j, 1j)", "bitwise_and(1., 1.)", "max(np.float32(1), np.int32(1))",
           "sin(np.int32(1))", "real(1.)", "select_n(1., 1., 2.)", "select_n(True, 1., 2., 3.)",
           "select_n(True, np.ones(3), np.ones(4))", "clamp(np.ones(2), np.ones(3), np.ones(3))",
           "reduce_precision(1., 0, 3)", "reduce_precision(1., 3, -1)", "pow(1, 2)",
           "bitcast_convert_type(np.ones((3, 3), np.uint8), np.float32)",
           "integer_pow(2, -1)", "add(np.ones(3), np.ones(4))", "convert_element_type(1., None)",
           "neg(True)", "abs(np.uint8(1))", "shift_left(1., 1.)", "erf(1j)"]


@pytest.mark.parametrize("call", REFUSED)
def test_refusals_have_the_type_jax_raises(jax_oracle, call):
    name = call.split("(")[0]
    with pytest.raises(oracle.JaxError) as theirs:
        jax_oracle.run(f"lax.{call}")
    kind = {"TypeError": TypeError, "ValueError": ValueError}[theirs.value.kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(kind):
            eval(call, {"np": np, name: function(name)})

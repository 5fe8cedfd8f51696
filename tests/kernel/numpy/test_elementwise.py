"""Do elementwise functions of jax.numpy give JAX's values, dtypes, weak types and errors?

Operands hold the values where formulas break: zeros of both signs, infinities, NaN, the extremes of
integers; with Python numbers, arrays of rank 0 and empty arrays beside.  Every operand is a NumPy
value: both sides convert it by their own rules.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from agreement import check
from hypothesis import given, settings
from hypothesis import strategies as st

from saem import numpy as jnp
from saem.core import config

OPERANDS = {
    "f": np.array([0.0, -0.0, 0.5, -2.5, 3.0, 1e-40, np.inf, -np.inf, np.nan], np.float32),
    "g": np.array([1.0, 2.0, -0.5, 2.0, -3.0, 0.0, np.inf, 1.0, 0.0], np.float32),
    "h": np.array([0.5, -2.0, 3.0], ml_dtypes.bfloat16),
    "i": np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 10, 3], np.int32),
    "k": np.array([3, -2, 1, 5, 2, 2, 1, -3, 0], np.int32),
    "u": np.array([0, 1, 200], np.uint8),
    "b": np.array([True, False, True]),
    "c": np.array([1 + 2j, -0.5j, -3 + 0j], np.complex64),
    "d": np.array([0.5 - 1j, 2 + 2j, 1j], np.complex64),
    "m": np.arange(6, dtype=np.float32).reshape(2, 3),
    "e": np.zeros((0, 3), np.float32),
    "s": np.float32(2.5),
}

OF_ONE = """negative positive absolute fabs sign square reciprocal deg2rad rad2deg
    logical_not bitwise_not bitwise_count exp exp2 expm1 log log1p log2 log10 sqrt cbrt sin cos tan
    arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh sinc i0 isnan isinf isfinite
    isposinf isneginf signbit spacing frexp modf floor ceil trunc rint round nan_to_num real imag
    conjugate angle iscomplex isreal""".split()
OF_TWO = """add subtract multiply divide floor_divide remainder fmod divmod power float_power
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
    bitwise_and bitwise_or bitwise_xor left_shift right_shift arctan2 hypot logaddexp logaddexp2
    copysign nextafter heaviside maximum minimum fmax fmin isclose ldexp""".split()
# Values that differ by right: XLA's tan and complex functions at infinite places, and subnormals,
# which the CPU takes as zero in some programs and not in others.
SAFE = "f[:5]"


SOME_OF_ONE = """negative absolute sign square reciprocal logical_not bitwise_not sin sqrt log10
    isnan isfinite signbit floor rint round nan_to_num imag angle""".split()
SOME_OF_TWO = """add divide floor_divide remainder power equal less logical_or bitwise_xor
    left_shift arctan2 copysign heaviside maximum fmax isclose""".split()


@pytest.mark.parametrize("operand", [SAFE, "i", "c"])
def test_functions_of_one_operand(jax_oracle, operand):
    check(jax_oracle, [f"jnp.{name}({operand})" for name in OF_ONE], 2e-5, **OPERANDS)


@pytest.mark.parametrize("operands", ["f, g", "i, k", "c, d"])
def test_functions_of_two_operands(jax_oracle, operands):
    cases = [f"jnp.{name}({operands})" for name in OF_TWO]
    check(jax_oracle, cases, 2e-5, **OPERANDS)


@pytest.mark.parametrize("operand", ["h", "u", "b", "2", "0.5", "True"])
def test_dtypes_of_one_operand(jax_oracle, operand):
    check(jax_oracle, [f"jnp.{name}({operand})" for name in SOME_OF_ONE], 2e-5, **OPERANDS)


@pytest.mark.parametrize("operands", [
    "h, 2.5", "u, 3", "b, b", "m, s", "f, i", "2, 0.5", "e, m[:1]"])
def test_dtypes_of_two_operands(jax_oracle, operands):
    cases = [f"jnp.{name}({operands})" for name in SOME_OF_TWO]
    check(jax_oracle, cases, 2e-5, **OPERANDS)


def test_special_values(jax_oracle):
    names = ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "sign", "floor",
             "nan_to_num", "exp", "log1p", "sqrt", "reciprocal", "trunc", "rint"]
    check(jax_oracle, [f"jnp.{name}(f[[0, 1, 6, 7, 8]])" for name in names], **OPERANDS)


def test_choices(jax_oracle):
    check(jax_oracle, [
        "jnp.where(f > 0, f, g)", "jnp.where(b, m, s)", "jnp.where(b, 1, 2)",
        "jnp.where(i, 1.5, k)", "jnp.where(True, f, 0)", "jnp.where(b, [1], 2)",
        "jnp.where(b, None, 2)", "jnp.where(b, f, g)", "jnp.where(b)", "jnp.where(m > 2)",
        "jnp.where(b, size=4, fill_value=-1)", "jnp.where(b, 1, 2, size=3)",
        "jnp.nonzero(m, size=2)", "jnp.nonzero(s)", "jnp.argwhere(m)", "jnp.flatnonzero(m)",
        "jnp.argwhere(s)", "jnp.argwhere(np.float32(0))", "jnp.argwhere(m, size=7)",
        "jnp.select([b, ~b], [h, 2.0], 7)", "jnp.select([b], [h, h])", "jnp.select([], [])",
        "jnp.select([b, m > 1], [m, s], -1)", "jnp.clip(f, -1, 1)", "jnp.clip(i, 0.5, 3)",
        "jnp.clip(f, None, 1)", "jnp.clip(c, 0, 1)", "jnp.clip(f, 2, 1)", "jnp.clip(m, s, None)",
        "jnp.choose(np.array([0, 1, 1]), [u, u + 5])",
        "jnp.choose(np.array([0, 5, -1]), [u, u + 5], mode='wrap')",
        "jnp.choose(np.array([0, 5, -1]), [u, u + 5], mode='clip')",
        "jnp.choose(np.array([0, 5]), [u, u])", "jnp.choose(f, [u, u])",
        "jnp.piecewise(m, [m > 1, m > 3], [1, lambda x: x * 2])",
        "jnp.piecewise(m, [m > 1], [1, lambda x: x * 2, 3])",
        "jnp.piecewise(m, [m > 1, m < 0], [lambda x: -x, 5, 9])",
    ], **OPERANDS)


def test_options(jax_oracle):
    check(jax_oracle, [
        "jnp.round(f[:5], 1)", "jnp.round(i, -1)", "jnp.round(i, 1)", "jnp.round(c, 1)",
        "jnp.round(b)", "jnp.around(2.567, decimals=2)", "jnp.round(123.5, -1)",
        "jnp.nan_to_num(f, nan=3, posinf=1, neginf=-1)", "jnp.nan_to_num(c)",
        "jnp.isclose(f, f, equal_nan=True)", "jnp.isclose(1, 1 + 1e-9)",
        "jnp.isclose(f, g, rtol=0.5)", "jnp.isclose(i, i)", "jnp.allclose(f, f)",
        "jnp.allclose(f, f, equal_nan=True)", "jnp.allclose([1], 1)", "jnp.allclose(e, e)",
        "jnp.array_equal([1, 2], [1, 2])", "jnp.array_equal(f, f, equal_nan=True)",
        "jnp.array_equal(f, m)", "jnp.array_equiv(1, [1, 1])", "jnp.array_equiv(f, m)",
        "jnp.angle(c, deg=True)", "jnp.isposinf(f, out=f)", "jnp.ldexp(1.0, 3.0)",
        "jnp.ldexp(f[2:5], np.array([3, -140, 127]))", "jnp.frexp(f[[0, 2, 3, 4, 6, 8]])",
        "jnp.power(i, -1)", "jnp.power(2, -1)", "jnp.power(i, np.int8(2))", "jnp.power(f, 0)",
        "jnp.power(b, 2)", "jnp.power(f, np.array(3))", "jnp.power(i[:, None], k)",
        "jnp.power(g[:4], np.array([2, -3, 1, 0]))",
    ], 2e-5, **OPERANDS)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_frexp_of_subnormal_numbers_is_numpys(dtype):
    smallest = np.finfo(dtype).smallest_subnormal
    x = np.array([smallest, -3 * smallest, 700 * smallest, np.finfo(dtype).tiny, 0, -0.0], dtype)
    for got, wanted in zip(jnp.frexp(x), np.frexp(x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)
        assert (np.signbit(got) == np.signbit(wanted)).all()


def test_refusals(jax_oracle):
    check(jax_oracle, [
        "jnp.add([1], 2)", "jnp.add(f, None)", "jnp.add(f, 'a')", "jnp.sin([1.0])", "jnp.add(f)",
        "jnp.add(f, f, f)", "jnp.subtract(b, b)", "jnp.negative(b)", "jnp.bitwise_and(f, f)",
        "jnp.left_shift(f, 1)", "jnp.add(f, m)", "jnp.add(m, m[:, :2])", "jnp.add(i, 2**31)",
        "jnp.floor_divide(c, 1)", "jnp.hypot(c, 1)", "jnp.bitwise_count(f)", "jnp.cbrt(c)",
        "jnp.sign(b)", "jnp.floor(c)", "jnp.i0(c)", "jnp.copysign(c, 1)",
    ], **OPERANDS)


def test_dtypes_in_64_bits(jax_oracle):
    with config.enable_x64(True):
        check(jax_oracle, [
            "jnp.sin(np.int8(1))", "jnp.sin(np.int64(1))", "jnp.sin(1)", "jnp.add(i, 1.5)",
            "jnp.divide(i, i + 1)", "jnp.add(np.float32(1), np.float64(1))", "jnp.exp(True)",
            "jnp.power(i, 2)", "jnp.arange(3)", "jnp.zeros(2)", "jnp.array([1, 2.5])",
            "jnp.linspace(0, 1, 3)", "jnp.arctan2(np.int32(1), 1.0)", "jnp.float64(3)",
        ], x64=True, **OPERANDS)


# -- against NumPy ---------------------------------------------------------------------------------

shapes = st.sampled_from([(), (1,), (3,), (2, 3), (2, 1), (0, 3), (1, 1, 3)])
values = st.sampled_from([np.float32, np.int32, np.uint8, np.bool_, np.complex64])


@settings(max_examples=30, deadline=None)
@given(shapes, shapes, values, st.sampled_from(["add", "multiply", "maximum", "equal"]),
       st.integers(0, 99))
def test_shapes_broadcast_as_in_numpy(a, b, dtype, name, seed):
    rng = np.random.default_rng(seed)
    x, y = [rng.integers(0, 3, shape).astype(dtype) for shape in (a, b)]
    try:
        wanted = getattr(np, name)(x, y)
    except ValueError:
        with pytest.raises(ValueError, match="ncompatible shapes"):
            getattr(jnp, name)(x, y)
        return
    got = getattr(jnp, name)(x, y)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(np.asarray(got), wanted)

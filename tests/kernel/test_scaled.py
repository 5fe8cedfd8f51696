"""Are numbers of eight and four bits stored and multiplied as their formats say?

JAX computes these products on NVIDIA's GPUs alone, so values are compared with NumPy's; shapes,
dtypes and errors with JAX's.

Read before: ``saem.nn.scaled``.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.nn.scaled import in_blocks

draw = np.random.RandomState(0)
X = draw.randn(3, 32, 64).astype("f") * np.exp(draw.randn(3, 32, 1)).astype("f")
Y = draw.randn(3, 96, 64).astype("f")
NUMBERS = (((2,), (2,)), ((0,), (0,)))
MXFP8 = jax.nn.get_scaled_dot_general_config("mxfp8")
NVFP4 = jax.nn.get_scaled_dot_general_config("nvfp4", jnp.array([0.5], "float32"))
BOTH = pytest.mark.parametrize("config", [MXFP8, NVFP4], ids=lambda config: config.mode)


def wide(x):
    return np.asarray(x).astype("d")


def by_numpy(a, b, a_scales, b_scales):
    scaled = [wide(x) * np.repeat(wide(s), x.shape[2] // s.shape[2], 2)
              for x, s in ((a, a_scales), (b, b_scales))]
    return np.einsum("bmk,bnk->bmn", *scaled)


def mxfp8_by_numpy(x, block=32):
    """Blocks as the MX specification makes them: the scale is a power of two, rounded up."""
    blocks = x.reshape(*x.shape[:-1], -1, block)
    largest = np.abs(blocks).max(-1, keepdims=True) / 448
    with np.errstate(divide="ignore"):
        scales = 2.0 ** np.clip(np.ceil(np.log2(largest)), -127, 127)
    numbers = np.clip(blocks / scales, -448, 448).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    return numbers.reshape(x.shape), scales[..., 0]


def nvfp4_by_numpy(x, whole, block=16):
    blocks = x.reshape(*x.shape[:-1], -1, block) / np.float32(whole)
    largest = np.abs(blocks).max(-1, keepdims=True) / np.float32(6)
    scales = np.clip(largest, 0, 448).astype(ml_dtypes.float8_e4m3fn)
    numbers = np.clip(blocks / scales.astype("f"), -6, 6).astype(ml_dtypes.float4_e2m1fn)
    return numbers.reshape(x.shape), scales[..., 0]


@pytest.mark.parametrize(("dtype", "scale"), [
    ("float32", "float32"), ("float8_e4m3fn", "float8_e8m0fnu"), ("float8_e5m2", "float8_e8m0fnu"),
    ("float4_e2m1fn", "float8_e4m3fn"), ("bfloat16", "float32"), ("int8", "float32")])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_a_number_is_what_is_stored_times_its_scale(dtype, scale, kind):
    a, b = (jnp.asarray(x * 2, dtype) for x in (X[:, :5], Y[:, :7]))
    a_scales, b_scales = (jnp.asarray(2.0 ** draw.randint(-3, 4, (3, n, 4)), scale)
                          for n in (5, 7))
    out = jax.nn.scaled_matmul(a, b, a_scales, b_scales, preferred_element_type=kind)
    assert out.dtype == kind
    expected = by_numpy(a, b, a_scales, b_scales)
    np.testing.assert_allclose(wide(out), expected, rtol=2e-5 if kind == "float32" else 1e-2,
                               atol=1e-3 if kind == "float32" else 1e-1)


def test_blocks_of_eight_bits_are_those_of_the_specification():
    special = [np.full(64, n) for n in (0, 448, 448.1, 2.0 ** -110, 3e38)]
    special = np.stack([*special, np.linspace(-1, 1, 64)]).astype("f")
    for x in (X, Y, special):
        numbers, scales = in_blocks(jnp.asarray(x), MXFP8)
        expected, expected_scales = mxfp8_by_numpy(x)
        np.testing.assert_array_equal(wide(scales), expected_scales)
        np.testing.assert_array_equal(wide(numbers), wide(expected))


def test_blocks_of_four_bits_are_those_of_their_format():
    for x in (X, Y, X * 1e4):
        numbers, scales = jax.jit(lambda x: in_blocks(x, NVFP4))(x)
        expected, expected_scales = nvfp4_by_numpy(x, 0.5)
        np.testing.assert_array_equal(wide(scales), wide(expected_scales))
        np.testing.assert_array_equal(wide(numbers), wide(expected))


@BOTH
def test_a_product_of_rounded_numbers(config):
    out = jax.nn.scaled_dot_general(X, Y, NUMBERS, configs=[config] * 3)
    if config is MXFP8:
        (a, a_scales), (b, b_scales) = map(mxfp8_by_numpy, (X, Y))
        expected = by_numpy(a, b, a_scales, b_scales)
    else:
        (a, a_scales), (b, b_scales) = (nvfp4_by_numpy(x, 0.5) for x in (X, Y))
        expected = by_numpy(a, b, a_scales, b_scales) * 0.25
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@BOTH
@pytest.mark.parametrize(("x", "y", "numbers"), [
    ((4, 64), (5, 64), (((1,), (1,)), ((), ()))), ((64,), (64,), (((0,), (0,)), ((), ()))),
    ((2, 3, 64, 4), (64, 4, 5, 2), (((2,), (0,)), ((0, 3), (3, 1)))),
    ((2, 8, 8, 4), (8, 5, 8), (((1, 2), (0, 2)), ((), ())))])
def test_axes_are_those_of_dot_general(config, x, y, numbers):
    x, y = draw.rand(*x).astype("f"), draw.rand(*y).astype("f")
    out = jax.nn.scaled_dot_general(x, y, numbers, configs=[config] * 2)
    expected = lax.dot_general(x, y, numbers)
    assert out.shape == expected.shape
    np.testing.assert_allclose(out, expected, rtol=0.1)  # two numbers of 2 bits, many of them


@BOTH
def test_derivatives_are_those_of_the_product(config):
    def loss(f):
        return jax.jit(jax.grad(lambda x, y: (f(x, y) * ct).sum(), (0, 1)))(X, Y)

    ct = draw.randn(3, 32, 96).astype("f")
    got = loss(lambda x, y: jax.nn.scaled_dot_general(x, y, NUMBERS, configs=[config] * 3))
    for mine, exact in zip(got, loss(lambda x, y: lax.dot_general(x, y, NUMBERS)), strict=True):
        near = 1e-4 if config is NVFP4 else 0.05
        assert np.linalg.norm(mine - exact) <= near * np.linalg.norm(exact)


def test_numbers_beyond_all_scales_have_no_derivative():
    x = jnp.ones((2, 16)).at[0, 3].set(6 * 448 * 0.5 + 1)
    dx = jax.grad(lambda x: jax.nn.scaled_dot_general(
        x, jnp.ones((2, 16)), (((1,), (1,)), ((), ())), configs=[NVFP4] * 3).sum())(x)
    np.testing.assert_array_equal(dx, jnp.full((2, 16), 2.).at[0, 3].set(0))


def test_the_scale_of_all_may_be_computed():
    def f(scale, x):
        config = jax.nn.get_scaled_dot_general_config("nvfp4", scale)
        return jax.nn.scaled_dot_general(x, Y, NUMBERS, configs=[config] * 3).sum()

    scale = jnp.array([0.5], "float32")
    value, slope = jax.jit(jax.value_and_grad(f, 1))(scale, X)
    np.testing.assert_allclose(value, f(scale, X), rtol=1e-4)
    assert slope.shape == X.shape
    rows = jax.vmap(lambda x: f(scale, x))(jnp.stack([X, 2 * X]))
    np.testing.assert_allclose(rows, [f(scale, X), f(scale, 2 * X)], rtol=1e-3)


def product(x, y, mode="mxfp8", count=3, numbers=NUMBERS, **how):
    configs = [jax.nn.get_scaled_dot_general_config(mode)] * count
    return jax.nn.scaled_dot_general(x, y, numbers, configs=configs, **how)


@pytest.mark.parametrize("expression", [
    "product(X, Y)", "product(X.astype(jnp.bfloat16), Y)", "product(X, Y, 'nvfp4')",
    "product(X, Y, preferred_element_type='bfloat16')", "product(X, Y, count=2)",
    "product(X, Y, 'nvfp4', preferred_element_type='float16', implementation='cudnn')",
    "product(X[:, :, :48], Y[:, :, :48], 'nvfp4')",
    "product(jnp.array(X[0]), jnp.array(Y[0]), numbers=(((1,), (1,)), ((), ())))",
    "product(X, Y.T, numbers=(((2,), (0,)), ((0,), (2,))))",
    "jax.nn.scaled_dot_general(X, Y, NUMBERS)",
    "jax.nn.scaled_matmul(X, Y, X[:, :, :2], Y[:, :, :2])",
    "jax.nn.scaled_matmul(X.astype(int), Y.astype(int), X[:, :, :4], Y[:, :, :4],"
    " preferred_element_type='float16')",
])
def test_shapes_and_dtypes(jax_oracle, expression):
    same(jax_oracle, f"(lambda out: (out.shape, str(out.dtype)))(jax.eval_shape("
         f"lambda: {expression}))", within=__name__)


@pytest.mark.parametrize(("expression", "sentence"), [
    ("jax.nn.get_scaled_dot_general_config('fp6')", "Unsupported mode: fp6"),
    ("jax.nn.scaled_matmul(X[0], Y[0], X[0], Y[0])", "all inputs to be 3-dimensional arrays"),
    ("jax.nn.scaled_matmul(X, Y[:2], X, Y[:2])", "inputs a and b to have matching batch"),
    ("jax.nn.scaled_matmul(X, Y, X, Y[:, :, :2])", "scales to have matching batch"),
    ("jax.nn.scaled_matmul(X, Y, X[:, 1:, :2], Y[:, :, :2])", "scales to match non-contract"),
])
def test_errors(jax_oracle, expression, sentence):
    same_error(jax_oracle, f"jax.eval_shape(lambda: {expression})", sentence, within=__name__)


@pytest.mark.parametrize(("size", "mode", "block"), [(48, "mxfp8", 32), (33, "nvfp4", 16)])
def test_an_axis_is_a_number_of_blocks(jax_oracle, size, mode, block):
    """JAX asserts it without a word."""
    call = f"jax.eval_shape(lambda: product(X[:, :, :{size}], Y[:, :, :{size}], {mode!r}))"
    same_error(jax_oracle, call, "", within=__name__)
    with pytest.raises(AssertionError, match=f"{size} numbers along .* are no blocks of {block}"):
        product(X[:, :, :size], Y[:, :, :size], mode)

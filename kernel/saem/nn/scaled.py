"""How are matrices multiplied whose numbers have four or eight bits?

Numbers along the contracted axis are stored in blocks, each with a scale of its own: a number is
what is stored times the scale of its block.  ``scaled_matmul`` multiplies such matrices;
``scaled_dot_general`` makes blocks of ordinary numbers first, and those of a cotangent too.

Read before: ``saem.numpy``.
Invariant: a block's largest number fits its data type (tests/kernel/test_scaled.py).
Source: OCP Microscaling Formats (MX) specification 1.0, 6.3; cuDNN's documentation of block
scaling; the jaxprs of jax.nn.scaled_dot_general.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import errors
from saem.core.record import Record
from saem.derivatives.custom_vjp import custom_vjp
from saem.typing import Array, ArrayLike, DTypeLike

# The parts of a float32: how many bits stand right of its exponent.
MANTISSA = 23


class BlockScaleConfig(Record):
    """How blocks are made: their length, the dtype of numbers and scales, and the scale of all."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: Literal["nvfp4", "mxfp8"],
                                  global_scale: Array | None = None) -> BlockScaleConfig:
    """Return how blocks are made: 32 numbers of 8 bits ('mxfp8'), or 16 of 4 bits ('nvfp4').

    ``global_scale`` (nvfp4): f32[1], by which all numbers are divided first; 1 if it is not given.

    Raises: ValueError for another mode.

    >>> get_scaled_dot_general_config('mxfp8').block_size
    32
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, None,
                                False)
    if mode == "nvfp4":
        scale = jnp.ones(1, np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, scale,
                                False)
    raise errors.explained(errors.ArgumentError, "scaled_dot_general.mode",
                           f"Unsupported mode: {mode}", advice="There are 'mxfp8' and 'nvfp4'.")


def scaled_matmul(lhs: Array, rhs: Array, lhs_scales: Array, rhs_scales: Array,
                  preferred_element_type: DTypeLike = np.float32) -> Array:
    """Return the products [B M N] of matrices [B M K] and [B N K], each times its scales.

    ``lhs_scales``: [B M K/b] and ``rhs_scales``: [B N K/b], one for each block of b numbers.
    It is computed in float32, and has ``preferred_element_type``.

    Raises: ValueError for shapes that do not fit.

    >>> x, y = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]])
    >>> scaled_matmul(x, y, jnp.full((1, 1, 1), 0.5), jnp.full((1, 1, 1), 0.5))
    Array([[[8.]]], dtype=float32)
    """
    lhs, rhs, lhs_scales, rhs_scales = map(jnp.asarray, (lhs, rhs, lhs_scales, rhs_scales))
    _check_matrices(lhs, rhs, lhs_scales, rhs_scales)
    a, b = (x.astype(np.float32) * jnp.repeat(s.astype(np.float32), x.shape[2] // s.shape[2], 2)
            for x, s in ((lhs, lhs_scales), (rhs, rhs_scales)))
    return jnp.einsum("bmk,bnk->bmn", a, b).astype(preferred_element_type)


def _check_matrices(a: Array, b: Array, a_scales: Array, b_scales: Array) -> None:
    def refuse(number: int, sentence: str) -> None:
        raise errors.explained(
            errors.ArgumentError, f"scaled_matmul.C{number}", f"scaled_matmul requires {sentence}",
            advice="They are [B, M, K] and [B, N, K], with scales [B, M, K / b] and [B, N, K / b].")

    if any(x.ndim != 3 for x in (a, b, a_scales, b_scales)):
        refuse(1, "all inputs to be 3-dimensional arrays")
    if (a.shape[0], a.shape[2]) != (b.shape[0], b.shape[2]):
        refuse(2, "inputs a and b to have matching batch (B) and contract (K) dimensions, but got "
               f"shapes {a.shape} and {b.shape}")
    if (a_scales.shape[0], a_scales.shape[2]) != (b_scales.shape[0], b_scales.shape[2]):
        refuse(3, "scales to have matching batch (B) and contract (K) dimensions, but got shapes "
               f"{a_scales.shape} and {b_scales.shape}")
    if a_scales.shape[:2] != a.shape[:2] or b_scales.shape[:2] != b.shape[:2]:
        refuse(4, "scales to match non-contract dimensions of inputs, but got shapes "
               f"a: {a.shape}, b: {b.shape}, a_scales: {a_scales.shape}, "
               f"b_scales: {b_scales.shape}")
    if not a_scales.shape[2] or a.shape[2] % a_scales.shape[2]:
        refuse(5, f"blocks of one size, but got {a_scales.shape[2]} scales for {a.shape[2]} "
               "numbers")


def in_blocks(x: Array, config: BlockScaleConfig) -> tuple[Array, Array]:
    """Return the numbers of ``x`` (…, k) as they are stored, and the scales (…, k / block).

    Raises: AssertionError if k is no multiple of the size of a block.
    """
    size = config.block_size
    if x.shape[-1] % size:
        raise errors.explained(
            AssertionError, "scaled_dot_general.block",
            f"{x.shape[-1]} numbers along a contracted axis are no blocks of {size}.",
            advice="Pad that axis with zeros; with gradients, each axis but those of the batch.")
    blocks = x.reshape(*x.shape[:-1], -1, size)
    most = float(ml_dtypes.finfo(config.data_type).max)
    if config.mode == "nvfp4":
        blocks = blocks.astype(np.float32) / config.global_scale
        largest = jnp.max(jnp.abs(blocks), -1, keepdims=True) / most
        limit = float(ml_dtypes.finfo(config.scale_type).max)
        scales = rounded_to(config.scale_type, jnp.clip(largest, 0, limit))
        blocks = blocks / scales.astype(np.float32)
    else:
        exponents = _exponent_above(jnp.max(jnp.abs(blocks), -1, keepdims=True) / most)
        scales = lax.bitcast_convert_type(exponents, config.scale_type)
        # Divided in two steps: processors may take a power of two near the least one for zero.
        first = exponents // 2
        blocks = blocks / _power_of_two(first + 64) / _power_of_two(exponents - first + 63)
    stored = rounded_to(config.data_type, jnp.clip(blocks, -most, most))
    return stored.reshape(x.shape), scales.reshape(scales.shape[:-1])


def rounded_to(dtype: Any, x: Array) -> Array:
    """Return ``x`` as ``dtype``, rounded even if it is made wide again: compilers would skip that.
    """
    return lax.optimization_barrier(x.astype(dtype))


def _exponent_above(x: Array) -> Array:
    """Return the exponents, as float32 counts them, of the least powers of two not below ``x``."""
    bits = lax.bitcast_convert_type(x.astype(np.float32), np.uint32)
    exponent, mantissa = bits >> MANTISSA, bits & (2 ** MANTISSA - 1)
    largest = exponent == 254
    # The least power of two that e8m0 has is 2⁻¹²⁷, half of float32's least normal number.
    below = (exponent == 0) & (mantissa <= 2 ** (MANTISSA - 1))
    above = (mantissa > 0) & ~largest & ~below
    return jnp.where(above, exponent + 1, exponent).astype(np.uint8)


def _power_of_two(exponent: Array) -> Array:
    """Return the float32 with these bits of an exponent: 2 to the power of ``exponent - 127``."""
    return lax.bitcast_convert_type(exponent.astype(np.uint32) << MANTISSA, np.float32)


def scaled_dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Any,
                       preferred_element_type: DTypeLike = np.float32,
                       configs: Sequence[BlockScaleConfig] | None = None,
                       implementation: Literal["cudnn"] | None = None) -> Array:
    """Return ``lax.dot_general`` of operands whose numbers were rounded to four or eight bits.

    ``configs``: how blocks are made of ``lhs``, of ``rhs``, and of cotangents of the result; None
    rounds nothing.  ``implementation`` is not read.  The derivative is that of the product; nvfp4
    multiplies cotangents unrounded, and has no derivative for numbers that its scales do not reach.

    Raises: AssertionError for an axis that is no multiple of a block.

    >>> x = jnp.linspace(-1., 1., 128).reshape(2, 64)
    >>> configs = [get_scaled_dot_general_config('mxfp8')] * 3
    >>> scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs).round(1)
    Array([[ 21.4, -10.8],
           [-10.8,  21.4]], dtype=float32)
    """
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers,
                               preferred_element_type=preferred_element_type)
    (lc, rc), (lb, rb) = dimension_numbers
    a, left = _as_matrices(lhs, lc, lb)
    b, right = _as_matrices(rhs, rc, rb)
    out = _multiply(a, b, configs, preferred_element_type)
    return out.reshape(*(lhs.shape[d] for d in lb), *left, *right)


def _as_matrices(x: Array, summed: Sequence[int], batch: Sequence[int]
                 ) -> tuple[Array, tuple[int, ...]]:
    """Return ``x`` as [B, M, K], and the sizes of the axes of M."""
    free = [d for d in range(x.ndim) if d not in summed and d not in batch]
    sizes = [tuple(x.shape[d] for d in axes) for axes in (batch, free, summed)]
    moved = x.transpose(*batch, *free, *summed)
    return moved.reshape(*map(math.prod, sizes)), sizes[1]


def _multiply(a: Array, b: Array, configs: Sequence[BlockScaleConfig], kind: DTypeLike) -> Array:
    def rounded(x: Array, y: Array, x_config: BlockScaleConfig, y_config: BlockScaleConfig
                ) -> Array:
        (xs, x_scales), (ys, y_scales) = in_blocks(x, x_config), in_blocks(y, y_config)
        out = scaled_matmul(xs, ys, x_scales, y_scales, kind)
        if x_config.mode == "nvfp4":
            out = (out * (x_config.global_scale * y_config.global_scale)).astype(kind)
        return out

    @custom_vjp
    def product(a: Array, b: Array) -> Array:
        return rounded(a, b, configs[0], configs[1])

    def forward(a: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
        return product(a, b), (a, b)

    def share(x: Array, y: Array, ct: Array, x_config: BlockScaleConfig,
              y_config: BlockScaleConfig) -> Array:
        """Return the cotangent of ``x`` where ``ct`` is that of ``x yᵀ``."""
        if x_config.mode != "nvfp4":
            return rounded(ct, y.mT, configs[2], y_config).astype(x.dtype)
        reached = jnp.abs(x) <= x_config.global_scale * float(
            ml_dtypes.finfo(x_config.data_type).max) * float(
            ml_dtypes.finfo(x_config.scale_type).max)
        whole = jnp.matmul(ct, y, preferred_element_type=np.float32)
        return jnp.where(reached, whole, 0).astype(x.dtype)

    def backward(residuals: tuple[Array, Array], ct: Array) -> tuple[Array, Array]:
        a, b = residuals
        return (share(a, b, ct, configs[0], configs[1]),
                share(b, a, ct.mT, configs[1], configs[0]))

    product.defvjp(forward, backward)
    return product(a, b)

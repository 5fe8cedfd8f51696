"""Which bits of a product does an integer type leave out?

``mulhi`` gives the upper half of the double-wide product of two integers.

Read before: ``ops.families``.
Invariant: ``mulhi(x, y) * 2**n + (x * y mod 2**n)`` is the whole product of n-bit integers.
Source: the documentation of jax.lax.mulhi; Warren, Hacker's Delight, section 8-2 (of halves).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core import dtypes
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops.families import Discrete
from saem.typing import Array, ArrayLike


def _upper_half(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = dtypes.itemsize_bits(x.dtype)
    whole = x.astype(object) * y.astype(object)  # Python's integers have all their bits
    return np.asarray(whole >> bits).astype(x.dtype)


@primitive("mulhi")
class MulHi(Discrete):
    """The upper half of the product of integers."""

    accepts, needs = staticmethod(dtypes.is_integer), "an integer"
    numpy = staticmethod(_upper_half)

    def lower(self, ctx, x, y):
        aval = ctx.avals[x]
        bits = dtypes.itemsize_bits(aval.dtype)
        return _halves(ctx, x, y, bits) if bits == 64 else _widened(ctx, x, y, bits)


def _widened(ctx: Any, x: str, y: str, bits: int) -> str:
    """Multiply in the type of twice the width."""
    own = ctx.avals[x].dtype
    unsigned = np.issubdtype(own, np.unsignedinteger)
    wide = np.dtype(f"{'u' if unsigned else ''}int{2 * max(bits, 8)}")
    out = ctx.out_avals[0].update(dtype=wide)
    product = ctx.elementwise("stablehlo.multiply", ctx.convert(x, wide), ctx.convert(y, wide),
                              out=out)
    shift = f"stablehlo.shift_right_{'logical' if unsigned else 'arithmetic'}"
    shifted = ctx.elementwise(shift, product, _number(ctx, product, bits), out=out)
    return ctx.convert(shifted, own)


def _halves(ctx: Any, x: str, y: str, bits: int) -> str:
    """Multiply by halves, each of which fits."""
    unsigned = np.issubdtype(ctx.avals[x].dtype, np.unsignedinteger)
    right = f"stablehlo.shift_right_{'logical' if unsigned else 'arithmetic'}"
    half, mask = _number(ctx, x, bits // 2), _number(ctx, x, (1 << bits // 2) - 1)

    def low(value: str) -> str:
        return ctx.elementwise("stablehlo.and", value, mask)

    def high(value: str) -> str:
        return ctx.elementwise(right, value, half)

    def times(a: str, b: str) -> str:
        return ctx.elementwise("stablehlo.multiply", a, b)

    def plus(a: str, b: str) -> str:
        return ctx.elementwise("stablehlo.add", a, b)

    carry = ctx.elementwise("stablehlo.shift_right_logical", times(low(x), low(y)), half)
    middle = plus(times(high(x), low(y)), carry)
    other = plus(times(low(x), high(y)), low(middle))
    return plus(plus(times(high(x), high(y)), high(middle)), high(other))


def _number(ctx: Any, like: str, value: int) -> str:
    aval = ctx.avals[like]
    return ctx.constant(np.asarray(value, aval.dtype), aval.update(shape=()))


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the upper half of the double-wide product of ``x`` and ``y``, elementwise.

    >>> lax.mulhi(jnp.array([1 << 20], dtype=jnp.uint32), jnp.array([1 << 20], dtype=jnp.uint32))
    Array([256], dtype=uint32)
    """
    return bind(MulHi(), x, y)

"""How do bits become numbers between bounds?

A float in [1, 2) is an exponent of zero and random bits for its fraction; minus 1, times the width,
plus the lower bound.  An integer below n is the remainder of twice as many bits, so that the
remainder is very nearly uniform.

Read before: ``random.keys``.  Read after: ``random.continuous``, ``random.discrete``.
Invariant: same key, shape and dtype give the numbers of JAX, bit for bit (test_random.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saem import lax
from saem.core import dtypes, errors
from saem.core.avals import aval_of, kept
from saem.core.config import enable_x64, high_dynamic_range_gumbel
from saem.core.dimensions import unwrapped
from saem.ops.linear import literal
from saem.ops.random_bits import random_bits, random_split
from saem.random.keys import (
    as_dtype,
    as_shape,
    check_wide_enough,
    float_dtype,
    joined_shape,
    placed,
    takes_any_key,
    used,
)
from saem.typing import Array, ArrayLike, DTypeLike, Shape


def two_keys(key: Any) -> tuple[Any, Any]:
    """Return two new keys of a typed key."""
    pair = random_split(key, (2,))
    return tuple(lax.squeeze(lax.slice(pair, (i,), (i + 1,)), (0,)) for i in (0, 1))


# -- bits ------------------------------------------------------------------------------------------


@takes_any_key(2)
def _bits(key, width, shape):
    return random_bits(key, width, shape)


def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
         out_sharding: Any = None) -> Array:
    """Return unsigned integers whose bits are all random.

    Raises: ValueError for a dtype that is not unsigned.

    >>> jax.random.bits(jax.random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    if out_sharding is not None:
        return placed(bits, out_sharding, key, shape, dtype)
    if dtype is None:
        dtype = np.dtype("uint64" if enable_x64.value else "uint32")
    else:
        dtype = as_dtype("bits", dtype, int, dtypes.is_unsigned, "an unsigned int")
    used(key)
    # Types of fewer bits come in whole bytes.
    return _bits(key, max(8, dtypes.itemsize_bits(dtype)), as_shape(shape))


# -- floats ----------------------------------------------------------------------------------------


def unit_interval(key: Any, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    """Return floats in [low, high), of typed ``key``; bounds are scalars or broadcast to shape."""
    low, high = (lax.broadcast_to_rank(lax.convert_element_type(x, dtype), len(shape))
                 for x in (low, high))
    info = dtypes.finfo(dtype)
    # Fewer than 8 bits of fraction need no more than 8 random ones.
    made = info.bits if info.nmant >= 8 else 8
    word = np.dtype(f"uint{info.bits}")
    random = lax.convert_element_type(random_bits(key, made, shape), word)
    fraction = lax.shift_right_logical(random, literal(made - info.nmant, word))
    one = kept(np.asarray(1, dtype).view(word)[()])
    floats = lax.bitcast_convert_type(lax.bitwise_or(fraction, one), dtype)
    floats = lax.sub(floats, literal(1, dtype))
    return lax.max(low, lax.add(lax.mul(floats, lax.sub(high, low)), low))


def standard(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return floats in [0, 1), of typed ``key``."""
    return unit_interval(key, shape, dtype, literal(0, dtype), literal(1, dtype))


_standard = takes_any_key(2, same_rounding=True, called="uniform")(standard)


@takes_any_key(2, same_rounding=True)
def _uniform(key, shape, dtype, low, high):
    return unit_interval(key, shape, dtype, low, high)


def uniform(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None,
            minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0, *, out_sharding: Any = None) -> Array:
    """Return floats uniform over [minval, maxval), bounds that broadcast to ``shape``.

    One number (of shape ()) may have bounds of one element, and has the shape of ``minval``.

    Raises: ValueError for a dtype that is not float, and for bounds that do not broadcast.

    >>> jax.random.uniform(jax.random.key(0), (3,))
    Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
    """
    if out_sharding is not None:
        return placed(uniform, out_sharding, key, shape, dtype, minval, maxval)
    dtype, shape = float_dtype("uniform", dtype), as_shape(shape)
    used(key)
    if type(minval) is float and type(maxval) is float and minval == 0.0 and maxval == 1.0:
        return _standard(key, shape, dtype)
    minval, maxval = unwrapped(minval), unwrapped(maxval)
    of_bounds = {aval_of(x).shape for x in (minval, maxval)} - {()}
    if not shape and len(of_bounds) == 1 and math.prod(*of_bounds) == 1:
        drawn = _uniform(key, (), dtype, *(lax.reshape(x, ()) for x in (minval, maxval)))
        return lax.reshape(drawn, aval_of(minval).shape)
    joined_shape("uniform", shape, minval, maxval)
    return _uniform(key, shape, dtype, minval, maxval)


# -- integers --------------------------------------------------------------------------------------


def _clipped(x: Any, low: int, high: int) -> Any:
    """Return integers ``x`` not below ``low`` nor above ``high``, as far as their dtype reaches."""
    dtype = aval_of(x).dtype
    info = dtypes.iinfo(dtype)
    low, high = (literal(min(max(v, int(info.min)), int(info.max)), dtype) for v in (low, high))
    return lax.min(high, lax.max(low, x))


def uniform_integers(key: Any, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    """Return integers in [low, high) of a dtype of 32 or 64 bits, of typed ``key``."""
    info = dtypes.iinfo(dtype)
    limit = min(int(info.max), int(dtypes.iinfo(aval_of(high).dtype).max))
    beyond = lax.gt(high, literal(limit, aval_of(high).dtype))
    low, high = (lax.broadcast_to_rank(lax.convert_element_type(
        _clipped(x, int(info.min), int(info.max)), dtype), len(shape)) for x in (low, high))
    beyond = lax.broadcast_to_rank(beyond, len(shape))
    width = dtypes.itemsize_bits(dtype)
    word = np.dtype(f"uint{width}")
    first, second = two_keys(key)
    upper, lower = random_bits(first, width, shape), random_bits(second, width, shape)
    span = lax.convert_element_type(lax.sub(high, low), word)
    # No room at all gives low; a bound beyond the dtype means that its greatest is included.
    span = lax.select_n(lax.le(high, low), span, lax.full_like(span, 1))
    wider = lax.bitwise_and(beyond, lax.gt(high, low))
    span = lax.select_n(wider, span, lax.add(span, literal(1, word)))
    # 2**width modulo span, from its square root.
    root = lax.rem(literal(1 << (width // 2), word), span)
    carry = lax.rem(lax.mul(root, root), span)
    offset = lax.add(lax.mul(lax.rem(upper, span), carry), lax.rem(lower, span))
    offset = lax.convert_element_type(lax.rem(offset, span), dtype)
    return lax.add(low, offset)


@takes_any_key(2)
def _randint(key, shape, dtype, low, high):
    if dtypes.itemsize_bits(dtype) >= 32:
        return uniform_integers(key, shape, dtype, low, high)
    info = dtypes.iinfo(dtype)
    wide = np.dtype("int32")
    low = _clipped(lax.convert_element_type(low, wide), int(info.min), int(info.max))
    high = _clipped(lax.convert_element_type(high, wide), int(info.min), int(info.max) + 1)
    return lax.convert_element_type(uniform_integers(key, shape, wide, low, high), dtype)


def randint(key: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike,
            dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return integers uniform over minval, …, maxval - 1.

    Raises: TypeError for a dtype or bounds that are not integers.

    >>> jax.random.randint(jax.random.key(0), (4,), 0, 10)
    Array([9, 0, 2, 3], dtype=int32)
    """
    if out_sharding is not None:
        return placed(randint, out_sharding, key, shape, minval, maxval, dtype)
    dtype = dtypes.default_dtype(int) if dtype is None else dtypes.canonicalize(
        dtype, explicit=True)
    if not dtypes.is_integer(dtype):
        raise errors.explained(
            errors.DTypeError, "randint.dtype",
            f"randint only accepts integer dtypes, got {dtype}",
            advice="Use uniform for floats.")
    shape = joined_shape("randint", as_shape(shape), minval, maxval)
    minval, maxval = (_as_integers(x) for x in (minval, maxval))
    used(key)
    return _randint(key, shape, dtype, minval, maxval)


def _as_integers(x: Any) -> Any:
    x = unwrapped(x)
    dtype = aval_of(x).dtype
    if dtypes.is_integer(dtype):
        return x
    return lax.convert_element_type(x, dtypes.default_dtype(int))


# -- coins -----------------------------------------------------------------------------------------


def coins(key: Any, shape: tuple[int, ...], mode: str, p: Any) -> Any:
    """Return booleans, true with probability ``p`` (a float that broadcasts to shape)."""
    dtype = aval_of(p).dtype
    p = lax.broadcast_to_rank(p, len(shape))
    if mode != "high":
        return lax.lt(standard(key, shape, dtype), p)
    # Two draws: the second fills in digits below the last one of the first.
    both = standard(key, (2, *shape), dtype)
    first, second = (lax.squeeze(lax.slice_in_dim(both, i, i + 1, axis=0), (0,)) for i in (0, 1))
    fine = lax.mul(second, literal(dtypes.finfo(dtype).eps, dtype))
    return lax.lt(fine, lax.sub(p, first))


_coins = takes_any_key(2, same_rounding=True, called="bernoulli")(coins)


def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low", *,
              out_sharding: Any = None) -> Array:
    """Return booleans, true with probability ``p``; ``mode`` 'high' is exact for small ``p``.

    Raises: ValueError for an unknown mode; TypeError if ``p`` is not float.

    >>> jax.random.bernoulli(jax.random.key(0), 0.5, (4,))
    Array([False, False,  True,  True], dtype=bool)
    """
    if out_sharding is not None:
        return placed(bernoulli, out_sharding, key, p, shape, mode)
    check_mode("bernoulli", mode)
    p = unwrapped(p)
    dtype = aval_of(p).dtype
    if not dtypes.is_float(dtype):
        raise errors.explained(
            errors.DTypeError, "bernoulli.p",
            f"bernoulli probability `p` must have a floating dtype, got {dtype.name}.",
            advice="Use a float between 0 and 1.")
    check_wide_enough("bernoulli", dtype)
    if type(p) is float:
        p = literal(p, dtype)
    shape = joined_shape("bernoulli", shape, p)
    used(key)
    return _coins(key, shape, mode, p)


def mode_of_gumbel(name: str, mode: Any) -> str:
    """Return the mode that was asked for: without one, that of ``high_dynamic_range_gumbel``."""
    if mode is None:
        return "high" if high_dynamic_range_gumbel.value else "low"
    check_mode(name, mode)
    return mode


def check_mode(name: str, mode: Any) -> None:
    """Refuse a mode that is neither 'low' nor 'high'."""
    if mode not in ("low", "high"):
        raise errors.explained(
            errors.ArgumentError, f"{name}.mode",
            f"{name}: mode must be 'low' or 'high', got {mode!r}.",
            advice="'low' is fast, 'high' is exact in the tails.")


def signs(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return 1 or -1, each with probability one half, of typed ``key``."""
    p = literal(0.5, dtypes.default_dtype(float))
    part = dtypes.default_dtype(int) if dtypes.is_bool(dtype) else dtype
    heads = lax.convert_element_type(coins(key, shape, "low", p), part)
    found = lax.sub(lax.mul(literal(2, part), heads), literal(1, part))
    return lax.convert_element_type(found, dtype)


_rademacher = takes_any_key(2, called="rademacher")(signs)


def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
               out_sharding: Any = None) -> Array:
    """Return 1 or -1, each with probability one half (True for both, if boolean).

    >>> jax.random.rademacher(jax.random.key(0), (4,))
    Array([-1, -1,  1,  1], dtype=int32)
    """
    if out_sharding is not None:
        return placed(rademacher, out_sharding, key, shape, dtype)
    dtype = as_dtype("rademacher", dtype, int, lambda d: dtypes.is_integer(d)
                     or dtypes.is_inexact(d) or dtypes.is_bool(d), "a number or bool")
    used(key)
    return _rademacher(key, as_shape(shape), dtype)

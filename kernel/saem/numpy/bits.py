"""How are truth values packed into bytes, and unpacked?

Read before: ``numpy.manipulation``.
Invariant: ``unpackbits(packbits(x))`` begins with ``x`` (tests/kernel/numpy/test_calculus.py).
Source: the NumPy reference of packbits and unpackbits.
"""

from __future__ import annotations

import math

import numpy as np

from saem.core import dtypes, errors
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.numpy.joining import concatenate
from saem.numpy.manipulation import moveaxis, ravel
from saem.numpy.promote import broadcast_to, scalar
from saem.numpy.reductions import as_truth
from saem.numpy.reductions import sum as total
from saem.ops import compare, shape, slicing
from saem.ops.linear import broadcast_in_dim
from saem.ops.shape import canonical_axis
from saem.typing import Array, ArrayLike

UINT8 = np.dtype("uint8")


def _check_order(name: str, bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise errors.explained(errors.ArgumentError, f"{name}.bitorder",
                               "'order' must be either 'little' or 'big'",
                               advice=f"Got {bitorder!r}.")


@library_function(static_argnames=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Return truth values along ``axis``, eight to a byte; zeros fill the last one.

    Raises: TypeError for arrays that are neither boolean nor integer.

    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1]))
    Array([131], dtype=uint8)
    """
    a = array_argument("packbits", a)
    _check_order("packbits", bitorder)
    if not (dtypes.is_integer(a.dtype) or dtypes.is_bool(a.dtype)):
        raise errors.explained(
            errors.ArgumentTypeError, "packbits.C1",
            "Expected an input array of integer or boolean data type", advice=f"Got {a.dtype}.")
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, a.ndim)
    bits = moveaxis(as_truth(a), axis, -1)
    missing = -bits.shape[-1] % 8
    if missing:
        config = ((0, 0, 0),) * (bits.ndim - 1) + ((0, missing, 0),)
        bits = slicing.pad(bits, scalar(False, bits.dtype), config)
    groups = shape.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8)).astype(UINT8)
    exponents = np.arange(8)[::-1 if bitorder == "big" else 1]
    weights = broadcast_to((1 << exponents).astype(UINT8), groups.shape)
    packed = total(groups * weights, axis=-1, promote_integers=False)
    return moveaxis(packed, -1, axis)


@library_function(static_argnames=("axis", "count", "bitorder"))
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None,
               bitorder: str = "big") -> Array:
    """Return the bits of bytes along ``axis``, ``count`` of them (negative: all but so many).

    Raises: TypeError for arrays that are not uint8.

    >>> jnp.unpackbits(jnp.array([131], dtype=jnp.uint8))
    Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    a = array_argument("unpackbits", a)
    _check_order("unpackbits", bitorder)
    if a.dtype != UINT8:
        raise errors.explained(errors.ArgumentTypeError, "unpackbits.C1",
                               "Expected an input array of unsigned byte data type",
                               advice=f"Got {a.dtype}; convert with astype('uint8').")
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, a.ndim)
    rows = moveaxis(a, axis, -1)
    exponents = np.arange(8)[::-1 if bitorder == "big" else 1]
    wide = (*rows.shape, 8)
    masks = broadcast_to((1 << exponents).astype(UINT8), wide)
    held = broadcast_in_dim(rows, wide, tuple(range(rows.ndim)))
    bits = compare.ne(compare.bitwise_and(held, masks), scalar(0, UINT8)).astype(UINT8)
    bits = shape.reshape(bits, (*rows.shape[:-1], math.prod(wide[-2:])))
    size = bits.shape[-1]
    if count is not None:
        stop = count if count >= 0 else max(size + count, 0)
        if stop > size:
            sizes = (*bits.shape[:-1], stop - size)
            bits = concatenate([bits, broadcast_in_dim(scalar(0, UINT8), sizes, ())], -1)
        bits = slicing.slice_in_dim(bits, 0, stop, axis=bits.ndim - 1)
    return moveaxis(bits, -1, axis)

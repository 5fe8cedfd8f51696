"""How is a signal written as a sum of cosines?  (``jax.scipy.fft``)

The cosine transform of n numbers is the Fourier transform of the same numbers in another order,
each value turned by a quarter of its frequency.

Read before: ``numpy.fft``.
Invariant: ``idct`` undoes ``dct`` (tests/kernel/test_fft.py).
Source: Makhoul, "A fast cosine transform in one and two dimensions" (1980).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.numpy import fft
from saem.numpy.axes import array_argument, as_array
from saem.numpy.joining import concatenate
from saem.numpy.manipulation import moveaxis
from saem.numpy.promote import promote_dtypes_inexact, with_rank
from saem.numpy.rearranging import flip
from saem.ops.linear import literal
from saem.ops.numbers import complex as complex_
from saem.ops.shape import canonical_axis
from saem.ops.slicing import pad, slice_in_dim
from saem.typing import Array


def _check(name: str, type: int, norm: str | None) -> None:
    if type != 2:
        raise errors.explained(
            NotImplementedError, f"{name}.type", "Only DCT type 2 is implemented.",
            advice="The type 3 is idct, up to a factor.")
    if norm not in (None, "backward", "ortho"):
        raise errors.explained(
            errors.ArgumentError, f"{name}.norm",
            f"jax.scipy.fft.{name}: norm={norm!r} is not implemented",
            advice="Use 'backward', which None means, or 'ortho'.")


def _length(name: str, x: Any, axis: int, n: int | None) -> int:
    """Return how many numbers are transformed along ``axis``.  Raises: ShapeError for none."""
    n = x.shape[axis] if n is None else operator.index(n)
    if n < 1:
        raise errors.explained(
            errors.ShapeError, f"{name}.n", f"jax.scipy.fft.{name} needs at least one number along "
            f"axis {axis}; got {n}", advice="Give a longer axis, or pad it with n=...")
    return n


def _resized(x: Any, axis: int, n: int) -> Any:
    have = x.shape[axis]
    if have > n:
        return slice_in_dim(x, 0, n, axis=axis)
    more = [(0, n - have if i == axis else 0, 0) for i in range(x.ndim)]
    return pad(x, literal(0, aval_of(x).dtype), more) if have < n else x


def _scales(n: int, x: Any) -> Any:
    """Return by what the values of the transform ``x`` are divided for it to be orthonormal."""
    scales = np.full(n, math.sqrt(2 * n))
    scales[:1] = math.sqrt(4 * n)
    return with_rank(scales.astype(dtypes.real_dtype(x.dtype)), (n,), x.ndim)


def dct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
        ) -> Array:
    """Return the cosine transform of ``x`` along ``axis``, cut or padded to ``n``.

    y[k] = 2 Σ x[j] cos(π k (2 j + 1) / 2 n); with ``norm`` "ortho" of length-preserving scale.
    Half floats give float32.

    Raises: NotImplementedError for another type than 2; ValueError for another norm or an axis of
    no numbers; TypeError if ``n`` is no integer.

    >>> jax.scipy.fft.dct(jnp.array([1., 1.]))
    Array([4., 0.], dtype=float32)
    """
    _check("dct", type, norm)
    x = promote_dtypes_inexact(array_argument("dct", x))[0]
    axis = canonical_axis(axis, x.ndim)
    return _dct(x, n=_length("dct", x, axis, n), axis=axis, ortho=norm == "ortho")


@library_function(static_argnames=("n", "axis", "ortho"), whole=True)
def _dct(x: Any, n: int, axis: int, ortho: bool) -> Any:
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return complex_(_dct(x.real, n=n, axis=axis, ortho=ortho),
                        _dct(x.imag, n=n, axis=axis, ortho=ortho))
    rows = moveaxis(_resized(x, axis, n), axis, -1)
    order = concatenate([rows[..., ::2], flip(rows[..., 1::2], -1)], axis=-1)
    turns = np.exp(-0.5j * np.pi * np.arange(n) / n).astype(dtypes.complex_dtype(
        np.promote_types(dtype, np.float32)))
    out = 2 * (fft.fft(order) * with_rank(turns, (n,), order.ndim)).real
    if ortho:
        out = out / _scales(n, out)
    return moveaxis(out, -1, axis)


def idct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
         ) -> Array:
    """Return the inverse of ``dct`` along ``axis``, of ``x`` cut or padded to ``n``.

    >>> jax.scipy.fft.idct(jnp.array([4., 0.])).round(3)
    Array([1., 1.], dtype=float32)
    """
    _check("idct", type, norm)
    x = promote_dtypes_inexact(array_argument("idct", x))[0]
    axis = canonical_axis(axis, x.ndim)
    return _idct(x, n=_length("idct", x, axis, n), axis=axis, ortho=norm == "ortho")


@library_function(static_argnames=("n", "axis", "ortho"), whole=True)
def _idct(x: Any, n: int, axis: int, ortho: bool) -> Any:
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return complex_(_idct(x.real, n=n, axis=axis, ortho=ortho),
                        _idct(x.imag, n=n, axis=axis, ortho=ortho))
    rows = moveaxis(_resized(x, axis, n), axis, -1)
    if ortho:
        rows = rows * _scales(n, rows)
    back = concatenate([rows[..., :1] * 0, flip(rows[..., 1:], -1)], axis=-1)
    wide = np.promote_types(dtype, np.float32)
    turns = np.exp(0.5j * np.pi * np.arange(n) / n).astype(dtypes.complex_dtype(wide))
    turned = complex_(rows.astype(wide), -back.astype(wide)) * with_rank(turns, (n,), rows.ndim)
    values = fft.ifft(turned / 2).real
    half = (n + 1) // 2
    places = np.empty(n, int)
    places[::2], places[1::2] = np.arange(half), np.arange(n - 1, half - 1, -1)
    return moveaxis(values[..., places], -1, axis)


def _over_axes(one: Any, name: str, x: Any, type: int, s: int | Sequence[int] | None,
               axes: int | Sequence[int] | None, norm: str | None) -> Any:
    _check(name, type, norm)
    x = as_array(array_argument(name, x))
    s = (s,) if isinstance(s, int) else s
    axes = (axes,) if isinstance(axes, int) else axes
    if s is not None and len(s) > x.ndim:
        raise errors.explained(
            errors.ArgumentError, f"{name}.s",
            f"s must have at most x.ndim ({x.ndim}) elements, got {len(s)}",
            advice="One length for each axis that is transformed.")
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = [canonical_axis(d, x.ndim) for d in axes]
    if len(set(axes)) != len(axes) or (s is not None and len(s) != len(axes)):
        raise errors.explained(
            errors.ArgumentError, f"{name}.axes",
            f"jax.scipy.fft.{name} needs distinct axes, one for each length; got axes={axes} and "
            f"s={s}.", advice="Name each axis once.")
    for number, axis in enumerate(axes):
        x = one(x, 2, None if s is None else s[number], axis, norm)
    return x


def dctn(x: Array, type: int = 2, s: int | Sequence[int] | None = None,
         axes: int | Sequence[int] | None = None, norm: str | None = None) -> Array:
    """Return the cosine transform over several ``axes``, each cut or padded to its length in ``s``.

    Over no axes the array comes back as it is.
    Raises: as ``dct``; ValueError for repeated axes or another number of lengths.

    >>> jax.scipy.fft.dctn(jnp.ones((1, 2))).round(3)
    Array([[8., 0.]], dtype=float32)
    """
    return _over_axes(dct, "dctn", x, type, s, axes, norm)


def idctn(x: Array, type: int = 2, s: int | Sequence[int] | None = None,
          axes: int | Sequence[int] | None = None, norm: str | None = None) -> Array:
    """Return the inverse of ``dctn``.

    >>> jax.scipy.fft.idctn(jnp.array([[4., 0.]])).round(3)
    Array([[0.5, 0.5]], dtype=float32)
    """
    return _over_axes(idct, "idctn", x, type, s, axes, norm)

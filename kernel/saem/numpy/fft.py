"""What are the discrete Fourier transforms of NumPy?  (``jax.numpy.fft``)

One step serves all of them: cut or pad each axis to the requested length, move the axes to the end,
transform, move them back, multiply by the norm.

Read before: ``signal.fft``.
Invariant: values are NumPy's; results are complex64 or float32 unless 64-bit numbers are enabled
and came (tests/kernel/test_fft.py).
Source: the NumPy reference, chapter "Discrete Fourier Transform".
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import Dim, smaller
from saem.core.trace import bind
from saem.jit.library import library_function
from saem.jit.transfers import device_put
from saem.numpy.arithmetic import divide
from saem.numpy.axes import array_argument, known_number
from saem.numpy.manipulation import moveaxis
from saem.numpy.rearranging import roll
from saem.ops.arithmetic import div, mul
from saem.ops.convert import convert_element_type
from saem.ops.filling import iota
from saem.ops.linear import literal
from saem.ops.numbers import conj
from saem.ops.shape import canonical_axis
from saem.ops.slicing import pad, slice_in_dim
from saem.signal.fft import Fft, FftType
from saem.typing import Array, ArrayLike, DTypeLike

FFT, IFFT, RFFT, IRFFT = FftType
NORMS = ("backward", "ortho", "forward")
Shape = Sequence[int] | None


def _norm(norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in NORMS:
        raise errors.explained(
            errors.ArgumentError, "fft.norm",
            f'Invalid norm value {norm}; should be "backward","ortho" or "forward".',
            advice="The norm decides which direction has the factor 1 / n.")
    return norm


def _several(kind: FftType, name: str, a: Any, s: Shape, axes: Shape, norm: str | None) -> Any:
    """Return the transform of ``a`` over several axes, which may be none (then the last ones)."""
    a = array_argument(f"jax.numpy.fft.{name}", a)
    norm = _norm(norm)
    if s is not None:
        s = tuple(map(operator.index, s))
        if any(n <= 0 for n in s):
            raise errors.explained(errors.ArgumentError, "fft.shape", "Shape should be positive.",
                                   advice=f"Got {s}.")
    if s is not None and axes is not None and len(s) != len(axes):
        raise errors.explained(
            errors.ArgumentError, "fft.lengths", "Shape and axes have different lengths.",
            advice=f"Got s={s} and axes={tuple(axes)}.")
    if axes is None:
        count = a.ndim if s is None else len(s)
        axes = range(a.ndim - count, a.ndim)
    axes = tuple([canonical_axis(d, a.ndim) for d in axes])
    if len(set(axes)) != len(axes):
        raise errors.explained(
            errors.ArgumentError, "fft.axes",
            f"jax.numpy.fft.{name} does not support repeated axes. Got axes {axes}.",
            advice="Transform twice instead.")
    if kind is RFFT and dtypes.is_complex(a.dtype):
        raise errors.explained(
            errors.ArgumentError, "fft.C2", "only real valued inputs supported for rfft",
            advice="Use fft for complex numbers, or take x.real.")
    if not axes:
        return convert_element_type(a, _operand_dtype(kind, a))
    if s is None:
        s = tuple([a.shape[d] for d in axes])
        if kind is IRFFT:
            s = (*s[:-1], max(0, 2 * (s[-1] - 1)))
    if kind is RFFT and not s[-1]:
        raise errors.explained(
            errors.ArgumentError, "fft.empty", "Invalid number of FFT data points (0) specified.",
            advice="There must be one at least.")
    return _transformed(a, kind=int(kind), s=s, axes=axes, norm=norm)


def _operand_dtype(kind: FftType, a: Any) -> np.dtype:
    dtype = aval_of(a).dtype
    if kind is RFFT and dtypes.is_float(dtype):
        return dtype  # the operation refuses narrow ones
    wide = dtype.itemsize >= (16 if dtypes.is_complex(dtype) else 8)
    real = dtypes.computed(np.dtype("float64")) if wide else np.dtype("float32")
    return real if kind is RFFT else dtypes.complex_dtype(real)


@library_function(static_argnames=("kind", "s", "axes", "norm"))
def _transformed(a: Any, kind: int, s: tuple[int, ...], axes: tuple[int, ...], norm: str) -> Any:
    kind = FftType(kind)
    a = _resized(a, axes, (*s[:-1], s[-1] // 2 + 1 if s[-1] else 0) if kind is IRFFT else s)
    a = convert_element_type(a, _operand_dtype(kind, a))
    end = tuple(range(a.ndim - len(axes), a.ndim))
    a = _along_last(moveaxis(a, axes, end), kind, s)
    a = moveaxis(a, end, axes)
    factor = _factor(kind, norm, math.prod(s))
    return a if factor == 1 else mul(a, literal(factor, aval_of(a).dtype))


def _factor(kind: FftType, norm: str, n: int) -> float:
    """Return what the transform, which has the factor 1 / n on its way back, is multiplied by."""
    back = kind in (IFFT, IRFFT)
    if norm == "ortho" and n:
        return math.sqrt(n) if back else 1 / math.sqrt(n)
    if norm == "forward" and n:
        return n if back else 1 / n
    return 1


def _along_last(a: Any, kind: FftType, s: tuple[int, ...]) -> Any:
    """Return the transform over the last axes, three at a time, as one operation can do."""
    count = len(s)
    if count <= 3:
        return bind(Fft(kind, s), a)
    rest, last = s[:-3], s[-3:]
    first = tuple(range(a.ndim - count, a.ndim - 3))
    end = tuple(range(a.ndim - len(rest), a.ndim))
    if kind is RFFT:
        a = bind(Fft(kind, last), a)
    others = IFFT if kind in (IFFT, IRFFT) else FFT
    a = moveaxis(_along_last(moveaxis(a, first, end), others, rest), end, first)
    return a if kind is RFFT else bind(Fft(kind, last), a)


def _resized(a: Any, axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """Return ``a`` cut, or padded with zeros at the end, to ``sizes`` along ``axes``."""
    more = [(0, 0, 0)] * a.ndim
    for axis, n in zip(axes, sizes):
        kept = smaller(a.shape[axis], n)
        if kept != a.shape[axis]:
            a = slice_in_dim(a, 0, kept, axis=axis)
        more[axis] = (0, n - kept, 0)
    if any(high for _, high, _ in more):
        a = pad(a, literal(0, aval_of(a).dtype), more)
    return a


def _single(kind: FftType, name: str, a: Any, n: int | None, axis: int, norm: str | None) -> Any:
    if isinstance(axis, (tuple, list)):
        raise errors.explained(
            errors.ArgumentError, "fft.axis",
            f"jax.numpy.fft.{name} does not support multiple axes. Please use "
            f"jax.numpy.fft.{name}n. Got axis = {axis}.", advice="Name one axis.")
    return _several(kind, name, a, None if n is None else (n,), (axis,), norm)


def _double(kind: FftType, name: str, a: Any, s: Shape, axes: Sequence[int], norm: str | None
            ) -> Any:
    if len(axes) != 2:
        raise errors.explained(
            errors.ArgumentError, "fft.axes",
            f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes}.",
            advice=f"jax.numpy.fft.{name[:-1]}n takes any number.")
    return _several(kind, name, a, s, axes, norm)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform of ``a`` along ``axis``, cut or padded to ``n``.

    ``norm``: which direction has the factor 1 / n: "backward" (the default), "forward", or "ortho"
    for 1 / √n in both.  Raises: ValueError for other norms, lengths or axes.

    >>> jnp.fft.fft(jnp.array([1., 2., 3., 4.]))
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    return _single(FFT, "fft", a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of ``fft`` along ``axis``.

    >>> jnp.fft.ifft(jnp.array([4., 0., 0., 0.]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _single(IFFT, "ifft", a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the first n // 2 + 1 values of the transform of real numbers; the rest mirror them.

    >>> jnp.fft.rfft(jnp.array([1., 2., 3., 4.]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _single(RFFT, "rfft", a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of ``rfft``: ``n`` real numbers, 2 (m - 1) for m values by default.

    >>> jnp.fft.irfft(jnp.array([4., 0., 0.]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _single(IRFFT, "irfft", a, n, axis, norm)


def fft2(a: ArrayLike, s: Shape = None, axes: Sequence[int] = (-2, -1),
         norm: str | None = None) -> Array:
    """Return the transform over two axes, cut or padded to ``s``.

    >>> jnp.fft.fft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _double(FFT, "fft2", a, s, axes, norm)


def ifft2(a: ArrayLike, s: Shape = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """Return the inverse of ``fft2``.

    >>> jnp.fft.ifft2(4 * jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _double(IFFT, "ifft2", a, s, axes, norm)


def rfft2(a: ArrayLike, s: Shape = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None) -> Array:
    """Return the transform of real numbers over two axes, half of the last one stored.

    >>> jnp.fft.rfft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _double(RFFT, "rfft2", a, s, axes, norm)


def irfft2(a: ArrayLike, s: Shape = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
           ) -> Array:
    """Return the inverse of ``rfft2``.

    >>> jnp.fft.irfft2(jnp.array([[4., 0.], [0., 0.]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _double(IRFFT, "irfft2", a, s, axes, norm)


def fftn(a: ArrayLike, s: Shape = None, axes: Shape = None, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform of ``a`` over several axes, as complex numbers.

    ``axes`` are all axes by default, or the last ``len(s)``.  Each is first cut or filled up with
    zeros to its size in ``s``.  ``norm`` decides which direction divides by the number of elements:
    "backward" (the inverse, by default), "forward", or "ortho" (each by the square root).
    Raises: ValueError if ``s`` and ``axes`` differ in length, or for another ``norm``.

    >>> jnp.fft.fftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _several(FFT, "fftn", a, s, axes, norm)


def ifftn(a: ArrayLike, s: Shape = None, axes: Shape = None, norm: str | None = None) -> Array:
    """Return the inverse of ``fftn``.

    >>> jnp.fft.ifftn(4 * jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _several(IFFT, "ifftn", a, s, axes, norm)


def rfftn(a: ArrayLike, s: Shape = None, axes: Shape = None, norm: str | None = None) -> Array:
    """Return the transform of real numbers over ``axes``, half of the last one stored.

    >>> jnp.fft.rfftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _several(RFFT, "rfftn", a, s, axes, norm)


def irfftn(a: ArrayLike, s: Shape = None, axes: Shape = None, norm: str | None = None) -> Array:
    """Return the inverse of ``rfftn``.

    >>> jnp.fft.irfftn(jnp.array([[4., 0.], [0., 0.]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _several(IRFFT, "irfftn", a, s, axes, norm)


_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the transform of a signal with Hermitian symmetry, given its half ``a``; it is real.

    The other half of the signal is the conjugate of ``a``, mirrored.  ``n`` is the size of the
    whole along ``axis``, by default 2 * (m - 1) where ``a`` has m elements.
    Raises: ValueError for another ``norm`` than "backward", "forward" and "ortho".

    >>> jnp.fft.hfft(jnp.array([1., 1j, 0.]))
    Array([ 1.,  3.,  1., -1.], dtype=float32)
    """
    a = array_argument("jax.numpy.fft.hfft", a)
    a = conj(a) if dtypes.is_complex(a.dtype) else a
    return _single(IRFFT, "irfft", a, n, axis, _SWAPPED[_norm(norm)])


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of ``hfft``.

    >>> jnp.fft.ihfft(jnp.array([4., 0., 0., 0.]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return conj(_single(RFFT, "rfft", a, n, axis, _SWAPPED[_norm(norm)]))


def _frequencies(name: str, places: Any, n: Any, d: Any, dtype: Any) -> Any:
    if np.ndim(d):
        raise errors.explained(
            errors.ArgumentError, f"{name}.d",
            f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {d}.",
            advice="d is the time between two samples.")
    dtype = dtypes.canonicalize(np.dtype("float64")) if dtype is None else \
        dtypes.canonicalize(dtype, explicit=True, where=name)
    step = convert_element_type(d * n, dtype)  # a product of Python numbers is one of 64 bits
    if name == "rfftfreq":
        return divide(convert_element_type(places, dtype), step)  # integers give floats
    return div(convert_element_type(places, dtype), step)


def _count(name: str, n: Any) -> Any:
    if isinstance(n, (list, tuple)):
        raise errors.explained(
            errors.ArgumentError, f"{name}.n",
            f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {list(n)}.",
            advice="n is the number of samples.")
    return known_number(n, "n")


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None,
            device: Any = None) -> Array:
    """Return the frequencies of ``fft``'s values for ``n`` samples, ``d`` apart.

    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = _count("fftfreq", n)
    if isinstance(n, Dim):
        places = iota(np.int32, n)
        behind = (places >= (n + 1) // 2).astype(np.int32)
        places = places - behind * n
    else:
        places = np.arange(n)
        places = np.where(places < (n + 1) // 2, places, places - n)
    return _placed(_frequencies("fftfreq", places, n, d, dtype), device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None,
             device: Any = None) -> Array:
    """Return the frequencies of ``rfft``'s values for ``n`` samples, ``d`` apart.

    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n = _count("rfftfreq", n)
    count = n // 2 + 1
    places = iota(np.int32, count) if isinstance(n, Dim) else np.arange(count)
    return _placed(_frequencies("rfftfreq", places, n, d, dtype), device)


def _placed(x: Any, device: Any) -> Any:
    return x if device is None else device_put(x, device)


def _shift(name: str, x: Any, axes: Any, sign: int) -> Any:
    x = array_argument(f"jax.numpy.fft.{name}", x)
    if axes is None:
        axes = tuple(range(x.ndim))
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    halves = [x.shape[d] // 2 if sign > 0 else -(x.shape[d] // 2) for d in axes]
    return roll(x, tuple(halves), axes)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Return ``x`` with frequency zero in the middle of ``axes`` (all by default).

    >>> jnp.fft.fftshift(jnp.arange(4))
    Array([2, 3, 0, 1], dtype=int32)
    """
    return _shift("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Return the inverse of ``fftshift``.

    >>> jnp.fft.ifftshift(jnp.arange(4))
    Array([2, 3, 0, 1], dtype=int32)
    """
    return _shift("ifftshift", x, axes, -1)

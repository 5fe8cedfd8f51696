"""How is a signal filtered, and which frequencies are in it?

The public namespace ``jax.scipy.signal``: convolutions in any number of dimensions, directly or by
Fourier transforms, removal of trends, and spectra of windowed segments.

Read before: ``lax`` convolutions, ``numpy.fft``.
Invariant: as SciPy's functions of these names (tests/kernel/scipy/test_signal.py).
Source: Welch 1967; Allen and Rabiner 1977 (short-time Fourier transforms).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import errors, promotion
from saem.core.dimensions import is_static
from saem.numpy.axes import array_argument, canonical_axes
from saem.numpy.promote import promote_dtypes_inexact, with_rank
from saem.ops.shape import canonical_axis
from saem.scipy.windows import periodic
from saem.typing import Array, ArrayLike

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve",
           "istft", "stft", "welch"]


def _refused(tag: str, message: str, advice: str, error: Any = errors.ArgumentError) -> Exception:
    return errors.explained(error, tag, message, advice=advice)


# -- convolutions ----------------------------------------------------------------------------------


def _direct(name: str, in1: ArrayLike, in2: ArrayLike, mode: str, precision: Any,
            later: bool = False) -> Array:
    """Return the convolution of two arrays of one rank.

    later: of two middles that a full result of even excess has, 'same' is the later one.
    """
    if mode not in ("full", "same", "valid"):
        raise _refused(f"{name}.mode", "mode must be one of ['full', 'same', 'valid']",
                       f"Got {mode!r}.")
    x, y = promote_dtypes_inexact(*array_argument(name, in1, in2))
    if x.ndim != y.ndim:
        raise _refused(f"{name}.C1", "in1 and in2 must have the same number of dimensions",
                       f"Got {x.shape} and {y.shape}.")
    if 0 in x.shape or 0 in y.shape:
        raise _refused(f"{name}.C2", f"zero-size arrays not supported in {name}.",
                       f"Got {x.shape} and {y.shape}.")
    size, pairs = x.shape, list(zip(x.shape, y.shape))
    if is_static((*x.shape, *y.shape)) and all(a <= b for a, b in pairs):
        x, y = y, x  # the smaller slides over the larger
    elif mode == "valid" and any(a < b for a, b in pairs):
        raise _refused(f"{name}.C3", f"{name} requires one input to be larger than the other in "
                       "every dimension for mode='valid'", f"Got {x.shape} and {y.shape}.")
    if x.ndim == 0:
        return x * y
    pads = []
    for n, window, wanted in zip(x.shape, y.shape, size):
        if mode == "valid":
            pads.append((0, 0))
        elif mode == "full":
            pads.append((window - 1, window - 1))
        else:  # the middle of the full one, of the size of in1
            start = (n + window - 1 - wanted + later) // 2
            pads.append((window - 1 - start, wanted + start - n))
    out = lax.conv_general_dilated(x[None, None], jnp.flip(y)[None, None], (1,) * x.ndim, pads,
                                   precision=precision)
    return out[0, 0]


def convolve(in1: Array, in2: Array, mode: str = "full", method: str = "auto",
             precision: Any = None) -> Array:
    """Return the convolution of two arrays of the same rank.

    mode: 'full', 'same' (of the shape of in1, its middle) or 'valid' (without edges).
    method: 'direct' or 'fft'; 'auto' is 'direct'.
    Raises: ValueError for other modes, methods, ranks, and empty arrays.

    >>> convolve(jnp.array([1., 2.]), jnp.array([1., 1.]))
    Array([1., 3., 2.], dtype=float32)
    """
    return _chosen("convolve", in1, in2, mode, method, precision)


def _chosen(name: str, in1: Any, in2: Any, mode: str, method: str, precision: Any) -> Array:
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("auto", "direct"):
        raise _refused(f"{name}.method", f"Got method={method!r}; expected 'auto', 'fft', or "
                       "'direct'.", "They agree to rounding.")
    return _direct(name, in1, in2, mode, precision)


def convolve2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill",
               fillvalue: float = 0, precision: Any = None) -> Array:
    """Return the convolution of two matrices, which are surrounded by zeros.

    Raises: NotImplementedError for other boundaries; ValueError for other ranks.

    >>> convolve2d(jnp.eye(2), jnp.ones((1, 2)), mode='valid')
    Array([[1.],
           [1.]], dtype=float32)
    """
    _check_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _direct("convolve2d", in1, in2, mode, precision)


def _check_matrices(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise _refused(f"{name}.boundary", f"{name} only supports boundary='fill', fillvalue=0",
                       "Pad the first array before.", NotImplementedError)
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise _refused(f"{name}.rank", f"{name}() only supports 2-dimensional inputs.",
                       f"Got {jnp.ndim(in1)} and {jnp.ndim(in2)} axes.")
    pairs = list(zip(jnp.shape(in1), jnp.shape(in2)))
    if not (all(m <= n for m, n in pairs) or all(m >= n for m, n in pairs)):
        raise _refused(f"{name}.C4", "One input must be smaller than the other in every dimension.",
                       f"Got {jnp.shape(in1)} and {jnp.shape(in2)}.")


def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto",
              precision: Any = None) -> Array:
    """Return the cross-correlation of two arrays: the convolution with the conjugate, reversed.

    The arguments and errors are those of ``convolve``.

    >>> correlate(jnp.array([1., 2.]), jnp.array([0., 1.]))
    Array([1., 2., 0.], dtype=float32)
    """
    return _chosen("correlate", *_reversed("correlate", in1, in2), mode, method, precision)


def _reversed(name: str, in1: Any, in2: Any) -> tuple[Array, Array]:
    in1, in2 = array_argument(name, in1, in2)
    return in1, jnp.conj(jnp.flip(in2))


def correlate2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill",
                fillvalue: float = 0, precision: Any = None) -> Array:
    """Return the cross-correlation of two matrices, which are surrounded by zeros.

    The arguments and errors are those of ``convolve2d``.

    >>> correlate2d(jnp.eye(2), jnp.eye(2), mode='valid')
    Array([[2.]], dtype=float32)
    """
    _check_matrices("correlate2d", in1, in2, boundary, fillvalue)
    return _direct("correlate2d", *_reversed("correlate2d", in1, in2), mode, precision, later=True)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full",
                axes: Sequence[int] | None = None) -> Array:
    """Return the convolution of two arrays along ``axes`` (all if None), by Fourier transforms.

    mode: as of ``convolve``.  The other axes broadcast.
    Raises: ValueError for other modes or ranks; ShapeError for an empty in2 and 'same'.

    >>> fftconvolve(jnp.array([1., 2.]), jnp.array([1., 1.])).round(4)
    Array([1., 3., 2.], dtype=float32)
    """
    x, y, along = _factors(in1, in2, mode, axes)
    if not along:
        return x * y
    sizes = [x.shape[i] + y.shape[i] - 1 for i in along]
    if jnp.iscomplexobj(x):
        out = jnp.fft.ifftn(jnp.fft.fftn(x, sizes, along) * jnp.fft.fftn(y, sizes, along), sizes,
                            along)
    else:
        out = jnp.fft.irfftn(jnp.fft.rfftn(x, sizes, along) * jnp.fft.rfftn(y, sizes, along),
                             sizes, along)
    if mode == "full":
        return out
    keep = dict(enumerate(x.shape)) if mode == "same" else {
        i: x.shape[i] - y.shape[i] + 1 for i in along}
    for i, n in keep.items():
        start = (out.shape[i] - n) // 2
        out = lax.slice_in_dim(out, start, start + n, axis=i)
    return out


def _factors(in1: Any, in2: Any, mode: str, axes: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Return the two operands of ``fftconvolve``, the larger first if 'valid', and its axes.

    Raises: ValueError for other modes or ranks; ShapeError for an empty in2 and 'same'.
    """
    x, y = promote_dtypes_inexact(*array_argument("fftconvolve", in1, in2))
    if x.ndim != y.ndim:
        raise _refused("fftconvolve.C1", "in1 and in2 should have the same dimensionality",
                       f"Got {x.shape} and {y.shape}.")
    if mode not in ("full", "same", "valid"):
        raise _refused("fftconvolve.mode", "mode must be one of ['full', 'same', 'valid']",
                       f"Got {mode!r}.")
    if x.ndim == 0:
        return x, y, ()
    if axes is not None:
        axes = (axes,) if isinstance(axes, int) else tuple(axes)
    along = canonical_axes(axes, x.ndim)
    if mode == "valid" and any(x.shape[i] < y.shape[i] for i in along):
        if not all(x.shape[i] <= y.shape[i] for i in along):
            raise _refused("fftconvolve.C3", "For 'valid' mode in1 must be at least as large as "
                           "in2 in every dimension", f"Got {x.shape} and {y.shape}.")
        x, y = y, x
    if mode != "full" and 0 in [y.shape[i] for i in along]:
        raise _refused("fftconvolve.C4", f"mode={mode!r} needs numbers in in2 along the axes",
                       f"Got {y.shape}.", errors.ShapeError)
    return x, y, along


# -- trends ----------------------------------------------------------------------------------------


def detrend(data: ArrayLike, axis: int = -1, type: str = "linear",
            bp: int | Sequence[int] | np.ndarray = 0, overwrite_data: None = None) -> Array:
    """Return ``data`` minus its trend along ``axis``.

    type: 'linear' takes away the line of least squares, 'constant' the mean.
    bp: where one line ends and the next begins.  overwrite_data: must be None.
    Raises: ValueError for another type, or a place outside of the data.

    >>> detrend(jnp.array([1., 2., 3.]), type='constant')
    Array([-1.,  0.,  1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise _refused("detrend.C1", "overwrite_data argument not implemented.",
                       "Arrays never change.", NotImplementedError)
    if type not in ("constant", "linear"):
        raise _refused("detrend.type", "Trend type must be 'linear' or 'constant'.",
                       f"Got {type!r}.")
    (data,) = promote_dtypes_inexact(jnp.asarray(data))
    if type == "constant":
        return data - jnp.mean(data, axis, keepdims=True)
    axis = canonical_axis(axis, data.ndim)
    size = data.shape[axis]
    breaks = np.unique(np.append(np.asarray(bp).reshape(-1), [0, size])).astype(int)
    if breaks[-1] > size:
        raise _refused("detrend.bp", "Breakpoints must be non-negative and less than length of "
                       "data along given axis.", f"The length is {size}.")
    rows = jnp.moveaxis(data, axis, 0)
    flat = rows.reshape(size, -1)
    parts = []
    for low, high in itertools.pairwise(breaks):
        n = int(high - low)
        line = jnp.asarray(np.stack([np.arange(1, n + 1) / n, np.ones(n)], 1), flat.dtype)
        part = flat[low:high]
        parts.append(part - line @ jnp.linalg.lstsq(line, part)[0])
    return jnp.moveaxis(jnp.concatenate(parts).reshape(rows.shape), 0, axis)


# -- spectra ---------------------------------------------------------------------------------------


def window_of(name: Any, size: int, dtype: Any) -> Array:
    """Return a window of ``size`` numbers: given as an array, or by name, periodic.

    Raises: ValueError for an unknown name or an array of another length.
    """
    if isinstance(name, (str, tuple)):
        return jnp.asarray(periodic(name, size), dtype)
    window = jnp.asarray(name)
    if window.ndim != 1 or window.shape[0] != size:
        raise _refused("window.C1", "window must be one-dimensional of length nperseg",
                       f"Got {window.shape} for segments of {size}.")
    return window.astype(dtype)


def _segment_sizes(nperseg: int | None, noverlap: int | None, nfft: int | None, length: int,
                   window: Any) -> tuple[int, int, int]:
    asked = nperseg
    if nperseg is None:
        nperseg = 256 if isinstance(window, (str, tuple)) else len(window)
    nperseg = int(nperseg)
    if nperseg < 1:
        raise _refused("nperseg", "nperseg must be a positive integer", f"Got {nperseg}.")
    if nperseg > length:
        if asked is not None:
            warnings.warn(f"nperseg={nperseg} is greater than input_length={length}, using "
                          f"nperseg={length}", UserWarning, stacklevel=3)
        nperseg = length
    nfft = nperseg if nfft is None else int(nfft)
    if nfft < nperseg:
        raise _refused("nfft", "nfft must be greater than or equal to nperseg.",
                       f"Got {nfft} and {nperseg}.")
    noverlap = nperseg // 2 if noverlap is None else int(noverlap)
    if noverlap >= nperseg:
        raise _refused("noverlap", "noverlap must be less than nperseg.",
                       f"Got {noverlap} and {nperseg}.")
    return nperseg, noverlap, nfft


def _is_onesided(asked: bool, *signals: Array) -> bool:
    """Return whether spectra hold half of the frequencies: if ``asked``, of real signals."""
    if asked and any(map(jnp.iscomplexobj, signals)):
        warnings.warn("Input data is complex, switching to return_onesided=False", UserWarning,
                      stacklevel=3)
        return False
    return asked


def _like(values: Array, x: Array) -> Array:
    """Return the vector (or number) ``values`` with the dtype of ``x``, along its last axis."""
    return with_rank(jnp.asarray(values, x.dtype), values.shape, x.ndim)


def _segments(x: Array, size: int, step: int) -> Array:
    """Return the windows [..., count, size] of x [..., n]."""
    count = (x.shape[-1] - size) // step + 1
    return x[..., (np.arange(count) * step)[:, None] + np.arange(size)]


def _spectra(x: Array, window: Array, step: int, nfft: int, detrended: Any, onesided: bool
             ) -> Array:
    """Return the transforms [..., count, frequencies] of the windowed segments of x."""
    parts = _segments(x, window.shape[0], step)
    if callable(detrended):
        parts = detrended(parts)
    elif detrended:
        parts = detrend(parts, type=detrended)
    return (jnp.fft.rfft if onesided else jnp.fft.fft)(parts * _like(window, parts), nfft)


def _nothing(shape: Sequence[int], like: Array, count: int) -> tuple[Array, ...]:
    """Return the ``count`` results for no numbers, as in SciPy: empty arrays of one ``shape``.

    The spectra, which come last, are complex.
    """
    real = jnp.real(like).dtype
    return (jnp.zeros(shape, real),) * (count - 1) + (
        jnp.zeros(shape, promotion.at_least(real, np.complex64)),)


def _times(length: int, size: int, step: int, fs: Any, dtype: Any) -> Array:
    return jnp.asarray(np.arange(size / 2, length - size / 2 + 1, step), dtype) / fs


def _frequencies(onesided: bool, nfft: int, fs: Any, dtype: Any) -> Array:
    return (jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq)(nfft, 1 / fs, dtype=dtype)


def stft(x: Array, fs: ArrayLike = 1.0, window: str = "hann", nperseg: int = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: bool = False,
         return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
         axis: int = -1) -> tuple[Array, Array, Array]:
    """Return the frequencies, the times, and the Fourier transforms of segments of x.

    fs: samples per unit of time.  window: a name or an array.  nperseg, noverlap: the size of
    segments and how far they overlap, half if None.  nfft: the length of each transform.
    boundary: what is put at both ends: 'zeros', 'even', 'odd', 'constant' or None.
    padded: put zeros at the end until a whole number of segments fits.
    Returns: [f], [t], and [..., f, ..., t]; frequencies stand in place of ``axis``.

    >>> stft(jnp.ones(8), nperseg=4)[2].shape
    (3, 5)
    """
    (x,) = promote_dtypes_inexact(array_argument("stft", x))
    if not x.size:
        return _nothing(x.shape, x, 3)
    onesided = _is_onesided(return_onesided, x)
    x = jnp.moveaxis(x, axis, -1)
    size, overlap, nfft = _segment_sizes(nperseg, noverlap, nfft, x.shape[-1], window)
    step = size - overlap
    modes = {"zeros": {"mode": "constant"}, "even": {"mode": "reflect"},
             "constant": {"mode": "edge"}, "odd": {"mode": "reflect", "reflect_type": "odd"}}
    if boundary is not None:
        if boundary not in modes:
            raise _refused("stft.boundary", f"Unknown boundary option '{boundary}', must be one "
                           f"of: {[*modes, None]}", "'zeros' is the usual one.")
        ends = [(0, 0)] * (x.ndim - 1) + [(size // 2, size // 2)]
        x = jnp.pad(x, ends, **modes[boundary])
    if padded:
        missing = -(x.shape[-1] - size) % step
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    real = jnp.real(x).dtype
    values = window_of(window, size, real)
    out = _spectra(x, values, step, nfft, detrend, onesided)
    out = out / _like(jnp.sum(values), out)
    times = _times(x.shape[-1], size, step, fs, real)
    if boundary is not None:
        times = times - (size / 2) / fs
    frequencies = _frequencies(onesided, nfft, fs, real)
    out = jnp.moveaxis(jnp.swapaxes(out, -1, -2), -2, axis if axis >= 0 else axis - 1)
    return frequencies, times, out


def csd(x: Array, y: ArrayLike | None, fs: ArrayLike = 1.0, window: str = "hann",
        nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
        detrend: str = "constant", return_onesided: bool = True, scaling: str = "density",
        axis: int = -1, average: str = "mean") -> tuple[Array, Array]:
    """Return the frequencies, and the cross spectral density of x and y, averaged over segments.

    The arguments are those of ``stft``; y is x if None.
    scaling: 'density' per frequency, or 'spectrum'.  average: 'mean' or 'median' of the segments.
    Raises: ValueError for other values, and for another number of axes in y.

    >>> csd(jnp.ones(8), None, nperseg=4)[1].shape
    (3,)
    """
    same = y is None
    arrays = promote_dtypes_inexact(*([array_argument("csd", x)] if same
                                      else array_argument("csd", x, y)))
    x, y = (arrays[0], arrays[0]) if same else arrays
    if x.ndim != y.ndim:
        raise _refused("csd.ranks", "the two arguments must have the same number of axes",
                       f"Got {x.shape} and {y.shape}.")
    onesided = _is_onesided(return_onesided, x, y)
    x, y = (jnp.moveaxis(z, axis, -1) for z in (x, y))
    if not (x.size and y.size):
        shape = (*np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), min(x.shape[-1], y.shape[-1]))
        return tuple(jnp.moveaxis(z, -1, axis) for z in _nothing(shape, x, 2))
    length = max(x.shape[-1], y.shape[-1])
    if not same:  # the shorter signal is followed by zeros
        x, y = (jnp.pad(z, [(0, 0)] * (z.ndim - 1) + [(0, length - z.shape[-1])]) for z in (x, y))
    size, overlap, nfft = _segment_sizes(nperseg, noverlap, nfft, length, window)
    values = window_of(window, size, jnp.real(x).dtype)
    scale = _scale(values, fs, scaling)
    first = _spectra(x, values, size - overlap, nfft, detrend, onesided)
    second = first if same else _spectra(y, values, size - overlap, nfft, detrend, onesided)
    power = jnp.conj(first) * second
    power = power * _like(scale, power)
    if same:
        power = power.real
    if onesided:  # the other half of the frequencies is counted with this one
        ends = power.shape[-1] - 1 if nfft % 2 == 0 else power.shape[-1]
        power = power.at[..., 1:ends].multiply(2)
    frequencies = _frequencies(onesided, nfft, fs, values.dtype)
    return frequencies, jnp.moveaxis(_averaged(power, average), -1, axis)


def _scale(values: Array, fs: ArrayLike, scaling: str) -> Array:
    """Return what products of spectra under the window ``values`` are multiplied by.

    Raises: ValueError for an unknown ``scaling``.
    """
    if scaling == "density":
        return 1 / (fs * jnp.sum(values * values))
    if scaling == "spectrum":
        return 1 / jnp.sum(values) ** 2
    raise _refused("csd.scaling", f"Unknown scaling: {scaling!r}", "Use 'density' or 'spectrum'.")


def _averaged(power: Array, average: str) -> Array:
    """Return the average of ``power`` over segments, which lie along the last axis but one.

    Raises: ValueError for an unknown ``average``.
    """
    if power.shape[-2] == 1:  # nothing to average, in whatever way
        return power[..., 0, :]
    if average == "median":
        return _median(power)
    if average == "mean":
        return jnp.mean(power, -2)
    raise _refused("csd.average", f"average must be \"median\" or \"mean\", got {average}",
                   "'mean' is Welch's.")


def _median(power: Array) -> Array:
    """Return the median over segments, without the bias that it has for exponential numbers."""
    n = power.shape[-2]
    terms = 2 * np.arange(1.0, (n - 1) // 2 + 1)
    bias = 1 + np.sum(1 / (terms + 1) - 1 / terms)
    if jnp.iscomplexobj(power):
        middle = lax.complex(jnp.median(power.real, -2), jnp.median(power.imag, -2))
    else:
        middle = jnp.median(power, -2)
    return middle / _like(np.asarray(bias), middle)


def welch(x: Array, fs: ArrayLike = 1.0, window: str = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, detrend: str = "constant",
          return_onesided: bool = True, scaling: str = "density", axis: int = -1,
          average: str = "mean") -> tuple[Array, Array]:
    """Return the frequencies, and the power spectral density of x by Welch's method.

    The arguments are those of ``csd``.

    >>> welch(jnp.ones(8), nperseg=4)[1].shape
    (3,)
    """
    frequencies, power = csd(x, None, fs, window, nperseg, noverlap, nfft, detrend,
                             return_onesided, scaling, axis, average)
    return frequencies, power.real


def istft(Zxx: Array, fs: ArrayLike = 1.0, window: str = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
          boundary: bool = True, time_axis: int = -1, freq_axis: int = -2) -> tuple[Array, Array]:
    """Return the times, and the signal whose transforms ``Zxx`` are: the inverse of ``stft``.

    boundary: whether the signal was extended at both ends.
    Raises: ValueError for sizes that do not fit.

    >>> x = jnp.arange(8.0)
    >>> istft(stft(x, nperseg=4)[2], nperseg=4)[1].round(3)
    Array([0.       , 1.       , 2.       , 3.0000002, 4.       , 5.       ,
           6.0000005, 7.0000005], dtype=float32)
    """
    Zxx = array_argument("istft", Zxx)
    if Zxx.ndim < 2:
        raise _refused("istft.C1", "Input stft must be at least 2d!", f"Got {Zxx.shape}.")
    if canonical_axis(time_axis, Zxx.ndim) == canonical_axis(freq_axis, Zxx.ndim):
        raise _refused("istft.C2", "Must specify differing time and frequency axes!",
                       f"Got {time_axis} and {freq_axis}.")
    parts = jnp.moveaxis(Zxx, (freq_axis, time_axis), (-1, -2))
    default = 2 * (parts.shape[-1] - 1) if input_onesided else parts.shape[-1]
    size = default if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = default + 1 if input_onesided and size == default + 1 else default
    size, overlap, nfft = _segment_sizes(size, noverlap, nfft, size, window)
    step = size - overlap
    if input_onesided:
        pieces = jnp.fft.irfft(parts, nfft)[..., :size]
    else:
        pieces = jnp.fft.ifft(parts, nfft)[..., :size]
    values = window_of(window, size, jnp.real(pieces).dtype)
    pieces = pieces * _like(jnp.sum(values) * values, pieces)
    length = size + (pieces.shape[-2] - 1) * step
    places = (np.arange(pieces.shape[-2]) * step)[:, None] + np.arange(size)
    x = jnp.zeros((*pieces.shape[:-2], length), pieces.dtype).at[..., places].add(pieces)
    norm = jnp.zeros(length, values.dtype).at[places].add(values * values)
    if boundary:
        x, norm = (z[..., size // 2:length - size // 2] for z in (x, norm))
    x = x / _like(jnp.where(norm > 1e-10, norm, 1), x)
    if x.ndim > 1 and time_axis != Zxx.ndim - 1:
        gone = min(canonical_axis(freq_axis, Zxx.ndim), Zxx.ndim)
        at = canonical_axis(time_axis, Zxx.ndim)
        x = jnp.moveaxis(x, -1, at - 1 if gone < at else at)
    # As in JAX and SciPy the times are those of the first axis, also where signals are stacked.
    return jnp.arange(x.shape[0], dtype=norm.dtype) / fs, x

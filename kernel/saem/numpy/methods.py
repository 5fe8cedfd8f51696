"""Which functions are also methods of arrays?

One table from the name of a method or property to the function, the same for arrays and tracers.

Read before: the modules named in the imports.  Read after: ``saem._wiring``.
Invariant: ``x.f(…)`` is ``jnp.f(x, …)``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.lazy import later
from saem.jit.transfers import device_put
from saem.numpy import array_api, creation, manipulation, reductions, ufuncs
from saem.numpy.promote import as_value, check_arraylike
from saem.ops import numbers
from saem.ops.convert import bitcast_convert_type, convert
from saem.ops.convert import copy as copy_array

at: Any = later("saem.numpy.at")
float_ufuncs: Any = later("saem.numpy.float_ufuncs")
indexing: Any = later("saem.numpy.indexing")
joining: Any = later("saem.numpy.joining")
splitting: Any = later("saem.numpy.splitting")
take_and_put: Any = later("saem.numpy.take_and_put")


def view(x: Any, dtype: Any = None, type: None = None) -> Any:
    """Return the bits of ``x`` as ``dtype``; items of another size share out the last axis anew.

    Derivatives go through where no bits are read anew: to the same dtype, and between complex
    numbers and their parts.
    Raises: ValueError if the bytes of the last axis make no whole number of items.
    """
    if type is not None:
        raise errors.explained(
            NotImplementedError, "view.type", "`type` argument of array.view() is not supported.",
            advice="np.asarray(x) is a NumPy array.")
    if dtype is None:
        return x
    new, old = creation.check_dtype("view", dtype), aval_of(x).dtype
    if new == old:
        return x
    if old == np.bool_:  # a byte, 0 or 1
        return view(convert(x, np.dtype("uint8")), new)
    if new == np.bool_:
        return convert(view(x, "uint8"), new)
    ratio = dtypes.itemsize_bits(old) / dtypes.itemsize_bits(new)
    if ratio != 1:
        if not x.shape:
            raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged. "
                             " Give it an axis: x[None].")
        if x.shape[-1] * ratio % 1:
            raise ValueError("When changing to a larger dtype, its size must be a divisor of the "
                             f"total size in bytes of the last axis of the array: got {x.shape} of "
                             f"{old.name} as {new.name}.")
    if dtypes.is_complex(old):
        sizes = (*x.shape[:-1], 2 * x.shape[-1]) if x.shape else (2,)
        x = manipulation.reshape(joining.stack([numbers.real(x), numbers.imag(x)], -1), sizes)
        return view(x, new)
    if dtypes.is_complex(new):
        parts = view(x, dtypes.real_dtype(new))
        return numbers.complex(parts[..., ::2], parts[..., 1::2])
    if ratio < 1:
        x = manipulation.reshape(x, (*x.shape[:-1], int(x.shape[-1] * ratio), int(1 / ratio)))
    out = bitcast_convert_type(x, new)
    if ratio > 1:
        out = manipulation.reshape(out, (*x.shape[:-1], int(x.shape[-1] * ratio)))
    return out


def byteswap(x: Any) -> Any:
    """Return ``x`` with the bytes of each element in reverse order."""
    dtype, numbers = x.dtype, 2 if dtypes.is_complex(x.dtype) else 1
    width = dtypes.itemsize_bits(dtype) // 8 // numbers
    if width <= 1:
        return x
    octets = view(manipulation.reshape(x, (*x.shape, 1)), "uint8")
    octets = manipulation.reshape(octets, (*x.shape, numbers, width))[..., ::-1]
    return view(manipulation.reshape(octets, (*x.shape, numbers * width)), dtype)[..., 0]


def flatten(x: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """Return the elements of ``x`` in one dimension."""
    return manipulation.ravel(x, order=order, out_sharding=out_sharding)


def astype(x: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """Return ``x`` converted to ``dtype``."""
    return creation.astype(x, dtype, copy=copy, device=device)


def round_method(x: Any, ndigits: int | None = None) -> Any:
    """Return ``x`` as Python rounds: without ``ndigits``, to whole numbers of an integer dtype."""
    if ndigits is not None:
        return float_ufuncs.round(x, ndigits)
    return creation.astype(float_ufuncs.round(x, 0), int)


def array_namespace(x: Any, /, *, api_version: str | None = None) -> Any:
    """Return the module of functions for arrays, as the array API standard has it.

    Raises: ValueError for another version of the standard than 2024.12.
    """
    if api_version not in (None, array_api.VERSION):
        raise ValueError(f"api_version={api_version!r} is not available; available versions are: "
                         f"['{array_api.VERSION}']")
    return sys.modules["saem.numpy"]


def to_device(x: Any, device: Any, *, stream: Any = None) -> Any:
    """Return ``x`` on ``device`` (a Device or Sharding).  Raises: NotImplementedError."""
    if stream is not None:
        raise errors.explained(
            NotImplementedError, "to_device.stream",
            "`stream` argument of array.to_device() is not supported.",
            advice="Leave it out: x.block_until_ready() waits for the array.")
    return device_put(x, device)


def contains(x: Any, value: Any) -> Any:
    """Return whether an element of ``x``, which has one axis, equals ``value``.

    Raises: ValueError if ``x`` has another rank, or ``value`` has axes; TypeError if ``value`` is
    no array.
    """
    if isinstance(value, str) or value is None:
        raise TypeError(f"Array.__contains__: unsupported operand type {type(value)}.")
    check_arraylike("Array.__contains__", value)
    if x.ndim != 1:
        raise ValueError("Array.__contains__: search array must be one-dimensional, got "
                         f"arr.shape={x.shape}. Compare and ask: (x == value).any().")
    if shape := aval_of(as_value(value)).shape:
        raise ValueError("Array.__contains__: query value must be a scalar, got "
                         f"query.shape={shape}")
    return (x == value).any()


def _no_flat(x: Any) -> Any:
    raise NotImplementedError(
        "JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead.")


METHODS: dict[str, Callable] = {
    "__array_namespace__": array_namespace,
    "__getitem__": lambda x, index: indexing.getitem(x, index),
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "astype": astype,
    "choose": ufuncs.choose,
    "clip": ufuncs.clip,
    "compress": lambda x, condition, *args, **options: take_and_put.compress(
        condition, x, *args, **options),
    "copy": creation.copy,
    "__contains__": contains,
    "__copy__": lambda x: copy_array(x),
    "__deepcopy__": lambda x, memo: copy_array(x),
    "flatten": flatten,
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": manipulation.ravel,
    "reshape": manipulation.reshape_method,
    "__round__": round_method,
    # called by functions that libraries have copied from jax.jacobian (bijx)
    "_split": lambda x, indices_or_sections, axis=0: splitting.split(x, indices_or_sections, axis),
    "squeeze": manipulation.squeeze,
    "std": reductions.std,
    "sum": reductions.sum,
    "swapaxes": manipulation.swapaxes,
    "to_device": to_device,
    "transpose": manipulation.transpose_method,
    "var": reductions.var,
    "view": view,
    "byteswap": byteswap,
}

# Methods that are functions of modules which are loaded when one is first looked up.
LATER_METHODS = {
    "saem.numpy.cumulative": "cumprod cumsum",
    "saem.numpy.diagonals": "diagonal trace",
    "saem.numpy.float_ufuncs": "conj conjugate round",
    "saem.numpy.products": "dot",
    "saem.numpy.rearranging": "repeat",
    "saem.numpy.searching": "nonzero",
    "saem.numpy.sorting": "argpartition argsort searchsorted sort",
    "saem.numpy.take_and_put": "take",
}

PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "T": manipulation.reversed_axes,
    "at": lambda x: at.IndexUpdateHelper(x),
    "flat": _no_flat,
    "imag": lambda x: float_ufuncs.imag(x),
    "mT": lambda x: manipulation.matrix_transpose(x),
    "real": lambda x: float_ufuncs.real(x),
}


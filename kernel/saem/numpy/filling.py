"""How do arrays of known numbers come to be: filled with one number, or counting?

Small ones are made on the host and sent to the device: no program is compiled for their shape.
Large ones are made on the device.  Inside a trace they are primitives.

Read before: ``numpy.creation``.  Read after: ``numpy.ranges``, ``numpy.matrices``.
Invariant: outside programs and meshes, a small array's shape needs no compilation of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.dispatch import put_made, put_value
from saem.core import config, dtypes, errors, promotion
from saem.core.avals import ShapeDtypeStruct, aval_functions, aval_of, kept
from saem.core.dimensions import Dim, is_static, larger
from saem.core.placement_types import Seen
from saem.core.refs import is_ref
from saem.core.trace import Tracer, concrete_or_none
from saem.jit.library import library_function
from saem.jit.transfers import device_put
from saem.numpy.creation import (
    FLOAT,
    SMALL,
    canonical_shape,
    check_dtype,
    given_place,
    on_host,
    placed,
)
from saem.numpy.promote import (
    as_value,
    broadcast_to,
    check_arraylike,
    convert_value,
    scalar,
)
from saem.ops import arithmetic as ops
from saem.ops import filling
from saem.ops.convert import cast, convert, weak_scalar
from saem.ops.linear import literal, varying_as
from saem.placement.devices import SingleDeviceSharding
from saem.placement.layouts import is_usual
from saem.placement.meshes import mesh_context
from saem.placement.shardings import named_sharding
from saem.placement.transfer_guards import unwatched
from saem.typing import Array, ArrayLike, DTypeLike


@library_function(static_argnames="shape")
def _fill(value: Any, *, shape: tuple[int, ...]) -> Any:
    return filling.full(shape, value)


def filled(shape: tuple[int, ...], value: Any) -> Any:
    """Return an array of ``shape`` full of ``value``, a number or scalar array."""
    known = not isinstance(value, (_jaxlib.ArrayImpl, Tracer))
    if config.staging.value or not config.shortcuts.value:
        return filling.full(shape, value)
    if known and is_static(shape) and math.prod(shape) <= SMALL \
            and (mesh_context.value is None or not shape):
        if type(value) not in dtypes.PYTHON_NUMBERS:
            return put_made(kept(np.full(shape, value)))
        if not shape:
            return put_made(value)
    return _fill(value, shape=shape)


def zeros(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None,
          out_sharding: Any = None) -> Any:
    """Return an array of ``shape`` full of 0, of 32-bit floats if ``dtype`` is None.

    >>> jnp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    return _constant("zeros", shape, 0, dtype, given_place("zeros", device, out_sharding))


def ones(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None,
         out_sharding: Any = None) -> Any:
    """Return an array of ``shape`` full of 1.

    >>> jnp.ones((2, 2))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _constant("ones", shape, 1, dtype, given_place("ones", device, out_sharding))


def empty(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None,
          out_sharding: Any = None) -> Any:
    """Return an array of ``shape``; of zeros, since there are no arrays without values.

    >>> jnp.empty((2,))
    Array([0., 0.], dtype=float32)
    """
    return _constant("empty", shape, 0, dtype, given_place("empty", device, out_sharding))


def _constant(name: str, shape: Any, value: int, dtype: Any, where: Any) -> Any:
    shape = canonical_shape(shape)
    dtype = dtypes.canonicalize(FLOAT) if dtype is None else check_dtype(name, dtype)
    if dtypes.is_extended(dtype):
        return placed(dtype.filled(shape, value), where)
    if dtype == dtypes.float0:  # the tangents of integers hold no numbers
        return np.zeros(shape, dtype)
    return full_placed(shape, literal(value, dtype), where)


def full_placed(shape: tuple[int, ...], value: Any, where: Any, like: Any = None) -> Any:
    """Return an array full of ``value``, placed at ``where``, else as ``like``.

    ``like`` is the NamedSharding of an aval, or None.
    """
    if Seen.placements:
        explicit = like if where is None else named_sharding(where, len(shape))
        if explicit is not None:
            return filling.full_of(shape, value, None, explicit)
    return filled_at(filled(shape, value), where)


def filled_at(x: Any, where: Any) -> Any:
    """Return the filled array ``x`` committed to ``where``; no program heeds one device, as on JAX.
    """
    if isinstance(where, SingleDeviceSharding) and is_usual(where):
        where = where._device
    return device_put(x, where) if isinstance(where, _jaxlib.Device) else placed(x, where)


def full(shape: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, device: Any = None,
         out_sharding: Any = None) -> Any:
    """Return an array of ``shape`` full of ``fill_value``, a number or an array that fits.

    >>> jnp.full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    check_arraylike("full", fill_value)
    shape, value = canonical_shape(shape), as_value(fill_value)
    where = given_place("full", device, out_sharding)
    if dtype is None and device is not None and not config.staging.value:
        dtype = aval_of(value).dtype  # what is made at a place is not weak
    if dtype is not None:
        wanted = check_dtype("full", dtype)
        if type(value) in dtypes.PYTHON_NUMBERS and dtypes.is_extended(wanted):
            return placed(wanted.filled(shape, value), where)
        value = convert_value(_known("full", value, wanted), wanted, False)
    if type(value) in dtypes.PYTHON_NUMBERS or type(value) is np.generic:
        return full_placed(shape, value, where)
    return filled_at(_spread(shape, value), where)


def _known(name: str, value: Any, wanted: Any) -> Any:
    """Return a number to be held as ``wanted``: truth is decided by both parts.

    Raises: TypeError for a complex Python number where real ones are held.
    """
    if type(value) is complex and dtypes.is_bool(wanted):
        return value != 0
    if type(value) is complex and dtypes.scalar_kind(wanted) in ("int", "uint", "float"):
        raise TypeError(f"{name} cannot hold the complex number {value} as {wanted.name}. "
                        "Give its real part, or dtype=complex.")
    if isinstance(value, np.generic) and value.dtype.kind in "iu" \
            and isinstance(wanted, np.dtype):
        return cast(np.asarray(value), wanted)[()]  # before its high bits are lost
    return value


def _spread(shape: tuple[int, ...], value: Any) -> Any:
    """Return ``value`` broadcast to ``shape``."""
    if isinstance(value, np.generic):
        value = kept(value.astype(aval_of(value).dtype))
    if not aval_of(value).shape and not dtypes.is_extended(aval_of(value).dtype):
        return filled(shape, value)
    if isinstance(value, np.ndarray):
        value = put_value(value, put_made)
    return broadcast_to(value, shape)


def zeros_like(a: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *,
               device: Any = None, out_sharding: Any = None) -> Any:
    """Return zeros of the shape and dtype of ``a``, where none other is given.

    >>> jnp.zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape,
                 given_place("zeros_like", device, out_sharding))


def ones_like(a: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *,
              device: Any = None, out_sharding: Any = None) -> Any:
    """Return ones of the shape and dtype of ``a``, where none other is given.

    >>> jnp.ones_like(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return _like("ones_like", a, 1, dtype, shape,
                 given_place("ones_like", device, out_sharding))


def empty_like(prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *,
               device: Any = None) -> Any:
    """Return zeros of the shape and dtype of ``prototype``, where none other is given.

    >>> jnp.empty_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(a: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Return an array of the shape and dtype of ``a``, where none other is given, of one value.

    >>> jnp.full_like(jnp.array([1., 2.]), 7)
    Array([7., 7.], dtype=float32)
    """
    check_arraylike("full_like", fill_value, position=1)
    return _like("full_like", a, as_value(fill_value), dtype, shape,
                 given_place("full_like", device, out_sharding))


def _like(name: str, a: Any, value: Any, dtype: Any, shape: Any, where: Any) -> Any:
    if hasattr(a, "shape") and hasattr(a, "dtype") and not (
            type(a) in aval_functions or isinstance(a, Tracer)):
        a = ShapeDtypeStruct(a.shape, dtypes.canonicalize(a.dtype))
    check_arraylike(name, a)
    a = 0 if type(a) is int else as_value(a)  # one of any size has the type of all
    aval = aval_of(a)
    if is_ref(aval):  # what it holds is not read
        aval = aval.inner_aval
        a = ShapeDtypeStruct(aval.shape, aval.dtype)
    shape = aval.shape if shape is None else canonical_shape(shape)
    weak = dtype is where is None and aval.weak_type and not aval_of(value).shape
    wanted = aval.dtype if dtype is None else check_dtype(name, dtype)
    if type(value) in dtypes.PYTHON_NUMBERS and dtypes.is_extended(wanted):
        return placed(wanted.filled(shape, value), where)
    if type(value) in dtypes.PYTHON_NUMBERS:
        if weak and not dtypes.is_bool(wanted):
            value = weak_scalar(value, wanted)
        else:
            value = scalar(value if weak else _known(name, value, wanted), wanted)
    else:
        value = convert_value(value, wanted, weak)
    if aval.explicit is not None and shape == aval.shape and not aval_of(value).shape:
        # An array has the devices of its mesh, its type only the mesh's shape.
        own = a.sharding if type(a) is _jaxlib.ArrayImpl else aval.explicit
        return full_placed(shape, value, where, own)
    if where is None and not aval_of(value).shape and not weak:
        where = filling.place_like_that_of(a, shape)
    return varying_as(filled_at(_spread(shape, value), where), aval)


# -- counting --------------------------------------------------------------------------------------


def known_real(name: str, what: str, x: Any) -> Any:
    """Return argument ``what`` of ``name`` as a Python number.

    Raises: ConcretizationTypeError if it is traced; ValueError, TypeError if it is no real number.
    """
    if type(x) in (int, float):
        return x
    x = as_value(x)
    if isinstance(x, Tracer) and x.concrete() is None:
        raise errors.unknown(
            f"{name}.traced", x, f"It arose in the jnp.{name} argument '{what}'.",
            advice="The length of an array must be known when a function is traced. Mark the "
            "argument static, or pass a Python number.")
    check_arraylike(name, x)
    if np.ndim(x):
        raise ValueError(f"jax.numpy.{name}: arguments must be scalars; got {what}={x}")
    if dtypes.is_complex(aval_of(x).dtype):
        raise ValueError(f"Passing complex start/stop/step to jnp.{name} is no longer supported "
                         f"starting in JAX v0.10.0. It counts real numbers, got {what}={x}")
    return x if type(x) in dtypes.PYTHON_NUMBERS else np.asarray(concrete_or_none(x))[()]


def arange(start: ArrayLike | int, stop: ArrayLike | int | None = None,
           step: ArrayLike | None = None, dtype: DTypeLike | None = None, *, device: Any = None,
           out_sharding: Any = None) -> Array:
    """Return start, start + step, … below ``stop``; one argument counts from 0 to it.

    Raises: ConcretizationTypeError for traced arguments; ZeroDivisionError if ``step`` is 0.

    >>> jnp.arange(0, 10, 3)
    Array([0, 3, 6, 9], dtype=int32)
    """
    if not is_static((start, stop, step)):
        return _open_arange(start, stop, step, dtype)
    first = known_real("arange", "stop" if stop is None and step is None else "start", start)
    last = None if stop is None else known_real("arange", "stop", stop)
    by = None if step is None else known_real("arange", "step", step)
    if last is None:
        last, first = first, None
    given = [v for v in (first, last, by) if v is not None]
    if dtype is not None:
        dtype = check_dtype("arange", dtype)
    elif all(type(v) is int for v in given):  # how large they are plays no part
        dtype = dtypes.default_dtype(int)
    else:
        dtype = promotion.result_type(*[0 if type(v) is int else v for v in given])
    begin, step_size = first if first is not None else 0, by if by is not None else 1
    length = max(0, int(np.ceil(_length(begin, last, step_size))))
    if dtypes.is_bool(dtype):
        raise errors.explained(
            errors.DTypeError, "arange.C1",
            "iota does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, "
            "complexfloating.", advice="Count in integers: jnp.arange(int(n)).")
    # Multiples of a step are rounded once.
    narrow = by is not None and dtypes.is_float(dtype) and dtypes.itemsize_bits(dtype) < 32
    inner = np.dtype(np.float32) if narrow else dtype
    offset = None if first is None or (by is None and first == 0) else scalar(first, inner)
    scale = None if by is None else scalar(by, inner)
    where = given_place("arange", device, out_sharding)
    explicit = named_sharding(where, 1) if Seen.placements else None
    if explicit is not None and offset is None and scale is None:
        return filling.broadcasted_iota(dtype, (length,), 0, out_sharding=explicit)
    return placed(_count(length, inner, dtype, offset, scale), where)


def _open_arange(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """Return ``arange`` where a bound is a dimension whose size is not known."""
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    if not all(isinstance(n, (int, np.integer, Dim)) for n in (start, stop, step)):
        raise ValueError("In arange with non-constant arguments all of start, stop, and step must "
                         "be either dimension expressions or integers, got "
                         f"start={start}, stop={stop}, step={step}")
    if step == 0:
        raise ZeroDivisionError("division by zero: jnp.arange needs a step that is not 0")
    kind = dtypes.default_dtype(int) if dtype is None else check_dtype("arange", dtype)
    way, width = (stop - start, step) if step > 0 else (start - stop, -step)
    length = way if width == 1 else (way + width - 1) // width
    count = filling.iota(kind, larger(0, length))
    count = count if step == 1 else ops.mul(count, scalar(step, kind))
    return count if isinstance(start, int) and start == 0 else ops.add(count, scalar(start, kind))


def _length(start: Any, stop: Any, step: Any) -> Any:
    """Return how many steps lead from start to stop, exactly for integers."""
    if step == 0:
        raise ZeroDivisionError("division by zero: jnp.arange needs a step that is not 0")
    if all(isinstance(v, (int, np.integer)) for v in (start, stop, step)):
        return -((int(start) - int(stop)) // int(step))
    return (stop - start) / step


def _count(length: int, inner: Any, dtype: Any, offset: Any, scale: Any) -> Any:
    """Return offset + scale * (0, 1, …), each left out if None, computed in the dtype ``inner``."""
    if on_host(length):
        out = np.arange(length, dtype=inner) if dtypes.is_integer(inner) and \
            dtypes.itemsize_bits(inner) >= 32 else np.arange(length).astype(inner)
        with np.errstate(all="ignore"):
            out = out if scale is None else scale * out
            out = np.asarray(out if offset is None else offset + out, inner)
        made = kept(out if inner == dtype else cast(out, dtype))
        if scale is not None or offset is not None:
            return put_made(made)
        # A plain count has no number of the caller's: a guard of transfers lets it pass.
        return unwatched(put_made, made)
    if not config.staging.value:
        return _count_on_device(offset, scale, length=length, inner=inner, dtype=dtype)
    return _counted(offset, scale, length, inner, dtype)


def _counted(offset: Any, scale: Any, length: int, inner: Any, dtype: Any) -> Any:
    out = filling.iota(inner, length)
    out = out if scale is None else ops.mul(scale, out)
    return convert(out if offset is None else ops.add(offset, out), dtype, False)


_count_on_device = library_function(_counted, static_argnames=("length", "inner", "dtype"))

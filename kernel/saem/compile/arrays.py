"""Which methods of a concrete array need no operation?

Its type and place, its numbers as NumPy, its printed form.  The class is jaxlib's; the methods are
put on it here.

Read before: ``compile.dispatch``.  Read after: ``numpy.methods``, which adds what needs operations.
Invariant: the NumPy view of an array cannot be written to, so an array never changes.
"""

from __future__ import annotations

import enum
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.device_assignment import hold, place_names
from saem.compile.dispatch import (
    check_not_deleted,
    device_of,
    present,
    put,
    put_host,
    spread_like,
)
from saem.core import source
from saem.core.avals import ShapedArray, aval_of
from saem.core.conversions import immutable, one_index, one_number, one_truth
from saem.core.events import Transfer, bus
from saem.core.lazy import later
from saem.core.memory_spaces import HOST, space_of
from saem.core.placement_types import Seen
from saem.placement.devices import backend, placement_name, single_device
from saem.placement.layouts import format_of, is_usual
from saem.placement.shardings import holds_addends
from saem.placement.spread import host_value, on_host, parts_of, shards
from saem.placement.transfer_guards import explicitly

dlpack: Any = later("saem.compile.dlpack")  # arrays of other libraries on a GPU

ArrayImpl = _jaxlib.ArrayImpl
_LITTLE = 4096  # bytes that are copied rather than looked at a second time


def devices(x: Any) -> set[Any]:
    """Return the devices on which ``x`` lies.  Raises: RuntimeError if it was deleted."""
    check_not_deleted(x)
    return set(x._sharding.device_set)


def parts(x: Any, everywhere: bool = False) -> list[Any]:
    """Return the parts of ``x`` on devices of this process, or all of them (without data).

    Raises: RuntimeError if the array was deleted or donated.
    """
    check_not_deleted(x)
    return shards(x, everywhere)


def value_of(x: Any) -> np.ndarray:
    """Return the numbers of ``x`` as a read-only NumPy array, waiting for them if need be.

    It is kept, unless it is a view of much memory: while one lives, the array cannot be donated.
    Raises: RuntimeError if the array was deleted or donated.
    """
    check_not_deleted(x)
    cached = x._npy_value
    if cached is not None:
        return cached
    if bus.active:
        device = device_of(x)
        bus.publish(Transfer(direction="device_to_host", bytes=nbytes(x),
                             source=placement_name(device) if device else "devices",
                             target="host", caller=source.here()))
    value, copied = host_value(x) if device_of(x) is not None else on_host(x)
    if not copied and value.nbytes <= _LITTLE:
        value, copied = value.copy(), True
    value.flags.writeable = False
    if copied:
        x._npy_value = value
    return value


def nbytes(x: Any) -> int:
    return math.prod(x.aval.shape) * x.aval.dtype.itemsize


def as_numpy(x: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """NumPy's protocol: the values, converted to ``dtype``, a writable copy only if ``copy``."""
    value = value_of(x)
    if dtype is not None and np.dtype(dtype) != value.dtype:
        if copy is False:
            raise ValueError(
                f"conversion of {value.dtype} to {np.dtype(dtype)} needs a copy, but copy=False")
        return value.astype(dtype)
    return value.copy() if copy else value


def show(x: Any) -> str:
    """Return ``Array([0, 1, 2], dtype=int32)``."""
    weak = ", weak_type=True" if x.aval.weak_type else ""
    if not can_be_read(x):
        return (f"Array(shape={x.aval.shape}, dtype={x.aval.dtype.name}{weak}, "
                f"sharding={x._sharding})")
    value = value_of(x)
    suffix = f"dtype={x.aval.dtype.name}{weak})"
    text = f"[], shape={value.shape}" if value.size == 0 else np.array2string(
        value, prefix="Array(", suffix=",", separator=", ")
    last = text.rsplit("\n", 1)[-1]
    if len(last) + len(suffix) + 2 >= np.get_printoptions()["linewidth"]:
        return f"Array({text},      {suffix}"  # no new line: JAX has none either
    return f"Array({text}, {suffix}"


def can_be_read(x: Any) -> bool:
    """Return whether this process can put the numbers of ``x`` together."""
    sharding = x._sharding
    here = sharding.is_fully_addressable or (
        sharding.is_fully_replicated and sharding.has_addressable_devices)
    return here and not holds_addends(sharding)


def python_number(x: Any, kind: type) -> Any:
    """Return the only element of ``x`` as a Python ``kind``.

    Raises: TypeError if ``x`` has dimensions, or is complex and ``kind`` is not.
    """
    if x.aval.shape:
        one_number(x)
    return kind(value_of(x)[()].item())


def truth(x: Any) -> bool:
    if x.aval.shape:
        one_truth(x)
    return bool(value_of(x).reshape(-1)[0])


def index(x: Any) -> int:
    one_index(x)
    return int(value_of(x))


def item(x: Any, *where: Any) -> Any:
    """Return one element as a Python number."""
    return value_of(x).item(*where)


def rebuild(value: np.ndarray, weak_type: bool) -> Any:
    """Return the array that was pickled as ``value``."""
    given = (put_host, value, aval_of(value).update(weak_type=True)) if weak_type else (put, value)
    return explicitly("explicit_device_put", *given)


def rows_from_host(x: Any) -> Any:
    """Return an iterator over the rows of ``x``, read once and put on the default device."""
    row = ShapedArray(x.aval.shape[1:], x.aval.dtype, x.aval.weak_type)
    return (put_host(value, row) for value in value_of(x))


def capsule(x: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
            copy: bool | None = None) -> Any:
    """Return the DLPack capsule that shares the memory of ``x``, or of a copy that was asked for.

    ``dl_device`` is the (device type, number) on which its reader needs it.

    Raises: BufferError if ``x`` lies on several devices, for another device type, or if its reader
    knows only versions before 0.5; ValueError if the numbers must move and ``copy`` is False.
    """
    check_not_deleted(x)
    if max_version is not None and tuple(max_version) < (0, 5):
        raise BufferError("JAX does not support any version below (0, 5) but version "
                          f"({max_version}) was requested. Read the array with a newer library.")
    here = only_device(x)
    wanted = here if dl_device is None else _of_dlpack(*dl_device)
    if wanted is not here and copy is False:
        raise ValueError(f"Specified device={wanted} which requires a copy since the source device "
                         f"is {here}, however copy=False. Set copy=True or copy=None.")
    if wanted is not here or copy:
        x = _jaxlib.batched_device_put(x.aval, single_device(wanted), [x], [wanted], True, True)
    return _jaxlib.buffer_to_dlpack_managed_tensor(x, stream)


def of_dlpack(x: Any, copy: bool | None) -> Any:
    """Return the array that shares the memory of ``x``, None if no array can.

    None can share strides with gaps, and memory that may only be read: a capsule cannot say so.
    On the CPU jaxlib copies what does not begin at a multiple of 64 bytes.  Work on ``x`` that its
    own library has begun is waited for by the GPU.

    Raises: ValueError if it was copied, and ``copy`` is False.
    """
    kind, number = x.__dlpack_device__()
    if kind not in (_CPU, _CUDA):
        return None
    device = _of_dlpack(kind, number)
    stream = device.get_stream_for_external_ready_events() if kind == _CUDA else None
    try:
        given = x.__dlpack__(stream=stream)
    except BufferError:
        return None
    order = dlpack.order_in(given)
    if order is None:
        return None
    if order != sorted(order):
        Seen.storage = True
    aval, address = dlpack.aval_in(given), dlpack.address_in(given)
    part = _jaxlib.dlpack_managed_tensor_to_buffer(given, device, stream)
    if copy is False and aval.size and part.unsafe_buffer_pointer() != address:
        raise ValueError("Specified input which requires a copy since the source data buffer is "
                         "not aligned to 64 bytes.  However copy=False. Set copy=True or "
                         "copy=None to perform the requested operation.")
    return _jaxlib.ArrayImpl(aval, single_device(device), [part], True, True)


def only_device(x: Any) -> Any:
    """Return the device of ``x``.  Raises: BufferError if there are several."""
    device = device_of(x)
    if device is None:
        raise BufferError("DLPack hands over arrays on one device; this one lies on several. "
                          "Take one part: x.addressable_shards[0].data.")
    return device


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of the types of devices."""

    kDLCPU = 1
    kDLCUDA = 2


_CPU, _CUDA = DLDeviceType


def _of_dlpack(kind: int, number: int) -> Any:
    """Return the device that DLPack names by its type and number."""
    if kind not in (_CPU, _CUDA):
        raise BufferError("The device specification passed to to_dlpack contains an unsupported "
                          f"device type (DLDeviceType: {kind}). The types are 1 (CPU), 2 (CUDA).")
    return backend("cpu" if kind == _CPU else "cuda").device_from_local_hardware_id(number)


def capsule_device(x: Any) -> tuple[int, int]:
    """Return DLPack's (device type, number): 1 is the CPU, 2 CUDA."""
    device = only_device(x)
    return (_CPU, 0) if device.platform == "cpu" else (_CUDA, device.local_hardware_id)


def _set(x: Any, where: Any, value: Any) -> None:
    raise immutable()


def device_put(x: Any, device: Any) -> Any:
    """Return one value on ``device`` (a Device, a sharding, or None for its own).

    It is committed exactly if ``device`` is given.

    Raises: ValueError if a sharding does not fit the value.
    """
    if device is None or isinstance(device, _jaxlib.Device):
        return put(x, device, device is not None)
    single = getattr(device, "_device", None)
    if single is not None and is_usual(device) and space_of(aval_of(x)) is not HOST:
        return put(x, single, True)
    if bus.active:
        publish_spread(x, device)
    return present(hold(spread_like(hold(x), device)), x)


def publish_spread(x: Any, sharding: Any) -> None:
    """Publish that a value goes to several devices."""
    held = hold(x)
    on_device = type(held) is ArrayImpl
    aval = aval_of(held)
    bus.publish(Transfer(
        direction="device_to_device" if on_device else "host_to_device",
        bytes=aval.size * aval.dtype.itemsize,
        source=place_names(held._sharding) if on_device else "host",
        target=place_names(sharding), caller=source.here()))


def copy_to_host_async(x: Any) -> None:
    """Start copying the parts of ``x`` to the host.  Raises: RuntimeError if it was deleted."""
    check_not_deleted(x)
    for part in x._arrays if device_of(x) is None else (x,):
        part._copy_single_device_array_to_host_async()


def addressable_data(x: Any, index: int) -> Any:
    """Return what the device ``index`` of this process holds of ``x``, as an array of its own."""
    check_not_deleted(x)
    part, = parts_of(x, [index]).values()
    return part


def _of_undeleted(method: Callable) -> Callable:
    """Return jaxlib's ``method``, which ends the process if the array was deleted."""

    def checked(x: Any) -> Any:
        check_not_deleted(x)
        return method(x)

    checked.__name__, checked.__doc__ = method.__name__, method.__doc__
    return checked


def as_dtype(x: Any) -> np.dtype:
    """Return the dtype of an array that stands where a dtype is asked for, with a warning."""
    warnings.warn("An array was given as a dtype, which is deprecated: instead of dtype=x write "
                  "dtype=x.dtype.", DeprecationWarning, stacklevel=2)
    return x.dtype


_PROPERTIES = {
    "shape": lambda x: x.aval.shape,
    "dtype": lambda x: x.aval.dtype,
    "__numpy_dtype__": as_dtype,
    "ndim": lambda x: len(x.aval.shape),
    "size": lambda x: math.prod(x.aval.shape),
    "nbytes": nbytes,
    "itemsize": lambda x: x.aval.dtype.itemsize,
    "weak_type": lambda x: x.aval.weak_type,
    "sharding": lambda x: x._sharding,
    "committed": lambda x: x._committed,
    "format": format_of,
    "device": lambda x: device_of(x) if device_of(x) is not None else x._sharding,
    "is_fully_addressable": lambda x: x._sharding.is_fully_addressable,
    "is_fully_replicated": lambda x: x._sharding.is_fully_replicated,
    "addressable_shards": parts,
    "global_shards": lambda x: parts(x, everywhere=True),
    "_value": value_of,
}
_METHODS = {
    "__array__": as_numpy,
    "__repr__": show,
    "__str__": lambda x: str(value_of(x)) if can_be_read(x) else show(x),
    "__format__": lambda x, spec: format(value_of(x)[()], spec) if not x.aval.shape
    else format(value_of(x) if spec or can_be_read(x) else show(x), spec),
    "__len__": lambda x: len(x.aval),
    "__bool__": truth,
    "__int__": lambda x: python_number(x, int),
    "__float__": lambda x: python_number(x, float),
    "__complex__": lambda x: python_number(x, complex),
    "__index__": index,
    "__hash__": None,
    "__setitem__": _set,
    "__reduce__": lambda x: (rebuild, (value_of(x), x.aval.weak_type)),
    "__deepcopy__": lambda x, memo: x._rewrap_with_aval_and_sharding(x.aval, x._sharding),
    "__dlpack__": capsule,
    "__dlpack_device__": capsule_device,
    "item": item,
    "tolist": lambda x: value_of(x).tolist(),
    "tobytes": lambda x, order="C": value_of(x).tobytes(order),
    "devices": devices,
    "copy_to_host_async": copy_to_host_async,
    "addressable_data": addressable_data,
    **{name: _of_undeleted(getattr(ArrayImpl, name)) for name in (
        "is_ready", "on_device_size_in_bytes")},
}

for _name, _get in _PROPERTIES.items():
    _made = property(_get)
    _made.__set_name__(ArrayImpl, _name)  # type: ignore[attr-defined]
    setattr(ArrayImpl, _name, _made)
for _name, _method in _METHODS.items():
    setattr(ArrayImpl, _name, _method)
ArrayImpl.__array_priority__ = 100

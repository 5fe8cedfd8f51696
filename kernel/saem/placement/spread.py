"""How is one array stored on several devices?

Its sharding divides it into parts; each device holds its part as a buffer of its own.  Here values
are sharded and placed, moved from one sharding to another, put together again on the host, and made
of parts that a caller supplies.

Read before: ``placement.shardings``.  Read after: ``compile.dispatch``.
Invariant: the parts of an array are the slices its sharding names, in the order of its devices.
Source: the documentation of jax.make_array_from_callback and related functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.core import dtypes, errors, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.memory_spaces import placed
from saem.core.record import Record
from saem.core.sharded import as_sharded, plain
from saem.placement.devices import process_count, single_device
from saem.placement.layouts import in_memory, is_usual, space_of_sharding
from saem.placement.shardings import holds_addends, no_slices, resolve

ArrayImpl = _jaxlib.ArrayImpl
# The parts are copies that nothing else writes to; jaxlib cannot copy equal parts itself.
_OURS = _jaxlib.HostBufferSemantics.ZERO_COPY


def check_fits(sharding: Any, aval: ShapedArray, what: str = "device_put args") -> None:
    """Refuse a sharding that cannot shard an array of ``aval`` into equal parts.

    Raises: ValueError, also as IndivisibleError.
    """
    check_rank(sharding, aval, what)
    sharding.shard_shape(aval.shape)


def check_rank(sharding: Any, aval: ShapedArray, what: str) -> None:
    """Refuse a sharding with more axes than ``aval``.

    Raises: ValueError.
    """
    try:
        sharding.check_compatible_aval(aval.shape)
    except ValueError as error:
        raise ValueError(f"One of {what} is incompatible with its sharding annotation {sharding}: "
                         f"{error}") from None


def put_host(value: np.ndarray, aval: ShapedArray, sharding: Any, committed: bool) -> Any:
    """Return ``value`` sharded and placed on the devices of this process."""
    aval = as_sharded(placed(aval, space_of_sharding(sharding)), sharding)
    places = sharding.addressable_devices_indices_map(aval.shape)
    copies: dict[tuple, np.ndarray] = {}
    for index in places.values():
        key = _key(index, aval.shape)
        if key not in copies:
            copies[key] = np.array(value[index], order="C")
    parts = [copies[_key(index, aval.shape)] for index in places.values()]
    return _jaxlib.batched_device_put(aval, sharding, parts, list(places), committed, False, _OURS,
                                      True)


def move(x: Any, sharding: Any, committed: bool) -> Any:
    """Return the array ``x`` with ``sharding``, device to device where the parts allow it."""
    aval = as_sharded(placed(x.aval, space_of_sharding(sharding)), sharding)
    if x._sharding == sharding and x._committed == committed:
        return x
    here = x._sharding
    if here.is_equivalent_to(sharding, len(aval.shape)):
        return _jaxlib.batched_device_put(aval, sharding, list(x._arrays),
                                          list(sharding.addressable_devices_indices_map(aval.shape)),
                                          committed)
    have: dict[Any, Any] = {}
    for part, index in zip(x._arrays, here.addressable_devices_indices_map(aval.shape).values()):
        have.setdefault(_key(index, aval.shape), part)
    wanted = sharding.addressable_devices_indices_map(aval.shape)
    parts = [have.get(_key(index, aval.shape)) for index in wanted.values()]
    if all(part is not None for part in parts):
        return _jaxlib.batched_device_put(aval, sharding, parts, list(wanted), committed)
    if not here.is_fully_addressable and not here.is_fully_replicated:
        raise errors.explained(
            errors.ArgumentError, "device_put.C3",
            f"device_put cannot move an array from {here} to {sharding}: part of it lies on "
            "devices of other processes.",
            advice="Use a mesh of the same devices, or gather the array first: "
            "jax.experimental.multihost_utils.process_allgather(x, tiled=True).")
    return put_host(on_host(x)[0], aval, sharding, committed)


def _key(index: Sequence[slice], shape: Sequence[int]) -> tuple:
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape))


def on_host(x: Any) -> tuple[np.ndarray, bool]:
    """Return the numbers of an array, put together, and whether in memory of their own.

    While a view of an array's memory lives, the array cannot be donated.
    Raises: RuntimeError if a part is in another process.
    """
    parts = x._arrays
    sharding = x._sharding
    if not sharding.is_fully_addressable and not sharding.is_fully_replicated:
        raise RuntimeError(
            "Fetching value for `jax.Array` that spans non-addressable (non process local) devices "
            "is not possible. Read x.addressable_shards, or bring it together first with "
            "jax.experimental.multihost_utils.process_allgather.")
    if sharding.is_fully_replicated:
        return host_value(parts[0])
    whole = np.empty(x.aval.shape, x.aval.dtype)
    if whole.size:  # XLA does not divide what holds nothing
        places = sharding.addressable_devices_indices_map(x.aval.shape).values()
        known = set()
        for part, index in zip(parts, places):
            key = _key(index, x.aval.shape)
            if key not in known:  # copies may differ after shard_map: the first one counts
                known.add(key)
                whole[index], _ = host_value(part)
    return whole, True


def host_value(part: Any) -> tuple[np.ndarray, bool]:
    """Return the numbers of an array on one device, and whether in memory of their own."""
    return part._single_device_array_to_np_array_did_copy()


class Shard(Record):
    """The part of an array on one device: ``data`` (None in another process) is slice ``index``."""

    device: Any
    index: tuple[slice, ...]
    replica_id: int
    data: Any

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, "
                f"replica_id={self.replica_id}, data={self.data})")


class Addend(Record):
    """What one device holds of a sum: ``data`` (None in another process), no part of the value."""

    device: Any
    data: Any

    @property
    def index(self) -> Any:
        raise no_slices()

    replica_id = index

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, data={self.data})"


def shards(x: Any, everywhere: bool = False) -> list[Any]:
    """Return the parts of ``x`` on devices of this process, or all of them (without data)."""
    shape = x.aval.shape
    sharding = x._sharding
    mine = parts_of(x)
    if holds_addends(sharding):
        return [Addend(d, mine.get(d)) for d in sharding._device_assignment
                if everywhere or d in mine]
    copies: dict[tuple, int] = {}
    found = []
    for device, index in sharding.devices_indices_map(shape).items():
        key = _key(index, shape)
        replica = copies[key] = copies.get(key, -1) + 1
        if everywhere or device in mine:
            found.append(Shard(device, index, replica, mine.get(device)))
    return found


def parts_of(x: Any, numbers: Iterable[int] | None = None) -> dict[Any, Any]:
    """Return what devices of this process hold of ``x``, as arrays of their own.

    ``numbers`` are those of the devices wanted, among the devices of this process.
    """
    sharding = x._sharding
    aval = plain(x.aval)
    kind = None if is_usual(sharding) else sharding.memory_kind
    aval = aval.update(shape=sharding.shard_shape(aval.shape))
    mine = sharding.addressable_devices
    devices = [d for d in sharding._device_assignment if d in mine]
    return {devices[n]: ArrayImpl(aval, in_memory(single_device(devices[n]), kind), [x._arrays[n]],
                                  True, _skip_checks=True)
            for n in (range(len(devices)) if numbers is None else numbers)}


def make_array_from_callback(shape: Sequence[int], sharding: Any, data_callback: Callable,
                             dtype: Any = None) -> Any:
    """Return the array whose part at each index (a tuple of slices) ``data_callback`` gives.

    Raises: ValueError if a part has another shape than its index has.
    """
    shape = tuple(shape)
    _check_sharding("make_array_from_callback", sharding)
    places = sharding.addressable_devices_indices_map(shape)
    known: dict[tuple, Any] = {}
    parts = []
    for index in places.values():
        key = _key(index, shape)
        if key not in known:
            given = data_callback(index)
            kind = getattr(given, "dtype", None)
            if isinstance(kind, dtypes.ExtendedDType):
                return _made_of_held(shape, sharding, data_callback, kind)
            known[key] = np.array(given, None if hasattr(given, "dtype") else dtype, order="C")
            aval_of(known[key])  # refuses what arrays do not hold
            if dtype is not None and dtypes.canonicalize(known[key].dtype) != np.dtype(dtype):
                raise _other_dtype("make_array_from_callback", dtype, known[key].dtype)
            wanted = sharding.shard_shape(shape)
            if known[key].shape != wanted:
                raise ValueError(
                    f"Expected shard shape {wanted} doesn't match the single device array shape "
                    f"{known[key].shape}. The callback returned it for index {index}.")
        parts.append(known[key])
    if not parts:
        if dtype is None:
            raise ValueError("make_array_from_callback: no device of this process holds a part, so "
                             "dtype must be given.")
        kind = np.dtype(dtype)
    else:
        kind = parts[0].dtype
    aval = as_sharded(ShapedArray(shape, dtypes.canonicalize(kind)), sharding)
    parts = [part.astype(aval.dtype, copy=False) for part in parts]
    return _jaxlib.batched_device_put(aval, sharding, parts, list(places), True, False, _OURS, True)


def _check_sharding(name: str, sharding: Any) -> None:
    if not isinstance(sharding, _jaxlib.Sharding):
        raise TypeError(f"{name}: sharding should be an instance of `jax.sharding`. Got "
                        f"{sharding} of type {type(sharding)}. Try: NamedSharding(mesh, spec).")


def _other_dtype(name: str, wanted: Any, have: Any) -> ValueError:
    return ValueError(f"If `dtype` is provided to `{name}`, it must match the dtype of the "
                      f"addressable shards. Got dtype={np.dtype(wanted)} and shard dtype={have}. "
                      "Convert the parts, or leave dtype out.")


def _made_of_held(shape: tuple[int, ...], sharding: Any, data_callback: Callable,
                  dtype: dtypes.ExtendedDType) -> Any:
    """Return what ``make_array_from_callback`` returns where the parts are keys."""
    inner, words = dtype.physical
    return dtype.wrap(make_array_from_callback(
        (*shape, *inner), sharding,
        lambda index: dtype.held(data_callback(index[:len(shape)])), words))


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Any,
                                         arrays: Sequence[Any], *, dtype: Any = None) -> Any:
    """Return the array whose parts are ``arrays``, one for each device of this process.

    Raises: ValueError if their number, shapes or devices do not fit ``sharding``.
    """
    shape = tuple(shape)
    _check_sharding("make_array_from_single_device_arrays", sharding)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError("make_array_from_single_device_arrays: `arrays` argument must be a list or "
                        f"tuple, but got {type(arrays)}.")
    for array in arrays:
        if not hasattr(array, "sharding"):
            raise TypeError("make_array_from_single_device_arrays: Unsupported type for elements "
                            f"in `arrays`: {type(array)}. Try: jax.device_put(x, device).")
        if dtype is not None and array.dtype != dtype:
            raise _other_dtype("make_array_from_single_device_arrays", dtype, array.dtype)
    if arrays and isinstance(arrays[0].dtype, dtypes.ExtendedDType):
        held = arrays[0].dtype.held
        inner, _ = arrays[0].dtype.physical
        return arrays[0].dtype.wrap(make_array_from_single_device_arrays(
            (*shape, *inner), sharding, [held(a) for a in arrays]))
    places = sharding.addressable_devices_indices_map(shape)
    part = sharding.shard_shape(shape)
    if len(arrays) != len(places):
        raise ValueError(
            f"Expected {len(places)} per-device arrays (this is how many devices are addressable "
            f"by the sharding), but got {len(arrays)}")
    by_device = {next(iter(a._sharding.device_set)): a for a in arrays}
    if len(by_device) < len(arrays):
        ids = [next(iter(a._sharding.device_set)).id for a in arrays]
        raise ValueError("When making an array from single-device arrays, the input arrays must be "
                         f"from distinct devices, but got device IDs {ids}")
    for array in arrays:
        if array.aval.shape != part:
            raise ValueError(f"Expected shard shape {part} doesn't match the single device array "
                             f"shape {array.aval.shape}. Shape of Array is {shape}.")
    missing = [d for d in places if d not in by_device]
    if missing:
        raise ValueError(f"Addressable devices of the sharding and devices of the arrays differ: "
                         f"nothing lies on {missing}.")
    kind = arrays[0].aval.dtype if arrays else np.dtype(dtype)
    weak = bool(arrays) and all(a.aval.weak_type for a in arrays)
    return ArrayImpl(as_sharded(ShapedArray(shape, kind, weak), sharding), sharding,
                     [by_device[d] for d in places], True, _skip_checks=True)


def own_part(x: Any, here: Any) -> Any:
    """Return what lies in this process of ``x``, as an array of its own, with sharding ``here``.

    ``here`` shards over the devices of this process as ``x`` is sharded over all.
    """
    part = x.sharding.shard_shape(x.shape)
    shape = [p * tiles for p, tiles in zip(part, here.tiles(len(part)))]
    return make_array_from_single_device_arrays(
        shape, here, [shard.data for shard in x.addressable_shards])


def make_array_from_process_local_data(sharding: Any, local_data: Any,
                                       global_shape: Sequence[int] | None = None) -> Any:
    """Return the array of which this process holds ``local_data``, or a pytree of arrays.

    Without ``global_shape``, axes that the processes divide among them are as many times longer
    as there are processes along them; an entry None of it is computed likewise.  For a pytree,
    ``sharding`` (or a device) and ``global_shape`` are prefixes of it.

    Raises: ValueError for a non-sharding, or if sizes do not fit.
    """
    leaves, structure = tree.flatten(local_data)
    shardings = tree.broadcast_prefix(sharding, local_data,
                                      is_leaf=lambda s: isinstance(s, _jaxlib.Sharding))
    shapes = [None] * len(leaves) if global_shape is None else tree.broadcast_prefix(
        global_shape, local_data, is_leaf=_is_shape)
    return structure.unflatten([
        _of_process(resolve(s, "device_put"), x, shape)
        for s, x, shape in zip(shardings, leaves, shapes)])


def _is_shape(x: Any) -> bool:
    return x is None or (isinstance(x, (tuple, list))
                         and all(n is None or isinstance(n, (int, np.integer)) for n in x))


def _of_process(sharding: Any, local_data: Any, global_shape: Sequence[int | None] | None) -> Any:
    """Return the array of which this process holds ``local_data``."""
    local_data = np.asarray(local_data)
    if global_shape is not None and process_count() == 1 \
            and tuple(global_shape) != local_data.shape and None not in global_shape:
        raise ValueError(
            "When calling `make_array_from_process_local_data` on a single process, global_shape "
            "should be None or equal to local_data.shape.Got "
            f"global_shape={tuple(global_shape)} and local_data.shape={local_data.shape}. "
            "One process holds all of the array.")
    if global_shape is not None and len(global_shape) != local_data.ndim:
        raise ValueError(
            f"Invalid host data: global_shape={tuple(global_shape)} has {len(global_shape)} "
            f"dimensions, but the process data, of shape {local_data.shape}, has "
            f"{local_data.ndim}.")
    guess = _global_shape(sharding, local_data.shape)
    if global_shape is None:
        shape = guess
    else:
        shape = tuple(g if n is None else n for n, g in zip(global_shape, guess))
    places = sharding.addressable_devices_indices_map(shape)
    # Along each axis: where the parts that are here begin in the whole, and how long each is.
    begins = [sorted({s.indices(n)[0] for s in column})
              for column, n in zip(zip(*places.values()), shape)]
    lengths = sharding.shard_shape(shape)
    for axis, (have, n, mine, length) in enumerate(zip(local_data.shape, shape, begins, lengths)):
        if have not in (n, len(mine) * length):
            raise ValueError(
                "Invalid host data, each dimension should match either global or process shape. In "
                f"dimension {axis}, the process data has {have} elements. Process addresses "
                f"{len(mine) * length} elements and global_shape={shape}.")

    def part(index: tuple[slice, ...]) -> np.ndarray:
        where = []
        for have, n, mine, length, s in zip(local_data.shape, shape, begins, lengths, index):
            begin = s.indices(n)[0]
            where.append(s if have == n else slice(
                place := mine.index(begin) * length, place + length))
        return local_data[tuple(where)]

    return make_array_from_callback(shape, sharding, part)


def _global_shape(sharding: Any, local: Sequence[int]) -> tuple[int, ...]:
    """Return the global shape if each process holds a block of shape ``local``."""
    # On an array with as many entries as parts, count along each axis the parts that are here.
    tiles = sharding.tiles(len(local)) if hasattr(sharding, "tiles") else (1,) * len(local)
    here = sharding.addressable_devices_indices_map(tiles).values()
    shape = []
    for axis, (size, parts) in enumerate(zip(local, tiles)):
        mine = {index[axis].indices(parts)[0] for index in here}
        shape.append(size * parts // max(len(mine), 1) if parts > 1 else size)
    return tuple(shape)


def place_like(x: Any, sharding: Any) -> Any:
    """Return a value (array, NumPy or number) committed to a sharding over several devices."""
    aval = aval_of(x)
    check_fits(sharding, aval)
    if type(x) is ArrayImpl:
        return move(x, sharding, True)
    if aval.dtype == dtypes.float0:
        aval = ShapedArray(aval.shape, np.dtype(bool))
        x = np.zeros(aval.shape, bool)
    return put_host(np.asarray(x, aval.dtype), aval, sharding, True)

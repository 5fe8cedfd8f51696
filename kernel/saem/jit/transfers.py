"""How are values placed on devices, fetched from them and waited for?

``device_put`` commits values to a device, ``device_get`` brings them to NumPy,
``block_until_ready`` waits: operations return before they are finished (asynchronous dispatch).

Read before: ``compile.dispatch``, ``placement.layouts``.
Invariant: placing a traced value does not take it out of its trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile import arrays
from saem.compile.device_assignment import held_as
from saem.compile.dispatch import put_value, with_layout
from saem.compile.lowering import whole
from saem.core import effects, errors, tree
from saem.core.avals import aval_of, is_array_like
from saem.core.dtypes import HOST_NUMBERS
from saem.core.memory_spaces import MemorySpace, placed, space_of
from saem.core.placement_types import Seen
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.refs import AbstractRef
from saem.core.trace import Tracer, bind, concrete_or_none
from saem.ops import sharding_rules, sum_rules
from saem.ops.constraints import constrained, prefix
from saem.ops.convert import copy
from saem.placement import devices
from saem.placement.devices import SingleDeviceSharding
from saem.placement.layouts import Format, Layout, check_layouts, format_of, space_of_sharding
from saem.placement.meshes import Mesh, mesh_context
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding, resolve
from saem.placement.spread import check_rank
from saem.placement.transfer_guards import explicitly, unwatched
from saem.transform.staging import staged_in


class _Word(str):
    """A word that prints without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


REUSE, COPY, DONATE = (_Word(f"ArrayCopySemantics.{name}") for name in (
    "REUSE_INPUT", "ALWAYS_COPY", "DONATE_INPUT"))


@primitive("device_put")
class DevicePut(Primitive):
    """The identity on each operand, onto its one of ``devices``.

    A device is also a sharding, a memory space, or None; inside a program, which runs in one place,
    a device is ignored.  ``srcs`` are the devices of operands, as far as they are known.
    """

    devices: tuple
    srcs: tuple = (None,)
    copy_semantics: tuple = (REUSE,)

    passes_nan = True
    multiple_results = True
    types_memory = True

    shard_results = sharding_rules.device_put
    sum_results = sum_rules.device_put
    starts_sums = True

    @property
    def requested_sharding(self) -> Any:
        return next((d for d in self.devices if isinstance(d, NamedSharding)), None)

    @property
    def mesh(self) -> Any:
        return getattr(self.requested_sharding, "mesh", None)

    @property
    def named_devices(self) -> tuple:
        return tuple(d for d in self.devices if isinstance(d, SingleDeviceSharding))

    def put(self, x: Any) -> Any:
        """Return the one value ``x`` placed."""
        return bind(self, x)[0]

    def typing(self, *avals):
        return [placed(a, space_named(d, space_of(a))) for a, d in zip(avals, self.devices)]

    def evaluate(self, *xs):
        return list(xs)

    def lower(self, ctx, *xs):
        outs = []
        for x, device, given, aval in zip(xs, self.devices, ctx.in_avals, ctx.out_avals):
            if isinstance(device, NamedSharding):
                x = constrained(ctx, whole(ctx, x, device, given), device)
            space = space_of(aval)
            named = isinstance(device, MemorySpace) or getattr(device, "memory_kind", None)
            if named and ctx.module.platform != "cpu":
                x = ctx.in_memory(x, "pinned_host" if space is MemorySpace.Host else "device")
            outs.append(x)
        return outs

    def jvp(self, primals, tangents):
        moved = [i for i, t in enumerate(tangents) if t is not None]
        part = DevicePut(*(tuple(field[i] for i in moved) for field in (
            self.devices, self.srcs, self.copy_semantics)))
        found = iter(bind(part, *(tangents[i] for i in moved)) if moved else ())
        return bind(self, *primals), [None if t is None else next(found) for t in tangents]

    def transpose(self, cts, *args):
        return [None if ct is None else self.back(ct, x, d, s)
                for ct, x, d, s in zip(cts, args, self.devices, self.srcs)]

    def back(self, ct: Any, x: UndefinedPrimal, device: Any, src: Any) -> Any:
        """Return a cotangent where its operand came from."""
        target = space_of(x.aval) if src is None and isinstance(device, MemorySpace) else src
        return DevicePut((target,), (device,), (COPY,)).put(ct)

    def batch(self, size, xs, dims):
        return bind(self, *xs), list(dims)

    def trimmed(self, needed: Sequence[bool]) -> tuple[DevicePut, list[bool], list[bool]]:
        """Return what does no more than is needed (see ``staging.dead_code_free``)."""
        kept = [tuple(v for v, n in zip(field, needed) if n)
                for field in (self.devices, self.srcs, self.copy_semantics)]
        return DevicePut(*kept), list(needed), list(needed)

    def eager(self, *xs: Any) -> list[Any]:
        """Place arrays outside any program."""
        return [put_one(x, d) for x, d in zip(xs, self.devices)]


def space_named(device: Any, here: MemorySpace) -> MemorySpace:
    """Return the memory that holds a value after it was put on ``device``."""
    if isinstance(device, MemorySpace):
        return device
    if isinstance(device, Format):
        device = device.sharding
    return space_of_sharding(device) if isinstance(device, _jaxlib.Sharding) else here


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: bool = False,
               may_alias: bool | None = None) -> Any:
    """Return pytree ``x`` on ``device`` (a Device, sharding, Format, memory space, or a pytree of
    them), committed.

    Without ``device`` values become uncommitted arrays on the default device; arrays stay.

    Raises: ValueError if a sharding or layout does not fit its value.

    >>> jax.device_put(np.array([1, 2]), jax.devices()[0])
    Array([1, 2], dtype=int32)
    """
    if may_alias and donate is True:
        raise ValueError("may_alias and donate cannot be True at the same time: a buffer that is "
                         "given away is not shared.")
    leaves, structure = tree.flatten(x)
    places = [d if isinstance(d, (_jaxlib.Device, MemorySpace, Format)) else
              resolve(d, "device_put") for d in prefix("device_put device", device, x)]
    given = prefix("device_put donate", donate, x)
    staged = staged_in() is not None
    constants = staged and not (may_alias is False or any(given) or any(places)) and all(
        isinstance(leaf, (np.ndarray, np.generic)) for leaf in leaves)
    if constants:
        return structure.unflatten(unwatched(_put_now, leaves, places))
    if staged or any(isinstance(leaf, Tracer) for leaf in leaves):
        how = tuple(DONATE if d else COPY if may_alias is False else REUSE for d in given)
        return structure.unflatten(
            _put_in_program(leaves, places, prefix("device_put src", src, x), how))
    placed = explicitly("explicit_device_put", _put_now, leaves, places, may_alias is False)
    for leaf, d, new in zip(leaves, given, placed):
        if d and isinstance(leaf, _jaxlib.ArrayImpl):
            _give_away(leaf, new)
    return structure.unflatten(placed)


def _put_in_program(leaves: list[Any], places: list[Any], srcs: list[Any],
                    how: tuple[Any, ...]) -> list[Any]:
    """Return what the equation of a traced program puts on ``places``.

    Where it is known where a value is, its cotangent goes back there.
    """
    for leaf, place in zip(leaves, places):
        if isinstance(place, NamedSharding):
            check_rank(place, aval_of(leaf), "device_put args")
        elif isinstance(place, SingleDeviceSharding):
            Seen.devices = True
    came_from = []
    for src, leaf in zip(srcs, leaves):
        known = concrete_or_none(leaf) if isinstance(leaf, Tracer) else leaf
        came_from.append(known.sharding if src is None and isinstance(known, _jaxlib.ArrayImpl)
                         else src)
    return bind(DevicePut(tuple(places), tuple(came_from), how), *leaves)


def _put_now(leaves: list[Any], places: list[Any], copied: bool = False) -> list[Any]:
    """Return arrays on ``places``; with ``copied`` none has a buffer of an array that was given."""
    placed = [put_one(leaf, place) for leaf, place in zip(leaves, places)]
    return [copy(new) if copied and _shares(leaf, new) else new
            for leaf, new in zip(leaves, placed)]


def _give_away(old: Any, new: Any) -> None:
    """Delete ``old``, which was put as ``new``, unless it was copied from device to device."""
    moved = hasattr(old.sharding, "_device") and hasattr(new.sharding, "_device")
    if not moved and not _shares(old, new):
        old.delete()


def _shares(old: Any, new: Any) -> bool:
    """Return whether an array that was put is the one given, or has buffers of it."""
    return isinstance(old, _jaxlib.ArrayImpl) and (
        old is new or not buffers_of(old).isdisjoint(buffers_of(new)))


def buffers_of(x: Any) -> set[int]:
    """Return where the parts of an array lie in the memory of this process's devices."""
    return {part.data.unsafe_buffer_pointer() for part in x.addressable_shards}


def put_one(x: Any, where: Any) -> Any:
    """Return one value, no tracer, where it is wanted."""
    if type(x) in held_as and isinstance(aval_of(x), AbstractRef):
        raise errors.explained(
            errors.ArgumentTypeError, "device_put.C7",
            f"device_put puts arrays, got a reference of type {aval_of(x).str_short()}.",
            advice="Put what it holds, jax.device_put(ref[...], …), and make a reference of that.")
    if isinstance(where, MemorySpace):
        return arrays.device_put(x, in_memory(x, where))
    if isinstance(where, Format):
        return put_format(x, where)
    if where is None and isinstance(x, HOST_NUMBERS):
        return put_value(x)
    return arrays.device_put(x, where)


def put_format(x: Any, wanted: Format) -> Any:
    """Return one value with the layout and sharding wanted.

    Raises: ValueError if they are left to be chosen.
    """
    if wanted.layout is Layout.AUTO:
        raise ValueError("sharding and layout in `Layout` instance should be concrete. Got layout: "
                         f"{wanted} for input {aval_of(x).str_short()}")
    if wanted.layout is None:
        return arrays.device_put(x, wanted.sharding)
    check_layouts("outputs", [wanted.layout], [aval_of(x)])
    x = arrays.device_put(x, wanted.sharding)
    have = format_of(x).layout
    return x if have is not None and have.same_order(wanted.layout) else with_layout(
        x, wanted.layout)


def in_memory(x: Any, space: MemorySpace) -> Any:
    """Return the sharding ``x`` has, or would get, in another kind of memory.

    Raises: ValueError for ``MemorySpace.Any``, which is no place.
    """
    if space is MemorySpace.Any:
        raise ValueError("device_put: MemorySpace.Any is no place; name Device or Host.")
    mesh = mesh_context.value
    sharding = x.sharding if isinstance(x, _jaxlib.Array) else NamedSharding(
        mesh, PartitionSpec()) if isinstance(mesh, Mesh) else devices.single_device(
        devices.default_device())
    return sharding.with_memory_kind(space.kind(sharding._device_assignment[0]))


def device_get(x: Any) -> Any:
    """Return pytree ``x`` with NumPy arrays in place of arrays, NumPy's scalars, and their like.

    >>> jax.device_get(jnp.array([1, 2]))
    array([1, 2], dtype=int32)
    """

    def get(leaf: Any) -> Any:
        held = isinstance(leaf, (_jaxlib.ArrayImpl, np.ndarray, np.generic)) or (
            hasattr(type(leaf), "__array__") and not is_array_like(leaf))
        return np.asarray(leaf) if held else leaf

    def get_all() -> Any:
        for leaf in tree.leaves(x):
            if isinstance(leaf, _jaxlib.ArrayImpl):
                leaf.copy_to_host_async()
        return tree.map_(get, x)

    return explicitly("explicit_device_get", get_all)


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays in pytree ``x`` are computed; returns ``x``.

    >>> jax.block_until_ready({"a": jnp.array([1, 2])})
    {'a': Array([1, 2], dtype=int32)}
    """
    arrays = []
    try:
        for leaf in tree.leaves(x):
            if isinstance(leaf, _jaxlib.ArrayImpl):
                arrays.append(leaf)
            elif hasattr(leaf, "block_until_ready"):
                leaf.block_until_ready()
        if len(arrays) == 1:
            arrays[0].block_until_ready()
        else:
            _jaxlib.batched_block_until_ready(arrays)
    except _jaxlib.JaxRuntimeError as error:
        failure = effects.with_cause(error)
        raise failure from failure.__cause__
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying all arrays in pytree ``x`` to the host; returns ``x`` at once.

    >>> jax.copy_to_host_async(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    for leaf in tree.leaves(x):
        if isinstance(leaf, _jaxlib.ArrayImpl):
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """Return the arrays of ``platform`` that are alive.

    >>> kept = jnp.array([1, 2])
    >>> any(array is kept for array in jax.live_arrays())
    True
    """
    return devices.backend(platform).live_arrays()

"""Which part of an array lies on which device?

A ``NamedSharding`` is a mesh with a ``PartitionSpec``, which names, for each axis of an array, the
mesh axes along which it is sharded.  From it follow the slice that each device holds, the
annotation in the program's text, and the form in which XLA speaks of it.

Read before: ``placement.meshes``, ``placement.partition_spec``.  Read after: ``placement.spread``.
Invariant: what is said to XLA and what it answers are inverse (tests/kernel/test_shardings.py).
Source: the documentation of jax.sharding; the Shardy dialect's reference.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from saem import _jaxlib
from saem.core import errors
from saem.core.placement_types import Seen
from saem.placement.devices import SingleDeviceSharding, onto
from saem.placement.meshes import (
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    mesh_context,
    mesh_entered,
)
from saem.placement.partition_spec import PartitionSpec, _entry, axes_of


class IndivisibleError(errors.ArgumentError):
    """An axis of an array cannot be sharded into equal parts."""


class DuplicateSpecError(errors.ArgumentError):
    """A spec shards two axes of an array along one axis of the mesh."""


def holds_addends(sharding: Any) -> bool:
    """Return whether devices hold addends of the values that are placed so."""
    spec = getattr(sharding, "spec", None)
    return spec is not None and bool(spec.unreduced)


def no_slices() -> Exception:
    """Return the error for slices that devices would hold, where they hold addends."""
    return errors.explained(
        NotImplementedError, "sharding.C7", "device_indices_map doesn't work with unreduced. The "
        "devices hold addends of a sum, no parts of the value.",
        advice="Add them up first: jax.reshard(x, P(...)).")


def tiles(mesh: Any, spec: PartitionSpec, ndim: int) -> tuple[int, ...]:
    """Return into how many parts ``spec`` divides each of ``ndim`` axes."""
    sizes = mesh.shape
    parts = [math.prod(sizes[a] for a in axes_of(entry)) for entry in spec.partitions]
    return (*parts, *(1,) * (ndim - len(parts)))


@onto(_jaxlib.NamedSharding)
class NamedSharding:
    """The array is sharded as ``spec`` says along the axes of ``mesh``.

    ``NamedSharding(mesh, spec, memory_kind=None)``; two with the same of all three are equal.
    Raises: ValueError if the spec names an axis the mesh does not have, or one twice.

    >>> mesh = jax.make_mesh((1,), ("data",))
    >>> jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data")).spec
    P('data',)
    """

    mesh: Any
    spec: PartitionSpec
    _memory_kind: str | None
    _internal_device_list: Any

    if TYPE_CHECKING:
        # What C++ brings, for who reads types.
        def __init__(self, mesh: Any, spec: Any, memory_kind: str | None = None): ...

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    @property
    def _device_assignment(self) -> tuple:
        self._need_devices("_device_assignment")
        return self.mesh._flat

    def _need_devices(self, what: str) -> None:
        """Refuse to say ``what`` of a mesh without devices.

        Raises: ValueError.
        """
        if not isinstance(self.mesh, Mesh):
            raise ValueError(f"{what} is not implemented for `jax.sharding.AbstractMesh`. "
                             f"{self.mesh} has no devices: use a sharding on a jax.sharding.Mesh.")

    @property
    def _is_concrete(self) -> bool:
        return isinstance(self.mesh, Mesh)

    @functools.cached_property
    def device_set(self) -> set:
        self._need_devices("device_set")
        return set(self.mesh._flat)

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def _addressable_device_assignment(self) -> tuple:
        """The devices of this process in their order, as checkpoint libraries ask for them."""
        here = self.mesh._flat[0].client.process_index()
        return tuple([d for d in self.mesh._flat if d.process_index == here])

    @property
    def addressable_devices(self) -> set:
        self._need_devices("addressable_devices")
        return set(self._addressable_device_assignment)

    @property
    def has_addressable_devices(self) -> bool:
        """Whether a device of this process holds a part."""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        self._need_devices("is_fully_addressable")
        return self._internal_device_list.is_fully_addressable

    @functools.cached_property
    def is_fully_replicated(self) -> bool:
        sizes, spec = self.mesh.shape, self.spec
        used = [a for entry in spec.partitions for a in axes_of(entry)]
        return all(sizes[a] == 1 for a in (*used, *spec.unreduced))

    def tiles(self, ndim: int) -> tuple[int, ...]:
        """Return into how many parts each of ``ndim`` axes is sharded."""
        return tiles(self.mesh, self.spec, ndim)

    def check_compatible_aval(self, shape: Sequence[int]) -> None:
        """Refuse a shape with fewer axes than the spec.

        Raises: ValueError.
        """
        if len(self.spec) > len(shape):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but "
                f"was applied to a value of rank {len(shape)}."
                f"{'' if shape else ' For scalars the PartitionSpec should be P()'}")

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of each device's part.

        Raises: IndivisibleError naming the axis; ValueError if the spec shards one that is not.
        """
        rank = len(global_shape)
        tiles = self.tiles(rank)
        if any(n != 1 for n in tiles[rank:]):
            self.check_compatible_aval(global_shape)
        tiles = tiles[:rank]
        for axis, (size, parts) in enumerate(zip(global_shape, tiles)):
            if size % parts:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {axis} is partitioned {parts} times, "
                    f"but the dimension size is {size} (full shape: {tuple(global_shape)}, "
                    f"per-dimension tiling factors: {list(tiles)} should evenly divide the shape)",
                    tag="sharding.C1")
        return tuple(size // parts for size, parts in zip(global_shape, tiles))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
        """Return which slice of an array each device holds.

        Raises: NotImplementedError where they hold addends of a sum.
        """
        self._need_devices("_device_assignment")
        if self.spec.unreduced:
            raise no_slices()
        return dict(_indices(self, tuple(global_shape)))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict:
        here = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in here}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Return whether ``other`` puts the same parts of rank-``ndim`` arrays on each device.

        Raises: ValueError if one of them is for arrays of higher rank.
        """
        if self is other or self == other:
            return True
        for one in (self, other):
            if isinstance(one, NamedSharding) and len(one.spec) > ndim \
                    and any(one.spec[ndim:]):
                raise ValueError(f"Sharding {one} is only valid for values of rank at least "
                                 f"{len(one.spec)}, but is_equivalent_to was asked for rank {ndim}")
        if getattr(other, "num_devices", None) != self.num_devices:
            return False
        if tuple(other._device_assignment) != self.mesh._flat or (
                other.memory_kind != self.memory_kind):
            return False
        return self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **changes: Any) -> NamedSharding:
        """Return this sharding with another ``mesh``, ``spec`` or ``memory_kind``."""
        spec = changes.get("spec", self.spec)
        return NamedSharding(changes.get("mesh", self.mesh), spec if isinstance(spec, PartitionSpec)
                             else PartitionSpec(*spec),
                             memory_kind=changes.get("memory_kind", self.memory_kind))

    @property
    def replicated_axes(self) -> frozenset:
        spec = self.spec
        used = {a for entry in spec.partitions for a in axes_of(entry)}
        used |= spec.unreduced | spec.reduced
        return frozenset(n for n in self.mesh.axis_names if n not in used)

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return _hlo_sharding(self, ndim)

    def __reduce__(self) -> tuple:
        return _named, (self.mesh, self.spec, self.memory_kind)

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"


def _named(mesh: Any, spec: PartitionSpec, memory_kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


def check_spec(mesh: Any, spec: PartitionSpec) -> None:
    """Refuse a spec that ``mesh`` cannot follow.

    Raises: TypeError for a non-spec; ValueError.
    """
    if not isinstance(spec, PartitionSpec):
        raise TypeError(f"NamedSharding needs a PartitionSpec, got {spec!r}")
    for what, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for axis in axes:
            if axis not in mesh.axis_names:
                raise ValueError(f"{what} axes {axis} is not found in mesh.axis_names="
                                 f"{tuple(mesh.axis_names)}. Got pspec={spec!r}")
            if mesh.axis_types[mesh.axis_names.index(axis)] is not AxisType.Explicit:
                raise ValueError(
                    f"{what} axes can only refer to mesh axes that is of type `Explicit`. Got "
                    f"{what.lower()} axes: {axes} and mesh: {mesh}")
    used: set = set()
    if PartitionSpec.UNCONSTRAINED in spec.partitions and AxisType.Auto not in mesh.axis_types:
        raise ValueError(
            f"{spec!r} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got "
            f"mesh axis_types: {mesh.axis_types}. Write None for an axis that is not sharded.")
    for entry in spec.partitions:
        for axis in axes_of(entry):
            if axis not in mesh.axis_names:
                raise ValueError(f"Resource axis: {axis} of {spec!r} is not found in mesh: "
                                 f"{tuple(mesh.axis_names)}.")
            if axis in used:
                raise DuplicateSpecError(
                    "A single NamedSharding spec specification can map every mesh axis to at most "
                    f"one positional dimension, but {spec!r} has duplicate entries for `{axis}`")
            used.add(axis)


_jaxlib.spec_checks.append(check_spec)


@functools.lru_cache(4096)
def _indices(sharding: NamedSharding, shape: tuple[int, ...]) -> tuple:
    part = sharding.shard_shape(shape)
    mesh = sharding.mesh
    number = {name: i for i, name in enumerate(mesh.axis_names)}
    given = sharding.spec.partitions[:len(shape)]
    entries = [axes_of(e) for e in given] + [()] * (len(shape) - len(given))
    found = []
    for coordinates, device in zip(np.ndindex(*mesh.axis_sizes), mesh._flat):
        index = []
        for axes, size in zip(entries, part):
            if all(mesh.axis_sizes[number[a]] == 1 for a in axes):
                index.append(slice(None))
                continue
            block = 0
            for axis in axes:
                block = block * mesh.axis_sizes[number[axis]] + coordinates[number[axis]]
            index.append(slice(block * size, (block + 1) * size))
        found.append((device, tuple(index)))
    return tuple(found)


@functools.lru_cache(4096)
def stacked(sharding: NamedSharding, axis: int, entry: Any) -> NamedSharding:
    """Return the sharding of a stack of values placed as ``sharding`` says.

    Their new ``axis`` is sharded as ``entry`` says.
    """
    entries = list(sharding.spec.partitions)
    entries += [None] * (axis - len(entries))
    entries.insert(axis, entry)
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def _hlo_sharding(sharding: NamedSharding, ndim: int) -> Any:
    if sharding.is_fully_replicated:
        return _jaxlib.HloSharding.replicate()
    mesh, spec = sharding.mesh, sharding.spec
    number = {name: i for i, name in enumerate(mesh.axis_names)}
    used = [number[a] for entry in spec.partitions for a in axes_of(entry)]
    sums = [number[a] for a in mesh.axis_names if a in spec.unreduced]
    rest = [i for i in range(len(mesh.axis_names)) if i not in (*used, *sums)]
    kinds = _jaxlib.OpSharding.Type
    shared = [(math.prod(mesh.axis_sizes[i] for i in axes), kind) for axes, kind in (
        (sums, kinds.UNREDUCED), (rest, kinds.REPLICATED))]
    shared = [(count, kind) for count, kind in shared if count > 1]
    return _jaxlib.HloSharding.iota_tile(
        (*sharding.tiles(ndim)[:ndim], *(count for count, _ in shared)), mesh.axis_sizes,
        (*used, *sums, *rest), [kind for _, kind in shared])


def named_from_xla(chosen: Any, meshes: Sequence[Mesh], ndim: int) -> NamedSharding:
    """Return the sharding that XLA chose (an OpSharding or HloSharding) as a NamedSharding.

    Its mesh is the first of ``meshes`` (of the same devices in one order) whose axes can express
    it, else one made of these devices.
    Raises: ValueError if none can.
    """
    hlo = chosen if isinstance(chosen, _jaxlib.HloSharding) else (
        _jaxlib.HloSharding.from_proto(chosen))
    if hlo.is_replicated() or hlo.is_manual() or hlo.is_unknown() or not hlo.is_tiled():
        return NamedSharding(meshes[0], PartitionSpec())
    tiles = tuple(hlo.tile_assignment_dimensions()[:ndim])
    order = np.array(hlo.tile_assignment_devices(), np.int64).tobytes()
    for mesh in (*meshes, finest_mesh(meshes[0])):
        found = _expressed(mesh, tiles, order)
        if found is not None:
            return NamedSharding(mesh, PartitionSpec(*found))
    raise errors.explained(
        errors.ArgumentError, "sharding.C8", "XLA shards a result in a way that no mesh of these "
        f"{meshes[0].size} devices in their order expresses: {hlo}.",
        advice="Say how it is to be sharded: jax.jit(f, out_shardings=...).")


@functools.lru_cache(256)
def finest_mesh(mesh: Mesh) -> Mesh:
    """Return the mesh of the same devices in the same order whose axes cannot be divided."""
    sizes, rest, prime = [], mesh.size, 2
    while rest > 1:
        while rest % prime:
            prime += 1
        sizes.append(prime)
        rest //= prime
    names = tuple(f"_axis_{i}" for i in range(len(sizes)))
    return Mesh(np.array(mesh._flat, object).reshape(sizes), names,
                (AxisType.Auto,) * len(sizes))


@functools.lru_cache(4096)
def _expressed(mesh: Mesh, tiles: tuple[int, ...], order: bytes) -> tuple | None:
    """Return a spec over ``mesh`` that shards into ``tiles`` in the given order of devices."""
    places = np.arange(mesh.size).reshape(mesh.axis_sizes)
    wanted = np.frombuffer(order, np.int64)

    def fill(rest: tuple[int, ...], free: tuple[int, ...], done: tuple[tuple[int, ...], ...]):
        if not rest:
            used = [a for axes in done for a in axes]
            return done if _same_blocks(places, used, free, wanted) else None
        for axes in _products(mesh.axis_sizes, free, rest[0]):
            left = tuple(a for a in free if a not in axes)
            found = fill(rest[1:], left, (*done, axes))
            if found is not None:
                return found
        return None

    found = fill(tiles, tuple(range(len(mesh.axis_sizes))), ())
    if found is None:
        return None
    spec = [_entry(tuple(mesh.axis_names[a] for a in axes)) for axes in found]
    while spec and spec[-1] is None:
        spec.pop()
    return tuple(spec)


def _same_blocks(places: np.ndarray, used: Sequence[int], rest: Sequence[int],
                 wanted: np.ndarray) -> bool:
    """Return whether cutting along ``used`` gives each block the devices XLA gave it."""
    got = places.transpose((*used, *rest))
    copies = math.prod(places.shape[a] for a in rest)
    mine = np.sort(got.reshape(-1, copies), axis=1)
    return bool(np.array_equal(mine, np.sort(wanted.reshape(-1, copies), axis=1)))


def _products(sizes: Sequence[int], free: tuple[int, ...], product: int):
    """Yield the ordered choices of ``free`` axes (of size > 1) whose sizes multiply to it."""
    if product == 1:
        yield ()
        return
    for axis in free:
        if sizes[axis] > 1 and product % sizes[axis] == 0:
            left = tuple(a for a in free if a != axis)
            for more in _products(sizes, left, product // sizes[axis]):
                yield (axis, *more)


def resolve(given: Any, what: str) -> Any:
    """Return what a caller gave as a sharding: a PartitionSpec stands on the mesh in force.

    Raises: RuntimeError if there is no mesh, TypeError for a non-sharding; of device_put,
    ValueError for both.
    """
    if given is None or isinstance(given, _jaxlib.Sharding):
        return given
    if isinstance(given, _jaxlib.Device):
        return SingleDeviceSharding(given)
    caller, argument = (what, "shardings") if what == "with_sharding_constraint" else ("jit", what)
    if isinstance(given, (PartitionSpec, tuple)):
        mesh = mesh_context.value
        if mesh is None and what == "with_sharding_constraint":
            mesh = mesh_entered.value
        if mesh is None:
            advice = f"Or write NamedSharding(mesh, {given!r})."
            if what == "device_put":
                raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is "
                                 f"passed to device_put. {advice}")
            raise RuntimeError(
                f"{caller} requires a non-empty mesh in context if you are passing "
                f"`PartitionSpec`s to {argument}. You can define a context mesh via "
                f"`jax.set_mesh(mesh)`. {advice}")
        return NamedSharding(mesh, given)
    if what == "device_put":
        raise ValueError("`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, "
                         "`jax.Device`, `Format`, `jax.memory.Space` or a pytree of these values. "
                         f"Received invalid value: {given}")
    raise TypeError(f"{argument} leaf specifications are expected to be PartitionSpec instances or "
                    f"None, but got {given}. Shardings are taken too.")


def off_mesh(x: Any) -> bool:
    """Return whether ``x``, a value outside traces, was never put on a mesh with Explicit axes."""
    if isinstance(x, _jaxlib.ArrayImpl):
        mesh = getattr(x._sharding, "mesh", None)
        return mesh is None or not mesh.explicit_axes
    return isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))


def on_devices(sharding: Any, *others: Any) -> Any:
    """Return ``sharding`` on the mesh that an AbstractMesh of it describes.

    That is the mesh of one of ``others``, else the mesh in force; without any it stays as it is.
    """
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or isinstance(mesh, Mesh):
        return sharding
    for known in (*[getattr(other, "mesh", None) for other in others], mesh_context.value):
        if isinstance(known, Mesh) and known.abstract_mesh == mesh:
            return NamedSharding(known, sharding.spec, memory_kind=sharding.memory_kind)
    return sharding


def annotation(sharding: NamedSharding, ndim: int, is_open: bool = False) -> str:
    """Return ``[{"x"}, {}]``, what Shardy writes for a value of rank ``ndim``.

    Behind it stand axes of sums: ``, unreduced={"y"}``.
    If it ``is_open``, ``[{"x", ?}, {?}]``: the partitioner may shard axes further, along Auto axes
    of the mesh: ``, replicated={"z"}`` names the Explicit ones that are left.
    """
    spec, mesh = sharding.spec, sharding.mesh
    entries = list(spec.partitions) + [None] * (ndim - len(spec))
    dims = ", ".join(
        "{?}" if e is PartitionSpec.UNCONSTRAINED
        else "{" + ", ".join([*(f'"{a}"' for a in axes_of(e)), *("?" * is_open)]) + "}"
        for e in entries)
    taken = spec.unreduced.union(*map(axes_of, entries))
    whole = ", ".join(f'"{a}"' for a in mesh.explicit_axes if is_open and a not in taken)
    replicated = f", replicated={{{whole}}}" if whole else ""
    return f"[{dims}]{replicated}{unreduced_text(mesh, spec)}"


def unreduced_text(mesh: Any, spec: PartitionSpec) -> str:
    """Return ``, unreduced={"x"}``, what Shardy writes behind the entries, "" if there are none."""
    names = ", ".join(f'"{a}"' for a in mesh.axis_names if a in spec.unreduced)
    return f", unreduced={{{names}}}" if names else ""


def mesh_text(mesh: Mesh | AbstractMesh) -> str:
    """Return ``<["x"=4, "y"=2]>``."""
    axes = ", ".join(f'"{n}"={s}' for n, s in mesh.shape_tuple)
    return f"<[{axes}]>"


@functools.lru_cache(256)
def _along_none(mesh: AbstractMesh, ndim: int) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec(*(None,) * ndim))


def unsharded(ndim: int) -> NamedSharding:
    """Return the sharding of rank ``ndim`` along no axis of the mesh in force."""
    return _along_none(get_abstract_mesh(), ndim)


def requested_sharding(given: Any, ndim: int, who: str) -> Any:
    """Return what a caller gave ``who`` as ``out_sharding``, as ``named_sharding`` does.

    Raises: TypeError and ValueError where it cannot be followed.
    """
    if given is None:
        return None
    check_requested(given, who)
    return named_sharding(given, ndim)


def check_requested(given: Any, who: str, other_mesh: bool = False) -> None:
    """Refuse an ``out_sharding`` that a program cannot follow.

    With ``other_mesh`` its devices may be those of another mesh than the one in force.
    Raises: TypeError unless it is a NamedSharding or a PartitionSpec; ValueError for one without a
    mesh, for another mesh, or along axes that are not Explicit.
    """
    if isinstance(given, PartitionSpec):
        mesh, spec = required_mesh(given), given
    elif isinstance(given, NamedSharding):
        mesh, spec = given.mesh, given.spec
        there = get_abstract_mesh()
        if not (other_mesh or there.empty) and isinstance(mesh, Mesh) \
                and mesh.abstract_mesh != there:
            raise errors.explained(
                errors.ArgumentError, "sharding.C11",
                f"Context mesh {there} should match the mesh of sharding {mesh.abstract_mesh} "
                f"passed to {who}.", advice="Give a PartitionSpec, which means the mesh in force.")
    else:
        raise errors.explained(
            errors.ArgumentTypeError, "sharding.C12",
            f"`out_sharding` argument of {who} only supports instances of `NamedSharding` or "
            f"`PartitionSpec`. Got {given} of type: {type(given)}",
            advice="For example out_sharding=jax.P('x'), under jax.set_mesh(mesh).")
    types = dict(zip(mesh.axis_names, mesh.axis_types))
    for name in [name for entry in spec.partitions for name in axes_of(entry)]:
        if types.get(name, AxisType.Explicit) is not AxisType.Explicit:
            raise errors.explained(
                errors.ArgumentError, "sharding.C13",
                f"PartitionSpec passed to {who} cannot contain axis names that are of type Auto or "
                f"Manual. Got PartitionSpec: {spec} with axis name: {name} of type: {types[name]}.",
                advice="Along such axes use jax.lax.with_sharding_constraint.")


def required_mesh(spec: PartitionSpec) -> AbstractMesh:
    """Return the mesh in force, to which ``spec`` refers.  Raises: ValueError if there is none."""
    mesh = get_abstract_mesh()
    if mesh.empty:
        raise errors.explained(
            errors.ArgumentError, "sharding.C3",
            "Using PartitionSpec when you are not under a mesh context is not allowed. Please "
            "pass a NamedSharding instance or enter into a mesh context via `jax.set_mesh`. "
            f"Got {spec!r}", advice="For example with jax.set_mesh(mesh): ...")
    return mesh


def named_sharding(given: Any, ndim: int) -> Any:
    """Return a place that a caller gave as a NamedSharding of rank ``ndim``.

    None where the mesh has no Explicit axis, so that types say nothing.  Entries for axes that the
    value does not have may be there if they are None.
    Raises: ValueError for a PartitionSpec without a mesh, or one that is too long.
    """
    if given is None or not Seen.placements:
        return None
    if isinstance(given, PartitionSpec):
        given = NamedSharding(required_mesh(given), given)
    if not isinstance(given, NamedSharding) or not given.mesh.explicit_axes:
        return None
    if len(given.spec) > ndim:
        if any(entry is not None for entry in given.spec.partitions[ndim:]):
            raise errors.explained(
                errors.ArgumentError, "sharding.C4",
                f"Sharding {given} has more entries than the value has axes: {ndim}.",
                advice="Give at most one entry for each axis.")
        given = given.update(spec=given.spec.update(partitions=given.spec.partitions[:ndim]))
    return given

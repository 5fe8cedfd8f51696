"""Where does a program run?

On one device, or on those of a mesh (a ``Spread``).  Committed arguments, shardings that were
given to ``jit``, and meshes and devices that the program names (``Named``) decide, together its
``Demands``; else the default device.

Read before: ``placement.shardings``, ``compile.lowering``.  Read after: ``compile.dispatch``.
Invariant: all that is committed or demanded in one call is on the same devices, in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saem import _jaxlib
from saem.compile.lowering import needed_equations
from saem.compile.text import physical_aval
from saem.core import errors, hi_types, sharded, source
from saem.core.avals import ShapedArray, aval_of
from saem.core.hi_types import AbstractHigh, is_high
from saem.core.jaxpr import ClosedJaxpr, Jaxpr, sub_jaxprs
from saem.core.placement_types import Seen
from saem.placement.devices import default_device, placement_name
from saem.placement.meshes import Mesh, mesh_context
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding, on_devices

ArrayImpl = _jaxlib.ArrayImpl

# From the type of a value held as another array (a typed PRNG key) to the function that gives it.
held_as: dict[type, Callable[[Any], Any]] = {}


def hold(x: Any) -> Any:
    """Return the array by which a device holds ``x``."""
    function = held_as.get(type(x))
    return x if function is None else function(x)


class Spread(NamedTuple):
    """A place that is several devices: the mesh that orders them, and the shardings there.

    ``ins`` and ``outs`` have one for each argument and result, None where the compiler chooses.
    ``moves``: arguments of the call are on these devices in another order than demanded.
    ``by_type``: types say how all values are sharded; XLA chooses along Auto axes alone.
    """

    mesh: Any
    ins: tuple
    outs: tuple
    moves: bool = False
    by_type: bool = False

    @property
    def has_devices(self) -> bool:
        """Whether the mesh is one of devices (else it says only how many there are to be)."""
        return isinstance(self.mesh, Mesh)

    @property
    def devices(self) -> tuple:
        """The devices in order.

        Raises: ValueError if the mesh has none.
        """
        if not self.has_devices:
            raise ValueError(
                f"the program names {self.mesh}, which has no devices: put it under "
                "jax.set_mesh(mesh), or give its arguments a sharding. For its text alone: "
                "jax.jit(f).trace(*args).lower(lowering_platforms=('cpu',)), or jax.export.")
        return self.mesh._flat

    @property
    def slots(self) -> tuple:
        """The devices, or None for each that the mesh is to have where it has none."""
        return self.mesh._flat if self.has_devices else (None,) * self.mesh.size

    def on(self, devices: Sequence[Any]) -> Spread:
        """Return this place, whose mesh has no devices, on ``devices``.

        Raises: ValueError if there are more or fewer than its mesh is to have.
        """
        def placed(sharding: Any) -> Any:
            return None if sharding is None else NamedSharding(
                mesh_on(sharding.mesh, devices), sharding.spec, memory_kind=sharding.memory_kind)

        return self._replace(mesh=mesh_on(self.mesh, devices), ins=tuple(map(placed, self.ins)),
                             outs=tuple(map(placed, self.outs)))

    @property
    def meshes(self) -> tuple:
        """The mesh, and those of arguments and results that are on other meshes of its devices."""
        named = [s.mesh for s in (*self.ins, *self.outs) if isinstance(s, NamedSharding)]
        return tuple(dict.fromkeys([self.mesh, *named]))

    def as_typed(self, closed: ClosedJaxpr) -> Spread:
        """Return this place with results sharded as their types, where all axes are Explicit."""
        if not Seen.placements:
            return self
        # Shardings that were given to jit alone are in no type: there XLA chooses.
        typed = mesh_context.value is not None or any(
            a.explicit is not None for a in closed.in_avals)
        by_type = typed and bool(self.mesh.explicit_axes)
        if not self.has_devices:
            return self._replace(by_type=by_type)
        given = self.outs or (None,) * len(closed.out_avals)
        return self._replace(by_type=by_type, outs=tuple(
            self.typed(aval) if s is None and (typed or aval.explicit is not None) else s
            for s, aval in zip(given, closed.out_avals)))

    def typed(self, aval: ShapedArray) -> NamedSharding | None:
        """Return the sharding that ``aval`` names, None if XLA chooses along Auto axes."""
        mesh = self.mesh_of(aval.sharding.mesh)
        explicit = mesh.are_all_axes_explicit and mesh.axis_names
        return NamedSharding(mesh, aval.sharding.spec) if explicit else None

    def mesh_of(self, abstract: Any) -> Mesh:
        """Return the mesh of the devices here whose axes are those that a type names.

        It is one that an argument or result is on, else one with the devices in their order here.
        """
        if not abstract.shape_tuple:
            return self.mesh
        fitting = [m for m in self.meshes if m.shape_tuple == abstract.shape_tuple]
        if fitting:
            return next((m for m in fitting if m.axis_types == abstract.axis_types), fitting[0])
        return mesh_on(abstract, self.devices)

    def with_results(self, count: int) -> Spread:
        """Return this place for a program with ``count`` further results."""
        return self._replace(outs=self.outs and (*self.outs, *(None,) * count))

    def with_token(self) -> Spread:
        """Return this place for a program that also takes and gives a token."""
        return self._replace(ins=self.ins and (None, *self.ins),
                             outs=self.outs and (None, *self.outs))


class Demands(NamedTuple):
    """What a program requires of its place.

    Shardings by argument and result, a mesh on which it must run, layouts, and the shardings to one
    device that its equations name.
    """

    ins: tuple = ()
    outs: tuple = ()
    mesh: Any = None
    in_layouts: tuple = ()
    out_layouts: tuple = ()
    devices: tuple = ()


NO_DEMANDS = Demands()


def placement(args: Sequence[Any], demands: Demands = NO_DEMANDS,
              used: Callable[[], Sequence[bool]] | None = None) -> tuple[Any, bool]:
    """Return where a program of ``args`` runs (a device or a Spread), and whether it must.

    ``used`` gives for each argument whether the program takes it: others do not count, but where
    the program names a mesh without devices, which it then has from any argument.
    Raises: ValueError if two committed arguments, or one and a demand, are on different devices.
    """
    if AbstractHigh.used and any(is_high(aval_of(x)) for x in args):
        arrays, owners = hi_types.chapter.arrays_with_owners(args)
        if demands.ins:
            demands = demands._replace(ins=tuple(demands.ins[i] for i in owners))
        try:
            return placement_of(arrays, demands, None)
        except IncompatiblePlaces as error:
            raise error.of([owners[i] for i in error.numbers]) from None
    return placement_of(args, demands, used)


def placement_of(args: Sequence[Any], demands: Demands,
                 used: Callable[[], Sequence[bool]] | None) -> tuple[Any, bool]:
    """Return what ``placement`` does, of arguments that are arrays."""
    chosen: list[Any] = []
    for x in args:
        if type(x) in held_as:
            x = held_as[type(x)](x)
        chosen.append(x._sharding if type(x) is ArrayImpl and x._committed else None)
    first = next((s for s in chosen if s is not None), None)
    abstract = demands.mesh is not None and not isinstance(demands.mesh, Mesh)
    if used is not None and not abstract and (first is not None or demands.ins):
        chosen, demands = only_used(used(), chosen, demands)
        first = next((s for s in chosen if s is not None), None)
    for number, sharding in enumerate(chosen):
        if sharding is not None and sharding is not first:
            check_same_devices(first, sharding, (chosen.index(first), number))
    if demands is NO_DEMANDS and mesh_context.value is None:
        if first is None:
            return default_device(), False
        if hasattr(first, "_device"):
            return first._device, True
    return _demanded(chosen, args, demands)


def only_used(used: Sequence[bool], chosen: Sequence[Any],
              demands: Demands) -> tuple[list[Any], Demands]:
    """Return the shardings of arguments, and the demands, without those of unused arguments."""
    if demands.ins:
        demands = demands._replace(
            ins=tuple([s if needed else None for s, needed in zip(demands.ins, used)]))
    return [s if needed else None for s, needed in zip(chosen, used)], demands


def _demanded(chosen: list[Any], args: Sequence[Any], demands: Demands) -> tuple[Any, bool]:
    """Return the place of a program on several devices, or with demands."""
    demands = on_known_devices(demands, chosen)
    ins = list(demands.ins) or [None] * len(chosen)
    moves = False
    for number, (have, wanted) in enumerate(zip(chosen, ins)):
        if wanted is None:
            ins[number] = have
        elif have is not None:
            if not same_partition(wanted, have, len(physical_aval(aval_of(args[number])).shape)):
                raise mismatch(wanted, have, number)
            moves |= wanted._device_assignment != have._device_assignment
    known = [s for s in (*ins, *demands.outs, *demands.devices) if s is not None]
    mesh = demands.mesh
    for sharding in known:
        if not isinstance(mesh, Mesh) and isinstance(sharding, NamedSharding):
            mesh = sharding.mesh
    if mesh is None:
        single = next((s for s in known if hasattr(s, "_device")), None)
        if single is not None:
            for sharding in known:
                check_same_devices(single, sharding, ())
            return single._device, True
        mesh = mesh_context.value if isinstance(mesh_context.value, Mesh) else None
        if mesh is None:
            return default_device(), False
    if not isinstance(mesh, Mesh):
        mesh = with_devices(mesh, known)
    everywhere = NamedSharding(mesh, PartitionSpec())
    for number, sharding in enumerate((*ins, *demands.outs, *demands.devices)):
        if sharding is not None and isinstance(mesh, Mesh):
            check_same_devices(everywhere, sharding, (number,) if number < len(ins) else ())
    return Spread(mesh, tuple(ins), tuple(demands.outs), moves), True


def on_known_devices(demands: Demands, chosen: Sequence[Any]) -> Demands:
    """Return demands whose shardings have devices, where some are on a mesh without any.

    It is the mesh of an argument, of another demand, or the one in force, if there is one.
    """
    known = [s for s in (*chosen, *demands.ins, *demands.outs) if s is not None]
    if all(isinstance(s.mesh, Mesh) for s in known if isinstance(s, NamedSharding)):
        return demands

    def placed(sharding: Any) -> Any:
        sharding = on_devices(sharding, *known)
        if not isinstance(sharding, NamedSharding) or isinstance(sharding.mesh, Mesh):
            return sharding
        return NamedSharding(with_devices(sharding.mesh, known), sharding.spec,
                             memory_kind=sharding.memory_kind)

    return demands._replace(ins=tuple(map(placed, demands.ins)),
                            outs=tuple(map(placed, demands.outs)))


def with_devices(mesh: Any, known: Sequence[Any]) -> Any:
    """Return the mesh in force for one without devices; of a single device, the one in use.

    Where there is neither it is returned as it is: then there is only the program's text.
    """
    if isinstance(mesh_context.value, Mesh):
        return mesh_context.value
    if mesh.size != 1:
        return mesh
    device = next((s._device for s in known if hasattr(s, "_device")), None) or default_device()
    return mesh_on(mesh, [device])


def mesh_on(mesh: Any, devices: Sequence[Any]) -> Mesh:
    """Return ``mesh``, whose own devices do not count, on ``devices``.

    Raises: ValueError if there are more or fewer than it has places.
    """
    if len(devices) != mesh.size:
        raise ValueError(f"{mesh} has places for {mesh.size} devices, and got {len(devices)}.")
    return Mesh(np.array(devices, object).reshape(mesh.axis_sizes), mesh.axis_names,
                mesh.axis_types)


class Named(NamedTuple):
    """The places that equations name: a mesh, and shardings to one device."""

    mesh: Any = None
    devices: tuple = ()

    def demands(self, ins: tuple = (), outs: tuple = ()) -> Demands:
        """Return what these places and shardings of arguments and results require."""
        if not ins and not outs and self.mesh is None and not self.devices:
            return NO_DEMANDS
        return Demands(ins, outs, self.mesh, devices=self.devices)


def named_inside(jaxpr: Jaxpr) -> Named:
    """Return the places that needed equations name, also inside others.

    A mesh with devices comes before one without.
    """
    mesh, devices = None, ()
    for eqn in needed_equations(jaxpr)[0]:
        found = named_by(eqn.operation)
        devices += found.devices
        if not isinstance(mesh, Mesh) and found.mesh is not None:
            mesh = found.mesh
    return Named(mesh, tuple(dict.fromkeys(devices)))


def named_by(prim: Any) -> Named:
    """Return the places that a primitive, or a program inside it, names."""
    mesh, devices = prim.mesh, prim.named_devices
    if mesh is None and Seen.placements:
        mesh = getattr(sharded.asked_for(prim), "mesh", None)
    # Only primitives with several results have programs inside.
    for _, inner in sub_jaxprs(prim) if prim.multiple_results else ():
        found = named_in(inner)
        mesh = found.mesh if mesh is None else mesh
        devices += found.devices
    return Named(mesh, devices)


def named_in(program: ClosedJaxpr | Jaxpr) -> Named:
    """Return the places that equations of ``program`` name, looked for once."""
    if isinstance(program, Jaxpr):  # among the parameters of a user's primitive
        return named_inside(program)
    return program.derived("places", lambda: named_inside(program.jaxpr))


def devices_of(where: Any) -> tuple:
    """Return the devices of a place: a device or a ``Spread``."""
    return where.devices if isinstance(where, Spread) else (where,)


class IncompatiblePlaces(errors.ArgumentError):
    """Arguments are on devices where the program cannot run; ``numbers`` are theirs.

    ``{}`` in the sentence is their place until ``named`` puts in the caller's names.
    """

    def __init__(self, sentence: str, numbers: tuple[int, ...], advice: str):
        self.form, self.numbers = sentence, numbers
        shown = sentence.replace("{}", " and ".join(f"argument {n}" for n in numbers))
        super().__init__(shown, tag="device.C1", where=source.here(), advice=advice)

    def of(self, numbers: Sequence[int]) -> IncompatiblePlaces:
        """Return this error with other numbers of the arguments."""
        return IncompatiblePlaces(self.form, tuple(numbers), self.advice)

    def named(self, names: Sequence[str], of: str) -> IncompatiblePlaces:
        """Return this error with the arguments called by their names."""
        called = " and ".join(f"argument {names[n]} of {of}" for n in self.numbers)
        return IncompatiblePlaces(self.form.replace("{}", called), self.numbers, self.advice)


def same_partition(wanted: Any, have: Any, ndim: int) -> bool:
    """Return whether two shardings divide arrays into the same parts, on whatever devices.

    Then ``jit`` moves the argument.
    """
    return wanted._to_xla_hlo_sharding(ndim) == have._to_xla_hlo_sharding(ndim)


def mismatch(wanted: Any, have: Any, *numbers: int) -> IncompatiblePlaces:
    """Return the error for an argument (of a number, if known) that ``jit`` wants otherwise."""
    which = " for {}" if numbers else ""
    return IncompatiblePlaces(
        "Sharding passed to jit does not match the sharding on the respective arg. "
        f"Got jit sharding: {wanted}, arg sharding: {have}{which}.", numbers,
        "Place the argument first: jax.device_put(x, sharding); or leave in_shardings out.")


def check_same_devices(a: Any, b: Any, numbers: tuple[int, ...]) -> None:
    """Refuse two shardings over other devices, or in another order, in one program.

    ``numbers`` are of arguments.
    """
    if a._device_assignment != b._device_assignment:
        got = " for {}" if numbers else ""
        raise IncompatiblePlaces(
            "Received incompatible devices for jitted computation. Got values on "
            f"{place_names(a)} and {place_names(b)}{got}.", numbers,
            "Move one of them: jax.device_put(x, device) or jax.device_put(x, y.sharding).")


def place_names(sharding: Any) -> str:
    """Return ``cpu:0``, ``cpu:0..7`` or ``cpu:3,2,1,0``, as messages name devices in order."""
    platform, first = placement_name(sharding._device_assignment[0]).split(":")
    ids = [d.id for d in sharding._device_assignment]
    if len(ids) == 1:
        return f"{platform}:{first}"
    in_order = ids == list(range(ids[0], ids[0] + len(ids)))
    return f"{platform}:{first}..{ids[-1]}" if in_order else f"{platform}:{','.join(map(str, ids))}"

"""Where is a value placed, as far as its type says it?

A type names a placement only where it is not the usual one: the Explicit mesh axes that shard the
value, the axes along which it varies inside ``shard_map`` or is a sum of what the devices hold, and
the memory that holds it.

Read before: nothing.  Read after: ``core.avals``, ``placement.shardings``.
Invariant: equal placements mean that one compiled program serves both values.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Hashable
from typing import Any, ClassVar, NamedTuple

from saem.core.record import Record


class MemorySpace(enum.Enum):
    """A kind of memory, as a place to put values: that of the device, or of its host."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    def kind(self, device: object) -> str:
        """Return the name that ``device`` has for this memory."""
        return "pinned_host" if self is MemorySpace.Host else _own_kind(device)


def _own_kind(device: Any) -> str:
    return device.default_memory().kind


NOWHERE: frozenset = frozenset()


class Sums(NamedTuple):
    """Along which mesh axes the devices hold addends of a value, and along which its cotangent's.

    Along ``unreduced`` axes the value is the sum over the devices; along ``reduced`` ones each
    device has it whole, and its cotangent is unreduced.
    """

    unreduced: frozenset = NOWHERE
    reduced: frozenset = NOWHERE

    @property
    def any(self) -> bool:
        return bool(self.unreduced or self.reduced)

    @property
    def dual(self) -> Sums:
        """Those of the cotangent."""
        return Sums(self.reduced, self.unreduced)


NO_SUMS = Sums()


class ManualAxisType(Record):
    """Along which manual axes a value varies, and along which it is unreduced or reduced.

    Raises: ValueError if an axis is in two of them.
    """

    varying: frozenset = NOWHERE
    unreduced: frozenset = NOWHERE
    reduced: frozenset = NOWHERE

    def __init__(self, *, varying: Any = NOWHERE, unreduced: Any = NOWHERE, reduced: Any = NOWHERE):
        given = {"varying": varying, "unreduced": unreduced, "reduced": reduced}
        for (one, a), (other, b) in itertools.combinations(given.items(), 2):
            if set(a) & set(b):
                raise ValueError(f"{one} and {other} cannot have common mesh axes. Got {one}={a} "
                                 f"and {other}={b}")
        super().__init__(*map(frozenset, given.values()))

    @property
    def vur(self) -> frozenset:
        """All axes that are named."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """Whether no axis is named."""
        return not self.vur

    def update(self, **changes: Any) -> ManualAxisType:
        """Return this type with some of its sets of axes replaced."""
        return ManualAxisType(**{"varying": self.varying, "unreduced": self.unreduced,
                                 "reduced": self.reduced, **changes})

    def invarying(self, mesh: Any) -> frozenset:
        """Return the manual axes of ``mesh`` that are not named."""
        return frozenset(mesh.manual_axes) - self.vur

    def to_ct_mat(self) -> ManualAxisType:
        """Return that of the cotangent: sums are dual to what is summed."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)


class Placement(NamedTuple):
    """Where a value is placed, if not replicated on its devices in their own memory.

    ``sharding`` is a NamedSharding of an AbstractMesh, with one entry per axis that names Explicit
    mesh axes only, and sums along those; ``vma`` are the mesh axes along which the value varies
    inside ``shard_map``, ``sums`` those of its sums there.
    """

    sharding: Any = None
    vma: frozenset = NOWHERE
    memory: MemorySpace = MemorySpace.Device
    sums: Sums = NO_SUMS


class Seen:
    """What has been used in this process, so that programs without it need not look for it.

    ``placements``: avals with a placement, or a mesh with an Explicit axis; until then inferring
    a type is calling a typing rule.  ``sums``: specs with unreduced or reduced axes.
    ``storage``: memories and layouts other than a device's own.  ``states``: values of types that a
    program defines and that change.  ``devices``: shardings to one device, given to a program.
    """

    placements: ClassVar[bool] = False
    sums: ClassVar[bool] = False
    storage: ClassVar[bool] = False
    states: ClassVar[bool] = False
    devices: ClassVar[bool] = False


def placement_of(sharding: Any, vma: frozenset = NOWHERE,
                 memory: MemorySpace = MemorySpace.Device, sums: Sums = NO_SUMS
                 ) -> Placement | None:
    """Return the placement with these fields, None where all are as usual."""
    if sharding is None and not vma and memory is not MemorySpace.Host and not sums.any:
        return None
    Seen.placements = True
    if memory is MemorySpace.Host:
        Seen.storage = True
    if sums.any:
        Seen.sums = True
    return Placement(sharding, vma, memory, sums)


def sums_of_spec(spec: Any) -> Sums:
    """Return the unreduced and reduced axes that a spec names."""
    return Sums(spec.unreduced, spec.reduced)


def split_sums(sums: Sums, axes: Any) -> tuple[Sums, Sums]:
    """Return the part of ``sums`` along ``axes``, and the rest."""
    inside = Sums(*[names.intersection(axes) for names in sums])
    return inside, Sums(*[names - part for names, part in zip(sums, inside)])


def names_of(entry: Any) -> tuple:
    """Return the mesh axes that one entry of a spec names."""
    if isinstance(entry, tuple):
        return entry
    return (entry,) if isinstance(entry, str) else ()


def only(entry: Any, axes: Any) -> Any:
    """Return ``entry`` of a spec with those of its mesh axes that are among ``axes``."""
    names = tuple(n for n in names_of(entry) if n in axes)
    return None if not names else names[0] if len(names) == 1 else names


def explicit_sharding(sharding: Any, ndim: int) -> Any:
    """Return the part of ``sharding`` that belongs to a type: its entries along Explicit axes.

    None if there are none, or if it has no mesh.
    """
    mesh = getattr(sharding, "mesh", None)
    explicit = mesh.explicit_axes if mesh is not None else ()
    if not explicit:
        return None
    spec = sharding.spec
    return with_entries(sharding, [only(e, explicit) for e in spec._partitions[:ndim]], ndim,
                        sums_of_spec(spec))


def with_entries(like: Any, entries: Any, ndim: int, sums: Sums = NO_SUMS) -> Any:
    """Return the sharding of a type with ``entries`` and ``sums`` on the mesh of ``like``.

    None if both are empty.
    """
    if not any(e is not None for e in entries) and not sums.any:
        return None
    given = (*entries, *(None,) * (ndim - len(entries)))
    mesh = like.mesh.abstract_mesh
    spec = like.spec
    if mesh is like.mesh and spec._partitions == given and sums_of_spec(spec) == sums:
        return like
    return type(like)(mesh, type(spec)(*given, unreduced=sums.unreduced, reduced=sums.reduced))


def shifted_sharding(sharding: Any, before: tuple, after: tuple) -> Any:
    """Return the sharding of a value whose shape changed from ``before`` to ``after``.

    With one axis more or fewer in front the others keep their entries; else there are none.
    """
    entries, sums = sharding.spec._partitions, sums_of_spec(sharding.spec)
    if after[1:] == before:
        return with_entries(sharding, (None, *entries), len(after), sums)
    if after == before[1:]:
        return with_entries(sharding, entries[1:], len(after), sums)
    return with_entries(sharding, (), len(after), sums)


def entry_text(entry: Hashable | tuple[Hashable, ...] | None) -> str:
    """Return how a type prints the mesh axes ``entry`` that shard an axis: ``@x``, ``@(x,y)``."""
    if entry is None:
        return ""
    return f"@({','.join(map(str, entry))})" if isinstance(entry, tuple) else f"@{entry}"


def axes_text(**sets: frozenset) -> str:
    """Return ``{V:i, U:(x,y)}``, how an aval prints axes along which its value varies or is a sum.
    """
    parts = []
    for letter, axes in sets.items():
        names = sorted(map(str, axes))
        if names:
            parts.append(f"{letter}:{names[0] if len(names) == 1 else '(' + ','.join(names) + ')'}")
    return f"{{{', '.join(parts)}}}" if parts else ""

"""Along which mesh axes is a value sharded, as part of its type?

Along a mesh axis of type Explicit the program itself decides how values are sharded: the aval names
the axes, ``f32[8@x,2]``, and each primitive has a rule from how its operands are sharded to how its
result is. A value that no Explicit axis shards has no placement, and no rule here runs for it.

Read before: ``core.avals``.  Read after: ``core.varying``, ``ops.sharding_rules``.
Invariant: an aval names only Explicit axes of its mesh, each once, each dividing its array axis.
Source: the documentation of jax.sharding, "explicit sharding".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.jaxpr import sub_jaxprs
from saem.core.placement_types import (
    NO_SUMS,
    NOWHERE,
    Placement,
    Seen,
    Sums,
    entry_text,
    explicit_sharding,
    names_of,
    only,
    placement_of,
    with_entries,
)
from saem.core.primitive import Primitive


class ShardingTypeError(errors.Explained):
    """Operands have shardings from which no sharding of the result follows."""


def entries_of(aval: ShapedArray) -> tuple:
    """Return along which mesh axes each axis of a value of ``aval`` is sharded."""
    sharding = sharding_of(aval)
    return (None,) * len(aval.shape) if sharding is None else sharding.spec._partitions


def sharding_of(aval: ShapedArray) -> Any:
    """Return the sharding that ``aval`` names, None if it has none."""
    return None if aval.placement is None else aval.placement.sharding


def agreed(specs: Iterable[Sequence[Any]], rank: int) -> tuple | None:
    """Return along what each of ``rank`` axes is sharded, as the values that shard it agree.

    Values of fewer axes have the last ones.  None if two values differ.
    """
    found: list[Any] = [None] * rank
    for spec in specs:
        for axis, entry in enumerate(spec, rank - len(spec)):
            if entry is not None:
                if found[axis] not in (None, entry):
                    return None
                found[axis] = entry
    return tuple(found)


def same_sharding(a: ShapedArray, b: ShapedArray) -> bool:
    """Return whether values of both avals are sharded the same way."""
    return not Seen.placements or (entries_of(a) == entries_of(b) and a.sums == b.sums)


def plain(aval: ShapedArray) -> ShapedArray:
    """Return ``aval`` as that of a value that is not sharded."""
    if sharding_of(aval) is None:
        return aval
    return ShapedArray(aval.shape, aval.dtype, aval.weak_type,
                       placement_of(None, NOWHERE, aval.placement.memory))


def without_axis(aval: ShapedArray, axis: int) -> ShapedArray:
    """Return the aval of one example of a stack along ``axis``."""
    axis %= len(aval.shape)
    shape = aval.shape[:axis] + aval.shape[axis + 1:]
    found = aval.update(shape=shape)
    if sharding_of(aval) is not None:
        entries = entries_of(aval)[:axis] + entries_of(aval)[axis + 1:]
        found = shard_along(found, aval.explicit, entries, aval.vma, aval.sums)
    return found


def shard_like(aval: ShapedArray, like: ShapedArray) -> ShapedArray:
    """Return ``aval``, which may have more axes, sharded as a value of ``like`` is."""
    if sharding_of(like) is None:
        return aval
    return shard_along(aval, like.explicit, entries_of(like), like.vma, like.sums)


def with_entry(sharding: Any, place: int, entry: Any) -> Any:
    """Return ``sharding`` of values that have one more axis at ``place``, sharded along
    ``entry``.
    """
    if sharding is None:
        return None
    entries = list(sharding.spec.partitions)
    entries += [None] * (place - len(entries))
    entries.insert(place, entry)
    return type(sharding)(sharding.mesh, sharding.spec.update(partitions=entries))


def with_axis(aval: ShapedArray, size: int, like: Any, entry: Any, axis: int = 0) -> ShapedArray:
    """Return the aval of a stack of ``size`` examples of ``aval``, sharded along ``entry``.

    The batch axis is ``axis``. ``like`` is a sharding over the mesh of ``entry``, None if examples
    are not sharded among devices.
    """
    stack = aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))
    like = like or aval.explicit
    if like is None:
        return stack
    entries = entries_of(aval)
    return shard_along(plain(stack), like, (*entries[:axis], entry, *entries[axis:]), aval.vma,
                       aval.sums)


def with_spec(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return the aval of a value of ``aval`` whose sharding is ``sharding``.

    Of its axes only those of type Explicit belong to the type; without any it is not sharded.
    """
    return with_sharding(aval, explicit_sharding(sharding, len(aval.shape)), NOWHERE)


def shard_along(aval: ShapedArray, like: Any, entries: Sequence[Any], vma: frozenset = NOWHERE,
                sums: Sums = NO_SUMS) -> ShapedArray:
    """Return ``aval`` sharded along ``entries`` of the mesh that the sharding ``like`` has."""
    found = with_sharding(aval, with_entries(like, entries, len(aval.shape)), vma)
    return found.with_sums(sums, like) if sums.any else found


def with_sharding(aval: ShapedArray, sharding: Any, vma: frozenset) -> ShapedArray:
    """Return ``aval`` with this sharding and these varying axes, in the same memory."""
    placement = placement_of(sharding, vma, (aval.placement or Placement()).memory)
    if placement == aval.placement:
        return aval
    return ShapedArray(aval.shape, aval.dtype, aval.weak_type, placement)


def as_sharded(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return ``aval`` with the spec that ``sharding`` adds to a type, if it adds one."""
    if not Seen.placements or (aval.placement is None and not hasattr(sharding, "mesh")):
        return aval
    return with_spec(aval, sharding)


def like_type(aval: ShapedArray, *others: ShapedArray) -> Any:
    """Return how a value of ``aval`` is sharded, on the mesh that it or one of ``others`` names.

    None if no aval names one: then nothing is sharded.
    """
    for found in (aval, *others):
        if sharding_of(found) is not None:
            return entries_on(found.explicit, entries_of(aval), aval.sums)
    return None


def entries_on(like: Any, entries: Sequence[Any], sums: Sums = NO_SUMS) -> Any:
    """Return the sharding with ``entries`` and ``sums`` on the mesh of the sharding ``like``."""
    spec = type(like.spec)(*entries, unreduced=sums.unreduced, reduced=sums.reduced)
    return type(like)(like.mesh, spec)


# -- the rules -------------------------------------------------------------------------------------


class Case:
    """What a rule sees: a primitive, entries of its operands, plain avals of its results."""

    __slots__ = ("prim", "avals", "specs", "outs", "sharding")
    prim: Any

    def __init__(self, prim: Primitive, avals: Sequence[ShapedArray], outs: list[ShapedArray],
                 sharding: Any):
        self.prim = prim
        self.avals = avals
        self.specs = [entries_of(a) for a in avals]
        self.outs = outs
        self.sharding = sharding  # of some operand, or requested: it has the mesh

    @property
    def mesh(self) -> Any:
        return self.sharding.mesh

    def parts(self, entry: Any) -> int:
        """Return into how many parts ``entry`` shards an axis."""
        sizes = self.mesh.shape
        return math.prod(sizes[n] for n in names_of(entry))

    def shown(self, number: int) -> Any:
        """Return the sharding of an operand, for messages."""
        found = entries_on(self.sharding, self.specs[number], self.avals[number].sums)
        return type(found)(self.mesh.abstract_mesh, found.spec)

    def same_specs(self, *numbers: int) -> bool:
        """Return whether operands have one sharding and are unreduced along the same axes."""
        first = self.avals[numbers[0]]
        return all(same_sharding(first, self.avals[n]) for n in numbers[1:])

    def refuse(self, number: int, sentence: str, advice: str) -> Exception:
        return errors.explained(ShardingTypeError, f"{self.prim.name}.S{number}", sentence,
                                advice=advice)


def asked_for(prim: Primitive) -> Any:
    """Return the sharding that a parameter of ``prim`` requests of its result, or None."""
    found = prim.requested_sharding
    mesh = getattr(found, "mesh", None)
    return found if mesh is not None and mesh.explicit_axes else None


def check_one_mesh(shardings: Sequence[Any]) -> None:
    """Refuse operands whose types name meshes of other axes.  Raises: ValueError."""
    for other in shardings[1:]:
        if other.mesh.shape != shardings[0].mesh.shape:
            raise errors.explained(
                errors.ArgumentError, "sharding.meshes",
                f"Mesh for all inputs should be equal. Got one mesh: {shardings[0].mesh} and "
                f"another mesh: {other.mesh}.",
                advice="Move one of them: jax.device_put(x, NamedSharding(mesh, spec)).")


def sharded_types(prim: Primitive, avals: Sequence[ShapedArray]) -> Any:
    """Return what ``prim.typing`` returns, with the shardings of results.

    Raises: ShardingTypeError if they do not follow; NotImplementedError if there is no rule.
    """
    given = [a.explicit for a in avals if a.placement and a.placement.sharding]
    wanted = asked_for(prim)
    if not given and wanted is None:
        return prim.typing(*avals)
    if prim.shard_results is None:
        if sub_jaxprs(prim) or prim.types_varying:
            return prim.typing(*avals)
        raise errors.explained(
            NotImplementedError, f"{prim.name}.S1",
            f"{prim.name} has no sharding rule: how its result is sharded is not known when an "
            f"operand is: {', '.join(a.str_short(True) for a in avals)}.",
            advice="Reshard the operands so that no Explicit axis shards them, or call it under "
            "jax.sharding.auto_axes.")
    check_one_mesh(given)
    out = prim.typing(*[plain(a) for a in avals])
    outs = list(out) if prim.multiple_results else [out]
    case = Case(prim, avals, outs, given[0] if wanted is None else wanted)
    entries = prim.shard_results(case)
    found = [checked(case, aval, e)
             for aval, e in zip(outs, entries if prim.multiple_results else [entries])]
    return found if prim.multiple_results else found[0]


def checked(case: Case, aval: ShapedArray, entries: Sequence[Any]) -> ShapedArray:
    """Return ``aval`` sharded along ``entries``.

    Raises: ShardingTypeError if a mesh axis shards two axes; ValueError if one does not divide.
    """
    explicit = case.mesh.explicit_axes
    entries = tuple(only(e, explicit) for e in entries)
    names = [n for e in entries for n in names_of(e)]
    if len(set(names)) != len(names):
        # A NamedSharding refuses such a spec, so the type is written out here.
        sizes = [f"{n}{entry_text(e)}" for n, e in zip(aval.shape, entries)]
        shown = f"{ShapedArray((), aval.dtype).str_short(True)[:-2]}[{','.join(sizes)}]"
        raise case.refuse(
            2, f"{case.prim.name} operation with inputs: "
            f"{', '.join(a.str_short(True) for a in case.avals)} produces an illegally sharded "
            f"result: {shown}", "Reshard an operand first: jax.reshard(x, P(...)).")
    for axis, (size, entry) in enumerate(zip(aval.shape, entries)):
        check_division(case.sharding, aval.shape, axis, size, entry, entries)
    return shard_along(aval, case.sharding, entries)


def check_division(sharding: Any, shape: Sequence[int], axis: int, size: int, entry: Any,
                   entries: Sequence[Any]) -> None:
    """Refuse to shard an axis into unequal parts.

    Raises: ValueError.
    """
    parts = math.prod(sharding.mesh.shape[n] for n in names_of(entry))
    if size % parts:
        shown = type(sharding)(sharding.mesh.abstract_mesh, type(sharding.spec)(*entries))
        raise errors.explained(
            errors.ArgumentError, "sharding.C2",
            f"Sharding spec {tuple(entries)} implies that array axis {axis} is partitioned {parts} "
            f"times, but does not evenly divide the dimension size {size}. Got shape: "
            f"{tuple(shape)} and sharding {shown}",
            advice="Pad the axis, or do not shard it.")

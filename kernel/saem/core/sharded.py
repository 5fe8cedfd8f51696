"""Along which mesh axes is a value cut, as part of its type?

Along a mesh axis of type Explicit the program itself says how values lie: the aval names the axes,
``f32[8@x,2]``, and each primitive has a rule from how its operands are cut to how its result is.
A value that no Explicit axis cuts has a plain aval, so programs without such axes ask nothing here.

Read before: ``core.avals``.  Read after: ``core.varying``, ``ops.sharding_rules``.
Invariant: an aval names only Explicit axes of its mesh, each once, each dividing its array axis.
Source: the documentation of jax.sharding, "explicit sharding".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.jaxpr import sub_jaxprs
from saem.core.primitive import Primitive

NOWHERE: frozenset = frozenset()


class ShardingTypeError(errors.Explained):
    """Operands are cut in ways from which no cut of the result follows."""


class _State:
    """Whether there ever was a mesh with an Explicit axis (else nobody need look).

    ``varying(aval, vma)`` is that of ``core.varying``, which knows the avals of this module.
    """

    used = False
    varying: Callable[[ShapedArray, frozenset], ShapedArray]
    # What is to be done when the first such mesh is made.
    waiting: ClassVar[list[Callable[[], None]]] = []


state = _State()


def begin() -> None:
    """From now on types say how values lie: a mesh with an Explicit axis was made."""
    if not state.used:
        state.used = True
        for act in state.waiting:
            act()


class ShardedArray(ShapedArray):
    """The aval of a value cut as ``sharding`` (a NamedSharding of an AbstractMesh) says.

    Inside shard_map over some axes of a mesh it may vary along those, ``vma``.
    """

    __slots__ = ("sharding", "vma")
    sharding: Any
    vma: frozenset

    def __init__(self, shape: Any, dtype: Any, weak_type: bool, sharding: Any,
                 vma: frozenset = NOWHERE):
        super().__init__(shape, dtype, weak_type)
        self.sharding = sharding
        self.vma = vma

    @property
    def entries(self) -> tuple:
        """For each axis the mesh axis, or tuple of them, along which it is cut, or None."""
        return self.sharding.spec._partitions

    def update(self, **changes: Any) -> ShapedArray:
        """Return this aval with some slots replaced.

        With one axis more or fewer in front the others are cut as before; a value of any other
        shape is not cut.
        """
        shape = tuple(changes.get("shape", self.shape))
        entries = self.entries
        if shape != self.shape:
            if shape[1:] == self.shape:
                entries = (None, *entries)
            elif shape == self.shape[1:]:
                entries = entries[1:]
            else:
                entries = ()
        aval = super().update(**changes)
        vma = changes.get("vma", self.vma)
        if "sharding" in changes:
            return cut(aval, changes["sharding"], vma)
        return cut_as(aval, self.sharding, entries, vma)

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        return self.update(dtype=super().to_tangent_aval().dtype)

    def str_short(self, short_dtypes: bool = True) -> str:
        name = ShapedArray((), self.dtype).str_short(short_dtypes)[:-2]
        sizes = [f"{n}{_entry_text(e)}" for n, e in zip(self.shape, self.entries)]
        return f"{name}[{','.join(sizes)}]{vma_text(self.vma)}"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is ShardedArray and self.shape == other.shape and self.dtype == other.dtype
            and self.weak_type == other.weak_type and self.sharding == other.sharding
            and self.vma == other.vma)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.shape, self.dtype, self.weak_type, self.entries, self.vma))
            return self._hash


def _entry_text(entry: Any) -> str:
    if entry is None:
        return ""
    return f"@({','.join(map(str, entry))})" if isinstance(entry, tuple) else f"@{entry}"


def vma_text(vma: frozenset) -> str:
    """Return ``{V:i}``, how an aval says along which axes its value varies."""
    if not vma:
        return ""
    names = sorted(map(str, vma))
    return f"{{V:{names[0] if len(names) == 1 else '(' + ','.join(names) + ')'}}}"


def names_of(entry: Any) -> tuple:
    """Return the mesh axes that one entry of a spec names."""
    if isinstance(entry, tuple):
        return entry
    return (entry,) if isinstance(entry, str) else ()


def entries_of(aval: ShapedArray) -> tuple:
    """Return along which mesh axes each axis of a value of ``aval`` is cut."""
    return aval.entries if type(aval) is ShardedArray else (None,) * len(aval.shape)


def cut_of(aval: ShapedArray) -> Any:
    """Return the sharding that ``aval`` names, None if it is not cut."""
    return aval.sharding if type(aval) is ShardedArray else None


def alike(a: ShapedArray, b: ShapedArray) -> bool:
    """Return whether values of both avals are cut alike."""
    return not state.used or entries_of(a) == entries_of(b)


def plain(aval: ShapedArray) -> ShapedArray:
    """Return ``aval`` as that of a value that is not cut."""
    if type(aval) is not ShardedArray:
        return aval
    return ShapedArray(aval.shape, aval.dtype, aval.weak_type)


def without_axis(aval: ShapedArray, axis: int) -> ShapedArray:
    """Return the aval of one example of a stack along ``axis``."""
    axis %= len(aval.shape)
    shape = aval.shape[:axis] + aval.shape[axis + 1:]
    if type(aval) is not ShardedArray:
        return aval.update(shape=shape)
    entries = aval.entries[:axis] + aval.entries[axis + 1:]
    return cut_as(ShapedArray(shape, aval.dtype, aval.weak_type), aval.sharding, entries, aval.vma)


def cut_like(aval: ShapedArray, like: ShapedArray) -> ShapedArray:
    """Return ``aval``, which may have more axes, cut as a value of ``like`` is."""
    if type(like) is not ShardedArray:
        return aval
    return cut_as(aval, like.sharding, like.entries, like.vma)


def with_entry(sharding: Any, place: int, entry: Any) -> Any:
    """Return ``sharding`` of values that have one more axis at ``place``, cut along ``entry``."""
    if sharding is None:
        return None
    entries = list(sharding.spec)
    entries += [None] * (place - len(entries))
    entries.insert(place, entry)
    return type(sharding)(sharding.mesh, type(sharding.spec)(*entries))


def with_axis(aval: ShapedArray, size: int, like: Any, entry: Any) -> ShapedArray:
    """Return the aval of a stack of ``size`` examples of ``aval``, cut along ``entry`` of a mesh.

    ``like`` is a sharding over that mesh; None says that the stack is not cut.
    """
    stack = aval.update(shape=(size, *aval.shape))
    if like is None:
        return stack
    vma = getattr(aval, "vma", NOWHERE)
    return cut_as(plain(stack), like, (entry, *entries_of(aval)), vma)


def cut(aval: ShapedArray, sharding: Any, vma: frozenset = NOWHERE) -> ShapedArray:
    """Return the aval of a value of ``aval`` that lies as ``sharding`` says.

    Of its axes only those of type Explicit belong to the type; without any it is not cut.
    """
    mesh = getattr(sharding, "mesh", None)
    explicit = mesh.explicit_axes if mesh is not None else ()
    if not explicit:
        return cut_as(plain(aval), None, (), vma)
    entries = []
    for entry in tuple(sharding.spec)[:len(aval.shape)]:
        names = tuple(n for n in names_of(entry) if n in explicit)
        entries.append(None if not names else names[0] if len(names) == 1 else names)
    return cut_as(plain(aval), sharding, entries, vma)


def cut_as(aval: ShapedArray, like: Any, entries: Sequence[Any], vma: frozenset = NOWHERE
           ) -> ShapedArray:
    """Return ``aval`` cut along ``entries`` of the mesh that the sharding ``like`` has."""
    if not any(e is not None for e in entries):
        return state.varying(aval, vma) if vma else aval
    spec = like.spec
    given = (*entries, *(None,) * (len(aval.shape) - len(entries)))
    mesh = like.mesh.abstract_mesh
    sharding = like if mesh is like.mesh and spec._partitions == given else type(like)(
        mesh, type(spec)(*given))
    return ShardedArray(aval.shape, aval.dtype, aval.weak_type, sharding, vma)


def located(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return the aval of an array of ``aval`` that lies as ``sharding`` says."""
    if not state.used or (type(aval) is ShapedArray and not hasattr(sharding, "mesh")):
        return aval
    return cut(aval, sharding)


def like_type(aval: ShapedArray, *others: ShapedArray) -> Any:
    """Return how a value of ``aval`` is cut, on the mesh that it or one of ``others`` names.

    None if no aval names one: then nothing is cut.
    """
    for found in (aval, *others):
        if type(found) is ShardedArray:
            return entries_on(found.sharding, entries_of(aval))
    return None


def entries_on(like: Any, entries: Sequence[Any]) -> Any:
    """Return the sharding with ``entries`` on the mesh of the sharding ``like``."""
    return type(like)(like.mesh, type(like.spec)(*entries))


# -- the rules -------------------------------------------------------------------------------------

# From the name of a primitive, or a class of them, to the rule ``rule(case)`` that returns entries
# for each result (for the one result of a primitive with one).
rules: dict[Any, Callable[[Case], Any]] = {}


class Case:
    """What a rule sees: a primitive, how its operands are cut, the plain avals of its results."""

    __slots__ = ("prim", "avals", "specs", "outs", "sharding")
    prim: Any

    def __init__(self, prim: Primitive, avals: Sequence[ShapedArray], outs: list[ShapedArray],
                 sharding: Any):
        self.prim = prim
        self.avals = avals
        self.specs = [entries_of(a) for a in avals]
        self.outs = outs
        self.sharding = sharding  # of some operand, or asked for: it has the mesh

    @property
    def mesh(self) -> Any:
        return self.sharding.mesh

    def parts(self, entry: Any) -> int:
        """Return into how many parts ``entry`` cuts an axis."""
        sizes = self.mesh.shape
        return math.prod(sizes[n] for n in names_of(entry))

    def shown(self, number: int) -> Any:
        """Return the sharding of an operand, for messages."""
        spec = type(self.sharding.spec)(*self.specs[number])
        return type(self.sharding)(self.mesh.abstract_mesh, spec)

    def refuse(self, number: int, sentence: str, advice: str) -> Exception:
        return errors.explained(ShardingTypeError, f"{self.prim.name}.S{number}", sentence,
                                advice=advice)


def find_rule(prim: Primitive) -> Callable[[Case], Any] | None:
    """Return the rule of ``prim``: its own, or that of its family."""
    found = rules.get(prim.name)
    if found is None:
        for cls in type(prim).__mro__:
            if cls in rules:
                found = rules[prim.name] = rules[cls]
                break
    return found


def asked_for(prim: Primitive) -> Any:
    """Return the sharding that a parameter of ``prim`` asks of its result, or None."""
    found = getattr(prim, "out_sharding", None)
    found = getattr(prim, "sharding", None) if found is None else found
    if found is None and prim.name == "device_put":
        found = next((d for d in prim.params["devices"] if hasattr(d, "mesh")), None)
    mesh = getattr(found, "mesh", None)
    return found if mesh is not None and mesh.explicit_axes else None


def typed(prim: Primitive, avals: Sequence[ShapedArray]) -> Any:
    """Return what ``prim.typing`` does, with how results are cut.

    Raises: ShardingTypeError if that does not follow; NotImplementedError if there is no rule.
    """
    given = None
    for aval in avals:
        if type(aval) is ShardedArray:
            given = aval.sharding
            break
    wanted = asked_for(prim)
    if given is None and wanted is None:
        return prim.typing(*avals)
    rule = find_rule(prim)
    if rule is None:
        if sub_jaxprs(prim) or getattr(prim, "knows_where_it_varies", False):
            return prim.typing(*avals)
        raise errors.explained(
            NotImplementedError, f"{prim.name}.S1",
            f"{prim.name} has no sharding rule: it does not say how its result is cut when an "
            f"operand is: {', '.join(a.str_short() for a in avals)}.",
            advice="Reshard the operands so that no Explicit axis cuts them, or call it under "
            "jax.sharding.auto_axes.")
    out = prim.typing(*[plain(a) for a in avals])
    outs = list(out) if prim.multiple_results else [out]
    case = Case(prim, avals, outs, given if wanted is None else wanted)
    entries = rule(case)
    found = [checked(case, aval, e)
             for aval, e in zip(outs, entries if prim.multiple_results else [entries])]
    return found if prim.multiple_results else found[0]


def checked(case: Case, aval: ShapedArray, entries: Sequence[Any]) -> ShapedArray:
    """Return ``aval`` cut along ``entries``.

    Raises: ShardingTypeError if a mesh axis cuts two axes; ValueError if one does not divide.
    """
    explicit = case.mesh.explicit_axes
    entries = tuple(_only(e, explicit) for e in entries)
    names = [n for e in entries for n in names_of(e)]
    if len(set(names)) != len(names):
        # A NamedSharding refuses such a spec, so the type is written out here.
        sizes = [f"{n}{_entry_text(e)}" for n, e in zip(aval.shape, entries)]
        shown = f"{ShapedArray((), aval.dtype).str_short()[:-2]}[{','.join(sizes)}]"
        raise case.refuse(
            2, f"{case.prim.name} operation with inputs: "
            f"{', '.join(a.str_short() for a in case.avals)} produces an illegally sharded "
            f"result: {shown}", "Reshard an operand first: jax.reshard(x, P(...)).")
    for axis, (size, entry) in enumerate(zip(aval.shape, entries)):
        check_division(case.sharding, aval.shape, axis, size, entry, entries)
    return cut_as(aval, case.sharding, entries)


def _only(entry: Any, explicit: Sequence[Any]) -> Any:
    names = tuple(n for n in names_of(entry) if n in explicit)
    return None if not names else names[0] if len(names) == 1 else names


def check_division(sharding: Any, shape: Sequence[int], axis: int, size: int, entry: Any,
                   entries: Sequence[Any]) -> None:
    """Refuse to cut an axis into unequal parts.

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
            advice="Pad the axis, or do not cut it.")

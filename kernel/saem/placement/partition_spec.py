"""Along which mesh axes is each axis of an array sharded?

A ``PartitionSpec`` says it by the names of mesh axes; a mesh is not needed for that.

Read before: nothing.  Read after: ``placement.shardings``, where a spec meets a mesh.
Invariant: specs that mean the same are equal and have the same hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core.placement_types import Seen


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"


class PartitionSpec:
    """For each axis of an array: a mesh axis, a tuple of them, or None if it is not sharded.

    Axes beyond the last entry are not sharded.  ``UNCONSTRAINED`` leaves an axis to the
    partitioner.

    >>> jax.sharding.PartitionSpec("data", None)
    P('data', None)
    """

    __slots__ = ("_partitions", "unreduced", "reduced")
    _partitions: tuple
    unreduced: frozenset
    reduced: frozenset
    UNCONSTRAINED = _Unconstrained()

    def __new__(cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
                ) -> PartitionSpec:
        self = object.__new__(cls)  # made at once, since a pickle of JAX calls no __init__
        self._partitions = tuple(_entry(p) for p in partitions)
        self.unreduced = frozenset(unreduced)
        self.reduced = frozenset(reduced)
        if unreduced or reduced:
            self._check_sums(unreduced=unreduced, reduced=reduced)
            Seen.sums = True
        return self

    def _check_sums(self, **given: Any) -> None:
        """Refuse axes of sums that are no sets of names, or that partition the value too."""
        named = {axis for entry in self._partitions for axis in
                 (entry if isinstance(entry, tuple) else (entry,))}
        for what, axes in given.items():
            if not isinstance(axes, (set, frozenset)):
                raise TypeError(f"{what} argument of PartitionSpec should of type `frozenset` or "
                                f"`set`. Got type {axes}")
            if None in axes:
                raise ValueError(f"{what} cannot contain None. All elements in {what} should refer "
                                 "to the mesh axes.")
            if named & axes:
                raise ValueError(
                    f"partitions cannot overlap with {what} axes passed to PartitionSpec. Got "
                    f"partitions: {self._partitions} and {what} axes: {frozenset(axes)}")
        if self.unreduced & self.reduced:
            raise ValueError(
                "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got "
                f"unreduced: {self.unreduced} and reduced: {self.reduced}")

    def __iter__(self):
        if self.unreduced or self.reduced:
            raise self._dangerous("*pspec", "*spec.partitions")
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, where: Any) -> Any:
        if self.unreduced or self.reduced:
            raise self._dangerous("pspec[...]", "spec.partitions[...]")
        return self._partitions[where]

    def _dangerous(self, used: str, better: str) -> Exception:
        """Return the error for entries taken alone, which would lose the axes of sums."""
        return ValueError(f"Using {used} is dangerous when PartitionSpec has non-empty "
                          f"unreduced/reduced set. Please use {better}. Got {self!r}.")

    def index(self, value: Any) -> int:
        return self._partitions.index(_entry(value))

    def count(self, value: Any) -> int:
        return self._partitions.count(_entry(value))

    @property
    def partitions(self) -> tuple:
        """The entries, one for each axis that is spoken of."""
        return self._partitions

    def update(self, *, partitions: Sequence[Any] | None = None, unreduced: Any = None,
               reduced: Any = None) -> PartitionSpec:
        """Return this spec with other ``partitions``, ``unreduced`` or ``reduced``."""
        return PartitionSpec(*(self._partitions if partitions is None else partitions),
                             unreduced=self.unreduced if unreduced is None else unreduced,
                             reduced=self.reduced if reduced is None else reduced)

    def _normalized_spec_for_aval(self, ndim: int) -> PartitionSpec:
        return self.update(
            partitions=(*self._partitions, *(None,) * (ndim - len(self._partitions))))

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(*self._partitions, *other._partitions,
                                 unreduced=self.unreduced | other.unreduced,
                                 reduced=self.reduced | other.reduced)
        self._check_added(other, "__add__")
        return PartitionSpec(*self._partitions, *tuple(other))

    def __radd__(self, other: Any) -> PartitionSpec:
        self._check_added(other, "__radd__")
        return PartitionSpec(*tuple(other), *self._partitions)

    def _check_added(self, other: Any, method: str) -> None:
        """Refuse to add entries alone to a spec that has axes of sums.

        Raises: TypeError.
        """
        for what in ("unreduced", "reduced"):
            if getattr(self, what):
                raise TypeError(
                    f"other {other} cannot be of instance `tuple` when self {self} has {what} in "
                    f"`{method}` of PartitionSpec. Add a PartitionSpec.")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return (self._partitions == other._partitions and self.unreduced == other.unreduced
                    and self.reduced == other.reduced)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self._partitions, self.unreduced, self.reduced))

    def __repr__(self) -> str:
        parts = [repr(p) for p in self._partitions]
        parts += [f"{n}={set(v)!r}" for n in ("unreduced", "reduced") if (v := getattr(self, n))]
        alone = len(parts) == 1 and self._partitions
        return f"P({', '.join(parts)}{',' if alone else ''})"

    def __reduce__(self) -> tuple:
        return _spec, (self._partitions, self.unreduced, self.reduced)


P = PartitionSpec


def _spec(partitions: tuple, unreduced: frozenset, reduced: frozenset) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _entry(entry: Any) -> Any:
    """Return one entry as it is kept: a tuple of one axis as the axis, an empty one as None.

    Raises: ValueError for a tuple in a tuple; TypeError for what has no hash.
    """
    if isinstance(entry, (tuple, list)):
        for part in entry:
            if isinstance(part, tuple):
                raise ValueError("A tuple inside PartitionSpec cannot contain a nested tuple. Got "
                                 f"partition: {entry} and the nested tuple: {part}")
        return None if not entry else entry[0] if len(entry) == 1 else tuple(entry)
    hash(entry)
    return entry


def axes_of(entry: Any) -> tuple:
    """Return the mesh axes that one entry of a spec names."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)

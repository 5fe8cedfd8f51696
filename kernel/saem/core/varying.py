"""Over which device axes can a value differ?

Inside ``shard_map`` every device runs the same program on its own part.  A value *varies* along a
mesh axis if devices along it may hold different numbers; its aval then names these axes and prints
``f32[2,4]{V:i}``.  An operation of varying and unvarying values first makes all of them vary
(``pvary``, which moves no data); that is what makes derivatives right: the transpose of becoming
varying is a sum over devices.

Read before: ``core.avals``, ``core.axes``.  Read after: ``ops.collectives``, ``control.shard_map``.
Invariant: outside ``shard_map(check_vma=True)`` no aval names an axis, and nothing here is asked.
Source: the documentation of jax.shard_map, "varying manual axes".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from saem.core.avals import ShapedArray
from saem.core.jaxpr import ClosedJaxpr, sub_jaxprs
from saem.core.primitive import Primitive

NOWHERE: frozenset = frozenset()


class VaryingArray(ShapedArray):
    """The aval of a value that varies along the mesh axes ``vma``."""

    __slots__ = ("vma",)

    def __init__(self, shape: Any, dtype: Any, weak_type: bool, vma: frozenset):
        super().__init__(shape, dtype, weak_type)
        self.vma = vma

    def update(self, **changes: Any) -> ShapedArray:
        vma = changes.pop("vma", self.vma)
        return varying(super().update(**changes), vma)

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        return varying(super().to_tangent_aval(), self.vma)

    def str_short(self, short_dtypes: bool = True) -> str:
        names = sorted(map(str, self.vma))
        shown = names[0] if len(names) == 1 else f"({','.join(names)})"
        return f"{super().str_short(short_dtypes)}{{V:{shown}}}"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is VaryingArray and self.vma == other.vma and self.shape == other.shape
            and self.dtype == other.dtype and self.weak_type == other.weak_type)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type, self.vma))


def vma_of(aval: Any) -> frozenset:
    """Return the mesh axes along which a value of ``aval`` varies."""
    return aval.vma if type(aval) is VaryingArray else NOWHERE


def varying(aval: ShapedArray, vma: Iterable) -> ShapedArray:
    """Return ``aval`` as that of a value that varies along exactly ``vma``."""
    vma = frozenset(vma)
    if vma == vma_of(aval):
        return aval
    if not vma:
        return ShapedArray(aval.shape, aval.dtype, aval.weak_type)
    return VaryingArray(aval.shape, aval.dtype, aval.weak_type, vma)


def wanted(prim: Primitive, avals: Sequence[Any]) -> list[frozenset]:
    """Return along which axes each operand of ``prim`` must vary before it is applied."""
    own = [vma_of(aval) for aval in avals]
    inner = [program for _, program in sub_jaxprs(prim) if isinstance(program, ClosedJaxpr)]
    if inner or hasattr(prim, "varies"):
        takes = getattr(prim, "operand_programs", None)
        for program, first in takes() if takes else [(p, 0) for p in inner]:
            ins = program.in_avals
            if first + len(ins) == len(own):
                own[first:] = [v | vma_of(a) for v, a in zip(own[first:], ins)]
        return own
    together = frozenset().union(*own)
    return [together] * len(own)


def typed(prim: Primitive, avals: Sequence[Any]) -> list[ShapedArray]:
    """Return the avals of the outputs of ``prim``, with the axes along which they vary."""
    out = prim.typing(*avals)
    outs = list(out) if prim.multiple_results else [out]
    rule = getattr(prim, "varies", None)
    if rule is not None:
        vma = rule(*[vma_of(aval) for aval in avals])
        return [varying(aval, vma) for aval in outs]
    if any(True for _ in sub_jaxprs(prim)):
        return outs  # the programs inside know
    together = frozenset().union(*(vma_of(aval) for aval in avals))
    return [varying(aval, together) for aval in outs] if together else outs

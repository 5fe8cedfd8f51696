"""Over which device axes can a value differ?

Inside ``shard_map`` every device runs the same program on its own part.  A value *varies* along a
mesh axis if devices along it may hold different numbers; its aval then names these axes and prints
``f32[2,4]{V:i}``.  An operation of varying and unvarying values first makes all of them vary
(``pvary``, which moves no data); that is what makes derivatives right: the transpose of becoming
varying is a sum over devices.

Read before: ``core.avals``, ``core.axes``.
Read after: ``ops.collectives``, ``parallel.shard_map``.
Invariant: outside ``shard_map(check_vma=True)`` no aval names an axis
(tests/kernel/test_shard_map.py).
Source: the documentation of jax.shard_map, "varying manual axes".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from saem.core.avals import ShapedArray
from saem.core.jaxpr import sub_jaxprs
from saem.core.placement_types import NOWHERE
from saem.core.primitive import Primitive


def vma_of(aval: Any) -> frozenset:
    """Return the mesh axes along which a value of ``aval`` varies."""
    return NOWHERE if aval.placement is None else aval.placement.vma


def varying(aval: ShapedArray, vma: Iterable) -> ShapedArray:
    """Return ``aval`` as that of a value that varies along exactly ``vma``."""
    vma = frozenset(vma)
    return aval if vma == vma_of(aval) else aval.update(vma=vma)


# Parameters whose programs take all operands of their primitive, or the last ones.
TAKING_ALL = ("jaxpr", "call_jaxpr", "branches", "body_jaxpr")


def wanted(prim: Primitive, avals: Sequence[Any]) -> list[frozenset]:
    """Return along which axes each operand of ``prim`` must vary before it is applied.

    Operands of a primitive with programs inside vary as the inputs of these; the first operands
    may be others (the index of a branch).  Where devices choose a branch each, operands vary as the
    index: devices along it then have derivatives of their own, which are added.
    """
    own = [vma_of(aval) for aval in avals]
    inner = sub_jaxprs(prim)
    for name, program in inner:
        before = len(own) - len(program.in_avals)
        if before >= 0 and name in TAKING_ALL:
            choice = own[0] if name == "branches" else NOWHERE
            own[before:] = [v | choice | vma_of(a) for v, a in zip(own[before:], program.in_avals)]
    if inner or prim.varies is not None or prim.types_varying:
        return own
    together = frozenset().union(*own)
    return [together] * len(own)


def varying_types(prim: Primitive, avals: Sequence[Any], outs: list[ShapedArray]
                  ) -> list[ShapedArray]:
    """Return ``outs``, the types of results, with the mesh axes along which each varies."""
    if prim.varies is not None:
        vma = prim.varies(*[vma_of(aval) for aval in avals])
        return [varying(aval, vma) for aval in outs]
    if prim.types_varying:
        return outs
    if prim.multiple_results and sub_jaxprs(prim):
        return _chosen(prim, avals, outs)
    together = frozenset().union(*(vma_of(aval) for aval in avals))
    return [varying(aval, together) for aval in outs] if together else outs


def _chosen(prim: Primitive, avals: Sequence[Any], outs: list[ShapedArray]) -> list[ShapedArray]:
    """Return the types of results of a primitive with programs inside, which have varying axes.

    Where devices choose differently (a branch, how often to loop), all outputs may differ.
    """
    by_choice = NOWHERE
    for name, program in sub_jaxprs(prim):
        if name == "branches":
            by_choice |= vma_of(avals[0])
            outs = [varying(o, vma_of(o) | vma_of(b)) for o, b in zip(outs, program.out_avals)]
        elif name == "cond_jaxpr":
            by_choice |= vma_of(program.out_avals[0])
    return [varying(o, vma_of(o) | by_choice) for o in outs] if by_choice else outs

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


def _together(avals: Iterable[Any]) -> frozenset:
    """Return the axes along which at least one value of ``avals`` varies."""
    return NOWHERE.union(*map(vma_of, avals))


def wanted(prim: Primitive, avals: Sequence[Any]) -> list[frozenset]:
    """Return along which axes each operand of ``prim`` must vary before it is applied.

    Operands of a primitive with programs inside vary as the inputs of these.  Where devices choose
    a branch each, operands vary as its number: devices along it then have derivatives of their own,
    which are added.
    """
    own = [vma_of(aval) for aval in avals]
    inner = sub_jaxprs(prim)
    nested = prim.nested if inner else None
    if nested is not None:
        before = nested.before
        choice = NOWHERE if nested.repeats else _together(nested.choosers(avals))
        for program in nested.programs:
            own[before:] = [v | choice | vma_of(a) for v, a in zip(own[before:], program.in_avals)]
        return own
    if prim.varies is not None or prim.types_varying or inner:
        return own
    return [_together(avals)] * len(own)


def varying_types(prim: Primitive, avals: Sequence[Any], outs: list[ShapedArray]
                  ) -> list[ShapedArray]:
    """Return ``outs``, the types of results, with the mesh axes along which each varies."""
    if prim.varies is not None:
        vma = prim.varies(*[vma_of(aval) for aval in avals])
        return [varying(aval, vma) for aval in outs]
    if prim.types_varying:
        return outs
    if prim.multiple_results and sub_jaxprs(prim):
        return outs if prim.nested is None else _chosen(prim.nested, avals, outs)
    together = _together(avals)
    return [varying(aval, together) for aval in outs] if together else outs


def _chosen(nested: Any, avals: Sequence[Any], outs: list[ShapedArray]) -> list[ShapedArray]:
    """Return the types of results of a primitive with programs inside, ``outs`` being the first's.

    Where devices choose differently (a branch, how often to loop), all outputs may differ.
    """
    for other in nested.programs[1:]:
        outs = [varying(o, vma_of(o) | vma_of(b)) for o, b in zip(outs, other.out_avals)]
    by_choice = _together(nested.choosers(avals))
    return [varying(o, vma_of(o) | by_choice) for o in outs] if by_choice else outs

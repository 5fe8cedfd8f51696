"""Which types do the results of an operation have?

What its typing rule answers and, where an operand has a placement, what the rules on placements
add: the sharding of each result, the axes along which it varies, the memory that holds it.

Read before: ``core.primitive``, ``core.sharded``, ``core.varying``, ``core.memory_spaces``.
Read after: ``transform.staging``, which records what is inferred here.
Invariant: without placements the answer is that of the typing rule, at the price of one test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core.avals import Seen, ShapedArray
from saem.core.memory_spaces import HOST, memory_types, space_of
from saem.core.primitive import Primitive
from saem.core.sharded import sharded_types
from saem.core.varying import varying_types


def infer(prim: Primitive, avals: Sequence[ShapedArray], checked: bool = False) -> Any:
    """Return the aval of the result of ``prim`` on operands of ``avals``, or a list of several.

    ``checked`` is true inside ``shard_map(check_vma=True)``, where types name varying axes.
    Raises: what the typing rule raises; ShardingTypeError if no sharding follows for a result.
    """
    if not Seen.placements and not checked:
        return prim.typing(*avals)
    typed = sharded_types(prim, avals)
    outs = list(typed) if prim.multiple_results else [typed]
    if checked or any(a.placement is not None and a.placement.vma for a in avals):
        outs = varying_types(prim, avals, outs)
    if any(space_of(a) is HOST for a in avals):
        outs = memory_types(prim, avals, outs)
    return outs if prim.multiple_results else outs[0]

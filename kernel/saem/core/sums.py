"""Along which mesh axes do devices hold the addends of a value, and what may be done with these?

A sum over an axis that is sharded can wait: each device keeps what it has added up, and the type of
the result says so, ``f32[4@x,4]{U:y}``: it is *unreduced* along ``y``.  The program asks for the
sum by ``reshard``.  A value that is *reduced* along an axis (``{R:y}``) is whole on each device,
and promises that its cotangent is unreduced along it.  So the gradient of parameters is added up
where the program says, and once.

Read before: ``core.sharded``, ``core.varying``.  Read after: ``ops.sum_rules``.
Invariant: no operation adds up what is unreduced unless it is asked to; one without a rule refuses.
Source: the documentation of jax.sharding.PartitionSpec; observed behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.jaxpr import sub_jaxprs
from saem.core.placement_types import NO_SUMS, Sums, sums_of_spec
from saem.core.primitive import Primitive
from saem.core.sharded import ShardingTypeError, asked_for


class SumsCase:
    """What a rule sees: a primitive, its operands with their sums, and those that it asks for."""

    __slots__ = ("prim", "avals", "given", "wanted", "like")
    prim: Any

    def __init__(self, prim: Primitive, avals: Sequence[ShapedArray], wanted: Any):
        self.prim = prim
        self.avals = avals
        self.given = [a.sums for a in avals]
        # What a parameter requests of the result, None if there is no such parameter.
        self.wanted = None if wanted is None else sums_of_spec(wanted.spec)
        # A sharding that has the mesh; None inside shard_map.
        self.like = next((a.explicit for a in avals if a.explicit is not None), wanted)

    def refuse(self, number: int, sentence: str, advice: str,
               kind: type[Exception] = ShardingTypeError) -> Exception:
        return errors.explained(kind, f"{self.prim.name}.U{number}", sentence, advice=advice)

    def without_rule(self, what: str) -> Exception:
        """Return the error for operands with sums of which nothing is known."""
        return self.refuse(
            1, f"{what} rule for {self.prim.name} is not implemented. Got "
            f"{', '.join(a.str_short(True) for a in self.avals)}.",
            "Add the value up first: jax.reshard(x, P(...)).", NotImplementedError)


def summed_types(prim: Primitive, avals: Sequence[ShapedArray], outs: list[ShapedArray]
                 ) -> list[ShapedArray]:
    """Return ``outs``, the types of results, unreduced and reduced as the rule of ``prim`` says.

    Raises: ShardingTypeError or NotImplementedError if it refuses.
    """
    case = SumsCase(prim, avals, asked_for(prim))
    if not prim.starts_sums and not any(s.any for s in (*case.given, case.wanted or NO_SUMS)):
        return outs
    if prim.sum_results is None:
        if sub_jaxprs(prim) or prim.types_varying:  # they are in the types of programs inside
            return outs
        raise case.without_rule("unreduced/reduced")
    found = prim.sum_results(case)
    each: Sequence[Sums] = found if isinstance(found, list) else [found] * len(outs)
    return [aval.with_sums(sums, case.like) for aval, sums in zip(outs, each)]

"""Which types do the results of an operation have, and does a program keep to them?

What its typing rule answers and, where an operand has a placement, what the rules on placements
add: the sharding of each result, the axes along which it varies or is unreduced, the memory that
holds it.
``check_jaxpr`` infers the types of a whole program once more; tests run it after each
transformation.

Read before: ``core.primitive``, ``core.sharded``, ``core.varying``, ``core.sums``,
``core.memory_spaces``.
Read after: ``transform.staging``, which records what is inferred here.
Invariant: without placements the answer is that of the typing rule, at the price of one test; a
program that ``check_jaxpr`` accepts can be lowered without a type error from XLA.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core.avals import ShapedArray
from saem.core.errors import JaxprTypeError
from saem.core.hi_types import carry_states, is_mutable
from saem.core.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, Literal, Var, sub_jaxprs
from saem.core.memory_spaces import HOST, memory_types, space_of
from saem.core.placement_types import Seen
from saem.core.primitive import Primitive
from saem.core.sharded import sharded_types
from saem.core.sums import summed_types
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
    if Seen.sums or prim.starts_sums:
        outs = summed_types(prim, avals, outs)
    if any(space_of(a) is HOST for a in avals):
        outs = memory_types(prim, avals, outs)
    if Seen.states:
        carry_states(prim, avals)
        outs = [a.now() if is_mutable(a) else a for a in outs]
    return outs if prim.multiple_results else outs[0]


# -- programs that are well formed ----------------------------------------------------------------


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Check binding and types of the program ``jaxpr`` and all nested programs.

    Raises: JaxprTypeError naming the equation and what is wrong.
    """
    jaxpr = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    bound: set[Var] = set()

    def bind_var(var: Var, where: str) -> None:
        if var in bound:
            raise JaxprTypeError(f"{where}: variable bound twice in\n{jaxpr}")
        bound.add(var)

    def use(atom: Atom, where: str) -> None:
        if not isinstance(atom, Literal) and atom not in bound:
            raise JaxprTypeError(f"{where}: variable used before it is bound in\n{jaxpr}")

    for var in [*jaxpr.constvars, *jaxpr.invars]:
        bind_var(var, "inputs")
    for number, eqn in enumerate(jaxpr.eqns):
        where = f"equation {number} ({eqn.operation.name})"
        for atom in eqn.invars:
            use(atom, where)
        typed = infer(eqn.operation, [a.aval for a in eqn.invars], checked=True)
        avals = typed if eqn.operation.multiple_results else [typed]
        if len(avals) != len(eqn.outvars):
            raise JaxprTypeError(f"{where}: {len(avals)} outputs typed, {len(eqn.outvars)} bound")
        for aval, var in zip(avals, eqn.outvars):
            if not var.aval.vma and aval.vma:  # written outside shard_map, where nothing varies
                aval = aval.update(vma=var.aval.vma)
            if aval.strip_weak_type() != var.aval.strip_weak_type():
                raise JaxprTypeError(f"{where}: typed {aval}, but bound as {var.aval} in\n{jaxpr}")
            if not isinstance(var, DropVar):
                bind_var(var, where)
        for _, inner in sub_jaxprs(eqn.operation):
            check_jaxpr(inner)
    for atom in jaxpr.outvars:
        use(atom, "outputs")

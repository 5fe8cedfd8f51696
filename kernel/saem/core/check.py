"""Is this jaxpr well formed?

Every variable is bound once and before use, every output aval is what the primitive's typing rule
says, nested programs included.  Tests run this after every transformation.

Read before: ``core.jaxpr``.
Invariant: a jaxpr that passes can be lowered without a type error from XLA.
"""

from __future__ import annotations

from saem.core.infer import infer
from saem.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Literal, Var, sub_jaxprs


class JaxprTypeError(TypeError):
    """A jaxpr that breaks its own rules: always a bug in the engine, never in user code."""


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

    def use(atom, where: str) -> None:
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
            if aval.strip_weak_type() != var.aval.strip_weak_type():
                raise JaxprTypeError(f"{where}: typed {aval}, but bound as {var.aval} in\n{jaxpr}")
            if not isinstance(var, DropVar):
                bind_var(var, where)
        for _, inner in sub_jaxprs(eqn.operation):
            check_jaxpr(inner)
    for atom in jaxpr.outvars:
        use(atom, "outputs")

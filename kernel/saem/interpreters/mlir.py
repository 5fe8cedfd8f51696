"""How is a primitive of the user's compiled?  (``jax.interpreters.mlir``)

By a function of other operations: ``register_lowering(p, lower_fun(fun, multiple_results=False))``.
The engine writes StableHLO as text, so a rule that builds MLIR objects has nothing to build.

Read before: ``core.handles``, ``xla.lowering``.
Invariant: a rule that is registered can be followed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem.core import errors, tree
from saem.core.handles import Handle, lowerings
from saem.transform.staging import trace_flat
from saem.xla.lowering import inline


class LoweringRule:
    """How a primitive is written down: by the program of ``fun``."""

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, ctx: Any, *operands: str, **params: Any) -> list[str]:
        def flat(*xs: Any) -> list[Any]:
            out = self.fun(*xs, **params)
            return tree.leaves(out) if self.multiple_results else [out]

        closed = trace_flat(flat, [ctx.avals[x] for x in operands], name="lower_fun",
                            debug_name=getattr(self.fun, "__name__", "fun"))
        return inline(ctx, closed, dict(zip(closed.jaxpr.invars, operands)))


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweringRule:
    """Return the rule that writes a primitive as ``fun(*args, **params)`` computes it."""
    return LoweringRule(fun, multiple_results)


def register_lowering(prim: Handle, rule: Any, platform: str | None = None, inline: bool = True,
                      cacheable: bool = True) -> None:
    """Let ``rule``, made by ``lower_fun``, compile ``prim`` (for ``platform``, None for all).

    Raises: TypeError for another rule.
    """
    if not isinstance(rule, LoweringRule):
        raise errors.explained(
            errors.ArgumentTypeError, "primitive.C3",
            f"register_lowering: the rule of '{prim.name}' must be made by mlir.lower_fun, got "
            f"{rule!r}.",
            advice="Programs are written as text here, so a rule cannot build MLIR operations. Say "
            "it in jax functions: mlir.lower_fun(fun, multiple_results=False).")
    lowerings[prim, platform] = rule


__all__ = ["LoweringRule", "lower_fun", "register_lowering"]

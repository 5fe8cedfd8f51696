"""Which tools are there to take programs apart?  (``jax.interpreters.partial_eval``)

A function is traced with some inputs known and others not: what depends on known ones alone is
computed, the rest becomes a program of the unknown ones.

Read before: ``transform.staging``, ``transform.linearize``.
Invariant: nothing here changes the program it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from saem.core import lazy
from saem.core.avals import ShapedArray, aval_of
from saem.core.handles import dce_rules
from saem.core.jaxpr import Jaxpr, pick
from saem.core.trace import run_under, state
from saem.extend.linear_util import WrappedFun
from saem.transform.linearize import PartialTrace
from saem.transform.linearize import PartialTracer as JaxprTracer
from saem.transform.staging import StagingTracer as DynamicJaxprTracer
from saem.transform.staging import dead_code_free, trace_flat


class PartialVal(NamedTuple):
    """What is known of a value: itself, beside None; or its aval alone, beside None."""

    aval: ShapedArray | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Return a known value."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """Return an unknown value of type ``aval``."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Return whether the value is known."""
        return self.aval is None

    def get_known(self) -> Any:
        """Return the value, None if it is not known."""
        return self.const

    def get_aval(self) -> Any:
        """Return the type of the value."""
        return aval_of(self.const) if self.aval is None else self.aval


def trace_to_jaxpr_nounits(fun: WrappedFun, pvals: Sequence[PartialVal],
                           instantiate: bool | Sequence[bool] = False
                           ) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Run ``fun`` on what is known: the program of the rest, what is known of its results, consts.

    The program takes the unknown inputs and gives the unknown results; those that ``instantiate``
    marks count as unknown.
    """
    trace = PartialTrace(state.trace, "partial_eval")
    args = [p.const if p.aval is None else trace.new_unknown(p.aval) for p in pvals]
    outs = list(run_under(trace, fun.call_wrapped, args))
    forced = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
    results = [PartialVal.known(x) if trace.is_known(x) and not force
               else PartialVal.unknown(aval_of(x)) for x, force in zip(outs, forced)]
    closed = trace.close([trace.as_atom(x) for x, p in zip(outs, results) if not p.is_known()])
    return closed.jaxpr, results, closed.consts


def trace_to_jaxpr_dynamic(fun: WrappedFun, in_avals: Sequence[ShapedArray], *,
                           keep_inputs: Sequence[bool] | None = None, lower: bool = False,
                           auto_dce: bool = False
                           ) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """Return the program of ``fun`` for inputs of these types, its results' types and its consts.
    """
    closed = trace_flat(fun.call_wrapped, in_avals)
    jaxpr = dead_code_free(closed.jaxpr) if auto_dce else closed.jaxpr
    if keep_inputs is not None:
        jaxpr = jaxpr.replace(invars=pick(jaxpr.invars, keep_inputs))
    return jaxpr, closed.out_avals, closed.consts


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool],
              instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool]]:
    """Return ``jaxpr`` without what ``used_outputs`` do not need, and which inputs it keeps."""
    small = dead_code_free(jaxpr, list(used_outputs))
    read = small.reads()
    forced = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    kept = [v in read or force for v, force in zip(jaxpr.invars, forced)]
    return small.replace(invars=pick(jaxpr.invars, kept)), kept


def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Sequence[bool],
                     instantiate: bool | Sequence[bool] = False
                     ) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Do as ``dce_jaxpr``, also for the constants: which of these, and of the inputs, remain."""
    whole = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    count = len(jaxpr.constvars)
    forced = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    small, kept = dce_jaxpr(whole, used_outputs, [False] * count + list(forced))
    consts = sum(kept[:count])
    return (small.replace(constvars=small.invars[:consts], invars=small.invars[consts:]),
            kept[:count], kept[count:])


__getattr__, __dir__ = lazy.namespace(__name__, {})

__all__ = ["DynamicJaxprTracer", "JaxprTracer", "PartialVal", "dce_jaxpr", "dce_jaxpr_consts",
           "dce_rules", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]

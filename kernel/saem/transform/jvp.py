"""How is forward-mode differentiation done?

A ``JVPTracer`` carries a primal and its tangent.  An operation on it runs the primitive's jvp rule
one interpreter down, so tangents are ordinary values there, and differentiation nests.

Read before: ``core.trace``.  Read after: ``transform.linearize``.
Invariant: a tangent of None is a symbolic zero; a value that depends on no input stays unwrapped.
Source: Pearlmutter and Siskind 2008 (nesting); Griewank and Walther 2008, chapter 3.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from saem._jaxlib import ArrayImpl
from saem.compile import lowering
from saem.core import config
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr, once_per_program, split_list, with_nones
from saem.core.leaks import check_leaks
from saem.core.placement_types import Seen
from saem.core.primitive import Primitive
from saem.core.trace import Trace, Tracer, current, eval_trace, run_under, state
from saem.ops.linear import zeros_of
from saem.ops.reshard import reshard_like
from saem.transform.staging import trace_flat


class WithTangent(Primitive, eq=False):
    """A primitive and its tangent in one operation: what runs outside jit, where calls are
    expensive.

    Operands are all primals, then the tangents that are ``nonzero``; results are the output and, if
    it is not zero, its tangent.  It is never part of a program, so typing and lowering suffice.
    ``with_tangent`` makes one object for equal ones, so identity is equality: cheap cache keys.
    """

    prim: Primitive
    nonzero: tuple[bool, ...]

    multiple_results = True
    types_varying = True

    @property
    def name(self):
        return f"jvp({self.prim.name})"

    def typing(self, *avals):
        return joint_program(self, avals).out_avals

    def written_as(self, avals):
        return joint_program(self, avals)

    def lower(self, ctx, *xs):
        program = self.written_as(tuple([ctx.avals[x] for x in xs]))
        return lowering.inline(ctx, program, dict(zip(program.jaxpr.invars, xs)))


with_tangent = functools.lru_cache(4096)(WithTangent)


@functools.lru_cache(4096)
def joint_program(joint: WithTangent, avals: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """Return the program of the jvp rule for operands of ``avals``."""

    def both(*flat: Any) -> list[Any]:
        primals, tangents = split_list(flat, len(joint.nonzero))
        out, tangent = joint.prim.jvp(primals, with_nones(joint.nonzero, tangents))
        return [out] if tangent is None else [out, tangent]

    return trace_flat(both, avals, name="jvp", debug_name=joint.name)


def jvp_now(prim: Primitive, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Run the jvp rule of ``prim`` on values outside jit, as one compiled call."""
    joint = with_tangent(prim, tuple([t is not None for t in tangents]))
    outs = eval_trace.process(joint, (*primals, *[t for t in tangents if t is not None]))
    return outs if len(outs) == 2 else (outs[0], None)


class JVPTracer(Tracer):
    """A primal with its tangent: the *concrete tracer* of the lessons when its primal is known."""

    __slots__ = ("primal", "tangent")
    kind = "concrete tracer"

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any):
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.aval = primal.aval if type(primal) is ArrayImpl else aval_of(primal)

    def concrete(self) -> Any:
        return self.primal

    def __repr__(self) -> str:
        if self._trace.stack[-2:-1] != ("linearize",):
            return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"
        kind = self.aval.to_tangent_aval().str_short(True)
        return f"GradTracer(primal={self.primal}, typeof(tangent)={kind})"

    __str__ = __repr__


class JVPTrace(Trace):
    """Runs each primitive's jvp rule under the parent interpreter."""

    def __init__(self, parent: Trace, name: str = "jvp"):
        self.parent = parent
        self.stack = (*parent.stack, name)
        self.calls_whole = parent.calls_whole

    def process(self, prim: Primitive, args: tuple) -> Any:
        primals: list[Any] = []
        tangents: list[Any] = []
        differentiated = False
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                differentiated = True
            else:
                primals.append(x)
                tangents.append(None)
        saved = state.trace
        state.trace = parent = self.parent
        try:
            if not differentiated and not prim.touches_refs:
                return parent.process(prim, args)
            if prim.joint_jvp and parent is eval_trace and config.shortcuts.value:
                out, out_tangent = jvp_now(prim, primals, tangents)
            else:
                out, out_tangent = prim.jvp(primals, tangents)
        finally:
            state.trace = saved
        if prim.multiple_results:
            if Seen.placements:
                out_tangent = [self.placed_like(o, t) for o, t in zip(out, out_tangent)]
            return [self.wrap(o, t) for o, t in zip(out, out_tangent)]
        if Seen.placements:
            out_tangent = self.placed_like(out, out_tangent)
        return out if out_tangent is None else JVPTracer(self, out, out_tangent)

    def placed_like(self, out: Any, tangent: Any) -> Any:
        """Return the tangent of ``out`` with the sharding of its primal."""
        if tangent is None:
            return None
        with current(self.parent):
            return reshard_like(tangent, aval_of(out))

    def wrap(self, primal: Any, tangent: Any) -> Any:
        return primal if tangent is None else JVPTracer(self, primal, tangent)

    def split(self, x: Any) -> tuple[Any, Any]:
        """Return the primal and tangent of an output of the differentiated function."""
        if type(x) is JVPTracer and x._trace is self:
            return x.primal, x.tangent
        return x, None


def jvp_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any],
             parent: Trace | None = None, aux: list[Any] | None = None
             ) -> tuple[list[Any], list[Any]]:
    """Run ``fun`` on flat primals and tangents (None is zero); returns both outputs likewise.

    What ``fun`` puts into the list ``aux`` is replaced by its primals.
    """
    trace = JVPTrace(parent or state.trace)
    tracers = [trace.wrap(x, dx) for x, dx in zip(primals, tangents)]
    outs = run_under(trace, fun, tracers)
    trace.live = False
    if aux:
        aux[:] = [trace.split(x)[0] for x in aux]
    pairs = [trace.split(x) for x in outs]
    if config.check_tracer_leaks.value:
        finished = weakref.ref(trace)
        del trace, tracers, outs
        check_leaks(finished)
    return [out for out, _ in pairs], [tangent for _, tangent in pairs]


def instantiate(tangent: Any, primal: Any) -> Any:
    """Return ``tangent``, or zeros of the tangent type of ``primal`` if it is None."""
    return zeros_of(aval_of(primal).to_tangent_aval()) if tangent is None else tangent


def split_tangents(outs: Sequence[Any], out_nonzero: Sequence[bool]
                   ) -> tuple[list[Any], list[Any]]:
    """Return what a program of ``jvp_jaxpr`` gave as outputs and tangents, None where zero."""
    outs, tangents = split_list(outs, len(out_nonzero))
    return outs, with_nones(out_nonzero, tangents)


@once_per_program
def jvp_jaxpr(closed: ClosedJaxpr, nonzero: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program of primals and nonzero tangents to outputs and nonzero out-tangents.

    Its inputs are all primals, then tangents where ``nonzero``; its outputs are all primal
    outputs, then the tangents of those outputs marked in the list returned beside it.
    """
    avals = list(closed.in_avals)
    tangent_avals = [a.to_tangent_aval() for a, nz in zip(avals, nonzero) if nz]
    out_nonzero: list[bool] = []

    def both(*flat: Any) -> list[Any]:
        primals, tangents = split_list(flat, len(avals))
        outs, out_tangents = jvp_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals,
            with_nones(nonzero, tangents))
        out_nonzero[:] = [t is not None for t in out_tangents]
        return [*outs, *(t for t in out_tangents if t is not None)]

    program = trace_flat(both, [*avals, *tangent_avals], name="jvp",
                         debug_name=closed.jaxpr.debug_name)
    return program, out_nonzero

"""How does a Python function become a jaxpr?

It is run once on ``StagingTracer``s, which have an aval but no numbers; every operation is recorded
as an equation.  What the function closes over becomes a constant of the jaxpr.

Read before: ``core.trace``, ``core.jaxpr``.  Read after: ``transform.linearize``, which records
linear programs with the same ``Recorder``.
Invariant: a finished trace accepts no more operations, so a leaked tracer is always detected.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem._jaxlib import ArrayImpl
from saem.compile import lowering
from saem.core import axes, config, errors, source
from saem.core.avals import Kept, ShapedArray, aval_functions, aval_of
from saem.core.dtypes import PYTHON_NUMBERS
from saem.core.events import FunctionRef, TraceBegin, TraceEnd, bus
from saem.core.handles import dce_rules
from saem.core.hi_types import is_high, is_mutable
from saem.core.infer import check_jaxpr, infer
from saem.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, pick
from saem.core.lazy import later
from saem.core.leaks import check_leaks, leaked_tracer
from saem.core.placement_types import Seen
from saem.core.primitive import Primitive
from saem.core.sharded import entries_on, with_spec
from saem.core.trace import Boundary, Mark, Trace, Tracer, eval_trace, marks_of, state
from saem.core.varying import vma_of, wanted
from saem.ops.keys import key_watch
from saem.ops.reshard import Reshard, is_open_number, reduced_like
from saem.placement.transfer_guards import unwatched
from saem.transform.compile_time import CompileTimeTrace

device_sums: Any = later("saem.ops.device_sums")



class Again(threading.local):
    """How many checkpointed programs this thread is computing a second time."""

    depth = 0


again = Again()


class Recorder(Trace):
    """An interpreter that records equations: what staging and linearization share."""

    def __init__(self, parent: Trace, name: str, arg_names: Sequence[str] = ()):
        self.parent = parent
        self.stack = (*parent.stack, name)
        if Mark.used and parent is eval_trace:  # its parent does not know of marks around it
            self.stack = (*marks_of(state.stack), name)
        self.live = True
        self.eqns: list[Eqn] = []
        self.invars: list[Var] = []
        self.arg_names = list(arg_names)
        self.constvars: dict[int, Var] = {}
        self.consts: list[Any] = []
        self.checked = axes.state.checked  # whether types name the axes along which values vary

    def atom(self, x: Any) -> Atom:
        """Return the variable or literal that stands for ``x`` in this program."""
        kind = type(x)
        if kind in PYTHON_NUMBERS or isinstance(x, np.generic):
            aval = aval_of(x)
            return Literal(x if aval.weak_type else np.asarray(x, aval.dtype)[()], aval)
        # An array on a device becomes no literal: that would wait until it is computed.
        if kind is np.ndarray and not x.shape:
            aval = aval_of(x)
            value = np.asarray(x, aval.dtype)[()]
            return Literal(value.item() if aval.weak_type else value, aval)
        if kind is Kept and not x.shape:
            return Literal(x, aval_of(x))
        var = self.constvars.get(id(x))
        if var is None:
            if isinstance(x, Tracer):
                self.check_live(x)
            elif kind is not ArrayImpl and hasattr(kind, "__jax_array__") and not (
                    kind in aval_functions and is_high(aval_of(x))):
                return self.as_atom(x.__jax_array__())
            aval = aval_of(x)
            var = self.constvars[id(x)] = Var(aval.at_first() if is_mutable(aval) else aval)
            self.consts.append(x)
        return var

    def as_atom(self, x: Any) -> Atom:
        """Return what stands for ``x``, which may be a tracer of this interpreter."""
        return self.atom(x)

    def check_live(self, tracer: Tracer) -> None:
        """Refuse a tracer whose interpreter is finished or is not below this one.

        One that a library writes may be above it, and hand it its own values.
        """
        owner = tracer._trace
        if owner in self.ancestors() or (owner.hands_down and self in owner.ancestors()):
            return
        raise leaked_tracer(tracer)

    def record(self, prim: Primitive, invars: list[Atom]) -> list[Var]:
        """Append the equation of ``prim`` on ``invars``; returns its output variables."""
        source_here = state.source or source.capture(3)
        # Most values have no placement, and then their types follow from the typing rule alone.
        if Seen.placements or self.checked:
            if self.checked:
                invars = self.vary_together(prim, invars, source_here)
            elif Seen.sums and prim.joins_reduced:
                invars = self.reduce_together(invars, source_here)
            typed = infer(prim, [a.aval for a in invars], self.checked)
        else:
            typed = prim.typing(*[a.aval for a in invars])
        outvars = [Var(aval) for aval in typed] if prim.multiple_results else [Var(typed)]
        self.eqns.append(Eqn(prim, invars, outvars, source_here, state.stack))
        return outvars

    def vary_together(self, prim: Primitive, invars: list[Atom], where: Any) -> list[Atom]:
        """Return operands of ``prim`` that vary along one set of mesh axes, inside shard_map."""
        atoms = []
        for atom, vma in zip(invars, wanted(prim, [a.aval for a in invars])):
            missing = vma - vma_of(atom.aval)
            if missing and not config.auto_pcast.value:
                raise ValueError(
                    f"Primitive {prim.name} requires varying manual axes to match, but got "
                    f"{[vma_of(a.aval) for a in invars]}. While auto_pcast is off, make them vary "
                    f"alike: lax.pcast(x, {tuple(sorted(map(str, missing)))}, to='varying').")
            atoms.append(self.vary(atom, missing, where) if missing else atom)
        return atoms

    def reduce_together(self, invars: list[Atom], where: Any) -> list[Atom]:
        """Return operands of which numbers are reduced along the axes of the others."""
        like = reduced_like([a.aval for a in invars])
        if like is None:
            return invars
        atoms = []
        for atom in invars:
            if is_open_number(atom.aval):
                var = Var(with_spec(atom.aval, like))
                self.eqns.append(Eqn(Reshard(like, entries_on(like, ())), [atom], [var], where,
                                     state.stack))
                atom = var
            atoms.append(atom)
        return atoms

    def vary(self, atom: Atom, missing: frozenset, where: Any) -> Atom:
        """Return ``atom`` made to vary along the axes ``missing``."""
        reduced = atom.aval.sums.reduced
        for prim, among in ((device_sums.ReducedVaryCast, missing & reduced),
                            (device_sums.PVary, missing - reduced)):
            names = tuple(axis.name for axis in axes.state.env if axis.name in among)
            if names:
                var = Var(infer(prim(names), [atom.aval], True))
                self.eqns.append(Eqn(prim(names), [atom], [var], where, state.stack))
                atom = var
        return atom

    def close(self, outs: Sequence[Atom], name: str = "") -> ClosedJaxpr:
        """End recording: return the program with ``outs`` as outputs."""
        self.live = False
        jaxpr = Jaxpr(list(self.constvars.values()), self.invars, outs, self.eqns,
                      debug_name=name)
        return ClosedJaxpr(jaxpr, self.consts)


class StagingTracer(Tracer):
    """A value known only by its aval: the *abstract tracer* of the lessons."""

    __slots__ = ("_var",)
    kind = "abstract tracer"

    def __init__(self, trace: StagingTrace, var: Atom):
        self._trace = trace
        self.aval = var.aval
        self._var = var

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"

    __str__ = __repr__


class StagingTrace(Recorder):
    """Records every operation, also those on known values."""

    sees_all = True

    def new_arg(self, aval: ShapedArray, source_info: Any = None) -> StagingTracer:
        """Add an input to the program; an input has no place in the source."""
        var = Var(aval.at_first() if is_mutable(aval) else aval)
        self.invars.append(var)
        return StagingTracer(self, var)

    def stage_value(self, x: Any) -> StagingTracer:
        """Return a tracer of ``x``, which is a constant of the program."""
        return x if type(x) is StagingTracer and x._trace is self else self.written(x)

    def written(self, x: Any) -> StagingTracer:
        """Return a tracer of ``x``: a number, or an array that is a constant of the program."""
        return StagingTracer(self, self.atom(x))

    def constant(self, x: Any, put: Callable[[Any], Any]) -> StagingTracer:
        """Return a tracer of ``x``: a number is a literal where it is used, an array a constant."""
        return self.written(unwatched(put, x) if np.shape(x) else x)

    def process(self, prim: Primitive, args: tuple) -> Any:
        if not self.live:
            raise errors.finished_trace(prim.name)
        invars = [
            x._var if type(x) is StagingTracer and x._trace is self else self.as_atom(x)
            for x in args
        ]
        outvars = self.record(prim, invars)
        if Seen.states:
            self.see_states(args, invars)
        if prim.multiple_results:
            return [StagingTracer(self, var) for var in outvars]
        return StagingTracer(self, outvars[0])

    def see_states(self, args: Sequence[Any], atoms: Sequence[Atom]) -> None:
        """Give those of ``args`` that change, the variables ``atoms``, the states they are in now.

        A tracer's type names no other state: programs are kept by the types of their arguments.
        """
        for x, atom in zip(args, atoms):
            if is_mutable(atom.aval) and isinstance(x, Tracer):
                x.aval = atom.aval.now()

    def as_atom(self, x: Any) -> Atom:
        if type(x) is StagingTracer and x._trace is self:
            return x._var
        return self.atom(x)


def staged_in() -> StagingTrace | None:
    """Return the innermost trace that writes a program down, None if there is none."""
    trace: Any = state.trace if config.staging.value else None
    while trace is not None and type(trace) is not StagingTrace:
        trace = trace.parent
    return trace


def trace_flat(fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], *,
               name: str = "jit", arg_names: Sequence[str] = (),
               function: FunctionRef | None = None, debug_name: str = "") -> ClosedJaxpr:
    """Run ``fun`` (flat list of values to flat list of values) on tracers of ``in_avals``.

    Constants that are tracers of an outer interpreter stay as they are in ``consts``.
    """
    if config.no_tracing.value:
        raise RuntimeError(f"re-tracing function {debug_name or name} for `{name}`, but "
                           "'no_tracing' is set")
    watched = bus.active and function is not None
    if watched:
        bus.publish(TraceBegin(function=function, transform=name))
        begin = time.perf_counter()
    trace = StagingTrace(state.trace, Boundary(name), arg_names)
    before, staged = (state.trace, state.stack, state.source), config.staging.get_local()
    eager = config.compile_time.value
    closed = None
    try:
        state.trace = CompileTimeTrace(trace) if eager else trace
        state.stack, state.source = trace.stack, None
        config.staging.set_local(None if eager else True)  # past the C++ fast path
        outs = fun(*[trace.new_arg(aval) for aval in in_avals])
        closed = trace.close([trace.as_atom(x) for x in outs], debug_name)
    finally:
        # First what needs no call of Python: there an interrupt would be raised (``run_under``).
        state.trace, state.stack, state.source = before
        trace.live = False
        config.staging.set_local(staged)
        if watched:
            bus.publish(TraceEnd(function=function, transform=name,
                                 seconds=time.perf_counter() - begin,
                                 equations=len(trace.eqns), failed=closed is None))
    if config.debug_key_reuse.value:
        key_watch.traced(closed)
    if config.enable_checks.value:
        check_jaxpr(closed)
    if config.check_tracer_leaks.value:
        finished = weakref.ref(trace)
        del trace, outs
        check_leaks(finished)
    return closed


def write_function(ctx: Any, function: Callable[..., Sequence[Any]], *xs: str) -> list[str]:
    """Write into a text what ``function``, of arrays, computes of the values ``xs``.

    Its loops are loops of the text, whatever ``disable_jit`` and ``no_tracing`` say.  How results
    are sharded is known already, so it is not asked again.
    """
    given = [ctx.avals[x] for x in xs]
    avals = [ShapedArray(a.shape, a.dtype, a.weak_type) for a in given]
    with (config.holding(config.compile_time, None), config.disable_jit(False),
          config.no_tracing(False)):
        program = trace_flat(function, avals, name=function.__name__)
    return lowering.inline(ctx, program, dict(zip(program.jaxpr.invars, xs)))


def move_tracer_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Turn constants that are tracers into leading inputs; returns the program and those values.

    References and other values that change move with them.
    """
    moved = [isinstance(c, Tracer) for c in closed.consts]
    if not any(moved):
        return closed, []
    moved = [m or v.aval.changes for m, v in zip(moved, closed.jaxpr.constvars)]
    return consts_to_inputs(closed, moved, first=True)


def move_refs(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Turn constants that change, such as references, into last inputs.

    Returns the program and those values.
    """
    moved = [v.aval.changes for v in closed.jaxpr.constvars]
    if not any(moved):
        return closed, []
    return consts_to_inputs(closed, moved, first=False)


def consts_to_inputs(closed: ClosedJaxpr, moved: Sequence[bool], first: bool
                     ) -> tuple[ClosedJaxpr, list[Any]]:
    """Make the constants that are ``moved`` the first or the last inputs; return their values."""
    jaxpr = closed.jaxpr
    inputs = pick(jaxpr.constvars, moved)
    stay = pick(jaxpr.constvars, moved, False)
    values = pick(closed.consts, moved)
    kept = pick(closed.consts, moved, False)
    invars = inputs + jaxpr.invars if first else jaxpr.invars + inputs
    return ClosedJaxpr(jaxpr.replace(constvars=stay, invars=invars), kept), values


def dead_code_free(jaxpr: Jaxpr, needed: Sequence[bool] | None = None) -> Jaxpr:
    """Return ``jaxpr`` without equations that nothing needs; effects are needed always.

    An equation of which some results are needed computes no more than those, if it can.
    """
    outvars = jaxpr.outvars if needed is None else [
        v for v, keep in zip(jaxpr.outvars, needed) if keep]
    live = {v for v in outvars if not isinstance(v, Literal)}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or not live.isdisjoint(eqn.outvars):
            kept = _trimmed(eqn, live)
            if kept is not None:
                eqns.append(kept)
                live.update(a for a in kept.invars if not isinstance(a, Literal))
    return jaxpr.replace(eqns=eqns[::-1], outvars=outvars)


def _trimmed(eqn: Eqn, live: set[Var]) -> Eqn | None:
    """Return ``eqn`` without operands and results that only dead results need, None if it is gone.

    ``trimmed(needed)`` of a primitive gives the primitive that does so, and which of its operands
    and results remain; for a primitive of a user, a rule of ``dce_rules`` rewrites the equation.
    """
    needed = [v in live for v in eqn.outvars]
    if dce_rules and eqn.primitive in dce_rules:
        return dce_rules[eqn.primitive](needed, eqn)[1]
    if eqn.operation.trimmed is None or all(needed):
        return eqn
    prim, ins, outs = eqn.operation.trimmed(needed)
    return eqn.replace(operation=prim,
                       invars=pick(eqn.invars, ins),
                       outvars=pick(eqn.outvars, outs))

"""How is reverse mode made of forward mode?

Run the jvp of a function with known primals and unknown tangents: a ``PartialTrace`` computes what
is known and records the rest, which is a *linear* program.  Running that program backwards by the
transpose rules gives cotangents.  There is no other reverse mode in the engine.

Read before: ``transform.jvp``.  Read after: ``transform.derivatives``.
Invariant: the recorded program is linear in its inputs, and its constants are the residuals.
Source: Radul, Paszke, Frostig, Johnson, Maclaurin 2022, "You Only Linearize Once".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from saem.core import config
from saem.core import refs as core_refs
from saem.core.avals import ShapedArray, aval_of
from saem.core.hi_types import is_mutable
from saem.core.jaxpr import (
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    Literal,
    Var,
    eval_jaxpr,
    needs_x64,
    once_per_program,
    pick,
    split_list,
    sub_jaxprs,
    with_nones,
)
from saem.core.placement_types import Seen
from saem.core.primitive import Primitive, UndefinedPrimal
from saem.core.refs import LinearRef, is_ref
from saem.core.trace import Tracer, beneath, bind, current, go_to_source, state
from saem.ops.linear import add_any_p, literal, zeros_of
from saem.ops.reshard import is_open_number, reduced_like, reshard_like, reshard_to
from saem.transform.jvp import jvp_flat
from saem.transform.staging import Recorder, dead_code_free, trace_flat


class PartialTracer(Tracer):
    """A value that depends on an unknown input."""

    __slots__ = ("_var",)
    kind = "linear tracer"

    def __init__(self, trace: PartialTrace, var: Var):
        self._trace = trace
        self.aval = var.aval
        self._var = var


class PartialTrace(Recorder):
    """Computes operations on known values in the parent and records the others."""

    def new_unknown(self, aval: ShapedArray) -> PartialTracer:
        var = Var(aval.at_first() if is_mutable(aval) else aval)
        self.invars.append(var)
        return PartialTracer(self, var)

    def process(self, prim: Primitive, args: tuple) -> Any:
        for x in args:
            if type(x) is PartialTracer and x._trace is self:
                break
        else:  # all is known
            if prim.touches_refs and prim.waits:
                return prim.wait(self, args)
            saved = state.trace
            state.trace = parent = self.parent
            try:
                return parent.process(prim, args)
            finally:
                state.trace = saved
        if prim.partial_eval is not None:
            return prim.partial_eval(self, args)
        return self.emit(prim, args)

    def emit(self, prim: Primitive, args: Sequence[Any]) -> Any:
        """Record ``prim`` whole, known arguments becoming constants (residuals)."""
        if Seen.sums and prim.joins_reduced:
            args = self.with_numbers_reduced(args)
        outvars = self.record(prim, [x._var if type(x) is PartialTracer and x._trace is self
                                     else self.atom(x) for x in args])
        if prim.multiple_results:
            return [PartialTracer(self, var) for var in outvars]
        return PartialTracer(self, outvars[0])

    def with_numbers_reduced(self, args: Sequence[Any]) -> list[Any]:
        """Return ``args`` with known numbers reduced as the others are: they are residuals."""
        like = reduced_like([aval_of(x) for x in args])
        if like is None:
            return list(args)
        with beneath(self):
            return [reshard_to(x, like) if self.is_known(x) and is_open_number(aval_of(x)) else x
                    for x in args]

    def vary(self, atom: Any, missing: frozenset, where: Any) -> Any:
        """Leave known values as they are: only linear values need varying axes."""
        if isinstance(atom, Literal) or any(atom is v for v in self.constvars.values()):
            return atom
        return super().vary(atom, missing, where)

    def is_known(self, x: Any) -> bool:
        return not (type(x) is PartialTracer and x._trace is self)

    def as_atom(self, x: Any):
        return x._var if type(x) is PartialTracer and x._trace is self else self.atom(x)


class Linearized(NamedTuple):
    """The linear part of a function at a point: a program and its constants, the residuals.

    ``nonzero_in`` marks the inputs that have a tangent, ``nonzero_out`` the outputs that depend on
    them; the program maps the ones to the others.
    """

    jaxpr: Jaxpr
    consts: Sequence[Any]
    nonzero_in: Sequence[bool]
    nonzero_out: Sequence[bool]
    in_avals: Sequence[ShapedArray]
    out_avals: Sequence[ShapedArray]

    def forward(self, tangents: Sequence[Any]) -> list[Any]:
        """Push tangents (one per input, None where it has none) to one tangent per output."""
        args = pick(tangents, self.nonzero_in)
        outs = iter(eval_jaxpr(self.jaxpr, self.consts, *args))
        return [next(outs) if nz else zeros_of(aval.to_tangent_aval())
                for nz, aval in zip(self.nonzero_out, self.out_avals)]

    def backward(self, cts: Sequence[Any]) -> list[Any]:
        """Pull cotangents (one per output, None is zero) back to one per input, None where zero."""
        used = pick(cts, self.nonzero_out)
        got = iter(backward_pass(self.jaxpr, self.consts, used))
        return [next(got) if nz else None for nz in self.nonzero_in]


def linearize_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any],
                   nonzero: Sequence[bool], aux: list[Any] | None = None
                   ) -> tuple[list[Any], Linearized]:
    """Run ``fun`` at ``primals``; returns its outputs and the linear map of tangents there.

    What ``fun`` puts into the list ``aux`` is replaced by its primals.
    """
    partial = PartialTrace(state.trace, "linearize")
    in_avals = [aval_of(x) for x in primals]
    tangents = [partial.new_unknown(aval.to_tangent_aval()) if nz else None
                for aval, nz in zip(in_avals, nonzero)]
    outs, out_tangents = jvp_flat(fun, primals, tangents, partial, aux)
    return outs, linear_part(partial, outs, out_tangents, in_avals, nonzero)


def linear_part(partial: PartialTrace, outs: Sequence[Any], out_tangents: Sequence[Any],
                in_avals: list[ShapedArray], nonzero: Sequence[bool]) -> Linearized:
    """Return the linear map that ``partial`` has recorded, from inputs to ``out_tangents``."""
    # A tangent that is known does not depend on the inputs: linear programs have no constant
    # part, so it can only be a zero that a rule has instantiated.
    nonzero_out = [t is not None and not partial.is_known(t) for t in out_tangents]
    for x in outs:
        if not partial.is_known(x):
            raise ValueError(
                "Linearization failed to produce known values for all output primals. This is "
                "typically caused by attempting to differentiate a function that uses an "
                "operation without reverse-mode derivative, such as a custom_vmap function. "
                "Give it one with custom_vjp.")
    closed = partial.close([t._var for t, nz in zip(out_tangents, nonzero_out) if nz])
    if has_unread(closed.jaxpr):
        closed = needed_part(closed)  # residuals of results that nothing reads are not held
    return Linearized(closed.jaxpr, closed.consts, nonzero, nonzero_out, in_avals,
                      [aval_of(x) for x in outs])


def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], cts_out: Sequence[Any]) -> list[Any]:
    """Transpose a linear program: cotangents of its outputs to cotangents of its inputs.

    A cotangent of None is zero.  Equations that no cotangent reaches cost nothing; those recorded
    on the way have ``transpose`` at the end of their stack.
    """
    if needs_x64(jaxpr):
        # Numbers of Python keep the dtype that they have without.
        given = [literal(ct, aval_of(ct).dtype) if type(ct) in (float, complex) else ct
                 for ct in cts_out]
        with config.enable_x64(True):
            return backward_pass(jaxpr, consts, given)
    source, stack = state.source, state.stack
    if stack[-1:] != ("transpose",):
        state.stack = (*stack, "transpose")
    try:
        return _backward(jaxpr, consts, cts_out, state.stack)
    finally:
        state.source, state.stack = source, stack


class _Cotangents(dict[Var, Any]):
    """The cotangents that have reached variables; one that nothing reached is zero."""

    def add(self, atom: Any, ct: Any) -> None:
        """Add ``ct`` (None is zero) to what has reached ``atom``."""
        if ct is None or type(atom) is Literal:
            return
        if Seen.placements:
            ct = reshard_like(ct, atom.aval.to_ct_aval() if Seen.sums else atom.aval)
        before = self.get(atom)
        self[atom] = ct if before is None else bind(add_any_p, before, ct)

    def reach(self, eqn: Any, eqn_cts: list[Any]) -> bool:
        """Whether a result of ``eqn`` or a reference that it writes to has a cotangent."""
        for ct in eqn_cts:
            if ct is not None:
                return True
        return bool(eqn.effects) and any(is_ref(a.aval) and a in self for a in eqn.invars)

    def operand(self, atom: Any, known: dict[Var, Any]) -> Any:
        """Return what a transpose rule gets for an operand: its value where it is known."""
        if type(atom) is Literal:
            return atom.val
        if atom in known:
            return known[atom]
        if is_ref(atom.aval):
            return LinearRef(atom.aval, self.get(atom))
        return UndefinedPrimal(atom.aval)


def _backward(jaxpr: Jaxpr, consts: Sequence[Any], cts_out: Sequence[Any], stack: tuple[str, ...]
              ) -> list[Any]:
    known: dict[Var, Any] = dict(zip(jaxpr.constvars, consts))
    cts = _Cotangents()
    for atom, ct in zip(jaxpr.outvars, cts_out):
        cts.add(atom, ct)
    for eqn in reversed(jaxpr.eqns):
        eqn_cts = [cts.pop(var, None) for var in eqn.outvars]
        if not cts.reach(eqn, eqn_cts):
            continue
        args = [cts.operand(atom, known) for atom in eqn.invars]
        go_to_source(eqn.source, eqn.stack, stack)
        for atom, arg, ct in zip(eqn.invars, args, _pull(eqn.operation, eqn_cts, args)):
            if type(arg) is UndefinedPrimal:
                cts.add(atom, ct)
            elif type(arg) is LinearRef and arg.ct is not None:
                cts[atom] = arg.ct
    return [cts.get(v) for v in jaxpr.invars]


def _pull(prim: Primitive, cts: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
    """Return the cotangents of the operands of ``prim``; those of references gather in place."""
    if not prim.multiple_results:
        return prim.transpose(cts[0], *args)
    for arg in args if not prim.touches_refs else ():
        if type(arg) is LinearRef and sub_jaxprs(prim):
            return core_refs.chapter.pull_through_refs(prim, cts, args)
    return prim.transpose(cts, *args)


def has_unread(jaxpr: Jaxpr) -> bool:
    """Return whether a call in ``jaxpr`` gives results that nothing reads."""
    calls = [eqn for eqn in jaxpr.eqns if eqn.operation.trimmed is not None]
    if not calls:
        return False
    read = jaxpr.reads()
    return any(v not in read for eqn in calls for v in eqn.outvars)


def needed_part(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return ``closed`` without equations and constants that its results do not need."""
    jaxpr = dead_code_free(closed.jaxpr)
    used = jaxpr.reads()
    read = [v in used for v in jaxpr.constvars]
    return ClosedJaxpr(jaxpr.replace(constvars=pick(jaxpr.constvars, read)),
                       pick(closed.consts, read))


@once_per_program
def partial_eval_jaxpr(closed: ClosedJaxpr, unknown: tuple[bool, ...]
                       ) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
    """Split a program by which inputs are unknown.

    Returns (known program, unknown program, which outputs are unknown, number of residuals):
    the known program maps known inputs to known outputs and residuals; the unknown one maps
    residuals and unknown inputs to unknown outputs.
    """
    out_unknown: list[bool] = []
    found: list[ClosedJaxpr] = []

    def known_part(*known: Any) -> list[Any]:
        rest = iter(known)
        partial = PartialTrace(state.trace, "partial_eval")
        args = [partial.new_unknown(v.aval) if u else next(rest)
                for v, u in zip(closed.jaxpr.invars, unknown)]
        with current(partial):
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        out_unknown[:] = [not partial.is_known(x) for x in outs]
        tail = partial.close([partial.as_atom(x) for x, u in zip(outs, out_unknown) if u])
        tail = needed_part(tail)
        found.append(tail)
        return [*(x for x, u in zip(outs, out_unknown) if not u), *tail.consts]

    in_avals = [v.aval for v, u in zip(closed.jaxpr.invars, unknown) if not u]
    known = trace_flat(known_part, in_avals, name="partial_eval",
                       debug_name=closed.jaxpr.debug_name)
    tail = found[0].jaxpr
    unknown_jaxpr = tail.replace(constvars=[], invars=[*tail.constvars, *tail.invars],
                                 debug_name=closed.jaxpr.debug_name)
    return known, ClosedJaxpr(unknown_jaxpr), out_unknown, len(tail.constvars)


def without_known(jaxpr: Jaxpr, consts: list[Any]) -> tuple[Jaxpr, list[Any]]:
    """Evaluate the equations of ``jaxpr`` that no linear input reaches; they become constants.

    A linear program has such equations where its constants are converted, for example to its dtype.
    """
    known = set(jaxpr.constvars)
    ahead, rest = [], []
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(type(a) is Literal or a in known for a in eqn.invars):
            ahead.append(eqn)
            known.update(eqn.outvars)
        else:
            rest.append(eqn)
    if not ahead:
        return jaxpr, consts
    made = [v for eqn in ahead for v in eqn.outvars if type(v) is not DropVar]
    first = jaxpr.replace(constvars=[], invars=jaxpr.constvars, eqns=ahead, outvars=made)
    values = eval_jaxpr(first, [], *consts)
    return jaxpr.replace(constvars=[*jaxpr.constvars, *made], eqns=rest), [*consts, *values]


@once_per_program
def transpose_jaxpr(closed: ClosedJaxpr, linear: tuple[bool, ...], has_ct: tuple[bool, ...]
                    ) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program of residuals and cotangents to cotangents of the linear inputs.

    Its inputs are the non-linear inputs, then the cotangents marked in ``has_ct``; its outputs
    are the cotangents of the linear inputs marked in the list returned beside it.
    """
    reached: list[bool] = []
    jaxpr = closed.jaxpr
    residuals = pick(jaxpr.invars, linear, False)
    unknowns = pick(jaxpr.invars, linear)
    opened = jaxpr.replace(constvars=[*jaxpr.constvars, *residuals], invars=unknowns)

    def pull(*flat: Any) -> list[Any]:
        values, cts = split_list(flat, len(residuals))
        got = backward_pass(*without_known(opened, [*closed.consts, *values]),
                            with_nones(has_ct, cts))
        reached[:] = [ct is not None for ct in got]
        return [ct for ct in got if ct is not None]

    ct_avals = [v.aval.to_ct_aval() if Seen.sums else v.aval
                for v, has in zip(jaxpr.outvars, has_ct) if has]
    program = trace_flat(pull, [*(v.aval for v in residuals), *ct_avals], name="transpose",
                         debug_name=jaxpr.debug_name)
    return program, reached


__all__ = ["Linearized", "PartialTrace", "backward_pass", "linearize_flat", "partial_eval_jaxpr",
           "transpose_jaxpr", "without_known"]

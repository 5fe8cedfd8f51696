"""How do Taylor series flow through programs inside programs?

As values and coefficients, side by side: each program becomes one that takes and gives both
(``jet_jaxpr``), and a loop carries the coefficients of what it carries.

Read before: ``experimental.jet.taylor``.  Read after: nothing.
Invariant: a loop of series is the series of the loop (tests/kernel/test_jet.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core.jaxpr import ClosedJaxpr
from saem.core.trace import bind
from saem.derivatives.checkpoint import Remat
from saem.experimental.jet.taylor import JetTrace, JetTracer, Stream, all_terms, jet_jaxpr, rules
from saem.jit.call import JitCall
from saem.loops.conditional import Cond
from saem.loops.scan import Scan
from saem.loops.while_loop import While
from saem.transform.restructure import fill_zeros, rearranged, split_list, with_extra_inputs


class Operands:
    """Operands of an operation under ``trace``: values, and the coefficients of the series."""

    def __init__(self, trace: JetTrace, args: Sequence[Any]):
        self.trace = trace
        self.order = trace.order
        self.values = [trace.value(x) for x in args]
        self.moving = [trace.owns(x) for x in args]
        self.series = [[x.term(k) for k in range(1, trace.order + 1)] if trace.owns(x) else None
                       for x in args]

    def terms(self, moving: Sequence[bool], start: int = 0) -> list[Any]:
        """Return all coefficients of those operands from number ``start`` on that are moving."""
        end = start + len(moving)
        return [t for x, s, m in zip(self.values[start:end], self.series[start:end], moving) if m
                for t in all_terms(x, s, self.order)]

    def run(self, prim: Any, operands: Sequence[Any], moving: Sequence[bool]) -> list[Any]:
        """Apply ``prim``, which gives values and then coefficients of those that are ``moving``."""
        outs = bind(prim, *operands)
        rest = iter(outs[len(moving):])
        return [JetTracer(self.trace, x, given([next(rest) for _ in range(self.order)]))
                if m else x for x, m in zip(outs, moving)]


def given(terms: Sequence[Any]) -> Stream:
    """Return the stream of known coefficients."""
    return Stream(lambda k: [terms[k - 1] if k <= len(terms) else None])


def filled(closed: ClosedJaxpr, moving: Sequence[bool], order: int,
           present: Sequence[bool], wanted: Sequence[bool]) -> ClosedJaxpr:
    """Return ``closed`` with zeros for the coefficients of outputs wanted but not present."""
    def each(items: Sequence[Any]) -> list[Any]:
        return [x for x in items for _ in range(order)]

    n = len(present)
    avals = [v.aval.to_tangent_aval() for v in closed.jaxpr.outvars[:n]]
    return fill_zeros(closed, n, each(present), each(wanted), each(avals))


def call_rule(trace: JetTrace, prim: JitCall | Remat, args: Sequence[Any]) -> list[Any]:
    operands = Operands(trace, args)
    program, moving = jet_jaxpr(prim.jaxpr, tuple(operands.moving), trace.order)
    if isinstance(prim, Remat):
        count = sum(operands.moving) * trace.order
        call: Any = prim.with_program(program, prim.flags(range(len(args)), count))
    else:
        call = prim.with_program(program)
    return trace.below(lambda: operands.run(
        call, [*operands.values, *operands.terms(operands.moving)], moving))


def cond_rule(trace: JetTrace, prim: Cond, args: Sequence[Any]) -> list[Any]:
    operands = Operands(trace, args[1:])
    made = [jet_jaxpr(b, tuple(operands.moving), trace.order) for b in prim.branches]
    moving = [any(flags) for flags in zip(*(flags for _, flags in made))]
    branches = [filled(p, moving, trace.order, flags, moving) for p, flags in made]
    return trace.below(lambda: operands.run(
        prim.of(branches),
        [trace.value(args[0]), *operands.values, *operands.terms(operands.moving)], moving))


def scan_rule(trace: JetTrace, prim: Scan, args: Sequence[Any]) -> list[Any]:
    operands, order, k = Operands(trace, args), trace.order, prim.num_carry
    consts_in, carry_in, rows_in = prim.parts(operands.moving)
    while True:
        program, outs = jet_jaxpr(prim.jaxpr, (*consts_in, *carry_in, *rows_in), order)
        grown = [a or b for a, b in zip(carry_in, outs)]
        if grown == carry_in:
            break
        carry_in = grown
    wanted = [*carry_in, *outs[k:]]
    program = filled(program, wanted, order, outs, wanted)
    counts = [sum(flags) * order for flags in (consts_in, carry_in)]
    consts, carry, rows, const_ts, carry_ts, row_ts = split_list(
        program.jaxpr.invars, prim.num_consts, k, len(rows_in), *counts)
    out, ys, out_ts, ys_ts = split_list(program.jaxpr.outvars, k, len(outs) - k, counts[1])
    body = rearranged(program, [*consts, *const_ts, *carry, *carry_ts, *rows, *row_ts],
                      [*out, *out_ts, *ys, *ys_ts])
    scan = prim.other(body, len(consts) + counts[0], k + counts[1])

    def run() -> list[Any]:
        consts, carry, rows = prim.parts(operands.values)
        results = bind(scan, *consts, *operands.terms(consts_in), *carry,
                       *operands.terms(carry_in, len(consts)), *rows,
                       *operands.terms(rows_in, len(consts) + k))
        out, out_ts, ys, ys_ts = split_list(results, k, counts[1], len(outs) - k)
        rest = iter([*out_ts, *ys_ts])
        return [JetTracer(trace, x, given([next(rest) for _ in range(order)])) if m else x
                for x, m in zip([*out, *ys], wanted)]

    return trace.below(run)


def while_rule(trace: JetTrace, prim: While, args: Sequence[Any]) -> list[Any]:
    operands, order = Operands(trace, args), trace.order
    _, consts_in, carry_in = prim.parts(operands.moving)
    while True:
        program, outs = jet_jaxpr(prim.body_jaxpr, (*consts_in, *carry_in), order)
        grown = [a or b for a, b in zip(carry_in, outs)]
        if grown == carry_in:
            break
        carry_in = grown
    program = filled(program, carry_in, order, outs, carry_in)
    counts = [sum(flags) * order for flags in (consts_in, carry_in)]
    consts, carry, const_ts, carry_ts = split_list(
        program.jaxpr.invars, prim.body_nconsts, len(carry_in), counts[0])
    body = rearranged(program, [*consts, *const_ts, *carry, *carry_ts], program.jaxpr.outvars)
    cond = with_extra_inputs(prim.cond_jaxpr, [v.aval for v in carry_ts])
    loop = While(cond, body, prim.cond_nconsts, prim.body_nconsts + counts[0])

    def run() -> list[Any]:
        cond_consts, body_consts, start = prim.parts(operands.values)
        first = len(cond_consts)
        return operands.run(
            loop, [*cond_consts, *body_consts, *operands.terms(consts_in, first), *start,
                   *operands.terms(carry_in, first + len(body_consts))], carry_in)

    return trace.below(run)


rules.update({JitCall: call_rule, Remat: call_rule, Cond: cond_rule, Scan: scan_rule,
              While: while_rule})


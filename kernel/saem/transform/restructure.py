"""How is a program rearranged without tracing it again?

The rules of loops and branches need programs whose inputs are in another order, whose outputs all
exist (a tangent that one branch lacks is zero there), and whose parts run elsewhere (what a loop
computes anew each time from what never changes).  All of it is bookkeeping on variables.

Read before: ``core.jaxpr``, ``transform.linearize``.  Read after: ``loops.conditional``,
``loops.while_loop``, ``loops.scan``.
Invariant: equations are shared, never copied or changed; what is returned passes ``check_jaxpr``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core.avals import ShapedArray
from saem.core.dtypes import ExtendedDType
from saem.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    once_per_program,
    pick,
    split_list,
)
from saem.core.refs import AccumEffect, WriteEffect
from saem.ops.linear import BroadcastInDim, add_any_p, literal, zeros_of
from saem.transform.linearize import partial_eval_jaxpr
from saem.transform.staging import dead_code_free, trace_flat


def rearranged(closed: ClosedJaxpr, invars: Sequence[Var], outvars: Sequence[Atom],
               after: Sequence[Eqn] = ()) -> ClosedJaxpr:
    """Return ``closed`` with other inputs and outputs, and equations after its own."""
    jaxpr = closed.jaxpr
    eqns = [*jaxpr.eqns, *after]
    return ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns), closed.consts)


def with_extra_inputs(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Return ``closed`` with further inputs, last, which it does not read."""
    return rearranged(closed, [*closed.jaxpr.invars, *map(Var, avals)], closed.jaxpr.outvars)


def first_input_to(closed: ClosedJaxpr, place: int) -> ClosedJaxpr:
    """Return ``closed`` with its first input moved behind the next ``place`` ones."""
    first, *rest = closed.jaxpr.invars
    return rearranged(closed, [*rest[:place], first, *rest[place:]], closed.jaxpr.outvars)


def open_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Return ``closed`` with its constants as leading inputs, and their values."""
    if not closed.consts:
        return closed, []
    jaxpr = closed.jaxpr
    opened = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    return ClosedJaxpr(opened), closed.consts


def zeros_atom(aval: ShapedArray, eqns: list[Eqn]) -> Atom:
    """Return a literal or variable that is zero of ``aval``; what it needs is put into ``eqns``."""
    if aval.placement is not None or isinstance(aval.dtype, ExtendedDType):
        # The zeros are placed as what they stand for; a program may define those of its dtype.
        program = trace_flat(lambda: [zeros_of(aval)], [], name="zeros")
        eqns += program.eqns
        return program.jaxpr.outvars[0]
    zero = literal(0, aval.dtype)
    scalar = Literal(zero.item() if aval.weak_type else zero,
                     ShapedArray((), aval.dtype, aval.weak_type))
    return _append(BroadcastInDim(aval.shape), scalar, aval, eqns) if aval.shape else scalar


def _append(prim: Any, atom: Atom, aval: ShapedArray, eqns: list[Eqn]) -> Var:
    out = Var(aval)
    eqns.append(Eqn(prim, [atom], [out], None, ()))
    return out


def added(a: Atom, b: Atom, eqns: list[Eqn]) -> Atom:
    """Return the variable of ``a + b``, whose equation is put into ``eqns``."""
    out = Var(a.aval)
    eqns.append(Eqn(add_any_p, [a, b], [out], None, ()))
    return out


def fill_zeros(closed: ClosedJaxpr, first: int, present: Sequence[bool], wanted: Sequence[bool],
               avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Return ``closed`` with further results: zeros where one is wanted but not present.

    ``present``, ``wanted`` and ``avals`` describe what should follow the ``first`` results: whether
    ``closed`` returns it, whether it is needed, and its type.  All that is present is wanted.
    """
    if list(present) == list(wanted):
        return closed
    eqns: list[Eqn] = []
    have = iter(closed.jaxpr.outvars[first:])
    filled = [next(have) if p else zeros_atom(aval, eqns)
              for p, w, aval in zip(present, wanted, avals) if w]
    return rearranged(closed, closed.jaxpr.invars, [*closed.jaxpr.outvars[:first], *filled],
                      after=eqns)


def split_program(closed: ClosedJaxpr, unknown: Sequence[bool], forced: Sequence[bool]
                  ) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
    """Split ``closed`` as ``partial_eval_jaxpr`` does, ``forced`` outputs being unknown, too.

    A known output that is forced becomes a residual which the unknown program passes on.
    """
    known, rest, out_unknown, count = partial_eval_jaxpr(closed, tuple(unknown))
    wanted = [u or f for u, f in zip(out_unknown, forced)]
    if wanted == out_unknown:
        return known, rest, out_unknown, count
    plain, residuals = split_list(known.jaxpr.outvars, len(known.jaxpr.outvars) - count)
    inner, inputs = split_list(rest.jaxpr.invars, count)
    known_outs, unknown_outs = iter(plain), iter(rest.jaxpr.outvars)
    kept: list[Atom] = []
    outs: list[Atom] = []
    for was, now in zip(out_unknown, wanted):
        atom = next(unknown_outs) if was else next(known_outs)
        if was:
            outs.append(atom)
        elif not now:
            kept.append(atom)
        elif isinstance(atom, Literal):
            outs.append(atom)
        elif atom in residuals:
            outs.append(inner[residuals.index(atom)])
        else:
            residuals.append(atom)
            inner.append(Var(atom.aval))
            outs.append(inner[-1])
    known = rearranged(known, known.jaxpr.invars, [*kept, *residuals])
    return known, rearranged(rest, [*inner, *inputs], outs), wanted, len(residuals)


def reaches(jaxpr: Jaxpr, flags: Sequence[bool]) -> list[bool]:
    """Return which outputs may depend on the inputs that ``flags`` marks."""
    marked = {v for v, flag in zip(jaxpr.invars, flags) if flag}
    for eqn in jaxpr.eqns:
        if eqn.operation.waits:
            marked.update(eqn.outvars)
        elif eqn.operation.splits_by_result and not eqn.effects:
            inner = eqn.operation.nested.programs[0].jaxpr
            inside = reaches(inner, [isinstance(a, Var) and a in marked for a in eqn.invars])
            marked.update(v for v, flag in zip(eqn.outvars, inside) if flag)
        elif not marked.isdisjoint(a for a in eqn.invars if isinstance(a, Var)):
            marked.update(eqn.outvars)
            # A reference passes on what is written to it.
            marked.update(eqn.invars[effect.input] for effect in eqn.effects
                          if isinstance(effect, (WriteEffect, AccumEffect)))
    return [isinstance(a, Var) and a in marked for a in jaxpr.outvars]


def hoisted(jaxpr: Jaxpr, fixed: Sequence[Var]) -> tuple[Jaxpr, Jaxpr]:
    """Take out of ``jaxpr`` what depends on the inputs ``fixed`` alone.

    Returns the program of ``fixed`` to new fixed values, and the remaining one, whose inputs begin
    with those values.  Equations with effects, and those that read no input at all, remain.
    """
    known = set(fixed)
    inside, outside = [], []
    for eqn in jaxpr.eqns:
        own = [a for a in eqn.invars if isinstance(a, Var)]
        if own and not eqn.effects and all(v in known for v in own):
            outside.append(eqn)
            known.update(eqn.outvars)
        else:
            inside.append(eqn)
    made = {v for eqn in outside for v in eqn.outvars}
    read = [a for eqn in inside for a in eqn.invars] + jaxpr.outvars
    values = list(dict.fromkeys(a for a in read if isinstance(a, Var) and a in made))
    return (Jaxpr([], list(fixed), values, outside, debug_name=jaxpr.debug_name),
            jaxpr.replace(invars=[*values, *jaxpr.invars], eqns=inside))


def unread(jaxpr: Jaxpr, invars: Sequence[Var]) -> list[bool]:
    """Return for each of ``invars`` whether nothing in ``jaxpr`` reads it."""
    used = jaxpr.reads()
    return [v not in used for v in invars]


@once_per_program
def trim(closed: ClosedJaxpr, needed: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[bool]]:
    """Return ``closed`` without outputs that are not needed, and which inputs it still reads.

    It keeps all its inputs.
    """
    jaxpr = dead_code_free(closed.jaxpr, needed)
    idle = unread(jaxpr, jaxpr.invars)
    return ClosedJaxpr(jaxpr, closed.consts), [not i for i in idle]


@once_per_program
def keep_inputs(closed: ClosedJaxpr, kept: tuple[bool, ...]) -> ClosedJaxpr:
    """Return ``closed`` with only the inputs that are kept; it must not read the others."""
    return rearranged(closed, pick(closed.jaxpr.invars, kept), closed.jaxpr.outvars)

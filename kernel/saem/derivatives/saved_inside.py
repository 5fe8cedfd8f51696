"""How are values saved from inside a scan or a cond?

A checkpoint's policy is asked about the equations of a body, or of a branch, as about all others.
What it lets be saved from a scan comes out of the first scan stacked, a row for each step; what it
lets be saved from the branches of a cond comes out of the first cond, where branches share places
by type and a branch with nothing for a place gives zeros.  It goes into the second scan or cond as
further operands; everything else the second one computes again, a scan's carry included.

Read before: ``derivatives.checkpoint``, ``loops.scan``, ``loops.conditional``.
Invariant: the second one gives what the whole one gave, from its operands and what was saved.
Source: the documentation of jax.checkpoint_policies; observed behaviour of JAX 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saem.core.avals import ShapedArray
from saem.core.jaxpr import ClosedJaxpr, Eqn, Var, pick, split_list
from saem.core.record import Record
from saem.loops.conditional import Cond
from saem.loops.scan import Scan
from saem.transform.linearize import partial_eval_jaxpr
from saem.transform.nested import carry_fixpoint
from saem.transform.restructure import rearranged, zeros_atom

# Takes a program apart by the policy; its second part gives all results.
Splitter = Callable[[ClosedJaxpr, tuple], Any]


class Apart(Record):
    """A scan or cond as two.

    ``known`` takes the operands that are not ``unknown``, and gives the results that are not
    ``out_unknown`` and what is ``saved``; ``again`` takes all operands and what was saved, and
    gives all results.  ``answers`` are the decisions of the policy on the saved values.
    """

    unknown: list[bool]
    out_unknown: list[bool]
    known: Any
    again: Any
    saved: list[ShapedArray]
    answers: list[Any]


def apart(operation: Any, unknown: Sequence[bool], split: Splitter) -> Apart | None:
    """Return ``operation`` taken apart, or None if nothing inside it is to be saved."""
    if isinstance(operation, Scan):
        return scan_apart(operation, unknown, split)
    if isinstance(operation, Cond) and not unknown[0]:
        return cond_apart(operation, unknown, split)
    return None


def scan_apart(scan: Scan, unknown: Sequence[bool], split: Splitter) -> Apart | None:
    """Return ``scan`` taken apart, or None if nothing inside it is to be saved."""
    consts_in, carry_in, rows_in = scan.parts(unknown)
    carry_in, outs, _ = carry_fixpoint(lambda carry: partial_eval_jaxpr(
        scan.jaxpr, (*consts_in, *carry, *rows_in))[2:], carry_in)
    flags = (*consts_in, *carry_in, *rows_in)
    parts = split(scan.jaxpr, flags)
    if not parts.saved_count or parts.consts or parts.known.consts:
        return None
    out_unknown = [*carry_in, *outs[scan.num_carry:]]
    # A carry that waits although each step's own is known is left to the second scan.
    outputs = iter(parts.known.jaxpr.outvars)
    plain = [next(outputs) if not waits else None for waits in parts.out_unknown]
    known = rearranged(parts.known, parts.known.jaxpr.invars,
                       [*pick(plain, out_unknown, False), *outputs])
    kept, _ = split_list(parts.again.jaxpr.invars, parts.saved_count)
    again = rearranged(parts.again, [*parts.jaxpr.invars, *kept], parts.again.jaxpr.outvars)
    return Apart(
        unknown=list(flags), out_unknown=out_unknown,
        known=scan.other(known, consts_in.count(False), carry_in.count(False)),
        again=scan.other(again, scan.num_consts, scan.num_carry),
        saved=[scan.stacked(v.aval) for v in kept], answers=[parts.answers.get(v) for v in kept])


def cond_apart(cond: Cond, unknown: Sequence[bool], split: Splitter) -> Apart | None:
    """Return ``cond``, whose choice is known, taken apart, or None if no branch saves a value."""
    parts = [split(branch, tuple(unknown[1:])) for branch in cond.branches]
    if not any(p.saved_count for p in parts) or any(p.consts or p.known.consts for p in parts):
        return None
    out_unknown = [any(flags) for flags in zip(*(p.out_unknown for p in parts))]
    places: list[tuple[ShapedArray, Any]] = []
    # For each branch, from the number of a place to the saved variable that takes it.
    taken: list[dict[int, Var]] = []
    for part in parts:
        mine: dict[int, Var] = {}
        for v in part.again.jaxpr.invars[:part.saved_count]:
            wanted = v.aval.strip_weak_type(), part.answers.get(v)
            free = (n for n, have in enumerate(places) if have == wanted and n not in mine)
            number = next(free, len(places))
            places += [wanted] * (number == len(places))
            mine[number] = v
        taken.append(mine)
    known, again = [], []
    for part, mine in zip(parts, taken):
        outputs = iter(part.known.jaxpr.outvars)
        plain = [next(outputs) if not waits else None for waits in part.out_unknown]
        value = dict(zip(part.again.jaxpr.invars, outputs))
        zeros: list[Eqn] = []
        held = [value[mine[n]] if n in mine else zeros_atom(aval, zeros)
                for n, (aval, _) in enumerate(places)]
        known.append(rearranged(part.known, part.known.jaxpr.invars, [
            *pick(plain, out_unknown, False), *held], after=zeros))
        leading = [mine[n] if n in mine else Var(aval) for n, (aval, _) in enumerate(places)]
        again.append(rearranged(
            part.again, [*part.jaxpr.invars, *leading], part.again.jaxpr.outvars))
    return Apart(unknown=list(unknown), out_unknown=out_unknown, known=cond.of(known),
                 again=cond.of(again), saved=[aval for aval, _ in places],
                 answers=[answer for _, answer in places])

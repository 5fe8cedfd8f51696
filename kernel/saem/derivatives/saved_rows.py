"""How are values saved from inside a scan?

A checkpoint's policy is asked about the equations of the body as about all others.  What it lets be
saved comes out of the first scan stacked, a row for each step, and goes into the second one as a
further operand; everything else the second scan computes again, its carry included.

Read before: ``derivatives.checkpoint``, ``loops.scan``.
Invariant: the second scan gives what the whole one gave, from its operands and the saved stacks.
Source: the documentation of jax.checkpoint_policies; observed behaviour of JAX 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saem.core.avals import ShapedArray
from saem.core.jaxpr import ClosedJaxpr
from saem.core.record import Record
from saem.loops.scan import Scan
from saem.transform.linearize import partial_eval_jaxpr
from saem.transform.nested import carry_fixpoint
from saem.transform.restructure import pick, rearranged, split_list


class Rows(Record):
    """A scan as two.

    ``known`` takes the operands that are not ``unknown``, and gives the results that are not
    ``out_unknown`` and the ``stacks``; ``again`` takes all operands and the stacks, and gives all
    results.  ``answers`` are what the policy said of the values that the stacks hold.
    """

    unknown: list[bool]
    out_unknown: list[bool]
    known: Scan
    again: Scan
    stacks: list[ShapedArray]
    answers: list[Any]


def saved_rows(scan: Scan, unknown: Sequence[bool], split: Callable[[ClosedJaxpr, tuple], Any]
               ) -> Rows | None:
    """Return ``scan`` taken apart, or None if nothing inside it is to be saved.

    ``split(body, unknown)`` takes a program apart by the policy; its second part gives all results.
    """
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
    return Rows(
        unknown=list(flags), out_unknown=out_unknown,
        known=scan.other(known, consts_in.count(False), carry_in.count(False)),
        again=scan.other(again, scan.num_consts, scan.num_carry),
        stacks=[scan.stacked(v.aval) for v in kept], answers=[parts.answers.get(v) for v in kept])

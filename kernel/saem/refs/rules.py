"""How do the arrays that references hold travel through calls, branches and loops?

Each rule makes the programs inside a primitive pure and binds the primitive again: a call and a
branch return what was written, a scan carries it (or gives it row by row, for a reference that it
walks along), a while loop carries it, too.

Read before: ``refs.discharge``, ``loops.scan``, ``loops.while_loop``.
Invariant: a reference that is only read stays an operand (tests/kernel/test_refs.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from saem.core import errors
from saem.core.jaxpr import ClosedJaxpr, Var, eval_jaxpr
from saem.core.trace import bind
from saem.derivatives.checkpoint import Remat
from saem.derivatives.custom_jvp import CustomJVPCall
from saem.derivatives.custom_vjp import CustomVJPCall
from saem.jit.call import JitCall, ProgramCall
from saem.loops.conditional import Cond
from saem.loops.scan import Scan
from saem.loops.while_loop import While
from saem.parallel.shard_map_call import ShardMap
from saem.refs.discharge import Outcome, discharged, rules
from saem.transform.restructure import pick, rearranged, split_list


def call(prim: ProgramCall, args: list[Any], which: tuple[bool, ...], deep: bool, names: list[Any]
         ) -> Outcome:
    """A call of one program, which keeps its own options."""
    program, written = discharged(prim.program, which, deep)
    again = (prim.with_program(program) if isinstance(prim, JitCall) else
             dataclasses.replace(prim, **{prim.holds: program}))
    outs = bind(again, *args)
    return split(outs, prim.program, written)


def inlined(prim: ProgramCall, args: list[Any], which: tuple[bool, ...], deep: bool,
            names: list[Any]) -> Outcome:
    """A call with a rule of its own, which speaks of references and so is no rule of arrays."""
    program, written = discharged(prim.program, which, deep)
    return split(eval_jaxpr(program.jaxpr, program.consts, *args), prim.program, written)


def split(outs: Sequence[Any], program: ClosedJaxpr, written: Sequence[int]) -> Outcome:
    results, news = split_list(outs, len(program.jaxpr.outvars))
    return results, dict(zip(written, news))


def branches(prim: Cond, args: list[Any], which: tuple[bool, ...], deep: bool, names: list[Any]
             ) -> Outcome:
    """A choice: every branch returns what any of them writes."""
    inside = which[1:]
    written = sorted({i for b in prim.branches for i in discharged(b, inside, deep)[1]})
    programs = tuple(discharged(b, inside, deep, tuple(written))[0] for b in prim.branches)
    outs = bind(dataclasses.replace(prim, branches=programs), *args)
    return split(outs, prim.branches[0], [i + 1 for i in written])


def scan(prim: Scan, args: list[Any], which: tuple[bool, ...], deep: bool, names: list[Any]
         ) -> Outcome:
    """A scan carries what it writes, and stacks what it writes row by row."""
    program, written = discharged(prim.jaxpr, which, deep)
    first_row = prim.num_consts + prim.num_carry
    outs, news = split_list(program.jaxpr.outvars, len(prim.jaxpr.jaxpr.outvars))
    carried = [i for i in written if i < prim.num_consts]
    moved = [i in carried for i in range(prim.num_consts)]
    inputs, operands = ([*pick(x[:prim.num_consts], moved, False), *pick(x, moved),
                         *x[prim.num_consts:]] for x in (program.jaxpr.invars, args))
    body = rearranged(program, inputs, [*news[:len(carried)], *outs, *news[len(carried):]])
    count = len(carried)
    results = bind(prim.other(body, prim.num_consts - count, prim.num_carry + count), *operands)
    kept, results, rows = split_list(results, count, len(outs))
    assert all(i >= first_row for i in written[count:])
    return results, dict(zip(written, [*kept, *rows]))


def loop(prim: While, args: list[Any], which: tuple[bool, ...], deep: bool, names: list[Any]
         ) -> Outcome:
    """A while loop carries what its body writes; its condition looks at what is carried."""
    asked, stepped, started = prim.parts(which)
    ask, changed = discharged(prim.cond_jaxpr, (*asked, *started), deep)
    if changed:
        raise errors.explained(
            NotImplementedError, "ref.C7",
            "writing to a Ref in the condition of a while loop is not supported.",
            advice="Write in the body of the loop.")
    step, written = discharged(prim.body_jaxpr, (*stepped, *started), deep)
    cond_names, body_names, _ = prim.parts(names)
    cond_args, body_args, start = prim.parts(args)
    moved = [i in written for i in range(prim.body_nconsts)]
    own, carry = split_list(step.jaxpr.invars, prim.body_nconsts)
    outs, news = split_list(step.jaxpr.outvars, len(prim.body_jaxpr.jaxpr.outvars))
    body = rearranged(step, [*pick(own, moved, False), *pick(own, moved), *carry], [*news, *outs])
    held = pick(body_names, moved)
    seen = [name in held and flag for name, flag in zip(cond_names, asked)]
    own, carry = split_list(ask.jaxpr.invars, prim.cond_nconsts)
    ours = dict(zip([name for name, s in zip(cond_names, seen) if s], pick(own, seen)))
    carried = [ours[name] if name in ours else Var(v.aval)
               for name, v in zip(held, body.jaxpr.invars[moved.count(False):])]
    cond = rearranged(ask, [*pick(own, seen, False), *carried, *carry], ask.jaxpr.outvars)
    results = bind(While(cond, body, seen.count(False), moved.count(False)),
                   *pick(cond_args, seen, False), *pick(body_args, moved, False),
                   *pick(body_args, moved), *start)
    kept, results = split_list(results, len(held))
    return results, {prim.cond_nconsts + i: new for i, new in zip(written, kept)}


def spread(prim: ShardMap, args: list[Any], which: tuple[bool, ...], deep: bool, names: list[Any]
           ) -> Outcome:
    """A program on many devices gives back what it writes as it lay."""
    with prim.inside():
        program, written = discharged(prim.jaxpr, which, deep)
    specs = (*prim.out_specs, *(prim.in_specs[i] for i in written))
    return split(bind(prim.around(program, prim.in_specs, specs), *args), prim.jaxpr, written)


rules.update({JitCall: call, Remat: call, CustomJVPCall: inlined, CustomVJPCall: inlined,
              Cond: branches, Scan: scan, While: loop, ShardMap: spread})

"""How is an operation checked that has programs inside?

Its programs are replaced by checked ones, whose errors are further results, and what goes around a
loop carries the error along.  One rule for each such operation.

Read before: ``experimental.checkify.transform``.  Read after: nothing.
Invariant: an error of a program inside is that of the step, branch or device that ran it; the
errors of steps not taken do not count (tests/kernel/test_checkify_nested.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core import errors, tree
from saem.core.avals import aval_of
from saem.core.jaxpr import ClosedJaxpr
from saem.core.trace import bind
from saem.core.varying import vma_of
from saem.derivatives.checkpoint import Remat
from saem.derivatives.custom_jvp import CustomJVPCall
from saem.derivatives.custom_rule import closure_differentiated
from saem.derivatives.custom_vjp import CustomVJPCall
from saem.derivatives.custom_vmap import CustomVmapCall
from saem.experimental.checkify.checks import Check, Error, Kind, choose, init_error
from saem.experimental.checkify.transform import Categories, Checked, checked, retraced, rules
from saem.jit.call import JitCall
from saem.loops.conditional import Cond
from saem.loops.scan import Scan
from saem.loops.while_loop import While
from saem.ops.collectives import PVary
from saem.ops.linear import broadcast_in_dim
from saem.ops.reduce import reduce_or
from saem.parallel.shard_map_call import ShardMap
from saem.placement.shardings import PartitionSpec
from saem.transform.restructure import rearranged, split_list
from saem.transform.vmap import match_dim, vmap_flat

Outcome = tuple[Error, list[Any]]


def check_rule(prim: Check, values: Sequence[Any], wanted: Categories) -> Outcome:
    """Take the check out of the program; what nobody wants to know is dropped."""
    return prim.error(values).only(lambda kind: kind.error in wanted), []


def call_rule(prim: JitCall, values: Sequence[Any], wanted: Categories) -> Outcome:
    inner = checked(prim.jaxpr, wanted)
    return inner.split(bind(prim.with_program(inner.program), *values))


def checkpoint_rule(prim: Remat, values: Sequence[Any], wanted: Categories) -> Outcome:
    inner = checked(prim.jaxpr, wanted)
    return inner.split(bind(prim.with_program(inner.program, prim.prevent_cse), *values))


# -- branches and loops ----------------------------------------------------------------------------


def kinds_of(parts: Sequence[Checked]) -> list[Kind]:
    """Return the kinds of failure of all ``parts``."""
    leaves = [part.err_tree.unflatten([None] * part.count) for part in parts]
    return list(dict.fromkeys(kind for error in leaves for kind in error.slots))


def sites_of(parts: Sequence[Checked]) -> tuple:
    """Return the sites of all ``parts``, one after the other."""
    return tuple(site for part in parts
                 for site in part.err_tree.unflatten([None] * part.count).sites)


def none_of(parts: Sequence[Checked]) -> Error:
    """Return an error that can hold what any of ``parts`` can say, and says nothing yet."""
    return Error(sites=sites_of(parts)).widened(kinds_of(parts))


def aligned(parts: Sequence[Checked]) -> tuple[list[Any], Error]:
    """Return functions that run each of ``parts`` and say their errors in one form, and it."""
    start = none_of(parts)
    kinds, offset, runs = list(start.slots), 0, []
    for part in parts:
        def run(*args: Any, part: Checked = part, offset: int = offset) -> Outcome:
            error, outs = part.run(*args)
            return error.renumbered(offset, start.sites).widened(kinds), outs

        runs.append(run)
        offset += len(sites_of([part]))
    return runs, start


def cond_rule(prim: Cond, values: Sequence[Any], wanted: Categories) -> Outcome:
    """Give each branch the error of its own checks, in a form that all share."""
    first = prim.branches[0]

    def make() -> tuple[list[ClosedJaxpr], Any, int]:
        parts = [checked(branch, wanted) for branch in prim.branches]
        runs, start = aligned(parts)
        leaves, err_tree = tree.flatten(start)
        programs = [part.program if not leaves else
                    retraced(branch, lambda *args, run=run: with_leaves(run(*args)))
                    for branch, part, run in zip(prim.branches, parts, runs)]
        return programs, err_tree, len(leaves)

    programs, err_tree, count = first.derived(("checked cond", wanted, prim.branches[1:]), make)
    return Checked(programs[0], err_tree, count).split(bind(prim.of(programs), *values))


def with_leaves(outcome: Outcome) -> list[Any]:
    """Return the leaves of an error, then the results."""
    error, outs = outcome
    return [*tree.leaves(error), *outs]


def scan_rule(prim: Scan, values: Sequence[Any], wanted: Categories) -> Outcome:
    """Carry the error from row to row, the first failure staying."""
    inner = checked(prim.jaxpr, wanted)
    start = none_of([inner])
    leaves, err_tree = tree.flatten(start)
    if not leaves:
        return init_error, bind(
            prim.other(inner.program, prim.num_consts, prim.num_carry), *values)

    def body(*args: Any) -> list[Any]:
        before, consts, rest = split_list(args, len(leaves), prim.num_consts)
        error, outs = inner.run(*consts, *rest)
        return with_leaves((err_tree.unflatten(before).joined(error), outs))

    def make() -> ClosedJaxpr:
        program = retraced(prim.jaxpr, body, [aval_of(x).strip_weak_type() for x in leaves])
        return moved_back(program, len(leaves), prim.num_consts)

    program = prim.jaxpr.derived(("checked scan", wanted, prim.num_consts), make)
    consts, carry, rows = prim.parts(values)
    outs = bind(prim.other(program, prim.num_consts, len(leaves) + prim.num_carry),
                *consts, *leaves, *carry, *rows)
    return err_tree.unflatten(outs[:len(leaves)]), outs[len(leaves):]


def moved_back(closed: ClosedJaxpr, count: int, place: int) -> ClosedJaxpr:
    """Return ``closed`` with its first ``count`` inputs behind the next ``place`` ones."""
    first, before, rest = split_list(closed.jaxpr.invars, count, place)
    return rearranged(closed, [*before, *first, *rest], closed.jaxpr.outvars)


def while_rule(prim: While, values: Sequence[Any], wanted: Categories) -> Outcome:
    """Carry the error; what the condition says of a step is joined at the end of the one before.

    A loop on a stack goes on while any example does, those that are done standing still; what the
    user checks counts for the others only (``loops.while_loop.guarded``).

    Raises: ValueError if something else is checked there, which cannot tell the examples apart.
    """
    parts = [checked(prim.cond_jaxpr, wanted), checked(prim.body_jaxpr, wanted)]
    (ask, step), start = aligned(parts)
    leaves, err_tree = tree.flatten(start)
    if not leaves:
        return init_error, bind(While(parts[0].program, parts[1].program, prim.cond_nconsts,
                                      prim.body_nconsts), *values)
    many = len(prim.cond_jaxpr.out_avals[0].shape)
    if many and not all(site.asked for site in start.sites):
        raise errors.explained(
            errors.ArgumentError, "checkify.C2",
            "Checkify does not support batched while-loops (checkify-of-vmap-of-while).",
            advice="Hint: if possible, move the vmap to the outer level to get "
            "vmap-of-checkify-of-while. What check() says is found here, too: user_checks.")
    asks = many or parts[0].count
    given = prim.cond_nconsts if asks else 0  # the body asks, too

    def body(*args: Any) -> list[Any]:
        asked, before, rest = split_list(args, given, len(leaves))
        error, outs = step(*rest)
        if many:
            carry = rest[prim.body_nconsts:]
            (here,) = ask(*asked, *carry)[1]
            outs = [choose(here, new, old) for new, old in zip(outs, carry)]
        error = err_tree.unflatten(before).joined(error)
        if asks:
            error = error.joined(ask(*asked, *outs)[0])
        return with_leaves((error, outs))

    def goes_on(*args: Any) -> list[Any]:
        (here,) = ask(*args[len(leaves):])[1]
        return [reduce_or(here, tuple(range(many))) if many else here]

    def make() -> tuple[ClosedJaxpr, ClosedJaxpr]:
        avals = [aval_of(x).strip_weak_type() for x in leaves]
        asked = prim.cond_jaxpr.in_avals[:given]
        around = retraced(prim.body_jaxpr, body, [*asked, *avals])
        asking, errs, rest = split_list(around.jaxpr.invars, given, len(leaves))
        around = rearranged(around, [*asking, *rest[:prim.body_nconsts], *errs,
                                     *rest[prim.body_nconsts:]], around.jaxpr.outvars)
        return moved_back(retraced(prim.cond_jaxpr, goes_on, avals), len(leaves),
                          prim.cond_nconsts), around

    flag, around = prim.body_jaxpr.derived(
        ("checked while", wanted, prim.cond_jaxpr, prim.cond_nconsts, prim.body_nconsts), make)
    cond_consts, body_consts, carry = prim.parts(values)
    first = start.joined(ask(*cond_consts, *carry)[0]) if asks else start
    outs = bind(While(flag, around, prim.cond_nconsts, given + prim.body_nconsts),
                *cond_consts, *cond_consts[:given], *body_consts, *tree.leaves(first), *carry)
    return err_tree.unflatten(outs[:len(leaves)]), outs[len(leaves):]


# -- functions with rules of their own -------------------------------------------------------------


class Beside:
    """A user's rule for a function that returns the ``count`` leaves of an error besides.

    The error is that of the function itself, ``inner``; the rule does not know of it.  The first
    ``consts`` operands are what the function closes over, which the rule is not given.
    """

    def __init__(self, rule: Any, inner: Checked, consts: int, kind: str):
        self.rule = rule
        self.inner = inner
        self.consts = consts
        self.kind = kind

    def __getattr__(self, name: str) -> Any:  # what printed programs say of the rule
        return getattr(self.rule, name)

    def leaves(self, operands: Sequence[Any], moving: Sequence[bool]) -> list[Any]:
        """Return the leaves of the error.

        Raises: UnexpectedTracerError if what the function closes over is differentiated.
        """
        if any(moving[:self.consts]):
            raise closure_differentiated(self.kind)
        return tree.leaves(self.inner.run(*operands)[0])


class BesideJVP(Beside):
    """Such a rule of a custom_jvp function."""

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]
                 ) -> tuple[list[Any], list[Any]]:
        leaves = self.leaves(primals, [t is not None for t in tangents])
        outs, out_tangents = self.rule(primals[self.consts:], tangents[self.consts:])
        return [*leaves, *outs], [*[None] * len(leaves), *out_tangents]


class BesideVJP(Beside):
    """Such a rule of a custom_vjp function."""

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]
                 ) -> tuple[list[Any], list[Any], Any]:
        leaves = self.leaves(primals, perturbed)
        outs, residuals, backward = self.rule(primals[self.consts:], perturbed[self.consts:])
        return [*leaves, *outs], residuals, BesideBackward(backward, len(leaves), self.consts)


class BesideBackward:
    """A backward rule that is not given the cotangents of an error."""

    def __init__(self, backward: Any, count: int, consts: int):
        self.backward = backward
        self.count = count
        self.consts = consts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backward, name)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return [*[None] * self.consts, *self.backward(residuals, cts[self.count:])]


class BesideBatch(Beside):
    """Such a rule of a custom_vmap function."""

    def __call__(self, size: int, batched: Sequence[bool], xs: Sequence[Any]
                 ) -> tuple[list[Any], list[bool]]:
        leaves, dims = vmap_flat(lambda *args: tree.leaves(self.inner.run(*args)[0]), size, xs,
                                 [0 if b else None for b in batched])
        stacks = [x if d is None else match_dim(x, d, 0, size) for x, d in zip(leaves, dims)]
        outs, flags = self.rule(size, batched[self.consts:], xs[self.consts:])
        return [*stacks, *outs], [*(d is not None for d in dims), *flags]


def custom_jvp_rule(prim: CustomJVPCall, values: Sequence[Any], wanted: Categories) -> Outcome:
    inner = checked(prim.call_jaxpr, wanted)
    call = CustomJVPCall(inner.program, prim.jvp_jaxpr_fun, prim.num_consts, prim.symbolic_zeros)
    if inner.count:
        rule = BesideJVP(prim.jvp_jaxpr_fun, inner, prim.num_consts, "custom_jvp")
        call = CustomJVPCall(inner.program, rule, 0, prim.symbolic_zeros)
    return inner.split(bind(call, *values))


def custom_vjp_rule(prim: CustomVJPCall, values: Sequence[Any], wanted: Categories) -> Outcome:
    inner = checked(prim.call_jaxpr, wanted)
    call = CustomVJPCall(inner.program, prim.fwd_jaxpr_thunk, prim.num_consts)
    if inner.count:
        rule = BesideVJP(prim.fwd_jaxpr_thunk, inner, prim.num_consts, "custom_vjp")
        call = CustomVJPCall(inner.program, rule, 0)
    return inner.split(bind(call, *values))


def custom_vmap_rule(prim: CustomVmapCall, values: Sequence[Any], wanted: Categories) -> Outcome:
    inner = checked(prim.call, wanted)
    call = CustomVmapCall(inner.program, prim.rule, prim.num_consts)
    if inner.count:
        call = CustomVmapCall(inner.program, BesideBatch(
            prim.rule, inner, prim.num_consts, "custom_vmap"), 0)
    return inner.split(bind(call, *values))


# -- devices ---------------------------------------------------------------------------------------


def shard_map_rule(prim: ShardMap, values: Sequence[Any], wanted: Categories) -> Outcome:
    """Give every device an error of its own: flags and codes come out as one row of each."""
    with prim.inside():
        inner = checked(prim.jaxpr, wanted)
        if not inner.count:
            return init_error, bind(prim.around(inner.program, prim.in_specs, prim.out_specs),
                                    *values)
        program = prim.jaxpr.derived(("checked shard_map", wanted), lambda: retraced(
            prim.jaxpr, lambda *args: on_device(prim, *inner.run(*args))))
    spec = PartitionSpec(prim.named)
    outs = bind(prim.around(program, prim.in_specs, [*[spec] * inner.count, *prim.out_specs]),
                *values)
    error, outs = inner.split(outs)
    number = prim.size(prim.named)
    slots = {Kind(kind.error, kind.payload, (number, *kind.mapped)): slot
             for kind, slot in error.slots.items()}
    return Error(slots, error.sites), outs


def on_device(prim: ShardMap, error: Error, outs: Sequence[Any]) -> list[Any]:
    """Return what one device gives: the leaves of its error as rows, and its results."""
    rows = []
    for x in tree.leaves(error):
        shape = aval_of(x).shape
        row = broadcast_in_dim(x, (1, *shape), tuple(range(1, len(shape) + 1)))
        missing = frozenset(prim.named) - vma_of(aval_of(row)) if prim.check_vma else ()
        rows.append(bind(PVary(tuple(n for n in prim.named if n in missing)), row)
                    if missing else row)
    return [*rows, *outs]


rules.update({
    Check: check_rule, JitCall: call_rule, Remat: checkpoint_rule, Cond: cond_rule,
    Scan: scan_rule, While: while_rule, CustomJVPCall: custom_jvp_rule,
    CustomVJPCall: custom_vjp_rule, CustomVmapCall: custom_vmap_rule, ShardMap: shard_map_rule,
})

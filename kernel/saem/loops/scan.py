"""How does a program loop over the rows of arrays, with a carry?

``scan`` traces its body once and binds one primitive, ``scan``, whose operands are the body's
constants, the carry to start with, and the stacks to read.  Unlike ``while`` its length is known,
so what the backward pass needs of each row can be stacked: its transpose is a scan the other way.

Read before: ``loops.carry``, ``transform.restructure``.  Read after: ``loops.while_loop``.
Invariant: what a body computes from its constants alone is computed once, before the loop, when
the loop is split for reverse mode.
Source: the documentation of jax.lax.scan; Griewank and Walther 2008, chapter 12 (storing a loop).
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saem.compile.lowering import lower_block
from saem.compile.regions import COUNTER, FLAG, read_row, write_row, write_while, zeros
from saem.compile.text import physical_aval
from saem.core import config, errors, tree
from saem.core import jaxpr as jaxpr_module
from saem.core.arguments import is_integer
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import Dim
from saem.core.frames import boundary
from saem.core.hi_types import as_type, is_high
from saem.core.jaxpr import (
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Var,
    eval_jaxpr,
    merge,
    pick,
    split_list,
    with_nones,
)
from saem.core.primitive import UndefinedPrimal, primitive
from saem.core.sharded import entries_of, sharding_of
from saem.core.trace import beneath, bind, concrete_or_error
from saem.loops.carry import (
    Spoken,
    Types,
    check_callable,
    check_carry,
    check_operands,
    fix_carry,
    run_at_once,
    trace_body,
    trace_carry,
    unchanged,
)
from saem.ops.linear import zeros_of
from saem.ops.shape import concatenate, expand_dims
from saem.ops.slicing import index_in_dim
from saem.transform.linearize import (
    PartialTrace,
    partial_eval_jaxpr,
    transpose_jaxpr,
)
from saem.transform.nested import HigherOrder, Nested, carry_fixpoint, without_unneeded
from saem.transform.restructure import (
    added,
    hoisted,
    open_consts,
    rearranged,
    split_program,
    unread,
    zeros_atom,
)
from saem.transform.staging import dead_code_free


@primitive("scan")
class Scan(HigherOrder):
    """Apply ``jaxpr`` to (constants, carry, a row of each stack), row after row.

    Results are the last carry and the stacks of the other results of each row.
    """

    jaxpr: ClosedJaxpr
    length: int
    num_consts: int
    num_carry: int
    reverse: bool = False
    unroll: int = 1

    multiple_results = True
    quick_code = False

    @property
    def effects(self):
        return self.jaxpr.effects

    @property
    def nested(self) -> Nested:
        return Nested((self.jaxpr,), 0, self.num_consts, self.num_carry, rows=True)

    def rebuilt(self, nested, operands, results):
        return self.other(nested.programs[0], nested.consts, nested.carry)

    trimmed = without_unneeded
    path_name = "while"

    def parts(self, items: Sequence[Any]) -> list[list[Any]]:
        """Return operands as constants, carry, and stacks."""
        return split_list(items, self.num_consts, self.num_carry)

    def other(self, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **changes: Any) -> Scan:
        """Return the scan of another body made from this one's."""
        return dataclasses.replace(
            self, jaxpr=jaxpr, num_consts=num_consts, num_carry=num_carry, **changes)

    def stacked(self, aval: ShapedArray) -> ShapedArray:
        return aval.stacked(self.length)

    def typing(self, *avals):
        consts, carry, rows = self.parts(self.jaxpr.in_avals)
        check_operands(self, [*consts, *carry, *map(self.stacked, rows)], avals)
        out, ys = split_list(self.jaxpr.out_avals, self.num_carry)
        return [*out, *map(self.stacked, ys)]

    def evaluate(self, *args):
        consts, carry, xs = self.parts(args)
        _, y_avals = split_list(self.jaxpr.out_avals, self.num_carry)
        held = [physical_aval(self.stacked(a)) for a in y_avals]
        ys = [np.zeros(a.shape, a.dtype) for a in held]
        for step in range(self.length):
            row = self.length - 1 - step if self.reverse else step
            outs = jaxpr_module.evaluate(self.jaxpr, *consts, *carry, *(x[row, ...] for x in xs))
            carry, given = split_list(outs, self.num_carry)
            for y, value in zip(ys, given):
                y[row] = value
        return [*carry, *ys]

    def lower(self, ctx, *args):
        """Write blocks of ``unroll`` steps as the body of a loop, and after it what is left over.

        The state of the loop is a counter, the carry, and the stacks to fill.
        """
        consts, carry, xs = self.parts(args)
        _, y_avals = split_list(self.jaxpr.out_avals, self.num_carry)
        ys = [zeros(ctx, self.stacked(a)) for a in y_avals]
        unroll = 1 if isinstance(self.length, Dim) else min(self.unroll, self.length) or self.length

        def steps(count: str, state: Sequence[str], number: int) -> list[str]:
            carry, ys = split_list(state, self.num_carry)
            for offset in range(number):
                row = self.write_place(ctx, count, offset)
                rows = [read_row(ctx, x, row) for x in xs]
                outs = lower_block(ctx, self.jaxpr, [*consts, *carry, *rows])
                carry, given = split_list(outs, self.num_carry)
                ys = [write_row(ctx, y, value, row) for y, value in zip(ys, given)]
            return [*carry, *ys]

        state = [*carry, *ys]
        if isinstance(self.length, Dim):
            rounds = done = self.length
        else:
            rounds = self.length // unroll if self.length else 0
            done = rounds * unroll if rounds > 1 else 0
        if done:
            end = ctx.number(done)

            def step(count: str, *state: str) -> list[str]:
                far = ctx.constant(unroll, COUNTER)
                further = ctx.elementwise("stablehlo.add", count, far, out=COUNTER)
                return [further, *steps(count, state, unroll)]

            start = ctx.constant(0, COUNTER)
            carried = self.jaxpr.in_avals[self.num_consts: self.num_consts + self.num_carry]
            _, *state = write_while(
                ctx, [start, *state], [COUNTER, *carried, *map(self.stacked, y_avals)],
                lambda count, *_: ctx.emit(
                    f"stablehlo.compare LT, {count}, {end}, SIGNED", count, end, out=FLAG), step)
        if self.length != done:
            state = steps(ctx.constant(done, COUNTER), state, self.length - done)
        return state

    def write_place(self, ctx: Any, count: str, offset: int) -> str:
        """Write the row at which step ``count + offset`` works."""
        if self.reverse:
            last = ctx.number(self.length - 1 - offset)
            return ctx.elementwise("stablehlo.subtract", last, count, out=COUNTER)
        if not offset:
            return count
        return ctx.elementwise("stablehlo.add", count, ctx.constant(offset, COUNTER), out=COUNTER)

    # -- reverse mode ------------------------------------------------------------------------------

    def split(self, unknown: Sequence[bool]) -> Split:
        """Return this scan in two: what runs now, and what needs ``unknown`` operands."""
        key = ("split", self.length, self.num_consts, self.num_carry, self.reverse, self.unroll,
               tuple(unknown))
        return self.jaxpr.derived(key, lambda: self._split(unknown))

    def _split(self, unknown: Sequence[bool]) -> Split:
        consts_in, carry_in, rows_in = self.parts(unknown)
        carry_in, outs, _ = carry_fixpoint(lambda carry: partial_eval_jaxpr(
            self.jaxpr, (*consts_in, *carry, *rows_in))[2:], carry_in)
        forced = [*carry_in, *outs[self.num_carry:]]
        known, rest, out_unknown, count = split_program(
            self.jaxpr, (*consts_in, *carry_in, *rows_in), forced)
        known, extra = open_consts(known)
        num_consts = len(extra) + consts_in.count(False)
        fixed = known.jaxpr.invars[:num_consts]
        before, inside = hoisted(known.jaxpr, fixed)
        made = before.outvars
        outs, residuals = split_list(inside.outvars, len(inside.outvars) - count)
        rows = inside.invars[len(made) + num_consts + carry_in.count(False):]
        # A residual that never changes, or that is a row of an operand, need not be stacked.
        kinds = ["fixed" if v in fixed or v in made else "row" if v in rows else "stacked"
                 for v in residuals]
        stacked = [v for v, kind in zip(residuals, kinds) if kind == "stacked"]
        body = dead_code_free(inside.replace(outvars=[*outs, *stacked]))
        early_consts = body.invars[:len(made) + num_consts]
        idle = unread(body, early_consts)
        body = body.replace(invars=[*pick(early_consts, idle, False),
                                    *body.invars[len(early_consts):]])
        constants = [v for v, kind in zip(residuals, kinds) if kind == "fixed"]
        handed = [rows.index(v) for v, kind in zip(residuals, kinds) if kind == "row"]
        inner = dict(zip(residuals, rest.jaxpr.invars))
        late = rearranged(
            rest, [*(inner[v] for v in constants), *rest.jaxpr.invars[count:],
                   *(inner[rows[i]] for i in handed), *(inner[v] for v in stacked)],
            rest.jaxpr.outvars)
        return Split(
            unknown=[*consts_in, *carry_in, *rows_in], out_unknown=out_unknown, extra=extra,
            before=before, idle=idle, early=self.other(
                ClosedJaxpr(body), idle.count(False), carry_in.count(False)),
            late=self.other(late, len(constants) + sum(consts_in), sum(carry_in)),
            constants=[[*made, *fixed].index(v) for v in constants], handed=handed,
            stacked=len(stacked))

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> list[Any]:
        """Scan below ``trace`` what is known, stacking residuals; record the scan of the rest."""
        split = self.split([not trace.is_known(x) for x in args])
        with beneath(trace):
            outs, late_args = split.run(args)
        needed = any(split.out_unknown) or split.late.effects
        late = trace.emit(split.late, late_args) if needed else []
        return merge(split.out_unknown, late, outs)

    def transpose(self, cts, *args):
        linear = [isinstance(x, UndefinedPrimal) for x in args]
        consts_in, carry_in, rows_in = self.parts(linear)
        carry_in, _, _ = carry_fixpoint(lambda carry: partial_eval_jaxpr(
            self.jaxpr, (*consts_in, *carry, *rows_in))[2:], carry_in)
        if all(carry_in):
            return self.pull(cts, consts_in, rows_in, args)
        # Part of it is not linear, such as a counter: that runs first.
        split = self.split(linear)
        _, late_args = split.run(args)
        pulled = split.late.transpose(pick(cts, split.out_unknown), *late_args)
        found = {id(x): ct for x, ct in zip(late_args, pulled)}
        return [found.get(id(x)) if lin else None for x, lin in zip(args, linear)]

    def pull(self, cts: Sequence[Any], consts_in: list[bool], rows_in: list[bool],
             args: Sequence[Any]) -> list[Any]:
        """Return the cotangents of ``args`` by a scan in the other direction."""
        carry_cts, ys_cts = split_list(cts, self.num_carry)
        out_avals = self.jaxpr.out_avals
        carry_cts = [zeros_of(a) if ct is None else ct for ct, a in zip(carry_cts, out_avals)]
        has_ct = [ct is not None for ct in ys_cts]
        consts, _, rows = self.parts(args)
        body, reached = self.jaxpr.derived(
            ("pull", self.num_consts, self.num_carry, *consts_in, *rows_in, *has_ct),
            lambda: self.pull_body(consts_in, rows_in, has_ct))
        body, extra = open_consts(body)
        fixed = pick(consts, consts_in, False)
        starts = [zeros_of(x.aval) for x in pick(consts, consts_in)]
        scan = self.other(body, len(extra) + len(fixed), len(starts) + self.num_carry,
                          reverse=not self.reverse)
        outs = bind(scan, *extra, *fixed, *starts, *carry_cts, *pick(ys_cts, has_ct),
                    *pick(rows, rows_in, False))
        const_cts, carry_cts, row_cts = split_list(outs, len(starts), self.num_carry)
        row_cts = with_nones(reached, row_cts)
        return [*with_nones(consts_in, const_cts), *carry_cts, *with_nones(rows_in, row_cts)]

    def pull_body(self, consts_in: list[bool], rows_in: list[bool], has_ct: list[bool]
                  ) -> tuple[ClosedJaxpr, list[bool]]:
        """Return the body of the transposed scan, and which stacks it gives cotangents of.

        Its carry is the sum of cotangents of linear constants, then the cotangent of the carry.
        """
        k = self.num_carry
        program, reached = transpose_jaxpr(
            self.jaxpr, (*consts_in, *[True] * k, *rows_in), (*[True] * k, *has_ct))
        fixed, residuals, carry_cts, ys_cts = split_list(
            program.jaxpr.invars, consts_in.count(False), rows_in.count(False), k)
        linear = [aval.to_ct_aval() for aval in pick(
            self.jaxpr.in_avals, [*consts_in, *[True] * k, *rows_in])]
        pulled = with_nones(reached, program.jaxpr.outvars)
        count = sum(consts_in)
        eqns: list[Eqn] = []
        sums = [Var(aval) for aval in linear[:count]]
        outs = [total if ct is None else added(total, ct, eqns)
                for total, ct in zip(sums, pulled)]
        outs += [zeros_atom(aval, eqns) if ct is None else ct
                 for aval, ct in zip(linear[count:], pulled[count: count + k])]
        outs += [ct for ct in pulled[count + k:] if ct is not None]
        body = rearranged(program, [*fixed, *sums, *carry_cts, *ys_cts, *residuals], outs,
                          after=eqns)
        return body, reached[count + k:]

    def eager(self, *args: Any) -> list[Any]:
        key = (self.length, self.num_consts, self.num_carry, self.reverse, self.unroll)
        return run_at_once((self.jaxpr,), key, self, args)


class Split(NamedTuple):
    """A scan in two: ``early`` runs now, ``late`` needs operands that are unknown.

    Fixed values never change from row to row: those that ``before`` computes ahead of the loop,
    then ``extra`` (constants of the program) and the known constants of the scan.
    """

    # Which operands are unknown, carries that become so included, and which results.
    unknown: list[bool]
    out_unknown: list[bool]
    extra: list[Any]
    before: Jaxpr
    # Which fixed values ``early`` does not read.
    idle: list[bool]
    early: Scan
    late: Scan
    # Residuals: the numbers of those among the fixed values, of those that are stacks among the
    # operands, and how many are stacked by ``early``.
    constants: list[int]
    handed: list[int]
    stacked: int

    def run(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run the known part; returns the known outputs and the operands of ``late``."""
        scan = self.early
        known, waiting = pick(args, self.unknown, False), pick(args, self.unknown)
        fixed, rest = split_list([*self.extra, *known], len(self.before.invars))
        made = eval_jaxpr(self.before, [], *fixed)
        operands = [*pick([*made, *fixed], self.idle, False), *rest]
        useful = scan.jaxpr.jaxpr.outvars or scan.effects
        outs = bind(scan, *operands) if useful else []
        plain, stacks = split_list(outs, len(outs) - self.stacked)
        constants = [[*made, *fixed][i] for i in self.constants]
        rows = operands[scan.num_consts + scan.num_carry:]
        return plain, [*constants, *waiting, *(rows[i] for i in self.handed), *stacks]


# -- the function ----------------------------------------------------------------------------------


@boundary
def scan(f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         unroll: int | bool = 1, _split_transpose: bool = False) -> Any:
    """Return ``(carry, ys)`` of ``carry, y = f(carry, x)`` for each row ``x`` of ``xs``, in order.

    Shapes: xs ["length ..."] (pytrees of), ys likewise; ``carry`` as ``init``.  ``unroll`` steps
    are written one after another in each round of the loop (True or 0: all); ``_split_transpose``
    is accepted, and changes nothing.
    Raises: TypeError if ``f`` returns no pair or changes the type of the carry; ValueError for
    stacks of different lengths.

    >>> lax.scan(lambda total, x: (total + x, total * x), 0, jnp.array([1, 2, 3]))
    (Array(6, dtype=int32), Array([0, 2, 9], dtype=int32))
    """
    check_callable("scan", "f argument", f, should="a callable")
    if config.disable_jit.value:
        return scan_in_python("scan", f, init, xs, length, reverse)
    return bind_scan("scan", f, f, init, xs, length, reverse, unroll)


def bind_scan(name: str, f: Callable, owner: Callable, init: Any, xs: Any, length: int | None,
              reverse: bool = False, unroll: int | bool = 1, spoken: Spoken | None = None) -> Any:
    """Trace and bind a scan; the trace of its body is kept with the function ``owner``."""
    rows, rows_tree = tree.flatten(xs)
    length = _length(name, xs, length)
    start, carry_tree = tree.flatten(init)
    in_tree = tree.treedef_tuple([carry_tree, rows_tree])
    for aval in map(aval_of, rows):
        if entries_of(aval)[:1] != (None,) and not is_high(aval):
            raise errors.explained(
                errors.ArgumentError, "scan.S1", "0th dimension of all xs should be replicated. "
                f"Got {sharding_of(aval).spec}",
                advice="Reshard xs: jax.reshard(xs, P(None, ...)).")
    row_avals = [aval_of(x).row(length) for x in rows]
    body, start = trace_carry(
        lambda avals: trace_body(f, in_tree, [*avals, *row_avals], name, owner), start, owner,
        lambda body: body.out_avals[:len(start)] if _carry_tree(name, body) == carry_tree
        else None)
    avals = [aval_of(x) for x in start]
    check_carry(name, spoken or (f, 0, None), Types(carry_tree, avals), body.results.child(0),
                body.closed)
    fixed = unchanged(body.closed, len(body.consts), len(start))
    program, consts = fix_carry(body.closed, body.consts, start, fixed)
    if any(fixed):
        outvars = program.jaxpr.outvars
        program = program.derived(("without", *fixed), lambda: ClosedJaxpr(program.jaxpr.replace(
            outvars=[*pick(outvars, fixed, False), *outvars[len(fixed):]]), program.consts))
    carry = pick(start, fixed, False)
    prim = Scan(program, length, len(consts), len(carry), bool(reverse),
                _unroll(name, unroll, length))
    outs = bind(prim, *consts, *carry, *rows) if program.jaxpr.outvars or prim.effects else []
    carry, ys = split_list(outs, len(carry))
    flat = [*merge(fixed, pick(start, fixed), carry), *ys]
    return body.out_tree.unflatten(flat)


def _carry_tree(name: str, body: Any) -> Any:
    """Return the structure of the carry that a body returns.

    Raises: TypeError if it does not return a pair.
    """
    if tree.treedef_is_leaf(body.out_tree) or len(tree.treedef_children(body.out_tree)) != 2:
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C4",
            f"{name} body output must be a pair, got {body.results.build()}.",
            advice="Return (carry, y); y may be None.")
    return tree.treedef_children(body.out_tree)[0]


def _unroll(name: str, unroll: Any, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    unroll = concrete_or_error(operator.index, unroll, f"It is the argument `unroll` of {name}.")
    if unroll < 0:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C5",
            f"`unroll` must be a `bool` or a non-negative `int`, got {unroll!r}.",
            advice="1 is a plain loop, True writes out every step.")
    return unroll


def _length(name: str, xs: Any, length: Any) -> int:
    """Return how many rows there are.

    Raises: ValueError if the stacks do not agree with one another or with ``length``.
    """
    what = ""
    # Types that a program defines do not say how many rows a value has.
    leaves = [x for x in tree.leaves(xs) if not is_high(aval_of(x))]
    shapes = [aval_of(x).shape for x in leaves]
    sizes = [shape[0] for shape in shapes if shape]
    if len(sizes) < len(shapes):
        scalars = [str(x) for x, shape in zip(leaves, shapes) if not shape]
        what = f"scan got value with no leading axis to scan over: {', '.join(scalars)}"
    elif length is not None:
        length = _as_length(name, length)
        if any(n != length for n in sizes):
            what = (f"{name} got `length` argument of {length} which disagrees with leading axis "
                    f"sizes {sizes}")
    elif not sizes:
        what = f"{name} got no values to scan over and `length` not provided"
    elif len(set(sizes)) > 1:
        what = (f"scan got values with different leading axis sizes: "
                f"{', '.join(map(str, sizes))}")
    if what:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C6", f"{what}.",
            advice="Every array of xs has the rows along its first axis; pass length with xs=None "
            "or with values of types that a program defines.")
    return sizes[0] if length is None else length


def _as_length(name: str, length: Any) -> int:
    try:
        number = int(length)
    except errors.ConcretizationTypeError as error:
        raise errors.unknown(
            f"{name}.C7", length,
            f"The `length` argument to `{name}` expects a concrete `int` value.",
            advice="Make it a static argument of the jitted function, or use while_loop."
        ) from error
    if number < 0 or not (is_integer(length) or number == length):
        raise errors.explained(
            errors.ArgumentError, f"{name}.C8",
            f"The `length` argument to {name} must be a non-negative integer, got {length}.",
            advice="Pass the number of steps.")
    return number


def scan_in_python(name: str, f: Callable, carry: Any, xs: Any, length: int | None,
                   reverse: bool) -> Any:
    """Run a scan as a Python loop, for a debugger to walk through."""
    length = _length(name, xs, length)
    if not length:
        raise errors.explained(
            errors.ArgumentError, "scan.C9",
            "zero-length scan is not supported in disable_jit() mode because the output type is "
            "unknown.", advice="Enable jit for this call.")
    leaves, treedef = tree.flatten(xs)
    ys = []
    for step in range(length):
        row = length - 1 - step if reverse else step
        carry, y = f(carry, treedef.unflatten([taken(x, row, length) for x in leaves]))
        ys.append(y)
    ordered = ys[::-1] if reverse else ys
    return carry, tree.map_(lambda *rows: put_together(rows), *ordered)


def taken(x: Any, row: int, length: int) -> Any:
    """Return a row of the stack ``x`` of ``length`` rows."""
    aval = aval_of(x)
    if is_high(aval):
        rows = [taken(y, row, length) for y in aval.ty.lower_val(x)]
        return as_type(aval.row(length)).raise_val(*rows)
    return index_in_dim(x, row, keepdims=False)


def put_together(rows: Sequence[Any]) -> Any:
    """Return the stack of ``rows``."""
    aval = aval_of(rows[0])
    if is_high(aval):
        parts = zip(*map(aval.ty.lower_val, rows))
        return as_type(aval.stacked(len(rows))).raise_val(*map(put_together, parts))
    return concatenate([expand_dims(row, (0,)) for row in rows], 0)

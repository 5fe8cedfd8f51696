"""How does an interpreter go through the programs inside a primitive?

A call, a choice and a loop have one shape.  A primitive with programs inside describes it once
(``Primitive.nested``, a ``Nested``): which operands only it reads itself, which are constants, a
carry, or the rest; each program takes (constants, carry, rest) and returns (carry, rest).  A call
is a loop of one step that carries nothing.  ``Primitive.rebuilt`` makes the primitive from other
programs.  What interpreters do to the programs then is of three kinds:

- ``with_companions``: values that move get companions: a tangent, the coefficients of a Taylor
  series;
- ``retyped``: the same operands with a batch axis more;
- ``threaded``: state goes into every program and comes out: a token.  The errors that checkify
  finds and the contents of references are threaded too, by rules of those chapters.

Whether a carry moves or is batched is found by ``carry_fixpoint``, everywhere.

Read before: ``transform.restructure``.  Read after: ``jit.call``, ``loops.scan``.
Invariant: a description fits its primitive: the programs take the operands after ``before``, and
return the results (tests/kernel/test_nested.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from saem.core import axes
from saem.core import refs as core_refs
from saem.core.avals import aval_of
from saem.core.axes import Axis
from saem.core.effects import TOKEN, in_order
from saem.core.jaxpr import ClosedJaxpr, Var, pick, split_list
from saem.core.primitive import Primitive, UndefinedPrimal
from saem.core.record import Record
from saem.core.refs import is_ref
from saem.core.trace import bind
from saem.ops.linear import zeros_of
from saem.transform.jvp import jvp_jaxpr
from saem.transform.linearize import transpose_jaxpr
from saem.transform.restructure import (
    fill_zeros,
    first_input_to,
    keep_inputs,
    rearranged,
    trim,
    unread,
    with_extra_inputs,
)
from saem.transform.vmap import batch_jaxpr, match_dim


class Contents(Record):
    """The source of a result that is the contents of the reference at ``operand``."""

    operand: int


class Nested(NamedTuple):
    """The programs inside a primitive, and how its operands and results are theirs.

    Operands are ``before`` ones that the programs do not take (the number of a branch, constants
    of the condition), ``consts`` constants, ``carry`` values, and the rest.  Each of ``programs``
    takes all but the first kind and returns the carry and the rest.
    """

    programs: tuple[ClosedJaxpr, ...]
    before: int = 0
    consts: int = 0
    carry: int = 0
    # The program that decides whether a loop goes on, of the operands before and the carry.
    condition: ClosedJaxpr | None = None
    # Whether the rest are stacks, a row of which goes in and out at each step.
    rows: bool = False
    # The mesh axes whose devices each run the program, on their parts of the operands.
    axes: tuple[Axis, ...] = ()
    # Whether it is differentiated or batched by a rule of the user, not by its program.
    ruled: bool = False

    @property
    def repeats(self) -> bool:
        """Whether the program runs any number of times, the carry going from step to step."""
        return self.rows or self.condition is not None

    def parts(self, items: Sequence[Any]) -> tuple[Sequence[Any], ...]:
        """Return what belongs to operands in four parts: before, constants, carry, the rest."""
        i = self.before
        j = i + self.consts
        k = j + self.carry
        return items[:i], items[i:j], items[j:k], items[k:]

    def outs(self, items: Sequence[Any]) -> tuple[Sequence[Any], ...]:
        """Return what belongs to results in two parts: the carry and the rest."""
        return items[:self.carry], items[self.carry:]

    def other(self, programs: tuple[ClosedJaxpr, ...], consts: int, carry: int,
              condition: ClosedJaxpr | None) -> Nested:
        """Return the description of other programs, made from these."""
        return Nested(programs, self.before, consts, carry, condition, self.rows, self.axes,
                      self.ruled)

    def choosers(self, avals: Sequence[Any]) -> Sequence[Any]:
        """Return the types of what chooses the program that runs next, ``avals`` being operands'.

        That is the number of a branch, or the answer whether a loop goes on; a call has none.
        """
        return avals[:self.before] if self.condition is None else self.condition.out_avals

    def inside(self) -> contextlib.AbstractContextManager:
        """Return the context in which the programs are traced."""
        return axes.bound(*self.axes) if self.axes else contextlib.nullcontext()

    def counts(self) -> tuple[int, int]:
        """Return the numbers of operands and of results of the primitive."""
        first = self.programs[0].jaxpr
        return self.before + len(first.invars), len(first.outvars)

    def derived(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what ``make`` returns, made once for these programs and ``key``."""
        first, *others = self.programs if self.condition is None else (
            *self.programs, self.condition)
        return first.derived((key, self[1:]), make, tuple(others))


def carry_fixpoint(step: Callable[[list[bool]], tuple[Sequence[bool], Any]], carry: Sequence[bool]
                   ) -> tuple[list[bool], list[bool], Any]:
    """Return the flags of a carry that come back as they went in, beginning with ``carry``.

    ``step(flags)`` gives the flags of all results, those of the carry first, and something made
    for those flags.  A flag once set stays.  Returns the carry's flags, and both of the last step.
    """
    carry = list(carry)
    while True:
        outs, made = step(carry)
        grown = [a or b for a, b in zip(carry, outs)]
        if grown == carry:
            return carry, list(outs), made
        carry = grown


def union(flags: Sequence[Sequence[bool]]) -> list[bool]:
    """Return which places are set in some of the lists ``flags``."""
    return list(map(any, zip(*flags)))


# -- companions ------------------------------------------------------------------------------------


class Companions(Record):
    """What accompanies a value that moves: ``number`` values of the type of its tangent.

    ``transform(program, moving, number)`` gives the program of values and companions to values and
    companions, and which results move.
    """

    number: int
    transform: Callable[[ClosedJaxpr, tuple[bool, ...], int], tuple[ClosedJaxpr, list[bool]]]


TANGENTS = Companions(1, lambda closed, moving, number: jvp_jaxpr(closed, moving))


def with_companions(prim: Primitive, kind: Companions, values: Sequence[Any],
                    companions: Sequence[Sequence[Any] | None]
                    ) -> tuple[list[Any], list[list[Any] | None]]:
    """Apply ``prim`` to ``values``, some of which have companions; returns results likewise.

    A companion of None is zero.
    """
    nested = prim.nested
    moving = tuple([c is not None for c in companions[nested.before:]])
    plan = nested.derived((kind, moving), lambda: accompanied(nested, kind, moving))
    given = [values[i] if k < 0 else companion(values[i], companions[i], k)
             for i, k in zip(plan.operands, plan.numbers)]
    got = bind(prim.rebuilt(plan.nested, plan.operands, plan.results), *given)
    return ([got[i] for i in plan.values],
            [None if beside is None else [got[i] for i in beside] for beside in plan.companions])


def companion(x: Any, companions: Sequence[Any] | None, number: int) -> Any:
    """Return one of the ``companions`` of ``x``, zeros if it is None."""
    found = None if companions is None else companions[number]
    return zeros_of(aval_of(x).to_tangent_aval()) if found is None else found


class Plan(Record):
    """The programs of values and companions, and their places among operands and results.

    Operand ``i`` of the rebuilt primitive is companion ``numbers[i]`` of operand ``operands[i]``,
    or that operand itself (-1); result ``i`` is, or accompanies, result ``results[i]``.  ``values``
    and ``companions`` give for each result its place, and those of its companions.
    """

    nested: Nested
    operands: list[int]
    numbers: list[int]
    results: list[int]
    values: list[int]
    companions: list[list[int] | None]


def accompanied(nested: Nested, kind: Companions, moving: tuple[bool, ...]) -> Plan:
    """Return how programs take and give companions, where their operands that move have some.

    The companions of each kind of operand or result follow those of that kind.
    """
    number = kind.number
    consts, start, rest = split_list(moving, nested.consts, nested.carry)

    def step(carry: list[bool]) -> tuple[list[bool], list]:
        flags = (*consts, *carry, *rest)
        made = [kind.transform(p, flags, number) for p in nested.programs]
        return union([have for _, have in made]), made

    with nested.inside():
        carry, outs, made = carry_fixpoint(step, start)
    wanted = [*carry, *outs[nested.carry:]]
    programs = tuple([arranged(nested, number, closed, have, consts, carry, wanted)
                      for closed, have in made])
    more, carried = sum(consts) * number, sum(carry) * number
    condition = nested.condition
    if condition is not None:
        start = nested.consts + more + nested.carry
        condition = with_extra_inputs(condition, programs[0].in_avals[start: start + carried])
    new = nested.other(programs, nested.consts + more, nested.carry + carried, condition)
    count, results = nested.counts()
    operands, numbers = placed(nested.parts(range(count)), ([], consts, carry, rest), number)
    places, kinds = placed(nested.outs(range(results)), nested.outs(wanted), number)
    values: list[int] = []
    beside: list[Any] = [[] if moves else None for moves in wanted]
    for i, (result, k) in enumerate(zip(places, kinds)):
        (values if k < 0 else beside[result]).append(i)
    return Plan(new, operands, numbers, places, values, beside)


def placed(groups: Sequence[Sequence[int]], moving: Sequence[Sequence[bool]], number: int
           ) -> tuple[list[int], list[int]]:
    """Return the items of each group and behind them their companions, and which each is."""
    items: list[int] = []
    numbers: list[int] = []
    for group, flags in zip(groups, moving):
        items += group
        numbers += [-1] * len(group)
        for i in pick(group, flags):
            items += [i] * number
            numbers += range(number)
    return items, numbers


def arranged(nested: Nested, number: int, closed: ClosedJaxpr, have: list[bool],
             consts: list[bool], carry: list[bool], wanted: list[bool]) -> ClosedJaxpr:
    """Return ``closed``, whose companions follow all values, with those of each kind behind it.

    Zeros are filled in for results that move (``wanted``) elsewhere only.
    """
    n = len(have)
    if have != wanted:
        avals = [v.aval.to_tangent_aval() for v in closed.jaxpr.outvars[:n]]
        closed = fill_zeros(closed, n, *([x for x in items for _ in range(number)]
                                         for items in (have, wanted, avals)))
    if not nested.consts and not nested.carry:
        return closed
    count = len(nested.programs[0].jaxpr.invars)
    ins = split_list(closed.jaxpr.invars[:count], nested.consts, nested.carry)
    beside = split_list(closed.jaxpr.invars[count:], sum(consts) * number, sum(carry) * number)
    out, rest, out_beside, rest_beside = split_list(
        closed.jaxpr.outvars, nested.carry, n - nested.carry, sum(carry) * number)
    return rearranged(closed, [v for pair in zip(ins, beside) for vs in pair for v in vs],
                      [*out, *out_beside, *rest, *rest_beside])


# -- a batch axis ----------------------------------------------------------------------------------


def retyped(prim: Primitive, size: int, xs: Sequence[Any], dims: Sequence[int | None]
            ) -> tuple[list[Any], list[int | None]]:
    """Apply ``prim`` to stacks: the batch rule of a primitive with programs inside."""
    nested = prim.nested
    batched = tuple([d is not None for d in dims])
    new, places, out_dims = nested.derived(
        (size, batched, axes.batching()), lambda: on_stacks(nested, size, batched))
    stacks = [x if place is None or d == place else match_dim(x, d, place, size)
              for x, d, place in zip(xs, dims, places)]
    return bind(prim.of_stacks(new, places, out_dims), *stacks), out_dims


def on_stacks(nested: Nested, size: int, batched: tuple[bool, ...]
              ) -> tuple[Nested, list[int | None], list[int | None]]:
    """Return the programs of stacks, where the ``batched`` operands are stacks.

    Also returned are the batch axes of operands and results, None for those that are the same for
    all examples.
    """
    before, consts, start, rest = map(list, nested.parts(batched))
    condition, many = nested.condition, False

    def step(carry: list[bool]) -> tuple[list[bool], list[ClosedJaxpr]]:
        nonlocal condition, many
        if nested.condition is not None:
            if not many:
                condition, (many,) = batch_jaxpr(nested.condition, size, (*before, *carry))
                # A condition of a stack names the leading axes of carries, which a stacked one
                # has one more of.
                many = many or (any(carry) and bool(nested.condition.out_avals[0].shape))
            if many:  # examples end at different steps, so each has a carry of its own
                carry = [True] * len(carry)
                condition, _ = batch_jaxpr(nested.condition, size, (*before, *carry), (True,))
        flags = (*consts, *carry, *rest)
        force = (*carry, *[False] * (len(nested.programs[0].jaxpr.outvars) - len(carry)))
        made = [batch_jaxpr(p, size, flags, force if any(carry) else None)
                for p in nested.programs]
        outs = union([have for _, have in made])
        return outs, [closed if have == outs else batch_jaxpr(p, size, flags, tuple(outs))[0]
                      for p, (closed, have) in zip(nested.programs, made)]

    carry, outs, programs = carry_fixpoint(step, start)
    row = 1 if nested.rows else 0
    places = [*(0 if b else None for b in (*before, *consts, *carry)),
              *(row if b else None for b in rest)]
    out_dims = [None if not b else 0 if i < nested.carry else row for i, b in enumerate(outs)]
    return (nested.other(tuple(programs), nested.consts, nested.carry, condition), places, out_dims)


# -- state -----------------------------------------------------------------------------------------


def threaded(prim: Primitive) -> tuple[Primitive, int]:
    """Return ``prim`` with an effects token that goes through all its programs.

    The token is the first carry and the first result; the number beside is its operand's.
    """
    nested = prim.nested
    programs = tuple([in_order(p) if not nested.consts else
                      first_input_to(in_order(p), nested.consts) for p in nested.programs])
    condition = nested.condition
    if condition is not None:
        condition = first_input_to(rearranged(
            condition, [Var(TOKEN), *condition.jaxpr.invars], condition.jaxpr.outvars),
            nested.before)
    place = nested.before + nested.consts
    operands, results = map(range, nested.counts())
    new = nested._replace(programs=programs, condition=condition, carry=nested.carry + 1)
    return prim.rebuilt(new, [*operands[:place], None, *operands[place:]], [None, *results]), place


# -- dead code -------------------------------------------------------------------------------------


def without_unneeded(prim: Primitive, needed: Sequence[bool]
                     ) -> tuple[Primitive, list[bool], list[bool]]:
    """Return ``prim`` without results that are not needed, and which operands and results it keeps.

    A carry is needed if the condition reads it, or a later step.
    """
    return prim.nested.derived(("needed", prim, tuple(needed)), lambda: _trimmed(prim, needed))


def _trimmed(prim: Primitive, needed: Sequence[bool]) -> tuple[Primitive, list[bool], list[bool]]:
    nested = prim.nested
    start, rest = nested.outs(needed)
    condition = nested.condition
    if condition is not None:
        idle = unread(condition.jaxpr, condition.jaxpr.invars)[nested.before:]
        start = [need or not unused for need, unused in zip(start, idle)]

    def step(carry: list[bool]) -> tuple[list[bool], Any]:
        made = [trim(p, (*carry, *rest)) for p in nested.programs]
        _, consts, used, rows = nested.parts(
            [True] * nested.before + union([read for _, read in made]))
        return used, ([closed for closed, _ in made], consts, rows)

    carry, _, (programs, consts, rows) = carry_fixpoint(step, start)
    before = [True] * nested.before
    kept, results = [*before, *consts, *carry, *rows], [*carry, *rest]
    new = nested._replace(
        programs=tuple([keep_inputs(p, (*consts, *carry, *rows)) for p in programs]),
        consts=sum(consts), carry=sum(carry),
        condition=None if condition is None else keep_inputs(condition, (*before, *carry)))
    operands = pick(range(len(kept)), kept)
    return prim.rebuilt(new, operands, pick(range(len(results)), results)), kept, results


# -- reverse mode ----------------------------------------------------------------------------------


def backwards(nested: Nested, linear: Sequence[bool], has_ct: tuple[bool, ...]
              ) -> tuple[Nested | None, list[int], list[int]]:
    """Return the transposed programs of a call or a choice, None if they do nothing.

    They take the operands that are not ``linear``, whose numbers come second, then the cotangents
    that are not zero, and give those of the operands whose numbers are in the last list.
    """
    flags = tuple(linear[nested.before:])
    made = [transpose_jaxpr(p, flags, has_ct) for p in nested.programs]
    reached = union([have for _, have in made])
    avals = [aval.to_ct_aval() for aval in pick(nested.programs[0].in_avals, flags)]
    programs = tuple([fill_zeros(p, 0, have, reached, avals) for p, have in made])
    if not any(reached) and not any(p.effects for p in programs):
        return None, [], []
    numbers = range(len(linear))
    return (nested.other(programs, 0, 0, None),
            pick(numbers, linear, False),
            pick(pick(numbers, linear), reached))


# -- primitives ------------------------------------------------------------------------------------


class HigherOrder(Primitive):
    """A primitive with programs inside, described by ``nested``, and transformed by that alone.

    Subclasses that repeat their program have a transpose rule of their own.
    """

    __slots__ = ()
    multiple_results = True

    def of_stacks(self, nested: Nested, dims: Sequence[int | None],
                  out_dims: Sequence[int | None]) -> Primitive:
        """Return the primitive made of programs of stacks along ``dims``, giving stacks."""
        return self.rebuilt(nested, range(len(dims)), range(len(out_dims)))

    def transposed(self, nested: Nested, operands: Sequence[int], cts: Sequence[int],
                   reached: Sequence[int | None]) -> Primitive:
        """Return the primitive made of transposed programs (``backwards``).

        They take the ``operands``, and the cotangents of the results ``cts``, and give those of the
        operands ``reached``.
        """
        return self.rebuilt(nested, [*operands, *[None] * len(cts)], reached)

    def with_token(self) -> tuple[Primitive, int]:
        return threaded(self)

    def jvp(self, primals, tangents):
        outs, found = with_companions(
            self, TANGENTS, primals, [None if t is None else (t,) for t in tangents])
        return outs, [None if t is None else t[0] for t in found]

    def transpose(self, cts, *args):
        nested: Any = self.nested
        linear = tuple([isinstance(x, UndefinedPrimal) for x in args])
        has_ct = tuple([ct is not None for ct in cts])
        new, operands, reached = nested.derived(
            ("transpose", linear, has_ct), lambda: backwards(nested, linear, has_ct))
        if new is None:
            return [None] * len(args)
        given = [args[i] for i in operands]
        call = self.transposed(new, operands, pick(range(len(cts)), has_ct), reached)
        outs = iter(bind(call, *given, *[ct for ct in cts if ct is not None]))
        found: list[Any] = [None] * len(args)
        for number in reached:
            found[number] = next(outs)
        return found

    def batch(self, size, xs, dims):
        nested: Any = self.nested
        rows = nested.before + nested.consts + nested.carry if nested.rows else len(xs)
        for number, (x, d) in enumerate(zip(xs, dims)):
            if d is not None and (d or number >= rows) and is_ref(aval_of(x)):
                # The axes of a reference cannot be moved.
                return core_refs.chapter.batch_through_refs(self, size, xs, dims)
        return retyped(self, size, xs, dims)

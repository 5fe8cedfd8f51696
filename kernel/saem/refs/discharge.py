"""How does a program that reads and writes references become a pure one?

It is run once more, equation by equation, with the array that each reference holds in place of the
reference; a write makes a new array, which later reads find.  The arrays of references that were
written come out as further results, and the caller puts them back.

A program inside an equation is made pure first (``through_programs``): a call or a branch returns
what was written, a loop carries it, or gives it row by row for a reference that it walks along.

Read before: ``refs.operations``, ``transform.nested``.
Invariant: the pure program computes what the references' own operations do, in their order; a
reference that is only read stays an operand
(tests/kernel/test_refs.py, test_refs_transforms.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.compile.device_assignment import Spread
from saem.core import axes, errors
from saem.core.avals import aval_of
from saem.core.jaxpr import (
    ClosedJaxpr,
    Eqn,
    Literal,
    Var,
    eval_jaxpr,
    once_per_program,
    pick,
    split_list,
)
from saem.core.primitive import Primitive, UndefinedPrimal
from saem.core.refs import LinearRef, held_type, is_ref, works_inside_on_references
from saem.core.source import position
from saem.core.trace import at_source, bind, bind_list
from saem.ops.linear import zeros_of
from saem.refs.operations import AddUpdate, Get, NewRef, OnRef, Swap, as_held
from saem.transform.linearize import backward_pass, partial_eval_jaxpr
from saem.transform.nested import Contents, Nested
from saem.transform.restructure import rearranged
from saem.transform.staging import trace_flat
from saem.transform.vmap import vmap_flat

# The results of a primitive, and from the number of an operand to what its reference holds then.
Outcome = tuple[list[Any], dict[int, Any]]


@once_per_program
def discharged(closed: ClosedJaxpr, which: tuple[bool, ...], deep: bool,
               wanted: tuple[int, ...] | None = None) -> tuple[ClosedJaxpr, tuple[int, ...]]:
    """Return the pure form of ``closed`` and the numbers of the inputs that it writes.

    Inputs marked in ``which`` are references; their arrays take their places.  Results are those of
    ``closed``, then the arrays of the ``wanted`` references (None: of those that are written).
    ``deep`` means its own references, too.
    """
    found: list[int] = []

    def pure(*args: Any) -> list[Any]:
        run = Discharge(closed, which, args, deep)
        found[:] = run.written() if wanted is None else wanted
        return [*run.results(), *(run.held[closed.jaxpr.invars[i]] for i in found)]

    avals = [held_type(a) if w else a for a, w in zip(closed.in_avals, which)]
    program = trace_flat(pure, avals, name="discharge", debug_name=closed.jaxpr.debug_name)
    return program, tuple(found)


def pure_program(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return ``closed``, none of whose inputs is a reference, without references inside."""
    return discharged(closed, (False,) * len(closed.jaxpr.invars), True)[0]


class Exchange:
    """What to do before and after a program that takes references runs in its pure form."""

    def __init__(self, closed: ClosedJaxpr):
        self.which = tuple([is_ref(aval) for aval in closed.in_avals])
        self.pure, self.written = discharged(closed, self.which, True)
        self.results = len(closed.jaxpr.outvars)

    def placed(self, spread: Spread) -> Spread:
        """Return the place of the pure form, given that of the program."""
        return spread.with_results(len(self.written))

    def donated(self, given: Sequence[bool]) -> tuple[bool, ...]:
        """Return which buffers the program may reuse: of references, those that it writes."""
        return tuple([number in self.written if ref else gives
                      for number, (ref, gives) in enumerate(zip(self.which, given))])

    def take(self, args: Sequence[Any]) -> list[Any]:
        """Return ``args`` with what references hold in their places."""
        return [x.held if ref else x for ref, x in zip(self.which, args)]

    def put_back(self, args: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        """Let the references among ``args`` hold what was written; returns the results."""
        for number, new in zip(self.written, outs[self.results:]):
            args[number].hold(new)
        return list(outs[:self.results])


@once_per_program
def exchange(closed: ClosedJaxpr) -> Exchange:
    """Return what happens before and after the pure form of ``closed`` runs."""
    return Exchange(closed)


class Discharge:
    """One run of a program with arrays in place of references."""

    def __init__(self, closed: ClosedJaxpr, which: Sequence[bool], args: Sequence[Any], deep: bool):
        self.jaxpr = closed.jaxpr
        self.deep = deep
        self.env: dict[Var, Any] = dict(zip(closed.jaxpr.constvars, closed.consts))
        self.held: dict[Var, Any] = {}
        self.changed: set[Var] = set()
        for var, x, flag in zip(closed.jaxpr.invars, args, which):
            (self.held if flag else self.env)[var] = x
        for eqn in closed.jaxpr.eqns:
            with at_source(eqn.source, eqn.stack):
                outs = self.step(eqn)
            self.env.update(zip(eqn.outvars, outs))

    def value(self, atom: Any) -> Any:
        if type(atom) is Literal:
            return atom.val
        return self.held[atom] if atom in self.held else self.env[atom]

    def step(self, eqn: Eqn) -> Sequence[Any]:
        """Do what ``eqn`` does; returns its results."""
        prim, args = eqn.operation, [self.value(a) for a in eqn.invars]
        which = tuple([a in self.held if type(a) is not Literal else False for a in eqn.invars])
        if isinstance(prim, OnRef) and (any(which) or (self.deep and not any(
                is_ref(a.aval) for a in eqn.invars))):
            outs, new = prim.discharge(*args)
            if is_ref(getattr(eqn.outvars[0], "aval", None) if eqn.outvars else None):
                self.held[eqn.outvars[0]] = new
                return ()
            if new is not None:
                self.hold(eqn.invars[0], new)
            return outs
        if any(which) or (self.deep and works_inside_on_references(prim)):
            outs, news = through_programs(
                prim, args, which, self.deep, list(eqn.invars), eqn)
            for number, new in news.items():
                self.hold(eqn.invars[number], new)
            return outs
        return bind_list(prim, args)

    def hold(self, var: Any, new: Any) -> None:
        self.held[var] = as_held(new, var.aval.inner_aval)
        self.changed.add(var)

    def results(self) -> list[Any]:
        return [self.value(a) for a in self.jaxpr.outvars]

    def written(self) -> list[int]:
        return [i for i, var in enumerate(self.jaxpr.invars) if var in self.changed]


# -- programs inside -------------------------------------------------------------------------------


def through_programs(prim: Primitive, args: list[Any], which: tuple[bool, ...], deep: bool,
                     names: list[Any], eqn: Eqn | None = None) -> Outcome:
    """Do what ``prim`` does by the pure forms of its programs.

    ``args`` hold arrays where ``which`` is true; equal ``names`` are the same reference.  What is
    written to a constant of a loop is carried, all else that is written is a further result.

    Raises: NotImplementedError for a primitive that does not describe its programs, and for a
    condition that writes.
    """
    nested = prim.nested
    if nested is None:
        raise errors.explained(
            NotImplementedError, "ref.C6",
            f"No state discharge rule implemented for primitive: {prim.name}.",
            where=position(eqn.source) if eqn is not None else None,
            advice="Pass the array that the reference holds, and write the result back outside.")
    first = nested.before
    programs, written = pure_programs(nested, which[first:], deep)
    count = len(nested.programs[0].jaxpr.outvars)
    if nested.ruled:  # the rule is for references, not for arrays
        (program,) = programs
        outs, news = split_list(eval_jaxpr(program.jaxpr, program.consts, *args), count)
        return outs, dict(zip(written, news))
    carried = [i for i in written if i < nested.consts]
    condition, before = nested.condition, [*range(first)]
    if condition is not None:
        condition, before = pure_condition(nested, carried, which, deep, names)
    moved = [i in carried for i in range(nested.consts)]
    if carried:
        programs = tuple([carrying(p, moved, count) for p in programs])
    consts = range(first, first + nested.consts)
    operands = [*before, *pick(consts, moved, False), *pick(consts, moved),
                *range(first + nested.consts, len(args))]
    new = nested._replace(programs=programs, condition=condition, before=len(before),
                          consts=moved.count(False), carry=nested.carry + len(carried))
    contents = [Contents(first + i) for i in written]
    n = len(carried)
    outs = bind(prim.rebuilt(new, operands, [*contents[:n], *range(count), *contents[n:]]),
                *(args[i] for i in operands))
    kept, outs, rest = split_list(outs, n, count)
    return outs, {place.operand: x for place, x in zip(contents, [*kept, *rest])}


def pure_programs(nested: Nested, which: tuple[bool, ...], deep: bool
                  ) -> tuple[tuple[ClosedJaxpr, ...], tuple[int, ...]]:
    """Return the pure forms of the programs of ``nested``, and the inputs that they write.

    Each returns what any of them writes.
    """
    programs = nested.programs
    with nested.inside():
        made = [discharged(p, which, deep) for p in programs]
        written = made[0][1]
        if len(programs) > 1:
            written = tuple(sorted({i for _, some in made for i in some}))
            made = [discharged(p, which, deep, written) for p in programs]
    return tuple([program for program, _ in made]), written


def carrying(closed: ClosedJaxpr, moved: Sequence[bool], count: int) -> ClosedJaxpr:
    """Return a loop's body with the constants that are ``moved`` as the first of its carry.

    Their final arrays come after the ``count`` results of ``closed``.
    """
    consts, rest = split_list(closed.jaxpr.invars, len(moved))
    outs, kept, news = split_list(closed.jaxpr.outvars, count, sum(moved))
    return rearranged(closed, [*pick(consts, moved, False), *pick(consts, moved), *rest],
                      [*kept, *outs, *news])


def pure_condition(nested: Nested, carried: Sequence[int], which: Sequence[bool], deep: bool,
                   names: Sequence[Any]) -> tuple[ClosedJaxpr, list[int]]:
    """Return the pure form of a loop's condition, which takes what is carried first, too.

    Beside it are the numbers of its constants that are not among what is carried.

    Raises: NotImplementedError if it writes.
    """
    assert nested.condition is not None
    asked, _, started, _ = nested.parts(which)
    closed, changed = discharged(nested.condition, (*asked, *started), deep)
    if changed:
        raise errors.explained(
            NotImplementedError, "ref.C7",
            "writing to a Ref in the condition of a while loop is not supported.",
            advice="Write in the body of the loop.")
    own_names, body_names, _, _ = nested.parts(names)
    held = [body_names[i] for i in carried]
    avals = [held_type(nested.programs[0].in_avals[i]) for i in carried]
    seen = [name in held and flag for name, flag in zip(own_names, asked)]
    own, carry = split_list(closed.jaxpr.invars, nested.before)
    ours = dict(zip(pick(own_names, seen), pick(own, seen)))
    started = [ours[name] if name in ours else Var(aval) for name, aval in zip(held, avals)]
    return (rearranged(closed, [*pick(own, seen, False), *started, *carry], closed.jaxpr.outvars),
            pick(range(nested.before), seen, False))


def through_refs(prim: Primitive, args: Sequence[Any]) -> list[Any]:
    """Do what ``prim`` does with references among ``args`` by its pure form, here and now."""
    which = tuple([is_ref(aval_of(x)) for x in args])
    values = [bind(Get(()), x) if w else x for x, w in zip(args, which)]
    outs, news = through_programs(prim, values, which, False, [id(x) for x in args])
    for number, new in news.items():
        aval: Any = aval_of(args[number])
        bind(Swap(()), args[number], as_held(new, aval.inner_aval))
    return outs


def batch_through_refs(prim: Primitive, size: int, xs: Sequence[Any], dims: Sequence[int | None]
                       ) -> tuple[list[Any], list[int | None]]:
    """Do what the batch rule of ``prim`` does, by its pure form."""
    return vmap_flat(lambda *args: through_refs(prim, args), size, xs, dims, axes.batching())


# -- backwards -------------------------------------------------------------------------------------


def pull_through_refs(prim: Primitive, cts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Transpose ``prim``, which takes linear references, by its pure form.

    The cotangents that gather in those references go in as those of the arrays that come out, and
    what comes back replaces them.
    """
    which = tuple([type(x) is LinearRef for x in args])
    linear = [isinstance(x, UndefinedPrimal) for x in args]
    numbers: list[int] = []

    def pure(*values: Any) -> list[Any]:
        outs, news = through_programs(prim, list(values), which, False, list(range(len(args))))
        numbers[:] = news
        return [*outs, *(as_held(news[i], args[i].aval.inner_aval) for i in numbers)]

    avals = [x.aval.inner_aval if w else x.aval if lin else aval_of(x)
             for x, w, lin in zip(args, which, linear)]
    closed = trace_flat(pure, avals, name="discharge")
    # What does not depend on linear operands, such as indices, runs first.
    early, late, unknown, count = partial_eval_jaxpr(closed, tuple(linear))
    values = eval_jaxpr(early.jaxpr, early.consts,
                        *(x for x, lin in zip(args, linear) if not lin))
    residuals, inputs = late.jaxpr.invars[:count], late.jaxpr.invars[count:]
    opened = late.jaxpr.replace(constvars=residuals, invars=inputs)
    after = [None if args[i].ct is None else bind(Get(()), args[i].ct) for i in numbers]
    wanted = pick([*cts, *after], unknown)
    pulled = iter(backward_pass(opened, values[len(values) - count:], wanted))
    found: list[Any] = []
    for number, (x, lin, ref) in enumerate(zip(args, linear, which)):
        ct = next(pulled) if lin else None
        if ref:
            _put_cotangent(x, ct, number in numbers)
            ct = None
        found.append(ct)
    return found


def _put_cotangent(ref: LinearRef, ct: Any, replaced: bool) -> None:
    """Let the reference that collects the cotangent of ``ref`` hold ``ct``, or more by ``ct``."""
    aval = ref.aval.inner_aval
    if ct is None and (ref.ct is None or not replaced):
        return
    ct = zeros_of(aval) if ct is None else as_held(ct, aval)
    if ref.ct is None:
        ref.ct = bind(NewRef(), ct)
    elif replaced:
        bind(Swap(()), ref.ct, ct)
    else:
        bind(AddUpdate(()), ref.ct, ct)

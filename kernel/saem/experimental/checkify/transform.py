"""How does a program say what went wrong in it?

``checkify(f)`` traces ``f`` and goes through its program once more, joining an ``Error`` as it
goes: what checks say, and after each operation what it may have done wrong by itself: made a NaN,
divided by zero, read outside an array.  The result is an ordinary program that returns the error
beside its results, so every transformation applies to it.

A primitive with programs inside (``Primitive.nested``) is built again of checked programs: the
error of a call or a branch comes out as a further result, a loop carries it.  A program is checked
by itself, from no error on, so it is checked once for all its callers.

Read before: ``experimental.checkify.operations``, ``transform.nested``.
Invariant: the results of a checked function are those of the function
(tests/kernel/test_checkify.py); an error of a program inside is that of the step, branch or device
that ran it, and steps not taken do not count (tests/kernel/test_checkify_nested.py).
Source: the documentation of jax.experimental.checkify.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saem.core import errors, tree
from saem.core.arguments import name_of
from saem.core.avals import ShapedArray, aval_functions, aval_of
from saem.core.axes import Axis
from saem.core.frames import boundary
from saem.core.jaxpr import ClosedJaxpr, Eqn, eval_jaxpr, interpret, once_per_program, split_list
from saem.core.primitive import Primitive
from saem.core.trace import at_source, bind
from saem.core.varying import vma_of
from saem.experimental.checkify.checks import (
    Check,
    CheckEffect,
    DivisionByZeroError,
    Error,
    FailedCheckError,
    Kind,
    NaNError,
    OOBError,
    bind_check,
    choose,
    init_error,
)
from saem.experimental.checkify.operations import Categories, ErrorCategory, run_one
from saem.ops.compare import bitwise_and
from saem.ops.device_sums import PVary
from saem.ops.linear import broadcast_in_dim
from saem.ops.reduce import reduce_or
from saem.transform.derivatives import as_array
from saem.transform.nested import Nested
from saem.transform.restructure import rearranged
from saem.transform.staging import trace_flat

Outcome = tuple[Error, list[Any]]

user_checks: Categories = frozenset({FailedCheckError})
nan_checks: Categories = frozenset({NaNError})
index_checks: Categories = frozenset({OOBError})
div_checks: Categories = frozenset({DivisionByZeroError})
float_checks: Categories = nan_checks | div_checks
automatic_checks: Categories = float_checks | index_checks
all_checks: Categories = automatic_checks | user_checks


# -- going through a program -----------------------------------------------------------------------


class Checked(NamedTuple):
    """A program that returns the leaves of an error, ``count`` of them, before its results."""

    program: ClosedJaxpr
    err_tree: Any
    count: int

    def split(self, outs: Sequence[Any]) -> tuple[Error, list[Any]]:
        """Return the error and the results among what the program returned."""
        return self.err_tree.unflatten(outs[:self.count]), list(outs[self.count:])

    def run(self, *args: Any) -> tuple[Error, list[Any]]:
        """Run the program; returns its error and its results."""
        return self.split(eval_jaxpr(self.program.jaxpr, self.program.consts, *args))


def run_equations(closed: ClosedJaxpr, args: Sequence[Any], wanted: Categories) -> Outcome:
    """Run ``closed`` equation by equation; returns what went wrong, and its results."""
    error = init_error

    def step(eqn: Eqn, values: list[Any]) -> list[Any]:
        nonlocal error
        with at_source(eqn.source, eqn.stack):
            found, outs = run_checked(eqn.operation, values, wanted)
            error = error.then(found)
        return outs

    outs = interpret(closed, args, step)
    return error, outs


def run_checked(prim: Primitive, values: Sequence[Any], wanted: Categories) -> Outcome:
    """Apply ``prim``; returns what went wrong in it alone, and the list of its results."""
    if isinstance(prim, Check):  # which is taken out of the program
        return prim.error(values).only(lambda kind: kind.error in wanted), []
    if prim.nested is None:
        return run_one(prim, values, wanted)
    return (run_loop if prim.nested.repeats else run_once)(prim, values, wanted)


@once_per_program
def checked(closed: ClosedJaxpr, wanted: Categories) -> Checked:
    """Return ``closed`` with its error as leading results; ``closed`` itself if it has none."""
    trees: list[Any] = []

    def run(*args: Any) -> list[Any]:
        error, outs = run_equations(closed, args, wanted)
        leaves, err_tree = tree.flatten(error)
        trees.append((err_tree, len(leaves)))
        return [*leaves, *outs]

    program = retraced(closed, run)
    err_tree, count = trees[0]
    same = not count and not any(isinstance(e, CheckEffect) for e in closed.effects)
    return Checked(closed if same else program, err_tree, count)


def retraced(closed: ClosedJaxpr, run: Callable[..., Sequence[Any]],
             before: Sequence[ShapedArray] = ()) -> ClosedJaxpr:
    """Trace ``run`` for the operands of ``closed``, preceded by others of avals ``before``."""
    return trace_flat(run, [*before, *closed.in_avals], name="checkify",
                      debug_name=closed.jaxpr.debug_name)


@once_per_program
def guarded(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return ``closed`` with a flag as first input, without which its checks cannot fail."""
    inner = checked(closed, user_checks)

    def run(here: Any, *args: Any) -> list[Any]:
        error, outs = inner.run(*args)
        slots = {kind: slot._replace(pred=bitwise_and(slot.pred, here))
                 for kind, slot in error.slots.items()}
        bind_check(Error(slots, error.sites).collapsed(), False)
        return outs

    return retraced(closed, run, [ShapedArray((), np.dtype(bool))])


CheckEffect.guard = staticmethod(guarded)


# -- programs inside -------------------------------------------------------------------------------


def aligned(parts: Sequence[Checked]) -> tuple[list[Callable[..., Outcome]], Error]:
    """Return functions that run each of ``parts`` and give their errors in one form.

    Beside them is an error of that form, in which nothing failed yet.
    """
    forms = [part.err_tree.unflatten([None] * part.count) for part in parts]
    sites = tuple(site for form in forms for site in form.sites)
    kinds = list(dict.fromkeys(kind for form in forms for kind in form.slots))
    offset, runs = 0, []
    for part, form in zip(parts, forms):
        def run(*args: Any, part: Checked = part, offset: int = offset) -> Outcome:
            error, outs = part.run(*args)
            return error.renumbered(offset, sites).widened(kinds), outs

        runs.append(run)
        offset += len(form.sites)
    return runs, Error(sites=sites).widened(kinds)


def with_leaves(error: Error, outs: Sequence[Any]) -> list[Any]:
    """Return the leaves of an error, then the results."""
    return [*tree.leaves(error), *outs]


def run_once(prim: Primitive, values: Sequence[Any], wanted: Categories) -> Outcome:
    """Check a call or a choice: the error of the program that ran is a further result.

    On several devices each has an error of its own, and all of them come out as rows.
    """
    nested = prim.nested

    def make() -> tuple[list[ClosedJaxpr], Any, int]:
        parts = [checked(p, wanted) for p in nested.programs]
        programs = [part.program for part in parts]
        if len(parts) == 1 and not nested.axes:
            return programs, parts[0].err_tree, parts[0].count
        runs, start = aligned(parts)
        leaves, err_tree = tree.flatten(start)
        if leaves:
            programs = [retraced(p, lambda *args, run=run: with_leaves(
                *on_device(nested.axes, *run(*args)))) for p, run in zip(nested.programs, runs)]
        return programs, err_tree, len(leaves)

    with nested.inside():
        programs, err_tree, count = nested.derived(("checked", wanted), make)
    operands, numbers = map(range, nested.counts())
    call = prim.rebuilt(nested._replace(programs=tuple(programs)), operands,
                        [*[None] * count, *numbers])
    error, outs = Checked(programs[0], err_tree, count).split(bind(call, *values))
    if nested.axes and count:
        number = math.prod(axis.size for axis in nested.axes)
        error = Error({Kind(kind.error, kind.payload, (number, *kind.mapped)): slot
                       for kind, slot in error.slots.items()}, error.sites)
    return error, outs


def on_device(mapped: Sequence[Axis], error: Error, outs: list[Any]) -> Outcome:
    """Return what one of the devices along ``mapped`` gives: rows of its error, and results."""
    names = [axis.name for axis in mapped]

    def row(x: Any) -> Any:
        shape = aval_of(x).shape
        x = broadcast_in_dim(x, (1, *shape), tuple(range(1, len(shape) + 1)))
        missing = frozenset(names) - vma_of(aval_of(x)) if mapped[0].checked else ()
        return bind(PVary(tuple(n for n in names if n in missing)), x) if missing else x

    return (tree.map_(row, error) if mapped else error), outs


def run_loop(prim: Primitive, values: Sequence[Any], wanted: Categories) -> Outcome:
    """Check a loop, which carries the error from step to step, the first failure staying."""
    nested = prim.nested
    loop = CheckedLoop(nested, wanted)
    operands, results = map(range, nested.counts())
    if not loop.count:
        return init_error, bind(prim.rebuilt(loop.unchanged(), operands, results), *values)
    around, flag = nested.derived(("checked", wanted), loop.programs)
    given, count = loop.given, loop.count
    before, consts, carry, rest = nested.parts(values)
    first = loop.start
    if loop.asks:
        first = first.joined(loop.ask(*before, *carry)[0])
    new = nested._replace(programs=(around,), consts=given + nested.consts,
                          carry=count + nested.carry, condition=flag)
    place = nested.before + nested.consts
    prim = prim.rebuilt(
        new, [*operands[:nested.before], *operands[:given], *operands[nested.before: place],
              *[None] * count, *operands[place:]], [*[None] * count, *results])
    outs = bind(prim, *before, *before[:given], *consts, *tree.leaves(first), *carry, *rest)
    return loop.err_tree.unflatten(outs[:count]), outs[count:]


class CheckedLoop:
    """The programs of a loop that carries an error of ``count`` leaves before all else.

    What a condition finds in a step is joined at the end of the one before; ``asks`` if it can find
    anything, and then the body takes its ``given`` constants, too.  A loop on a stack (``many``)
    goes on while any example does, those that are done standing still; what the user checks counts
    for the others only (``loops.while_loop.guarded``).
    """

    def __init__(self, nested: Nested, wanted: Categories):
        """Check the programs.

        Raises: ValueError if something else than the user's checks stands in a loop on a stack,
        where errors of single examples could not be separated.
        """
        self.nested = nested
        self.parts = [checked(p, wanted) for p in (nested.condition, *nested.programs)
                      if p is not None]
        runs, self.start = aligned(self.parts)
        self.ask, self.step = runs[0], runs[-1]
        leaves, self.err_tree = tree.flatten(self.start)
        self.count = len(leaves)
        self.avals = [aval_of(x).strip_weak_type() for x in leaves]
        self.many = 0 if nested.condition is None else len(nested.condition.out_avals[0].shape)
        if self.many and not all(site.asked for site in self.start.sites):
            raise errors.explained(
                errors.ArgumentError, "checkify.C2",
                "Checkify does not support batched while-loops (checkify-of-vmap-of-while).",
                advice="Hint: if possible, move the vmap to the outer level to get "
                "vmap-of-checkify-of-while. What check() says is found here, too: user_checks.")
        self.asks = bool(self.many or (nested.condition is not None and self.parts[0].count))
        self.given = nested.before if self.asks else 0

    def unchanged(self) -> Nested:
        """Return the loop without an error to carry."""
        condition, program = self.parts[0].program, self.parts[-1].program
        return self.nested._replace(
            programs=(program,), condition=None if self.nested.condition is None else condition)

    def body(self, *args: Any) -> list[Any]:
        """Do one step; takes constants of the condition, the error, and what the step takes."""
        asked, before, rest = split_list(args, self.given, self.count)
        error, outs = self.step(*rest)
        if self.many:
            carry = rest[self.nested.consts:]
            (here,) = self.ask(*asked, *carry)[1]
            outs = [choose(here, new, old) for new, old in zip(outs, carry)]
        error = self.err_tree.unflatten(before).joined(error)
        if self.asks:
            error = error.joined(self.ask(*asked, *outs)[0])
        return with_leaves(error, outs)

    def goes_on(self, *args: Any) -> list[Any]:
        """Return whether any example goes on; takes the error, which it does not read, first."""
        (here,) = self.ask(*args[self.count:])[1]
        return [reduce_or(here, tuple(range(self.many))) if self.many else here]

    def programs(self) -> tuple[ClosedJaxpr, ClosedJaxpr | None]:
        """Return the body and the condition, which take constants first."""
        nested, condition = self.nested, self.nested.condition
        asked = condition.in_avals[:self.given] if condition is not None else []
        around = retraced(nested.programs[0], self.body, [*asked, *self.avals])
        around = moved_back(around, self.given, self.count, nested.consts)
        if condition is None:
            return around, None
        flag = retraced(condition, self.goes_on, self.avals)
        return around, moved_back(flag, 0, self.count, nested.before)


def moved_back(closed: ClosedJaxpr, first: int, count: int, place: int) -> ClosedJaxpr:
    """Return ``closed`` with ``count`` inputs, after the ``first``, behind the next ``place``."""
    kept, moved, before, rest = split_list(closed.jaxpr.invars, first, count, place)
    return rearranged(closed, [*kept, *before, *moved, *rest], closed.jaxpr.outvars)


# -- the function ----------------------------------------------------------------------------------


def checkify(f: Callable[..., Any], errors: Iterable[ErrorCategory] = user_checks
             ) -> Callable[..., tuple[Error, Any]]:
    """Return ``f`` so that it returns ``(error, result)``; ``error.throw()`` raises what failed.

    ``errors`` says what is looked for: unions of ``user_checks``, ``nan_checks``, ``div_checks``,
    ``index_checks``.

    >>> from saem.experimental import checkify
    >>> def root(x):
    ...     checkify.check(x >= 0, "x must not be negative")
    ...     return jnp.sqrt(x)
    >>> error, out = checkify.checkify(root)(-1.)
    >>> error.get()
    'x must not be negative (`check` failed)'
    """
    wanted = frozenset(errors)

    @boundary
    def checked_fun(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        out_trees: list[Any] = []

        def flat() -> list[Any]:
            outs, out_tree = tree.flatten(f(*args, **kwargs))
            out_trees.append(out_tree)
            for x in outs:
                check_output(f, x)
            return outs

        closed = trace_flat(flat, [], name="checkify", debug_name=name_of(f))
        error, outs = run_equations(closed, (), wanted)
        return tree.map_(as_array, error), out_trees[0].unflatten(list(map(as_array, outs)))

    return checked_fun


def check_output(f: Any, x: Any) -> None:
    """Refuse a result that is no array.

    Raises: TypeError.
    """
    if type(x) not in aval_functions:
        try:
            aval_of(x)
        except TypeError:
            raise errors.explained(
                errors.ArgumentTypeError, "checkify.C1",
                f"function {name_of(f)} traced for checkify returned a value of type {type(x)}, "
                "which is not a valid JAX type.",
                advice="Return arrays, numbers, or pytrees of them.") from None

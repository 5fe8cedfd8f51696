"""How does a program with values that are no arrays become one of arrays alone?

It is run once more: a variable of such a type becomes the value that its arrays hold, an operation
on it what ``to_lojax`` does, and a call or loop one whose programs were lowered so, in which each
such operand or result is as many as there are arrays.  What values that change hold at the end of a
program are further results, which its caller puts into them.

Read before: ``experimental.hijax.types``, ``transform.nested``.
Invariant: what is returned has no value that is not an array (tests/kernel/test_hijax.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from saem.compile.device_assignment import Spread
from saem.core.avals import ShapedArray, aval_of
from saem.core.handles import UserOperation
from saem.core.hi_types import is_high, is_mutable, works_on_high
from saem.core.jaxpr import (
    ClosedJaxpr,
    Var,
    eval_jaxpr,
    once_per_program,
    pick,
    split_list,
    sub_jaxprs,
)
from saem.core.leaks import leaked_tracer
from saem.core.primitive import Primitive
from saem.core.record import Record
from saem.core.trace import Trace, Tracer, bind, bind_list, current, state
from saem.experimental.hijax.types import HiOperation, RaiseVal, zero_of
from saem.experimental.hijax.vjp_primitive import CallHiPrimitive, results_of
from saem.jit.call import JitCall
from saem.ops.linear import AddAny
from saem.refs.discharge import carrying
from saem.transform.nested import Contents, Nested
from saem.transform.restructure import rearranged
from saem.transform.staging import StagingTrace, trace_flat


def arrays_of(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return ``values`` as the arrays that hold them."""
    return [x for value, aval in zip(values, avals) for x in arrays_in(value, aval)]


def arrays_in(value: Any, aval: ShapedArray) -> Sequence[Any]:
    """Return the arrays that hold ``value``, now if it changes."""
    if is_mutable(aval):
        return aval.ty.read_loval(value.cur_qdd(), value)
    return aval.ty.lower_val(value) if is_high(aval) else (value,)


def types_of(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Return the types of the arrays that hold values of ``avals``."""
    return [held for aval in avals for held in (aval.held() if is_high(aval) else (aval,))]


def values_of(arrays: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return the values, of ``avals``, that ``arrays`` hold; those that change are new ones."""
    rest = iter(arrays)
    found = []
    for aval in avals:
        if is_mutable(aval):
            found.append(aval.ty.new_from_loval(aval.began, *[next(rest) for _ in aval.held()]))
        elif is_high(aval):
            found.append(aval.ty.raise_val(*[next(rest) for _ in aval.held()]))
        else:
            found.append(next(rest))
    return found


def arrays_with_owners(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return the arrays that hold ``values``, and for each of them the number of the value.

    Raises: UnexpectedTracerError if one of them is a tracer: the value was made inside a trace.
    """
    avals = list(map(aval_of, values))
    arrays = arrays_of(values, avals)
    for x in arrays:
        if isinstance(x, Tracer):
            raise leaked_tracer(x)
    return arrays, owners_of(avals)


def owners_of(avals: Sequence[ShapedArray]) -> list[int]:
    """Return for each array that holds values of ``avals`` the number of the value."""
    return [number for number, aval in enumerate(avals) for _ in types_of([aval])]


class OnArrays(Record):
    """The program of the arrays that hold the arguments of ``closed`` to those of its results.

    After the results' arrays come those that values among the arguments hold at the end; they are
    at the places ``written``, if the program changes them.
    """

    closed: ClosedJaxpr
    program: ClosedJaxpr
    written: tuple[int, ...]

    def at_the_end(self) -> list[ShapedArray]:
        """Return the types that the values at the places ``written`` have at the end."""
        avals: list[Any] = self.closed.in_avals
        return [avals[place].now() for place in self.written]

    def put_back(self, args: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """Let ``args`` hold what the program wrote, the last of ``arrays``; return the results."""
        outs = [a.now() if is_mutable(a) else a for a in self.closed.out_avals]
        count = len(types_of(outs))
        rest = iter(arrays[count:])
        ends: list[Any] = self.at_the_end()
        for place, aval in zip(self.written, ends):
            held = [next(rest) for _ in aval.held()]
            aval.ty.update_from_loval(aval.state, args[place], *held)
        return values_of(arrays[:count], outs)


@once_per_program
def lowered(closed: ClosedJaxpr, wanted: tuple[int, ...] | None = None) -> OnArrays:
    """Return ``closed`` as a program of arrays.

    It returns what is held by arguments at the places ``wanted`` (None: by those it changes).
    """
    avals: list[Any] = closed.in_avals
    outs = closed.out_avals
    found: list[int] = []

    def on_arrays(*xs: Any) -> list[Any]:
        with current(LoweringTrace(state.trace)):
            args = values_of(xs, avals)
            values = eval_jaxpr(closed.jaxpr, closed.consts, *args)
            for value, var in zip(values, closed.jaxpr.outvars):
                if is_mutable(var.aval) and any(value is x for x in args):
                    raise NotImplementedError(
                        f"a program returns its argument of the type {var.aval}, which changes. "
                        "Use the argument instead: it is changed in place.")
            begun = iter(xs)
            held: list[Any] = []
            for place, (value, aval) in enumerate(zip(args, avals)):
                before = [next(begun) for _ in types_of([aval])]
                if is_mutable(aval):
                    after = arrays_in(value, aval)
                    if place in wanted if wanted is not None else (
                            len(after) != len(before) or aval.state != aval.began
                            or any(x is not y for x, y in zip(before, after))):
                        found.append(place)
                        held += after
            return [*arrays_of(values, outs), *held]

    program = trace_flat(on_arrays, types_of(avals), name="lower",
                         debug_name=closed.jaxpr.debug_name)
    return OnArrays(closed, program, tuple(found))


def cur_qdd(x: Any) -> Any:
    """Return the state of ``x``, a value of a ``MutableHiType``, at this point of the program.

    Raises: AttributeError if ``x`` is of another type.
    """
    trace: Any = state.trace
    while isinstance(x, Tracer) and x.concrete() is not None:
        x = x.concrete()
    while trace is not None and type(trace) is not LoweringTrace:
        if type(trace) is StagingTrace:
            return state_of(trace.as_atom(x).aval)
        trace = trace.parent
    return state_of(x.aval) if isinstance(x, Tracer) else x.cur_qdd()


def state_of(aval: ShapedArray) -> Any:
    """Return the state in which values of ``aval`` are now.  Raises: as ``cur_qdd``."""
    if not is_mutable(aval):
        raise AttributeError(f"a value of type {aval} has no attribute 'cur_qdd': it does not "
                             "change.")
    return aval.state


class LoweringTrace(Trace):
    """Runs operations on values that hold arrays of the interpreter below, where all else runs."""

    sees_all = True

    def __init__(self, parent: Trace):
        self.parent = parent
        self.stack = parent.stack

    def process(self, prim: Primitive, args: tuple) -> Any:
        found = self.applied(prim, args, [aval_of(x) for x in args])
        return found if prim.multiple_results else found[0]

    def applied(self, prim: Primitive, args: tuple, avals: Sequence[ShapedArray]) -> list[Any]:
        """Return the results of ``prim``."""
        if isinstance(prim, HiOperation):
            rules: Any = prim.handle
            found = rules.to_lojax(*args, **prim.given)
            return list(found) if prim.multiple_results else [found]
        if isinstance(prim, RaiseVal):
            return [prim.ty.raise_val(*args)]
        high = any(map(is_high, avals))
        if isinstance(prim, AddAny) and is_high(avals[0]):
            return [avals[0].ty.vspace_add(*args)]
        if isinstance(prim, CallHiPrimitive) and any(map(is_high, (*avals, *prim.typing(*avals)))):
            hi = prim.hi
            return results_of(hi, hi.expand(*hi.in_tree.unflatten(args)))
        if not (high or has_high_inside(prim)):
            with current(self.parent):
                return bind_list(prim, args)
        if isinstance(prim, UserOperation) or prim.nested is None:
            raise NotImplementedError(
                f"'{prim.name}' takes no values of types that a program defines. Define an "
                "operation on them (HiPrimitive).")
        arrays = arrays_of(args, avals)
        with current(self.parent):
            outs, inner = through_arrays(prim, arrays, args, avals)
        return inner.put_back(args[prim.nested.before:], outs)


def has_high_inside(prim: Primitive) -> bool:
    """Return whether a program inside ``prim`` has values that are no arrays."""
    return any(works_on_high(inner) for _, inner in sub_jaxprs(prim)
               if isinstance(inner, ClosedJaxpr))


def through_arrays(prim: Primitive, arrays: Sequence[Any], values: Sequence[Any],
                   avals: Sequence[ShapedArray]) -> tuple[list[Any], OnArrays]:
    """Do what ``prim``, a call, a choice or a loop, does by the lowered forms of its programs.

    ``arrays`` hold its operands ``values``; what a constant of a loop holds is carried, if it
    changes.  Returns what ``put_back`` of one of these programs takes, and that.
    """
    nested: Nested = prim.nested
    made = [lowered(p) for p in nested.programs]
    if len(made) > 1:
        written = tuple(sorted({place for one in made for place in one.written}))
        made = [lowered(p, written) for p in nested.programs]
    inner = made[0]
    programs = tuple([one.program for one in made])
    changed = [nested.before + place for place in inner.written]
    if nested.ruled:  # its rules were asked before it is lowered
        return bind(JitCall(programs[0], programs[0].jaxpr.debug_name), *arrays), inner
    before, consts, carry, rest = nested.parts(avals)
    outs_by_kind = nested.outs(nested.programs[0].out_avals)
    if nested.repeats and any(map(is_mutable, (*carry, *rest, *outs_by_kind[0], *outs_by_kind[1]))):
        raise NotImplementedError("a loop carries and stacks no values that change. Let its body "
                                  "close over them.")
    # For each array, the number of the operand or result that it holds a part of.
    owners = owners_of(avals)
    results = owners_of([*outs_by_kind[0], *outs_by_kind[1]])
    contents = [Contents(changed[i]) for i in owners_of(inner.at_the_end())]
    operands = [*range(len(owners))]
    first, count = len(types_of(before)), len(types_of(consts))
    new = nested._replace(programs=programs, before=first, consts=count, carry=len(types_of(carry)))
    if nested.condition is not None:
        new = new._replace(condition=lowered_condition(nested, changed))
    if nested.repeats and changed:
        moves = [owners[first + i] in changed for i in range(count)]
        inside = range(first, first + count)
        operands = [*range(first), *pick(inside, moves, False), *pick(inside, moves),
                    *range(first + count, len(owners))]
        new = new._replace(
            programs=tuple([carrying(p, moves, len(results)) for p in programs]),
            consts=moves.count(False), carry=new.carry + sum(moves))
        outs = bind(prim.rebuilt(new, [owners[i] for i in operands], [*contents, *results]),
                    *(arrays[i] for i in operands))
        return [*outs[len(contents):], *outs[:len(contents)]], inner
    return bind(prim.rebuilt(new, owners, [*results, *contents]), *arrays), inner


def lowered_condition(nested: Nested, changed: Sequence[int]) -> ClosedJaxpr:
    """Return the condition of a loop as a program of arrays, which first carries what is changed.

    Raises: NotImplementedError if the condition changes something.
    """
    assert nested.condition is not None
    made = lowered(nested.condition)
    if made.written:
        raise NotImplementedError("the condition of a while loop changes a value. Change it in the "
                                  "body of the loop.")
    first = nested.before
    avals = types_of([nested.programs[0].in_avals[i - first] for i in changed])
    program = made.program
    count = len(types_of(nested.condition.in_avals[:first]))
    asked, carry = split_list(program.jaxpr.invars, count)
    return rearranged(program, [*asked, *map(Var, avals), *carry], program.jaxpr.outvars)


class Exchange:
    """What a call of a lowered program takes and gives back.

    If references are among the arrays, ``beneath`` says what becomes of those.
    """

    beneath: Any = None

    def __init__(self, made: OnArrays, donated: Sequence[bool]):
        self.made = made
        self.avals = made.closed.in_avals
        self.donated = tuple([flag for aval, flag in zip(self.avals, donated)
                              for _ in types_of([aval])])

    def placed(self, spread: Spread) -> Spread:
        """Return the place of the lowered program, whose arguments are placed as arrays already."""
        owners = owners_of(self.made.closed.out_avals)
        spread = spread._replace(outs=spread.outs and tuple([spread.outs[i] for i in owners]))
        spread = spread.with_results(len(types_of(self.made.at_the_end())))
        return spread if self.beneath is None else self.beneath.placed(spread)

    def take(self, args: Sequence[Any]) -> list[Any]:
        """Return the arrays that hold the arguments."""
        arrays = arrays_of(args, self.avals)
        return arrays if self.beneath is None else self.beneath.take(arrays)

    def put_back(self, args: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        """Return the results that the arrays ``outs`` hold; ``args`` hold what was written."""
        if self.beneath is not None:
            outs = self.beneath.put_back(arrays_of(args, self.avals), outs)
        return self.made.put_back(args, outs)


def lower_as_arrays(closed: ClosedJaxpr, options: Any, lower_as: Callable[..., Any]) -> Any:
    """Write the lowered program of ``closed`` by ``lower_as``, with what its calls exchange."""
    exchange = Exchange(lowered(closed), options.donated)
    spread = options.spread and exchange.placed(options.spread)
    made = lower_as(exchange.made.program, dataclasses.replace(
        options, donated=exchange.donated, spread=spread))
    if not any(map(is_high, (*closed.in_avals, *closed.out_avals))):
        return made
    if made.exchange is not None:
        exchange.beneath = made.exchange
    return dataclasses.replace(made, exchange=exchange)


__all__ = ["arrays_with_owners", "cur_qdd", "lower_as_arrays", "zero_of"]

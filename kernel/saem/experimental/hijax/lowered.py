"""How does a program with values that are no arrays become one of arrays alone?

It is run once more: a variable of such a type becomes the value that its arrays hold, an operation
on it what ``to_lojax`` does, and a call or loop one whose programs were lowered so, in which each
such operand or result is as many as there are arrays.

Read before: ``experimental.hijax.types``, ``transform.nested``.
Invariant: what is returned has no value that is not an array (tests/kernel/test_hijax.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from saem.core.avals import ShapedArray, aval_of
from saem.core.handles import UserOperation
from saem.core.hi_types import is_high, works_on_high
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr, once_per_program, sub_jaxprs
from saem.core.primitive import Primitive
from saem.core.record import Record
from saem.core.trace import Trace, bind_list, current, state
from saem.experimental.hijax.types import HiOperation, RaiseVal, zero_of
from saem.experimental.hijax.vjp_primitive import CallHiPrimitive, results_of
from saem.jit.call import JitCall
from saem.ops.linear import AddAny
from saem.transform.nested import Nested
from saem.transform.staging import trace_flat


def arrays_of(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return ``values`` as the arrays that hold them."""
    return [x for value, aval in zip(values, avals)
            for x in (aval.ty.lower_val(value) if is_high(aval) else (value,))]


def types_of(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Return the types of the arrays that hold values of ``avals``."""
    return [held for aval in avals for held in (aval.held() if is_high(aval) else (aval,))]


def values_of(arrays: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return the values, of ``avals``, that ``arrays`` hold."""
    rest = iter(arrays)
    return [aval.ty.raise_val(*[next(rest) for _ in aval.held()]) if is_high(aval) else next(rest)
            for aval in avals]


@once_per_program
def lowered(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program of the arrays that hold the arguments to those that hold the results."""
    avals, outs = closed.in_avals, closed.out_avals

    def on_arrays(*xs: Any) -> list[Any]:
        with current(LoweringTrace(state.trace)):
            values = eval_jaxpr(closed.jaxpr, closed.consts, *values_of(xs, avals))
            return arrays_of(values, outs)

    return trace_flat(on_arrays, types_of(avals), name="lower",
                      debug_name=closed.jaxpr.debug_name)


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
        with current(self.parent):
            if not (high or has_high_inside(prim)):
                return bind_list(prim, args)
            if isinstance(prim, UserOperation) or prim.nested is None:
                raise NotImplementedError(
                    f"'{prim.name}' takes no values of types that a program defines. Define an "
                    "operation on them (HiPrimitive).")
            call, arrays = with_arrays(prim, args, avals)
            return values_of(bind_list(call, arrays), prim.nested.programs[0].out_avals)


def has_high_inside(prim: Primitive) -> bool:
    """Return whether a program inside ``prim`` has values that are no arrays."""
    return any(works_on_high(inner) for _, inner in sub_jaxprs(prim)
               if isinstance(inner, ClosedJaxpr))


def with_arrays(prim: Primitive, values: Sequence[Any], avals: Sequence[ShapedArray]
                ) -> tuple[Primitive, list[Any]]:
    """Return the same call or loop with lowered programs, and its operands."""
    nested: Nested = prim.nested
    arrays = arrays_of(values, avals)
    programs = tuple([lowered(p) for p in nested.programs])
    if nested.ruled:  # its rules were asked before it is lowered
        return JitCall(programs[0], programs[0].jaxpr.debug_name), arrays
    before, consts, carry, rest = nested.parts(avals)
    outs = nested.outs(nested.programs[0].out_avals)
    if nested.rows and any(map(is_high, (*rest, *outs[1]))):
        raise NotImplementedError("scan stacks no values of types that a program defines: only "
                                  "constants and carries of a loop may have them. Stack the arrays "
                                  "that hold them.")
    new = nested._replace(
        programs=programs, before=len(types_of(before)), consts=len(types_of(consts)),
        carry=len(types_of(carry)),
        condition=None if nested.condition is None else lowered(nested.condition))
    operands = [i for i, aval in enumerate(avals) for _ in types_of([aval])]
    results = [i for i, aval in enumerate([*outs[0], *outs[1]]) for _ in types_of([aval])]
    return prim.rebuilt(new, operands, results), arrays


class Exchange(Record):
    """What a call of the lowered program of ``closed`` takes and gives back."""

    closed: ClosedJaxpr

    written = ()  # no result is of more than the program's own

    def take(self, args: Sequence[Any]) -> list[Any]:
        """Return the arrays that hold the arguments."""
        return arrays_of(args, self.closed.in_avals)

    def put_back(self, args: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        """Return the results that the arrays ``outs`` hold."""
        return values_of(outs, self.closed.out_avals)


def lower_as_arrays(closed: ClosedJaxpr, options: Any, lower_as: Callable[..., Any]) -> Any:
    """Write the lowered program of ``closed`` by ``lower_as``, with what its calls exchange."""
    avals = closed.in_avals
    donated = [flag for aval, flag in zip(avals, options.donated) for _ in types_of([aval])]
    made = lower_as(lowered(closed), dataclasses.replace(options, donated=tuple(donated)))
    if not any(map(is_high, (*avals, *closed.out_avals))):
        return made
    if made.exchange is not None:
        raise NotImplementedError("a program takes references (jax.new_ref) or values of types "
                                  "that it defines itself as arguments, not both.")
    return dataclasses.replace(made, exchange=Exchange(closed))


__all__ = ["lower_as_arrays", "zero_of"]

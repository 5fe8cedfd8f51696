"""How does a program say what went wrong in it?

``checkify(f)`` traces ``f`` and goes through its program once more, joining an ``Error`` as it
goes: what checks say, and after each operation what it may have done wrong by itself: made a NaN,
divided by zero, read outside an array.  The result is an ordinary program that returns the error
beside its results, so every transformation applies to it.

An operation with programs inside has one rule (``experimental.checkify.programs``), which puts
checked programs (``checked``) in their place; their errors come out as results.  A program is
checked by itself, from no error on, so it is checked once, whoever calls it.

Read before: ``experimental.checkify.checks``.  Read after: ``experimental.checkify.programs``.
Invariant: the results of a checked function are those of the function
(tests/kernel/test_checkify.py).
Source: the documentation of jax.experimental.checkify.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saem.core import dtypes, errors, tree
from saem.core.avals import ShapedArray, aval_functions, aval_of
from saem.core.jaxpr import ClosedJaxpr, Literal, Var
from saem.core.primitive import Primitive
from saem.core.refs import is_ref
from saem.core.trace import at_source, bind, state
from saem.derivatives.custom_rule import name_of
from saem.experimental.checkify.checks import (
    CODE,
    CheckEffect,
    DivisionByZeroError,
    Error,
    FailedCheckError,
    JaxException,
    Kind,
    NaNError,
    OOBError,
    Site,
    Slot,
    bind_check,
    init_error,
)
from saem.ops.compare import bitwise_and, bitwise_or, eq, gt, lt, ne
from saem.ops.convert import convert_element_type
from saem.ops.linear import broadcast_in_dim, number_like
from saem.ops.numbers import rem
from saem.ops.reduce import argmax, reduce_or
from saem.ops.shape import concatenate, reshape
from saem.ops.slicing import dynamic_index_in_dim
from saem.transform.derivatives import as_array
from saem.transform.staging import trace_flat

ErrorCategory = type[JaxException]
Categories = frozenset[ErrorCategory]

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
        """Run the program equation by equation; returns its error and its results."""
        return self.split(run_equations(self.program, args, None)[1])


# A rule takes an operation, its operands and the categories wanted; it runs the operation, and
# returns the error of that alone and the list of results.
Rule = Callable[[Any, Sequence[Any], Categories], tuple[Error, list[Any]]]
rules: dict[type, Rule] = {}


def run_equations(closed: ClosedJaxpr, args: Sequence[Any], wanted: Categories | None
                  ) -> tuple[Error, list[Any]]:
    """Run ``closed`` equation by equation; returns what went wrong, and its results.

    Without ``wanted`` it is only run.
    """
    jaxpr = closed.jaxpr
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts))
    env.update(zip(jaxpr.invars, args))
    error = init_error
    for eqn in jaxpr.eqns:
        values = [a.val if type(a) is Literal else env[a] for a in eqn.invars]
        prim = eqn.operation
        with at_source(eqn.source, eqn.stack):
            if wanted is None:
                outs = results(prim, values)
            else:
                found, outs = rules.get(type(prim), run_one)(prim, values, wanted)
                error = error.then(found)
        env.update(zip(eqn.outvars, outs))
    return error, [a.val if type(a) is Literal else env[a] for a in jaxpr.outvars]


def results(prim: Primitive, values: Sequence[Any]) -> list[Any]:
    """Apply ``prim``; returns the list of its results."""
    out = bind(prim, *values)
    return list(out) if prim.multiple_results else [out]


def checked(closed: ClosedJaxpr, wanted: Categories) -> Checked:
    """Return ``closed`` with its error as leading results; ``closed`` itself if it has none."""

    def make() -> Checked:
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

    return closed.derived(("checked", wanted), make)


def retraced(closed: ClosedJaxpr, run: Callable[..., Sequence[Any]],
             before: Sequence[ShapedArray] = ()) -> ClosedJaxpr:
    """Trace ``run`` for the operands of ``closed``, preceded by others of avals ``before``."""
    return trace_flat(run, [*before, *closed.in_avals], name="checkify",
                      debug_name=closed.jaxpr.debug_name)


def guarded(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return ``closed`` with a flag as first input, without which its checks cannot fail."""

    def make() -> ClosedJaxpr:
        inner = checked(closed, user_checks)

        def run(here: Any, *args: Any) -> list[Any]:
            error, outs = inner.run(*args)
            slots = {kind: slot._replace(pred=bitwise_and(slot.pred, here))
                     for kind, slot in error.slots.items()}
            bind_check(Error(slots, error.sites).collapsed(), False)
            return outs

        return retraced(closed, run, [ShapedArray((), np.dtype(bool))])

    return closed.derived("guarded", make)


CheckEffect.guard = staticmethod(guarded)  # type: ignore[assignment]


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


# -- what one operation can do wrong ---------------------------------------------------------------

def run_one(prim: Primitive, values: Sequence[Any], wanted: Categories
            ) -> tuple[Error, list[Any]]:
    """Apply a plain operation, looking for what it does wrong."""
    found = init_error
    if DivisionByZeroError in wanted and prim.divisor is not None:
        y = values[prim.divisor]
        found = failure(DivisionByZeroError, somewhere(eq(y, number_like(y, 0))))
    if OOBError in wanted and prim.window is not None:
        found = found.then(outside(prim, values))
    outs = results(prim, values)
    if NaNError in wanted and not prim.passes_nan:
        found = found.then(nan_among(prim, outs))
    return found, outs


def failure(error: ErrorCategory, pred: Any, about: Any = None, payload: Sequence[Any] = ()
            ) -> Error:
    """Return the error of one site that fails where ``pred`` is true."""
    kind = Kind(error, tuple(aval_of(x).strip_weak_type() for x in payload))
    return Error({kind: Slot(pred, np.int32(0), tuple(payload))},
                 (Site(error, about, state.source, False),))


def somewhere(flags: Any) -> Any:
    """Return whether any of ``flags`` is set."""
    axes = tuple(range(len(aval_of(flags).shape)))
    return reduce_or(flags, axes) if axes else flags


def nan_among(prim: Primitive, outs: Sequence[Any]) -> Error:
    """Return the error of a NaN in the results of ``prim``."""
    flags = [somewhere(ne(x, x)) for x in outs if can_be_nan(aval_of(x))]
    if not flags:
        return init_error
    pred = flags[0]
    for flag in flags[1:]:
        pred = bitwise_or(pred, flag)
    return failure(NaNError, pred, prim.name)


def can_be_nan(aval: Any) -> bool:
    """Return whether values of ``aval`` are arrays of floats (neither keys nor references)."""
    return isinstance(aval.dtype, np.dtype) and dtypes.is_inexact(aval.dtype) and not is_ref(aval)


def as_code(x: Any) -> Any:
    """Return an integer as one of 32 bits."""
    return x if aval_of(x).dtype == CODE else convert_element_type(x, CODE)


def outside(prim: Primitive, values: Sequence[Any]) -> Error:
    """Return the error of a window that does not lie in the array.

    Its payload is the first such start, the axis it is about, and the size of that axis.
    """
    starts, axes, sizes = prim.window(values)
    shape, counts = aval_of(values[0]).shape, aval_of(starts).shape
    if 0 in counts:
        return init_error
    if np.iinfo(aval_of(starts).dtype).bits < 32:  # the size of an axis may not fit
        starts = as_code(starts)
    number, width = math.prod(counts), counts[-1]
    flat = reshape(starts, (number // width, width))
    room = [shape[axis] - sizes[axis] for axis in axes]
    bad = bitwise_or(lt(flat, number_like(flat, 0)), gt(flat, numbers_in(room, flat)))
    first = argmax(reshape(bad, (number,)), 0, CODE)
    component = rem(first, np.int32(width))
    index = as_code(element(reshape(flat, (number,)), first))
    payload = concatenate([broadcast_in_dim(x, (1,)) for x in (
        index, one_of(axes, component), one_of([shape[axis] for axis in axes], component))], 0)
    return failure(OOBError, somewhere(bad), shape, [payload])


def numbers_in(numbers: Sequence[int], like: Any) -> Any:
    """Return ``numbers`` as a row of the type of ``like``, stretched to its rows."""
    dtype = aval_of(like).dtype
    most = np.iinfo(dtype).max
    row = [broadcast_in_dim(np.asarray(min(n, most), dtype)[()], (1, 1)) for n in numbers]
    return broadcast_in_dim(concatenate(row, 1), aval_of(like).shape, (0, 1))


def one_of(numbers: Sequence[int], place: Any) -> Any:
    """Return the one of ``numbers`` at ``place``; only scalars are written into the program."""
    scalars = [np.int32(n) for n in numbers]
    if len(set(scalars)) == 1:
        return scalars[0]
    return element(concatenate([broadcast_in_dim(n, (1,)) for n in scalars], 0), place)


def element(vector: Any, place: Any) -> Any:
    """Return the element of ``vector`` at ``place``, which lies in it."""
    return dynamic_index_in_dim(vector, place, 0, keepdims=False, allow_negative_indices=False)

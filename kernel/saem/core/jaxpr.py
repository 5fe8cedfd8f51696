"""What is a jaxpr?

A program as data: inputs, a flat list of equations ``c:f32[3] = mul a b``, outputs.  Each variable
is bound once, each equation remembers where the user wrote it and through which transformations it
came.

Read before: ``core.primitive``.  Read after: ``core.pretty``, ``core.infer``, ``transform``.
Invariant: every jaxpr the engine makes passes ``core.infer.check_jaxpr``.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from saem.core import config, lazy
from saem.core import source as source_info
from saem.core.avals import ShapedArray
from saem.core.dtypes import ExtendedDType
from saem.core.handles import Handle, handle_of
from saem.core.kept import Kept
from saem.core.primitive import Primitive
from saem.core.trace import bind, go_to_source, state

pretty: Any = lazy.later("saem.core.pretty")
provenance: Any = lazy.later("saem.core.provenance")


class Var:
    """A variable: an identity and an aval.  Names are given when printing."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """An output that no equation reads, printed as ``_``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A scalar constant written into an equation."""

    __slots__ = ("val", "aval")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal


class Eqn:
    """One equation: ``outvars = operation invars``; ``primitive`` names it to readers."""

    __slots__ = ("operation", "invars", "outvars", "source", "stack")

    def __init__(self, operation: Primitive, invars: Sequence[Atom], outvars: Sequence[Var],
                 source: source_info.Source | None, stack: tuple[str, ...]):
        self.operation = operation
        self.invars = invars
        self.outvars = outvars
        self.source = source
        self.stack = stack

    @property
    def params(self) -> dict[str, Any]:
        return {**self.operation.params, **self.derived_params()}

    def derived_params(self) -> dict[str, Any]:
        """Return the parameters that follow from the operands, as the combination of a scatter."""
        prim: Any = self.operation
        return prim.params_for([a.aval for a in self.invars]) if prim.derived_params else {}

    @property
    def primitive(self) -> Handle:
        """The primitive as users know it: ``lax.exp_p``, whatever the parameters."""
        return handle_of(self.operation)

    @property
    def effects(self) -> frozenset:
        return self.operation.effects

    def position(self):
        """Return where the user wrote this operation, or None."""
        return source_info.position(self.source)

    @property
    def source_info(self) -> Any:
        """Where it was written: ``traceback`` and ``name_stack``."""
        return provenance.SourceInfo.of(self.source, self.stack)

    @property
    def ctx(self) -> Any:
        """The settings it was written under; ``with eqn.ctx.manager:`` puts them in force."""
        return provenance.JaxprEqnContext.now()

    def replace(self, **changes: Any) -> Eqn:
        """Return this equation with some slots replaced, or its ``primitive`` or ``params``.

        What it is written with (``effects``, ``ctx``) belongs to the primitive and to the settings.
        """
        info = changes.get("source_info")
        if info is not None:
            changes.update(source=info.source, stack=info.stack)
        if "params" in changes or "primitive" in changes:
            changes["operation"] = changes.get("primitive", self.primitive).operation(
                changes.get("params", self.params))
        return Eqn(*(changes.get(slot, getattr(self, slot)) for slot in Eqn.__slots__))

    def __repr__(self) -> str:
        return pretty.eqn_text(self, pretty.Namer(), 0).rstrip()


class Origin:
    """What a trace leaves behind for ``debug_info``: no function, only its code and structures.

    ``arg_names`` or ``in_tree``, the structure of positional arguments, gives the names of these.
    """

    __slots__ = ("traced_for", "name", "code", "arg_names", "in_tree", "out_tree")

    def __init__(self, traced_for: str, fun: Any, out_tree: Any, *, in_tree: Any = None,
                 arg_names: Sequence[str] | None = None):
        inner = getattr(fun, "func", fun)  # of a partial
        self.traced_for = traced_for
        self.name = getattr(inner, "__name__", None) or type(inner).__name__
        inner = getattr(inner, "__wrapped__", inner)
        called = inner if hasattr(inner, "__code__") else vars(type(inner)).get("__call__")
        self.code = getattr(called, "__code__", None)
        self.arg_names = arg_names
        self.in_tree = in_tree
        self.out_tree = out_tree


_PARTS = frozenset(("constvars", "invars", "outvars", "eqns", "debug_name", "debug_info", "origin"))
_GIVEN = frozenset(("effects", "is_high"))  # accepted, since others write them; they follow


class Printed:
    """What a program looks like; the printer is loaded when one is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return pretty.program_text(self)

    def pretty_print(self, *, source_info: bool = False, print_shapes: bool = True,
                     name_stack: bool = False, custom_pp_eqn_rules: bool = True,
                     print_effects: bool = False, **_colours: Any) -> str:
        """Return the program as text, with what is asked for beside each equation."""
        return pretty.program_text(self, pretty.Style(
            source_info, print_shapes, name_stack, custom_pp_eqn_rules, print_effects))


WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


class Jaxpr(Printed):
    """An open program: its constants are variables whose values are kept elsewhere."""

    __slots__ = ("constvars", "invars", "outvars", "eqns", "debug_name", "origin", "__weakref__")
    is_high = False

    def __init__(self, constvars: Sequence[Var], invars: Sequence[Var], outvars: Sequence[Atom],
                 eqns: Sequence[Eqn], effects: Any = None, debug_info: Any = None,
                 is_high: bool = False, *, debug_name: str = "", origin: Origin | None = None):
        """Make a program; its ``effects`` are those of its equations, whatever is given."""
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.debug_name = debug_name if debug_info is None else debug_info.func_name
        self.origin = origin if debug_info is None else debug_info

    @property
    def debug_info(self) -> Any:
        """Which function was traced for what, and what its arguments and results are called."""
        return provenance.info_of(self)

    @property
    def effects(self) -> frozenset:
        found = frozenset().union(*(eqn.effects for eqn in self.eqns)) if self.eqns else frozenset()
        return on_inputs(self) if any(hasattr(e, "inside") for e in found) else found

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    def reads(self) -> set[Var]:
        """Return the variables that an equation takes or the program returns."""
        atoms = itertools.chain(self.outvars, *(eqn.invars for eqn in self.eqns))
        return {a for a in atoms if not isinstance(a, Literal)}

    def replace(self, **changes: Any) -> Jaxpr:
        """Return this program with some parts replaced.

        Raises: ValueError for a non-part.
        """
        unknown = changes.keys() - _PARTS - _GIVEN
        if unknown:
            raise ValueError(f"Jaxpr.replace: Unknown keyword arguments: {sorted(unknown)}")
        return Jaxpr(
            changes.get("constvars", self.constvars), changes.get("invars", self.invars),
            changes.get("outvars", self.outvars), changes.get("eqns", self.eqns),
            debug_info=changes.get("debug_info"), origin=changes.get("origin", self.origin),
            debug_name=changes.get("debug_name", self.debug_name))


def on_inputs(jaxpr: Jaxpr) -> frozenset:
    """Return the effects of ``jaxpr``; those on references name its inputs by their number.

    What happens to a reference that it makes itself is no effect of the program.
    """
    numbers = {var: number for number, var in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    found = set()
    for eqn in jaxpr.eqns:
        for effect in eqn.effects:
            if not hasattr(effect, "input"):
                found.add(effect)
            elif eqn.invars[effect.input] in numbers:
                found.add(type(effect)(numbers[eqn.invars[effect.input]]))
    return frozenset(e for e in found if not getattr(e, "inside", False))


class ClosedJaxpr(Printed):
    """A program with the values of its constants.  ``cache`` keeps what was derived from it."""

    __slots__ = ("jaxpr", "consts", "cache", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"ClosedJaxpr: {len(jaxpr.constvars)} constvars, {len(consts)} consts")
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.cache: dict[Any, Any] = {}

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        return self.jaxpr.outvars

    @property
    def debug_info(self) -> Any:
        return self.jaxpr.debug_info

    @property
    def is_high(self) -> bool:
        return self.jaxpr.is_high

    @property
    def literals(self) -> list[Any]:
        return self.consts

    @property
    def eqns(self) -> list[Eqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset:
        return self.jaxpr.effects

    def replace(self, **changes: Any) -> ClosedJaxpr:
        return ClosedJaxpr(changes.get("jaxpr", self.jaxpr), changes.get("consts", self.consts))

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """Return this program with ``f(self.jaxpr)`` as its jaxpr."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    def derived(self, key: Any, make: Callable[[], Any], others: tuple[ClosedJaxpr, ...] = ()
                ) -> Any:
        """Return what ``make`` returns, made once for this program, ``others`` and ``key``.

        The others may be new each time, as those of a lambda are: how much is kept is bounded.
        """
        if others:
            return self.derived("with others", Kept).once((others, key), make)
        try:
            return self.cache[key]
        except KeyError:
            pass  # not in here: an error of ``make`` would show this one before itself
        value = self.cache[key] = make()
        return value


Function = TypeVar("Function", bound=Callable[..., Any])


def once_per_program(make: Function) -> Function:
    """Make a function of a program, and of hashable arguments, run once for each of them.

    What it returns is kept with the program (``ClosedJaxpr.derived``).
    """

    @functools.wraps(make)
    def find(closed: ClosedJaxpr, *args: Any) -> Any:
        return closed.derived((make, *args), lambda: make(closed, *args))

    return find


def needs_x64(jaxpr: Jaxpr) -> bool:
    """Return whether values of 64-bit types are computed, which are off here.

    A function may turn them on inside.
    """
    setting = config.enable_x64
    return setting.was_scoped and not setting.value and any(
        getattr(a.aval, "dtype", None) in WIDE
        for eqn in jaxpr.eqns for a in (*eqn.invars, *eqn.outvars))


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any,
               propagate_source_info: bool = True) -> list[Any]:
    """Run ``jaxpr`` under the current interpreter, equation by equation.

    Operations keep the places in the source of their equations if ``propagate_source_info``.
    Raises: ValueError if the number of arguments does not fit.
    """
    if needs_x64(jaxpr):
        with config.enable_x64(True):
            return eval_jaxpr(jaxpr, consts, *args, propagate_source_info=propagate_source_info)
    if len(args) != len(jaxpr.invars):
        raise ValueError(f"eval_jaxpr: needed {len(jaxpr.invars)} arguments, got {len(args)}")
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    source, stack = state.source, state.stack
    try:
        for eqn in jaxpr.eqns:
            values = [a.val if type(a) is Literal else env[a] for a in eqn.invars]
            place = (eqn.source, eqn.stack) if propagate_source_info else (None, ())
            go_to_source(*place, stack)
            out = bind(eqn.operation, *values)
            if eqn.operation.multiple_results:
                env.update(zip(eqn.outvars, out))
            else:
                env[eqn.outvars[0]] = out
    finally:
        state.source, state.stack = source, stack
    return [a.val if type(a) is Literal else env[a] for a in jaxpr.outvars]


def interpret(closed: ClosedJaxpr, args: Sequence[Any],
              step: Callable[[Eqn, list[Any]], Sequence[Any]]) -> list[Any]:
    """Return what ``closed`` gives where ``step(eqn, values)`` gives the results of an equation.

    An interpreter of programs is this loop with a ``step`` of its own.
    """
    jaxpr = closed.jaxpr
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts))
    env.update(zip(jaxpr.invars, args))
    for eqn in jaxpr.eqns:
        values = [a.val if type(a) is Literal else env[a] for a in eqn.invars]
        env.update(zip(eqn.outvars, step(eqn, values)))
    return [a.val if type(a) is Literal else env[a] for a in jaxpr.outvars]


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return the Python function that runs ``closed``."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


class _Watch(threading.local):
    """The function that gets every equation this thread evaluates, inside nested programs too."""

    on_step: Callable[[Eqn, list], None] | None = None


_watch = _Watch()


@contextlib.contextmanager
def watching(on_step: Callable[[Eqn, list], None]) -> Iterator[None]:
    """Call ``on_step`` for every equation evaluated inside the block, those of loops included."""
    saved, _watch.on_step = _watch.on_step, on_step
    try:
        yield
    finally:
        _watch.on_step = saved


def evaluate(closed: ClosedJaxpr, *args: Any, on_step: Callable[[Eqn, list], None] | None = None
             ) -> list[np.ndarray]:
    """Run ``closed`` on NumPy by the ``evaluate`` rules, without jaxlib.

    ``on_step(eqn, values)`` is called with the output values of every equation: the stepper.
    """
    on_step = on_step or _watch.on_step
    env: dict[Var, Any] = {
        v: as_numpy(x, v.aval) for v, x in zip(closed.jaxpr.constvars, closed.consts)}
    env.update((v, as_numpy(x, v.aval)) for v, x in zip(closed.jaxpr.invars, args))
    for eqn in closed.jaxpr.eqns:
        values = [as_numpy(a.val, a.aval) if type(a) is Literal else env[a] for a in eqn.invars]
        prim = eqn.operation
        if any(isinstance(a.aval.dtype, ExtendedDType) for a in (*eqn.invars, *eqn.outvars)):
            # Keys are evaluated as the arrays that hold them.
            if prim.physical is not None:
                prim = prim.physical(
                    *([a.aval for a in atoms] for atoms in (eqn.invars, eqn.outvars)))
        out = prim.evaluate(*values)
        outs = list(out) if prim.multiple_results else [out]
        outs = [as_numpy(o, v.aval) for o, v in zip(outs, eqn.outvars)]
        env.update(zip(eqn.outvars, outs))
        if on_step is not None:
            on_step(eqn, outs)
    return [as_numpy(a.val, a.aval) if type(a) is Literal else env[a]
            for a in closed.jaxpr.outvars]


def as_numpy(x: Any, aval: ShapedArray) -> np.ndarray:
    """Return ``x`` as a NumPy array of ``aval``; a key array as the words that hold it."""
    if isinstance(aval.dtype, ExtendedDType):
        return np.asarray(getattr(x, "_base", x), aval.dtype.physical[1])
    return np.asarray(x, aval.dtype)


def sub_jaxprs(prim: Primitive) -> list[tuple[str, ClosedJaxpr | Jaxpr]]:
    """Return the (parameter name, program) pairs inside a higher-order primitive's parameters."""
    found: list[tuple[str, ClosedJaxpr | Jaxpr]] = []
    for name, value in prim.params.items():
        items = value if isinstance(value, (tuple, list)) else (value,)
        found += [(name, item) for item in items if isinstance(item, (ClosedJaxpr, Jaxpr))]
    return found


# -- lists of operands and results, and flags beside them ------------------------------------------


def split_list(items: Sequence[Any], *counts: int) -> list[list[Any]]:
    """Return ``items`` cut into pieces of ``counts`` and the rest."""
    pieces, start = [], 0
    for count in counts:
        pieces.append(list(items[start: start + count]))
        start += count
    return [*pieces, list(items[start:])]


def pick(items: Iterable[Any], flags: Iterable[bool], wanted: bool = True) -> list[Any]:
    """Return the ``items`` whose flag is ``wanted``."""
    return [item for item, flag in zip(items, flags) if flag == wanted]


def merge(flags: Iterable[bool], where_true: Iterable[Any], where_false: Iterable[Any]
          ) -> list[Any]:
    """Return one list that takes from the first where the flag is true, else from the second."""
    yes, no = iter(where_true), iter(where_false)
    return [next(yes) if flag else next(no) for flag in flags]


def with_nones(flags: Iterable[bool], values: Iterable[Any]) -> list[Any]:
    """Return the next of ``values`` where a flag is true, None elsewhere."""
    given = iter(values)
    return [next(given) if flag else None for flag in flags]

"""Which interpreter processes an operation?

Every operation goes through ``bind``, which gives it to the *current interpreter* of this thread:
``EvalTrace`` runs it on XLA, a staging trace records it as an equation, a JVP trace computes its
derivative beside it, a batch trace applies it to a whole stack of values.  An interpreter has a
``parent``; while it works on an operation the parent is current, so rules of primitives are
ordinary programs one level down.

Read before: ``core.primitive``.  Read after: ``saem.transform``.
Invariant: the current interpreter is restored on every way out of a ``with`` of this module and of
``run_under``, of the latter also if an interrupt comes at its end; a tracer is used only while its
interpreter lives (tests/kernel/test_trace.py).
Source: autodidax, part 2 (context interpreters).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from saem import _jaxlib
from saem.core import config, errors
from saem.core.avals import ShapedArray, aval_functions, own_aval
from saem.core.primitive import Primitive
from saem.core.source import Source

T = TypeVar("T")


class Trace:
    """An interpreter of primitives.  ``stack`` names the transformations down to this one."""

    parent: Trace | None = None
    stack: tuple[str, ...] = ()
    live: bool = True
    # Whether it is given the operations of library functions, and of those jitted with
    # ``inline=True``; else it is given one call for each of them.
    inlines: ClassVar[bool] = True
    # Whether, outside of programs, it is given a call all the same, which it interprets once and
    # compiles.  An interpreter that linearizes would compile each function three times, so it is
    # given only calls of functions that are marked ``whole``.
    calls_whole: bool = False
    # Whether it must see every operation, also those on values that are not its own.
    sees_all: ClassVar[bool] = False
    # Whether its rules may give its own values to the interpreter below, which takes them for
    # constants.
    hands_down: ClassVar[bool] = False

    @property
    def main(self) -> Trace:
        """What the values of one interpretation have in common: the interpreter itself."""
        return self

    @property
    def parent_trace(self) -> Trace | None:
        """The interpreter below this one."""
        return self.parent

    def process(self, prim: Primitive, args: tuple) -> Any:
        """Interpret ``prim`` on ``args``; returns an output, or a list if it has several."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to process an operation")

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any]) -> Any:
        """Interpret the primitive that users know by the handle ``primitive``."""
        with current(self):
            return primitive.bind(*tracers, **params)

    def stage_value(self, x: Any) -> Any:
        """Return the array ``x`` as a value of this interpreter."""
        return x

    def constant(self, x: Any, put: Callable[[Any], Any]) -> Any:
        """Return the number or NumPy array ``x`` as an array, which ``put`` makes.

        Where a program is recorded it is a value of that.
        """
        return put(x) if self.parent is None else self.parent.constant(x, put)

    def full_raise(self, x: Any) -> Any:
        """Return ``x``, which is a value of this interpreter or the same for all of it.

        Interpreters written for JAX call it.
        """
        return x

    def ancestors(self):
        """Yield this interpreter and those below it."""
        trace: Trace | None = self
        while trace is not None:
            yield trace
            trace = trace.parent


class EvalTrace(Trace):
    """The ground level: operations run.  Its ``process`` is wired in ``saem._wiring``."""

    calls_whole = True


eval_trace = EvalTrace()


class _State(threading.local):
    """The state of one thread: current interpreter, stack of transformations, place in user code.

    ``watcher`` is set by tools such as the lens's X-ray.
    """

    def __init__(self) -> None:
        self.trace: Trace = eval_trace
        self.stack: tuple[str, ...] = ()
        self.source: Source | None = None
        # Called each time that Python needs the numbers of a tracer: (tracer, by what, success).
        self.watcher: Callable[[Tracer, str, bool], None] | None = None


state = _State()


def runs_at_once() -> bool:
    """Return whether an operation on values that are not tracers is run, not written down."""
    return state.trace is eval_trace or not config.staging.value


def bind(prim: Primitive, *args: Any) -> Any:
    """Apply ``prim`` to ``args`` under the current interpreter."""
    try:
        return state.trace.process(prim, args)
    except errors.NotAValue as error:
        error.passed_to(prim.name, args)
        raise


def bind_list(prim: Primitive, args: Iterable[Any]) -> list[Any]:
    """Apply ``prim`` as ``bind`` does; return its results as a list, one result too."""
    out = bind(prim, *args)
    return list(out) if prim.multiple_results else [out]


class current:
    """``with current(trace):`` makes ``trace`` the interpreter of this thread inside the block."""

    __slots__ = ("trace", "saved")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self) -> Trace:
        self.saved = (state.trace, state.stack)
        state.trace = self.trace
        state.stack = self.trace.stack
        return self.trace

    def __exit__(self, *exc: Any) -> None:
        state.trace, state.stack = self.saved


def run_under(trace: Trace, fun: Callable[..., T], args: Iterable[Any]) -> T:
    """Return ``fun(*args)``, run with ``trace`` as the interpreter of this thread.

    It is for calls of a user's function.  Python raises an interrupt where a call begins, that of
    ``__exit__`` included; here none lies between the call and the interpreter that was before.
    """
    before = state.trace, state.stack
    try:
        state.trace, state.stack = trace, trace.stack
        return fun(*args)
    finally:
        state.trace, state.stack = before


class beneath(current):
    """``with beneath(trace):`` gives operations to the parent of ``trace``.

    The stack stays: what is recorded below was written under ``trace``, too.
    """

    __slots__ = ()

    def __init__(self, trace: Trace):
        assert trace.parent is not None
        self.trace = trace.parent

    def __enter__(self) -> Trace:
        self.saved = (state.trace, state.stack)
        state.trace = self.trace
        return self.trace


class Scope(str):
    """The name of a ``named_scope`` on a stack of transformations."""

    __slots__ = ()
    used: ClassVar[bool] = False  # whether there ever was one: else stacks are not searched


class Wrapping(Scope):
    """A name on a stack that encloses the next one, as that of a transformation does."""

    __slots__ = ()


class Boundary(str):
    """A name on a stack at which a program begins: names before it belong to the caller."""

    __slots__ = ()


# What begins the stack inside programs that were derived from others.
DERIVED = {"vmap": "vmap", "jvp": "jvp", "transpose": "jvp", "partial_eval": "jvp",
           "checkpoint": "jvp"}


def inside_program(stack: tuple[str, ...]) -> tuple[str, ...]:
    """Return the scopes and transformations on ``stack`` inside the innermost program.

    A program that was derived from another (the batched one of a jitted function) is under a
    transformation because its caller is, so the name of that is in the caller's stack.
    """
    for number in range(len(stack), 0, -1):
        name = stack[number - 1]
        if type(name) is Boundary:
            own = DERIVED.get(name)
            return stack[number + (own is not None and stack[number:number + 1] == (own,)):]
    return stack


class Mark(Scope):
    """Attributes that operations get in a program's text, on a stack as a scope is.

    It prints as a transformation without a name.  ``replaces`` are attributes of outer marks that
    it drops.
    """

    used: ClassVar[bool] = False

    def __new__(cls, attributes: dict[str, str | None], replaces: frozenset = frozenset()) -> Mark:
        mark = super().__new__(cls, "")
        mark.attributes = attributes
        mark.replaces = replaces
        return mark

    attributes: dict[str, str | None]
    replaces: frozenset


def marks_of(stack: tuple[str, ...]) -> tuple[Mark, ...]:
    """Return the marks on ``stack``, the outermost first."""
    return tuple([name for name in stack if type(name) is Mark])


def attributes_of(stack: tuple[str, ...]) -> dict[str, str]:
    """Return the attributes that operations under ``stack`` get."""
    found: dict[str, str | None] = {}
    for mark in marks_of(stack):
        found = {k: v for k, v in found.items() if k not in mark.replaces}
        found.update(mark.attributes)
    return {name: value for name, value in sorted(found.items()) if value is not None}


class at_source:
    """``with at_source(eqn.source, eqn.stack):`` runs its block on behalf of an equation.

    What is recorded inside has the equation's place in user code and its named scopes.
    """

    __slots__ = ("source", "stack", "saved")

    def __init__(self, source: Source | None, stack: tuple[str, ...] = ()):
        self.source = source
        self.stack = stack

    def __enter__(self) -> None:
        self.saved = state.source, state.stack
        go_to_source(self.source, self.stack, state.stack)

    def __exit__(self, *exc: Any) -> None:
        state.source, state.stack = self.saved


def go_to_source(source: Source | None, stack: tuple[str, ...], under: tuple[str, ...]) -> None:
    """Make an equation's place in user code and its named scopes current, ``under`` a stack.

    What runs a program calls this for each equation, and restores ``state`` at the end.
    """
    state.source = source
    if Scope.used:
        names, have = inside_program(stack), inside_program(under)
        known = 0
        while known < min(len(names), len(have)) and names[known] == have[known]:
            known += 1
        # Without a scope the transformations say nothing that the stack does not say.
        if any(type(name) in (Scope, Wrapping) for name in names):
            under = (*under, *names[known:])
        state.stack = under
    if Mark.used:
        marks = marks_of(stack)
        state.stack = under if not marks or marks_of(under)[-len(marks):] == marks else (
            *under, *marks)


class Tracer(_jaxlib.Array):
    """A value that belongs to an interpreter.  Operators are wired in ``saem._wiring``.

    ``kind`` is its name in error messages and in the lens.
    """

    __slots__ = ("_trace", "aval", "__weakref__")
    kind: ClassVar[str] = "tracer"
    __array_priority__ = 1000

    _trace: Trace
    aval: ShapedArray

    def __init__(self, trace: Trace, aval: ShapedArray):
        self._trace = trace
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self):
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    def concrete(self) -> Any:
        """Return the value under this tracer if it is known, None if it is only abstract."""
        return None

    def full_lower(self) -> Any:
        """Return the value itself where this tracer adds nothing to it; else this tracer."""
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval.str_short()}>"

    __str__ = __repr__

    # As arrays: equality is asked of each element.  Caches of libraries ask for ``Hashable``.
    __hash__: Any = None


aval_functions[Tracer] = own_aval
_jaxlib.set_tracer_class(Tracer)


def is_tracer(x: Any) -> bool:
    """Return whether ``x`` is a value of an interpreter."""
    return isinstance(x, Tracer)


def is_concrete(x: Any) -> bool:
    """Return whether the numbers of ``x`` are known now."""
    while isinstance(x, Tracer):
        x = x.concrete()
        if x is None:
            return False
    return True


def concrete_or_none(x: Any) -> Any:
    """Return the numbers behind ``x``, through tracers that know them, or None."""
    while isinstance(x, Tracer):
        x = x.concrete()
    return x


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """Return ``force(val)``, or ``val`` if ``force`` is None.

    Raises: ConcretizationTypeError if ``val`` is a tracer whose numbers are not known.
    """
    if isinstance(val, Tracer):
        known = concrete_or_none(val)
        if known is None:
            raise errors.ConcretizationTypeError(val, context)
        val = known
    return val if force is None else force(val)

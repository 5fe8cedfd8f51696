"""What is the type of a mutable array, and what are its effects?

Its type, ``Ref{f32[3]}``, beside the type of what it holds; what an operation does to it (reads,
writes, adds: its *effects*, each naming an operand); and which part of it an operation means.

Read before: ``core.avals``.  Read after: ``refs.operations``.
Invariant: the type of a reference has no weak type of its own to ask for, so an operation on
numbers that is given a reference instead says so (tests/kernel/test_refs.py).
Source: the documentation of jax.ref.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

from saem.core import errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.effects import Effect
from saem.core.hi_types import aval_method
from saem.core.jaxpr import ClosedJaxpr, once_per_program, sub_jaxprs
from saem.core.primitive import Primitive, UndefinedPrimal
from saem.core.record import Record

# The chapter ``saem.refs``, put here by ``saem._wiring``: its ``__init__`` lists what the rest of
# the engine calls.
chapter: Any = None


class RefError(errors.Explained):
    """A mutable array is used where the transformation around it cannot follow."""


class AbstractRef(ShapedArray):
    """The abstract value of a mutable array that holds an array of type ``inner_aval``."""

    __slots__ = ("inner_aval", "memory_space", "kind")
    changes = True

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: str | None = None):
        self.inner_aval = inner_aval
        self.shape = inner_aval.shape
        self.dtype = inner_aval.dtype
        self.placement = None
        self.memory_space = memory_space
        self.kind = kind

    @property
    def weak_type(self) -> bool:
        """Raises ShapeError: only an operation on arrays asks, and it got a reference."""
        raise not_unpacked(self)

    def __eq__(self, other):
        return type(other) is AbstractRef and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __reduce__(self):
        return AbstractRef, (self.inner_aval, self.memory_space, self.kind)

    def _key(self) -> tuple:
        return AbstractRef, self.inner_aval, self.memory_space, self.kind

    def update(self, **changes) -> AbstractRef:
        """Return the type of a reference to an array of another shape, say."""
        inner = changes.pop("inner_aval", self.inner_aval)
        inner = inner.update(**changes) if changes else inner
        return AbstractRef(inner, self.memory_space, self.kind)

    def strip_weak_type(self) -> AbstractRef:
        return AbstractRef(self.inner_aval.strip_weak_type(), self.memory_space, self.kind)

    def to_tangent_aval(self) -> AbstractRef:
        return AbstractRef(self.inner_aval.to_tangent_aval(), self.memory_space, self.kind)

    def to_ct_aval(self) -> AbstractRef:
        return AbstractRef(self.inner_aval.to_ct_aval(), self.memory_space, self.kind)

    @aval_method
    def get(self: Any, idx: Any = ()) -> Any:
        """Return the part of what the reference holds at ``idx``."""
        return chapter.get(self, idx)

    @aval_method
    def set(self: Any, value: Any, idx: Any = ()) -> None:
        """Put ``value`` at ``idx``."""
        chapter.set(self, idx, value)

    @aval_method
    def swap(self: Any, value: Any, idx: Any = ()) -> Any:
        """Put ``value`` at ``idx`` and return what was there."""
        return chapter.swap(self, idx, value)

    @aval_method
    def addupdate(self: Any, value: Any, idx: Any = ()) -> None:
        """Add ``value`` to the part at ``idx``."""
        chapter.addupdate(self, idx, value)

    def str_short(self, short_dtypes: bool = False) -> str:
        """Return ``Ref{f32[2,3]}``."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __str__(self) -> str:
        return self.str_short()

    __repr__ = __str__


def not_unpacked(aval: AbstractRef) -> Exception:
    """Return the error of an operation on numbers that is given a reference."""
    return errors.explained(
        errors.ShapeError, "ref.C1",
        f"Attempting to pass a Ref {aval.str_short()} to a primitive -- did you "
        "forget to unpack ([...]) the ref? An operation needs an array; this is a reference, which "
        "requires ndarray or scalar arguments to be read first.",
        advice="Read the array it holds with ref[...], or a part of it with ref[i].")


def is_ref(aval: Any) -> TypeGuard[AbstractRef]:
    """Return whether ``aval`` is the type of a mutable array."""
    return type(aval) is AbstractRef


def held_type(aval: ShapedArray) -> ShapedArray:
    """Return the type of the array behind a reference of type ``aval``."""
    if not is_ref(aval):
        raise TypeError(f"{aval} is not the type of a reference.")
    return aval.inner_aval


@once_per_program
def works_on_references(closed: ClosedJaxpr) -> bool:
    """Return whether ``closed``, or a program inside it, works on references."""
    for eqn in closed.eqns:
        prim = eqn.operation
        if prim.touches_refs or (prim.multiple_results and works_inside_on_references(prim)):
            return True
    return False


def works_inside_on_references(prim: Primitive) -> bool:
    """Return whether a program inside ``prim`` works on references."""
    return any(works_on_references(inner) for _, inner in sub_jaxprs(prim)
               if isinstance(inner, ClosedJaxpr))


def check_references(name: Callable[[], str], transform: str, leaves: Sequence[Any],
                     paths: Callable[[], Sequence[str]], closed_over: Sequence[Any] = ()) -> None:
    """Refuse a reference, or another value that changes, that comes twice among the arguments of a
    function, or that the function closes over as well.

    Raises: ArgumentError naming the arguments.
    """
    first: dict[int, int] = {}
    inside = {id(x) for x in closed_over}
    for number, x in enumerate(leaves):
        aval = aval_of(x)
        if not aval.changes:
            continue
        what = "mutable array reference" if is_ref(aval) else "value that changes"
        if id(x) in inside:
            raise errors.explained(
                errors.ArgumentError, "ref.C16",
                f"when tracing {name()} for {transform}, a {what} of type {aval} "
                f"was both closed over and passed as the argument {paths()[number]}",
                advice="Pass it, or close over it; not both.")
        if first.setdefault(id(x), number) != number:
            a, b = (paths()[i] for i in (first[id(x)], number))
            raise errors.explained(
                errors.ArgumentError, "ref.C17",
                f"only one {'reference to a mutable array' if is_ref(aval) else what} may be "
                f"passed as an argument to a function, but when tracing {name()} for {transform} "
                f"the {what} of type {aval} appeared at both {a} and {b}.",
                advice="Pass it once, and use it for both.")


def returned_reference(name: str, transform: str, aval: Any, path: str) -> Exception:
    """Return the error of a function among whose results is a reference."""
    return errors.explained(
        errors.ArgumentError, "ref.C18",
        f"function {name} traced for {transform} returned a mutable array reference of "
        f"type {aval}{f' at output tree path result{path}' if path else ''}, but "
        "mutable array references cannot be returned.",
        advice="Return what it holds: ref[...].")


# -- what operations do ----------------------------------------------------------------------------


class RefEffect(Effect):
    """Something happens to the reference that is operand number ``input``."""

    __slots__ = ("input",)
    inside = False

    def __init__(self, input: int):
        super().__init__(f"{type(self).__name__}({input})")
        self.input = input

    def __eq__(self, other: Any) -> bool:
        return type(other) is type(self) and other.input == self.input

    def __hash__(self) -> int:
        return hash((type(self), self.input))


class ReadEffect(RefEffect):
    """It is read."""

    __slots__ = ()


class WriteEffect(RefEffect):
    """It is written."""

    __slots__ = ()


class AccumEffect(RefEffect):
    """Something is added to it."""

    __slots__ = ()


class OwnRefEffect(Effect):
    """A reference begins or ends: nothing to leave out, but no effect of the program around."""

    __slots__ = ()
    inside = True


OWN_REF = OwnRefEffect("InternalMutableArray")


def shifted(effects: frozenset, by: int) -> frozenset:
    """Return ``effects`` of a program as those of its call, whose operands come ``by`` later."""
    if not effects:
        return frozenset()
    return frozenset([type(e)(e.input + by) if isinstance(e, RefEffect) else e for e in effects])


# -- which part of it ------------------------------------------------------------------------------


class Span(NamedTuple):
    """The elements ``start, start + stride, …`` of an axis, ``size`` of them."""

    start: int
    size: int
    stride: int = 1


class Indexer(Record):
    """One ``[…]``: for each axis of an array of ``shape`` a Span, or None for an index operand."""

    entries: tuple[Span | None, ...]
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many index operands it takes."""
        return self.entries.count(None)

    @property
    def spans(self) -> list[Span]:
        return [entry for entry in self.entries if entry is not None]

    @property
    def places(self) -> list[int]:
        """The axes that index operands index."""
        return [axis for axis, entry in enumerate(self.entries) if entry is None]

    def before(self, index_shape: tuple[int, ...]) -> int:
        """Return after how many of the spans' axes those of index arrays come in the result."""
        places = self.places
        if not index_shape or not places:
            return 0
        together = places[-1] - places[0] == len(places) - 1
        return places[0] if together else 0

    def result_shape(self, index_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the part, by NumPy's rules, for index operands of ``index_shape``."""
        sizes = tuple(span.size for span in self.spans)
        at = self.before(index_shape)
        return (*sizes[:at], *(index_shape if self.count else ()), *sizes[at:])

    def text(self, indices: Iterator[str]) -> str:
        """Return ``[0,1:]``, the index operands being printed as ``indices``."""
        words = []
        for entry, dim in zip(self.entries, self.shape):
            if entry is None:
                words.append(next(indices))
                continue
            start = str(entry.start) if entry.start else ""
            end = entry.start + entry.size
            words.append(f"{start}:{'' if end == dim else end}")
        return f"[{','.join(words)}]"


def split_indices(transforms: Sequence[Indexer], operands: Sequence[Any]) -> list[list[Any]]:
    """Return the index operands of each of ``transforms``."""
    pieces, start = [], 0
    for indexer in transforms:
        pieces.append(list(operands[start: start + indexer.count]))
        start += indexer.count
    return pieces


# -- backwards -------------------------------------------------------------------------------------


class LinearRef(UndefinedPrimal):
    """A reference in a transpose rule; ``ct`` is the one that collects its cotangent, or None."""

    __slots__ = ("ct",)
    aval: AbstractRef

    def __init__(self, aval: AbstractRef, ct: Any):
        super().__init__(aval)
        self.ct = ct

"""How does a user make, read and write a mutable array?

A ``Ref`` holds an array and lets another take its place.  ``ref[i]`` reads, ``ref[i] = x`` writes,
in programs and outside; ``ref.at[i]`` is a view of a part.  A program that was given references, or
closed over them, is run in its pure form, with the arrays they hold; what it wrote is put back.

Read before: ``refs.operations``, ``refs.discharge``.  Read after: ``saem.ref``.
Invariant: an array that was read from a reference, or that it began with, never changes: a buffer
that other code may hold is copied before it is given away (tests/kernel/test_refs.py).
Source: the documentation of jax.ref.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile import dispatch
from saem.compile.device_assignment import held_as
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_functions, aval_of
from saem.core.dynamic_slices import Slice
from saem.core.refs import AbstractRef, Indexer, Span, is_ref
from saem.core.trace import Tracer, bind, eval_trace, state
from saem.jit.jitted import make_jit
from saem.ops.arithmetic import add
from saem.ops.compare import lt
from saem.ops.convert import convert, convert_element_type, copy
from saem.ops.linear import broadcast_in_dim, literal
from saem.ops.select import clamp, select_n
from saem.refs.operations import AddUpdate, EmptyRef, FreeRef, Freeze, Get, NewRef, OnPart, Swap
from saem.transform.staging import StagingTrace


class _IsRef(type):
    """Makes ``isinstance(x, Ref)`` true of references inside programs, too."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is Ref or (isinstance(x, Tracer) and is_ref(x.aval))


class Ref(metaclass=_IsRef):
    """A mutable array: what it holds can be replaced, as a whole or in part.

    Make one with ``jax.new_ref(x)``.
    """

    __slots__ = ("_aval", "_held", "__weakref__")

    def __init__(self, aval: AbstractRef, held: Any):
        self._aval = aval
        # No other code has this array, so programs may reuse its memory for the next one.
        self._held = held

    aval = property(lambda self: self._aval)
    held = property(lambda self: self._held)
    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)
    ndim = property(lambda self: self._aval.ndim)
    size = property(lambda self: self._aval.size)
    sharding = property(lambda self: self._held.sharding)
    committed = property(lambda self: self._held.committed)
    format = property(lambda self: self._held.format)
    at = property(lambda self: ViewMaker(self))

    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    def __len__(self) -> int:
        return len(self._aval.inner_aval)

    def __iter__(self) -> Iterator[Any]:
        """Yield what it holds, row by row; then refuse, as JAX does, to go on.

        Python would ask for rows until an index is refused, and in a trace none is.
        """
        for number in range(len(self)):
            yield get(self, number)
        _check_bounds([(len(self), len(self))])

    def __repr__(self) -> str:
        return "Ref" + repr(self._held).removeprefix("Array")

    __str__ = __repr__

    def addupdate(self, value: Any, idx: Any = ()) -> None:
        """Add ``value`` to the part at ``idx``."""
        addupdate(self, idx, value)

    def unsafe_buffer_pointer(self) -> int:
        """Return where the array it holds begins in memory."""
        return self._held.unsafe_buffer_pointer()

    def __reduce__(self):
        return _again, (np.asarray(self._held), self._aval)

    def __copy__(self) -> Ref:
        return Ref(self._aval, self.value())

    def __deepcopy__(self, memo: dict) -> Ref:
        return self.__copy__()

    def value(self) -> Any:
        """Return a copy of the array that it holds."""
        return copy(self._held)

    def hold(self, value: Any) -> None:
        self._held = value


def _again(value: np.ndarray, aval: AbstractRef) -> Ref:
    return Ref(aval, dispatch.put(convert(value, aval.dtype)))


aval_functions[Ref] = lambda ref: ref._aval
held_as[Ref] = lambda ref: ref._held


# -- views -----------------------------------------------------------------------------------------


class View:
    """A part of a reference, which can be read and written like a reference."""

    __slots__ = ("ref", "transforms", "operands", "shape")

    def __init__(self, ref: Any, transforms: tuple[Indexer, ...], operands: tuple):
        self.ref = ref
        self.transforms = transforms
        self.operands = operands
        last = operands[len(operands) - transforms[-1].count:]
        self.shape = transforms[-1].result_shape(aval_of(last[0]).shape if last else ())

    dtype = property(lambda self: aval_of(self.ref).dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=int)))
    at = property(lambda self: ViewMaker(self))

    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    def __len__(self) -> int:
        return len(ShapedArray(self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"TransformedRef(ref={self.ref!r}, transforms={self.transforms})"


class ViewMaker:
    """``ref.at``: waits for an index."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any):
        self.ref = ref

    def __getitem__(self, index: Any) -> View:
        ref, transforms, operands = located("ref.at", self.ref, index, always=True)
        return View(ref, transforms, operands)


def located(name: str, ref: Any, index: Any, always: bool = False
            ) -> tuple[Any, tuple[Indexer, ...], tuple]:
    """Return the reference itself, how to go to the part at ``index``, and the index operands.

    Raises: ValueError for a non-reference.
    """
    transforms: tuple[Indexer, ...] = ()
    operands: tuple = ()
    shape = None
    if type(ref) is View:
        ref, transforms, operands, shape = ref.ref, ref.transforms, ref.operands, ref.shape
    if not isinstance(ref, Ref):
        raise errors.explained(
            errors.ArgumentError, "ref.C2", f"Can only call `{name}` on a `Ref`: {ref}.",
            advice="Make one with jax.new_ref(x).")
    if not always and (index is None or index is Ellipsis or (type(index) is tuple and not index)):
        return ref, transforms, operands
    indexers, own = parsed(aval_of(ref).shape if shape is None else shape, index)
    return ref, (*transforms, *indexers), (*operands, *own)


def _one_for_each_axis(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return the entries of ``index``, with ':' for the axes that it leaves out.

    A mask that is known counts as the places of its True elements, one entry for each of its axes.
    """
    given = list(index) if type(index) is tuple else [Ellipsis if index is None else index]
    items, masks = _without_masks(given)
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise errors.explained(
            errors.ArgumentError, "ref.C8", "Only one ellipsis is supported.",
            advice="Write the other axes as ':'.")
    if len(items) - len(dots) > len(shape):
        raise errors.explained(
            errors.ArgumentError, "ref.C9",
            f"`indices` must not be longer than `shape`: indices={tuple(items)}, shape={shape}",
            advice="A reference of that many axes takes at most that many indices.")
    at = dots[0] if dots else len(items)
    fill = [np.s_[:]] * (len(shape) - len(items) + len(dots))
    for i, sizes in masks:
        first = i if i < at else i + len(fill) - len(dots)
        _check_mask(sizes, shape, first)
    return [*items[:at], *fill, *items[at + 1:]]


def _without_masks(items: Sequence[Any]) -> tuple[list[Any], list[tuple[int, tuple[int, ...]]]]:
    """Return ``items`` with the places of True elements for each mask, and where which mask was.

    A mask that is traced is left as it is.
    """
    out: list[Any] = []
    masks: list[tuple[int, tuple[int, ...]]] = []
    for item in items:
        kind = type(item)
        if (kind is np.ndarray or kind is _jaxlib.ArrayImpl) and item.ndim \
                and dtypes.is_bool(item.dtype):
            masks.append((len(out), item.shape))
            out.extend(np.nonzero(np.asarray(item)))
        else:
            out.append(item)
    return out, masks


def _check_mask(sizes: tuple[int, ...], shape: tuple[int, ...], first: int) -> None:
    """Refuse a mask that does not fit the axes from ``first`` on.  Raises: IndexError."""
    for axis, size in enumerate(sizes, first):
        if size != shape[axis]:
            raise errors.explained(
                errors.JAXIndexError, "ref.C20",
                f"boolean index did not match shape of indexed array in index {axis}: got {size}, "
                f"expected {shape[axis]}.",
                advice="A mask has the shape of the axes that it indexes.")


def parsed(shape: tuple[int, ...], index: Any) -> tuple[list[Indexer], list[Any]]:
    """Return an index into an array of ``shape`` as Indexers, one after the other, and operands.

    Slices whose start is known only when the program runs are indices of their own, after the rest.

    Raises: ValueError for too many indices, a step backwards, or (outside programs) a number that
    is out of bounds.
    """
    entries: list[Span | None] = []
    operands: list[Any] = []
    moving: list[tuple[int, Slice]] = []
    numbers: list[tuple[Any, int]] = []
    for item, dim in zip(_one_for_each_axis(index, shape), shape):
        if isinstance(item, slice):
            entries.append(_span(item, dim))
        elif isinstance(item, Slice):
            if type(item.start) is int:
                entries.append(_window(item.start, item.length(), item.stride, dim))
            else:
                moving.append((sum(entry is not None for entry in entries), item))
                entries.append(Span(0, dim))
        else:
            entries.append(None)
            operands.append(_index(item))
            numbers.append((item, dim))
    wide = np.broadcast_shapes(*(aval_of(x).shape for x in operands)) if operands else ()
    if not wide and not any(isinstance(t, StagingTrace) for t in state.trace.ancestors()):
        _check_bounds(numbers)
    if wide:
        operands = [_stretched(x, wide) for x in operands]
    first = Indexer(tuple(entries), tuple(shape))
    indexers, places = _moving_slices(first, wide, moving)
    return [first, *indexers], [*operands, *places]


def _moving_slices(first: Indexer, wide: tuple[int, ...], moving: Sequence[tuple[int, Slice]]
                   ) -> tuple[list[Indexer], list[Any]]:
    """Return Indexers and operands that take slices of what ``first`` selects, one after the other.

    ``wide`` is the shape of its index operands; ``moving`` has, for each slice, the number of its
    axis among those that ``first`` keeps.
    """
    indexers: list[Indexer] = []
    operands: list[Any] = []
    before = first.before(wide)
    left = first.result_shape(wide)
    for number, item in moving:
        axis = number + (len(wide) if number >= before else 0)
        indexers.append(Indexer(tuple(None if a == axis else Span(0, n)
                                      for a, n in enumerate(left)), left))
        operands.append(_places(item, left[axis]))
        left = indexers[-1].result_shape(aval_of(operands[-1]).shape)
    return indexers, operands


def _window(start: int, size: int, stride: int, dim: int) -> Span:
    """Return a span that begins earlier where it would go beyond the end."""
    extent = (size - 1) * stride + 1 if size else 0
    start = start + dim if start < 0 else start
    return Span(max(0, min(start, dim - extent)), size, stride)


def _places(item: Slice, dim: int) -> Any:
    """Return the places of a slice whose start is traced; it begins earlier near the end."""
    size = item.length()
    extent = (size - 1) * item.stride + 1 if size else 0
    start = convert_element_type(item.start, np.int32)
    start = select_n(lt(start, np.int32(0)), start, add(start, np.int32(dim)))
    start = clamp(np.int32(0), start, np.int32(dim - extent))
    return add(broadcast_in_dim(start, (size,), ()),
               np.arange(size, dtype=np.int32) * np.int32(item.stride))


def _span(item: slice, dim: int) -> Span:
    for bound in (item.start, item.stop, item.step):
        if isinstance(bound, Tracer):
            bool(bound)  # raises that it is not known now
    step = 1 if item.step is None else operator.index(item.step)
    if step < 1:
        raise errors.explained(
            errors.ArgumentError, "ref.C10", f"slice must have a step >= 1 (found: {step})",
            advice="Read forwards, then reverse what was read.")
    start, stop, _ = item.indices(dim)
    return Span(start, len(range(start, stop, step)), step)


def _check_bounds(numbers: Sequence[tuple[Any, int]]) -> None:
    """Refuse known indices beyond the end of their axis.  Raises: ValueError."""
    for item, dim in numbers:
        if not isinstance(item, Tracer) and int(item) >= dim:
            raise errors.explained(
                errors.ArgumentError, "ref.C13", f"Out of bound indexer: idx={item}, dim={dim}.",
                advice=f"Indices of this axis go from 0 to {dim - 1}.")


def _index(item: Any) -> Any:
    """Return one index operand."""
    if isinstance(item, (bool, np.bool_)) or item is None or isinstance(item, str):
        raise errors.explained(
            errors.ArgumentTypeError, "ref.C11",
            f"Argument '{item}' of type {type(item)} is not a valid JAX type. It cannot be an "
            "index of a Ref.",
            advice="Use integers, slices with steps forward, integer arrays or '...'.")
    aval = aval_of(item)
    if dtypes.is_bool(aval.dtype):
        raise errors.explained(
            errors.NonConcreteBooleanIndexError, "ref.C12",
            f"Array boolean indices must be concrete; got {aval.str_short()}",
            advice="A mask may be a constant. Else write jnp.where(mask, x, "
            "ref[...]) back with ref[...] = ….")
    if not dtypes.is_integer(aval.dtype):
        raise errors.explained(
            errors.ArgumentTypeError, "ref.C11",
            f"A Ref is indexed by integers, got {aval.str_short()}.",
            advice="Convert the index with .astype(int).")
    if type(item) is int or isinstance(item, np.integer):
        return int(item)
    return item


def _stretched(x: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(x, (int, np.ndarray, np.generic)):
        x = np.broadcast_to(np.asarray(x, np.int32), shape) if np.ndim(x) else np.int32(x)
    have = aval_of(x).shape
    if have == shape:
        return x
    first = len(shape) - len(have)
    if any(a != b for a, b in zip(have, shape[first:])):
        keep = [i for i, n in enumerate(have) if n == shape[first + i]]
        x = x.reshape([have[i] for i in keep])
        return broadcast_in_dim(x, shape, tuple(first + i for i in keep))
    return broadcast_in_dim(x, shape, tuple(range(first, len(shape))))


# -- the functions ---------------------------------------------------------------------------------


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Any:
    """Return a reference to a new mutable array that holds ``init_val``.

    With ``kind='no_grad_no_remat'`` writes to it have no derivative and are not done again when a
    checkpoint computes again.
    Raises: TypeError for a non-array; ValueError for a reference.
    """
    try:
        aval = aval_of(init_val)
    except TypeError:
        raise errors.explained(
            errors.ArgumentTypeError, "ref.C14",
            "Error interpreting argument to new_ref as a JAX value. The problematic value is of "
            f"type {type(init_val)} and was passed to new_ref at position 0.",
            advice="Make one reference for each array: jax.tree.map(jax.new_ref, tree).") from None
    if is_ref(aval):
        raise errors.explained(
            errors.ArgumentError, "ref.C5",
            f"A reference holds an array, not the reference {aval}.",
            advice="Read it first: new_ref(ref[...]).")
    if memory_space is not None and state.trace is eval_trace:
        raise NotImplementedError("array ref with memory space only works inside of a `jit`.")
    return bind(NewRef(memory_space, kind), init_val)


def empty_ref(ty: Any, memory_space: Any = None) -> Any:
    """Return a reference to a mutable array of the shape and dtype of ``ty``, not yet written."""
    aval = ty if isinstance(ty, ShapedArray) else aval_of(ty)
    return bind(EmptyRef(aval, memory_space))


def freeze(ref: Any) -> Any:
    """Return what ``ref`` holds at last; use it no more.  An array is what it is."""
    if isinstance(ref, _jaxlib.ArrayImpl):
        return ref
    if not isinstance(ref, Ref):
        located("freeze", ref, None)
    return bind(Freeze(), ref)


def free_ref(ref: Any) -> None:
    """End ``ref``: its memory may be used for other things."""
    located("free_ref", ref, None)
    bind(FreeRef(), ref)


def get(ref: Any, idx: Any = None) -> Any:
    """Return the part of what ``ref`` holds at ``idx``, all of it without one."""
    ref, transforms, operands = located("ref_get", ref, idx)
    return bind(Get(transforms), ref, *operands)


def swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Put ``value`` at ``idx`` of ``ref`` and return what was there."""
    ref, transforms, operands = located(_function_name, ref, idx)
    return bind(Swap(transforms), ref, fitting(value, aval_of(ref)), *operands)


def set(ref: Any, idx: Any, value: Any) -> None:
    """Put ``value`` at ``idx`` of ``ref``."""
    if state.trace is eval_trace:
        ref, transforms, operands = located("ref_set", ref, idx)
        change(Swap(transforms), False, ref, fitting(value, aval_of(ref)), *operands)
    else:
        swap(ref, idx, value, "ref_set")


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add ``x`` to what ``ref`` holds at ``idx``.  Unlike ``ref[idx] += x`` it reads nothing."""
    ref, transforms, operands = located("ref_addupdate", ref, idx)
    bind(AddUpdate(transforms), ref, as_value(x), *operands)


def as_value(x: Any) -> Any:
    """Return a value to be stored: a Python number as one of a definite dtype."""
    try:
        aval = aval_of(x)
    except TypeError:
        raise errors.explained(
            errors.ArgumentTypeError, "ref.C15",
            f"Argument '{x}' of type '{type(x)}' is not a valid JAX type",
            advice="Convert it with jnp.asarray.") from None
    if isinstance(x, dtypes.PYTHON_NUMBERS):
        return literal(x, aval.dtype)
    return x


def fitting(x: Any, ref: AbstractRef) -> Any:
    """Return a value to be stored; a weakly typed one takes the dtype of ``ref`` if of its kind."""
    value = as_value(x)
    aval = aval_of(x)
    if is_ref(aval) or not aval.weak_type or dtypes.is_extended(ref.dtype):
        return value
    if dtypes.scalar_kind(aval.dtype) != dtypes.scalar_kind(ref.dtype):
        return value
    if isinstance(x, dtypes.PYTHON_NUMBERS):
        return literal(x, ref.dtype)
    return convert(value, ref.dtype)


# -- outside programs ------------------------------------------------------------------------------


@functools.lru_cache(4096)
def compiled(prim: OnPart, keep: bool, donate: bool) -> Any:
    """Return the compiled pure form of ``prim``: of the array to the part that was there (if
    ``keep``) and the new array (if there is one)."""

    def pure(x: Any, *operands: Any) -> tuple[Any, Any]:
        outs, new = prim.discharge(x, *operands)
        return (outs[0] if keep and outs else None), new

    pure.__name__ = prim.name
    return make_jit(pure, library=True, donate_argnums=(0,) if donate else None)


def make(prim: NewRef, x: Any) -> Ref:
    """Return a new reference that holds the numbers of ``x``."""
    aval = aval_of(x)
    made = isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))
    held = committed(dispatch.put(x) if made else copy(x))
    return Ref(AbstractRef(aval, prim.memory_space, prim.kind), held)


def committed(x: Any) -> Any:
    """Return ``x`` committed to its device, as what references hold is; on a mesh it is anyway."""
    loose = type(x) is _jaxlib.ArrayImpl and not x._committed and dispatch.device_of(x) is not None
    return dispatch.put(x, dispatch.device_of(x), True) if loose else x


def make_empty(prim: EmptyRef) -> Ref:
    """Return a new reference whose array is filled with zeros."""
    return make(NewRef(prim.memory_space), np.zeros(prim.ty.shape, prim.ty.dtype))


def read(prim: Get, ref: Ref, *operands: Any) -> Any:
    """Return the part of the array in ``ref`` that ``prim`` names."""
    prim.typing(ref._aval, *map(aval_of, operands))
    if not prim.transforms:
        return ref.value()
    return compiled(prim, True, False)(ref._held, *operands)[0]


def change(prim: Swap | AddUpdate, keep: bool, ref: Ref, value: Any, *operands: Any) -> Any:
    """Write to a reference; returns what was there if ``keep``."""
    prim.typing(ref._aval, aval_of(value), *map(aval_of, operands))
    old, new = compiled(prim, keep, ref is not value)(ref._held, value, *operands)
    ref.hold(new)
    return old

"""What does an index mean?

``parse`` takes ``idx`` of ``x[idx]`` apart into *tokens*, a hashable description of all but
the numbers, and *values*: the numbers.  Programs are compiled for tokens, so ``x[0]`` and ``x[1]``
share one.  ``gather_plan`` turns tokens and values into the description of a gather or scatter.

Read before: ``ops.windows``.  Read after: ``numpy.indexing``.
Invariant: NumPy's rules: arrays broadcast together, an integer beside an array is an array, and the
axes of arrays that do not stand side by side come first (tests/kernel/numpy/test_indexing.py).
Source: "Indexing on ndarrays", NumPy documentation; "Out-of-bounds indexing", JAX documentation.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saem.core import dtypes, errors, tree
from saem.core.avals import aval_of, is_array_like, kept
from saem.core.dimensions import Dim, as_size, is_static, larger, smaller
from saem.core.dynamic_slices import Slice
from saem.core.trace import Tracer, concrete_or_none
from saem.numpy.promote import broadcast_shapes
from saem.ops.arithmetic import add, mul
from saem.ops.compare import lt
from saem.ops.convert import convert_element_type
from saem.ops.filling import iota
from saem.ops.linear import broadcast_in_dim, literal
from saem.ops.select import select_n
from saem.ops.shape import concatenate
from saem.ops.windows import GatherDimensionNumbers

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)

# Tokens.  Those in the first line have no value; PART's is its least index, INT's a Python int.
NEW, FULL, GAP = "new", "full", "gap"
INT, PART, SCALAR, ARRAY, BOOL = "int", "part", "scalar", "array", "bool"
WINDOW = "window"


# -- parsing ---------------------------------------------------------------------------------------


def parse(idx: Any, shape: tuple[int, ...], wrap: bool = True) -> tuple[tuple, list[Any]]:
    """Return the tokens and values of ``idx`` into an array of ``shape``.

    Negative numbers known here count from the end, unless not ``wrap``; those known later are
    wrapped by the program.  Tokens are NEW, FULL, INT, (PART, length, step, extent), (WINDOW,
    length, step, extent) for a part whose start is given when running, (SCALAR, wrap),
    (ARRAY, wrap) and (BOOL, count); and GAP for dots that stand for no axis, which still keep
    the arrays around them apart.
    Raises: IndexError or TypeError, as NumPy and JAX do.
    """
    entries = idx if type(idx) is tuple else (whole(idx),)
    entries = [entry_of(e) for e in entries]
    used = sum(axes_used(e) for e in entries)
    if used > len(shape):
        raise errors.explained(
            errors.JAXIndexError, "index.count",
            f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed",
            advice="Drop an index, or add an axis to the array with x[None].")
    dots = [n for n, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise errors.explained(
            errors.JAXIndexError, "index.ellipsis",
            "an index can only have a single ellipsis ('...')",
            advice="Write ':' for each of the other axes.")
    at = dots[0] if dots else len(entries)
    missing = [slice(None)] * (len(shape) - used)
    if missing or not dots:
        entries[at:at + len(dots)] = missing
    tokens: list[Any] = []
    values: list[Any] = []
    axis = 0
    for number, entry in enumerate(entries):
        sizes = shape[axis:axis + axes_used(entry)]
        found, numbers = tokens_of(entry, sizes, wrap, number, axis)
        tokens += found
        values += numbers
        axis += len(sizes)
    return tuple(tokens), values


def whole(idx: Any) -> Any:
    """Return an index that is no tuple, refusing lists.

    Raises: TypeError, for lists and strings.
    """
    if isinstance(idx, (list, range, bytes)):
        kind = "tuple" if any(isinstance(e, (list, tuple, slice)) or e is None or e is Ellipsis
                              for e in idx) else "array"
        raise errors.explained(
            errors.ArgumentTypeError, "index.list",
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            f"`arr[{kind}(seq)]` instead of `arr[seq]`.",
            advice="A list may be meant as positions or as one index for each axis: write an "
            "array, or a tuple.")
    return idx


def entry_of(entry: Any) -> Any:
    """Return one entry as an int, bool, slice, None, Ellipsis or array.

    Raises: TypeError for strings and numbers that are not integers; IndexError for anything else.
    """
    kind = type(entry)
    if kind is int or kind is slice or entry is None or entry is Ellipsis or kind is bool \
            or kind is Slice:
        return entry
    if isinstance(entry, str):
        raise errors.explained(
            errors.ArgumentTypeError, "index.string",
            f"JAX does not support string indexing; got idx={entry!r}",
            advice="Arrays have no named fields: keep columns in a dict of arrays.")
    if hasattr(kind, "__jax_array__") and kind is not Dim:  # a size is no index: its value is open
        return entry_of(entry.__jax_array__())
    if isinstance(entry, np.bool_):
        return bool(entry)
    if isinstance(entry, (list, tuple)):
        entry = of_sequence(entry)
    elif isinstance(entry, (float, complex)):
        entry = np.asarray(entry)
    if kind is Dim or (not is_array_like(entry) and not isinstance(entry, np.ndarray)):
        if hasattr(kind, "__index__"):
            return operator.index(entry)
        raise errors.explained(
            errors.JAXIndexError, "index.kind",
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
            f"boolean arrays are valid indices. Got {entry}",
            advice="Convert the index with jnp.asarray(..., dtype=int).")
    own = isinstance(entry, (np.ndarray, np.generic))
    dtype = entry.dtype if own else aval_of(entry).dtype
    if dtypes.is_integer(dtype):
        return int(entry) if isinstance(entry, np.integer) else entry
    if dtype != np.bool_:
        raise errors.explained(
            errors.ArgumentTypeError, "index.dtype",
            f"Indexer must have integer or boolean type, got indexer with type {dtype}",
            advice="Round and convert it: jnp.round(i).astype(int).")
    return mask_of(entry)


def of_sequence(entry: Sequence[Any]) -> Any:
    """Return nested lists or tuples of integers as one array, also where some are traced."""
    if not len(entry):
        return np.zeros(0, int)
    leaves = tree.leaves(entry)
    if not any(isinstance(x, Tracer) for x in leaves):
        return np.asarray(entry)
    rows = [of_sequence(x) if isinstance(x, (list, tuple)) else x for x in entry]
    dtype = dtypes.default_dtype(int)
    return concatenate([broadcast_in_dim(convert_element_type(x, dtype), (1, *aval_of(x).shape),
                                         range(1, aval_of(x).ndim + 1)) for x in rows], 0)


def mask_of(entry: Any) -> Any:
    """Return a boolean array as NumPy's.

    Raises: NonConcreteBooleanIndexError if its numbers are not known.
    """
    known = concrete_or_none(entry)
    if known is None:
        raise errors.explained(
            errors.NonConcreteBooleanIndexError, "index.mask",
            f"Array boolean indices must be concrete; got {entry.aval.str_short(True)}",
            advice="How many elements it chooses is not known while tracing. Use "
            "jnp.where(mask, x, other), or reduce with where=mask.")
    known = np.asarray(known)
    return known if known.ndim else bool(known)


def axes_used(entry: Any) -> int:
    """Return how many axes of the array an entry indexes."""
    if entry is None or entry is Ellipsis or type(entry) is bool:
        return 0
    if isinstance(entry, np.ndarray) and entry.dtype == np.bool_:
        return entry.ndim
    return 1


def tokens_of(entry: Any, sizes: tuple[int, ...], wrap: bool, number: int, axis: int
              ) -> tuple[list[Any], list[Any]]:
    """Return the tokens and values of one entry, which indexes axes of ``sizes``.

    Most have one of each.  Errors state ``number``, its place in the index, or its first ``axis``.

    Raises: IndexError for a mask of another shape, or an element of an empty axis.
    """
    kind = type(entry)
    if kind is int:
        return [INT], [wrapped_int(entry, sizes[0], wrap, axis)]
    if entry is None or entry is Ellipsis:
        return [NEW if entry is None else GAP], []
    if kind is slice:
        start, length, step, extent = slice_parts(entry, sizes[0], number)
        if length == sizes[0] and step == 1:
            return [FULL], []
        last = start + (length - 1) * step
        return [(PART, length, step, extent)], [0 if length == 0 else start if step > 0 else last]
    if kind is Slice:
        length, step = entry.length(), entry.stride
        return [(WINDOW, length, step, extent_of(length, step))], [entry.start]
    if kind is bool:
        return [(BOOL, int(entry))], []
    if isinstance(entry, np.ndarray) and entry.dtype == np.bool_:
        if entry.shape != sizes and entry.size:
            raise errors.explained(
                errors.JAXIndexError, "index.mask_shape",
                f"boolean index did not match shape of indexed array in index {number}: got "
                f"{entry.shape}, expected {list(sizes)}",
                advice="A mask must have the sizes of the axes that it chooses from.")
        return [(ARRAY, False)] * entry.ndim, list(np.nonzero(entry))
    if aval_of(entry).shape or sizes[0] == 0:
        return [(ARRAY, wrap)], [entry]
    if isinstance(entry, np.ndarray):
        return [INT], [wrapped_int(int(entry), sizes[0], wrap, axis)]
    return [(SCALAR, wrap)], [entry]


def wrapped_int(i: int, n: int, wrap: bool, axis: int) -> int:
    """Return ``i`` counted from the front; it may still lie outside.

    Raises: IndexError if the axis is empty.
    """
    if n == 0:
        raise out_of_empty(axis)
    return i + n if wrap and i < 0 else i


def out_of_empty(axis: int) -> Exception:
    return errors.explained(
        errors.JAXIndexError, "index.empty",
        f"index is out of bounds for axis {axis} with size 0",
        advice="An empty axis has no element to read or write.")


def extent_of(length: int, step: int) -> int:
    """Return how many places there are from the first to the last of a slice."""
    return (length - 1) * abs(step) + 1 if length else 0


def slice_parts(entry: slice, n: int, number: int) -> tuple[int, int, int, int]:
    """Return start, length, step and extent of a slice of an axis of size ``n``.

    Raises: IndexError if a bound is traced; ValueError for a step of 0.
    """
    for bound in (entry.start, entry.stop, entry.step):
        if isinstance(bound, Tracer) and concrete_or_none(bound) is None:
            raise errors.explained(
                errors.JAXIndexError, "index.slice",
                f"Slice entries must be static integers. Got {entry} at position {number}",
                advice="The size of the result must be known while tracing. Use "
                "lax.dynamic_slice(x, starts, sizes), or mask with jnp.where.")
        if bound is not None:
            as_size(bound)
    if not is_static((n, entry.start, entry.stop)):
        return open_slice_parts(entry, n)
    start, stop, step = entry.indices(n)
    length = len(range(start, stop, step))
    step = step if length > 1 else 1
    return start, length, step, extent_of(length, step)


def open_slice_parts(entry: slice, n: Any) -> tuple[Any, Any, int, Any]:
    """Return start, length, step and extent of a slice where sizes are not all known.

    Forwards the extent ends where the slice does, though its last place may be before.
    """
    step = 1 if entry.step is None else operator.index(entry.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first, last = (0, n) if step > 0 else (-1, n - 1)

    def placed(bound: Any) -> Any:
        return larger(first, smaller(last, bound + n if bound < 0 else bound))

    start = (first if step > 0 else last) if entry.start is None else placed(entry.start)
    stop = (last if step > 0 else first) if entry.stop is None else placed(entry.stop)
    reach = stop - start if step > 0 else start - stop
    length = larger(0, (reach + abs(step) - 1) // abs(step))
    return start, length, step, larger(0, reach) if step > 0 else extent_of(length, step)


# -- values as indices -----------------------------------------------------------------------------


def index_dtype(values: Sequence[Any]) -> np.dtype:
    """Return the dtype in which ``values`` are used as indices."""
    wide = any(not isinstance(v, (int, np.ndarray)) and dtypes.itemsize_bits(aval_of(v).dtype) == 64
               for v in values)
    return INT64 if wide else INT32


def as_index(value: Any, dtype: np.dtype, wrap: bool = False, n: int = 0) -> Any:
    """Return ``value`` in ``dtype``; with ``wrap``, ``n`` is added where it is negative.

    Raises: OverflowError if ``dtype`` does not hold the places of an axis of ``n``.
    """
    if type(value) is Dim:
        return convert_element_type(value.__jax_array__(), dtype)
    if wrap and type(n) is int and n - 1 > np.iinfo(dtype).max:
        raise OverflowError(f"Places along an axis of {n} are out of bounds for {dtype}. Turn on "
                            "jax_enable_x64, or slice the axis first.")
    if isinstance(value, (int, np.ndarray, np.integer)) and not (wrap and isinstance(n, Dim)):
        number = np.asarray(value)
        if wrap:
            number = np.where(number < 0, number + n, number)
        if not np.can_cast(number.dtype, dtype):
            have, want = np.iinfo(number.dtype), np.iinfo(dtype)
            number = np.clip(number, max(have.min, want.min), min(have.max, want.max))
        number = number.astype(dtype)  # a copy: a program keeps it, and its owner may write to it
        return kept(number if number.ndim else number[()])
    aval = aval_of(value)
    if aval.dtype != dtype:
        value = convert_element_type(value, dtype)
    if not wrap or dtypes.is_unsigned(aval.dtype):
        return value
    zero, size = literal(0, dtype), as_index(n, dtype)
    return select_n(lt(value, zero), value, add(value, size))


# -- the plan of a gather or scatter ---------------------------------------------------------------


class GatherPlan(NamedTuple):
    """A gather, and how its result is then made ``x[idx]``; read backwards, a scatter.

    ``expanded``: axes of size 1 that the operand gets first; ``reversed``: result axes to reverse;
    ``new``: places of new axes in ``shape``, that of ``x[idx]``; ``unique``: whether places do not
    repeat; ``ascending``: whether they are sorted, too; ``empty_axis``: an axis of size 0 that is
    indexed, if any.
    """

    numbers: GatherDimensionNumbers
    sizes: tuple[int, ...]
    indices: Any
    expanded: tuple[int, ...]
    reversed: tuple[int, ...]
    new: tuple[int, ...]
    shape: tuple[int, ...]
    unique: bool
    ascending: bool
    empty_axis: int | None


class _Component(NamedTuple):
    """Where windows start along one operand axis: numbers whose axes lie along ``dims``."""

    axis: int
    value: Any
    dims: tuple[int, ...]


class _Slice(NamedTuple):
    """``length`` places of an operand axis, ``step`` apart, the least of them ``low``."""

    axis: int
    length: int
    step: int
    low: Any


# The place in a result of the axes that all index arrays and integers have together.
PICKED = "picked"


def gather_plan(tokens: tuple, values: Sequence[Any], shape: tuple[int, ...]) -> GatherPlan:
    """Return the gather that reads what ``tokens`` and ``values`` mean in an array of ``shape``.

    Raises: ShapeError if index arrays do not broadcast together.
    """
    picks, order, expanded, full = _by_axis(tokens, values, shape)
    result = _Result(picks, full)
    for item in order:
        if isinstance(item, _Slice):
            result.add_slice(item)
        elif item == PICKED:
            result.add_picks(picks)
        else:
            result.add_new_axis()
    arrays = any(type(t) is tuple and t[0] in (ARRAY, BOOL) for t in tokens)
    return result.plan(expanded, not arrays)


class _Result:
    """The axes of ``x[idx]``, added from left to right, and what a gather needs for each.

    ``batch`` are the sizes along which start indices differ; ``offset`` the result axes that lie
    within windows, and ``collapsed`` the operand axes that windows do not keep.
    """

    def __init__(self, picks: Sequence[tuple[int, Any]], full: Sequence[int]):
        self.full = full
        self.sizes = list(full)
        self.shape: list[int] = []
        self.new: list[int] = []
        self.reversed: list[int] = []
        self.offset: list[int] = []
        self.batch: list[int] = []
        self.components: list[_Component] = []
        self.collapsed = [axis for axis, _ in picks]
        self.ascending = True

    def add_new_axis(self) -> None:
        self.new.append(len(self.shape))
        self.shape.append(1)

    def add_picks(self, picks: Sequence[tuple[int, Any]]) -> None:
        """Add the axes of index arrays, which broadcast together and lie along ``batch``."""
        joined = broadcast_shapes(*[aval_shape(value) for _, value in picks])
        end = len(self.batch) + len(joined)
        self.components += [_Component(axis, value, tuple(range(end - len(aval_shape(value)), end)))
                            for axis, value in picks]
        self.batch += joined
        self.shape += joined

    def add_slice(self, part: _Slice) -> None:
        """Add an axis: as one window where its places are side by side, else as a batch of them."""
        if abs(part.step) == 1:
            place = len(self.shape) - len(self.new)
            self.offset.append(place)
            self.reversed += [place] if part.step == -1 else []
            self.sizes[part.axis] = part.length
            if part.length != self.full[part.axis]:
                self.components.append(_Component(part.axis, part.low, ()))
        else:
            places = stepped(part.low, part.length, part.step)
            self.collapsed.append(part.axis)
            self.components.append(_Component(part.axis, places, (len(self.batch),)))
            self.batch.append(part.length)
            self.ascending = self.ascending and part.step > 0
        self.shape.append(part.length)

    def plan(self, expanded: Sequence[int], no_arrays: bool) -> GatherPlan:
        """Return the gather that gives these axes."""
        collapsed = sorted(self.collapsed)
        for axis in collapsed:
            self.sizes[axis] = 1
        self.components.sort(key=lambda c: c.axis)
        numbers = GatherDimensionNumbers(
            tuple(self.offset), tuple(collapsed), tuple(c.axis for c in self.components))
        return GatherPlan(
            numbers, tuple(self.sizes), assemble(self.components, tuple(self.batch)),
            tuple(expanded), tuple(self.reversed), tuple(self.new), tuple(self.shape),
            unique=no_arrays, ascending=no_arrays and self.ascending,
            empty_axis=next((axis for axis in collapsed if self.full[axis] == 0), None))


def _by_axis(tokens: tuple, values: Sequence[Any], shape: tuple[int, ...]):
    """Return (axis, number) pairs of what is picked, the order of result axes, and operand axes.

    In the order stand slices, NEW for new axes, and PICKED for the axes of what is picked.
    """
    given = iter(values)
    dtype = index_dtype(values)
    picks: list[tuple[int, Any]] = []
    order: list[Any] = []
    expanded: list[int] = []
    full: list[int] = []
    sizes = iter(shape)
    for token in tokens:
        axis = len(full)
        kind = token if type(token) is str else token[0]
        if kind in (NEW, GAP):
            order.append(kind)
            continue
        full.append(1 if kind == BOOL else next(sizes))
        if kind in (FULL, PART, WINDOW):
            _, length, step, *_ = (PART, full[-1], 1) if kind == FULL else token
            low = 0 if kind == FULL else as_index(next(given), dtype, kind == WINDOW, full[-1])
            order.append(_Slice(axis, length, step, low))
            continue
        if kind == BOOL:
            expanded.append(axis)
            picks.append((axis, np.zeros(token[1], dtype)))
        else:
            wrap = kind != INT and token[1]
            picks.append((axis, as_index(next(given), dtype, wrap, full[-1])))
        order.append(PICKED)
    places = [n for n, item in enumerate(order) if item is PICKED]
    if places:
        together = places[-1] - places[0] + 1 == len(places)
        order = [item for item in order if item is not PICKED]
        order.insert(places[0] if together else 0, PICKED)
    return picks, [item for item in order if item is not GAP], expanded, full


def stepped(low: Any, length: int, step: int) -> Any:
    """Return ``length`` places, ``step`` apart, the least of them ``low``."""
    if isinstance(length, Dim):
        first = as_index(low, INT32)
        if step < 0:
            first = add(first, as_index((length - 1) * -step, INT32))
        return add(mul(iota(INT32, length), np.int32(step)), broadcast_in_dim(first, (length,), ()))
    places = np.arange(length) * step - min(0, (length - 1) * step)
    if isinstance(low, (np.integer, int)):
        return as_index(places + int(low), INT32)
    dtype = aval_of(low).dtype
    return add(broadcast_in_dim(low, (length,), ()), places.astype(dtype))


def aval_shape(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, (np.ndarray, np.generic)) else aval_of(value).shape


def assemble(components: Sequence[_Component], batch: tuple[int, ...]) -> Any:
    """Return the start indices of windows: one row for each place of ``batch``."""
    if not components:
        return np.zeros((*batch, 0), INT32)
    values = [c.value for c in components]
    known = all(isinstance(v, (np.ndarray, np.generic)) for v in values)
    if known and batch:
        return np.stack([_spread(c, batch) for c in components], -1)
    dtype = index_dtype(values)
    columns = [broadcast_in_dim(as_index(c.value, dtype), (*batch, 1), c.dims) for c in components]
    return concatenate(columns, len(batch))


def _spread(component: _Component, batch: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of a component, known in NumPy, for every place of ``batch``."""
    column = [1] * len(batch)
    for d, n in zip(component.dims, component.value.shape):
        column[d] = n
    return np.broadcast_to(component.value.reshape(column), batch)


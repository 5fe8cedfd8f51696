"""How is the part of an array that an index selects read or replaced?

Operations on references act on parts; here are the same operations on the arrays that references
hold, as pure functions, and on NumPy arrays, in place.  Whole spans with scalar indices are dynamic
slices, index arrays are gather and scatter; negative indices count from the end.

Read before: ``core.refs``, ``ops.dynamic_slicing``.  Read after: ``refs.operations``.
Invariant: reading what was just replaced gives the replacement (tests/kernel/test_refs.py).
Source: the documentation of numpy.ndarray indexing; observed: a scalar index outside is clamped, an
index array outside is clamped when it reads and dropped when it writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core.avals import aval_of
from saem.core.refs import Indexer, Span, split_indices
from saem.ops.arithmetic import add
from saem.ops.compare import lt
from saem.ops.convert import convert_element_type
from saem.ops.dynamic_slicing import dynamic_slice, dynamic_update_slice
from saem.ops.gather import gather
from saem.ops.linear import broadcast_in_dim, literal
from saem.ops.scatter import scatter, scatter_add
from saem.ops.select import select_n
from saem.ops.shape import concatenate, reshape
from saem.ops.slicing import pad, slice
from saem.ops.windows import GatherDimensionNumbers, ScatterDimensionNumbers


def read(x: Any, transforms: Sequence[Indexer], operands: Sequence[Any]) -> Any:
    """Return the part of the array ``x`` that ``transforms`` mean, one after the other."""
    for indexer, indices in zip(transforms, split_indices(transforms, operands)):
        x = _read(x, indexer, indices)
    return x


def write(x: Any, transforms: Sequence[Indexer], operands: Sequence[Any], value: Any,
          adding: bool = False) -> Any:
    """Return ``x`` with ``value`` in place of that part, or added to it."""
    if not transforms:
        return add(x, value) if adding else value
    first, rest = transforms[0], transforms[1:]
    indices, later = operands[:first.count], operands[first.count:]
    if rest:
        inner = _read(x, first, indices)
        return _write(x, first, indices, write(inner, rest, later, value, adding), False)
    return _write(x, first, indices, value, adding)


def _index_shape(indices: Sequence[Any]) -> tuple[int, ...]:
    return aval_of(indices[0]).shape if indices else ()


def _whole(indexer: Indexer) -> bool:
    """Return whether every span is its whole axis."""
    return all(entry is None or entry == (0, dim, 1)
               for entry, dim in zip(indexer.entries, indexer.shape))


def _only_spans(indexer: Indexer) -> Indexer:
    """Return the index of the same spans that leaves the other axes whole."""
    return Indexer(tuple(Span(0, dim) if entry is None else entry
                         for entry, dim in zip(indexer.entries, indexer.shape)), indexer.shape)


def _only_indices(indexer: Indexer) -> Indexer:
    """Return what remains of ``indexer`` once its spans have been taken."""
    shape = tuple(dim if entry is None else entry.size
                  for entry, dim in zip(indexer.entries, indexer.shape))
    return Indexer(tuple(None if entry is None else Span(0, entry.size)
                         for entry in indexer.entries), shape)


def _by_slices(indexer: Indexer, indices: Sequence[Any]) -> bool:
    """Return whether the part is one dynamic slice: scalar indices and spans without gaps."""
    return not _index_shape(indices) and all(span.stride == 1 for span in indexer.spans)


def _starts(indexer: Indexer, indices: Sequence[Any]) -> list[Any]:
    rest = iter(indices)
    return [next(rest) if entry is None else entry.start for entry in indexer.entries]


def _read(x: Any, indexer: Indexer, indices: Sequence[Any]) -> Any:
    if not indices:
        return _read_spans(x, indexer)
    if _by_slices(indexer, indices):
        sizes = [1 if entry is None else entry.size for entry in indexer.entries]
        part = dynamic_slice(x, _starts(indexer, indices), sizes)
        return reshape(part, indexer.result_shape(()))
    x = _read_spans(x, _only_spans(indexer))
    indexer = _only_indices(indexer)
    if not _index_shape(indices):
        return _read(x, indexer, indices)
    numbers = _numbers(indexer, _index_shape(indices))
    sizes = [1 if entry is None else entry.size for entry in indexer.entries]
    return gather(x, _rows(indexer, indices), numbers, sizes, mode="clip")


def _read_spans(x: Any, indexer: Indexer) -> Any:
    if _whole(indexer):
        return x
    spans = indexer.spans
    return slice(x, [s.start for s in spans],
                 [s.start + (s.size - 1) * s.stride + 1 if s.size else s.start for s in spans],
                 [s.stride for s in spans])


def _numbers(indexer: Indexer, index_shape: tuple[int, ...]) -> GatherDimensionNumbers:
    at, spans = indexer.before(index_shape), len(indexer.spans)
    windows = (*range(at), *range(at + len(index_shape), spans + len(index_shape)))
    return GatherDimensionNumbers(windows, tuple(indexer.places), tuple(indexer.places))


def _rows(indexer: Indexer, indices: Sequence[Any]) -> Any:
    """Return the index arrays, counted from the front, side by side along a new last axis."""
    columns = []
    for axis, index in zip(indexer.places, indices):
        index = convert_element_type(index, np.int32)
        shape = aval_of(index).shape
        size = np.asarray(indexer.shape[axis], np.int32)[()]
        index = select_n(lt(index, np.int32(0)), index, add(index, size))
        columns.append(broadcast_in_dim(index, (*shape, 1), tuple(range(len(shape)))))
    return concatenate(columns, len(shape)) if len(columns) > 1 else columns[0]


def _write(x: Any, indexer: Indexer, indices: Sequence[Any], value: Any, adding: bool) -> Any:
    if not indices:
        value = add(_read_spans(x, indexer), value) if adding else value
        return _write_spans(x, indexer, value)
    if _by_slices(indexer, indices):
        value = add(_read(x, indexer, indices), value) if adding else value
        sizes = [1 if entry is None else entry.size for entry in indexer.entries]
        return dynamic_update_slice(x, reshape(value, sizes), _starts(indexer, indices))
    if not _whole(indexer):
        spans = _only_spans(indexer)
        inner = _write(_read_spans(x, spans), _only_indices(indexer), indices, value, adding)
        return _write_spans(x, spans, inner)
    shape = _index_shape(indices)
    windows, places, _ = _numbers(indexer, shape)[:3]
    numbers = ScatterDimensionNumbers(windows, places, places)
    put = scatter_add if adding else scatter
    return put(x, _rows(indexer, indices), value, numbers, mode="drop")


def _write_spans(x: Any, indexer: Indexer, value: Any) -> Any:
    if _whole(indexer):
        return value
    spans = indexer.spans
    if all(span.stride == 1 for span in spans):
        return dynamic_update_slice(x, value, [span.start for span in spans])
    # With gaps: the new elements are spread out, and a mask marks where they are.
    config = [(s.start, dim - s.start - (s.size - 1) * s.stride - 1 if s.size else dim - s.start,
               s.stride - 1) for s, dim in zip(spans, indexer.shape)]
    zero = literal(0, aval_of(x).dtype)
    mask = np.zeros(indexer.shape, bool)
    mask[tuple(np.s_[s.start: s.start + s.size * s.stride: s.stride] for s in spans)] = True
    return select_n(mask, x, pad(value, zero, config))


# -- in NumPy, in place ----------------------------------------------------------------------------


def numpy_key(indexer: Indexer, indices: Sequence[Any]) -> tuple[Any, ...]:
    """Return the index for NumPy, clamped into the array."""
    rest = iter(indices)
    key: list[Any] = []
    for entry, dim in zip(indexer.entries, indexer.shape):
        if entry is None:
            index = np.asarray(next(rest)).astype(np.int64)
            key.append(np.clip(np.where(index < 0, index + dim, index), 0, dim - 1))
        else:
            key.append(np.s_[entry.start: entry.start + entry.size * entry.stride: entry.stride])
    return tuple(key)


def inside(indexer: Indexer, indices: Sequence[Any]) -> Any:
    """Return which elements of index arrays are inside the array; scalars are clamped into it."""
    if not indices or not np.ndim(indices[0]):
        return True
    flags = True
    for axis, index in zip(indexer.places, indices):
        dim = indexer.shape[axis]
        flags = flags & (np.asarray(index, np.int64) >= -dim) & (np.asarray(index) < dim)
    return flags


def numpy_read(x: Any, transforms: Sequence[Indexer], operands: Sequence[Any]) -> Any:
    for indexer, indices in zip(transforms, split_indices(transforms, operands)):
        x = x[numpy_key(indexer, indices)]
    return np.array(x)


def numpy_write(x: Any, transforms: Sequence[Indexer], operands: Sequence[Any],
                change: Callable[[Any], Any]) -> None:
    """Put ``change(part)`` where the part of ``x`` was, in ``x`` itself."""
    if not transforms:
        x[...] = change(np.array(x))
        return
    first, rest = transforms[0], transforms[1:]
    indices, later = operands[:first.count], operands[first.count:]
    key = numpy_key(first, indices)
    part = np.array(x[key])
    if rest:
        numpy_write(part, rest, later, change)
    else:
        part = np.asarray(change(part))
    keep = inside(first, indices)
    if keep is True:
        x[key] = part
        return
    rows = _rows_first(first, indices, part)
    for place in zip(*np.nonzero(keep)):
        whole = tuple(k[place] if isinstance(k, np.ndarray) else k for k in key)
        x[whole] = rows[place]


def _rows_first(indexer: Indexer, indices: Sequence[Any], part: Any) -> np.ndarray:
    """Return ``part`` with the axes of the index arrays in front."""
    first, count = indexer.before(np.shape(indices[0])), np.ndim(indices[0])
    return np.moveaxis(np.asarray(part), range(first, first + count), range(count))


def add_rows(x: Any, transforms: Sequence[Indexer], operands: Sequence[Any], value: Any) -> None:
    """Add ``value`` to the part of ``x`` that ends in index arrays, once for each time it names."""
    *views, last = transforms
    pieces = split_indices(transforms, operands)
    inner = numpy_read(x, views, list(itertools.chain(*pieces[:-1])))
    keep, indices = inside(last, pieces[-1]), pieces[-1]
    rows = _rows_first(last, indices, value)
    key = numpy_key(last, indices)
    for place in zip(*np.nonzero(keep)):
        inner[tuple(k[place] if isinstance(k, np.ndarray) else k for k in key)] += rows[place]
    numpy_write(x, views, list(itertools.chain(*pieces[:-1])), lambda part: inner)

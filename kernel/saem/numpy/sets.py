"""Which elements are distinct, shared, or missing?

Everything stands on ``unique``: sort, mark where a run of equals begins, read at the marks.  How
many there are depends on the values; so inside a trace the caller gives ``size``.

Read before: ``numpy.sorting``, ``numpy.searching``.
Invariant: results ascend; with ``size`` they are cut or filled to it
(tests/kernel/numpy/test_ordering.py).
Source: the NumPy reference and the Python array API standard.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.trace import concrete_or_none
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, known_number
from saem.numpy.filling import full
from saem.numpy.indexing import getitem, scatter_update
from saem.numpy.joining import concatenate
from saem.numpy.manipulation import moveaxis, ravel
from saem.numpy.promote import broadcast_to, convert_value, if_else, promote_dtypes, scalar
from saem.numpy.reductions import all as all_true
from saem.numpy.reductions import any as any_true
from saem.numpy.searching import nonzero
from saem.numpy.sorting import argsort, lexsort, sort
from saem.ops import arithmetic as ops
from saem.ops import compare, cumulative, filling, shape, slicing
from saem.ops.convert import convert
from saem.ops.linear import broadcast_in_dim
from saem.typing import Array, ArrayLike


class UniqueAllResult(NamedTuple):
    """Distinct values, where each is first, where each element is among them, and how often."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """Distinct values and how often each occurs."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """Distinct values and where each element is among them."""

    values: Any
    inverse_indices: Any


def _asked(size: Any) -> Any:
    """Return the ``size`` that the caller gave as a number; None if none was given."""
    return None if size is None else known_number(size, "size")


def _known_size(name: str, x: Any, marks: Any) -> int:
    """Return how many ``marks`` there are, made of the argument ``x`` of function ``name``.

    Raises: ConcretizationTypeError if they are traced.
    """
    known = concrete_or_none(marks)
    if known is None:
        raise errors.unknown(
            f"{name}.size", aval_of(x), f"The length of the result of jnp.{name} depends on the "
            "values.", advice=f"Pass size=, how many elements to return: jnp.{name}(x, size=n).")
    return int(np.asarray(known).sum())


# -- distinct elements -----------------------------------------------------------------------------


@library_function(static_argnames=("equal_nan",))
def _runs(rows: Any, equal_nan: bool) -> tuple[Any, Any]:
    """Return the order that sorts ``rows``, and where a run of equals begins in it."""
    count = rows.shape[0]
    if rows.ndim == 1:
        order = argsort(rows)
    elif not math.prod(rows.shape[1:]):  # all rows are equal
        order = filling.iota(dtypes.default_dtype(int), count)
    else:
        flat = shape.reshape(rows, (count, math.prod(rows.shape[1:])))
        order = lexsort([slicing.index_in_dim(flat, i, 1, False)
                         for i in reversed(range(flat.shape[1]))])
    ordered = getitem(rows, order)
    return order, _begins(ordered, equal_nan)


def _begins(ordered: Any, equal_nan: bool) -> Any:
    """Return where a run of equals begins in sorted rows."""
    count = ordered.shape[0]
    here, before = slicing.slice_in_dim(ordered, 1, count), slicing.slice_in_dim(
        ordered, 0, count - 1)
    differs = compare.ne(here, before)
    if equal_nan and dtypes.is_inexact(ordered.dtype):
        unknown = compare.bitwise_and(compare.ne(here, here), compare.ne(before, before))
        differs = compare.bitwise_and(differs, compare.bitwise_not(unknown))
    if differs.ndim > 1:
        differs = any_true(differs, axis=tuple(range(1, differs.ndim)))
    first = broadcast_in_dim(scalar(True, np.dtype(bool)), (1,), ())
    return concatenate([first, differs])


def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None,
           sorted: bool = True) -> Any:
    """Return the distinct elements (or slices along ``axis``) of ``ar``, ascending.

    On request also: where each is first, where each element is among them, how often each occurs.
    With ``size``, the first so many, filled with ``fill_value`` (the least element if None).
    Raises: ConcretizationTypeError under jit without ``size``.

    >>> jnp.unique(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    ar, size = _ordered(array_argument("unique", ar)), _asked(size)
    more = return_index or return_inverse or return_counts
    rows = ravel(ar) if axis is None else moveaxis(ar, operator.index(axis), 0)
    count = rows.shape[0]
    if not count:
        outs = _none_at_all(rows, size or 0, fill_value)
    elif rows.ndim == 1 and not more and not dtypes.is_complex(rows.dtype):
        return _distinct_values(ar, rows, bool(equal_nan), fill_value, size)
    else:
        order, marks = _runs(rows, equal_nan=bool(equal_nan))
        if size is None:
            size = _known_size("unique", ar, marks)
        outs = _distinct(rows, order, marks, fill_value, size=size)
    values, index, inverse, counts = outs
    values = values if axis is None else moveaxis(values, 0, axis)
    if axis is None:
        inverse = shape.reshape(inverse, ar.shape)
    wanted = zip((index, inverse, counts), (return_index, return_inverse, return_counts))
    return (values, *(x for x, asked in wanted if asked)) if more else values


def _ordered(ar: Any) -> Any:
    """Return ``ar`` in a dtype that has an order.  Raises: DTypeError for keys."""
    if dtypes.is_extended(ar.dtype):
        raise errors.explained(
            errors.DTypeError, "unique.C2",
            f"jnp.unique does not accept dtype {dtypes.short_name(ar.dtype)}, which has no order.",
            advice="Use the words of the keys: jax.random.key_data(keys).")
    # Complex numbers come out strong, as in JAX.
    return convert(ar, ar.dtype, False) if dtypes.is_complex(ar.dtype) else ar


def _none_at_all(rows: Any, size: int, fill: Any) -> tuple[Any, ...]:
    """Return what ``_distinct`` does for no rows.  Raises: ArgumentError for no value to fill with.
    """
    if size and fill is None:
        raise errors.explained(
            errors.ArgumentError, "unique.C1",
            "jnp.unique: for zero-sized input with nonzero size argument, fill_value must be "
            "specified", advice="Pass fill_value=.")
    none = broadcast_in_dim(scalar(0, dtypes.default_dtype(int)), (0,), ())
    zeros = broadcast_in_dim(scalar(0, dtypes.default_dtype(int)), (size,), ())
    value = scalar(0 if fill is None else fill, rows.dtype)
    return broadcast_in_dim(value, (size, *rows.shape[1:]), ()), zeros, none, zeros


def _distinct_values(ar: Any, row: Any, equal_nan: bool, fill: Any, size: int | None) -> Any:
    """Return the distinct numbers of ``row``, made of the argument ``ar``, without their places."""
    ordered, marks = _sorted_runs(row, equal_nan=equal_nan)
    size = _known_size("unique", ar, marks) if size is None else size
    if fill is None:
        return _selected("unique", ordered, marks, size, getitem(ordered, 0))
    return convert(_selected("unique", ordered, marks, size, fill), ar.dtype, False)


@library_function(static_argnames=("size",))
def _distinct(rows: Any, order: Any, marks: Any, fill: Any, size: int) -> tuple[Any, ...]:
    """Read at the marks; beyond the last, fill."""
    count, index = rows.shape[0], dtypes.default_dtype(int)
    (bounds,) = nonzero(marks, size=size + 1, fill_value=count)
    starts = slicing.slice_in_dim(bounds, 0, size)
    real = compare.lt(starts, scalar(count, starts.dtype))
    inside = if_else(real, starts, scalar(0, starts.dtype))
    first = getitem(order, inside)
    values = getitem(rows, first)
    if fill is not None:
        mask = broadcast_in_dim(real, values.shape, (0,))
        filler = broadcast_to(fill_like(fill, values), values.shape)
        values = convert(if_else(mask, values, filler), values.dtype, False)
    numbers = ops.sub(cumulative.cumsum(marks.astype(index), 0), scalar(1, index))
    zeros = broadcast_in_dim(scalar(0, index), (count,), ())
    inverse = scatter_update(zeros, order, numbers, "set")
    counts = ops.sub(slicing.slice_in_dim(bounds, 1, size + 1), starts)
    return values, first, inverse, counts


def fill_like(fill: Any, x: Any) -> Any:
    """Return a fill value, an array or a number, in the dtype of ``x``, as weak as it."""
    return convert_value(array_argument("fill_value", fill), x.dtype, aval_of(x).weak_type)


def unique_all(x: ArrayLike, /, *, size: int | None = None,
               fill_value: ArrayLike | None = None) -> UniqueAllResult:
    """Return distinct values with first places, inverse and counts; every NaN is distinct.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size,
                                   fill_value=fill_value))


def unique_counts(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> UniqueCountsResult:
    """Return distinct values and their counts; every NaN is distinct.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size,
                                      fill_value=fill_value))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None,
                   fill_value: ArrayLike | None = None) -> UniqueInverseResult:
    """Return distinct values and where each element is among them; every NaN is distinct.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size,
                                       fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> Array:
    """Return distinct values; every NaN is distinct.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# -- sets ------------------------------------------------------------------------------------------


@library_function(static_argnames=("assume_unique", "invert", "method"))
def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False,
         invert: bool = False, *, method: str = "auto") -> Array:
    """Return for each element whether it is among ``test_elements``.

    Raises: ValueError for an unknown ``method``; all of them give the same here.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5]))
    Array([False,  True, False], dtype=bool)
    """
    if method not in ("compare_all", "binary_search", "sort", "auto"):
        raise errors.explained(
            errors.ArgumentError, "isin.method",
            f"method='{method}' is not implemented; options are 'compare_all', 'binary_search', "
            "'sort', and 'auto'", advice="Leave it out.")
    element, tests = promote_dtypes(*array_argument("isin", element, test_elements))
    tests = ravel(tests)
    wide = (*element.shape, tests.shape[0])
    here = broadcast_in_dim(element, (*element.shape, 1), tuple(range(element.ndim)))
    there = broadcast_in_dim(tests, (1,) * element.ndim + tests.shape, (element.ndim,))
    if invert:
        return all_true(compare.ne(here, there), axis=len(wide) - 1)
    return any_true(compare.eq(here, there), axis=len(wide) - 1)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike | None = None) -> Array:
    """Return the distinct elements of both, ascending.

    >>> jnp.union1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    ar1, ar2 = array_argument("union1d", ar1, ar2)
    return unique(concatenate([ravel(ar1), ravel(ar2)]), size=size, fill_value=fill_value)


def _selected(name: str, x: Any, marks: Any, size: int | None, fill_value: Any) -> Any:
    """Return the elements of ``x`` that are marked, cut or filled to ``size``."""
    size = _known_size(name, x, marks) if size is None else size
    return _read_marked(x, marks, 0 if fill_value is None else fill_value, size=size)


@library_function(static_argnames=("size",))
def _read_marked(x: Any, marks: Any, fill: Any, size: int) -> Any:
    count = x.shape[0]
    if not count:
        return broadcast_to(fill_like(fill, x), (size,))
    (places,) = nonzero(marks, size=size, fill_value=count)
    real = compare.lt(places, scalar(count, places.dtype))
    values = getitem(x, if_else(real, places, scalar(0, places.dtype)))
    return if_else(real, values, broadcast_to(fill_like(fill, x), (size,)))


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
              size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Return the distinct elements of ``ar1`` that are not in ``ar2``.

    >>> jnp.setdiff1d(jnp.array([1, 2, 3]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    ar1, ar2 = array_argument("setdiff1d", ar1, ar2)
    size = _asked(size)
    ar1 = ravel(ar1)
    if not ar1.shape[0]:
        return ar1 if size is None else broadcast_to(
            fill_like(0 if fill_value is None else fill_value, ar1), (size,))
    if assume_unique:
        return _selected("setdiff1d", ar1, isin(ar1, ar2, invert=True), size, fill_value)
    order, marks = _runs(ar1, equal_nan=True)
    ordered = getitem(ar1, order)
    marks = compare.bitwise_and(marks, isin(ordered, ar2, invert=True))
    return _selected("setdiff1d", ordered, marks, size, fill_value)


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
             size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Return the distinct elements that are in one of the two but not in both.

    >>> jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 3], dtype=int32)
    """
    ar1, ar2 = array_argument("setxor1d", ar1, ar2)
    size = _asked(size)
    ar1, ar2 = promote_dtypes(ravel(ar1), ravel(ar2))
    if not ar1.shape[0] and not ar2.shape[0]:
        return ar1 if size is None else _read_marked(ar1, ar1, fill_value or 0, size=size)
    if size is None and not assume_unique:
        ar1, ar2 = (_sorted_set("setxor1d", ar) for ar in (ar1, ar2))
    if size is None or assume_unique:
        ordered, marks = _unlike_neighbours(concatenate([ar1, ar2]))
    else:
        ordered, marks, *_ = _joined(ar1, ar2, in_both=False)
    if fill_value is None and size:  # JAX fills with the least, NaN if there is one
        least = _read_marked(ordered, marks, 0, size=1)
        fill_value = _read_marked(ordered, marks, shape.reshape(least, ()), size=size).min()
    elif fill_value is not None:
        ordered, fill_value = promote_dtypes(ordered, fill_value)
    return _selected("setxor1d", ordered, marks, size, fill_value)


def _sorted_set(name: str, x: Any) -> Any:
    """Return the distinct elements of ``x``, ascending."""
    return _selected(name, *_sorted_runs(x, equal_nan=True), None, None) if x.shape[0] else x


@library_function(static_argnames=("equal_nan",))
def _sorted_runs(x: Any, equal_nan: bool) -> tuple[Any, Any]:
    ordered = sort(x)
    return ordered, _begins(ordered, equal_nan)


@library_function
def _unlike_neighbours(both: Any) -> tuple[Any, Any]:
    """Return ``both`` sorted, and which elements equal neither neighbour.

    They are those that occur once: of operands without repeats, those in one of them alone.
    """
    ordered = sort(both)
    differs = compare.ne(getitem(ordered, slice(1, None)), getitem(ordered, slice(None, -1)))
    end = broadcast_in_dim(scalar(True, np.dtype(bool)), (1,), ())
    return ordered, compare.bitwise_and(concatenate([end, differs]), concatenate([differs, end]))


@library_function(static_argnames=("in_both",))
def _joined(ar1: Any, ar2: Any, in_both: bool) -> tuple[Any, Any, Any, Any]:
    """Return both sorted as one, which elements are the first of those in both or in one alone.

    Then, for those in both, where they first stand in each.  NaN equals NaN in one operand only.
    """
    count, index = ar1.shape[0], dtypes.default_dtype(int)
    both = concatenate([ar1, ar2])
    order = argsort(both)
    ordered = getitem(both, order)
    later = compare.ge(order, scalar(count, order.dtype))  # of ar2, which follow in each run
    starts = _begins(ordered, equal_nan=True)
    if dtypes.is_inexact(both.dtype):
        starts = compare.bitwise_or(starts, compare.bitwise_and(
            compare.ne(ordered, ordered), _begins(later.astype(index), equal_nan=False)))
    run = ops.sub(cumulative.cumsum(starts.astype(index), 0), scalar(1, index))
    none = broadcast_in_dim(scalar(0, index), order.shape, ())
    seconds = getitem(scatter_update(none, run, later.astype(index), "add"), run)
    firsts = getitem(scatter_update(
        none, run, compare.bitwise_not(later).astype(index), "add"), run)
    zero = scalar(0, index)
    mixed = compare.bitwise_and(compare.gt(firsts, zero), compare.gt(seconds, zero))
    marks = compare.bitwise_and(starts, mixed if in_both else compare.bitwise_not(mixed))
    next_one = ops.add(filling.iota(index, both.shape[0]), firsts)
    return ordered, marks, order, ops.sub(
        getitem(order, next_one), scalar(count, order.dtype))


def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
                return_indices: bool = False, *, size: int | None = None,
                fill_value: ArrayLike | None = None) -> Array | tuple[Array, Array, Array]:
    """Return the distinct elements that are in both; on request also where they are in each.

    >>> jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([2, 3, 4]))
    Array([2, 3], dtype=int32)
    """
    ar1, ar2 = array_argument("intersect1d", ar1, ar2)
    size = _asked(size)
    ar1, ar2 = promote_dtypes(ravel(ar1), ravel(ar2))
    if not ar1.shape[0] or not ar2.shape[0]:
        count = size or 0
        index = dtypes.default_dtype(int)
        none = full((count,), 0 if fill_value is None else fill_value, ar1.dtype)
        places = [full((count,), ar.shape[0], index) for ar in (ar1, ar2)]
        return (none, *places) if return_indices else none
    counts = ar1.shape[0], ar2.shape[0]
    if size is None and not assume_unique and not return_indices:
        ar1, ar2 = (_sorted_set("intersect1d", ar) for ar in (ar1, ar2))
        assume_unique = True
    if not assume_unique:
        ordered, marks, *places = _joined(ar1, ar2, in_both=True)
    else:
        ordered, marks, *places = _like_next(ar1, ar2, places=bool(return_indices))
    size = _known_size("intersect1d", ordered, marks) if size is None else size
    if fill_value is None:  # JAX fills with the least common element
        least = _read_marked(ordered, marks, 0, size=1)
        fill_value = shape.reshape(least, ())
    ordered, fill_value = promote_dtypes(ordered, fill_value)
    values = _selected("intersect1d", ordered, marks, size, fill_value)
    if not return_indices:
        return values
    return values, *(_read_marked(place, marks, count, size=size)
                     for place, count in zip(places, counts))


@library_function(static_argnames=("places",))
def _like_next(ar1: Any, ar2: Any, places: bool) -> tuple[Any, ...]:
    """Return both sorted as one, which elements equal the next, and where these stand in each.

    They are those in both, of operands without repeats.
    """
    both = concatenate([ar1, ar2])
    order = argsort(both) if places else None
    ordered = getitem(both, order) if places else sort(both)
    here, after = slice(None, -1), slice(1, None)
    marks = compare.eq(getitem(ordered, here), getitem(ordered, after))
    if order is None:
        return getitem(ordered, here), marks
    second = ops.sub(getitem(order, after), scalar(ar1.shape[0], order.dtype))
    return getitem(ordered, here), marks, getitem(order, here), second

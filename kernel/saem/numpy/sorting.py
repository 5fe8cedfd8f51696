"""How are elements put in order, and found in what is ordered?

Sorting along an axis, the places that sort, the smallest few, and binary search.

Read before: ``numpy.axes``, ``ops.sort``.  Read after: ``numpy.sets``.
Invariant: NaN comes last, and 0.0 and -0.0 are equal (tests/kernel/numpy/test_ordering.py).
Source: the NumPy reference and the Python array API standard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import Dim, bit_length, unwrapped
from saem.core.lazy import later
from saem.core.sharded import sharding_of
from saem.jit.library import library_function
from saem.numpy.arithmetic import negative
from saem.numpy.axes import array_argument
from saem.numpy.index_plan import as_index
from saem.numpy.indexing import getitem
from saem.numpy.joining import parts_of
from saem.numpy.manipulation import ravel
from saem.numpy.promote import check_arraylike, if_else, promote_dtypes, scalar
from saem.numpy.reductions import requested_dtype, strong
from saem.numpy.reductions import sum as total
from saem.ops import arithmetic as ops
from saem.ops import compare, filling, numbers, shape, slicing
from saem.ops.convert import convert_element_type
from saem.ops.linear import broadcast_in_dim, moveaxis
from saem.ops.scatter import scatter
from saem.ops.shape import canonical_axis
from saem.ops.sort import sort as lax_sort
from saem.ops.sort import top_k
from saem.ops.windows import ScatterDimensionNumbers
from saem.typing import Array, ArrayLike, DTypeLike

loops: Any = later("saem.loops.scan")

FLOAT32 = np.dtype("float32")  # of it XLA has a fast ``top_k`` on the CPU


# -- sorting ---------------------------------------------------------------------------------------


def _refuse(name: str, kind: Any, order: Any) -> None:
    """Refuse NumPy's ``kind`` and ``order``.

    Raises: TypeError if one is given.
    """
    if kind is not None:
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.kind",
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to "
            "specify sort stability.", advice="XLA has one algorithm.")
    if order is not None:
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.order",
            f"'order' argument to {name} is not supported.", advice="Arrays have no named fields.")


@library_function(static_argnames=("axis", "kind", "order", "stable", "descending"))
def sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
         stable: bool = True, descending: bool = False) -> Any:
    """Return ``a`` in ascending order along ``axis``; raveled first if None.

    Raises: ValueError for an axis that does not exist; TypeError for ``kind`` or ``order``.

    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _refuse("sort", kind, order)
    a = array_argument("sort", a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, a.ndim)
    out = lax_sort(a, axis, stable)
    return shape.rev(out, (axis,)) if descending else out


@library_function(static_argnames=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
            stable: bool = True, descending: bool = False, dtype: DTypeLike | None = None) -> Any:
    """Return the places that put ``a`` in order along ``axis``; of the raveled array if None.

    Raises: as ``sort``.

    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _refuse("argsort", kind, order)
    a = array_argument("argsort", a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, a.ndim)
    index = requested_dtype("argsort", dtype) or dtypes.default_dtype(int)
    places = filling.broadcasted_iota(index, a.shape, axis, out_sharding=sharding_of(aval_of(a)))
    if not descending:
        return lax_sort((a, places), axis, stable)[1]
    if not stable:
        return shape.rev(lax_sort((a, places), axis, stable)[1], (axis,))
    # Reversed before and after, so that of equals the first comes first.
    a, places = shape.rev(a, (axis,)), shape.rev(places, (axis,))
    return shape.rev(lax_sort((a, places), axis, stable)[1], (axis,))


@library_function
def sort_complex(a: ArrayLike) -> Any:
    """Return ``a`` as complex numbers, by real then imaginary part, along its last axis.

    >>> jnp.sort_complex(jnp.array([2 + 1j, 1 + 2j]))
    Array([1.+2.j, 2.+1.j], dtype=complex64)
    """
    a = array_argument("sort_complex", a)
    return lax_sort(convert_element_type(a, dtypes.complex_dtype(dtypes.to_inexact(a.dtype))), -1)


@library_function(static_argnames=("axis",))
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Return the places that order by the last key, among equals by the one before, and so on.

    Raises: TypeError for no keys; ValueError for shapes that differ.

    >>> jnp.lexsort((jnp.array([3, 1, 2]), jnp.array([0, 0, 1])))
    Array([1, 0, 2], dtype=int32)
    """
    if not isinstance(keys, (list, tuple)) and aval_of(keys).ndim == 0:
        raise TypeError("iteration over a 0-d array: lexsort needs a sequence of keys")
    parts = parts_of("lexsort", keys)
    if not parts:
        raise errors.explained(errors.ArgumentTypeError, "lexsort.C1",
                               "need sequence of keys with len > 0 in lexsort",
                               advice="Pass at least one array.")
    if len({x.shape for x in parts}) > 1:
        raise errors.explained(
            errors.ArgumentError, "lexsort.C2", "all keys need to be the same shape",
            advice=f"Got {', '.join(str(x.shape) for x in parts)}.")
    if parts[0].ndim == 0:
        return scalar(0, dtypes.default_dtype(int))
    axis = canonical_axis(axis, parts[0].ndim)
    places = filling.broadcasted_iota(dtypes.default_dtype(int), parts[0].shape, axis,
                                    out_sharding=sharding_of(aval_of(parts[0])))
    return lax_sort((*reversed(parts), places), axis, num_keys=len(parts))[-1]


def _smallest(name: str, a: Any, kth: int, axis: int) -> tuple[Any, int, int]:
    """Return ``a`` with ``axis`` at the end, its place, and the count of the smallest part."""
    if dtypes.is_complex(a.dtype):
        raise errors.explained(
            NotImplementedError, f"{name}.C1", f"jnp.{name} for complex dtype is not implemented.",
            advice="Sort by real part, or use jnp.sort.")
    axis = canonical_axis(axis, a.ndim)
    kth = canonical_axis(kth, a.shape[axis])
    if dtypes.is_bool(a.dtype):
        raise errors.explained(
            errors.DTypeError, f"{name}.C2", f"{name}: neg does not accept dtype bool. Accepted "
            "dtypes are subtypes of integer, floating, complexfloating.",
            advice="Convert the array first, for example with a.astype(int).")
    return moveaxis(a, axis, -1), axis, kth


@library_function(static_argnames=("kth", "axis"), whole=True)
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Any:
    """Return ``a`` with its ``kth`` smallest in place along ``axis``: smaller before, others after.

    Raises: ValueError for a place that does not exist; NotImplementedError for complex numbers;
    TypeError for booleans.

    >>> jnp.partition(jnp.array([4, 1, 3]), 1)
    Array([1, 3, 4], dtype=int32)
    """
    rows, axis, kth = _smallest("partition", array_argument("partition", a), kth, axis)
    size = rows.shape[-1]
    low = _reversed_order(top_k(_reversed_order(rows), kth + 1)[0])
    high = top_k(rows, size - kth - 1)[0]
    return moveaxis(shape.concatenate([low, high], rows.ndim - 1), rows.ndim - 1, axis)


def _reversed_order(x: Any) -> Any:
    """Return numbers of the same dtype in reversed order."""
    if dtypes.is_integer(x.dtype):
        return compare.bitwise_not(x)  # -x - 1: no overflow
    return negative(x)


@library_function(static_argnames=("kth", "axis"))
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Any:
    """Return the places that put ``a`` in the order of ``partition``.

    Raises: as ``partition``.

    >>> jnp.argpartition(jnp.array([4, 1, 3]), 1)
    Array([1, 2, 0], dtype=int32)
    """
    rows, axis, kth = _smallest("argpartition", array_argument("argpartition", a), kth, axis)
    size = rows.shape[-1]
    low = top_k(_reversed_order(rows), kth + 1)[1]
    rest = _unmarked(low, rows.shape)
    high = top_k(rest, size - kth - 1)[1]
    return moveaxis(shape.concatenate([low, high], rows.ndim - 1), rows.ndim - 1, axis)


def _unmarked(places: Any, sizes: tuple[int, ...]) -> Any:
    """Return ones of shape ``sizes`` with 0 at ``places`` along the last axis."""
    ones = broadcast_in_dim(scalar(1, FLOAT32), sizes, ())
    lead = tuple(range(len(sizes) - 1))
    places_of = ScatterDimensionNumbers((), (len(lead),), (len(lead),), lead, lead)
    zeros = broadcast_in_dim(scalar(0, FLOAT32), places.shape, ())
    return scatter(ones, shape.expand_dims(places, (places.ndim,)), zeros, places_of)


# -- searching -------------------------------------------------------------------------------------


SEARCH_METHODS = ("compare_all", "scan", "scan_unrolled", "sort")


def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
                 method: str = "scan") -> Array:
    """Return for each of ``v`` the place in ascending ``a`` where it keeps the order.

    ``side`` 'left' gives the first such place, 'right' the last.  ``method``: 'scan' halves the
    interval, 'compare_all' compares with every element, 'sort' sorts both together.
    Raises: ValueError if ``a`` is not one-dimensional, or for an unknown side or method.

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 6]))
    Array([0, 1, 3], dtype=int32)
    """
    check_arraylike("searchsorted", a, v)
    a, v = unwrapped(a), unwrapped(v)
    if sorter is not None:
        check_arraylike("searchsorted", sorter)
    if side not in ("left", "right"):
        raise errors.explained(
            errors.ArgumentError, "searchsorted.side",
            f"invalid argument side={side!r}, expected 'left' or 'right'", advice="See NumPy.")
    if method not in SEARCH_METHODS:
        raise errors.explained(
            errors.ArgumentError, "searchsorted.method",
            f"invalid argument method={method!r}, expected one of {list(SEARCH_METHODS)}",
            advice="The default is 'scan'.")
    if aval_of(a).ndim != 1:
        raise errors.explained(errors.ArgumentError, "searchsorted.C1",
                               "a should be 1-dimensional",
                               advice=f"Got shape {aval_of(a).shape}; use vmap for several rows.")
    return _searchsorted(a, v, sorter, side=side, method=method)


@library_function(static_argnames=("side", "method"), whole=True)
def _searchsorted(a: Any, v: Any, sorter: Any, side: str, method: str) -> Any:
    a, v = promote_dtypes(*array_argument("searchsorted", a, v))
    if sorter is not None:
        a = getitem(a, sorter)
    size = a.shape[0]
    wide = not isinstance(size, Dim) and size > np.iinfo(np.int32).max
    index = np.dtype("int64" if wide else "int32")
    if not size:
        return broadcast_in_dim(scalar(0, index), v.shape, ())
    if method == "compare_all":
        return _by_comparing(a, v, side, index)
    if method == "sort":
        return _by_sorting(a, v, side, index)
    return _by_halving(a, v, side, index, method == "scan_unrolled")


def _before(x: Any, y: Any, or_equal: bool) -> Any:
    """Return where x comes before y in the order of sorting: NaN last, zeros equal."""
    if dtypes.is_complex(x.dtype):
        x_unknown, y_unknown = compare.ne(x, x), compare.ne(y, y)
        less = _complex_less(y, x)
        inside = compare.bitwise_not(less) if or_equal else _complex_less(x, y)
        both = compare.bitwise_and(x_unknown, y_unknown)
        after = compare.bitwise_and(compare.bitwise_not(x_unknown), y_unknown)
        known = compare.bitwise_not(compare.bitwise_or(x_unknown, y_unknown))
        out = compare.bitwise_or(after, compare.bitwise_and(known, inside))
        return compare.bitwise_or(out, both) if or_equal else out
    if dtypes.is_float(x.dtype):
        x, y = _settled(x), _settled(y)
        return compare.le_to(x, y) if or_equal else compare.lt_to(x, y)
    return compare.le(x, y) if or_equal else compare.lt(x, y)


def _complex_less(x: Any, y: Any) -> Any:
    real, imag = [(part(x), part(y)) for part in (numbers.real, numbers.imag)]
    tie = compare.bitwise_and(compare.eq(*real), compare.lt(*imag))
    return compare.bitwise_or(compare.lt(*real), tie)


def _settled(x: Any) -> Any:
    """Return ``x`` with one zero and one NaN."""
    dtype = x.dtype
    x = if_else(compare.eq(x, scalar(0, dtype)), scalar(0, dtype), x)
    return if_else(compare.ne(x, x), scalar(np.nan, dtype), x)


def _by_comparing(a: Any, v: Any, side: str, index: Any) -> Any:
    wide = (*v.shape, a.shape[0])
    rows = broadcast_in_dim(a, wide, (len(wide) - 1,))
    values = broadcast_in_dim(v, wide, tuple(range(v.ndim)))
    return total(_before(rows, values, side == "right"), axis=-1, dtype=index)


# Up to so many rounds are written one after another: their code then runs faster than a loop.
MOST_WRITTEN = 7


def _by_halving(a: Any, v: Any, side: str, index: Any, unrolled: bool) -> Any:
    """Halve the interval (low, high] that holds the place until one is left."""
    size, work = a.shape[0], np.dtype("uint64" if index.itemsize == 8 else "uint32")
    rounds = bit_length(size)

    def halve(interval: tuple[Any, Any], _: None = None) -> tuple[tuple[Any, Any], None]:
        low, high = interval
        middle = ops.add(low, ops.div(ops.sub(high, low), scalar(2, work)))
        there = getitem(a, middle, mode="clip", wrap_negative_indices=False)
        left = _before(v, there, side == "left")
        return (if_else(left, low, middle), if_else(left, middle, high)), None

    interval = tuple([broadcast_in_dim(as_index(n, work), v.shape, ()) for n in (0, size)])
    if unrolled or rounds <= MOST_WRITTEN:
        for _ in range(rounds):
            interval, _ = halve(interval)
    else:
        interval, _ = loops.scan(halve, interval, None, length=rounds)
    return convert_element_type(interval[1], index)


def _by_sorting(a: Any, v: Any, side: str, index: Any) -> Any:
    """Sort both together: the place is the rank less the rank among the values."""
    values, size = ravel(v), a.shape[0]
    count = values.shape[0]
    both = [values, a] if side == "left" else [a, values]
    joined = shape.concatenate(both, 0)
    rank = _ranks(joined, index)
    start = 0 if side == "left" else size
    among = _ranks(values, index)
    mine = slicing.slice_in_dim(rank, start, start + count)
    return shape.reshape(ops.sub(mine, among), v.shape)


def _ranks(x: Any, index: Any) -> Any:
    """Return the place of each element once ``x`` is sorted, stably."""
    places = filling.broadcasted_iota(index, x.shape, 0)
    order = lax_sort((x, places), 0)[1]
    return lax_sort((order, places), 0)[1]


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *,
             method: str | None = None) -> Array:
    """Return for each of ``x`` the number of the bin it lies in; ``bins`` are monotonic edges.

    Raises: ValueError if ``bins`` is not one-dimensional.

    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([1., 2., 3.]))
    Array([0, 2], dtype=int32)
    """
    check_arraylike("digitize", x, bins)
    x, bins = unwrapped(x), unwrapped(bins)
    if aval_of(bins).ndim != 1:
        raise errors.explained(
            errors.ArgumentError, "digitize.C1",
            f"digitize: bins must be a 1-dimensional array; got shape {aval_of(bins).shape}",
            advice="Give the edges of the bins in order.")
    return _digitize(x, bins, right=bool(right), method=method or "scan")


@library_function(static_argnames=("right", "method"), whole=True)
def _digitize(x: Any, bins: Any, right: bool, method: str) -> Any:
    x, bins = array_argument("digitize", x, bins)
    size, index = bins.shape[0], np.dtype("int32")
    if not size:
        return broadcast_in_dim(scalar(0, index), x.shape, ())
    side = "right" if not right else "left"
    up = searchsorted(bins, x, side=side, method=method)
    down = ops.sub(scalar(size, index),
                   searchsorted(shape.rev(bins, (0,)), x, side=side, method=method))
    last, first = (slicing.index_in_dim(bins, i, 0, False) for i in (size - 1, 0))
    return if_else(compare.ge(last, first), strong(up, index), strong(down, index))

"""How many elements lie in each bin?

Counts of integers, and histograms over edges in one and several dimensions.

Read before: ``numpy.sorting``, ``numpy.ranges``.
Invariant: a bin holds its left edge, the last bin both; what lies outside counts nowhere
(tests/kernel/numpy/test_calculus.py).
Source: the NumPy reference of bincount and histogram.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import unwrapped
from saem.core.trace import concrete_or_none
from saem.jit.library import library_function
from saem.numpy.arithmetic import divide
from saem.numpy.axes import array_argument, known_number
from saem.numpy.calculus import diff
from saem.numpy.creation import asarray
from saem.numpy.indexing import getitem, scatter_update
from saem.numpy.manipulation import ravel
from saem.numpy.promote import (
    broadcast_to,
    convert_value,
    if_else,
    promote_dtypes_inexact,
    scalar,
)
from saem.numpy.ranges import linspace
from saem.numpy.reductions import max as largest
from saem.numpy.reductions import min as smallest
from saem.numpy.reductions import sum as total
from saem.numpy.sorting import searchsorted
from saem.ops import arithmetic as ops
from saem.ops import compare, numbers, shape
from saem.ops.linear import broadcast_in_dim
from saem.ops.reshard import freely
from saem.typing import Array, ArrayLike


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None, out_sharding: Any = None) -> Array:
    """Return how often each of 0, 1, 2… occurs in ``x``, or the sum of its ``weights``.

    ``length`` is that of the result, whatever ``minlength``, needed under jit; larger numbers are
    left out, negative ones count as 0.
    Raises: TypeError for numbers that are no integers; ConcretizationTypeError without ``length``.

    >>> jnp.bincount(jnp.array([0, 1, 1, 3]))
    Array([1, 2, 0, 1], dtype=int32)
    """
    x = array_argument("bincount", x)
    if out_sharding is not None:
        return freely(lambda x, weights: bincount(x, weights, minlength, length=length),
                      out_sharding, "bincount", x, weights)
    if not (dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
        raise errors.explained(
            errors.ArgumentTypeError, "bincount.C1",
            f"x argument to bincount must have an integer type; got {x.dtype}",
            advice="Convert it: x.astype(int).")
    if x.ndim != 1:
        raise errors.explained(errors.ArgumentError, "bincount.C2",
                               "only 1-dimensional input supported.", advice="Ravel it.")
    least = max(known_number(minlength, "minlength"), 0)
    if length is None:
        known = concrete_or_none(x)
        if known is None:
            raise errors.unknown(
                "bincount.C4", x, "The error occurred because of argument 'x' of jnp.bincount: the "
                "length of the result depends on its values.", advice="Pass length=.")
        values = np.asarray(known).astype(int)
        length = max(least, int(values.max(initial=-1)) + 1)
    else:
        length = known_number(length, "length")
    return _bincount(x, weights, length=length)


@library_function(static_argnames=("length",))
def _bincount(x: Any, weights: Any, length: int) -> Any:
    index = dtypes.default_dtype(int)
    if weights is None:
        weights = broadcast_in_dim(scalar(1, index), x.shape, ())
    else:
        weights = array_argument("bincount", weights)
        if weights.shape != x.shape:
            raise errors.explained(
                errors.ArgumentError, "bincount.C5", "type of weights must match type of x. Got "
                f"typeof(x)={aval_of(x)} and typeof(weights)={aval_of(weights)}",
                advice="Their shapes must be equal.")
    places = x.astype(index) if dtypes.is_bool(x.dtype) else x
    if not dtypes.is_unsigned(places.dtype):
        places = numbers.max(places, scalar(0, places.dtype))
    zeros = broadcast_in_dim(scalar(0, weights.dtype), (length,), ())
    return scatter_update(zeros, places, weights, "add") if length else zeros


def _is_pair(x: Any) -> bool:
    """Return whether ``x`` holds two numbers, which may be traced."""
    if isinstance(x, (list, tuple)):
        return len(x) == 2 and not any(map(np.ndim, x))
    return np.shape(x) == (2,)


def histogram_bin_edges(a: ArrayLike, bins: ArrayLike = 10,
                        range: Array | Sequence[ArrayLike] | None = None,
                        weights: ArrayLike | None = None) -> Array:
    """Return the edges of ``bins``: those given, or equal ones over ``range`` (least to largest).

    Raises: NotImplementedError for the names of NumPy's estimators.

    >>> jnp.histogram_bin_edges(jnp.array([0., 4.]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise errors.explained(
            NotImplementedError, "histogram.C1", "string values for `bins` not implemented.",
            advice="Pass a number of bins or their edges.")
    count = bins if isinstance(bins, int) else None
    a, bins = array_argument("histogram_bin_edges", a, bins)
    (a,) = promote_dtypes_inexact(a)
    if aval_of(bins).ndim == 1:
        return convert_value(bins, a.dtype, False)
    count = known_number(bins, "bins") if count is None else count
    if range is not None and not _is_pair(range):
        raise errors.explained(
            errors.ArgumentError, "histogram.range",
            f"`range` must be either None or a sequence of scalars, got {range}",
            advice="Give the least and the largest edge.")
    low, high = (smallest(a), largest(a)) if range is None else (range[0], range[1])
    if range is None and not math.prod(a.shape):
        low, high = 0.0, 1.0
    return _edges(low, high, dtype=a.dtype, count=count)


@library_function(static_argnames=("dtype", "count"), whole=True)
def _edges(low: Any, high: Any, dtype: Any, count: int) -> Any:
    low, high = (array_argument("histogram", v).astype(dtype) for v in (low, high))
    half, flat = scalar(0.5, dtype), compare.eq(low, high)
    low, high = (if_else(flat, ops.sub(low, half), low), if_else(flat, ops.add(high, half), high))
    return linspace(low, high, count + 1, dtype=dtype)


def histogram(a: ArrayLike, bins: ArrayLike = 10, range: Sequence[Any] | None = None,
              weights: ArrayLike | None = None, density: bool | None = None) -> tuple[Any, Any]:
    """Return how many of ``a`` (or the sum of their ``weights``) lie in each bin, and the edges.

    With ``density`` the counts are divided by total and width.
    Raises: ValueError if ``weights`` has another shape.

    >>> jnp.histogram(jnp.array([1., 1.5, 2.9]), bins=jnp.array([1., 2., 3.]))
    (Array([2., 1.], dtype=float32), Array([1., 2., 3.], dtype=float32))
    """
    if weights is not None:
        a, weights = promote_dtypes_inexact(*array_argument("histogram", a, weights))
        if weights.shape != a.shape:
            raise errors.explained(errors.ArgumentError, "histogram.C2",
                                   "weights should have the same shape as a.",
                                   advice=f"Got {weights.shape} and {a.shape}.")
    edges = histogram_bin_edges(a, bins, range)
    return _histogram(a, edges, weights, density=bool(density)), edges


@library_function(static_argnames=("density",), whole=True)
def _histogram(a: Any, edges: Any, weights: Any, density: bool) -> Any:
    a = array_argument("histogram", a)
    if weights is None:
        weights = broadcast_in_dim(scalar(1, edges.dtype), a.shape, ())
    places = _bins_of(ravel(a).astype(edges.dtype), edges)
    zeros = broadcast_in_dim(scalar(0, weights.dtype), edges.shape, ())
    counts = getitem(scatter_update(zeros, places, ravel(weights), "add"), slice(1, None))
    if density:
        counts = ops.div(ops.div(counts, diff(edges)), total(counts))
    return counts


def _bins_of(a: Any, edges: Any) -> Any:
    """Return the number of the bin of each element, from 1; 0 and one more lie outside."""
    last = edges.shape[0] - 1
    places = searchsorted(edges, a, side="right")
    at_end = compare.eq(a, broadcast_to(getitem(edges, -1), a.shape))
    return if_else(at_end, scalar(last, places.dtype), places)


def histogram2d(x: ArrayLike, y: ArrayLike, bins: ArrayLike | list[ArrayLike] = 10,
                range: Sequence[Array | Sequence[ArrayLike] | None] | None = None,
                weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Any, Any, Any]:
    """Return the counts of points (x, y) in a grid of bins, and the edges along both axes.

    >>> jnp.histogram2d(jnp.array([0.2, 0.7]), jnp.array([0.1, 0.9]), bins=2, range=[[0, 1], [0,
    ...     1]])[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    x, y = array_argument("histogram2d", x, y)
    bins = unwrapped(bins)
    many = isinstance(bins, (list, tuple)) or np.ndim(bins) == 1
    each = [asarray(bins)] * 2 if many and len(bins) not in (1, 2) else bins
    points = [shape.expand_dims(ravel(v), (1,)) for v in promote_dtypes_inexact(x, y)]
    counts, edges = histogramdd(shape.concatenate(points, 1), each, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(sample: ArrayLike, bins: ArrayLike | list[ArrayLike] = 10,
                range: Sequence[Array | Sequence[ArrayLike] | None] | None = None,
                weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Any, list[Any]]:
    """Return the counts of points (the rows of ``sample``) in a grid of bins, and all edges.

    Raises: ValueError if there are not as many bins or ranges as columns.

    >>> jnp.histogramdd(jnp.array([[0.2, 0.1], [0.7, 0.9]]), bins=2, range=[[0, 1], [0, 1]])[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    sample = array_argument("histogramdd", sample)
    (sample,) = promote_dtypes_inexact(sample)
    if sample.ndim != 2:
        raise errors.explained(
            errors.ArgumentError, "histogramdd.C1",
            f"sample needs two axes, points and columns; got shape {sample.shape}.",
            advice="Points of one coordinate are a column: sample[:, None].")
    columns = sample.shape[1]
    each = list(bins) if isinstance(bins, (list, tuple)) or np.ndim(bins) else [bins] * columns
    ranges = list(range) if range is not None else [None] * columns
    for name, given in (("bins", each), ("range", ranges)):
        if len(given) != columns:
            raise errors.explained(
                errors.ArgumentError, f"histogramdd.{name}",
                f"{name} should have {columns} entries, one for each column of sample.",
                advice=f"Got {len(given)}.")
    edges = [histogram_bin_edges(getitem(sample, (slice(None), i)), b, r)
             for i, (b, r) in enumerate(zip(each, ranges))]
    return _histogramdd(sample, edges, weights, density=bool(density)), edges


@library_function(static_argnames=("density",), whole=True)
def _histogramdd(sample: Any, edges: list[Any], weights: Any, density: bool) -> Any:
    places = tuple([_bins_of(getitem(sample, (slice(None), i)), e) for i, e in enumerate(edges)])
    if weights is None:
        weights = broadcast_in_dim(scalar(1, dtypes.default_dtype(int)), sample.shape[:1], ())
    else:
        weights = array_argument("histogramdd", weights)
    zeros = broadcast_in_dim(scalar(0, weights.dtype), [e.shape[0] + 1 for e in edges], ())
    counts = scatter_update(zeros, places, weights, "add")
    counts = getitem(counts, (slice(1, -1),) * len(edges))
    if density:
        if not dtypes.is_inexact(counts.dtype):
            counts = counts.astype(edges[0].dtype)
        everything = total(counts)
        for i, e in enumerate(edges):
            counts = divide(counts, broadcast_in_dim(diff(e), counts.shape, (i,)))
        counts = divide(counts, everything.astype(counts.dtype))
    return counts

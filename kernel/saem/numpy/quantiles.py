"""Which value has a given share of the others below it?

Quantiles, percentiles and medians: sort along the axes, then read at, or between, two places.

Read before: ``numpy.reductions``, ``ops.sort``.
Invariant: NaN anywhere along an axis makes the result NaN, except in the ``nan`` functions, which
leave it out (tests/kernel/numpy/test_reductions.py).
Source: the NumPy reference of quantile (Hyndman and Fan's methods 1 and 7, and NumPy's own).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.numpy.arithmetic import add, multiply, subtract
from saem.numpy.axes import array_argument, canonical_axes, keep_axes, refuse_out
from saem.numpy.indexing import getitem
from saem.numpy.logic import less
from saem.numpy.promote import (
    FLOAT32,
    broadcast_shapes,
    if_else,
    promote_dtypes_inexact,
    scalar,
)
from saem.numpy.reductions import strong
from saem.numpy.reductions import sum as reduce_total
from saem.ops import arithmetic as ops
from saem.ops import compare, cumulative, filling, numbers, reduce, select, shape, slicing
from saem.ops.contract import product_dtype
from saem.ops.linear import broadcast_in_dim, permute
from saem.ops.reshard import freely
from saem.ops.sort import sort
from saem.typing import Array, ArrayLike

METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@library_function(static_argnames=("axis", "overwrite_input", "method", "keepdims"),
                  same_rounding="scalars", whole=True)
def quantile(a: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None,
             out: None = None, overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """Return the value below which share ``q`` of ``a`` lies along ``axis``; 0 <= q <= 1.

    The axis of ``q`` comes first.  ``method`` decides how to interpolate between two elements.
    Raises: ValueError for an unknown method, complex numbers, or ``weights`` that do not fit;
    NotImplementedError for weights by another method than 'inverted_cdf'.

    >>> jnp.quantile(jnp.array([1., 2., 3.]), 0.25)
    Array(1.5, dtype=float32)
    """
    _refuse("quantile", out, overwrite_input)
    return _quantile("quantile", a, q, axis, method, keepdims, weights, False)


@library_function(static_argnames=("axis", "overwrite_input", "method", "keepdims"),
                  same_rounding="scalars", whole=True)
def nanquantile(a: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None,
                out: None = None, overwrite_input: bool = False, method: str = "linear",
                keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """Return the quantile of what is not NaN.

    Raises: as ``quantile``.

    >>> jnp.nanquantile(jnp.array([1., jnp.nan, 3.]), 0.5)
    Array(2., dtype=float32)
    """
    _refuse("nanquantile", out, overwrite_input)
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights, True)


def _refuse(name: str, out: Any, overwrite_input: bool) -> None:
    """Refuse to write into an argument.

    Raises: NotImplementedError for ``out``, ValueError for ``overwrite_input``.
    """
    refuse_out(name, out)
    if overwrite_input:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None: "
                         "arrays are immutable.")


def _hundredth(name: str, a: Any, q: Any) -> Any:
    a, q = array_argument(name, a, q)
    (q,) = promote_dtypes_inexact(q)
    return a, ops.div(q, scalar(100, q.dtype))


@library_function(static_argnames=("axis", "overwrite_input", "method", "keepdims", "out_sharding"),
                  same_rounding="scalars", whole=True)
def percentile(a: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None,
               out: None = None, overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False, *, weights: ArrayLike | None = None,
               out_sharding: Any = None) -> Array:
    """Return the quantile of ``q`` hundredths.

    >>> jnp.percentile(jnp.array([1., 2., 3.]), 50)
    Array(2., dtype=float32)
    """
    _refuse("percentile", out, overwrite_input)
    if out_sharding is not None:
        return freely(lambda a, q, weights: percentile(
            a, q, axis, None, overwrite_input, method, keepdims, weights=weights),
            out_sharding, "percentile", a, q, weights)
    a, q = _hundredth("percentile", a, q)
    return _quantile("percentile", a, q, axis, method, keepdims, weights, False)


@library_function(static_argnames=("axis", "overwrite_input", "method", "keepdims"),
                  same_rounding="scalars", whole=True)
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None,
                  out: None = None, overwrite_input: bool = False, method: str = "linear",
                  keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """Return the quantile of ``q`` hundredths of what is not NaN.

    >>> jnp.nanpercentile(jnp.array([1., jnp.nan, 3.]), 50)
    Array(2., dtype=float32)
    """
    _refuse("nanpercentile", out, overwrite_input)
    a, q = _hundredth("nanpercentile", a, q)
    return _quantile("nanpercentile", a, q, axis, method, keepdims, weights, True)


@library_function(static_argnames=("axis", "overwrite_input", "keepdims"), same_rounding=True,
                  whole=True)
def median(a: ArrayLike, axis: int | tuple[int, ...] | None = None, out: None = None,
           overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """Return the middle value along ``axis``, the mean of the middle two for an even count.

    >>> jnp.median(jnp.array([1, 9, 2]))
    Array(2., dtype=float32)
    """
    _refuse("median", out, overwrite_input)
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, None, False)


@library_function(static_argnames=("axis", "overwrite_input", "keepdims"), same_rounding=True,
                  whole=True)
def nanmedian(a: ArrayLike, axis: int | tuple[int, ...] | None = None, out: None = None,
              overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """Return the middle value along ``axis`` of what is not NaN.

    >>> jnp.nanmedian(jnp.array([1., jnp.nan, 3.]))
    Array(2., dtype=float32)
    """
    _refuse("nanmedian", out, overwrite_input)
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, None, True)


def _quantile(name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any,
              skip_nan: bool) -> Any:
    a, q = array_argument(name, a, q)
    _check(name, a, method, weights)
    _check_shares(name, q)
    axes = canonical_axes(axis, a.ndim)
    # The result has the dtype in which ``a`` and the weights meet; places are computed in at least
    # 32 bits, which tell all elements of a row apart.
    meeting = (a,) if weights is None else (a, array_argument(name, weights))
    dtype = aval_of(promote_dtypes_inexact(*meeting)[0]).dtype
    wide = product_dtype(aval_of(*promote_dtypes_inexact(q)).dtype, FLOAT32)
    a, q = strong(a, dtype), strong(q, wide)
    whole, q_shape = a.shape, q.shape
    rows = _flat_axes_last(a, axes)
    if rows.shape[-1] == 0:
        raise errors.explained(
            errors.ShapeError, f"{name}.C3", f"{name} of no elements along axes {axes} of an "
            f"array of shape {whole}", advice="Check x.size first.")
    lead = rows.shape[:-1]
    is_nan = compare.ne(rows, rows)
    if weights is not None:
        weights = _weights_like(a, weights, axis, axes)
        if skip_nan:
            weights = if_else(is_nan, scalar(0, dtype), weights)
    count, spoiled = _counted(is_nan, wide, skip_nan)
    if weights is None:
        out = _read(sort(rows, len(lead)), q, count, method, lead)
    else:
        out = _read_weighted(rows, weights, strong(q, dtype), lead)
        sound = reduce.reduce_and(compare.ge(weights, scalar(0, dtype)), (len(lead),))
        spoiled = compare.bitwise_or(spoiled, compare.bitwise_not(sound))
    if len(q_shape):
        spoiled = broadcast_in_dim(spoiled, out.shape, tuple(range(len(q_shape), out.ndim)))
    out = if_else(spoiled, scalar(math.nan, dtype), out)
    if not keepdims:
        return out
    shifted = tuple([i + len(q_shape) for i in axes])
    return keep_axes(out, q_shape + whole, shifted)


def _counted(is_nan: Any, dtype: Any, skip_nan: bool) -> tuple[Any, Any]:
    """Return how many elements of each row count, and whether the result of the row is NaN."""
    count = scalar(is_nan.shape[-1], dtype)
    if not skip_nan:
        return count, reduce.reduce_or(is_nan, (is_nan.ndim - 1,))
    count = ops.sub(count, reduce_total(is_nan, axis=-1, dtype=dtype))
    return count, compare.eq(count, scalar(0, dtype))


def _check(name: str, a: Any, method: str, weights: Any) -> None:
    if method not in METHODS:
        shown = ", ".join(repr(m) for m in METHODS[:-1])
        raise errors.explained(
            errors.ArgumentError, f"{name}.C1",
            f"method can only be {shown} or {METHODS[-1]!r}", advice=f"Got {method!r}.")
    if weights is not None and method != "inverted_cdf":
        raise errors.explained(
            NotImplementedError, f"{name}.weights",
            f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights.",
            advice="Pass method='inverted_cdf'.")
    if dtypes.is_complex(a.dtype):
        raise errors.explained(
            errors.ArgumentError, f"{name}.C2",
            "quantile does not support complex input, as the operation is poorly defined.",
            advice="Apply it to the real and imaginary parts.")


def _check_shares(name: str, q: Any) -> None:
    if q.ndim > 1:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C4",
            f"q must be have rank <= 1, got shape {q.shape}", advice="Ravel it.")
    if not dtypes.is_float(q.dtype):
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C6",
            f"jax.numpy.{name} does not accept q of dtype {q.dtype.name}",
            advice="Give a share from 0.0 to 1.0 as a float; percentile takes hundredths.")


def _flat_axes_last(a: Any, axes: tuple[int, ...]) -> Any:
    """Return ``a`` with ``axes`` made one, at the end."""
    kept = [i for i in range(a.ndim) if i not in axes]
    moved = permute(a, (*kept, *sorted(axes)))
    return shape.reshape(moved, (*[a.shape[i] for i in kept],
                                 math.prod([a.shape[i] for i in axes])))


def _weights_like(a: Any, weights: Any, axis: Any, axes: tuple[int, ...]) -> Any:
    """Return the weights in the layout of ``_flat_axes_last``.

    Raises: ValueError if they fit neither the array nor its one axis.
    """
    weights = strong(array_argument("quantile", weights), a.dtype)
    if weights.shape != a.shape:
        if axis is None:
            message = "Weights shape must match 'a' shape when axis is None."
        elif weights.shape == tuple([a.shape[i] for i in axes]) and len(axes) == 1:
            weights, message = broadcast_in_dim(weights, a.shape, axes), ""
        else:
            message = "Length of weights not compatible with specified axis."
        if message:
            raise errors.explained(errors.ArgumentError, "quantile.C5", message,
                                   advice=f"Got weights {weights.shape} for {a.shape}.")
    return _flat_axes_last(weights, axes)


def _read_weighted(rows: Any, weights: Any, q: Any, lead: tuple[int, ...]) -> Any:
    """Return the first elements up to which share ``q`` of the weights lies."""
    last, q_rank = len(lead), len(q.shape)
    ordered, weights = sort((rows, weights), dimension=last, num_keys=1)
    sums = cumulative.cumsum(weights, last)
    total = slicing.slice_in_dim(sums, rows.shape[-1] - 1, rows.shape[-1], axis=last)
    q = broadcast_in_dim(q, q.shape + (1,) * (last + 1), tuple(range(q_rank)))
    below = less(sums, multiply(q, total)).astype(np.dtype("int32"))
    place = reduce_total(below, axis=-1, dtype=rows.dtype)
    return _at(ordered, place, scalar(rows.shape[-1] - 1, rows.dtype), lead)


def _read(ordered: Any, q: Any, count: Any, method: str, lead: tuple[int, ...]) -> Any:
    """Return the values of sorted rows at shares ``q`` of the way from first to last."""
    dtype, q_rank = q.dtype, len(q.shape)
    rank = q_rank + len(lead)
    if rank > q_rank:
        q = broadcast_in_dim(q, q.shape + (1,) * len(lead), tuple(range(q_rank)))
    if aval_of(count).ndim and q_rank:
        count = broadcast_in_dim(count, (1,) * q_rank + lead, tuple(range(q_rank, rank)))
    one = scalar(1, dtype)
    last = subtract(count, one)
    place = subtract(multiply(q, count), one) if method == "inverted_cdf" else multiply(q, last)
    low, high = numbers.floor(place), numbers.ceil(place)
    part = ops.sub(place, low)
    if method in ("lower", "linear", "midpoint"):
        below = _at(ordered, low, last, lead)
    if method in ("higher", "linear", "midpoint", "inverted_cdf"):
        above = _at(ordered, high, last, lead)
    if method == "lower":
        return below
    if method in ("higher", "inverted_cdf"):
        return above
    if method == "nearest":
        nearer = if_else(compare.le(part, scalar(0.5, dtype)), low, high)
        return _at(ordered, nearer, last, lead)
    if method == "midpoint":
        return multiply(add(below, above), scalar(0.5, ordered.dtype))
    wide = max(ordered.dtype, dtype, key=dtypes.itemsize_bits)
    below, above, part = strong(below, wide), strong(above, wide), strong(part, wide)
    between = add(multiply(below, ops.sub(scalar(1, wide), part)), multiply(above, part))
    return strong(between, ordered.dtype)


def _at(ordered: Any, place: Any, last: Any, lead: tuple[int, ...]) -> Any:
    """Return the elements of sorted rows at ``place``, whose trailing axes walk with the rows."""
    zero = scalar(0, aval_of(place).dtype)
    if aval_of(last).shape:
        place, last = _together(place, last)
    kept = select.clamp(zero, place, numbers.max(last, zero) if aval_of(last).shape else last)
    index = strong(kept, np.dtype("int32"))
    asked = index.ndim - len(lead)
    if math.prod(index.shape[asked:]) == 1:  # one place in all rows, which may be sharded
        alone = shape.squeeze(index, tuple(range(asked, index.ndim)))
        out = getitem(ordered, (..., alone), mode="promise_in_bounds", wrap_negative_indices=False)
        return permute(out, (*range(len(lead), out.ndim), *range(len(lead))))
    full = index.shape[:asked] + lead
    places = [filling.broadcasted_iota(np.dtype("int32"), full, len(full) - len(lead) + i)
              for i in range(len(lead))]
    if index.shape != full:
        index = broadcast_in_dim(index, full, tuple(range(index.ndim)))
    return getitem(ordered, (*places, index), mode="promise_in_bounds",
                   wrap_negative_indices=False)


def _together(x: Any, y: Any) -> tuple[Any, Any]:
    sizes = broadcast_shapes(x.shape, y.shape)
    dims = tuple(range(len(sizes)))
    return broadcast_in_dim(x, sizes, dims), broadcast_in_dim(y, sizes, dims)

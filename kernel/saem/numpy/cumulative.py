"""What are running sums, and reductions that pass over NaN?

Running sums and products along an axis; and the ``nan`` functions, which put the neutral number in
the place of every NaN and then do as their namesakes.

Read before: ``numpy.reductions``.
Invariant: on arrays without NaN a ``nan`` function equals its namesake
(tests/kernel/numpy/test_reductions.py).
Source: the NumPy reference and the Python array API standard.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.sharded import ShardingTypeError, entries_of
from saem.core.trace import bind
from saem.jit.library import library_function
from saem.numpy import reductions
from saem.numpy.axes import (
    array_argument,
    canonical_axes,
    numbers_may_be_arrays,
    reduced_axes,
    refuse_out,
)
from saem.numpy.promote import broadcast_to, if_else, scalar
from saem.numpy.reductions import requested_dtype, strong, sum_dtype
from saem.ops import arithmetic as ops
from saem.ops import compare, cumulative, maths, reduce
from saem.ops.convert import convert
from saem.ops.linear import BroadcastInDim
from saem.ops.shape import canonical_axis, concatenate, reshape
from saem.typing import Array, ArrayLike, Axis, DTypeLike

INT32 = np.dtype("int32")


def _running(name: str, a: Any, axis: Any, dtype: Any, run: Callable,
             promote_integers: bool = False, neutral: int | None = None) -> Any:
    """Return the running fold of ``a``; NaN counts as ``neutral`` if that is given."""
    a = array_argument(name, a)
    requested = requested_dtype(name, dtype)
    result = requested if requested is not None else sum_dtype(a.dtype, promote_integers)
    if axis is None:
        if any(entries_of(aval_of(a))):
            raise errors.explained(
                ShardingTypeError, f"{name}.S1", "The input should be fully replicated when axis "
                f"is not specified to {name}. Got input type={aval_of(a).str_short()}",
                advice="Name an axis that is not sharded, or reshard: jax.reshard(x, P()).")
        a, axis = reshape(a, (math.prod(a.shape),)), 0
    elif not a.shape and aval_of(a).weak_type:  # a Python number, as NumPy takes it
        a = reshape(a, (1,))
    axis = canonical_axis(axis, aval_of(a).ndim)
    if neutral is not None:
        a = _filled(a, neutral)
    if dtypes.is_bool(result):  # whether any until here is not zero, or all are
        fold = cumulative.cumprod if run is cumulative.cumprod else cumulative.cummax
        return strong(fold(strong(a != 0, INT32), axis), result)
    return run(strong(a, result), axis)


@library_function(static_argnames=("axis", "dtype"))
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
           out: None = None) -> Array:
    """Return the running sum along ``axis``; of the raveled array if None.

    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    refuse_out("cumsum", out)
    return _running("cumsum", a, axis, dtype, cumulative.cumsum)


@library_function(static_argnames=("axis", "dtype"), whole=True)
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
            out: None = None) -> Array:
    """Return the running product along ``axis``; of the raveled array if None.

    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    refuse_out("cumprod", out)
    return _running("cumprod", a, axis, dtype, cumulative.cumprod)


@library_function(static_argnames=("axis", "dtype"))
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
              out: None = None) -> Array:
    """Return the running sum along ``axis`` with NaN counted as 0.

    >>> jnp.nancumsum(jnp.array([2., jnp.nan, 3.]))
    Array([2., 2., 5.], dtype=float32)
    """
    refuse_out("nancumsum", out)
    return _running("nancumsum", a, axis, dtype, cumulative.cumsum, neutral=0)


@library_function(static_argnames=("axis", "dtype"), whole=True)
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
               out: None = None) -> Array:
    """Return the running product along ``axis`` with NaN counted as 1.

    >>> jnp.nancumprod(jnp.array([2., jnp.nan, 3.]))
    Array([2., 2., 6.], dtype=float32)
    """
    refuse_out("nancumprod", out)
    return _running("nancumprod", a, axis, dtype, cumulative.cumprod, neutral=1)


def _standard_running(name: str, what: str, x: Any, axis: Any, dtype: Any, initial: bool,
                      run: Callable, start: int) -> Any:
    x = array_argument(name, x)
    if not x.ndim:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C1",
            f"The input must be non-scalar to take a cumulative {what}, however a scalar value or "
            "scalar array was given.", advice="Give an array of at least one axis.")
    if axis is None:
        if x.ndim > 1:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C2",
                f"The input array has rank {x.ndim}, however axis was not set to an explicit "
                "value. The axis argument is only optional for one-dimensional arrays.",
                advice="Pass axis=0, or ravel the array first.")
        axis = 0
    axis = canonical_axis(axis, x.ndim)
    out = _running(name, x, axis, dtype, run, promote_integers=what == "sum")
    if initial:
        thin = tuple([1 if i == axis else n for i, n in enumerate(x.shape)])
        spread = BroadcastInDim(thin, (), aval_of(out).explicit)
        out = concatenate([bind(spread, scalar(start, out.dtype)), out], axis)
    return out


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "include_initial"))
def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                   include_initial: bool = False) -> Array:
    """Return the running sum along ``axis``, with a 0 in front if ``include_initial``.

    Raises: ValueError for a scalar, or several axes and none named.

    >>> jnp.cumulative_sum(jnp.array([2, 3]), include_initial=True)
    Array([0, 2, 5], dtype=int32)
    """
    return _standard_running("cumulative_sum", "sum", x, axis, dtype, include_initial,
                             cumulative.cumsum, 0)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "include_initial"))
def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                    include_initial: bool = False) -> Array:
    """Return the running product along ``axis``, with a 1 in front if ``include_initial``.

    Raises: ValueError for a scalar, or several axes and none named.

    >>> jnp.cumulative_prod(jnp.array([2, 3]), include_initial=True)
    Array([1, 2, 6], dtype=int32)
    """
    return _standard_running("cumulative_prod", "product", x, axis, dtype, include_initial,
                             cumulative.cumprod, 1)


# -- past NaN --------------------------------------------------------------------------------------


def _filled(a: Any, neutral: Any) -> Any:
    """Return ``a`` with ``neutral`` where it is NaN."""
    if not dtypes.is_inexact(a.dtype):
        return a
    return if_else(compare.ne(a, a), scalar(neutral, a.dtype), a)


@library_function(static_argnames=("axis", "dtype", "keepdims"))
def nansum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """Return the sum over ``axis`` of what is not NaN.

    >>> jnp.nansum(jnp.array([1., jnp.nan, 3.]))
    Array(4., dtype=float32)
    """
    refuse_out("nansum", out)
    return reductions.sum(_filled(array_argument("nansum", a), 0), axis=axis, dtype=dtype,
                          keepdims=keepdims, initial=initial, where=where)


@library_function(static_argnames=("axis", "dtype", "keepdims"), whole=True)
def nanprod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None) -> Array:
    """Return the product over ``axis`` of what is not NaN.

    >>> jnp.nanprod(jnp.array([2., jnp.nan, 3.]))
    Array(6., dtype=float32)
    """
    refuse_out("nanprod", out)
    return reductions.prod(_filled(array_argument("nanprod", a), 1), axis=axis, dtype=dtype,
                           keepdims=keepdims, initial=initial, where=where)


def _nan_extreme(name: str, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any,
                 reduction: Callable, neutral: Callable) -> Any:
    a = array_argument(name, a)
    out = reduction(_filled(a, neutral(a.dtype)), axis=axis, keepdims=keepdims, initial=initial,
                    where=where)
    if initial is not None or not dtypes.is_inexact(a.dtype):
        return out
    nothing = reductions.all(compare.ne(a, a), axis=axis, keepdims=keepdims)
    return if_else(nothing, scalar(math.nan, aval_of(out).dtype), out)


@library_function(static_argnames=("axis", "keepdims"))
def nanmax(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """Return the largest over ``axis`` of what is not NaN; NaN if all is.

    >>> jnp.nanmax(jnp.array([1., jnp.nan, 3.]))
    Array(3., dtype=float32)
    """
    refuse_out("nanmax", out)
    return _nan_extreme("nanmax", a, axis, keepdims, initial, where, reductions.max, reduce.lowest)


@library_function(static_argnames=("axis", "keepdims"))
def nanmin(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """Return the smallest over ``axis`` of what is not NaN; NaN if all is.

    >>> jnp.nanmin(jnp.array([1., jnp.nan, 3.]))
    Array(1., dtype=float32)
    """
    refuse_out("nanmin", out)
    return _nan_extreme("nanmin", a, axis, keepdims, initial, where, reductions.min, reduce.highest)


@library_function(static_argnames=("axis", "dtype", "keepdims"))
def nanmean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """Return the mean over ``axis`` of what is not NaN.

    >>> jnp.nanmean(jnp.array([1., jnp.nan, 3.]))
    Array(2., dtype=float32)
    """
    refuse_out("nanmean", out)
    a = array_argument("nanmean", a)
    if not dtypes.is_inexact(a.dtype):
        return reductions.mean(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    requested = requested_dtype("nanmean", dtype)
    result = requested if requested is not None else dtypes.to_inexact(a.dtype)
    known = compare.eq(a, a)
    count = reductions.sum(known, axis=axis, dtype=result, keepdims=keepdims, where=where)
    total = nansum(a, axis=axis, dtype=result, keepdims=keepdims, where=where)
    return ops.div(total, count)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "ddof", "keepdims"), whole=True)
def nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           ddof: int = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: ArrayLike | None = None) -> Array:
    """Return the variance over ``axis`` of what is not NaN.

    >>> jnp.nanvar(jnp.array([1., jnp.nan, 3.]))
    Array(1., dtype=float32)
    """
    refuse_out("nanvar", out)
    a = array_argument("nanvar", a)
    requested = requested_dtype("nanvar", dtype)
    if requested is not None and dtypes.is_integer(requested) and not dtypes.is_complex(a.dtype):
        whole = reductions.var(convert(a, requested), axis=axis, dtype=requested, ddof=ddof,
                               keepdims=keepdims, where=where, mean=mean)
        return convert(whole, requested)
    axes, mixed = reduced_axes(axis, a.ndim)
    if dtypes.is_inexact(a.dtype):
        known = compare.eq(a, a)
        where = known if where is None else if_else(where, known, scalar(False, known.dtype))
        a = broadcast_to(_filled(a, 0), aval_of(where).shape)  # where may have more axes
    return reductions.var(a, axis=mixed or axes, dtype=dtype, ddof=ddof, keepdims=keepdims,
                          where=where, mean=mean)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "ddof", "keepdims"), whole=True)
def nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           ddof: int = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: ArrayLike | None = None) -> Array:
    """Return the standard deviation over ``axis`` of what is not NaN.

    >>> jnp.nanstd(jnp.array([1., jnp.nan, 3.]))
    Array(1., dtype=float32)
    """
    refuse_out("nanstd", out)
    return maths.sqrt(nanvar(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=where,
                             mean=mean))


def _nan_place(name: str, a: Any, axis: Any, keepdims: Any, find: Callable, neutral: Any) -> Any:
    a = array_argument(name, a)
    if not dtypes.is_inexact(a.dtype):
        return find(a, axis=axis, keepdims=keepdims)
    unknown = compare.ne(a, a)
    place = find(if_else(unknown, scalar(neutral, a.dtype), a), axis=axis, keepdims=keepdims)
    axes = canonical_axes(axis, a.ndim)
    nothing = reductions.all(unknown, axis=axes, keepdims=bool(keepdims))
    return if_else(nothing, scalar(-1, place.dtype), place)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None,
              keepdims: bool | None = None) -> Array:
    """Return the place of the largest along ``axis`` that is not NaN; -1 if all is.

    >>> jnp.nanargmax(jnp.array([1., jnp.nan, 3.]))
    Array(2, dtype=int32)
    """
    refuse_out("nanargmax", out)
    return _nan_place("nanargmax", a, axis, keepdims, reductions.argmax, -math.inf)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None,
              keepdims: bool | None = None) -> Array:
    """Return the place of the smallest along ``axis`` that is not NaN; -1 if all is.

    >>> jnp.nanargmin(jnp.array([jnp.nan, 1., 3.]))
    Array(1, dtype=int32)
    """
    refuse_out("nanargmin", out)
    return _nan_place("nanargmin", a, axis, keepdims, reductions.argmin, math.inf)

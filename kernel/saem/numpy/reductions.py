"""How do many numbers become one?

Sums, means, extremes and truth along axes, and the places where they are found.  Small integers
are summed in the default integer type, half floats in float32, as NumPy's users expect.

Read before: ``numpy.axes``, ``ops.reduce``.  Read after: ``numpy.cumulative``.
Invariant: results are never weakly typed; with ``keepdims`` they broadcast against the argument
(tests/kernel/numpy/test_reductions.py).
Source: the NumPy reference of the functions of these names.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import Dim, larger
from saem.core.lazy import later
from saem.core.naming import called
from saem.jit.library import library_function
from saem.numpy import arithmetic
from saem.numpy.axes import (
    array_argument,
    as_array,
    canonical_axes,
    keep_axes,
    numbers_may_be_arrays,
    reduced_axes,
    refuse_out,
)
from saem.numpy.promote import (
    BOOL,
    FLOAT32,
    broadcast_to,
    broadcast_together,
    convert_value,
    if_else,
    promote_args,
    scalar,
)
from saem.ops import arithmetic as ops
from saem.ops import compare, maths, numbers, reduce
from saem.ops.convert import convert
from saem.ops.linear import reduce_sum
from saem.ops.shape import canonical_axis, reshape
from saem.typing import Array, ArrayLike, Axis, DTypeLike

collectives: Any = later("saem.ops.collectives")  # reductions over named axes alone need them

# -- shared steps ----------------------------------------------------------------------------------


def strong(x: Any, dtype: Any) -> Any:
    """Return ``x`` in ``dtype``, not weak; ``x`` itself if it is that."""
    return convert_value(x, dtype, False)


def as_truth(x: Any) -> Any:
    """Return where ``x`` is not zero."""
    return convert(x, BOOL)


def requested_dtype(name: str, dtype: Any) -> Any:
    """Return the canonical dtype of a ``dtype`` argument, None for None."""
    return None if dtype is None else dtypes.canonicalize(dtype, explicit=True, where=name)


def sum_dtype(dtype: Any, promote_integers: bool = True) -> Any:
    """Return the dtype of a sum of ``dtype``: small integers become the default integer."""
    if dtypes.is_bool(dtype):
        return dtypes.default_dtype(int)
    if promote_integers and dtypes.is_integer(dtype):
        wide = dtypes.default_dtype(int)
        if dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(wide):
            return np.dtype(f"uint{8 * wide.itemsize}") if dtypes.is_unsigned(dtype) else wide
    return dtypes.computed(dtype)


@functools.cache
def wide_dtype(dtype: Any) -> Any:
    """Return float32 for floats of 16 bits, which are computed in it; else ``dtype``."""
    narrow = dtypes.is_float(dtype) and dtypes.itemsize_bits(dtype) == 16
    return FLOAT32 if narrow else dtype


def masked(name: str, x: Any, where: Any, neutral: Any) -> Any:
    """Return ``x`` with ``neutral`` where ``where`` is false, both broadcast.

    Raises: ValueError if ``where`` is not boolean.
    """
    if where is None:
        return x
    where = array_argument(name, where)
    if not dtypes.is_bool(aval_of(where).dtype):
        raise errors.explained(
            errors.ArgumentError, f"{name}.where",
            f"jnp.{name}: where must be None or a boolean array; got "
            f"where.dtype={aval_of(where).dtype!r}.",
            advice="Compare first, for example where=x > 0.")
    return if_else(where, x, scalar(neutral, aval_of(x).dtype))


def folded(name: str, x: Any, axes: tuple[int, ...], keepdims: bool, fold: Callable,
           where: Any, neutral: Any, mixed: tuple[int | str, ...] = ()) -> Any:
    """Return ``x`` masked, folded over ``axes``, or all ``mixed`` ones; axes kept on request.

    Raises: NotImplementedError for a fold along named axes that is no sum and no extreme.
    """
    if where is not None:
        x = masked(name, x, where, neutral)
    if mixed:
        out = across(name, fold)(x, mixed)
    else:
        out = fold(x, axes) if axes else x
    return keep_axes(out, aval_of(x).shape, axes) if keepdims else out


def across(name: str, fold: Callable) -> Callable:
    """Return what folds over the named axes of mapped functions as ``fold`` does over axes."""
    same = {reduce_sum: collectives.psum, reduce.reduce_max: collectives.pmax,
            reduce.reduce_min: collectives.pmin}
    if fold not in same:
        raise errors.explained(
            NotImplementedError, f"{name}.named",
            f"Named reductions not implemented for jnp.{name}()",
            advice="Gather the values first: jax.lax.all_gather(x, axis_name).")
    return same[fold]


def start_with(out: Any, initial: Any, combine: Callable) -> Any:
    """Return ``out`` combined with the scalar ``initial``, in the dtype of ``out``.

    Raises: ValueError if ``initial`` has axes.
    """
    if initial is None:
        return out
    if aval_of(initial).shape:
        raise errors.explained(
            errors.ArgumentError, "reduce.initial",
            f"initial value must be a scalar. Got array of shape {aval_of(initial).shape}",
            advice="Combine an array with the result afterwards.")
    dtype = aval_of(out).dtype
    number = isinstance(initial, (builtins.bool, int, float, complex, np.generic))
    start = scalar(initial, dtype) if number else strong(initial, dtype)
    return combine(start, out)


def _total(name: str, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any,
           promote_integers: bool, fold: Callable, neutral: int, combine: Callable) -> Any:
    a = array_argument(name, a)
    aval = aval_of(a)
    if dtypes.is_extended(aval.dtype):
        raise errors.explained(
            errors.DTypeError, f"{name}.C1",
            f"{name} does not accept dtype {dtypes.short_name(aval.dtype)}.",
            advice="PRNG keys take part in no arithmetic.")
    result = (sum_dtype(aval.dtype, promote_integers) if dtype is None
              else requested_dtype(name, dtype))
    axes, mixed = reduced_axes(axis, len(aval.shape))
    if dtypes.is_bool(result):  # whether any is not zero, or all are
        whether = folded(name, a != 0, axes, keepdims, reduce.reduce_and if neutral else
                         reduce.reduce_or, where, neutral, mixed)
        return start_with(whether, None if initial is None else initial != 0, combine)
    work = wide_dtype(result) if dtype is None else result  # a dtype asked for is computed in
    out = folded(name, strong(a, work), axes, keepdims, fold, where, neutral, mixed)
    if initial is not None:
        out = start_with(out, initial, combine)
    return out if work is result else strong(out, result)


# -- sums and products -----------------------------------------------------------------------------


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "keepdims", "promote_integers"))
def sum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
        promote_integers: bool = True) -> Array:
    """Return the sum over ``axis`` (all axes if None).

    Raises: TypeError for lists; ValueError for an axis that does not exist.

    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
    """
    refuse_out("sum", out)
    return _total("sum", a, axis, dtype, keepdims, initial, where, promote_integers,
                  reduce_sum, 0, arithmetic.add)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "keepdims", "promote_integers"), whole=True)
def prod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
         keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
         promote_integers: bool = True) -> Array:
    """Return the product over ``axis`` (all axes if None).

    >>> jnp.prod(jnp.array([2, 3, 4]))
    Array(24, dtype=int32)
    """
    refuse_out("prod", out)
    return _total("prod", a, axis, dtype, keepdims, initial, where, promote_integers,
                  reduce.reduce_prod, 1, arithmetic.multiply)


@library_function(static_argnames=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return how many elements along ``axis`` are not zero.

    >>> jnp.count_nonzero(jnp.array([0, 3, 4]))
    Array(2, dtype=int32)
    """
    a = array_argument("count_nonzero", a)
    truth = a if dtypes.is_bool(a.dtype) else compare.ne(a, scalar(0, a.dtype))
    return sum(truth, axis=axis, keepdims=keepdims)


# -- extremes --------------------------------------------------------------------------------------


def _extreme(name: str, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any,
             fold: Callable, neutral: Callable, combine: Callable) -> Any:
    a = array_argument(name, a)
    aval = aval_of(a)
    axes, mixed = reduced_axes(axis, aval.ndim)
    if initial is None:
        if where is not None:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C2",
                f"reduction operation {name} does not have an identity, so to use a where mask "
                "one has to specify 'initial'",
                advice=f"For example jnp.{name}(x, where=w, initial=0).")
        if math.prod([aval.shape[i] for i in axes]) == 0:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C3",
                f"zero-size array to reduction operation {name} which has no identity",
                advice=f"Pass initial=, the {name} of no elements.")
    dtype = dtypes.computed(aval.dtype)
    out = folded(name, strong(a, dtype), axes, keepdims, fold, where, neutral(dtype), mixed)
    return start_with(out, initial, combine)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def max(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """Return the largest over ``axis`` (all axes if None); NaN if there is one.

    Raises: ValueError for no elements, or ``where`` without ``initial``.

    >>> jnp.amax(jnp.array([[1, 5], [3, 2]]), axis=0)
    Array([3, 5], dtype=int32)
    """
    refuse_out("max", out)
    return _extreme("max", a, axis, keepdims, initial, where, reduce.reduce_max, reduce.lowest,
                    _greater)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def min(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """Return the smallest over ``axis`` (all axes if None); NaN if there is one.

    Raises: ValueError for no elements, or ``where`` without ``initial``.

    >>> jnp.amin(jnp.array([[1, 5], [3, 2]]), axis=0)
    Array([1, 2], dtype=int32)
    """
    refuse_out("min", out)
    return _extreme("min", a, axis, keepdims, initial, where, reduce.reduce_min, reduce.highest,
                    _lesser)


def _greater(x: Any, y: Any) -> Any:
    return numbers.max(x, y)


def _lesser(x: Any, y: Any) -> Any:
    return numbers.min(x, y)


amax = called("amax", max)
amin = called("amin", min)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the largest minus the smallest over ``axis``.

    >>> jnp.ptp(jnp.array([3, 9, 5]))
    Array(6, dtype=int32)
    """
    refuse_out("ptp", out)
    a = array_argument("ptp", a)
    return ops.sub(max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims))


# -- truth -----------------------------------------------------------------------------------------


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def all(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Return whether all elements over ``axis`` are true; true for none.

    >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    refuse_out("all", out)
    a = as_truth(array_argument("all", a))
    axes, mixed = reduced_axes(axis, a.ndim)
    return folded("all", a, axes, keepdims, reduce.reduce_and, where, True, mixed)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def any(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Return whether any element over ``axis`` is true; false for none.

    >>> jnp.any(jnp.array([[True, False], [False, False]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    refuse_out("any", out)
    a = as_truth(array_argument("any", a))
    axes, mixed = reduced_axes(axis, a.ndim)
    return folded("any", a, axes, keepdims, reduce.reduce_or, where, False, mixed)


# -- averages --------------------------------------------------------------------------------------


def count_along(shape: tuple[int, ...], axes: tuple[int, ...], mixed: tuple[int | str, ...]) -> Any:
    """Return how many elements lie along ``axes`` and the named ones among ``mixed``."""
    number = math.prod([shape[i] for i in axes])
    names = tuple([a for a in mixed if isinstance(a, str)])
    return number * collectives.axis_size(names) if names else number


def _count(shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any, where: Any,
           keepdims: bool, mixed: tuple[int | str, ...]) -> Any:
    """Return how many elements a mean is over: a number, or an array if there is a ``where``."""
    if where is None:
        return scalar(count_along(shape, axes, mixed), dtype)
    return sum(broadcast_to(where, shape), axis=mixed or axes, dtype=dtype, keepdims=keepdims)


def refuse_boolean(name: str, requested: Any) -> None:
    """Refuse to divide booleans.  Raises: TypeError for a ``dtype`` of bool."""
    if requested is not None and dtypes.is_bool(requested):
        raise errors.explained(
            errors.DTypeError, f"{name}.dtype", f"{name} does not accept dtype bool: a mean of "
            "booleans is no boolean.", advice="Leave dtype out, or pass jnp.float32.")


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "keepdims"))
def mean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
         keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """Return the mean over ``axis`` (all axes if None), NaN for no elements.

    Raises: TypeError for lists; ValueError for an axis that does not exist.

    >>> jnp.mean(jnp.array([1, 2, 6]))
    Array(3., dtype=float32)
    """
    refuse_out("mean", out)
    a = array_argument("mean", a)
    requested = requested_dtype("mean", dtype)
    result = requested if requested is not None else dtypes.to_inexact(a.dtype)
    refuse_boolean("mean", requested)
    work = wide_dtype(result) if requested is None else result  # computed in what was asked
    axes, mixed = reduced_axes(axis, a.ndim)
    total = folded("mean", strong(a, work), axes, keepdims, reduce_sum, where, 0, mixed)
    return strong(ops.div(total, _count(a.shape, axes, work, where, keepdims, mixed)), result)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "returned", "keepdims"))
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Array | tuple[Array, Array]:
    """Return the mean over ``axis``, each element counted ``weights`` times.

    Raises: ValueError if ``weights`` has neither the shape of ``a`` nor that of its axis.

    >>> jnp.average(jnp.array([1., 3.]), weights=jnp.array([3., 1.]))
    Array(1.5, dtype=float32)
    """
    if weights is None:
        a = array_argument("average", a)
        out = mean(a, axis=axis, keepdims=keepdims)
        if not returned:
            return out
        axes = canonical_axes(axis, a.ndim)
        count = scalar(math.prod([a.shape[i] for i in axes]), out.dtype)
        return out, broadcast_to(count, out.shape)
    a, weights = array_argument("average", a, weights)
    weights = _weights_like(a, axis, weights)
    a, weights = _inexact_pair(a, weights)
    total = sum(weights, axis=axis, keepdims=keepdims)
    out = ops.div(*promote_args("average", sum(ops.mul(a, weights), axis=axis,
                                               keepdims=keepdims), total))
    return (out, broadcast_to(total, out.shape)) if returned else out


def _inexact_pair(a: Any, b: Any) -> Any:
    a, b = promote_args("average", a, b)
    dtype = dtypes.to_inexact(a.dtype)
    return strong(a, dtype), strong(b, dtype)


def _weights_like(a: Any, axis: Any, weights: Any) -> Any:
    """Return ``weights`` reshaped to broadcast against ``a``."""
    if a.shape == weights.shape:
        return weights
    if axis is None:
        raise errors.explained(
            errors.ArgumentError, "average.C1",
            "Axis must be specified when shapes of a and weights differ.",
            advice=f"a has shape {a.shape}, weights has {weights.shape}.")
    axes = canonical_axes(axis, a.ndim)
    if weights.shape != tuple([a.shape[i] for i in axes]):
        raise errors.explained(
            errors.ArgumentError, "average.C2",
            "Shape of weights must be consistent with shape of a along specified axis.",
            advice=f"a has shape {a.shape}, weights has {weights.shape}, axis is {axis}.")
    order = tuple(int(i) for i in np.argsort(axes))
    shape = tuple([n if i in axes else 1 for i, n in enumerate(a.shape)])
    ordered = weights if order == tuple(range(len(order))) else weights.transpose(order)
    return reshape(ordered, shape)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "ddof", "keepdims", "correction"),
                  same_rounding=True)
def var(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: int = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: float | None = None) -> Array:
    """Return the mean squared distance from the mean; the count is lessened by ``ddof``.

    Raises: ValueError for both ``ddof`` and ``correction``, or a real ``dtype`` for complex ``a``.

    >>> jnp.var(jnp.array([1., 3.]))
    Array(1., dtype=float32)
    """
    refuse_out("var", out)
    return _variance("var", a, axis, dtype, _degrees(ddof, correction), keepdims, where, mean)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "dtype", "ddof", "keepdims", "correction"),
                  same_rounding=True)
def std(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: int = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: float | None = None) -> Array:
    """Return the square root of the variance.

    Raises: as ``var``.

    >>> jnp.std(jnp.array([1., 3.]))
    Array(1., dtype=float32)
    """
    refuse_out("std", out)
    requested = requested_dtype("std", dtype)
    if requested is not None and not dtypes.is_inexact(requested):
        raise errors.explained(
            errors.ArgumentError, "std.C1",
            f"dtype argument to jnp.std must be inexact; got {requested}",
            advice="Leave it out, or pass jnp.float32.")
    return maths.sqrt(_variance("std", a, axis, dtype, _degrees(ddof, correction), keepdims,
                                where, mean))


def _degrees(ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if ddof:
        raise errors.explained(
            errors.ArgumentError, "var.C1",
            "ddof and correction can't be provided simultaneously.",
            advice="They are two names of one number; pass one.")
    return correction


def _variance_dtypes(name: str, dtype: Any, requested: Any) -> tuple[Any, Any]:
    """Return the dtype a variance is computed in and that of its result."""
    if requested is None:
        work = dtypes.to_inexact(dtype)
        return wide_dtype(work), dtypes.real_dtype(work)
    if dtypes.is_complex(dtype) and not dtypes.is_complex(requested):
        raise errors.explained(
            errors.ArgumentError, f"{name}.C2",
            f"jax.numpy.{name} does not yet support real dtype parameters when computing the "
            "variance of an array of complex values.",
            advice="Leave dtype out: the variance of complex numbers is real.")
    refuse_boolean(name, requested)
    if dtypes.is_integer(requested):
        return requested, requested
    return wide_dtype(dtypes.to_inexact(requested)), dtypes.to_inexact(requested)


def _variance(name: str, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any,
              center: Any) -> Any:
    a = array_argument(name, a)
    work, result = _variance_dtypes(name, a.dtype, requested_dtype(name, dtype))
    axes, mixed = reduced_axes(axis, a.ndim)
    a = strong(a, work)
    if center is None:
        center = mean(a, axis=mixed or axes, dtype=work, keepdims=True, where=where)
    centered = ops.sub(*promote_args(name, a, center))
    if dtypes.is_complex(work):
        squares = numbers.real(ops.mul(centered, numbers.conj(centered)))
    else:
        squares = maths.square(centered)
    real = dtypes.real_dtype(work)
    total = folded(name, squares, axes, keepdims, reduce_sum, where, 0, mixed)
    if dtypes.is_integer(work):
        return _whole_variance(total, _count(a.shape, axes, real, where, keepdims, mixed), ddof)
    if where is None and isinstance(ddof, (int, float, np.generic)):
        count = count_along(a.shape, axes, mixed) - ddof
        # Where the size is not known, a count of 0 divides a sum of 0, which is NaN, too.
        divisor = larger(count, 0) if type(count) is Dim else count if count > 0 else math.nan
        return strong(ops.div(total, scalar(divisor, real)), result)
    count = _less(_count(a.shape, axes, real, where, keepdims, mixed), ddof)
    known = compare.gt(count, scalar(0, real))
    quotient = strong(ops.div(*broadcast_together(total, count)), result)
    return if_else(known, quotient, scalar(math.nan, result))


def _less(count: Any, ddof: Any) -> Any:
    """Return ``count`` lessened by ``ddof``, a number or an array."""
    dtype = aval_of(count).dtype
    if isinstance(ddof, (int, float, np.generic)):
        return ops.sub(count, scalar(ddof, dtype))
    return ops.sub(*broadcast_together(count, convert(as_array(ddof), dtype)))


def _whole_variance(total: Any, count: Any, ddof: Any) -> Any:
    """Return total / (count - ddof) rounded towards zero, as a float that is weak; NaN for 0."""
    whole, weak = aval_of(total).dtype, dtypes.default_dtype(float)
    count = _less(count, ddof)
    known = compare.gt(count, scalar(0, whole))
    quotient = ops.div(*broadcast_together(total, count))
    return if_else(known, convert(quotient, weak, weak_type=True),
                   convert(math.nan, weak, weak_type=True))


# -- places ----------------------------------------------------------------------------------------


def _place(name: str, a: Any, axis: Any, keepdims: Any, find: Callable) -> Any:
    a = array_argument(name, a)
    if dtypes.is_complex(a.dtype):
        order = "gt" if name == "argmax" else "lt"
        raise errors.explained(
            errors.DTypeError, f"{name}.C2",
            f"{order} does not accept dtype {a.dtype.name} at position 0. Accepted dtypes at "
            "position 0 are subtypes of integer, floating, bool.",
            advice="Complex numbers have no order: compare their absolute values with jnp.abs.")
    shape = a.shape
    if axis is None:
        x, dim, axes = reshape(a, (math.prod(shape),)), 0, tuple(range(len(shape)))
    else:
        dim = canonical_axis(axis, len(shape))
        x, axes = a, (dim,)
    if aval_of(x).shape[dim] == 0:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C1", f"attempt to get {name} of an empty sequence",
            advice="There is no place in nothing; check x.size first.")
    out = find(x, dim, dtypes.default_dtype(int))
    return keep_axes(out, shape, axes) if keepdims else out


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def argmax(a: ArrayLike, axis: int | None = None, out: None = None,
           keepdims: bool | None = None) -> Array:
    """Return the first place of the largest along ``axis``; of the raveled array if None.

    Raises: ValueError for no elements.

    >>> jnp.argmax(jnp.array([2, 7, 5]))
    Array(1, dtype=int32)
    """
    refuse_out("argmax", out)
    return _place("argmax", a, axis, keepdims, reduce.argmax)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims"))
def argmin(a: ArrayLike, axis: int | None = None, out: None = None,
           keepdims: bool | None = None) -> Array:
    """Return the first place of the smallest along ``axis``; of the raveled array if None.

    Raises: ValueError for no elements.

    >>> jnp.argmin(jnp.array([2, 7, 5]))
    Array(0, dtype=int32)
    """
    refuse_out("argmin", out)
    return _place("argmin", a, axis, keepdims, reduce.argmin)

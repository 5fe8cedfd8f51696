"""How are elements taken, or put, at places that an array gives?

``take`` and related functions read along an axis; ``put`` and related functions return an array
with other values there; flat and multi-dimensional places are turned into each other.

Read before: ``numpy.indexing``, ``numpy.searching``.
Invariant: nothing is changed in place; where JAX fills out-of-range places with NaN, so does this
(tests/kernel/numpy/test_ordering.py).
Source: the NumPy reference; the documentation of jax.numpy.take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import config, dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import Dim
from saem.core.frames import boundary
from saem.core.lazy import later
from saem.core.trace import Tracer, concrete_or_none
from saem.jit.library import library_function
from saem.numpy import reductions
from saem.numpy.arithmetic import add, floor_divide, multiply, remainder, subtract
from saem.numpy.axes import array_argument, as_array, numbers_may_be_arrays, refuse_out
from saem.numpy.indexing import getitem, scatter_update
from saem.numpy.manipulation import ravel
from saem.numpy.promote import (
    broadcast_shapes,
    broadcast_to,
    broadcasts,
    check_arraylike,
    convert_value,
    if_else,
    promote_dtypes,
    scalar,
    weakly_like,
)
from saem.numpy.reductions import as_truth, strong
from saem.numpy.searching import nonzero
from saem.ops import compare, filling, select, shape, slicing
from saem.ops.convert import holding
from saem.ops.gather import gather
from saem.ops.shape import canonical_axis
from saem.ops.windows import GatherDimensionNumbers
from saem.typing import Array, ArrayLike, DTypeLike, Shape

mapping: Any = later("saem.transform.mapping")

TAKE_MODES = (None, "fill", "clip", "wrap")

_WHOLE = slice(None)


# -- taking ----------------------------------------------------------------------------------------


@numbers_may_be_arrays
@library_function(
    static_argnames=("axis", "mode", "unique_indices", "indices_are_sorted", "fill_value"))
def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
         mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
         fill_value: ArrayLike | None = None) -> Array:
    """Return the elements of ``a`` at ``indices`` along ``axis``; of the raveled array if None.

    ``mode`` for places out of range: 'fill' (the default: NaN, or ``fill_value``), 'clip', 'wrap'.
    Raises: ValueError for indices that are no integers; IndexError for taking from nothing.

    >>> jnp.take(jnp.array([5, 6, 7]), jnp.array([2, 0]))
    Array([7, 5], dtype=int32)
    """
    refuse_out("take", out)
    a, indices = array_argument("take", a, indices)
    if mode == "raise":
        raise errors.explained(NotImplementedError, "take.mode",
                               "The 'raise' mode to jnp.take is not supported.",
                               advice="Values are not known while a program is compiled.")
    if mode not in TAKE_MODES:
        raise errors.explained(errors.ArgumentError, "take.mode",
                               f"Invalid mode '{mode}' for np.take",
                               advice="Use 'fill', 'clip' or 'wrap'.")
    if dtypes.is_bool(indices.dtype):
        indices = strong(indices, dtypes.default_dtype(int))
    if not dtypes.is_integer(indices.dtype):
        raise errors.explained(errors.ArgumentError, "take.C1", "indices must have an integer type",
                               advice="Convert them: indices.astype(int).")
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, a.ndim)
    size = a.shape[axis]
    if not size and math.prod(indices.shape):
        raise errors.explained(IndexError, "take.C2",
                               "Cannot do a non-empty jnp.take() from an empty axis.",
                               advice="Check x.shape first.")
    if mode == "wrap":
        indices = holding(indices, size)
        indices, mode = remainder(indices, scalar(size, indices.dtype)), "promise_in_bounds"
    wraps = mode in (None, "fill")
    return getitem(a, (_WHOLE,) * axis + (indices,), mode=mode or "fill", fill_value=fill_value,
                   indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                   wrap_negative_indices=wraps)


@library_function(static_argnames=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, mode: Any = None,
                    fill_value: ArrayLike | None = None, *,
                    wrap_negative_indices: bool | None = None) -> Array:
    """Return for each place of ``indices`` the element of ``arr`` there along ``axis``.

    The other axes of both broadcast together.  Out of range: NaN, or by ``mode``; the mode
    'one_hot' multiplies by ones and zeros instead of gathering, and gives 0 out of range.
    Raises: TypeError for indices that are no integers; ValueError for ranks that differ.

    >>> jnp.take_along_axis(jnp.array([[5, 6], [7, 8]]), jnp.array([[1], [0]]), 1)
    Array([[6],
           [7]], dtype=int32)
    """
    arr, indices = array_argument("take_along_axis", arr, indices)
    if not dtypes.is_integer(indices.dtype):
        raise errors.explained(
            errors.ArgumentTypeError, "take_along_axis.C1",
            f"take_along_axis indices must be of integer type, got {indices.dtype}",
            advice="Convert them: indices.astype(int).")
    if axis is None:
        if indices.ndim != 1:
            raise errors.explained(
                errors.ArgumentError, "take_along_axis.C2",
                "take_along_axis indices must be 1D if axis=None, got shape "
                f"{indices.shape}", advice="Ravel them.")
        arr, axis = ravel(arr), 0
    if arr.ndim != indices.ndim:
        raise errors.explained(
            errors.ArgumentError, "take_along_axis.C3",
            "indices and arr must have the same number of dimensions; "
            f"{indices.ndim} vs. {arr.ndim}", advice="Add an axis: indices[:, None].")
    axis = canonical_axis(axis, arr.ndim)
    indices = holding(indices, arr.shape[axis])
    if wrap_negative_indices is not False:
        zero, size = scalar(0, indices.dtype), scalar(arr.shape[axis], indices.dtype)
        indices = select.select_n(compare.lt(indices, zero), indices, add(indices, size))
    if mode == "one_hot":
        return _by_products(arr, indices, axis)
    return _gather_along(arr, indices, axis, mode, fill_value)


def _by_products(arr: Any, indices: Any, axis: int) -> Any:
    """Return the elements as sums along ``axis`` of which one term remains; 0 for a place outside.

    Accelerators that gather slowly do this fast.
    """
    places = shape.expand_dims(indices, (axis + 1,))
    values = shape.expand_dims(arr, (axis,))
    sizes = broadcast_shapes(places.shape, values.shape)
    here = compare.eq(broadcast_to(places, sizes),
                      filling.broadcasted_iota(indices.dtype, sizes, axis + 1))
    zeros = filling.full(sizes, 0, arr.dtype)
    chosen = select.select_n(here, zeros, broadcast_to(values, sizes))
    return reductions.sum(chosen, axis=axis + 1, dtype=arr.dtype)


def _gather_along(arr: Any, indices: Any, axis: int, mode: Any, fill_value: Any) -> Any:
    """Gather with the axes both have as batch axes, and an axis of size 1 of indices whole."""
    others = [i for i in range(arr.ndim) if i != axis]
    broadcast_shapes(*[tuple([s for i, s in enumerate(x.shape) if i != axis])
                       for x in (arr, indices)])
    # Along an axis where arr has size 1 and indices has not, all read the same.
    thin = [i for i in others if arr.shape[i] == 1 and indices.shape[i] != 1]
    if thin:
        wide = tuple([indices.shape[i] if i in thin else n for i, n in enumerate(arr.shape)])
        arr = broadcast_to(arr, wide)
    if 0 in indices.shape or not arr.shape[axis]:
        return filling.full(broadcast_shapes(*[
            tuple([indices.shape[axis] if i == axis else s for i, s in enumerate(x.shape)])
            for x in (arr, indices)]), 0, arr.dtype)
    whole = [i for i in others if indices.shape[i] == 1]
    batch = [i for i in others if i not in whole]
    kept = [n for i, n in enumerate(indices.shape) if i not in whole]
    starts = shape.reshape(indices, (*kept, 1))
    walked = [i for i in range(arr.ndim) if i not in whole]
    numbers = GatherDimensionNumbers(
        tuple(whole), (axis,), (axis,), tuple(batch), tuple([walked.index(i) for i in batch]))
    sizes = [arr.shape[i] if i in whole else 1 for i in range(arr.ndim)]
    return gather(arr, starts, numbers, sizes, mode=mode or "fill", fill_value=fill_value)


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *,
             size: int | None = None, fill_value: ArrayLike = 0, out: None = None) -> Array:
    """Return the slices of ``a`` along ``axis`` where ``condition`` is true.

    Under jit their number must be given as ``size``; missing ones are ``fill_value``.
    Raises: ValueError if true conditions lie beyond the axis; ConcretizationTypeError.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    refuse_out("compress", out)
    condition, a = array_argument("compress", condition, a)
    if condition.ndim != 1:
        raise errors.explained(errors.ArgumentError, "compress.C1",
                               "condition must be a 1D array", advice="Ravel it.")
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, a.ndim)
    length = a.shape[axis]
    known = concrete_or_none(condition)
    # A traced condition that nothing says a size for is refused here, as a condition of Python's.
    if size is None and (known is None or config.staging.value):
        bool(getitem(condition, slice(length, None)).any())
    if known is not None and condition.shape[0] > length and np.asarray(known)[length:].any():
        raise errors.explained(
            errors.ArgumentError, "compress.C2",
            "condition contains entries that are out of bounds",
            advice=f"Only {length} elements lie along axis {axis}.")
    condition = slicing.slice_in_dim(condition, 0, min(length, condition.shape[0]))
    (places,) = nonzero(condition, size=size, fill_value=length)
    known = None if isinstance(fill_value, Tracer) else fill_value
    found = getitem(a, (_WHOLE,) * axis + (places,), mode="fill", fill_value=known)
    if known is not None:
        return found
    there = shape.expand_dims(compare.lt(places, scalar(length, places.dtype)),
                              tuple(range(1, a.ndim - axis)))
    value = convert_value(fill_value, found.dtype, False)
    return if_else(there, found, broadcast_to(value, found.shape))


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike = 0) -> Array:
    """Return the elements of the raveled ``arr`` where the raveled ``condition`` is true.

    >>> jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    condition, arr = array_argument("extract", condition, arr)
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


# -- putting ---------------------------------------------------------------------------------------


def refuse_inplace(name: str, inplace: bool) -> None:
    """Refuse NumPy's default, to change the argument.

    Raises: ValueError unless ``inplace`` is False.
    """
    if inplace:
        raise errors.explained(
            errors.ArgumentError, f"{name}.inplace",
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array.",
            advice=f"x = jnp.{name}(x, ..., inplace=False)")


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *,
        inplace: bool = True) -> Array:
    """Return ``a`` with the raveled places ``ind`` set to ``v``, repeated as needed.

    Places beyond the end mean the last one, unless ``mode`` is 'wrap'.
    Raises: ValueError unless ``inplace`` is False, or for an unknown mode; NotImplementedError for
    the mode 'raise'.

    >>> jnp.put(jnp.zeros(3), jnp.array([0, 2]), jnp.array([1., 2.]), inplace=False)
    Array([1., 0., 2.], dtype=float32)
    """
    refuse_inplace("put", inplace)
    a, ind, v = array_argument("put", a, ind, v)
    if mode == "raise":
        raise errors.explained(NotImplementedError, "put.mode",
                               "The 'raise' mode to jnp.put is not supported.",
                               advice="Values are not known while a program is compiled.")
    if mode not in (None, "clip", "wrap"):
        raise errors.explained(
            errors.ArgumentError, "put.mode",
            f"mode should be one of 'wrap' or 'clip'; got mode='{mode}'",
            advice="Use x.at[i].set(v, mode=...) for others.")
    return _put(a, ind, v, mode=mode)


@library_function(static_argnames=("mode",))
def _put(a: Any, ind: Any, v: Any, mode: str | None) -> Any:
    places, values, flat = ravel(ind), ravel(v), ravel(a)
    if not places.shape[0] or not values.shape[0] or not flat.shape[0]:
        return a
    reps = -(-places.shape[0] // values.shape[0])
    values = slicing.slice_in_dim(shape.concatenate([values] * reps, 0), 0, places.shape[0])
    if mode == "wrap":
        places = holding(places, flat.shape[0])
        places = remainder(places, scalar(flat.shape[0], places.dtype))
    elif mode != "drop":
        places = holding(places, flat.shape[0])
        last, wraps = flat.shape[0] - 1, mode is None and not dtypes.is_unsigned(places.dtype)
        places = select.clamp(scalar(-last - 1 if wraps else 0, places.dtype), places,
                              scalar(last, places.dtype))
    out = scatter_update(flat, places, values, "set", mode="drop" if mode == "drop" else "clip",
                         wrap_negative_indices=mode is None)
    return shape.reshape(out, a.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Return ``arr`` with ``vals``, in order and repeated, where ``mask`` is true.

    Raises: ValueError unless ``inplace`` is False, if ``vals`` is empty, or for different sizes.

    >>> jnp.place(jnp.array([1, 2, 3]), jnp.array([True, False, True]), jnp.array([8, 9]),
    ...     inplace=False)
    Array([8, 2, 9], dtype=int32)
    """
    check_arraylike("place", arr, mask, vals)
    refuse_inplace("place", inplace)
    return _place(arr, mask, vals)


@library_function(whole=True)
def _place(arr: Any, mask: Any, vals: Any) -> Any:
    arr, mask, vals = array_argument("place", arr, mask, vals)
    sizes = [math.prod(x.shape) for x in (arr, mask, vals)]
    if sizes[0] != sizes[1] or not sizes[2]:
        raise errors.explained(
            errors.ArgumentError, "place.C1",
            "Cannot place values from an empty array" if sizes[0] == sizes[1] else
            "place: arr and mask must be the same size",
            advice=f"Got shapes {arr.shape}, {mask.shape} and {vals.shape}.")
    if not sizes[0]:
        return arr
    (places,) = nonzero(ravel(as_truth(mask)), size=math.prod(mask.shape),
                        fill_value=math.prod(arr.shape))
    return _put(arr, places, vals, mode="drop")


def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None,
                   inplace: bool = True, *, mode: str | None = None) -> Array:
    """Return ``arr`` with ``values`` at the places ``indices`` along ``axis``.

    Raises: ValueError unless ``inplace`` is False, or for ranks that differ.

    >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 5., 1, inplace=False)
    Array([[0., 5.],
           [5., 0.]], dtype=float32)
    """
    check_arraylike("put_along_axis", arr, indices, values)
    refuse_inplace("put_along_axis", inplace)
    return _put_along_axis(arr, indices, values, axis=axis, mode=mode)


@library_function(static_argnames=("axis", "mode"), whole=True)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None,
                    mode: str | None) -> Any:
    arr, indices, values = array_argument("put_along_axis", arr, indices, values)
    whole = arr.shape
    if axis is None:
        arr, axis = ravel(arr), 0
    if arr.ndim != indices.ndim:
        raise errors.explained(
            errors.ArgumentError, "put_along_axis.C1",
            "put_along_axis arguments 'arr' and 'indices' must have same ndim. Got "
            f"arr.ndim={arr.ndim} and indices.ndim={indices.ndim}.",
            advice="Add an axis: indices[:, None].")
    axis = canonical_axis(axis, arr.ndim)
    wide = tuple([indices.shape[i] if i == axis else n for i, n in enumerate(arr.shape)])
    sizes = broadcast_shapes(wide, indices.shape)
    index = dtypes.default_dtype(int)
    if not broadcasts(values.shape, indices.shape):
        raise errors.explained(
            errors.ShapeError, "put_along_axis.C2",
            "put_along_axis argument 'values' must be broadcastable to 'indices'. Got "
            f"values.shape={values.shape} and indices.shape={indices.shape}.",
            advice="Give one value for each place, or one for all.")
    where = tuple([broadcast_to(indices, sizes) if i == axis else
                   filling.broadcasted_iota(index, sizes, i) for i in range(arr.ndim)])
    out = scatter_update(arr, where, broadcast_to(values, sizes), "set", mode=mode)
    return shape.reshape(out, whole)


# -- places ----------------------------------------------------------------------------------------


def _unravel(rest: Any, sizes: Sequence[Any], lasts: Sequence[Any]) -> tuple[Any, ...]:
    """Return the places along axes of ``sizes``, of which ``lasts`` are the last places."""
    zero = weakly_like(rest, 0)
    parts = []
    for size in reversed(sizes):
        parts.append(remainder(rest, size))
        rest = floor_divide(rest, size)
    # What remains is 0 for a place inside, and -1 for one that counts from the end.
    beyond = compare.gt(rest, zero)
    inside = [if_else(beyond, last, part) for last, part in zip(lasts, reversed(parts))]
    if dtypes.is_unsigned(rest.dtype):
        return tuple(inside)
    before = compare.lt(rest, weakly_like(rest, -1))
    return tuple([if_else(before, zero, part) for part in inside])


@library_function(static_argnames=("shape",))
def _unravel_known(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    if dtypes.is_bool(indices.dtype):
        indices = strong(indices, dtypes.default_dtype(int))
    rest = holding(indices, max(shape, default=0))
    return _unravel(rest, [weakly_like(rest, n) for n in shape],
                    [weakly_like(rest, n - 1) for n in shape])


@library_function
def _unravel_traced(indices: Any, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    rest, *sizes = promote_dtypes(indices, *sizes)
    return _unravel(rest, sizes, [subtract(n, weakly_like(n, 1)) for n in sizes])


def unravel_index(indices: ArrayLike, shape: Shape | ArrayLike) -> tuple[Any, ...]:
    """Return the places along each axis of an array of ``shape`` of flat places ``indices``.

    Places out of range are moved inside, as JAX does.
    Raises: ValueError for a ``shape`` with several axes.

    >>> jnp.unravel_index(jnp.array([2, 3]), (2, 3))
    (Array([0, 1], dtype=int32), Array([2, 0], dtype=int32))
    """
    indices = array_argument("unravel_index", indices)
    if isinstance(shape, Tracer):
        shape = tuple(shape) if shape.ndim else (shape,)
    traced = isinstance(shape, Sequence) and any(isinstance(n, (Tracer, Dim)) for n in shape)
    sizes = shape if traced else np.atleast_1d(np.asarray(shape)).tolist()
    if any(np.ndim(n) for n in sizes):
        raise errors.explained(errors.ArgumentError, "unravel_index.C1",
                               "unravel_index: shape should be a scalar or 1D sequence.",
                               advice="Give one size for each axis.")
    if traced:
        sizes = [n.__jax_array__() if isinstance(n, Dim) else n for n in sizes]
        return _unravel_traced(indices, tuple(sizes))
    return _unravel_known(indices, shape=tuple(map(int, sizes)))


def ravel_multi_index(multi_index: Sequence[Any], dims: Sequence[int], mode: str = "raise",
                      order: str = "C", *, dtype: DTypeLike | None = None) -> Array:
    """Return the flat places, in an array of shape ``dims``, of places along each axis.

    ``mode`` 'raise' needs known places; 'clip' and 'wrap' move them inside.
    Raises: ValueError for places out of range or not one for each axis.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 0])), (2, 3))
    Array([2, 3], dtype=int32)
    """
    check_arraylike("ravel_multi_index", *multi_index)
    if len(multi_index) != len(dims):
        raise errors.explained(
            errors.ArgumentError, "ravel_multi_index.C1",
            f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}",
            advice="Give one array of places for each axis.")
    sizes = [int(n) for n in dims]
    parts = [as_array(i) for i in multi_index]
    for part in parts:
        if not dtypes.is_integer(part.dtype):
            raise errors.explained(errors.ArgumentError, "ravel_multi_index.C2",
                                   f"dtype={part.dtype!r} is not an integer type.",
                                   advice="Convert the places to integers.")
    if mode == "raise":
        _check_inside(parts, sizes)
    elif mode not in ("clip", "wrap"):
        raise errors.explained(errors.ArgumentError, "ravel_multi_index.mode",
                               f"invalid mode={mode!r}. Expected 'raise', 'wrap', or 'clip'.",
                               advice="The default is 'raise'.")
    if order not in ("C", "F"):
        raise errors.explained(errors.ArgumentError, "ravel_multi_index.order",
                               f"invalid order={order!r}. Expected 'C' or 'F'", advice="See NumPy.")
    index = aval_of(promote_dtypes(*parts)[0]).dtype if dtype is None and parts else \
        dtypes.canonicalize(int if dtype is None else dtype, explicit=dtype is not None,
                            where="ravel_multi_index")
    if math.prod(sizes) - 1 > dtypes.iinfo(index).max:
        raise errors.explained(
            errors.ArgumentError, "ravel_multi_index.C5",
            f"jnp.ravel_multi_index: dtype={index!r} not large enough to hold flattened index for "
            f"dims={tuple(sizes)}. Use the dtype argument to pass a suitable dtype (e.g. "
            "dtype=np.min_scalar_type(prod(dims))).",
            advice="int64 needs jax.config.update('jax_enable_x64', True).")
    return _ravel_places(parts, sizes=tuple(sizes), mode=mode, order=order, index=index)


def _check_inside(parts: Sequence[Any], sizes: Sequence[int]) -> None:
    for part, n in zip(parts, sizes):
        known = concrete_or_none(part)
        if known is None:
            raise errors.explained(
                errors.ConcretizationTypeError, "ravel_multi_index.C3",
                "The error occurred because ravel_multi_index was jit-compiled with mode='raise'.",
                advice="Use mode='wrap' or mode='clip' instead.")
        values = np.asarray(known)
        if ((values < 0) | (values >= n)).any():
            raise errors.explained(errors.ArgumentError, "ravel_multi_index.C4",
                                   "invalid entry in coordinates array",
                                   advice=f"Places along an axis of size {n} are 0..{n - 1}.")


@library_function(static_argnames=("sizes", "mode", "order", "index"))
def _ravel_places(parts: Sequence[Any], sizes: tuple[int, ...], mode: str, order: str,
                  index: Any) -> Any:
    total = scalar(0, index)
    stride = 1
    pairs = list(zip(parts, sizes))
    for part, n in pairs[::-1] if order == "C" else pairs:
        part = strong(part, index)
        if mode == "wrap":
            part = remainder(part, scalar(n, index))
        elif mode == "clip":
            part = select.clamp(scalar(0, index), part, scalar(n - 1, index))
        total = add(total, multiply(part, scalar(stride, index)))
        stride *= n
    return total


# -- functions of slices ---------------------------------------------------------------------------


@boundary
def apply_along_axis(func1d: Callable, axis: int, arr: ArrayLike, *args: Any,
                     **kwargs: Any) -> Array:
    """Return ``func1d`` applied to every vector of ``arr`` along ``axis``.

    The axes of its result stand where ``axis`` was.

    >>> jnp.apply_along_axis(lambda row: row.max() - row.min(), 1, jnp.array([[1, 5], [2, 9]]))
    Array([4, 7], dtype=int32)
    """
    arr = array_argument("apply_along_axis", arr)
    axis = canonical_axis(axis, arr.ndim)

    def call(row: Any) -> Any:
        return func1d(row, *args, **kwargs)

    mapped: Callable = call
    for _ in range(axis + 1, arr.ndim):
        mapped = mapping.vmap(mapped, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        mapped = mapping.vmap(mapped, in_axes=0, out_axes=0)
    return mapped(arr)


def apply_over_axes(func: Callable, a: ArrayLike, axes: Sequence[int]) -> Array:
    """Return ``func(a, axis)`` applied over ``axes`` in turn, each kept at size 1.

    Raises: ValueError if ``func`` changes the number of axes otherwise.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)
    """
    a = array_argument("apply_over_axes", a)
    for axis in axes:
        out = func(a, axis)
        if aval_of(out).ndim not in (a.ndim, a.ndim - 1):
            raise errors.explained(
                errors.ArgumentError, "apply_over_axes.C1",
                "function is not returning an array of the correct shape",
                advice="It should reduce one axis, with or without keepdims.")
        a = out if aval_of(out).ndim == a.ndim else shape.expand_dims(
            out, (canonical_axis(axis, a.ndim),))
    return a

"""How do several arrays become one?

Concatenating and stacking along an axis, blocks, and putting in or taking out slices.

Read before: ``numpy.manipulation``.  Read after: ``numpy.splitting``.
Invariant: parts are promoted to one dtype first (tests/kernel/numpy/test_shaping.py).
Source: the NumPy reference and the Python array API standard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import Dim, unwrapped
from saem.core.trace import Tracer, concrete_or_none, is_concrete
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, as_array, refuse_out
from saem.numpy.index_plan import as_index
from saem.numpy.indexing import getitem, scatter_update
from saem.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d, broadcast_to, ravel, reshape
from saem.numpy.promote import (
    check_arraylike,
    convert_value,
    listed,
    promote_dtypes,
    scalar,
)
from saem.ops import filling, numbers, select, shape, slicing, stacking
from saem.ops.convert import convert_element_type
from saem.ops.linear import broadcast_in_dim, literal, permute
from saem.ops.linear import moveaxis as move
from saem.ops.shape import canonical_axis
from saem.ops.sort import sort
from saem.transform.mapping import vmap
from saem.typing import Array, ArrayLike, DTypeLike


def parts_of(name: str, arrays: Any) -> list[Any]:
    """Return the arrays to join: those of a list or tuple, or the rows of one array.

    Raises: TypeError for what is neither.
    """
    if isinstance(arrays, (list, tuple)):
        check_arraylike(name, *arrays)
        return [as_array(x) for x in arrays]
    rows = _array_of_rows(name, arrays)
    return [slicing.index_in_dim(rows, i, 0, False) for i in range(len(rows))]


def _array_of_rows(name: str, arrays: Any) -> Any:
    """Return the array whose rows are to be joined.  Raises: TypeError if it is none."""
    check_arraylike(name, arrays)
    return as_array(arrays)


def _asked(dtype: Any) -> Any:
    """Return the canonical ``dtype`` of a result, None if none was requested."""
    return dtype if dtype is None else dtypes.canonicalize(dtype, explicit=True, where="asarray")


def _promoted(parts: list[Any], dtype: Any) -> list[Any]:
    if dtype is None:
        return promote_dtypes(*parts)
    return [convert_element_type(x, dtype) for x in parts]


def concatenate(arrays: Array | Sequence[ArrayLike], axis: int | None = 0,
                dtype: DTypeLike | None = None) -> Array:
    """Return ``arrays`` joined along ``axis``; raveled first if None.

    Raises: ValueError for no arrays, scalars, or an axis out of bounds; TypeError for shapes that
    differ elsewhere.

    >>> jnp.concatenate([jnp.array([1]), jnp.array([2, 3])])
    Array([1, 2, 3], dtype=int32)
    """
    arrays = listed(arrays)
    if not isinstance(arrays, (list, tuple)):
        rows = _array_of_rows("concatenate", arrays)
        if not len(rows):
            raise _nothing("concatenate")
        rows, axis = (reshape(rows, (len(rows), -1)), 0) if axis is None else (rows, axis)
        axis = _axis_of_parts(axis, rows.ndim - 1)
        return _joined_rows(rows, axis=axis, dtype=_asked(dtype), merged=True)
    parts = parts_of("concatenate", arrays)
    if not parts:
        raise _nothing("concatenate")
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    axis, dtype = _axis_of_parts(axis, parts[0].ndim), _asked(dtype)
    if len(parts) == 1:
        return parts[0] if dtype is None else convert_element_type(parts[0], dtype)
    return _concatenate(parts, axis=axis, dtype=dtype)


def _nothing(name: str) -> Exception:
    return errors.explained(errors.ArgumentError, f"{name}.C1",
                            f"Need at least one array to {name}.", advice="The list is empty.")


def _axis_of_parts(axis: int, rank: int) -> int:
    """Return ``axis`` of arrays of this rank as a number from 0.  Raises: ValueError."""
    if not rank:
        raise errors.explained(errors.ArgumentError, "concatenate.C2",
                               "Zero-dimensional arrays cannot be concatenated.",
                               advice="Use jnp.stack, which adds an axis.")
    return canonical_axis(axis, rank)


@library_function(static_argnames=("axis", "dtype", "merged"))
def _joined_rows(rows: Any, axis: int, dtype: Any, merged: bool) -> Any:
    """Return the rows of an array joined along ``axis``, or stacked along it if not ``merged``."""
    stacked = move(rows, 0, axis)
    if merged:
        *before, count, size = stacked.shape[:axis + 2]
        stacked = shape.reshape(stacked, (*before, count * size, *stacked.shape[axis + 2:]))
    return stacked if dtype is None else convert_element_type(stacked, dtype)


@library_function(static_argnames=("axis", "dtype"))
def _concatenate(parts: list[Any], axis: int, dtype: Any) -> Any:
    return shape.concatenate(_promoted(parts, dtype), axis)


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Array:
    """Return ``arrays`` joined along ``axis``; raveled first if None.

    >>> jnp.concat([jnp.array([1]), jnp.array([2, 3])])
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(arrays: Array | Sequence[ArrayLike], axis: int = 0, out: None = None,
          dtype: DTypeLike | None = None) -> Array:
    """Return ``arrays``, of one shape, side by side along a new ``axis``.

    Raises: ValueError for no arrays, or shapes that differ.

    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    refuse_out("stack", out)
    arrays = listed(arrays)
    if not isinstance(arrays, (list, tuple)):
        rows = _array_of_rows("stack", arrays)
        if not len(rows):
            raise _nothing("stack")
        axis = canonical_axis(axis, rows.ndim)
        return _joined_rows(rows, axis=axis, dtype=_asked(dtype), merged=False)
    parts = parts_of("stack", arrays)
    if not parts:
        raise _nothing("stack")
    shapes = [x.shape for x in parts]
    if len(set(shapes)) > 1:
        shown, same_rank = ", ".join(map(str, shapes)), len(set(map(len, shapes))) == 1
        raise errors.explained(
            errors.ArgumentError, "stack.C2",
            f"All input arrays must have the same shape. Got {shown}." if same_rank else
            f"Cannot stack arrays with different numbers of dimensions: got {shown}.",
            advice="jnp.concatenate joins arrays along an axis that they have.")
    return _stack(parts, axis=canonical_axis(axis, len(shapes[0]) + 1), dtype=_asked(dtype))


@library_function(static_argnames=("axis", "dtype"))
def _stack(parts: list[Any], axis: int, dtype: Any) -> Any:
    parts = _promoted(parts, dtype)
    return stacking.stack(parts, axis)


def vstack(tup: Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Return arrays joined along the first axis, vectors as rows.

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return concatenate(_each("vstack", tup, atleast_2d), 0, dtype)


def hstack(tup: Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Return arrays joined along the second axis, vectors along the first.

    >>> jnp.hstack([jnp.array([1]), jnp.array([2, 3])])
    Array([1, 2, 3], dtype=int32)
    """
    parts = _each("hstack", tup, atleast_1d)
    flat = len(parts) and parts[0].ndim == 1 if isinstance(parts, list) else parts.ndim == 2
    return concatenate(parts, 0 if flat else 1, dtype)


def dstack(tup: Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Return the arrays of ``tup`` joined along the third axis, made where it is missing.

    An array of shape (n,) counts as one of (1, n, 1), one of shape (m, n) as one of (m, n, 1).
    Raises: ShapeError if the arrays differ in another axis.

    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return concatenate(_each("dstack", tup, atleast_3d), 2, dtype)


def _each(name: str, tup: Any, raise_rank: Any) -> Any:
    """Return the parts of ``tup`` with more axes, as a list, or in one array if it is one."""
    tup = listed(tup)
    if isinstance(tup, (list, tuple)):
        return [raise_rank(x) for x in parts_of(name, tup)]
    if type(tup) in dtypes.PYTHON_NUMBERS:
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C2",
            f"jnp.{name} needs a sequence of arrays, got the number {tup}.",
            advice=f"Put it into a list: jnp.{name}([x]).")
    return vmap(raise_rank)(_array_of_rows(name, tup))


def column_stack(tup: Array | Sequence[ArrayLike]) -> Array:
    """Return arrays joined along the second axis, vectors as columns.

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return concatenate(_each("column_stack", tup, _as_columns), 1)


def _as_columns(x: Any) -> Any:
    return permute(atleast_2d(x), (1, 0)) if x.ndim < 2 else x


@library_function
def block(arrays: ArrayLike | list[ArrayLike]) -> Array:
    """Return the array made of nested lists of blocks, the innermost along the last axis.

    Raises: ValueError if lists are nested unevenly, or for tuples.

    >>> jnp.block([[jnp.ones((1, 1)), jnp.zeros((1, 2))]])
    Array([[1., 0., 0.]], dtype=float32)
    """
    depth = _depth(arrays)
    leaves: list[Any] = []
    _collect(arrays, leaves)
    check_arraylike("block", *leaves)
    rank = max([depth, *(aval_of(x).ndim for x in leaves)])
    return _block(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise errors.explained(
            errors.ArgumentError, "block.C1",
            "jax.numpy.block does not allow tuples, got " + repr(arrays)[:80],
            advice="Nest lists: jnp.block([[a, b], [c, d]]).")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise errors.explained(errors.ArgumentError, "block.C3",
                               "jax.numpy.block does not allow empty list arguments",
                               advice="Leave the list out.")
    depths = {_depth(x) for x in arrays}
    if len(depths) != 1:
        raise errors.explained(errors.ArgumentError, "block.C2",
                               "Mismatched list depths in jax.numpy.block",
                               advice="Each block must stand in the same number of lists.")
    return depths.pop() + 1


def _collect(arrays: Any, leaves: list[Any]) -> None:
    if isinstance(arrays, list):
        for x in arrays:
            _collect(x, leaves)
    else:
        leaves.append(unwrapped(arrays))


def _block(arrays: Any, depth: int, rank: int) -> Any:
    if not depth:
        x = as_array(arrays)
        return shape.expand_dims(x, tuple(range(rank - x.ndim)))
    return concatenate([_block(x, depth - 1, rank) for x in arrays], -depth)


@library_function(static_argnames=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Return ``values`` joined to ``arr`` along ``axis``; both raveled if None.

    >>> jnp.append(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    check_arraylike("append", arr, values)
    return concatenate([arr, values], axis)


# -- putting in and taking out ---------------------------------------------------------------------


def _slots(name: str, obj: Any, size: int) -> np.ndarray:
    """Return the places that ``obj``, a slice, number or array, names in an axis of ``size``.

    Raises: ConcretizationTypeError for a tracer; ValueError for values that are not integers.
    """
    if isinstance(obj, slice):
        return np.arange(size)[obj]
    check_arraylike(name, obj, position=1)
    if not is_concrete(obj):
        raise errors.unknown(
            f"{name}.C1", obj, f"jnp.{name} needs known places, but they are traced.",
            advice="Under jit use x.at[...] or jnp.where.")
    places = np.asarray(concrete_or_none(obj))
    if places.dtype == bool and name == "delete":
        if places.shape != (size,) and not isinstance(obj, bool):
            raise errors.explained(
                errors.ArgumentError, "delete.C4",
                f"np.delete(arr, obj): for boolean indices, obj must be one-dimensional with "
                f"length matching specified axis; got {places.shape} for size {size}.",
                advice="Give one boolean for each element.")
        return np.nonzero(places)[0] if places.ndim else places.astype(int)
    if not dtypes.is_integer(places.dtype):
        raise errors.explained(
            errors.ArgumentError, f"{name}.C3",
            f"np.delete(arr, obj): got obj.dtype={places.dtype}; must be integer or bool."
            if name == "delete" else
            f"jnp.{name}(): index array must be integer typed; got {places}",
            advice="Convert it: obj.astype(int).")
    return places


def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:
    """Return ``arr`` without the slices ``obj`` along ``axis``; of the raveled array if None.

    Raises: IndexError for a place out of bounds; ConcretizationTypeError for traced places.

    >>> jnp.delete(jnp.array([5, 6, 7]), 1)
    Array([5, 7], dtype=int32)
    """
    arr, obj = array_argument("delete", arr), unwrapped(obj)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = canonical_axis(axis, arr.ndim)
    size = arr.shape[axis]
    if assume_unique_indices and isinstance(obj, Tracer) and not dtypes.is_bool(obj.dtype):
        gone = wrapped(ravel(obj), size)
        return getitem(arr, (*(slice(None),) * axis, _others(gone, size, size - gone.shape[0])))
    places = _slots("delete", obj, size).reshape(-1)
    out_of = [int(p) for p in places if not -size <= p < size]
    if out_of:
        raise errors.explained(
            errors.AxisError, "delete.C2",
            f"index {out_of[0]} is out of bounds for axis {axis} with size {size}",
            advice=f"Places are {-size}..{size - 1}.")
    gone = {int(p) % size for p in places}
    if len(gone) == 1:
        (place,) = gone
        parts = [slicing.slice_in_dim(arr, 0, place, axis=axis),
                 slicing.slice_in_dim(arr, place + 1, size, axis=axis)]
        return shape.concatenate(parts, axis)
    return getitem(arr, (slice(None),) * axis + (_all_but(places, size),))


def _all_but(places: np.ndarray, size: int) -> np.ndarray:
    """Return the numbers below ``size`` that are not among ``places``, in order."""
    kept = np.ones(size, bool)
    kept[places] = False
    return np.flatnonzero(kept).astype(np.int32)


def wrapped(places: Any, size: int) -> Any:
    """Return traced places along an axis of ``size``, negative ones counted from its end."""
    places = convert_value(places, dtypes.default_dtype(int), False)
    return select.select_n(places < 0, places, places + size)


def _others(places: Any, size: int, count: int) -> Any:
    """Return the ``count`` numbers below ``size`` that are not among ``places``, in order."""
    taken = scatter_update(filling.full((size,), np.int32(0)), (places,), np.int32(1), "set")
    _, order = sort((taken, filling.iota(np.dtype("int32"), size)), num_keys=1)
    return getitem(order, slice(0, count))


def _values_along(arr: Any, values: Any, axis: int, one_place: bool) -> Any:
    """Return ``values`` of the dtype and rank of ``arr``; those for one place follow ``axis``."""
    values = convert_value(values, arr.dtype, aval_of(arr).weak_type)
    missing = arr.ndim - values.ndim
    if missing > 0:
        values = broadcast_in_dim(values, (1,) * missing + values.shape,
                                  tuple(range(missing, arr.ndim)))
    return move(values, 0, axis) if one_place else values


def _insert_known(arr: Any, places: np.ndarray, values: Any, axis: int) -> Any:
    """Return ``arr`` with ``values`` put in at ``places``, which are known."""
    size = arr.shape[axis]
    values = _values_along(arr, values, axis, places.ndim == 0)
    places = places.reshape(-1).astype(np.int64)
    places = np.where(places < 0, places + size, places).clip(0, size)
    count = values.shape[axis] if places.size == 1 else places.size
    values = broadcast_to(values, _with_size(arr.shape, axis, count))
    if places.size == 1:
        cut = int(places[0])
        return shape.concatenate([slicing.slice_in_dim(arr, 0, cut, axis=axis), values,
                                  slicing.slice_in_dim(arr, cut, size, axis=axis)], axis)
    order = np.argsort(places, kind="stable")
    new = np.empty(count, np.int32)
    new[order] = places[order] + np.arange(count)
    lead = (slice(None),) * axis
    whole = broadcast_in_dim(literal(0, arr.dtype), _with_size(arr.shape, axis, size + count), ())
    whole = scatter_update(whole, (*lead, new), values, "set")
    whole = scatter_update(whole, (*lead, _all_but(new, size + count)), arr, "set")
    return convert_value(whole, arr.dtype, aval_of(arr).weak_type)


def _with_size(sizes: Sequence[Any], axis: int, size: Any) -> tuple[Any, ...]:
    """Return the shape ``sizes`` with another ``size`` of ``axis``."""
    return (*sizes[:axis], size, *sizes[axis + 1:])


def _insert_dynamic(arr: Any, obj: Any, values: Any, axis: int) -> Any:
    """Return ``arr`` with ``values`` put in at traced places, which are first put in order."""
    size, places = arr.shape[axis], wrapped(ravel(obj), arr.shape[axis])
    values = _values_along(arr, values, axis, not obj.ndim)
    count = values.shape[axis] if places.shape[0] == 1 else places.shape[0]
    values = broadcast_to(values, _with_size(arr.shape, axis, count))
    last = as_index(size, np.dtype("int32"))
    places = broadcast_to(numbers.min(numbers.max(places, np.int32(0)), last), (count,))
    ordered, order = sort((places, filling.iota(np.dtype("int32"), count)), num_keys=1)
    new = ordered + np.arange(count, dtype=np.int32)
    old = _others(new, size + count, size)
    lead = (slice(None),) * axis
    whole = filling.full(_with_size(arr.shape, axis, size + count), scalar(0, arr.dtype))
    whole = scatter_update(whole, (*lead, new), getitem(values, (*lead, order)), "set")
    return scatter_update(whole, (*lead, old), arr, "set")


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """Return ``arr`` with ``values`` put in before places ``obj`` along ``axis``.

    Places out of bounds are brought within.

    Raises: ValueError if ``obj`` has more than one axis.

    >>> jnp.insert(jnp.array([1, 2]), 1, 9)
    Array([1, 9, 2], dtype=int32)
    """
    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    arr, obj, values = as_array(arr), unwrapped(obj), as_array(values)
    if not isinstance(obj, slice) and np.ndim(obj) > 1:
        raise errors.explained(
            errors.ArgumentError, "insert.obj", "jnp.insert(): obj must be a slice, a "
            f"one-dimensional array, or a scalar; got {obj}", advice="Flatten it: obj.ravel().")
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = canonical_axis(axis, arr.ndim)
    size = arr.shape[axis]
    if isinstance(size, Dim) and not isinstance(obj, slice):
        return _insert_dynamic(arr, as_array(obj), values, axis)
    if isinstance(obj, Tracer) and not is_concrete(obj) and dtypes.is_integer(obj.dtype):
        return _insert_dynamic(arr, obj, values, axis)
    return _insert_known(arr, _slots("insert", obj, size), values, axis)

"""How are the elements of an array put in another order, and repeated?

Reversing, rotating, rolling; ``repeat`` and ``tile``.

Read before: ``numpy.manipulation``.  Read after: ``numpy.joining``, ``numpy.padding``.
Invariant: what changes nothing records nothing (tests/kernel/numpy/test_shaping.py).
Source: the NumPy reference.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import Dim, unwrapped
from saem.core.sharded import entries_of
from saem.core.trace import concrete_or_none
from saem.jit.library import library_function
from saem.numpy import promote
from saem.numpy.arithmetic import remainder
from saem.numpy.axes import (
    array_argument,
    as_array,
    as_tuple,
    canonical_axes,
    numbers_may_be_arrays,
)
from saem.numpy.indexing import getitem, scatter_update
from saem.numpy.manipulation import as_shape, broadcast_to, ravel, swapaxes
from saem.numpy.promote import check_arraylike, listed, scalar
from saem.ops import arithmetic as ops
from saem.ops import cumulative, slicing
from saem.ops import shape as shape_ops
from saem.ops.convert import convert_element_type
from saem.ops.dynamic_slicing import dynamic_slice_in_dim
from saem.ops.linear import broadcast_in_dim, reduce_sum
from saem.ops.reshard import freely
from saem.ops.shape import canonical_axis
from saem.placement.meshes import mesh_context
from saem.typing import Array, ArrayLike

INT32 = np.dtype("int32")

# -- order of elements -----------------------------------------------------------------------------


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Return ``m`` reversed along ``axis``, along all axes if None.

    >>> jnp.flip(jnp.array([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    return _flip(m, axis)


@numbers_may_be_arrays
@library_function(static_argnames=("axis",))
def _flip(m: Any, axis: Any) -> Any:
    m = array_argument("flip", m)
    if isinstance(axis, tuple):
        axes = tuple(canonical_axis(a, m.ndim) for a in axis)
    else:
        axes = canonical_axes(axis, m.ndim)
    return shape_ops.rev(m, axes) if axes else m


def _flip_axis(name: str, m: Any, axis: int) -> Any:
    m = array_argument(name, m)
    if m.ndim <= axis:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C1",
            f"axis {axis} is out of bounds for array of dimension {m.ndim}",
            advice=f"{name} needs {axis + 1} axes.")
    return flip(m, axis)


@library_function
def flipud(m: ArrayLike) -> Array:
    """Return ``m`` reversed along its first axis.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return _flip_axis("flipud", m, 0)


@library_function
def fliplr(m: ArrayLike) -> Array:
    """Return ``m`` reversed along its second axis.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return _flip_axis("fliplr", m, 1)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return ``m`` turned ``k`` times by a quarter, from the first of ``axes`` to the second.

    Raises: ValueError for fewer than two axes, or one axis twice.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    return _rot90(m, k, tuple(axes))


@library_function(static_argnums=(1, 2))
def _rot90(m: Any, k: int, axes: tuple[int, ...]) -> Any:
    m = array_argument("rot90", m)
    if m.ndim < 2:
        raise errors.explained(
            errors.ArgumentError, "rot90.C1",
            "rot90 requires its first argument to have ndim at least two, but got first argument "
            f"of shape {m.shape}, which has ndim {m.ndim}",
            advice="A vector has no plane.")
    i, j = (canonical_axis(axis, m.ndim) for axis in axes)
    if i == j:
        raise errors.explained(errors.ArgumentError, "rot90.C2", "Axes must be different",
                               advice=f"Got {axes}.")
    k %= 4
    if k == 0:
        return m
    if k == 2:
        return shape_ops.rev(m, (i, j))
    if k == 1:
        return swapaxes(shape_ops.rev(m, (j,)), i, j)
    return shape_ops.rev(swapaxes(m, i, j), (j,))


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int],
         axis: int | Sequence[int] | None = None) -> Array:
    """Return ``a`` with its elements moved by ``shift`` along ``axis``; those that leave re-enter.

    Without ``axis`` the raveled array is rolled.  ``shift`` may be an array.

    >>> jnp.roll(jnp.array([1, 2, 3]), 1)
    Array([3, 1, 2], dtype=int32)
    """
    shift = unwrapped(shift)
    known = shift if type(shift) is int else _known_shifts(shift)
    if known is None:
        return _roll_by_array(array_argument("roll", a), shift, axis)
    return _roll_static(a, known, axis if axis is None or type(axis) is int else as_tuple(axis))


def _known_shifts(shift: Any) -> tuple[int, ...] | None:
    try:
        shift = listed(shift)
        return as_tuple([operator.index(s) for s in shift] if isinstance(shift, (tuple, list))
                        else operator.index(shift))
    except TypeError:
        return None


@numbers_may_be_arrays
@library_function(static_argnums=(1, 2))
def _roll_static(a: Any, shift: Any, axis: Any) -> Any:
    a = array_argument("roll", a)
    if axis is None:
        return shape_ops.reshape(_roll_static(ravel(a), shift, 0), a.shape)
    shifts, axes = as_tuple(shift), tuple([canonical_axis(i, a.ndim) for i in as_tuple(axis)])
    if len(shifts) != len(axes):
        shifts, axes = _pair(shifts, axes)
    for number, axis in zip(shifts, axes) if math.prod(a.shape) else ():
        size = a.shape[axis]
        place = (size - number) % size
        if place:
            a = shape_ops.concatenate(
                [part_along(a, place, size, axis), part_along(a, 0, place, axis)], axis)
    return a


def _roll_by_array(a: Any, shift: Any, axis: Any) -> Any:
    if axis is None:
        if not isinstance(shift, (tuple, list)) and _checked_shifts(shift).ndim:
            shift = reduce_sum(as_array(shift), (0,))  # one after the other
        return shape_ops.reshape(roll(ravel(a), shift, 0), a.shape)
    axes = tuple([canonical_axis(i, a.ndim) for i in as_tuple(axis)])
    shifts = _shifts(shift)
    (count,) = np.broadcast_shapes(shifts.shape, (len(axes),))
    axes = axes * count if len(axes) == 1 else axes
    if not math.prod(a.shape):
        return a
    return _roll_dynamic(a, broadcast_to(shifts, (count,)), axes)


def _pair(shifts: tuple[int, ...], axes: tuple[int, ...]) -> tuple[tuple, tuple]:
    """Return shifts and axes of one length; a single one of either serves all of the other."""
    pairs = [(int(s), int(i)) for s, i in np.broadcast(shifts, axes)]
    return tuple(s for s, _ in pairs), tuple(i for _, i in pairs)


def _checked_shifts(shift: Any) -> ShapedArray:
    """Return the aval of an array of shifts.  Raises: ValueError if it has several axes."""
    aval = aval_of(shift)
    if aval.ndim > 1:
        raise errors.explained(
            errors.ArgumentError, "roll.C1",
            "'shift' and 'axis' arguments to roll must be scalars or 1D arrays",
            advice=f"Got shifts of shape {aval.shape}.")
    return aval


def _shifts(shift: Any) -> Any:
    if not isinstance(shift, (tuple, list)):
        shifts = array_argument("roll", shift)
        _checked_shifts(shifts)
        return shifts
    parts = promote.promote_dtypes(*[array_argument("roll", s) for s in shift])
    return shape_ops.concatenate([shape_ops.reshape(s, (1,)) for s in parts], 0)


def part_along(a: Any, start: int, stop: int, axis: int) -> Any:
    """Return ``a`` from ``start`` to ``stop`` along ``axis``."""
    low, high = [0] * a.ndim, list(a.shape)
    low[axis], high[axis] = start, stop
    return slicing.slice(a, low, high, (1,) * a.ndim)


@library_function(static_argnames=("axes",))
def _roll_dynamic(a: Any, shifts: Any, axes: tuple[int, ...]) -> Any:
    index = dtypes.default_dtype(int)
    shifts = convert_element_type(shifts, index)
    for number, axis in enumerate(axes):
        size = a.shape[axis]
        shift = remainder(slicing.index_in_dim(shifts, number, 0, False), scalar(size, index))
        twice = shape_ops.concatenate([a, a], axis)
        a = dynamic_slice_in_dim(twice, ops.sub(scalar(size, index), shift), size, axis)
    return a


# -- repetition ------------------------------------------------------------------------------------


def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *,
           total_repeat_length: int | None = None, out_sharding: Any = None) -> Array:
    """Return each element along ``axis`` (of the raveled array if None) ``repeats`` times.

    ``repeats`` may be an array, one number for each element; under jit the length of the result
    must then be given as ``total_repeat_length``.
    Raises: ConcretizationTypeError if it is not; ValueError if ``repeats`` does not fit.

    >>> jnp.repeat(jnp.array([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    """
    check_arraylike("repeat", a, repeats)
    if out_sharding is not None:
        again = functools.partial(repeat, axis=axis, total_repeat_length=total_repeat_length)
        if concrete_or_none(repeats) is not None:  # a number stays one
            return freely(lambda a: again(a, repeats), out_sharding, "repeat", a)
        return freely(again, out_sharding, "repeat", a, repeats)
    a = as_array(a)
    whole = axis is None or not a.ndim  # a scalar is repeated along the one axis that results
    one_number = type(repeats) is int or (
        not np.ndim(repeats) and concrete_or_none(repeats) is not None)
    if not one_number or total_repeat_length is not None or mesh_context.value is not None:
        _refuse_sharded(a, None if whole else axis)
    if whole:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, a.ndim)
    repeats = unwrapped(repeats)
    if type(repeats) is Dim and total_repeat_length is None:
        return _repeat_all(a, repeats, axis)
    known = _known_repeats(repeats, total_repeat_length)
    if total_repeat_length is None or (known is not None and np.size(np.asarray(known)) == 1):
        counts = np.asarray(known)
        if counts.size == 1:
            count = int(counts.reshape(()))
            if total_repeat_length in (None, count * a.shape[axis]):
                return _repeat_all(a, count, axis)
            if count > 0 and a.shape[axis]:  # what is missing is the last element
                total = operator.index(total_repeat_length)
                places = np.minimum(np.arange(total) // count, a.shape[axis] - 1)
                return _elements(a, places.astype(np.int32), axis)
        else:
            return _repeat_known(a, counts.ravel(), axis)
    return _repeat_each(a, as_array(repeats), axis, operator.index(total_repeat_length))


def _refuse_sharded(a: Any, axis: int | None) -> None:
    """Refuse an ``axis``, any if None, that is sharded.  Raises: ArgumentError.

    As in JAX: the parts of the result may differ in length or, where a mesh is in force, the
    program says how results lie.
    """
    entries = entries_of(aval_of(a))
    if any(entries if axis is None else entries[canonical_axis(axis, a.ndim):][:1]):
        raise errors.explained(
            errors.ArgumentError, "repeat.C4",
            "Please pass sharding to `jnp.repeat` via `out_sharding` parameter. The axis is sharded"
            f" in {aval_of(a).str_short()}.", advice="jnp.repeat(x, n, out_sharding=P(...)).")


def _known_repeats(repeats: Any, total_repeat_length: int | None) -> Any:
    """Return the numbers ``repeats``, None if they are traced and the total is given instead.

    Raises: TypeError unless they are integers; ConcretizationTypeError if neither is known.
    """
    known, aval = concrete_or_none(repeats), aval_of(repeats)
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise errors.explained(
            errors.ArgumentTypeError, "repeat.C3",
            f"repeats must be of an integer type, got {aval.dtype.name}.",
            advice="Convert it, for example with int(repeats).")
    if total_repeat_length is None and known is None:
        raise errors.explained(
            errors.ConcretizationTypeError, "repeat.C1",
            "Abstract tracer value encountered where concrete value is expected: traced array with "
            f"shape {aval.str_short()}\nWhen jit-compiling jnp.repeat, the total number of repeats "
            "must be static.",
            advice="Pass total_repeat_length, or make repeats static with static_argnames.")
    return known


@library_function(static_argnames=("count", "axis"))
def _repeat_all(a: Any, count: int, axis: int) -> Any:
    sizes = a.shape
    wide = (*sizes[:axis + 1], count, *sizes[axis + 1:])
    dims = tuple([i + (i > axis) for i in range(len(sizes))])
    out = (*sizes[:axis], sizes[axis] * count, *sizes[axis + 1:])
    return shape_ops.reshape(broadcast_in_dim(a, wide, dims), out)


def _repeat_known(a: Any, counts: np.ndarray, axis: int) -> Any:
    if counts.shape != (a.shape[axis],):
        raise errors.explained(
            errors.ArgumentError, "repeat.C2",
            "operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{counts.shape}  and requested shape ({a.shape[axis]},)",
            advice="Give one number, or as many as there are elements.")
    places = np.repeat(np.arange(a.shape[axis], dtype=np.int32), counts.astype(np.int64))
    return _elements(a, places, axis)


def _elements(a: Any, places: Any, axis: int, mode: str | None = None) -> Any:
    """Return the elements of ``a`` at ``places`` along ``axis``."""
    return getitem(a, (slice(None),) * axis + (places,), mode=mode)


@library_function(static_argnames=("axis", "total"))
def _repeat_each(a: Any, repeats: Any, axis: int, total: int) -> Any:
    """Mark where each element begins; the running sum of the marks is its number."""
    size = a.shape[axis]
    repeats = promote.broadcast_to(repeats, (size,))
    if not size or not total:
        return slicing.slice_in_dim(a, 0, 0, axis=axis)
    index = repeats.dtype
    ends = cumulative.cumsum(repeats, 0)
    begins = shape_ops.concatenate([broadcast_in_dim(scalar(0, index), (1,), ()),
                                slicing.slice_in_dim(ends, 0, size - 1)], 0)
    marks = broadcast_in_dim(scalar(0, INT32), (total,), ())
    marks = scatter_update(marks, begins, scalar(1, INT32), "add")
    places = ops.sub(cumulative.cumsum(marks, 0), scalar(1, INT32))
    return _elements(a, places, axis, mode="fill")


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """Return ``A`` put side by side, ``reps`` times along each axis, trailing axes aligned.

    >>> jnp.tile(jnp.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
    return _tile(A, reps if type(reps) is int else as_shape(reps))


@library_function(static_argnums=(1,))
def _tile(a: Any, reps: Any) -> Any:
    a, counts = array_argument("tile", a), as_shape(reps)
    rank = max(a.ndim, len(counts))
    a = shape_ops.expand_dims(a, tuple(range(rank - a.ndim)))
    return shape_ops.tile(a, (1,) * (rank - len(counts)) + counts)

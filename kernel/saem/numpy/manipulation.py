"""How does an array get another shape, with the same elements?

Reshaping, permuting, adding and removing axes, repeating along axes, reversing and rolling.

Read before: ``numpy.axes``, ``ops.shape``.  Read after: ``numpy.joining``, ``numpy.padding``.
Invariant: what changes nothing records nothing, and a weak type stays weak
(tests/kernel/numpy/test_shaping.py).
Source: the NumPy reference and the Python array API standard.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem._jaxlib import ArrayImpl
from saem.core import config, dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import Dim, as_size, inconclusive, is_static
from saem.core.lazy import later
from saem.core.trace import bind, concrete_or_none, runs_at_once
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
from saem.numpy.promote import check_arraylike, scalar
from saem.ops import arithmetic as ops
from saem.ops import shape as shape_ops
from saem.ops.convert import convert_element_type
from saem.ops.linear import Transpose, broadcast_in_dim, permute, reduce_sum
from saem.ops.reshard import freely
from saem.ops.shape import canonical_axis
from saem.placement.shardings import named_sharding
from saem.typing import Array, ArrayLike, Shape

cumulative: Any = later("saem.ops.cumulative")
indexing: Any = later("saem.numpy.indexing")
slicing: Any = later("saem.ops.slicing")

INT32 = np.dtype("int32")

# -- shapes as arguments ---------------------------------------------------------------------------


def as_shape(given: Any) -> tuple[int, ...]:
    """Return a shape argument, an integer or several, as a tuple of integers.

    Raises: TypeError if it holds anything but known integers.
    """
    sizes = given if isinstance(given, (tuple, list)) else None
    if isinstance(given, Dim):
        sizes = (given,)
    try:
        if sizes is None:
            sizes = as_tuple(given)
        return tuple([as_size(n) for n in sizes])
    except TypeError:
        raise errors.explained(
            errors.ArgumentTypeError, "shape.C1",
            "Shapes must be 1D sequences of concrete values of integer type, got "
            f"{(given,) if given is None or isinstance(given, str) else given}.",
            advice="Under jit a shape must be known: take it from x.shape, or mark the argument "
            "static with static_argnames.") from None


def resolved(given: tuple[int, ...], have: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``given`` with the size that its -1 stands for.

    Raises: TypeError if it does not hold as many elements as ``have``.
    """
    size, known = math.prod(have), math.prod([n for n in given if n != -1])
    if given.count(-1) > 1:
        raise errors.explained(
            errors.ShapeError, "reshape.C2",
            f"can only specify one unknown axis size with a `-1` value, got {given}",
            advice="Name all sizes but one.")
    if -1 not in given:
        if known == size:
            return given
        why = f" (size {known})"
    else:
        if known and size % known == 0:
            return tuple([size // known if n == -1 else n for n in given])
        if not is_static((size, known)):
            raise inconclusive(f"Cannot divide evenly the sizes of shapes {have} and {given}: the "
                               f"remainder {size % known} should be 0.")
        why = (f" because the product of specified axis sizes ({known}) does not evenly divide "
               f"{size}")
    raise errors.explained(
        errors.ShapeError, "reshape.C1",
        f"cannot reshape array of shape {have} (size {size}) into shape {given}{why}",
        advice="The number of elements must stay; -1 stands for one size that follows.")


# -- reshape ---------------------------------------------------------------------------------------


@functools.lru_cache(4096)
def _reshaper(given: tuple[int, ...]) -> Any:
    """Return the compiled form of ``x.reshape(given)``, for any x."""

    def reshape(x: Any) -> Any:
        return shape_ops.reshape(x, resolved(given, x.shape))

    return library_function(reshape)


def reshape_method(x: Any, *args: Any, order: str = "C", copy: bool | None = None,
                   out_sharding: Any = None) -> Any:
    """Return the elements of ``x`` in the shape ``args``: ``x.reshape(2, -1)``."""
    if order == "C" and type(x) is ArrayImpl and runs_at_once() and not out_sharding \
            and config.shortcuts.value:
        try:
            return _reshaper(args[0] if args and type(args[0]) is tuple else args)(x)
        except TypeError as error:
            if isinstance(error, errors.Explained):
                raise
    return reshape(x, args[0] if len(args) == 1 else args, order, copy=copy,
                   out_sharding=out_sharding)


def reshape(a: ArrayLike, shape: int | Shape, order: str = "C", *, copy: bool | None = None,
            out_sharding: Any = None) -> Array:
    """Return the elements of ``a`` in ``shape``, of which one size may be -1.

    ``order`` 'C' reads and writes the last axis fastest, 'F' the first.  A NumPy array stays one,
    with its dtype, as in JAX.
    Raises: TypeError if the number of elements would change; NotImplementedError for order 'A'.

    >>> jnp.reshape(jnp.arange(6), (2, 3))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    given = as_shape(shape)
    if isinstance(a, (np.ndarray, np.generic)) and out_sharding is None:
        return a.reshape(given, order=order)  # type: ignore[call-overload]
    check_arraylike("reshape", a)
    if out_sharding is not None:
        a = as_array(a)
        if order == "C":
            return shape_ops.reshape(a, resolved(given, a.shape), out_sharding=out_sharding)
        return freely(lambda a: reshape(a, shape, order), out_sharding, a)
    if order == "C" and type(a) is ArrayImpl and runs_at_once() \
            and config.shortcuts.value:
        return _reshaper(given)(a)
    a = as_array(a)
    return reshaped(a, resolved(given, a.shape), order)


def reshaped(a: Any, sizes: tuple[int, ...], order: str) -> Any:
    """Return ``a`` as ``sizes``, read and written in ``order``.

    Raises: NotImplementedError for order 'A'; ValueError for an unknown one.
    """
    if order == "C":
        return shape_ops.reshape(a, sizes)
    if order == "F":
        backwards = tuple(reversed(range(a.ndim)))
        out = shape_ops.reshape(a, sizes[::-1], backwards)
        return permute(out, tuple(reversed(range(len(sizes)))))
    if order == "A":
        raise errors.explained(NotImplementedError, "reshape.order",
                               "np.reshape order=A is not implemented.",
                               advice="Arrays have no memory order here; use 'C' or 'F'.")
    raise errors.explained(errors.ArgumentError, "reshape.order",
                           f"Unexpected value for 'order' argument: {order}.",
                           advice="Use 'C' or 'F'.")


@library_function(static_argnames=("order", "out_sharding"))
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """Return the elements of ``a`` along one axis.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    if order == "K":
        raise errors.explained(NotImplementedError, "ravel.order",
                               "Ravel not implemented for order='K'.",
                               advice="Use 'C' or 'F'.")
    check_arraylike("ravel", a)
    return reshape(as_array(a), (-1,), order, out_sharding=out_sharding)


def resize(a: ArrayLike, new_shape: Shape) -> Array:
    """Return ``a`` repeated, and cut, to fill ``new_shape``; zeros if ``a`` is empty.

    Raises: ValueError for a negative size.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    return _resize(a, as_shape(new_shape))


@library_function(static_argnums=(1,))
def _resize(a: Any, sizes: tuple[int, ...]) -> Any:
    if any(n < 0 for n in sizes):
        raise errors.explained(
            errors.ArgumentError, "resize.C1",
            "all elements of `new_shape` must be non-negative", advice=f"Got {sizes}.")
    flat = ravel(array_argument("resize", a))
    wanted, have = math.prod(sizes), flat.shape[0]
    if not wanted or not have:
        return broadcast_in_dim(scalar(0, flat.dtype), sizes, ())
    flat = shape_ops.concatenate([flat] * -(-wanted // have), 0)
    return shape_ops.reshape(slicing.slice_in_dim(flat, 0, wanted), sizes)


# -- axes ------------------------------------------------------------------------------------------


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Return ``a`` with its axes in the order ``axes``, reversed if None.

    Raises: TypeError if ``axes`` is no permutation.

    >>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return _transpose(a, axes if axes is None else tuple([operator.index(i) for i in axes]))


@library_function(static_argnums=(1,))
def _transpose(a: Any, axes: tuple[int, ...] | None) -> Any:
    a = array_argument("transpose", a)
    ndim = a.ndim
    order = (tuple(range(ndim))[::-1] if axes is None
             else tuple([canonical_axis(i, ndim) for i in axes]))
    return bind(Transpose(order), a) if len(order) != ndim else permute(a, order)


@library_function
def reversed_axes(a: Any) -> Any:
    """Return ``a`` with its axes in reversed order: the property ``T``."""
    return permute(a, tuple(range(a.ndim))[::-1])


def transpose_method(x: Any, *args: Any) -> Any:
    """Return ``x`` with its axes permuted: ``x.transpose(1, 0)``, reversed without arguments."""
    if not args:
        return reversed_axes(x)
    return transpose(x, args[0] if args[0] is None or isinstance(args[0], (tuple, list)) else args)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """Return ``a`` with its axes permuted: axis i of the result is axis ``axes[i]`` of ``a``.

    It is ``transpose`` as the array API standard calls it, where ``axes`` must be given.
    Raises: ShapeError if ``axes`` does not name each axis of ``a`` once.

    >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    a = array_argument("permute_dims", a)
    if any(not -a.ndim <= i < a.ndim for i in axes):
        return bind(Transpose(tuple(axes)), a)  # which refuses
    return _transpose(a, tuple(axes))


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return ``x`` with its last two axes swapped.

    Raises: ValueError if there are fewer.

    >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = array_argument("matrix_transpose", x)
    if x.ndim < 2:
        raise errors.explained(
            errors.ArgumentError, "matrix_transpose.C1",
            f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}",
            advice="Add an axis with x[:, None].")
    return swapaxes(x, -1, -2)


@library_function(static_argnames=("axis1", "axis2"))
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Return ``a`` with two axes swapped.

    Raises: ValueError if one does not exist.

    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = array_argument("swapaxes", a)
    i, j = canonical_axis(axis1, a.ndim), canonical_axis(axis2, a.ndim)
    order = list(range(a.ndim))
    order[i], order[j] = order[j], order[i]
    return permute(a, tuple(order))


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Return ``a`` with axes ``source`` moved to ``destination``; the others keep their order.

    Raises: ValueError if there are not as many of one as of the other.

    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return _move(a, source if type(source) is int else as_tuple(source),
                 destination if type(destination) is int else as_tuple(destination))


@numbers_may_be_arrays
@library_function(static_argnums=(1, 2))
def _move(a: Any, source: Any, destination: Any) -> Any:
    a = array_argument("moveaxis", a)
    sources, targets = canonical_axes(source, a.ndim), canonical_axes(destination, a.ndim)
    if len(sources) != len(targets):
        raise errors.explained(
            errors.ArgumentError, "moveaxis.C1",
            f"Inconsistent number of elements: {len(sources)} vs {len(targets)}",
            advice="Give one destination for each source.")
    order = [i for i in range(a.ndim) if i not in sources]
    for place, axis in sorted(zip(targets, sources)):
        order.insert(place, axis)
    return permute(a, tuple(order))


@library_function(static_argnames=("axis", "start"))
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Return ``a`` with ``axis`` moved before the axis that is now at ``start``.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = array_argument("rollaxis", a)
    axis = canonical_axis(axis, a.ndim)
    start = operator.index(start)
    if not -a.ndim <= start <= a.ndim:
        raise errors.explained(errors.AxisError, "rollaxis.start",
                               f"start={start} must satisfy -{a.ndim}<=start<={a.ndim}",
                               advice="The axis is moved before the one at start.")
    start += a.ndim if start < 0 else 0
    return moveaxis(a, axis, start - (axis < start))


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Return ``a`` without its axes ``axis``, all those of size 1 if None.

    Raises: ValueError if one has another size.

    >>> jnp.squeeze(jnp.array([[[1], [2]]]))
    Array([1, 2], dtype=int32)
    """
    a = array_argument("squeeze", a)
    if axis is None:
        return shape_ops.squeeze(a, [i for i, n in enumerate(a.shape) if n == 1])
    axes = [canonical_axis(i, a.ndim) for i in as_tuple(axis)]
    if len(set(axes)) < len(axes):
        raise errors.explained(errors.ArgumentError, "squeeze.C2",
                               f"dimensions are not unique: {tuple(axes)}",
                               advice="Name each axis once.")
    return shape_ops.squeeze(a, axes)


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Return ``a`` with new axes of size 1, which stand at ``axis`` of the result.

    Raises: ValueError for an axis out of bounds or named twice.

    >>> jnp.expand_dims(jnp.array([1, 2]), 0)
    Array([[1, 2]], dtype=int32)
    """
    a = array_argument("expand_dims", a)
    return _expand(a, axes=tuple([operator.index(i) for i in as_tuple(axis)]))


@library_function(static_argnames=("axes",))
def _expand(a: Any, axes: tuple[int, ...]) -> Any:
    return shape_ops.expand_dims(a, axes)


def broadcast_to(array: ArrayLike, shape: int | Shape, *, out_sharding: Any = None) -> Array:
    """Return ``array`` repeated along new and size-1 axes to ``shape``.

    Raises: ValueError if the shapes do not fit.

    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    array = array_argument("broadcast_to", array)
    sizes, have = as_shape(shape), array.shape
    promote.check_broadcast("broadcast_to", aval_of(array), sizes)
    explicit = named_sharding(out_sharding, len(sizes))
    if explicit is not None:
        lead = len(sizes) - len(have)
        return broadcast_in_dim(array, sizes, range(lead, len(sizes)), out_sharding=explicit)
    return _broadcast(array, sizes=sizes)


@library_function(static_argnames=("sizes",))
def _broadcast(array: Any, sizes: tuple[int, ...]) -> Any:
    return promote.broadcast_to(array, sizes)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape to which arrays of ``shapes`` broadcast.

    Raises: ValueError if they do not.

    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return promote.broadcast_shapes(*[as_shape(s) for s in shapes])


def broadcast_arrays(*args: Any) -> list[Any]:
    """Return the arrays all broadcast to one shape.

    >>> jnp.broadcast_arrays(jnp.array([1, 2]), 3)
    [Array([1, 2], dtype=int32), Array([3, 3], dtype=int32, weak_type=True)]
    """
    check_arraylike("broadcast_arrays", *args)
    return promote.broadcast_together(*[as_array(x) for x in args])


def _at_least(name: str, arys: tuple[Any, ...], rank: int) -> Any:
    outs = [_with_rank(x, name, rank) for x in arys]
    return outs[0] if len(outs) == 1 else outs


@library_function(static_argnums=(1, 2))
def _with_rank(x: Any, name: str, rank: int) -> Any:
    x = array_argument(name, x)
    if x.ndim >= rank:
        return x
    if rank == 3:  # the axes of a matrix come first, that of a vector in the middle
        return shape_ops.expand_dims(x, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[x.ndim])
    return shape_ops.expand_dims(x, tuple(range(rank - x.ndim)))


def atleast_1d(*arys: Any) -> Array | list[Array]:
    """Return each array, a scalar with one axis.

    >>> jnp.atleast_1d(3.)
    Array([3.], dtype=float32, weak_type=True)
    """
    return _at_least("atleast_1d", arys, 1)


def atleast_2d(*arys: Any) -> Array | list[Array]:
    """Return each array with at least two axes, new ones in front.

    >>> jnp.atleast_2d(jnp.array([1, 2]))
    Array([[1, 2]], dtype=int32)
    """
    return _at_least("atleast_2d", arys, 2)


def atleast_3d(*arys: Any) -> Array | list[Array]:
    """Return each array with at least three axes: (n,) as (1, n, 1), (n, m) as (n, m, 1).

    >>> jnp.atleast_3d(jnp.array([1, 2])).shape
    (1, 2, 1)
    """
    return _at_least("atleast_3d", arys, 3)


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
    known = shift if type(shift) is int else _known_shifts(shift)
    if known is None:
        return _roll_by_array(array_argument("roll", a), shift, axis)
    return _roll_static(a, known, axis if axis is None or type(axis) is int else as_tuple(axis))


def _known_shifts(shift: Any) -> tuple[int, ...] | None:
    try:
        return as_tuple([operator.index(s) for s in shift] if isinstance(shift, (tuple, list))
                        else operator.index(shift))
    except TypeError:
        return None


@numbers_may_be_arrays
@library_function(static_argnums=(1, 2))
def _roll_static(a: Any, shift: Any, axis: Any) -> Any:
    a = array_argument("roll", a)
    if axis is None:
        return shape_ops.reshape(_roll_static(ravel(a), shift, 0), a.shape) if a.ndim else a
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
        return shape_ops.reshape(roll(ravel(a), shift, 0), a.shape) if a.ndim else a
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
        a = slicing.dynamic_slice_in_dim(twice, ops.sub(scalar(size, index), shift), size, axis)
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
        return freely(lambda a, repeats: repeat(
            a, repeats, axis, total_repeat_length=total_repeat_length), out_sharding, a, repeats)
    a = as_array(a)
    if axis is None or not a.ndim:  # a scalar is repeated along the one axis that results
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, a.ndim)
    known = concrete_or_none(repeats)
    if not (dtypes.is_integer(aval_of(repeats).dtype) or dtypes.is_bool(aval_of(repeats).dtype)):
        raise errors.explained(
            errors.ArgumentTypeError, "repeat.C3",
            f"repeats must be of an integer type, got {aval_of(repeats).dtype.name}.",
            advice="Convert it, for example with int(repeats).")
    if total_repeat_length is None and known is None:
        raise errors.explained(
            errors.ConcretizationTypeError, "repeat.C1",
            "Abstract tracer value encountered where concrete value is expected: traced array with "
            f"shape {aval_of(repeats).str_short()}\nWhen jit-compiling jnp.repeat, the total "
            "number of repeats must be static.",
            advice="Pass total_repeat_length, or make repeats static with static_argnames.")
    if total_repeat_length is None or (known is not None and np.size(np.asarray(known)) == 1):
        counts = np.asarray(known)
        if counts.size == 1:
            out = _repeat_all(a, int(counts.reshape(())), axis)
            if total_repeat_length is None or out.shape[axis] == total_repeat_length:
                return out
        else:
            return _repeat_known(a, counts.ravel(), axis)
    return _repeat_each(a, as_array(repeats), axis, operator.index(total_repeat_length))


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
            f"repeats of shape {counts.shape} do not broadcast to shape ({a.shape[axis]},), one "
            "number for each element along the axis.",
            advice="Give one number, or as many as there are elements.")
    places = np.repeat(np.arange(a.shape[axis], dtype=np.int32), counts)
    return indexing.getitem(a, (slice(None),) * axis + (places,))


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
    marks = indexing.scatter_update(marks, begins, scalar(1, INT32), "add")
    places = ops.sub(cumulative.cumsum(marks, 0), scalar(1, INT32))
    return indexing.getitem(a, (slice(None),) * axis + (places,), mode="fill")


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

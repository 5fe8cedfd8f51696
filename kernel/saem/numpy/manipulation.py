"""How does an array get another shape, with the same elements?

Reshaping, permuting, adding and removing axes, broadcasting.

Read before: ``numpy.axes``, ``ops.shape``.  Read after: ``numpy.rearranging``,
``numpy.joining``.
Invariant: what changes nothing records nothing, and a weak type stays weak
(tests/kernel/numpy/test_shaping.py).
Source: the NumPy reference and the Python array API standard.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from saem._jaxlib import ArrayImpl
from saem.core import config, errors
from saem.core.avals import aval_of
from saem.core.dimensions import Dim, as_size, differ, inconclusive, is_static
from saem.core.lazy import later
from saem.core.trace import bind, runs_at_once
from saem.jit.library import library_function
from saem.numpy import promote
from saem.numpy.axes import (
    array_argument,
    as_array,
    as_tuple,
    canonical_axes,
    numbers_may_be_arrays,
)
from saem.numpy.promote import check_arraylike, scalar
from saem.ops import shape as shape_ops
from saem.ops.linear import Transpose, broadcast_in_dim, permute
from saem.ops.reshard import freely
from saem.ops.shape import canonical_axis
from saem.placement.shardings import requested_sharding
from saem.typing import Array, ArrayLike, Shape

slicing: Any = later("saem.ops.slicing")

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
        if not differ(known, size):
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


def keeps_shape(given: tuple[int, ...], x: Any) -> bool:
    """Return whether ``x`` has the shape ``given`` already, of which one size may be -1."""
    have = x.shape
    return len(given) == len(have) and (
        given == have or (-1 in given and resolved(given, have) == have))


def reshape_method(x: Any, *args: Any, order: str = "C", copy: bool | None = None,
                   out_sharding: Any = None) -> Any:
    """Return the elements of ``x`` in the shape ``args``: ``x.reshape(2, -1)``."""
    if order == "C" and type(x) is ArrayImpl and runs_at_once() and not out_sharding \
            and config.shortcuts.value:
        given = args[0] if args and type(args[0]) is tuple else args
        try:
            given = tuple(map(operator.index, given))
            return x if keeps_shape(given, x) else _reshaper(given)(x)
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
        return freely(lambda a: reshape(a, shape, order), out_sharding, "jnp.reshape", a)
    if order == "C" and type(a) is ArrayImpl and runs_at_once() \
            and config.shortcuts.value:
        return a if keeps_shape(given, a) else _reshaper(given)(a)
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
    times = -(-wanted // have)
    flat = shape_ops.reshape(broadcast_in_dim(flat, (times, have), (1,)), (times * have,))
    return shape_ops.reshape(slicing.slice_in_dim(flat, 0, wanted), sizes)


# -- axes ------------------------------------------------------------------------------------------


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Return ``a`` with its axes in the order ``axes``, reversed if None.

    Raises: TypeError if ``axes`` is no permutation.

    >>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    if axes is not None:
        axes = tuple([operator.index(i) for i in axes])
    if type(a) is ArrayImpl and (a.ndim < 2 if axes is None else axes == tuple(range(a.ndim))):
        return a
    return _transpose(a, axes)


@library_function(static_argnums=(1,))
def _transpose(a: Any, axes: tuple[int, ...] | None) -> Any:
    a = array_argument("transpose", a)
    ndim = a.ndim
    order = (tuple(range(ndim))[::-1] if axes is None
             else tuple([canonical_axis(i, ndim) for i in axes]))
    return bind(Transpose(order), a) if len(order) != ndim else permute(a, order)


def reversed_axes(a: Any) -> Any:
    """Return ``a`` with its axes in reversed order, a vector itself: the property ``T``."""
    return a if a.ndim < 2 else _reversed(a)


@library_function
def _reversed(a: Any) -> Any:
    return permute(a, tuple(range(a.ndim))[::-1])


def transpose_method(x: Any, *args: Any) -> Any:
    """Return ``x`` with its axes permuted: ``x.transpose(1, 0)``, reversed without arguments."""
    if not args:
        return reversed_axes(x)
    first = args[0]
    together = (first is None or isinstance(first, (tuple, list))
                or (isinstance(first, Iterable) and np.ndim(first)))
    return transpose(x, first if together else args)


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
    explicit = requested_sharding(out_sharding, len(sizes), "jnp.broadcast_to")
    if explicit is not None:
        lead = len(sizes) - len(have)
        return broadcast_in_dim(array, sizes, range(lead, len(sizes)), out_sharding=explicit)
    return array if sizes == have else _broadcast(array, sizes=sizes)


@library_function(static_argnames=("sizes",))
def _broadcast(array: Any, sizes: tuple[int, ...]) -> Any:
    return promote.broadcast_to(array, sizes)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape to which arrays of ``shapes`` broadcast; a number is the shape of a vector.

    Raises: ValueError if they do not.

    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return promote.broadcast_given([s if np.iterable(s) else (s,) for s in shapes])


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


def _with_rank(x: Any, name: str, rank: int) -> Any:
    x = array_argument(name, x)
    if x.ndim >= rank:
        return x
    if rank == 3:  # the axes of a matrix come first, that of a vector in the middle
        return shape_ops.expand_dims(x, {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[x.ndim])
    return shape_ops.expand_dims(x, tuple(range(rank - x.ndim)))


@library_function
def atleast_1d(*arys: Any) -> Array | list[Array]:
    """Return each array, a scalar with one axis.

    >>> jnp.atleast_1d(3.)
    Array([3.], dtype=float32, weak_type=True)
    """
    return _at_least("atleast_1d", arys, 1)


@library_function
def atleast_2d(*arys: Any) -> Array | list[Array]:
    """Return each array with at least two axes, new ones in front.

    >>> jnp.atleast_2d(jnp.array([1, 2]))
    Array([[1, 2]], dtype=int32)
    """
    return _at_least("atleast_2d", arys, 2)


@library_function
def atleast_3d(*arys: Any) -> Array | list[Array]:
    """Return each array with at least three axes: (n,) as (1, n, 1), (n, m) as (n, m, 1).

    >>> jnp.atleast_3d(jnp.array([1, 2])).shape
    (1, 2, 1)
    """
    return _at_least("atleast_3d", arys, 3)

"""How does an array get a margin?

``pad`` with its modes: constants, the edge repeated, reflections, the other end, ramps, statistics.

Read before: ``numpy.manipulation``, ``numpy.reductions``.
Invariant: the middle of the result is the argument, and its values are NumPy's
(tests/kernel/numpy/test_shaping.py).
Source: the NumPy reference of pad.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors, tree
from saem.core.avals import aval_of
from saem.core.dimensions import as_size, is_nonnegative, is_size
from saem.core.trace import Tracer, concrete_or_error
from saem.jit.library import library_function
from saem.numpy import reductions
from saem.numpy.axes import array_argument, as_array
from saem.numpy.creation import asarray
from saem.numpy.promote import FLOAT32, broadcast_to, convert_value, scalar
from saem.numpy.quantiles import median
from saem.numpy.rearranging import part_along
from saem.ops import arithmetic as ops
from saem.ops import filling, numbers, shape, slicing
from saem.ops.linear import broadcast_in_dim, moveaxis
from saem.typing import Array, ArrayLike

Widths = tuple[tuple[int, int], ...]

# From a mode to the keyword arguments it takes.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",), "edge": (), "empty": (), "wrap": (),
    "linear_ramp": ("end_values",), "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
    "maximum": ("stat_length",), "minimum": ("stat_length",), "mean": ("stat_length",),
    "median": ("stat_length",),
}


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant",
        **kwargs: Any) -> Array:
    """Return ``array`` with ``pad_width`` elements before and after it along each axis.

    ``pad_width``: a number, a pair, or a pair for each axis.  ``mode``: 'constant'
    (``constant_values``), 'edge', 'linear_ramp' (``end_values``), 'maximum', 'mean', 'median',
    'minimum' (``stat_length``), 'reflect', 'symmetric' (``reflect_type``), 'wrap', 'empty', or
    a function of NumPy's form that returns the padded vector.
    Raises: ValueError for widths that do not fit; NotImplementedError for an unknown mode.

    >>> jnp.pad(jnp.array([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int32)
    """
    array = array_argument("pad", array)
    widths = pairs("pad_width", pad_width, array.ndim)
    if not callable(mode):
        _check_options(mode, kwargs)
    if any(is_nonnegative(n) is False for pair in widths for n in pair):
        raise errors.explained(errors.ArgumentError, "pad.C2",
                               "index can't contain negative values",
                               advice="To take elements away, slice: x[1:-1].")
    if callable(mode):
        return _pad_by_function(array, widths, mode, kwargs)
    if mode in ("constant", "empty"):
        value = kwargs.get("constant_values", 0)
        if isinstance(value, dtypes.PYTHON_NUMBERS) or getattr(value, "shape", None) == ():
            return _pad_alike(array, value, widths=widths)
        return _pad_constant(array, widths, _values(array, value, array.dtype))
    if any(n and not size for pair, size in zip(widths, array.shape) for n in pair):
        raise errors.explained(
            errors.ArgumentError, "pad.C4",
            f"Cannot apply '{mode}' padding to empty axis",
            advice="Use mode='constant'.")
    if mode == "linear_ramp":
        ends = _values(array, kwargs.get("end_values", 0), dtypes.to_inexact(array.dtype))
        return _as_weak(_pad_ramp(array, widths, ends), array)
    if mode in ("reflect", "symmetric"):
        return _pad_mirror(array, widths, mode, kwargs.get("reflect_type", "even"))
    if mode in ("edge", "wrap"):
        return (_pad_edge if mode == "edge" else _pad_wrap)(array, widths)
    lengths = _statistic_lengths(kwargs.get("stat_length"), array.ndim)
    return _as_weak(_pad_statistic(array, widths, mode, lengths), array)


def _statistic_lengths(length: Any, ndim: int) -> Any:
    """Return from how many elements at each end a statistic is taken; None for all of them."""
    lengths = None if length is None else pairs("stat_length", length, ndim)
    if lengths is not None and any(not n for pair in lengths for n in pair):
        raise errors.explained(errors.ArgumentError, "pad.C5",
                               "stat_length of 0 yields no value for padding",
                               advice="Take one element at least.")
    return lengths


def _as_weak(padded: Any, array: Any) -> Any:
    """Return what was computed beside ``array`` as weak as that."""
    return convert_value(padded, padded.dtype, aval_of(array).weak_type)


def _check_options(mode: str, kwargs: dict[str, Any]) -> None:
    if mode not in _OPTIONS:
        raise errors.explained(
            NotImplementedError, "pad.mode", f"Unimplemented padding mode '{mode}' for np.pad.",
            advice=f"Modes are {', '.join(sorted(_OPTIONS))}.")
    unknown = sorted(set(kwargs) - set(_OPTIONS[mode]))
    if unknown:
        raise errors.explained(
            errors.ArgumentError, "pad.options",
            f"unsupported keyword arguments for mode '{mode}': {set(unknown)}",
            advice=f"It takes {_OPTIONS[mode] or 'none'}.")


def pairs(name: str, given: Any, ndim: int) -> Widths:
    """Return ``given`` as one (before, after) for each axis.

    Raises: ValueError for another form; TypeError for a non-integer.
    """
    if type(given) is int:
        return ((given, given),) * ndim
    known = tree.map_(lambda n: concrete_or_error(
        None, n, f"It stands in the argument `{name}` of `jnp.pad`."), given)
    table = _table(name, np.asarray(known), ndim)
    if table.dtype == object and all(map(is_size, table.flat)):  # symbolic ones among them
        return tuple([(as_size(a), as_size(b)) for a, b in table])
    if not np.issubdtype(table.dtype, np.integer):
        raise errors.explained(
            errors.ArgumentTypeError, f"pad.{name}", f"`{name}` must be of integral type.",
            advice=f"Got {given!r}.")
    return tuple([(int(a), int(b)) for a, b in table])


def _table(name: str, table: np.ndarray, ndim: int) -> np.ndarray:
    """Return NumPy's broadcast of ``table`` to one pair for each axis."""
    known = ((ndim, 2), (1, 2), (2,), (1,), ())
    if table.shape not in known:
        shown = ", ".join(map(str, known))
        raise errors.explained(
            errors.ArgumentError, "pad.C1",
            f"jnp.pad: {name} with nd={ndim} has unsupported shape {table.shape}. Valid shapes are "
            f"{shown}.", advice="Give a number, a pair (before, after), or a pair for each axis.")
    return np.broadcast_to(table, (ndim, 2))


def _values(array: Any, given: Any, dtype: Any) -> list[tuple[Any, Any]]:
    """Return the filling value before and after, for each axis of ``array``, in ``dtype``."""
    fill = functools.partial(_fill, array, dtype=dtype)
    if isinstance(given, (tuple, list)) and any(isinstance(v, Tracer) for v in tree.leaves(given)):
        given = asarray(given)
    if isinstance(given, (tuple, list)):
        table = np.empty((array.ndim, 2), object)
        rows = np.asarray(given, object)
        table[...] = _table("constant_values", rows, array.ndim)
        flat = [[fill(v) for v in row] for row in table]
        return [(a, b) for a, b in flat]
    given = as_array(given) if not isinstance(given, (int, float, complex)) else given
    if np.ndim(given) == 0:
        return [(fill(given),) * 2] * array.ndim
    if isinstance(given, Tracer):
        wide = broadcast_to(given, (array.ndim, 2))
        return [(fill(wide[k, 0]), fill(wide[k, 1])) for k in range(array.ndim)]
    table = np.broadcast_to(np.asarray(given), (array.ndim, 2))
    return [(fill(a), fill(b)) for a, b in table]


def _fill(array: Any, value: Any, dtype: Any) -> Any:
    """Return ``value`` in ``dtype``, as weak as ``array``."""
    return convert_value(value, dtype, aval_of(array).weak_type)


@library_function(static_argnames=("widths",))
def _pad_alike(array: Any, value: Any, widths: Widths) -> Any:
    value = _fill(array, value, array.dtype)
    return slicing.pad(array, value, tuple([(a, b, 0) for a, b in widths]))


@library_function(static_argnames=("widths",))
def _pad_constant(array: Any, widths: Widths, values: Sequence[tuple[Any, Any]]) -> Any:
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, values)):
        for value, pair in ((low, (before, 0, 0)), (high, (0, after, 0))):
            config = tuple([pair if i == axis else (0, 0, 0) for i in range(array.ndim)])
            array = slicing.pad(array, value, config)
    return array


def _joined(before: Sequence[Any], array: Any, after: Sequence[Any], axis: int) -> Any:
    parts = [p for p in (*before, array, *after) if p.shape[axis]]
    return shape.concatenate(parts, axis) if len(parts) > 1 else parts[0] if parts else array


def _spread(edge: Any, count: int, axis: int) -> Any:
    """Return ``edge``, of size 1 along ``axis``, repeated ``count`` times along it."""
    sizes = tuple([count if i == axis else n for i, n in enumerate(edge.shape)])
    return broadcast_in_dim(edge, sizes, tuple(range(edge.ndim)))


@library_function(static_argnames=("widths",))
def _pad_edge(array: Any, widths: Widths) -> Any:
    for axis, (before, after) in enumerate(widths):
        size = array.shape[axis]
        if not before and not after:
            continue
        array = _joined([_spread(part_along(array, 0, 1, axis), before, axis)], array,
                        [_spread(part_along(array, size - 1, size, axis), after, axis)], axis)
    return array


@library_function(static_argnames=("widths",))
def _pad_wrap(array: Any, widths: Widths) -> Any:
    for axis, (before, after) in enumerate(widths):
        size = array.shape[axis]
        if not before and not after:
            continue
        whole, rest = divmod(before, size)
        front = [part_along(array, size - rest, size, axis)] + [array] * int(whole)
        whole, rest = divmod(after, size)
        array = _joined(front, array, [array] * int(whole) + [part_along(array, 0, rest, axis)],
                        axis)
    return array


@library_function(static_argnames=("widths", "mode", "kind"))
def _pad_mirror(array: Any, widths: Widths, mode: str, kind: str) -> Any:
    if kind not in ("even", "odd"):
        raise errors.explained(
            errors.ArgumentError, "pad.reflect",
            f"reflect_type must be 'even' or 'odd', got {kind!r}",
            advice="'odd' continues the slope through the edge.")
    for axis, (before, after) in enumerate(widths):
        if array.shape[axis] == 1 and mode == "reflect":
            array = _pad_edge(array, tuple([(before, after) if i == axis else (0, 0)
                                            for i in range(array.ndim)]))
            continue
        skip = 1 if mode == "reflect" else 0
        for count, front in ((before, True), (after, False)):
            while count:
                step = min(count, array.shape[axis] - skip)
                array = _mirror_once(array, axis, step, skip, front, kind)
                count -= step
    return array


def _mirror_once(array: Any, axis: int, count: int, skip: int, front: bool, kind: str) -> Any:
    size = array.shape[axis]
    if front:
        edge, part = part_along(array, 0, 1, axis), part_along(array, skip, skip + count, axis)
    else:
        edge = part_along(array, size - 1, size, axis)
        part = part_along(array, size - skip - count, size - skip, axis)
    margin = shape.rev(part, (axis,))
    if kind == "odd":
        margin = ops.sub(ops.mul(scalar(2, array.dtype), edge), margin)
    return shape.concatenate([margin, array] if front else [array, margin], axis)


@library_function(static_argnames=("widths",))
def _pad_ramp(array: Any, widths: Widths, values: Sequence[tuple[Any, Any]]) -> Any:
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, values)):
        size = array.shape[axis]
        front = _ramp(low, part_along(array, 0, 1, axis), before, axis)
        back = _ramp(high, part_along(array, size - 1, size, axis), after, axis)
        array = _joined([front], array, [shape.rev(back, (axis,))], axis)
    return array


def _ramp(end: Any, edge: Any, count: int, axis: int) -> Any:
    """Return ``count`` evenly spaced steps along ``axis`` from ``end`` up to before ``edge``."""
    dtype = edge.dtype
    work = aval_of(end).dtype
    real = np.promote_types(dtypes.real_dtype(work), FLOAT32)
    sizes = tuple([count if i == axis else 1 for i in range(edge.ndim)])
    step = ops.div(filling.broadcasted_iota(real, sizes, axis), scalar(max(count, 1), real))
    step = convert_value(step, work, False)
    low, high = convert_value(end, work, False), convert_value(edge, work, False)
    wide = tuple([count if i == axis else n for i, n in enumerate(edge.shape)])
    out = ops.add(ops.mul(low, ops.sub(scalar(1, work), step)), ops.mul(high, step))
    out = broadcast_in_dim(out, wide, tuple(range(len(wide)))) if out.shape != wide else out
    return convert_value(numbers.floor(out) if dtypes.is_integer(dtype) else out, dtype, False)


@library_function(static_argnames=("widths", "mode", "lengths"))
def _pad_statistic(array: Any, widths: Widths, mode: str, lengths: Widths | None) -> Any:
    statistic: Callable = {"maximum": reductions.max, "minimum": reductions.min,
                           "mean": reductions.mean, "median": median}[mode]
    for axis, (before, after) in enumerate(widths):
        size = array.shape[axis]
        first, last = (size, size) if lengths is None else (
            min(n, size) for n in lengths[axis])
        parts = part_along(array, 0, first, axis), part_along(array, size - last, size, axis)
        low, high = (_rounded(statistic(p, axis=axis, keepdims=True), array.dtype) for p in parts)
        array = _joined([_spread(low, before, axis)], array, [_spread(high, after, axis)], axis)
    return array


def _rounded(x: Any, dtype: Any) -> Any:
    if dtypes.is_inexact(x.dtype) and np.issubdtype(dtype, np.integer):
        x = numbers.round(x, numbers.RoundingMethod.TO_NEAREST_EVEN)
    return convert_value(x, dtype, False)


def _pad_by_function(array: Any, widths: Widths, function: Callable, kwargs: dict) -> Any:
    array = _pad_constant(array, widths, [(scalar(0, array.dtype),) * 2] * array.ndim)
    for axis, pair in enumerate(widths):
        sizes = [n for i, n in enumerate(array.shape) if i != axis]
        rows = shape.reshape(moveaxis(array, axis, -1), (math.prod(sizes), array.shape[axis]))
        made = [function(slicing.index_in_dim(rows, i, 0, False), pair, axis, kwargs)
                for i in range(rows.shape[0])]
        stacked = shape.concatenate([shape.expand_dims(as_array(r), (0,)) for r in made], 0)
        whole = shape.reshape(stacked, (*sizes, array.shape[axis]))
        array = moveaxis(whole, array.ndim - 1, axis)
    return array

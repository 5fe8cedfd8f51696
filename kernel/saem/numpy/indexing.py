"""How are ``x[idx]`` and ``x.at[idx].set(y)`` computed?

An index of integers and slices alone is a slice (``dynamic_slice`` if an integer is traced); one
with arrays is a gather; updates are scatters.  Outside traces, both run as one compiled call that
is shared by all indices of the same form: positions are passed when running.

Read before: ``numpy.index_plan``.  Read after: ``saem.numpy.array``, which puts these on arrays.
Invariant: without ``mode`` reads outside the array are clamped, writes outside are dropped.
Source: documentation of jax.numpy.ndarray.at.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saem import _jaxlib
from saem.compile.dispatch import check_not_deleted
from saem.core import config, dtypes, errors, promotion
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import is_nonnegative
from saem.core.lazy import later
from saem.core.trace import bind, is_tracer, runs_at_once
from saem.jit.library import library_function
from saem.numpy import arithmetic
from saem.numpy.creation import asarray
from saem.numpy.index_plan import (
    ARRAY,
    BOOL,
    FULL,
    GAP,
    INT,
    NEW,
    PART,
    WINDOW,
    GatherPlan,
    as_index,
    gather_plan,
    index_dtype,
    parse,
)
from saem.numpy.promote import as_value, check_broadcast, convert_value
from saem.ops.dynamic_slicing import DynamicSlice
from saem.ops.filling import full_like
from saem.ops.gather import Gather, ScatterAdd, check_reads, fill_number
from saem.ops.linear import broadcast_in_dim, literal, zeros_of
from saem.ops.reshard import freely
from saem.ops.scatter import Scatter, ScatterMax, ScatterMin, ScatterMul, ScatterSub
from saem.ops.shape import expand_dims, reshape, rev, squeeze
from saem.ops.slicing import Slice
from saem.ops.windows import GatherScatterMode

by_function: Any = later("saem.loops.reduce_by_function")

ArrayImpl = _jaxlib.ArrayImpl
FILL = GatherScatterMode.FILL_OR_DROP
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


class Options(NamedTuple):
    """What the caller promises of the indices, and what happens where they are outside."""

    mode: GatherScatterMode | None = None
    fill_value: Any = None
    sorted: bool = False
    unique: bool = False


DEFAULT = Options()


# -- reading ---------------------------------------------------------------------------------------


def getitem(x: Any, idx: Any, *, mode: Any = None, fill_value: Any = None,
            indices_are_sorted: bool = False, unique_indices: bool = False,
            wrap_negative_indices: bool = True, out_sharding: Any = None) -> Any:
    """Return ``x[idx]``; where ``idx`` is outside, the nearest element, or by ``mode``.

    Raises: IndexError or TypeError for a non-index of ``x``; ArgumentError for an unknown
    mode; RuntimeError for an array that was deleted.
    Source: documentation of jax.numpy.ndarray.at.
    """
    if out_sharding is not None:
        given = {"mode": mode, "fill_value": fill_value, "indices_are_sorted": indices_are_sorted,
                 "unique_indices": unique_indices, "wrap_negative_indices": wrap_negative_indices}
        return indexed_freely(lambda x, idx: getitem(x, idx, **given), out_sharding, ".get", idx,
                              x)
    if type(x) is ArrayImpl:
        check_not_deleted(x)
    eager = runs_at_once() and config.shortcuts.value
    if type(idx) is int and type(x) is ArrayImpl and eager and mode is None:
        shape = x.aval.shape
        if shape and shape[0]:
            return _read_first(x, idx + shape[0] if idx < 0 and wrap_negative_indices else idx)
    tokens, values = parse(idx, aval_of(x).shape, wrap_negative_indices)
    options = DEFAULT
    if fill_value is not None and type(fill_value) not in dtypes.PYTHON_NUMBERS \
            and np.ndim(fill_value):
        raise errors.explained(
            errors.ArgumentError, "get.fill",
            f"The fill_value of a read must be a scalar, not an array of shape "
            f"{np.shape(fill_value)}.", advice="Read with mode='fill' and put others in by "
            "jnp.where.")
    if mode is not None or indices_are_sorted or unique_indices:
        options = make_options(x, mode, fill_value, indices_are_sorted, unique_indices)
        check_reads(options.mode)
    if eager and not any(map(is_tracer, (x, *values))):
        return x if all_full(tokens) and type(x) is ArrayImpl else _reader(tokens, options)(
            x, *values)
    return read(x, tokens, values, options, not config.staging.value)


def indexed_freely(fun: Callable, out_sharding: Any, who: str, idx: Any, *args: Any) -> Any:
    """Return ``fun(*args, idx)`` where the partitioner decides, with the sharding ``out_sharding``.

    Of the index only arrays belong to the program.
    """
    parts = list(idx) if isinstance(idx, tuple) else [idx]
    arrays = [p for p in parts if hasattr(p, "shape") and type(p) is not np.ndarray]

    def inside(values: tuple, arrays: list) -> Any:
        given = iter(arrays)
        new = [next(given) if hasattr(p, "shape") and type(p) is not np.ndarray else p
               for p in parts]
        return fun(*values, tuple(new) if isinstance(idx, tuple) else new[0])

    return freely(inside, out_sharding, who, args, arrays)


def make_options(x: Any, mode: Any, fill_value: Any, is_sorted: bool, unique: bool) -> Options:
    """Return the options of a call, which must be hashable."""
    chosen = None if mode is None else GatherScatterMode.from_any(mode)
    if chosen is not FILL or fill_value is None:
        fill_value = None
    else:
        fill_value = fill_number(fill_value, aval_of(x).dtype)
    return Options(chosen, fill_value, bool(is_sorted), bool(unique))


def all_full(tokens: tuple) -> bool:
    return all(token is FULL or token is GAP for token in tokens)


@library_function
def _read_first(x: Any, i: Any) -> Any:
    """Return ``x[i]``: what ``_reader`` gives for one integer, for arrays of any rank."""
    rest = (FULL,) * (len(aval_of(x).shape) - 1)
    return read(x, (INT, *rest), [i], DEFAULT, True)


@functools.lru_cache(4096)
def _reader(tokens: tuple, options: Options) -> Callable:
    """Return the compiled ``x[idx]`` for all indices of one form, as a function of the values."""

    def index(x: Any, *values: Any) -> Any:
        return read(x, tokens, values, options, True)

    return library_function(index)


def has_arrays(tokens: tuple) -> bool:
    return any(type(t) is tuple and t[0] in (ARRAY, BOOL) for t in tokens)


def read(x: Any, tokens: tuple, values: Sequence[Any], options: Options, dynamic: bool) -> Any:
    """Return what ``tokens`` and ``values`` mean in ``x``.

    With ``dynamic``, positions known now are passed when running, so that programs are shared;
    otherwise they are written into the program.
    """
    fills = options.mode is FILL and any(t not in (FULL, NEW, GAP) for t in tokens)
    if not fills and not has_arrays(tokens):
        return read_part(x, tokens, values, dynamic)
    plan = gather_plan(tokens, values, aval_of(x).shape)
    if plan.empty_axis is not None:
        if 0 not in plan.shape:
            raise errors.explained(
                errors.ArgumentTypeError, "index.empty",
                f"Slice size at axis {plan.empty_axis} in gather is out of range: an array of "
                "indices reads from an axis of size 0.",
                advice="An empty axis has no element to read.")
        return zeros_of(aval_of(x).update(shape=plan.shape))
    x = expand_dims(x, plan.expanded) if plan.expanded else x
    prim = Gather(plan.numbers, plan.sizes, options.unique or plan.unique,
                  options.sorted or plan.ascending, options.mode or PROMISE, options.fill_value)
    return restore_axes(bind(prim, x, plan.indices), plan)


def restore_axes(out: Any, plan: GatherPlan) -> Any:
    """Return the result of a plan's gather as ``x[idx]``."""
    out = rev(out, plan.reversed)
    return expand_dims(out, plan.new) if plan.new else out


def read_part(x: Any, tokens: tuple, values: Sequence[Any], dynamic: bool) -> Any:
    """Return what integers and slices alone mean in ``x``: a rectangular part of it."""
    shape = aval_of(x).shape
    given = iter(values)
    starts: list[Any] = []
    extents, strides, flipped, dropped, new = [], [], [], [], []
    kept = 0
    dtype = index_dtype(values)
    for token in tokens:
        kind = token if type(token) is str else token[0]
        if kind == NEW:
            new.append(kept)
            kept += 1
            continue
        if kind == GAP:
            continue
        axis = len(starts)
        n = shape[axis]
        whole = n if kind == FULL else 1
        _, _, step, extent = token if kind in (PART, WINDOW) else (kind, whole, 1, whole)
        starts.append(0 if kind == FULL else start_of(kind, token, next(given), n, dtype))
        extents.append(extent)
        strides.append(abs(step))
        flipped += [axis] if step < 0 else []
        if kind in (FULL, PART, WINDOW):
            kept += 1
        else:
            dropped.append(axis)
    x = strided_part(x, starts, extents, strides, dynamic, dtype)
    x = squeeze(rev(x, flipped), dropped)
    return expand_dims(x, new) if new else x


def start_of(kind: str, token: Any, value: Any, n: int, dtype: np.dtype) -> Any:
    """Return where the part of one index begins, along an axis of size ``n``."""
    if kind == WINDOW:
        return as_index(value, dtype, True, n)
    if kind not in (INT, PART):
        return as_index(value, dtype, token[1], n)
    if kind == INT and type(value) is int and (
            value < 0 or is_nonnegative(n - 1 - value) is not True):
        return as_index(value, dtype)  # it is outside, or may be: XLA clamps it
    return value


def strided_part(x: Any, starts: Sequence[Any], extents: Sequence[int], strides: Sequence[int],
        dynamic: bool, dtype: np.dtype) -> Any:
    """Return every ``strides``-th element of the part of ``extents`` that begins at ``starts``."""
    aval = aval_of(x)
    shape = aval.shape
    steps = tuple(strides) if any(s != 1 for s in strides) else None
    # On Explicit axes a part must divide among devices: of a slice that is the result alone.
    if (not dynamic or aval.explicit is not None) and all(type(s) is int for s in starts):
        limits = tuple([s + e for s, e in zip(starts, extents)])
        if limits == shape and not any(starts) and steps is None:
            return x
        return bind(Slice(tuple(starts), limits, steps), x)
    if tuple(extents) != shape:
        x = bind(DynamicSlice(tuple(extents)), x, *[as_index(s, dtype) for s in starts])
    return x if steps is None else bind(Slice((0,) * len(shape), tuple(extents), steps), x)


# -- writing ---------------------------------------------------------------------------------------

_SCATTERS = {"set": Scatter, "add": ScatterAdd, "subtract": ScatterSub, "mul": ScatterMul,
             "multiply": ScatterMul, "min": ScatterMin, "max": ScatterMax}
_DERIVED = {"divide": arithmetic.divide, "power": arithmetic.power}


def scatter_update(x: Any, idx: Any, y: Any, kind: str, *, mode: Any = None,
                   indices_are_sorted: bool = False, unique_indices: bool = False,
                   wrap_negative_indices: bool = True, out_sharding: Any = None) -> Any:
    """Return ``x`` with ``y`` written at ``idx``: ``x.at[idx].set(y)``, or another ``kind``.

    ``kind``: set, add, subtract, mul, multiply, divide, power, min, max.  Of indices that lie
    outside, the writes are dropped, or treated by ``mode``.
    Raises: IndexError or TypeError for a non-index of ``x``; ValueError if ``y`` does not
    broadcast to ``x[idx]``.  Source: documentation of jax.numpy.ndarray.at.
    """
    if out_sharding is not None:
        given = {"mode": mode, "indices_are_sorted": indices_are_sorted,
                 "unique_indices": unique_indices, "wrap_negative_indices": wrap_negative_indices}
        return indexed_freely(lambda x, y, idx: scatter_update(x, idx, y, kind, **given),
                              out_sharding, f".{kind}", idx, x, y)
    if kind in _DERIVED:
        factors = scatter_update(full_like(x, 1), idx, y, "mul", mode=mode,
                                 indices_are_sorted=indices_are_sorted,
                                 unique_indices=unique_indices,
                                 wrap_negative_indices=wrap_negative_indices)
        return _DERIVED[kind](x, factors)
    aval = aval_of(x)
    tokens, values = parse(idx, aval.shape, wrap_negative_indices)
    y = as_updates(y)
    warn_unsafe_cast(aval, aval_of(y))
    options = DEFAULT
    if mode is not None or indices_are_sorted or unique_indices:
        options = make_options(x, mode, None, indices_are_sorted, unique_indices)
    if runs_at_once() and config.shortcuts.value \
            and not any(map(is_tracer, (x, y, *values))):
        return _writer(tokens, kind, options)(x, y, *values)
    return write(x, tokens, values, y, kind, options)


def as_updates(y: Any) -> Any:
    """Return what is written as an array or number.

    Raises: TypeError or ValueError if it is neither.
    """
    if isinstance(y, (list, tuple)):
        return asarray(y)
    if hasattr(type(y), "__jax_array__"):
        y = as_value(y)
    if y is None:
        raise errors.explained(
            errors.ArgumentError, "update.none", "None is not a valid value for jnp.array",
            advice="Write a number or an array.")
    dtype = y.dtype if isinstance(y, np.ndarray) else None
    if isinstance(y, str) or (dtype is not None and dtypes.scalar_kind(dtype) == "other"):
        raise errors.explained(
            errors.ArgumentTypeError, "update.dtype",
            f"Value {y!r} with dtype {np.asarray(y).dtype} is not a valid JAX array type. Only "
            "arrays of numeric types are supported by JAX.", advice="Write numbers.")
    return y


@functools.lru_cache(4096)
def _writer(tokens: tuple, kind: str, options: Options) -> Callable:
    """Return the compiled update for all indices of one form, as a function of the values."""

    def update(x: Any, y: Any, *values: Any) -> Any:
        return write(x, tokens, values, y, kind, options)

    return library_function(update)


def join(x: ShapedArray, y: ShapedArray) -> tuple[Any, bool]:
    """Return the (dtype, weak) in which an array and what is written into it meet."""
    if isinstance(x.dtype, dtypes.ExtendedDType) or x.dtype == y.dtype:
        return x.dtype, x.weak_type and y.weak_type
    return promotion.join((x.dtype, x.weak_type), (y.dtype, y.weak_type))


def warn_unsafe_cast(x: ShapedArray, y: ShapedArray) -> None:
    """Warn, as JAX does, if what is written must be narrowed to the dtype of the array.

    Raises: TypePromotionError where that needs a conversion and none is allowed.
    """
    if join(x, y)[0] != x.dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={y.dtype.name} to dtype={x.dtype.name} with "
            f"jax_numpy_dtype_promotion={config.numpy_dtype_promotion.value}. In future JAX "
            "releases this will result in an error. Convert the value first, with astype.",
            FutureWarning, stacklevel=4)


def write(x: Any, tokens: tuple, values: Sequence[Any], y: Any, kind: str, options: Options) -> Any:
    """Return ``x`` with ``y`` written at ``tokens`` and ``values``."""
    aval = aval_of(x)
    plan = gather_plan(tokens, values, aval.shape)
    dtype, weak = join(aval, aval_of(y))
    if aval.dtype != dtype or isinstance(dtype, dtypes.ExtendedDType) is False:
        y = convert_value(y, dtype, weak)
    operand = x if aval.dtype == dtype else convert_value(x, dtype, weak)
    if 0 in plan.shape:  # no place is chosen
        return x
    y = broadcast_updates(y, plan)
    if plan.empty_axis is not None:  # there is no place to write at
        return x
    operand = expand_dims(operand, plan.expanded) if plan.expanded else operand
    prim = _SCATTERS[kind](plan.numbers.as_scatter(), options.sorted or plan.ascending,
                           options.unique or plan.unique, options.mode or FILL)
    out = reshape(bind(prim, operand, plan.indices, y), aval.shape)
    return convert_value(out, aval.dtype, aval.weak_type)


def broadcast_updates(y: Any, plan: GatherPlan) -> Any:
    """Return ``y`` stretched to ``x[idx]`` and laid out as the windows of the plan.

    Raises: ShapeError if it does not fit.
    """
    shape, have = plan.shape, aval_of(y).shape
    missing = len(shape) - len(have)
    check_broadcast("update", aval_of(y), shape)
    y = broadcast_in_dim(y, shape, tuple(range(missing, len(shape))))
    return rev(squeeze(y, plan.new), plan.reversed)


def scatter_apply(x: Any, idx: Any, fun: Callable, *, mode: Any = None,
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  wrap_negative_indices: bool = True) -> Any:
    """Return ``x`` with ``fun``, of one scalar to one, applied at ``idx``, again where it repeats.

    Raises: as ``scatter_update``; NotImplementedError when differentiated.
    """
    aval = aval_of(x)
    tokens, values = parse(idx, aval.shape, wrap_negative_indices)
    options = make_options(x, mode, None, indices_are_sorted, unique_indices)
    plan = gather_plan(tokens, values, aval.shape)
    if 0 in plan.shape:
        return x
    program = by_function.element_program(fun, aval.dtype)
    updates = broadcast_updates(literal(0, aval.dtype), plan)
    operand = expand_dims(x, plan.expanded) if plan.expanded else x
    prim = Scatter(plan.numbers.as_scatter(), options.sorted or plan.ascending,
                   options.unique or plan.unique, options.mode or FILL, program)
    return reshape(bind(prim, operand, plan.indices, updates), aval.shape)

"""How is a rectangular part of an array read, and put back?

``slice`` reads a part known when tracing; its transpose is ``pad``.

Read before: ``ops.shape``.  Read after: ``ops.dynamic_slicing``, ``saem.numpy.indexing``.
Invariant: the part lies inside the array; what does not is refused while tracing.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from saem.core import errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import as_size, larger
from saem.core.dtypes import PYTHON_NUMBERS
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.sharded import shard_like
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.arithmetic import sub
from saem.ops.linear import (
    Linear,
    broadcast_in_dim,
    broadcast_new_dim,
    held_dims,
    literal,
    ones_of,
    reduce_sum,
    unchanged,
    zeros_of,
)
from saem.ops.select import select_n
from saem.ops.shape import canonical_axis, squeeze
from saem.typing import Array, ArrayLike


@primitive("slice")
class Slice(Linear):
    """Elements ``start:limit:stride`` along each axis.  Source: StableHLO specification, slice."""

    start_indices: tuple[int, ...]
    limit_indices: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    passes_nan = True
    shard_results = sharding_rules.slice_
    sum_results = sum_rules.unchanged

    def typing(self, x):
        self.check(x)
        strides = self.strides or (1,) * x.ndim
        shape = tuple(larger(0, (limit - start + step - 1) // step) for start, limit, step in
                      zip(self.start_indices, self.limit_indices, strides))
        return ShapedArray(shape, x.dtype, x.weak_type)

    def check(self, x: ShapedArray) -> None:
        """Refuse bounds that do not lie in ``x``, and strides that are not positive."""
        starts, limits, strides = self.start_indices, self.limit_indices, self.strides
        for number, name, given in ((1, "start_indices", starts), (2, "limit_indices", limits),
                                    (3, "strides", strides)):
            if given is not None and len(given) != x.ndim:
                raise errors.explained(
                    errors.ShapeError, f"slice.C{number}",
                    f"slice {name} must have length equal to the number of dimensions of the "
                    f"operand, got {'indices' if number == 1 else name} {given} for operand shape "
                    f"{x.shape}." if number != 2 else
                    "slice limit_indices must have the same length as start_indices, got "
                    f"start_indices {starts} and limit_indices {limits}.",
                    advice="Give one for each axis, or use lax.slice_in_dim.")
        if not all(0 <= a <= b <= n for a, b, n in zip(starts, limits, x.shape)):
            raise errors.explained(
                errors.ShapeError, "slice.C4",
                f"slice start_indices must have every element be nonnegative, got {starts}."
                if any(a < 0 for a in starts) else
                "slice limit_indices must be less than or equal to operand shape, got "
                f"limit_indices {limits} for operand shape {x.shape}."
                if any(b > n for b, n in zip(limits, x.shape)) else
                "slice limit_indices must be greater than or equal to start_indices, got "
                f"start_indices {starts} and limit_indices {limits}.",
                advice="x[a:b] accepts any bounds, as NumPy does.")
        if strides is not None and any(step <= 0 for step in strides):
            raise errors.explained(
                errors.ShapeError, "slice.C5",
                f"slice strides must have every element be nonnegative, got {strides}."
                if any(step < 0 for step in strides) else
                f"slice strides must be positive, got {strides}",
                advice="To go backwards, use lax.rev, or x[::-1].")

    def evaluate(self, x):
        strides = self.strides or (1,) * x.ndim
        return x[tuple(map(_PythonSlice, self.start_indices, self.limit_indices, strides))]

    def lower(self, ctx, x):
        strides = self.strides or (1,) * len(self.start_indices)
        return ctx.slice(x, self.start_indices, self.limit_indices, strides, ctx.out_avals[0])

    def transpose(self, ct, x):
        strides = self.strides or (1,) * x.ndim
        config = []
        for n, m, start, step in zip(x.shape, aval_of(ct).shape, self.start_indices, strides):
            covered = (m - 1) * step + 1 if m else 0
            config.append((start, n - start - covered, step - 1))
        return [pad(ct, literal(0, aval_of(ct).dtype), config)]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims

        def widened(values, new):
            return None if values is None else (*values[:d], new, *values[d:])

        return bind(Slice(widened(self.start_indices, 0), widened(self.limit_indices, size),
                          widened(self.strides, 1)), x), d

    def physical(self, in_avals, out_avals):
        held = held_dims(in_avals[0])
        strides = None if self.strides is None else (*self.strides, *(1 for _ in held))
        return Slice((*self.start_indices, *(0 for _ in held)), (*self.limit_indices, *held),
                     strides)


@primitive("pad")
class Pad(Primitive):
    """Put the operand into an array of ``padding_value``, (low, high, interior) along each axis.

    Negative low and high cut elements off; interior elements go between neighbours.
    Source: StableHLO specification, pad.
    """

    padding_config: tuple[tuple[int, int, int], ...]

    linear = True
    shard_results = sharding_rules.pad
    sum_results = sum_rules.unchanged
    joins_reduced = True

    def typing(self, x, value):
        self.check(x, value)
        shape = tuple(low + (n - 1) * (interior + 1) + 1 + high if n else low + high
                      for n, (low, high, interior) in zip(x.shape, self.padding_config))
        if any(n < 0 for n in shape):
            raise errors.explained(
                errors.ArgumentError, "pad.C4",
                f"Dimension size after padding is not at least 0, got result shape {shape}, for "
                f"padding_config {self.padding_config} and operand shape {x.shape}",
                advice="Negative padding may cut off no more elements than there are.")
        return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)

    def check(self, x: ShapedArray, value: ShapedArray) -> None:
        """Refuse operands and a configuration that do not fit together."""
        config = self.padding_config
        check_padding_value(value)
        if len(config) != x.ndim:
            raise errors.explained(
                errors.ArgumentError, "pad.C2",
                "length of padding_config must equal the number of axes of operand, got "
                f"padding_config {config} for operand shape {x.shape}",
                advice="Give (low, high, interior) for each axis.")
        if any(interior < 0 for _, _, interior in config):
            raise errors.explained(
                errors.ArgumentError, "pad.C3",
                "interior padding in padding_config must be nonnegative, got padding_config "
                f"{config}", advice="To drop elements at regular places, use lax.slice strides.")
        if x.dtype != value.dtype:
            raise errors.explained(
                errors.DTypeError, "pad.C1",
                f"pad operand and padding_value must be same dtype: got {x.dtype.name} and "
                f"{value.dtype.name}.", advice="jnp.pad converts the value by itself.")

    def evaluate(self, x, value):
        sources, targets, shape = [], [], []
        for n, (low, high, interior) in zip(x.shape, self.padding_config):
            length = low + max((n - 1) * (interior + 1) + 1, 0) + high if n else low + high
            places = low + np.arange(n) * (interior + 1)
            inside = (places >= 0) & (places < length)
            sources.append(np.flatnonzero(inside))
            targets.append(places[inside])
            shape.append(length)
        out = np.full(shape, value, x.dtype)
        out[np.ix_(*targets)] = x[np.ix_(*sources)]
        return out

    def lower(self, ctx, x, value):
        low, high, interior = (list(c) for c in zip(*self.padding_config)) \
            if self.padding_config else ([], [], [])
        return ctx.pad(x, value, low, high, ctx.out_avals[0], interior)

    def jvp(self, primals, tangents):
        parts = [zeros_of(aval_of(x).to_tangent_aval()) if t is None else t
                 for x, t in zip(primals, tangents)]
        return bind(self, *primals), bind(self, *parts)

    def transpose(self, ct, x, value):
        if isinstance(x, UndefinedPrimal) or isinstance(value, UndefinedPrimal):
            outwards = [(-low, -high, 0) for low, high, _ in self.padding_config]
            inside = pad(ct, literal(0, aval_of(ct).dtype), outwards)
            shape = aval_of(inside).shape
            steps = tuple(interior + 1 for _, _, interior in self.padding_config)
            if any(step != 1 for step in steps):
                inside = slice(inside, (0,) * len(shape), shape, steps)
        every = tuple(range(len(self.padding_config)))
        return [inside if isinstance(x, UndefinedPrimal) else None,
                sub(reduce_sum(ct, every), reduce_sum(inside, every))
                if isinstance(value, UndefinedPrimal) else None]

    def batch(self, size, xs, dims):
        (x, value), (dx, dv) = xs, dims
        if dx is None:
            x, dx = broadcast_new_dim(x, size, 0), 0
        config = (*self.padding_config[:dx], (0, 0, 0), *self.padding_config[dx:])
        if dv is None:
            return bind(Pad(config), x, value), dx
        aval = aval_of(x)
        padded = bind(Pad(config), x, literal(0, aval.dtype))
        ones = ones_of(shard_like(ShapedArray(aval.shape, bool), aval))
        inside = bind(Pad(config), ones, np.False_)
        outside = broadcast_in_dim(value, aval_of(padded).shape, (dx,))
        return select_n(inside, outside, padded), dx


# -- functions, with the names and signatures of jax.lax -------------------------------------------

_PythonSlice = slice


def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> Array:
    """Return elements ``start:limit:stride`` of ``operand`` along each axis.

    Raises: ShapeError if a bound lies outside or a stride is not positive.

    >>> lax.slice(jnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    def ints(values):
        return tuple([as_size(v) for v in values])

    starts, limits = ints(start_indices), ints(limit_indices)
    strides = None if strides is None else ints(strides)
    shape = aval_of(operand).shape
    if not any(starts) and limits == shape and (strides is None or set(strides) <= {1}):
        return unchanged(operand)
    return bind(Slice(starts, limits, strides), operand)


def check_padding_value(value: ShapedArray) -> None:
    """Refuse a padding value that is no scalar."""
    if value.shape:
        raise errors.explained(
            errors.ShapeError, "pad.C1",
            f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}",
            advice="To join arrays, use lax.concatenate.")


def pad(operand: ArrayLike, padding_value: ArrayLike,
        padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Return ``operand`` with (low, high, interior) elements of ``padding_value`` at each axis.

    Raises: ArgumentError or DTypeError if they do not fit together.
    """
    aval = aval_of(padding_value)
    check_padding_value(aval)
    entries = tuple(padding_config)
    try:
        entries = tuple([(low, high, interior) for low, high, interior in entries])
    except (TypeError, ValueError) as error:  # its words say what an entry is
        raise errors.explained(
            errors.ArgumentError, "pad.C5",
            f"{error}: padding_config must have (low, high, interior) for each axis, got "
            f"{padding_config}", advice="For one axis: [(1, 1, 0)].") from None
    config = tuple([tuple([as_size(n) for n in entry]) for entry in entries])
    if isinstance(padding_value, PYTHON_NUMBERS):
        dtype = aval_of(operand).dtype
        if dtype == aval.dtype:
            padding_value = literal(padding_value, dtype) \
                if not aval_of(operand).weak_type else padding_value
    return bind(Pad(config), operand, padding_value)


def slice_in_dim(operand: ArrayLike, start_index: int | None, limit_index: int | None,
                 stride: int = 1, axis: int = 0) -> Array:
    """Return ``operand[start:limit:stride]`` along ``axis``; negative bounds count from the end."""
    shape = aval_of(operand).shape
    axis = canonical_axis(axis, len(shape))
    n = shape[axis]
    start = 0 if start_index is None else as_size(start_index)
    limit = n if limit_index is None else as_size(limit_index)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + n if start < 0 else start
    limits[axis] = limit + n if limit < 0 else limit
    strides[axis] = operator.index(stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Return the part of ``operand`` at ``index`` along ``axis``.

    Raises: IndexError if there is no such index.

    >>> lax.index_in_dim(jnp.array([5, 6, 7]), 1)
    Array([6], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = canonical_axis(axis, len(shape))
    index, n = operator.index(index), shape[axis]
    if not -n <= index < n:
        raise errors.explained(
            errors.JAXIndexError, "index_in_dim.C1",
            f"index {index} is out of bounds for axis {axis} with size {n}",
            advice="Indices are -size..size - 1.")
    index = index + n if index < 0 else index
    part = slice_in_dim(operand, index, index + 1, 1, axis)
    return part if keepdims else squeeze(part, (axis,))

"""How are many parts of an array read at once, and how do cotangents flow back to them?

``gather`` copies a window from each of many places; ``scatter-add`` adds a window to each of many
places.  They transpose into each other, so they stand together.

Read before: ``ops.windows``.  Read after: ``ops.scatter``.
Invariant: gather and scatter-add of one description are each other's transpose.
Source: StableHLO specification, gather and scatter.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from saem.compile.text import physical_aval
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import as_size, is_static
from saem.core.jaxpr import Eqn, Jaxpr, Var
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.sharded import shard_like
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.arithmetic import Add
from saem.ops.families import Nary, is_number
from saem.ops.linear import (
    broadcast_in_dim,
    held_dims,
    moveaxis,
    stacked,
    zeros_of,
)
from saem.ops.shape import concatenate
from saem.ops.windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    attribute,
    check_numbers,
    clip_indices,
    locate,
    output_shape,
    whole_windows,
    wide_indices,
    window_sizes,
)
from saem.typing import Array, ArrayLike

FILL = GatherScatterMode.FILL_OR_DROP


def default_fill(dtype: Any) -> Any:
    """Return what is read outside an array: NaN, the least int, the greatest uint, True."""
    kind = dtypes.scalar_kind(dtype)
    if kind == "int":
        return int(dtypes.iinfo(dtype).min)
    if kind == "uint":
        return int(dtypes.iinfo(dtype).max)
    return True if kind == "bool" else float("nan")


def fill_number(fill: Any, dtype: Any) -> Any:
    """Return a fill value as a number; None for the NaN that is read anyway.

    Raises: TypeError for what ``dtype`` has no numbers for.
    """
    fill = np.asarray(fill)
    if not (dtypes.is_bool(fill.dtype) or is_number(fill.dtype)) or (
            dtypes.is_complex(fill.dtype) and not dtypes.is_complex(dtype)):
        raise errors.explained(
            errors.ArgumentTypeError, "gather.fill",
            f"fill_value {fill} of dtype {fill.dtype} cannot be an element of dtype {dtype.name}.",
            advice="Give a number that the array can hold.")
    number = fill.item()
    return None if number != number and dtypes.is_inexact(dtype) else number


def fill_as(fill: Any, dtype: Any) -> np.ndarray:
    """Return a fill value in ``dtype``, as NumPy converts it."""
    with np.errstate(invalid="ignore"):
        return np.asarray(fill).astype(dtype)


@primitive("gather")
class Gather(Primitive):
    """Copy the window of ``slice_sizes`` at each start index."""

    dimension_numbers: GatherDimensionNumbers
    slice_sizes: tuple[int, ...]
    unique_indices: bool = False
    indices_are_sorted: bool = False
    mode: GatherScatterMode = FILL
    fill_value: Any = None

    linear = True
    passes_nan = True
    handed_on = ("unique_indices", "indices_are_sorted", "mode")
    shard_results = sharding_rules.gather

    def window(self, values):
        return values[1], self.dimension_numbers.start_index_map, self.slice_sizes

    def typing(self, x, indices):
        numbers = self.dimension_numbers
        check_numbers("gather", numbers, x, indices, self.slice_sizes)
        shape = output_shape(numbers, x.ndim, indices.shape[:-1], self.slice_sizes)
        return ShapedArray(shape, x.dtype, x.weak_type)

    def evaluate(self, x, indices):
        places, inside = locate(self.dimension_numbers, x.shape, indices, self.slice_sizes,
                                self.mode is not FILL)
        if not inside.size:
            return np.zeros(inside.shape, x.dtype)
        out = x[places] if places else np.broadcast_to(x, inside.shape)
        if self.mode is not FILL:
            return out
        fill = default_fill(x.dtype) if self.fill_value is None else self.fill_value
        return np.where(inside, out, fill_as(fill, x.dtype))

    def lower(self, ctx, x, indices):
        out = physical_aval(ctx.out_avals[0])
        if not out.size:
            return ctx.constant(0, out)
        indices = wide_indices(ctx, indices)
        numbers, sizes = self.dimension_numbers, self.slice_sizes
        attr = attribute("gather", **numbers._asdict(),
                         index_vector_dim=ctx.avals[indices].ndim - 1)
        if not is_static(sizes):
            count = ctx.vector(sizes, np.dtype("int64"))
            name = ctx.emit(
                f'"stablehlo.dynamic_gather"({x}, {indices}, {count}) <{{dimension_numbers = '
                f"{attr}, indices_are_sorted = {str(self.indices_are_sorted).lower()}}}>",
                x, indices, count, out=out)
        else:
            name = self.write(ctx, x, indices, attr, out)
        if self.mode is not FILL or not numbers.start_index_map:
            return name
        shape = physical_aval(ctx.in_avals[0]).shape
        inside = whole_windows(ctx, indices, numbers, shape, sizes, out.shape)
        fill = default_fill(out.dtype) if self.fill_value is None else self.fill_value
        other = ctx.constant(fill_as(fill, out.dtype), out)
        return ctx.emit(f"stablehlo.select {inside}, {name}, {other}", inside, name, other, out=out)

    def write(self, ctx: Any, x: str, indices: str, attr: str, out: ShapedArray) -> str:
        """Write the gather itself."""
        return ctx.emit(
            f'"stablehlo.gather"({x}, {indices}) <{{dimension_numbers = {attr}, slice_sizes = '
            f"{dense_ints(self.slice_sizes)}, indices_are_sorted = "
            f"{str(self.indices_are_sorted).lower()}}}>",
            x, indices, out=out)

    def jvp(self, primals, tangents):
        (x, indices), (t, _) = primals, tangents
        out = bind(self, x, indices)
        if t is None:
            return out, None
        return out, bind(dataclasses.replace(self, fill_value=0 if self.mode is FILL else None),
                         t, indices)

    def transpose(self, ct, x, indices):
        zeros = zeros_of(shard_like(ShapedArray(x.shape, aval_of(ct).dtype), x.aval.to_ct_aval()))
        add = ScatterAdd(self.dimension_numbers.as_scatter(), self.indices_are_sorted,
                         self.unique_indices, self.mode)
        return [bind(add, zeros, indices, ct), None]

    def batch(self, size, xs, dims):
        (x, indices), (dx, di) = xs, dims
        numbers = self.dimension_numbers
        x = x if dx is None else moveaxis(x, dx, 0)
        indices = indices if di is None else moveaxis(indices, di, 0)
        if di is None:
            more = dataclasses.replace(self, dimension_numbers=numbers.of_stacks(),
                                       slice_sizes=(size, *self.slice_sizes))
        elif dx is None:
            shifted = numbers.shifted()
            wide = numbers._replace(
                offset_dims=shifted.offset_dims,
                start_indices_batching_dims=shifted.start_indices_batching_dims)
            more = dataclasses.replace(self, dimension_numbers=wide, unique_indices=False,
                                       indices_are_sorted=False)
        else:
            more = dataclasses.replace(self, dimension_numbers=numbers.walking_together(),
                                       slice_sizes=(min(1, size), *self.slice_sizes))
        return bind(more, x, indices), 0

    def physical(self, in_avals, out_avals):
        held = held_dims(in_avals[0])
        rank = len(out_avals[0].shape)
        numbers = self.dimension_numbers
        offset = (*numbers.offset_dims, *range(rank, rank + len(held)))
        return dataclasses.replace(self, dimension_numbers=numbers._replace(offset_dims=offset),
                                   slice_sizes=(*self.slice_sizes, *held))


def dense_ints(values: Sequence[int]) -> str:
    """Return ``array<i64: 1, 4>``."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


@functools.lru_cache(256)
def combination(kind: type[Primitive], dtype: Any) -> Jaxpr:
    """Return the program that applies a primitive of ``kind`` to two numbers of ``dtype``."""
    a, b, c = (Var(ShapedArray((), dtype)) for _ in range(3))
    return Jaxpr([], [a, b], [c], [Eqn(kind(), [a, b], [c], None, ())])


class ScatterFamily(Primitive):
    """Combine the window of ``updates`` at each place into the operand.

    A member gives the operation by which it ``combines`` two numbers; ``scatter`` overwrites.
    """

    dimension_numbers: ScatterDimensionNumbers
    indices_are_sorted: bool = False
    unique_indices: bool = False
    mode: GatherScatterMode = FILL

    passes_nan = True
    handed_on = ("unique_indices", "indices_are_sorted", "mode")
    combines: ClassVar[type[Nary]]
    accepts: ClassVar[Callable[[Any], bool] | None] = None
    derived_params: ClassVar[tuple[str, ...]] = ("update_consts", "update_jaxpr")

    shard_results = sharding_rules.scatter

    def params_for(self, avals: Sequence[ShapedArray]) -> dict[str, Any]:
        """Return what readers of jaxprs expect besides ``params``: the combination as a program."""
        return {"update_consts": (), "update_jaxpr": combination(self.combines, avals[0].dtype)}

    @property
    def numbers(self) -> GatherDimensionNumbers:
        """Return the description of the gather that reads the same windows."""
        return self.dimension_numbers.as_gather()

    def memory(self, spaces):
        return spaces[:1]

    def window(self, values):
        numbers = self.dimension_numbers
        rank, updates = len(aval_of(values[0]).shape), aval_of(values[2]).shape
        single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        kept = iter(numbers.update_window_dims)
        sizes = [1 if i in single else updates[next(kept)] for i in range(rank)]
        return values[1], numbers.scatter_dims_to_operand_dims, sizes

    def typing(self, x, indices, updates):
        name = self.name
        numbers = self.numbers
        rank = indices.ndim - 1 + len(numbers.offset_dims)
        if updates.ndim != rank:
            raise errors.explained(
                errors.ShapeError, f"{name}.C11",
                f"Updates tensor must be of rank {rank}; got {updates.ndim}.\n"
                f"{name}: updates must have one axis for each axis of the indices but the last, "
                f"and one for each of update_window_dims; got updates {updates.str_short(True)}, "
                f"indices {indices.str_short(True)} and {self.dimension_numbers}.",
                advice="x.at[indices] works out dimension numbers by itself.")
        sizes = window_sizes(numbers, x.shape, updates.shape)
        check_numbers(name, numbers, x, indices, sizes)
        for i, d in enumerate(numbers.batch_dims(updates.ndim)):
            if updates.shape[d] != indices.shape[i]:
                raise errors.explained(
                    errors.ShapeError, f"{name}.C12",
                    "Bounds of the scatter dimensions of updates must be the same as the bounds of "
                    f"the corresponding dimensions of scatter indices. For scatter dimension {i}, "
                    f"updates bound is {updates.shape[d]}, indices bound is {indices.shape[i]}.",
                    advice="x.at[indices] stretches updates by itself.")
        if x.dtype != updates.dtype:
            raise errors.explained(
                errors.DTypeError, f"{name}.C1",
                f"lax.scatter requires arguments to have the same dtypes, got {x.dtype.name}, "
                f"{updates.dtype.name}.", advice="x.at[indices] converts updates by itself.")
        accepts = type(self).accepts
        if accepts is not None and not accepts(x.dtype):
            raise errors.explained(
                errors.DTypeError, f"{name}.C10",
                f"{name[8:]} does not accept dtype {x.dtype.name} at position 0. Accepted dtypes "
                "at position 0 are subtypes of integer, floating, complexfloating.",
                advice="Convert the operand first, for example with x.astype(int).")
        return x if updates.weak_type else x.strip_weak_type()

    def evaluate(self, x, indices, updates):
        numbers = self.numbers
        sizes = window_sizes(numbers, x.shape, updates.shape)
        places, inside = locate(numbers, x.shape, indices, sizes,
                                self.mode is GatherScatterMode.CLIP)
        # Windows are combined one after the other, so their axes go in front.
        order = (*numbers.batch_dims(updates.ndim), *numbers.offset_dims)
        inside = inside.transpose(order).reshape(-1)
        where = tuple(p.transpose(order).reshape(-1)[inside] for p in places)
        out = np.array(x)
        self.write(out, where, updates.transpose(order).reshape(-1)[inside])
        return out

    def write(self, out: np.ndarray, where: tuple[np.ndarray, ...], updates: np.ndarray) -> None:
        """Combine ``updates`` into ``out`` at ``where``, in order."""
        if not where:
            flat, where = out.reshape(1), (np.zeros(updates.shape, int),)
        else:
            flat = out
        ufunc: Any = self.combines.numpy
        with np.errstate(all="ignore"):
            ufunc.at(flat, where, updates)

    def lower(self, ctx, x, indices, updates):
        aval = physical_aval(ctx.in_avals[0])
        given = physical_aval(ctx.in_avals[2])
        if not given.size or not aval.size:
            return x
        if not aval.shape:
            return self.lower_scalar(ctx, x, updates, aval, given)
        indices = wide_indices(ctx, indices)
        numbers = self.numbers
        if self.mode is GatherScatterMode.CLIP and numbers.start_index_map:
            sizes = window_sizes(numbers, aval.shape, given.shape)
            indices = clip_indices(ctx, indices, numbers, aval.shape, sizes)
        fields = self.dimension_numbers._asdict()
        fields["input_batching_dims"] = fields.pop("operand_batching_dims")
        names = ("update_window_dims", "inserted_window_dims", "input_batching_dims",
                 "scatter_indices_batching_dims", "scatter_dims_to_operand_dims")
        attr = attribute("scatter", **{n: fields[n] for n in names},
                         index_vector_dim=ctx.avals[indices].ndim - 1)
        return self.emit(ctx, attr, x, indices, updates, aval)

    def emit(self, ctx: Any, attr: str, x: str, indices: str, updates: str, out: ShapedArray
             ) -> str:
        """Write the scatter with dimension numbers ``attr``."""
        scalar = ShapedArray((), out.dtype)
        region = ctx.region([scalar, scalar], lambda a, b: [self.combiner(ctx, a, b, scalar)])
        return ctx.emit(
            f'"stablehlo.scatter"({x}, {indices}, {updates}) <{{scatter_dimension_numbers = {attr},'
            f" indices_are_sorted = {str(self.indices_are_sorted).lower()}, unique_indices = "
            f"{str(self.unique_indices).lower()}}}>", x, indices, updates, out=out,
            regions=[region])

    def lower_scalar(self, ctx: Any, x: str, updates: str, aval: ShapedArray, given: ShapedArray
                     ) -> str:
        """Write the scatter into a scalar as one into an array of one element, as XLA needs."""
        row = ctx.reshape(x, (1,))
        zeros = ctx.constant(0, ShapedArray((*given.shape, 1), np.dtype(np.int32)))
        attr = attribute("scatter", inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,),
                         index_vector_dim=given.ndim)
        out = self.emit(ctx, attr, row, zeros, updates, ShapedArray((1,), aval.dtype))
        return ctx.reshape(out, ())

    def combiner(self, ctx: Any, a: str, b: str, scalar: ShapedArray) -> str:
        """Write how an element ``a`` of the operand and ``b`` of the updates become one."""
        return ctx.elementwise(f"stablehlo.{self.combines.hlo}", a, b, out=scalar)

    def batch(self, size, xs, dims):
        (x, indices, updates), (dx, di, du) = xs, dims
        x, updates = stacked(size, (x, updates), (dx, du))
        numbers = self.numbers
        if di is None:
            more = dataclasses.replace(self, dimension_numbers=numbers.of_stacks().as_scatter())
        else:
            indices = moveaxis(indices, di, 0)
            more = dataclasses.replace(
                self, dimension_numbers=numbers.walking_together().as_scatter())
        return bind(more, x, indices, updates), 0

    def physical(self, in_avals, out_avals):
        held = held_dims(in_avals[0])
        rank = len(in_avals[2].shape)
        numbers = self.dimension_numbers
        window = (*numbers.update_window_dims, *range(rank, rank + len(held)))
        return dataclasses.replace(
            self, dimension_numbers=numbers._replace(update_window_dims=window))

    # -- helpers for the derivative rules of members ----------------------------------------------

    def read(self, x: Any, indices: Any, updates: Any) -> Any:
        """Return the windows of ``x`` at the places this scatter writes; zero where it drops."""
        sizes = window_sizes(self.numbers, aval_of(x).shape, aval_or_shape(updates))
        mode = self.mode.of_read
        fill = 0 if mode is FILL else None
        return bind(Gather(self.numbers, sizes, self.unique_indices, self.indices_are_sorted,
                           mode, fill), x, indices)

    def added(self, x: Any, indices: Any, updates: Any) -> Any:
        """Return ``x`` with ``updates`` added at the places this scatter writes."""
        return bind(ScatterAdd(self.dimension_numbers, self.indices_are_sorted,
                               self.unique_indices, self.mode), x, indices, updates)


def aval_or_shape(x: Any) -> tuple[int, ...]:
    """Return the shape of an argument of a transpose rule, linear or not."""
    return x.shape if isinstance(x, UndefinedPrimal) else aval_of(x).shape


class LinearScatter(ScatterFamily):
    """A scatter that is linear in operand and updates together: it adds or subtracts these."""

    accepts = staticmethod(is_number)
    # From the cotangent of the elements that were changed to that of the updates.
    to_updates: ClassVar[Callable]

    def jvp(self, primals, tangents):
        x, indices, updates = primals
        tx, _, tu = tangents
        out = bind(self, x, indices, updates)
        if tu is None:
            return out, tx
        tx = zeros_of(aval_of(x).to_tangent_aval()) if tx is None else tx
        return out, bind(self, tx, indices, tu)

    def transpose(self, ct, x, indices, updates):
        return [ct if isinstance(x, UndefinedPrimal) else None, None,
                self.to_updates(self.read(ct, indices, updates))
                if isinstance(updates, UndefinedPrimal) else None]


@primitive("scatter-add")
class ScatterAdd(LinearScatter):
    """Add to the operand."""

    linear = True
    adds = True
    combines = Add
    to_updates = staticmethod(lambda ct: ct)


# -- functions -------------------------------------------------------------------------------------


def check_reads(mode: GatherScatterMode | None) -> None:
    """Refuse a ``mode`` of scatters alone.  Raises: ValueError."""
    if mode is GatherScatterMode.ONE_HOT:
        raise errors.explained(
            errors.ArgumentError, "gather.one_hot", f"{mode} is a mode for writing.",
            advice="To read, use 'clip', 'fill' or 'promise_in_bounds'.")


def gather(operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Sequence[int], *, unique_indices: bool = False,
           indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None) -> Array:
    """Return the windows of ``slice_sizes`` of ``operand`` at ``start_indices``.

    Without a ``mode``, the caller promises that they lie inside.

    Raises: ShapeError or DTypeError if the description does not fit; ArgumentError for an unknown
    ``mode``.
    """
    promise = GatherScatterMode.PROMISE_IN_BOUNDS
    mode = promise if mode is None else GatherScatterMode.from_any(mode)
    check_reads(mode)
    if mode is not FILL:
        fill_value = None
    elif fill_value is not None:
        fill_value = fill_number(fill_value, aval_of(operand).dtype)
    numbers = GatherDimensionNumbers(*(tuple([operator.index(d) for d in dims])
                                       for dims in dimension_numbers))
    sizes = tuple([as_size(n) for n in slice_sizes])
    return bind(Gather(numbers, sizes, bool(unique_indices), bool(indices_are_sorted), mode,
                       fill_value), operand, start_indices)


def index_rows(size: int, starts: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """Return stacks of scalar starts, batched or not, as rows of start indices."""
    columns = [broadcast_in_dim(s, (size, 1), () if d is None else (0,))
               for s, d in zip(starts, dims)]
    return concatenate(columns, 1)


def slice_windows(size: int, x: Any, dim: int | None, starts: Sequence[Any],
                  dims: Sequence[int | None], sizes: Sequence[int]) -> Any:
    """Return the stack of clamped slices of ``sizes``, one for each of the stacked ``starts``."""
    rank = len(sizes)
    every = tuple(range(rank))
    apart = dim is not None  # each slice is of an operand of its own, and they are in order
    one = Gather(GatherDimensionNumbers(every, (), every), tuple(sizes), unique_indices=apart,
                 indices_are_sorted=apart, mode=GatherScatterMode.CLIP)
    rows = index_rows(size, starts, dims)
    return one.batch(size, (x, rows), (dim, 0))[0]

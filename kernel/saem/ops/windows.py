"""Where do the windows of a gather or scatter lie?

Both read *start indices*: an array whose last axis holds one place in the operand, and whose other
axes (the *batch*) say how many windows there are.  A gather copies the window at each place to the
output, a scatter combines the window of the updates into the operand.  So the two share all index
arithmetic, which is here, once in NumPy and once in StableHLO; a scatter is described by the gather
that would read the same windows.

Read before: ``ops.shape``.  Read after: ``ops.gather``.
Invariant: a window that does not lie wholly inside the operand is moved (CLIP) or left out
(FILL_OR_DROP), never cut.
Source: StableHLO specification, gather and scatter.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray
from saem.ops.linear import shift_axes


class GatherDimensionNumbers(NamedTuple):
    """How the axes of operand, start indices and output of a gather belong together.

    ``offset_dims``: output axes that run inside a window; ``collapsed_slice_dims``: operand axes of
    window size 1 that the output lacks; ``start_index_map``: the operand axis of each number of
    a start index; ``operand_batching_dims`` and ``start_indices_batching_dims``: axes that operand
    and start indices walk together.

    >>> lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,
    ...     )).start_index_map
    (0,)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

    def window_dims(self, rank: int) -> list[int]:
        """Return the operand axes that have an axis in the output."""
        gone = {*self.collapsed_slice_dims, *self.operand_batching_dims}
        return [d for d in range(rank) if d not in gone]

    def batch_dims(self, out_rank: int) -> list[int]:
        """Return the output axes that count windows."""
        return [d for d in range(out_rank) if d not in self.offset_dims]

    def shifted(self) -> GatherDimensionNumbers:
        """Return the same numbers behind a new first axis of operand, start indices and output."""
        return GatherDimensionNumbers(*[shift_axes(dims, 0) for dims in self])

    def of_stacks(self) -> GatherDimensionNumbers:
        """Return the gather from a stack of operands (batch axis 0): its windows hold whole stacks.

        Start indices stay as they are.
        """
        shifted = self.shifted()
        return shifted._replace(offset_dims=(0, *shifted.offset_dims),
                                start_indices_batching_dims=self.start_indices_batching_dims)

    def walking_together(self) -> GatherDimensionNumbers:
        """Return the gather where a new axis in front belongs to the operand and the indices."""
        shifted = self.shifted()
        return shifted._replace(
            operand_batching_dims=(0, *shifted.operand_batching_dims),
            start_indices_batching_dims=(0, *shifted.start_indices_batching_dims))

    def as_scatter(self) -> ScatterDimensionNumbers:
        """Return the scatter that writes the windows this gather reads."""
        return ScatterDimensionNumbers(*self)


class ScatterDimensionNumbers(NamedTuple):
    """How the axes of operand, scatter indices and updates of a scatter belong together.

    The fields are, in order, those of the gather that reads the windows this scatter writes.

    >>> lax.ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,),
    ...     scatter_dims_to_operand_dims=(0,)).inserted_window_dims
    (0,)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def as_gather(self) -> GatherDimensionNumbers:
        """Return the gather that reads the windows this scatter writes."""
        return GatherDimensionNumbers(*self)


class GatherScatterMode(enum.Enum):
    """What happens to a window that does not lie inside the operand.

    CLIP moves it inside; FILL_OR_DROP reads a fill value and drops what would be written;
    PROMISE_IN_BOUNDS says that there is none.  ONE_HOT, for scatters alone, writes as
    FILL_OR_DROP: on a TPU JAX may multiply by ones and zeros then.

    >>> lax.GatherScatterMode.from_any("clip")
    <GatherScatterMode.CLIP: 1>
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @property
    def of_read(self) -> GatherScatterMode:
        """The mode that reads where this one writes."""
        return GatherScatterMode.FILL_OR_DROP if self is GatherScatterMode.ONE_HOT else self

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """Return the mode of a name; None is FILL_OR_DROP.

        Raises: ArgumentError for an unknown name.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            raise errors.explained(
                errors.ArgumentError, "gather.mode", f'Unknown gather mode "{mode}"',
                advice="Use 'clip', 'fill', 'drop' or 'promise_in_bounds'; to write, also "
                "'one_hot'.") from None


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP, "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP, "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class Words(NamedTuple):
    """What an operation and its dimension numbers are called in errors."""

    op: str
    offset: str
    collapsed: str
    index_map: str


_GATHER = Words("Gather", "offset_dims", "collapsed_slice_dims", "start_index_map")
_SCATTER = Words("Scatter", "update_window_dims", "inserted_window_dims",
                 "scatter_dims_to_operand_dims")


def check_numbers(name: str, numbers: GatherDimensionNumbers, operand: ShapedArray,
                  indices: ShapedArray, sizes: Sequence[int]) -> None:
    """Refuse dimension numbers that do not fit the operand, the indices and the window sizes."""
    words = _GATHER if name == "gather" else _SCATTER
    for check in (_index_misfit, _size_misfit, _batching_misfit, _offset_misfit):
        found = check(words, numbers, operand, indices, sizes)
        if found:
            number, sentence = found
            raise errors.explained(
                errors.ShapeError, f"{name}.C{number}",
                f"{sentence}\n{name} got {numbers} for operand {operand.str_short(True)}, indices "
                f"{indices.str_short(True)} and window sizes {tuple(sizes)}.",
                advice="x[indices] and x.at[indices] work out dimension numbers by themselves.")
    if not dtypes.is_integer(indices.dtype):
        raise errors.explained(
            errors.ArgumentError, f"{name}.C2",
            f"indices must have an integer type: {name} was given {indices.dtype.name}.",
            advice="Convert them with indices.astype(int).")


Misfit = tuple[int, str] | None  # the number of a constraint and what is wrong, None if nothing is


def _disorder(words: Words, field: str, dims: Sequence[int]) -> str:
    """Return what is wrong with the order of ``dims``: empty if they increase."""
    if list(dims) != sorted(dims):
        return f"{field} in {words.op.lower()} op must be sorted; got {tuple(dims)}"
    if len(set(dims)) < len(dims):
        return f"{field} in {words.op.lower()} op must not repeat; got: {tuple(dims)}."
    return ""


def _index_misfit(words: Words, numbers: GatherDimensionNumbers, operand: ShapedArray,
                  indices: ShapedArray, sizes: Sequence[int]) -> Misfit:
    """Ask whether the numbers of one index say where in the operand it is."""
    rank, mapped = operand.ndim, numbers.start_index_map
    if not indices.ndim:
        return 3, (f"{words.op} index leaf dimension must be within [0, rank(indices) + 1). "
                   f"rank(indices) is 0 and {words.op.lower()} index leaf dimension is -1.")
    if indices.shape[-1] != len(mapped):
        return 3, (f"{words.op} op has {len(mapped)} elements in {words.index_map} and the bound "
                   f"of dimension index_vector_dim={indices.ndim - 1} of indices is "
                   f"{indices.shape[-1]}. These two numbers must be equal.")
    for i, d in enumerate(mapped):
        if not 0 <= d < rank:
            mapping = "" if words is _GATHER else " mapping"
            return 4, f"Invalid {words.index_map}{mapping}; domain is [0, {rank}), got: {i}->{d}."
    if len(set(mapped)) < len(mapped):
        return 4, (f"{words.index_map} in {words.op.lower()} op must not repeat; got: "
                   f"{tuple(mapped)}.")
    if set(mapped) & set(numbers.operand_batching_dims):
        return 4, f"{words.index_map} and operand_batching_dims must be distinct operand axes."
    return None


def _size_misfit(words: Words, numbers: GatherDimensionNumbers, operand: ShapedArray,
                 indices: ShapedArray, sizes: Sequence[int]) -> Misfit:
    """Ask whether the windows lie in the operand, and are thin where they collapse."""
    rank, collapsed = operand.ndim, numbers.collapsed_slice_dims
    for field, dims in ((words.collapsed, collapsed),
                        ("operand_batching_dims", numbers.operand_batching_dims)):
        wrong = _disorder(words, field, dims)
        if wrong:
            return 5, wrong
        for d in dims:
            if not 0 <= d < rank:
                return 5, (f"Invalid {field} set in {words.op.lower()} op; valid range is "
                           f"[0, {rank}); got: {d}.")
    if set(collapsed) & set(numbers.operand_batching_dims):
        return 5, f"{words.collapsed} and operand_batching_dims must be distinct operand axes."
    if len(sizes) != rank:
        return 6, (f"{words.op} op must have one slice size for every input dimension; got: "
                   f"len(slice_sizes)={len(sizes)}, input_shape.rank={rank}")
    wide = [i for i, (m, n) in enumerate(zip(sizes, operand.shape)) if not 0 <= m <= n]
    if wide and words is _GATHER:
        return 6, (f"Slice size at index {wide[0]} in gather op is out of range, must be within "
                   f"[0, {operand.shape[wide[0]]} + 1), got {sizes[wide[0]]}.")
    for i, d in zip(numbers.window_dims(rank), numbers.offset_dims):
        if i in wide:
            return 6, ("Bounds of the window dimensions of updates must not exceed the bounds of "
                       f"the corresponding dimensions of operand. For dimension {d}, updates bound "
                       f"is {sizes[i]}, operand bound is {operand.shape[i]}.")
    for i, d in enumerate((*collapsed, *numbers.operand_batching_dims)):
        # With a bound of 0 XLA would end the process; of batching dims it is the size of the stack.
        if sizes[d] > 1 or (not sizes[d] and words is _GATHER and i < len(collapsed)):
            return 7, (f"{words.op} op can only collapse slice dims with bound 1, but bound is "
                       f"{sizes[d]} for index {d} at position {i}.")
    return None


def _batching_misfit(words: Words, numbers: GatherDimensionNumbers, operand: ShapedArray,
                     indices: ShapedArray, sizes: Sequence[int]) -> Misfit:
    """Ask whether the batch axes of the operand and of the indices come in pairs."""
    batching, along = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    fits = (len(along) == len(batching) and len(set(along)) == len(along)
            and all(0 <= i < indices.ndim - 1 for i in along)
            and all(operand.shape[d] == indices.shape[i] for d, i in zip(batching, along)))
    return None if fits else (
        8, "batching axes of operand and indices must come in pairs of equal size.")


def _offset_misfit(words: Words, numbers: GatherDimensionNumbers, operand: ShapedArray,
                   indices: ShapedArray, sizes: Sequence[int]) -> Misfit:
    """Ask whether the axes of a window have their places in the result."""
    offset = numbers.offset_dims
    wrong = _disorder(words, words.offset, offset)
    if wrong:
        return 9, wrong
    kept = len(numbers.window_dims(operand.ndim))
    out_rank = indices.ndim - 1 + len(offset)
    for i, d in enumerate(offset):
        if not 0 <= d < out_rank:
            return 9, (f"Offset dimension {i} in {words.op.lower()} op is out of bounds; got {d}, "
                       f"but should have been in [0, {out_rank})")
    if len(offset) != kept:
        return 9, (f"All components of the offset index in a {words.op.lower()} op must either be "
                   f"a offset dimension or explicitly collapsed/batching; got len(slice_sizes)="
                   f"{len(sizes)}, output_slice_sizes={offset}, collapsed_slice_dims="
                   f"{numbers.collapsed_slice_dims}, operand_batching_dims="
                   f"{numbers.operand_batching_dims}.")
    return None


def output_shape(numbers: GatherDimensionNumbers, operand_rank: int, batch: Sequence[int],
                 sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of windows of ``sizes``, one for each place of ``batch``."""
    inside = iter([sizes[d] for d in numbers.window_dims(operand_rank)])
    outside = iter(batch)
    total = len(batch) + len(numbers.offset_dims)
    return tuple(next(inside) if d in numbers.offset_dims else next(outside) for d in range(total))


def window_sizes(numbers: GatherDimensionNumbers, operand_shape: Sequence[int],
                 updates_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the window sizes that make updates of ``updates_shape`` fit the operand."""
    sizes = [min(1, n) for n in operand_shape]
    rank = len(updates_shape)
    for d, axis in zip(numbers.window_dims(len(operand_shape)), numbers.offset_dims):
        if not 0 <= axis < rank:
            raise errors.explained(
                errors.ArgumentTypeError, "scatter.C1",
                f"Invalid update_window_dims set in scatter op; valid range is [0, {rank}); "
                f"got: {axis}.", advice="They name axes of the updates.")
        sizes[d] = updates_shape[axis]
    return tuple(sizes)


# -- in NumPy --------------------------------------------------------------------------------------


def locate(numbers: GatherDimensionNumbers, operand_shape: Sequence[int], indices: np.ndarray,
           sizes: Sequence[int], clip: bool) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Return the operand index of every output element, and which outputs lie in whole windows.

    Starts are moved inside if ``clip``; otherwise those outside are marked False and moved to 0.
    """
    batch, rank = indices.shape[:-1], len(operand_shape)
    shape = output_shape(numbers, rank, batch, sizes)
    starts = [np.zeros(batch, np.int64) for _ in range(rank)]
    for k, d in enumerate(numbers.start_index_map):
        column = np.asarray(indices[..., k])
        column = np.minimum(column, 2**62) if column.dtype == np.uint64 else column
        starts[d] = column.astype(np.int64)
    whole = np.ones(batch, bool)
    for d, (n, m) in enumerate(zip(operand_shape, sizes)):
        whole &= clip | ((starts[d] >= 0) & (starts[d] <= n - m))
    for d, (n, m) in enumerate(zip(operand_shape, sizes)):
        starts[d] = np.clip(starts[d], 0, n - m) if clip else np.where(whole, starts[d], 0)
    for d, axis in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims):
        column = [1] * len(batch)
        column[axis] = batch[axis]
        starts[d] = np.broadcast_to(np.arange(batch[axis]).reshape(column), batch)
    places = [np.expand_dims(s, numbers.offset_dims) for s in starts]
    for d, axis in zip(numbers.window_dims(rank), numbers.offset_dims):
        column = [1] * len(shape)
        column[axis] = sizes[d]
        places[d] = places[d] + np.arange(sizes[d]).reshape(column)
    inside = np.broadcast_to(np.expand_dims(whole, numbers.offset_dims), shape)
    return tuple(np.broadcast_to(p, shape) for p in places), inside


# -- in StableHLO ----------------------------------------------------------------------------------


def attribute(kind: str, **fields: Any) -> str:
    """Return ``#stablehlo.gather<…>``; empty lists are left out, as the notation demands."""
    shown = [f"{name} = {list(v) if isinstance(v, tuple) else v}" for name, v in fields.items()
             if v != ()]
    return f"#stablehlo.{kind}<{', '.join(shown)}>"


def wide_indices(ctx: Any, indices: str) -> str:
    """Return the indices in at least 32 bits, so that every size of an operand fits."""
    dtype = ctx.avals[indices].dtype
    return ctx.convert(indices, np.dtype(np.int32)) if dtypes.itemsize_bits(dtype) < 32 else indices


def bounds(ctx: Any, indices: str, numbers: GatherDimensionNumbers, operand_shape: Sequence[int],
           sizes: Sequence[int]) -> tuple[str, str]:
    """Write the least and greatest start that keeps a window inside, in the shape of indices."""
    aval = ctx.avals[indices]
    room = [operand_shape[d] - sizes[d] for d in numbers.start_index_map]
    high = ctx.vector(room, aval.dtype)
    return ctx.constant(0, aval), ctx.broadcast(high, aval.shape, [aval.ndim - 1])


def clip_indices(ctx: Any, indices: str, numbers: GatherDimensionNumbers,
                 operand_shape: Sequence[int], sizes: Sequence[int]) -> str:
    """Write the indices moved so that every window lies inside."""
    low, high = bounds(ctx, indices, numbers, operand_shape, sizes)
    return ctx.emit(f"stablehlo.clamp {low}, {indices}, {high}", low, indices, high,
                    out=ctx.avals[indices])


def whole_windows(ctx: Any, indices: str, numbers: GatherDimensionNumbers,
                  operand_shape: Sequence[int], sizes: Sequence[int], shape: tuple[int, ...]
                  ) -> str:
    """Write a bool of the output's ``shape``: does the element's window lie inside?"""
    low, high = bounds(ctx, indices, numbers, operand_shape, sizes)
    aval = ctx.avals[indices]
    flags = ShapedArray(aval.shape, bool)
    inside = ctx.elementwise("stablehlo.and", ctx.compare("GE", indices, low),
                             ctx.compare("LE", indices, high), out=flags)
    every = ctx.reduce("and", inside, True, [aval.ndim - 1],
                       out=ShapedArray(aval.shape[:-1], bool))
    return ctx.broadcast(every, shape, numbers.batch_dims(len(shape)))

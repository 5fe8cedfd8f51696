"""How is each window of an array folded into one value, and how is that differentiated?

A window slides over the operand, which may be padded and, between its elements, dilated; what is
not there counts as the neutral value.  Sums are linear: their transpose sums windows of the
cotangent.  The derivative of a largest (max pooling) follows the element that was largest:
``select_and_gather_add`` reads the tangent there, ``select_and_scatter_add`` adds the cotangent
there.

Read before: ``ops.reduce``.  Read after: ``loops.reduce_by_function``, which folds by any function.
Invariant: of equal elements of a window the first is chosen, in gathering and in scattering.
Source: StableHLO specification, reduce_window and select_and_scatter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import is_nonnegative, is_static, larger
from saem.core.handles import Handle, handle_of
from saem.core.primitive import NOT_LINEAR, Primitive, UndefinedPrimal, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.compare import Ge, Le
from saem.ops.families import is_number
from saem.ops.linear import literal, stacked, zeros_of
from saem.ops.reduce import better_and_equal, highest, lowest
from saem.ops.slicing import pad
from saem.ops.slicing import slice as slice_

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]


class Sliding(NamedTuple):
    """How a window moves: its size and steps, and what is put around and between elements."""

    dims: Sizes
    strides: Sizes
    padding: Padding
    base: Sizes
    dilation: Sizes

    @classmethod
    def undilated(cls, dims: Sequence[int], strides: Sequence[int],
                  padding: Sequence[tuple[int, int]]) -> Sliding:
        """Return how a window moves when neither it nor the operand is dilated."""
        ones = (1,) * len(dims)
        return cls(tuple(dims), tuple(strides), tuple(padding), ones, ones)

    def around(self, axis: int) -> Sliding:
        """Return this with a further axis, along which windows are single elements."""
        def put(items: tuple, item: Any) -> tuple:
            return (*items[:axis], item, *items[axis:])

        return Sliding(*(put(items, item) for items, item in zip(self, (1, 1, (0, 0), 1, 1))))

    def out_shape(self, shape: Sequence[int]) -> Sizes:
        """Return how many windows there are along each axis of an operand of ``shape``."""
        sizes = []
        for n, (w, step, (low, high), base, dil) in zip(shape, zip(*self)):
            room = stretched(n, base) + low + high - stretched(w, dil)
            sizes.append(larger(0, room // step + 1))
        return tuple(sizes)

    def attributes(self) -> str:
        """Return the attributes of a StableHLO reduce_window."""
        arrays = {"base_dilations": self.base, "window_dilations": self.dilation,
                  "window_dimensions": self.dims, "window_strides": self.strides}
        fields = [array_text(name, values) for name, values in arrays.items()]
        return ", ".join([*fields, padding_text(self.padding)])


def stretched(n: int, dilation: int) -> int:
    """Return the length of ``n`` elements with ``dilation`` - 1 gaps between them."""
    return (n - 1) * dilation + 1 if n else 0


def array_text(name: str, values: Sequence[int]) -> str:
    return f"{name} = array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def padding_text(padding: Padding) -> str:
    pairs = [list(pair) for pair in padding]
    return f"padding = dense<{pairs}> : tensor<{len(pairs)}x2xi64>"


def laid_out(x: np.ndarray, how: Sliding, fill: Any) -> np.ndarray:
    """Return ``x`` with its gaps and padding filled; negative padding cuts."""
    shape = [stretched(n, base) + max(low, 0) + max(high, 0)
             for n, base, (low, high) in zip(x.shape, how.base, how.padding)]
    out = np.full(shape, fill, x.dtype)
    out[tuple(slice(max(low, 0), max(low, 0) + stretched(n, base), base)
              for n, base, (low, _) in zip(x.shape, how.base, how.padding))] = x
    return out[tuple(slice(max(-low, 0), max(n - max(-high, 0), 0))
                     for n, (low, high) in zip(shape, how.padding))]


def window_places(how: Sliding, out: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield, for each element of a window in order, where it lies for all windows."""
    for place in itertools.product(*map(range, how.dims)):
        yield tuple(slice(i * dil, i * dil + (n - 1) * step + 1, step) if n else slice(0, 0)
                    for i, dil, n, step in zip(place, how.dilation, out, how.strides))


class Window(Primitive):
    """What folds windows: five parameters, one entry for each axis."""

    __slots__ = ()
    window_dimensions: Sizes
    window_strides: Sizes
    padding: Padding
    base_dilation: Sizes
    window_dilation: Sizes

    shard_results = sharding_rules.window
    quick_code = False

    @property
    def how(self) -> Sliding:
        return Sliding(self.window_dimensions, self.window_strides, self.padding,
                       self.base_dilation, self.window_dilation)


class WindowFold(Window):
    """Fold each window by one operation.

    A member gives ``hlo``, ``numpy`` (a ufunc) and ``initial`` (dtype to neutral value).
    """

    __slots__ = ()
    hlo: ClassVar[str]
    numpy: ClassVar[Any]
    initial: ClassVar[Callable[[Any], Any]]

    def typing(self, x):
        return ShapedArray(self.how.out_shape(x.shape), x.dtype, x.weak_type)

    def evaluate(self, x):
        how = self.how
        start = np.asarray(type(self).initial(x.dtype)).astype(x.dtype)
        grid, shape = laid_out(x, how, start), how.out_shape(x.shape)
        out = np.full(shape, start, x.dtype)
        for place in window_places(how, shape):
            out = type(self).numpy(out, grid[place])
        return out

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        scalar = ShapedArray((), aval.dtype)
        start = ctx.constant(type(self).initial(aval.dtype), scalar)
        if not is_static((*self.how.dims, *(n for pair in self.how.padding for n in pair))):
            return ctx.reduce_window(x, start, lambda a, b: self.fold(ctx, a, b),
                                     ctx.out_avals[0], **self.how._asdict())
        region = ctx.region([scalar, scalar], lambda a, b: [self.fold(ctx, a, b)])
        return ctx.emit(
            f'"stablehlo.reduce_window"({x}, {start}) <{{{self.how.attributes()}}}>',
            x, start, regions=[region])

    def fold(self, ctx: Any, a: str, b: str) -> str:
        """Write the fold of two scalars."""
        if dtypes.is_complex(ctx.avals[a].dtype) and self.hlo != "add":
            direction = "GT" if self.hlo == "maximum" else "LT"
            return ctx.choose(better_and_equal(ctx, direction, a, b)[0], a, b)
        return ctx.elementwise(f"stablehlo.{self.hlo}", a, b, out=ctx.avals[a])

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(type(self)(*self.how.around(d)), x), d


@primitive("reduce_window_sum")
class ReduceWindowSum(WindowFold):
    """The sum of each window."""

    hlo, numpy, initial = "add", np.add, staticmethod(lambda dtype: 0)

    def typing(self, x):
        if not is_number(x.dtype):
            raise errors.explained(
                errors.ArgumentTypeError, "reduce_window_sum.C1",
                f"operand to reduce_window_sum must have a number dtype, got {x.dtype.name}",
                advice="Convert the operand first, for example with x.astype(jnp.int32).")
        return super().typing(x)

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        return bind(self, x), None if t is None else bind(self, t)

    def transpose(self, ct, x):
        """Sum the windows of the cotangent that each element of the operand was part of."""
        aval, counts = x.aval, aval_of(ct).shape
        if not aval.size or 0 in counts:
            return [zeros_of(aval)]
        edges = []
        for n, count, (w, step, (low, _), base, dil) in zip(aval.shape, counts, zip(*self.how)):
            reach = stretched(w, dil) - 1
            before = reach - low
            after = reach + stretched(n, base) - before - stretched(count, step)
            edges.append((before, after, step - 1))
        spread = pad(ct, literal(0, aval_of(ct).dtype), edges)
        none = ((0, 0),) * aval.ndim
        ones = (1,) * aval.ndim
        return [bind(ReduceWindowSum(self.window_dimensions, self.base_dilation, none, ones,
                                     self.window_dilation), spread)]


class WindowExtremum(WindowFold):
    """The largest or smallest of each window; the tangent is that of the element chosen."""

    __slots__ = ()
    select: ClassVar[type[Primitive]]

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        if t is None:
            return out, None
        how = self.how
        return out, bind(SelectAndGatherAdd(handle_of(self.select()), *how), t, x)

    transpose = NOT_LINEAR


@primitive("reduce_window_max")
class ReduceWindowMax(WindowExtremum):
    passes_nan = True
    hlo, numpy, initial, select = "maximum", np.maximum, staticmethod(lowest), Ge


@primitive("reduce_window_min")
class ReduceWindowMin(WindowExtremum):
    passes_nan = True
    hlo, numpy, initial, select = "minimum", np.minimum, staticmethod(highest), Le


# -- the derivative of an extremum -----------------------------------------------------------------


def worst(select: Handle, dtype: Any) -> Any:
    """Return the value that every other is chosen over."""
    return np.asarray((lowest if select.name == "ge" else highest)(dtype)).astype(dtype)[()]


def beats(select: Handle, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (np.greater_equal if select.name == "ge" else np.less_equal)(a, b)


@primitive("select_and_gather_add")
class SelectAndGatherAdd(Primitive):
    """For each window of ``operand``, the element of ``tangents`` at the place that is chosen."""

    select_prim: Handle
    window_dimensions: Sizes
    window_strides: Sizes
    padding: Padding
    base_dilation: Sizes
    window_dilation: Sizes

    how = Window.how

    shard_results = sharding_rules.window
    quick_code = False

    def typing(self, tangents, operand):
        if tangents.shape != operand.shape:
            raise errors.explained(
                errors.ArgumentTypeError, "select_and_gather_add.C1",
                "select_and_gather_add tangents and operand shapes must match, "
                f"got {tangents.shape} and {operand.shape}.",
                advice="Both are folded by the same windows.")
        return ShapedArray(self.how.out_shape(operand.shape), tangents.dtype)

    def evaluate(self, tangents, operand):
        how, shape = self.how, self.how.out_shape(operand.shape)
        low = worst(self.select_prim, operand.dtype)
        values, others = laid_out(operand, how, low), laid_out(tangents, how, 0)
        best, out = np.full(shape, low, operand.dtype), np.zeros(shape, tangents.dtype)
        for place in window_places(how, shape):
            stays = beats(self.select_prim, best, values[place])
            best = np.where(stays, best, values[place])
            out = np.where(stays, out, others[place])
        return out

    def lower(self, ctx, tangents, operand):
        scalars = [ShapedArray((), ctx.avals[x].dtype) for x in (operand, tangents)]
        starts = [ctx.constant(worst(self.select_prim, scalars[0].dtype), scalars[0]),
                  ctx.constant(0, scalars[1])]

        def choose(a: str, ta: str, b: str, tb: str) -> list[str]:
            stays = ctx.compare(self.select_prim.name.upper(), a, b)
            return [ctx.choose(stays, a, b), ctx.choose(stays, ta, tb)]

        region = ctx.region([*scalars, *scalars], choose)
        operands = [operand, tangents, *starts]
        shape = ctx.out_avals[0].shape
        return ctx.emit_many(
            f'"stablehlo.reduce_window"({", ".join(operands)}) <{{{self.how.attributes()}}}>',
            *operands, outs=[ShapedArray(shape, a.dtype) for a in scalars], regions=[region])[1]

    def jvp(self, primals, tangents):
        return bind(self, *primals), None if tangents[0] is None else bind(
            self, tangents[0], primals[1])

    def transpose(self, ct, tangents, operand):
        if any(n != 1 for n in self.window_dilation):
            raise errors.explained(
                NotImplementedError, "select_and_gather_add.C2",
                "VJP not implemented for select_and_gather (MaxPool) with window dilation, got "
                f"window_dilation={self.window_dilation}.",
                advice="Use jax.jvp, or gather the windows and take jnp.max of each.")
        if not isinstance(tangents, UndefinedPrimal):
            return [None, None]
        dilated = any(n != 1 for n in self.base_dilation)
        if dilated:
            low = worst(self.select_prim, aval_of(operand).dtype)
            operand = pad(operand, low, [(0, 0, n - 1) for n in self.base_dilation])
        out = bind(SelectAndScatterAdd(self.select_prim, self.window_dimensions,
                                       self.window_strides, self.padding), ct, operand)
        if dilated:
            shape = aval_of(operand).shape
            out = slice_(out, (0,) * len(shape), shape, self.base_dilation)
        return [out, None]

    def batch(self, size, xs, dims):
        return bind(SelectAndGatherAdd(self.select_prim, *self.how.around(0)),
                    *stacked(size, xs, dims)), 0


@primitive("select_and_scatter_add")
class SelectAndScatterAdd(Primitive):
    """Zeros of the shape of ``operand``; to the place chosen in a window its source is added."""

    select_prim: Handle
    window_dimensions: Sizes
    window_strides: Sizes
    padding: Padding

    shard_results = sharding_rules.select_and_scatter_add
    quick_code = False

    @property
    def how(self) -> Sliding:
        return Sliding.undilated(self.window_dimensions, self.window_strides, self.padding)

    def typing(self, source, operand):
        if self.how.out_shape(operand.shape) != source.shape:
            raise errors.explained(
                errors.ArgumentTypeError, "select_and_scatter_add.C1",
                f"select_and_scatter_add source of shape {source.shape} must have one element for "
                f"each window of the operand, {self.how.out_shape(operand.shape)}.",
                advice="The source is a cotangent of what the windows were folded into.")
        return ShapedArray(operand.shape, source.dtype)

    def evaluate(self, source, operand):
        how = self.how
        values = laid_out(operand, how, worst(self.select_prim, operand.dtype))
        count = values.size
        number = np.arange(count).reshape(values.shape)
        best = chosen = None
        for place in window_places(how, source.shape):
            if best is None:
                best, chosen = values[place].copy(), number[place].copy()
                continue
            stays = beats(self.select_prim, best, values[place])
            best = np.where(stays, best, values[place])
            chosen = np.where(stays, chosen, number[place])
        sums = np.zeros(count, source.dtype)
        np.add.at(sums, np.asarray(chosen, int).reshape(-1), source.reshape(-1))
        back = how._replace(padding=tuple((-low, -high) for low, high in self.padding))
        return laid_out(sums.reshape(values.shape), back, 0)

    def lower(self, ctx, source, operand):
        aval, kind = ctx.avals[operand], ctx.avals[source].dtype
        low, high = zip(*self.padding) if self.padding else ((), ())
        start = ctx.constant(worst(self.select_prim, aval.dtype), ShapedArray((), aval.dtype))
        shape = tuple(n + a + b for n, (a, b) in zip(aval.shape, self.padding))
        wide = ctx.pad(operand, start, low, high, ShapedArray(shape, aval.dtype))
        zero = ctx.constant(0, ShapedArray((), kind))
        select = ctx.region([ShapedArray((), aval.dtype)] * 2, lambda a, b: [
            ctx.compare(self.select_prim.name.upper(), a, b)])
        scatter = ctx.region([ShapedArray((), kind)] * 2, lambda a, b: [
            ctx.elementwise("stablehlo.add", a, b, out=ctx.avals[a])])
        fields = [array_text("window_dimensions", self.window_dimensions),
                  array_text("window_strides", self.window_strides),
                  padding_text(((0, 0),) * aval.ndim)]
        out = ctx.emit(
            f'"stablehlo.select_and_scatter"({wide}, {source}, {zero}) <{{{", ".join(fields)}}}>',
            wide, source, zero, out=ShapedArray(shape, kind), regions=[select, scatter])
        if any(is_nonnegative(n) is False for n in (*low, *high)):  # what was cut off gets zeros
            return ctx.pad(out, zero, [-a for a in low], [-b for b in high],
                           ShapedArray(aval.shape, kind))
        return ctx.slice(out, list(low), [n - b for n, b in zip(shape, high)])

    def jvp(self, primals, tangents):
        return bind(self, *primals), None if tangents[0] is None else bind(
            self, tangents[0], primals[1])

    def transpose(self, ct, source, operand):
        if not isinstance(source, UndefinedPrimal):
            return [None, None]
        return [bind(SelectAndGatherAdd(self.select_prim, *self.how), ct, operand), None]

    def batch(self, size, xs, dims):
        how = self.how.around(0)
        return bind(SelectAndScatterAdd(self.select_prim, how.dims, how.strides, how.padding),
                    *stacked(size, xs, dims)), 0


# -- windows as callers give them -----------------------------------------------------------------


def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int],
                    window_strides: Sequence[int], padding: Any) -> list[tuple[int, int]]:
    """Return the padding before and after each axis that ``padding`` names.

    'VALID' pads nothing; with 'SAME' there are as many windows as steps, what is odd stands at the
    end ('SAME_LOWER': at the beginning).
    Raises: RuntimeError for another name.

    >>> lax.padtype_to_pads((5,), (3,), (1,), "SAME")
    [(1, 1)]
    """
    name = padding.upper() if isinstance(padding, str) else getattr(padding, "name", padding)
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise errors.explained(
            RuntimeError, "padding.C1",
            "Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got "
            f"{padding}.", advice="Or give a pair of numbers for each axis.")
    pads = []
    sizes = np.broadcast_arrays(in_shape, window_shape, window_strides)
    for n, w, step in zip(*(side.tolist() for side in sizes)):
        total = max((-(-n // step) - 1) * step + w - n, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return pads


def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Padding,
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> Sizes:
    """Return how many windows there are along each axis.

    >>> lax.reduce_window_shape_tuple((4, 5), (2, 2), (2, 1), ((0, 0), (1, 1)))
    (2, 6)
    """
    ones = (1,) * len(operand_shape)
    return Sliding(tuple(window_dimensions), tuple(window_strides), tuple(padding),
                   tuple(base_dilation or ones), tuple(window_dilation or ones)
                   ).out_shape(operand_shape)

"""How are rows of one matrix multiplied by different matrices, group by group?

``ragged_dot_general`` is a matrix product in which one axis of lhs (the *ragged* one) is made of
groups of consecutive elements, whose sizes are an operand.  What a group means follows from the
kind of the ragged axis:

- a free axis: group i is multiplied by matrix i of rhs, (m, k) and (g, k, n) give (m, n);
- a contracting axis: each group is summed by itself, (m, k) and (k, n) give (g, m, n);
- a batch axis: the product is the ordinary one.

All are one masked product: lhs is repeated for each group, with zeros outside it.

Read before: ``ops.contract``.
Invariant: elements in no group count as zero, where the ragged axis is no batch axis
(tests/kernel/test_products.py).
Source: the documentation of jax.lax.ragged_dot_general.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem._jaxlib import Array
from saem.compile.lowering import lower_primitive
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import batch_entry
from saem.core.infer import infer
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.sharded import with_entry
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.contract import (
    Axes,
    DimensionNumbers,
    DotDimensionNumbers,
    DotGeneral,
    PrecisionLike,
    as_operand,
    canonicalize_precision,
    check_dimensions,
    product_dtype,
)
from saem.ops.cumulative import CumSum
from saem.ops.linear import (
    Transpose,
    add_cotangents,
    broadcast_in_dim,
    permute,
    shift_axes,
    stacked,
)
from saem.placement.shardings import requested_sharding


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Which axes of a ragged product are contracted, run side by side, and are made of groups.

    ``dot_dimension_numbers`` is that of ``lax.dot_general``; ``lhs_ragged_dimensions`` has the one
    axis of lhs that is made of groups; ``rhs_group_dimensions`` has the axis of rhs that counts
    groups if the ragged axis is a free one, else nothing.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        numbers = tuple(tuple(tuple(int(d) for d in axes) for axes in pair)
                        for pair in self.dot_dimension_numbers)
        for name, value in (("dot_dimension_numbers", numbers),
                            ("lhs_ragged_dimensions", _ints(self.lhs_ragged_dimensions)),
                            ("rhs_group_dimensions", _ints(self.rhs_group_dimensions))):
            object.__setattr__(self, name, value)


def _ints(axes: Sequence[int]) -> Axes:
    return tuple(int(a) for a in axes)


FREE, SUMMED, SIDE_BY_SIDE = "noncontracting", "contracting", "batch"


@primitive("ragged_dot_general")
class RaggedDotGeneral(Primitive):
    """Multiply group by group; operands are lhs, rhs and the sizes of the groups."""

    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers
    precision: Any = None
    preferred_element_type: Any = None
    group_offset: None = None
    out_sharding: Any = None

    is_product = True
    shard_results = sharding_rules.ragged_dot
    sum_results = sum_rules.dot_general
    handed_on = ("precision",)
    requested_sharding = property(operator.attrgetter("out_sharding"))

    def printed_params(self):
        kind = self.preferred_element_type
        return {**dict(sorted(self.params.items())),
                "preferred_element_type": None if kind is None else np.dtype(kind).name}

    @property
    def dimension_numbers(self) -> DimensionNumbers:
        return self.ragged_dot_dimension_numbers.dot_dimension_numbers

    @property
    def ragged(self) -> int:
        """The axis of lhs that is made of groups."""
        return self.ragged_dot_dimension_numbers.lhs_ragged_dimensions[0]

    @property
    def mode(self) -> str:
        """What kind of axis the ragged one is."""
        (xc, _), (xb, _) = self.dimension_numbers
        return SUMMED if self.ragged in xc else SIDE_BY_SIDE if self.ragged in xb else FREE

    def axes(self, x_ndim: int, y_ndim: int) -> tuple[Axes, Axes, Axes]:
        """Return the batch axes of lhs, the free axes of lhs, and the free axes of rhs."""
        batch, left, right = DotGeneral(self.dimension_numbers).axes(x_ndim, y_ndim)
        groups = self.ragged_dot_dimension_numbers.rhs_group_dimensions
        return batch, left, tuple(a for a in right if a not in groups)

    def outer(self, x_ndim: int) -> Axes:
        """Return the axes of lhs along which sizes of groups may differ, in their order there."""
        (xc, _), (xb, _) = self.dimension_numbers
        if self.mode == SIDE_BY_SIDE:
            return xb[:xb.index(self.ragged)]
        row = xc if self.mode == SUMMED else self.axes(x_ndim, 0)[1]
        return (*xb, *row[:row.index(self.ragged)])

    def ordinary_product(self) -> DotGeneral:
        """Return the product without groups."""
        return DotGeneral(self.dimension_numbers, self.precision, self.preferred_element_type)

    def with_numbers(self, numbers: DimensionNumbers, ragged: Sequence[int],
                     groups: Sequence[int], sharding: Any = None) -> RaggedDotGeneral:
        """Return the product along other axes."""
        return RaggedDotGeneral(RaggedDotDimensionNumbers(numbers, ragged, groups),
                                self.precision, self.preferred_element_type, None, sharding)

    def masked_product(self) -> DotGeneral:
        """Return the product of lhs, repeated for each group along a new first axis, with rhs."""
        (xc, yc), (xb, yb) = self.dimension_numbers
        groups = self.ragged_dot_dimension_numbers.rhs_group_dimensions
        xc, xb = shift_axes(xc, 0), shift_axes(xb, 0)
        if self.mode == FREE:
            xc, yc = (0, *xc), (*groups, *yc)
        return DotGeneral(((xc, yc), (xb, yb)), self.precision, self.preferred_element_type)

    def typing(self, x, y, sizes):
        self.check(x, y, sizes)
        batch, left, right = self.axes(x.ndim, y.ndim)
        shape = (*(x.shape[a] for a in (*batch, *left)), *(y.shape[a] for a in right))
        if self.mode == SUMMED:
            shape = (sizes.shape[-1], *shape)
        if self.preferred_element_type is not None:
            return ShapedArray(shape, self.preferred_element_type)
        return ShapedArray(shape, product_dtype(x.dtype, y.dtype), x.weak_type and y.weak_type)

    def check(self, x: ShapedArray, y: ShapedArray, sizes: ShapedArray) -> None:
        """Refuse operands that do not fit.  Raises: TypeError."""
        def refuse(number: int, sentence: str) -> None:
            raise errors.explained(
                errors.ArgumentTypeError, f"ragged_dot_general.C{number}", sentence,
                advice=f"The operands are {x.str_short(True)}, {y.str_short(True)} and sizes of "
                f"groups {sizes.str_short(True)}; lax.ragged_dot takes (m, k), (g, k, n) and (g,).")

        numbers = self.ragged_dot_dimension_numbers
        check_dimensions(self.dimension_numbers, x, y)
        if len(numbers.lhs_ragged_dimensions) != 1:
            refuse(1, "ragged_dot_general expects exactly one lhs ragged dimension.")
        if not 0 <= self.ragged < x.ndim:
            refuse(2, "ragged_dot_general requires lhs ragged dimension numbers to be nonnegative "
                   "and less than the number of axes of the lhs value, "
                   f"got {self.ragged} for lhs of rank {x.ndim}.")
        groups = numbers.rhs_group_dimensions
        for axis in groups:
            if not 0 <= axis < y.ndim:
                refuse(3, "ragged_dot_general requires rhs group dimension numbers to be "
                       "nonnegative and less than the number of axes of the rhs value, "
                       f"got {axis} for rhs of rank {y.ndim}.")
        (_, yc), (_, yb) = self.dimension_numbers
        if set(groups) & {*yc, *yb}:
            refuse(4, "ragged_dot_general requires rhs group dimension numbers to be distinct from "
                   "contracting and batch dimensions.")
        if self.mode == FREE and len(groups) != 1:
            refuse(5, "ragged_dot_general requires exactly one rhs group dimension when lhs ragged "
                   "dimension is noncontracting.")
        if self.mode != FREE and groups:
            refuse(6, "ragged_dot_general requires zero group dimensions in the rhs when lhs "
                   "ragged dimension is contracting or batch.")
        if not dtypes.is_integer(sizes.dtype):
            refuse(7, "ragged_dot_general requires that group_sizes.dtype is subtype of "
                   f"np.integer, got {sizes.dtype.name}.")
        if not sizes.ndim:
            refuse(8, "expected rank of group_sizes to be at least 1.")
        count = sizes.shape[-1]
        shape = (*(x.shape[a] for a in self.outer(x.ndim)), count)
        if sizes.shape not in (shape, (count,)):
            refuse(9, f"expected group_sizes to have shape {shape}, got {sizes.shape}.")
        if groups and y.shape[groups[0]] != count:
            refuse(10, f"expected rhs group dimension size to be {count}, "
                   f"got {y.shape[groups[0]]}.")

    def evaluate(self, x, y, sizes):
        if self.mode == SIDE_BY_SIDE:
            return self.ordinary_product().evaluate(x, y)
        outer = self.outer(x.ndim)
        ends = np.cumsum(sizes.astype(np.int64), -1)
        first = ends - sizes
        shape = [1] * (x.ndim + 1)
        shape[0] = sizes.shape[-1]
        if sizes.ndim > 1:
            for axis in outer:
                shape[axis + 1] = x.shape[axis]
            order = np.argsort([*(a + 1 for a in outer), 0])
            ends, first = np.transpose(ends, order), np.transpose(first, order)
        ends, first = ends.reshape(shape), first.reshape(shape)
        place = np.arange(x.shape[self.ragged]).reshape(
            [-1 if a == self.ragged else 1 for a in range(x.ndim)])
        inside = (first <= place) & (place < ends)
        parts = np.where(inside, x, np.zeros((), x.dtype))
        out = self.masked_product().evaluate(parts, y)
        at = len(self.dimension_numbers[1][0])
        return np.moveaxis(out, at, 0) if self.mode == SUMMED else out

    def lower(self, ctx, x, y, sizes):
        def write(prim: Primitive, *operands: str) -> str:
            avals = [ctx.avals[o] for o in operands]
            return lower_primitive(ctx, prim, operands, avals, [infer(prim, avals)])[0]

        if self.mode == SIDE_BY_SIDE:
            return write(self.ordinary_product(), x, y)
        aval, last = ctx.avals[x], len(ctx.avals[sizes].shape) - 1
        sizes = ctx.convert(sizes, np.dtype(np.int32))
        shape = (ctx.avals[sizes].shape[-1], *aval.shape)
        dims = (*shift_axes(self.outer(aval.ndim), 0), 0) if last else (0,)
        ends = write(CumSum(last, False), sizes)
        first = ctx.elementwise("stablehlo.subtract", ends, sizes, out=ctx.avals[ends])
        place = ctx.iota(self.ragged + 1, ShapedArray(shape, np.dtype(np.int32)))
        after = ctx.compare("LE", ctx.broadcast(first, shape, dims), place)
        before = ctx.compare("LT", place, ctx.broadcast(ends, shape, dims))
        inside = ctx.elementwise("stablehlo.and", after, before, out=ctx.avals[after])
        zero = ctx.constant(0, ShapedArray(shape, aval.dtype))
        parts = ctx.choose(inside, ctx.broadcast(x, shape, range(1, len(shape))), zero)
        out = write(self.masked_product(), parts, y)
        if self.mode == FREE:
            return out
        at, rank = len(self.dimension_numbers[1][0]), len(ctx.avals[out].shape)
        order = (at, *(a for a in range(rank) if a != at))
        return write(Transpose(order), out) if at else out

    def jvp(self, primals, tangents):
        (x, y, sizes), (tx, ty, _) = primals, tangents
        from_x = None if tx is None else bind(self, tx, y, sizes)
        from_y = None if ty is None else bind(self, x, ty, sizes)
        return bind(self, x, y, sizes), add_cotangents(from_x, from_y)

    def transpose(self, ct, x, y, sizes):
        """Each cotangent is a ragged product again, of operands in the order batch, rest, summed.

        In that order the axes along which sizes of groups may differ keep theirs.
        """
        axes = self.axes(*(
            v.ndim if isinstance(v, UndefinedPrimal) else aval_of(v).ndim for v in (x, y)))
        if isinstance(x, UndefinedPrimal):
            out, places = self.cotangent_of_left(ct, y, sizes, *axes)
            return [as_operand(out, places, x.aval), None, None]
        out, places = self.cotangent_of_right(ct, x, sizes, *axes)
        return [None, as_operand(out, places, y.aval), None]

    def ragged_place(self, batch: Axes, left: Axes) -> int:
        """Return where the ragged axis stands among those of batches, then those of the left."""
        if self.mode == SIDE_BY_SIDE:
            return batch.index(self.ragged)
        return len(batch) + left.index(self.ragged)

    def cotangent_of_left(self, ct: Any, y: Any, sizes: Any, batch: Axes, left: Axes, right: Axes
                          ) -> tuple[Any, Axes]:
        """Return the cotangent of the left operand, and which of its axes each axis of that is."""
        (xc, yc), (xb, yb) = self.dimension_numbers
        n, sums, m, k = len(batch), len(xc), len(left), len(right)
        heads = tuple(range(n))
        if self.mode == SUMMED:
            # (g, b, m, n) and (b, k, n) give (b, k, m).
            other = permute(y, (*yb, *yc, *right))
            ct_n = tuple(range(1 + n + m, 1 + n + m + k))
            other_n = tuple(range(n + sums, n + sums + k))
            prim = self.with_numbers(((other_n, ct_n), (heads, shift_axes(heads, 0))),
                                     [n + xc.index(self.ragged)], [0])
            return bind(prim, other, ct, sizes), (*xb, *xc, *left)
        # (b, m, n) and (g, b, k, n) give (b, m, k).
        groups = self.ragged_dot_dimension_numbers.rhs_group_dimensions
        lead = len(groups)
        other = permute(y, (*groups, *yb, *yc, *right))
        ct_n = tuple(range(n + m, n + m + k))
        other_n = tuple(range(lead + n + sums, lead + n + sums + k))
        prim = self.with_numbers(((ct_n, other_n), (heads, tuple(h + lead for h in heads))),
                                 [self.ragged_place(batch, left)], range(lead))
        return bind(prim, ct, other, sizes), (*xb, *left, *xc)

    def cotangent_of_right(self, ct: Any, x: Any, sizes: Any, batch: Axes, left: Axes, right: Axes
                           ) -> tuple[Any, Axes]:
        """Return the cotangent of the right operand, and which of its axes each axis of that is."""
        (xc, yc), (xb, yb) = self.dimension_numbers
        n, sums, m = len(batch), len(xc), len(left)
        heads = tuple(range(n))
        if self.mode == SUMMED:
            # (b, k, m) and (g, b, m, n) give (b, k, n).
            other = permute(x, (*xb, *xc, *left))
            summed = tuple(range(n + sums, n + sums + m)), tuple(range(1 + n, 1 + n + m))
            prim = self.with_numbers((summed, (heads, shift_axes(heads, 0))),
                                     [n + xc.index(self.ragged)], [0])
            return bind(prim, other, ct, sizes), (*yb, *yc, *right)
        # (b, m, k) and (b, m, n) give (g, b, k, n).
        other = permute(x, (*xb, *left, *xc))
        summed = tuple(range(n, n + m)), tuple(range(n, n + m))
        prim = self.with_numbers((summed, (heads, heads)), [self.ragged_place(batch, left)], [])
        groups = self.ragged_dot_dimension_numbers.rhs_group_dimensions
        return bind(prim, other, ct, sizes), (*groups, *yb, *yc, *right)

    def batch(self, size, xs, dims):
        (xc, yc), (xb, yb) = self.dimension_numbers
        rank = len(aval_of(xs[0]).shape) - (dims[0] is not None)
        numbers = self.ragged_dot_dimension_numbers
        sizes, dim = xs[2], dims[2]
        x, y = stacked(size, xs[:2], dims[:2])
        whole = len(aval_of(sizes).shape) - (dim is not None) > 1
        if dim is not None or whole:
            # Sizes differ between examples: they are written out along every outer axis.
            (sizes,) = stacked(size, [sizes], [dim])
            shape = (*(aval_of(x).shape[a + 1] for a in self.outer(rank)),
                     aval_of(sizes).shape[-1])
            dims_of = tuple(range(len(shape) + 1)) if whole else (0, len(shape))
            sizes = broadcast_in_dim(sizes, (size, *shape), dims_of)
        up = shift_axes
        place = 1 if self.mode == SUMMED else 0
        prim = self.with_numbers(
            ((up(xc, 0), up(yc, 0)), ((0, *up(xb, 0)), (0, *up(yb, 0)))),
            up(numbers.lhs_ragged_dimensions, 0), up(numbers.rhs_group_dimensions, 0),
            with_entry(self.out_sharding, place, batch_entry()))
        return bind(prim, x, y, sizes), place


def ragged_dot_general(lhs: Array, rhs: Array, group_sizes: Array,
                       ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                       precision: PrecisionLike = None,
                       preferred_element_type: Any = None,
                       group_offset: Array | None = None,
                       out_sharding: Any = None) -> Array:
    """Return the product of ``lhs`` and ``rhs``, group by group along an axis of ``lhs``.

    ``group_sizes`` has shape (g,), or one row for each place along the axes outside the ragged one:
    batch axes, then free axes (or contracting axes, if the ragged one is such) before it.  With a
    contracting ragged axis the result has a first axis of g.

    Raises: TypeError for axes and sizes that do not fit, and for ``group_offset``, which JAX
    declares and refuses.
    """
    if not isinstance(ragged_dot_dimension_numbers, RaggedDotDimensionNumbers):
        raise TypeError("ragged_dot_general needs RaggedDotDimensionNumbers, got "
                        f"{type(ragged_dot_dimension_numbers)}")
    if group_offset is not None:
        raise errors.explained(
            errors.ArgumentTypeError, "ragged_dot_general.C11",
            "ragged_dot_general does not accept a group_offset.",
            advice="Give the matrices of all groups, or slice group_sizes and lhs.")
    preferred = None if preferred_element_type is None else dtypes.canonicalize(
        preferred_element_type, explicit=True, where="ragged_dot_general")
    sharding = None
    if out_sharding is not None:
        plain = RaggedDotGeneral(ragged_dot_dimension_numbers)
        axes = plain.axes(aval_of(lhs).ndim, aval_of(rhs).ndim)
        rank = sum(map(len, axes)) + (plain.mode == SUMMED)
        sharding = requested_sharding(out_sharding, rank, "ragged_dot_general")
    prim = RaggedDotGeneral(ragged_dot_dimension_numbers, canonicalize_precision(precision),
                            preferred, None, sharding)
    return bind(prim, lhs, rhs, group_sizes)


def ragged_dot(lhs: Array, rhs: Array, group_sizes: Array,
               precision: PrecisionLike = None, preferred_element_type: Any = None,
               group_offset: Array | None = None, out_sharding: Any = None) -> Array:
    """Return the rows of ``lhs`` multiplied by the matrix of their group; others are zero.

    ``lhs``: f[m k]; ``rhs``: f[g k n]; ``group_sizes``: i[g]; returns f[m n].

    >>> import saem as jax
    >>> import saem.numpy as jnp
    >>> rows, matrices = jnp.ones((3, 2)), jnp.arange(8.).reshape(2, 2, 2)
    >>> jax.lax.ragged_dot(rows, matrices, jnp.array([1, 2]))
    Array([[ 2.,  4.],
           [10., 12.],
           [10., 12.]], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(lhs, rhs, group_sizes, numbers, precision, preferred_element_type,
                              group_offset, out_sharding)

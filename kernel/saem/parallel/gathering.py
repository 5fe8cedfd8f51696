"""How do devices gather the parts that they hold, and scatter sums to those who need a part?

Read before: ``ops.device_sums``.  Read after: ``parallel.exchanges``.
Invariant: ``all_gather`` and ``reduce_scatter`` are each other's transposes.
Source: StableHLO specification, all_gather and reduce_scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile.collective_text import CHANNEL, Groups, device_axes, groups_text, reduce_region
from saem.core import axes as named_axes
from saem.core import errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import as_names, size_of
from saem.core.placement_types import Sums
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops import arithmetic, sharding_rules, sum_rules
from saem.ops.collectives import axis_index, check_names, vary_over
from saem.ops.device_sums import elsewhere, no_groups, times
from saem.ops.dynamic_slicing import dynamic_slice_in_dim
from saem.ops.linear import (
    Linear,
    broadcast_new_dim,
    moveaxis,
    reduce_sum,
)
from saem.ops.shape import reshape, squeeze


class Exchange(Linear):
    """A linear collective along the axes ``axis_name``, a tuple."""

    __slots__ = ()

    @property
    def collective_axes(self: Any):
        return as_names(self.axis_name)

    def varies(self, vma):
        return vma

    def evaluate(self, x):
        raise elsewhere(self, self.collective_axes)

    def mapped(self) -> bool:
        """Return whether the axis being batched now is one of those."""
        axis = named_axes.batching()
        found = axis is not None and axis.name in self.collective_axes
        if found:
            no_groups(self)
        return found

    def around(self) -> tuple[tuple, int, int]:
        """Return the other names, and the sizes of the axes before and after the mapped one."""
        names, name = self.collective_axes, named_axes.batching().name
        at = names.index(name)
        before, after = names[:at], names[at + 1:]
        return (*before, *after), size_of(before), size_of(after)


def merge_axes(x: Any, axis: int, count: int) -> Any:
    """Return ``x`` with the ``count`` axes from ``axis`` on merged into one."""
    shape = aval_of(x).shape
    size = int(np.prod(shape[axis:axis + count], dtype=int))
    return reshape(x, (*shape[:axis], size, *shape[axis + count:]))


def split_axis(x: Any, axis: int, sizes: Sequence[int]) -> Any:
    """Return ``x`` with ``axis`` split into axes of ``sizes``."""
    shape = aval_of(x).shape
    return reshape(x, (*shape[:axis], *sizes, *shape[axis + 1:]))


class Gathering(Exchange):
    """What the two forms of all_gather share."""

    __slots__ = ()

    shard_results = sharding_rules.exchange
    sum_results = sum_rules.collective

    def typing(self: Any, x):
        d, n = self.all_gather_dimension, self.axis_size
        shape = list(x.shape)
        if self.tiled:
            shape[d] *= n
        else:
            shape.insert(d, n)
        return x.update(shape=tuple(shape))

    def lower(self: Any, ctx, x):
        aval, d = ctx.avals[x], self.all_gather_dimension
        if not self.tiled:
            shape = (*aval.shape[:d], 1, *aval.shape[d:])
            x = ctx.broadcast(x, shape, [i for i in range(len(shape)) if i != d])
        rows = device_axes(ctx, self).groups(self.collective_axes, self.axis_index_groups)
        return ctx.emit(
            f'"stablehlo.all_gather"({x}) <{{all_gather_dim = {d} : i64, {CHANNEL}, '
            f"{groups_text(rows)}, use_global_device_ids}}>", x)

    def batch(self: Any, size, xs, dims):
        (x,), (dim,) = xs, dims
        at = self.all_gather_dimension
        if not self.mapped():
            where = at + (at >= dim) if self.tiled else at + (at > dim)
            return bind(self.over(self.collective_axes, where, self.tiled, self.axis_size), x), \
                dim + (not self.tiled and at <= dim)
        if dim is None:
            x = broadcast_new_dim(x, size, at)
        else:
            x = moveaxis(x, dim, at)
        rest, before, after = self.around()
        if rest:
            x = bind(self.over(rest, at, False, before * after), x)
            x = split_axis(x, at, (before, after))
            x = moveaxis(x, at + 2, at + 1)
            x = merge_axes(x, at, 3)
        return (merge_axes(x, at, 2) if self.tiled else x), None


@primitive("all_gather")
class AllGather(Gathering):
    """The values of all along ``axis_name``, stacked (or joined, if tiled) for each of them."""

    all_gather_dimension: int
    axis_index_groups: Groups
    axis_name: tuple
    axis_size: int
    tiled: bool

    def over(self, names, dimension, tiled, size):
        return AllGather(dimension, self.axis_index_groups, names, size, tiled)

    def transpose(self, ct, x):
        return [bind(ReduceScatter(self.axis_index_groups, self.axis_name, self.axis_size,
                                   self.all_gather_dimension, self.tiled), ct)]


@primitive("all_gather_invariant")
class AllGatherInvariant(Gathering):
    """As all_gather, and the result is known to be the same along ``axis_name``."""

    all_gather_dimension: int
    axis_name: tuple
    axis_size: int
    tiled: bool

    axis_index_groups = None

    def varies(self, vma):
        return vma - set(self.axis_name)

    def over(self, names, dimension, tiled, size):
        return AllGatherInvariant(dimension, names, size, tiled)

    def transpose(self, ct, x):
        """Take this participant's part: every one holds the same cotangent."""
        d = self.all_gather_dimension
        ct = vary_over(ct, self.axis_name, "all_gather")
        width = x.shape[d] if self.tiled else 1
        start = my_start(self.axis_name, width)
        part = dynamic_slice_in_dim(ct, start, width, d)
        return [part if self.tiled else squeeze(part, (d,))]


@primitive("all_gather_reduced")
class AllGatherReduced(Gathering):
    """As all_gather, and the result is reduced along ``axis_name``: its cotangent is unreduced."""

    all_gather_dimension: int
    axis_name: tuple
    axis_size: int
    tiled: bool

    axis_index_groups = None
    starts_sums = True

    def varies(self, vma):
        return vma.difference(self.axis_name)

    def sum_results(self, case):
        (unreduced, reduced), = case.given
        return Sums(unreduced, reduced.union(self.axis_name))

    def over(self, names, dimension, tiled, size):
        return AllGatherReduced(dimension, names, size, tiled)

    def transpose(self, ct, x):
        return [bind(UnreducedReduceScatter(self.axis_name, self.axis_size,
                                            self.all_gather_dimension, self.tiled), ct)]


def my_start(names: tuple, step: int) -> Any:
    """Return the index of this participant along ``names``, times ``step``."""
    from_axes = check_names(names, "axis_index")
    index = axis_index(from_axes if len(from_axes) > 1 else from_axes[0])
    return arithmetic.mul(index, np.int32(step)) if step != 1 else index


class Scattering(Exchange):
    """What the two forms of psum_scatter share."""

    __slots__ = ()

    shard_results = sharding_rules.exchange
    sum_results = sum_rules.collective

    def typing(self: Any, x):
        d, n = self.scatter_dimension, self.axis_size
        shape = list(x.shape)
        if self.tiled:
            if shape[d] % n:
                raise errors.explained(
                    errors.ArgumentError, "psum_scatter.C1",
                    f"tiled reduce_scatter operand scatter dimension size {shape[d]} must be "
                    f"divisible by shard_count {n}.", advice="Pad the operand, or scatter along "
                    "another axis.")
            shape[d] //= n
        elif shape[d] != n:
            raise errors.explained(
                errors.ArgumentError, "psum_scatter.C2",
                f"reduce_scatter operand scatter dimension size {shape[d]} must match shard count "
                f"{n}.", advice="Pass tiled=True to scatter several entries to each.")
        else:
            del shape[d]
        return x.update(shape=tuple(shape))

    def lower(self: Any, ctx, x):
        aval, d = ctx.avals[x], self.scatter_dimension
        shape = (*aval.shape[:d], aval.shape[d] // self.axis_size, *aval.shape[d + 1:])
        rows = device_axes(ctx, self).groups(self.collective_axes, self.axis_index_groups)
        region = reduce_region(ctx, "add", aval.dtype)
        out = ctx.emit(
            f'"stablehlo.reduce_scatter"({x}) <{{{CHANNEL}, {groups_text(rows)}, '
            f"scatter_dimension = {d} : i64, use_global_device_ids}}>", x,
            out=ShapedArray(shape, aval.dtype), regions=[region])
        return out if self.tiled else ctx.reshape(out, ctx.out_avals[0].shape)

    def batch(self: Any, size, xs, dims):
        (x,), (dim,) = xs, dims
        at = self.scatter_dimension
        if not self.mapped():
            where = at + (at >= dim)
            return bind(self.over(self.collective_axes, where, self.tiled, self.axis_size), x), \
                dim - (not self.tiled and where < dim)
        x = times(x, size) if dim is None else reduce_sum(x, (dim,))
        rest, before, after = self.around()
        if not rest and not self.tiled:
            return x, at
        width = aval_of(x).shape[at] // self.axis_size
        x = moveaxis(split_axis(x, at, (before, size, after, width)), at + 1, 0)
        x = merge_axes(x, at + 1, 3)
        if rest:
            x = bind(self.over(rest, at + 1, True, before * after), x)
        return (x if self.tiled else squeeze(x, (at + 1,))), 0


@primitive("reduce_scatter")
class ReduceScatter(Scattering):
    """Sum over ``axis_name``, of which each participant gets its part along an axis."""

    axis_index_groups: Groups
    axis_name: tuple
    axis_size: int
    scatter_dimension: int
    tiled: bool

    def transpose(self, ct, x):
        return [bind(AllGather(self.scatter_dimension, self.axis_index_groups, self.axis_name,
                               self.axis_size, self.tiled), ct)]

    def over(self, names, dimension, tiled, size):
        return ReduceScatter(self.axis_index_groups, names, size, dimension, tiled)


@primitive("unreduced_reduce_scatter")
class UnreducedReduceScatter(Scattering):
    """Each participant's part of the sum of what is unreduced along ``axis_name``."""

    axis_name: tuple
    axis_size: int
    scatter_dimension: int
    tiled: bool

    axis_index_groups = None

    def varies(self, vma):
        return vma.union(self.axis_name)

    def sum_results(self, case):
        (unreduced, reduced), = case.given
        return Sums(unreduced.difference(self.axis_name), reduced)

    def transpose(self, ct, x):
        return [bind(AllGatherReduced(self.scatter_dimension, self.axis_name, self.axis_size,
                                      self.tiled), ct)]

    def over(self, names, dimension, tiled, size):
        return UnreducedReduceScatter(names, size, dimension, tiled)

"""How do the devices of an axis exchange parts of their values?

``all_gather`` gives everybody the stack, ``psum_scatter`` everybody a part of the sum,
``all_to_all`` transposes who holds which part, ``ppermute`` sends whole values along arrows.  Under
``vmap`` these are transposes, reshapes and sums of the stack.

Read before: ``parallel.gathering``.  Read after: ``parallel.shard_map``.
Invariant: all_to_all and ppermute have inverses, which are their transposes.
Source: the documentation of jax.lax; StableHLO specification, all_to_all, collective_permute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile.collective_text import CHANNEL, Groups, device_axes, groups_text
from saem.compile.regions import zeros
from saem.core import axes as named_axes
from saem.core import errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import as_names, size_of
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops import arithmetic, sharding_rules, sum_rules
from saem.ops.collectives import (
    check_names,
    over_leaves,
    state_along,
    vary_further,
    vary_over,
)
from saem.ops.device_sums import canonical_groups, group_size
from saem.ops.linear import (
    broadcast_new_dim,
    permute,
    stacked,
    zeros_of,
)
from saem.ops.shape import canonical_axis, concatenate, expand_dims, squeeze
from saem.ops.slicing import slice_in_dim
from saem.parallel.gathering import (
    AllGather,
    AllGatherInvariant,
    AllGatherReduced,
    Exchange,
    ReduceScatter,
    UnreducedReduceScatter,
    merge_axes,
    split_axis,
)

# -- transposing who holds what --------------------------------------------------------------------


@primitive("all_to_all")
class AllToAll(Exchange):
    """Part k along ``split_axis`` goes to participant k, who joins what comes at ``concat_axis``.

    ``tiled`` only says how the caller asked; the size of the axis is not printed.
    """

    axis_index_groups: Groups
    axis_name: Any
    concat_axis: int
    split_axis: int
    tiled: bool
    axis_size: int

    shard_results = sharding_rules.exchange
    sum_results = sum_rules.collective

    @property
    def params(self):
        return {"split_axis": self.split_axis, "concat_axis": self.concat_axis,
                "axis_name": self.axis_name, "axis_index_groups": self.axis_index_groups,
                "tiled": self.tiled}

    def typing(self, x):
        shape = list(x.shape)
        if shape[self.split_axis] % self.axis_size:
            raise errors.explained(
                errors.ArgumentError, "all_to_all.C1",
                f"The size of all_to_all split_axis ({shape[self.split_axis]}) has to be divisible "
                f"by the size of the named axis {self.axis_name} ({self.axis_size})",
                advice="Pad the operand, or split another axis.")
        shape[self.split_axis] //= self.axis_size
        shape[self.concat_axis] *= self.axis_size
        return x.update(shape=tuple(shape))

    def lower(self, ctx, x):
        rows = device_axes(ctx, self).groups(self.collective_axes, self.axis_index_groups)
        return ctx.emit(
            f'"stablehlo.all_to_all"({x}) <{{{CHANNEL}, concat_dimension = {self.concat_axis} : '
            f"i64, {groups_text(rows)}, split_count = {self.axis_size} : i64, "
            f"split_dimension = {self.split_axis} : i64}}>", x)

    def transpose(self, ct, x):
        return [bind(self.between(self.concat_axis, self.split_axis), ct)]

    def between(self, split, concat):
        return AllToAll(self.axis_index_groups, self.axis_name, concat, split, self.tiled,
                        self.axis_size)

    def batch(self, size, xs, dims):
        (x,), (dim,) = xs, dims
        split, concat = self.split_axis, self.concat_axis
        if not self.mapped():
            out = bind(self.between(split + (split >= dim), concat + (concat >= dim)), x)
            return out, dim
        (x,) = stacked(size, xs, dims)
        if len(self.collective_axes) > 1:
            return self.along_one(x, size), 0
        n = aval_of(x).shape[split + 1]
        x = split_axis(x, split + 1, (size, n // size))
        # The senders stand at 0, the receivers at split + 1: receivers become the stack, and the
        # senders join the concatenated axis, outside its own entries.
        order = [i for i in range(len(aval_of(x).shape)) if i not in (0, split + 1)]
        order.insert(concat, 0)
        x = permute(x, (split + 1, *order))
        return merge_axes(x, concat + 1, 2), 0


    def along_one(self, x, size):
        """Return the result for the stack ``x``, of whose several names the mapped one is one.

        Receivers are numbered by the names in order, and so are senders in the result.
        """
        others, before, after = self.around()
        split, concat = self.split_axis, self.concat_axis
        parts = aval_of(x).shape[split + 1] // (before * size)
        x = split_axis(x, split + 1, (before, size, parts))
        rest = [i for i in range(1, len(aval_of(x).shape)) if i != split + 2]
        x = permute(x, (split + 2, 0, *rest))  # receivers become the stack; senders stand behind
        x = merge_axes(x, split + 2, 2)
        x = bind(AllToAll(None, others, concat + 2, split + 2, self.tiled, before * after), x)
        x = split_axis(x, concat + 2, (before, aval_of(x).shape[concat + 2] // before))
        rest = list(range(2, len(aval_of(x).shape)))
        x = permute(x, (0, *rest[:concat + 1], 1, *rest[concat + 1:]))
        return merge_axes(x, concat + 1, 3)


# -- along arrows ----------------------------------------------------------------------------------


@primitive("ppermute")
class PPermute(Exchange):
    """Send the value from a to b for each (a, b) of ``perm``; who gets none gets zeros."""

    axis_name: tuple
    perm: tuple[tuple[int, int], ...]

    shard_results = sharding_rules.collective
    sum_results = sum_rules.collective

    def typing(self, x):
        return x

    def lower(self, ctx, x):
        if not self.perm:  # no device gets anything
            return zeros(ctx, ctx.avals[x])
        mesh = device_axes(ctx, self)
        rows = mesh.groups([name for name in mesh.sizes if name in self.collective_axes])
        pairs = [[int(row[a]), int(row[b])] for row in rows for a, b in self.perm]
        return ctx.emit(
            f'"stablehlo.collective_permute"({x}) <{{{CHANNEL}, '
            f"{groups_text(np.array(pairs).reshape(-1, 2), 'source_target_pairs')}}}>", x)

    def transpose(self, ct, x):
        return [bind(PPermute(self.axis_name, tuple((b, a) for a, b in self.perm)), ct)]

    def batch(self, size, xs, dims):
        (x,), (dim,) = xs, dims
        if not self.mapped():
            return bind(self, x), dim
        if len(self.collective_axes) > 1:
            return self.batch_several(size, *stacked(size, xs, dims)), 0
        source = {b: a for a, b in self.perm}
        if dim is None:
            if len(source) == size:
                return x, None
            x, dim = broadcast_new_dim(x, size, 0), 0
        return pick(x, [source.get(i) for i in range(size)], dim), dim

    def batch_several(self, size, x):
        """Send along several axes, of which one is the leading axis of the stack ``x``.

        What goes from example s to example t is one permutation along the other axes.
        """
        rest, before, after = self.around()
        shape = (before, size, after)
        arrows: dict[tuple, list] = {}
        for ends in self.perm:
            (a, s, b), (c, t, d) = (np.unravel_index(end, shape) for end in ends)
            arrows.setdefault((int(t), int(s)), []).append(
                (int(a) * after + int(b), int(c) * after + int(d)))
        out: list[Any] = [None] * size
        for (t, s), pairs in sorted(arrows.items()):
            sent = bind(PPermute(rest, tuple(pairs)), slice_in_dim(x, s, s + 1))
            out[t] = sent if out[t] is None else arithmetic.add(out[t], sent)
        blank = ShapedArray((1, *aval_of(x).shape[1:]), aval_of(x).dtype)
        return concatenate([zeros_of(blank) if y is None else y for y in out], 0)


def pick(x: Any, sources: Sequence[int | None], dim: int) -> Any:
    """Return the entries ``sources`` of ``x`` along ``dim``, zeros for None."""
    shape = aval_of(x).shape
    blank = ShapedArray((*shape[:dim], 1, *shape[dim + 1:]), aval_of(x).dtype)
    pieces: list[Any] = []
    i = 0
    while i < len(sources):
        start = sources[i]
        if start is None:
            pieces.append(zeros_of(blank))
            i += 1
            continue
        run = 1
        while i + run < len(sources) and sources[i + run] == start + run:
            run += 1
        pieces.append(slice_in_dim(x, start, start + run, 1, dim))
        i += run
    return concatenate(pieces, dim)


# -- functions, with the names and signatures of jax.lax -------------------------------------------


def bind_typed(prim: Any, x: Any) -> Any:
    """Apply ``prim`` after its typing rule, which under vmap would not be called."""
    prim.typing(aval_of(x))
    return bind(prim, x)


def taking_part(caller: str, axis_name: Any, groups: Any) -> tuple[tuple, Groups, int]:
    """Return the names of the axes, the groups, and how many exchange values with each other."""
    names = check_names(axis_name, caller)
    whole = size_of(names)
    groups = canonical_groups(groups, whole)
    return names, groups, group_size(groups, whole, caller)


def all_gather(x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0,
               tiled: bool = False, to: str = "varying") -> Any:
    """Return the values along ``axis_name`` as a new ``axis``, or joined along it if ``tiled``.

    With ``to="invarying"`` the result is known to be the same on all devices, with
    ``to="reduced"`` it is reduced along the axis.
    Source: the documentation of jax.lax.all_gather.

    >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    names, groups, size = taking_part("all_gather", axis_name, axis_index_groups)
    if to not in ("varying", "invarying", "reduced"):
        raise errors.explained(
            errors.ArgumentError, "all_gather.to",
            "Got unexpected `to` value for `jax.lax.all_gather`. Allowed `to` values are: "
            f"{{'reduced', 'invarying', 'varying'}}. Got {to!r}.", advice="Leave it out.")

    def one(leaf: Any) -> Any:
        at = canonical_axis(axis, len(aval_of(leaf).shape) + (not tiled))
        if to == "reduced":
            return gathered_reduced(leaf, names, AllGatherReduced(at, names, size, tiled))
        leaf = vary_further(leaf, names, "all_gather")
        if to == "invarying" and groups is None:
            return bind(AllGatherInvariant(at, names, size, tiled), leaf)
        return bind(AllGather(at, groups, names, size, tiled), leaf)

    return over_leaves(one, x)


def gathered_reduced(x: Any, names: tuple, prim: AllGatherReduced) -> Any:
    """Return ``x``, which must vary along the axes ``names``, gathered by ``prim``."""
    state = state_along(x, names, "all_gather")
    if state != "varying":
        raise errors.explained(
            errors.ArgumentError, "all_gather.reduced",
            f"{prim.name} is a Varying -> Reduced collective. This means that the "
            f"axis_name={names} passed to `{prim.name}` must be present in "
            f"jax.typeof(x).mat.varying={aval_of(x).vma}" if state else
            f"{prim.name} only accepts inputs that are varying. Got {aval_of(x).str_short(True)}",
            advice="Make it vary first, lax.pcast(x, axes, to='varying'), in a shard_map with "
            "check_vma.")
    return bind(prim, x)


def psum_scatter(x: Any, axis_name: Any, *, scatter_dimension: int = 0,
                 axis_index_groups: Any = None, tiled: bool = False) -> Any:
    """Return this participant's part, along ``scatter_dimension``, of the sum over ``axis_name``.

    Raises: ValueError if that axis cannot be sharded so.
    Source: the documentation of jax.lax.psum_scatter.

    >>> jax.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    names, groups, size = taking_part("psum_scatter", axis_name, axis_index_groups)

    def one(leaf: Any) -> Any:
        at = canonical_axis(scatter_dimension, len(aval_of(leaf).shape))
        if state_along(leaf, names, "psum_scatter") == "unreduced" and groups is None:
            return bind_typed(UnreducedReduceScatter(names, size, at, tiled), leaf)
        leaf = vary_over(leaf, names, "psum_scatter")
        return bind_typed(ReduceScatter(groups, names, size, at, tiled), leaf)

    return over_leaves(one, x)


def all_to_all(x: Any, axis_name: Any, split_axis: int, concat_axis: int, *,
               axis_index_groups: Any = None, tiled: bool = False) -> Any:
    """Return ``x`` with the mapped axis at ``concat_axis`` and ``split_axis`` mapped instead.

    Not tiled, ``split_axis`` has the size of the mapped axis, and ``concat_axis`` is a new axis.
    Raises: ValueError if the sizes do not fit.
    Source: the documentation of jax.lax.all_to_all.

    >>> jax.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    names, groups, size = taking_part("all_to_all", axis_name, axis_index_groups)

    def one(leaf: Any) -> Any:
        leaf = vary_further(leaf, names, "all_to_all")
        shape = aval_of(leaf).shape
        split, concat = canonical_axis(split_axis, len(shape)), canonical_axis(
            concat_axis, len(shape))
        if not tiled and shape[split] != size:
            raise errors.explained(
                errors.ArgumentError, "all_to_all.C2",
                "all_to_all requires the size of the mapped axis axis_name to equal "
                f"x.shape[split_axis], but they are {size} and {shape[split]} respectively.",
                advice="Pass tiled=True to send several entries to each.")
        if tiled or split == concat:
            return bind_typed(AllToAll(groups, axis_name, concat, split, tiled, size), leaf)
        # The split axis goes away, so a concatenated axis behind it stands one further now.
        concat, split = (concat + 1, split) if split < concat else (concat, split + 1)
        wide = expand_dims(leaf, (concat,))
        return squeeze(bind(AllToAll(groups, axis_name, concat, split, tiled, size), wide),
                       (split,))

    return over_leaves(one, x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Return what participant ``a`` held for each (a, b) of ``perm`` where b is this one, else 0.

    Participants along several axes are counted in the order of the mesh, in whatever order
    ``axis_name`` names these.

    Raises: ValueError if a source or destination occurs twice.

    >>> jax.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)]), axis_name="i")(jnp.array([5, 7]))
    Array([7, 5], dtype=int32)
    """
    pairs = tuple((int(a), int(b)) for a, b in perm)
    names = named_axes.outermost_first(check_names(axis_name, "ppermute"))
    size = size_of(names)
    for what, ends in (("sources", [a for a, _ in pairs]), ("destinations", [b for _, b in pairs])):
        if len(set(ends)) != len(ends) or not all(0 <= i < size for i in ends):
            raise errors.explained(
                errors.ArgumentError, "ppermute.C1",
                f"ppermute sources and destinations must be unique, got {tuple(pairs)}. "
                f"The {what} must be different numbers below {size}.",
                advice="Each participant sends at most once and receives at most once.")
    return over_leaves(
        lambda leaf: bind(PPermute(names, pairs), vary_further(leaf, names, "ppermute")), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Return what participant ``perm[i]`` held, i being this one.

    Raises: ValueError if ``perm`` is no permutation of the axis.

    >>> jax.vmap(lambda x: lax.pshuffle(x, "i", [1, 0]), axis_name="i")(jnp.array([5, 7]))
    Array([7, 5], dtype=int32)
    """
    if sorted(int(i) for i in perm) != list(range(size_of(as_names(axis_name)))):
        raise errors.explained(
            errors.ArgumentError, "pshuffle.C1",
            f"`perm` does not represent a permutation: {list(perm)}",
            advice="Name every index of the axis once, or use lax.ppermute.")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Return ``x`` with its ``axis`` mapped and the axis ``axis_name`` in its place.

    >>> jax.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


__all__ = ["all_gather", "all_to_all", "ppermute", "pshuffle", "psum_scatter", "pswapaxes"]

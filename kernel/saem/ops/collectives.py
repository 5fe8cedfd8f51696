"""How do values of different examples, or on different devices, become one?

A collective names an axis: ``psum(x, "i")`` is the sum over all examples or devices along ``i``.
 Under ``vmap(axis_name="i")`` its batch rule turns it into an ordinary operation on the stack;
under ``shard_map`` it becomes a StableHLO collective between devices.  Here are the functions for
sums, maxima, and the index of a device; ``parallel.exchanges`` moves parts from one to another.

Read before: ``core.axes``, ``core.varying``, ``ops.device_sums``.
Read after: ``parallel.exchanges``, ``parallel.shard_map``.
Invariant: an axis name is in a primitive only while it is bound by ``core.axes``.
Source: the documentation of jax.lax.psum and related functions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from saem.compile.collective_text import (
    axis_index_text,
    device_axes,
)
from saem.core import axes as named_axes
from saem.core import dtypes, errors, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import as_names, find, size_of
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind
from saem.core.varying import vma_of
from saem.ops import arithmetic
from saem.ops.compare import Eq
from saem.ops.convert import convert
from saem.ops.device_sums import (
    PMax,
    PMin,
    PReduced,
    PSum,
    PSumInvariant,
    PVary,
    ReducedVaryCast,
    UnreducedPSum,
    VaryUnreducedCast,
    canonical_groups,
    elsewhere,
    group_size,
    is_name,
    names_of,
)
from saem.ops.filling import iota
from saem.ops.linear import (
    broadcast_in_dim,
    number_like,
    zeros_of,
)
from saem.ops.select import select_n
from saem.typing import Array

# -- who am I --------------------------------------------------------------------------------------


@primitive("axis_index")
class AxisIndex(Primitive):
    """The number of this participant along ``axis_name``; it varies if that is ``tracked``."""

    axis_name: Hashable
    tracked: bool = False

    @property
    def params(self):
        return {"axis_name": self.axis_name}

    @property
    def collective_axes(self):
        return (self.axis_name,)

    def varies(self):
        return {self.axis_name} if self.tracked else ()

    def typing(self):
        return ShapedArray((), np.dtype(np.int32))

    def evaluate(self):
        raise elsewhere(self, self.collective_axes)

    def lower(self, ctx):
        mesh = device_axes(ctx, self)
        if not mesh.left:
            return axis_index_text(ctx, mesh, self.axis_name)
        # Partition numbers may be asked only where every axis is manual.
        out = ctx.out_avals[0]
        region = ctx.region([], lambda: [axis_index_text(ctx, mesh, self.axis_name)], shardy=True)
        names = ", ".join(f'"{name}"' for name in mesh.left)
        return ctx.emit(
            f"sdy.manual_computation() in_shardings=[] out_shardings=[<@{mesh.symbol}, []>] "
            f"manual_axes={{{names}}}", out=out, regions=[region])

    def jvp(self, primals, tangents):
        return bind(self), None

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        return iota(np.dtype(np.int32), size), 0


# -- functions, with the names and signatures of jax.lax -------------------------------------------


def checked_names(axes: Sequence[Any]) -> tuple:
    """Return those of ``axes`` along which values are tracked as varying."""
    found = [(a, find(a)) for a in axes if is_name(a)]
    return tuple(a for a, axis in found if axis is not None and axis.checked)


def state_along(x: Any, axes: Sequence[Any], caller: str) -> str:
    """Return what ``x`` is along those of ``axes`` that are tracked, "" if none is.

    That is varying, unreduced, reduced or invarying.
    Raises: ValueError if it is not the same along all.
    """
    if not named_axes.state.checked:
        return ""
    (unreduced, reduced), vma = aval_of(x).sums, vma_of(aval_of(x))
    state = {"varying" if n in vma else "unreduced" if n in unreduced else
             "reduced" if n in reduced else "invarying" for n in checked_names(axes)}
    if len(state) > 1:
        raise errors.explained(
            errors.ArgumentError, f"{caller}.vma",
            f"jax.lax.{caller} can only accept axis_name which corresponds to one of varying, "
            "unreduced, reduced or invarying state of the input. Got input type: "
            f"{aval_of(x).str_short()}, axes: {tuple(axes)} and input state: "
            f"{sorted(state)}.",
            advice="Sum over the axes along which it varies only, or make it vary along the "
            "others first: lax.pcast(x, axes, to='varying').")
    return state.pop() if state else ""


def vary_over(x: Any, axes: Sequence[Any], caller: str) -> Any:
    """Return ``x`` varying along those of ``axes`` that are tracked.

    Raises: ValueError if it varies along some of them only, or is the addends of a sum.
    """
    state = state_along(x, axes, caller)
    return x if state in ("", "varying") else bind(PVary(checked_names(axes)), x)


def vary_further(x: Any, axes: Sequence[Any], caller: str) -> Any:
    """Return ``x`` varying along those of ``axes`` that are tracked; it may along some already.

    Raises: ValueError for the addends of a sum.
    """
    if any(aval_of(x).sums):
        return vary_over(x, axes, caller)
    missing = tuple(a for a in checked_names(axes) if a not in vma_of(aval_of(x)))
    return bind(PVary(missing), x) if missing else x


def over_leaves(fun: Callable[[Any], Any], x: Any) -> Any:
    leaves, treedef = tree.flatten(x)
    return treedef.unflatten([fun(leaf) for leaf in leaves])


def check_names(axis_name: Any, caller: str) -> tuple:
    """Return ``axis_name`` as a tuple of bound names and axis numbers.

    Raises: NameError naming one that is not bound.
    """
    axes = as_names(axis_name)
    named_axes.require(names_of(axes), caller)
    return axes


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the sum of ``x`` over the axis (or axes) called ``axis_name``, leaf by leaf.

    A number known in Python is multiplied by the size of the axis, so ``psum(1, name)`` is it.
    Raises: NameError if an axis is not bound.  Source: the documentation of jax.lax.psum.

    >>> jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.array([1, 3]))
    Array([4, 4], dtype=int32)
    """
    axes = check_names(axis_name, "psum")
    size = size_of(names_of(axes))
    groups = canonical_groups(axis_index_groups, size)

    def one(leaf: Any) -> Any:
        if type(leaf) in (int, float, complex) and len(names_of(axes)) == len(axes):
            return leaf * group_size(groups, size, "psum")
        if dtypes.is_bool(aval_of(leaf).dtype):
            leaf = convert(leaf, dtypes.default_dtype(int))
        local = checked_names(axes)
        if state_along(leaf, axes, "psum") == "unreduced" and groups is None:
            return bind(UnreducedPSum(local), leaf)
        leaf = vary_over(leaf, axes, "psum")
        if not local or groups is not None:
            return bind(PSum(positive(axes, leaf), groups), leaf)
        others = tuple(a for a in axes if a not in local)
        leaf = bind(PSum(positive(others, leaf)), leaf) if others else leaf
        return bind(PSumInvariant(local), leaf)

    return over_leaves(one, x)


def positive(axes: Sequence[Any], x: Any) -> tuple:
    """Return ``axes`` with numbers counted from the front of ``x``."""
    rank = len(aval_of(x).shape)
    return tuple(a if is_name(a) else int(a) + rank * (-rank <= a < 0) for a in axes)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the mean of ``x`` over the axis (or axes) called ``axis_name``, leaf by leaf.

    >>> jax.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.array([1., 3.]))
    Array([2., 2.], dtype=float32)
    """
    count = psum(1, axis_name, axis_index_groups=axis_index_groups)

    def one(leaf: Any) -> Any:
        if type(leaf) in (int, float, complex):
            return leaf * count / count
        total = psum(leaf, axis_name, axis_index_groups=axis_index_groups)
        if not dtypes.is_inexact(aval_of(total).dtype):
            total = convert(total, dtypes.default_dtype(float))
        return arithmetic.div(total, number_like(total, count))

    return over_leaves(one, x)


def _extremum(prim: Any, x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    axes = check_names(axis_name, prim.name)
    groups = canonical_groups(axis_index_groups, size_of(names_of(axes)))

    def one(leaf: Any) -> Any:
        missing = [a for a in checked_names(axes) if a not in vma_of(aval_of(leaf))]
        return bind(prim(positive(axes, leaf), groups), vary_over(leaf, missing, prim.name))

    return over_leaves(one, x)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the greatest ``x`` over the axis (or axes) called ``axis_name``, leaf by leaf.

    >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 3]))
    Array([3, 3], dtype=int32)
    """
    return _extremum(PMax, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the least ``x`` over the axis (or axes) called ``axis_name``, leaf by leaf.

    >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 3]))
    Array([1, 1], dtype=int32)
    """
    return _extremum(PMin, x, axis_name, axis_index_groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Return what participant ``source`` along ``axis_name`` holds, leaf by leaf.

    It is the sum over the axis of a value that is zero but there.
    """
    here = bind(Eq(), axis_index(axis_name), np.int32(source))

    def one(leaf: Any) -> Any:
        aval = aval_of(leaf)
        mask = broadcast_in_dim(here, aval.shape, ())
        return psum(select_n(mask, zeros_of(aval), leaf), axis_name)

    return over_leaves(one, x)


def my_index(name: Hashable) -> Any:
    return bind(AxisIndex(name, bool(checked_names((name,)))))


def axis_index(axis_name: Hashable | Sequence[Hashable]) -> Array:
    """Return the index of this participant along the named axis ``axis_name``, an int32 scalar.

    A participant is an example under ``vmap``, a device under ``shard_map`` and ``pmap``.  Along
    several axes the indices count in row-major order: that of the last name changes fastest.
    Raises: NameError if no axis of that name is in force.

    >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.array([10, 10]))
    Array([10, 11], dtype=int32)
    """
    names = check_names(axis_name, "axis_index")
    if not isinstance(axis_name, (tuple, list)):
        return my_index(axis_name)
    total: Any = np.int32(0)
    step = 1
    for name in reversed(names):
        total = arithmetic.add(total, arithmetic.mul(my_index(name), np.int32(step)))
        step *= size_of((name,))
    return total


def axis_size(axis_name: Any) -> int:
    """Return the size of the axis (or the product over the axes) called ``axis_name``.

    Raises: NameError if it is not bound.

    >>> jax.vmap(lambda x: x * lax.axis_size("i"), axis_name="i")(jnp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """
    return size_of(as_names(axis_name))


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """Return ``x`` as varying, unreduced or reduced along ``axis_name``, leaf by leaf.

    What is invarying may become varying or reduced, what varies unreduced, what is reduced varying.
    Raises: ValueError for another change.
    Source: the documentation of jax.lax.pcast.

    >>> mesh = jax.make_mesh((1,), ("i",))
    >>> P = jax.sharding.PartitionSpec
    >>> jax.shard_map(lambda x: lax.pcast(x, "i", to="varying"), mesh=mesh, in_specs=P(),
    ...     out_specs=P("i"))(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if to not in ("varying", "unreduced", "reduced"):
        raise errors.explained(
            errors.ArgumentError, "pcast.to",
            "Got unexpected `to` value. Allowed `to` values are: {'unreduced', 'reduced', "
            "'varying'}", advice="To make a value unvarying, sum it: lax.psum.")
    names = check_names(axis_name, "pcast")
    tracked = checked_names(names)

    def one(leaf: Any) -> Any:
        state = state_along(leaf, names, "pcast")
        if not state:
            return leaf
        cast = CASTS.get((state, to))
        if cast is None:
            raise errors.explained(
                errors.ArgumentError, "pcast.C1",
                f"Unsupported pcast from={state}, to='{to}': {aval_of(leaf).str_short(True)} is "
                f"{state} along {list(tracked)}.", advice="Name only axes along which it is "
                "something else; jax.typeof(x) shows what it is.")
        return bind(cast(tracked), leaf)

    return over_leaves(one, x)


CASTS = {("invarying", "varying"): PVary, ("invarying", "reduced"): PReduced,
         ("varying", "unreduced"): VaryUnreducedCast, ("reduced", "varying"): ReducedVaryCast}


__all__ = ["axis_index", "axis_size", "pbroadcast", "pcast", "pmax", "pmean", "pmin", "psum"]

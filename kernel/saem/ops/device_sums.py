"""Which operations add up over devices, or say of which values that is still to be done?

``psum`` and its like are sums and maxima over named axes.  Casts compute nothing: what is the same
on all devices becomes a value that may vary, or one addend of a sum.  The transpose of ``pvary``
and of ``preduced`` is a sum, that of the other casts a cast.

Read before: ``ops.linear``, ``core.axes``.  Read after: ``ops.collectives``.
Invariant: a cast, and the sum that is the transpose of one, is its transpose's own transpose.
Source: StableHLO specification, all_reduce; the documentation of jax.shard_map and jax.lax.pcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from saem.compile.collective_text import (
    CHANNEL,
    Groups,
    device_axes,
    groups_text,
    reduce_region,
)
from saem.core import axes as named_axes
from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.placement_types import Sums
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind
from saem.ops import arithmetic, sharding_rules, sum_rules
from saem.ops.linear import (
    Identity,
    Linear,
    broadcast_in_dim,
    dim_after_reduce,
    number_like,
)
from saem.ops.reduce import fold_text, highest, lowest


def is_name(axis: Any) -> bool:
    """Return whether ``axis`` is a name, not the number of an axis of the array itself."""
    return not isinstance(axis, (int, np.integer)) or isinstance(axis, bool)


def names_of(axes: Sequence[Any]) -> tuple:
    return tuple(a for a in axes if is_name(a))


def canonical_groups(groups: Any, size: int) -> Groups:
    """Return ``axis_index_groups`` as tuples.

    Raises: ValueError if they are not a partition of 0..size-1.
    """
    if groups is None:
        return None
    made = tuple(tuple(int(i) for i in group) for group in groups)
    if sorted(i for group in made for i in group) != list(range(size)):
        raise errors.explained(
            errors.ArgumentError, "collective.groups",
            f"axis_index_groups must cover all indices exactly once: got {made} for an axis of "
            f"size {size}.", advice="Name every index 0..size-1 in one group.")
    return made


def group_size(groups: Groups, size: int, caller: str) -> int:
    """Return how many take part together.  Raises: ValueError if groups differ in size."""
    if groups is None:
        return size
    if len({len(group) for group in groups}) != 1:
        raise errors.explained(
            errors.ArgumentError, "collective.groups",
            f"axis_index_groups must all be the same size for {caller}, got {groups}.",
            advice="Split the axis into groups of one size.")
    return len(groups[0])


def no_groups(prim: Any) -> None:
    """Refuse groups on a mapped axis, as JAX does.  Raises: NotImplementedError."""
    if prim.params.get("axis_index_groups") is not None:
        raise errors.explained(
            NotImplementedError, f"{prim.name}.groups",
            "axis_index_groups not supported in vmap collectives.",
            advice="Use shard_map, or reshape the mapped axis into two named ones.")


def elsewhere(prim: Any, names: Sequence[Any]) -> Exception:
    """Return the error for a collective evaluated where only one participant is."""
    return NotImplementedError(
        f"{prim.name} over {', '.join(map(str, names))} needs the values of all participants; "
        "the NumPy evaluator sees one. Evaluate the enclosing vmap or shard_map instead.")


def times(x: Any, size: int) -> Any:
    """Return ``size`` times ``x``: the sum over examples that all hold the same."""
    return arithmetic.mul(number_like(x, size), x)


# -- sums and maxima -------------------------------------------------------------------------------


class AllReduce(Primitive):
    """Combine the values along ``axes``: names, or numbers of the operand's own axes."""

    __slots__ = ()
    axes: tuple
    axis_index_groups: Groups = None

    numpy: ClassVar[str]  # the name of the operation in NumPy and in StableHLO
    stablehlo: ClassVar[str]
    identity: ClassVar[Callable]  # of a dtype: the number that changes nothing
    repeated: ClassVar[Callable]  # of equal values: (value, how many) to their combination

    shard_results = sharding_rules.folding_collective
    sum_results = sum_rules.collective

    @property
    def collective_axes(self) -> tuple:
        return names_of(self.axes)

    @property
    def positional(self) -> tuple[int, ...]:
        return tuple(a for a in self.axes if not is_name(a))

    def varies(self, vma):
        return vma - set(self.axes)

    def typing(self, x):
        if any(not 0 <= a < x.ndim for a in self.positional):
            raise errors.explained(
                errors.ShapeError, f"{self.name}.C1",
                f"reduction axes {self.positional} contains out-of-bounds indices for "
                f"{x.str_short()}.",
                advice="An axis given by number is one of the array's own.")
        return x.update(shape=tuple(
            n for i, n in enumerate(x.shape) if i not in self.positional))

    def evaluate(self, x):
        if self.collective_axes:
            raise elsewhere(self, self.collective_axes)
        return getattr(np, self.numpy)(x, axis=self.positional).astype(x.dtype)

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        if self.positional:
            init = self.identity(aval.dtype)
            shape = tuple(n for i, n in enumerate(aval.shape) if i not in self.positional)
            aval = ShapedArray(shape, aval.dtype)
            x = fold_text(ctx, self.stablehlo, x, init, self.positional, aval)
        if not self.collective_axes:
            return x
        rows = device_axes(ctx, self).groups(self.collective_axes, self.axis_index_groups)
        region = reduce_region(ctx, self.stablehlo, aval.dtype)
        return ctx.emit(
            f'"stablehlo.all_reduce"({x}) <{{{CHANNEL}, {groups_text(rows)}, '
            f"use_global_device_ids}}>", x, out=aval, regions=[region])

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        axis = named_axes.batching()
        named = axis is not None and axis.name in self.axes
        if named:
            no_groups(self)
        if d is None:  # the same for every example
            rest = tuple(a for a in self.axes if a != axis.name)
            x = self.repeated(x, size)
            return (bind(self.over(rest), x) if rest else x), None
        moved = tuple(a if is_name(a) else a + (a >= d) for a in self.axes)
        if not named:
            return bind(self.over(moved), x), dim_after_reduce(self.positional, d)
        return bind(self.over(tuple(d if a == axis.name else a for a in moved)), x), None

    def over(self, axes: tuple) -> Any:
        return type(self)(axes, self.axis_index_groups)


@primitive("psum")
class PSum(AllReduce):
    """Sum over ``axes``."""

    numpy = "sum"
    stablehlo = "add"
    repeated = staticmethod(times)

    @staticmethod
    def identity(dtype):
        return 0

    jvp = Linear.jvp

    def transpose(self, ct, x):
        names = self.collective_axes
        if names:
            ct = bind(PSum(names, self.axis_index_groups), ct)
        kept = tuple(i for i in range(len(x.shape)) if i not in self.positional)
        return [broadcast_in_dim(ct, x.shape, kept)]


class Extremum(AllReduce):
    """Greatest or least over ``axes``.  JAX defines no derivative of it, nor do we."""

    __slots__ = ()

    @staticmethod
    def repeated(x, size):
        return x

    def jvp(self, primals, tangents):
        if all(t is None for t in tangents):
            return bind(self, *primals), None
        raise errors.explained(
            NotImplementedError, f"{self.name}.jvp",
            f"Differentiation rule for '{self.name}' not implemented.",
            advice="Apply lax.stop_gradient to its operand, or gather with lax.all_gather and "
            "take the maximum of the array.")

    transpose = NOT_LINEAR


@primitive("pmax")
class PMax(Extremum):
    """The greatest over ``axes``."""

    numpy = "max"
    stablehlo = "maximum"

    identity = staticmethod(lowest)


@primitive("pmin")
class PMin(Extremum):
    """The least over ``axes``."""

    numpy = "min"
    stablehlo = "minimum"

    identity = staticmethod(highest)


# -- varying or not: the two that make each other's transpose --------------------------------------


@primitive("pvary")
class PVary(Identity):
    """The same value on every device, from now on allowed to differ along ``axes``."""

    axes: tuple

    passes_nan = True
    shard_results = sharding_rules.collective

    @property
    def collective_axes(self):
        return self.axes

    def varies(self, vma):
        return vma | set(self.axes)

    def sum_results(self, case):
        for what, axes in case.given[0]._asdict().items():
            if not axes.isdisjoint(self.axes):
                raise errors.explained(
                    errors.ArgumentError, "pvary.U1",
                    f"pvary cannot accept args which are {what}. Got "
                    f"{case.avals[0].str_short(True)} and axes={set(self.axes)}",
                    advice="Add it up first, lax.psum(x, axes); what is reduced becomes varying by "
                    "lax.pcast(x, axes, to='varying').")
        return case.given[0]

    def transpose(self, ct, x):
        return [bind(PSumInvariant(self.axes), ct)]


@primitive("psum_invariant")
class PSumInvariant(Linear):
    """Sum over the mesh axes ``axes``; the result is the same on all devices along them."""

    axes: tuple

    shard_results = sharding_rules.collective
    sum_results = sum_rules.collective

    @property
    def collective_axes(self):
        return self.axes

    def varies(self, vma):
        return vma - set(self.axes)

    def typing(self, x):
        return x

    def evaluate(self, x):
        raise elsewhere(self, self.axes)

    def lower(self, ctx, x):
        return PSum(self.axes).lower(ctx, x)

    def transpose(self, ct, x):
        return [bind(PVary(self.axes), ct)]

    def batch(self, size, xs, dims):
        """Sum over devices each example; where an axis is a mapped one, over the stack too."""
        (x,), (d,) = xs, dims
        axis = named_axes.batching()
        if axis is None or axis.name not in self.axes:
            return bind(self, x), d
        rest = tuple(a for a in self.axes if a != axis.name)
        x, d = PSum((axis.name,)).batch(size, [x], [d])
        return (bind(type(self)(rest), x) if rest else x), d


# -- sums that wait: unreduced and reduced ---------------------------------------------------------


class Cast(Identity):
    """The same numbers on every device, of which types say something else along ``axes``."""

    __slots__ = ()
    axes: tuple

    passes_nan = True
    shard_results = sharding_rules.collective

    @property
    def collective_axes(self):
        return self.axes


@primitive("preduced")
class PReduced(Cast):
    """What is the same on all devices along ``axes``, from now on with an unreduced cotangent."""

    axes: tuple

    starts_sums = True

    def varies(self, vma):
        return vma

    def sum_results(self, case):
        (unreduced, reduced), = case.given
        return Sums(unreduced, reduced.union(self.axes))

    def transpose(self, ct, x):
        return [bind(UnreducedPSum(self.axes), ct)]


@primitive("reduced_vary_cast_p")
class ReducedVaryCast(Cast):
    """What is reduced along ``axes``, from now on allowed to differ there."""

    axes: tuple

    def varies(self, vma):
        return vma.union(self.axes)

    def sum_results(self, case):
        (unreduced, reduced), = case.given
        return Sums(unreduced, reduced.difference(self.axes))

    def transpose(self, ct, x):
        return [bind(VaryUnreducedCast(self.axes), ct)]


@primitive("vary_unreduced_cast_p")
class VaryUnreducedCast(Cast):
    """What differs along ``axes``, from now on the addends of a sum over them."""

    axes: tuple

    starts_sums = True

    def varies(self, vma):
        if not vma.issuperset(self.axes):
            raise errors.explained(
                errors.ArgumentError, "pcast.C2",
                "vary_unreduced_cast only accepts inputs that are varying. Got axes="
                f"{self.axes} of a value that varies along {sorted(map(str, vma))}.",
                advice="Make it vary first: lax.pcast(x, axes, to='varying').")
        return vma.difference(self.axes)

    def sum_results(self, case):
        (unreduced, reduced), = case.given
        return Sums(unreduced.union(self.axes), reduced)

    def transpose(self, ct, x):
        return [bind(ReducedVaryCast(self.axes), ct)]


@primitive("unreduced_psum")
class UnreducedPSum(PSumInvariant):
    """The sum along ``axes`` of what is unreduced there."""

    axes: tuple

    def varies(self, vma):
        return vma

    def sum_results(self, case):
        (unreduced, reduced), = case.given
        return Sums(unreduced.difference(self.axes), reduced)

    def transpose(self, ct, x):
        return [bind(PReduced(self.axes), ct)]

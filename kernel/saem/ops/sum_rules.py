"""Along which axes is the result of an operation unreduced or reduced, given its operands?

One rule for each primitive or family (``core.sums``).  What is linear may work on addends; what is
not must be given the sum.

Read before: ``core.sums``, ``ops.sharding_rules``.  Read after: ``ops.reshard``.
Invariant: what a rule answers or refuses is what JAX's types say (tests/kernel/test_unreduced.py).
Source: observed behaviour.
"""

from __future__ import annotations

from typing import Any

from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.placement_types import NO_SUMS, NOWHERE, Sums, names_of, sums_of_spec
from saem.core.sharded import entries_of
from saem.core.sums import SumsCase

# -- one operand -----------------------------------------------------------------------------------


def unchanged(self: Any, case: SumsCase) -> Any:
    """As the first operand: the operation is linear in it, and others only say where or when."""
    return case.given[0]


def reduced_unchanged(self: Any, case: SumsCase) -> Any:
    """As the first operand, which must be no addends."""
    if case.given[0].unreduced:
        raise case.without_rule("unreduced")
    return case.given[0]


def each_unchanged(self: Any, case: SumsCase) -> Any:
    """Each result as its operand."""
    return case.given


def wanted_or_unchanged(self: Any, case: SumsCase) -> Any:
    """As a parameter requests, else as the operand."""
    return case.given[0] if case.wanted is None else case.wanted


def wanted(self: Any, case: SumsCase) -> Any:
    """As a parameter requests."""
    return NO_SUMS if case.wanted is None else case.wanted


def elsewhere(self: Any, case: SumsCase) -> Any:
    """What is computed elsewhere is whole."""
    return NO_SUMS


def call_exported(self: Any, case: SumsCase) -> Any:
    """As the program was exported."""
    return [NO_SUMS if said is None else sums_of_spec(said.spec)
            for said in self.exported.out_named_shardings]


def reshape(self: Any, case: SumsCase) -> Any:
    """As the operand, and so must it be where a sharding is requested."""
    given = case.given[0]
    if case.wanted is not None and case.wanted != given:
        raise case.refuse(
            2, "out_sharding passed to reshape must be unreduced over the same mesh axes as "
            f"operand. Got out_sharding: {self.sharding.spec} and operand type: "
            f"{case.avals[0].str_short(True)}.",
            "Name the axes in the spec, P(..., unreduced={...}), or reshard before.",
            errors.ArgumentError)
    return given


def device_put(self: Any, case: SumsCase) -> Any:
    """Each result as the place to which it is put says."""
    return [Sums(place.spec.unreduced, place.spec.reduced) if hasattr(place, "spec") else given
            for place, given in zip(self.params["devices"], case.given)]


# -- element by element ----------------------------------------------------------------------------


def elementwise(self: Any, case: SumsCase) -> Any:
    """Reduced as the operands together; no addends, since the operation is not linear."""
    reduced = together(case)
    if any(s.unreduced for s in case.given):
        raise case.without_rule("unreduced")
    return Sums(NOWHERE, reduced)


def together(case: SumsCase) -> frozenset:
    """Return the axes along which operands are reduced, which must be one set for all.

    Others are unreduced along these; a number stands for itself, but inside ``shard_map``.
    """
    found = {s.reduced for s in case.given if s.reduced}
    if len(found) > 1:
        raise case.refuse(
            2, "All inputs should be reduced across the same mesh axes. Got specs: "
            f"{set(found)}", "Reshard one of them: jax.reshard(x, P(..., reduced={...})).")
    if not found:
        return NOWHERE
    (reduced,) = found
    for aval, sums in zip(case.avals, case.given):
        if sums.reduced or (not aval.shape and case.like is not None and not sums.any):
            continue
        if not reduced.isdisjoint(axes_along(aval)):
            raise case.refuse(
                3, "Inputs cannot be sharded/varying on the same axes that another input is "
                "reduced on. Reshard the input which is reduced to be sharded on the mesh axes it "
                "is reduced on via `jax.sharding.reshard(inp, jax.P(...))`. Got input type: "
                f"{aval.str_short()} and reduced spec: {reduced}", "Then both have one sharding.")
        if not reduced <= sums.unreduced:
            raise case.refuse(
                4, "Inputs cannot be replicated on the same axes that another input is reduced "
                f"on. Got input type: {aval.str_short()} and reduced spec: {reduced}",
                "Make it reduced, too: jax.reshard(x, P(..., reduced={...})), or inside shard_map "
                "lax.pcast(x, axes, to='reduced').")
    return reduced


def axes_along(aval: ShapedArray) -> frozenset:
    """Return the mesh axes along which a value of ``aval`` is sharded or varies."""
    return aval.vma.union(*map(names_of, entries_of(aval)))


def add(self: Any, case: SumsCase) -> Any:
    """A sum of addends is addends of the sum, if both are unreduced along the same axes."""
    reduced = together(case)
    left, right = [s.unreduced for s in case.given]
    if left and right and left != right:
        raise case.refuse(
            5, f"lhs and rhs to `{self.name}` must be unreduced along the same mesh axes. Got "
            f"lhs={left}, rhs={right}", "Reshard one of them first.")
    if left != right:
        one, other = ("lhs", "rhs") if left else ("rhs", "lhs")
        raise case.refuse(
            6, f"{one} is unreduced while {other} is not. `{self.name}` operation does not allow "
            f"this because there will be implicit communication. Please reduce {one} via "
            f"`reshard` before calling `{self.name}`.", "For example jax.reshard(x, P(...)).")
    return Sums(left, reduced - left)


def mul(self: Any, case: SumsCase) -> Any:
    """Addends times a factor that is reduced along their axes are addends of the product."""
    reduced = together(case)
    (left, left_reduced), (right, right_reduced) = case.given
    shown = [a.str_short() for a in case.avals]
    if left and right:
        raise case.refuse(
            5, f"lhs and rhs to `{self.name}` cannot be unreduced since {self.name} is bilinear. "
            f"Got lhs={left}, rhs={right}", "Reshard one of them first.")
    for unreduced, factor, names in ((left, right_reduced, ("RHS", "LHS")),
                                     (right, left_reduced, ("LHS", "RHS"))):
        if unreduced and unreduced != factor:
            raise case.refuse(
                6, f"{names[0]} should be reduced along the same axes {names[1]} is unreduced on. "
                f"Got lhs={shown[0]} and rhs={shown[1]}",
                "Add the value up first, jax.reshard(x, P(...)), or make the factor reduced.")
    return Sums(left | right, reduced - left - right)


# -- several operands with the same specs ----------------------------------------------------------


def select_n(self: Any, case: SumsCase) -> Any:
    """As the cases, which the rule on shardings has found to be equal."""
    return case.given[1]


# -- sums and products -----------------------------------------------------------------------------


def reduce_sum(self: Any, case: SumsCase) -> Any:
    """As the operand; unreduced also along requested axes by which summed ones are sharded."""
    (aval,), (given,) = case.avals, case.given
    asked = NOWHERE if case.wanted is None else case.wanted.unreduced
    spec = entries_of(aval)
    axes = frozenset(a % len(spec) for a in self.axes) if spec else NOWHERE
    open_to = given.unreduced.union(*(names_of(spec[a]) for a in axes))
    if not asked <= open_to:
        raise case.refuse(
            2, "out_sharding's unreduced axes should be in operand's specs that were summed over. "
            f"Got operand={aval!r}, axes={axes}, unreduced_spec={asked}",
            "Name mesh axes by which the axes that are summed over are sharded.")
    return Sums(given.unreduced | asked, given.reduced)


def dot_general(self: Any, case: SumsCase) -> Any:
    """Unreduced along the requested axes, which must be those of the contracting axes."""
    (x, y), (a, b) = case.avals[:2], case.given[:2]
    if a.unreduced or b.unreduced:
        raise case.refuse(
            2, f"lhs or rhs passed to {self.name} cannot be unreduced. Got lhs={x!r} and rhs={y!r}",
            "Add it up first: jax.reshard(x, P(...)).")
    asked = NOWHERE if case.wanted is None else case.wanted.unreduced
    if asked:
        (left, right), _ = self.dimension_numbers
        left = tuple(entries_of(x)[i] for i in left)
        right = tuple(entries_of(y)[i] for i in right)
        if left != right:
            raise case.refuse(
                3, "lhs and rhs contracting dims should be sharded identically when out_sharding "
                f"provided to {self.name} mentions unreduced_axes. Got "
                f"lhs_contracting_spec={left}, rhs_contracting_spec={right}", "Reshard one.")
        if asked != frozenset().union(*map(names_of, left)):
            raise case.refuse(
                4, "out_sharding's unreduced axes should be equal to the contracting specs. Got "
                f"unreduced axes={asked} and contracting spec={left}",
                "Name the mesh axes by which the axes that are summed over are sharded.")
    return Sums(asked, NOWHERE)


# -- inside shard_map ------------------------------------------------------------------------------


def collective(self: Any, case: SumsCase) -> Any:
    """A linear exchange along other axes than those of the sums leaves these as they are."""
    return case.given[0]

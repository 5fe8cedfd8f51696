"""Which intermediate values may a checkpointed function keep?

A policy is asked about every operation whose inputs are known: ``policy(prim, *avals, **params)``
returns whether its results may be saved.  ``checkpoint_policies`` holds those one usually needs.

Read before: ``core.primitive``.  Read after: ``derivatives.checkpoint``.
Invariant: a policy changes what is stored, never what is computed.
Source: the documentation of jax.checkpoint_policies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from saem.core import errors, tree
from saem.core.jaxpr import Eqn
from saem.core.primitive import primitive
from saem.core.record import Record
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.contract import DotGeneral
from saem.ops.linear import Identity

Policy = Callable[..., Any]


class Recompute(Record):
    """A policy's answer: compute it again."""


class Saveable(Record):
    """A policy's answer: it may be saved."""


class Offloadable(Record):
    """A policy's answer: it may be saved, in the memory of the host.

    JAX names memories ``src`` and ``dst``, and takes the host's whatever ``dst`` is.
    """

    src: str
    dst: str


def is_saved(policy: Policy | None, eqn: Eqn) -> bool | Offloadable:
    """Return whether ``policy`` lets the outputs of ``eqn`` be saved, or that elsewhere.

    Raises: TypeError if it answers anything but a truth value or a class of this module.
    """
    if policy is None:
        return False
    answer = policy(eqn.primitive, *(a.aval for a in eqn.invars), **eqn.params)
    if isinstance(answer, (bool, Offloadable)):
        return answer
    if isinstance(answer, (Saveable, Recompute)):
        return isinstance(answer, Saveable)
    if answer in (Saveable, Recompute):
        return answer is Saveable
    raise errors.explained(
        errors.ArgumentTypeError, "checkpoint.C3",
        "Value returned by a remat policy should be a bool or `ad_checkpoint.Recompute`, "
        f"`ad_checkpoint.Saveable` or `ad_checkpoint.Offloadable(...)`. Got {answer!r} of type "
        f"{type(answer)}.",
        advice="A policy takes (prim, *avals, **params). One that takes names, such as "
        "save_only_these_names, is called with them first.")


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save all, as without checkpoint."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Save nothing but inputs, as without a policy."""
    return False


class DotsSaveable(Record):
    """Save results of matrix products and convolutions, the expensive operations.

    With ``only_if_no_batch_dims``, only of products of two matrices, such as activations with
    weights.
    """

    only_if_no_batch_dims: bool

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        if prim.record is DotGeneral:
            _, batch = params["dimension_numbers"]
            return not (self.only_if_no_batch_dims and any(batch))
        is_product = prim.record is not None and prim.record.is_product
        return is_product and not self.only_if_no_batch_dims


class SaveOnlyTheseNames(Record):
    """Save what ``checkpoint_name`` gave one of these names."""

    saveable_names: frozenset

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        return prim.record is Name and params["name"] in self.saveable_names


class SaveAnyNamesButThese(Record):
    """Save what ``checkpoint_name`` gave any name but these."""

    names: frozenset

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        return prim.record is Name and params["name"] not in self.names


class SaveAnythingExceptTheseNames(Record):
    """Save all but what ``checkpoint_name`` gave one of these names."""

    names: frozenset

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        return prim.record is not Name or params["name"] not in self.names


class SaveFromBothPolicies(Record):
    """Save what either of two policies saves."""

    policies: tuple[Policy, Policy]

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> Any:
        answers = [policy(prim, *avals, **params) for policy in self.policies]
        return next((a for a in answers if a is not False and a is not Recompute), answers[0])


class OffloadDots(Record):
    """As ``dots_with_no_batch_dims_saveable``, into the memory ``dst``."""

    src: str
    dst: str

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> Any:
        saved = DotsSaveable(True)(prim, *avals, **params)
        return Offloadable(self.src, self.dst) if saved else Recompute()


class SaveAndOffloadTheseNames(Record):
    """Save some names where they are, others in the memory ``dst``."""

    saved: frozenset
    offloaded: frozenset
    src: str
    dst: str

    def __call__(self, prim: Any, *_: Any, **params: Any) -> Any:
        name = params["name"] if prim.record is Name else None
        return (Saveable() if name in self.saved else
                Offloadable(self.src, self.dst) if name in self.offloaded else Recompute())


def save_and_offload_only_these_names(
        *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str],
        offload_src: str, offload_dst: str) -> Policy:
    """Return the policy that saves the first names and offloads the second.

    Raises: ValueError if a name is in both.
    """
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError("The names should be exclusive and should not intersect in "
                         "`names_which_can_be_saved` and `names_which_can_be_offloaded`. Got "
                         f"both: {sorted(saved & offloaded)}")
    return SaveAndOffloadTheseNames(saved, offloaded, offload_src, offload_dst)


checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=DotsSaveable(False),
    checkpoint_dots=DotsSaveable(False),
    dots_with_no_batch_dims_saveable=DotsSaveable(True),
    checkpoint_dots_with_no_batch_dims=DotsSaveable(True),
    offload_dot_with_no_batch_dims=OffloadDots,
    save_only_these_names=lambda *names: SaveOnlyTheseNames(frozenset(names)),
    save_any_names_but_these=lambda *names: SaveAnyNamesButThese(frozenset(names)),
    save_anything_except_these_names=lambda *names: SaveAnythingExceptTheseNames(frozenset(names)),
    save_from_both_policies=lambda policy_1, policy_2: SaveFromBothPolicies((policy_1, policy_2)),
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)


# -- names -----------------------------------------------------------------------------------------


@primitive("name")
class Name(Identity):
    """The identity on a value that policies call ``label``; its tangent has no name."""

    label: str

    passes_nan = True
    shard_results = sharding_rules.unchanged
    sum_results = sum_rules.unchanged

    renamed: ClassVar[dict[str, str]] = {"name": "label"}

    @property
    def params(self):
        return {"name": self.label}

    def jvp(self, primals, tangents):
        return bind(self, *primals), tangents[0]

    def transpose(self, ct, x):
        return [ct]


def checkpoint_name(x: Any, name: str) -> Any:
    """Return the pytree ``x``, its leaves known to checkpoint policies as ``name``.

    >>> jax.ad_checkpoint.checkpoint_name(jnp.array([1, 2]), "hidden")
    Array([1, 2], dtype=int32)
    """
    return tree.map_(lambda leaf: bind(Name(name), leaf), x)

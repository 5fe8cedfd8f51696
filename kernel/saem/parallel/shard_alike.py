"""How are two values given the same sharding, whichever it is?  (``jax.experimental.shard_alike``)

One equation that is the identity on both; on several devices it puts them into one sharding group,
and Shardy gives all members of a group the same sharding.

Read before: ``ops.constraints``.
Invariant: no value changes (tests/kernel/test_shard_alike.py).
Source: the documentation of jax.experimental.shard_alike; the Shardy dialect, sdy.sharding_group.
"""

from __future__ import annotations

from typing import Any

from saem.compile.text import tensor_type
from saem.core import errors, tree
from saem.core.avals import aval_of
from saem.core.primitive import Primitive, primitive
from saem.core.trace import bind
from saem.transform.vmap import match_dim


@primitive("shard_alike")
class ShardAlike(Primitive):
    """The identity on two values of one shape, which are sharded the same way."""

    multiple_results = True

    def typing(self, x, y):
        return [x, y]

    def evaluate(self, x, y):
        return [x, y]

    def lower(self, ctx, x, y):
        if ctx.module.devices:
            group = ctx.module.memo["sharding groups"] = ctx.module.memo.get("sharding groups", 0)
            ctx.module.memo["sharding groups"] += 1
            for value in (x, y):
                ctx.append(f"sdy.sharding_group {value} group_id={group}",
                           tensor_type(ctx.avals[value]))
        return [x, y]

    def jvp(self, primals, tangents):
        outs = bind(self, *primals)
        if None in tangents:
            return outs, list(tangents)
        return outs, bind(self, *tangents)

    def transpose(self, cts, x, y):
        if None in cts:
            return list(cts)
        return bind(self, *cts)

    def batch(self, size, xs, dims):
        if dims[0] == dims[1]:
            return bind(self, *xs), list(dims)
        target = dims[0] if dims[0] is not None else dims[1]
        return bind(self, *(match_dim(x, d, target, size) for x, d in zip(xs, dims))), [target] * 2


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the pytrees ``x`` and ``y``; leaves at one place in both are sharded the same way.

    Raises: ValueError if the structures or shapes differ.
    """
    xs, structure = tree.flatten(x)
    ys, other = tree.flatten(y)
    if structure != other:
        raise errors.explained(
            errors.ArgumentError, "shard_alike.C1",
            f"Trees should be equal. Got x_tree: {structure}, y_tree: {other}.",
            advice="Give the two the same structure.")
    pairs = []
    for a, b in zip(xs, ys):
        if aval_of(a).shape != aval_of(b).shape:
            raise errors.explained(
                errors.ArgumentError, "shard_alike.C2",
                "The leaves shapes of `x` and `y` should match. Got `x` leaf shape: "
                f"{aval_of(a).shape} and `y` leaf shape: {aval_of(b).shape}.",
                advice="Only values of one shape can be sharded the same way.")
        pairs.append(bind(ShardAlike(), a, b))
    return (structure.unflatten([a for a, _ in pairs]), structure.unflatten([b for _, b in pairs]))

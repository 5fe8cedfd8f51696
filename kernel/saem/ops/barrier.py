"""How is XLA kept from seeing that two values are the same?

``optimization_barrier`` is the identity on several values at once: all are computed before any is
used, and nothing is moved across or merged with what stands on the other side.  ``checkpoint`` puts
one around what must be computed again.

Read before: ``ops.families``.  Read after: ``derivatives.checkpoint``.
Source: StableHLO specification, optimization_barrier; the documentation of
jax.lax.optimization_barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core import tree
from saem.core.avals import aval_of
from saem.core.primitive import Primitive, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.linear import zeros_of


@primitive("optimization_barrier")
class OptimizationBarrier(Primitive):
    """The identity on its operands, which XLA does not see through."""

    passes_nan = True
    multiple_results = True

    shard_results = sharding_rules.unchanged

    def typing(self, *avals):
        return list(avals)

    def evaluate(self, *xs):
        return list(xs)

    def lower(self, ctx, *xs):
        return write_barrier(ctx, xs)

    def jvp(self, primals, tangents):
        moving = [t for t in tangents if t is not None]
        outs = bind(self, *primals)
        rest = iter(bind(self, *moving))
        return outs, [None if t is None else next(rest) for t in tangents]

    def transpose(self, cts, *args):
        return bind(self, *(zeros_of(x.aval) if ct is None else ct for ct, x in zip(cts, args)))

    def batch(self, size, xs, dims):
        return bind(self, *xs), list(dims)


def write_barrier(ctx: Any, xs: Sequence[str]) -> list[str]:
    """Write the barrier of the values called ``xs``; returns their names behind it."""
    if not xs:
        return []
    avals = [ctx.avals[x] for x in xs]
    return ctx.emit_many(f'"stablehlo.optimization_barrier"({", ".join(xs)})', *xs, outs=avals)


def optimization_barrier(operand: Any, /) -> Any:
    """Return the pytree ``operand``, all of it computed before any of it is used.

    >>> lax.optimization_barrier((jnp.array([1]), jnp.array([2])))
    (Array([1], dtype=int32), Array([2], dtype=int32))
    """
    leaves, structure = tree.flatten(operand)
    for leaf in leaves:
        aval_of(leaf)  # refuse a non-array, naming it
    return structure.unflatten(bind(OptimizationBarrier(), *leaves) if leaves else [])

"""How is XLA kept from merging or dropping what a program computes?

``optimization_barrier`` is the identity on several values at once: all are computed before any is
used, and nothing is moved across or merged with what stands on the other side.  ``checkpoint`` puts
one around what must be computed again.  ``dce_sink`` reads a value and gives nothing: what computes
the value is then not dropped.  ``stage`` gives a value as an array.

Read before: ``ops.families``.  Read after: ``derivatives.checkpoint``.
Invariant: no number changes.
Source: StableHLO specification, optimization_barrier; the documentation of
jax.lax.optimization_barrier and jax.lax.stage; observed behaviour of jax.lax.dce_sink.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.compile.dispatch import put, put_value
from saem.core import tree
from saem.core.avals import aval_of
from saem.core.effects import Effect
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import Tracer, bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.linear import zeros_of
from saem.typing import Array, ArrayLike


@primitive("optimization_barrier")
class OptimizationBarrier(Primitive):
    """The identity on its operands, which XLA does not see through."""

    passes_nan = True
    multiple_results = True

    shard_results = sharding_rules.unchanged
    sum_results = sum_rules.each_unchanged

    def typing(self, *avals):
        return list(avals)

    def evaluate(self, *xs):
        return list(xs)

    def lower(self, ctx, *xs):
        return ctx.barrier(xs)

    def jvp(self, primals, tangents):
        moving = [t for t in tangents if t is not None]
        outs = bind(self, *primals)
        rest = iter(bind(self, *moving))
        return outs, [None if t is None else next(rest) for t in tangents]

    def transpose(self, cts, *args):
        return bind(self, *(zeros_of(x.aval) if ct is None else ct for ct, x in zip(cts, args)))

    def batch(self, size, xs, dims):
        return bind(self, *xs), list(dims)


def optimization_barrier(operand: Any, /) -> Any:
    """Return the pytree ``operand``, all of it computed before any of it is used.

    >>> lax.optimization_barrier((jnp.array([1]), jnp.array([2])))
    (Array([1], dtype=int32), Array([2], dtype=int32))
    """
    leaves, structure = tree.flatten(operand)
    for leaf in leaves:
        aval_of(leaf)  # refuse a non-array, naming it
    return structure.unflatten(bind(OptimizationBarrier(), *leaves) if leaves else [])


# -- work that is kept -----------------------------------------------------------------------------


class SinkEffect(Effect):
    """Something is read, so that it counts as needed."""

    __slots__ = ()


SINK = SinkEffect("NoDCEEffect()")


@primitive("dce_sink")
class Sink(Primitive):
    """Read the operand.  With ``prevent_mlir_dce`` the compiler, too, must keep it."""

    prevent_mlir_dce: bool = False

    multiple_results = True
    effects = frozenset({SINK})

    shard_results = sharding_rules.unchanged
    sum_results = sum_rules.each_unchanged

    def typing(self, x):
        return []

    def evaluate(self, x):
        return []

    def lower(self, ctx, x):
        if self.prevent_mlir_dce:
            ctx.emit_many(f"stablehlo.custom_call @dce_sink({x})", x, outs=[],
                          attributes={"has_side_effect": "true"})
        return []

    def jvp(self, primals, tangents):
        bind(self, *primals)
        if tangents[0] is not None:
            bind(self, tangents[0])
        return [], []

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        bind(self, *xs)
        return [], []


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Let every leaf of ``val`` count as needed in the program being written.

    >>> lax.dce_sink(jnp.array([1.]))
    """
    for leaf in tree.flatten(val)[0]:
        bind(Sink(bool(prevent_mlir_dce)), leaf)


def stage(x: ArrayLike, /) -> Array:
    """Return ``x``, a number or NumPy array, as an array; arrays and traced values as they are.

    Raises: TypeError for a non-array.
    """
    aval_of(x)
    if isinstance(x, (np.generic, bool, int, float, complex)):
        return put_value(x)
    return x if isinstance(x, Tracer) else put(x)

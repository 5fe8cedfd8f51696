"""How is work kept that nobody seems to need, and a number made an array?

``dce_sink`` reads a value and gives nothing: what computes the value is then not dropped from the
program.  ``stage`` gives a value as an array.

Read before: ``core.effects``.
Source: the documentation of jax.lax.stage; observed behaviour of jax.lax.dce_sink.
"""

from __future__ import annotations

from typing import Any

from saem.compile.dispatch import put
from saem.core import tree
from saem.core.avals import aval_of
from saem.core.effects import Effect
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import Tracer, bind
from saem.ops import sharding_rules
from saem.typing import Array, ArrayLike


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
    return x if isinstance(x, Tracer) else put(x)

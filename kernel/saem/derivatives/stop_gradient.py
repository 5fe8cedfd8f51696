"""How is a value cut off from differentiation?

``stop_gradient`` is the identity with a tangent of zero.

Read before: ``ops.families``.
Source: the documentation of jax.lax.stop_gradient.
"""

from __future__ import annotations

from typing import Any

from saem._jaxlib import ArrayImpl
from saem.core import dtypes, tree
from saem.core.avals import aval_of
from saem.core.primitive import primitive
from saem.core.trace import bind, runs_at_once
from saem.ops import sharding_rules, sum_rules
from saem.ops.families import Discrete


@primitive("stop_gradient")
class StopGradient(Discrete):
    """The identity, constant for every derivative."""

    passes_nan = True
    numpy = staticmethod(lambda x: x)

    shard_results = sharding_rules.unchanged
    sum_results = sum_rules.unchanged

    def lower(self, ctx, x):
        return x


def stop_gradient(x: Any) -> Any:
    """Return the pytree ``x``, every leaf constant for derivatives.

    >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.)
    Array(3., dtype=float32, weak_type=True)
    """

    traced = not runs_at_once()

    def stop(leaf: Any) -> Any:
        if type(leaf) in (ArrayImpl, float, complex) and not traced:
            return leaf  # an array or number, no tracer: it has no tangent
        dtype = aval_of(leaf).dtype
        if dtype == dtypes.float0 or dtypes.is_extended(dtype):
            return leaf
        return bind(StopGradient(), leaf) if traced or dtypes.is_inexact(dtype) else leaf

    return tree.map_(stop, x)

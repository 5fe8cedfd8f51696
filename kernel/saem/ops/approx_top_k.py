"""How are the greatest elements found when nearly all of them are enough?

An accelerator may miss some for speed, up to ``recall_target``; a CPU finds all.

Read before: ``ops.sort``.
Invariant: on a CPU the result is that of ``top_k``.
Source: Chern et al., "TPU-KNN: k nearest neighbor search at peak FLOP/s" (2022).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.shape import canonical_axis
from saem.ops.sort import TopK, take_sorted

I32 = np.dtype("int32")


@primitive("approx_top_k")
class ApproxTopK(Primitive):
    """The ``k`` greatest (or least) along an axis, and their places."""

    k: int
    reduction_dimension: int
    recall_target: float
    is_max_k: bool
    reduction_input_size_override: int
    aggregate_to_topk: bool

    multiple_results = True
    passes_nan = True
    shard_results = sharding_rules.approx_top_k

    def axis(self, rank: int) -> int:
        return canonical_axis(self.reduction_dimension, rank)

    def typing(self, x):
        name = "approx_top_k"
        if self.k <= 0:
            raise errors.explained(errors.ArgumentError, f"{name}.C1",
                                   f"k must be positive, got {self.k}", advice="Ask for some.")
        if not x.ndim:
            raise errors.explained(
                errors.ArgumentTypeError, f"{name}.C2",
                f"{name} operand must have >= 1 dimension, got {x.shape}",
                advice="A scalar has no axis.")
        axis = self.axis(x.ndim)
        if x.shape[axis] < self.k:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C3",
                f"k must be smaller than the size of reduction_dim {x.shape[axis]}, got {self.k}",
                advice="Ask for at most as many as there are.")
        if not dtypes.is_float(x.dtype):
            raise errors.explained(errors.ArgumentError, f"{name}.C4",
                                   "operand must be a floating type",
                                   advice="Use lax.top_k for integers.")
        if not 0 < self.recall_target <= 1:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C5",
                f"recall_target out of range: it must lie in (0, 1], got {self.recall_target}")
        if 0 <= self.reduction_input_size_override < x.shape[axis]:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C6",
                "reduction_input_size_override out of range: it must be at least the size of "
                f"reduction_dim {x.shape[axis]}, got {self.reduction_input_size_override}")
        n = self.k if self.aggregate_to_topk else x.shape[axis]
        shape = tuple(n if i == axis else size for i, size in enumerate(x.shape))
        return [ShapedArray(shape, x.dtype, x.weak_type), ShapedArray(shape, I32, x.weak_type)]

    def exact(self, x: ShapedArray) -> TopK:
        """Return the exact operation for operands of ``x``."""
        axis = self.axis(x.ndim)
        return TopK(self.k if self.aggregate_to_topk else x.shape[axis], axis)

    def evaluate(self, x):
        top = self.exact(ShapedArray(x.shape, x.dtype))
        values, places = top.evaluate(x if self.is_max_k else -x)
        return [values if self.is_max_k else -values, places]

    def lower(self, ctx, x):
        aval = ctx.avals[x]

        def negated(x: str) -> str:
            if self.is_max_k:
                return x
            return ctx.elementwise("stablehlo.negate", x, out=ctx.avals[x])

        values, places = self.exact(aval).lower(ctx, negated(x))
        return [negated(values), places]

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        values, places = bind(self, x)
        moved = None if t is None else take_sorted(t, places, self.axis(len(aval_of(x).shape)))
        return [values, places], [moved, None]

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        axis = self.axis(len(aval_of(x).shape) - 1)
        moved = ApproxTopK(self.k, axis + (d <= axis), self.recall_target, self.is_max_k,
                           self.reduction_input_size_override, self.aggregate_to_topk)
        return bind(moved, x), [d, d]


def approx_max_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True
                 ) -> list[Any]:
    """Return the ``k`` greatest along ``reduction_dimension``, and their places (int32).

    ``recall_target``: the part of them that is found on average where the platform approximates; a
    CPU finds all.  ``aggregate_to_topk``: leave only ``k``; otherwise candidates come too.

    Raises: ValueError for integers, or a ``k`` out of range.

    >>> lax.approx_max_k(jnp.array([3., 1., 2.]), 2)
    [Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    return _top(operand, k, reduction_dimension, recall_target, True,
                reduction_input_size_override, aggregate_to_topk)


def approx_min_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True
                 ) -> list[Any]:
    """Return the ``k`` least along ``reduction_dimension``, and their places (int32).

    The arguments are those of ``approx_max_k``.

    >>> lax.approx_min_k(jnp.array([4., 1., 3., 2.]), 2)
    [Array([1., 2.], dtype=float32), Array([1, 3], dtype=int32)]
    """
    return _top(operand, k, reduction_dimension, recall_target, False,
                reduction_input_size_override, aggregate_to_topk)


def _top(x: Any, k: int, axis: int, recall: float, is_max: bool, override: int, aggregate: bool
         ) -> list[Any]:
    return bind(ApproxTopK(operator.index(k), operator.index(axis), float(recall), is_max,
                           int(override), bool(aggregate)), x)

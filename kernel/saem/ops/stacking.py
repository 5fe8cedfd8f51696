"""How do arrays of one shape become the slices of a new axis, and back?

``stack`` and ``unstack`` are each other's transpose.

Read before: ``ops.shape``.  Read after: ``numpy.joining``.
Invariant: ``unstack`` along the axis of a ``stack`` gives its operands.
Source: the documentation of jax.lax.stack and unstack; StableHLO specification, concatenate, slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.linear import held_dims, stacked, zeros_of
from saem.ops.shape import canonical_axis, check_same_dtypes
from saem.typing import Array, ArrayLike


@primitive("stack")
class Stack(Primitive):
    """The operands side by side along a new ``axis``."""

    axis: int

    passes_nan = True
    shard_results = sharding_rules.stack
    sum_results = sum_rules.unchanged

    def typing(self, *avals):
        shapes = ", ".join(str(a.shape) for a in avals)
        if not avals:
            raise errors.explained(errors.ArgumentError, "stack.C1",
                                   "Need at least one array to stack.", advice="The list is empty.")
        if len({a.shape for a in avals}) > 1:
            what = "shapes" if len({a.ndim for a in avals}) == 1 else "numbers of dimensions"
            raise errors.explained(
                errors.ShapeError, "stack.C2",
                f"Cannot stack arrays with different {what}: got {shapes}.",
                advice="lax.concatenate joins along an axis they have.")
        check_same_dtypes("lax.stack", avals, "jnp.stack promotes dtypes by itself.")
        shape = avals[0].shape
        return ShapedArray((*shape[:self.axis], len(avals), *shape[self.axis:]), avals[0].dtype,
                           all(a.weak_type for a in avals))

    def evaluate(self, *xs):
        return np.stack(xs, self.axis)

    def lower(self, ctx, *xs):
        shape = ctx.in_avals[0].shape
        thin = ctx.in_avals[0].update(shape=(*shape[:self.axis], 1, *shape[self.axis:]))
        parts = [ctx.reshape_as(x, thin) for x in xs]
        return ctx.emit(f'"stablehlo.concatenate"({", ".join(parts)}) '
                        f"<{{dimension = {self.axis} : i64}}>", *parts)

    def jvp(self, primals, tangents):
        out = bind(self, *primals)
        if all(t is None for t in tangents):
            return out, None
        return out, bind(self, *[zeros_of(aval_of(x).to_tangent_aval()) if t is None else t
                                 for x, t in zip(primals, tangents)])

    def transpose(self, ct, *xs):
        parts = bind(Unstack(self.axis), ct)
        return [p if isinstance(x, UndefinedPrimal) else None for p, x in zip(parts, xs)]

    def batch(self, size, xs, dims):
        where = {d for d in dims if d is not None}
        dim = where.pop() if len(where) == 1 and None not in dims else 0
        shifted = self.axis > dim or not dim
        return bind(Stack(self.axis + shifted), *stacked(size, xs, dims, dim)), dim + (not shifted)


@primitive("unstack")
class Unstack(Primitive):
    """The slices along ``axis``, without it: several results."""

    axis: int

    multiple_results = True

    shard_results = sharding_rules.unstack

    def typing(self, x):
        shape = x.shape
        part = ShapedArray((*shape[:self.axis], *shape[self.axis + 1:]), x.dtype, x.weak_type)
        return [part] * shape[self.axis]

    def evaluate(self, x):
        return list(np.moveaxis(x, self.axis, 0))

    def lower(self, ctx, x):
        aval = ctx.in_avals[0]
        thin = aval.update(shape=(*aval.shape[:self.axis], 1, *aval.shape[self.axis + 1:]))
        sizes = (*aval.shape, *held_dims(aval))
        starts, limits = [0] * len(sizes), list(sizes)
        outs = []
        for number, out in enumerate(ctx.out_avals):
            starts[self.axis], limits[self.axis] = number, number + 1
            part = ctx.slice(x, starts, limits, out=thin)
            outs.append(ctx.reshape_as(part, out))
        return outs

    def jvp(self, primals, tangents):
        outs, (t,) = bind(self, *primals), tangents
        return outs, [None] * len(outs) if t is None else bind(self, t)

    def transpose(self, cts, x):
        part = next(aval_of(ct) for ct in cts if ct is not None)
        return [stack([zeros_of(part) if ct is None else ct for ct in cts], self.axis)]

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        after = self.axis >= d
        outs = bind(Unstack(self.axis + after), x)
        return outs, [d - (not after)] * len(outs)


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Return ``operands``, of one shape and dtype, side by side along a new ``axis``.

    Raises: ShapeError, DTypeError for operands that differ; ValueError for no such axis.
    """
    operands = list(operands)
    rank = len(aval_of(operands[0]).shape) if operands else 0
    return bind(Stack(canonical_axis(axis, rank + 1)), *operands)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Any, ...]:
    """Return the slices of ``x`` along ``axis``, without that axis.

    Raises: ValueError for no such axis.
    """
    return tuple(bind(Unstack(canonical_axis(axis, len(aval_of(x).shape))), x))

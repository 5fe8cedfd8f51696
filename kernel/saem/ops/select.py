"""How is one of several values chosen, and a value limited?

Both pass the tangent of the value they choose.

Read before: ``ops.compare``.  Read after: ``ops.maths``, whose max and min choose by comparing.
Invariant: a ``which`` below the first case chooses the first, beyond the last case the last.
Source: StableHLO specification: select, clamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile.text import physical_aval
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import NOT_LINEAR, Primitive, UndefinedPrimal, primitive
from saem.core.sharded import sharding_of
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.compare import bitwise_and, complex_extremum, gt, is_ordered, lt
from saem.ops.families import align_batch, check_dtypes, check_example, is_discrete
from saem.ops.linear import (
    add_cotangents,
    broadcast_in_dim,
    stacked,
    stretch,
    zeros_of,
)
from saem.typing import Array, ArrayLike


@primitive("select_n")
class SelectN(Primitive):
    """Element by element, of several cases the one whose number ``which`` says.

    ``which`` is of rank 0 or of the shape of the cases; a bool chooses between two.
    """

    passes_nan = True
    linear = True
    shard_results = sharding_rules.select_n
    sum_results = sum_rules.select_n

    def typing(self, which, *cases):
        first = cases[0] if cases else which
        if any(c.shape != first.shape for c in cases):
            raise errors.explained(
                errors.ShapeError, "select_n.C1",
                f"select cases must have the same shapes, got {[c.shape for c in cases]}.",
                advice="Use jnp.where, which broadcasts.")
        if which.shape and which.shape != first.shape:
            raise errors.explained(
                errors.ShapeError, "select_n.C6",
                "select `which` must be scalar or have the same shape as cases, got `which` shape "
                f"{which.shape} but case shape {first.shape}.",
                advice="Use jnp.where, which broadcasts.")
        self.check_which(which, len(cases))
        check_dtypes("select", cases, None, "", "where")
        return ShapedArray(first.shape, first.dtype, all(c.weak_type for c in cases))

    def check_which(self, which: ShapedArray, count: int) -> None:
        """Refuse a ``which`` that cannot choose among ``count`` cases."""
        if not count:
            raise errors.explained(
                errors.ArgumentError, "select_n.C3", "select_n() must have at least one case.",
                advice="Pass the cases after `which`.")
        if not is_discrete(which.dtype):
            raise errors.explained(
                errors.DTypeError, "select_n.C4",
                f"select `which` must be boolean or integer type, got {which.dtype.name}.",
                advice="Compare first, for example x > 0.")
        if dtypes.is_bool(which.dtype) and count > 2:
            raise errors.explained(
                errors.ArgumentTypeError, "select_n.C5",
                f"select with boolean `which` cannot have > 2 cases, got {count}.",
                advice="Use an integer `which`.")

    def evaluate(self, which, *cases):
        out, which = cases[-1], np.asarray(which)
        if which.ndim:  # an element of a case may be an array, as a key is
            which = np.expand_dims(which, tuple(range(which.ndim, out.ndim)))
        for number in range(len(cases) - 1, 0, -1):
            out = np.where(which < number, cases[number - 1], out)
        return np.asarray(out)

    def lower(self, ctx, which, *cases):
        if len(cases) == 1:
            return cases[0]
        aval = physical_aval(ctx.out_avals[0])
        index = ctx.avals[which]
        if len(index.shape) not in (0, len(aval.shape)):
            which = ctx.broadcast(which, aval.shape, range(len(index.shape)))
        if dtypes.is_bool(index.dtype):
            return ctx.choose(which, cases[1], cases[0])
        out = cases[-1]
        for number in range(len(cases) - 1, 0, -1):
            limit = ctx.constant(number, ctx.avals[which])
            out = ctx.choose(ctx.compare("LT", which, limit), cases[number - 1], out)
        return out

    def jvp(self, primals, tangents):
        out = bind(self, *primals)
        if all(t is None for t in tangents[1:]):
            return out, None
        which, *cases = primals
        ts = [zeros_of(aval_of(x).to_tangent_aval()) if t is None else t
              for x, t in zip(cases, tangents[1:])]
        return out, bind(self, which, *ts)

    def transpose(self, ct, which, *cases):
        zeros = zeros_of(aval_of(ct))
        return [None, *(bind(self, which, *[ct if j == i else zeros for j in range(len(cases))])
                        if isinstance(case, UndefinedPrimal) else None
                        for i, case in enumerate(cases))]

    def batch(self, size, xs, dims):
        which, *cases = xs
        if dims[0] is None and not aval_of(which).shape:
            cases, dim = _stack_all(size, cases, dims[1:])
            return bind(self, which, *cases), dim
        ranks = [len(aval_of(x).shape) - (d is not None) for x, d in zip(xs, dims)]
        if ranks[0] < ranks[1]:
            cases, dim = _stack_all(size, cases, dims[1:])
            shape, sharding = aval_of(cases[0]).shape, sharding_of(aval_of(cases[0]))
            which = broadcast_in_dim(which, shape, (dim,), out_sharding=sharding)
            return bind(self, which, *cases), dim
        if ranks[1] == 0 and not any(d is not None for d in dims[1:]):
            # The same numbers for each example: they are stretched to whatever shape which has.
            cases = [stretch(case, aval_of(which).shape) for case in cases]
            return bind(self, which, *cases), dims[0]
        stacks, dim = _stack_all(size, xs, dims)
        return bind(self, *stacks), dim


def _stack_all(size: int, xs: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """Return all of ``xs``, of one shape, as stacks along one axis."""
    dim = next((d for d in dims if d is not None), 0)
    return stacked(size, xs, dims, dim), dim


@primitive("clamp")
class Clamp(Primitive):
    """The nearest number to ``x`` in ``low..high``; bounds are of rank 0 or shaped as ``x``.

    Complex numbers are ordered by real part, then imaginary part.
    """

    passes_nan = True
    chooses_nan = True
    shard_results = sharding_rules.clamp

    def typing(self, low, x, high):
        for name, bound in (("min", low), ("max", high)):
            if bound.shape and bound.shape != x.shape:
                raise errors.explained(
                    errors.ShapeError, "clamp.C1",
                    f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                    f"{name}.shape={bound.shape}, operand.shape={x.shape}.",
                    advice="Use jnp.clip, which broadcasts.")
        check_dtypes(self.name, (low, x, high), None, "")
        if not (is_ordered(x.dtype) or dtypes.is_complex(x.dtype)):
            check_dtypes(self.name, (x,), is_ordered, "number, bool")
        return ShapedArray(x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)

    def evaluate(self, low, x, high):
        return np.minimum(np.maximum(x, low), high)

    def lower(self, ctx, low, x, high):
        aval = ctx.out_avals[0]
        if not (dtypes.is_complex(aval.dtype) or dtypes.is_bool(aval.dtype)):
            return ctx.elementwise("stablehlo.clamp", low, x, high)
        low, high = ctx.stretch(low, aval.shape), ctx.stretch(high, aval.shape)
        if dtypes.is_bool(aval.dtype):  # XLA's quicker code generator has no clamp of booleans
            return ctx.elementwise("stablehlo.and", ctx.elementwise("stablehlo.or", x, low), high)
        raised = complex_extremum(ctx, x, low, aval, True)
        return complex_extremum(ctx, raised, high, aval, False)

    def jvp(self, primals, tangents):
        low, x, high = primals
        out = bind(self, low, x, high)
        (t_low, t, t_high), shape = tangents, aval_of(out).shape
        total = None
        if t is not None:
            total = _where(bitwise_and(gt(x, low), lt(x, high)), t, shape)
        if t_low is not None:
            inside = bitwise_and(gt(low, x), lt(low, high))
            total = add_cotangents(total, _where(inside, t_low, shape))
        if t_high is not None:
            total = add_cotangents(total, _where(lt(high, x), t_high, shape))
        return out, total

    def batch(self, size, xs, dims):
        check_example(self, xs, dims)
        stacks, dim = align_batch(size, xs, dims)
        shape = np.broadcast_shapes(*(aval_of(x).shape for x in stacks))
        low, x, high = (x if i != 1 and not aval_of(x).shape else stretch(x, shape)
                        for i, x in enumerate(stacks))
        return bind(self, low, x, high), dim

    transpose = NOT_LINEAR


def _where(condition: Any, t: Any, shape: tuple[int, ...]) -> Any:
    """Return ``t`` stretched to ``shape`` where ``condition``, else zero."""
    t = stretch(t, shape)
    return select_n(stretch(condition, shape), zeros_of(aval_of(t)), t)


def select_n(which: ArrayLike, *cases: Any) -> Array:
    """Return, element by element, ``cases[which]``: for a bool, the second case where it is true.

    Shapes: the cases of one; ``which`` of that or of rank 0.
    Raises: ShapeError, DTypeError, ArgumentError.  Source: StableHLO specification, select.

    >>> lax.select_n(jnp.array([0, 1]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return bind(SelectN(), which, *cases)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Return ``x`` limited to ``min..max``, elementwise.

    Shapes: bounds of that of ``x`` or of rank 0.
    Raises: ShapeError, DTypeError.  Source: StableHLO specification, clamp.

    >>> lax.clamp(0, jnp.array([-1, 5, 9]), 6)
    Array([0, 5, 6], dtype=int32)
    """
    return bind(Clamp(), min, x, max)

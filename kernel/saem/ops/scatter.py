"""How are many parts of an array written at once?

``scatter`` overwrites; the others subtract, multiply, or keep the smaller or larger.  (The one that
adds stands in ``ops.gather``, whose transpose it is.)

Read before: ``ops.gather``.  Read after: ``saem.numpy.indexing``: ``x.at[idx].set(y)``.
Invariant: where windows overlap, the derivative follows the number that stands in the result.
Source: StableHLO specification, scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from saem.compile.lowering import lower_apart
from saem.core import dtypes, errors
from saem.core import jaxpr as jaxpr_module
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import ClosedJaxpr
from saem.core.primitive import NOT_LINEAR, UndefinedPrimal, primitive
from saem.core.trace import bind
from saem.ops.arithmetic import Mul, Sub, div, mul, neg
from saem.ops.compare import complex_extremum, eq
from saem.ops.families import is_number
from saem.ops.filling import broadcasted_iota
from saem.ops.gather import (
    LinearScatter,
    ScatterAdd,
    ScatterFamily,
    aval_or_shape,
    index_rows,
)
from saem.ops.linear import add_cotangents, ones_of, zeros_of
from saem.ops.numbers import Extremum, Max, Min
from saem.ops.select import select_n
from saem.ops.shape import reshape
from saem.ops.windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers


@primitive("scatter")
class Scatter(ScatterFamily):
    """Overwrite the operand; with ``update_jaxpr``, apply that program to its elements instead."""

    update_jaxpr: ClosedJaxpr | None = None
    update_consts: tuple = ()

    derived_params = ()

    def params_for(self, avals):
        return {}

    def write(self, out, where, updates):
        if not where:
            out, where = out.reshape(1), (np.zeros(updates.shape, int),)
        if self.update_jaxpr is None:
            out[where] = updates
            return
        for place, update in zip(zip(*where), updates):
            (out[place],) = jaxpr_module.evaluate(self.update_jaxpr, out[place], update)

    def combiner(self, ctx, a, b, scalar):
        if self.update_jaxpr is None:
            return b
        return lower_apart(ctx, self.update_jaxpr, [a, b])[0]

    def jvp(self, primals, tangents):
        x, indices, updates = primals
        tx, _, tu = tangents
        if self.update_jaxpr is not None:
            raise errors.explained(
                NotImplementedError, "scatter.apply", "scatter_apply JVP not implemented",
                advice="Write x.at[i].set(f(x[i])), which has a derivative.")
        out = bind(self, x, indices, updates)
        if tx is None and tu is None:
            return out, None
        zeros = zeros_of(aval_of(updates).to_tangent_aval())
        tx = zeros_of(aval_of(x).to_tangent_aval()) if tx is None else tx
        if self.unique_indices or tu is None:
            return out, bind(self, tx, indices, zeros if tu is None else tu)
        written = self.wins(x, indices, updates)
        kept = select_n(written, zeros, tu)
        return out, self.added(bind(self, tx, indices, zeros), indices, kept)

    def wins(self, x: Any, indices: Any, updates: Any) -> Any:
        """Return for each update whether it is the one that stands in the result."""
        shape = aval_of(updates).shape
        count = int(np.prod(shape))
        numbers = add_one(reshape(broadcasted_iota(np.int32, (count,), 0), shape))
        board = zeros_of(ShapedArray(aval_of(x).shape, np.int32))
        written = bind(self, board, indices, numbers)
        return eq(self.read(written, indices, updates), numbers)

    def transpose(self, ct, x, indices, updates):
        ct_x = ct_updates = None
        if isinstance(x, UndefinedPrimal):
            aval = ShapedArray(aval_or_shape(updates), aval_of(ct).dtype)
            ct_x = bind(self, ct, indices, zeros_of(aval))
        if isinstance(updates, UndefinedPrimal):
            ct_updates = self.read(ct, indices, updates)
        return [ct_x, None, ct_updates]


def add_one(x: Any) -> Any:
    """Return ``x`` + 1."""
    from_one = ones_of(aval_of(x))
    return add_cotangents(x, from_one)


@primitive("scatter-sub")
class ScatterSub(LinearScatter):
    """Subtract from the operand."""

    combines = Sub
    to_updates = staticmethod(neg)


@primitive("scatter-mul")
class ScatterMul(ScatterFamily):
    """Multiply the operand."""

    combines, accepts = Mul, staticmethod(is_number)

    def jvp(self, primals, tangents):
        x, indices, updates = primals
        tx, _, tu = tangents
        if tu is not None and not self.unique_indices:
            raise errors.explained(
                NotImplementedError, "scatter-mul.jvp",
                "scatter_mul gradients are only implemented if `unique_indices=True`",
                advice="If no place is multiplied twice, say so: x.at[i].mul(y, "
                "unique_indices=True).")
        out = bind(self, x, indices, updates)
        total = None if tx is None else bind(self, tx, indices, updates)
        if tu is not None:
            change = mul(tu, self.read(x, indices, updates))
            zeros = zeros_of(aval_of(x).to_tangent_aval())
            total = add_cotangents(total, self.added(zeros, indices, change))
        return out, total

    def transpose(self, ct, x, indices, updates):
        return [bind(self, ct, indices, updates), None, None]


class ScatterExtreme(ScatterFamily):
    """Keep the smaller or the larger; numbers that are equal share the derivative evenly."""

    transpose = NOT_LINEAR
    combines: ClassVar[type[Extremum]]

    def combiner(self, ctx, a, b, scalar):
        if not dtypes.is_complex(scalar.dtype):
            return super().combiner(ctx, a, b, scalar)
        return complex_extremum(ctx, a, b, scalar, self.combines.greater)

    def jvp(self, primals, tangents):
        x, indices, updates = primals
        tx, _, tu = tangents
        out = bind(self, x, indices, updates)
        if tx is None and tu is None:
            return out, None
        written = self.read(out, indices, updates)
        aval, given = aval_of(x).strip_weak_type(), aval_of(written).strip_weak_type()
        reached = select_n(eq(written, updates), zeros_of(given), ones_of(given))
        count = self.added(zeros_of(aval), indices, reached)
        stays = select_n(eq(x, out), zeros_of(aval), ones_of(aval))
        holders = add_cotangents(count, stays)
        # A place that no update reached is the operand's own, NaN too.
        untouched = eq(count, zeros_of(aval))
        share = div(ones_of(aval), select_n(untouched, holders, ones_of(aval)))
        total = None
        if tx is not None:
            total = mul(tx, select_n(untouched, mul(stays, share), ones_of(aval)))
        if tu is not None:
            weight = mul(reached, self.read(share, indices, updates))
            total = add_cotangents(total, self.added(zeros_of(aval), indices, mul(tu, weight)))
        return out, total


def is_ordered(dtype: Any) -> bool:
    """Return whether numbers of ``dtype`` have an order: complex ones that of their parts."""
    return is_number(dtype) or dtypes.is_bool(dtype)


@primitive("scatter-min")
class ScatterMin(ScatterExtreme):
    combines, accepts = Min, staticmethod(is_ordered)


@primitive("scatter-max")
class ScatterMax(ScatterExtreme):
    combines, accepts = Max, staticmethod(is_ordered)


# -- functions, with the names and signatures of jax.lax -------------------------------------------


def _function(kind: type[ScatterFamily], name: str, verb: str, result: str) -> Callable:
    def function(operand: Any, scatter_indices: Any, updates: Any,
                 dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                 unique_indices: bool = False, mode: Any = None) -> Any:
        numbers = ScatterDimensionNumbers(*(tuple(map(int, d)) for d in dimension_numbers))
        prim = kind(numbers, bool(indices_are_sorted), bool(unique_indices),
                    GatherScatterMode.from_any(mode))
        return bind(prim, operand, scatter_indices, updates)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Return ``operand`` with the windows of ``updates`` {verb} at ``scatter_indices``.\n\n"
        "    Raises: ShapeError or DTypeError if the description does not fit; ArgumentError for an"
        "\n    unknown ``mode``.\n    Source: StableHLO specification, scatter.\n\n"
        "    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))\n"
        f"    >>> lax.{name}(jnp.ones(3), jnp.array([[1]]), jnp.array([5.]), numbers)\n"
        f"    Array([1., {result}, 1.], dtype=float32)\n    ")
    return function


scatter = _function(Scatter, "scatter", "written over it", "5.")
scatter_add = _function(ScatterAdd, "scatter_add", "added", "6.")
scatter_sub = _function(ScatterSub, "scatter_sub", "subtracted", "-4.")
scatter_mul = _function(ScatterMul, "scatter_mul", "multiplied in", "5.")
scatter_min = _function(ScatterMin, "scatter_min", "written where they are smaller", "1.")
scatter_max = _function(ScatterMax, "scatter_max", "written where they are larger", "5.")


def update_windows(size: int, x: Any, updates: Any, starts: Sequence[Any],
                   dims: Sequence[int | None]) -> Any:
    """Return the stack ``x`` with each of ``updates`` written at its of the stacked ``starts``.

    Both stacks lie along axis 0; starts are clamped.
    """
    every = tuple(range(len(starts)))
    one = GatherDimensionNumbers(every, (), every)
    prim = Scatter(one.walking_together().as_scatter(), True, True, GatherScatterMode.CLIP)
    return bind(prim, x, index_rows(size, starts, dims), updates)

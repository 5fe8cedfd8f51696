"""How does a value go back to the place that a window chose?

``select_and_scatter`` goes through the windows of an operand: ``select_jaxpr`` chooses one place of
each, and ``scatter_jaxpr`` joins the window's source to what that place holds.  No function of the
library applies it; what max pooling is differentiated by is ``select_and_scatter_add``.

Read before: ``loops.reduce_by_function``, ``signal.pooling``.
Invariant: of equal places ``select_jaxpr`` keeps the first if it is true for equals.
Source: StableHLO specification, select_and_scatter; the jaxprs that JAX prints.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from saem.core import errors
from saem.core.jaxpr import ClosedJaxpr, Jaxpr
from saem.core.primitive import NOT_LINEAR, Primitive, absent, primitive
from saem.core.trace import bind
from saem.loops.reduce_by_function import fold_numpy, region_of
from saem.ops.linear import stacked
from saem.signal.pooling import (
    Padding,
    Sizes,
    Sliding,
    array_text,
    laid_out,
    padding_text,
    window_places,
)


@primitive("select_and_scatter")
class SelectAndScatter(Primitive):
    """Join each source to the place of ``operand``'s window that is chosen; all start as ``init``.

    Operands: operand, source (one element for each window), init (a scalar).
    """

    select_jaxpr: Jaxpr | ClosedJaxpr
    select_consts: tuple
    scatter_jaxpr: Jaxpr | ClosedJaxpr
    scatter_consts: tuple
    window_dimensions: Sizes
    window_strides: Sizes
    padding: Padding

    quick_code = False
    transpose = NOT_LINEAR
    jvp = absent("JAX has no derivative of it either. Max pooling is lax.reduce_window with "
                 "lax.max, which has one.", NotImplementedError)

    @property
    def select(self) -> ClosedJaxpr:
        return _closed(self.select_jaxpr, self.select_consts)

    @property
    def scatter(self) -> ClosedJaxpr:
        return _closed(self.scatter_jaxpr, self.scatter_consts)

    @property
    def how(self) -> Sliding:
        return Sliding.undilated(self.window_dimensions, self.window_strides, self.padding)

    def varies(self, *vmas):
        """Results are types of this rule, not of the programs, whose arguments are scalars."""
        return frozenset().union(*vmas)

    def printed_params(self):
        return dict(sorted(self.params.items()))

    def typing(self, operand, source, init):
        if not operand.shape:
            raise errors.explained(
                errors.ArgumentTypeError, "select_and_scatter.C2",
                "select_and_scatter needs an operand with an axis, got a scalar.",
                advice="Its windows lie along axes.")
        if self.how.out_shape(operand.shape) != source.shape or init.shape:
            raise errors.explained(
                errors.ArgumentError, "select_and_scatter.C1",
                f"select_and_scatter source of shape {source.shape} must have one element for each "
                f"window of the operand, {self.how.out_shape(operand.shape)}, and init, of shape "
                f"{init.shape}, none.", advice="The operand, a source, and one number.")
        return operand.strip_weak_type()

    def evaluate(self, operand, source, init):
        how, edge = self.how, np.asarray(0, operand.dtype)
        values = laid_out(operand, how, edge)
        inside = laid_out(np.ones(operand.shape, bool), how, False)
        number = np.arange(values.size).reshape(values.shape)
        best = chosen = known = None
        for place in window_places(how, source.shape):
            if best is None:
                best, chosen, known = values[place], number[place], inside[place]
                continue
            (stays,) = fold_numpy(self.select, [best], [values[place]])
            stays = known & (stays | ~inside[place])
            best = np.where(stays, best, values[place])
            chosen = np.where(stays, chosen, number[place])
            known = known | inside[place]
        out = np.full(values.size, init, operand.dtype)
        for place, value in zip(np.asarray(chosen).reshape(-1), source.reshape(-1)):
            (out[place],) = fold_numpy(self.scatter, [out[place]], [value])
        back = how._replace(padding=tuple((-low, -high) for low, high in self.padding))
        return laid_out(out.reshape(values.shape), back, 0)

    def lower(self, ctx, operand, source, init):
        fields = [array_text("window_dimensions", self.window_dimensions),
                  array_text("window_strides", self.window_strides), padding_text(self.padding)]
        return ctx.emit(
            f'"stablehlo.select_and_scatter"({operand}, {source}, {init}) '
            f'<{{{", ".join(fields)}}}>', operand, source, init, out=ctx.out_avals[0],
            regions=[region_of(ctx, self.select), region_of(ctx, self.scatter)])

    def batch(self, size, xs, dims):
        *values, init = xs
        if dims[2] is not None:
            raise errors.explained(
                NotImplementedError, "select_and_scatter.batch",
                "select_and_scatter batching is not implemented for initial values",
                advice="Start with the neutral value and combine the result with the other.")
        how = self.how.around(0)
        many = dataclasses.replace(self, window_dimensions=how.dims, window_strides=how.strides,
                                   padding=how.padding)
        return bind(many, *stacked(size, values, dims[:2]), init), 0


def _closed(program: Jaxpr | ClosedJaxpr, consts: tuple) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, list(consts))

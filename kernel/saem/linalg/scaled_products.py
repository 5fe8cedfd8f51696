"""How are matrices multiplied whose numbers are stored with a scale for each block?

Numbers of 8 bits and fewer are stored in blocks along the contracting axis, each with a scale.
``scaled_dot`` multiplies such matrices; backends without an operation for it scale the operands in
bfloat16 and multiply.

Read before: ``ops.contract``.
Invariant: scales of one give the product in bfloat16 (tests/kernel/test_products.py).
Source: the documentation of jax.lax.scaled_dot; OCP Microscaling Formats (MX) specification.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from saem._jaxlib import Array
from saem.compile.lowering import lower_primitive
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.infer import infer
from saem.core.primitive import NOT_LINEAR, Primitive, absent, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.contract import (
    DimensionNumbers,
    DotDimensionNumbers,
    DotGeneral,
    check_dimensions,
)
from saem.ops.convert import convert_element_type
from saem.ops.filling import full
from saem.ops.linear import shift_axes, stacked

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@primitive("scaled_dot")
class ScaledDot(Primitive):
    """Multiply lhs and rhs, each times its scales; operands are lhs, rhs and the scales of both."""

    dimension_numbers: DimensionNumbers
    preferred_element_type: Any

    is_product = True
    out_sharding = None
    shard_results = sharding_rules.dot_general

    def printed_params(self):
        return {"dimension_numbers": self.dimension_numbers,
                "preferred_element_type": np.dtype(self.preferred_element_type).name}

    @property
    def product(self) -> DotGeneral:
        """The product of the operands once they are scaled."""
        return DotGeneral(self.dimension_numbers, None, np.dtype(self.preferred_element_type))

    def axes(self, x_ndim: int, y_ndim: int) -> tuple[tuple[int, ...], ...]:
        """Return the batch axes of lhs, the free axes of lhs, and the free axes of rhs."""
        return self.product.axes(x_ndim, y_ndim)

    def typing(self, x, y, x_scale, y_scale):
        (xc, yc), _ = self.dimension_numbers
        for side, aval, scale, summed in (("LHS", x, x_scale, xc), ("RHS", y, y_scale, yc)):
            check_scale(side, aval, scale, summed)
        check_dimensions(self.dimension_numbers, x, y)
        return self.product.typing(x.update(dtype=BFLOAT16), y.update(dtype=BFLOAT16))

    def evaluate(self, x, y, x_scale, y_scale):
        scaled = []
        for value, scale in ((x, x_scale), (y, y_scale)):
            for axis, (n, blocks) in enumerate(zip(value.shape, scale.shape)):
                if n != blocks:
                    scale = np.repeat(scale, n // blocks, axis)
            scaled.append(value.astype(BFLOAT16) * scale.astype(BFLOAT16))
        return self.product.evaluate(*scaled)

    def lower(self, ctx, x, y, x_scale, y_scale):
        def scaled(value: str, scale: str) -> str:
            shape, blocks = ctx.avals[value].shape, ctx.avals[scale].shape
            split: list[int] = []
            dims = []
            for n, count in zip(shape, blocks):
                dims.append(len(split))
                split += [count] if n == count else [count, n // count]
            wide = ctx.reshape(ctx.broadcast(scale, tuple(split), dims), shape)
            return ctx.elementwise("stablehlo.multiply", ctx.convert(value, BFLOAT16),
                                   ctx.convert(wide, BFLOAT16),
                                   out=ShapedArray(shape, BFLOAT16))

        operands = [scaled(x, x_scale), scaled(y, y_scale)]
        avals = [ctx.avals[o] for o in operands]
        return lower_primitive(ctx, self.product, operands, avals,
                               [infer(self.product, avals)])[0]

    jvp = absent("JAX has no derivative of it either. Scale the operands and use lax.dot_general.",
                 NotImplementedError)
    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        (xc, yc), (xb, yb) = self.dimension_numbers
        numbers = ((shift_axes(xc, 0), shift_axes(yc, 0)),
                   ((0, *shift_axes(xb, 0)), (0, *shift_axes(yb, 0))))
        return bind(ScaledDot(numbers, self.preferred_element_type), *stacked(size, xs, dims)), 0


def check_scale(side: str, aval: ShapedArray, scale: ShapedArray, summed: tuple[int, ...]) -> None:
    """Refuse scales that do not belong to blocks of an operand.  Raises: TypeError."""
    def refuse(number: int, sentence: str) -> None:
        raise errors.explained(
            errors.ArgumentTypeError, f"scaled_dot.C{number}", sentence,
            advice="A block is 2 or more numbers along a contracting axis; all other axes of the "
            "scale are as those of its operand.")

    if aval.ndim != scale.ndim:
        refuse(1, f"{side} has rank {aval.ndim} but its scale has rank {scale.ndim}.")
    for axis, (n, blocks) in enumerate(zip(aval.shape, scale.shape)):
        if axis not in summed:
            if n != blocks:
                refuse(2, f"{side} dim {axis} of size {n} does not match scale dim size {blocks}.")
        elif not blocks or n % blocks:
            refuse(3, f"{side} contracting dim {axis} of size {n} must be divisible by its scale's "
                   f"dim size {blocks}.")
        elif n // blocks < 2:
            refuse(4, f"The ratio of {side} contracting dim {axis} to its scale's dim size "
                   f"({n // blocks}) must be at least 2.")


def scaled_dot(lhs: Array, rhs: Array, *, lhs_scale: Array | None = None,
               rhs_scale: Array | None = None,
               dimension_numbers: DotDimensionNumbers | None = None,
               preferred_element_type: Any = None) -> Array:
    """Return ``(lhs * lhs_scale) @ (rhs * rhs_scale)``; a scale belongs to a block of numbers.

    ``lhs``: [m k]; ``rhs``: [k n]; ``lhs_scale``: [m k/b]; ``rhs_scale``: [k/c n], with blocks of b
    and c numbers; a first axis of examples may stand before all.  A scale that is not given is one.
    The result is of ``preferred_element_type``, bfloat16 unless given.

    Raises: TypeError for scales that do not fit; NotImplementedError when differentiated.

    >>> import saem as jax
    >>> import saem.numpy as jnp
    >>> x, y = jnp.ones((1, 4)), jnp.ones((4, 1))
    >>> jax.lax.scaled_dot(x, y, lhs_scale=jnp.array([[1., 10.]]), preferred_element_type='float32')
    Array([[22.]], dtype=float32)
    """
    x, y = aval_of(lhs), aval_of(rhs)
    if dimension_numbers is None:
        if x.ndim < 2 or y.ndim < 2:
            raise errors.explained(
                errors.ArgumentTypeError, "scaled_dot.C5",
                "scaled_dot does not support 0-rank and 1-rank operands.",
                advice="Add an axis of size 1.")
        if x.ndim != y.ndim or x.ndim > 3:
            raise errors.explained(
                errors.ArgumentTypeError, "scaled_dot.C6",
                "scaled_dot needs dimension_numbers for operands of ranks "
                f"{x.ndim} and {y.ndim}.", advice="They are those of lax.dot_general.")
        heads = tuple(range(x.ndim - 2))
        dimension_numbers = (((x.ndim - 1,), (x.ndim - 2,)), (heads, heads))
    numbers: Any = tuple(tuple(tuple(int(d) for d in axes) for axes in pair)
                         for pair in dimension_numbers)
    kind = BFLOAT16 if preferred_element_type is None else dtypes.canonicalize(
        preferred_element_type, explicit=True, where="scaled_dot")
    (xc, yc), _ = numbers
    for summed, other in zip(xc, yc):
        if x.shape[summed] != y.shape[other]:
            raise errors.explained(
                errors.ArgumentTypeError, "scaled_dot.C7",
                f"LHS contracting dim {summed} of size {x.shape[summed]} does not match RHS "
                f"contracting dim {other} of size {y.shape[other]}.",
                advice="The sizes of contracting axes must agree.")
    scales = [scale if scale is not None else _ones(aval, summed)
              for scale, aval, summed in ((lhs_scale, x, xc), (rhs_scale, y, yc))]
    return bind(ScaledDot(numbers, kind), lhs, rhs, *scales)


def _ones(aval: ShapedArray, summed: tuple[int, ...]) -> Any:
    """Return scales of one: a block is as long as the axis."""
    shape = tuple(1 if a in summed else n for a, n in enumerate(aval.shape))
    return convert_element_type(full(shape, 1, BFLOAT16), ml_dtypes.float8_e8m0fnu)

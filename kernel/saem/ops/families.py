"""What do elementwise primitives of one kind share?

A family is an abstract class that carries the rules its members have in common, so that a member
is a few lines: its NumPy function, its StableHLO name, its derivative.

Read before: ``ops.linear``.  Read after: ``ops.arithmetic``, the plainest member file.
Invariant: operands have one dtype and one rank, or rank 0; rank 0 and axes of size 1 are stretched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes, errors, promotion
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import NOT_LINEAR, Primitive, remembered
from saem.core.sharded import without_axis
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.linear import (
    add_cotangents,
    broadcast_in_dim,
    broadcast_new_dim,
    moveaxis,
    stretch,
)

BOOL = np.dtype(bool)


@functools.cache
def is_number(dtype: Any) -> bool:
    return dtypes.is_inexact(dtype) or dtypes.is_integer(dtype)


@functools.cache
def is_real_number(dtype: Any) -> bool:
    return dtypes.is_float(dtype) or dtypes.is_integer(dtype)


@functools.cache
def is_discrete(dtype: Any) -> bool:
    return dtypes.is_integer(dtype) or dtypes.is_bool(dtype)


def refused_dtype(name: str, dtype: Any, needs: str, position: int | None = None,
                  tag: str = "C3") -> errors.Explained:
    """Return the error for an operand of a dtype on which the operation is not defined.

    ``needs`` lists the kinds of dtypes that it takes.  ``position`` is given where there are
    several operands.
    """
    at = "" if position is None else f" at position {position}"
    return errors.explained(
        errors.DTypeError, f"{name}.{tag}",
        f"{name} does not accept dtype {dtype.name}{at}. "
        f"Accepted dtypes{at} are subtypes of {needs}.",
        advice="Convert the operand first, for example with x.astype(jnp.float32).")


def check_dtypes(name: str, avals: Sequence[ShapedArray], accepts: Callable[[Any], bool] | None,
                 needs: str, promoting: str = "") -> None:
    """Refuse operands on which ``name`` is not defined (C3), and operands of unequal dtype (C2).

    ``promoting`` names the function of jax.numpy that gives operands one dtype.
    """
    for i, aval in enumerate(avals):
        if accepts is not None and not accepts(aval.dtype):
            raise refused_dtype(name, aval.dtype, needs, i if len(avals) > 1 else None)
    if any(aval.dtype != avals[0].dtype for aval in avals):
        names = ", ".join(a.dtype.name for a in avals)
        tip = (f" (Tip: jnp.{promoting} is a similar function that does automatic type promotion "
               "on inputs)." if promoting else "")
        raise errors.explained(
            errors.DTypeError, f"{name}.C2",
            f"lax.{name} requires arguments to have the same dtypes, got {names}.{tip}",
            advice="Or convert one with lax.convert_element_type." if promoting else
            "Convert one with lax.convert_element_type.")


def join_shapes(prim: Primitive, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """Return the shape of the result: rank 0 and axes of size 1 stretch to the others (C1)."""
    shapes = {aval.shape for aval in avals if aval.shape}
    if len(shapes) <= 1:
        return shapes.pop() if shapes else ()
    if len({len(shape) for shape in shapes}) > 1:
        ranks = {len(aval.shape) for aval in avals}
        raise errors.explained(
            errors.ShapeError, f"{prim.name}.C1",
            f"{prim.name}: arrays must have the same number of dimensions, got {ranks}.",
            advice="Use the jax.numpy function, which aligns trailing axes, or "
            "lax.broadcast_in_dim.")
    joined = []
    for sizes in zip(*shapes):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            shown = ", ".join(str(a.shape) for a in avals)
            raise errors.explained(
                errors.ShapeError, f"{prim.name}.C1",
                f"{prim.name} got incompatible shapes for broadcasting: {shown}.",
                advice="Sizes of an axis must be equal, or 1. Reshape an operand, add an axis with "
                "x[:, None], or slice to one size.")
        joined.append(wide.pop() if wide else 1)
    return tuple(joined)


class Elementwise(Primitive):
    """One output element from the input elements at the same place.

    A member gives ``hlo`` (its StableHLO name), ``numpy`` (a staticmethod), ``accepts`` (a
    predicate of dtypes, None for all) and ``needs`` (the kinds of dtypes that it takes, in words).
    ``promoting`` names the function of jax.numpy that first gives the operands one dtype.
    """

    __slots__ = ()
    hlo: ClassVar[str]
    numpy: ClassVar[Callable]
    accepts: ClassVar[Callable[[Any], bool] | None] = None
    needs: ClassVar[str] = "integer, floating, complexfloating"
    promoting: ClassVar[str] = ""
    joint_jvp = True

    shard_results = sharding_rules.elementwise
    sum_results = sum_rules.elementwise
    joins_reduced = True

    @remembered
    def typing(self, *avals: ShapedArray) -> ShapedArray:
        first = avals[0]
        dtype = first.dtype
        same = first.weak_type in (True, False)  # a reference refuses to say
        for aval in avals:
            if aval is not first and (aval.dtype != dtype or aval.shape != first.shape
                                      or aval.weak_type != first.weak_type):
                same = False
        accepts = type(self).accepts
        fits = same and (accepts is None or accepts(dtype))
        if fits and self.result_dtype(dtype) is dtype:
            return first
        shape = join_shapes(self, avals)
        if not fits:
            check_dtypes(self.name, avals, accepts, self.needs, self.promoting)
        return ShapedArray(shape, self.result_dtype(dtype), all(a.weak_type for a in avals))

    def result_dtype(self, dtype: Any) -> Any:
        """Return the output dtype for operands of ``dtype``."""
        return dtype

    def evaluate(self, *xs: np.ndarray) -> np.ndarray:
        return type(self).numpy(*xs)

    def lower(self, ctx, *xs: str) -> str:
        return ctx.elementwise(f"stablehlo.{self.hlo}", *xs)

    def batch(self, size: int, xs: Sequence[Any], dims: Sequence[int | None]):
        xs, dim = align_batch(size, xs, dims)
        return bind(self, *xs), dim


def check_example(prim: Any, xs: Sequence[Any], dims: Sequence[int | None]) -> None:
    """Refuse one example of the operands that ``prim`` would refuse, before it takes the stacks.

    For primitives that read the last axes of operands: that of the stack must not be one of them.
    """
    prim.typing(*[aval_of(x) if d is None else without_axis(aval_of(x), d)
                  for x, d in zip(xs, dims)])


def align_batch(size: int, xs: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """Return elementwise operands with the batch axis at one place (rank 0 stays), and that place.

    An operand that is the same for all examples gets an axis of size 1 there, which stretches.
    """
    if len(xs) == 1:
        return list(xs), dims[0]
    # A Python number has no shape, and its rank is 0.
    ranks = [len(getattr(x, "shape", ())) - (d is not None) for x, d in zip(xs, dims)]
    rank = max(ranks)
    dim = next((d for d, r in zip(dims, ranks) if d is not None and r == rank), 0)
    out = []
    for x, d, r in zip(xs, dims, ranks):
        if d is None:
            out.append(x if r == 0 else broadcast_new_dim(x, 1, dim))
        elif r == rank:
            out.append(x if d == dim else moveaxis(x, d, dim))
        else:
            thin = tuple(size if i == dim else 1 for i in range(rank + 1))
            out.append(broadcast_in_dim(x, thin, (dim,)))
    return out, dim


class Unary(Elementwise):
    """Elementwise of one operand; a member gives its derivative by ``tangent``."""

    __slots__ = ()

    def tangent(self, t: Any, x: Any, out: Any) -> Any:
        """Return the tangent of ``out`` for tangent ``t`` of ``x``."""
        raise TypeError(f"{self.name} does not give its derivative")

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        return out, None if t is None else self.tangent(t, x, out)

    transpose = NOT_LINEAR


class Nary(Elementwise):
    """Elementwise of several operands; a member gives one partial derivative for each.

    ``partials`` is a tuple of methods ``(t, out, *xs) -> contribution``, None for no dependence.
    """

    __slots__ = ()
    partials: ClassVar[tuple[Callable | None, ...]]

    def jvp(self, primals, tangents):
        out = bind(self, *primals)
        shape = aval_of(out).shape
        total = None
        for t, partial in zip(tangents, self.partials):
            if t is not None and partial is not None:
                part = stretch(partial(t, out, *primals), shape)
                total = add_cotangents(total, part)
        return out, total

    transpose = NOT_LINEAR


class Discrete(Elementwise):
    """Elementwise, but the output does not move with the input: the tangent is zero."""

    __slots__ = ()

    def jvp(self, primals, tangents):
        return bind(self, *primals), None

    transpose = NOT_LINEAR


class Comparison(Discrete):
    """Elementwise to bool.  ``direction`` is StableHLO's: EQ, NE, LT, LE, GT, GE."""

    __slots__ = ()
    direction: ClassVar[str]

    def result_dtype(self, dtype):
        if dtype == dtypes.float0:
            raise promotion.no_numbers(self.name)
        return BOOL

    def lower(self, ctx, x, y):
        return ctx.compare(self.direction, x, y)

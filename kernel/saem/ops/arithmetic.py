"""How are numbers added, multiplied and divided?

Each block is one primitive: what NumPy does, what StableHLO calls it, its derivative.  ``mulhi``
gives the bits of a product of integers that their type leaves out.

Read before: ``ops.families``.  Read after: ``ops.maths``.
Invariant: as of the family; tests/kernel/test_matrix.py checks every rule of every block.
Source: Warren, Hacker's Delight, section 8-2 (the upper half of a product, by halves).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.trace import bind
from saem.ops import sum_rules
from saem.ops.convert import convert_element_type
from saem.ops.families import Discrete, Nary, Unary, is_number
from saem.ops.linear import constant_like, unbroadcast
from saem.typing import Array, ArrayLike, DTypeLike


@primitive("neg")
class Neg(Unary):
    passes_nan = True
    linear = True
    hlo, numpy, accepts = "negate", staticmethod(np.negative), staticmethod(is_number)

    def tangent(self, t, x, out):
        return neg(t)

    def transpose(self, ct, x):
        return [neg(ct)]


def _same_of_tangents(prim: Primitive, primals: Any, tangents: Any) -> tuple[Any, Any] | None:
    """Return what a linear ``prim`` of two operands makes of both tangents, None if one is zero."""
    if tangents[0] is None or tangents[1] is None:
        return None
    return bind(prim, *primals), bind(prim, *tangents)


@primitive("add")
class Add(Nary):
    adds = True
    linear = True
    hlo, numpy, accepts = "add", staticmethod(np.add), staticmethod(is_number)
    promoting = "add"
    sum_results = sum_rules.add
    partials = (lambda t, out, x, y: t, lambda t, out, x, y: t)

    def jvp(self, primals, tangents):
        return _same_of_tangents(self, primals, tangents) or super().jvp(primals, tangents)

    def transpose(self, ct, x, y):
        return [unbroadcast(ct, a.aval) if isinstance(a, UndefinedPrimal) else None
                for a in (x, y)]


@primitive("sub")
class Sub(Nary):
    adds = True
    linear = True
    hlo, numpy, accepts = "subtract", staticmethod(np.subtract), staticmethod(is_number)
    promoting = "subtract"
    partials = (lambda t, out, x, y: t, lambda t, out, x, y: neg(t))

    def jvp(self, primals, tangents):
        return _same_of_tangents(self, primals, tangents) or super().jvp(primals, tangents)

    def transpose(self, ct, x, y):
        return [unbroadcast(ct, x.aval) if isinstance(x, UndefinedPrimal) else None,
                unbroadcast(neg(ct), y.aval) if isinstance(y, UndefinedPrimal) else None]


@primitive("mul")
class Mul(Nary):
    multiplies = True
    bilinear = True
    hlo, numpy, accepts = "multiply", staticmethod(np.multiply), staticmethod(is_number)
    promoting = "multiply"
    sum_results = sum_rules.mul
    partials = (lambda t, out, x, y: mul(t, y), lambda t, out, x, y: mul(x, t))

    def transpose(self, ct, x, y):
        if isinstance(x, UndefinedPrimal):
            if isinstance(y, UndefinedPrimal):
                raise NotImplementedError("mul of two linear values is not linear: the function "
                                          "that is transposed squares its argument, say.")
            return [unbroadcast(mul(ct, y), x.aval), None]
        return [None, unbroadcast(mul(x, ct), y.aval)]


def _divide(x, y):
    """Divide as XLA does: integers towards zero; by zero gives -1 (all bits set)."""
    with np.errstate(all="ignore"):
        if dtypes.is_inexact(x.dtype):
            return np.divide(x, y)
        safe = np.where(y == 0, np.ones_like(y), y)
        down = np.floor_divide(x, safe)
        inexact = (x - down * safe != 0) & ((x < 0) != (safe < 0))
        quotient = (down + inexact.astype(x.dtype)).astype(x.dtype)
        return np.where(y == 0, np.asarray(-1).astype(x.dtype), quotient)


@primitive("div")
class Div(Nary):
    """Division; integers round towards zero."""

    divisor = 1
    multiplies = True  # by the reciprocal of a constant
    hlo, numpy, accepts = "divide", staticmethod(_divide), staticmethod(is_number)
    promoting = "divide"
    partials = (lambda t, out, x, y: div(t, y),
                lambda t, out, x, y: mul(mul(neg(t), x), integer_pow(y, -2)))

    def transpose(self, ct, x, y):
        return [unbroadcast(div(ct, y), x.aval), None]


@primitive("integer_pow")
class IntegerPow(Unary):
    """x to a constant integer power, by repeated squaring."""

    y: int
    multiplies = True
    accepts = staticmethod(is_number)
    sum_results = None

    def typing(self, x):
        if self.y < 0 and dtypes.is_integer(x.dtype):
            raise errors.explained(
                errors.DTypeError, "integer_pow.C1",
                f"Integers cannot be raised to negative powers, got "
                f"integer_pow({x.str_short()}, {self.y})",
                advice="Convert to a float first.")
        return super().typing(x)

    def evaluate(self, x):
        with np.errstate(all="ignore"):
            if dtypes.is_integer(x.dtype):
                wide = np.uint64 if dtypes.is_unsigned(x.dtype) else np.int64
                return np.power(x.astype(wide), wide(self.y)).astype(x.dtype)
            if self.y < 0:
                return np.divide(np.ones_like(x), x ** -self.y).astype(x.dtype)
            return np.power(x, self.y).astype(x.dtype)

    def lower(self, ctx, x):
        n, square, out = abs(self.y), x, None
        while n:
            if n & 1:
                out = square if out is None else ctx.elementwise("stablehlo.multiply", out, square)
            n >>= 1
            if n:
                square = ctx.elementwise("stablehlo.multiply", square, square)
        if self.y > 0:
            return out
        one = ctx.constant(1, ctx.out_avals[0])
        return one if out is None else ctx.elementwise("stablehlo.divide", one, out)

    def tangent(self, t, x, out):
        if self.y == 0:
            return None
        if self.y == 1:
            return t
        rest = x if self.y == 2 else integer_pow(x, self.y - 1)
        return mul(t, mul(constant_like(x, self.y), rest))


# -- functions -------------------------------------------------------------------------------------


def neg(x: ArrayLike) -> Array:
    """Return -x, elementwise.  Raises: DTypeError.  Source: StableHLO specification, negate.

    >>> lax.neg(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    return bind(Neg(), x)


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x + y, elementwise.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, add.

    >>> lax.add(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([4, 6], dtype=int32)
    """
    return bind(Add(), x, y)


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x - y, elementwise.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, subtract.

    >>> lax.sub(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([-2, -2], dtype=int32)
    """
    return bind(Sub(), x, y)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Return x * y, elementwise; with ``out_dtype``, of operands converted to that dtype.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, multiply.

    >>> lax.mul(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([3, 8], dtype=int32)
    """
    if out_dtype is not None:
        x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
    return bind(Mul(), x, y)


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x / y, elementwise; integers round towards zero.

    Shapes: of both one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, divide.
    """
    return bind(Div(), x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Return x to the constant integer power ``y``, elementwise.  Raises: DTypeError.

    >>> lax.integer_pow(jnp.array([2., 3.]), 3)
    Array([ 8., 27.], dtype=float32)
    """
    return bind(IntegerPow(operator.index(y)), x)


# -- the upper half of a product -------------------------------------------------------------------


def _upper_half(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = dtypes.itemsize_bits(x.dtype)
    whole = x.astype(object) * y.astype(object)  # Python's integers have all their bits
    return np.asarray(whole >> bits).astype(x.dtype)


@primitive("mulhi")
class MulHi(Discrete):
    """The upper half of the product of integers."""

    accepts, needs = staticmethod(dtypes.is_integer), "integer"
    numpy = staticmethod(_upper_half)

    def lower(self, ctx, x, y):
        aval = ctx.avals[x]
        bits = dtypes.itemsize_bits(aval.dtype)
        return _halves(ctx, x, y, bits) if bits == 64 else _widened(ctx, x, y, bits)


def _widened(ctx: Any, x: str, y: str, bits: int) -> str:
    """Multiply in the type of twice the width."""
    own = ctx.avals[x].dtype
    unsigned = np.issubdtype(own, np.unsignedinteger)
    wide = np.dtype(f"{'u' if unsigned else ''}int{2 * max(bits, 8)}")
    out = ctx.out_avals[0].update(dtype=wide)
    product = ctx.elementwise("stablehlo.multiply", ctx.convert(x, wide), ctx.convert(y, wide),
                              out=out)
    shift = f"stablehlo.shift_right_{'logical' if unsigned else 'arithmetic'}"
    shifted = ctx.elementwise(shift, product, _number(ctx, product, bits), out=out)
    return ctx.convert(shifted, own)


def _halves(ctx: Any, x: str, y: str, bits: int) -> str:
    """Multiply by halves, each of which fits."""
    unsigned = np.issubdtype(ctx.avals[x].dtype, np.unsignedinteger)
    right = f"stablehlo.shift_right_{'logical' if unsigned else 'arithmetic'}"
    half, mask = _number(ctx, x, bits // 2), _number(ctx, x, (1 << bits // 2) - 1)

    def low(value: str) -> str:
        return ctx.elementwise("stablehlo.and", value, mask)

    def high(value: str) -> str:
        return ctx.elementwise(right, value, half)

    def times(a: str, b: str) -> str:
        return ctx.elementwise("stablehlo.multiply", a, b)

    def plus(a: str, b: str) -> str:
        return ctx.elementwise("stablehlo.add", a, b)

    carry = ctx.elementwise("stablehlo.shift_right_logical", times(low(x), low(y)), half)
    middle = plus(times(high(x), low(y)), carry)
    other = plus(times(low(x), high(y)), low(middle))
    return plus(plus(times(high(x), high(y)), high(middle)), high(other))


def _number(ctx: Any, like: str, value: int) -> str:
    aval = ctx.avals[like]
    return ctx.constant(np.asarray(value, aval.dtype), aval.update(shape=()))


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the upper half of the double-wide product of ``x`` and ``y``, elementwise.

    >>> lax.mulhi(jnp.array([1 << 20], dtype=jnp.uint32), jnp.array([1 << 20], dtype=jnp.uint32))
    Array([256], dtype=uint32)
    """
    return bind(MulHi(), x, y)

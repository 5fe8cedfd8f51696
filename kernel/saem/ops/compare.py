"""How are values compared, and bits combined?

None of this moves with small changes of the operands, so nothing here has a tangent.

Read before: ``ops.families``.  Read after: ``ops.select``, which chooses by what is found here.
Invariant: comparisons with NaN are false (ne: true); shifting by the width or more
leaves no bit.
Source: StableHLO specification: compare, and, shift_left and related functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.compile.text import physical_aval
from saem.core import dtypes
from saem.core.avals import ShapedArray
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops.families import Comparison, Discrete, is_discrete, is_real_number
from saem.ops.linear import held_dims
from saem.typing import Array, ArrayLike


def is_ordered(dtype: Any) -> bool:
    return is_real_number(dtype) or dtypes.is_bool(dtype)


def complex_extremum(ctx: Any, x: str, y: str, aval: ShapedArray, greater: bool) -> str:
    """Write the larger or smaller of complex ``x`` and ``y``: by real part, then imaginary part."""
    part = ShapedArray(aval.shape, dtypes.real_dtype(aval.dtype))
    rx, ry, ix, iy = (ctx.emit(f"stablehlo.{p} {v}", v, out=part)
                      for p in ("real", "imag") for v in (x, y))
    direction = "GT" if greater else "LT"
    first = ctx.choose(ctx.compare("EQ", rx, ry), ctx.compare(direction, ix, iy),
                       ctx.compare(direction, rx, ry))
    return ctx.choose(first, x, y)


# -- comparisons -----------------------------------------------------------------------------------


class OfWords:
    """``eq`` or ``ne`` of extended dtypes: of all numbers that hold an element together."""

    multiple_results = False

    def __init__(self, prim: Any, held: int):
        self.prim = prim
        self.held = held  # the number of axes that an element takes

    def evaluate(self, x, y):
        together = np.all if self.prim.direction == "EQ" else np.any
        return together(self.prim.numpy(x, y), axis=tuple(range(-self.held, 0)))

    def lower(self, ctx, x, y):
        words = []
        for key, aval in zip((x, y), ctx.in_avals):
            held = physical_aval(aval)
            words.append(ctx.emit(f"stablehlo.reshape {key}", key, out=held))
        equal = self.prim.direction == "EQ"
        rank, found = len(ctx.avals[words[0]].shape), ctx.compare(self.prim.direction, *words)
        axes = tuple(range(rank - self.held, rank))
        return ctx.reduce("and" if equal else "or", found, equal, axes) if axes else found


class Equality(Comparison):
    """A comparison that keys know, too."""

    __slots__ = ()

    def physical(self, in_avals, out_avals):
        keys = all(dtypes.is_extended(a.dtype) for a in in_avals)
        return OfWords(self, len(held_dims(in_avals[0]))) if keys else self


@primitive("eq")
class Eq(Equality):
    direction, numpy = "EQ", staticmethod(np.equal)
    promoting = "equal"


@primitive("ne")
class Ne(Equality):
    direction, numpy = "NE", staticmethod(np.not_equal)
    promoting = "not_equal"


class Ordering(Comparison):
    """A comparison that needs an order: complex numbers have none."""

    __slots__ = ()
    accepts, needs = staticmethod(is_ordered), "integer, floating, bool"


@primitive("lt")
class Lt(Ordering):
    direction, numpy = "LT", staticmethod(np.less)


@primitive("le")
class Le(Ordering):
    direction, numpy = "LE", staticmethod(np.less_equal)


@primitive("gt")
class Gt(Ordering):
    direction, numpy = "GT", staticmethod(np.greater)


@primitive("ge")
class Ge(Ordering):
    direction, numpy = "GE", staticmethod(np.greater_equal)


def total_order(x: np.ndarray) -> np.ndarray:
    """Return integers ordered as IEEE 754 orders all floats: -NaN < -inf < … < -0 < 0 < … < NaN."""
    if not dtypes.is_float(x.dtype):
        return x
    signed = np.dtype(f"i{x.dtype.itemsize}")
    bits = np.asarray(x).view(signed)
    return np.where(bits < 0, bits ^ np.iinfo(signed).max, bits)


class TotalOrder(Ordering):
    """A comparison in which NaN and both zeros have their place."""

    __slots__ = ()

    def evaluate(self, x, y):
        return type(self).numpy(total_order(x), total_order(y))

    def lower(self, ctx, x, y):
        return ctx.compare(self.direction, x, y, dtypes.is_float(ctx.in_avals[0].dtype))


@primitive("eq_to")
class EqTotal(TotalOrder):
    direction, numpy = "EQ", staticmethod(np.equal)


@primitive("lt_to")
class LtTotal(TotalOrder):
    direction, numpy = "LT", staticmethod(np.less)


@primitive("le_to")
class LeTotal(TotalOrder):
    direction, numpy = "LE", staticmethod(np.less_equal)


# -- bits ------------------------------------------------------------------------------------------


class Bitwise(Discrete):
    """Bit by bit; a bool is one bit."""

    __slots__ = ()
    accepts, needs = staticmethod(is_discrete), "integer, bool"


@primitive("and")
class And(Bitwise):
    hlo, numpy = "and", staticmethod(np.bitwise_and)


@primitive("or")
class Or(Bitwise):
    hlo, numpy = "or", staticmethod(np.bitwise_or)


@primitive("xor")
class Xor(Bitwise):
    hlo, numpy = "xor", staticmethod(np.bitwise_xor)


@primitive("not")
class Not(Bitwise):
    hlo, numpy = "not", staticmethod(np.invert)


def unsigned(x: np.ndarray) -> np.ndarray:
    """Return the bits of integers ``x`` as unsigned integers."""
    return np.asarray(x).view(np.dtype(f"u{x.dtype.itemsize}"))


def _shift_right_logical(x, n):
    return np.right_shift(unsigned(x), unsigned(n)).view(x.dtype)


def _population_count(x):
    return np.bitwise_count(unsigned(x)).astype(x.dtype)


def _leading_zeros(x):
    width, filled = dtypes.itemsize_bits(x.dtype), unsigned(x).copy()
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            filled |= filled >> filled.dtype.type(step)
    return (width - np.bitwise_count(filled)).astype(x.dtype)


class OfIntegers(Discrete):
    __slots__ = ()
    accepts, needs = staticmethod(dtypes.is_integer), "integer"


@primitive("shift_left")
class ShiftLeft(OfIntegers):
    hlo, numpy = "shift_left", staticmethod(lambda x, n: np.left_shift(x, n))
    promoting = "left_shift"


@primitive("shift_right_logical")
class ShiftRightLogical(OfIntegers):
    hlo, numpy = "shift_right_logical", staticmethod(_shift_right_logical)
    promoting = "right_shift"


@primitive("shift_right_arithmetic")
class ShiftRightArithmetic(OfIntegers):
    """Shift right, filling with the sign bit whatever the dtype."""

    hlo = "shift_right_arithmetic"
    promoting = "right_shift"

    def evaluate(self, x, n):
        signed = np.dtype(f"i{x.dtype.itemsize}")
        return np.right_shift(np.asarray(x).view(signed), np.asarray(n).view(signed)).view(x.dtype)


@primitive("population_count")
class PopulationCount(OfIntegers):
    """How many bits are set."""

    hlo, numpy = "popcnt", staticmethod(_population_count)


@primitive("clz")
class Clz(OfIntegers):
    """How many bits before the highest that is set."""

    hlo, numpy = "count_leading_zeros", staticmethod(_leading_zeros)


# -- functions -------------------------------------------------------------------------------------


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x == y, elementwise; complex numbers too.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.

    >>> lax.eq(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([ True, False], dtype=bool)
    """
    return bind(Eq(), x, y)


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x != y, elementwise; complex numbers too.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.

    >>> lax.ne(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([False,  True], dtype=bool)
    """
    return bind(Ne(), x, y)


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x < y, elementwise.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.

    >>> lax.lt(jnp.array([1, 3]), jnp.array([2, 2]))
    Array([ True, False], dtype=bool)
    """
    return bind(Lt(), x, y)


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x <= y, elementwise.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.

    >>> lax.le(jnp.array([1, 3]), jnp.array([1, 2]))
    Array([ True, False], dtype=bool)
    """
    return bind(Le(), x, y)


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x > y, elementwise.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.

    >>> lax.gt(jnp.array([1, 3]), jnp.array([2, 2]))
    Array([False,  True], dtype=bool)
    """
    return bind(Gt(), x, y)


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x >= y, elementwise.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.

    >>> lax.ge(jnp.array([1, 2]), jnp.array([2, 2]))
    Array([False,  True], dtype=bool)
    """
    return bind(Ge(), x, y)


def eq_to(x: Any, y: Any) -> Any:
    """Return x == y where NaN equals itself and -0 differs from 0.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.
    """
    return bind(EqTotal(), x, y)


def lt_to(x: Any, y: Any) -> Any:
    """Return x < y in the total order of IEEE 754.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.
    """
    return bind(LtTotal(), x, y)


def le_to(x: Any, y: Any) -> Any:
    """Return x <= y in the total order of IEEE 754.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, compare.
    """
    return bind(LeTotal(), x, y)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x AND y, bit by bit.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, and.

    >>> lax.bitwise_and(jnp.array([6]), jnp.array([3]))
    Array([2], dtype=int32)
    """
    return bind(And(), x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x OR y, bit by bit.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, or.

    >>> lax.bitwise_or(jnp.array([6]), jnp.array([3]))
    Array([7], dtype=int32)
    """
    return bind(Or(), x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x XOR y, bit by bit.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, xor.

    >>> lax.bitwise_xor(jnp.array([6]), jnp.array([3]))
    Array([5], dtype=int32)
    """
    return bind(Xor(), x, y)


def bitwise_not(x: ArrayLike) -> Array:
    """Return NOT x, bit by bit.

    Raises: DTypeError.  Source: StableHLO specification, not.

    >>> lax.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return bind(Not(), x)


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x moved ``y`` bits up; 0 from the width on.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, shift_left.

    >>> lax.shift_left(jnp.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)
    """
    return bind(ShiftLeft(), x, y)


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x moved ``y`` bits down, filled with zeros.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, shift_right_logical.

    >>> lax.shift_right_logical(jnp.array([8, -8]), 2)
    Array([         2, 1073741822], dtype=int32)
    """
    return bind(ShiftRightLogical(), x, y)


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x moved ``y`` bits down, filled with its sign.

    Shapes: both of one, or rank 0, or size 1.  Raises: ShapeError, DTypeError.
    Source: StableHLO specification, shift_right_arithmetic.

    >>> lax.shift_right_arithmetic(jnp.array([8, -8]), 2)
    Array([ 2, -2], dtype=int32)
    """
    return bind(ShiftRightArithmetic(), x, y)


def population_count(x: ArrayLike) -> Array:
    """Return how many bits of each integer are set.

    Raises: DTypeError.  Source: StableHLO specification, popcnt.

    >>> lax.population_count(jnp.array([0, 7, 8]))
    Array([0, 3, 1], dtype=int32)
    """
    return bind(PopulationCount(), x)


def clz(x: ArrayLike) -> Array:
    """Return how many bits of each integer stand before its highest set bit.

    Raises: DTypeError.  Source: StableHLO specification, count_leading_zeros.

    >>> lax.clz(jnp.array([1, 255]))
    Array([31, 24], dtype=int32)
    """
    return bind(Clz(), x)

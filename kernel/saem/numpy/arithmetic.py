"""How are arrays added, multiplied, divided and raised to powers?

As in NumPy, but dtypes meet as in JAX: ``i32 / i32`` is f32, booleans are added by *or*.  Functions
here record primitives at once; ``numpy.ufuncs`` offers them compiled.

Read before: ``numpy.promote``.  Read after: ``numpy.logic``, ``numpy.transcendental``.
Invariant: outside of what is documented as different, values are NumPy's
(tests/kernel/numpy/test_elementwise.py).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from saem._jaxlib import ArrayImpl
from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.primitive import equal_one
from saem.core.trace import bind
from saem.numpy.promote import (
    as_value,
    check_arraylike,
    convert_value,
    dtype_of,
    if_else,
    is_boolean,
    join_types,
    like,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_shapes,
    scalar,
    weakly_like,
)
from saem.ops import arithmetic as ops
from saem.ops import compare, maths, numbers
from saem.ops.arithmetic import Add, Div, IntegerPow, Mul, Neg, Sub
from saem.ops.compare import And, Or
from saem.typing import Array, ArrayLike

ADD, SUB, MUL, DIV, NEG, AND, OR = Add(), Sub(), Mul(), Div(), Neg(), And(), Or()


def add(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return x + y; for booleans, x or y.

    >>> jnp.add(jnp.array([1, 2]), 3)
    Array([4, 5], dtype=int32)
    """
    x, y = promote_args("add", x, y)
    return bind(OR if is_boolean(x) else ADD, x, y)


def subtract(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return x - y.  Raises: DTypeError for booleans.

    >>> jnp.subtract(jnp.array([1, 2]), 3)
    Array([-2, -1], dtype=int32)
    """
    x, y = promote_args("subtract", x, y)
    return bind(SUB, x, y)


def multiply(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return x * y; for booleans, x and y.

    >>> jnp.multiply(jnp.array([1, 2]), 3)
    Array([3, 6], dtype=int32)
    """
    x, y = promote_args("multiply", x, y)
    return bind(AND if is_boolean(x) else MUL, x, y)


def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return x1 / x2, floating or complex even for integers.

    >>> jnp.divide(jnp.array([1, 3]), 2)
    Array([0.5, 1.5], dtype=float32)
    """
    x, y = promote_args_inexact("true_divide", x1, x2)
    return bind(DIV, x, y)


def negative(x: ArrayLike, /) -> Any:
    """Return -x.  Raises: DTypeError for booleans.

    >>> jnp.negative(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    (x,) = promote_args("negative", x)
    return bind(NEG, x)


def positive(x: ArrayLike, /) -> Array:
    """Return x as an array; PRNG keys are answered, too.

    >>> jnp.positive(jnp.array([1, -2]))
    Array([ 1, -2], dtype=int32)
    """
    (x,) = promote_args("positive", x)
    return x


def absolute(x: ArrayLike, /) -> Array:
    """Return |x|, real for complex x.

    >>> jnp.absolute(jnp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    """
    (x,) = promote_args("absolute", x)
    unsigned = is_boolean(x) or dtypes.is_unsigned(dtype_of(x))
    return x if unsigned else numbers.abs(x)


def fabs(x: ArrayLike, /) -> Array:
    """Return |x| as a float.  Raises: TypeError for complex x.

    >>> jnp.fabs(jnp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """
    check_arraylike("fabs", x)
    if dtypes.is_complex(dtype_of(x)):
        raise errors.explained(
            errors.DTypeError, "fabs.C2", "ufunc 'fabs' does not support complex dtypes",
            advice="Use jnp.abs.")
    return numbers.abs(*promote_args_inexact("fabs", x))


def sign(x: ArrayLike, /) -> Array:
    """Return -1, 0 or 1 with the sign of x; x / |x| for complex x.

    >>> jnp.sign(jnp.array([-3, 0, 2]))
    Array([-1,  0,  1], dtype=int32)
    """
    (x,) = promote_args("sign", x)
    return numbers.sign(x)


# -- division with remainder -----------------------------------------------------------------------


def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return x1 / x2 rounded down.  Raises: TypeError for complex operands.

    >>> jnp.floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    x, y = promote_args_numeric("floor_divide", x1, x2)
    dtype = dtype_of(x)
    if dtypes.is_unsigned(dtype):
        return ops.div(x, y)
    if dtypes.is_integer(dtype):
        quotient = ops.div(x, y)
        inexact = compare.ne(numbers.rem(x, y), weakly_like(x, 0))
        down = compare.bitwise_and(compare.ne(numbers.sign(x), numbers.sign(y)), inexact)
        return if_else(down, ops.sub(quotient, weakly_like(x, 1)), quotient)
    if dtypes.is_complex(dtype):
        raise errors.explained(
            errors.DTypeError, "floor_divide.C2",
            "floor_divide does not support complex-valued inputs",
            advice="Complex numbers have no order. Apply it to the real and imaginary parts.")
    return _float_divmod(x, y)[0]


def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return x1 - floor_divide(x1, x2) * x2, with the sign of x2; 0 for integers if x2 is 0.

    >>> jnp.remainder(jnp.array([7, -7]), 3)
    Array([1, 2], dtype=int32)
    """
    x, y = promote_args_numeric("remainder", x1, x2)
    if dtypes.is_integer(dtype_of(x)):
        y = if_else(compare.eq(y, weakly_like(y, 0)), weakly_like(y, 1), y)
    zero = weakly_like(x, 0)
    rest = numbers.rem(x, y)
    nonzero = compare.ne(rest, zero)
    differ = compare.ne(compare.lt(rest, zero), compare.lt(y, zero))
    return if_else(compare.bitwise_and(differ, nonzero), ops.add(rest, y), rest)


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Any, Any]:
    """Return (floor_divide(x1, x2), remainder(x1, x2)).

    >>> jnp.divmod(jnp.array([7, -7]), 3)
    (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x, y = promote_args_numeric("divmod", x1, x2)
    dtype = dtype_of(x)
    if dtypes.is_integer(dtype):
        return floor_divide(x, y), remainder(x, y)
    return _float_divmod(x, y)


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Return quotient rounded down and remainder of floats; x / 0 keeps its infinity."""
    zero = weakly_like(x, 0)
    rest = numbers.rem(x, y)
    quotient = ops.div(if_else(compare.eq(y, zero), x, ops.sub(x, rest)), y)
    differ = compare.ne(numbers.sign(y), numbers.sign(rest))
    down = compare.bitwise_and(compare.ne(rest, zero), differ)
    rest = if_else(down, ops.add(rest, y), rest)
    quotient = if_else(down, ops.sub(quotient, weakly_like(x, 1)), quotient)
    return numbers.round(quotient), rest


def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the remainder of x1 / x2 with the sign of x1; 0 for integers when x2 is 0.

    Of booleans it is x1 where x2 is false, as in JAX.

    >>> jnp.fmod(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    guarded = not all(map(is_boolean, (x1, x2)))
    x, y = promote_args_numeric("fmod", x1, x2)
    if guarded and dtypes.is_integer(dtype_of(x)):
        y = if_else(compare.eq(y, weakly_like(y, 0)), weakly_like(y, 1), y)
    return numbers.rem(x, y)


# -- powers ----------------------------------------------------------------------------------------


def power(x1: Any, x2: Any, /) -> Any:
    """Return x1 ** x2.

    A Python int exponent is a constant of the program: ``x ** 2`` is a multiplication.
    Raises: TypeError for integers to negative constant powers.
    """
    check_arraylike("power", x1, x2)
    x1, x2 = as_value(x1), as_value(x2)
    if is_constant_integer(x2):
        return integer_power(x1, int(x2))
    dtype, weak = join_types((x1, x2), "power")
    if dtypes.is_inexact(dtype_of(x1)) and dtypes.is_integer(dtype_of(x2)):
        # The primitive takes an integer exponent as it is, and is then exact for negative bases.
        return numbers.pow(*promote_shapes("power", convert_value(x1, dtype, weak), x2))
    x1, x2 = promote_args_numeric("power", x1, x2)
    return numbers.pow(x1, x2) if dtypes.is_inexact(dtype) else _integer_loop(x1, x2)


def is_constant_integer(x: Any) -> bool:
    """Return whether an exponent is an integer known when the program is made."""
    if isinstance(x, (np.ndarray, np.generic, ArrayImpl)):
        return not x.shape and dtypes.is_integer(x.dtype)
    return isinstance(x, int)


def integer_power(x: Any, y: int) -> Any:
    """Return x to the constant integer power ``y``; booleans count as integers.

    Raises: TypeError if x is of integers and ``y`` is negative.
    """
    (x,) = promote_args_numeric("power", x)
    aval = aval_of(x)
    if y < 0 and dtypes.is_integer(aval.dtype):
        raise errors.explained(
            errors.DTypeError, "integer_pow.C2",
            f"Integers cannot be raised to negative powers, got integer_pow({aval}, {y})",
            advice="Convert the base to a float first: x.astype(float) ** y.")
    return bind(equal_one(IntegerPow, operator.index(y)), x)


def _integer_loop(x: Any, y: Any) -> Any:
    """Return x ** y for integer arrays by repeated squaring, as far as six bits of y reach."""
    zero, one = [scalar(number, aval_of(x).dtype) for number in (0, 1)]
    vanishes = compare.bitwise_and(compare.eq(x, zero), compare.ne(y, zero))
    out = if_else(vanishes, zero, one)
    for _ in range(6):
        odd = compare.ne(compare.bitwise_and(y, one), zero)
        out = if_else(odd, ops.mul(out, x), out)
        x = ops.mul(x, x)
        y = compare.shift_right_logical(y, one)
    return out


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return x ** y, floating or complex even for integers.

    >>> jnp.float_power(jnp.array([2, 3]), 2)
    Array([4., 9.], dtype=float32)
    """
    return numbers.pow(*promote_args_inexact("float_power", x, y))


def square(x: ArrayLike, /) -> Array:
    """Return x * x.

    >>> jnp.square(jnp.array([2, -3]))
    Array([4, 9], dtype=int32)
    """
    (x,) = promote_args_numeric("square", x)
    return maths.square(x)


def reciprocal(x: ArrayLike, /) -> Array:
    """Return 1 / x, floating or complex even for integers.

    >>> jnp.reciprocal(jnp.array([2., 4.]))
    Array([0.5 , 0.25], dtype=float32)
    """
    (x,) = promote_args_inexact("reciprocal", x)
    return bind(IntegerPow(-1), x)


# -- angles ----------------------------------------------------------------------------------------


def deg2rad(x: ArrayLike, /) -> Array:
    """Return degrees x in radians.

    >>> jnp.deg2rad(180.)
    Array(3.1415927, dtype=float32, weak_type=True)
    """
    (x,) = promote_args_inexact("deg2rad", x)
    return ops.mul(x, like(x, np.pi / 180))


def rad2deg(x: ArrayLike, /) -> Array:
    """Return radians x in degrees.

    >>> jnp.rad2deg(jnp.pi)
    Array(180., dtype=float32, weak_type=True)
    """
    (x,) = promote_args_inexact("rad2deg", x)
    return ops.mul(x, like(x, 180 / np.pi))

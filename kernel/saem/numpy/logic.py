"""How are arrays compared, and truth values and bits combined?

Comparisons give booleans; complex numbers are ordered by real, then by imaginary part.  Logical
functions take anything that is not zero as true.  Bitwise ones take integers and booleans.

Read before: ``numpy.arithmetic``.  Read after: ``numpy.operators``.
Invariant: operands are promoted before they are compared (tests/kernel/numpy/test_elementwise.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.trace import bind
from saem.jit.library import library_function
from saem.numpy.creation import array
from saem.numpy.promote import (
    as_value,
    broadcast_together,
    check_arraylike,
    dtype_of,
    is_boolean,
    like,
    promote_args,
    promote_args_numeric,
    promote_dtypes,
)
from saem.ops import compare, numbers, select
from saem.ops.compare import And, Eq, Ge, Gt, Le, Lt, Ne, Not, Or, Xor
from saem.ops.convert import convert, convert_element_type
from saem.ops.reduce import reduce_and
from saem.typing import Array, ArrayLike

EQ, NE, LT, LE, GT, GE = Eq(), Ne(), Lt(), Le(), Gt(), Ge()
AND, OR, XOR, NOT = And(), Or(), Xor(), Not()
BOOL = np.dtype(bool)


# -- comparisons -----------------------------------------------------------------------------------


def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return where x == y.

    >>> jnp.equal(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([ True, False], dtype=bool)
    """
    x, y = promote_args("equal", x, y)
    return bind(EQ, x, y)


def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return where x != y.

    >>> jnp.not_equal(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([False,  True], dtype=bool)
    """
    x, y = promote_args("not_equal", x, y)
    return bind(NE, x, y)


def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return where x < y.

    >>> jnp.less(jnp.array([1, 3]), 2)
    Array([ True, False], dtype=bool)
    """
    x, y = promote_args("less", x, y)
    return _by_parts(compare.lt, x, y) if dtypes.is_complex(dtype_of(x)) else bind(LT, x, y)


def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return where x <= y.

    >>> jnp.less_equal(jnp.array([1, 2]), 1)
    Array([ True, False], dtype=bool)
    """
    x, y = promote_args("less_equal", x, y)
    return _by_parts(compare.le, x, y) if dtypes.is_complex(dtype_of(x)) else bind(LE, x, y)


def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return where x > y.

    >>> jnp.greater(jnp.array([1, 3]), 2)
    Array([False,  True], dtype=bool)
    """
    x, y = promote_args("greater", x, y)
    return _by_parts(compare.gt, x, y) if dtypes.is_complex(dtype_of(x)) else bind(GT, x, y)


def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return where x >= y.

    >>> jnp.greater_equal(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    x, y = promote_args("greater_equal", x, y)
    return _by_parts(compare.ge, x, y) if dtypes.is_complex(dtype_of(x)) else bind(GE, x, y)


def _by_parts(order: Callable, x: Any, y: Any) -> Any:
    """Compare complex numbers: by the imaginary parts where the real parts are equal."""
    same = compare.eq(numbers.real(x), numbers.real(y))
    imaginary = order(numbers.imag(x), numbers.imag(y))
    return select.select_n(same, order(numbers.real(x), numbers.real(y)), imaginary)


# -- truth values ----------------------------------------------------------------------------------


def truth(x: Any) -> Any:
    """Return where ``x`` is not zero; booleans are themselves."""
    if type(x) is bool:
        return np.bool_(x)
    return x if is_boolean(x) else bind(NE, x, like(x, 0))


def logical_and(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return where x and y are both not zero.

    >>> jnp.logical_and(jnp.array([True, False]), True)
    Array([ True, False], dtype=bool)
    """
    x, y = promote_args("logical_and", x, y)
    return bind(AND, truth(x), truth(y))


def logical_or(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return where x or y is not zero.

    >>> jnp.logical_or(jnp.array([True, False]), False)
    Array([ True, False], dtype=bool)
    """
    x, y = promote_args("logical_or", x, y)
    return bind(OR, truth(x), truth(y))


def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return where exactly one of x and y is not zero.

    >>> jnp.logical_xor(jnp.array([True, False]), True)
    Array([False,  True], dtype=bool)
    """
    x, y = promote_args("logical_xor", x, y)
    return bind(XOR, truth(x), truth(y))


def logical_not(x: ArrayLike, /) -> Array:
    """Return where x is zero.

    >>> jnp.logical_not(jnp.array([True, False]))
    Array([False,  True], dtype=bool)
    """
    (x,) = promote_args("logical_not", x)
    return bind(NOT, truth(x))


# -- bits ------------------------------------------------------------------------------------------


def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return the bits set in both.  Raises: DTypeError for floats.

    >>> jnp.bitwise_and(6, 3)
    Array(2, dtype=int32, weak_type=True)
    """
    x, y = promote_args("bitwise_and", x, y)
    return bind(AND, x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return the bits set in either.  Raises: DTypeError for floats.

    >>> jnp.bitwise_or(6, 3)
    Array(7, dtype=int32, weak_type=True)
    """
    x, y = promote_args("bitwise_or", x, y)
    return bind(OR, x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return the bits set in exactly one.  Raises: DTypeError for floats.

    >>> jnp.bitwise_xor(6, 3)
    Array(5, dtype=int32, weak_type=True)
    """
    x, y = promote_args("bitwise_xor", x, y)
    return bind(XOR, x, y)


def bitwise_not(x: ArrayLike, /) -> Array:
    """Return all bits inverted; for booleans, not.  Raises: DTypeError for floats.

    >>> jnp.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    (x,) = promote_args("bitwise_not", x)
    return bind(NOT, x)


def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return x * 2**y.  Raises: DTypeError for floats.

    >>> jnp.left_shift(jnp.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)
    """
    x, y = promote_args_numeric("left_shift", x, y)
    return compare.shift_left(x, y)


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return x1 / 2**x2 rounded down.  Raises: DTypeError for floats.

    >>> jnp.right_shift(jnp.array([8, -8]), 2)
    Array([ 2, -2], dtype=int32)
    """
    x, y = promote_args_numeric("right_shift", x1, x2)
    if dtypes.is_unsigned(dtype_of(x)):
        return compare.shift_right_logical(x, y)
    return compare.shift_right_arithmetic(x, y)


def bitwise_count(x: ArrayLike, /) -> Array:
    """Return how many bits of |x| are set, as uint8.  Raises: DTypeError for floats.

    >>> jnp.bitwise_count(jnp.array([0, 7, 8]))
    Array([0, 3, 1], dtype=uint8)
    """
    check_arraylike("bitwise_count", x)
    x = as_value(x)
    dtype = dtype_of(x)
    if dtypes.is_bool(dtype):
        return convert_element_type(x, "uint8")
    if not dtypes.is_integer(dtype):
        raise errors.explained(
            errors.DTypeError, "bitwise_count.C2",
            f"population_count does not accept dtype {dtype.name}. Accepted dtypes are subtypes of "
            "integer.",
            advice="Convert with x.astype(int).")
    (x,) = promote_args("bitwise_count", x)
    magnitude = x if dtypes.is_unsigned(dtype) else numbers.abs(x)
    return convert_element_type(compare.population_count(magnitude), "uint8")


# -- whole arrays ----------------------------------------------------------------------------------


def everything(x: Any) -> Any:
    """Return whether all booleans of ``x`` are true; the answer is strong."""
    x = convert(x, BOOL, False)
    return reduce_and(x, tuple(range(len(aval_of(x).shape))))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Return whether two arrays, or lists, have one shape and equal elements.

    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
    Array(True, dtype=bool)
    """
    x, y = array(a1, copy=False), array(a2, copy=False)
    if aval_of(x).shape != aval_of(y).shape:
        return array(False)
    return _all_equal(x, y, equal_nan=bool(equal_nan))


@library_function(static_argnames="equal_nan")
def _all_equal(x: Any, y: Any, equal_nan: bool = False) -> Any:
    same = equal(x, y)
    if equal_nan:
        both = bind(AND, not_equal(x, x), not_equal(y, y))
        same = bind(OR, same, both)
    return everything(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return whether two arrays, or lists, broadcast to equal elements.

    >>> jnp.array_equiv(jnp.array([1, 1]), 1)
    Array(True, dtype=bool)
    """
    x, y = array(a1, copy=False), array(a2, copy=False)
    try:
        x, y = broadcast_together(*promote_dtypes(x, y))
    except errors.ShapeError:
        return array(False)
    return _all_equal(x, y)

"""What is special about floating point: NaN, infinities, signs, exponents, rounding, closeness?

Read before: ``numpy.transcendental``.  Read after: ``numpy.selection``.
Invariant: integers and booleans are answered too, as floats without special values.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of, is_array_like
from saem.core.trace import bind
from saem.numpy.axes import refuse_out
from saem.numpy.logic import everything
from saem.numpy.promote import (
    as_value,
    broadcast_together,
    check_arraylike,
    convert_value,
    dtype_of,
    if_else,
    is_boolean,
    like,
    promote_args,
    promote_args_inexact,
    promote_dtypes_inexact,
    promote_shapes,
    scalar,
)
from saem.ops import arithmetic as ops
from saem.ops import compare, filling, numbers
from saem.ops.compare import Eq, Ne
from saem.ops.convert import bitcast_convert_type, convert_element_type
from saem.ops.linear import literal
from saem.ops.numbers import RoundingMethod
from saem.typing import Array, ArrayLike

EQ, NE = Eq(), Ne()
NEAREST_EVEN = RoundingMethod.TO_NEAREST_EVEN


def everywhere(x: Any, truth: bool) -> Any:
    """Return booleans of the shape of ``x``, all ``truth``."""
    return filling.full(aval_of(x).shape, np.bool_(truth))


# -- what is it ------------------------------------------------------------------------------------


def isnan(x: ArrayLike, /) -> Array:
    """Return where x is not a number.

    >>> jnp.isnan(jnp.array([1., jnp.inf, jnp.nan]))
    Array([False, False,  True], dtype=bool)
    """
    (x,) = promote_args("isnan", x)
    return bind(NE, x, x)


def isfinite(x: ArrayLike, /) -> Array:
    """Return where x is neither infinite nor NaN, in both parts if complex.

    >>> jnp.isfinite(jnp.array([1., jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    (x,) = promote_args("isfinite", x)
    dtype = dtype_of(x)
    if dtypes.is_complex(dtype):
        parts = numbers.real(x), numbers.imag(x)
        return compare.bitwise_and(*[numbers.is_finite(p) for p in parts])
    return numbers.is_finite(x) if dtypes.is_float(dtype) else everywhere(x, True)


def isinf(x: ArrayLike, /) -> Array:
    """Return where x is infinite, in either part if complex.

    >>> jnp.isinf(jnp.array([1., jnp.inf, jnp.nan]))
    Array([False,  True, False], dtype=bool)
    """
    (x,) = promote_args("isinf", x)
    dtype = dtype_of(x)
    if dtypes.is_complex(dtype):
        return compare.bitwise_or(isinf(numbers.real(x)), isinf(numbers.imag(x)))
    if not dtypes.is_float(dtype):
        return everywhere(x, False)
    return bind(EQ, numbers.abs(x), scalar(np.inf, dtype))


def _is_infinity(name: str, x: Any, which: float) -> Any:
    (x,) = promote_args(name, x)
    dtype = dtype_of(x)
    if dtypes.is_complex(dtype):
        raise errors.explained(
            errors.ArgumentError, f"{name}.C1",
            "isposinf/isneginf are not well defined for complex types",
            advice="Test the real and imaginary parts.")
    return bind(EQ, x, scalar(which, dtype)) if dtypes.is_float(dtype) else everywhere(x, False)


def isposinf(x: ArrayLike, /, out: None = None) -> Any:
    """Return where x is plus infinity.  Raises: ArgumentError for complex x.

    >>> jnp.isposinf(jnp.array([1., jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    refuse_out("isposinf", out)
    return _is_infinity("isposinf", x, np.inf)


def isneginf(x: ArrayLike, /, out: None = None) -> Any:
    """Return where x is minus infinity.  Raises: ArgumentError for complex x.

    >>> jnp.isneginf(jnp.array([1., -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    refuse_out("isneginf", out)
    return _is_infinity("isneginf", x, -np.inf)


# -- bits of floats --------------------------------------------------------------------------------


def bits_of(dtype: Any) -> tuple[np.dtype, int, int]:
    """Return of a float dtype: the integer dtype of its width, mantissa bits, exponent bias."""
    info = dtypes.finfo(dtype)
    bias = (1 << (info.bits - 2 - info.nmant)) - 1
    return np.dtype(f"int{info.bits}"), int(info.nmant), bias


def _check_scales(name: str, dtype: Any) -> None:
    """Refuse formats whose powers of two are too few, or which hold no zero.  Raises: DTypeError.
    """
    if dtypes.is_float4(dtype) or dtype.name == "float8_e8m0fnu":
        raise errors.explained(
            errors.DTypeError, f"{name}.narrow", f"{name} does not support dtype {dtype.name}.",
            advice="Convert to float32 first.")


def signbit(x: ArrayLike, /) -> Array:
    """Return where the sign is minus, for -0.0 and NaN too.  Raises: TypeError for complex x.

    >>> jnp.signbit(jnp.array([-0., 2.]))
    Array([ True, False], dtype=bool)
    """
    (x,) = promote_args("signbit", x)
    dtype = dtype_of(x)
    if is_boolean(x) or dtypes.is_unsigned(dtype):
        return everywhere(x, False)
    if dtypes.is_integer(dtype):
        return compare.lt(x, scalar(0, dtype))
    if not dtypes.is_float(dtype):
        raise errors.explained(
            errors.ArgumentError, "signbit.C1",
            f"jax.numpy.signbit is not well defined for {dtype}",
            advice="Test the real or the imaginary part.")
    integer = bits_of(dtype)[0]
    bits = bitcast_convert_type(x, integer)
    shifted = compare.shift_right_arithmetic(bits, literal(8 * integer.itemsize - 1, integer))
    return convert_element_type(shifted, bool)


def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return |x1| with the sign of x2.  Raises: TypeError for complex operands.

    >>> jnp.copysign(jnp.array([1., 2.]), -1.)
    Array([-1., -2.], dtype=float32)
    """
    x1, x2 = promote_args_inexact("copysign", x1, x2)
    if dtypes.is_complex(dtype_of(x1)):
        raise errors.explained(
            errors.DTypeError, "copysign.C1",
            "copysign does not support complex-valued inputs", advice="Use the real parts.")
    size = numbers.abs(x1)
    return if_else(signbit(x2), ops.neg(size), size)


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the float next to x in the direction of y.  Raises: TypeError for complex operands.

    >>> jnp.nextafter(jnp.float32(1), jnp.float32(2)) > 1
    Array(True, dtype=bool)
    """
    x, y = promote_args_inexact("nextafter", x, y)
    if dtypes.is_complex(dtype_of(x)):
        raise errors.explained(
            errors.DTypeError, "nextafter.C1", "nextafter does not accept dtype "
            f"{dtype_of(x).name}: complex numbers have no next one.", advice="Use its parts.")
    return numbers.nextafter(x, y)


def spacing(x: ArrayLike, /) -> Array:
    """Return the distance from x to the next float away from zero, with the sign of x.

    Of float16, as NumPy's, that to the next larger float.

    >>> jnp.spacing(jnp.float32(1)) == jnp.finfo(jnp.float32).eps
    Array(True, dtype=bool)
    """
    check_arraylike("spacing", x)
    (x,) = promote_dtypes_inexact(as_value(x))
    dtype = dtype_of(x)
    if not dtypes.is_float(dtype):
        raise errors.explained(
            errors.ArgumentError, "spacing.C1", "jnp.spacing is not defined for complex inputs.",
            advice="Use the real part.")
    x = convert_value(x, dtype, False)
    smallest = literal(dtypes.finfo(dtype).smallest_subnormal, dtype)
    if dtype == np.float16:
        return ops.sub(numbers.nextafter(x, np.float16(np.inf)), x)
    outwards = copysign(literal(np.inf, dtype), x)
    step = ops.sub(numbers.nextafter(x, outwards), x)
    return if_else(compare.eq(step, like(x, 0)), copysign(smallest, x), step)


def _power_of_two(n: Any, dtype: Any) -> Any:
    """Return 2**n in ``dtype`` for int32 n within the exponents of normal floats."""
    integer, mantissa, bias = bits_of(dtype)
    biased = convert_value(ops.add(n, np.int32(bias)), integer, False)
    return bitcast_convert_type(compare.shift_left(biased, literal(mantissa, integer)), dtype)


def _scale(x: Any, n: Any, pieces: int) -> Any:
    """Return x * 2**n, n an int32, in ``pieces`` multiplications that cannot overflow too soon."""
    dtype = dtype_of(x)
    limit = np.int32(bits_of(dtype)[2] - 1)
    for _ in range(pieces):
        part = numbers.max(numbers.min(n, limit), np.int32(-limit))
        x, n = ops.mul(x, _power_of_two(part, dtype)), ops.sub(n, part)
    return x


def frexp(x: ArrayLike, /) -> tuple[Any, Any]:
    """Return mantissa in 0.5..1 (sign as x) and int32 exponent such that x = m * 2**e.

    Zero, infinities and NaN are their own mantissa, with exponent 0.
    Raises: TypeError for complex x, float4 and float8_e8m0fnu.

    >>> jnp.frexp(jnp.array([8., 0.75]))
    (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
    """
    check_arraylike("frexp", x)
    (x,) = promote_dtypes_inexact(as_value(x))
    dtype = dtype_of(x)
    if not dtypes.is_float(dtype):
        raise errors.explained(
            errors.DTypeError, "frexp.C1", "frexp does not support complex-valued inputs",
            advice="Use the real part.")
    _check_scales("frexp", dtype)
    x = convert_value(x, dtype, False)
    integer, mantissa, bias = bits_of(dtype)
    bits = bitcast_convert_type(numbers.abs(x), integer)
    # The bits of a subnormal number are its value in units of the smallest one.
    tiny = compare.lt(bits, literal(1 << mantissa, integer))
    normal = if_else(tiny, copysign(convert_value(bits, dtype, False), x), x)
    bits = bitcast_convert_type(numbers.abs(normal), integer)
    biased = convert_value(compare.shift_right_logical(bits, literal(mantissa, integer)),
                           np.dtype("int32"), False)
    exponent = ops.sub(biased, np.int32(bias - 1))
    fraction = _scale(normal, ops.neg(exponent), 2)
    exponent = if_else(tiny, ops.sub(exponent, np.int32(bias + mantissa - 1)), exponent)
    special = compare.bitwise_or(compare.bitwise_or(isinf(x), isnan(x)),
                                 compare.eq(normal, like(x, 0)))
    return if_else(special, x, fraction), if_else(special, np.int32(0), exponent)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return x1 * 2**x2 for integers x2.  Raises: ArgumentError for other x2 or complex x1;
    TypeError for float4 and float8_e8m0fnu.

    >>> jnp.ldexp(jnp.array([1., 3.]), 2)
    Array([ 4., 12.], dtype=float32)
    """
    check_arraylike("ldexp", x1, x2)
    x1, x2 = as_value(x1), as_value(x2)
    first, second = dtype_of(x1), dtype_of(x2)
    if dtypes.is_inexact(second) or dtypes.is_complex(first):
        raise errors.explained(
            errors.ArgumentError, "ldexp.C1",
            f"ldexp not supported for input types {(first, second)}",
            advice="The exponent must be of integers, the mantissa real.")
    (x1,) = promote_dtypes_inexact(x1)
    _check_scales("ldexp", dtype_of(x1))
    x1 = convert_value(x1, dtype_of(x1), False)
    bound = np.int32(4 * bits_of(dtype_of(x1))[2])
    x1, n = promote_shapes("ldexp", x1, convert_value(x2, np.dtype("int32"), False))
    n = numbers.max(numbers.min(n, bound), np.int32(-bound))
    return _scale(x1, n, 4)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Any, Any]:
    """Return the fractional and the whole part of x, both with its sign.

    >>> jnp.modf(jnp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    refuse_out("modf", out)
    (x,) = promote_args_inexact("modf", x)
    whole = if_else(compare.ge(x, like(x, 0)), numbers.floor(x), numbers.ceil(x))
    return ops.sub(x, whole), whole


# -- rounding --------------------------------------------------------------------------------------


def _is_whole(x: Any) -> bool:
    return is_boolean(x) or dtypes.is_integer(dtype_of(x))


def floor(x: ArrayLike, /) -> Array:
    """Return the largest integer not above x; integers are themselves.

    >>> jnp.floor(jnp.array([1.8, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """
    (x,) = promote_args("floor", x)
    return x if _is_whole(x) else numbers.floor(x)


def ceil(x: ArrayLike, /) -> Array:
    """Return the smallest integer not below x; integers are themselves.

    >>> jnp.ceil(jnp.array([1.2, -1.2]))
    Array([ 2., -1.], dtype=float32)
    """
    (x,) = promote_args("ceil", x)
    return x if _is_whole(x) else numbers.ceil(x)


def trunc(x: ArrayLike) -> Array:
    """Return x without its fraction; integers are themselves.

    >>> jnp.trunc(jnp.array([1.8, -1.8]))
    Array([ 1., -1.], dtype=float32)
    """
    (x,) = promote_args("trunc", x)
    if _is_whole(x):
        return x
    return if_else(compare.lt(x, like(x, 0)), numbers.ceil(x), numbers.floor(x))


def rint(x: ArrayLike, /) -> Array:
    """Return x rounded to the nearest integer, halves to even, as a float.

    >>> jnp.rint(jnp.array([0.5, 1.5, 1.7]))
    Array([0., 2., 2.], dtype=float32)
    """
    check_arraylike("rint", x)
    x = as_value(x)
    dtype = dtype_of(x)
    if not dtypes.is_inexact(dtype):
        return convert_value(x, dtypes.canonicalize(float), False)
    if dtypes.is_complex(dtype):
        return _by_parts(rint, x)
    (x,) = promote_args("rint", x)
    return numbers.round(x, NEAREST_EVEN)


def _by_parts(fun: Any, x: Any) -> Any:
    return numbers.complex(fun(numbers.real(x)), fun(numbers.imag(x)))


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Return ``a`` rounded to ``decimals`` decimal places, halves to even.

    Raises: NotImplementedError for integers and negative ``decimals``.

    >>> jnp.round(jnp.array([0.5, 1.26]), 1)
    Array([0.5      , 1.3000001], dtype=float32)
    """
    refuse_out("round", out)
    check_arraylike("round", a)
    (x,) = promote_args("round", a)
    decimals = operator.index(decimals)
    dtype = dtype_of(x)
    if dtypes.is_integer(dtype):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return x
    if is_boolean(x):
        raise ValueError("round needs numbers, got booleans: data type bool is not inexact")
    return _by_parts(lambda p: _round(p, decimals), x) if dtypes.is_complex(dtype) \
        else _round(x, decimals)


def _round(x: Any, decimals: int) -> Any:
    if decimals == 0:
        return numbers.round(x, NEAREST_EVEN)
    if np.isinf(scalar(10.0**decimals, dtype_of(x))):  # there are no so many decimals
        return x
    factor = like(x, 10.0**decimals)
    return ops.div(numbers.round(ops.mul(x, factor), NEAREST_EVEN), factor)


# -- replacing and comparing -----------------------------------------------------------------------


def nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0,
               posinf: ArrayLike | None = None, neginf: ArrayLike | None = None) -> Array:
    """Return x with NaN as ``nan`` and infinities as the given, else the largest finite, numbers.

    ``copy`` is accepted and means nothing: arrays are immutable.

    >>> jnp.nan_to_num(jnp.array([1., jnp.nan]))
    Array([1., 0.], dtype=float32)
    """
    check_arraylike("nan_to_num", x)
    x = as_value(x)
    dtype = dtype_of(x)
    if dtypes.is_complex(dtype):
        parts = (numbers.real(x), numbers.imag(x))
        return numbers.complex(*[nan_to_num(p, True, nan, posinf, neginf) for p in parts])
    if not dtypes.is_float(dtype):
        return promote_args("nan_to_num", x)[0]
    x = convert_value(x, dtype, False)
    info = dtypes.finfo(dtype)
    given = [nan, info.max if posinf is None else posinf, info.min if neginf is None else neginf]
    nan, posinf, neginf = [convert_value(as_value(v), dtype, False) for v in given]
    x = if_else(isnan(x), nan, x)
    x = if_else(compare.eq(x, like(x, np.inf)), posinf, x)
    return if_else(compare.eq(x, like(x, -np.inf)), neginf, x)


def isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
            equal_nan: bool = False) -> Array:
    """Return where |a - b| <= atol + rtol * |b|, or both are the same infinity.

    PRNG keys are close where they are equal.

    >>> jnp.isclose(jnp.array([1., 2.]), jnp.array([1. + 1e-7, 3.]))
    Array([ True, False], dtype=bool)
    """
    if all(is_array_like(v) and dtypes.is_extended(dtype_of(v)) for v in (a, b)):
        return compare.eq(*broadcast_together(a, b))
    a, b = promote_args_inexact("isclose", a, b)
    dtype = dtypes.real_dtype(dtype_of(a))
    check_arraylike("isclose", rtol, atol, position=2)
    rtol, atol = [convert_value(as_value(v), dtype, False) for v in (rtol, atol)]
    finite = isfinite(b)
    bound = ops.add(*_ranks(atol, ops.mul(*_ranks(rtol, numbers.abs(b)))))
    near = compare.le(*_ranks(numbers.abs(ops.sub(a, b)), bound))
    out = compare.bitwise_or(compare.eq(a, b), compare.bitwise_and(*_ranks(finite, near)))
    if not equal_nan:
        return out
    return compare.bitwise_or(out, compare.bitwise_and(isnan(a), isnan(b)))


def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
             equal_nan: bool = False) -> Array:
    """Return whether all elements of a and b are close, as ``isclose`` says.

    >>> jnp.allclose(jnp.array([1., 2.]), jnp.array([1., 2. + 1e-7]))
    Array(True, dtype=bool)
    """
    check_arraylike("allclose", a, b)
    return everything(isclose(a, b, rtol, atol, equal_nan))


def _ranks(x: Any, y: Any) -> Any:
    return promote_args("isclose", x, y)


def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return 0 where x1 < 0, 1 where x1 > 0, x2 where x1 == 0; NaN stays.

    Raises: TypeError for complex operands.

    >>> jnp.heaviside(jnp.array([-1., 0., 2.]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    check_arraylike("heaviside", x1, x2)
    x1, x2 = promote_args_inexact("heaviside", x1, x2)
    zero = like(x1, 0)
    at_zero = if_else(isnan(x1), x1, x2)
    return if_else(compare.lt(x1, zero), zero,
                   if_else(compare.gt(x1, zero), like(x1, 1), at_zero))

"""How are exponentials, logarithms, powers of e and angles taken elementwise?

Integers and booleans are converted to floats first; so ``sin(1)`` is a float.

Read before: ``numpy.promote``.  Read after: ``numpy.floating_point``.
Invariant: values agree with NumPy to a few units in the last place
(tests/kernel/numpy/test_maths.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.derivatives.custom_jvp import custom_jvp
from saem.numpy.promote import (
    check_arraylike,
    dtype_of,
    if_else,
    like,
    promote_args_inexact,
    scalar,
    weakly_like,
)
from saem.ops import arithmetic as ops
from saem.ops import compare, maths, numbers
from saem.special import functions as special
from saem.typing import Array, ArrayLike


def of_floats(name: str, op: Callable, does: str, example: str) -> Callable:
    """Return the jax.numpy function ``name``, which applies ``op`` to floats.

    ``example`` is one argument and what comes out, for the docstring.
    """
    argument, result = example.split(" -> ")

    def function(x, /):
        (x,) = promote_args_inexact(name, x)
        return op(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Return {does}, floating or complex even for integers.\n\n"
        f"    >>> jnp.{name}(jnp.array({argument}))\n    Array({result}, dtype=float32)\n    ")
    return function


exp = of_floats("exp", maths.exp, "e**x",
                "[0., 1.] -> [1.       , 2.7182817]")
exp2 = of_floats("exp2", maths.exp2, "2**x",
                 "[0., 3.] -> [1., 8.]")
expm1 = of_floats("expm1", maths.expm1, "e**x - 1, precise near zero",
                  "[0., 1e-6] -> [0.0000000e+00, 1.0000005e-06]")
log = of_floats("log", maths.log, "the natural logarithm of x",
                "[1., jnp.e] -> [0., 1.]")
log1p = of_floats("log1p", maths.log1p, "log(1 + x), precise near zero",
                  "[0., 1e-6] -> [0.000000e+00, 9.999995e-07]")
sqrt = of_floats("sqrt", maths.sqrt, "the square root of x",
                 "[4, 9] -> [2., 3.]")
cbrt = of_floats("cbrt", maths.cbrt, "the cube root of x",
                 "[8., -27.] -> [ 2., -3.]")
sin = of_floats("sin", maths.sin, "the sine of x radians",
                "[0., jnp.pi / 2] -> [0., 1.]")
cos = of_floats("cos", maths.cos, "the cosine of x radians",
                "[0., 1.] -> [1.       , 0.5403023]")
tan = of_floats("tan", maths.tan, "the tangent of x radians",
                "[0., 1.] -> [0.       , 1.5574077]")
arcsin = of_floats("arcsin", maths.asin, "the angle in -pi/2..pi/2 whose sine is x",
                   "[0., 1.] -> [0.       , 1.5707964]")
arccos = of_floats("arccos", maths.acos, "the angle in 0..pi whose cosine is x",
                   "[1., 0.] -> [0.       , 1.5707964]")
arctan = of_floats("arctan", maths.atan, "the angle in -pi/2..pi/2 whose tangent is x",
                   "[0., 1.] -> [0.       , 0.7853981]")
sinh = of_floats("sinh", maths.sinh, "the hyperbolic sine of x",
                 "[0., 1.] -> [0.       , 1.1752012]")
cosh = of_floats("cosh", maths.cosh, "the hyperbolic cosine of x",
                 "[0., 1.] -> [1.       , 1.5430806]")
tanh = of_floats("tanh", maths.tanh, "the hyperbolic tangent of x",
                 "[0., 1.] -> [0.       , 0.7615942]")
arcsinh = of_floats("arcsinh", maths.asinh, "the number whose hyperbolic sine is x",
                    "[0., 1.] -> [0.        , 0.88137364]")
arccosh = of_floats("arccosh", maths.acosh, "the number >= 0 whose hyperbolic cosine is x",
                    "[1., 2.] -> [0.      , 1.316958]")
arctanh = of_floats("arctanh", maths.atanh, "the number whose hyperbolic tangent is x",
                    "[0., 0.5] -> [0.        , 0.54930615]")


def log2(x: ArrayLike, /) -> Array:
    """Return the logarithm of x to base 2.

    >>> jnp.log2(jnp.array([1., 8.]))
    Array([0., 3.], dtype=float32)
    """
    (x,) = promote_args_inexact("log2", x)
    real = dtypes.real_dtype(dtype_of(x))
    scale = np.log(np.asarray(2, real))[()]
    return by_parts(lambda part: ops.div(part, scale), maths.log(x))


def by_parts(function: Callable, x: Any) -> Any:
    """Return ``function`` of ``x``, or of the real and imaginary parts of complex ``x``.

    An infinite part then leaves the other as it is.
    """
    if not dtypes.is_complex(dtype_of(x)):
        return function(x)
    return numbers.complex(function(numbers.real(x)), function(numbers.imag(x)))


def log10(x: ArrayLike, /) -> Array:
    """Return the logarithm of x to base 10.

    >>> jnp.log10(jnp.array([1., 100.]))
    Array([0., 2.], dtype=float32)
    """
    (x,) = promote_args_inexact("log10", x)
    scale = scalar(1 / np.log(10), dtypes.real_dtype(dtype_of(x)))
    return by_parts(lambda part: ops.mul(part, scale), maths.log(x))


def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the angle in -pi..pi of the point (x2, x1).

    >>> jnp.arctan2(jnp.array([1., -1.]), jnp.array([0., -1.]))
    Array([ 1.5707964, -2.3561945], dtype=float32)
    """
    return numbers.atan2(*promote_args_inexact("arctan2", x1, x2))


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return sqrt(x1**2 + x2**2) without overflow.  Raises: TypeError for complex operands.

    >>> jnp.hypot(3., 4.)
    Array(5., dtype=float32, weak_type=True)
    """
    x1, x2 = promote_args_inexact("hypot", x1, x2)
    if dtypes.is_complex(dtype_of(x1)):
        raise errors.explained(
            errors.ArgumentError, "hypot.C1",
            "jnp.hypot is not well defined for complex-valued inputs. Please convert to real "
            "values first, such as by using abs(x)")
    x1, x2 = numbers.abs(x1), numbers.abs(x2)
    infinite = compare.bitwise_or(*[compare.eq(x, like(x, np.inf)) for x in (x1, x2)])
    large, small = numbers.max(x1, x2), numbers.min(x1, x2)
    vanishes, one = compare.eq(large, like(large, 0)), like(large, 1)
    ratio = ops.div(small, if_else(vanishes, one, large))
    out = ops.mul(large, maths.sqrt(ops.add(one, maths.square(ratio))))
    out = if_else(vanishes, large, out)
    return if_else(infinite, like(out, np.inf), out)


def sinc(x: ArrayLike, /) -> Array:
    """Return sin(pi x) / (pi x), 1 at zero.

    At zero a polynomial stands for it, so that derivatives there are right up to the eighth.

    >>> jnp.sinc(jnp.array([0., 0.5]))
    Array([1.        , 0.63661975], dtype=float32)
    """
    (x,) = promote_args_inexact("sinc", x)
    vanishes = compare.eq(x, like(x, 0))
    angle = ops.mul(like(x, np.pi), x)
    safe = if_else(vanishes, like(x, 1), angle)
    near, squared = like(x, 1 / 362880), maths.square(angle)
    for coefficient in (-1 / 5040, 1 / 120, -1 / 6, 1.0):
        near = ops.add(ops.mul(squared, near), like(x, coefficient))
    return if_else(vanishes, near, ops.div(maths.sin(safe), safe))


def _log_of_sum(x1: Any, x2: Any, power: Callable, scale: float) -> Any:
    """Return the logarithm of power(x1) + power(x2); ``scale`` makes log1p one of that base."""
    if dtypes.is_complex(dtype_of(x1)):
        return _complex_log_of_sum(x1, x2, power, scale)
    larger, difference = numbers.max(x1, x2), ops.sub(x1, x2)
    # Equal infinities, or a NaN: their sum is the answer.
    unordered = compare.ne(difference, difference)
    rest = maths.log1p(power(ops.neg(numbers.abs(difference))))
    if scale != 1:
        rest = ops.mul(like(rest, scale), rest)
    return if_else(unordered, ops.add(x1, x2), ops.add(larger, rest))


def _complex_log_of_sum(x1: Any, x2: Any, power: Callable, scale: float) -> Any:
    """Return the same of complex numbers, with its imaginary part brought into one period."""
    larger = numbers.max(x1, x2)
    difference = ops.sub(ops.add(x1, x2), ops.mul(larger, like(larger, 2)))
    rest = maths.log1p(power(difference))
    out = ops.add(larger, rest if scale == 1 else ops.mul(rest, like(rest, scale)))
    real, imag = numbers.real(out), numbers.imag(out)
    half, full = like(imag, np.pi * scale), like(imag, 2 * np.pi * scale)
    turned = numbers.rem(ops.add(imag, half), full)
    turned = if_else(compare.lt(turned, like(turned, 0)), ops.add(turned, full), turned)
    return numbers.complex(real, ops.sub(turned, half))


def _slope_of_log_of_sum(fun: Callable, power: Callable, primals: Any, tangents: Any) -> Any:
    """Return ``fun(*primals)`` and its tangent: each tangent counts by its part of the sum."""
    out = fun(*primals)

    def exponent(x: Any) -> Any:
        return if_else(compare.eq(x, weakly_like(x, np.inf)), weakly_like(x, 0), x)

    parts = [ops.mul(t, power(ops.sub(exponent(x), exponent(out))))
             for x, t in zip(primals, tangents)]
    return out, ops.add(*parts)


@custom_jvp
def _log_of_exp_sum(x1: Any, x2: Any) -> Any:
    return _log_of_sum(x1, x2, maths.exp, 1)


@custom_jvp
def _log2_of_exp2_sum(x1: Any, x2: Any) -> Any:
    return _log_of_sum(x1, x2, maths.exp2, float(1 / np.log(2)))


_log_of_exp_sum.defjvp(functools.partial(_slope_of_log_of_sum, _log_of_exp_sum, maths.exp))
_log2_of_exp2_sum.defjvp(functools.partial(_slope_of_log_of_sum, _log2_of_exp2_sum, maths.exp2))


def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return log(exp(x1) + exp(x2)) without overflow.

    >>> jnp.logaddexp(0., 0.)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    return _log_of_exp_sum(*promote_args_inexact("logaddexp", x1, x2))


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return log2(2**x1 + 2**x2) without overflow.

    >>> jnp.logaddexp2(3., 3.)
    Array(4., dtype=float32, weak_type=True)
    """
    return _log2_of_exp2_sum(*promote_args_inexact("logaddexp2", x1, x2))


def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function of the first kind, of order 0.

    Raises: ArgumentError for complex x.

    >>> jnp.i0(jnp.array([0., 1.]))
    Array([1.0000001, 1.266066 ], dtype=float32)
    """
    check_arraylike("i0", x)
    (x,) = promote_args_inexact("i0", x)
    if dtypes.is_complex(dtype_of(x)):
        raise errors.explained(
            errors.ArgumentError, "i0.C1",
            f"Unsupported input type to jax.numpy.i0: {dtype_of(x).name}",
            advice="Take the real part first.")
    return _i0(x)


@custom_jvp
def _i0(x: Any) -> Any:
    size = numbers.abs(x)
    return ops.mul(maths.exp(size), special.bessel_i0e(size))


@_i0.defjvp
def _slope_of_i0(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    slope = ops.mul(maths.exp(numbers.abs(x)), special.bessel_i1e(x))
    return _i0(x), ops.mul(t, slope)

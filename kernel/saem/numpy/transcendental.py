"""How are exponentials, logarithms, powers of e and angles taken elementwise?

Integers and booleans are converted to floats first; so ``sin(1)`` is a float.

Read before: ``numpy.promote``.  Read after: ``numpy.floating_point``.
Invariant: values agree with NumPy to a few units in the last place
(tests/kernel/numpy/test_elementwise.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.numpy.promote import (
    dtype_of,
    if_else,
    like,
    promote_args_inexact,
    scalar,
)
from saem.ops import arithmetic as ops
from saem.ops import compare, maths, numbers
from saem.ops.linear import literal
from saem.typing import Array, ArrayLike


def of_floats(name: str, op: Callable, does: str, example: str) -> Callable:
    """Return the jax.numpy function ``name``, which applies ``op`` to floats.

    ``example`` is one argument and what comes out, for the docstring.
    """
    argument, result = example.split(" -> ")

    def function(x: ArrayLike, /) -> Array:
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
    scale = literal(np.log(np.asarray(2, real)), real)
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

"""Which elementwise functions bring a derivative of their own?

Logarithms of sums, whose derivative by the rules would be inf - inf for infinite operands, and
Bessel's function, which is a series.

Read before: ``numpy.transcendental``, ``derivatives.custom_jvp``.
Invariant: values agree with NumPy to a few units in the last place
(tests/kernel/numpy/test_elementwise.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.derivatives.custom_jvp import custom_jvp
from saem.jit.library import library_function
from saem.numpy.promote import (
    check_arraylike,
    dtype_of,
    if_else,
    like,
    promote_args_inexact,
    weakly_like,
)
from saem.numpy.ufuncs import give_methods, with_out_and_where
from saem.ops import arithmetic as ops
from saem.ops import compare, maths, numbers
from saem.special import functions as special
from saem.typing import Array, ArrayLike


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


@library_function(whole=True)
@with_out_and_where
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return log(exp(x1) + exp(x2)) without overflow.

    >>> jnp.logaddexp(0., 0.)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    return _log_of_exp_sum(*promote_args_inexact("logaddexp", x1, x2))


@library_function(whole=True)
@with_out_and_where
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return log2(2**x1 + 2**x2) without overflow.

    >>> jnp.logaddexp2(3., 3.)
    Array(4., dtype=float32, weak_type=True)
    """
    return _log2_of_exp2_sum(*promote_args_inexact("logaddexp2", x1, x2))


for _function in (logaddexp, logaddexp2):
    give_methods(_function, 2, -math.inf)


@library_function(whole=True)
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

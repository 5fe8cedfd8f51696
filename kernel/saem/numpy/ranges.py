"""How are numbers spread evenly over an interval?

Evenly (``linspace``), by equal ratios between powers (``logspace``) or between ends
(``geomspace``).

Read before: ``numpy.creation``.  Read after: nothing.
Invariant: with ``endpoint`` the last number is ``stop`` itself, not a rounded sum.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from saem.core import dtypes, errors, promotion
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.numpy import arithmetic, transcendental
from saem.numpy.axes import known_number, numbers_may_be_arrays
from saem.numpy.creation import check_dtype, placed
from saem.numpy.floating_point import floor
from saem.numpy.promote import (
    as_value,
    broadcast_shapes,
    broadcast_to,
    check_arraylike,
    convert_value,
    like,
)
from saem.ops import arithmetic as ops
from saem.ops import filling, numbers
from saem.ops import shape as shaping
from saem.ops.linear import moveaxis
from saem.typing import DTypeLike


def _types(name: str, dtype: Any, *values: Any) -> tuple[Any, Any]:
    """Return the dtype of the result and the one to compute in."""
    if dtype is not None:
        requested = check_dtype(name, dtype)
        return requested, dtypes.to_inexact(requested)
    found = dtypes.to_inexact(promotion.result_type(*[as_value(v) for v in values]))
    return found, found


def _checked_count(num: Any) -> int:
    num = known_number(num, "num")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    return num


_STATIC = ("num", "endpoint", "retstep", "dtype", "axis")


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: DTypeLike | None = None, axis: int = 0, *, device: Any = None) -> Any:
    """Return ``num`` numbers from ``start`` to ``stop``, with the step between them if ``retstep``.

    Shapes: start and stop broadcast; the numbers run along a new axis ``axis``.
    Raises: ValueError for a negative ``num``.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    if type(num) is not int:
        num = known_number(num, "num")
    out = _linspace(start, stop, num=num, endpoint=endpoint, retstep=retstep, dtype=dtype,
                    axis=axis)
    if device is None:
        return out
    return (placed(out[0], device), out[1]) if retstep else placed(out, device)


@numbers_may_be_arrays
@library_function(static_argnames=_STATIC)
def _linspace(start: Any, stop: Any, *, num: int, endpoint: bool, retstep: bool, dtype: Any,
              axis: int) -> Any:
    num = _checked_count(num)
    check_arraylike("linspace", start, stop)
    out_dtype, dtype = _types("linspace", dtype, start, stop)
    out, step = _evenly(start, stop, num, endpoint, dtype)
    out = _settled(out, out_dtype, operator.index(axis))
    return (out, step) if retstep else out


def _evenly(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any) -> tuple[Any, Any]:
    """Return the numbers along axis 0, and the step (NaN where there is none), in ``dtype``."""
    start, stop = [convert_value(as_value(v), dtype, False) for v in (start, stop)]
    shape = broadcast_shapes(aval_of(start).shape, aval_of(stop).shape)
    start, stop = broadcast_to(start, shape), broadcast_to(stop, shape)
    gaps = num - 1 if endpoint else num
    if num > 1:
        step = ops.div(ops.sub(stop, start), like(start, gaps))
        real = dtypes.real_dtype(dtype)
        part = filling.iota(real, gaps)
        part = ops.div(part, like(part, gaps))
        part = convert_value(part, dtype, False)
        part = shaping.reshape(part, (gaps, *(1,) * len(shape)))
        low, high = [shaping.reshape(v, (1, *shape)) for v in (start, stop)]
        rest = ops.sub(like(part, 1), part)
        out = ops.add(ops.mul(low, rest), ops.mul(high, part))
        if endpoint:
            out = shaping.concatenate([out, high], 0)
    else:
        step = like(start, np.nan) if endpoint else ops.sub(stop, start)
        step = broadcast_to(step, shape)
        out = broadcast_to(start, (num, *shape))
    return out, step


def _along(out: Any, axis: int) -> Any:
    """Return ``out`` with its axis 0 at ``axis``.  Raises: AxisError if there is no such axis."""
    if not -aval_of(out).ndim <= axis < aval_of(out).ndim:
        raise errors.explained(
            errors.AxisError, "linspace.axis",
            f"axis {axis} is out of bounds for array of dimension {aval_of(out).ndim}",
            advice="The numbers run along a new axis of the result.")
    return moveaxis(out, 0, axis) if axis else out


def _settled(out: Any, out_dtype: Any, axis: int) -> Any:
    """Return ``out`` with its axis 0 at ``axis`` and in ``out_dtype``, rounded down if integer."""
    out = _along(out, axis)
    if dtypes.is_integer(out_dtype) and not dtypes.is_integer(aval_of(out).dtype):
        out = floor(numbers.real(out) if dtypes.is_complex(aval_of(out).dtype) else out)
    return convert_value(out, out_dtype, False)


@numbers_may_be_arrays
@library_function(static_argnames=("num", "endpoint", "dtype", "axis"), whole=True)
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: DTypeLike | None = None, axis: int = 0) -> Any:
    """Return ``base`` to the powers ``linspace(start, stop, num)``.

    Raises: ValueError for a negative ``num``.

    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    num = _checked_count(num)
    check_arraylike("logspace", start, stop, base)
    out_dtype, dtype = _types("logspace", dtype, start, stop)
    powers, _ = _evenly(start, stop, num, endpoint, dtype)
    base = as_value(base)
    if not dtypes.is_complex(aval_of(base).dtype):  # of a complex power the real part stays
        base = convert_value(base, dtype, False)
    return _truncated(arithmetic.power(base, powers), out_dtype, operator.index(axis))


def _truncated(out: Any, out_dtype: Any, axis: int) -> Any:
    """Return ``out`` with its axis 0 at ``axis`` and in ``out_dtype``, cut off if integer."""
    out = _along(out, axis)
    return convert_value(out, out_dtype, False)


@numbers_may_be_arrays
@library_function(static_argnames=("num", "endpoint", "dtype", "axis"), whole=True)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True,
              dtype: DTypeLike | None = None, axis: int = 0) -> Any:
    """Return ``num`` numbers from ``start`` to ``stop``, each the same multiple of the last.

    Raises: ValueError for a negative ``num``.

    >>> jnp.geomspace(1, 100, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    num = _checked_count(num)
    check_arraylike("geomspace", start, stop)
    out_dtype, dtype = _types("geomspace", dtype, start, stop)
    start, stop = [convert_value(as_value(v), dtype, False) for v in (start, stop)]
    sign = numbers.sign(start)
    low = transcendental.log10(ops.div(start, sign))
    high = transcendental.log10(arithmetic.divide(stop, sign))
    powers, _ = _evenly(low, high, num, endpoint, dtype)
    out = arithmetic.multiply(sign, arithmetic.power(like(powers, 10), powers))
    return _truncated(out, out_dtype, operator.index(axis))

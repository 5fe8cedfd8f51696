"""What can one operation do wrong by itself?

It can make a NaN of operands that have none, divide by zero, or read outside an array.  Which of
these an operation can do, it says itself (``passes_nan``, ``divisor``, ``window``); how it is
detected stands here.

Read before: ``experimental.checkify.checks``.  Read after: ``experimental.checkify.transform``.
Invariant: the results are those of the operation alone (tests/kernel/test_checkify.py).
Source: the documentation of jax.experimental.checkify.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes
from saem.core.avals import aval_of
from saem.core.primitive import Primitive
from saem.core.refs import is_ref
from saem.core.trace import bind_list, state
from saem.experimental.checkify.checks import (
    CODE,
    DivisionByZeroError,
    Error,
    JaxException,
    Kind,
    NaNError,
    OOBError,
    Site,
    Slot,
    init_error,
)
from saem.ops.compare import bitwise_or, eq, gt, lt, ne
from saem.ops.convert import convert_element_type
from saem.ops.dynamic_slicing import dynamic_index_in_dim
from saem.ops.linear import broadcast_in_dim, literal, number_like
from saem.ops.numbers import rem
from saem.ops.reduce import argmax, reduce_or
from saem.ops.shape import concatenate, reshape

ErrorCategory = type[JaxException]
Categories = frozenset[ErrorCategory]


def run_one(prim: Primitive, values: Sequence[Any], wanted: Categories
            ) -> tuple[Error, list[Any]]:
    """Apply a plain operation, looking for what it does wrong."""
    found = init_error
    if DivisionByZeroError in wanted and prim.divisor is not None:
        y = values[prim.divisor]
        found = failure(DivisionByZeroError, somewhere(eq(y, number_like(y, 0))))
    if OOBError in wanted and prim.window is not None:
        found = found.then(outside(prim, values))
    outs = bind_list(prim, values)
    if NaNError in wanted and not prim.passes_nan:
        found = found.then(nan_among(prim, outs))
    return found, outs


def failure(error: ErrorCategory, pred: Any, about: Any = None, payload: Sequence[Any] = ()
            ) -> Error:
    """Return the error of one site that fails where ``pred`` is true."""
    kind = Kind(error, tuple(aval_of(x).strip_weak_type() for x in payload))
    return Error({kind: Slot(pred, np.int32(0), tuple(payload))},
                 (Site(error, about, state.source, False),))


def somewhere(flags: Any) -> Any:
    """Return whether any of ``flags`` is set."""
    axes = tuple(range(len(aval_of(flags).shape)))
    return reduce_or(flags, axes) if axes else flags


def nan_among(prim: Primitive, outs: Sequence[Any]) -> Error:
    """Return the error of a NaN in the results of ``prim``."""
    flags = [somewhere(ne(x, x)) for x in outs if can_be_nan(aval_of(x))]
    if not flags:
        return init_error
    pred = flags[0]
    for flag in flags[1:]:
        pred = bitwise_or(pred, flag)
    return failure(NaNError, pred, prim.name)


def can_be_nan(aval: Any) -> bool:
    """Return whether values of ``aval`` are arrays of floats (neither keys nor references)."""
    return isinstance(aval.dtype, np.dtype) and dtypes.is_inexact(aval.dtype) and not is_ref(aval)


def as_code(x: Any) -> Any:
    """Return an integer as one of 32 bits."""
    return x if aval_of(x).dtype == CODE else convert_element_type(x, CODE)


def outside(prim: Primitive, values: Sequence[Any]) -> Error:
    """Return the error of a window that does not lie in the array.

    Its payload is the first such start, the axis it is about, and the size of that axis.
    """
    starts, axes, sizes = prim.window(values)
    shape, counts = aval_of(values[0]).shape, aval_of(starts).shape
    if 0 in counts:
        return init_error
    if np.iinfo(aval_of(starts).dtype).bits < 32:  # the size of an axis may not fit
        starts = as_code(starts)
    number, width = math.prod(counts), counts[-1]
    flat = reshape(starts, (number // width, width))
    room = [shape[axis] - sizes[axis] for axis in axes]
    bad = bitwise_or(lt(flat, number_like(flat, 0)), gt(flat, numbers_in(room, flat)))
    first = argmax(reshape(bad, (number,)), 0, CODE)
    component = rem(first, np.int32(width))
    index = as_code(element(reshape(flat, (number,)), first))
    payload = concatenate([broadcast_in_dim(x, (1,), ()) for x in (
        index, one_of(axes, component), one_of([shape[axis] for axis in axes], component))], 0)
    return failure(OOBError, somewhere(bad), shape, [payload])


def numbers_in(numbers: Sequence[int], like: Any) -> Any:
    """Return ``numbers`` as a row of the type of ``like``, stretched to its rows."""
    dtype = aval_of(like).dtype
    most = np.iinfo(dtype).max
    row = [broadcast_in_dim(literal(min(n, most), dtype), (1, 1), ()) for n in numbers]
    return broadcast_in_dim(concatenate(row, 1), aval_of(like).shape, (0, 1))


def one_of(numbers: Sequence[int], place: Any) -> Any:
    """Return the one of ``numbers`` at ``place``; only scalars are written into the program."""
    scalars = [np.int32(n) for n in numbers]
    if len(set(scalars)) == 1:
        return scalars[0]
    return element(concatenate([broadcast_in_dim(n, (1,), ()) for n in scalars], 0), place)


def element(vector: Any, place: Any) -> Any:
    """Return the element of ``vector`` at ``place``, which lies in it."""
    return dynamic_index_in_dim(vector, place, 0, keepdims=False, allow_negative_indices=False)

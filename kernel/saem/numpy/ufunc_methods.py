"""What can be done with a binary function besides calling it?

``jnp.add.reduce`` folds an axis, ``accumulate`` keeps every step, ``at`` updates places,
``outer`` pairs all with all, ``reduceat`` folds slices.  Where NumPy's function has a reduction of
its own (add: sum) that runs; else a scan calls the function.  ``frompyfunc`` gives the same methods
to any function of numbers.

Read before: ``numpy.reductions``, ``loops.scan``.
Invariant: folds go from left to right, so functions need not be associative
(tests/kernel/numpy/test_ufuncs.py).
Source: the NumPy reference of numpy.ufunc.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of, represented_aval
from saem.core.sharded import without_axis
from saem.loops.scan import scan
from saem.numpy import cumulative, reductions
from saem.numpy.axes import array_argument, canonical_axes, keep_axes
from saem.numpy.creation import asarray
from saem.numpy.filling import zeros_like
from saem.numpy.functional import vectorize
from saem.numpy.indexing import getitem, scatter_update
from saem.numpy.promote import (
    broadcast_to,
    check_arraylike,
    convert_value,
    if_else,
)
from saem.numpy.take_and_put import take
from saem.numpy.ufuncs import refuse_ufunc_arguments
from saem.ops import compare, filling, shape
from saem.ops.linear import moveaxis, permute
from saem.ops.reduce import reduce_and, reduce_or, reduce_xor
from saem.ops.reshard import reshard_like
from saem.ops.shape import canonical_axis

REDUCTIONS: dict[str, Callable] = {
    "add": reductions.sum, "multiply": reductions.prod, "maximum": reductions.max,
    "minimum": reductions.min, "logical_and": reductions.all, "logical_or": reductions.any}
BITWISE = {"bitwise_and": reduce_and, "bitwise_or": reduce_or, "bitwise_xor": reduce_xor}
LOGARITHMS = ("logaddexp", "logaddexp2")
SCATTERED = ("add", "subtract", "multiply")  # updates by these are one operation
ACCUMULATIONS = {"add": cumulative.cumsum, "multiply": cumulative.cumprod}


def refuse(function: Any, method: str, out: Any) -> None:
    """Refuse a method of a value that is not a binary function of one result, and ``out``.

    Raises: ValueError; NotImplementedError.
    """
    if function.nin != 2 or function.nout != 1:
        raise errors.explained(
            errors.ArgumentError, f"ufunc.{method}", f"{method} only supported for binary ufuncs",
            advice="It needs a function of two arguments and one result.")
    if out is not None:
        raise errors.explained(
            NotImplementedError, "ufunc.out", f"out argument of {function.__name__}.{method}()",
            advice="Arrays are immutable: use the result.")


def _empty(name: str) -> NoReturn:
    raise errors.explained(
        errors.ArgumentError, "ufunc.empty",
        f"zero-size array to reduction operation {name} which has no identity",
        advice="Give an initial value: initial=...")


# -- reduce ----------------------------------------------------------------------------------------


def reduce(function: Any, a: Any, axis: Any = 0, dtype: Any = None, out: None = None,
           keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    """Return the fold of ``axis`` by ``function``, from ``initial`` or the first element.

    Raises: ValueError if there is nothing to fold and no identity, or for a mask without one.
    """
    refuse(function, "reduce", out)
    name = function.__name__
    check_arraylike(f"{name}.reduce", a)
    if initial is not None and aval_of(initial).shape:
        raise errors.explained(errors.ArgumentError, "ufunc.initial",
                               f"initial must be a scalar, got shape {aval_of(initial).shape}",
                               advice="One value is what the fold of every line starts from.")
    if where is not None and function.identity is None and initial is None:
        raise errors.explained(
            errors.ArgumentError, "ufunc.where",
            f"reduction operation {name!r} does not have an identity, so to use a where mask one "
            "has to specify 'initial'.", advice="Give what the fold starts from.")
    if isinstance(axis, list):
        raise errors.explained(
            errors.ArgumentError, "ufunc.axis", f"axis must be an integer or a tuple, got {axis}.",
            advice="Write tuple(axis).")
    if axis is not None:
        for one in axis if isinstance(axis, tuple) else (axis,):
            canonical_axis(one, represented_aval(a).ndim)
    special = REDUCTIONS.get(name)
    if special is not None and getattr(function, "special", False):
        if special in (reductions.all, reductions.any):
            truth = special(a, axis, keepdims=keepdims, where=where)
            if initial is not None:
                truth = function(truth, convert_value(initial, truth.dtype, False))
            return truth if dtype is None else convert_value(truth, _whole(name, dtype), False)
        extra = {"initial": initial}
        if dtype is not None:
            a = convert_value(array_argument(name, a), reductions.requested_dtype(name, dtype),
                              False)
        return special(a, axis, keepdims=keepdims, where=where, **extra)
    return _folded(function, array_argument(name, a), axis, dtype, keepdims, initial, where)


def _whole(name: str, dtype: Any) -> Any:
    """Return a ``dtype`` that holds truth or bits.  Raises: TypeError for others."""
    wanted = reductions.requested_dtype(name, dtype)
    if not (dtypes.is_integer(wanted) or dtypes.is_bool(wanted)):
        raise errors.explained(
            errors.DTypeError, f"{name}.reduce",
            f"{name} does not accept dtype {wanted.name} at position 0. Accepted dtypes at "
            "position 0 are subtypes of integer, bool.", advice="Pass bool or an integer type.")
    return wanted


def _folded(function: Any, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
            ) -> Any:
    name, sizes = function.__name__, a.shape
    own = getattr(function, "special", False)
    if isinstance(axis, tuple) and not (own and name in (*BITWISE, *LOGARITHMS, "logical_xor")):
        raise NotImplementedError("tuple of axes")
    if own and name in BITWISE and not (dtypes.is_integer(a.dtype) or dtypes.is_bool(a.dtype)):
        raise errors.explained(
            errors.ArgumentError, f"{name}.reduce",
            f"integer argument required; got dtype={a.dtype.name}",
            advice="Convert it: a.astype(int).")
    if where is not None:
        where = broadcast_to(array_argument(name, where), sizes)
    axes = canonical_axes(axis, a.ndim)
    if dtype is None or (own and name in LOGARITHMS):
        wanted = function_dtype(function, a, a)
    else:
        wanted = reductions.requested_dtype(name, dtype)
    a = convert_value(convert_value(a, function_dtype(function, a, a), False), wanted, False)
    a, where = (x if x is None else _front(x, axes) for x in (a, where))
    if own and name in BITWISE and where is initial is None:
        out = BITWISE[name](a, (0,))
    else:
        out = _scanned(function, a, wanted, initial, where)
    return keep_axes(out, sizes, axes) if keepdims else out


def _front(x: Any, axes: tuple[int, ...]) -> Any:
    """Return ``x`` with ``axes`` made one, in front."""
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    moved = permute(x, (*axes, *rest))
    return shape.reshape(moved, (math.prod([x.shape[i] for i in axes]),
                                 *(x.shape[i] for i in rest)))


def _scanned(function: Any, rows: Any, dtype: Any, initial: Any, where: Any) -> Any:
    """Return the fold of ``rows`` by a loop."""
    if initial is None:
        initial = function.identity
    if initial is None:
        if not rows.shape[0]:
            _empty(function.__name__)
        start, rows = getitem(rows, 0), getitem(rows, slice(1, None))
    else:
        start = broadcast_to(convert_value(initial, dtype, False), rows.shape[1:])
        start = reshard_like(start, without_axis(aval_of(rows), 0))

    def step(total: Any, row: Any) -> Any:
        row, mask = row
        new = convert_value(function(total, row), dtype, False)
        return (new if mask is None else if_else(mask, new, total)), None

    return scan(step, start, (rows, where))[0]


# -- accumulate ------------------------------------------------------------------------------------


def accumulate(function: Any, a: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Any:
    """Return every step of the fold of ``axis`` by ``function``.

    Raises: ValueError for an axis that does not exist, or None where a loop folds.
    """
    refuse(function, "accumulate", out)
    name = function.__name__
    check_arraylike(f"{name}.accumulate", a)
    if name in ACCUMULATIONS and getattr(function, "special", False):
        if type(a) in dtypes.PYTHON_NUMBERS:
            a = shape.reshape(array_argument(name, a), (1,))
        if axis is not None and not isinstance(axis, tuple):
            canonical_axis(axis, represented_aval(a).ndim)
        return ACCUMULATIONS[name](array_argument(name, a), axis, dtype)
    if axis is None or isinstance(axis, tuple):
        raise errors.explained(errors.ArgumentError, "ufunc.axes",
                               "accumulate does not allow multiple axes",
                               advice="Ravel the array first.")
    a = array_argument(name, a)
    axis = canonical_axis(axis, a.ndim)
    wanted = function_dtype(function, a, a) if dtype is None else \
        reductions.requested_dtype(name, dtype)
    rows = moveaxis(convert_value(a, wanted, False), axis, 0)
    if not rows.shape[0]:
        return convert_value(a, wanted, False)
    first = convert_value(getitem(rows, 0), wanted, False)

    def step(total: Any, row: Any) -> Any:
        new = convert_value(function(total, row), wanted, False)
        return new, new

    _, steps = scan(step, first, getitem(rows, slice(1, None)))
    return moveaxis(shape.concatenate([shape.expand_dims(first, (0,)), steps], 0), 0, axis)


def function_dtype(function: Any, *arrays: Any) -> Any:
    """Return the dtype of ``function`` of an element of each of ``arrays``."""
    return aval_of(function(*[zeros_like(x, shape=()) for x in arrays])).dtype


# -- at, outer, reduceat ---------------------------------------------------------------------------


def at(function: Any, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
    """Return ``a`` updated at ``indices``, one after another, by ``function`` of itself and ``b``.

    The result has the dtype of what ``function`` returns; that of ``a`` where a scatter does it.
    Raises: NotImplementedError unless ``inplace`` is False; TypeError if ``b`` does not fit.
    """
    if inplace:
        raise errors.explained(
            NotImplementedError, "ufunc.inplace",
            "Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace like "
            "np.ufunc.at().", advice="x = jnp.add.at(x, indices, values, inplace=False)")
    name = function.__name__
    a = array_argument(f"{name}.at", a)
    if (b is None) != (function.nin == 1):
        raise TypeError(f"{name}.at() takes {function.nin} operands of {name}")
    if name in SCATTERED and getattr(function, "special", False):
        return scatter_update(a, indices, b, name)
    pair = (a,) if b is None else (a, asarray(b))
    dtype = function_dtype(function, *pair)
    a, size = convert_value(a, dtype, False), math.prod(a.shape)
    places = shape.reshape(filling.iota(np.dtype("int32"), size), a.shape)
    places = getitem(places, indices, mode="fill")  # what is out of bounds is not written
    flat, count = shape.reshape(a, (size,)), math.prod(places.shape)
    if b is not None:
        b = shape.reshape(broadcast_to(pair[1], places.shape), (count,))

    def step(flat: Any, pair: Any) -> Any:
        place, value = pair
        new = function(getitem(flat, place), *(() if value is None else (value,)))
        return scatter_update(flat, place, convert_value(new, dtype, False), "set"), None

    flat, _ = scan(step, flat, (shape.reshape(places, (count,)), b))
    return shape.reshape(flat, a.shape)


def outer(function: Any, A: Any, B: Any, /) -> Any:
    """Return ``function`` of every element of A with every element of B.

    Shapes: [*A *B].
    """
    if function.nin != 2:
        refuse(function, "outer", None)
    check_arraylike(f"{function.__name__}.outer", A, B)
    rest, lead = (1,) * aval_of(B).ndim, (1,) * aval_of(A).ndim
    return function(shape.reshape(array_argument("outer", A), (*aval_of(A).shape, *rest)),
                    shape.reshape(array_argument("outer", B), (*lead, *aval_of(B).shape)))


def reduceat(function: Any, a: Any, indices: Any, axis: int = 0, dtype: Any = None,
             out: None = None) -> Any:
    """Return the folds of ``a[i:j]`` for neighbours i, j of ``indices``; a[i] unless i < j.

    Raises: ValueError if the indices are not a vector of integers, or ``axis`` is None.
    """
    refuse(function, "reduceat", out)
    name = function.__name__
    check_arraylike(f"{name}.reduceat", a, indices)
    if axis is None:
        raise ValueError("reduceat requires a single integer axis, got None.")
    a, indices = array_argument(name, a), array_argument(name, indices)
    if dtypes.is_inexact(indices.dtype):
        raise ValueError(f"reduceat: indices must have an integer dtype, got {indices.dtype}.")
    if indices.ndim != 1:
        raise errors.explained(
            errors.ArgumentError, "reduceat.C1",
            f"reduceat: indices must be one-dimensional, got indices.shape={indices.shape}",
            advice="They are where slices begin.")
    axis = canonical_axis(axis, a.ndim)
    rows = moveaxis(a, axis, 0)
    end = filling.full((1,), rows.shape[0], indices.dtype)
    stops = shape.concatenate([getitem(indices, slice(1, None)), end], 0)
    inside = (len(rows.shape) - 1) * (1,)

    def step(total: Any, pair: Any) -> Any:
        place, row = pair
        reached = compare.bitwise_and(compare.lt(indices, place), compare.lt(place, stops))
        row = broadcast_to(shape.expand_dims(row, (0,)), total.shape)
        new = convert_value(function(total, row), a.dtype, False)
        return if_else(shape.reshape(reached, (*reached.shape, *inside)), new, total), None

    places = filling.iota(indices.dtype, rows.shape[0])
    folds, _ = scan(step, take(rows, indices, 0), (places, rows))
    return moveaxis(folds, 0, axis)


# -- functions of one's own ------------------------------------------------------------------------


class _LooksLike(type):
    """``jnp.add`` is compiled code with these methods, and an instance all the same."""

    def __instancecheck__(cls, x: Any) -> bool:
        return hasattr(x, "reduceat") and hasattr(x, "nin")


class ufunc(metaclass=_LooksLike):
    """A function of numbers, applied to the elements of arrays that broadcast.

    >>> jnp.add.reduce(jnp.array([1, 2, 3]))
    Array(6, dtype=int32)
    """

    def __init__(self, func: Callable, /, nin: int, nout: int, *, name: str | None = None,
                 nargs: int | None = None, identity: Any = None):
        self.__name__ = name or func.__name__
        self.__doc__ = func.__doc__
        self.nin, self.nout, self.nargs = nin, nout, nargs or nin
        self.identity = identity
        self._of = (func, nin, nout, self.__name__)
        self._function = vectorize(func)

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            refuse_ufunc_arguments(repr(self), out)
        return self._function(*args)

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def __hash__(self) -> int:
        return hash((self._of, self.identity))

    def __eq__(self, other: object) -> bool:
        return type(other) is ufunc and (self._of, self.identity) == (other._of, other.identity)

    reduce = reduce
    accumulate = accumulate
    at = at
    outer = outer
    reduceat = reduceat


def frompyfunc(func: Callable, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Return ``func``, of ``nin`` numbers with ``nout`` results, as a function of arrays.

    >>> jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1)(jnp.arange(3), 1)
    Array([2, 3, 4], dtype=int32)
    """
    return ufunc(func, operator.index(nin), operator.index(nout), identity=identity)

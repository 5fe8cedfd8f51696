"""Where are the elements that are not zero?

How many there are depends on the values; so inside a trace the caller gives ``size``, how many
places to return: those beyond it are left out, missing ones are filled.

Read before: ``numpy.selection``.  Read after: nothing.
Invariant: places come in the order in which the elements are stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.compile.device_assignment import placement
from saem.compile.dispatch import put_results
from saem.core import config, dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import larger
from saem.core.trace import Tracer, concrete_or_none
from saem.jit.library import library_function
from saem.numpy.axes import known_number
from saem.numpy.filling import filled
from saem.numpy.indexing import scatter_update
from saem.numpy.logic import truth
from saem.numpy.promote import as_value, check_arraylike, if_else, promote_dtypes, scalar
from saem.numpy.selection import choose_where
from saem.ops import arithmetic as ops
from saem.ops import compare, filling, numbers
from saem.ops import shape as shaping
from saem.ops.convert import convert_element_type
from saem.ops.cumulative import cumsum
from saem.ops.linear import broadcast_in_dim, reduce_sum
from saem.ops.slicing import slice_in_dim
from saem.typing import Array, ArrayLike

_where = library_function(choose_where)


def where(condition: Any, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
          size: int | None = None, fill_value: ArrayLike | None = None) -> Any:
    """Return x where ``condition`` is not zero, else y; of one argument, where it is not zero.

    Shapes broadcast.  Both x and y are computed whole: to run one of two functions, use
    ``lax.cond``.  The form with one argument gives index arrays as ``nonzero`` does; under ``jit``
    it needs ``size``, since the number of places would depend on values.

    Raises: ValueError if ``size`` or ``fill_value`` is given with x and y; as ``nonzero``.

    >>> jnp.where(jnp.array([True, False]), 1, jnp.array([7, 8]))
    Array([1, 8], dtype=int32)
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where "
                         "function: its result has the shape of its arguments.")
    return _where(condition, x, y)


def nonzero(a: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Any, ...]:
    """Return the coordinates of the elements that are not zero, one array for each axis.

    ``size``: how many to return; ``fill_value`` (0) stands where there are no more: coordinates and
    it meet in one dtype, floats for NaN.
    Raises: ConcretizationTypeError for traced ``a`` without ``size``; ValueError for rank 0.

    >>> jnp.nonzero(jnp.array([0, 3, 0, 4]))
    (Array([1, 3], dtype=int32),)
    """
    check_arraylike("nonzero", a)
    a = as_value(a)
    shape = aval_of(a).shape
    if not shape:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar)"
                         ".nonzero() instead.")
    if size is None:
        known = concrete_or_none(a)
        if config.staging.value or (isinstance(a, Tracer) and known is None):
            raise errors.explained(
                errors.ConcretizationTypeError, "nonzero.C1",
                "Abstract tracer value encountered where concrete value is expected: traced array "
                f"with shape {dtypes.default_dtype(int)}[]\n"
                "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero "
                "within JAX transformations.",
                advice="Pass size=…, or use jnp.where(condition, x, y), which keeps the shape.")
        known = a if known is None else known
        places = [i.astype(dtypes.default_dtype(int)) for i in np.nonzero(np.asarray(known))]
        return tuple(put_results(places, *placement([known])))
    size = known_number(size, "size")
    fill = 0 if fill_value is None else as_value(fill_value)
    if isinstance(fill, list) or (not isinstance(fill, tuple) and np.ndim(fill)):
        raise ValueError("fill_value must be a scalar or a tuple of length "
                         f"{len(shape)}; got {fill_value}. It stands where places are missing.")
    fills = fill if isinstance(fill, tuple) else (fill,) * len(shape)
    if len(fills) != len(shape):
        raise ValueError(f"fill_value needs one entry for each axis of {shape}, got {fill_value}")
    return _nonzero(a, fills, size=size)


@library_function(static_argnames="size")
def _nonzero(a: Any, fills: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    shape, count = aval_of(a).shape, aval_of(a).size
    index = dtypes.default_dtype(int)
    mask = shaping.reshape(truth(a), (count,))
    # Each writes its place where the number of those before it says.  Zeros, and what does not
    # fit, write to one more, which no check takes for an error.
    so_far = cumsum(convert_element_type(mask, index), 0)
    end = broadcast_in_dim(scalar(size, index), (count,), ())
    at = numbers.min(if_else(mask, ops.sub(so_far, scalar(1, index)), end), end)
    places = broadcast_in_dim(scalar(0, index), (size + 1,), ())
    places = scatter_update(places, at, filling.iota(index, count), "set", mode="drop",
                            wrap_negative_indices=False)
    places = slice_in_dim(places, 0, size)
    found = reduce_sum(convert_element_type(mask, index), (0,))
    real = compare.lt(filling.iota(index, size), found)
    out = []
    for n, fill in zip(reversed(shape), reversed(fills)):
        n = scalar(larger(n, 1), index)
        out.append(choose_where(real, numbers.rem(places, n), fill))
        places = ops.div(places, n)
    return tuple(reversed(out))


def flatnonzero(a: ArrayLike, *, size: int | None = None,
                fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> Array:
    """Return the places of the elements that are not zero, counted through all axes.

    Raises: as ``nonzero``.

    >>> jnp.flatnonzero(jnp.array([0, 3, 0, 4]))
    Array([1, 3], dtype=int32)
    """
    check_arraylike("flatnonzero", a)
    a = as_value(a)
    return nonzero(_flat(a), size=size, fill_value=fill_value)[0]


@library_function
def _flat(a: Any) -> Any:
    return shaping.reshape(a, (aval_of(a).size,))


def argwhere(a: ArrayLike, *, size: int | None = None,
             fill_value: ArrayLike | None = None) -> Array:
    """Return the coordinates of the elements that are not zero, one row for each.

    Raises: as ``nonzero``.

    >>> jnp.argwhere(jnp.array([[0, 1], [2, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    check_arraylike("argwhere", a)
    a = as_value(a)
    rank = len(aval_of(a).shape)
    if rank == 0:
        count = aval_of(nonzero(shaping.reshape(a, (1,)), size=size)[0]).size
        return filled((count, 0), scalar(0, dtypes.default_dtype(int)))
    columns = nonzero(a, size=size, fill_value=fill_value)
    return _as_columns(*columns)


@library_function
def _as_columns(*columns: Any) -> Any:
    columns = promote_dtypes(*columns)
    return shaping.concatenate([shaping.expand_dims(c, (1,)) for c in columns], 1)

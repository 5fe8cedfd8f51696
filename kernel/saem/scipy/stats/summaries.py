"""How is a sample summed up by one number, or by a rank for each of its elements?

Read before: ``numpy.sorting``, ``numpy.reductions``.
Invariant: a NaN in a sample makes its result NaN (tests/kernel/scipy/test_stats.py).
Source: the SciPy reference of the functions of these names.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes, errors
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, numbers_may_be_arrays
from saem.ops.shape import canonical_axis
from saem.transform.mapping import vmap
from saem.typing import Array, ArrayLike


class ModeResult(NamedTuple):
    """The most frequent values, and how often each occurs."""

    mode: Array
    count: Array


def _check_policy(nan_policy: str) -> None:
    """Refuse every policy but 'propagate'.  Raises: NotImplementedError; ValueError."""
    if nan_policy == "propagate":
        return
    if nan_policy not in ("propagate", "omit", "raise"):
        raise errors.explained(
            errors.ArgumentError, "nan_policy.C1",
            f"Illegal nan_policy value {nan_policy!r}; expected one of "
            "{'propagate', 'omit', 'raise'}", advice="'propagate' makes the result NaN.")
    raise errors.explained(
        NotImplementedError, "nan_policy.C2",
        f"Logic for `nan_policy` of {nan_policy} is not implemented",
        advice="Leave NaN out before, with a mask.")


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
         ) -> ModeResult:
    """Return the most frequent value along ``axis`` (of all elements if None), and its count.

    Of several the smallest is taken.  nan_policy: 'propagate' only.

    >>> mode(jnp.array([1, 2, 2])).count
    Array(2, dtype=int32)
    """
    _check_policy(nan_policy)
    return _mode(a, axis=axis, keepdims=keepdims)


@library_function(static_argnames=("axis", "keepdims"), whole=True)
def _mode(a, axis, keepdims):
    a = jnp.atleast_1d(array_argument("mode", a))
    shape = a.shape
    if axis is None:
        a, axis = jnp.ravel(a), 0
        kept = (1,) * len(shape)
    else:
        axis = canonical_axis(axis, a.ndim)
        kept = shape[:axis] + (1,) + shape[axis + 1:]
    final = kept if keepdims else (kept[:axis] + kept[axis + 1:] if len(shape) == a.ndim else ())
    if a.size == 0:
        dtype = dtypes.default_dtype(float)
        counted = dtypes.default_dtype(int) if a.shape[axis] else dtype  # as in JAX
        return ModeResult(jnp.full(final, np.nan, dtype), jnp.zeros(final, counted))
    rows = jnp.moveaxis(a, axis, -1).reshape(-1, a.shape[axis])
    values, counts = vmap(_most_frequent)(rows)
    return ModeResult(values.reshape(final), counts.reshape(final))


def _most_frequent(row: Array) -> tuple[Array, Array]:
    ordered = jnp.sort(row)
    counts = jnp.searchsorted(ordered, ordered, "right") - jnp.searchsorted(ordered, ordered)
    counts = counts.astype(int)
    best = jnp.argmax(counts)
    return ordered[best], counts[best]


METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """Return the rank of each element along ``axis`` (of all, flattened, if None), from 1 on.

    method: equal elements get their 'average', 'min' or 'max' rank; 'dense' leaves no gaps after
    them; 'ordinal' ranks them in order of appearance.  nan_policy: 'propagate' only.
    Raises: ValueError for another method.

    >>> rankdata(jnp.array([1., 3., 3.]))
    Array([1. , 2.5, 2.5], dtype=float32)
    """
    _check_policy(nan_policy)
    if method not in METHODS:
        raise errors.explained(
            errors.ArgumentError, "rankdata.method", f"unknown method '{method}'",
            advice=f"Use one of {', '.join(METHODS)}.")
    return _rankdata(a, method=method, axis=axis)


@library_function(static_argnames=("method", "axis"), whole=True)
def _rankdata(a, method, axis):
    a = array_argument("rankdata", a)
    if axis is None:
        return _ranks(jnp.ravel(a), method)
    axis = canonical_axis(axis, a.ndim)
    rows = jnp.moveaxis(a, axis, -1)
    count = math.prod(rows.shape[:-1])
    ranks = vmap(lambda row: _ranks(row, method))(rows.reshape(count, rows.shape[-1]))
    return jnp.moveaxis(ranks.reshape(rows.shape), -1, axis)


def _ranks(row: Array, method: str) -> Array:
    dtype = dtypes.default_dtype(float)
    order = jnp.argsort(row)
    places = jnp.zeros(row.shape, np.int32).at[order].set(np.arange(row.size, dtype=np.int32))
    ordered = row[order]
    if method == "ordinal":
        ranks = (places + 1).astype(dtype)
    elif method == "dense":
        begins = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])[:row.size]
        ranks = jnp.cumsum(begins)[places].astype(dtype)
    else:
        first = jnp.searchsorted(ordered, row, "left") + 1
        last = jnp.searchsorted(ordered, row, "right")
        ranks = {"min": first, "max": last, "average": (first + last) / 2}[method].astype(dtype)
    broken = jnp.any(jnp.isnan(row)) if dtypes.is_float(row.dtype) else False
    return jnp.where(broken, np.nan, ranks)


def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """Return the standard error of the mean along ``axis`` (of all elements if None).

    ddof: the divisor of the variance is n - ddof.
    nan_policy: 'propagate', or 'omit' to leave NaN out.  Raises: ValueError for another.

    >>> sem(jnp.array([1., 3.]))
    Array(1., dtype=float32)
    """
    if nan_policy not in ("propagate", "omit"):
        raise errors.explained(errors.ArgumentError, "sem.nan_policy",
                               f"{nan_policy} is not supported",
                               advice="Use 'propagate' or 'omit'.")
    return _sem(a, axis=axis, ddof=ddof, omit=nan_policy == "omit", keepdims=keepdims)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "ddof", "omit", "keepdims"), whole=True)
def _sem(a, axis, ddof, omit, keepdims):
    a = array_argument("sem", a)
    if omit:
        size = jnp.sum(~jnp.isnan(a), axis=axis, keepdims=keepdims)
    else:
        size = jnp.asarray(a.size if axis is None else a.shape[canonical_axis(axis, a.ndim)])
    deviation = jnp.nanstd if omit else jnp.std
    spread = deviation(a, axis=axis, ddof=ddof, keepdims=keepdims)
    dtype = a.dtype if dtypes.is_complex(a.dtype) else spread.dtype  # as in JAX
    return spread / lax.sqrt(size.astype(dtype))

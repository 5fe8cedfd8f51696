"""How is an array taken apart: into sections, halves, rows?

Read before: ``numpy.joining``.  Read after: ``numpy.rearranging``.
Invariant: ``concatenate(split(x, n))`` is ``x`` (tests/kernel/numpy/test_shaping.py).
Source: the NumPy reference and the Python array API standard.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile.arrays import rows_from_host
from saem.compile.dispatch import check_not_deleted, device_of
from saem.core import config, errors
from saem.core.avals import represented_aval
from saem.core.dimensions import as_size
from saem.core.trace import concrete_or_none, is_concrete
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, numbers_may_be_arrays
from saem.numpy.promote import check_arraylike
from saem.ops import shape, stacking
from saem.ops.dynamic_slicing import dynamic_slice_in_dim
from saem.ops.shape import canonical_axis
from saem.typing import ArrayLike


def _split(name: str, ary: Any, sections: Any, axis: int, uneven: bool = False) -> list[Any]:
    if type(axis) is int:
        check_arraylike(name, ary)
        canonical_axis(axis, np.ndim(ary) if isinstance(ary, (int, float, complex))
                       else len(represented_aval(ary).shape))
    known = sections if type(sections) is int else _known_sections(name, sections)
    return _parts(ary, name, known, axis, uneven)


def _known_sections(name: str, sections: Any) -> int | tuple[int, ...]:
    """Return the number of parts, or the places before which an array is cut.

    Raises: ConcretizationTypeError for a tracer.
    """
    if not is_concrete(sections) if not isinstance(sections, (list, tuple)) else not all(
            is_concrete(s) for s in sections):
        traced = next(s for s in (sections if isinstance(sections, (list, tuple)) else [sections])
                      if not is_concrete(s))
        raise errors.unknown(
            f"{name}.C1", traced, f"jax.numpy.{name} needs known indices_or_sections.",
            advice="Mark it static, or use lax.dynamic_slice.")
    if isinstance(sections, (list, tuple)) or np.ndim(sections) > 0:
        return tuple([as_size(concrete_or_none(s)) for s in sections])
    return int(concrete_or_none(sections))


@numbers_may_be_arrays
@library_function(static_argnums=(1, 2, 3, 4))
def _parts(ary: Any, name: str, sections: int | tuple[int, ...], axis: int, uneven: bool
           ) -> list[Any]:
    ary = array_argument(name, ary)
    axis = canonical_axis(axis, ary.ndim)
    size = ary.shape[axis]
    places = ([0, *sections, size] if isinstance(sections, tuple)
              else _places_of_parts(name, size, sections, uneven))
    sizes = [b - a for a, b in itertools.pairwise(places)]
    if any(n < 0 for n in sizes):
        raise errors.explained(
            errors.ArgumentError, f"{name}.C4",
            f"Sizes passed to split must be nonnegative, got {sizes}",
            advice=f"The places must ascend from 0 to {size}.")
    return list(shape.split(ary, sizes, axis))


def _places_of_parts(name: str, size: int, count: int, uneven: bool) -> list[int]:
    """Return where ``count`` parts of an axis of ``size`` begin and end.

    Raises: ValueError if there are no equal parts.
    """
    if count == 0:
        raise errors.explained(
            ZeroDivisionError, f"{name}.C5", "integer division or modulo by zero",
            advice="Cut into one part at least.")
    if count < 1:
        raise errors.explained(errors.ArgumentError, f"{name}.C2",
                               "number sections must be larger than 0.", advice=f"Got {count}.")
    part, rest = divmod(size, count)
    if rest and not uneven:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C3",
            f"array split does not result in an equal division: rest is {rest}",
            advice="Use jnp.array_split for parts of unequal size.")
    return [i * part + min(i, rest) for i in range(count + 1)]


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike,
          axis: int = 0) -> list[Any]:
    """Return ``ary`` cut along ``axis`` into equal parts, or before each of the given places.

    Raises: ValueError if there are no equal parts.

    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike,
                axis: int = 0) -> list[Any]:
    """Return ``ary`` cut along ``axis`` into nearly equal parts, longer ones first.

    >>> jnp.array_split(jnp.arange(5), 2)
    [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Any]:
    """Return ``ary`` cut along its first axis.

    >>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Any]:
    """Return ``ary`` cut along its second axis, a vector along its first.

    >>> jnp.hsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1],
           [3]], dtype=int32), Array([[2],
           [4]], dtype=int32)]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Any]:
    """Return ``ary`` cut along its third axis.

    >>> [part.shape for part in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


@library_function(static_argnames=("axis",))
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Return the slices of ``x`` along ``axis``, without that axis.

    Raises: ValueError for a scalar.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = array_argument("unstack", x)
    if not x.ndim:
        raise errors.explained(
            errors.ArgumentError, "unstack.C1",
            "Unstack requires arrays with rank > 0, however a scalar array was passed.",
            advice="A scalar has no axis to take apart.")
    axis = canonical_axis(axis, x.ndim)
    return tuple(stacking.unstack(x, axis)) if x.shape[axis] else ()


# An array gives so many rows by one compiled call: more would take longer to compile.  Large rows
# come one by one, so that a loop over a large array needs no second one.
ROWS, LARGE_ROW = 16, 1 << 14


@library_function
def _rows(x: Any, start: Any) -> list[Any]:
    """Return ``ROWS`` rows of ``x`` from ``start`` on."""
    return list(stacking.unstack(dynamic_slice_in_dim(x, start, ROWS)))


def iterate(x: Any) -> Any:
    """Return an iterator over the rows of the array ``x``.

    Rows of an array whose devices hold parts of it come from the host, to the default device.

    Raises: TypeError for a scalar; RuntimeError for an array that was deleted.
    """
    shape = x.aval.shape
    if not shape:
        raise TypeError("iteration over a 0-d array")
    check_not_deleted(x)
    if not x.is_fully_replicated and x.is_fully_addressable:
        return rows_from_host(x)
    count = shape[0]
    if count <= 1 or math.prod(shape[1:]) > LARGE_ROW or device_of(x) is None:
        return (x[i] for i in range(count))
    if count <= ROWS or config.staging.value:
        return (row for row in unstack(x))
    return _chunks(x, count)


def _chunks(x: Any, count: int) -> Any:
    """Yield the ``count`` rows of ``x``; the last call gives some that were there before."""
    for start in range(0, count, ROWS):
        first = min(start, count - ROWS)
        yield from _rows(x, np.int32(first))[start - first:]

"""Which places lie on the diagonal of an array, or in a triangle of it?

Places are arrays of integers, one for each axis, with which an array is indexed.

Read before: ``numpy.searching``, ``numpy.indexing``.
Invariant: shapes alone decide, so all but ``mask_indices`` work inside a trace as they are
(tests/kernel/numpy/test_places.py).
Source: the NumPy reference of the functions of these names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saem.compile.dispatch import put_value
from saem.core import dtypes, errors
from saem.core.avals import represented_aval
from saem.core.dimensions import inconclusive, is_nonnegative, is_static
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, known_number
from saem.numpy.filling import ones
from saem.numpy.indexing import getitem, scatter_update
from saem.numpy.manipulation import ravel
from saem.numpy.promote import check_arraylike, scalar
from saem.numpy.searching import nonzero
from saem.ops import filling, numbers
from saem.ops.arithmetic import add
from saem.ops.compare import ge, lt
from saem.typing import Array, ArrayLike


def _count(name: str, what: str, n: Any) -> int:
    """Return ``n`` as an int.

    Raises: TypeError if it is no integer; ValueError if it is negative.
    """
    n = known_number(n, what)
    if is_nonnegative(n) is False:
        raise errors.explained(errors.ArgumentError, f"{name}.{what}",
                               f"{what} argument to {name} must be nonnegative, got {n}",
                               advice="It counts rows or axes.")
    return n


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """Return the places of the diagonal of an array with ``ndim`` axes of size ``n``.

    Raises: ValueError if one of them is negative.

    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = _count("diag_indices", "n", n), _count("diag_indices", "ndim", ndim)
    return (filling.iota(dtypes.default_dtype(int), n),) * ndim


def _check_square(what: str, sizes: tuple[int, ...]) -> None:
    if len(sizes) < 2:
        raise errors.explained(errors.ArgumentError, "diagonal.C1",
                               f"{what} must be at least 2-d", advice=f"Got shape {sizes}.")
    if len(set(sizes)) > 1:
        raise errors.explained(errors.ArgumentError, "diagonal.C2",
                               "All dimensions of input must be of equal length",
                               advice=f"Got shape {sizes}.")


def diag_indices_from(arr: ArrayLike) -> tuple[Any, ...]:
    """Return the places of the diagonal of ``arr``.

    Raises: ValueError unless its axes, two or more, have one size.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    check_arraylike("diag_indices_from", arr)
    sizes = represented_aval(arr).shape
    _check_square("input array", sizes)
    return diag_indices(sizes[0], ndim=len(sizes))


def _matrix_size(name: str, what: str, n: Any) -> int:
    """Return ``n``, the argument ``what`` of ``name``, as an int.

    Raises: TypeError if it is no integer or negative.
    """
    n = known_number(n, what)
    if is_nonnegative(n) is False:
        raise errors.explained(errors.ArgumentTypeError, f"{name}.C1",
                               f"{name}: sizes must be nonnegative, got {n}.",
                               advice="They count rows and columns.")
    return n


def _places(mask: np.ndarray) -> tuple[Any, Any]:
    """Return where ``mask`` is true: rows and columns."""
    rows, columns = [put_value(i.astype(dtypes.default_dtype(int))) for i in np.nonzero(mask)]
    return rows, columns


def _open_places(name: str, n: Any, m: Any, k: int, low: bool) -> tuple[Any, Any]:
    """Return the places up to diagonal ``k`` (above it unless ``low``), sizes not being known."""
    if n != m:
        raise inconclusive(f"jnp.{name} of sizes {n} and {m} has an unknown number of places: "
                           "one of them is symbolic, and they are not the same")

    def triangle(side: Any) -> Any:
        return side * (side + 1) // 2

    if low:
        count = triangle(n + k) if k <= 0 else n * n - triangle(n - k - 1)
    else:
        count = triangle(n - k - 1) if k >= -1 else n * n - triangle(n + k)
    rows, columns = (filling.broadcasted_iota(np.int32, (n, m), axis) for axis in (0, 1))
    mask = (ge if low else lt)(add(rows, np.int32(k)), columns)
    return nonzero(mask, size=count)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Return the places on and below diagonal ``k`` of a matrix of n rows and m (n) columns.

    Raises: TypeError for a size that is no integer or negative.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n = _matrix_size("tril_indices", "n", n)
    m = n if m is None else _matrix_size("tril_indices", "m", m)
    if not is_static((n, m)):
        return _open_places("tril_indices", n, m, known_number(k, "k"), True)
    return _places(np.tri(n, m, known_number(k, "k"), bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Return the places on and above diagonal ``k`` of a matrix of n rows and m (n) columns.

    Raises: TypeError for a size that is no integer or negative.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n = _matrix_size("triu_indices", "n", n)
    m = n if m is None else _matrix_size("triu_indices", "m", m)
    if not is_static((n, m)):
        return _open_places("triu_indices", n, m, known_number(k, "k") - 1, False)
    return _places(~np.tri(n, m, known_number(k, "k") - 1, bool))


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    check_arraylike(name, arr)
    sizes = represented_aval(arr).shape
    if len(sizes) != 2:
        raise errors.explained(errors.ArgumentError, "triangle.C1", "Only 2-D inputs are accepted",
                               advice=f"Got shape {sizes}.")
    return sizes


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Any, Any]:
    """Return the places on and below diagonal ``k`` of the matrix ``arr``.

    Raises: ValueError if it is no matrix.

    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k=k, m=columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Any, Any]:
    """Return the places on and above diagonal ``k`` of the matrix ``arr``.

    Raises: ValueError if it is no matrix.

    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k=k, m=columns)


def mask_indices(n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *,
                 size: int | None = None) -> tuple[Any, Any]:
    """Return the places of an n by n matrix that ``mask_func``, such as jnp.triu, keeps.

    Raises: ConcretizationTypeError in a trace without ``size``.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *,
                  inplace: bool = True) -> Array:
    """Return ``a`` with ``val`` on its diagonal, its elements in order and repeated.

    Raises: NotImplementedError unless ``inplace`` is False, or if ``wrap``; ValueError for an
    array of one axis, or of more than two of different sizes.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5., inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    if inplace:
        raise errors.explained(
            NotImplementedError, "fill_diagonal.inplace",
            "JAX arrays are immutable, must use inplace=False",
            advice="x = jnp.fill_diagonal(x, value, inplace=False)")
    if wrap:
        raise errors.explained(
            NotImplementedError, "fill_diagonal.wrap",
            "wrap=True is not implemented, must use wrap=False",
            advice="Index the places yourself: x.at[rows, columns].set(value).")
    check_arraylike("fill_diagonal", a, val)
    sizes = represented_aval(a).shape
    if len(sizes) != 2:
        _check_square("array", sizes)
    return _fill_diagonal(a, val)


@library_function(whole=True)
def _fill_diagonal(a: Any, val: Any) -> Any:
    a, val = array_argument("fill_diagonal", a, val)
    index, count = dtypes.default_dtype(int), min(a.shape)
    places = filling.iota(index, count)
    if val.ndim:
        val = ravel(val)
        if val.shape[0] != count:
            turn = numbers.rem(places, scalar(max(val.shape[0], 1), index))
            val = getitem(val, turn, wrap_negative_indices=False)
    return scatter_update(a, (places,) * a.ndim, val, "set")

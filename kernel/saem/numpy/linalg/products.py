"""Which products of NumPy stand in the namespace of linear algebra, too?

The array API standard gives some of them stricter arguments: ``outer`` takes vectors only,
``cross`` three-dimensional ones.

Read before: ``numpy.products``.
Invariant: where both namespaces accept arguments, results are equal.
Source: the Python array API standard, extension "Linear Algebra Functions"; Cormen et al.,
Introduction to Algorithms, 15.2 (matrix-chain multiplication).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from saem.core import errors
from saem.numpy import calculus, diagonals, manipulation, products
from saem.numpy.axes import array_argument
from saem.numpy.promote import promote_dtypes
from saem.typing import Array, ArrayLike, DTypeLike


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """Return the matrix product of ``x1`` (…, n, k) and ``x2`` (…, k, m).

    >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    return products.matmul(x1, x2, precision=precision,
                           preferred_element_type=preferred_element_type)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *,
              axes: int | tuple[Sequence[int], Sequence[int]] = 2, precision: Any = None,
              preferred_element_type: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """Return the sum of products over ``axes``: the last n of x1 with the first of x2, or pairs.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return products.tensordot(x1, x2, axes, precision=precision,
                              preferred_element_type=preferred_element_type,
                              out_sharding=out_sharding)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """Return the products of vectors along ``axis``, the first conjugated.

    >>> jnp.linalg.vecdot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    return products.vecdot(x1, x2, axis=axis, precision=precision,
                           preferred_element_type=preferred_element_type)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return ``x`` with its last two axes exchanged.

    >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return manipulation.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals (…, k) of the matrices ``x`` (…, n, m).

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    x = array_argument("jnp.linalg.diagonal", x)
    if x.ndim < 2:
        raise errors.explained(
            errors.ArgumentError, "diagonal.rank",
            "diagonal requires an array of at least two dimensions.",
            advice=f"Got shape {x.shape}.")
    return diagonals.diagonal(x, offset, -2, -1)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of each element of vector ``x1`` with each of ``x2``.

    Raises: ValueError if one is not a vector.

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x1, x2 = array_argument("jnp.linalg.outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise errors.explained(
            errors.ArgumentError, "outer.rank",
            f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} "
            f"x2.ndim={x2.ndim}", advice="jnp.outer flattens its arguments.")
    x1, x2 = promote_dtypes(x1, x2)
    return x1[:, None] * x2[None, :]


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Any:
    """Return the vectors at right angles to ``x1`` and ``x2``, three-dimensional along ``axis``.

    Raises: ValueError for vectors of another size.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x1, x2 = array_argument("jnp.linalg.outer", x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise errors.explained(
            errors.ArgumentError, "cross.size",
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"x1.shape[axis]={x1.shape[axis]} and x2.shape[axis]={x2.shape[axis]}",
            advice="jnp.cross takes vectors in the plane, too.")
    return calculus.cross(x1, x2, axis=axis)


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Array:
    """Return the product of several matrices, in the order that costs the fewest multiplications.

    The first and the last may be vectors.

    Raises: ValueError for fewer than two, or sizes that do not fit.

    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 1))]).shape
    (2, 1)
    """
    xs = _factors(list(arrays))
    places = [[i, i + 1] for i in range(len(xs))]
    places[0], places[-1] = places[0][-xs[0].ndim:], places[-1][:xs[-1].ndim]
    ends = [i for i in (0, len(xs)) if i in (*places[0], *places[-1])]
    pairs = (x for pair in zip(xs, places) for x in pair)
    return products.einsum(*pairs, ends, precision=precision)


def _factors(arrays: list[Any]) -> list[Any]:
    """Return the factors of ``multi_dot`` as arrays.

    Raises: ValueError for fewer than two, or sizes that do not fit.
    """
    xs = [array_argument("jnp.linalg.multi_dot", x) for x in arrays]
    if len(xs) < 2:
        raise errors.explained(
            errors.ArgumentError, "multi_dot.count",
            f"multi_dot requires at least two arrays; got len(arrays)={len(xs)}",
            advice="Give the factors as a list.")
    shapes = [x.shape for x in xs]
    ends = [len(s) for s in (shapes[0], shapes[-1])]
    if not all(1 <= n <= 2 for n in ends) or any(len(s) != 2 for s in shapes[1:-1]):
        raise errors.explained(
            errors.ArgumentError, "multi_dot.rank",
            "multi_dot: input arrays must all be two-dimensional, except for the first and last "
            f"array which may be 1 or 2 dimensional. Got array shapes {shapes}",
            advice="For stacks of matrices use @.")
    if any(a[-1] != b[0] for a, b in itertools.pairwise(shapes)):
        raise errors.explained(
            errors.ArgumentError, "multi_dot.sizes",
            "multi_dot: last dimension of each array must match first dimension of following "
            f"array. Got array shapes {shapes}", advice="The inner sizes of a product agree.")
    return xs

"""With which matrix operations are derivative rules written?

Products, adjoints, triangles and diagonals of matrices that stand side by side over leading axes;
and ``symmetric_product``, the product of a matrix with its transpose added to a symmetric matrix.

Read before: ``ops.contract``.  Read after: ``linalg.cholesky``.
Invariant: an operand has shape (…, n, m); the leading axes of two operands are equal.
Source: BLAS, syrk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.linalg.families import NoDerivative, weak_as_operands
from saem.ops.arithmetic import add, mul, sub
from saem.ops.compare import eq, ge
from saem.ops.contract import Precision, dot_general
from saem.ops.convert import convert
from saem.ops.filling import broadcasted_iota
from saem.ops.gather import gather
from saem.ops.linear import broadcast_in_dim, literal, number_like, permute, reduce_sum
from saem.ops.numbers import conj
from saem.ops.select import select_n
from saem.ops.shape import concatenate, expand_dims
from saem.ops.slicing import slice_in_dim
from saem.ops.sort import sort
from saem.ops.windows import GatherDimensionNumbers
from saem.typing import ArrayLike

HIGHEST = (Precision.HIGHEST, Precision.HIGHEST)
I32 = np.dtype("int32")


def shape_of(x: Any) -> tuple[int, ...]:
    return aval_of(x).shape


def dtype_of(x: Any) -> np.dtype:
    return aval_of(x).dtype


def is_complex(x: Any) -> bool:
    return dtypes.is_complex(dtype_of(x))


def number(x: Any, value: complex) -> Any:
    """Return ``value`` as a scalar of the dtype of ``x``."""
    return literal(value, dtype_of(x))


def matmul(a: Any, b: Any) -> Any:
    """Return the products of the matrices ``a`` (…, n, k) and ``b`` (…, k, m)."""
    rank = len(shape_of(a))
    leading = tuple(range(rank - 2))
    return dot_general(a, b, (((rank - 1,), (rank - 2,)), (leading, leading)), HIGHEST)


def transposed(x: Any) -> Any:
    """Return ``x`` with its last two axes exchanged."""
    rank = len(shape_of(x))
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))


def conjugate(x: Any) -> Any:
    """Return the complex conjugate of ``x``; ``x`` itself if it is real."""
    return conj(x) if is_complex(x) else x


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of ``x``."""
    return conjugate(transposed(x))


def symmetrized(x: Any) -> Any:
    """Return the Hermitian part of ``x``: the mean of ``x`` and its adjoint."""
    return mul(add(x, adjoint(x)), number(x, 0.5))


def counts(shape: tuple[int, ...], axis: int, sharding: Any = None) -> Any:
    """Return an array of ``shape``, sharded as ``sharding``, that counts along ``axis``."""
    return broadcasted_iota(I32, shape, axis, out_sharding=sharding)


def eye(shape: tuple[int, ...], dtype: Any, sharding: Any = None) -> Any:
    """Return identity matrices of ``shape``, which may be rectangular."""
    rank = len(shape)
    rows = add(counts(shape, rank - 2, sharding), I32.type(0))
    return convert(eq(rows, counts(shape, rank - 1, sharding)), dtype)


def lower_mask(x: Any, k: int = 0) -> Any:
    """Return where, in the matrices ``x``, the column is at most the row + ``k``."""
    shape, sharding = shape_of(x), aval_of(x).explicit
    rank = len(shape)
    rows = add(counts(shape, rank - 2, sharding), I32.type(k))
    return ge(rows, counts(shape, rank - 1, sharding))


def zeros_like(x: Any) -> Any:
    return broadcast_in_dim(number_like(x, 0), shape_of(x), (), out_sharding=aval_of(x).explicit)


def tril(x: Any, k: int = 0) -> Any:
    """Return ``x`` with zeros above diagonal ``k``."""
    return select_n(lower_mask(x, k), zeros_like(x), x)


def triu(x: Any, k: int = 0) -> Any:
    """Return ``x`` with zeros below diagonal ``k``."""
    return select_n(lower_mask(x, k - 1), x, zeros_like(x))


def diagonal_part(x: Any) -> Any:
    """Return square matrices ``x`` with zeros off the diagonal."""
    return mul(x, eye(shape_of(x), dtype_of(x), aval_of(x).explicit))


def diagonal(x: Any) -> Any:
    """Return the diagonals (…, n) of square matrices (…, n, n)."""
    return reduce_sum(diagonal_part(x), (len(shape_of(x)) - 1,))


def columns_scaled(x: Any, s: Any) -> Any:
    """Return ``x`` (…, n, k) with column j multiplied by ``s[…, j]``."""
    return mul(x, expand_dims(s, (len(shape_of(x)) - 2,)))


def rows_scaled(x: Any, s: Any) -> Any:
    """Return ``x`` (…, k, n) with row i multiplied by ``s[…, i]``."""
    return mul(x, expand_dims(s, (len(shape_of(x)) - 1,)))


def block(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """Return the part of ``x`` in ``rows`` and ``columns``, each from and up to."""
    rank = len(shape_of(x))
    return slice_in_dim(slice_in_dim(x, *rows, axis=rank - 2), *columns, axis=rank - 1)


def beside(a: Any, b: Any) -> Any:
    """Return the columns of ``a`` and then those of ``b``."""
    return concatenate([a, b], len(shape_of(a)) - 1)


def rows_in_order(x: Any, order: Any) -> Any:
    """Return the matrices ``x`` (…, n, m) with their rows in the ``order`` (…, n)."""
    rank = len(shape_of(x))
    leading = tuple(range(rank - 2))
    numbers = GatherDimensionNumbers((rank - 1,), (rank - 2,), (rank - 2,), leading, leading)
    sizes = (1,) * (rank - 1) + (shape_of(x)[-1],)
    if 0 in shape_of(x):
        return x
    return gather(x, expand_dims(order, (rank - 1,)), numbers, sizes, mode="promise_in_bounds")


def inverse_order(order: Any) -> Any:
    """Return the permutations that undo ``order`` (…, n)."""
    rank = len(shape_of(order))
    places = counts(shape_of(order), rank - 1, aval_of(order).explicit)
    return sort((order, places), dimension=rank - 1, num_keys=1)[1]


def above(a: Any, b: Any) -> Any:
    """Return the rows of ``a`` and then those of ``b``."""
    return concatenate([a, b], len(shape_of(a)) - 2)


# -- a product with the transpose ------------------------------------------------------------------


@primitive("symmetric_product")
class SymmetricProduct(NoDerivative):
    """α A Aᵀ + β C for A (…, n, k) and symmetric C (…, n, n)."""

    alpha: float
    beta: float

    cores = (2, 2)
    complex_too = False

    @weak_as_operands
    def typing(self, a, c):
        self.check(a, c)
        if c.shape[-1] != c.shape[-2] or c.shape[-1] != a.shape[-2]:
            raise errors.explained(
                errors.ShapeError, "symmetric_product.C1",
                "symmetric_update expects a rectangular matrix of shape (m, n) and a square matrix "
                f"of shape (n, n). Got shapes {a.shape[-2:]} and {c.shape[-2:]}.",
                advice="C has as many rows and columns as A has rows.")
        return ShapedArray(c.shape, c.dtype)

    def evaluate(self, a, c):
        wide = np.result_type(a.dtype, np.float32)
        a, c = a.astype(wide), c.astype(wide)
        return self.alpha * (a @ np.swapaxes(a, -1, -2)) + self.beta * c

    def lower(self, ctx, a, c):
        left, out = ctx.avals[a], ctx.out_avals[0]
        rank = left.ndim
        leading = list(range(rank - 2))
        batching = f"batching_dims = {leading} x {leading}, " if leading else ""
        product = ctx.emit(
            f"stablehlo.dot_general {a}, {a}, {batching}contracting_dims = [{rank - 1}] x "
            f"[{rank - 1}], precision = [HIGHEST, HIGHEST]", a, a, out=out)

        def scaled(x: str, by: float) -> str:
            return ctx.elementwise("stablehlo.multiply", x, ctx.constant(by, out), out=out)

        return ctx.elementwise("stablehlo.add", scaled(product, self.alpha), scaled(c, self.beta),
                               out=out)


def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0,
                      beta: float = 0.0, symmetrize_output: bool = False) -> Any:
    """Return α A Aᵀ + β C, for A (…, n, k) and symmetric C (…, n, n).

    ``symmetrize_output``: copy the lower triangle of the result to the upper one, which differs
    from it by rounding, or where C is not symmetric.

    Raises: ValueError for shapes that do not fit.

    >>> lax.linalg.symmetric_product(jnp.array([[1.], [2.]]), jnp.zeros((2, 2)))
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    out = bind(SymmetricProduct(float(alpha), float(beta)), a_matrix, c_matrix)
    if symmetrize_output:
        low = tril(out)
        out = sub(add(low, transposed(low)), diagonal_part(out))
    return out

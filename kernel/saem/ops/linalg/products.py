"""How is the product of a matrix with its transpose added to a symmetric matrix?

Read before: ``ops.linalg.families``.
Invariant: the result is α A Aᵀ + β C, both its triangles.
Source: BLAS, syrk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops.arithmetic import add, sub
from saem.ops.linalg.algebra import diagonal_part, transposed, tril
from saem.ops.linalg.families import NoDerivative
from saem.typing import ArrayLike


@primitive("symmetric_product")
class SymmetricProduct(NoDerivative):
    """α A Aᵀ + β C for A (…, n, k) and symmetric C (…, n, n)."""

    alpha: float
    beta: float

    cores = (2, 2)
    complex_too = False

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

"""How is a positive definite matrix written as L Lᴴ, and how is L brought up to date?

Read before: ``linalg.families``.  Read after: ``linalg.lu``.
Invariant: L is lower triangular with a positive diagonal, or NaN if the matrix is not positive
definite; only the lower triangle of the operand is read.
Source: Golub & Van Loan, Matrix Computations (4th ed.), 4.2 and 6.5.4; Murray, "Differentiation of
the Cholesky decomposition" (2016), eq. 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import NOT_LINEAR, primitive
from saem.core.trace import bind
from saem.linalg.algebra import (
    adjoint,
    diagonal_part,
    matmul,
    number,
    shape_of,
    tril,
    zeros_like,
)
from saem.linalg.custom_calls import (
    character,
    custom_call,
    identities,
    lapack,
    masked,
    nan_unless,
    on_gpu,
    status,
)
from saem.linalg.families import MatrixOperation, NoDerivative, each_matrix, weak_as_operands
from saem.linalg.triangular import TriangularSolve
from saem.loops.while_loop import fori_loop
from saem.ops.arithmetic import add, div, mul, sub
from saem.ops.compare import eq
from saem.ops.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from saem.ops.filling import full_like
from saem.ops.linear import broadcast_in_dim, number_like
from saem.ops.maths import sqrt
from saem.ops.numbers import abs as absolute
from saem.ops.numbers import max as greater
from saem.ops.select import select_n
from saem.transform.staging import write_function
from saem.typing import Array, ArrayLike


@primitive("cholesky")
class Cholesky(MatrixOperation):
    """The lower triangular L with x = L Lᴴ."""

    @weak_as_operands
    def typing(self, x):
        self.check(x)
        self.check_square(x)
        return ShapedArray(x.shape, x.dtype)

    @each_matrix(2)
    def evaluate(self, x):
        try:
            return np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            return np.tril(np.full_like(x, np.nan))

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        if not aval.size:
            return identities(ctx, ctx.out_avals)[0]
        leading = aval.ndim - 2
        outs = [ctx.out_avals[0], status(aval.shape[:leading])]
        if on_gpu(ctx):
            target, config = "cusolver_potrf_ffi", {"lower": "true"}
        elif ctx.module.platform == "cpu":
            target, config = lapack("potrf", aval.dtype), {"uplo": character("L")}
        else:
            made = ctx.emit(f'"stablehlo.cholesky"({x}) <{{lower = true}}>', x)
            return masked(ctx, made, "lower")
        factor, info = custom_call(ctx, target, [x], outs, leading=leading, config=config,
                                   reuse={0: 0})
        (factor,) = nan_unless(ctx, info, [factor])
        return masked(ctx, factor, "lower")

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        factor = bind(self, x)
        if t is None:
            return factor, None
        right = bind(TriangularSolve(False, True, True, True, False), factor, t)
        inner = tril(bind(TriangularSolve(True, True, False, False, False), factor, right))
        half = mul(diagonal_part(inner), number(inner, 0.5))
        return factor, matmul(factor, sub(inner, half))

    transpose = NOT_LINEAR


@primitive("cholesky_update")
class CholeskyUpdate(NoDerivative):
    """The upper triangular R' with R'ᵀ R' = Rᵀ R + w wᵀ, by Givens rotations of rows."""

    cores = (2, 1)
    complex_too = False
    separate_code = False

    @weak_as_operands
    def typing(self, r, w):
        self.check(r, w)
        if r.shape[-1] != r.shape[-2] or w.shape[-1] != r.shape[-1]:
            raise errors.explained(
                errors.ShapeError, "cholesky_update.C1",
                "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of "
                f"the same size as input. Got shapes {r.shape} and {w.shape} instead",
                advice="R has shape (n, n) and w has shape (n,).")
        return ShapedArray(r.shape, r.dtype)

    @each_matrix(2, 1)
    def evaluate(self, r, w):
        r, w = r.copy(), w.copy()
        for k in range(len(w)):
            length = np.hypot(r[k, k], w[k])
            c, s = (r[k, k] / length, w[k] / length) if w[k] else (1.0, 0.0)
            r[k], w = c * r[k] + s * w, c * w - s * r[k]
        return r

    def lower(self, ctx, r, w):
        aval = ctx.avals[r]
        if not aval.size:
            return identities(ctx, ctx.out_avals)[0]
        leading = aval.ndim - 2
        if on_gpu(ctx) and ctx.module.platform != "rocm" and not leading:
            outs = [ctx.out_avals[0], ctx.avals[w]]
            # The kernel of the plugin reads rows, so the matrix is handed over as it stands.
            rows = "[dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>]"
            return ctx.emit_many(
                f"stablehlo.custom_call @cu_cholesky_update_ffi({r}, {w})", r, w, outs=outs,
                attributes={"api_version": "4 : i32", "backend_config": "{}",
                            "operand_layouts": rows, "result_layouts": rows})[0]
        return write_function(ctx, rotated_rows, r, w)[0]


def rotated_rows(r: Any, w: Any) -> tuple[Any, Any]:
    """Return the update by rotations, one row after the other, and what is left of ``w``."""
    axis = len(shape_of(w)) - 1

    def step(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        r, w = state
        row = dynamic_index_in_dim(r, i, axis, keepdims=False)
        c, s = (broadcast_in_dim(x, shape_of(w), range(axis + 1)) for x in rotation(
            *(dynamic_index_in_dim(x, i, axis) for x in (row, w))))
        r = dynamic_update_index_in_dim(r, c * row + s * w, i, axis)
        return r, c * w - s * row

    return fori_loop(0, shape_of(w)[-1], step, (r, w))


def rotation(a: Any, b: Any) -> tuple[Any, Any]:
    """Return cosine and sine that rotate (a, b) to (its length, 0); (1, 0) where b is 0."""
    zero, one = zeros_like(b), full_like(b, 1)
    still = eq(b, zero)
    scale = select_n(still, greater(absolute(a), absolute(b)), one)
    x, y = a / scale, b / scale
    length = select_n(still, sqrt(x * x + y * y), one)
    return select_n(still, x / length, one), select_n(still, y / length, zero)


def cholesky(x: Array, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L (…, n, n) with x = L Lᴴ; NaN where x is not positive definite.

    ``symmetrize_input``: take the mean of ``x`` and its adjoint first, so that the derivative by an
    element is that of the symmetric pair.

    Raises: TypeError if ``x`` is not a stack of square matrices.

    >>> lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    if symmetrize_input:
        x = mean_with_adjoint(x, "cholesky")
    return tril(bind(Cholesky(), x))


def mean_with_adjoint(x: Any, name: str) -> Any:
    """Return (x + xᴴ) / 2 for the function ``name``, as a program shows it.

    Raises: TypeError if x is not square.
    """
    aval = aval_of(x)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise errors.explained(
            errors.ShapeError, f"{name}.square",
            f"{name} needed square matrices (…, n, n), got shape {aval.shape}.",
            advice="Check that the last two axes have one size.")
    if not dtypes.is_inexact(aval.dtype):
        x = x.astype(dtypes.to_inexact(aval.dtype)) if hasattr(x, "astype") else x
    return div(add(x, adjoint(x)), number_like(x, 2))


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Return the upper triangular R' with R'ᵀ R' = Rᵀ R + w wᵀ.

    Shapes: R (n, n), w (n,).  Raises: ValueError for other shapes.

    >>> lax.linalg.cholesky_update(jnp.eye(2), jnp.array([1., 0.]))
    Array([[1.4142135, 0.       ],
           [0.       , 1.       ]], dtype=float32)
    """
    return bind(CholeskyUpdate(), r_matrix, w_vector)

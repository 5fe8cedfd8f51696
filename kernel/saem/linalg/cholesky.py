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
from saem.linalg.algebra import adjoint, diagonal_part, matmul, number, tril
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
from saem.ops import sharding_rules
from saem.ops.arithmetic import add, div, mul, sub
from saem.ops.linear import number_like
from saem.typing import Array, ArrayLike


@primitive("cholesky")
class Cholesky(MatrixOperation):
    """The lower triangular L with x = L Lᴴ."""

    shard_results = sharding_rules.decomposition

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
        return rotated_rows(ctx, r, w)


def rotated_rows(ctx: Any, r: str, w: str) -> str:
    """Write the update by rotations, one row after the other, in a loop."""
    matrix, vector = ctx.avals[r], ctx.avals[w]
    n, lead = matrix.shape[-1], matrix.shape[:-2]
    dtype = matrix.dtype
    index = ShapedArray((), np.dtype("int32"))
    zero, one, count = (ctx.constant(v, index) for v in (0, 1, n))
    rank = matrix.ndim
    state = [index, matrix, vector]

    def go_on(i: str, _r: str, _w: str) -> list[str]:
        return [ctx.compare("LT", i, count)]

    def step(i: str, r: str, w: str) -> list[str]:
        def part(x: str, sizes: tuple[int, ...], *starts: str) -> str:
            shape = (*lead, *sizes)
            places = [zero] * len(lead) + list(starts)
            return ctx.emit(f"stablehlo.dynamic_slice {x}, {', '.join(places)}, "
                            f"sizes = {list(shape)}", x, *places, out=ShapedArray(shape, dtype))

        row = ctx.reshape(part(r, (1, n), i, zero), (*lead, n))
        pivot = part(ctx.reshape(row, (*lead, n)), (1,), i)
        entry = part(w, (1,), i)
        c, s = rotation(ctx, pivot, entry)
        c, s = (ctx.broadcast(v, vector.shape, range(rank - 1)) for v in (c, s))

        def product(a: str, b: str) -> str:
            return ctx.elementwise("stablehlo.multiply", a, b, out=vector)

        new = ctx.elementwise("stablehlo.add", product(c, row), product(s, w), out=vector)
        left = ctx.elementwise("stablehlo.subtract", product(c, w), product(s, row), out=vector)
        places = [zero] * len(lead) + [i, zero]
        update = ctx.reshape(new, (*lead, 1, n))
        r = ctx.emit(f"stablehlo.dynamic_update_slice {r}, {update}, {', '.join(places)}", r,
                     update, *places, out=matrix)
        return [ctx.elementwise("stablehlo.add", i, one, out=index), r, left]

    regions = [ctx.region(state, go_on), ctx.region(state, step)]
    return ctx.emit_many(f'"stablehlo.while"({zero}, {r}, {w})', zero, r, w, outs=state,
                         regions=regions)[1]


def rotation(ctx: Any, a: str, b: str) -> tuple[str, str]:
    """Write cosine and sine that rotate (a, b) to (its length, 0); (1, 0) where b is 0."""
    aval = ctx.avals[a]
    zero, one = ctx.constant(0, aval), ctx.constant(1, aval)

    def op(name: str, *xs: str) -> str:
        return ctx.elementwise(f"stablehlo.{name}", *xs, out=aval)

    scale = op("maximum", op("abs", a), op("abs", b))
    still = ctx.compare("EQ", b, zero)
    scale = ctx.choose(still, one, scale)
    x, y = op("divide", a, scale), op("divide", b, scale)
    length = op("sqrt", op("add", op("multiply", x, x), op("multiply", y, y)))
    length = ctx.choose(still, one, length)
    return (ctx.choose(still, one, op("divide", x, length)),
            ctx.choose(still, zero, op("divide", y, length)))


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
        x = mean_with_adjoint(x)
    return tril(bind(Cholesky(), x))


def mean_with_adjoint(x: Any) -> Any:
    """Return (x + xᴴ) / 2, as a program shows it.  Raises: TypeError if x is not square."""
    aval = aval_of(x)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise errors.explained(
            errors.ShapeError, "cholesky.square",
            f"needed square matrices (…, n, n), got shape {aval.shape}.",
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

"""How are triangular systems of equations solved?

Read before: ``linalg.families``.  Read after: ``linalg.lu``.
Invariant: only the triangle that ``lower`` names is read, its diagonal only if it is not all ones.
Source: StableHLO specification, triangular_solve; BLAS, trsm.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from saem.core import errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import UndefinedPrimal, primitive
from saem.core.trace import bind
from saem.linalg import custom_calls
from saem.linalg.algebra import conjugate, matmul, transposed, tril, triu
from saem.linalg.custom_calls import PREFIX, character, custom_call, lapack
from saem.linalg.families import MatrixOperation, each_matrix, weak_as_operands
from saem.ops import sharding_rules
from saem.ops.arithmetic import neg
from saem.ops.linear import add_cotangents, moveaxis
from saem.ops.shape import expand_dims, reshape, squeeze
from saem.typing import Array, ArrayLike


@primitive("triangular_solve")
class TriangularSolve(MatrixOperation):
    """The X with op(A) X = B, or with X op(A) = B unless ``left_side``; A is triangular.

    op(A) is A, transposed if ``transpose_a`` and conjugated if ``conjugate_a``.
    """

    left_side: bool
    lower_half: bool
    transpose_a: bool
    conjugate_a: bool
    unit_diagonal: bool

    cores = (2, 2)
    renamed: ClassVar[dict[str, str]] = {"lower": "lower_half"}

    shard_results = sharding_rules.triangular_solve

    @weak_as_operands
    def typing(self, a, b):
        self.check(a, b)
        n = self.check_square(a, "The first input to {}")
        common = b.shape[-2 if self.left_side else -1]
        if common != n:
            raise errors.explained(
                errors.ShapeError, "triangular_solve.C1",
                f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}.",
                advice="With left_side the rows of b are as many as those of a, else its columns.")
        return ShapedArray(b.shape, b.dtype)

    def triangle(self, a: Any) -> Any:
        """Return of ``a`` what is read and may move."""
        k = 1 if self.unit_diagonal else 0
        return tril(a, -k) if self.lower_half else triu(a, k)

    def operator(self, a: Any) -> Any:
        """Return op(a)."""
        a = transposed(a) if self.transpose_a else a
        return conjugate(a) if self.conjugate_a else a

    @each_matrix(2, 2)
    def evaluate(self, a, b):
        a = np.tril(a) if self.lower_half else np.triu(a)
        if self.unit_diagonal:
            np.fill_diagonal(a, 1)
        a = a.T if self.transpose_a else a
        a = a.conj() if self.conjugate_a else a
        wide = np.result_type(a, np.float32)
        a, b = a.astype(wide), b.astype(wide)
        if not b.size:
            return b
        if np.any(np.diagonal(a) == 0):
            return np.full(b.shape, np.nan, wide)
        return np.linalg.solve(a, b) if self.left_side else np.linalg.solve(a.T, b.T).T

    def lower(self, ctx, a, b):
        aval = ctx.avals[b]
        if not aval.size:
            return ctx.constant(0, aval)
        if self.conjugate_a and not self.transpose_a:
            a = custom_calls.conjugate(ctx, a)
        if ctx.module.platform == "cpu" and aval.dtype.name in PREFIX:
            config = {
                "diag": character("U" if self.unit_diagonal else "N"),
                "side": character("L" if self.left_side else "R"),
                "trans_x": character(
                    "N" if not self.transpose_a else "C" if self.conjugate_a else "T"),
                "uplo": character("L" if self.lower_half else "U"),
            }
            return custom_call(ctx, lapack("trsm", aval.dtype), [a, b], ctx.out_avals,
                               leading=aval.ndim - 2, config=config, reuse={0: 1})[0]
        kind = "NO_TRANSPOSE" if not self.transpose_a else (
            "ADJOINT" if self.conjugate_a else "TRANSPOSE")
        left, lower, unit = (str(flag).lower() for flag in (
            self.left_side, self.lower_half, self.unit_diagonal))
        return ctx.emit(
            f'"stablehlo.triangular_solve"({a}, {b}) <{{left_side = {left}, lower = {lower}, '
            f"transpose_a = #stablehlo<transpose {kind}>, unit_diagonal = {unit}}}>", a, b)

    def jvp(self, primals, tangents):
        (a, b), (ta, tb) = primals, tangents
        x = bind(self, a, b)
        right = tb
        if ta is not None:
            moved = self.operator(self.triangle(ta))
            product = matmul(moved, x) if self.left_side else matmul(x, moved)
            right = add_cotangents(tb, neg(product))
        return x, None if right is None else bind(self, a, right)

    def transpose(self, ct, a, b):
        if isinstance(a, UndefinedPrimal):
            raise errors.explained(
                NotImplementedError, "triangular_solve.transpose",
                "triangular_solve is linear in its second operand only.",
                advice="Differentiate it with jax.vjp instead of transposing it.")
        back = TriangularSolve(self.left_side, self.lower_half, not self.transpose_a,
                               self.conjugate_a, self.unit_diagonal)
        return [None, bind(back, a, ct)]

    def batch(self, size, xs, dims):
        (a, b), (da, db) = xs, dims
        if da is not None:
            return super().batch(size, xs, dims)
        # One matrix for all examples: their right sides are further columns (or rows).
        rank = len(aval_of(b).shape)
        b = moveaxis(b, db, rank - 1 if self.left_side else rank - 2)
        shape = aval_of(b).shape
        flat = (*shape[:-2], shape[-2] * shape[-1]) if self.left_side else shape
        if self.left_side:
            out = bind(self, a, reshape(b, (*shape[:-2], shape[-2] * size)))
            return reshape(out, shape), rank - 1
        flat = (*shape[:-3], shape[-3] * size, shape[-1])
        return reshape(bind(self, a, reshape(b, flat)), shape), rank - 2


def triangular_solve(a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Array:
    """Return the X with X op(A) = B, or with op(A) X = B if ``left_side``; A is triangular.

    Shapes: A (…, n, n); B (…, m, n), or (…, n, m) if ``left_side``, or a stack of vectors (…, n).
    ``lower`` names the triangle of A that is read, ``unit_diagonal`` takes its diagonal as ones;
    op(A) is A, transposed if ``transpose_a`` and conjugated if ``conjugate_a``.

    Raises: TypeError for dtypes or ranks, ValueError for sizes that do not fit.

    >>> a = jnp.array([[2., 0.], [1., 4.]])
    >>> lax.linalg.triangular_solve(a, jnp.array([2., 9.]), left_side=True, lower=True)
    Array([1., 2.], dtype=float32)
    """
    conjugate_a = conjugate_a and np.issubdtype(aval_of(a).dtype, np.complexfloating)
    single = aval_of(b).ndim == aval_of(a).ndim - 1
    if single:
        b = expand_dims(b, (-1 if left_side else -2,))
    out = bind(TriangularSolve(bool(left_side), bool(lower), bool(transpose_a), bool(conjugate_a),
                               bool(unit_diagonal)), a, b)
    return squeeze(out, (-1 if left_side else -2,)) if single else out

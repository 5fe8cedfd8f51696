"""How is a matrix written as P L U, and which permutation do pivots mean?

Read before: ``linalg.triangular``.  Read after: ``linalg.qr``.
Invariant: row i was exchanged with row ``pivots[i]`` >= i, one after the other; L has ones on its
diagonal, which are not stored.
Source: Golub & Van Loan, Matrix Computations (4th ed.), 3.4; LAPACK, getrf; the derivative by
matching the triangles of L⁻¹ P dA U⁻¹.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.compile.regions import read_part
from saem.compile.text import strong_aval
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import NOT_LINEAR, primitive
from saem.core.trace import bind
from saem.linalg.algebra import (
    I32,
    above,
    beside,
    block,
    dtype_of,
    eye,
    inverse_order,
    matmul,
    rows_in_order,
    tril,
    triu,
)
from saem.linalg.custom_calls import (
    custom_call,
    lapack,
    nan_unless,
    on_gpu,
    on_tpu,
    refuse_platform,
    status,
    xla_call,
)
from saem.linalg.families import MatrixOperation, each_matrix, weak_as_operands
from saem.linalg.triangular import TriangularSolve
from saem.ops.arithmetic import add
from saem.ops.linear import broadcast_in_dim, literal
from saem.typing import Array, ArrayLike


@primitive("lu")
class Lu(MatrixOperation):
    """L and U in one matrix (m, n), the pivots (k,), the permutation of rows (m,); k = min(m, n).

    The rows of x in the order of the permutation are L U.
    """

    multiple_results = True

    @weak_as_operands
    def typing(self, x):
        leading = self.check(x)
        m, n = x.shape[-2:]
        return [ShapedArray(x.shape, x.dtype), ShapedArray((*leading, min(m, n)), I32),
                ShapedArray((*leading, m), I32)]

    @each_matrix(2)
    def evaluate(self, x):
        x = x.copy()
        m, n = x.shape
        rows, pivots = np.arange(m, dtype=I32), np.arange(min(m, n), dtype=I32)
        for k in range(min(m, n)):
            column = x[k:, k]
            # BLAS compares complex numbers by the sum of their parts.
            size = np.abs(column.real) + np.abs(column.imag)
            p = pivots[k] = k + int(np.argmax(size))
            x[[k, p]], rows[[k, p]] = x[[p, k]], rows[[p, k]]
            if x[k, k] != 0:
                x[k + 1:, k] /= x[k, k]
            x[k + 1:, k + 1:] -= np.outer(x[k + 1:, k], x[k, k + 1:])
        return [x, pivots, rows]

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        leading = aval.ndim - 2
        packed, pivots, rows = ctx.out_avals
        if not aval.size:
            return [ctx.constant(0, packed), ctx.constant(0, pivots), ctx.iota(leading, rows)]
        if on_tpu(ctx):
            return xla_call(ctx, "LuDecomposition", [x], [packed, pivots, rows])
        if on_gpu(ctx):
            target = "cusolver_getrf_ffi"
        elif ctx.module.platform == "cpu":
            target = lapack("getrf", aval.dtype)
        else:
            raise refuse_platform(ctx, "lu")
        outs = [packed, pivots, status(aval.shape[:leading])]
        made, places, info = custom_call(ctx, target, [x], outs, leading=leading, reuse={0: 0})
        # A zero pivot (info > 0) is no failure: the decomposition exists.
        (made,) = nan_unless(ctx, info, [made], "GE")
        one = ctx.constant(1, pivots)
        places = ctx.elementwise("stablehlo.subtract", places, one, out=pivots)
        return [made, places, permutation(ctx, places, rows)]

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        packed, pivots, rows = bind(self, x)
        if t is None:
            return [packed, pivots, rows], [None, None, None]
        *lead, m, n = aval_of(x).shape
        k = min(m, n)
        dtype = dtype_of(x)
        shape = (*lead, m, m)
        swapped = rows_in_order(t, rows)
        # L and U made square by ones on the diagonal.
        low = tril(block(packed, (0, m), (0, k)), -1)
        if k < m:
            low = beside(low, broadcast_in_dim(literal(0, dtype), (*lead, m, m - k), ()))
        low = add(low, eye(shape, dtype, aval_of(low).explicit))
        high = triu(block(packed, (0, k), (0, n)))
        if k < n:
            rest = block(eye((*lead, n, n), dtype), (k, n), (0, n))
            high = above(high, rest)
        left = bind(TriangularSolve(True, True, False, False, True), low, swapped)
        both = bind(TriangularSolve(False, False, False, False, False), high, left)
        moved = add(matmul(low, tril(both, -1)), matmul(triu(both), high))
        return [packed, pivots, rows], [moved, None, None]

    transpose = NOT_LINEAR


def lu_solve(packed: Any, rows: Any, b: Any, trans: int = 0) -> Any:
    """Return a⁻¹ b for the square matrices of which ``packed`` and ``rows`` are results of ``lu``.

    ``trans``: 1 for the transpose of a, 2 for its conjugate transpose.
    """
    conjugated = trans == 2 and dtypes.is_complex(dtype_of(packed))
    if not trans:
        b = rows_in_order(b, rows)
        b = bind(TriangularSolve(True, True, False, False, True), packed, b)
        return bind(TriangularSolve(True, False, False, False, False), packed, b)
    b = bind(TriangularSolve(True, False, True, conjugated, False), packed, b)
    b = bind(TriangularSolve(True, True, True, conjugated, True), packed, b)
    return rows_in_order(b, inverse_order(rows))


def solve(a: Any, b: Any) -> Any:
    """Return a⁻¹ b for square matrices ``a``."""
    packed, _, rows = bind(Lu(), a)
    return lu_solve(packed, rows, b)


def permutation(ctx: Any, pivots: str, out: ShapedArray) -> str:
    """Write the permutations that exchanging i with ``pivots[i]``, one after the other, makes."""
    aval = ctx.avals[pivots]
    leading = aval.ndim - 1
    if on_gpu(ctx):
        return custom_call(ctx, "cu_lu_pivots_to_permutation", [pivots], [out],
                           leading=leading)[0]
    index = strong_aval((), I32)
    state = [index, aval, out]
    zero, one, count = (ctx.number(v) for v in (0, 1, aval.shape[-1]))
    places = ctx.iota(leading, out)
    single = strong_aval((*aval.shape[:-1], 1), I32)

    def step(i: str, pivots: str, rows: str) -> list[str]:
        starts = [zero] * leading + [i]
        other, here = (read_part(ctx, x, starts, single) for x in (pivots, rows))
        # The row that stands at ``other`` comes to i, and that of i to ``other``.
        at_other = ctx.compare("EQ", counts, ctx.stretch(other, out.shape))
        found = ctx.choose(at_other, rows, ctx.constant(0, out))
        there = ctx.reshape(ctx.reduce("add", found, 0, [leading],
                                       out=strong_aval(aval.shape[:-1], I32)), single.shape)
        rows = ctx.choose(at_other, ctx.stretch(here, out.shape), rows)
        at_i = ctx.compare("EQ", counts, i)
        rows = ctx.choose(at_i, ctx.stretch(there, out.shape), rows)
        return [ctx.elementwise("stablehlo.add", i, one, out=index), pivots, rows]

    counts = places
    condition = ctx.region(state, lambda i, _p, _r: [ctx.compare("LT", i, count)])
    body = ctx.region(state, step)
    return ctx.emit_many(f'"stablehlo.while"({zero}, {pivots}, {places})',
                         zero, pivots, places, outs=state, regions=[condition, body])[2]


@primitive("lu_pivots_to_permutation")
class LuPivotsToPermutation(MatrixOperation):
    """The order of ``permutation_size`` rows after row i was exchanged with row ``pivots[i]``."""

    permutation_size: int

    cores = (1,)

    def typing(self, pivots):
        if not dtypes.is_integer(pivots.dtype) or pivots.dtype != I32:
            raise errors.explained(
                errors.DTypeError, "lu_pivots_to_permutation.dtype",
                "lu_pivots_to_permutation does not accept dtype "
                f"{pivots.dtype.name} at position 0. Accepted dtypes at position 0 are subtypes of "
                "int32.", advice="Pivots come from jax.lax.linalg.lu.")
        if not pivots.ndim:
            raise errors.explained(
                errors.ShapeError, "lu_pivots_to_permutation.C1",
                "Input 0 to lu_pivots_to_permutation must have rank at least 1, but got shape=()",
                advice="Pivots come from jax.lax.linalg.lu.")
        if self.permutation_size < pivots.shape[-1]:
            raise errors.explained(
                errors.ShapeError, "lu_pivots_to_permutation.C1",
                f"Output permutation size {self.permutation_size} has to exceed the trailing "
                f"dimension of the pivots. Got pivots size {pivots.shape[-1:]}",
                advice="It is the number of rows.")
        return ShapedArray((*pivots.shape[:-1], self.permutation_size), I32)

    @each_matrix(1)
    def evaluate(self, pivots):
        rows = np.arange(self.permutation_size, dtype=I32)
        for i, p in enumerate(pivots):
            rows[[i, p]] = rows[[p, i]]
        return rows

    def lower(self, ctx, pivots):
        if not ctx.avals[pivots].size:
            return ctx.iota(ctx.out_avals[0].ndim - 1, ctx.out_avals[0])
        return permutation(ctx, pivots, ctx.out_avals[0])

    def jvp(self, primals, tangents):
        return bind(self, *primals), None

    transpose = NOT_LINEAR


def lu(x: ArrayLike) -> list[Any]:
    """Return L and U in one matrix, the pivots, and the permutation of rows that makes x = P L U.

    Shapes: x (…, m, n); results (…, m, n), (…, min(m, n)) and (…, m).  L is below the diagonal, its
    diagonal of ones is not stored; ``x[perm]`` is L U.

    Raises: TypeError for dtypes or ranks that do not fit.

    >>> lax.linalg.lu(jnp.array([[1., 2.], [3., 4.]]))[1]
    Array([1, 1], dtype=int32)
    """
    return bind(Lu(), x)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the order of ``permutation_size`` rows that exchanges by ``pivots`` lead to.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1]), 3)
    Array([2, 1, 0], dtype=int32)
    """
    return bind(LuPivotsToPermutation(int(permutation_size)), pivots)

"""How is a matrix written as a rotation times a positive matrix, by products and QR alone?

Each step maps every singular value x to x (a + b x²) / (1 + c x²), with weights that lift the
least one as fast as can be; all of them come to 1 in a few steps, whatever they were.  With the
eigenvalues of the positive part this is a singular value decomposition without LAPACK, as on a TPU.

Read before: ``linalg.qr``, ``linalg.eigen``.
Invariant: x = U H with UᴴU = 1 and H Hermitian, when the last result is True.
Source: Nakatsukasa, Bai & Gygi, "Optimizing Halley's iteration for computing the matrix polar
decomposition" (2010), algorithm 1 and eqs. 3.10 and 5.9; Higham & Papadimitriou, "A new parallel
algorithm for computing the singular value decomposition" (1994): from the polar decomposition.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saem.core import dtypes
from saem.core.trace import bind
from saem.jit.library import library_function
from saem.linalg.algebra import (
    above,
    adjoint,
    beside,
    block,
    columns_scaled,
    diagonal,
    dtype_of,
    eye,
    matmul,
    number,
    shape_of,
    symmetrized,
    zeros_like,
)
from saem.linalg.cholesky import cholesky
from saem.linalg.eigen import Eigh
from saem.linalg.qr import qr
from saem.linalg.triangular import triangular_solve
from saem.loops.while_loop import while_loop
from saem.ops.convert import convert
from saem.ops.filling import full_like
from saem.ops.linear import literal, reduce_sum
from saem.ops.numbers import max as greater
from saem.ops.numbers import sign
from saem.ops.reduce import reduce_max
from saem.ops.select import select_n
from saem.ops.shape import rev
from saem.transform.mapping import vmap


def weights(least: float) -> tuple[float, float, float, float]:
    """Return a, b, c for singular values in (least, 1), and the least one after the step."""
    square = least * least
    d = (4 * (1 - square) / square ** 2) ** (1 / 3)
    root = math.sqrt(1 + d)
    a = root + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
    b = (a - 1) ** 2 / 4
    c = a + b - 1
    return a, b, c, least * (a + b * square) / (1 + c * square)


def plan(eps: float) -> list[tuple[float, float, float]]:
    """Return the weights of the steps after which all singular values above ``eps`` are near 1."""
    least = eps
    steps: list[tuple[float, float, float]] = []
    while 1 - least > 0.05 and len(steps) < 12:
        a, b, c, least = weights(least)
        least = min(least, 1.0)
        steps.append((a, b, c))
    return steps


def by_qr(u: Any, a: float, b: float, c: float) -> Any:
    """Return the step where c is large: by a QR decomposition, which is stable."""
    m, n = u.shape
    q, _ = qr(above(u * math.sqrt(c), eye((n, n), u.dtype)), full_matrices=False)
    product = matmul(q[:m], adjoint(q[m:]))
    return u * (b / c) + product * ((a - b / c) / math.sqrt(c))


def by_cholesky(u: Any, a: float, b: float, c: float) -> Any:
    """Return the step by a Cholesky decomposition of 1 + c uᴴ u."""
    z = matmul(adjoint(u), u) * c + eye((u.shape[1],) * 2, u.dtype)
    low = cholesky(z, symmetrize_input=False)
    y = triangular_solve(low, adjoint(u), left_side=True, lower=True)
    y = triangular_solve(low, y, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    return u * (b / c) + adjoint(y) * (a - b / c)


@library_function(static_argnames=("most", "eps", "hermitian"), whole=True)
def polar(x: Any, m: Any, n: Any, most: int, eps: float, hermitian: bool) -> tuple:
    """Return U and H of the first ``m`` rows and ``n`` columns of the matrix ``x``, the number of
    steps, at most ``most``, and whether they converged to ``eps``."""
    rows, columns = np.arange(x.shape[0])[:, None], np.arange(x.shape[1])[None]
    x = select_n((rows < m) & (columns < n), zeros_like(x), x)
    real = dtypes.real_dtype(x.dtype)
    size = abs(x)
    # The root of the product of two norms is no less than the greatest singular value.
    norms = [greater(reduce_max(reduce_sum(size, (axis,)), (0,)), literal(0, real))
             for axis in (0, 1)]
    bound = norms[0] ** 0.5 * norms[1] ** 0.5
    u = x / select_n(bound == 0, bound, literal(1, real)).astype(x.dtype)
    steps = plan(eps)[:most]
    for a, b, c in steps:
        u = (by_qr if c > 100 else by_cholesky)(u, a, b, c)
        u = symmetrized(u) if hermitian else u
    near = literal((4 * eps) ** (1 / 3), real)

    def unfinished(state: Any) -> Any:
        count, _, moving = state
        return moving & (count < most)

    def step(state: Any) -> Any:
        count, u, _ = state
        new = by_cholesky(u, 3.0, 1.0, 3.0)
        new = symmetrized(new) if hermitian else new
        moved = new - u
        far = reduce_sum((moved * moved.conj()).real, (0, 1)) ** 0.5 > near
        return count + 1, new, far

    count, u, moving = while_loop(unfinished, step, (np.int32(len(steps)), u, np.True_))
    u = u * 1.5 - matmul(u, matmul(adjoint(u), u)) * 0.5  # one step of Newton's
    h = symmetrized(matmul(adjoint(u), x))
    return u, h, convert(count, np.dtype(np.int32), weak_type=True), ~moving


def svd_by_polar(x: Any, full_matrices: bool, compute_uv: bool) -> list[Any]:
    """Return Σ, and with ``compute_uv`` U and Vᴴ, of the matrices ``x`` = U Σ Vᴴ.

    x = W H, H = V Σ Vᴴ, U = W V; where a singular value is zero, W V has no column, and a QR
    decomposition gives it one.
    """
    if len(shape_of(x)) > 2:
        return vmap(lambda one: svd_by_polar(one, full_matrices, compute_uv))(x)
    m, n = shape_of(x)
    if m < n:
        s, *vectors = svd_by_polar(adjoint(x), full_matrices, compute_uv)
        return [s, *map(adjoint, reversed(vectors))]
    w, h, _, _ = polar(x, m, n, most=10, eps=float(dtypes.finfo(dtype_of(x)).eps), hermitian=False)
    v, s = bind(Eigh(True, True), h)
    v, s = rev(v, (1,)), greater(rev(s, (0,)), number(s, 0))
    if not compute_uv:
        return [s]
    q, r = qr(matmul(w, v), full_matrices=full_matrices)
    phases = sign(diagonal(block(r, (0, n), (0, n))))
    phases = select_n(phases == 0, phases, full_like(phases, 1))
    first = columns_scaled(block(q, (0, m), (0, n)), phases)
    u = beside(first, block(q, (0, m), (n, m))) if full_matrices else first
    return [s, u, adjoint(v)]

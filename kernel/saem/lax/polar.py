"""How is a matrix written as a rotation times a positive matrix, by products and QR alone?

Each step maps every singular value x to x (a + b x²) / (1 + c x²), with weights that lift the
least one as fast as can be; all of them come to 1 in a few steps, whatever they were.

Read before: ``linalg.qr``.
Invariant: x = U H with UᴴU = 1 and H Hermitian, when the last result is True.
Source: Nakatsukasa, Bai & Gygi, "Optimizing Halley's iteration for computing the matrix polar
decomposition" (2010), algorithm 1 and eqs. 3.10 and 5.9.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.jit.library import library_function
from saem.linalg.algebra import above, adjoint, eye, matmul, symmetrized
from saem.linalg.cholesky import cholesky
from saem.linalg.qr import qr
from saem.linalg.triangular import triangular_solve
from saem.loops.while_loop import while_loop
from saem.numpy.axes import array_argument
from saem.numpy.reductions import max as greatest
from saem.numpy.reductions import sum as total
from saem.numpy.searching import where
from saem.ops.convert import convert
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


def qdwh(x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None,
         eps: float | None = None, dynamic_shape: tuple[int, int] | None = None
         ) -> tuple[Any, Any, Any, Any]:
    """Return U and H with x = U H, the number of steps, and whether they converged.

    Shapes: x (…, m, n) with m >= n, U (…, m, n), H (…, n, n).  ``eps``: the accuracy;
    ``dynamic_shape``: how many rows and columns of x count, the others being taken as zero.

    Raises: ValueError for more columns than rows, and for integers.

    >>> lax.linalg.qdwh(jnp.array([[2., 0.], [0., 3.]]))[0].round(3)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    x = array_argument("qdwh", x)
    if not dtypes.is_inexact(x.dtype):
        raise errors.explained(
            errors.ArgumentError, "qdwh.dtype",
            f"qdwh needs floating point or complex numbers, got {x.dtype.name}.",
            advice="Convert first, for example with x.astype(jnp.float32).")
    if x.ndim < 2 or x.shape[-2] < x.shape[-1]:
        raise errors.explained(
            errors.ArgumentError, "qdwh.shape",
            f"The input matrix of shape M x N must have M >= N, got {x.shape}.",
            advice="Decompose the adjoint instead.")
    if x.ndim > 2:
        found = vmap(lambda one: qdwh(
            one, is_hermitian=is_hermitian, max_iterations=max_iterations, eps=eps,
            dynamic_shape=dynamic_shape))(x.reshape(-1, *x.shape[-2:]))
        return tuple(part.reshape(*x.shape[:-2], *part.shape[1:]) for part in found)
    m, n = x.shape if dynamic_shape is None else dynamic_shape
    most = 10 if max_iterations is None else int(max_iterations)
    eps = float(dtypes.finfo(x.dtype).eps) if eps is None else float(eps)
    return _qdwh(x, m, n, most=most, eps=eps, hermitian=bool(is_hermitian))


@library_function(static_argnames=("most", "eps", "hermitian"), whole=True)
def _qdwh(x: Any, m: Any, n: Any, most: int, eps: float, hermitian: bool) -> tuple:
    rows, columns = np.arange(x.shape[0])[:, None], np.arange(x.shape[1])[None]
    x = where((rows < m) & (columns < n), x, 0)
    real = np.dtype(dtypes.real_dtype(x.dtype)).type
    size = abs(x)
    # The root of the product of two norms is no less than the greatest singular value.
    bound = greatest(total(size, axis=0), initial=0) ** 0.5 * greatest(
        total(size, axis=1), initial=0) ** 0.5
    u = x / where(bound == 0, real(1), bound).astype(x.dtype)
    steps = plan(eps)[:most]
    for a, b, c in steps:
        u = (by_qr if c > 100 else by_cholesky)(u, a, b, c)
        u = symmetrized(u) if hermitian else u
    near = real((4 * eps) ** (1 / 3))

    def unfinished(state: Any) -> Any:
        count, _, moving = state
        return moving & (count < most)

    def step(state: Any) -> Any:
        count, u, _ = state
        new = by_cholesky(u, 3.0, 1.0, 3.0)
        new = symmetrized(new) if hermitian else new
        moved = new - u
        far = total((moved * moved.conj()).real) ** 0.5 > near
        return count + 1, new, far

    count, u, moving = while_loop(unfinished, step, (np.int32(len(steps)), u, np.True_))
    u = u * 1.5 - matmul(u, matmul(adjoint(u), u)) * 0.5  # one step of Newton's
    h = symmetrized(matmul(adjoint(u), x))
    return u, h, convert(count, np.dtype(np.int32), weak_type=True), ~moving

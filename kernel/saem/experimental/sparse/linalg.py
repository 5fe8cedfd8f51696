"""How are eigenvectors and solutions found for a matrix that is sparse, or only a function?

``lobpcg_standard`` finds the largest eigenvalues of a symmetric operator from its products with
blocks of vectors: each step looks for the best vectors in the span of the present ones, their
residuals and the last step's directions.  ``spsolve``, which solves a system in CSR form, is in
``solving``.

Read before: ``saem.scipy.sparse.linalg``, which iterates on systems.
Invariant: results fulfil their equations (tests/kernel/test_sparse_linalg.py).
Source: Knyazev 2001, "Toward the optimal preconditioned eigensolver"; Duersch and others 2018, "A
robust and efficient implementation of LOBPCG"; Stathopoulos and Wu 2002 (orthonormalization by
the eigenvectors of inner products).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes, errors, lazy
from saem.experimental.sparse.solving import spsolve, spsolve_p
from saem.typing import Array

__getattr__ = lazy.says_what_is_left_out(__name__)

__all__ = ["lobpcg_standard", "spsolve", "spsolve_p"]


def lobpcg_standard(A: Array | Callable[[Array], Array], X: Array, m: int = 100,
                    tol: Array | float | None = None) -> tuple[Array, Array, Array]:
    """Return the k largest eigenvalues of a symmetric matrix, eigenvectors, and steps taken.

    ``A``: f[n n], or the function that multiplies f[n j] by it; ``X``: f[n k], where to begin, with
    5 k < n; ``m``: most steps.  It ends early when each residual is below
    ``tol * 10 n (λ + |A v|)`` (``tol`` None: the machine epsilon).  Returns (f[k], f[n k], int).

    Raises: ValueError for operands that do not fit or are not floating.

    >>> import saem.numpy as jnp
    >>> from saem.experimental.sparse.linalg import lobpcg_standard
    >>> A = jnp.diag(jnp.arange(20.))
    >>> values, vectors, steps = lobpcg_standard(A, jnp.eye(20)[:, :2] + 0.1)
    >>> jnp.round(values, 3)
    Array([19., 18.], dtype=float32)
    """
    X = jnp.asarray(X)
    n, k = _checked(A, X)
    apply = _product_with(A, X)
    limit = float(dtypes.finfo(X.dtype).eps) if tol is None else tol
    U, _ = _orthonormal(X, jnp.zeros((n, 0), X.dtype))
    values, U = _best(apply, U, jnp.ones(k, bool), k)[:2]

    def goes_on(state: tuple) -> Array:
        step, _, _, _, done = state
        return (step < m) & ~done

    def step(state: tuple) -> tuple:
        count, values, U, P, _ = state
        R = apply(U) - U * values[None]
        W, alive = _orthonormal(jnp.concatenate([R, P], 1), U)
        S = jnp.concatenate([U, W], 1)
        values, U, C = _best(apply, S, jnp.concatenate([jnp.ones(k, bool), alive]), k)
        P = _product(W, C[k:])
        return count + 1, values, U, P, _converged(apply, values, U, limit, n)

    done = _converged(apply, values, U, limit, n)
    begin = (jnp.int32(0), values, U, jnp.zeros_like(X), done)
    count, values, U, _, _ = lax.while_loop(goes_on, step, begin)
    return values, U, count


def _checked(A: Any, X: Array) -> tuple[int, int]:
    """Return the sizes of ``X``.  Raises: ValueError."""
    if X.ndim != 2 or not X.shape[1]:
        raise errors.explained(
            errors.ArgumentError, "lobpcg.C1",
            f"must have search dim > 0, got {X.shape[1] if X.ndim == 2 else X.shape}",
            advice="X has one column for each eigenvector that is wanted.")
    n, k = X.shape
    if k * 5 >= n:
        raise errors.explained(
            errors.ArgumentError, "lobpcg.C2",
            f"expected search dim * 5 < matrix dim (got {k * 5}, {n})",
            advice="Find all eigenvectors of so small a matrix with jnp.linalg.eigh.")
    if not dtypes.is_inexact(X.dtype):
        raise errors.explained(errors.ArgumentError, "lobpcg.C3",
                               f"data type {X.dtype.name} not inexact",
                               advice="Convert A and X to a float dtype.")
    if not callable(A) and (A.dtype != X.dtype or A.shape != (n, n)):
        raise errors.explained(
            errors.ArgumentError, "lobpcg.C4",
            f"A, X must have same dtypes (were {A.dtype.name}, {X.dtype.name}), and A must have "
            f"shape {(n, n)}, got {A.shape}", advice="X has a row for each row of A.")
    return n, k


def _product_with(A: Array | Callable[[Array], Array], X: Array) -> Callable[[Array], Array]:
    """Return the function that multiplies a block of columns by ``A``; it is tried on ``X``.

    Raises: ValueError if the product has another type than ``X``.
    """
    apply = A if callable(A) else lambda v: _product(A, v)
    out = apply(X)
    if out.shape != X.shape or out.dtype != X.dtype:
        n = X.shape[0]
        raise errors.explained(
            errors.ArgumentError, "lobpcg.C5",
            f"A must be ({n}, {n}) matrix A, got output {out.shape} of {out.dtype.name} for "
            f"{X.shape} of {X.dtype.name}",
            advice="The function multiplies a block of columns by a square matrix.")
    return apply


def _product(x: Array, y: Array) -> Array:
    return jnp.dot(x, y, precision=lax.Precision.HIGHEST)


def _orthonormal(B: Array, U: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis of the columns of ``B`` without their parts along ``U``.

    Columns that depend on others become zero; the second result marks those that remain.
    """
    small = float(dtypes.finfo(B.dtype).eps)
    alive = jnp.ones(B.shape[1], bool)
    for _ in range(2):  # once loses digits where columns are nearly parallel
        size = jnp.linalg.norm(B, axis=0)
        B = B / jnp.where(size > 0, size, 1)[None]
        before = B
        B = B - _product(U, _product(U.T, B))
        lost = jnp.linalg.norm(B, axis=0) <= 10 * small * jnp.linalg.norm(before, axis=0)
        B = jnp.where(lost[None], 0, B)
        weights, vectors = jnp.linalg.eigh(_product(B.T, B))
        alive = weights > small * B.shape[1] * jnp.max(weights, initial=0)
        scale = jnp.where(alive, 1 / jnp.sqrt(jnp.where(alive, weights, 1)), 0)
        B = _product(B, vectors) * scale[None]
    return B, alive


def _best(apply: Callable, S: Array, alive: Array, k: int) -> tuple[Array, Array, Array]:
    """Return the k largest eigenvalues on the span of ``S``, the vectors, and their combination."""
    G = _product(S.T, apply(S))
    G = (G + G.T) / 2
    # A column of zeros must not come out as the eigenvalue 0: it is put below all others.
    bottom = -2 * jnp.linalg.norm(G) - 1
    G = jnp.where(alive[:, None] & alive[None], G, 0) + jnp.diag(jnp.where(alive, 0, bottom))
    values, vectors = jnp.linalg.eigh(G)
    C = vectors[:, ::-1][:, :k]
    U, _ = jnp.linalg.qr(_product(S, C))  # rounding has made them a little less orthonormal
    return values[::-1][:k] / jnp.sum(C * C, axis=0), U, C


def _converged(apply: Callable, values: Array, U: Array, tol: Any, n: int) -> Array:
    image = apply(U)
    residual = jnp.linalg.norm(image - U * values[None], axis=0)
    return jnp.all(residual < tol * 10 * n * (values + jnp.linalg.norm(image, axis=0)))

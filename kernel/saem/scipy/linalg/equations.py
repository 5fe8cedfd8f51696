"""How does SciPy solve systems of linear equations with a decomposition at hand?

Read before: ``numpy.linalg.equations``.
Invariant: the arguments ``overwrite_*`` and ``check_finite`` change nothing.
Source: the SciPy reference, scipy.linalg; Bartels & Stewart, "Solution of the matrix equation
AX + XB = C" (1972).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.derivatives.implicit_solve import custom_linear_solve
from saem.derivatives.stop_gradient import stop_gradient
from saem.jit.library import library_function
from saem.linalg.algebra import adjoint, conjugate, eye, matmul, triu
from saem.linalg.cholesky import cholesky
from saem.linalg.eigen import eig
from saem.linalg.lu import lu, lu_pivots_to_permutation
from saem.linalg.lu import lu_solve as solve_by_lu
from saem.linalg.lu import solve as solve_at_once
from saem.linalg.reduction import schur
from saem.linalg.triangular import triangular_solve
from saem.loops.while_loop import fori_loop
from saem.numpy.array_properties import ndim, shape
from saem.numpy.axes import array_argument
from saem.numpy.creation import asarray
from saem.numpy.linalg import det as _det
from saem.numpy.linalg import equations
from saem.numpy.manipulation import broadcast_to
from saem.numpy.promote import broadcast_shapes, promote_dtypes_inexact
from saem.numpy.searching import where
from saem.ops.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from saem.typing import Array, ArrayLike


def inexact(name: str, *args: Any) -> list[Any]:
    """Return arguments as floating point or complex numbers of one dtype."""
    arrays = [array_argument(name, x) for x in args]
    return promote_dtypes_inexact(*arrays)


def as_matrices(*args: Any) -> list[Any]:
    """Return arguments with nested sequences as arrays, which some functions take, as in JAX.

    Raises: ValueError for None.
    """
    return [asarray(x) if x is None or isinstance(x, (list, tuple)) else x for x in args]


def refuse(name: str, tag: str, sentence: str) -> Exception:
    return errors.explained(errors.ArgumentError, f"{name}.{tag}", sentence,
                            advice=f"See scipy.linalg.{name}.")


def check_rank(name: str, a: Any) -> None:
    """Refuse a vector and a number.  Raises: ShapeError (a TypeError and a ValueError)."""
    if a.ndim < 2:
        raise errors.explained(
            errors.ShapeError, f"{name}.rank",
            f"Input 0 to {name} must have rank at least 2, but got shape={a.shape}",
            advice="Give a matrix, for example x[None] or x[:, None].")


def holds_vectors(name: str, a: Any, b: Any) -> bool:
    """Return whether b is a vector, or, with one axis less than the matrices a, a stack of them."""
    rank = ndim(b)
    if rank > 1 and rank == ndim(a) - 1 and shape(b)[-1] == shape(a)[-1]:
        warnings.warn(
            f"jax.scipy.linalg.{name}: a stack of vectors as b is deprecated, and will be read as "
            f"a matrix. Write {name}(…, b[..., None]).squeeze(-1).", FutureWarning, stacklevel=3)
        return True
    return rank == 1


def right_sides(name: str, a: Any, b: Any, vectors: bool) -> tuple[Any, Any]:
    """Return matrices a and right sides b (…, n, k) with equal leading axes."""
    shapes = a.shape, b.shape
    b = b[..., None] if vectors else b
    if a.ndim < 2 or b.ndim < 2 or a.shape[-2] != a.shape[-1] or b.shape[-2] != a.shape[-1]:
        raise refuse(name, "sizes", f"inconsistent size for core dimension 'n': {name} needs "
                     f"(…, n, n) and (n,) or (…, n, k), got {shapes[0]} and {shapes[1]}.")
    leading = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (broadcast_to(a, (*leading, *a.shape[-2:])),
            broadcast_to(b, (*leading, *b.shape[-2:])))


@library_function(static_argnames=("lower",), whole=True)
def _cholesky(a: Any, lower: bool) -> Any:
    (a,) = inexact("cholesky", *as_matrices(a))
    check_rank("cholesky", a)
    if a.shape[-1] != a.shape[-2]:
        raise refuse("cholesky", "square", "The input to cholesky must be a square matrix. Got "
                     f"shape {a.shape[-2:]}.")
    if lower:
        return cholesky(a, symmetrize_input=False)
    return adjoint(cholesky(adjoint(a), symmetrize_input=False))


def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Any, bool]:
    """Return the Cholesky factor of ``a`` (…, n, n), and ``lower``, for ``cho_solve``.

    >>> jax.scipy.linalg.cho_factor(jnp.array([[4., 2.], [2., 5.]]))[1]
    False
    """
    return _cholesky(a, lower=bool(lower)), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: ArrayLike, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:
    """Return x with a x = b, given ``cho_factor(a)``.

    >>> factor = jax.scipy.linalg.cho_factor(jnp.array([[4., 0.], [0., 2.]]))
    >>> jax.scipy.linalg.cho_solve(factor, jnp.array([4., 4.]))
    Array([1.       , 1.9999999], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solve(c, b, bool(lower), holds_vectors("cho_solve", c, b))


@library_function(static_argnums=(2, 3), whole=True)
def _cho_solve(c: Any, b: Any, lower: bool, vectors: bool) -> Any:
    c, b = inexact("cho_solve", c, b)
    c, b = right_sides("cho_solve", c, b, vectors)
    out = solve_by_cholesky(c, b, lower)
    return out[..., 0] if vectors else out


def solve_by_cholesky(c: Any, b: Any, lower: bool) -> Any:
    """Return x with c cᴴ x = b, or cᴴ c x = b if ``c`` is not ``lower`` triangular."""
    first = triangular_solve(c, b, left_side=True, lower=lower, transpose_a=not lower,
                             conjugate_a=not lower)
    return triangular_solve(c, first, left_side=True, lower=lower, transpose_a=lower,
                            conjugate_a=lower)


@library_function(static_argnames=("lower", "vectors"), whole=True)
def _solve_positive(a: Any, b: Any, *, lower: bool, vectors: bool) -> Any:
    """Return a⁻¹ b for Hermitian positive definite ``a``, whose one triangle is decomposed.

    Derivatives are further solutions with the same factor, and those of the whole matrix.
    """
    a, b = right_sides("solve", *inexact("solve", a, b), vectors)
    factor = _cholesky(stop_gradient(a), lower=lower)

    def solve(_: Any, side: Any) -> Any:
        return solve_by_cholesky(factor, side, lower)

    def transpose_solve(_: Any, side: Any) -> Any:  # the transpose of a is its conjugate
        return conjugate(solve(_, conjugate(side)))

    real = not dtypes.is_complex(a.dtype)
    out = custom_linear_solve(lambda x: matmul(a, x), b, solve,
                              None if real else transpose_solve, symmetric=real)
    return out[..., 0] if vectors else out


@library_function(static_argnames=("overwrite_a", "check_finite"))
def lu_factor(a: ArrayLike, overwrite_a: bool = False,
              check_finite: bool = True) -> tuple[Any, Any]:
    """Return L and U in one matrix and the pivots of ``a`` (…, m, n), for ``lu_solve``.

    >>> jax.scipy.linalg.lu_factor(jnp.array([[0., 1.], [2., 0.]]))[1]
    Array([1, 1], dtype=int32)
    """
    (a,) = inexact("lu_factor", *as_matrices(a))
    packed, pivots, _ = lu(a)
    return packed, pivots


def lu_solve(lu_and_piv: tuple[Any, Any], b: ArrayLike, trans: int = 0, overwrite_b: bool = False,
             check_finite: bool = True) -> Array:
    """Return x with a x = b (aᵀ x = b, aᴴ x = b for ``trans`` 1, 2), given ``lu_factor(a)``.

    Raises: ValueError for another ``trans``, or sizes that do not fit.

    >>> factor = jax.scipy.linalg.lu_factor(jnp.array([[0., 1.], [2., 0.]]))
    >>> jax.scipy.linalg.lu_solve(factor, jnp.array([3., 4.]))
    Array([2., 3.], dtype=float32)
    """
    packed, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise refuse("lu_solve", "trans", f"'trans' value must be 0, 1, or 2, got {trans}")
    return _lu_solve(packed, pivots, b, int(trans), holds_vectors("lu_solve", packed, b))


@library_function(static_argnums=(3, 4), whole=True)
def _lu_solve(packed: Any, pivots: Any, b: Any, trans: int, vectors: bool) -> Any:
    packed, b = inexact("lu_solve", packed, b)
    packed, b = right_sides("lu_solve", packed, b, vectors)
    pivots = broadcast_to(array_argument("lu_solve", pivots), packed.shape[:-1])
    rows = lu_pivots_to_permutation(pivots, packed.shape[-1])
    out = solve_by_lu(packed, rows, b, trans)
    return out[..., 0] if vectors else out


def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False,
          overwrite_b: bool = False, debug: bool = False, check_finite: bool = True,
          assume_a: str = "gen") -> Array:
    """Return x with a x = b, for ``a`` (…, n, n) and ``b`` (n,) or (…, n, k).

    ``assume_a``: "pos" for positive definite matrices, which are decomposed in half the time, of
    the ``lower`` triangle or the upper one; "gen", "sym" and "her" decompose a = P L U.

    Raises: ValueError for another kind, or sizes that do not fit.

    >>> jax.scipy.linalg.solve(jnp.array([[2., 0.], [1., 4.]]), jnp.array([2., 9.]))
    Array([1., 2.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise refuse("solve", "assume_a", "Expected assume_a to be one of ['gen', 'sym', 'her', "
                     f"'pos']; got {assume_a!r}")
    if assume_a != "pos":
        return equations.solve(a, b)
    return _solve_positive(a, b, lower=bool(lower), vectors=holds_vectors("solve", a, b))


def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False,
                     unit_diagonal: bool = False, overwrite_b: bool = False, debug: Any = None,
                     check_finite: bool = True) -> Array:
    """Return x with a x = b for triangular ``a`` (…, n, n), and ``b`` (n,) or (…, n, k).

    ``trans``: 0 or "N", 1 or "T" for the transpose, 2 or "C" for its conjugate.

    Raises: ValueError for another ``trans``, or sizes that do not fit.

    >>> jax.scipy.linalg.solve_triangular(jnp.array([[2., 0.], [1., 4.]]), jnp.array([2., 9.]),
    ...     lower=True)
    Array([1., 2.], dtype=float32)
    """
    a, b = as_matrices(a, b)
    kinds = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}
    if trans not in kinds:
        raise refuse("solve_triangular", "trans", f"Invalid 'trans' value {trans}")
    return _solve_triangular(a, b, kinds[trans], bool(lower), bool(unit_diagonal),
                             holds_vectors("solve_triangular", a, b))


@library_function(static_argnums=(2, 3, 4, 5), whole=True)
def _solve_triangular(a: Any, b: Any, trans: int, lower: bool, unit_diagonal: bool,
                      vectors: bool) -> Any:
    a, b = inexact("solve_triangular", a, b)
    a, b = right_sides("solve_triangular", a, b, vectors)
    out = triangular_solve(a, b, left_side=True, lower=lower, transpose_a=trans > 0,
                           conjugate_a=trans == 2, unit_diagonal=unit_diagonal)
    return out[..., 0] if vectors else out


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the inverses of ``a`` (…, n, n).

    >>> jax.scipy.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return equations.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the determinants of ``a`` (…, n, n).

    >>> jax.scipy.linalg.det(jnp.array([[2., 1.], [1., 3.]]))
    Array(5., dtype=float32)
    """
    return _det(a)


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur",
                    tol: float = 1e-8) -> Array:
    """Return X with A X + X B = C, for A (m, m), B (n, n), C (m, n).

    ``method``: "schur", by triangular forms, or "eigen", by eigenvectors.  NaN if a sum of
    eigenvalues of A and B is within ``tol`` of zero, where X is not determined.

    Raises: ValueError for sizes that do not fit, or another method.

    >>> jax.scipy.linalg.solve_sylvester(jnp.eye(2), jnp.eye(2), 2 * jnp.eye(2)).round(3)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    A, B, C = as_matrices(A, B, C)
    A, B, C = inexact("solve_sylvester", A, B, C)
    m, n = A.shape[:1], B.shape[:1]
    if not m or not n or A.shape != m + m or B.shape != n + n or C.shape != m + n:
        raise refuse("solve_sylvester", "sizes", "Incompatible shapes for Sylvester equation: "
                     f"A: {A.shape} B: {B.shape} C: {C.shape}")
    if method not in ("schur", "eigen"):
        raise refuse("solve_sylvester", "method", f"Unrecognized method {method}. The two valid "
                     'methods are either "schur" or "eigen".')
    return _solve_sylvester(A, B, C, tol, method=method)


@library_function(static_argnames=("method",))
def _solve_sylvester(A: Any, B: Any, C: Any, tol: Any, method: str) -> Any:
    dtype = dtypes.complex_dtype(A.dtype)
    a, b, c = (x.astype(dtype) for x in (A, B, C))
    if method == "eigen":
        (p, v), (q, w) = (eig(x, compute_left_eigenvectors=False) for x in (a, b))
        sums = p[:, None] + q[None, :]
        inner = matmul(solve_at_once(v, c), w) / sums
        # Y = inner w⁻¹, that is wᵀ Yᵀ = innerᵀ.
        out = matmul(v, solve_at_once(w.T, inner.T).T)
    else:
        (r, u), (s, v) = schur(a), schur(b)
        f = matmul(matmul(adjoint(u), c), v)
        sums = r.diagonal()[:, None] + s.diagonal()[None, :]
        identity = eye(r.shape, dtype)

        def column(k: Any, y: Any) -> Any:
            """Solve for column k, given those before; the others are zero."""
            of_s = dynamic_index_in_dim(s, k, 1)
            right = dynamic_index_in_dim(f, k, 1) - matmul(y, of_s)
            shifted = triu(r) + identity * dynamic_index_in_dim(of_s, k, 0)
            found = triangular_solve(shifted, right, left_side=True)
            return dynamic_update_index_in_dim(y, found, k, 1)

        y = fori_loop(0, s.shape[0], column, f * 0)
        out = matmul(matmul(u, y), adjoint(v))
    out = where((abs(sums) < tol).any(), np.nan, out)
    return out if dtypes.is_complex(aval_of(A).dtype) else out.real

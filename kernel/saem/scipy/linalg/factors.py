"""How does SciPy call the decompositions?

Read before: ``saem.linalg``, ``numpy.linalg.decompositions``.
Invariant: the arguments ``overwrite_*`` and ``check_finite`` change nothing.
Source: the SciPy reference, scipy.linalg; Golub & Van Loan, Matrix Computations (4th ed.), 8.4.1
(bisection), 7.4; Nakatsukasa, Bai & Gygi, "Optimizing Halley's iteration for computing the matrix
polar decomposition" (2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.lax.polar import qdwh
from saem.linalg import algebra, eigen, reduction
from saem.linalg import qr as qr_ops
from saem.linalg import svd as svd_ops
from saem.linalg.algebra import (
    adjoint,
    columns_scaled,
    conjugate,
    inverse_order,
    matmul,
    rows_in_order,
    tril,
    triu,
)
from saem.linalg.lu import lu as lu_op
from saem.loops.scan import scan
from saem.loops.while_loop import fori_loop
from saem.numpy.joining import concatenate
from saem.numpy.manipulation import broadcast_to
from saem.numpy.matrices import diag, eye
from saem.numpy.reductions import max as greatest
from saem.numpy.searching import where
from saem.ops.filling import broadcasted_iota
from saem.scipy.linalg.equations import _cholesky, as_matrices, check_rank, inexact, refuse
from saem.typing import Array, ArrayLike


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
             ) -> Array:
    """Return U with a = Uᴴ U, or with ``lower`` L with a = L Lᴴ, of ``a`` (…, n, n).

    >>> jax.scipy.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]), lower=True)
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return _cholesky(a, lower=bool(lower))


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        overwrite_a: bool = False, check_finite: bool = True,
        lapack_driver: str = "gesdd") -> Array | tuple[Array, Array, Array]:
    """Return U, S and Vh with a = U diag(S) Vh; only S unless ``compute_uv``.

    >>> jax.scipy.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    algorithm = svd_ops.SvdAlgorithm.QR if lapack_driver == "gesvd" else None
    return _svd(a, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
                algorithm=algorithm)


@library_function(static_argnames=("full_matrices", "compute_uv", "algorithm"))
def _svd(a: Any, full_matrices: bool, compute_uv: bool, algorithm: Any) -> Any:
    (a,) = inexact("svd", *as_matrices(a))
    return svd_ops.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm)


def eigh(a: ArrayLike, b: None = None, lower: bool = True, eigvals_only: bool = False,
         overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
         eigvals: None = None, type: int = 1,
         check_finite: bool = True) -> Array | tuple[Array, Array]:
    """Return the eigenvalues, ascending, and the eigenvectors of Hermitian ``a`` (…, n, n).

    Raises: NotImplementedError for generalised problems, or a part of the values.

    >>> jax.scipy.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    for given, what in ((b is None, "b=None"), (type == 1, "type=1"),
                        (eigvals is None, "eigvals=None")):
        if not given:
            raise errors.explained(
                NotImplementedError, "eigh.part", f"Only the {what} case of eigh is implemented.",
                advice="Reduce a generalised problem by the Cholesky factor of b.")
    return _eigh(a, lower=bool(lower), eigvals_only=bool(eigvals_only))


@library_function(static_argnames=("lower", "eigvals_only"), whole=True)
def _eigh(a: Any, lower: bool, eigvals_only: bool) -> Any:
    (a,) = inexact("eigh", *as_matrices(a))
    v, w = eigen.eigh(a, lower=lower)
    return w if eigvals_only else (w, v)


@library_function(static_argnames=("permute_l", "overwrite_a", "check_finite"), whole=True)
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
       ) -> tuple[Any, ...]:
    """Return P, L and U with a = P L U; P L and U if ``permute_l``.

    Shapes: ``a`` (m, n), P (m, m), L (m, k), U (k, n), where k = min(m, n).

    >>> jax.scipy.linalg.lu(jnp.array([[0., 1.], [2., 0.]]))[2]
    Array([[2., 0.],
           [0., 1.]], dtype=float32)
    """
    (a,) = inexact("lu", *as_matrices(a))
    check_rank("lu", a)
    if a.ndim != 2:
        raise refuse("lu", "rank", f"lu needs one matrix, got shape {a.shape}.")
    packed, _, rows = lu_op(a)
    m, n = a.shape
    k = min(m, n)
    low = tril(packed[:, :k], -1) + eye(m, k, dtype=a.dtype)
    high = triu(packed[:k])
    if permute_l:
        return rows_in_order(low, inverse_order(rows)), high
    places = broadcasted_iota(rows.dtype, (m, m), 0)
    return (rows[None] == places).astype(dtypes.real_dtype(a.dtype)), low, high


def qr(a: ArrayLike, overwrite_a: bool = False, lwork: Any = None, mode: str = "full",
       pivoting: bool = False, check_finite: bool = True) -> tuple[Any, ...]:
    """Return Q and R with a = Q R; with ``pivoting`` also the order p of columns: a[:, p] = Q R.

    ``mode``: "full", "economic" (only the first min(m, n) columns of Q), or "r" (only R).

    Raises: ValueError for another mode.

    >>> jax.scipy.linalg.qr(jnp.array([[0., 2.], [3., 0.]]))[1]
    Array([[-3.,  0.],
           [ 0., -2.]], dtype=float32)
    """
    if mode not in ("full", "r", "economic"):
        raise refuse("qr", "mode", f"Unsupported QR decomposition mode '{mode}'")
    return _qr(a, mode=mode, pivoting=bool(pivoting))


@library_function(static_argnames=("mode", "pivoting"))
def _qr(a: Any, mode: str, pivoting: bool) -> tuple[Any, ...]:
    (a,) = inexact("qr", *as_matrices(a))
    q, *rest = qr_ops.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False,
                conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False
                ) -> tuple[Any, ...]:
    """Return c Q, or with ``mode`` "left" Q c, and R (and the order of columns), Q never formed.

    Q has the first min(m, n) columns only.  ``conjugate``: with the conjugate of Q instead.

    Raises: ValueError for another mode, or sizes that do not fit.

    >>> jax.scipy.linalg.qr_multiply(jnp.eye(2), jnp.array([1., 2.]))[1]
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    a, c = as_matrices(a, c)
    if mode not in ("right", "left"):
        raise refuse("qr_multiply", "mode", f"mode must be 'right' or 'left', got {mode!r}")
    return _qr_multiply(a, c, mode=mode, pivoting=bool(pivoting), conj=bool(conjugate))


@library_function(static_argnames=("mode", "pivoting", "conj"))
def _qr_multiply(a: Any, c: Any, mode: str, pivoting: bool, conj: bool) -> tuple[Any, ...]:
    a, c = inexact("qr_multiply", a, c)
    if a.ndim < 2 or not c.ndim:
        raise refuse("qr_multiply", "rank", "qr_multiply needs a matrix a, and a vector or matrix "
                     f"c, got shapes {a.shape} and {c.shape}.")
    m, n = a.shape[-2:]
    k = min(m, n)
    single = c.ndim == 1
    if single:
        c = c[:, None] if mode == "left" else c[None, :]
    if mode == "right" and c.shape[-1] != m:
        raise refuse("qr_multiply", "sizes", "Array shapes are not compatible for c @ Q operation: "
                     f"a has shape {a.shape} so Q has {m} rows, but c has {c.shape[-1]} columns "
                     f"(expected {m}).")
    if mode == "left" and c.shape[-2] != k:
        raise refuse("qr_multiply", "sizes", "Array shapes are not compatible for Q @ c operation: "
                     f"a has shape {a.shape} so Q has {k} columns, but c has {c.shape[-2]} rows "
                     f"(expected {k}).")
    if pivoting:
        packed, order, taus = qr_ops.geqp3(a, np.zeros(a.shape[:-2] + (n,), np.int32))
        rest = (triu(packed[..., :k, :]), order - 1)
    else:
        packed, taus = qr_ops.geqrf(a)
        rest = (triu(packed[..., :k, :]),)
    vectors = packed[..., :, :k]
    c = algebra.conjugate(c) if conj else c
    if mode == "right":
        out = qr_ops.ormqr(vectors, taus, c, left=False)[..., :k]
    else:
        if c.shape[-2] < m:
            c = concatenate([c, np.zeros((*c.shape[:-2], m - c.shape[-2], c.shape[-1]),
                                         aval_of(c).dtype)], axis=-2)
        out = qr_ops.ormqr(vectors, taus, c)
    out = algebra.conjugate(out) if conj else out
    if single:
        out = out[..., 0] if mode == "left" else out[..., 0, :]
    return (out, *rest)


def schur(a: ArrayLike, output: str = "real") -> list[Any]:
    """Return T and Z with a = Z T Zᴴ, T triangular (for real ``a`` with 2 by 2 blocks).

    ``output``: "complex" for a triangular T of real matrices, too.

    Raises: ValueError for another output.

    >>> jax.scipy.linalg.schur(jnp.array([[2., 0.], [0., 3.]]))[0]
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise refuse("schur", "output", "Expected 'output' to be either 'real' or 'complex', got "
                     f"output={output!r}.")
    return list(_schur(a, output=output))


@library_function(static_argnames=("output",))
def _schur(a: Any, output: str) -> tuple[Any, Any]:
    if output == "complex":
        a = a.astype(dtypes.complex_dtype(aval_of(a).dtype))
    t, z = reduction.schur(a)
    return t, z


@library_function(static_argnames=("check_finite",), whole=True)
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Any, Any]:
    """Return the complex Schur form (triangular) of the real one: a = Z T Zᴴ in both.

    Raises: ValueError for shapes that do not fit.

    >>> T, Z = jax.scipy.linalg.schur(jnp.array([[0., 1.], [-1., 0.]]))
    >>> jax.scipy.linalg.rsf2csf(T, Z)[0].shape
    (2, 2)
    """
    T, Z = as_matrices(T, Z)
    T, Z = inexact("rsf2csf", T, Z)
    for name, x in (("Z", Z), ("T", T)):
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise refuse("rsf2csf", "square", f"Input '{name}' must be square.")
    if T.shape != Z.shape:
        raise refuse("rsf2csf", "shapes", "Input array shapes must match: Z: "
                     f"{Z.shape} vs. T: {T.shape}")
    dtype = dtypes.complex_dtype(T.dtype)
    n = T.shape[0]
    eps = float(dtypes.finfo(dtypes.real_dtype(dtype)).eps)

    def turn(step: Any, state: Any) -> Any:
        t, z = state
        m = n - 1 - step  # from the last block upwards
        a, b, c, d = t[m - 1, m - 1], t[m - 1, m], t[m, m - 1], t[m, m]
        half = (a + d) / 2
        mu = half + ((a - d) ** 2 / 4 + b * c) ** 0.5 - d
        length = (abs(mu) ** 2 + abs(c) ** 2) ** 0.5
        there = abs(c) > eps * (abs(a) + abs(d))
        length = where(there, length, 1).astype(dtype)
        cosine, sine = where(there, mu / length, 1), where(there, c / length, 0)
        rows = cosine.conj() * t[m - 1] + sine * t[m], -sine * t[m - 1] + cosine * t[m]
        t = t.at[m - 1].set(rows[0]).at[m].set(rows[1])

        def columns(x: Any) -> Any:
            first, second = x[:, m - 1], x[:, m]
            x = x.at[:, m - 1].set(first * cosine + second * sine)
            return x.at[:, m].set(-first * sine + second * cosine.conj())

        return columns(t).at[m, m - 1].set(0), columns(z)

    return fori_loop(0, max(n - 1, 0), turn, (T.astype(dtype), Z.astype(dtype)))


@library_function(static_argnames=("calc_q", "overwrite_a", "check_finite"), whole=True)
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Array | tuple[Array, Array]:
    """Return H with a = Q H Qᴴ, zero below its first subdiagonal; with ``calc_q`` also Q.

    Raises: TypeError for dtypes, ValueError for matrices that are not square.

    >>> jax.scipy.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    packed, taus = reduction.hessenberg(a)
    h = triu(packed, -1)
    if not calc_q:
        return h
    n = packed.shape[-1]
    q = broadcast_to(eye(n, dtype=packed.dtype), packed.shape)
    if n > 1:
        q = q.at[..., 1:, 1:].set(
            qr_ops.householder_product(packed[..., 1:, :-1], taus))
    return h, q


def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Any, Any]:
    """Return U and P with a = U P (P U for ``side`` "left"), U orthonormal, P positive.

    Shapes: ``a`` (…, m, n), U (…, m, n), P (…, n, n), or (…, m, m) on the left.  ``method``: "qdwh"
    iterates, and wants at least as many rows as columns (on the left fewer); "svd" does not.

    Raises: ValueError for another side or method; NotImplementedError for other shapes.

    >>> jax.scipy.linalg.polar(jnp.array([[2., 0.], [0., 3.]]))[1].round(3)
    Array([[2.       , 0.       ],
           [0.       , 3.0000002]], dtype=float32)
    """
    (a,) = inexact("polar", *as_matrices(a))
    if a.ndim < 2:
        raise refuse("polar", "rank", "The input `a` must be at least a 2-D array.")
    if side not in ("right", "left"):
        raise refuse("polar", "side", "The argument `side` must be either 'right' or 'left'.")
    m, n = a.shape[-2:]
    if method == "svd":
        return _polar_by_svd(a, left=side == "left")
    if method != "qdwh":
        raise refuse("polar", "method", f"Unknown polar decomposition method {method}.")
    if (m < n) != (side == "left"):
        raise errors.explained(
            NotImplementedError, "polar.shape",
            "method='qdwh' only supports mxn matrices where m < n where side='right' and m >= n "
            f"side='left', got {(m, n)} with side={side!r}", advice="Use method='svd'.")
    if side == "right":
        u, p, *_ = qdwh(a, max_iterations=max_iterations, eps=eps)
        return u, p
    u, p, *_ = qdwh(adjoint(a), max_iterations=max_iterations, eps=eps)
    return adjoint(u), adjoint(p)


@library_function(static_argnames=("left",))
def _polar_by_svd(a: Any, left: bool) -> tuple[Any, Any]:
    u, s, vh = svd_ops.svd(a, full_matrices=False)
    s = s.astype(a.dtype)
    side = columns_scaled(u, s) if left else columns_scaled(adjoint(vh), s)
    return matmul(u, vh), matmul(side, adjoint(u) if left else vh)


def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[float, float] | None = None, tol: float | None = None,
                     key: Array | None = None) -> Array | tuple[Array, Array]:
    """Return the eigenvalues, ascending, and vectors of the matrix with diagonals ``d`` and ``e``.

    Shapes: d (n,), e (n - 1,); the lower diagonal is the conjugate of the upper one ``e``.
    ``select``: "a" for all, "i" for those numbered from and up to ``select_range``, both inclusive.
    ``tol``: how exact the values are to be; by default as exact as the dtype.

    Raises: TypeError for dtypes and shapes; ValueError or NotImplementedError for a selection.

    >>> jax.scipy.linalg.eigh_tridiagonal(jnp.array([2., 2.]), jnp.array([1.]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    d, e = _diagonals(d, e)
    if d.ndim != 1 or e.shape != (d.shape[0] - 1,):
        raise errors.explained(
            errors.ShapeError, "eigh_tridiagonal.shapes",
            f"eigh_tridiagonal needs shapes (n,) and (n - 1,), got {d.shape} and {e.shape}.",
            advice="Use jax.vmap for a stack.")
    n = d.shape[0]
    if select == "a":
        places = (0, n)
    elif select == "i":
        if select_range is None:
            raise refuse("eigh_tridiagonal", "range",
                         "for select='i', select_range must be specified.")
        if select_range[0] > select_range[1]:
            raise refuse("eigh_tridiagonal", "range", "Got empty index range in select_range.")
        places = (int(select_range[0]), int(select_range[1]) + 1)
    elif select == "v":
        raise errors.explained(
            NotImplementedError, "eigh_tridiagonal.select",
            "eigh_tridiagonal(..., select='v') is not implemented",
            advice="Their number would depend on the values.")
    else:
        raise refuse("eigh_tridiagonal", "select",
                     "'select must have a value in {'a', 'i', 'v'}.")
    if eigvals_only:
        return _bisected(d, e, tol, places=places)
    return _tridiagonal_vectors(d, e, places=places)


def _diagonals(d: ArrayLike, e: ArrayLike) -> tuple[Array, Array]:
    """Return the two diagonals as arrays.  Raises: DTypeError."""
    first, second = (aval_of(x).dtype for x in (d, e))
    if first != second:
        raise errors.explained(
            errors.DTypeError, "eigh_tridiagonal.dtypes",
            "diagonal and off-diagonal values must have same dtype, got "
            f"{first.name} and {second.name}", advice="Convert one of them.")
    if not dtypes.is_inexact(first) or dtypes.itemsize_bits(first) < 32:
        raise errors.explained(
            errors.DTypeError, "eigh_tridiagonal.dtype",
            "Only float32 and float64 inputs are supported as inputs to "
            f"jax.scipy.linalg.eigh_tridiagonal, got {first.name} and {second.name}",
            advice="Convert first.")
    return inexact("eigh_tridiagonal", d)[0], inexact("eigh_tridiagonal", e)[0]


@library_function(static_argnames=("places",), whole=True)
def _tridiagonal_vectors(d: Any, e: Any, places: tuple[int, int]) -> tuple[Any, Any]:
    matrix = diag(d) + diag(e, 1) + diag(conjugate(e), -1)
    v, w = eigen.eigh(matrix, symmetrize_input=False)
    return w[places[0]:places[1]], v[:, places[0]:places[1]]


@library_function(static_argnames=("places",))
def _bisected(d: Any, e: Any, tol: Any, places: tuple[int, int]) -> Any:
    """Return eigenvalues by bisection: the number of those below x is a number of signs.

    In the elimination of the matrix minus x, as many pivots are negative as values lie below x.
    """
    squares = abs(e) ** 2
    d = d.real if dtypes.is_complex(d.dtype) else d
    dtype = d.dtype
    reach = concatenate([abs(e), np.zeros(1, dtype)]) + concatenate([np.zeros(1, dtype), abs(e)])
    bound = greatest(abs(d) + reach)
    tiny = float(dtypes.finfo(dtype).tiny)
    wanted = np.arange(*places, dtype=np.int32)

    def not_zero(q: Any) -> Any:
        return where(abs(q) < tiny, -tiny, q)  # counts as negative, and may be divided by

    def below(x: Any) -> Any:
        def pivot(state: Any, row: Any) -> Any:
            q, count = state
            q = not_zero(row[0] - x - row[1] / q)
            return (q, count + (q < 0).astype(np.int32)), None

        first = not_zero(d[0] - x)
        state = first, (first < 0).astype(np.int32)
        # Without jit a scan of no rows has no type.
        return scan(pivot, state, (d[1:], squares))[0][1] if squares.size else state[1]

    def halve(_: int, state: Any) -> Any:
        low, high = state
        middle = low + (high - low) / 2
        less = below(middle) <= wanted
        return where(less, middle, low), where(less, high, middle)

    start = broadcast_to(-bound, (len(wanted),)), broadcast_to(bound, (len(wanted),))
    # Each step gains a bit: those of the number, and those by which values may be smaller.
    steps = dtypes.finfo(dtype).nmant + 12
    low, high = fori_loop(0, steps, halve, start)
    return low + (high - low) / 2

"""How does NumPy call the decompositions?

Each function promotes its argument to floating point numbers and hands it to the primitive.

Read before: ``saem.linalg``.
Invariant: results with several parts are named tuples with NumPy's field names.
Source: the NumPy reference, chapter "Linear algebra".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from saem.core import errors
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.linalg import cholesky as cholesky_ops
from saem.linalg import eigen as eigen_ops
from saem.linalg import qr as qr_ops
from saem.linalg import svd as svd_ops
from saem.linalg.algebra import (
    adjoint,
    columns_scaled,
    dtype_of,
    transposed,
)
from saem.numpy.axes import array_argument
from saem.numpy.promote import promote_dtypes_inexact
from saem.numpy.sorting import argsort
from saem.numpy.take_and_put import take_along_axis
from saem.ops.convert import convert_element_type
from saem.ops.numbers import abs as absolute
from saem.ops.numbers import sign
from saem.ops.shape import expand_dims, rev
from saem.typing import Array, ArrayLike


class EigResult(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    Q: Any
    R: Any


class SVDResult(NamedTuple):
    U: Any
    S: Any
    Vh: Any


def inexact(name: str, *args: Any) -> Any:
    """Return arguments of ``jnp.linalg.name`` as floating point or complex numbers of one dtype."""
    arrays = array_argument(f"jnp.linalg.{name}", *args)
    made = promote_dtypes_inexact(*(arrays if len(args) > 1 else [arrays]))
    return made if len(args) > 1 else made[0]


@library_function(static_argnames=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with a = L Lᴴ, or with ``upper`` U with a = Uᴴ U.

    Shapes: ``a`` (…, n, n).  Where ``a`` is not positive definite the result is NaN.
    ``symmetrize_input``: use the mean of ``a`` and its adjoint.

    Raises: TypeError if ``a`` is not a stack of square matrices.

    >>> jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    factor = cholesky_ops.cholesky(adjoint_if(upper, inexact("cholesky", a)),
                                   symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def adjoint_if(upper: bool, a: Any) -> Any:
    return adjoint(a) if upper and aval_of(a).ndim > 1 else a


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> Any:
    """Return U, S, Vh with a = U diag(S) Vh and falling S; only S unless ``compute_uv``.

    Shapes: ``a`` (…, m, n), U (…, m, m), S (…, k), Vh (…, n, n), where k = min(m, n); unless
    ``full_matrices`` U is (…, m, k) and Vh (…, k, n).  ``hermitian``: ``a`` is its own adjoint.

    Raises: TypeError for fewer than two axes.

    >>> jnp.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    return _svd(a, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
                hermitian=bool(hermitian), subset_by_index=subset_by_index)


@library_function(static_argnames=("full_matrices", "compute_uv", "hermitian", "subset_by_index"),
                  whole=True)
def _svd(a: Any, full_matrices: bool, compute_uv: bool, hermitian: bool, subset_by_index: Any
         ) -> Any:
    a = inexact("svd", a)
    if not hermitian:
        out = svd_ops.svd(a, full_matrices=full_matrices, compute_uv=compute_uv,
                          subset_by_index=subset_by_index)
        return SVDResult(*out) if compute_uv else out
    v, w = eigen_ops.eigh(a)
    size = absolute(w)
    last = aval_of(w).ndim - 1
    order = rev(argsort(size, axis=last), (last,))
    s = take_along_axis(size, order, axis=last)
    if not compute_uv:
        return s
    columns = expand_dims(order, (last,))
    u = take_along_axis(v, columns, axis=last + 1)
    signs = convert_element_type(sign(take_along_axis(w, order, axis=last)), dtype_of(u))
    return SVDResult(u, s, adjoint(columns_scaled(u, signs)))


def svdvals(x: ArrayLike, /) -> Array:
    """Return the singular values of ``x`` (…, m, n), the greatest first.

    >>> jnp.linalg.svdvals(jnp.array([[3., 0.], [0., 4.]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False, hermitian=False)


@library_function(static_argnames=("UPLO", "symmetrize_input"), whole=True)
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Return the eigenvalues, ascending, and eigenvectors of Hermitian matrices ``a`` (…, n, n).

    ``UPLO``: "L" or "U", the triangle that is read unless ``symmetrize_input``.

    Raises: ValueError for another ``UPLO``; TypeError if ``a`` is not square.

    >>> jnp.linalg.eigh(jnp.array([[2., 1.], [1., 2.]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    a = inexact("eigh", a)
    if UPLO not in (None, "L", "U"):
        raise errors.explained(
            errors.ArgumentError, "eigh.UPLO", f"UPLO must be one of None, 'L', or 'U', got {UPLO}",
            advice="It names the triangle that is read.")
    v, w = eigen_ops.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@library_function(static_argnames=("UPLO", "symmetrize_input"), whole=True)
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Return the eigenvalues of Hermitian matrices ``a`` (…, n, n), ascending.

    >>> jnp.linalg.eigvalsh(jnp.array([[2., 1.], [1., 2.]]))
    Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@library_function(whole=True)
def eig(a: ArrayLike) -> EigResult:
    """Return the eigenvalues and the eigenvectors, both complex, of square matrices ``a``.

    Column j of the vectors (…, n, n) belongs to value j of (…, n), and has length 1.

    Raises: ValueError if ``a`` is not a stack of square matrices.

    >>> jnp.linalg.eig(jnp.array([[2., 1.], [0., 3.]])).eigenvalues
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    w, v = eigen_ops.eig(inexact("eig", a), compute_left_eigenvectors=False)
    return EigResult(w, v)


@library_function(whole=True)
def eigvals(a: ArrayLike) -> Array:
    """Return the eigenvalues (…, n), complex, of square matrices ``a`` (…, n, n).

    >>> jnp.linalg.eigvals(jnp.array([[2., 1.], [0., 3.]]))
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    return eigen_ops.eig(inexact("eigvals", a), compute_left_eigenvectors=False,
                         compute_right_eigenvectors=False)[0]


@library_function(static_argnames=("mode",), whole=True)
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Return Q and R with a = Q R, orthonormal columns of Q and triangular R.

    Shapes: ``a`` (…, m, n), Q (…, m, k), R (…, k, n), where k = min(m, n), or m for ``mode``
    "complete"; "r": only R; "raw": the reflections, transposed, and their factors.

    Raises: ValueError for another mode; TypeError for fewer than two axes.

    >>> jnp.linalg.qr(jnp.array([[0., 2.], [3., 0.]])).R
    Array([[-3.,  0.],
           [ 0., -2.]], dtype=float32)
    """
    a = inexact("qr", a)
    if mode == "raw":
        packed, taus = qr_ops.geqrf(a)
        return QRResult(transposed(packed), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise errors.explained(
            errors.ArgumentError, "qr.mode", f"Unsupported QR decomposition mode '{mode}'",
            advice="Use reduced, complete, r or raw.")
    q, r = qr_ops.qr(a, full_matrices=mode in ("full", "complete"))
    return r if mode == "r" else QRResult(q, r)

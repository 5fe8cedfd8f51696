"""Which numbers measure how large, how regular, how well conditioned a matrix is?

Norms, determinants, rank and condition number.

Read before: ``numpy.linalg.equations``.
Invariant: a norm is never negative; the derivative of a determinant exists for singular matrices,
too.
Source: Golub & Van Loan, Matrix Computations (4th ed.), 2.3 and 2.6; Jacobi's formula for the
derivative of the determinant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saem.core import dtypes, errors
from saem.core.trace import bind
from saem.derivatives.custom_jvp import custom_jvp
from saem.derivatives.custom_rule import SymbolicZero
from saem.jit.library import library_function
from saem.linalg.algebra import above, block, diagonal, rows_in_order, triu
from saem.linalg.lu import Lu, lu_solve
from saem.linalg.qr import Qr
from saem.linalg.triangular import TriangularSolve
from saem.numpy import diagonals, reductions
from saem.numpy.axes import array_argument, numbers_may_be_arrays
from saem.numpy.linalg.decompositions import inexact, svd
from saem.numpy.linalg.equations import inv
from saem.numpy.manipulation import expand_dims as expand
from saem.numpy.manipulation import moveaxis
from saem.numpy.searching import where
from saem.ops.filling import broadcasted_iota
from saem.ops.linear import literal
from saem.ops.maths import log, sqrt
from saem.ops.numbers import abs as absolute
from saem.ops.shape import canonical_axis
from saem.typing import Array, ArrayLike, DTypeLike


class SlogdetResult(NamedTuple):
    sign: Any
    logabsdet: Any


# -- norms -----------------------------------------------------------------------------------------


@library_function(static_argnames=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: int | float | str | None = None,
         axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Return the length of vectors, or the norm of matrices, in ``x``.

    ``axis``: one axis for vectors, two for matrices; None for all of ``x`` (two axes at most, if
    ``ord`` is given).  ``ord`` of vectors: any number (2 by default), 0 counts, ±inf is the
    greatest or least; of matrices: "fro" (the default), "nuc", ±1, ±2, ±inf.

    Raises: ValueError for another ``ord``, or more axes.

    >>> jnp.linalg.norm(jnp.array([3., 4.]))
    Array(5., dtype=float32)
    """
    x = inexact("norm", x)
    if axis is None:
        axes: tuple[int, ...] = tuple(range(x.ndim))
        if ord is None:
            return length(x, axes, keepdims)
    else:
        given = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(canonical_axis(d, x.ndim) for d in given)
    if len(axes) == 1:
        return of_vectors(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return of_matrices(x, ord, *axes, keepdims)
    raise errors.explained(
        errors.ArgumentError, "norm.axes",
        f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, "
        "or two axes to compute a matrix-norm.", advice="jnp.linalg.vector_norm takes any number.")


def length(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return the square root of the sum of squares over ``axes``."""
    squares = (x * x.conj()).real if dtypes.is_complex(x.dtype) else x * x
    return sqrt(reductions.sum(squares, axis=tuple(axes), keepdims=keepdims))


def of_vectors(x: Any, ord: Any, axis: int | tuple[int, ...], keepdims: bool) -> Any:
    """Return the norms of order ``ord`` along ``axis``."""
    if ord is None or ord == 2:
        return length(x, axis if isinstance(axis, tuple) else (axis,), keepdims)
    if isinstance(ord, str):
        raise errors.explained(
            errors.ArgumentError, "norm.order", f"Invalid order '{ord}' for vector norm.",
            advice="It is a number; 'fro' and 'nuc' are for matrices.")
    size = x if dtypes.is_bool(x.dtype) or dtypes.is_unsigned(x.dtype) else absolute(x)
    if ord == np.inf:
        return reductions.max(size, axis=axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return reductions.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(x != 0, axis=axis, keepdims=keepdims, dtype=size.dtype)
    if ord == 1:
        return reductions.sum(size, axis=axis, keepdims=keepdims)
    total = reductions.sum(size ** ord, axis=axis, keepdims=keepdims)
    return total ** (1.0 / ord)


def of_matrices(x: Any, ord: Any, row: int, column: int, keepdims: bool) -> Any:
    """Return the norms of the matrices whose rows run along ``row``."""
    if row == column:
        raise errors.explained(
            errors.ArgumentError, "norm.duplicate", f"duplicate value in 'axis': {(row, column)}",
            advice="Name two axes.")
    if ord is None or ord == "fro":
        return length(x, (row, column), keepdims)
    if ord in (1, -1, np.inf, -np.inf) and not isinstance(ord, str):
        first, second = (row, column) if abs(ord) == 1 else (column, row)
        sums = reductions.sum(absolute(x), axis=first, keepdims=True)
        if ord > 0:
            out = reductions.max(sums, axis=second, keepdims=True, initial=0)
        else:
            out = reductions.min(sums, axis=second, keepdims=True)
        return out if keepdims else out.squeeze((row, column))
    if ord == "nuc" or (not isinstance(ord, str) and ord in (2, -2)):
        s = svd(moveaxis(x, (row, column), (-2, -1)), compute_uv=False)
        if ord == "nuc":
            out = reductions.sum(s, axis=-1)
        elif ord == 2:
            out = reductions.max(s, axis=-1, initial=0)
        else:
            out = reductions.min(s, axis=-1)
        return expand(out, (row, column)) if keepdims else out
    raise errors.explained(
        errors.ArgumentError, "norm.order", f"Invalid order '{ord}' for matrix norm.",
        advice="Use 'fro', 'nuc', 1, 2, inf, or the negative of a number.")


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False,
                ord: str | int | float = "fro") -> Array:
    """Return the norms of the matrices ``x`` (…, m, n); see ``norm``.

    >>> jnp.linalg.matrix_norm(jnp.array([[3., 0.], [0., 4.]]))
    Array(5., dtype=float32)
    """
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


def vector_norm(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None,
                keepdims: bool = False, ord: int | float | str = 2) -> Array:
    """Return the norms of the vectors along ``axis``, which may be several axes, or all of them.

    >>> jnp.linalg.vector_norm(jnp.array([3., 4.]))
    Array(5., dtype=float32)
    """
    return _vector_norm(x, axis=axis, keepdims=bool(keepdims), ord=ord)


@numbers_may_be_arrays
@library_function(static_argnames=("axis", "keepdims", "ord"))
def _vector_norm(x: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
    # Sums and largest sizes of integers are integers.
    whole = ord in (1, np.inf, -np.inf)
    x = array_argument("vector_norm", x) if whole else inexact("vector_norm", x)
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axes = tuple(canonical_axis(d, x.ndim)
                     for d in (axis if isinstance(axis, tuple) else (axis,)))
    return of_vectors(x, ord, axes, keepdims)


# -- determinants ----------------------------------------------------------------------------------


def _check_square(name: str, a: Any) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise errors.explained(
            errors.ArgumentError, f"{name}.square",
            f"Argument to {name}() must have shape [..., n, n], got {a.shape}",
            advice="Only square matrices have a determinant.")


@library_function(whole=True)
def det(a: ArrayLike) -> Array:
    """Return the determinants (…) of square matrices ``a`` (…, n, n).

    Raises: ValueError if they are not square.

    >>> jnp.linalg.det(jnp.array([[2., 1.], [1., 3.]]))
    Array(5., dtype=float32)
    """
    a = inexact("det", a)
    _check_square("det", a)
    n = a.shape[-1]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    if n == 3:
        return (a[..., 0, 0] * a[..., 1, 1] * a[..., 2, 2]
                + a[..., 0, 1] * a[..., 1, 2] * a[..., 2, 0]
                + a[..., 0, 2] * a[..., 1, 0] * a[..., 2, 1]
                - a[..., 0, 2] * a[..., 1, 1] * a[..., 2, 0]
                - a[..., 0, 0] * a[..., 1, 2] * a[..., 2, 1]
                - a[..., 0, 1] * a[..., 1, 0] * a[..., 2, 2])
    return _det(a)


def parity(pivots: Any, dtype: Any) -> Any:
    """Return 1 or -1: whether the exchanges of rows are even or odd in number."""
    kept = broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    count = (pivots != kept).sum(-1, dtype=np.int32)
    return (1 - 2 * (count % 2)).astype(dtype)


@custom_jvp
def _det(a: Any) -> Any:
    packed, pivots, _ = bind(Lu(), a)
    return parity(pivots, a.dtype) * reductions.prod(diagonal(packed), axis=-1)


@_det.defjvp
def _det_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    (a,), (t,) = primals, tangents
    value, products = cofactors(a, t)
    return value, reductions.sum(diagonal(products), axis=-1)


@library_function(whole=True)
def cofactors(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the determinant of ``a`` and adj(a) b, also where the last pivot of ``a`` is 0.

    With p a = l u: adj(a) b = ± adj(u) l⁻¹ p b; and with u = [[v, c], [0, d]] the adjugate times
    [y, z] is det(v) [v⁻¹ (d y - c z), z], where nothing is divided by d.
    """
    n = a.shape[-1]
    packed, pivots, rows = bind(Lu(), a)
    sign = parity(pivots, a.dtype)
    u = diagonal(packed)
    part = sign * reductions.prod(u[..., :-1], axis=-1)
    y = bind(TriangularSolve(True, True, False, False, True), packed, rows_in_order(b, rows))
    if n < 2:
        return part * u[..., -1], y
    v = block(packed, (0, n - 1), (0, n - 1))
    regular = where(u[..., :-1] == 0, 1, u[..., :-1])
    v = triu(v, 1) + regular[..., None] * np.eye(n - 1, dtype=a.dtype)
    c, d = packed[..., :-1, -1:], u[..., -1][..., None, None]
    top = bind(TriangularSolve(True, False, False, False, False), v,
               d * y[..., :-1, :] - c * y[..., -1:, :])
    whole = above(top, y[..., -1:, :])
    return part * u[..., -1], part[..., None, None] * whole


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the sign (of complex matrices: the phase) and the logarithm of |det a|.

    ``method``: "lu" (the default) or "qr", for ``a`` (…, n, n).

    Raises: ValueError for another method, or matrices that are not square.

    >>> jnp.linalg.slogdet(jnp.array([[-1., 0.], [0., 1.]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise errors.explained(
            errors.ArgumentError, "slogdet.method",
            f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'.",
            advice="Leave it out.")
    return _slogdet(a, method=method or "lu")


@library_function(static_argnames=("method",), whole=True)
def _slogdet(a: Any, method: str) -> SlogdetResult:
    a = inexact("slogdet", a)
    _check_square("slogdet", a)
    return SlogdetResult(*(_by_lu if method == "lu" else _by_qr)(a))


def _of_diagonal(d: Any, sign: Any) -> tuple[Any, Any]:
    """Return sign and logarithm of the product of ``d``, times ``sign``."""
    size = absolute(d)
    zero = (size == 0).any(-1)
    phases = d / where(size == 0, 1, size).astype(d.dtype)
    sign = sign * reductions.prod(phases, axis=-1)
    real = size.dtype.type
    return (where(zero, literal(0, d.dtype), sign),
            where(zero, real(-np.inf), reductions.sum(log(where(size == 0, 1, size)), axis=-1)))


@custom_jvp
def _by_lu(a: Any) -> tuple[Any, Any]:
    packed, pivots, _ = bind(Lu(), a)
    return _of_diagonal(diagonal(packed), parity(pivots, a.dtype))


@custom_jvp
def _by_qr(a: Any) -> tuple[Any, Any]:
    q, r = bind(Qr(False, False, None), a)
    packed, pivots, _ = bind(Lu(), q)
    sign = parity(pivots, a.dtype)
    phase, _ = _of_diagonal(diagonal(packed), sign)
    return _of_diagonal(diagonal(r), phase)


def _slogdet_jvp(function: Any) -> Any:
    def rule(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        sign, logarithm = function(a)
        packed, _, rows = bind(Lu(), a)
        moved = reductions.sum(diagonal(lu_solve(packed, rows, t)), axis=-1)
        if not dtypes.is_complex(a.dtype):
            return (sign, logarithm), (SymbolicZero.from_primal_value(sign), moved)
        return (sign, logarithm), ((moved - moved.real) * sign, moved.real)

    return rule


_by_lu.defjvp(_slogdet_jvp(_by_lu))
_by_qr.defjvp(_slogdet_jvp(_by_qr))


# -- rank and condition ----------------------------------------------------------------------------


def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False,
                tol: ArrayLike | None = None) -> Array:
    """Return the number of singular values of ``M`` (…, m, n) above ``rtol``.

    ``rtol``, also called ``tol``, is compared with the values as they are, as in JAX; by default it
    is the greatest of them times the larger size times the machine epsilon.

    >>> jnp.linalg.matrix_rank(jnp.array([[1., 2.], [2., 4.]]))
    Array(1, dtype=int32)
    """
    if tol is not None and rtol is not None:
        raise errors.explained(
            errors.ArgumentError, "matrix_rank.tolerance",
            "matrix_rank: only one of tol or rtol may be specified.", advice="Give one of them.")
    return _matrix_rank(M, rtol, tol, hermitian=bool(hermitian))


@library_function(static_argnames=("hermitian",))
def _matrix_rank(M: Any, rtol: Any, tol: Any, hermitian: bool) -> Any:
    M = inexact("matrix_rank", M)
    if M.ndim < 2:
        return (M != 0).any().astype(np.int32)
    s = svd(M, full_matrices=False, compute_uv=False, hermitian=hermitian)
    bound = rtol if tol is None else tol
    if bound is None:
        bound = reductions.max(s, axis=-1) * (max(M.shape[-2:]) * float(dtypes.finfo(s.dtype).eps))
    bound = array_argument("matrix_rank", bound)[..., None]
    return (s > bound).sum(-1)


@library_function(static_argnames=("p",), whole=True)
def cond(x: ArrayLike, p: ArrayLike | None = None) -> Any:
    """Return the condition numbers of matrices ``x`` (…, m, n): ‖x‖ ‖x⁻¹‖ in the norm ``p``.

    By default the greatest over the least singular value.

    Raises: ValueError for empty matrices, fewer than two axes, or, unless ``p`` is None, 2 or -2,
    matrices that are not square.

    >>> jnp.linalg.cond(jnp.array([[2., 0.], [0., 1.]]))
    Array(2., dtype=float32)
    """
    x = inexact("cond", x)
    if x.ndim < 2:
        raise errors.explained(
            errors.ArgumentError, "cond.rank",
            f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={x.shape}",
            advice="Give a matrix.")
    if not x.shape[-1] or not x.shape[-2]:
        raise errors.explained(
            errors.ArgumentError, "cond.empty",
            f"jnp.linalg.cond: input array must not be empty; got arr.shape={x.shape}",
            advice="It has no singular values.")
    if p is None or p in (2, -2):
        s = svd(x, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    if x.shape[-1] != x.shape[-2]:
        raise errors.explained(
            errors.ArgumentError, "cond.square",
            f"jnp.linalg.cond: for {p=}, array must be square; got arr.shape={x.shape}",
            advice="Without p any shape will do.")
    r = norm(x, ord=p, axis=(-2, -1)) * norm(inv(x), ord=p, axis=(-2, -1))
    # Where it is NaN without a NaN in the matrix, the matrix is singular.
    known = ~(x != x).any((-2, -1))
    return where((r != r) & known, literal(np.inf, r.dtype), r)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return the sums of the diagonals of matrices ``x`` (…, n, m).

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return diagonals.trace(x, offset, -2, -1, dtype)

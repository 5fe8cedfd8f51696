"""How are systems of linear equations solved, exactly or as well as possible?

``solve`` decomposes a = P L U once; derivatives are further solutions with the same factors
(``custom_linear_solve``).  ``lstsq`` and ``pinv`` use singular values.

Read before: ``linalg.lu``, ``derivatives.implicit_solve``.
Invariant: ``a @ solve(a, b)`` is ``b`` to rounding.
Source: Golub & Van Loan, Matrix Computations (4th ed.), 3.4 and 5.5; Golub & Pereyra, "The
differentiation of pseudo-inverses and nonlinear least squares problems" (1973), eq. 4.12.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.derivatives.custom_jvp import custom_jvp
from saem.derivatives.implicit_solve import custom_linear_solve
from saem.derivatives.stop_gradient import stop_gradient
from saem.jit.library import library_function
from saem.linalg.algebra import adjoint, eye, matmul, transposed
from saem.linalg.lu import lu, lu_solve
from saem.numpy.axes import array_argument
from saem.numpy.linalg.decompositions import inexact, svd
from saem.numpy.manipulation import broadcast_to, reshape, transpose
from saem.numpy.products import matmul as matmul_any
from saem.numpy.promote import broadcast_shapes
from saem.numpy.searching import where
from saem.ops.linear import literal
from saem.ops.shape import expand_dims, squeeze
from saem.typing import Array, ArrayLike


def check_square(name: str, a: Any) -> None:
    """Refuse a value that is not a stack of square matrices.  Raises: ValueError."""
    shape = aval_of(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise errors.explained(
            errors.ArgumentError, f"{name}.square",
            f"Argument to {name} must have shape [..., n, n], got {shape}.",
            advice="Only square matrices will do.")


@library_function(whole=True)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Return x with a x = b.

    Shapes: ``a`` (…, n, n); ``b`` a vector (n,), or matrices (…, n, m).

    Raises: ValueError for shapes that do not fit.

    >>> jnp.linalg.solve(jnp.array([[2., 0.], [1., 4.]]), jnp.array([2., 9.]))
    Array([1., 2.], dtype=float32)
    """
    a, b = inexact("solve", a, b)
    if a.ndim < 2:
        raise errors.explained(
            errors.ArgumentError, "solve.rank",
            f"left hand array must be at least two dimensional; got {a.shape=}",
            advice="Give a square matrix.")
    if b.ndim > 1 and b.shape == a.shape[:-1]:
        raise errors.explained(
            errors.ArgumentError, "solve.stack",
            f"Invalid shapes for solve: {a.shape}, {b.shape}.",
            advice="b is a vector or a stack of matrices. For a stack of vectors write "
            "solve(a, b[..., None])[..., 0].")
    single = b.ndim == 1
    n = a.shape[-1]
    if a.shape[-2] != n or not b.ndim or b.shape[0 if single else -2] != n:
        raise errors.explained(
            errors.ArgumentError, "solve.sizes",
            f"inconsistent size for core dimension: solve needs (…, n, n) and (n,) or (…, n, m), "
            f"got {a.shape} and {b.shape}.", advice="b has as many rows as a.")
    if single:
        b = expand_dims(b, (1,))
    out = solved(a, b)
    return squeeze(out, (out.ndim - 1,)) if single else out


def solved(a: Any, b: Any) -> Any:
    """Return a⁻¹ b for ``a`` (…, n, n) and ``b`` (…, n, m) of one dtype, leading axes broadcast."""
    leading = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    n, m = b.shape[-2:]
    if len(a.shape) == 2 and leading:
        # One matrix for all: the right sides are further columns.
        last = len(leading)
        columns = reshape(transpose(b, (last, *range(last), last + 1)), (n, -1))
        out = reshape(_solve(a, columns), (n, *leading, m))
        return transpose(out, (*range(1, last + 1), 0, last + 1))
    return _solve(broadcast_to(a, (*leading, n, n)), broadcast_to(b, (*leading, n, m)))


def _solve(a: Any, b: Any) -> Any:
    packed, _, rows = lu(stop_gradient(a))
    return custom_linear_solve(
        lambda x: matmul(a, x), b,
        lambda _, ct: lu_solve(packed, rows, ct),
        lambda _, ct: lu_solve(packed, rows, ct, 1))


@library_function(whole=True)
def inv(a: ArrayLike) -> Array:
    """Return the inverses of square matrices ``a`` (…, n, n).

    Raises: ValueError if they are not square.

    >>> jnp.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    a = inexact("inv", a)
    check_square("inv", a)
    return solved(a, eye(a.shape, a.dtype))


@library_function(static_argnames=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Return the product of ``n`` factors ``a`` (…, m, m); of its inverse if ``n`` is negative.

    Raises: TypeError if ``n`` is not an integer or ``a`` not square.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    a = array_argument("jnp.linalg.matrix_power", a)
    if a.ndim < 2:
        raise errors.explained(
            errors.ArgumentTypeError, "matrix_power.rank",
            f"{a.ndim}-dimensional array given. Array must be at least two-dimensional",
            advice="Give a square matrix.")
    if a.shape[-2] != a.shape[-1]:
        raise errors.explained(
            errors.ArgumentTypeError, "matrix_power.square",
            "Last 2 dimensions of the array must be square", advice=f"Got shape {a.shape}.")
    try:
        n = operator.index(n)
    except TypeError as error:
        raise errors.explained(
            errors.ArgumentTypeError, "matrix_power.exponent",
            f"exponent must be an integer, got {n}", advice="For other powers use eigh.") from error
    if n == 0:
        return eye(a.shape, a.dtype)
    if n < 0:
        a, n = inv(a), -n
    result = None
    while n:  # by the binary digits of n
        if n & 1:
            result = a if result is None else matmul_any(result, a)
        n >>= 1
        a = matmul_any(a, a) if n else a
    return result


def lstsq(a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None = None, *, numpy_resid: bool = False
          ) -> tuple[Any, Any, Any, Any]:
    """Return the x with the least ‖b - a x‖, the squared residuals, the rank, the singular values.

    Shapes: ``a`` (m, n), ``b`` (m,) or (m, k).  Singular values below ``rcond`` times the greatest
    count as zero.  ``numpy_resid``: residuals as NumPy gives them, none where the rank is below n.

    Raises: ValueError for sizes that do not fit; TypeError for other ranks.

    >>> jnp.linalg.lstsq(jnp.array([[1., 0.], [0., 2.], [0., 0.]]), jnp.array([1., 4., 5.]))[0]
    Array([1., 2.], dtype=float32)
    """
    a, b = inexact("lstsq", a, b)
    if a.shape[:1] != b.shape[:1]:
        raise errors.explained(
            errors.ArgumentError, "lstsq.sizes", "Leading dimensions of input arrays must match",
            advice=f"Got {a.shape} and {b.shape}.")
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise errors.explained(
            errors.ArgumentTypeError, "lstsq.rank",
            f"{a.ndim}-dimensional array given. Array must be two-dimensional",
            advice="a is a matrix, b a vector or a matrix; use jax.vmap for stacks.")
    m, n = a.shape
    eps = float(dtypes.finfo(dtypes.real_dtype(a.dtype)).eps)
    if rcond is None:
        rcond = eps * max(m, n)
    if isinstance(rcond, (int, float)):
        x, residuals, rank, s = _lstsq(a, b, None, known=eps if rcond < 0 else rcond)
    else:
        x, residuals, rank, s = _lstsq(a, b, where(rcond < 0, eps, rcond), known=0)
    if numpy_resid and (int(rank) < n or m <= n):
        residuals = residuals[:0]
    return x, residuals, rank, s


@library_function(static_argnames=("known",), whole=True)
def _lstsq(a: Any, b: Any, cut: Any, known: float) -> tuple[Any, Any, Any, Any]:
    m, n = a.shape
    dtype = a.dtype
    single = b.ndim == 1
    columns = b[:, None] if single else b
    real = dtypes.real_dtype(dtype)
    cut = literal(known, real) if cut is None else cut.astype(real)
    u, s, vh = svd(a, full_matrices=False)
    if min(m, n):
        kept = (s > 0) & (s >= cut * s[0])
    else:
        kept = s > 0
    rank = kept.sum()
    inverse = where(kept, 1 / where(kept, s, literal(1, real)), literal(0, real)).astype(dtype)
    x = matmul(adjoint(vh), inverse[:, None] * matmul(adjoint(u), columns))
    left = columns - matmul(a, x)
    residuals = (left.real ** 2 + left.imag ** 2 if dtypes.is_complex(dtype) else left ** 2).sum(0)
    return x[:, 0] if single else x, residuals, rank, s


def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *,
         rcond: ArrayLike | None = None) -> Array:
    """Return the pseudo-inverses (…, n, m) of ``a`` (…, m, n).

    Singular values below ``rtol`` (also called ``rcond``) times the greatest count as zero; by
    default ten times the larger size times the machine epsilon.  ``hermitian``: ``a`` is its own
    adjoint.

    Raises: ValueError if both tolerances are given, or for fewer than two axes.

    >>> jnp.linalg.pinv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    if rcond is not None:
        if rtol is not None:
            raise errors.explained(
                errors.ArgumentError, "pinv.tolerance",
                "pinv: only one of rtol and rcond may be specified.", advice="They mean the same.")
        rtol = rcond
    a = inexact("pinv", a)
    if a.ndim < 2:
        raise errors.explained(
            errors.ArgumentError, "pinv.rank", f"pinv needs matrices, got shape {a.shape}.",
            advice="For a vector v it is v / (v @ v).")
    if rtol is None:
        rtol = 10.0 * max(a.shape[-2:]) * float(dtypes.finfo(a.dtype).eps)
    return _pinv(a, rtol, hermitian=bool(hermitian))


def _pseudo_inverse(a: Any, rtol: Any, hermitian: bool) -> Any:
    m, n = a.shape[-2:]
    if not m or not n:
        return transposed(a)
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    real = s.dtype
    rtol = array_argument("pinv", rtol).astype(real)
    cut = (rtol[..., None] if rtol.ndim else rtol) * s[..., :1]
    s = where(s > cut, s, literal(np.inf, real)).astype(a.dtype)
    return matmul(adjoint(vh), adjoint(u) / s[..., None])


_differentiable_pinv = custom_jvp(_pseudo_inverse, nondiff_argnums=(2,))


@_differentiable_pinv.defjvp
def _pinv_jvp(hermitian: bool, primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    """Return the pseudo-inverse p and its tangent, for a tangent t of a.

    dp = -p t p + p pᴴ tᴴ (1 - a p) + (1 - p a) tᴴ pᴴ p.
    """
    (a, rtol), (t, _) = primals, tangents
    p = _differentiable_pinv(a, rtol, hermitian)
    ph, th = adjoint(p), adjoint(t)
    across = matmul(matmul(p, ph), th)
    across = across - matmul(matmul(across, a), p)
    along = matmul(th, matmul(ph, p))
    along = along - matmul(p, matmul(a, along))
    return p, across + along - matmul(matmul(p, t), p)


@library_function(static_argnames=("hermitian",), whole=True)
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    if hermitian and a.shape[-1] == a.shape[-2]:
        a = (a + adjoint(a)) / 2  # what the decomposition reads, so that both entries have a part
    return _differentiable_pinv(a, rtol, hermitian)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse of the linear map whose first ``ind`` axes are its result.

    Raises: ValueError if these axes have not as many elements as the others.

    >>> jnp.linalg.tensorinv(2 * jnp.eye(4).reshape(2, 2, 4), ind=2).shape
    (4, 2, 2)
    """
    a = array_argument("jnp.linalg.tensorinv", a)
    if ind <= 0:
        raise errors.explained(
            errors.ArgumentError, "tensorinv.ind", f"ind must be a positive integer; got {ind=}",
            advice="It counts the axes of the result.")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise errors.explained(
            errors.ArgumentError, "tensorinv.sizes",
            "tensorinv is only possible when the product of the first `ind` dimensions equals that "
            f"of the remaining dimensions. got arr.shape={a.shape} with ind={ind}.",
            advice="Choose another ind.")
    return inv(a.reshape(math.prod(rows), -1)).reshape(*columns, *rows)


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """Return x with tensordot(a, x, x.ndim) = b; ``axes`` of ``a`` are moved to its end first.

    Raises: ValueError for sizes that do not fit.

    >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    a, b = array_argument("jnp.linalg.tensorsolve", a, b)
    if axes is not None:
        moved = tuple(operator.index(d) % a.ndim for d in axes)
        a = transpose(a, (*(d for d in range(a.ndim) if d not in moved), *moved))
    if a.shape[:b.ndim] != b.shape:
        raise errors.explained(
            errors.ArgumentError, "tensorsolve.leading",
            "After moving axes to end, leading shape of a must match shape of b. got "
            f"a.shape={a.shape}, b.shape={b.shape}",
            advice="The first axes of a must have the sizes of b.")
    shape = a.shape[b.ndim:]
    if math.prod(a.shape[:b.ndim]) != math.prod(shape):
        raise errors.explained(
            errors.ArgumentError, "tensorsolve.sizes",
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); "
            f"got a.shape={a.shape}, b.ndim={b.ndim}.", advice="The map must be square.")
    return solve(a.reshape(b.size, math.prod(shape)), b.ravel()).reshape(shape)

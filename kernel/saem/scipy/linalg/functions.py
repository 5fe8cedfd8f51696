"""What is the exponential, the square root, any function of a matrix?

Read before: ``scipy.linalg.equations``.
Invariant: ``sqrtm(a) @ sqrtm(a)`` is ``a``, ``expm`` of a sum of commuting matrices a product.
Source: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005);
Björck & Hammarling, "A Schur method for the square root of a matrix" (1983); Golub & Van Loan,
Matrix Computations (4th ed.), 9.1.4 (Parlett's recurrence).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.linalg.algebra import adjoint, eye, matmul, triu
from saem.linalg.reduction import schur
from saem.linalg.triangular import triangular_solve
from saem.loops.conditional import cond
from saem.loops.while_loop import fori_loop
from saem.numpy.floating_point import ceil, floor, isfinite
from saem.numpy.linalg.equations import solved
from saem.numpy.matrices import diag
from saem.numpy.reductions import max as greatest
from saem.numpy.reductions import min as least
from saem.numpy.reductions import sum as total
from saem.numpy.searching import where
from saem.numpy.transcendental import log2
from saem.ops.linear import literal
from saem.ops.maths import exp2, sqrt
from saem.ops.reshard import reshard_like
from saem.scipy.linalg.equations import as_matrices, inexact, refuse
from saem.transform.derivatives import jvp
from saem.typing import Array, ArrayLike

# From the precision to the degree of the Padé approximant and the greatest norm for which it is
# exact to rounding (Higham 2005, table 2.3).
DEGREES = {"float32": (7, 3.925724783138660), "float64": (13, 5.371920351148152)}


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Return the matrix exponentials of ``A`` (…, n, n).

    ``upper_triangular``: A is, which makes solving cheaper.  NaN if more than ``max_squarings``
    halvings of A are needed.

    Raises: ValueError if A is not a stack of square matrices.

    >>> jax.scipy.linalg.expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _expm(A, upper_triangular=bool(upper_triangular), max_squarings=int(max_squarings))


@library_function(static_argnames=("upper_triangular", "max_squarings"), whole=True)
def _expm(A: Any, upper_triangular: bool, max_squarings: int) -> Any:
    (A,) = inexact("expm", A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise refuse("expm", "square", "Expected A to be a (batched) square matrix, got "
                     f"A.shape={A.shape}.")
    if not A.size:
        return A
    real = dtypes.real_dtype(A.dtype)
    if real.name not in DEGREES:
        raise errors.explained(errors.DTypeError, "expm.dtype",
                               f"A.dtype={A.dtype} is not supported.",
                               advice="Convert A to float32 or float64 first.")
    degree, bound = DEGREES[real.name]
    norm = greatest(total(abs(A), axis=-2), axis=-1)
    needed = log2(where(norm > 0, norm, 1) / literal(bound, real))
    halvings = where(needed > 0, ceil(needed), 0)
    scaled = A / exp2(halvings)[..., None, None].astype(A.dtype)
    even, odd = _pade(scaled, degree)
    if upper_triangular:
        result = triangular_solve(even - odd, even + odd, left_side=True)
    else:
        result = solved(even - odd, even + odd)
    most = greatest(halvings)

    def square(i: Any, r: Any) -> Any:
        again = cond(i < most, lambda x: matmul(x, x), lambda x: x, r)
        return where((i < halvings)[..., None, None], again, r)

    # As JAX counts squarings, a norm of up to twice the bound needs none: one more is allowed.
    result = fori_loop(0, max_squarings + 1, square, result)
    return where((floor(needed) > max_squarings)[..., None, None], np.nan, result)


def _pade(a: Any, degree: int) -> tuple[Any, Any]:
    """Return the even and the odd part of the numerator of the approximant of exp."""
    weights = [math.factorial(2 * degree - k) * math.factorial(degree)
               / (math.factorial(2 * degree) * math.factorial(k) * math.factorial(degree - k))
               for k in range(degree + 1)]
    one = eye(a.shape, a.dtype)
    a2 = matmul(a, a)
    powers = [one, a2]
    while 2 * len(powers) <= min(degree, 7):
        powers.append(matmul(powers[-1], a2))

    def polynomial(coefficients: list[float]) -> Any:
        """Return the sum of coefficients times even powers of a."""
        low, high = coefficients[:4], coefficients[4:]
        if degree > 7:  # two steps, so that no power beyond the sixth is needed
            value = sum(w * p for w, p in zip(high, powers[1:]))
            return matmul(powers[3], value) + sum(w * p for w, p in zip(low, powers))
        return sum(w * p for w, p in zip(coefficients, powers))

    return polynomial(weights[0::2]), matmul(a, polynomial(weights[1::2]))


@library_function(static_argnames=("method", "compute_expm"), whole=True)
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Array | tuple[Array, Array]:
    """Return exp(A) and its derivative in the direction ``E``; only that unless ``compute_expm``.

    Raises: ValueError for shapes that do not fit.

    >>> jax.scipy.linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    A, E = as_matrices(A, E)
    A, E = inexact("expm_frechet", A, E)
    for name, x in (("A", A), ("E", E)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise refuse("expm_frechet", "square", f"expected {name} to be a (batched) square "
                         f"matrix, got {name}.shape={x.shape}")
    if A.shape != E.shape:
        raise refuse("expm_frechet", "shapes", "expected A and E to be the same shape, got "
                     f"A.shape={A.shape} E.shape={E.shape}")
    value, derivative = jvp(expm, (A,), (reshard_like(E, aval_of(A)),))
    return (value, derivative) if compute_expm else derivative


@library_function(static_argnames=("blocksize",), whole=True)
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Return the complex matrix whose square is ``A`` (n, n).

    Raises: NotImplementedError for blocks; TypeError or ValueError if A is not square.

    >>> jax.scipy.linalg.sqrtm(jnp.array([[4., 0.], [0., 9.]]))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    (A,) = inexact("sqrtm", A)
    t, z = schur(A.astype(dtypes.complex_dtype(A.dtype)))
    if t.ndim != 2:
        raise refuse("sqrtm", "rank", f"sqrtm needs one matrix, got shape {t.shape}.")
    n = t.shape[0]
    roots = sqrt(t.diagonal())

    def column(j: Any, r: Any) -> Any:
        def row(k: Any, r: Any) -> Any:
            i = j - 1 - k  # from the diagonal upwards; what is not known yet is zero
            rest = t[i, j] - total(r[i] * r[:, j])
            both = roots[i] + roots[j]
            free = (both == 0) & (rest == 0)  # any number will do here, and 0 is taken
            return r.at[i, j].set(where(free, 0, rest / where(free, 1, both)))

        return fori_loop(0, j, row, r)

    r = fori_loop(1, n, column, diag(roots))
    return matmul(matmul(z, r), adjoint(z))


def funm(A: ArrayLike, func: Callable, disp: bool = True) -> Array | tuple[Array, Array]:
    """Return the matrix function of ``A`` (n, n) that ``func`` is for numbers; complex.

    Unless ``disp`` also an estimate of the relative error, which grows where eigenvalues are close.

    Raises: ValueError if A is not a square matrix.

    >>> jax.scipy.linalg.funm(jnp.array([[1., 0.], [0., 4.]]), jnp.sqrt)
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    (A,) = as_matrices(A)
    (A,) = inexact("funm", A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise refuse("funm", "square", "expected square array_like input")
    t, z = schur(A.astype(dtypes.complex_dtype(A.dtype)))
    t = triu(t)
    n = t.shape[0]
    real = dtypes.real_dtype(t.dtype)
    values = t.diagonal()
    start = diag(func(values)).astype(t.dtype)

    def band(p: Any, state: Any) -> Any:
        def element(i: Any, state: Any) -> Any:
            f, gap = state
            j = i + p
            # f t = t f at (i, j); f[i, j] itself is zero still, so sums may run over all k.
            step = total(t[i] * f[:, j]) - total(f[i] * t[:, j])
            distance = values[j] - values[i]
            value = where(distance == 0, step, step / where(distance == 0, 1, distance))
            return f.at[i, j].set(value), least(
                where(np.arange(2) == 0, gap, abs(distance)))

        return fori_loop(0, n - p, element, state)

    f, gap = fori_loop(1, n, band, (start, abs(t[0, 0])))
    out = matmul(matmul(z, f), adjoint(z))
    if disp:
        return out
    eps = float(dtypes.finfo(real).eps)
    norm = greatest(total(abs(triu(t, 1)), axis=0), initial=0)
    error = eps / where(gap == 0, eps, gap) * norm
    error = where(error > 1, 1, where(error < eps, eps, error)).astype(real)
    return out, where(isfinite(out).all(), error, literal(np.inf, real))

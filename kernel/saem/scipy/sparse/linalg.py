"""How is A x = b solved when A is only known as a function?

In Krylov subspaces: each step applies A once.  Conjugate gradients for symmetric positive A; two
methods for any A: GMRES, which keeps a basis, and BiCGSTAB, which keeps eight vectors.

Read before: ``derivatives.implicit_solve``, ``saem.tree``.
Invariant: derivatives are those of the solution, by another solve, whatever number of steps was
taken (tests/kernel/scipy/test_iterative.py).
Source: Hestenes and Stiefel 1952; Saad and Schultz 1986; van der Vorst 1992; Barrett et al. 1994,
"Templates for the solution of linear systems".
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from saem import lax, tree
from saem import numpy as jnp
from saem.core import errors
from saem.core.avals import is_array_like
from saem.core.dtypes import finfo
from saem.derivatives.closure_conversion import linear_transpose
from saem.flatten_util import ravel_pytree
from saem.numpy.promote import promote_dtypes_inexact
from saem.typing import Array

__all__ = ["bicgstab", "cg", "gmres"]

# -- vectors that are pytrees ----------------------------------------------------------------------


def _dot(x: Any, y: Any) -> Array:
    """Return the inner product of two vectors, its first conjugated."""
    parts = tree.map(lambda a, b: jnp.vdot(a, b, precision=lax.Precision.HIGHEST), x, y)
    return functools.reduce(operator.add, tree.leaves(parts))


def _square(x: Any) -> Array:
    """Return the squared length of a vector, real."""
    return functools.reduce(operator.add, [
        jnp.sum(jnp.square(leaf.real) + jnp.square(leaf.imag))
        if jnp.iscomplexobj(leaf) else jnp.sum(jnp.square(leaf)) for leaf in tree.leaves(x)])


def _plus(x: Any, scale: Any, y: Any) -> Any:
    """Return x + scale y, for real vectors y and a real scale, or complex ones and either."""
    return tree.map(lambda a, b: a + jnp.asarray(scale).astype(b.dtype) * b, x, y)


# -- the methods -----------------------------------------------------------------------------------


def _cg(A, b, x0, maxiter, tol, atol, M):
    limit = jnp.maximum(jnp.square(tol) * _square(b), jnp.square(atol))
    r0 = _plus(b, -1, A(x0))
    z0 = M(r0)

    def unfinished(state):
        _, r, gamma, _, k = state
        size = gamma if M is _identity else _square(r)
        return (size > limit) & (k < maxiter)

    # A and M are Hermitian, so their products with a vector from both sides are real.
    def step(state):
        x, r, gamma, p, k = state
        Ap = A(p)
        alpha = gamma / _dot(p, Ap).real.astype(gamma.dtype)
        x, r = _plus(x, alpha, p), _plus(r, -alpha, Ap)
        z = M(r)
        new = _dot(r, z).real.astype(gamma.dtype)
        return x, r, new, _plus(z, new / gamma, p), k + 1

    gamma = _dot(r0, z0).real
    return lax.while_loop(unfinished, step, (x0, r0, gamma, z0, 0))[0]


def _bicgstab(A, b, x0, maxiter, tol, atol, M):
    limit = jnp.maximum(jnp.square(tol) * _square(b), jnp.square(atol))
    r0 = _plus(b, -1, A(x0))

    def unfinished(state):
        _, r, *_, k = state
        # k < 0 where a divisor became 0 and no further step can be taken.
        return (_square(r) > limit) & (k < maxiter) & (k >= 0)

    def step(state):
        x, r, alpha, omega, rho, p, q, k = state
        new = _dot(r0, r)
        beta = new / rho * alpha / omega
        p = _plus(r, beta, _plus(p, -omega, q))
        p_hat = M(p)
        q = A(p_hat)
        alpha = new / _dot(r0, q)
        s = _plus(r, -alpha, q)
        done = _square(s) < limit
        s_hat = M(s)
        t = A(s_hat)
        omega = _dot(t, s) / _dot(t, t)
        half = _plus(x, alpha, p_hat)
        x = tree.map(functools.partial(jnp.where, done), half, _plus(half, omega, s_hat))
        r = tree.map(functools.partial(jnp.where, done), s, _plus(s, -omega, t))
        k = jnp.where((omega == 0) | (alpha == 0), -11, k + 1)
        k = jnp.where(new == 0, -10, k)
        return x, r, alpha, omega, new, p, q, k

    one = jnp.ones((), jnp.result_type(*tree.leaves(r0)))
    # In the first step p must be r: beta times the earlier direction is 0 with p = q = 0.
    zeros = tree.map(jnp.zeros_like, r0)
    start = (x0, r0, one, one, one, zeros, zeros, jnp.asarray(0))
    return lax.while_loop(unfinished, step, start)[0]


def _orthogonal(w, k, basis, eps):
    """Return ``w`` orthogonal to all rows of ``basis``, of length 1, and its old components.

    It is made orthogonal twice, since once leaves rounding errors of the size of ``w``.  It will be
    row ``k + 1``; it is zero where nothing but rounding errors is left of it.
    """
    length = jnp.linalg.norm(w)
    column = jnp.zeros(basis.shape[0], basis.dtype)
    for _ in range(2):
        overlap = jnp.conj(basis @ jnp.conj(w))
        w, column = w - overlap @ basis, column + overlap
    rest = jnp.linalg.norm(w)
    fresh = rest > eps * length
    w = jnp.where(fresh, w / jnp.where(fresh, rest, 1).astype(w.dtype), 0)
    return w, column.at[k + 1].add(jnp.where(fresh, rest, 0).astype(basis.dtype))


def _best(hessenberg, beta, eps):
    """Return the combination of basis vectors with the smallest residual."""
    dtype = hessenberg.dtype
    target = jnp.zeros(hessenberg.shape[0], dtype).at[0].set(beta.astype(dtype))
    return jnp.linalg.lstsq(hessenberg, target, rcond=eps)[0]


def _rotated(turn, column, k):
    """Return ``turn``, which makes the first k columns upper triangular, for ``column`` k too.

    It turns the plane of its rows k and k + 1 (Givens).  Then abs(turn[k + 1, 0]) is the length of
    the smallest residual of all combinations of k + 1 basis vectors, relative to the first one.
    """
    turned = turn @ column
    a, b = turned[k], turned[k + 1]
    length = jnp.hypot(jnp.abs(a), jnp.abs(b)).astype(a.dtype)
    some = length != 0
    c, s = (jnp.where(some, v / jnp.where(some, length, 1), w) for v, w in ((a, 1), (b, 0)))
    plane = jnp.stack([jnp.conj(c) * turn[k] + jnp.conj(s) * turn[k + 1],
                       c * turn[k + 1] - s * turn[k]])
    return lax.dynamic_update_slice_in_dim(turn, plane, k, 0)


class _Restarted(NamedTuple):
    """The equations M A x = M b of flat vectors, as the cycles of GMRES solve them."""

    product: Callable[[Array], Array]  # M A v of a vector v
    residual: Callable[[Array], Array]  # M (b - A x) of a solution x
    limit: Array  # the length of a residual that is small enough
    eps: float
    restart: int  # the number of basis vectors in a cycle
    incremental: bool


def _expand(problem, k, basis, hessenberg):
    """Take step ``k`` of Arnoldi's iteration: one more basis vector, one more column."""
    w, column = _orthogonal(problem.product(basis[k]), k, basis, problem.eps)
    return basis.at[k + 1].set(w), hessenberg.at[:, k].set(column)


def _cycle(problem, state):
    """Return a better solution: the best one in the Krylov space of the residual."""
    x, r, beta, k = state
    restart, eps = problem.restart, problem.eps
    basis = jnp.zeros((restart + 1, x.size), x.dtype).at[0].set(
        r / jnp.where(beta == 0, 1, beta).astype(r.dtype))
    hessenberg = jnp.zeros((restart + 1, restart), x.dtype)
    if problem.incremental:
        def unfinished(inner):
            i, turn, *_ = inner
            return (i < restart) & (beta * jnp.abs(turn[i, 0]) > problem.limit)

        def step(inner):
            i, turn, *held = inner
            basis, hessenberg = _expand(problem, i, *held)
            return i + 1, _rotated(turn, hessenberg[:, i], i), basis, hessenberg

        *_, basis, hessenberg = lax.while_loop(
            unfinished, step, (0, jnp.eye(restart + 1, dtype=x.dtype), basis, hessenberg))
    else:
        basis, hessenberg = lax.fori_loop(
            0, restart, lambda i, s: _expand(problem, i, *s), (basis, hessenberg))
    x = x + _best(hessenberg, beta, eps) @ basis[:-1]
    r = problem.residual(x)
    return x, r, jnp.linalg.norm(r), k + 1


def _gmres(A, b, x0, maxiter, tol, atol, M, restart, incremental):
    flat_b, unravel = ravel_pytree(b)
    length = jnp.sqrt(_square(b))
    # Residuals are measured after M, so the limit is too.
    change = jnp.linalg.norm(ravel_pytree(M(b))[0]) / jnp.maximum(length, 1e-37)
    problem = _Restarted(
        lambda v: ravel_pytree(M(A(unravel(v))))[0],
        lambda x: ravel_pytree(M(_plus(b, -1, A(unravel(x)))))[0],
        jnp.maximum(tol * length, atol) * change, float(finfo(flat_b.dtype).eps),
        min(restart, flat_b.size), incremental)
    x = ravel_pytree(x0)[0]
    r = problem.residual(x)
    if jnp.iscomplexobj(r) and not jnp.iscomplexobj(flat_b):
        raise errors.explained(
            errors.DTypeError, "gmres.C2", f"A x is complex where b has dtype {flat_b.dtype}",
            advice="Convert b to a complex dtype first.")
    state = (x, r, jnp.linalg.norm(r), 0)
    x, *_ = lax.while_loop(lambda s: (s[2] > problem.limit) & (s[3] < maxiter),
                           functools.partial(_cycle, problem), state)
    return unravel(x)


# -- the public functions --------------------------------------------------------------------------


def _identity(x: Any) -> Any:
    return x


def _operator(A: Any) -> Callable:
    """Return as a function what is one, a matrix, or whatever has a shape and multiplies by ``@``.

    Raises: ShapeError unless its shape is square; TypeError for anything else.
    """
    if callable(A):
        return A
    if not (hasattr(A, "shape") and hasattr(A, "__matmul__")):
        raise errors.explained(errors.ArgumentTypeError, "cg.C2",
                               f"linear operator must be either a function or ndarray: {A}",
                               advice="Pass the function x -> A x.")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise errors.explained(
            errors.ShapeError, "cg.C1",
            f"linear operator must be a square matrix, but has shape: {tuple(A.shape)}",
            advice="It maps vectors to vectors of the same shape.")
    if is_array_like(A):
        return lambda x: jnp.matmul(A, x, precision=lax.Precision.HIGHEST)
    return lambda x: A @ x


def _operands(A: Any, b: Any, x0: Any, M: Any) -> tuple:
    """Return all four as functions and vectors of one floating dtype.

    Raises: ShapeError where shapes differ; ValueError where structures do.
    """
    A, M = _operator(A), _identity if M is None else _operator(M)
    x0 = tree.map(jnp.zeros_like, b) if x0 is None else x0
    leaves = promote_dtypes_inexact(*map(jnp.asarray, tree.leaves(b) + tree.leaves(x0)))
    count = len(tree.leaves(b))
    shapes = [[x.shape for x in part] for part in (leaves[count:], leaves[:count])]
    if tree.structure(b) != tree.structure(x0):
        raise errors.explained(
            errors.ArgumentError, "cg.C3", "x0 and b must have matching tree structure: "
            f"{tree.structure(x0)} vs {tree.structure(b)}", advice="Leave out x0 to start at 0.")
    if shapes[0] != shapes[1]:
        raise errors.explained(
            errors.ShapeError, "cg.C4", "arrays in x0 and b must have matching shapes: "
            f"{shapes[0]} vs {shapes[1]}", advice="Leave out x0 to start at 0.")
    b = tree.unflatten(tree.structure(b), leaves[:count])
    x0 = tree.unflatten(tree.structure(x0), leaves[count:])
    return A, b, x0, M


def _size(b: Any) -> int:
    return sum(leaf.size for leaf in tree.leaves(b))


def _transposed(f: Callable, example: Any) -> Callable:
    transposed = linear_transpose(f, example)
    return lambda x: transposed(x)[0]


def _solved(method: Callable, A: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any, M: Any,
            symmetric: bool) -> Any:
    """Return the solution that ``method`` finds, with the derivatives of a solution."""
    A, b, x0, M = _operands(A, b, x0, M)
    maxiter = 10 * _size(b) if maxiter is None else maxiter

    def solve(f, target):
        return method(f, target, x0, maxiter, tol, atol, M)

    def solve_transposed(f, target):
        inverse = M if M is _identity else _transposed(M, b)
        return method(f, target, tree.map(jnp.zeros_like, x0), maxiter, tol, atol, inverse)

    return lax.custom_linear_solve(A, b, solve=solve, transpose_solve=None if symmetric
                                   else solve_transposed, symmetric=symmetric)


def cg(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
       maxiter: int | None = None, M: Any = None) -> tuple[Any, None]:
    """Solve A x = b for symmetric (or Hermitian) positive A by conjugate gradients.

    A: a function of a pytree like ``b``, or a matrix, which may be sparse.  x0: where to start, 0
    if None.
    tol, atol: stop when |b - A x| ≤ max(tol |b|, atol).  maxiter: 10 times the size of b if None.
    M: an approximate inverse of A.
    Returns: the solution, and None.  Raises: ValueError for shapes that do not fit.

    >>> cg(jnp.diag(jnp.array([1., 2.])), jnp.array([1., 4.]))[0]
    Array([1., 2.], dtype=float32)
    """
    return _solved(_cg, A, b, x0, tol, atol, maxiter, M, symmetric=_is_symmetric(b)), None


def _is_symmetric(b: Any) -> bool:
    """Return whether a positive A, which is Hermitian, is its own transpose: if it is real."""
    return not any(jnp.iscomplexobj(leaf) for leaf in tree.leaves(b))


def bicgstab(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
             maxiter: int | None = None, M: Any = None) -> tuple[Any, None]:
    """Solve A x = b by the stabilized method of biconjugate gradients.

    The arguments are those of ``cg``, but A may be any invertible operator.
    Returns: the solution, and None.  Raises: ValueError for shapes that do not fit.

    >>> bicgstab(jnp.array([[1., 1.], [0., 2.]]), jnp.array([3., 4.]))[0].round(3)
    Array([1., 2.], dtype=float32)
    """
    return _solved(_bicgstab, A, b, x0, tol, atol, maxiter, M, symmetric=False), None


def gmres(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
          restart: int = 20, maxiter: int | None = None, M: Any = None,
          solve_method: str = "batched") -> tuple[Any, Any]:
    """Solve A x = b by the generalized method of minimal residuals.

    The arguments are those of ``cg``, but A may be any invertible operator.
    restart: how many basis vectors are kept.  solve_method: 'batched' makes all of them before it
    looks at the residual, 'incremental' looks at each.
    Returns: the solution, and 0 if it was reached, else 1.
    Raises: ValueError for shapes that do not fit, another ``solve_method`` or ``restart`` below 0;
    IndexError for ``restart`` 0; TypeError for a complex A with a real b.

    >>> gmres(jnp.array([[1., 1.], [0., 2.]]), jnp.array([3., 4.]))[0].round(3)
    Array([1., 2.], dtype=float32)
    """
    if solve_method not in ("incremental", "batched"):
        raise errors.explained(
            errors.ArgumentError, "gmres.C1", f"invalid solve_method {solve_method}, must be "
            "either 'incremental' or 'batched'", advice="They find the same solution.")
    if restart < 1:
        raise errors.explained(
            errors.ArgumentError if restart < 0 else errors.JAXIndexError, "gmres.C3",
            f"restart must be at least 1, got {restart}", advice="A basis needs a vector.")
    if hasattr(A, "dtype") and not jnp.iscomplexobj(A):  # the basis is of the dtype of A's products
        b = tree.map(lambda x: jnp.asarray(x, jnp.promote_types(jnp.result_type(x), A.dtype)), b)
    method = functools.partial(_gmres, restart=restart, incremental=solve_method == "incremental")
    x = _solved(method, A, b, x0, tol, atol, maxiter, M, symmetric=False)
    A, b, _, _ = _operands(A, b, x0, M)
    missed = _square(_plus(b, -1, A(lax.stop_gradient(x)))) > jnp.maximum(
        jnp.square(tol) * _square(b), jnp.square(atol)) * 4
    return x, jnp.where(missed, 1, 0)

"""What can be done with matrices that have three diagonals?

A Hermitian matrix is turned into a real tridiagonal one, the first step towards its eigenvalues;
and tridiagonal systems of equations are solved in time proportional to their size.

Read before: ``linalg.qr``.
Invariant: x = Q T Qᴴ; in ``tridiagonal_solve`` the first element of the lower and the last of the
upper diagonal are not read.
Source: Golub & Van Loan, Matrix Computations (4th ed.), 8.3.1 and 4.3; LAPACK, sytrd and gtsv.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import UndefinedPrimal, primitive
from saem.core.trace import bind
from saem.linalg.algebra import rows_scaled, shape_of
from saem.linalg.custom_calls import (
    character,
    custom_call,
    lapack,
    nan_unless,
    on_gpu,
    on_tpu,
    refuse_platform,
    status,
)
from saem.linalg.families import (
    MatrixOperation,
    NoDerivative,
    each_matrix,
    real_aval,
    weak_as_operands,
)
from saem.linalg.qr import reflector
from saem.loops.scan import scan
from saem.ops.arithmetic import neg
from saem.ops.filling import full
from saem.ops.linear import add_cotangents, moveaxis, zeros_of
from saem.ops.shape import concatenate, expand_dims
from saem.ops.slicing import slice_in_dim
from saem.transform.staging import write_function
from saem.typing import Array, ArrayLike


@primitive("tridiagonal")
class Tridiagonal(NoDerivative):
    """T with the vectors of its reflections, its diagonals (n,) and (n - 1,), the factors (n - 1,).
    """

    lower_half: bool

    multiple_results = True
    renamed: ClassVar[dict[str, str]] = {"lower": "lower_half"}

    @weak_as_operands
    def typing(self, x):
        leading = self.check(x)
        n = x.shape[-1]
        if x.shape[-2] != n or not n:
            raise errors.explained(
                errors.ShapeError, "tridiagonal.C1",
                f"The input to tridiagonal must be a square matrix. Got shape {x.shape[-2:]}.",
                advice="It has at least one row.")
        return [ShapedArray(x.shape, x.dtype), real_aval((*leading, n), x.dtype),
                real_aval((*leading, n - 1), x.dtype), ShapedArray((*leading, n - 1), x.dtype)]

    @each_matrix(2)
    def evaluate(self, x):
        n = len(x)
        kept = x.copy()
        half = np.tril(x) if self.lower_half else np.triu(x)
        whole = half + half.conj().T
        np.fill_diagonal(whole, np.diagonal(x).real)
        off, taus = np.zeros(n - 1, x.real.dtype), np.zeros(n - 1, x.dtype)
        # The upper triangle is worked through from its last column, with vectors read backwards.
        order = np.arange(n) if self.lower_half else np.arange(n)[::-1]
        for step in range(n - 1):
            i = order[step]
            rest = order[step + 1:]
            v, tau, beta = reflector(whole[rest, i])
            h = np.eye(len(rest), dtype=x.dtype) - tau * np.outer(v, v.conj())
            whole[np.ix_(rest, rest)] = h.conj().T @ whole[np.ix_(rest, rest)] @ h
            place = step if self.lower_half else n - 2 - step
            off[place], taus[place] = np.real(beta), tau
            kept[rest[0], i], kept[rest[1:], i] = beta, v[1:]
        diagonal = np.diagonal(whole).real
        np.fill_diagonal(kept, diagonal)
        return [kept, diagonal.astype(off.dtype), off, taus]

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        if not aval.size:
            return [ctx.constant(0, out) for out in ctx.out_avals]
        if on_gpu(ctx):
            target, config = "cusolver_sytrd_ffi", {"lower": str(self.lower_half).lower()}
        elif ctx.module.platform == "cpu":
            target = lapack("sytrd", aval.dtype)
            config = {"uplo": character("L" if self.lower_half else "U")}
        else:
            raise refuse_platform(ctx, "tridiagonal")
        leading = aval.ndim - 2
        *made, info = custom_call(
            ctx, target, [x], [*ctx.out_avals, status(aval.shape[:leading])], leading=leading,
            config=config, reuse={0: 0})
        return nan_unless(ctx, info, made)


@primitive("tridiagonal_solve")
class TridiagonalSolve(MatrixOperation):
    """The X with A X = B, where A has the diagonals ``dl``, ``d`` and ``du`` (n,); B is (n, k)."""

    perturb_singular: bool = False

    cores = (1, 1, 1, 2)

    @weak_as_operands
    def typing(self, dl, d, du, b):
        self.check_ranks(dl, d, du, b)
        for aval in (dl, du):
            if aval.shape != d.shape:
                raise errors.explained(
                    errors.ShapeError, "tridiagonal_solve.C1",
                    "tridiagonal_solve requires that all diagonal arguments have the same shape.",
                    advice=f"Got {dl.shape}, {d.shape} and {du.shape}: the first element of the "
                    "lower and the last of the upper diagonal are there, but are not read.")
        if b.shape[:-1] != d.shape:
            raise errors.explained(
                errors.ShapeError, "tridiagonal_solve.C2",
                "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the "
                "dimensions of the diagonal arguments.", advice=f"Got {b.shape} and {d.shape}.")
        return ShapedArray(b.shape, b.dtype)

    def check_ranks(self, *avals: ShapedArray) -> None:
        for place, (aval, core) in enumerate(zip(avals, self.cores)):
            if not dtypes.is_inexact(aval.dtype):
                self.check(*avals)
            if aval.ndim < core:
                raise errors.explained(
                    errors.ShapeError, "tridiagonal_solve.rank",
                    f"Input {place} to tridiagonal_solve must have rank at least {core}, but got "
                    f"shape={aval.shape}", advice="Vectors of right sides are columns: b[:, None].")
        if any(a.dtype != avals[0].dtype for a in avals):
            self.check(*avals)

    @each_matrix(1, 1, 1, 2)
    def evaluate(self, dl, d, du, b):
        a = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
        if not self.perturb_singular:
            try:
                return np.linalg.solve(a, b)
            except np.linalg.LinAlgError:
                return np.full_like(b, np.nan)
        least = np.finfo(a.dtype).eps * np.max(np.abs(a))
        rows = np.concatenate([a, b], axis=1)
        for k in range(len(d)):  # elimination, in which a zero pivot becomes a small number
            p = k + int(np.argmax(np.abs(rows[k:, k])))
            rows[[k, p]] = rows[[p, k]]
            if rows[k, k] == 0:
                rows[k, k] = least
            rows[k] /= rows[k, k]
            others = np.arange(len(d)) != k
            rows[others] -= np.outer(rows[others, k], rows[k])
        return rows[:, len(d):]

    def lower(self, ctx, dl, d, du, b):
        aval = ctx.avals[b]
        if not aval.size:
            return ctx.constant(0, aval)
        leading = aval.ndim - 2
        operands = [dl, d, du, b]
        platform = ctx.module.platform
        if self.perturb_singular:
            if platform == "cpu":
                lapack("gtsv", aval.dtype)  # registers the targets
                target = "tridiagonal_solve_perturbed_ffi"
            elif platform in ("cuda", "gpu"):
                target = "cu_tridiagonal_solve_perturbed"
            else:
                raise errors.explained(
                    NotImplementedError, "tridiagonal_solve.perturb",
                    "perturb_singular=True is not supported on this platform.",
                    advice="Leave it out, or compute it on a CPU: jax.jit(f, backend='cpu').")
            return custom_call(ctx, target, operands, [aval], leading=leading)[0]
        if on_tpu(ctx) or (on_gpu(ctx) and aval.shape[-2] in (1, 2)):  # cuSPARSE begins at 3
            return write_function(ctx, by_elimination, *operands)[0]
        if on_gpu(ctx):
            return custom_call(ctx, "cusparse_gtsv2_ffi", operands, [aval], leading=leading,
                               reuse={0: 3})[0]
        if platform != "cpu":
            raise refuse_platform(ctx, "tridiagonal_solve")
        diagonal = ctx.avals[d]
        outs = [diagonal, diagonal, diagonal, aval, status(aval.shape[:leading])]
        *_, x, info = custom_call(ctx, lapack("gtsv", aval.dtype), operands, outs,
                                  leading=leading, reuse={i: i for i in range(4)})
        return nan_unless(ctx, info, [x])[0]

    def jvp(self, primals, tangents):
        (dl, d, du, _), (tl, td, tu, tb) = primals, tangents
        x = bind(self, *primals)
        right = tb
        if any(t is not None for t in (tl, td, tu)):
            right = add_cotangents(tb, neg(times(tl, td, tu, x)))
        return x, None if right is None else bind(self, dl, d, du, right)

    def transpose(self, ct, dl, d, du, b):
        if any(isinstance(x, UndefinedPrimal) for x in (dl, d, du)):
            raise errors.explained(
                NotImplementedError, "tridiagonal_solve.transpose",
                "tridiagonal_solve is linear in its last operand only.",
                advice="Differentiate it with jax.vjp instead of transposing it.")
        # The lower diagonal of the transpose is the upper one, moved by one, and the reverse.
        return [None, None, None, bind(self, later(du), d, earlier(dl), ct)]


def by_elimination(dl: Any, d: Any, du: Any, b: Any) -> list[Any]:
    """Return the X with A X = B, without exchanges of rows: one pass down and one up.

    Source: Golub & Van Loan, 4.3.6 (Thomas' algorithm).
    """
    n = shape_of(d)[-1]
    ends = [zero_at_end(d)]
    axis = len(shape_of(d)) - 1
    dl = concatenate([*ends, slice_in_dim(dl, 1, n, axis=axis)], axis)
    du = concatenate([slice_in_dim(du, 0, n - 1, axis=axis), *ends], axis)
    rows = [moveaxis(x, axis, 0) for x in (dl, d, du, b)]

    def column(x: Any) -> Any:
        return expand_dims(x, (len(shape_of(x)),))

    def down(above: Any, row: Any) -> Any:
        up_above, right_above = above
        low, middle, up, right = row
        pivot = middle - low * up_above
        above = up / pivot, (right - column(low) * right_above) / column(pivot)
        return above, above

    def back(below: Any, row: Any) -> Any:
        up, right = row
        x = right - column(up) * below
        return x, x

    start = [zeros_of(aval_of(row).update(shape=shape_of(row)[1:])) for row in (rows[0], rows[3])]
    _, eliminated = scan(down, tuple(start), tuple(rows))
    return [moveaxis(scan(back, start[1], eliminated, reverse=True)[1], 0, axis)]


def later(x: Any) -> Any:
    """Return ``x`` moved by one along its last axis, behind a zero."""
    axis = len(shape_of(x)) - 1
    return concatenate([zero_at_end(x), slice_in_dim(x, 0, shape_of(x)[axis] - 1, axis=axis)],
                       axis)


def earlier(x: Any) -> Any:
    """Return ``x`` moved back by one along its last axis, a zero behind it."""
    axis = len(shape_of(x)) - 1
    return concatenate([slice_in_dim(x, 1, shape_of(x)[axis], axis=axis), zero_at_end(x)], axis)


def zero_at_end(x: Any) -> Any:
    aval = aval_of(x)
    return full((*aval.shape[:-1], 1), 0, aval.dtype)


def times(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """Return the product of a tridiagonal matrix, diagonals of None being zero, with ``x``."""
    axis = len(shape_of(x)) - 2
    n = shape_of(x)[axis]
    aval = aval_of(x)
    edge = full((*aval.shape[:-2], 1, aval.shape[-1]), 0, aval.dtype)
    total = None
    if d is not None:
        total = rows_scaled(x, d)
    if dl is not None:
        before = concatenate([edge, slice_in_dim(x, 0, n - 1, axis=axis)], axis)
        total = add_cotangents(total, rows_scaled(before, dl))
    if du is not None:
        after = concatenate([slice_in_dim(x, 1, n, axis=axis), edge], axis)
        total = add_cotangents(total, rows_scaled(after, du))
    return total


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Any]:
    """Return T with reflections beside it, its diagonal, its off-diagonal, and the factors.

    Shapes: ``a`` (…, n, n) Hermitian, of which the ``lower`` or upper triangle is read; results
    (…, n, n), (…, n), (…, n - 1), (…, n - 1).

    Raises: TypeError or ValueError if ``a`` is not a stack of square matrices.

    >>> lax.linalg.tridiagonal(jnp.array([[1., 2.], [2., 3.]]))[1]
    Array([1., 3.], dtype=float32)
    """
    return bind(Tridiagonal(bool(lower)), a)


def tridiagonal_solve(dl: Array, d: Array, du: Array, b: Array, *,
                      perturb_singular: bool = False) -> Array:
    """Return the X with A X = B, where A has the lower, main and upper diagonals given.

    Shapes: diagonals (…, n), where ``dl[0]`` and ``du[n - 1]`` are not read; B (…, n, k).
    ``perturb_singular``: a pivot of zero becomes a small number, so that X is finite.

    Raises: TypeError for shapes that do not fit.

    >>> one = jnp.ones(3)
    >>> lax.linalg.tridiagonal_solve(0 * one, 4 * one, 0 * one, jnp.array([[4.], [8.], [2.]]))
    Array([[1. ],
           [2. ],
           [0.5]], dtype=float32)
    """
    return bind(TridiagonalSolve(bool(perturb_singular)), dl, d, du, b)

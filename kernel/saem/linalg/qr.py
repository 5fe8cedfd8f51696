"""How is a matrix written as Q R, with orthonormal columns of Q and triangular R?

By Householder reflections H = 1 - τ v vᴴ, one for each column.  LAPACK keeps each v below the
diagonal of R (its first entry 1 is not stored) and the factors τ beside it; Q is their product.

Read before: ``linalg.triangular``.  Read after: ``linalg.reduction``.
Invariant: x = Q R, or x[:, p] = Q R with pivoting, and the diagonal of R is real.
Source: Golub & Van Loan, Matrix Computations (4th ed.), 5.1, 5.2 and 5.4.2; LAPACK, geqrf, geqp3,
orgqr, ormqr; Walter & Lehmann, "Algorithmic differentiation of linear algebra functions" (2010).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from saem.compile.text import strong_aval
from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.dimensions import smaller
from saem.core.primitive import NOT_LINEAR, primitive
from saem.core.trace import bind
from saem.linalg.algebra import (
    I32,
    above,
    adjoint,
    beside,
    block,
    diagonal_part,
    is_complex,
    matmul,
    number,
    rows_in_order,
    shape_of,
    transposed,
    tril,
    triu,
)
from saem.linalg.custom_calls import (
    custom_call,
    identities,
    lapack,
    masked,
    on_gpu,
    on_tpu,
    refuse_platform,
    xla_call,
)
from saem.linalg.families import MatrixOperation, NoDerivative, each_matrix, weak_as_operands
from saem.linalg.triangular import TriangularSolve
from saem.ops.arithmetic import add, neg, sub
from saem.ops.linear import broadcast_in_dim
from saem.ops.numbers import complex as complex_
from saem.ops.numbers import imag
from saem.transform.staging import write_function
from saem.typing import Array, ArrayLike


def reflector(x: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """Return v (v[0] = 1), τ and β, so that (1 - τ v vᴴ)ᴴ x is (β, 0, …).

    Source: LAPACK, larfg.
    """
    v = x.astype(np.result_type(x, np.float32))
    head, rest = v[0], np.linalg.norm(v[1:])
    if rest == 0 and np.imag(head) == 0:
        v = np.zeros_like(v)
        v[0] = 1
        return v, v.dtype.type(0), head
    beta = -np.copysign(np.hypot(np.abs(head), rest), np.real(head))
    tau = (beta - head) / beta
    v = v / (head - beta)
    v[0] = 1
    return v, tau, v.dtype.type(beta)


def householder(x: np.ndarray, pivoted: bool = False
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return R with the vectors v below it, the factors τ, and the order of columns."""
    x = x.copy()
    m, n = x.shape
    taus = np.zeros(min(m, n), x.dtype)
    order = np.arange(n, dtype=I32)
    for k in range(min(m, n)):
        if pivoted:
            p = k + int(np.argmax(np.linalg.norm(x[k:, k:], axis=0)))
            x[:, [k, p]], order[[k, p]] = x[:, [p, k]], order[[p, k]]
        v, taus[k], beta = reflector(x[k:, k])
        x[k:, k + 1:] -= np.conj(taus[k]) * np.outer(v, v.conj() @ x[k:, k + 1:])
        x[k, k], x[k + 1:, k] = beta, v[1:]
    return x, taus, order


class Factorization(NoDerivative):
    """Abstract: R with the vectors below it, and the factors."""

    __slots__ = ()
    multiple_results = True

    def factors(self, x: ShapedArray) -> ShapedArray:
        leading = self.check(x)
        return ShapedArray((*leading, smaller(*x.shape[-2:])), x.dtype)


@primitive("geqrf")
class Geqrf(Factorization):
    """The reflections of the QR decomposition: packed matrix (m, n), factors (k,)."""

    @weak_as_operands
    def typing(self, x):
        return [ShapedArray(x.shape, x.dtype), self.factors(x)]

    @each_matrix(2)
    def evaluate(self, x):
        return list(householder(x)[:2])

    def lower(self, ctx, x):
        return list(reflections(ctx, x, *ctx.out_avals))


@primitive("geqp3")
class Geqp3(Factorization):
    """The reflections of the QR decomposition with pivoting.

    ``jpvt``: columns whose entry is not 0 come first.  The second result numbers columns from 1.
    """

    use_magma: bool | None = None

    cores = (2, 1)

    def check(self, *avals):
        return super().check(avals[0])

    @weak_as_operands
    def typing(self, x, jpvt):
        return [ShapedArray(x.shape, x.dtype), ShapedArray(jpvt.shape, I32), self.factors(x)]

    @each_matrix(2, 1)
    def evaluate(self, x, jpvt):
        packed, taus, order = householder(x, True)
        return [packed, order + 1, taus]

    def lower(self, ctx, x, jpvt):
        return list(pivoted_reflections(ctx, x, jpvt, *ctx.out_avals, self.use_magma))


@primitive("householder_product")
class HouseholderProduct(NoDerivative):
    """The first columns (m, n) of the product of reflections: packed (m, n), factors (k,)."""

    cores = (2, 1)

    @weak_as_operands
    def typing(self, a, taus):
        self.check(a, taus)
        m, n = a.shape[-2:]
        if m < n:
            raise errors.explained(
                errors.ShapeError, "householder_product.C1",
                "The first argument to householder_product must have at least as many rows as "
                f"columns, got shape {a.shape[-2:]}", advice="Take its first columns.")
        if taus.shape[-1] > min(m, n):
            raise errors.explained(
                errors.ShapeError, "householder_product.C2",
                "The second argument to householder_product must not have more rows than "
                f"the minimum of the first argument's rows and columns, got {taus.shape[-1]}.",
                advice="There is one factor for each column.")
        return ShapedArray(a.shape, a.dtype)

    @each_matrix(2, 1)
    def evaluate(self, a, taus):
        m, n = a.shape
        q = np.eye(m, n, dtype=a.dtype)
        for k in reversed(range(len(taus))):
            v = np.concatenate([np.zeros(k), np.ones(1), a[k + 1:, k]])
            q = q - taus[k] * np.outer(v, v.conj() @ q)
        return q

    def lower(self, ctx, a, taus):
        return product_of(ctx, a, taus)


@primitive("ormqr")
class Ormqr(NoDerivative):
    """Q C or C Q (Qᴴ if ``transpose``), for the Q that packed reflections and factors mean."""

    left: bool
    transpose_q: bool

    cores = (2, 1, 2)
    renamed: ClassVar[dict[str, str]] = {"transpose": "transpose_q"}

    @weak_as_operands
    def typing(self, a, taus, c):
        self.check(a, taus, c)
        m, n = a.shape[-2:]
        common = c.shape[-2 if self.left else -1]
        if common != m or taus.shape[-1] > min(m, n):
            same = ("rows as the Householder matrix a" if self.left else
                    "columns as the Householder matrix a has rows")
            raise errors.explained(
                errors.ShapeError, "ormqr.C1",
                f"ormqr with left={self.left} expects c to have the same number of {same}. Got a "
                f"shape {a.shape} and c shape {c.shape}." if common != m else
                f"ormqr: Q of a with shape {a.shape[-2:]} and taus with shape {taus.shape[-1:]} "
                f"does not fit c of shape {c.shape[-2:]}.",
                advice="There are no more taus than rows or columns of a; c has as many rows "
                "(columns unless left) as a has rows.")
        return ShapedArray(c.shape, c.dtype)

    @each_matrix(2, 1, 2)
    def evaluate(self, a, taus, c):
        m = len(a)
        q = np.eye(m, dtype=a.dtype)
        for k in reversed(range(len(taus))):
            v = np.concatenate([np.zeros(k), np.ones(1), a[k + 1:, k]])
            q = q - taus[k] * np.outer(v, v.conj() @ q)
        q = q.conj().T if self.transpose_q else q
        return q @ c if self.left else c @ q

    def lower(self, ctx, a, taus, c):
        aval = ctx.avals[c]
        if not aval.size:
            return ctx.constant(0, aval)
        if not ctx.avals[taus].size:
            return c
        if on_tpu(ctx):
            return write_function(ctx, self.by_product, a, taus, c)[0]
        target = "cusolver_ormqr_ffi" if on_gpu(ctx) else on_cpu(ctx, "ormqr", aval.dtype)
        config = {"left": str(self.left).lower(), "transpose": str(self.transpose_q).lower()}
        return custom_call(ctx, target, [a, taus, c], [aval], leading=aval.ndim - 2,
                           config=config, reuse={0: 2})[0]

    def by_product(self, a: Any, taus: Any, c: Any) -> list[Any]:
        """Return the product with the whole Q."""
        *lead, m, n = shape_of(a)
        if n < m:
            zeros = broadcast_in_dim(number(a, 0), (*lead, m, m - n), ())
            a = beside(a, zeros)
        q = bind(HouseholderProduct(), block(a, (0, m), (0, m)), taus)
        q = adjoint(q) if self.transpose_q else q
        return [matmul(q, c) if self.left else matmul(c, q)]


def reflections(ctx: Any, x: str, packed: ShapedArray, factors: ShapedArray) -> tuple[str, str]:
    """Write the reflections of ``x``: its packed matrix and factors."""
    if not packed.size:
        return ctx.constant(0, packed), ctx.constant(0, factors)
    if on_tpu(ctx):
        made, taus = xla_call(ctx, "Qr", [x], [packed, factors])
        return made, taus
    target = "cusolver_geqrf_ffi" if on_gpu(ctx) else on_cpu(ctx, "geqrf", packed.dtype)
    made, taus = custom_call(ctx, target, [x], [packed, factors], leading=packed.ndim - 2,
                             reuse={0: 0})
    return made, taus


def pivoted_reflections(ctx: Any, x: str, jpvt: str, packed: ShapedArray, order: ShapedArray,
                        factors: ShapedArray, use_magma: bool | None) -> tuple[str, str, str]:
    """Write the reflections of ``x`` with pivoting: packed matrix, order from 1, factors."""
    if not packed.size:
        count = ctx.iota(order.ndim - 1, order)
        count = ctx.elementwise("stablehlo.add", count, ctx.constant(1, order), out=order)
        return ctx.constant(0, packed), count, ctx.constant(0, factors)
    config = None
    if on_gpu(ctx):
        target = "cuhybrid_geqp3"
        config = {"magma": {None: '"auto"', True: '"on"', False: '"off"'}[use_magma]}
    else:
        target = on_cpu(ctx, "geqp3", packed.dtype)
    made = custom_call(ctx, target, [x, jpvt], [packed, order, factors],
                       leading=packed.ndim - 2, config=config, reuse={0: 0, 1: 1})
    return made[0], made[1], made[2]


def product_of(ctx: Any, a: str, taus: str) -> str:
    """Write the first columns of the product of reflections."""
    aval = ctx.avals[a]
    if not aval.size or not ctx.avals[taus].size:
        return identities(ctx, [strong_aval(aval.shape, aval.dtype)])[0]
    if on_tpu(ctx):
        return xla_call(ctx, "ProductOfElementaryHouseholderReflectors", [a, taus], [aval])[0]
    target = "cusolver_orgqr_ffi" if on_gpu(ctx) else on_cpu(ctx, "orgqr", aval.dtype)
    return custom_call(ctx, target, [a, taus], [aval], leading=aval.ndim - 2, reuse={0: 0})[0]


def on_cpu(ctx: Any, routine: str, dtype: Any) -> str:
    """Return the target of LAPACK's ``routine``.  Raises: NotImplementedError unless on CPU."""
    if ctx.module.platform != "cpu":
        raise refuse_platform(ctx, routine)
    return lapack(routine, dtype)


@primitive("qr")
class Qr(MatrixOperation):
    """Q (m, m or k) and R (m or k, n), k = min(m, n); with ``pivoting`` the order of columns."""

    pivoting: bool
    full_matrices: bool
    use_magma: bool | None = None

    multiple_results = True

    @weak_as_operands
    def typing(self, x):
        leading = self.check(x)
        m, n = x.shape[-2:]
        k = m if self.full_matrices else smaller(m, n)
        outs = [ShapedArray((*leading, m, k), x.dtype), ShapedArray((*leading, k, n), x.dtype)]
        return outs + [ShapedArray((*leading, n), I32)] * self.pivoting

    @each_matrix(2)
    def evaluate(self, x):
        if self.pivoting:
            order = householder(x, True)[2]
        else:
            order = np.arange(x.shape[-1], dtype=I32)
        q, r = np.linalg.qr(x[:, order], "complete" if self.full_matrices else "reduced")
        return [q, r, order][: 2 + self.pivoting]

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        lead, (m, n) = aval.shape[:-2], aval.shape[-2:]
        packed = strong_aval(aval.shape, aval.dtype)
        factors = strong_aval((*lead, smaller(m, n)), aval.dtype)
        outs = ctx.out_avals
        order = []
        if self.pivoting:
            counts = strong_aval((*lead, n), I32)
            made, places, taus = pivoted_reflections(
                ctx, x, ctx.constant(0, counts), packed, counts, factors, self.use_magma)
            order = [ctx.elementwise("stablehlo.subtract", places, ctx.constant(1, counts),
                                     out=counts)]
        else:
            made, taus = reflections(ctx, x, packed, factors)
        k = outs[0].shape[-1]
        columns = made
        if k < n:
            columns = part(ctx, made, m, k)
        elif k > n:  # room for the columns of Q that R has none for
            zero = ctx.constant(0, strong_aval((), aval.dtype))
            none = [0] * len(lead)
            wide = strong_aval((*lead, m, k), aval.dtype)
            columns = ctx.pad(made, zero, [*none, 0, 0], [*none, 0, k - n], wide)
        q = product_of(ctx, columns, taus)
        r = masked(ctx, part(ctx, made, k, n), "upper") if outs[1].size else \
            ctx.constant(0, outs[1])
        return [q, r, *order]

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        q, r, *order = bind(self, x)
        outs = [q, r, *order]
        if t is None:
            return outs, [None] * len(outs)
        if order:
            t = transposed(rows_in_order(transposed(t), order[0]))
        dq, dr = tangents_of(q, r, t)
        return outs, [dq, dr, *[None for _ in order]]

    transpose = NOT_LINEAR


def part(ctx: Any, x: str, rows: int, columns: int) -> str:
    """Write the first ``rows`` and ``columns`` of the matrices ``x``; nothing if these are all."""
    aval = ctx.avals[x]
    shape = (*aval.shape[:-2], rows, columns)
    return x if shape == aval.shape else ctx.slice(x, [0] * len(shape), shape)


def tangents_of(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    """Return the tangents of Q and R where their product moves by ``t``.

    Qᴴ dA R⁻¹ = Ω + dR R⁻¹ with Ω = Qᴴ dQ skew-Hermitian and dR R⁻¹ upper triangular with a real
    diagonal, so Ω is read off below the diagonal.  Columns of Q beyond those of R move only as
    orthogonality demands.
    """
    *lead, m, k = shape_of(q)
    n = shape_of(r)[-1]
    first = smaller(m, n)
    solved = bind(TriangularSolve(False, False, False, False, False),
                  block(r, (0, first), (0, first)), block(t, (0, m), (0, first)))
    inner = matmul(adjoint(q), solved)  # (k, first)
    square = block(inner, (0, first), (0, first))
    omega = tril(square, -1)
    omega = sub(omega, adjoint(omega))
    if is_complex(square):
        turn = imag(diagonal_part(square))
        omega = add(omega, complex_(broadcast_in_dim(number(turn, 0), shape_of(turn), ()), turn))
    if k > first:
        low = block(inner, (first, k), (0, first))
        rest = broadcast_in_dim(number(q, 0), (*lead, k - first, k - first), ())
        omega = beside(above(omega, low), above(neg(adjoint(low)), rest))
        dq = matmul(q, omega)
    else:
        dq = add(matmul(q, sub(omega, square)), solved)
    return dq, triu(sub(matmul(adjoint(q), t), matmul(omega, r)))


def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Return Q and R with x = Q R; with ``pivoting`` also the order p of columns: x[:, p] = Q R.

    Shapes: x (…, m, n), Q (…, m, k) and R (…, k, n), where k is m if ``full_matrices``, else
    min(m, n).  ``use_magma``: on a GPU, whether MAGMA pivots.

    Raises: TypeError for dtypes or ranks that do not fit.

    >>> lax.linalg.qr(jnp.array([[0., 2.], [3., 0.]]), full_matrices=False)[1]
    Array([[-3.,  0.],
           [ 0., -2.]], dtype=float32)
    """
    q, r, *order = bind(Qr(bool(pivoting), bool(full_matrices), use_magma), x)
    return (q, r, *order)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Return the first columns of the product of the reflections 1 - τ v vᴴ.

    Shapes: ``a`` (…, m, n) holds each v below its diagonal, ``taus`` (…, k) the factors; k <= n.

    Raises: ValueError if there are more columns than rows.

    >>> lax.linalg.householder_product(jnp.eye(2), jnp.zeros(2))
    Array([[ 1.,  0.],
           [-0.,  1.]], dtype=float32)
    """
    return bind(HouseholderProduct(), a, taus)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True,
          transpose: bool = False) -> Array:
    """Return Q C, or C Q unless ``left``, with Qᴴ for Q if ``transpose``.

    Q is the whole product of the reflections that ``a`` (…, m, n) and ``taus`` (…, k) mean.

    Raises: ValueError for shapes that do not fit.

    >>> lax.linalg.ormqr(jnp.eye(2), jnp.zeros(2), jnp.array([[1.], [2.]]))
    Array([[1.],
           [2.]], dtype=float32)
    """
    return bind(Ormqr(bool(left), bool(transpose)), a, taus, c)


def geqrf(x: Any) -> list[Any]:
    """Return the reflections of the QR decomposition of ``x``: packed (…, m, n), factors (…, k)."""
    return bind(Geqrf(), x)


def geqp3(x: Any, jpvt: Any, *, use_magma: bool | None = None) -> list[Any]:
    """Return the reflections of x[:, p] = Q R: packed, p counted from 1, and factors."""
    return bind(Geqp3(use_magma), x, jpvt)

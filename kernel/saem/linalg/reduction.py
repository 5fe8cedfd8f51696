"""How is a matrix turned, by an orthonormal change of basis, into one with almost a triangle?

``hessenberg`` leaves one diagonal below the triangle, ``schur`` none, or 2 by 2 blocks for pairs of
complex values of a real matrix.

Read before: ``linalg.qr``.  Read after: ``saem.scipy.linalg``.
Invariant: x = Q H Qᴴ.
Source: Golub & Van Loan, Matrix Computations (4th ed.), 7.4; LAPACK, gehrd and gees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saem.compile import dispatch
from saem.compile.text import strong_aval
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.linalg.custom_calls import (
    character,
    custom_call,
    lapack,
    nan_unless,
    refuse_platform,
    status,
)
from saem.linalg.families import NoDerivative, each_matrix, weak_as_operands
from saem.linalg.qr import reflector
from saem.typing import ArrayLike


@primitive("hessenberg")
class Hessenberg(NoDerivative):
    """H with the vectors of its reflections below it (n, n), and their factors (n - 1,)."""

    multiple_results = True

    @weak_as_operands
    def typing(self, x):
        leading = self.check(x)
        n = x.shape[-1]
        if x.shape[-2] != n:
            raise errors.explained(
                errors.ShapeError, "hessenberg.C1",
                "Argument to Hessenberg reduction must have shape [..., n, n], got shape "
                f"{x.shape[-2:]}", advice="Only square matrices have one.")
        return [ShapedArray(x.shape, x.dtype), ShapedArray((*leading, max(n - 1, 0)), x.dtype)]

    @each_matrix(2)
    def evaluate(self, x):
        x = x.copy()
        n = len(x)
        taus = np.zeros(max(n - 1, 0), x.dtype)
        for k in range(n - 1):
            v, tau, beta = reflector(x[k + 1:, k])
            taus[k] = tau
            x[:, k + 1:] -= tau * np.outer(x[:, k + 1:] @ v, v.conj())
            x[k + 1:, k + 1:] -= np.conj(tau) * np.outer(v, v.conj() @ x[k + 1:, k + 1:])
            x[k + 1, k], x[k + 2:, k] = beta, v[1:]
        return [x, taus]

    def lower(self, ctx, x):
        aval, (out, factors) = ctx.avals[x], ctx.out_avals
        if not aval.size:
            return [x, ctx.constant(0, factors)]
        if ctx.module.platform != "cpu":
            raise refuse_platform(ctx, "hessenberg")
        leading = aval.ndim - 2
        config = {"high": f"{aval.shape[-1]} : i32", "low": "1 : i32"}
        made, taus, info = custom_call(
            ctx, lapack("gehrd", aval.dtype), [x], [out, factors, status(aval.shape[:leading])],
            leading=leading, config=config, reuse={0: 0})
        return nan_unless(ctx, info, [made, taus])


@primitive("schur")
class Schur(NoDerivative):
    """T, and with ``compute_schur_vectors`` Q, with x = Q T Qᴴ."""

    compute_schur_vectors: bool
    sort_eig_vals: bool
    select_callable: Callable | None = None

    multiple_results = True

    @weak_as_operands
    def typing(self, x):
        self.check(x)
        self.check_square(x)
        return [ShapedArray(x.shape, x.dtype)] * (1 + self.compute_schur_vectors)

    def evaluate(self, *xs):
        # Neither the order of the values nor the signs of the vectors follow from the definition:
        # there is no second computation with the same result.
        return [np.asarray(x) for x in dispatch.apply_primitive(self, xs)]

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        if self.sort_eig_vals:
            raise errors.explained(
                NotImplementedError, "schur.sort",
                "The sort feature of LAPACK's gees routine is not implemented.",
                advice="Reorder the result, or compute eigenvalues by eig.")
        if not aval.size:
            return [ctx.constant(0, out) for out in ctx.out_avals]
        if ctx.module.platform != "cpu":
            raise refuse_platform(ctx, "schur")
        lead = aval.shape[:-2]
        values = strong_aval(aval.shape[:-1], aval.dtype)
        split = not dtypes.is_complex(aval.dtype)
        outs = [aval, aval, *[values] * (1 + split), status(lead), status(lead)]
        config = {"mode": character("V" if self.compute_schur_vectors else "N"),
                  "sort": character("N")}
        made, vectors, *_, info = custom_call(
            ctx, lapack("gees", aval.dtype), [x], outs, leading=len(lead), config=config,
            reuse={0: 0})
        return nan_unless(ctx, info, [made, vectors][:len(ctx.out_avals)])


def hessenberg(a: ArrayLike) -> list[Any]:
    """Return H with the vectors of its reflections below it, and their factors.

    Shapes: ``a`` (…, n, n), H (…, n, n), factors (…, n - 1).  The reflections turn the last n - 1
    rows and columns; ``householder_product(H[1:, :-1], factors)`` is their product.

    Raises: TypeError or ValueError if ``a`` is not a stack of square matrices.

    >>> lax.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))[0]
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return bind(Hessenberg(), a)


def schur(x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
          select_callable: Callable | None = None) -> list[Any]:
    """Return T and, by default, Q with x = Q T Qᴴ, for ``x`` (…, n, n).

    T is triangular for complex matrices, and has 2 by 2 blocks for pairs of complex eigenvalues of
    real ones.

    Raises: TypeError or ValueError if ``x`` is not a stack of square matrices; NotImplementedError
    for sorted values.

    >>> lax.linalg.schur(jnp.array([[2., 0.], [0., 3.]]))[0]
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    return bind(Schur(bool(compute_schur_vectors), bool(sort_eig_vals), select_callable), x)

"""Cases of ``saem/linalg``: real and complex, square, tall, wide and empty, one matrix and stacks.

Derivatives of vectors that have a free phase (complex ones) are held by test_linalg.py instead.
"""

from __future__ import annotations

import numpy as np

from cases import case, spec
from saem.linalg.algebra import SymmetricProduct
from saem.linalg.cholesky import Cholesky, CholeskyUpdate
from saem.linalg.eigen import Eig, Eigh
from saem.linalg.lu import Lu, LuPivotsToPermutation
from saem.linalg.qr import Geqp3, Geqrf, HouseholderProduct, Ormqr, Qr
from saem.linalg.reduction import Hessenberg, Schur
from saem.linalg.svd import Svd
from saem.linalg.triangular import TriangularSolve
from saem.linalg.tridiagonal import Tridiagonal, TridiagonalSolve


def numbers(rng, shape, complex_=False):
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if complex_ else real


def hermitian(t):
    return (t + np.swapaxes(t, -1, -2).conj()) / 2




def definite(rng, shape, complex_=False):
    """Positive definite matrices with eigenvalues that are far apart."""
    q = np.linalg.qr(numbers(rng, shape, complex_))[0]
    values = 1.0 + np.arange(shape[-1]) * 1.5
    return (q * values) @ np.swapaxes(q, -1, -2).conj()


def definite_complex(rng, shape):
    return definite(rng, shape, True)


def spread(rng, shape, complex_=False):
    """Matrices of any shape with singular values far apart."""
    u, _, vh = np.linalg.svd(numbers(rng, shape, complex_), full_matrices=False)
    k = min(shape[-2:])
    return (u * (1.0 + np.arange(k)[::-1] * 0.8)) @ vh


def spread_complex(rng, shape):
    return spread(rng, shape, True)


def dominant(rng, shape):
    """Matrices with a heavy diagonal, so that systems of equations are tame."""
    return numbers(rng, shape) * 0.5 + 3 * np.eye(*shape[-2:])


def dominant_complex(rng, shape):
    return numbers(rng, shape, True) * 0.5 + 3 * np.eye(*shape[-2:])


def real_values(rng, shape):
    """Square matrices with real eigenvalues far apart."""
    v = numbers(rng, shape) * 0.3 + np.eye(shape[-1])
    return (v * (1.0 + np.arange(shape[-1]))) @ np.linalg.inv(v)


def diagonals(rng, shape):
    return rng.uniform(3.0, 4.0, shape)


def phases(x):
    """Return columns turned so that the entry of greatest size is positive."""
    place = np.argmax(np.abs(x), axis=-2, keepdims=True)
    lead = np.take_along_axis(x, place, -2)
    return x * np.conj(lead) / np.abs(lead)


def eig_settled(outs):
    return [outs[0], *map(phases, outs[1:])]


def eigh_settled(outs):
    return [phases(outs[0]) if outs[0].size else outs[0], outs[1]]


def solving(left, lower, trans, conj, unit):
    return TriangularSolve(left, lower, trans, conj, unit)


SOLVES = [solving(left, lower, trans, False, unit) for left in (True, False)
          for lower in (True, False) for trans in (True, False) for unit in (True, False)]

CASES = [
    case(Cholesky(), spec("f32[4,4]", definite), tangent=hermitian),
    case(Cholesky(), spec("c64[3,3]", definite_complex), tangent=hermitian),
    case(Cholesky(), spec("f32[2,3,3]", definite), tangent=hermitian),
    case(Cholesky(), spec("f32[0,0]", "any"), differentiable=False),
    case(Cholesky(), spec("f32[2,2]", [[1.0, 2.0], [2.0, 1.0]]), differentiable=False),
    case(CholeskyUpdate(), spec("f32[3,3]", dominant), "f32[3]", differentiable=False),
    case(CholeskyUpdate(), spec("f32[3,3]", dominant), spec("f32[3]", [1.0, 0.0, 2.0]),
         differentiable=False),
    case(CholeskyUpdate(), spec("f32[2,3,3]", dominant), "f32[2,3]", differentiable=False),

    *(case(s, spec("f32[3,3]", dominant),
           "f32[3,2]" if s.left_side else "f32[2,3]") for s in SOLVES),
    case(solving(True, True, True, True, False), spec("c64[3,3]", dominant_complex), "c64[3,2]"),
    case(solving(False, False, False, True, False), spec("c64[3,3]", dominant_complex),
         "c64[2,3]"),
    case(solving(True, False, False, False, False), spec("c64[3,3]", dominant_complex),
         "c64[3,1]"),
    case(solving(True, True, False, False, False), spec("f32[2,3,3]", dominant), "f32[2,3,2]"),
    case(solving(True, True, False, False, False), spec("bf16[3,3]", dominant), "bf16[3,2]",
         tolerance=5e-2),
    case(solving(True, True, False, False, False), "f32[3,3]", "f32[3,0]"),

    case(Lu(), spec("f32[4,4]", spread)),
    case(Lu(), spec("f32[4,3]", spread)),
    case(Lu(), spec("f32[3,5]", spread)),
    case(Lu(), spec("c64[3,3]", spread_complex)),
    case(Lu(), spec("f32[2,3,3]", spread)),
    case(Lu(), "f32[3,0]"),
    case(Lu(), spec("f32[2,2]", [[0.0, 0.0], [0.0, 1.0]]), differentiable=False),
    case(LuPivotsToPermutation(5), spec("i32[3]", [4, 1, 3])),
    case(LuPivotsToPermutation(3), spec("i32[2,3]", [[2, 2, 2], [0, 2, 2]])),
    case(LuPivotsToPermutation(2), spec("i32[0]")),

    *(case(Qr(False, full, None), spec(f"f32[{m},{n}]", spread))
      for full in (True, False) for m, n in ((3, 3), (4, 3), (3, 5))),
    case(Qr(True, False, None), spec("f32[4,3]", spread)),
    case(Qr(True, True, None), spec("c64[4,3]", spread_complex), differentiable=False),
    case(Qr(False, False, None), spec("c64[4,3]", spread_complex)),
    case(Qr(False, False, None), spec("f32[2,4,3]", spread)),
    case(Qr(False, True, None), "f32[3,0]"),
    case(Geqrf(), spec("f32[4,3]", spread), differentiable=False),
    case(Geqrf(), spec("c64[3,3]", spread_complex), differentiable=False),
    case(Geqp3(None), spec("f32[4,3]", spread), spec("i32[3]", [0, 0, 0]), differentiable=False),
    case(HouseholderProduct(), "f32[4,3]", "f32[3]", differentiable=False),
    case(HouseholderProduct(), "c64[4,3]", "c64[2]", differentiable=False),
    case(Ormqr(True, False), "f32[4,3]", "f32[3]", "f32[4,2]", differentiable=False),
    case(Ormqr(False, True), "c64[4,3]", "c64[3]", "c64[2,4]", differentiable=False),
    case(Ormqr(True, True), "f32[2,4,3]", "f32[2,3]", "f32[2,4,2]", differentiable=False),

    case(Eigh(True, True), spec("f32[4,4]", definite), settle=eigh_settled,
         tangent=hermitian),
    case(Eigh(False, True), spec("f32[3,3]", definite), settle=eigh_settled,
         tangent=hermitian),
    case(Eigh(True, True), spec("c64[3,3]", definite_complex), settle=eigh_settled,
         differentiable=False),
    case(Eigh(True, True), spec("f32[2,3,3]", definite), settle=eigh_settled,
         tangent=hermitian),
    case(Eigh(True, True), "f32[0,0]", differentiable=False),
    case(Eig(False, False), spec("f32[3,3]", real_values), settle=eig_settled),
    case(Eig(True, True), spec("f32[3,3]", real_values), settle=eig_settled,
         differentiable=False, tolerance=1e-4),
    case(Eig(False, True, True), spec("f32[3,3]", real_values), settle=eig_settled),
    case(Eig(False, True), spec("c64[3,3]", dominant_complex), settle=eig_settled,
         differentiable=False, tolerance=1e-4),
    case(Eig(False, True), "f32[0,0]", differentiable=False),

    *(case(Svd(full, True), spec(f"f32[{m},{n}]", spread), differentiable=not full or m == n)
      for full in (True, False) for m, n in ((3, 3), (4, 3), (3, 5))),
    case(Svd(False, False), spec("f32[4,3]", spread)),
    case(Svd(False, True), spec("c64[4,3]", spread_complex), differentiable=False),
    case(Svd(False, False), spec("c64[3,4]", spread_complex)),
    case(Svd(False, True), spec("f32[2,4,3]", spread)),
    case(Svd(True, True), "f32[0,3]", differentiable=False),

    case(Hessenberg(), "f32[4,4]", differentiable=False),
    case(Hessenberg(), "c64[3,3]", differentiable=False),
    case(Hessenberg(), "f32[1,1]", differentiable=False),
    case(Schur(True, False), "f32[4,4]", differentiable=False),
    case(Schur(False, False), "c64[3,3]", differentiable=False),

    case(Tridiagonal(True), spec("f32[4,4]", definite), differentiable=False),
    case(Tridiagonal(False), spec("f32[4,4]", definite), differentiable=False),
    case(Tridiagonal(True), spec("c64[3,3]", definite_complex), differentiable=False),
    case(Tridiagonal(False), spec("c64[3,3]", definite_complex), differentiable=False),
    case(TridiagonalSolve(), "f32[4]", spec("f32[4]", diagonals), "f32[4]", "f32[4,2]"),
    case(TridiagonalSolve(), "c64[3]", spec("c64[3]", diagonals), "c64[3]", "c64[3,1]"),
    case(TridiagonalSolve(), "f32[1]", spec("f32[1]", diagonals), "f32[1]", "f32[1,2]"),
    case(TridiagonalSolve(True), "f32[4]", spec("f32[4]", diagonals), "f32[4]", "f32[4,2]"),
    case(TridiagonalSolve(True), spec("f32[3]", 0.0), spec("f32[3]", [1.0, 0.0, 2.0]),
         spec("f32[3]", 0.0), "f32[3,1]", differentiable=False),
    case(TridiagonalSolve(), "f32[2,4]", spec("f32[2,4]", diagonals), "f32[2,4]", "f32[2,4,2]"),

    case(SymmetricProduct(1.0, 0.0), "f32[3,4]", "f32[3,3]", differentiable=False),
    case(SymmetricProduct(0.5, 2.0), "f32[2,3,4]", "f32[2,3,3]", differentiable=False),
    case(SymmetricProduct(1.0, 1.0), "bf16[3,4]", "bf16[3,3]", differentiable=False,
         tolerance=5e-2),
]

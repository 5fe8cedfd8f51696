"""Do the iterative solvers take sparse matrices, and whatever multiplies vectors by ``@``?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
from saem.experimental import sparse
from saem.scipy.sparse import linalg

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

DENSE = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]], "f")
B = np.array([1.0, -2.0, 0.5], "f")


class Scaling:
    """No array, but it has a shape and multiplies."""

    shape = (3, 3)

    def __init__(self, factor):
        self.factor = factor

    def __matmul__(self, x):
        return self.factor * x


class Wide(Scaling):
    shape = (3, 4)


def operator_of(kind):
    return Scaling(2.0) if kind == "scaling" else getattr(sparse, kind).fromdense(DENSE)


def solved(method, kind):
    solve, A = getattr(linalg, method), operator_of(kind)
    return [solve(A, B)[0], solve(DENSE, B, M=A)[0], jax.jit(lambda b: solve(A, b)[0])(B),
            jax.grad(lambda b: (solve(A, b)[0] ** 2).sum())(B),
            jax.vmap(lambda b: solve(A, b)[0])(np.stack([B, 2 * B]))]


@pytest.mark.oracle
@pytest.mark.parametrize(("method", "kind"), [
    ("cg", "BCOO"), ("gmres", "BCSR"), ("bicgstab", "scaling")])
def test_as_jax(jax_oracle, method, kind):
    """To the accuracy at which the solvers stop, 1e-5."""
    same(jax_oracle, "solved(method, kind)", rtol=2e-5, within=__name__, method=method, kind=kind)


@pytest.mark.parametrize(("method", "kind"), [
    ("cg", "scaling"), ("cg", "CSC"), ("gmres", "BCOO"), ("bicgstab", "BCSR"),
    ("bicgstab", "COO")])
def test_the_solution_is_that_of_the_dense_matrix(method, kind):
    matrix = 2 * np.eye(3) if kind == "scaling" else DENSE
    x = np.linalg.solve(matrix, B)
    dense_x = np.linalg.solve(DENSE, B)
    plain, preconditioned, jitted, gradient, mapped = solved(method, kind)
    for found, wanted in ((plain, x), (preconditioned, dense_x), (jitted, x),
                          (gradient, np.linalg.solve(matrix.T, 2 * x)), (mapped, [x, 2 * x])):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_gradient_by_the_elements():
    A = sparse.BCOO.fromdense(DENSE)
    found = jax.grad(lambda data: linalg.cg(
        sparse.BCOO((data, A.indices), shape=A.shape), B)[0].sum())(A.data)
    x, u = np.linalg.solve(DENSE, B), np.linalg.solve(DENSE.T, np.ones(3))
    np.testing.assert_allclose(found, [-u[i] * x[j] for i, j in A.indices], rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize(("program", "sentence"), [
    ("linalg.cg(Wide(2.), B)", "must be a square matrix, but has shape: (3, 4)"),
    ("linalg.cg(sparse.BCOO.fromdense(jnp.ones((3, 4))), B)",
     "must be a square matrix, but has shape: (3, 4)"),
    ("linalg.gmres([[1., 0., 0.]] * 3, B)", "must be either a function or ndarray"),
    ("linalg.bicgstab(DENSE, B, M=3.)", "must be either a function or ndarray")])
def test_what_is_no_operator_is_refused(jax_oracle, program, sentence):
    same_error(jax_oracle, program, sentence, within=__name__)

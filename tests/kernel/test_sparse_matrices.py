"""Do the primitives of COO, CSR and CSC matrices compute, and are they differentiated, as JAX's?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same

import saem as jax
import saem.numpy as jnp
from saem.experimental import sparse
from saem.test_util import check_grads

DENSE = np.array([[0.0, 2.0, 0.0, 1.5], [3.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, -1.0]], "f")
VECTOR, MATRIX = np.linspace(-1.0, 2.0, 4, dtype="f"), np.linspace(-1.0, 2.0, 8, dtype="f"
                                                                    ).reshape(4, 2)
KINDS = ["COO", "CSR", "CSC"]


def stored(kind, nse=6):
    return getattr(sparse, kind).fromdense(DENSE, nse=nse)


def with_data(kind, data):
    leaves, treedef = jax.tree.flatten(stored(kind, data.size))
    return treedef.unflatten([data, *leaves[1:]])


def products(mat):
    return [mat.todense(), mat @ VECTOR, mat @ MATRIX, mat.T @ VECTOR[:3], mat.T @ MATRIX[:3],
            mat.T.todense()]


def values(kind):
    return jax.tree.leaves(stored(kind)) + products(stored(kind)) + jax.jit(products)(stored(kind))


def gradients(kind):
    """By elements, by a vector and by a matrix.

    Without padding and, by elements, without transposition of what is stored by rows: there JAX's
    numbers are not the derivatives, which ``test_derivatives_by_differences`` asks for.
    """
    mat = stored(kind, 5)
    def by_data(f):
        return jax.grad(lambda data: (f(with_data(kind, data)) ** 2).sum())(mat.data)
    def by_dense(f, x):
        return jax.grad(lambda x: (f(x) ** 2).sum())(x)
    by_elements = [by_data(lambda m: m.todense())] + ([] if kind == "CSC" else [
        by_data(lambda m: m @ VECTOR), by_data(lambda m: m @ MATRIX)])
    return [*by_elements,
            by_dense(lambda x: mat @ x, VECTOR), by_dense(lambda x: mat @ x, MATRIX),
            by_dense(lambda x: mat.T @ x, VECTOR[:3]),
            jax.jvp(lambda data: with_data(kind, data) @ VECTOR, (mat.data,), (mat.data * 2,))]


def printed(kind):
    """What is traced: each operation, and the gradient by a dense operand."""
    mat = stored(kind)
    return [str(jax.make_jaxpr(products)(mat)),
            str(jax.make_jaxpr(jax.grad(lambda x: ((mat @ x) ** 2).sum()))(VECTOR)),
            str(jax.make_jaxpr(jax.grad(lambda x: ((mat.T @ x) ** 2).sum()))(MATRIX[:3]))]


def bound():
    """By the primitives' own names, as libraries do."""
    info = sparse.coo.COOInfo((3, 4))
    data, row, col = sparse.coo_fromdense_p.bind(DENSE, nse=5, index_dtype=np.dtype("int16"))
    by_rows = sparse.csr_fromdense_p.bind(DENSE, nse=5, index_dtype=np.dtype("int32"))
    return [data, row, col, *by_rows,
            sparse.coo_todense_p.bind(data, row, col, spinfo=info),
            sparse.coo_matvec_p.bind(data, row, col, VECTOR, spinfo=info, transpose=False),
            sparse.coo_matmat_p.bind(data, row, col, MATRIX[:3], spinfo=info, transpose=True),
            sparse.csr_todense_p.bind(*by_rows, shape=(3, 4)),
            sparse.csr_matvec_p.bind(*by_rows, VECTOR[:3], shape=(3, 4), transpose=True),
            sparse.csr_matmat_p.bind(*by_rows, MATRIX, shape=(3, 4), transpose=False)]


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("question", [values, gradients, printed])
def test_as_jax(jax_oracle, question, kind):
    same(jax_oracle, f"{question.__name__}(kind)", within=__name__, kind=kind)


@pytest.mark.oracle
def test_the_primitives_by_name(jax_oracle):
    same(jax_oracle, bound)


@pytest.mark.oracle
@pytest.mark.parametrize("index_dtype", ["int8", "int32"])
def test_from_dense_with_too_few_and_too_many_places(jax_oracle, index_dtype):
    same(jax_oracle, """[jax.tree.leaves(make(DENSE, nse=n, index_dtype=index_dtype))
                         for make in (sparse.coo_fromdense, sparse.csr_fromdense)
                         for n in (0, 2, 5, 9)]""", within=__name__, index_dtype=index_dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_by_differences(kind):
    """Padding counts too: its elements are added where its places say."""
    check_grads(lambda data, x: with_data(kind, data) @ x, (stored(kind).data, VECTOR), 1)
    check_grads(lambda data, x: with_data(kind, data).T @ x, (stored(kind).data, MATRIX[:3]), 1)
    check_grads(lambda data: with_data(kind, data).todense(), (stored(kind).data,), 1)


@pytest.mark.parametrize("make", [sparse.coo_fromdense, sparse.csr_fromdense])
def test_the_gradient_through_the_stored_elements(make):
    """Elements that are there only to fill up have no derivative."""
    found = jax.grad(lambda x: (make(x, nse=7).data ** 2).sum())(DENSE)
    np.testing.assert_array_equal(found, 2 * DENSE)
    t = np.ones_like(DENSE)
    _, tangent = jax.jvp(lambda x: make(x, nse=7).data, (DENSE,), (t,))
    np.testing.assert_array_equal(tangent, [1, 1, 1, 1, 1, 0, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_vmap(kind):
    """JAX has no batch rule for them."""
    mat = stored(kind)
    xs = np.stack([VECTOR, 2 * VECTOR, VECTOR - 1])
    np.testing.assert_allclose(jax.vmap(lambda x: mat @ x)(xs), xs @ DENSE.T, rtol=1e-6)
    scales = jnp.array([1.0, 2.0])
    stacked = jax.vmap(lambda c: (with_data(kind, c * mat.data) @ VECTOR,
                                  with_data(kind, c * mat.data).todense()))(scales)
    np.testing.assert_allclose(stacked[0], np.outer(scales, DENSE @ VECTOR), rtol=1e-6)
    np.testing.assert_allclose(stacked[1], scales[:, None, None] * DENSE, rtol=1e-6)
    hessian = jax.hessian(lambda x: ((mat @ x) ** 2).sum())(VECTOR)
    np.testing.assert_allclose(hessian, 2 * DENSE.T @ DENSE, rtol=1e-6)
    made = jax.vmap(lambda x: getattr(sparse, kind).fromdense(x, nse=5).todense())(
        np.stack([DENSE, -DENSE]))
    np.testing.assert_array_equal(made, np.stack([DENSE, -DENSE]))


@pytest.mark.parametrize("call", [
    lambda m: m @ np.ones(3, "f"), lambda m: sparse.coo_matvec(m, MATRIX),
    lambda m: sparse.coo_matmat(m, VECTOR),
    lambda m: sparse.coo_matvec_p.bind(m.data, m.row, m.col, np.ones(4, "i"), spinfo=m._info,
                                       transpose=False)])
def test_operands_that_do_not_fit(call):
    with pytest.raises(TypeError, match=r"of shape \(3, 4\) and float32 was to be multiplied"):
        call(stored("COO"))
    with pytest.raises(TypeError, match="was to be multiplied"):
        jax.eval_shape(call, stored("COO"))


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ValueError, match=r"BCOO\.fromdense"):
        sparse.coo_fromdense(VECTOR)
    with pytest.raises(ValueError, match="one place for each element"):
        sparse.coo_todense_p.bind(np.ones(2, "f"), np.zeros(3, "i"), np.zeros(3, "i"),
                                  spinfo=sparse.coo.COOInfo((2, 2)))

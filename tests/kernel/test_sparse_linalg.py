"""Do solvers for sparse matrices find what SciPy and JAX find?

Read before: ``saem.experimental.sparse.linalg``.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental.sparse.linalg import lobpcg_standard, spsolve


def matrix(n, complex_=False):
    rng = np.random.RandomState(n)
    dense = np.where(rng.rand(n, n) < .4, rng.randn(n, n), 0) + 4 * np.eye(n)
    return dense + 1j * np.triu(dense) if complex_ else dense


def csr(dense):
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(len(dense) + 1))
    return jnp.asarray(dense[rows, columns]), jnp.asarray(columns), jnp.asarray(starts)


@pytest.mark.parametrize("complex_", [False, True])
def test_spsolve(complex_):
    dense, b = matrix(7, complex_), np.arange(7.) + (1j if complex_ else 0)
    np.testing.assert_allclose(spsolve(*csr(dense), jnp.asarray(b)), np.linalg.solve(dense, b),
                               rtol=2e-5, atol=1e-5)


def test_repeated_entries_are_summed():
    x = spsolve(jnp.array([1., 3., 2.]), jnp.array([0, 0, 1]), jnp.array([0, 2, 3]),
                jnp.array([8., 6.]))
    np.testing.assert_allclose(x, [2., 3.])


def test_spsolve_is_differentiated_as_jaxs(jax_oracle):
    def program(d, i, p, b):
        d, i, p, b = map(jnp.asarray, (d, i, p, b))
        f = lambda d, b: jnp.sum(jnp.sin(spsolve(d, i, p, b)))
        return [f(d, b), *jax.grad(f, (0, 1))(d, b), jax.jvp(f, (d, b), (d, b))[1],
                jax.jit(f)(d, b)]

    data, indices, starts = csr(matrix(5))
    given = {"d": data, "i": indices, "p": starts, "b": np.arange(5, dtype=np.float32)}
    same(jax_oracle, program, rtol=2e-5, **{k: np.asarray(v) for k, v in given.items()})
    many = jax.vmap(lambda b: spsolve(data, indices, starts, b))(jnp.eye(5))
    np.testing.assert_allclose(many.T, np.linalg.inv(matrix(5)), rtol=1e-4, atol=1e-5)


def test_spsolve_is_one_equation_as_in_jax(jax_oracle):
    def program(d, i, p, b):
        f = lambda d, b: spsolve(d, i, p, b, reorder=2)
        return [str(jax.make_jaxpr(f)(d, b)),
                str(jax.make_jaxpr(lambda b: jax.jvp(lambda b: f(d, b), (b,), (b,)))(b))]

    data, indices, starts = csr(matrix(5))
    same(jax_oracle, program, d=np.asarray(data), i=np.asarray(indices), p=np.asarray(starts),
         b=np.arange(5, dtype=np.float32))


@pytest.mark.parametrize("complex_", [False, True])
def test_derivatives_of_spsolve_are_those_of_the_dense_system(complex_):
    dense = matrix(5, complex_)
    data, indices, starts = csr(dense)
    rows, columns = np.nonzero(dense)
    b = jnp.arange(5.) + (1j if complex_ else 0)

    def loss(solve):
        return lambda d, b: jnp.sum(jnp.abs(solve(d, b)) ** 3)

    sparse = lambda d, b: spsolve(d, indices, starts, b)
    dense_ = lambda d, b: jnp.linalg.solve(jnp.zeros((5, 5), d.dtype).at[rows, columns].set(d), b)
    for ours, expected in zip(jax.grad(loss(sparse), (0, 1))(data, b),
                              jax.grad(loss(dense_), (0, 1))(data, b)):
        np.testing.assert_allclose(ours, expected, rtol=2e-4, atol=2e-5)
    if not complex_:
        for of in (0, 1):
            np.testing.assert_allclose(
                jax.hessian(loss(sparse), of)(data, b), jax.hessian(loss(dense_), of)(data, b),
                rtol=2e-3, atol=2e-4)
        np.testing.assert_allclose(jax.jacfwd(sparse)(data, b), jax.jacfwd(dense_)(data, b),
                                   rtol=2e-4, atol=2e-5)
    stack = jnp.stack([data, 2 * data, 3 * data])
    np.testing.assert_allclose(jax.vmap(sparse, (0, None))(stack, b),
                               sparse(data, b) / np.array([[1], [2], [3]]), rtol=1e-5)


def test_a_large_system_stays_sparse():
    n = 50_000
    rows = np.repeat(np.arange(n), 3)[1:-1]
    columns = (np.repeat(np.arange(n), 3) + np.tile([-1, 0, 1], n))[1:-1]
    data = jnp.where(rows == columns, 4., -1.)
    starts = jnp.asarray(np.searchsorted(rows, np.arange(n + 1)))
    b = jnp.sin(jnp.arange(n, dtype=jnp.float32))
    x, pull = jax.vjp(lambda d, b: spsolve(d, jnp.asarray(columns), starts, b), data, b)
    np.testing.assert_allclose(4 * x[1:-1] - x[:-2] - x[2:], b[1:-1], atol=1e-5)
    change, right = pull(jnp.ones(n))
    np.testing.assert_allclose(right[n // 2], 0.5, rtol=1e-5)
    np.testing.assert_allclose(change, -(right[rows] * x[columns]), atol=1e-6)


def test_a_system_of_16_bits_and_a_singular_one():
    data, indices, starts = csr(matrix(4))
    half = spsolve(data.astype(jnp.float16), indices, starts, jnp.ones(4, jnp.float16))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, np.linalg.solve(matrix(4), np.ones(4)), rtol=5e-3, atol=5e-3)
    with pytest.warns(Warning, match="singular"):
        none = spsolve(data * 0, indices, starts, jnp.ones(4))
    assert np.isnan(none).all()


@pytest.mark.parametrize("given", ["two", "sizes", "dtypes", "integers"])
def test_spsolve_refuses(given):
    data, indices, starts = csr(matrix(4))
    b = jnp.ones(4)
    args = {"two": (data, indices, starts, jnp.ones((4, 2))),
            "sizes": (data, indices, starts, b[:3]), "dtypes": (data, indices, starts, b + 1j),
            "integers": (data.astype(int), indices, starts, b.astype(int))}[given]
    with pytest.raises(ValueError):
        spsolve(*args)


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("kind", ["spread", "negative", "clustered", "low rank"])
@pytest.mark.parametrize("function", [False, True])
def test_lobpcg(kind, function):
    n, k, rng = 60, 4, np.random.RandomState(0)
    values = {"spread": np.arange(1., n + 1), "negative": -np.arange(1., n + 1),
              "clustered": np.r_[np.full(n - 5, 1.), 5., 5., 5.1, 7., 9.],
              "low rank": np.r_[np.zeros(n - 4), 1., 2., 3., 4.]}[kind]
    basis = np.linalg.qr(rng.randn(n, n))[0]
    A = jnp.asarray((basis * values) @ basis.T)
    begin = jnp.asarray(rng.randn(n, k))
    found, vectors, steps = lobpcg_standard((lambda v: A @ v) if function else A, begin, m=200)
    scale = np.abs(values).max()
    np.testing.assert_allclose(found, np.sort(values)[::-1][:k], atol=2e-5 * scale)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-5)
    assert np.abs(A @ vectors - vectors * found).max() < 2e-3 * scale
    assert 0 <= int(steps) <= 200


@pytest.mark.usefixtures("little_effort")
def test_lobpcg_stops_when_it_is_told_to():
    A = jnp.diag(jnp.arange(40.))
    begin = jnp.asarray(np.random.RandomState(0).randn(40, 2))
    assert int(lobpcg_standard(A, begin, m=3)[2]) == 3
    assert int(lobpcg_standard(A, begin, m=300, tol=1e-2)[2]) < 20


@pytest.mark.parametrize("case", [
    "A, X[:20]", "A, X[:, :0]", "A, jnp.ones((40, 8))", "A, X.astype('float16')",
    "A.astype(int), X.astype(int)", "A[:, :3], X", "lambda v: v[:3], X"])
def test_lobpcg_refuses_what_jax_refuses(jax_oracle, case):
    columns = np.ones((40, 3), np.float32) * np.arange(40, dtype=np.float32)[:, None]
    given = {"A": np.diag(np.arange(40, dtype=np.float32)), "X": columns}
    program = f"(lambda A, X: lobpcg_standard({case}))(jnp.asarray(A), jnp.asarray(X))"
    same_error(jax_oracle, program, "", within=__name__, **given)  # each in its own words

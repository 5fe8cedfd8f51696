"""Are SciPy's matrix functions and cosine transforms the same here as on JAX, and on SciPy?

Read before: ``tests/kernel/numpy/agreement.py``, ``test_linalg.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "numpy"))

from agreement import check

import saem as jax
from saem import numpy as jnp
from saem.scipy import fft, linalg
from saem.test_util import check_grads

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

RNG = np.random.default_rng(1)
SQUARE = RNG.normal(size=(3, 3))
ARRAYS = {
    "x": SQUARE.astype("f4"), "p": (SQUARE @ SQUARE.T + 3 * np.eye(3)).astype("f4"),
    "r": RNG.normal(size=(4, 3)).astype("f4"), "v": np.arange(1, 4).astype("f4"),
    "i": np.arange(9).reshape(3, 3) + 9 * np.eye(3, dtype=int),
    "c": (SQUARE + 1j * SQUARE[::-1]).astype("c8"), "g": RNG.normal(size=(5, 5)).astype("f4"),
    "b": np.stack([SQUARE @ SQUARE.T + 3 * np.eye(3), 4 * np.eye(3) + 1]).astype("f4"),
    "e": np.zeros((0, 0), "f4"),
}

MATRICES = """
L.block_diag(x,v,2.)
L.block_diag()
L.block_diag(b)
L.circulant(v)
L.circulant(x)
L.circulant(3.)
L.companion(v)
L.companion(r)
L.companion(v[:1])
L.convolution_matrix(v,4)
L.convolution_matrix(v,2)
L.convolution_matrix(v,4,'same')
L.convolution_matrix(v,2,'same')
L.convolution_matrix(v,5,'valid')
L.convolution_matrix(v,2,'valid')
L.convolution_matrix(x,2)
L.convolution_matrix(v,4,'foo')
L.convolution_matrix(v,0)
L.dft(3)
L.dft(4,'sqrtn')
L.dft(5,'n')
L.dft(4,'foo')
L.dft(3,dtype='float32')
L.fiedler(v)
L.fiedler(x)
L.fiedler_companion(np.arange(1.,8))
L.fiedler_companion(np.arange(1.,7))
L.fiedler_companion(v)
L.fiedler_companion(v[:2])
L.hadamard(4)
L.hadamard(8,dtype='float32')
L.hadamard(3)
L.hankel(v)
L.hankel(v,np.arange(4.))
L.hankel(x)
L.helmert(4)
L.helmert(3,full=True)
L.helmert(1)
L.helmert(0)
L.hilbert(3)
L.invhilbert(4)
L.pascal(4)
L.pascal(3,'upper')
L.pascal(3,'lower')
L.pascal(3,'foo')
L.invpascal(4)
L.invpascal(4,'lower')
L.invpascal(4,'upper')
L.leslie(v,v[:2])
L.leslie(v,v)
L.toeplitz(v)
L.toeplitz(v,np.arange(4.))
L.toeplitz(c[0])
L.toeplitz(x)
L.toeplitz(np.arange(3),v)
""".strip().splitlines()

FACTORS = """
L.cholesky(p)
L.cholesky(b,lower=True)
L.cholesky(c@c.conj().T)
L.cholesky(r)
jnp.triu(L.cho_factor(p)[0])
L.cho_solve((jnp.linalg.cholesky(p),True),v)
L.cho_solve(L.cho_factor(p),r.T)
L.cho_solve(L.cho_factor(c@c.conj().T),c)
L.cho_solve(L.cho_factor(b),b)
L.cho_solve(L.cho_factor(p),r)
L.det(x)
L.inv(b)
L.lu(x)
L.lu(r)
L.lu(r.T)
L.lu(r,permute_l=True)
L.lu(i)
L.lu_factor(b)
L.lu_factor(r)
L.lu_solve(L.lu_factor(x),v)
L.lu_solve(L.lu_factor(x),r.T,1)
L.lu_solve(L.lu_factor(c),c,2)
L.lu_solve(L.lu_factor(b),b)
L.lu_solve(L.lu_factor(x),v,3)
L.solve(x,v)
L.solve(p,v,assume_a='pos')
L.solve(p,v,lower=True,assume_a='pos')
L.solve(p,r.T,assume_a='sym')
L.solve(b,b,assume_a='pos')
L.solve(x,v,assume_a='foo')
L.solve_triangular(x,v)
L.solve_triangular(x,v,trans=1)
L.solve_triangular(x,r.T,trans='T',lower=True)
L.solve_triangular(c,v,trans='C',unit_diagonal=True)
L.solve_triangular(b,b)
L.solve_triangular(b,v)
L.solve_triangular(x,v,trans='X')
L.solve_sylvester(x,p,p)
L.solve_sylvester(x,np.eye(4,dtype='f4')*3,r.T)
L.solve_sylvester(c,c,c)
L.solve_sylvester(x,p,p,method='eigen')
L.solve_sylvester(x,-x,p)
L.solve_sylvester(x,p,r)
L.solve_sylvester(x,p,p,method='foo')
L.qr(r)
L.qr(r,mode='economic')
L.qr(r,mode='r')
L.qr(r,pivoting=True)
L.qr(b)
L.qr(r,mode='raw')
L.qr_multiply(r,r.T)
L.qr_multiply(r,x,mode='left')
L.qr_multiply(r.T,x)
L.qr_multiply(r,r.T,pivoting=True)
L.qr_multiply(c,c,conjugate=True)
L.qr_multiply(r,r[:,0])
L.qr_multiply(r,v,mode='left')
L.qr_multiply(r,v)
L.qr_multiply(r,v,mode='foo')
tuple(jnp.abs(m) for m in L.svd(r,full_matrices=False))
tuple(jnp.abs(m) for m in L.svd(r,full_matrices=False,lapack_driver='gesvd'))
L.svd(r,compute_uv=False)
L.eigh(p,eigvals_only=True)
tuple(jnp.abs(m) for m in L.eigh(p,lower=False))
L.eigh(p,p)
L.schur(x)
L.schur(x,output='complex')
L.schur(c)
L.schur(x,output='foo')
L.schur(i)
L.hessenberg(g)
L.hessenberg(g,calc_q=True)
L.hessenberg(b,calc_q=True)
L.hessenberg(r)
L.polar(x)
L.polar(r)
L.polar(r.T,'left')
L.polar(b)
L.polar(c)
L.polar(x,'left')
L.polar(r.T)
L.polar(x,method='svd')
L.polar(r.T,method='svd')
L.polar(r,'left',method='svd')
L.polar(x,'foo')
jax.lax.linalg.qdwh(r)[:2]
jax.lax.linalg.qdwh(p,is_hermitian=True)[:2]
jax.lax.linalg.qdwh(r,dynamic_shape=(3,2))[:2]
jax.lax.linalg.qdwh(r)[3]
jax.lax.linalg.qdwh(r.T)
L.eigh_tridiagonal(v,v[:2],eigvals_only=True)
L.eigh_tridiagonal(g[0],g[1,:4],eigvals_only=True)
L.eigh_tridiagonal(g[0],g[1,:4],eigvals_only=True,select='i',select_range=(1,3))
L.eigh_tridiagonal(v,v[:2])[0]
jnp.abs(L.eigh_tridiagonal(g[0],g[1,:4])[1])
L.eigh_tridiagonal(v,v[:2],eigvals_only=True,select='v',select_range=(0.,3.))
L.eigh_tridiagonal(v,v,eigvals_only=True)
L.eigh_tridiagonal(i[0],i[0,:2],eigvals_only=True)
L.expm(x)
L.expm(b/8)
L.expm(i/9)
L.expm(c)
L.expm(jnp.triu(x),upper_triangular=True)
L.expm(x*2)
L.expm(x*1e-3)
L.expm(x*0)
L.expm(r)
L.expm(e)
L.expm_frechet(x,p)
L.expm_frechet(x,p,compute_expm=False)
L.expm_frechet(x,r)
L.sqrtm(p)
L.sqrtm(x)
L.sqrtm(c)
L.sqrtm(g)
L.sqrtm(p,2)
L.funm(p,jnp.sin)
L.funm(x,jnp.exp)
L.funm(g,jnp.exp)
L.funm(r,jnp.sin)
""".strip().splitlines()

COSINES = """
F.dct(v)
F.dct(x,axis=0,n=5)
F.dct(g,norm='ortho')
F.dct(g,n=4)
F.dct(x,type=3)
F.dct(x,norm='foo')
F.dct(i)
F.dct(c)
F.idct(v)
F.idct(g)
F.idct(x,axis=0,n=2,norm='ortho')
F.dctn(g)
F.dctn(x,s=(2,4))
F.dctn(b,axes=(0,2),norm='ortho')
F.dctn(b,axes=(1,))
F.dctn(b,s=(2,))
F.idctn(x)
F.idctn(b,axes=(0,1,2))
F.idctn(b,s=(2,2,2),norm='ortho')
""".strip().splitlines()

NAMES = {"L.": "__import__('importlib').import_module(jax.__name__+'.scipy.linalg').",
         "F.": "__import__('importlib').import_module(jax.__name__+'.scipy.fft')."}


def spelled(cases):
    out = []
    for case in cases:
        for short, long in NAMES.items():
            case = case.replace(short, long)
        out.append(case)
    return out


@pytest.mark.parametrize("group", ["MATRICES", "FACTORS", "COSINES"])
def test_as_on_jax(jax_oracle, group):
    check(jax_oracle, spelled(globals()[group]), rtol=5e-4, **ARRAYS)


def test_a_complex_schur_form_is_that_of_the_real_one():
    with jax.enable_x64(True):
        a = jnp.asarray(RNG.normal(size=(6, 6)))
        t, z = linalg.rsf2csf(*linalg.schur(a))
        np.testing.assert_allclose(z @ t @ z.conj().T, a, atol=1e-12)
        np.testing.assert_allclose(z @ z.conj().T, np.eye(6), atol=1e-12)
        np.testing.assert_allclose(jnp.tril(t, -1), 0, atol=1e-12)
        np.testing.assert_allclose(np.sort_complex(t.diagonal()),
                                   np.sort_complex(np.linalg.eigvals(a)), atol=1e-10)


def test_matrix_functions_have_their_defining_property():
    with jax.enable_x64(True):
        a = jnp.asarray(RNG.normal(size=(5, 5)))
        root = linalg.sqrtm(a)
        np.testing.assert_allclose(root @ root, a, atol=1e-12)
        # exp(4 + u uᵀ) of ones u: eigenvalues 7, 4, 4.
        large = np.exp(4.0) * np.eye(3) + (np.exp(7.0) - np.exp(4.0)) / 3
        np.testing.assert_allclose(linalg.expm(4 * jnp.eye(3) + 1), large, rtol=1e-13)
        np.testing.assert_allclose(linalg.expm(a) @ linalg.expm(-a), np.eye(5), atol=1e-11)
        np.testing.assert_allclose(linalg.funm(a, jnp.exp), linalg.expm(a), atol=1e-10)
        x = linalg.solve_sylvester(a, a @ a, a.T)
        np.testing.assert_allclose(a @ x + x @ (a @ a), a.T, atol=1e-10)
        d, e = jnp.asarray(RNG.normal(size=7)), jnp.asarray(RNG.normal(size=6))
        dense = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        np.testing.assert_allclose(linalg.eigh_tridiagonal(d, e, eigvals_only=True),
                                   np.linalg.eigvalsh(dense), atol=1e-12)
        for side, m in (("right", jnp.asarray(RNG.normal(size=(6, 4)))),
                        ("left", jnp.asarray(RNG.normal(size=(4, 6))))):
            u, h = linalg.polar(m, side)
            np.testing.assert_allclose(u @ h if side == "right" else h @ u, m, atol=1e-12)
        np.testing.assert_allclose(fft.idct(fft.dct(a)), a, atol=1e-12)


@pytest.mark.parametrize("function", [
    linalg.expm,
    lambda x: linalg.cho_solve(linalg.cho_factor(x @ x.T + jnp.eye(3)), x[0]),
    lambda x: linalg.lu_solve(linalg.lu_factor(x + 3 * jnp.eye(3)), x[:, 0]),
    lambda x: linalg.solve_triangular(x + 3 * jnp.eye(3), x[0], trans=1),
    lambda x: linalg.polar(x + 3 * jnp.eye(3), method="svd")[1],
    lambda x: fft.dct(x, norm="ortho") ** 2, linalg.toeplitz, linalg.companion,
], ids=range(8))
def test_derivatives_are_limits_of_differences(function):
    with jax.enable_x64(True):
        check_grads(function, (jnp.asarray(SQUARE),), order=1, modes=("fwd", "rev"), atol=1e-4,
                    rtol=1e-4)


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("lower", [False, True])
def test_a_hermitian_system_has_the_derivatives_of_any_other(lower):
    """Along Hermitian matrices, of first and second order, beside ``solve`` by P L U."""
    with jax.enable_x64(True):
        draw = np.random.default_rng(0)
        a, b = (draw.normal(size=s) + 1j * draw.normal(size=s) for s in ((3, 3), (3,)))
        start, along = a @ a.conj().T + 3 * np.eye(3), a + a.conj().T

        def total(solve, t, b):
            x = solve(start + t * along, b)
            return jnp.sum(jnp.sin(x.real) + x.imag ** 2)

        def positive(a, b):
            return linalg.solve(a, b, assume_a="pos", lower=lower)

        for order in (jax.grad, lambda f: jax.grad(jax.grad(f)), lambda f: jax.grad(f, 1),
                      lambda f: jax.jacfwd(jax.grad(f))):
            got, wanted = (order(lambda t, b, solve=solve: total(solve, t, b))(
                0.1, jnp.asarray(b)) for solve in (positive, jnp.linalg.solve))
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)

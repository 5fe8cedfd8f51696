"""Is linear algebra the same here as on JAX: values, types, errors and derivatives?

What a definition leaves open (signs and phases of vectors) is taken out before values are compared.

Read before: ``tests/kernel/numpy/agreement.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "numpy"))

from agreement import check

import saem as jax
from saem import lax
from saem import numpy as jnp
from saem.test_util import check_grads

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

RNG = np.random.default_rng(0)


def matrix(*shape, complex_=False):
    real = RNG.normal(size=shape)
    return (real + 1j * RNG.normal(size=shape)) if complex_ else real


def symmetric(n, complex_=False):
    x = matrix(n, n, complex_=complex_)
    return x @ x.conj().T + n * np.eye(n)


ARRAYS = {
    "x": matrix(3, 3).astype("f4"), "r": matrix(4, 3).astype("f4"),
    "w": matrix(2, 5).astype("f4"), "v": matrix(3).astype("f4"),
    "i": np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]]), "b": matrix(2, 3, 3).astype("f4"),
    "c": matrix(3, 3, complex_=True).astype("c8"), "p": symmetric(3).astype("f4"),
    "q": symmetric(4, True).astype("c8"), "e": np.zeros((0, 0), "f4"),
    "l": np.stack([symmetric(3), symmetric(3)]).astype("f4"), "g": matrix(5, 5).astype("f4"),
    "d": matrix(2, 4, 3).astype("f4"),
}

DECOMPOSITIONS = """
jnp.linalg.cholesky(p)
jnp.linalg.cholesky(p,upper=True)
jnp.linalg.cholesky(q)
jnp.linalg.cholesky(q,upper=True)
jnp.linalg.cholesky(l)
jnp.linalg.cholesky(i)
jnp.linalg.cholesky(x)
jnp.linalg.cholesky(p,symmetrize_input=False)
jnp.linalg.cholesky(e)
jnp.linalg.cholesky(r)
jnp.linalg.cholesky(v)
jnp.linalg.cholesky([[1.]])
jnp.linalg.cholesky(p.astype('bfloat16'))
jnp.linalg.svd(r,compute_uv=False)
jnp.linalg.svd(c,compute_uv=False)
jnp.linalg.svd(d,compute_uv=False)
jnp.linalg.svd(i,compute_uv=False)
jnp.linalg.svd(p,compute_uv=False,hermitian=True)
jnp.linalg.svd(v)
jnp.linalg.svd(r,hermitian=True)
jnp.linalg.svdvals(b)
tuple(jnp.abs(m) for m in jnp.linalg.svd(x))
tuple(jnp.abs(m) for m in jnp.linalg.svd(r,full_matrices=False))
tuple(jnp.abs(m) for m in jnp.linalg.svd(w,full_matrices=False))
tuple(jnp.abs(m) for m in jnp.linalg.svd(d,full_matrices=False))
tuple(m.shape for m in jnp.linalg.svd(r))
tuple(m.shape for m in jnp.linalg.svd(e))
tuple(m.shape for m in jnp.linalg.svd(r[:0]))
tuple(m.dtype for m in jnp.linalg.svd(c))
tuple(jnp.abs(m) for m in jnp.linalg.svd(p,hermitian=True))
jnp.linalg.svd(r,False).U@jnp.diag(jnp.linalg.svd(r,False).S)@jnp.linalg.svd(r,False).Vh
tuple(jnp.linalg.eigh(p)).__getitem__(0)
tuple(jnp.abs(m) for m in jnp.linalg.eigh(p))
tuple(jnp.abs(m) for m in jnp.linalg.eigh(q))
tuple(jnp.abs(m) for m in jnp.linalg.eigh(l,'U'))
tuple(jnp.abs(m) for m in jnp.linalg.eigh(x,'L',symmetrize_input=False))
tuple(jnp.abs(m) for m in jnp.linalg.eigh(x,'U',symmetrize_input=False))
jnp.linalg.eigh(p,'X')
jnp.linalg.eigh(r)
jnp.linalg.eigvalsh(i)
jnp.linalg.eigvalsh(q,'U')
jnp.linalg.eigvalsh(e)
jnp.sort(jnp.linalg.eigvals(x).real)
jnp.sort(jnp.linalg.eigvals(c).real)
jnp.sort(jnp.linalg.eigvals(b).real)
jnp.linalg.eigvals(i)
jnp.linalg.eigvals(r)
jnp.linalg.eigvals(v)
tuple(jnp.abs(m) for m in jnp.linalg.eig(i))
tuple(m.dtype for m in jnp.linalg.eig(x))
tuple(jnp.linalg.qr(r))
tuple(jnp.linalg.qr(w))
tuple(jnp.linalg.qr(d))
tuple(jnp.linalg.qr(c))
tuple(jnp.linalg.qr(r,'complete'))
tuple(jnp.linalg.qr(w,'complete'))
jnp.linalg.qr(r,'r')
tuple(jnp.linalg.qr(r,'raw'))
jnp.linalg.qr(r,'foo')
tuple(jnp.linalg.qr(i))
tuple(jnp.linalg.qr(e))
tuple(jnp.linalg.qr(r[:0],'complete'))
jnp.linalg.qr(v)
""".strip().splitlines()

EQUATIONS = """
jnp.linalg.solve(x,v)
jnp.linalg.solve(x,r.T)
jnp.linalg.solve(x,b)
jnp.linalg.solve(b,v)
jnp.linalg.solve(b,b)
jnp.linalg.solve(c,v)
jnp.linalg.solve(x,c)
jnp.linalg.solve(i,i[0])
jnp.linalg.solve(b,b[:,0])
jnp.linalg.solve(b,r.T)
jnp.linalg.solve(r,v)
jnp.linalg.solve(x,r)
jnp.linalg.solve(e,e)
jnp.linalg.solve(v,v)
jnp.linalg.solve(x*0,v)
jnp.linalg.inv(x)
jnp.linalg.inv(b)
jnp.linalg.inv(c)
jnp.linalg.inv(i)
jnp.linalg.inv(e)
jnp.linalg.inv(r)
jnp.linalg.matrix_power(x,0)
jnp.linalg.matrix_power(x,1)
jnp.linalg.matrix_power(x,5)
jnp.linalg.matrix_power(x,-3)
jnp.linalg.matrix_power(b,3)
jnp.linalg.matrix_power(i,6)
jnp.linalg.matrix_power(i,-1)
jnp.linalg.matrix_power(r,2)
jnp.linalg.matrix_power(x,1.5)
jnp.linalg.lstsq(r,r[:,0])
jnp.linalg.lstsq(r,r[:,:2]+1)
jnp.linalg.lstsq(r,r[:,:2]+1,numpy_resid=True)
jnp.linalg.lstsq(w,w[:,0])
jnp.linalg.lstsq(w,w[:,0],numpy_resid=True)
jnp.linalg.lstsq(r,r[:,0],rcond=.5)
jnp.linalg.lstsq(r,r[:,0],rcond=-1)
jnp.linalg.lstsq(i,i)
jnp.linalg.lstsq(c,v)
jnp.linalg.lstsq(r,v)
jnp.linalg.lstsq(b,v)
jnp.linalg.pinv(r)
jnp.linalg.pinv(w)
jnp.linalg.pinv(d)
jnp.linalg.pinv(c)
jnp.linalg.pinv(i)
jnp.linalg.pinv(p,hermitian=True)
jnp.linalg.pinv(r,.5)
jnp.linalg.pinv(r,rcond=.5)
jnp.linalg.pinv(r,.5,rcond=.5)
jnp.linalg.pinv(r[:0])
jnp.linalg.pinv(v)
jnp.linalg.tensorinv(g[:4,:4].reshape(2,2,4)+jnp.eye(4).reshape(2,2,4)*3)
jnp.linalg.tensorinv(g[:4,:4].reshape(4,2,2)+jnp.eye(4).reshape(4,2,2)*3,ind=1)
jnp.linalg.tensorinv(x,ind=0)
jnp.linalg.tensorinv(w,ind=1)
jnp.linalg.tensorsolve(g[:4,:4].reshape(2,2,4)+jnp.eye(4).reshape(2,2,4)*3,p[:2,:2])
jnp.linalg.tensorsolve(g[:4,:4].reshape(2,4,2),p[:2,:2],axes=(1,))
jnp.linalg.tensorsolve(w,v[:2])
jnp.roots(v)
jnp.roots(np.array([0.,1,2,0,0]))
jnp.roots(np.array([1,-3,2]))
jnp.roots(np.array([2.,3,2]),strip_zeros=False)
jnp.roots(np.array([0.,1,2,0,0]),strip_zeros=False)
jnp.roots(np.zeros(3),strip_zeros=False)
jnp.roots(np.array([1.,2,3,0]))
jnp.roots(c[0])
jnp.roots(x)
jnp.roots(np.zeros(3))
jnp.roots(3.)
jnp.polyfit(v,v**2,1)
jnp.polyfit(g[0],g[1],2)
jnp.polyfit(g[0],g[:,:2],1)
jnp.polyfit(g[0],g[1],2,full=True)
jnp.polyfit(g[0],g[1],1,cov=True)
jnp.polyfit(g[0],g[:,:2],1,cov=True)
jnp.polyfit(g[0],g[1],1,cov='unscaled')
jnp.polyfit(g[0],g[1],1,w=jnp.abs(g[2]))
jnp.polyfit(g[0],g[1],1,rcond=.9)
jnp.polyfit(v,v,-1)
jnp.polyfit(v,v[:2],1)
jnp.polyfit(x,x,1)
jnp.polyfit(v[:0],v[:0],1)
jnp.polyfit(i[0],i[0],1)
jnp.polyfit(v,v,1,w=v[:2])
jnp.polyfit(v,v,2,cov=True)
jnp.poly(i)
jnp.poly(r)
""".strip().splitlines()

ORDERS = ("None", "1", "-1", "2", "-2", "jnp.inf", "-jnp.inf", "'fro'", "'nuc'", "0", "3", "'foo'",
          "-3", ".5")

MEASURES = [
    *(f"jnp.linalg.norm({x},{order})" for order in ORDERS for x in ("x", "v", "r", "c", "i", "b")),
    *(f"jnp.linalg.norm({x},{order},axis={axis},keepdims={keep})" for order in ORDERS
      for x, axis in (("b", "1"), ("b", "(0,2)"), ("d", "(-1,0)"), ("r", "-1"))
      for keep in (False, True)),
    *(f"jnp.linalg.matrix_norm({x},ord={order})" for order in ORDERS for x in ("b", "e", "v")),
    *(f"jnp.linalg.vector_norm({x},ord={order},axis={axis})" for order in ORDERS
      for x, axis in (("b", "None"), ("b", "(0,1)"), ("v", "0"))),
    *(f"jnp.linalg.cond({x},{p})" for p in ORDERS[:9] for x in ("x", "r", "l", "c", "i", "v", "e")),
    *"""
jnp.linalg.norm(5.)
jnp.linalg.norm(v[:0])
jnp.linalg.norm(v[:0],jnp.inf)
jnp.linalg.norm(v[:0],-jnp.inf)
jnp.linalg.norm(b,axis=(1,1))
jnp.linalg.norm(b,axis=(0,1,2))
jnp.linalg.norm(b,keepdims=True)
jnp.linalg.norm([1.])
jnp.linalg.norm(v.astype('bfloat16'))
jnp.linalg.norm(v>0)
jnp.linalg.cond(x*0)
jnp.linalg.det(x)
jnp.linalg.det(x[:2,:2])
jnp.linalg.det(x[:1,:1])
jnp.linalg.det(g)
jnp.linalg.det(b)
jnp.linalg.det(l)
jnp.linalg.det(c)
jnp.linalg.det(q)
jnp.linalg.det(i)
jnp.linalg.det(e)
jnp.linalg.det(r)
jnp.linalg.det(v)
tuple(jnp.linalg.slogdet(g))
tuple(jnp.linalg.slogdet(b))
tuple(jnp.linalg.slogdet(c))
tuple(jnp.linalg.slogdet(i))
tuple(jnp.linalg.slogdet(e))
tuple(jnp.linalg.slogdet(x*0))
tuple(jnp.linalg.slogdet(g,method='qr'))
jnp.linalg.slogdet(g,method='foo')
jnp.linalg.slogdet(r)
jnp.linalg.matrix_rank(x)
jnp.linalg.matrix_rank(b)
jnp.linalg.matrix_rank(np.ones((3,4),'f4'))
jnp.linalg.matrix_rank(v)
jnp.linalg.matrix_rank(v*0)
jnp.linalg.matrix_rank(i)
jnp.linalg.matrix_rank(e)
jnp.linalg.matrix_rank(x,.9)
jnp.linalg.matrix_rank(x*9,.9)
jnp.linalg.matrix_rank(x*9,tol=.9)
jnp.linalg.matrix_rank(l,jnp.array([.1,.9]))
jnp.linalg.matrix_rank(p,hermitian=True)
jnp.linalg.trace(b)
jnp.linalg.trace(b,offset=1)
jnp.linalg.trace(i,dtype='float32')
jnp.linalg.trace(v)
jnp.linalg.diagonal(b)
jnp.linalg.diagonal(d,offset=-1)
jnp.linalg.diagonal(v)
jnp.linalg.outer(v,v)
jnp.linalg.outer(x,v)
jnp.linalg.cross(x,b)
jnp.linalg.cross(x,x[::-1],axis=0)
jnp.linalg.cross(w,w)
jnp.linalg.vecdot(c,v)
jnp.linalg.matmul(x,v)
jnp.linalg.tensordot(b,b,axes=1)
jnp.linalg.matrix_transpose(b)
jnp.linalg.matrix_transpose(v)
jnp.linalg.multi_dot([x,x])
jnp.linalg.multi_dot([v,x,v])
jnp.linalg.multi_dot([r,x,x,v])
jnp.linalg.multi_dot([v,x,x])
jnp.linalg.multi_dot([x])
jnp.linalg.multi_dot([])
jnp.linalg.multi_dot([x,b,x])
jnp.linalg.multi_dot([x,r])
jnp.linalg.multi_dot([i,x])
""".strip().splitlines(),
]

LAX = """
jax.lax.linalg.lu(r)
jax.lax.linalg.lu(w)
jax.lax.linalg.lu(d)
jax.lax.linalg.lu(c)
jax.lax.linalg.lu(r[:0])
jax.lax.linalg.lu(i)
jax.lax.linalg.lu(v)
jax.lax.linalg.lu_pivots_to_permutation(np.array([2,1],'i4'),4)
jax.lax.linalg.lu_pivots_to_permutation(np.array([2,1,2],'i4'),2)
jax.lax.linalg.lu_pivots_to_permutation(np.array([2.,1.]),4)
jax.lax.linalg.qr(r,pivoting=True)
jax.lax.linalg.qr(w,pivoting=True,full_matrices=False)
jax.lax.linalg.qr(c,pivoting=True)
jax.lax.linalg.householder_product(r,v)
jax.lax.linalg.householder_product(r,v[:2])
jax.lax.linalg.householder_product(w,v)
jax.lax.linalg.ormqr(r,v,r)
jax.lax.linalg.ormqr(r,v,r.T,left=False,transpose=True)
jax.lax.linalg.hessenberg(g)
jax.lax.linalg.hessenberg(c)
jax.lax.linalg.hessenberg(b)
jax.lax.linalg.hessenberg(r)
jax.lax.linalg.schur(g)
jax.lax.linalg.schur(c)
jax.lax.linalg.schur(b)
jax.lax.linalg.schur(g,compute_schur_vectors=False)
jax.lax.linalg.schur(r)
jax.lax.linalg.schur(g,sort_eig_vals=True,select_callable=abs)
jax.lax.linalg.tridiagonal(p)
jax.lax.linalg.tridiagonal(q)
jax.lax.linalg.tridiagonal(q,lower=False)
jax.lax.linalg.tridiagonal(l)
jax.lax.linalg.tridiagonal(r)
jax.lax.linalg.tridiagonal(e)
jax.lax.linalg.tridiagonal_solve(v,v+4,v,r.T)
jax.lax.linalg.tridiagonal_solve(c[0],c[1]+4,c[2],c)
jax.lax.linalg.tridiagonal_solve(b[:,0],b[:,1]+4,b[:,2],b)
jax.lax.linalg.tridiagonal_solve(v,v+4,v,v)
jax.lax.linalg.tridiagonal_solve(v*0,v*0,v*0,r.T)
jax.lax.linalg.tridiagonal_solve(v*0,v*0+1,v*0,r.T,perturb_singular=True)
jax.lax.linalg.triangular_solve(x,r)
jax.lax.linalg.triangular_solve(x,v,left_side=True)
jax.lax.linalg.triangular_solve(x,r.T,left_side=True,lower=True,unit_diagonal=True)
jax.lax.linalg.triangular_solve(c,c,left_side=True,conjugate_a=True)
jax.lax.linalg.triangular_solve(c,c,left_side=True,conjugate_a=True,transpose_a=True)
jax.lax.linalg.triangular_solve(b,b,lower=True,transpose_a=True)
jax.lax.linalg.triangular_solve(r,r)
jax.lax.linalg.triangular_solve(i,i)
jax.lax.linalg.triangular_solve(x,w)
jax.lax.linalg.symmetric_product(r,g[:4,:4])
jax.lax.linalg.symmetric_product(r,g[:4,:4],alpha=2.,beta=.5,symmetrize_output=True)
jax.lax.linalg.symmetric_product(r,x)
jax.lax.linalg.cholesky_update(jnp.linalg.cholesky(p).T,v)
jax.lax.linalg.cholesky_update(p,v[:2])
jax.lax.linalg.cholesky_update(c,v)
jax.lax.linalg.eig(i)[0]
len(jax.lax.linalg.eig(x))
len(jax.lax.linalg.eig(x,compute_left_eigenvectors=False,compute_right_eigenvectors=False))
[jnp.abs(m) for m in jax.lax.linalg.eig(i)]
[jnp.abs(m) for m in jax.lax.linalg.eig(c)]
[jnp.abs(m) for m in jax.lax.linalg.eigh(p)]
jax.lax.linalg.eigh(p,subset_by_index=(0,2))
jax.lax.linalg.svd(r,full_matrices=False,subset_by_index=(0,2))
jax.lax.linalg.svd(r,algorithm=jax.lax.linalg.SvdAlgorithm.JACOBI)
jax.lax.linalg.svd(r,compute_uv=False,algorithm=jax.lax.linalg.SvdAlgorithm.QR)
jax.lax.linalg.eigh(p,implementation=jax.lax.linalg.EighImplementation.JACOBI)
jax.lax.linalg.eigh(p,implementation=jax.lax.linalg.EighImplementation.QDWH)
""".strip().splitlines()




@pytest.mark.parametrize("group", ["DECOMPOSITIONS", "EQUATIONS", "MEASURES", "LAX"])
def test_as_on_jax(jax_oracle, group):
    check(jax_oracle, globals()[group], rtol=3e-4, **ARRAYS)


WIDE = {name: x.astype({"f": "f8", "c": "c16"}.get(x.dtype.kind, x.dtype))
        for name, x in ARRAYS.items()}


@pytest.mark.parametrize("group", ["DECOMPOSITIONS", "EQUATIONS", "LAX"])
def test_as_on_jax_in_double_precision(jax_oracle, group):
    with jax.enable_x64(True):
        check(jax_oracle, globals()[group], rtol=1e-9, x64=True, **WIDE)


# -- derivatives -----------------------------------------------------------------------------------
# Functions that no sign or phase can change, each differentiated twice, both ways.

SYMMETRIC = symmetric(4)
SQUARE = matrix(4, 4) + 3 * np.eye(4)
COMPLEX = matrix(3, 3, complex_=True) + 3 * np.eye(3)
TALL, BROAD = matrix(5, 3), matrix(3, 5)


def sym(x):
    return (x + jnp.swapaxes(x, -1, -2).conj()) / 2


FUNCTIONS = {
    "cholesky": (lambda x: jnp.linalg.cholesky(sym(x)), SYMMETRIC),
    "cholesky of complex": (lambda x: jnp.linalg.cholesky(sym(x)), symmetric(3, True)),
    "cholesky of a stack": (jnp.linalg.cholesky, np.stack([SYMMETRIC, SYMMETRIC + 1])),
    "eigenvalues of symmetric": (lambda x: jnp.linalg.eigvalsh(sym(x)), SYMMETRIC),
    "eigenvectors of symmetric": (
        lambda x: jnp.linalg.eigh(sym(x)).eigenvectors ** 2, SYMMETRIC),
    "eigenvectors of Hermitian": (
        lambda x: jnp.abs(jnp.linalg.eigh(sym(x)).eigenvectors) ** 2, symmetric(3, True)),
    "eigenvalues": (lambda x: jnp.sum(jnp.linalg.eigvals(x) ** 3), SQUARE),
    "eigenvectors": (lambda x: jnp.sum(jnp.abs(lax.linalg.eig(
        x, compute_left_eigenvectors=False, enable_eigvec_derivs=True)[1]) ** 4), SQUARE),
    "left eigenvectors": (lambda x: jnp.sum(jnp.abs(lax.linalg.eig(
        x, compute_right_eigenvectors=False, enable_eigvec_derivs=True)[1]) ** 4), SQUARE),
    "singular values": (jnp.linalg.svdvals, TALL),
    "singular vectors": (lambda x: [m ** 2 for m in jnp.linalg.svd(x, False)], TALL),
    "singular vectors, broad": (lambda x: [m ** 2 for m in jnp.linalg.svd(x, False)], BROAD),
    "singular vectors, complex": (
        lambda x: [jnp.abs(m) ** 2 for m in jnp.linalg.svd(x, False)], COMPLEX),
    "svd back": (lambda x: (lambda u, s, v: (u * s ** 2) @ v)(*jnp.linalg.svd(x, False)), COMPLEX),
    "qr": (lambda x: tuple(jnp.linalg.qr(x)), TALL),
    "qr, broad": (lambda x: tuple(jnp.linalg.qr(x)), BROAD),
    "qr, complete": (lambda x: jnp.linalg.qr(x, "complete")[1], TALL),
    "qr, complex": (lambda x: tuple(jnp.linalg.qr(x)), COMPLEX),
    "qr, pivoted": (lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False)[:2], TALL),
    "lu": (lambda x: lax.linalg.lu(x)[0], SQUARE),
    "lu, tall": (lambda x: lax.linalg.lu(x)[0], TALL),
    "lu, broad": (lambda x: lax.linalg.lu(x)[0], BROAD),
    "lu, complex": (lambda x: lax.linalg.lu(x)[0], COMPLEX),
    "inv": (jnp.linalg.inv, SQUARE),
    "inv of complex": (jnp.linalg.inv, COMPLEX),
    "solve": (lambda x: jnp.linalg.solve(x, x[:, :2] ** 2), SQUARE),
    "solve a stack": (lambda x: jnp.linalg.solve(x[0], x), np.stack([SQUARE, SQUARE.T])),
    "pinv": (jnp.linalg.pinv, TALL),
    "pinv, broad": (jnp.linalg.pinv, BROAD),
    "pinv, complex": (jnp.linalg.pinv, COMPLEX),
    "lstsq": (lambda x: jnp.linalg.lstsq(x, x[:, 0] ** 2)[0], TALL),
    "det": (jnp.linalg.det, SQUARE),
    "det of complex": (lambda x: jnp.linalg.det(jnp.kron(x, x[:2, :2])), COMPLEX / 3),
    "slogdet": (lambda x: jnp.linalg.slogdet(x).logabsdet, SQUARE),
    "slogdet of complex": (lambda x: tuple(jnp.linalg.slogdet(x)), COMPLEX),
    "slogdet by qr": (lambda x: jnp.linalg.slogdet(x, method="qr").logabsdet, SQUARE),
    "norm": (jnp.linalg.norm, TALL),
    "nuclear norm": (lambda x: jnp.linalg.norm(x, "nuc"), TALL),
    "2-norm": (lambda x: jnp.linalg.norm(x, 2), TALL),
    "3-norm of vectors": (lambda x: jnp.linalg.norm(x, 3, axis=0), TALL),
    "norm of complex": (jnp.linalg.norm, COMPLEX),
    "matrix_power": (lambda x: jnp.linalg.matrix_power(x, -3), SQUARE),
    "triangular_solve": (lambda x: lax.linalg.triangular_solve(
        x, x[:2] ** 2, lower=True, transpose_a=True), SQUARE),
    "tridiagonal_solve": (lambda x: lax.linalg.tridiagonal_solve(
        x[0], x[1] + 6, x[2], x ** 2), SQUARE),
    "multi_dot": (lambda x: jnp.linalg.multi_dot([x[0], x, x[:, :2]]), SQUARE),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_limits_of_differences(name):
    function, x = FUNCTIONS[name]
    with jax.enable_x64(True):
        check_grads(function, (jnp.asarray(x),), order=2, modes=("fwd", "rev"), atol=2e-4,
                    rtol=2e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_stack_is_a_loop(name):
    function, x = FUNCTIONS[name]
    with jax.enable_x64(True):
        stack = jnp.stack([jnp.asarray(x), jnp.asarray(x) * 1.25])
        got = jax.tree.leaves(jax.vmap(function)(stack))
        loops = [jax.tree.leaves(function(one)) for one in stack]
        for number, out in enumerate(got):
            want = np.stack([loop[number] for loop in loops])
            np.testing.assert_allclose(out, want, rtol=1e-9, atol=1e-9)


DERIVATIVES = """
jax.grad(lambda x: jax.lax.linalg.cholesky(x,symmetrize_input=False).sum())(p)
jax.grad(lambda x: jnp.linalg.cholesky(x)[2,0])(p)
jax.jvp(lambda x: jnp.linalg.eigvalsh(x),(p,),(x,))
jax.jvp(lambda x: jnp.linalg.det(x),(g*0,),(g,))
jax.grad(lambda x: jnp.linalg.det(x))(jnp.diag(jnp.arange(5.)))
jax.grad(lambda x: jnp.linalg.det(x))(jnp.diag(jnp.arange(4.)))
jax.jvp(lambda x: tuple(jnp.linalg.slogdet(x)),(c,),(c[::-1],))
jax.grad(lambda x: jnp.linalg.norm(x))(x)
jax.grad(lambda x: jnp.linalg.norm(x))(v*0)
jax.grad(lambda x: jnp.linalg.norm(x,1))(v)
jax.grad(lambda x: jnp.linalg.norm(x,jnp.inf))(v)
jax.jvp(lambda x: jax.lax.linalg.svd(x,full_matrices=True),(r,),(r,))
jax.jvp(lambda x: jnp.abs(jnp.linalg.svd(x).U),(x,),(p,))
jax.jvp(lambda x: jax.lax.linalg.qr(x),(r,),(r[::-1],))
jax.jvp(lambda x: jax.lax.linalg.lu(x)[0],(w,),(w[::-1],))
jax.jvp(lambda x: jnp.linalg.eig(x)[1],(x,),(x,))
jax.jvp(lambda x: jnp.linalg.eigvals(x).sum(),(x,),(p,))
jax.grad(lambda x: jax.lax.linalg.hessenberg(x)[0].sum())(x)
jax.grad(lambda x: jax.lax.linalg.schur(x)[0].sum())(x)
jax.grad(lambda x: jax.lax.linalg.tridiagonal(x)[1].sum())(p)
jax.grad(lambda x: jax.lax.linalg.householder_product(x,v).sum())(r)
jax.grad(lambda x: jax.lax.linalg.symmetric_product(x,x).sum())(x)
jax.grad(lambda x: jax.lax.linalg.cholesky_update(x,v).sum())(x)
""".strip().splitlines()


def test_derivatives_are_those_of_jax(jax_oracle):
    check(jax_oracle, DERIVATIVES, rtol=3e-4, **ARRAYS)


PROGRAMS = """
jax.lax.linalg.cholesky(x)
jax.lax.linalg.eigh(x)
jax.lax.linalg.eig(x)
jax.lax.linalg.svd(x)
jax.lax.linalg.svd(x, compute_uv=False)
jax.lax.linalg.qr(x, pivoting=True)
jax.lax.linalg.lu(x)
jax.lax.linalg.schur(x)
jax.lax.linalg.hessenberg(x)
jax.lax.linalg.tridiagonal(x)
jax.lax.linalg.tridiagonal_solve(x[0], x[1], x[2], x)
jax.lax.linalg.triangular_solve(x, x)
jax.lax.linalg.triangular_solve(x, x[0], left_side=True, lower=True)
jax.lax.linalg.householder_product(x, x[0])
jax.lax.linalg.ormqr(x, x[0], x)
jax.lax.linalg.symmetric_product(x, x)
jax.lax.linalg.cholesky_update(x, x[0])
""".strip().splitlines()


def test_programs_print_as_on_jax(jax_oracle):
    asked = jax_oracle.run(
        "[str(jax.make_jaxpr(eval('lambda x: ' + body))(jnp.ones((3, 3)))) for body in bodies]",
        bodies=PROGRAMS).value
    for body, wanted in zip(PROGRAMS, asked, strict=True):
        function = eval(f"lambda x: {body}", {"jax": jax})
        assert str(jax.make_jaxpr(function)(jnp.ones((3, 3)))) == wanted, body


SHARDED = """
import numpy as np
import saem as jax, saem.numpy as jnp
from saem.sharding import AxisType, NamedSharding, PartitionSpec as P
x = np.random.default_rng(0).normal(size=(4, 3, 3)).astype("f4")
x = x @ x.swapaxes(-1, -2) + 3 * np.eye(3, dtype="f4")
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((2,), ("d",), axis_types=(kind,))
    with jax.set_mesh(mesh):
        parts = jax.device_put(x, NamedSharding(mesh, P("d")))
        for f in (jnp.linalg.cholesky, jnp.linalg.eigvalsh, jnp.linalg.inv,
                  lambda x: jnp.linalg.svd(x, compute_uv=False), lambda x: jnp.linalg.qr(x)[1]):
            out = jax.jit(f)(parts)
            assert out.sharding.spec[0] == "d", out.sharding
            np.testing.assert_allclose(out, f(jnp.asarray(x)), rtol=1e-4, atol=1e-4)
            assert "all-gather" not in jax.jit(f).lower(parts).compile().as_text()
"""

EXPORTED = """
import sys
import saem as jax, saem.numpy as jnp
from saem import export
if sys.argv[1] == "write":
    made = export.export(jax.jit(jnp.linalg.cholesky))(jnp.eye(3))
    open(sys.argv[2], "wb").write(made.serialize())
else:
    read = export.deserialize(bytearray(open(sys.argv[2], "rb").read()))
    assert (read.call(jnp.eye(3) * 4) == 2 * jnp.eye(3)).all()
"""


def in_a_new_process(program, *arguments):
    here = {**os.environ, "PYTHONPATH": str(Path(jax.__file__).parents[1]),
            "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, "-c", program, *arguments], env=here, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_matrices_of_a_sharded_stack_stay_where_they_are():
    in_a_new_process(SHARDED)


def test_an_exported_program_finds_lapack_in_another_process(tmp_path):
    for what in ("write", "read"):
        in_a_new_process(EXPORTED, what, str(tmp_path / "program"))


def test_a_primitive_written_by_a_function_is_compiled_under_any_setting():
    """Its loops are the text's: with ``disable_jit`` as without, and where tracing is forbidden."""
    p = np.eye(7, dtype=np.float32) * 3
    w = np.arange(7, dtype=np.float32) / 7
    lowered = jax.jit(jax.lax.linalg.cholesky_update).lower(p, w).as_text()
    for setting in (jax.disable_jit, jax.no_tracing):
        jax.clear_caches()
        with setting(True):
            r = jax.lax.linalg.cholesky_update(jnp.asarray(p), jnp.asarray(w))
            q = jax.lax.igamma(jnp.asarray(w + 1), jnp.asarray(w))
        np.testing.assert_allclose(r.T @ r, p.T @ p + np.outer(w, w), atol=1e-4)
        assert np.all(np.diff(q) > 0)
    assert lowered.count("stablehlo.while") == 1

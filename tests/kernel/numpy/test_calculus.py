"""Do differences, interpolation, convolution, covariance and polynomials agree with JAX?"""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check

import saem as jax
from saem import numpy as jnp

ARRAYS = {
    "x": np.arange(6, dtype=np.float32).reshape(2, 3), "i": np.arange(3),
    "v": np.array([3.0, 1.0, 2.5, 0.0, 7.0], np.float32), "b": np.array([True, False, False]),
    "c": np.array([1 + 2j, 1 + 1j, 0.5], np.complex64),
    "p": np.array([0.0, 1.0, 1.5, 4.0, 5.0], np.float32),
    "t": np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2,
    "g": np.array([-1.0, 0.5, 1.0, 9.0], np.float32),
}
WEAK = "jnp.broadcast_to(jnp.add(1.5,0.),(3,))"

CALCULUS = """
jnp.diff(x)
jnp.diff(x,axis=0)
jnp.diff(v,n=2)
jnp.diff(x,n=0)
jnp.diff(x,n=-1)
jnp.diff(b)
jnp.diff(x,axis=0,prepend=0)
jnp.diff(v,append=v[:2])
jnp.diff(x,n=5)
jnp.diff(3.)
jnp.diff({w})
jnp.ediff1d(x,to_end=9)
jnp.ediff1d(i,to_begin=np.array([5,6]))
jnp.ediff1d({w})
jnp.trapezoid(v)
jnp.trapezoid(i)
jnp.trapezoid(x,dx=.5,axis=0)
jnp.trapezoid(x,x)
jnp.trapezoid(x,i)
jnp.gradient(v)
jnp.gradient(i)
jnp.gradient(x)
jnp.gradient(x,2.,axis=1)
jnp.gradient(x,2.,.5)
jnp.gradient(v,p)
jnp.gradient(t,axis=(0,2))
jnp.gradient(v[:1])
jnp.gradient(x,1.,2.,3.)
jnp.interp(g,p,v)
jnp.interp(1.,i,i)
jnp.interp({w},{w},{w})
jnp.interp(g,i,i*2,left=5,right='extrapolate')
jnp.interp(g,i,i*2,left='foo')
jnp.interp(g,i,i*2,period=3)
jnp.interp(g,i,c)
jnp.interp(g,i,v)
jnp.interp(x,x,x)
jnp.convolve(v,x[0])
jnp.convolve(x[0],v,mode='same')
jnp.convolve(v,v[:4],mode='same')
jnp.convolve(v,v[:2],mode='valid')
jnp.convolve(i,i)
jnp.convolve({w},{w})
jnp.convolve(x,x)
jnp.convolve(i[:0],i)
jnp.convolve(i,i,mode='foo')
jnp.correlate(v,x[0])
jnp.correlate(x[0],v,mode='full')
jnp.correlate(v,v[:2],mode='same')
jnp.correlate(v[:2],v,mode='same')
jnp.correlate(c,v,mode='full')
jnp.correlate(v,c,mode='full')
jnp.cov(x)
jnp.cov(i)
jnp.cov(v,v**2)
jnp.cov(x,rowvar=False,bias=True)
jnp.cov(x,aweights=np.array([1.,2.,1.]))
jnp.cov(x,fweights=i,ddof=0)
jnp.cov(c)
jnp.cov(t)
jnp.corrcoef(x)
jnp.corrcoef(v,p)
jnp.corrcoef(v)
jnp.cross(x,x[::-1])
jnp.cross(x[:,:2],x[::-1,:2])
jnp.cross(x[0],x[1,:2])
jnp.cross(x,x[1])
jnp.cross(t[:,:,0],t[:,:,1],axisc=0)
jnp.cross(v,v)
jnp.unwrap(v*3)
jnp.unwrap(x*5,axis=0)
jnp.unwrap(v*3,discont=4,period=5)
""".strip().format(w=WEAK).splitlines()

POLYNOMIALS = """
jnp.polyval(i,2)
jnp.polyval(i,x)
jnp.polyval({w},1)
jnp.polyval(v,2.5)
jnp.polyadd(i,v)
jnp.polysub(v,i)
jnp.polymul(i,i)
jnp.polymul(v,x[0],trim_leading_zeros=True)
jnp.polydiv(v,np.array([2.,1.],'float32'))
jnp.polyder(v)
jnp.polyder(v,2)
jnp.polyder(i,5)
jnp.polyder(i,-1)
jnp.polyint(v)
jnp.polyint(v,2,3)
jnp.polyint(v,2,np.array([1,2]))
jnp.polyint(v,-1)
jnp.poly(v)
jnp.trim_zeros(np.array([0,0,1,0,2,0]))
jnp.trim_zeros(np.array([0,0,1,0]),'f')
jnp.bartlett(4)
jnp.blackman(5)
jnp.hamming(4)
jnp.hanning(3)
jnp.hanning(1)
jnp.kaiser(5,2.)
jnp.vectorize(lambda a,b:a@b,signature='(n),(n)->()')(x,x)
jnp.vectorize(lambda a,b:a@b,signature='(n),(n)->()')(t,t[:,:1])
jnp.vectorize(lambda a,b:a@b,signature='(n,m),(m)->(n)')(t,v[:4])
jnp.vectorize(lambda a,b:a@b,signature='(n,m),(m)->(n)')(t,v)
jnp.vectorize(lambda a,b:a+b)(x,i)
jnp.vectorize(lambda a:(a.sum(),a*2),signature='(n)->(),(n)')(x)
jnp.vectorize(lambda a:a,signature='(n)->()')(x)
jnp.vectorize(lambda a:a,signature='(n)>()')(x)
jnp.vectorize(lambda a,b:a*b,excluded={{1}})(x,2.)
jnp.vectorize(lambda a:a,signature='(n,m)->(n,m)')(i)
""".strip().format(w=WEAK).splitlines()

TRIANGLES = """
jnp.diag_indices(3)
jnp.diag_indices(2,3)
jnp.diag_indices(-1)
jnp.diag_indices_from(t[:,:2,:2])
jnp.diag_indices_from(x)
jnp.tril_indices(3)
jnp.tril_indices(3,-1,4)
jnp.triu_indices(3,1)
jnp.tril_indices_from(x)
jnp.triu_indices_from(x,1)
jnp.triu_indices_from(v)
jnp.mask_indices(3,jnp.triu)
jnp.mask_indices(3,jnp.triu,1)
jnp.fill_diagonal(x,1,inplace=False)
jnp.fill_diagonal(x,np.array([7.,8,9]),inplace=False)
jnp.fill_diagonal(t[:,:2,:2],v[:1],inplace=False)
jnp.fill_diagonal(x,1)
jnp.fill_diagonal(x,1,True,inplace=False)
jnp.fill_diagonal(v,1,inplace=False)
jnp.packbits(np.array([1,0,1]))
jnp.packbits(b,bitorder='little')
jnp.packbits(np.arange(20).reshape(2,10),axis=1)
jnp.packbits(x)
jnp.unpackbits(np.array([3,200],'uint8'))
jnp.unpackbits(np.array([[3],[200]],'uint8'),axis=1,count=5,bitorder='little')
jnp.unpackbits(np.array([3,200],'uint8'),count=-3)
jnp.unpackbits(np.array([3,200],'uint8'),count=20)
jnp.unpackbits(i)
""".strip().splitlines()


@pytest.mark.parametrize("cases", [CALCULUS, POLYNOMIALS, TRIANGLES],
                         ids=["calculus", "polynomials", "triangles"])
def test_they_agree_with_jax(jax_oracle, cases):
    check(jax_oracle, cases, rtol=1e-5, **ARRAYS)


def test_derivatives_are_those_of_jax(jax_oracle):
    body = ("jnp.sum(jnp.diff(x)**2) + jnp.sum(jnp.gradient(x, axis=1)**2)"
            " + jnp.interp(1.5, jnp.arange(3.), x[0]) + jnp.convolve(x[0], x[1]).sum()"
            " + jnp.sum(jnp.cov(x)) + jnp.trapezoid(x).sum()")
    ours = jax.grad(lambda x: eval(body, {"jnp": jnp, "x": x}))(ARRAYS["x"])
    wanted = jax_oracle.run(f"jax.grad(lambda x: {body})(x)", x=ARRAYS["x"]).value
    np.testing.assert_allclose(np.asarray(ours), wanted, rtol=1e-5)

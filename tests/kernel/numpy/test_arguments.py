"""Do functions take each kind of argument as JAX does?

Each line is a program over the values of ``described.py``: lists as axes, traced places, empty
operands, views, foreign classes, NumPy values, strict promotion.  Both sides describe the result.

Read before: ``described.py``.
Invariant: every expected answer comes from JAX.
"""

from __future__ import annotations

from pathlib import Path

import described
import ml_dtypes
import numpy as np
import pytest
from both import same

import saem as jax
import saem.numpy as jnp

SOURCE = Path(described.__file__).read_text(encoding="utf-8")
HERE: dict = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np, "ml_dtypes": ml_dtypes}
exec(compile(SOURCE, described.__file__, "exec"), HERE)

LINES = {
    "strict promotion": r"""
        strict(lambda: jnp.linspace(5,6,7))
        strict(lambda: jnp.linspace(5,6,7,dtype=int))
        strict(lambda: jnp.linspace(5.,6,7))
        strict(lambda: jnp.arange(5))
        strict(lambda: jnp.arange(0,5,0.5))
        strict(lambda: jnp.arange(0.,5,1))
        strict(lambda: jnp.quantile(h,0.3))
        strict(lambda: jnp.median(i))
        strict(lambda: jnp.mean(i))
        strict(lambda: jnp.var(i))
        strict(lambda: jnp.std(h))
        strict(lambda: jnp.pad(i,1,mode='linear_ramp',end_values=2))
        strict(lambda: jnp.pad(i,1,mode='mean'))
        strict(lambda: jnp.pad(h,1,mode='mean'))
        strict(lambda: jnp.pad(i,1))
        strict(lambda: jnp.cumsum(i))
        strict(lambda: jnp.searchsorted(x[0],1.5))
        strict(lambda: jnp.take(x,jnp.array([0,1],'int8')))
        strict(lambda: jnp.clip(i,1,3))
        strict(lambda: jnp.where(b,x,0))
        strict(lambda: jnp.interp(1.5,x[0],x[1]))
        strict(lambda: jnp.roll(x,1))
        strict(lambda: jnp.convolve(x[0],x[1]))
        strict(lambda: jnp.trapezoid(x))
        strict(lambda: jnp.cov(x))
        strict(lambda: jnp.digitize(x,x[0]))
        strict(lambda: jnp.bincount(i.ravel()))
        strict(lambda: jnp.nanmean(x))
        strict(lambda: jnp.average(x))
        strict(lambda: jnp.logspace(0,1,3))
        strict(lambda: jnp.geomspace(1,10,3))
        strict(lambda: jnp.eye(3,dtype='int8'))
        strict(lambda: jnp.tri(3))
        strict(lambda: jnp.tril(i))
        strict(lambda: jnp.vander(x[0]))
        strict(lambda: jnp.polyval(x[0],x[1]))
        strict(lambda: jnp.unwrap(x[0]))
        strict(lambda: jnp.ediff1d(x))
        strict(lambda: jnp.gradient(x[0]))
        strict(lambda: jnp.sinc(x))
        strict(lambda: jnp.i0(x))
        strict(lambda: jnp.percentile(x,30))
        strict(lambda: jnp.round(x,2))
        strict(lambda: jnp.nan_to_num(x))
        strict(lambda: jnp.sort(x))
        strict(lambda: jnp.argsort(x))
        strict(lambda: jnp.unique(i))
        strict(lambda: jnp.bartlett(4))
        strict(lambda: jnp.hanning(4))
        strict(lambda: jnp.kaiser(4,2.))
        strict(lambda: jnp.heaviside(x,1.))
        strict(lambda: jnp.allclose(x,x))
        strict(lambda: jnp.packbits(b))
        strict(lambda: jnp.unpackbits(i.astype('uint8')))
        strict(lambda: jnp.cross(r3[0,:,0],r3[1,:,1]))
        strict(lambda: jnp.corrcoef(x))
        strict(lambda: jnp.repeat(x,2))
        strict(lambda: jnp.tile(x,2))
        strict(lambda: jnp.argwhere(x))
        strict(lambda: jnp.nonzero(x))
        strict(lambda: jnp.fill_diagonal(i,3,inplace=False))
        strict(lambda: jnp.piecewise(x,[x<0],[0,1]))
        strict(lambda: jnp.select([x<0],[x],0))
        strict(lambda: jnp.ldexp(x,i))
        strict(lambda: jnp.frexp(x))
        strict(lambda: jnp.divmod(x,2))
        strict(lambda: jnp.mean(h))
        strict(lambda: jnp.sum(h))
        strict(lambda: jnp.ptp(x))
        strict(lambda: jnp.histogram2d(x[0],x[1]))
        strict(lambda: jnp.nanquantile(h,0.3))
        strict(lambda: jax.random.normal(key,(2,)))
        strict(lambda: jax.random.randint(key,(2,),0,5))
        strict(lambda: jax.random.permutation(key,3))
        strict(lambda: jnp.reshape(np.zeros(4,jax.dtypes.float0),(2,2)).shape)
    """,
    "rank promotion refused": r"""
        ranked(lambda: jnp.quantile(x,0.5,weights=jnp.ones(3),axis=1,method='inverted_cdf'))
        ranked(lambda: jnp.add.outer(x,x[0]))
        ranked(lambda: jnp.quantile(x,jnp.array([0.5,0.2]),axis=0))
        ranked(lambda: jnp.mean(x,axis=0))
        ranked(lambda: jnp.var(x,axis=0))
        ranked(lambda: jnp.cov(x))
        ranked(lambda: jnp.corrcoef(x))
        ranked(lambda: jnp.digitize(x,x[0]))
        ranked(lambda: jnp.linspace(x[0],x[1],4))
        ranked(lambda: jnp.gradient(x,axis=0))
        ranked(lambda: jnp.trapezoid(x,dx=2.))
        ranked(lambda: jnp.cross(x,x))
        ranked(lambda: jnp.diagonal(x))
        ranked(lambda: jnp.roll(x,1))
        ranked(lambda: jnp.take_along_axis(x,i%2,0))
        ranked(lambda: jnp.argsort(x))
        ranked(lambda: jnp.unique(x,axis=0))
        ranked(lambda: jnp.apply_along_axis(jnp.sum,0,x))
        ranked(lambda: jnp.kron(x,x[0]))
        ranked(lambda: jnp.outer(x,x))
        ranked(lambda: jnp.vander(x[0]))
        ranked(lambda: jnp.tril(x))
        ranked(lambda: jnp.interp(x,x[0],x[0]))
        ranked(lambda: jnp.nanmedian(x,axis=0))
        ranked(lambda: jnp.average(x,axis=0,weights=jnp.ones(2)))
        ranked(lambda: jnp.isin(x,x[0]))
        ranked(lambda: jnp.setdiff1d(i,i[0]))
        ranked(lambda: jnp.polyval(x[0],x))
        ranked(lambda: jnp.fill_diagonal(x,x[0,:2],inplace=False))
        ranked(lambda: jnp.ix_(x[0],x[1]))
        ranked(lambda: jnp.histogramdd(x.T))
        ranked(lambda: jnp.searchsorted(x[0],x))
        ranked(lambda: jnp.pad(x,1,mode='mean'))
        ranked(lambda: x.at[0].set(x[0]))
        ranked(lambda: x.at[:,0].add(1.))
        ranked(lambda: jnp.insert(x,1,5.,axis=0))
        ranked(lambda: jnp.delete(x,1,axis=0))
    """,
    "one value by lax": r"""
        lax.reduce_window(jnp.float32(3), 0., lax.add, (), (), 'VALID')
        lax.reduce_window(jnp.float32(3), 1., lambda a, b: a * b + 1, (), (), 'VALID')
        lax.convert_element_type(N1, 'float32')
        lax.convert_element_type(np.float32(3), 'float32')
        lax.reshape(np.ones((2,3)), (2,3))
        lax.broadcast_in_dim(NX, (2,3), (0,1))
        lax.squeeze(NX, ())
        lax.expand_dims(NX, ())
        lax.transpose(NX, (0,1))
        lax.rev(NX, ())
        lax.reduce_sum(NX, ())
        lax.reduce_max(NX, ())
        lax.slice(NX, (0,0),(2,3))
        lax.slice_in_dim(NX, 0,2)
        lax.pad(NX, np.float32(0), ((0,0,0),(0,0,0)))
        lax.concatenate([NX], 0)
        lax.broadcast(NX, ())
        lax.collapse(NX,0,1)
        lax.select(True, np.ones(3), np.ones(3))
        lax.real(np.ones(3,'complex64'))
        lax.dynamic_slice(NX,(0,0),(2,3))
        lax.cumsum(NX)
        lax.bitcast_convert_type(N1,'float32')
        lax.sort(N1)
        lax.full_like(N1,2)
        lax.batch_matmul(np.ones((1,2,2),'float32'),np.ones((1,2,2),'float32'))
        lax.dynamic_slice(weak,(0,),(2,))
        lax.dtype(np.float32)
        lax.convert_element_type(2**32, jnp.int32)
    """,
    "others": r"""
        jnp.apply_along_axis(lambda v: v*2, 0, r3)
        jnp.apply_along_axis(lambda v: jnp.outer(v,v)[:2], 1, r3)
        jnp.vecdot(r3, x[0,:2], axis=0)
        jnp.vecdot(r3, r3[0], axis=-2)
        jnp.vecdot(r3, r3[0], axis=0)
        jnp.vecdot(r3, r3, axis=0)
        jnp.vecdot(r3, r3[:,0,0], axis=0)
        jnp.setxor1d(jnp.array([1,1,2]), jnp.array([2,3,3]))
        jnp.spacing(-h)
        jnp.spacing(jnp.array([-1.,0.,-0.,5e-5],'float16'))
        jnp.swapaxes(np.ones((2,2),'float32'),0,0)
        jnp.floor(np.ones(3,'int32'))
        jnp.where(True,np.ones(3),np.ones(3))
        jnp.nan_to_num(np.ones(3,'int32'))
        jnp.abs(np.ones(3,'uint8'))
        jnp.flip(x, axis=[0])
        jnp.squeeze(r3[:1], axis=[0])
        jnp.expand_dims(x, [0])
        jnp.count_nonzero(x, axis=[0])
        jnp.poly(jnp.array([[1.,2],[3,4]]))
        2. in x
        20. in x
        (x*(1,2))
        jnp.trace(b)
        jnp.trace(jnp.ones((3,3),bool))
        jnp.index_exp[0:2:1]
        jnp.index_exp[0]
        jnp.index_exp[0,1]
        jnp.s_[0:2]
        jax.grad(jnp.i0)(0.)
        jax.grad(jnp.i0)(1.)
        jnp.take(x, jnp.array([0,1]), axis=0, mode='one_hot')
        jnp.take(weak,0)
        jnp.prod(x, dtype=bool)
        jnp.abs.__name__
        jnp.acos.__name__
        jnp.mod.__name__
        jnp.true_divide.__name__
        jnp.conj.__name__
        jnp.bitwise_invert.__name__
        jnp.pow.__name__
        jnp.concat.__name__
        jnp.permute_dims.__name__
        jnp.isclose(key, key)
        jnp.isclose(keys, key)
        jnp.full((2,), key)
        jnp.full_like(keys, key)
        isinstance(jnp.float32(1), jnp.float32)
        isinstance(jnp.ones(()), jnp.float32)
        isinstance(np.float32(1), jnp.float32)
        isinstance(jnp.int32(1), jnp.float32)
        jnp.array(['a','b'])
        jnp.asarray(np.array(['a','b'], dtype=np.dtypes.StringDType()))
        jnp.ndim(None)
        jnp.shape(None)
        jnp.size(None)
        jnp.ndim([1,2])
        jnp.shape([[1,2]])
        jnp.size([1,2])
        jnp.shape([x,x])
        bool(jnp.ones(2))
        bool(jnp.ones(0))
        int(jnp.ones(2))
        jnp.fmod(True, jnp.array([True,False]))
    """,
    "statistics": r"""
        jnp.apply_along_axis(jnp.sum, -1, r3)
        jnp.setxor1d(jnp.array([1,1,2]), jnp.array([2,3,3]), assume_unique=True)
        jnp.cov(x[:1], rowvar=False)
        jnp.corrcoef(x[:1], rowvar=False)
        jnp.cov(x, rowvar=False)
        jnp.cov(i)
        jnp.corrcoef(i)
        jnp.cov(jnp.zeros((2,0)))
        jnp.cov(x[0], ddof=3)
        jnp.cov(x, fweights=jnp.array([1,2,0]))
        jnp.quantile(x.astype('bfloat16'), 0.3)
        jnp.quantile(x.astype('bfloat16'), 0.3, method='nearest')
        jnp.median(x.astype('bfloat16'))
        jnp.var(z, dtype='complex64')
        jnp.var(x, dtype='complex64')
        jnp.std(x, dtype='complex64')
        jnp.var(z)
        jnp.var(z, dtype='float32')
        jnp.median(x, axis=[0])
        jnp.nansum(x, axis=[0])
        jnp.quantile(x, 0.5, axis=[0,1])
        jnp.linalg.norm(x, axis=[0,1])
        jnp.cumulative_sum(b.ravel())
        jnp.cumulative_sum(x, axis=1, include_initial=True)
        jnp.cumulative_prod(b.ravel())
        jnp.cumsum(b)
        jnp.bincount(jnp.array([0,1,1]), minlength=20, length=8)
        jnp.bincount(jnp.array([0,1,1]), length=2)
        jnp.bincount(jnp.array([0,1,1]), minlength=4)
        jnp.sum(x, dtype=bool)
        jnp.cumsum(x, dtype=bool)
        jax.grad(lambda x: jnp.sum(jnp.real(jnp.ndim(x)))+x)(1.)
        jax.grad(lambda x: jnp.real(len(x))*x.sum())(jnp.ones(3))
        jax.grad(lambda x: jnp.sum(jnp.size(x))*x.sum())(jnp.ones(3))
        jax.grad(lambda x: jnp.unique(x,size=3).sum())(jnp.array([1.,2.,1.]))
    """,
    "empty, odd and long operands": r"""
        jnp.rollaxis(r3, 2).shape
        jnp.rollaxis(r3, 0, start=-1).shape
        jnp.rollaxis(r3, 1, start=-2).shape
        jnp.rollaxis(r3, 2, start=3).shape
        jnp.rollaxis(r3, -1, start=1).shape
        jnp.cov(e)
        jnp.roll(x, jnp.array([1,2]))
        jnp.roll(x, jnp.array([1]))
        jnp.roll(x, (1,2))
        jnp.roll(x, (1,2), axis=0)
        jnp.roll(x, 1, axis=(0,1))
        jnp.linspace(0,1,1,retstep=True)
        jnp.linspace(0,1,0,retstep=True)
        jnp.linspace(0,1,1,endpoint=False,retstep=True)
        jnp.linspace(0,1,3,retstep=True)
        jnp.linspace(0,1,jnp.array(3))
        jnp.linspace(0,1,np.int64(3))
        jnp.linspace(x[0],1,2,retstep=True)
        jnp.unwrap(jnp.array([1,5,9,2]), period=4)
        jnp.unwrap(jnp.array([1,5,9,2]))
        jnp.unwrap(jnp.array([1,5,9,2]), period=3)
        jnp.unwrap(jnp.array([1.,5,9,2]), discont=1., period=3)
        jnp.round(np.ones(3,'int32'))
        jnp.roll(N1,0)
        jnp.repeat(x, 0)
        jnp.repeat(x, jnp.array([0,0]), axis=0)
        jnp.repeat(e, 2)
        jnp.trapezoid(x, dx=jnp.array([1.,2.]))
        jnp.trapezoid(x, dx=jnp.array(2.))
        jnp.trapezoid(x, x=jnp.array([0.,1.,3.]))
        jnp.ldexp(x, jnp.array([1,2,3]))
        jnp.ldexp(r3, i[0,:1])
        jnp.round(x, 40)
        jnp.round(x*1.2345, 3)
        jnp.round(x, -40)
        jnp.round(i, 2)
        jnp.round.__name__, jnp.around.__name__
    """,
    "views and copies": r"""
        x.view('int16')
        x.view('int8').shape
        x.view('uint16').view('float32')
        x.view('complex64')
        jnp.ones((2,4)).view('complex64')
        z.view('float32')
        i.astype('int8').view('int32')
        e.view('int16').shape
        (x > 0).view('int8')
        (i > 1).view('uint8')
        jnp.ones((2,8), bool).view('float32')
        jnp.ones((2,8), bool).view('complex64')
        jnp.array([0, 1, 2, 255, 128], 'uint8').view(bool)
        jnp.array([0, 1, 2, 256], 'int32').view(bool)
        jnp.ones(3, bool).view('int16')
        jax.jit(lambda y: y.view('int32'))(jnp.ones((2,8), bool))
        lax.bitcast_convert_type(jnp.ones((2,4), 'int8'), 'int16')
        lax.bitcast_convert_type(jnp.ones((2,4), bool), 'int16')
        lax.bitcast_convert_type(jnp.ones(4, bool), 'int8')
        lax.bitcast_convert_type(jnp.int8(1), 'int16')
        copy.deepcopy(x).unsafe_buffer_pointer()==x.unsafe_buffer_pointer()
        copy.copy(x).unsafe_buffer_pointer()==x.unsafe_buffer_pointer()
        jax.device_put(x, may_alias=False).unsafe_buffer_pointer()==x.unsafe_buffer_pointer()
        jax.device_put(x, may_alias=True).unsafe_buffer_pointer()==x.unsafe_buffer_pointer()
        jax.device_put(x, jax.devices()[0], may_alias=True, donate=True)
        x.byteswap()
        i.byteswap()
        h.byteswap()
    """,
    "numpy values": r"""
        jnp.squeeze(NX)
        jnp.ravel(N1)
        jnp.transpose(N1)
        jnp.broadcast_to(N1,(3,))
        jnp.expand_dims(N1,())
        jnp.moveaxis(N1,0,0)
        jnp.real(N1)
        jnp.conj(N1)
        jnp.positive(N1)
        jnp.flip(N1,())
        jnp.atleast_1d(N1)
        jnp.concatenate([N1])
        jnp.clip(N1)
        jnp.tile(N1,1)
    """,
    "einsum": r"""
        jnp.einsum('ij,jk->ik', Holder(x), Holder(x.T))
        jnp.einsum('ij->ji', Holder(x))
        jnp.einsum('ij,j->i', Holder(x), x[0])
        jnp.einsum('ij,jk->ik', b, b.T)
        jnp.einsum('ij->i', b)
        jnp.einsum('i,i', b[0], b[1])
        jnp.einsum('bij,bjk->bik', jnp.ones((1,2,3)), jnp.ones((4,3,2))).shape
        jnp.einsum('ij,jk->ik', jnp.ones((2,1)), jnp.ones((3,2))).shape
        jnp.einsum('ij,jk,kl->il', x, x.T, x, optimize=[(0,1),(0,1)])
        jnp.einsum('ij,jk,kl->il', x, x.T, x, optimize=['einsum_path',(0,1),(0,1)])
        jnp.einsum('ij,jk,kl->il', x, x.T, x, optimize=[[0,1],[0,1]])
        jnp.einsum('ii->i', r3[0,:3,:3])
        jnp.einsum('...j,j->...', r3, r3[0,0])
    """,
    "operators of foreign classes": r"""
        (x*Pair(2.))
        (Pair(2.)*x)
        (x+Pair(2.))
        (x-Pair(2.))
        jnp.asarray(Number.THREE)
        jnp.add(Number.THREE, 1)
        jnp.isscalar(Holder(1.)), jnp.isscalar(Holder(x))
        jnp.iscomplexobj(Holder(1j)), jnp.iscomplexobj(Holder(1.))
        jnp.delete(Holder(x[0]), 1)
    """,
    "traced arguments": r"""
        jax.jit(lambda k: jnp.eye(3,k=k))(1)
        jax.jit(lambda k: jnp.eye(3,4,k=k))(-1)
        jax.jit(lambda k: jnp.tri(3,k=k))(1)
        jax.jit(lambda k: jnp.tril(x,k))(1)
        jax.jit(lambda k: jnp.triu(x,k))(1)
        jax.jit(lambda k: jnp.delete(x[0],k,assume_unique_indices=True))(jnp.array([1]))
        jax.jit(lambda k: jnp.delete(x[0],k))(1)
        jax.jit(lambda k: jnp.delete(x[0],k))(jnp.array([1]))
        jax.jit(lambda k: jnp.insert(x[0],k,9.))(1)
        jax.jit(lambda k: jnp.insert(x[0],k,9.))(jnp.array([1,2]))
        jax.jit(lambda k: jnp.unravel_index(k,(2,3)))(jnp.array([4,5]))
        jax.jit(lambda k: jnp.iscomplexobj(k))(1j)
        jax.jit(lambda k: jnp.repeat(x[0],k,total_repeat_length=4))(jnp.array([1,2,1]))
        jax.jit(lambda k: jnp.repeat(x[0],k))(2)
        jax.jit(lambda k: jnp.repeat(x[0],k,total_repeat_length=6))(2)
        jax.jit(lambda k: jnp.diag(x[0],k))(1)
        jax.jit(lambda k: jnp.roll(x,k))(1)
        jax.jit(lambda k: jnp.roll(x,k,axis=1))(1)
        jax.jit(lambda k: jnp.take(x,k,axis=1))(1)
        jax.jit(lambda k: jnp.arange(k))(3)
        jax.jit(lambda k: jnp.linspace(0,k,3))(1)
        jax.jit(lambda k: jnp.linspace(0,1,k))(3)
        jax.jit(lambda k: jnp.searchsorted(x[0],k))(1)
        jax.jit(lambda k: x[k:])(1)
        jax.jit(lambda k: jnp.diff(x,n=k))(1)
        jax.jit(lambda k: jnp.split(x,k,axis=1))(jnp.array([1]))
        jax.jit(lambda k: jnp.tile(x,k))(2)
        jax.jit(lambda a,c: x[a,c])(1,2)
        jax.jit(lambda a: x[(a,1),(0,1)])(1)
        jax.jit(lambda a: x[[a,1]])(1)
        jax.jit(lambda a: x[((a,1),(0,a))])(1)
        jax.jit(lambda a: a+1)(Number.THREE)
        jax.jit(lambda a: a*1.)(Number.THREE)
        jax.jit(lambda x: x)(2**40)
        bool(jax.jit(lambda x: 1 if x else 0)(jnp.ones(2)))
        jax.jit(lambda x: bool(x))(jnp.ones(2))
        jax.jit(lambda x: bool(x))(jnp.ones(1))
        jax.jit(lambda x: int(x))(jnp.ones(2))
        jax.jit(lambda x: float(x))(jnp.ones(()))
    """,
    "indices": r"""
        x[((1, 1), (1, 2))]
        x[[1,0]]
        x[[[1,0],[0,1]]]
        jnp.take_along_axis(e, jnp.zeros((0,3),int), 0)
        jnp.take_along_axis(x, jnp.zeros((0,3),int), 0)
        jnp.take_along_axis(x, jnp.zeros((2,0),int), 1)
        weak[1:]
        weak[0]
        weak[jnp.array([0,1])]
        weak[::-1]
        x[jnp.zeros(2,bool)]
        x[np.zeros((0,),bool)]
        e[jnp.zeros((0,),bool)]
        x.at[0].get(mode='bogus')
        x[5,5,5]
        x['a']
        x[1.5]
        x[None,...,None,...]
    """,
}


def lines_of(subject):
    return [line.strip() for line in LINES[subject].strip().splitlines()]


@pytest.mark.parametrize("subject", LINES)
def test_arguments(jax_oracle, subject):
    lines = lines_of(subject)
    theirs = jax_oracle.run(f"{SOURCE}\nresult = answers(lines)", lines=lines).value
    wrong = []
    for line, ours, wanted in zip(lines, HERE["answers"](lines), theirs, strict=True):
        refused = wanted.startswith("!") and wanted[1:].split()[0] in ours[1:].split()
        if ours != wanted and not (ours.startswith("!") and refused):
            wrong.append(f"{line}\n    JAX  {wanted[:200]}\n    Saem {ours[:200]}")
    assert not wrong, f"{len(wrong)} of {len(lines)}:\n" + "\n".join(wrong)


TEXT, DATES = np.array([["A", "B"]]), np.array(["2020-01-01"], "M8[D]")


@pytest.mark.parametrize("x", ["TEXT", "DATES", "TEXT[0, 0]",
                               "np.array([object()])", "np.array('A')"])
def test_arrays_of_any_kind_have_a_shape(jax_oracle, x):
    same(jax_oracle, f"[jnp.shape({x}), jnp.ndim({x}), jnp.size({x}), jnp.iscomplexobj({x}),"
         f" jnp.isrealobj({x}), jnp.isscalar({x})]", within=__name__)

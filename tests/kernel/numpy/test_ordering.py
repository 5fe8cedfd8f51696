"""Do sorting, searching, taking, sets and counting agree with JAX?"""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check, check_gradient
from hypothesis import given, settings
from hypothesis import strategies as st

import saem as jax
from saem import numpy as jnp

RNG = np.random.default_rng(0)
ARRAYS = {
    "v": np.array([3.0, 1.0, 2.0, np.nan, 0.0, -0.0, 2.0], np.float32),
    "x": np.arange(6, dtype=np.float32).reshape(2, 3), "i": np.arange(3),
    "r": RNG.integers(0, 4, (3, 5)).astype(np.int8),
    "c": np.array([1 + 2j, 1 + 1j, 0.5, np.nan], np.complex64),
    "s": np.array([0.0, 1.0, 1.0, 2.5, np.nan], np.float32),
    "j": np.array([[5], [0]]), "k": np.array([-1, -7, 7]),
}
WEAK = "jnp.broadcast_to(jnp.add(1.5,0.),(3,))"

ORDER = """
jnp.sort(v)
jnp.sort(v,descending=True)
jnp.sort(r,axis=0)
jnp.sort(r,axis=None)
jnp.sort(c)
jnp.sort({w})
jnp.sort(np.array([True,False]))
jnp.sort(v,axis=3)
jnp.sort(3.)
jnp.sort([1])
jnp.sort(v,kind='quicksort')
jnp.sort(v,order='a')
jnp.argsort(v)
jnp.argsort(v,descending=True)
jnp.argsort(r,axis=None)
jnp.argsort(r,axis=0,dtype='int8')
jnp.argsort({w})
jnp.asarray(v).argsort()
jnp.asarray(r).sort(axis=0)
jnp.sort_complex(v)
jnp.sort_complex(c)
jnp.lexsort((r[0],r[1]))
jnp.lexsort(x)
jnp.lexsort(r,axis=-1)
jnp.lexsort(())
jnp.lexsort(3.)
jnp.lexsort((i,v))
jnp.partition(v,2)
jnp.partition(i,1)
jnp.partition(v,9)
jnp.partition(c,1)
jnp.argpartition(v,2)
jnp.searchsorted(s,1)
jnp.searchsorted(s,x)
jnp.searchsorted(s,x,side='right')
jnp.searchsorted(s,x,method='sort')
jnp.searchsorted(s,x,side='right',method='compare_all')
jnp.searchsorted(s,np.nan,side='right')
jnp.searchsorted(i,1.5)
jnp.searchsorted(i[:0],i)
jnp.searchsorted(i,i[::-1],sorter=i)
jnp.searchsorted(x,1)
jnp.searchsorted(i,i,side='foo')
jnp.searchsorted(i,i,method='foo')
jnp.digitize(x,i)
jnp.digitize(i,i[::-1])
jnp.digitize(i,i,right=True)
jnp.digitize(i,i[:0])
jnp.digitize(i,x)
""".strip().format(w=WEAK).splitlines()

PLACES = """
jnp.take(x,k)
jnp.take(x,k,mode='clip')
jnp.take(x,k,mode='wrap')
jnp.take(x,k,mode='raise')
jnp.take(i,k)
jnp.take(x,1,axis=1)
jnp.take(x,np.array([[0,1],[1,0]]),axis=1)
jnp.take(x,np.array([7]),fill_value=3)
jnp.take(x[:0],np.array([0]),axis=0)
jnp.take(x,1,axis=5)
jnp.take(x,1.)
jnp.take([1],0)
jnp.take({w},0)
jnp.asarray(x).take(k)
jnp.take_along_axis(x,j,axis=1)
jnp.take_along_axis(x,-j[1:]-1,axis=1)
jnp.take_along_axis(x,j,axis=1,mode='clip')
jnp.take_along_axis(x,j,axis=1,fill_value=9)
jnp.take_along_axis(x,np.array([[1,0,1]]),axis=0)
jnp.take_along_axis(x,np.array([[1]]),axis=0)
jnp.take_along_axis(x[:1],np.array([[1],[0],[2]]),axis=1)
jnp.take_along_axis(x,k,axis=None)
jnp.take_along_axis(x,k,axis=1)
jnp.take_along_axis(x,np.array([[1.]]),axis=1)
jnp.take_along_axis(x,np.array([[1],[1],[1]]),axis=1)
jnp.take_along_axis({w},np.array([0]),0)
jnp.put_along_axis(x,np.array([[1],[1]]),9.,axis=1)
jnp.put_along_axis(x,np.array([[1],[2]]),9.,axis=1,inplace=False)
jnp.put(x,np.array([0,9,-1]),5.,inplace=False)
jnp.put(x,np.array([0,1,2]),np.array([5.,6]),inplace=False)
jnp.put(x,np.array([7]),5.,mode='wrap',inplace=False)
jnp.put(x,np.array([7]),5.,mode='clip',inplace=False)
jnp.put(x,np.array([7]),5.)
jnp.place(x,x>2,np.array([1.,2]),inplace=False)
jnp.compress(np.array([0,1]),x,axis=1)
jnp.compress(np.array([True,False]),x)
jnp.compress(np.array([True,True,True]),x,axis=0)
jnp.compress(np.array([0,1,1]),x,axis=1,size=1)
jnp.compress(np.array([0,1,0]),x,axis=1,size=2,fill_value=7)
jnp.asarray(x).compress(np.array([0,1]),axis=0)
jnp.extract(x>2,x)
jnp.extract(x>2,x,size=5,fill_value=-1)
jnp.unravel_index(np.array([5,-1,7,-8]),(2,3))
jnp.unravel_index(5,(2,3))
jnp.unravel_index(5,7)
jnp.ravel_multi_index((np.array([1]),np.array([2])),(2,3))
jnp.ravel_multi_index((1,2),(2,3))
jnp.ravel_multi_index((np.array([1]),np.array([7])),(2,3))
jnp.ravel_multi_index((np.array([1]),np.array([7])),(2,3),mode='clip')
jnp.ravel_multi_index((np.array([1]),np.array([-1])),(2,3),mode='wrap',order='F')
jnp.ravel_multi_index((np.array([1.]),np.array([7])),(2,3))
jnp.apply_along_axis(jnp.sort,1,-x)
jnp.apply_along_axis(lambda q:jnp.outer(q,q),0,x)
jnp.apply_along_axis(jnp.sum,-1,x)
jnp.apply_over_axes(jnp.sum,x,[0,1])
""".strip().format(w=WEAK).splitlines()

SETS = """
jnp.unique(v)
jnp.unique(r)
jnp.unique(v,return_index=True,return_inverse=True,return_counts=True)
jnp.unique(r,return_index=True,return_inverse=True,return_counts=True)
jnp.unique(r,axis=0,return_inverse=True,return_counts=True)
jnp.unique(r,axis=1,return_index=True)
jnp.unique(v,size=3)
jnp.unique(r,size=2,return_counts=True)
jnp.unique(i,size=5,return_counts=True)
jnp.unique(i,size=5,return_inverse=True)
jnp.unique(v,size=7,fill_value=-5)
jnp.unique(v,equal_nan=False)
jnp.unique(x[:0])
jnp.unique(x[:0],size=2)
jnp.unique(x[:0],size=2,fill_value=1)
jnp.unique({w})
jnp.unique_counts(r)[1]
jnp.unique_inverse(r)[1]
jnp.unique_values(v)
jnp.unique_all(i)[2]
jnp.isin(x,i)
jnp.isin(i,np.array([1,2]),invert=True)
jnp.isin(x,x[:0])
jnp.union1d(i,np.array([1,5]))
jnp.union1d(i,np.array([1,5]),size=6)
jnp.union1d({w},i)
jnp.setdiff1d(r,np.array([1],'int8'))
jnp.setdiff1d(i,np.array([1]),size=3,fill_value=9)
jnp.setxor1d(i,np.array([1,5]))
jnp.setxor1d(r,np.array([1,9],'int8'))
jnp.intersect1d(i,np.array([1,5,2]))
jnp.intersect1d(i,np.array([5,2,1]),return_indices=True)
jnp.intersect1d({w},i)
jnp.intersect1d(i,np.array([1,5]),size=2)
jnp.bincount(i)
jnp.bincount(i,length=2)
jnp.bincount(i,weights=x[0],minlength=5)
jnp.bincount(np.array([-1,2]))
jnp.bincount(np.array([True,False]))
jnp.bincount(i[:0])
jnp.bincount(x)
jnp.bincount(x[0])
jnp.histogram(i)
jnp.histogram(v[:3],bins=3,range=(0,3),density=True)
jnp.histogram(i,bins=np.array([0,1,3]))
jnp.histogram(i,bins=4,weights=i)
jnp.histogram(i,bins=4,weights=x[0])
jnp.histogram(np.ones(3))
jnp.histogram_bin_edges(i,bins='auto')
jnp.histogram_bin_edges(i,bins=4)
jnp.histogram2d(i,i,bins=2)
jnp.histogram2d(i,x[0],bins=[2,3],range=[(0,2),(0,4)])
jnp.histogramdd(np.stack([i,i],1),bins=[2,3])
jnp.histogramdd(np.stack([i,i],1),bins=2,density=True)
""".strip().format(w=WEAK).splitlines()


@pytest.mark.parametrize("cases", [ORDER, PLACES, SETS], ids=["order", "places", "sets"])
def test_they_agree_with_jax(jax_oracle, cases):
    check(jax_oracle, cases, **ARRAYS)


@pytest.mark.parametrize("method", ["scan", "sort", "compare_all"])
@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=9), st.sampled_from(["left", "right"]))
def test_searching_is_numpy_s(method, values, side):
    a, v = np.sort(np.array(values, np.int32)), np.arange(-1, 11, dtype=np.int32)
    np.testing.assert_array_equal(jnp.searchsorted(a, v, side=side, method=method),
                                  np.searchsorted(a, v, side))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=7), st.data())
def test_partitions_put_the_kth_in_its_place(values, data):
    x = np.array(values, np.int32)
    k = data.draw(st.integers(0, len(values) - 1))
    places = np.asarray(jnp.argpartition(x, k))
    assert sorted(places) == list(range(len(values)))
    for part in (np.asarray(jnp.partition(x, k)), x[places]):
        assert part[k] == np.sort(x)[k]
        assert (part[:k] <= part[k]).all() and (part[k:] >= part[k]).all()


def test_lengths_that_depend_on_values_are_refused_under_jit():
    for fun in (jnp.unique, lambda x: jnp.compress(x > 1, x), lambda x: jnp.bincount(x.astype(int)),
                lambda x: jnp.setdiff1d(x, x)):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jax.jit(fun)(np.arange(3.0))
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.unique(x, size=2))(ARRAYS["r"]),
                                  np.unique(ARRAYS["r"])[:2])


def test_programs_are_those_of_jax(jax_oracle):
    inner = ("lambda x: jnp.take_along_axis(x, jnp.argmax(x, 1, keepdims=True), 1)",)
    for source in inner:
        ours = str(jax.make_jaxpr(eval(source))(ARRAYS["x"]))
        theirs = jax_oracle.jaxpr(source, ARRAYS["x"])
        for name in ("argmax", "broadcast_in_dim", "gather", "operand_batching_dims=(0,)"):
            assert ours.count(name) == theirs.count(name), name


def test_derivatives_are_those_of_jax(jax_oracle):
    body = ("jnp.sum(jnp.sort(x, 0)*2) + jnp.sum(jnp.take(x, jnp.array([0, 0, 5]))**2)"
            " + jnp.take_along_axis(x, jnp.argmax(x, 1, keepdims=True), 1).sum()"
            " + jnp.put_along_axis(x, jnp.array([[1], [2]]), 9., axis=1, inplace=False).sum()")
    check_gradient(jax_oracle, body, ARRAYS["x"], rtol=1e-6)

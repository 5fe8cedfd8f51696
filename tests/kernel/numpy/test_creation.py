"""Do arrays come to be as in JAX: values, dtypes, weak types, errors?

Every line of the lists is an expression that both answer.
"""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check

from saem import lax, vmap
from saem import numpy as jnp
from saem.core import config, errors
from saem.core.avals import aval_functions, aval_of
from saem.numpy import creation
from saem.transform.programs import make_jaxpr
from saem.transform.staging import StagingTracer
from saem.transform.vmap import BatchTracer

F = np.array([1.0, -2.0, 0.5], np.float32)

FROM_DATA = """
jnp.array(1)
jnp.asarray(1)
jnp.array(1.5)
jnp.array(True)
jnp.array(1,dtype=float)
jnp.array([1,2])
jnp.array([1,2.5])
jnp.array([True,2])
jnp.array([1,2.5j])
jnp.array([])
jnp.array([[],[]])
jnp.array([np.float64(1),2])
jnp.array([np.int8(1),2])
jnp.array([np.int8(1),np.uint8(2)])
jnp.array([jnp.int8(1),2.])
jnp.array([f,f])
jnp.array([[1,2],[3]])
jnp.array([1,[2]])
jnp.array('a')
jnp.array(['a'])
jnp.array(None)
jnp.array([None])
jnp.array([1,None])
jnp.array({})
jnp.array((1,2))
jnp.array(range(3))
jnp.array(np.arange(3.))
jnp.array(np.float64(3))
jnp.asarray(np.float64(3))
jnp.array(3,ndmin=2)
jnp.array([2**31])
jnp.array(2**31,dtype='uint32')
jnp.array([2**31],dtype='uint32')
jnp.array(300,dtype='uint8')
jnp.array(-1,dtype='uint8')
jnp.array([300],dtype='uint8')
jnp.array([1.7,-2.7],dtype=int)
jnp.array(np.array([1.5,np.nan,1e20]),dtype=int)
jnp.array([1j],dtype=float)
jnp.array(1j,dtype=float)
jnp.array(b'ab')
jnp.array(memoryview(np.arange(3)))
jnp.asarray(np.arange(3),copy=False)
jnp.array(f,order='C')
jnp.array(f,order='F')
jnp.array(f,order='A')
jnp.array(np.array(['a']))
jnp.frombuffer(b'1234',dtype='uint8')
jnp.frombuffer(b'12341234')
jnp.fromstring('1 2',sep=' ')
jnp.fromiter([1,2])
jnp.fromfile('a')
jnp.from_dlpack(np.arange(3))
jnp.from_dlpack(f)
jnp.int32(3.7)
jnp.bool_(3)
jnp.bfloat16(1.5)
jnp.int4(3)
jnp.int64(3)
jnp.complex64(3)
jnp.astype(f,int)
jnp.astype(f,None)
jnp.astype([1],int)
jnp.copy([1,2])
jnp.copy(3)
jnp.array([jnp.asarray(f), [1, 2, 3]])
jnp.array([jnp.asarray(f), 1.0])
jnp.array([(1, 2), (3, 4)])
jnp.array([[jnp.float32(1), 2], [3, jnp.int8(4)]])
jnp.asarray(f, dtype=jnp.bfloat16)
"""

FILLED = """
jnp.zeros(3)
jnp.zeros((2,),int)
jnp.zeros((2,),'int64')
jnp.zeros(-1)
jnp.zeros((2.5,))
jnp.zeros(np.int32(3))
jnp.zeros(jnp.array([2,3]))
jnp.zeros('a')
jnp.zeros([2,3])
jnp.zeros(())
jnp.zeros(3,dtype='U1')
jnp.ones(2,bool)
jnp.full(3,2)
jnp.full((2,),[1,2])
jnp.full((2,),[1,2],dtype=float)
jnp.full((2,2),jnp.arange(2))
jnp.full(2,jnp.nan,dtype=int)
jnp.zeros_like([1,2])
jnp.zeros_like(3)
jnp.zeros_like(3.)
jnp.zeros_like(f,shape=2)
jnp.ones_like(f,dtype=int)
jnp.full_like(f,[1,2,3])
jnp.full_like(jnp.arange(3),1.5)
jnp.zeros_like('a')
"""

COUNTED = """
jnp.arange(3)
jnp.arange(3.)
jnp.arange(1,4)
jnp.arange(1,4,0.5)
jnp.arange(3,dtype='uint8')
jnp.arange(0,-3,-1)
jnp.arange(3,1)
jnp.arange(0)
jnp.arange(1,3,0)
jnp.arange(jnp.array(3))
jnp.arange(np.array(3))
jnp.arange(np.array([3]))
jnp.arange('a')
jnp.arange(None)
jnp.arange(3j)
jnp.arange(True)
jnp.arange(0,3,dtype=bool)
jnp.arange(stop=3)
jnp.arange(start=2,stop=3)
jnp.arange(np.int8(3))
jnp.linspace(0,1,5)
jnp.linspace(0,1,5,dtype=int)
jnp.linspace(0,10,5,dtype=int)
jnp.linspace(0,1,0)
jnp.linspace(0,1,1)
jnp.linspace(0,1,-1)
jnp.linspace(0,1,3,retstep=True)
jnp.linspace(0,1,1,retstep=True)
jnp.linspace(0,1,1,endpoint=False,retstep=True)
jnp.linspace(jnp.zeros(2),jnp.ones(2),3,axis=1)
jnp.linspace(0,1j,3)
jnp.linspace(np.float64(0),1,3)
jnp.linspace(jnp.bfloat16(0),1,3)
jnp.linspace(0,1,2.0)
jnp.logspace(0,2,3)
jnp.logspace(0,2,3,base=2,dtype=int)
jnp.logspace(0,2,3,endpoint=False)
jnp.geomspace(1,1000,4)
jnp.geomspace(-1,-1000,4)
jnp.geomspace(1,1000,4,endpoint=False)
jnp.geomspace(1,1j,3)
"""

MATRICES = """
jnp.eye(2)
jnp.eye(2,3,1,int)
jnp.eye(-1)
jnp.eye(2,k=-1)
jnp.eye(2.5)
jnp.identity(2,int)
jnp.tri(2)
jnp.tri(2,3,1,bool)
jnp.tril(jnp.ones((2,2,2)))
jnp.tril(jnp.ones(2))
jnp.tril([1])
jnp.diag([1,2])
jnp.diag(jnp.ones((2,2,2)))
jnp.diag(3)
jnp.diagflat([[1,2]])
jnp.diagflat(jnp.arange(2),-1)
jnp.meshgrid(jnp.arange(2),jnp.arange(3))
jnp.meshgrid(jnp.arange(2),jnp.arange(3),indexing='ij',sparse=True)
jnp.meshgrid()
jnp.meshgrid(jnp.arange(2),indexing='a')
jnp.meshgrid(jnp.arange(2),jnp.arange(2),copy=False)
jnp.meshgrid(jnp.ones((2,2)))
jnp.indices((2,2))
jnp.indices((2,2),sparse=True)
jnp.indices((2,),dtype=float)
jnp.vander(f)
jnp.vander(f, 2, increasing=True)
jnp.diag(np.arange(6).reshape(2, 3), -1)
jnp.diag(np.arange(6).reshape(2, 3), 1)
jnp.diag(np.arange(6).reshape(2, 3), 5)
jnp.diag(f, -2)
jnp.tril(np.arange(9).reshape(3, 3), -1)
jnp.triu(np.arange(6.0).reshape(2, 3), 1)
jnp.ix_(np.arange(2), np.array([4, 7]))
jnp.mgrid[0:2, 0:3]
jnp.ogrid[0:2, 0:3]
jnp.mgrid[0:1:3j]
jnp.mgrid[0:1:jnp.asarray(3)*1j, 0:2:2.7j]
jnp.ogrid[0:1:jnp.complex64(3j)]
jnp.r_[0:1:np.complex128(3+2j)]
jnp.mgrid[0:1:complex(6)]
jax.jit(lambda n: jnp.mgrid[0:1:n])(3j)
jnp.fromfunction(lambda x, y: x - y, (2, 3))
jnp.fromfunction(lambda x, y: x + y, (2, 2), dtype=int)
"""

ABOUT_DTYPES = """
jnp.floating is np.floating
np.zeros(3,dtype=jnp.bfloat16).dtype
jnp.bool is jnp.bool_
jnp.result_type(1,2.)
jnp.result_type(f,1)
jnp.result_type('float32',int)
jnp.promote_types('int8','uint8')
jnp.promote_types(int,float)
jnp.can_cast('int32','float32')
jnp.can_cast(jnp.int8,jnp.bfloat16)
jnp.finfo('float32').eps
jnp.iinfo('int32').max
jnp.pi
jnp.euler_gamma
jnp.e
jnp.nan
jnp.inf
"""


@pytest.mark.parametrize("cases", [FROM_DATA, FILLED, COUNTED, MATRICES, ABOUT_DTYPES],
                         ids=["data", "filled", "counted", "matrices", "dtypes"])
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_as_in_jax(jax_oracle, cases):
    check(jax_oracle, cases.strip().splitlines(), 1e-5, f=F)


def test_numpy_data_is_copied():
    mine = np.arange(1000.0, dtype=np.float32)
    x = jnp.asarray(mine)
    mine[:] = 0
    np.testing.assert_array_equal(np.asarray(x), np.arange(1000))


def test_an_array_is_its_own_asarray_and_not_its_own_array():
    x = jnp.asarray(F)
    assert jnp.asarray(x) is x
    assert jnp.asarray(x, dtype="float32") is x
    assert jnp.array(x, copy=False) is x
    assert jnp.array(x) is not x


def test_large_arrays_are_made_on_the_device_alike():
    n = creation.SMALL + 1
    np.testing.assert_array_equal(np.asarray(jnp.ones(n, int)), np.ones(n, np.int32))
    np.testing.assert_array_equal(np.asarray(jnp.arange(n)), np.arange(n))
    np.testing.assert_array_equal(np.asarray(jnp.arange(3, n + 3, 2)), np.arange(3, n + 3, 2))
    np.testing.assert_array_equal(np.asarray(jnp.eye(200, k=3)), np.eye(200, k=3))
    np.testing.assert_array_equal(np.asarray(jnp.tri(200)), np.tri(200))
    full = jnp.full((200, 200), 2)
    assert aval_of(full).weak_type
    assert np.all(np.asarray(full) == 2)


def test_inside_a_trace_lengths_must_be_known():
    with pytest.raises(errors.ConcretizationTypeError, match="arange"):
        make_jaxpr(lambda n: jnp.arange(n))(3)
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
        make_jaxpr(lambda n: jnp.zeros(n))(3)


def test_traced_scalars_join_arrays():
    printed = make_jaxpr(lambda s: jnp.array([s, 1.0]))(np.float32(2)).jaxpr.eqns
    assert [e.primitive.name for e in printed] == ["broadcast_in_dim"] * 2 + ["concatenate"]


def test_scalar_types_are_dtypes():
    assert jnp.float32 == np.float32
    assert np.float32 == jnp.float32
    assert jnp.float32 != np.floating and jnp.int8 != np.generic  # kinds of numbers, no dtypes
    assert np.dtype("float32") == jnp.float32
    assert jnp.float32 != jnp.int32
    assert jnp.float32 != "float32"
    assert np.dtype(jnp.bfloat16).name == "bfloat16"
    assert hash(jnp.float32) == hash(np.float32)
    assert jnp.float32.dtype == np.float32
    assert jnp.float32.__name__ == "float32"
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    # As real JAX 0.10.2 answers.
    assert isinstance(np.float32(3), jnp.float32)
    assert not isinstance(np.float64(3), jnp.float32)
    assert np.zeros(2, jnp.int8).dtype == np.int8
    assert jnp.finfo(jnp.bfloat16).bits == 16
    assert jnp.iinfo(jnp.int4).max == 7


def test_explicit_wide_dtypes_are_warned_of():
    with pytest.warns(UserWarning, match="Explicitly requested dtype float64 requested in zeros"):
        assert jnp.zeros(2, "float64").dtype == np.float32
    with config.enable_x64(True):
        assert jnp.zeros(2, "float64").dtype == np.float64


def test_the_first_tracer_of_its_kind_counts_as_an_array(monkeypatch):
    weak = lax.full((3,), 1.0)
    for tracer in (BatchTracer, StagingTracer):
        monkeypatch.delitem(aval_functions, tracer, raising=False)
    assert vmap(jnp.zeros_like)(weak).aval.weak_type  # as on JAX 0.10.2
    assert make_jaxpr(lambda x: jnp.full_like(x, 2))(weak).out_avals[0].weak_type


@pytest.mark.parametrize("axis", [-4, -7, 3, 7])
def test_numbers_run_along_an_axis_that_is_there(axis):
    x = jnp.ones((2, 2))
    for function in (jnp.linspace, jnp.logspace, jnp.geomspace):
        with pytest.raises(IndexError, match="out of bounds"):
            function(x, x + 1, axis=axis)


def test_arrays_to_write_to_are_refused_whatever_they_are():
    for out in (jnp.ones((2, 2)), 3, 2.5, {"a": 1.}):
        for function in (lambda x, out: jnp.outer(x, x, out), lambda x, out: jnp.trace(x, out=out)):
            with pytest.raises(NotImplementedError, match="out"):
                function(jnp.ones((2, 2)), out)


@pytest.mark.parametrize("saved", [
    np.array([{"u": 1.}, None]), np.array(["a", "bc"]), np.array(["2020-01-01"], "datetime64[D]"),
    np.ones(2, ">f4"), np.ones(2, np.longdouble), np.zeros(2, [("a", "f4")])],
    ids=lambda x: str(x.dtype))
def test_what_only_numpy_holds_is_loaded_as_numpys(tmp_path, saved):
    np.save(tmp_path / "saved.npy", saved, allow_pickle=True)
    found = jnp.load(tmp_path / "saved.npy", allow_pickle=True)
    assert type(found) is np.ndarray and found.dtype == saved.dtype
    assert found.tolist() == saved.tolist()


def test_what_an_array_holds_is_loaded_as_one(tmp_path):
    for dtype in ("f4", "f8", "i2", "?", "c8", jnp.bfloat16):
        np.save(tmp_path / "saved.npy", np.ones(2, dtype))
        found = jnp.load(tmp_path / "saved.npy")
        assert isinstance(found, jnp.ndarray) and found.tolist() == [1, 1]
        assert found.dtype == (np.float32 if dtype == "f8" else dtype)

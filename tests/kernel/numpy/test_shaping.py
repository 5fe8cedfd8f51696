"""Do shaping, padding, joining and splitting agree with JAX: values, weak types, errors?"""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check, check_gradient
from both import same
from hypothesis import given, settings
from hypothesis import strategies as st

import saem as jax
from saem import numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ARRAYS = {"x": X, "i": np.arange(3), "v": np.arange(5, dtype=np.float32),
          "t": np.arange(24, dtype=np.int16).reshape(2, 3, 4), "b": np.array([True, False])}
WEAK = "jnp.broadcast_to(jnp.add(1.5,0.),(3,))"

SHAPES = """
jnp.reshape(x,-1)
jnp.reshape(x,(3,-1),order='F')
jnp.reshape(x,[3,2])
jnp.reshape(t,(4,6),order='F')
jnp.reshape(x,(4,))
jnp.reshape(x,(4,-1))
jnp.reshape(x,(-1,-1))
jnp.reshape(x,(2.,3))
jnp.reshape([1,2],2)
jnp.reshape(jnp.asarray(x),6,order='A')
jnp.reshape(x,6,order='Z')
jnp.reshape({w},(3,1))
jnp.asarray(x).reshape(3,2)
jnp.asarray(x).reshape(3,-1)
jnp.asarray(x).reshape((3,2),order='F')
jnp.asarray(x).reshape([3,2])
jnp.asarray(x).reshape(5)
jnp.ravel(x,order='F')
jnp.ravel(t)
jnp.ravel(3.)
jnp.ravel(x[:0])
jnp.ravel(x,order='K')
jnp.resize({w},(2,4))
jnp.resize(x,(2,2))
jnp.resize(x,-1)
jnp.transpose(t)
jnp.transpose(t,(1,-1,0))
jnp.transpose(x,(0,))
jnp.transpose(x,(0,0))
jnp.asarray(t).transpose(2,0,1)
jnp.asarray(t).transpose((2,0,1))
jnp.asarray(t).T
jnp.asarray(t).mT
jnp.matrix_transpose(i)
jnp.permute_dims(t,(1,2,0))
jnp.swapaxes(t,0,-1)
jnp.moveaxis(t,0,-1)
jnp.moveaxis(t,(0,1),(2,0))
jnp.moveaxis(x,(0,1),(0,))
jnp.rollaxis(t,2)
jnp.rollaxis(t,0,3)
jnp.squeeze(x[None,:,None])
jnp.squeeze(x[None],0)
jnp.squeeze(x[None],(0,))
jnp.squeeze(x,0)
jnp.squeeze(x,axis=5)
jnp.expand_dims(x,0)
jnp.expand_dims(x,(0,-1))
jnp.expand_dims(x,5)
jnp.expand_dims(x,(0,0))
jnp.broadcast_to(x,(2,2,3))
jnp.broadcast_to(x,(3,3))
jnp.broadcast_to(x,3)
jnp.broadcast_to(2,(2,))
jnp.broadcast_arrays(x,i,2.)
jnp.broadcast_shapes((2,1),(3,),())
jnp.broadcast_shapes((2,1),(3,3))
jnp.atleast_1d(3,x)
jnp.atleast_2d(i)
jnp.atleast_2d({w})
jnp.atleast_3d(i)
jnp.atleast_3d(x)
jnp.atleast_3d(2)
jnp.atleast_1d([1])
jnp.flip(t)
jnp.flip(t,(0,2))
jnp.flip(x,2)
jnp.flip({w})
jnp.flipud(x)
jnp.fliplr(x)
jnp.fliplr(i)
jnp.rot90(x)
jnp.rot90(x,2)
jnp.rot90(x,-1)
jnp.rot90(t,1,(2,0))
jnp.rot90(i)
jnp.rot90(x,1,(0,0))
jnp.roll(x,1)
jnp.roll(x,-4)
jnp.roll(x,1,axis=1)
jnp.roll(x,(1,2),axis=(0,1))
jnp.roll(x,2,axis=(0,1))
jnp.roll(x,jnp.array(2),axis=1)
jnp.roll(x,jnp.array([1,-1]),axis=(0,1))
jnp.roll(x[:0],1,axis=0)
jnp.roll({w},1)
jnp.repeat(x,2)
jnp.repeat(x,2,axis=0)
jnp.repeat(x[0,0],2,axis=0)
jnp.repeat(x[0,0],jnp.array([2]),axis=1)
jnp.repeat(3,2,axis=-2,total_repeat_length=3)
jnp.repeat(x,np.array([1,0,2]),axis=1)
jnp.repeat(x,jnp.array([1,2]),axis=0)
jnp.repeat(x,jnp.array([1,2]),axis=0,total_repeat_length=5)
jnp.repeat(x,jnp.array([1,2]),axis=0,total_repeat_length=2)
jnp.repeat(x,jnp.array([1,2]))
jnp.repeat(x,0)
jnp.repeat(3,2)
jnp.repeat({w},2)
jnp.tile(x,2)
jnp.tile(x,(2,1,3))
jnp.tile(i,(2,2))
jnp.tile({w},2)
""".strip().format(w=WEAK).splitlines()

PADS = """
jnp.pad(x,1)
jnp.pad(x,((1,0),(0,2)),constant_values=3)
jnp.pad(x,(1,2),constant_values=((1,2),(3,4)))
jnp.pad(i,1,constant_values=2.7)
jnp.pad(b,1,constant_values=True)
jnp.pad({w},1)
jnp.pad({w},1,mode='edge')
jnp.pad(x,[(1,1),(0,0)])
jnp.pad(x,{{0:(1,2)}})
jnp.pad(x,0)
jnp.pad(x,((1,2),(3,4)),mode='edge')
jnp.pad(x,((1,2),(3,4)),mode='reflect')
jnp.pad(v,7,mode='reflect')
jnp.pad(v,2,mode='reflect',reflect_type='odd')
jnp.pad(x,((1,2),(3,4)),mode='symmetric')
jnp.pad(x,((1,2),(3,4)),mode='wrap')
jnp.pad(v,(2,3),mode='linear_ramp',end_values=(5,-2))
jnp.pad(v,(2,3),mode='mean')
jnp.pad(x,(1,2),mode='maximum',stat_length=2)
jnp.pad(i,(1,2),mode='minimum')
jnp.pad(x,(1,2),mode='median')
jnp.pad(i,(1,2),mode='mean')
jnp.pad(x[:0],1,mode='edge')
jnp.pad(x,-1)
jnp.pad(x,(1,2,3))
jnp.pad(x,1.5)
jnp.pad(x,1,mode='foo')
jnp.pad(x,1,mode='edge',constant_values=2)
""".strip().format(w=WEAK).splitlines()

JOINS = """
jnp.concatenate([x,x])
jnp.concatenate([x,i[None]],axis=0)
jnp.concatenate([x,i],axis=None)
jnp.concatenate([x,x],axis=-1,dtype='int8')
jnp.concatenate([{w},{w}])
jnp.concatenate([{w},i])
jnp.concatenate([{w},x[0]])
jnp.concatenate(x[:,None])
jnp.concatenate([])
jnp.concatenate([x,{w}])
jnp.concatenate([1,2])
jnp.concatenate([x,x[:,:1]])
jnp.concatenate([x,x],axis=3)
jnp.concatenate([x,[1]])
jnp.concat([x,x],axis=1)
jnp.stack([x,x],-1)
jnp.stack([1,2])
jnp.stack([1,2.])
jnp.stack([{w},{w}])
jnp.stack(x)
jnp.stack([x,i])
jnp.stack([])
jnp.stack([x,x],axis=1,dtype=int)
jnp.hstack([x,x])
jnp.hstack([i,i])
jnp.hstack([1,2])
jnp.vstack([i,i])
jnp.vstack([i,1.])
jnp.dstack([i,i])
jnp.dstack([x,x])
jnp.column_stack([i,i])
jnp.column_stack([x,i[:2]])
jnp.block([[x,x],[x,x]])
jnp.block([i,1.])
jnp.block([[1,2],[3,4]])
jnp.block(3)
jnp.block([[x],[]])
jnp.block((x,x))
jnp.append(i,1.)
jnp.append(x,x,axis=0)
jnp.append({w},1)
jnp.split(x,3,axis=1)
jnp.split(v,[1,3])
jnp.split(v,[3,1])
jnp.split(v,jnp.array([1,3]))
jnp.split(v,[-1])
jnp.asarray(v)._split([1,3])
jnp.asarray(x)._split(3,1)
jax.jit(lambda v:v._split(2))(v)
jnp.split(v,[2,9])
jnp.split(v,[2,2])
jnp.split(x,4)
jnp.split({w},3)
jnp.array_split(v,3)
jnp.array_split(v,7)
jnp.vsplit(x,2)
jnp.hsplit(x,3)
jnp.hsplit(v,5)
jnp.dsplit(t,2)
jnp.unstack(x)
jnp.unstack(x,axis=1)
jnp.unstack(3.)
jnp.insert(v,1,5.)
jnp.insert(v,1,2)
jnp.insert({w},1,2)
jnp.insert(v,jnp.array([0,2]),jnp.array([5.,6.]))
jnp.insert(v,jnp.array([2]),jnp.array([5.,6.]))
jnp.insert(v,slice(0,2),7)
jnp.insert(x,1,i,axis=0)
jnp.insert(x,-1,9,axis=1)
jnp.insert(x,1,i)
jnp.insert(v,[0,2],[5.,6.])
jnp.delete(v,1)
jnp.delete(v,-1)
jnp.delete(v,jnp.array([0,2,2]))
jnp.delete(x,slice(0,2),1)
jnp.delete(v,jnp.array([True,False,True,False,False]))
jnp.delete({w},1)
""".strip().format(w=WEAK).splitlines()


@pytest.mark.parametrize("cases", [SHAPES, PADS, JOINS], ids=["shapes", "pads", "joins"])
def test_they_agree_with_jax(jax_oracle, cases):
    check(jax_oracle, cases, **ARRAYS)


def test_programs_are_those_of_jax(jax_oracle):
    for source in ("lambda x: jnp.reshape(x, -1)", "lambda x: jnp.repeat(x, 2, 1)",
                   "lambda x: jnp.expand_dims(x, (0, -1))", "lambda x: jnp.moveaxis(x, 0, 1)",
                   "lambda x: jnp.concatenate([x, x], 1)", "lambda x: jnp.tile(x, (2, 3))"):
        assert str(jax.make_jaxpr(eval(source))(X)) == jax_oracle.jaxpr(source, X), source


def test_what_stays_the_same_records_nothing():
    program = jax.make_jaxpr(lambda x: jnp.reshape(jnp.transpose(x, (0, 1)), (2, -1)))(X)
    assert not program.jaxpr.eqns


def test_a_traced_shape_is_refused_with_advice():
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete"):
        jax.jit(lambda n: jnp.reshape(X, (n, 2)))(3)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="total_repeat_length"):
        jax.jit(lambda n: jnp.repeat(X, n))(ARRAYS["i"])


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.data())
def test_flip_roll_and_split_are_numpy_s(sizes, data):
    x = np.arange(int(np.prod(sizes))).reshape(sizes)
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    shift = data.draw(st.integers(-4, 4))
    np.testing.assert_array_equal(jnp.flip(x, axis), np.flip(x, axis))
    np.testing.assert_array_equal(jnp.roll(x, shift, axis), np.roll(x, shift, axis))
    parts = jnp.array_split(x, 2, axis)
    np.testing.assert_array_equal(jnp.concatenate(parts, axis), x)
    for part, wanted in zip(parts, np.array_split(x, 2, axis), strict=True):
        np.testing.assert_array_equal(part, wanted)


def test_derivatives_are_those_of_jax(jax_oracle):
    body = ("jnp.sum(jnp.pad(x, 1, mode='reflect')**2) + jnp.sum(jnp.roll(x, 1)*x)"
            " + jnp.sum(jnp.repeat(x, jnp.array([1,2]), axis=0)**3)"
            " + jnp.sum(jnp.stack(jnp.split(x, 3, 1))**2) + jnp.insert(x, 1, 2.).sum()")
    check_gradient(jax_oracle, body, X, rtol=1e-6)


def test_reshape_leaves_a_numpy_array_one(jax_oracle):
    def program():
        kinds = [np.ones((3, 2)), np.ones((3, 2), "float32"), np.arange(6).reshape(3, 2),
                 np.asfortranarray(np.arange(6.).reshape(3, 2)), np.ones((3, 2), bool)]
        found = [(type(y).__name__, str(y.dtype), np.asarray(y, "float32")) for x in kinds
                 for y in (jnp.reshape(x, (3, 2)), jnp.reshape(x, (-1, 3)),
                           jnp.reshape(x, 6, order="F"), jnp.reshape(x, [2, 3], copy=True))]
        found += [type(jnp.reshape(x, ())).__name__ for x in (np.float32(1), np.int8(2), 1., True)]
        inside = []
        jax.jit(lambda: inside.append(type(jnp.reshape(kinds[0], 6)).__name__))()
        return found, inside, jnp.ravel(kinds[0]), jnp.ravel(kinds[2], order="F")

    same(jax_oracle, program)


@pytest.mark.parametrize("shape", [(3,), (1, 2), (3, 2), (3, 0), (2, 3, 4), (3, 0, 2), (1, 2, 2)],
                         ids=str)
def test_the_rows_of_one_array_are_joined_as_numpy_joins_a_list_of_them(shape):
    array, rank = np.arange(np.prod(shape)).reshape(shape), len(shape)
    calls = [("stack", {"axis": i}) for i in range(-rank, rank)] + [
        ("concatenate", {"axis": i}) for i in [None, *range(1 - rank, rank - 1)]] + [
        (name, {}) for name in ("vstack", "hstack", "dstack", "column_stack")]
    for name, options in calls:
        wanted = getattr(np, name)(list(array), **options)
        for given_array in (array, jnp.asarray(array)):
            got = np.asarray(getattr(jnp, name)(given_array, **options))
            assert got.shape == wanted.shape, (name, options)
            np.testing.assert_array_equal(got, wanted, err_msg=f"{name} {options}")


@pytest.mark.parametrize("name", ["stack", "concatenate", "vstack", "hstack", "dstack"])
def test_an_array_without_rows_is_refused(name):
    with pytest.raises(ValueError, match="Need at least one array"):
        getattr(jnp, name)(jnp.zeros((0, 2)))


OWN_SEQUENCE = """
class Pair:
    def __len__(self): return 2
    def __getitem__(self, i): return [jnp.arange(3.), jnp.ones(3)][i]
import collections
x, y = jnp.arange(3.), jnp.ones(3)
sequences = [collections.deque([x, y]), collections.UserList([x, y]), {1: x, 2: y}.values(),
             Pair(), collections.namedtuple("Two", "a b")(x, y)]
"""


@pytest.mark.parametrize("function", [
    "jnp.concatenate", "jnp.stack", "jnp.hstack", "jnp.vstack", "jnp.dstack", "jnp.column_stack",
    "lambda s: jnp.concatenate(s, None)", "lambda s: jnp.stack(s, 1)",
    "lambda s: jnp.select([x > 1, y > 0], s)", "lambda s: jnp.choose(jnp.array([0, 1, 1]), s)"])
def test_the_arrays_may_be_in_a_sequence_of_any_kind(jax_oracle, function):
    same(jax_oracle, f"{OWN_SEQUENCE}\nresult = [({function})(s) for s in sequences]")


def test_axes_and_shifts_may_be_in_a_sequence_of_any_kind(jax_oracle):
    same(jax_oracle, f"""{OWN_SEQUENCE}
m, order = jnp.arange(6.).reshape(2, 3), collections.deque([1, 0])
result = [m.transpose(order), m.transpose(jnp.array([1, 0])), jnp.transpose(m, order),
          m.reshape(collections.deque([3, 2])), jnp.roll(m, order, order), jnp.flip(m, order),
          jax.lax.sort(sequences[0], num_keys=1), jnp.stack({{3, 1}}), jnp.stack(range(3)),
          m.transpose(1, 0), m.transpose(None), m.transpose(), m.transpose((1, 0)), m.T]""")


@pytest.mark.parametrize("given", ["(x for x in [jnp.ones(2)])", "map(jnp.sin, [1., 2.])", "'ab'"])
def test_what_can_be_gone_through_only_once_is_not_joined(given):
    for function in (jnp.concatenate, jnp.stack, jnp.hstack, jnp.vstack):
        with pytest.raises(TypeError, match=r"requires ndarray|not a valid JAX array type"):
            function(eval(given))

"""Do values that hold sparse arrays by the numbers of their buffers say what JAX's say?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same

import saem as jax
import saem.numpy as jnp
from saem.experimental.sparse import BCOO, BCSR, bcoo_concatenate, eye, transform
from saem.experimental.sparse.transform import (
    SparsifyEnv,
    arrays_to_spvalues,
    sparsify_raw,
    spvalues_to_arrays,
    spvalues_to_avals,
)

X = jnp.arange(5.0)
B = BCOO.fromdense(X)
M = BCSR.fromdense(jnp.eye(3))


def kinds(value):
    return [value.is_sparse(), value.is_dense(), value.is_bcoo(), value.is_bcsr(), value.ndim]


def held():
    env = SparsifyEnv()
    values = arrays_to_spvalues(env, (X, B, {"again": B}))
    more = [env.dense(jnp.ones(3)), env.sparse((3,), jnp.ones(2), jnp.array([[0], [1]])),
            env.sparse((3,), data_ref=0, indices_ref=2, unique_indices=True)]
    return [repr(values), list(map(repr, more)), list(map(kinds, (*values[:2], *more))),
            list(map(np.asarray, env._buffers)), env.data(values[0]), env.indices(values[1]),
            repr(spvalues_to_avals(env, values))]


def computed(f, *args, **params):
    env = SparsifyEnv()
    values, structure = sparsify_raw(f)(env, *arrays_to_spvalues(env, args), **params)
    arrays = spvalues_to_arrays(env, values)
    return [[(v.data_ref, v.indices_ref, v.indices_sorted) for v in values], str(structure),
            [x.todense() if isinstance(x, BCOO) else x for x in arrays]]


@pytest.mark.parametrize("call", [
    "held()", "computed(lambda x, y: x * y, B, X)",
    "computed(lambda x, y: {'a': x, 'b': (y, x + x)}, B, X)", "computed(jnp.sum, B)",
    "repr(transform.SparsifyValue((3,), None))",
    "len(SparsifyEnv([X])._buffers)"])
def test_they_are_jaxs(jax_oracle, call):
    same(jax_oracle, call, within=__name__)


def test_arrays_come_back():
    env = SparsifyEnv()
    values = arrays_to_spvalues(env, [M, B, X])
    assert [value.is_bcsr() for value in values] == [True, False, False]
    m, b, x = spvalues_to_arrays(env, values)
    assert isinstance(m, BCSR) and m.indices_sorted and isinstance(b, BCOO)
    np.testing.assert_array_equal(m.todense(), np.eye(3))
    np.testing.assert_array_equal(b.todense(), X)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(computed(lambda x, k=1: x * k, B, k=3.0)[2][0], 3 * X)


def test_what_is_not_there_is_refused():
    env = SparsifyEnv()
    dense = env.dense(X)
    with pytest.raises(RuntimeError, match="requested indices of a value that has none"):
        env.indices(dense)
    with pytest.raises(RuntimeError, match="requested indptr of a value that has none"):
        env.indptr(env.sparse((3,), jnp.ones(1), jnp.zeros((1, 1), int)))
    for given in ({"data_ref": 99, "indices_ref": 0}, {"data_ref": 0}, {"data": X, "data_ref": 0}):
        with pytest.raises(ValueError, match=r"sparse\(\) needs"):
            env.sparse((3,), **given)
    with pytest.raises(NotImplementedError, match=r"of type COO\. Convert it"):
        arrays_to_spvalues(env, jax.experimental.sparse.COO.fromdense(jnp.eye(2)))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = transform.nothing


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_results_hold_places_that_the_operands_dtype_lacks(dtype):
    dense = np.where(np.random.RandomState(3).rand(20, 15) < 0.2, 1 + np.arange(15), 0)
    matrix = BCOO.fromdense(dense, index_dtype=dtype)
    for shape in ((300,), (5, 60), (20, 1, 15), (2, 150)):
        np.testing.assert_array_equal(matrix.reshape(shape).todense(), dense.reshape(shape))
    for axis in (0, 1):
        joined = bcoo_concatenate([matrix] * 20, dimension=axis)
        np.testing.assert_array_equal(joined.todense(), np.concatenate([dense] * 20, axis))
    with pytest.raises(OverflowError, match="cannot count 300 rows or columns"):
        eye(300, index_dtype=dtype)

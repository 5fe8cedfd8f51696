"""Do sparse arrays compute what dense arrays compute, and what JAX's sparse arrays compute?

Each program is run here and on real JAX; sparse results are compared by what they stand for and by
how they are stored.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import ours, source_of
from oracle import JaxError

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.experimental import sparse
from saem.experimental.sparse import BCOO, BCSR

m = jnp.array([[0.0, 1.0, 0.0, 4.0], [2.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
t = jnp.stack([m, 2 * m[::-1], 0 * m])
w = jnp.arange(12.0).reshape(4, 3) - 3
s, st = BCOO.fromdense(m), BCOO.fromdense(t)
sb, sd = BCOO.fromdense(t, n_batch=1), BCOO.fromdense(t, n_dense=1)
r = BCSR.fromdense(m)
rb = BCSR.fromdense(t, n_batch=1)
d = BCOO((jnp.array([1.0, 2.0, 0.0, 4.0]), jnp.array([[0, 1], [0, 1], [2, 0], [3, 4]])),
         shape=(3, 4))
key = jax.random.PRNGKey(1)
c1, c2 = BCOO.fromdense(m[None, :1]), BCOO.fromdense(w.reshape(1, 1, 12)[..., :3])


def show(x):
    """Return arrays as NumPy's, and sparse ones as text, parts and dense array."""
    if isinstance(x, sparse.JAXSparse):
        return [repr(x), *[np.asarray(a) for a in jax.tree.leaves(x)], np.asarray(x.todense())]
    if isinstance(x, (tuple, list)):
        return [show(y) for y in x]
    return np.asarray(x) if hasattr(x, "dtype") else x


PROGRAMS = """
s.T
BCOO.fromdense(m > 1)
BCOO.fromdense(m > 1) @ w
BCOO.fromdense(m > 1).sum(0)
BCSR.fromdense(m > 1)
s + s
s - 2 * s
s * 2
s / 2
-s
abs(-s)
s ** 2
s * m
s + m
s * s
s * d
s @ w
w @ s
s @ s.T
s @ jnp.arange(4.)
jnp.arange(3.) @ s
s[1]
s[0:2, 1:]
s[::2, ::-1]
s[1, 2]
s[jnp.array([0, 2])]
s.sum()
s.sum(0)
s.sum(1)
s.reshape(4, 3)
s.reshape(12)
s.astype(jnp.int32)
list(s)
d
d.todense()
d.sum_duplicates()
d.sum_duplicates(nse=5)
d.sum_duplicates(remove_zeros=False)
d.sort_indices()
d @ w
d.sum(0)
st.todense()
st @ w
st.sum((0, 2))
st.transpose((2, 0, 1))
st[1]
st[:, 1:, 2]
sb
sb.todense()
sb @ w
sb.sum(0)
sb.sum(1)
sb.sum((1, 2))
sb[1]
sb[1:, :2]
sb.transpose((0, 2, 1))
sb * t
sb + sb
sb.sum_duplicates()
sb.update_layout(n_batch=0)
sd
sd.todense()
sd[1]
sd.sum(2)
sd.sum(0)
sd.update_layout(n_dense=0)
st.update_layout(n_batch=1, on_inefficient=None)
st.update_layout(n_dense=1, on_inefficient=None)
BCOO.fromdense(m, nse=6)
BCOO.fromdense(m, nse=2)
BCOO.fromdense(m, n_batch=1, n_dense=1)
BCOO.fromdense(m, n_dense=2)
BCOO.fromdense(m, index_dtype=jnp.int16)
sparse.bcoo_extract(s, 3 * m + 1)
sparse.bcoo_extract(d, 3 * m + 1)
sparse.bcoo_multiply_dense(s, w.T)
sparse.bcoo_multiply_dense(s, jnp.arange(4.))
sparse.bcoo_broadcast_in_dim(s, shape=(2, 3, 4), broadcast_dimensions=(1, 2))
sparse.bcoo_broadcast_in_dim(sb, shape=(3, 3, 4, 1), broadcast_dimensions=(0, 1, 2))
sparse.bcoo_concatenate([s, s + s], dimension=0)
sparse.bcoo_concatenate([s, s + s], dimension=1)
sparse.bcoo_concatenate([sb, sb], dimension=2)
sparse.bcoo_concatenate([sb, sb], dimension=0)
sparse.bcoo_rev(s, (0, 1))
sparse.bcoo_squeeze(s[1:2], dimensions=(0,))
sparse.bcoo_slice(s, start_indices=(0, 1), limit_indices=(3, 4), strides=(2, 1))
sparse.bcoo_dynamic_slice(s, (jnp.int32(2), jnp.int32(1)), (2, 2))
sparse.bcoo_dot_general(sb, t, dimension_numbers=(((2,), (2,)), ((0,), (0,))))
sparse.bcoo_dot_general(t, sb, dimension_numbers=(((2,), (2,)), ((0,), (0,))))
sparse.bcoo_dot_general(sb, sb, dimension_numbers=(((2,), (2,)), ((0,), (0,)))).todense()
sparse.bcoo_dot_general(s, w, dimension_numbers=(((0, 1), (1, 0)), ((), ())))
sparse.bcoo_dot_general_sampled(m, w, s.indices % 3, dimension_numbers=(((1,), (0,)), ((), ())))
sparse.eye(3)
sparse.eye(3, 4, k=1)
sparse.eye(4, 3, k=-2, dtype=jnp.int32)
sparse.empty((2, 3))
sparse.empty((2, 3), nse=2, dtype=jnp.int32)
sparse.empty((2, 3), sparse_format='csr').todense()
r
r.indptr
r.todense()
r @ w
r @ jnp.arange(4.)
r.to_bcoo()
rb.todense()
rb @ w
BCSR.fromdense(m, nse=6)
BCSR.from_bcoo(s.T)
BCSR.fromdense(m, nse=6).sum_duplicates()
sparse.bcsr_extract(r.indices, r.indptr, 2 * m)
sparse.COO.fromdense(m)
sparse.COO.fromdense(m).T @ m
sparse.CSR.fromdense(m).T.todense()
sparse.CSC.fromdense(m) @ w
sparse.coo_matvec(sparse.COO.fromdense(m), jnp.arange(3.), transpose=True)
sparse.csr_matmat(sparse.CSR.fromdense(m), w)
sparse.todense(s)
sparse.todense(m)
sparse.sparsify(lambda x, y: jnp.sum(x @ y) + 1)(s, w)
sparse.sparsify(lambda x: jnp.sin(2 * x).T)(s)
sparse.sparsify(lambda x: sparse.todense(x) + 1)(s)
sparse.sparsify(jax.jit(lambda x, y: x * y[:, None]))(s, jnp.arange(3.))
sparse.sparsify(lambda x, y: jnp.concatenate([x, y]))(s, s)
sparse.sparsify(lambda x, y: lax.fori_loop(0, 3, lambda i, v: v + x.T @ (x @ v), y))(s, jnp.ones(4))
sparse.sparsify(lambda p, x: lax.cond(p, lambda x: 2 * x, lambda x: -x, x))(True, s)
sparse.sparsify(lambda x: jnp.sqrt(x).sum(0))(s)
jax.jit(lambda x: x @ w)(s)
jax.jit(lambda x: x.T * 2)(s)
jax.jit(lambda x: x.todense())(r)
jax.vmap(lambda x, y: x @ y, in_axes=(0, None))(sb, w)
jax.vmap(lambda x: x.T)(sb)
jax.grad(lambda x: (s * x).sum() ** 2)(2.)
jax.grad(lambda x: ((s @ x) ** 2).sum())(w)
jax.grad(lambda data: (BCOO((data, d.indices), shape=d.shape) @ w).sum())(d.data)
jax.grad(lambda x: (BCOO.fromdense(x, nse=5) @ w).sum())(m)
jax.jvp(lambda x: s @ x, (w,), (w + 1,))
sparse.grad(lambda x: (x @ w).sum())(s)
sparse.value_and_grad(lambda x, y: ((x @ y) ** 2).sum(), argnums=(0, 1))(s, w)
sparse.grad(lambda x: (x.sum() ** 2, x.todense().max()), has_aux=True)(s)
sparse.jacfwd(lambda x: x @ w)(s).todense()
sparse.jacrev(lambda x: x.sum(0).todense())(s).todense()
sparse.random_bcoo(jax.random.key(0), (5, 4), dtype=jnp.float32)
sparse.random_bcoo(key, (2, 5, 4), nse=3, n_batch=1, dtype=jnp.float32, sorted_indices=True)
sparse.bcoo_conv_general_dilated(c1, c2, window_strides=(1,), padding='SAME').todense()
""".strip().splitlines()

# Elements that are padding, or zeros at places of their own, stand elsewhere than JAX puts them.
STORED_OTHERWISE = {
    "s * s", "s * d", "s @ s.T", "d.sum_duplicates(nse=5)",
    "st.update_layout(n_batch=1, on_inefficient=None)",
    "sparse.bcoo_broadcast_in_dim(s, shape=(2, 3, 4), broadcast_dimensions=(1, 2))",
    "sparse.bcoo_broadcast_in_dim(sb, shape=(3, 3, 4, 1), broadcast_dimensions=(0, 1, 2))",
    "sparse.bcoo_concatenate([sb, sb], dimension=2)",
}

REFUSED = """
s @ jnp.ones(3)
s + 1
s > 0
s.update_layout(n_batch=1)
jnp.sin(s)
BCOO((s.data, s.indices[:, :1]), shape=(3, 4))
r.T
1 / s
s + s.T
st.reshape(2, 2)
sb.reshape(9, 4)
sb.transpose((1, 0, 2))
jax.jit(lambda x: BCOO.fromdense(x))(m)
sparse.sparsify(jnp.cos)(s)
sparse.bcoo_concatenate([s, sb], dimension=0)
sparse.empty((2, 3), sparse_format='x')
""".strip().splitlines()


def same(mine, theirs, program):
    if isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs), program
        for a, b in zip(mine, theirs):
            same(a, b, program)
    elif isinstance(theirs, np.ndarray):
        assert mine.dtype == theirs.dtype, program
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=1e-6, err_msg=program)
    else:
        assert mine == theirs, program


@pytest.mark.oracle
@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_jax(jax_oracle, program):
    theirs = jax_oracle.run(source_of(f"show({program})", __name__)).value
    mine = ours(f"show({program})", __name__)
    if program in STORED_OTHERWISE:
        mine, theirs = [mine[0], mine[-1]], [theirs[0], theirs[-1]]
    same(mine, theirs, program)


def test_scan_over_a_batch():
    total, rows = lax.scan(lambda c, x: (c + x.sum(), x @ w), 0.0, sb)
    assert total == t.sum()
    np.testing.assert_allclose(rows, t @ w)


@pytest.mark.oracle
@pytest.mark.parametrize("program", REFUSED)
def test_refused_as_jax_refuses(jax_oracle, program):
    with pytest.raises(JaxError) as theirs:
        jax_oracle.run(source_of(f"show({program})", __name__))
    with pytest.raises(Exception) as mine:
        ours(f"show({program})", __name__)
    assert theirs.value.kind in [cls.__name__ for cls in type(mine.value).__mro__], mine.value


@pytest.mark.parametrize("rows", [127, 128, 200])
def test_more_rows_than_the_type_of_indices_counts(rows):
    """Rows are counted in the type of counts: no index names one of the later rows."""
    dense = np.eye(rows, 3, dtype="f")
    for made in (sparse.BCSR.fromdense(dense, index_dtype="int8"),
                 sparse.CSR.fromdense(dense, index_dtype="int8"),
                 sparse.BCSR.fromdense(dense, index_dtype="int8").to_bcoo()):
        np.testing.assert_array_equal(made.todense(), dense)

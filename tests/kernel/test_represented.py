"""Do functions of the library take objects that stand for arrays (``__jax_array__``)?

Libraries hold parameters in such objects, of which some are pytrees: flax's ``nnx.Param`` is both.
Each call is one that JAX answers for such objects, the first ones also for those that are no
pytrees; what it gives must be what the same call gives for the arrays themselves.

Read before: ``saem.jit.jitted`` (``with_arrays``).
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
from saem import lax, nn
from saem import numpy as jnp

FOR_ALL = """
jnp.bincount(C(i), length=4)
jnp.histogram(v, bins=3, weights=C(v))
jnp.full_like(v, C(s))
jnp.select([C(bo)], [C(v)], default=C(s))
jnp.choose(C(i), [v, C(v), v])
jnp.place(v, C(bo), C(v), inplace=False)
jnp.compress(C(bo), v)
jnp.einsum("i,i->", C(v), v)
jnp.tensordot(C(A), A, 1)
jnp.insert(v, 1, C(s))
jnp.fill_diagonal(A, C(s), inplace=False)
jnp.power(v, C(i))
jnp.linalg.lstsq(A, C(A))[0]
jnp.linalg.multi_dot([C(A), A, A])
jnp.linalg.tensorsolve(A, C(v[:2]))
jnp.fft.fft(C(v))
nn.logsumexp(v, b=C(v))
nn.one_hot(C(i), 3)
nn.dot_product_attention(A[None,:,None],A[None,:,None],A[None,:,None],bias=C(A[None,None]))
nn.dot_product_attention(A[None,:,None],A[None,:,None],A[None,:,None],mask=C(A[None,None]>1))
nn.dot_product_attention(C(A[None,:,None]),A[None,:,None],C(A[None,:,None]))
jax.scipy.stats.norm.pdf(v, loc=C(v), scale=C(s))
jax.scipy.stats.norm.ppf(v, C(s))
jax.scipy.special.logsumexp(v, b=C(v))
jax.scipy.special.betainc(C(v), v, v)
jax.scipy.interpolate.RegularGridInterpolator((C(v),), v)(C(v))
jax.random.categorical(k, C(v))
jax.ops.segment_sum(C(v), C(i), 3)
v.at[0].add(C(s))
v + C(v)
v @ C(v)
v ** C(v)
v < C(v)
lax.convert_element_type(C(v), "int32")
jnp.array(C(v))
jnp.array([C(s), 1.])
jnp.stack([C(v), v])
jnp.concatenate([C(v), v])
jnp.shape(C(v))
jnp.ndim(C(v))
jnp.size(C(v))
jnp.iscomplexobj(C(v))
jnp.isrealobj(C(v))
jnp.isscalar(C(s))
jnp.broadcast_arrays(C(v), v)
jnp.meshgrid(C(v), v)
jnp.ix_(C(i), i)
jnp.unravel_index(C(i), (3,))
jnp.ravel_multi_index((C(i),), (3,))
jnp.vectorize(lambda x: x+1)(C(v))
jnp.diag(C(v))
jnp.squeeze(C(A[None]))
jnp.transpose(C(A))
jnp.reshape(C(v),(3,1))
nn.initializers.constant(C(s))(k,(2,))
lax.iota("int32",3)+C(i)
jnp.unique(C(i))
jnp.nonzero(C(bo))
jnp.argwhere(C(bo))
jnp.isin(C(i), i)
jnp.intersect1d(C(i), i)
jnp.roots(C(v))
jnp.polymul(C(v), v)
jnp.ptp(C(v))
jnp.array_equal(C(v), v)
jnp.trim_zeros(C(v))
jnp.copy(C(v))
jnp.astype(C(v),"int32")
jnp.flip(C(v))
jnp.roll(C(v), C(jnp.int32(1)))
jnp.moveaxis(C(A),0,1)
jnp.array_split(C(v),2)
jnp.argmax(C(v))
jnp.histogram_bin_edges(C(v))
jnp.histogram2d(C(v), v)
""".strip().split("\n")

FOR_PYTREES = """
jnp.clip(v, min=C(s))
jnp.clip(v, C(s), C(s+1))
jnp.sum(v, where=C(bo))
jnp.sum(v, initial=C(s))
jnp.max(v, where=C(bo), initial=0.)
jnp.mean(v, where=C(bo))
jnp.var(v, where=C(bo))
jnp.prod(v, where=C(bo))
jnp.where(C(bo), C(v), 0.)
jnp.average(v, weights=C(v))
jnp.cov(v, fweights=C(i))
jnp.cov(v, aweights=C(v))
jnp.interp(v, v, fp=C(v))
jnp.interp(v, v, v, left=C(s))
jnp.interp(v, v, v, period=C(s))
jnp.take(v, indices=C(i))
jnp.take(v, C(i), axis=0)
jnp.take_along_axis(v, C(i), axis=0)
jnp.linspace(C(s), C(s+1), 3)
jnp.linspace(start=C(s), stop=1., num=3)
jnp.isclose(v, C(v), rtol=C(s))
jnp.allclose(v, C(v), atol=C(s))
jnp.quantile(v, q=C(s))
jnp.percentile(v, C(s))
jnp.nanquantile(v, C(s))
jnp.trapezoid(v, x=C(v))
jnp.trapezoid(v, dx=C(s))
jnp.diff(v, prepend=C(s))
jnp.diff(v, append=C(v))
jnp.ediff1d(v, to_begin=C(s))
jnp.pad(v, 1, constant_values=C(s))
jnp.piecewise(v, [C(bo)], [C(s), 1.])
jnp.nan_to_num(v, nan=C(s))
jnp.put_along_axis(v, C(i), C(v), 0, inplace=False)
jnp.put(v, C(i), C(v), inplace=False)
jnp.extract(C(bo), v)
jnp.repeat(v, C(i), total_repeat_length=3)
jnp.searchsorted(v, C(v), sorter=C(i))
jnp.outer(v, C(v))
jnp.cross(C(v), v)
jnp.polyval(C(v), v)
jnp.polyval(v, x=C(v))
jnp.polyfit(v, C(v), 1)
jnp.polyfit(v, v, 1, w=C(v))
jnp.convolve(C(v), v)
jnp.append(v, C(v))
jnp.ldexp(v, C(i))
jnp.float_power(v, C(v))
jnp.heaviside(v, C(v))
jnp.linalg.norm(C(A), ord=2)
jnp.linalg.solve(A, C(A))
jnp.linalg.pinv(A, rtol=C(s))
jnp.linalg.matrix_rank(A, rtol=C(s))
jnp.linalg.matrix_power(C(A), 2)
nn.softmax(C(v), where=C(bo))
nn.log_softmax(v, where=C(bo))
nn.logsumexp(v, where=C(bo))
nn.elu(v, alpha=C(s))
nn.leaky_relu(v, negative_slope=C(s))
nn.celu(v, C(s))
jax.scipy.linalg.solve_triangular(C(A), C(A))
jax.scipy.linalg.cho_solve((C(A), True), C(A))
jax.scipy.ndimage.map_coordinates(C(A), [C(v[:2]), v[:2]], 1)
jax.random.uniform(k, (2,), minval=C(s))
jax.random.uniform(k, (2,), maxval=C(s))
jax.random.randint(k, (2,), C(jnp.int32(0)), 5)
jax.random.truncated_normal(k, C(s), 2.)
jax.random.weibull_min(k, C(v), 1.)
v.dot(C(v))
v.clip(C(s))
v.take(C(i))
v.sum(where=C(bo))
v.searchsorted(C(v))
lax.scan(lambda c, x: (c, x), 0., C(v))
jnp.frompyfunc(lambda x,y:x+y,2,1)(C(v),v)
jnp.add.reduce(C(v))
jnp.add.accumulate(C(v))
jnp.tril(C(A))
jax.jvp(jnp.sin, (C(v),), (C(v),))
jax.linearize(jnp.sin, C(v))[0]
jax.vjp(jnp.sin, C(v))[0]
nn.relu(C(v))
jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((3,),"float32"), C(v))
lax.stop_gradient(C(v))
lax.associative_scan(jnp.add, C(v))
jnp.sort(C(v))
jnp.argsort(C(v))
jnp.lexsort((C(v),v))
jnp.partition(C(v),1)
jnp.corrcoef(C(A))
jnp.cumsum(C(v))
jnp.packbits(C(bo))
jnp.poly(C(v))
jnp.polyadd(v, C(v))
jnp.median(C(v))
jnp.nanmean(C(v), where=C(bo))
jnp.digitize(v, bins=C(v))
jnp.vander(C(v))
jnp.real(C(v))
jnp.angle(C(v))
jnp.sinc(C(v))
jnp.i0(C(v))
jnp.rot90(C(A))
jnp.atleast_2d(C(v))
jnp.count_nonzero(C(v))
jnp.divmod(C(v), v)
jnp.modf(C(v))
jnp.frexp(C(v))
jnp.matvec(C(A), v[:2])
jnp.vecmat(C(v[:2]), A)
jnp.dot(C(v), A3)
jnp.dot(v, C(A3))
jnp.matmul(C(v), A3)
jnp.vdot(C(v), v)
jnp.inner(C(v), v)
jnp.vecdot(C(v), C(v))
jnp.delete(v, C(i[:1]))
jnp.diag_indices_from(C(A))
jnp.tril_indices_from(C(A))
jnp.triu_indices_from(C(A))
jnp.block([C(v), v])
lax.full_like(C(v), 2.0)
jax.random.poisson(k, C(v))
jax.random.bernoulli(k, C(v))
jnp.linalg.vecdot(C(v), v)
jnp.roll(v, C(i))
""".strip().split("\n")


class Held:
    """An object that gives an array when a function of the library asks for it."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


@jax.tree_util.register_pytree_node_class
class Leaf(Held):
    """Such an object that is a pytree, too."""

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


OPERANDS = {
    "A": np.array([[2.0, 0.3], [0.3, 1.5]], np.float32), "A3": np.eye(3, 2, dtype=np.float32) + 1,
    "v": np.array([0.2, 0.5, 0.7], np.float32), "i": np.array([0, 2, 1], np.int32),
    "bo": np.array([True, False, True]), "s": np.float32(0.5),
}
NAMES = {"jax": jax, "jnp": jnp, "lax": lax, "nn": nn}


def result(call, kind):
    arrays = {name: jnp.asarray(x) for name, x in OPERANDS.items()}
    return eval(call, {**NAMES, **arrays, "k": jax.random.key(0), "C": kind})


def numbers(value):
    return jax.tree.leaves(jax.tree.map(
        lambda x: np.asarray(x.value if isinstance(x, Held) else x), value,
        is_leaf=lambda x: isinstance(x, Held)))


def traced(call, kind):
    """The types of the results while a function is traced, or the type of the error."""
    try:
        closed = jax.make_jaxpr(lambda: jax.tree.map(
            lambda x: x.value if isinstance(x, Held) else x, result(call, kind),
            is_leaf=lambda x: isinstance(x, Held)))()
    except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError) as error:
        return type(error)
    return closed.out_avals


CALLS = [*((call, Held) for call in FOR_ALL), *((call, Leaf) for call in FOR_ALL + FOR_PYTREES)]


@pytest.mark.parametrize("kind", [Held, Leaf])
@pytest.mark.parametrize("part", range(4))
@pytest.mark.usefixtures("little_effort")
def test_objects_that_stand_for_arrays(kind, part):
    for call in [call for call, of in CALLS if of is kind][part::4]:
        wanted = numbers(result(call, lambda x: x))
        for mine, theirs in zip(numbers(result(call, kind)), wanted, strict=True):
            assert mine.dtype == theirs.dtype, call
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, err_msg=call)
        assert traced(call, kind) == traced(call, lambda x: x), call

"""Does pmap run each example on its own device, as JAX's does?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
from saem import lax
from saem.sharding import NamedSharding
from saem.sharding import PartitionSpec as P

X = np.random.RandomState(0).randn(8, 4).astype(np.float32)
Y = np.random.RandomState(1).randn(2, 4, 4).astype(np.float32)

VALUES = [
    "jax.pmap(lambda x: x * 2)(x)",
    "jax.pmap(lambda x: x * 2)(x[:3])",
    "jax.pmap(lambda x: lax.psum(x, 'i'), axis_name='i')(x)",
    "jax.pmap(lambda x: x / lax.psum(x, 'i'), 'i')(x)",
    "jax.pmap(lambda x: lax.pmean(x, 'i'), axis_name='i', out_axes=None)(x)",
    "jax.pmap(lambda x, y: x * y, in_axes=(0, None))(x, 2.0)",
    "jax.pmap(lambda d, y: {'s': d['a'] + d['b'], 'y': y}, in_axes=({'a': 0, 'b': None}, 1))"
    "({'a': x, 'b': x[0]}, x.T)",
    "jax.pmap(lambda x: x + 1, in_axes=1)(x)",
    "jax.pmap(lambda x: x + 1, in_axes=1, out_axes=1)(x)",
    "jax.pmap(lambda x: (x, x.sum()), out_axes=(1, 0))(x)",
    "jax.pmap(lambda x: {'a': x, 'b': 1.0})(x)",
    "jax.pmap(lambda x: lax.axis_index('i'), axis_name='i')(x)",
    "jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)(x, 3)",
    "jax.pmap(lambda n, x: x * n, static_broadcasted_argnums=(0,), in_axes=(None, 0))(3, x)",
    "jax.pmap(lambda x, *, y: x + y)(x, y=x)",
    "jax.pmap(lambda x: lax.all_gather(x, 'i'), axis_name='i')(x)",
    "jax.pmap(lambda x: lax.ppermute(x, 'i', [(0, 1), (7, 0)]), axis_name='i')(x)",
    "jax.pmap(lambda x: x, devices=jax.devices()[2:4])(x[:2])",
    "jax.pmap(lambda x: x + 1, axis_size=8)(x)",
    "jax.pmap(lambda x: x.sum(), backend='cpu')(x)",
    "jax.pmap(lambda x: x * 2)(jax.pmap(lambda x: x + 1)(x))",
]
NESTED = [
    "jax.pmap(jax.vmap(lambda x: lax.psum(x, ('i', 'j')), axis_name='j'), axis_name='i')(y)",
    "jax.vmap(jax.pmap(lambda x: lax.psum(x, 'i'), axis_name='i'))(y)",
    "jax.vmap(jax.pmap(lambda x: lax.psum(x, ('i', 'j')), axis_name='i'), axis_name='j')(y)",
    "jax.vmap(jax.pmap(lambda x: x * 2, in_axes=1), in_axes=1, out_axes=1)(y)",
    "jax.jit(jax.pmap(lambda x: x ** 2))(x)",
    "jax.grad(lambda x: jax.pmap(lambda x: x ** 3)(x).sum())(x)",
    "jax.grad(lambda x: jax.pmap(lambda x: lax.psum(x ** 2, 'i') * x, axis_name='i')(x).sum())(x)",
    "jax.pmap(jax.grad(lambda x: lax.psum((x ** 2).sum(), 'i')), axis_name='i')(x)",
    "jax.pmap(lambda x: lax.pmean(jax.grad(lambda w: (w * x).sum())(x[0]), 'i'), axis_name='i')(x)",
    "jax.jvp(jax.pmap(lambda x: lax.psum(x * x, 'i'), axis_name='i'), (x,), (x,))",
    "jax.pmap(lambda x: lax.scan(lambda c, y: (lax.psum(c, 'i') * np.float32(0.1) + y, c), "
    "x[0], x), axis_name='i')(x)",
]


def listed(sources: list[str]) -> str:
    return f"[{', '.join(sources)}]"


def test_values_are_jax_s(jax_oracle):
    same(jax_oracle, listed(VALUES), rtol=1e-5, x=X)


def test_under_other_transformations(jax_oracle):
    same(jax_oracle, listed(NESTED), rtol=1e-5, x=X, y=Y)


def test_the_jaxpr_prints_as_jax_s(jax_oracle):
    same(jax_oracle, listed([
        "str(jax.make_jaxpr(jax.pmap(lambda x: lax.psum(x, 'i'), axis_name='i'))(x))",
        "str(jax.make_jaxpr(jax.pmap(lambda x, y: x * y, in_axes=(1, None), out_axes=1))(x, 2.0))",
    ]), x=X)


@pytest.mark.parametrize(("source", "sentence"), [
    ("jax.pmap(lambda: 1)()", "pmap requires at least one argument with a mapped axis."),
    ("jax.pmap(lambda x: x)(1.0)", "pmap requires at least one argument with a mapped axis."),
    ("jax.pmap(lambda x: x, in_axes=None)(x)", "pmap requires at least one argument with a mapped"),
    ("jax.pmap(lambda x: x, axis_size=3)(x)",
     "Specified axis_size 3 doesn't match received axis_size 8."),
    ("jax.pmap(3)", "Expected a callable value, got 3"),
    ("jax.pmap(lambda x: x, in_axes=(0, 0))(x)", "tree prefix of the tuple of arguments passed "
     "positionally to the pmapped function"),
    ("jax.pmap(lambda x: lax.psum(x, 'k'))(x)", "unbound axis name: k"),
    ("jax.pmap(jax.pmap(lambda x: x, axis_name='j'), axis_name='i')(y)",
     "should match the mesh passed to shard_map"),
])
def test_errors_are_jax_s(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, x=X, y=Y)


def test_sizes_and_devices_must_do():
    f = jax.pmap(lambda x, y: x)
    for _ in range(2):
        with pytest.raises(ValueError, match="pmap got inconsistent sizes for array axes"):
            f(X, X[:3])
        f(X, X)
    with pytest.raises(ValueError, match="requires 9 devices, but only 8 XLA devices"):
        jax.pmap(lambda x: x)(np.ones((9, 2)))


def test_an_argument_put_on_one_device_is_refused_as_in_jax():
    x = jax.device_put(X, jax.devices()[0])
    with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
        jax.pmap(lambda x: x * 2)(x)


def test_axes_count_from_the_end_too():
    """JAX documents it, and 0.10.2 refuses it."""
    np.testing.assert_array_equal(jax.pmap(lambda x: x + 1, in_axes=-1, out_axes=-1)(X), X + 1)


def test_each_result_is_on_its_device():
    out = jax.pmap(lambda x: x * 2, axis_name="i")(X)
    assert isinstance(out.sharding, NamedSharding) and out.sharding.spec == P("i")
    for number, shard in enumerate(out.addressable_shards):
        assert shard.device == jax.devices()[number]
        np.testing.assert_array_equal(shard.data, X[number:number + 1] * 2)
    here = jax.pmap(lambda x: x, devices=jax.devices()[5:7])(X[:2])
    assert here.sharding.device_set == set(jax.devices()[5:7])


def test_a_function_is_traced_once_for_a_signature():
    seen = []

    @jax.pmap
    def f(x):
        seen.append(x.shape)
        return x + 1

    for _ in range(3):
        f(X)
    f(X[:2])
    assert seen == [(4,), (4,)]


def test_donated_arguments_are_gone():
    f = jax.pmap(lambda x: x + 1, donate_argnums=0)
    x = jax.pmap(lambda x: x)(X)
    np.testing.assert_array_equal(f(x), X + 1)
    assert x.is_deleted()


def test_it_can_be_lowered():
    f = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    assert "sdy.manual_computation" in f.lower(X).as_text()
    np.testing.assert_allclose(f.lower(X).compile()(X)[0], X.sum(0), rtol=1e-5)

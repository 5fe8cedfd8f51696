"""Do generators that a program defines make the keys and bits that they make on JAX?"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.extend.random as extend
import saem.numpy as jnp
from saem import lax

R = jax.random


def seed(number):
    return jnp.full((3,), number, jnp.uint32) * jnp.array([1, 2, 3], jnp.uint32)


def split(words, shape):
    count = int(np.prod(shape))
    steps = 7 * jnp.arange(count, dtype=jnp.uint32)[:, None]
    return (words[None] + steps).reshape(*shape, 3)


def random_bits(words, width, shape):
    count = lax.iota(jnp.uint32, int(np.prod(shape))) * jnp.uint32(3150241131)
    mixed = words.sum() * jnp.uint32(2654435761) + count
    return (mixed ^ (mixed >> 13)).reshape(shape).astype(f"uint{width}")


def fold_in(words, number):
    return words ^ number


def made(scale=1):
    """Another generator of the same name each time."""
    return extend.define_prng_impl(
        key_shape=(3,), seed=lambda number: seed(number) * jnp.uint32(scale), split=split,
        random_bits=random_bits, fold_in=fold_in, name="mine", tag="mn")


MINE = made()
KEY = R.key(42, impl=MINE)
NAMES = {name: globals()[name] for name in ("seed", "split", "random_bits", "fold_in", "made")}

CALLS = [
    "R.key_data(KEY)", "str(KEY.dtype)", "R.key_impl(KEY) == MINE", "str(R.key_impl(KEY))",
    "R.key_data(R.key(jnp.int32(-1), impl=MINE))", "R.PRNGKey(3, impl=MINE)",
    "R.key_data(R.key(2, impl=KEY.dtype))",
    "R.key_data(jax.vmap(lambda s: R.key(s, impl=MINE))(jnp.arange(3)))",
    "R.key_data(R.split(KEY))", "R.key_data(R.split(KEY, (2, 3)))", "R.key_data(R.split(KEY, 0))",
    "R.key_data(R.fold_in(KEY, 5))",
    "R.key_data(jax.vmap(R.fold_in, (None, 0))(KEY, jnp.arange(3)))",
    "R.key_data(jax.vmap(R.fold_in, (0, None))(R.split(KEY, 2), 3))",
    "R.bits(KEY, (3,), jnp.uint8)", "R.bits(KEY, (), jnp.uint16)", "R.bits(KEY, (0, 2))",
    "R.uniform(KEY, (3,))", "R.normal(KEY, (2, 2))", "R.randint(KEY, (4,), 0, 10)",
    "R.permutation(KEY, 6)", "R.choice(KEY, 5, (3,))", "R.categorical(KEY, jnp.zeros(4))",
    "R.bernoulli(KEY, 0.5, (4,))", "R.gamma(KEY, 2., (2,))",
    "jax.jit(lambda k: R.uniform(k, (3,)))(KEY)",
    "jax.vmap(lambda k: R.uniform(k, (2,)))(R.split(KEY, 3))",
    "jax.vmap(jax.vmap(lambda k: R.bits(k, (2,))))(R.split(KEY, (2, 3)))",
    "lax.scan(lambda k, _: (R.split(k)[1], R.uniform(k)), KEY, length=3)[1]",
    "R.key_data(lax.fori_loop(0, 3, lambda i, k: R.fold_in(k, i), KEY))",
    "R.key_data(lax.cond(True, lambda k: k, lambda k: R.split(k)[0], KEY))",
    "R.key_data(jnp.stack([KEY, KEY]))", "R.key_data(R.clone(KEY))", "KEY == KEY",
    "R.key_data(R.wrap_key_data(jnp.arange(3, dtype=jnp.uint32), impl=MINE))",
    "jax.grad(lambda x: x * R.uniform(KEY))(2.)",
    "str(jax.make_jaxpr(lambda k: R.bits(k, (2,)))(KEY))",
    "R.uniform(R.key(1, impl=made(3)), (2,)), R.uniform(R.key(1, impl=made(5)), (2,))",
    "made() == made(), R.key(0, impl=made()).dtype == KEY.dtype",
]


@pytest.mark.parametrize("call", CALLS)
def test_it_makes_what_it_makes_on_jax(jax_oracle, call):
    same(jax_oracle, call, within=__name__)


@pytest.mark.parametrize(("call", "sentence"), [
    ("R.key(0, impl='mine')", 'unrecognized PRNG implementation "mine"'),
    ("R.wrap_key_data(jnp.arange(2, dtype=jnp.uint32), impl=MINE)",
     "expected key_data.shape to end with (3,); got shape=(2,)"),
    ("R.poisson(KEY, 3.)", "`poisson` is only implemented for the threefry2x32 RNG"),
    ("jnp.stack([KEY, R.key(0)])", "is not a valid dtype for JAX type promotion"),
])
def test_what_cannot_be_is_refused(jax_oracle, call, sentence):
    same_error(jax_oracle, call, sentence, within=__name__)


def test_results_that_do_not_fit_are_refused():
    wrong = extend.define_prng_impl(
        key_shape=(3,), seed=lambda number: jnp.zeros(2, jnp.uint32),
        split=lambda words, shape: words, random_bits=lambda words, width, shape: jnp.zeros(shape),
        fold_in=lambda words, number: words[:1])
    with pytest.raises(TypeError, match=r"seed of .* has to return uint32\[3\], got uint32\[2\]"):
        R.key(0, impl=wrong)
    key = R.wrap_key_data(jnp.arange(3, dtype=jnp.uint32), impl=wrong)
    for call, sentence in ((lambda: R.split(key), r"split of .* uint32\[2,3\], got uint32\[3\]"),
                           (lambda: R.bits(key, (2,)), r"uint32\[2\], got float32\[2\]"),
                           (lambda: R.fold_in(key, 1), r"uint32\[3\], got uint32\[1\]")):
        with pytest.raises(TypeError, match=sentence):
            call()


def test_other_ways_to_make_a_key():
    np.testing.assert_array_equal(R.key_data(extend.seed_with_impl(MINE, 5)), [5, 10, 15])
    np.testing.assert_array_equal(R.key_data(extend.random_seed(jnp.arange(2), MINE)),
                                  [[0, 0, 0], [1, 2, 3]])
    np.testing.assert_array_equal(
        R.key_data(extend.random_seed(jnp.arange(2), extend.threefry_prng_impl)), [[0, 0], [0, 1]])
    assert copy.deepcopy(KEY).dtype == KEY.dtype
    with pytest.raises((pickle.PicklingError, AttributeError)):  # its functions are local ones
        pickle.dumps(KEY)


def test_an_export_cannot_hold_them():
    exported = jax.export.export(jax.jit(lambda k: R.uniform(k)))(KEY)
    assert exported.call(KEY) == R.uniform(KEY)
    with pytest.raises(ValueError, match="Cannot serialize values of dtype key<mn>"):
        exported.serialize()


def test_without_shortcuts_and_outside_jit_the_bits_are_the_same():
    wanted = np.asarray(R.normal(KEY, (3,)))
    with jax.disable_jit():
        np.testing.assert_array_equal(R.normal(KEY, (3,)), wanted)

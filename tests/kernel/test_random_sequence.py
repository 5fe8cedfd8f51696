"""Are random bits JAX's without ``threefry_partitionable``, the way of older programs?

Read before: ``saem.ops.random_bits``.
"""

from __future__ import annotations

import numpy as np
import pytest
from library import check

import saem as jax
from saem.core.jaxpr import evaluate

ROWS = [
    *(f"random.bits(key({seed}), {shape}, 'uint{width}')" for seed in (0, 1)
      for shape in ((), (1,), (2,), (5,), (2, 3), (0,)) for width in (8, 16, 32, 64)),
    *(f"random.key_data(random.split(key(3), {n}))" for n in (1, 2, 3, (2, 2))),
    "random.normal(key(), (3,))", "random.uniform(key(2), (5,))", "random.permutation(key(), 7)",
    "random.randint(key(), (5,), 0, 100)", "random.fold_in(random.PRNGKey(1), 3)",
    "random.bernoulli(key(1), .3, (7,))", "random.gamma(key(1), 2., (3,))",
    "random.split(random.PRNGKey(1))", "random.categorical(key(4), jnp.zeros(5), shape=(6,))",
    "random.key_data(random.split(random.key(0, impl='rbg')))",
    "mapped(lambda k: random.normal(k, (3,)), random.split(key(), 4))",
    "mapped(lambda k: random.bits(k, (3,), 'uint8'), random.split(key(), 4))",
    "random.key_data(mapped(lambda k: random.split(k, 3), random.split(key(), 4)))",
    "jax.jit(lambda k: random.normal(k, (4,)))(key())",
]


@pytest.mark.parametrize("x64", [False, True])
def test_old_bits(jax_oracle, x64):
    rows = [f"(jax.config.update('jax_threefry_partitionable', False), {row})[1]" for row in ROWS]
    try:
        check(jax_oracle, [*rows, "jax.config.update('jax_threefry_partitionable', True)"], x64=x64)
    finally:
        jax.config.update("jax_threefry_partitionable", True)


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("shape", [(3,), (4,), (2, 5), (0,)])
def test_xla_and_the_evaluator_agree(width, shape):
    with jax.threefry_partitionable(False):
        def make(k):
            return jax.random.bits(k, shape, f"uint{width}")

        base = jax.random.PRNGKey(7)
        closed = jax.make_jaxpr(lambda k: make(jax.random.wrap_key_data(k)))(base)
        (found,) = evaluate(closed, np.asarray(base))
        np.testing.assert_array_equal(found, make(jax.random.key(7)))


def test_the_setting_is_part_of_what_a_compiled_program_is_found_by():
    draw = jax.jit(lambda k: jax.random.uniform(k, (3,)))
    new = draw(jax.random.key(0))
    with jax.threefry_partitionable(False):
        old = draw(jax.random.key(0))
    assert not np.array_equal(new, old)
    np.testing.assert_array_equal(draw(jax.random.key(0)), new)


@pytest.mark.clears_caches
@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("sample", [
    lambda key: jax.random.gamma(key, 2.0, (3,)), lambda key: jax.random.poisson(key, 3.0, (3,)),
    lambda key: jax.random.binomial(key, 10, 0.4, (3,)), lambda key: jax.random.beta(key, 2.0, 3.0),
    lambda key: jax.random.permutation(key, 7), lambda key: jax.random.choice(key, 9, (3,)),
    lambda key: jax.random.dirichlet(key, jax.numpy.ones(3)),
], ids="gamma poisson binomial beta permutation choice dirichlet".split())
def test_what_was_drawn_with_one_setting_does_not_stay_for_the_other(sample):
    for _ in range(2):  # drawn with each setting first, and after the other
        new = sample(jax.random.key(1))
        with jax.threefry_partitionable(False):
            old = sample(jax.random.key(1))
            jax.clear_caches()
            np.testing.assert_array_equal(sample(jax.random.key(1)), old)
        np.testing.assert_array_equal(sample(jax.random.key(1)), new)
        assert not np.array_equal(new, old)

"""Are two values cut alike?  Jaxprs, values and refusals are JAX's, from the second process."""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental.shard_alike import shard_alike


def test_programs_are_those_of_jax(jax_oracle):
    def program():
        x = jnp.arange(3.0)
        programs = [
            lambda a: shard_alike(a, a * 2),
            jax.vmap(lambda a: shard_alike(a, a * 2)),
            lambda a: shard_alike((a, a), (a, a * 2)),
            lambda a: shard_alike(a, a.astype(int)),
            lambda a: jax.vmap(shard_alike, (0, None))(a, 1.0),
            jax.grad(lambda a: sum(shard_alike(a, a * 2)).sum()),
        ]
        return [[str(jax.make_jaxpr(f)(x)) for f in programs], [f(x) for f in programs],
                [jax.jit(f)(x) for f in programs]]

    same(jax_oracle, program)


@pytest.mark.parametrize(("source", "sentence"), [
    ("shard_alike(x, jnp.arange(4.))", "The leaves shapes of `x` and `y` should match. Got `x` "
     "leaf shape: (3,) and `y` leaf shape: (4,)."),
    ("shard_alike((x, x), x)", "Trees should be equal."),
])
def test_refusals_are_jaxs(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, within=__name__, x=np.arange(3, dtype=np.float32))


def test_the_partitioner_cuts_the_second_as_the_first():
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    cut = jax.NamedSharding(mesh, jax.P("d"))
    x = jax.device_put(np.arange(8, dtype=np.float32), cut)
    made = jax.jit(lambda a: jax.numpy.zeros(8) + a.sum())(x)
    assert made.sharding.is_fully_replicated
    _, alike = jax.jit(lambda a: shard_alike(a, jax.numpy.zeros(8) + a.sum()))(x)
    assert alike.sharding == cut
    np.testing.assert_array_equal(alike, np.full(8, 28))

"""Is a stopped value the same value, and constant for every derivative?"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax

X = np.asarray([0.5, -1.5, 2.0], np.float32)


def test_the_value_stays():
    np.testing.assert_array_equal(lax.stop_gradient(X), X)
    assert lax.stop_gradient({"n": 3, "x": X})["n"] == 3


def test_only_the_free_factor_is_differentiated():
    np.testing.assert_allclose(
        jax.grad(lambda x: (x * lax.stop_gradient(x)).sum())(X), X, rtol=1e-6)
    np.testing.assert_array_equal(
        jax.jvp(lambda x: lax.stop_gradient(x), (X,), (X,))[1], np.zeros(3))


@pytest.mark.parametrize("order", [
    lambda f: jax.jit(jax.vmap(jax.grad(f))),
    lambda f: jax.vmap(jax.jit(jax.grad(f))),
    lambda f: jax.vmap(jax.grad(jax.jit(f))),
], ids=["jit vmap grad", "vmap jit grad", "vmap grad jit"])
def test_under_every_transformation(order):
    f = order(lambda x: jnp.sin(x) * lax.stop_gradient(x))
    np.testing.assert_allclose(f(X), np.cos(X) * X, rtol=1e-5)


def test_it_is_printed_as_jax_prints_it(jax_oracle):
    ours = str(jax.make_jaxpr(lambda x: lax.stop_gradient(x))(X))
    assert ours == jax_oracle.jaxpr("lambda x: lax.stop_gradient(x)", X)

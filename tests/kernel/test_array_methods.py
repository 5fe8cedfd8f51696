"""Does a traced array have every method that an array has?

Read before: ``saem.numpy.methods``.
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp

FOLDS = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap])
def test_a_fold_is_a_method_inside_a_transformation(name, transform):
    x = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
    expected = [getattr(row, name)() for row in x]
    traced = transform(lambda x: getattr(x, name)(axis=-1))(jnp.array(x))
    np.testing.assert_allclose(traced, expected, rtol=1e-6)


def test_the_variance_is_a_method_while_a_gradient_is_linearized():
    x = np.array([1.0, 2.0, 4.0], np.float32)
    gradient = jax.grad(jax.jit(lambda x: x.var()))(jnp.array(x))
    np.testing.assert_allclose(gradient, 2 * (x - x.mean()) / 3, rtol=1e-6)

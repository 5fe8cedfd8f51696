"""Are random vectors and orthogonal matrices JAX's, to rounding?"""

from __future__ import annotations

import numpy as np
import pytest
from both import ours, source_of
from oracle import JaxError

import saem as jax
import saem.numpy as jnp

pytestmark = pytest.mark.oracle

PROGRAMS = """
jax.random.multivariate_normal(key, mean, cov)
jax.random.multivariate_normal(key, mean, cov, (4, 2))
jax.random.multivariate_normal(key, mean, cov, (4,), method='eigh') ** 2
jax.random.multivariate_normal(key, mean, cov, (4,), method='svd') ** 2
jax.random.multivariate_normal(key, jnp.ones((4, 1, 3)), jnp.stack([cov, 2 * cov]))
jax.random.multivariate_normal(key, jnp.zeros(3, int), jnp.eye(3, dtype=int))
jax.random.multivariate_normal(key, mean, cov, (2,), jnp.float16)
jax.jit(lambda c: jax.random.multivariate_normal(key, mean, c))(cov)
jax.grad(lambda c: jax.random.multivariate_normal(key, mean, c).sum())(cov)
jax.random.orthogonal(key, 3)
jax.random.orthogonal(key, 3, (2,), m=5)
jax.random.orthogonal(key, 5, m=2)
jax.random.orthogonal(key, 2, dtype=jnp.complex64)
""".strip().splitlines()

REFUSED = """
jax.random.multivariate_normal(key, 1., cov)
jax.random.multivariate_normal(key, mean, mean)
jax.random.multivariate_normal(key, mean, jnp.eye(2))
jax.random.multivariate_normal(key, mean, cov, method='lu')
jax.random.multivariate_normal(key, mean, cov, dtype=int)
jax.random.multivariate_normal(key, jnp.ones((4, 3)), cov, (2,))
jax.random.orthogonal(key, 3, dtype=int)
""".strip().splitlines()

key = jax.random.key(7)
mean = jnp.array([1.0, -2.0, 0.5])
cov = jnp.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 0.7]])


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_jax(jax_oracle, program):
    theirs = jax_oracle.run(source_of(program, __name__)).value
    mine = np.asarray(ours(program, __name__))
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    tolerance = 2e-3 if mine.dtype == np.float16 else 3e-6
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("program", REFUSED)
def test_refused_as_jax_refuses(jax_oracle, program):
    with pytest.raises(JaxError) as theirs:
        jax_oracle.run(source_of(program, __name__))
    with pytest.raises(Exception) as mine:
        ours(program, __name__)
    assert theirs.value.kind in [cls.__name__ for cls in type(mine.value).__mro__], mine.value

"""Do operators and two-operand functions take every kind of operand in every context?

Read before: ``both.py``.
"""

from __future__ import annotations

import pytest
from both import same

NUMBERS_BESIDE_WEAK_ARRAYS = [
    "jax.grad(lambda x: 1. / x)(3.)",
    "jax.jit(lambda x: 1. / x)(3.)",
    "jax.jit(lambda x: jnp.arctan2(1., x))(3.)",
    "jax.jit(lambda x: jnp.hypot(4, x))(3)",
    "jax.vmap(lambda x: jnp.logaddexp(x, 1.))(2. * jnp.full(2, 3.))",
]


@pytest.mark.parametrize("source", NUMBERS_BESIDE_WEAK_ARRAYS)
def test_a_python_number_beside_a_weak_array(jax_oracle, source):
    same(jax_oracle, source)

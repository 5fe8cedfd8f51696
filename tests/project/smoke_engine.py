"""Does an installed Saem calculate? Run by .ci/run in an empty environment, outside the clone."""

from __future__ import annotations

import sys

import saem as jax
import saem.numpy as jnp

x = jnp.arange(4.0)
gradient = jax.jit(jax.grad(lambda x: jnp.sum(x**2)))(x)
assert gradient.tolist() == [0.0, 2.0, 4.0, 6.0], gradient
rows = jax.vmap(lambda row: row.sum())(jnp.ones((3, 2)))
assert rows.tolist() == [2.0, 2.0, 2.0], rows
unwanted = {"IPython", "scipy", "jax", "click"} & set(sys.modules)
assert not unwanted, unwanted
print(f"saem from {jax.__file__}: grad, jit and vmap answer on {jax.devices()}")

"""Of what do functions warn, and in which words?

Read before: ``both.py``.
Invariant: category and first sentence are JAX's.
"""

from __future__ import annotations

import pytest
from both import same

PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    {expression}
result = sorted({{(w.category.__name__, str(w.message).split(".")[0]) for w in found}})
"""

# Complex numbers that lose their imaginary part.  Each is of its own shape, so that it is traced.
COMPLEX = [
    "jnp.array([1j]).astype(jnp.float32)",
    "jnp.astype(jnp.array([1j, 2]), int)",
    "jax.jit(lambda x: x.astype(jnp.float32))(1j)",
    "jnp.array([1j]).astype(bool)",
    "jnp.asarray(jnp.array([1j]), dtype=jnp.float32)",
    "jnp.zeros(3).at[0].set(1j)",
    "jnp.zeros(3).at[:2].add(jnp.array(1j))",
    "jnp.sum(jnp.ones(4) * 1j, dtype=jnp.float32)",
    "jnp.cumsum(jnp.ones(5) * 1j, dtype=jnp.int32)",
    "jnp.mean(jnp.ones(6) * 1j, dtype=jnp.float16)",
    "jnp.trace(jnp.ones((2, 2)) * 1j, dtype=jnp.float32)",
    "jnp.nan_to_num(jnp.ones(7) * 1j, nan=1j)",
    "jnp.insert(jnp.zeros(3), 0, 1j)",
    "jnp.pad(jnp.zeros(3), 1, constant_values=1j)",
    "jnp.put(jnp.zeros(3), 0, 1j, inplace=False)",
    "jnp.concatenate([jnp.ones(2), jnp.ones(2) * 1j], dtype=jnp.float32)",
    "lax.convert_element_type(jnp.array([1j]), jnp.float32)",
    "lax.convert_element_type(np.array([1j]), jnp.int32)",
    "jnp.abs(jnp.array([1j])), jnp.linalg.norm(jnp.array([1j])), jnp.var(jnp.array([1j, 2]))",
    "jax.grad(lambda x: jnp.abs(jnp.exp(1j * x)))(1.)",
]
OTHERS = [
    "jnp.ndim([1, 2])",
    "jnp.shape(None)",
    "jnp.ndim(3), jnp.shape(np.ones(2)), jnp.size(jnp.ones(2))",
    "jax.nn.one_hot(jnp.array([0., 1.]), 2)",
    "jax.nn.one_hot(jnp.array([0, 1]), 2)",
    "jax.scipy.signal.stft(jnp.arange(8.) * 1j, nperseg=4)",
    "jax.scipy.signal.welch(jnp.arange(8.), nperseg=16)",
    "jax.scipy.signal.welch(jnp.arange(8.))",
    "jnp.add.at(jnp.arange(3), 0, 1.5, inplace=False)",
    "jnp.arange(3).at[0].set(1.5)",
]
# Host values that the dtype cannot hold.
TOO_LARGE = [
    "jnp.array(np.array(1e40))",
    "jnp.asarray(np.array([1e40, 2]))",
    "jnp.asarray(np.float64(1e40))",
    "jnp.array(np.array([1e10]), dtype=jnp.float16)",
    "jnp.array(np.array([np.nan]), dtype=jnp.int32)",
    "jnp.asarray(np.array([np.nan, 1]), dtype=jnp.float32)",
    "jnp.array(np.array([1e40j]))",
    "jnp.array(np.array([2**40])), jnp.array(np.array([-1]), dtype=jnp.uint8)",
    "jnp.array([1e40]), jnp.array(1e40)",
    "jax.device_put(np.array([1e40]))",
    "jnp.sin(np.array([1e40]))",
]


@pytest.mark.parametrize("expression", COMPLEX + OTHERS + TOO_LARGE)
def test_warnings_are_those_of_jax(jax_oracle, expression):
    same(jax_oracle, PROGRAM.format(expression=expression))

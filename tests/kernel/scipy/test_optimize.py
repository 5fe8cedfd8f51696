"""Does minimize find minima, under jit and vmap too, and refuse what JAX refuses?

Read before: ``tests/kernel/library.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from library import check

import saem as jax
import saem.numpy as jnp
from saem.scipy.optimize import minimize

pytestmark = pytest.mark.usefixtures("little_effort")

METHODS = ("BFGS", "l-bfgs-experimental-do-not-rely-on-this")
FUNCTIONS = {
    "rosenbrock": (lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
                   [-1.2, 1.0, 0.5], [1.0, 1.0, 1.0]),
    "cosh": (lambda x: jnp.sum(jnp.cosh(x - 2)), [9.0, 1.0, 0.0], [2.0, 2.0, 2.0]),
    "himmelblau": (lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2,
                   [1.0, 1.0], [3.0, 2.0]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_minima(name, method):
    fun, start, minimum = FUNCTIONS[name]
    with jax.enable_x64(True):
        found = jax.jit(lambda x: minimize(fun, x, method=method))(jnp.array(start))
        assert found.success
        assert int(found.status) == 0
        np.testing.assert_allclose(found.x, minimum, 1e-4)
        np.testing.assert_allclose(found.jac, jax.grad(fun)(found.x), 1e-6, 1e-8)
        several = jax.vmap(lambda x: minimize(fun, x, method=method).x)(
            jnp.array([start, minimum]))
        np.testing.assert_allclose(several, [minimum] * 2, 1e-4)


def test_limits():
    fun, start, _ = FUNCTIONS["rosenbrock"]
    found = minimize(fun, jnp.array(start), method="BFGS", options={"maxiter": 3})
    assert not found.success
    assert (int(found.nit), int(found.status)) == (3, 1)


def test_refused(jax_oracle):
    check(jax_oracle, [
        "optimize.minimize(lambda x: x.sum(), jnp.zeros(2), method='other')",
        "optimize.minimize(lambda x: x, jnp.zeros(2), method='BFGS')",
        "optimize.minimize(lambda x: x.sum(), jnp.zeros((2, 2)), method='BFGS')",
        "optimize.minimize(lambda x: x.sum(), jnp.zeros(2), 3, method='BFGS')",
        "optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), jnp.zeros(2), (2.,),"
        " method='BFGS').x",
    ])

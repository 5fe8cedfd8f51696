"""Does odeint follow differential equations, and their derivatives?

States are compared with exact solutions and with JAX's, derivatives with exact ones, JAX's and
differences; the parts of a step with JAX's.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import test_util
from saem.experimental import ode
from saem.experimental.ode import odeint  # noqa: F401 - expressions use it

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

ts = jnp.linspace(0.0, 2.0, 5)
f = lambda y, t, k: -k * y + jnp.sin(t)


def spring(y, t):
    return {"a": y["b"], "b": -y["a"]}


RUNS = ["odeint(f, 1., ts, 2.)", "jax.jit(lambda y: odeint(f, y, ts, 2.))(1.)",
        "odeint(spring, {'a': jnp.ones(2), 'b': 0.}, ts)", "odeint(f, 1., ts[:1], 2.)",
        "odeint(lambda y, t: 1j * y, 1. + 0j, ts)", "odeint(f, 1., ts, 2., hmax=.01)",
        "odeint(f, 1., ts, 2., rtol=1e-3, atol=1e-3)",
        "jax.vmap(lambda y: odeint(f, y, ts, 2.))(jnp.arange(3.))",
        "jax.grad(lambda y, k, ts: odeint(f, y, ts, k).sum(), argnums=(0, 1, 2))(1., 2., ts)",
        "jax.grad(lambda k: odeint(lambda y, t: -k * y, 1., ts).sum())(2.)",
        "jax.grad(lambda y: odeint(spring, y, ts)['a'].sum())({'a': 1., 'b': 2.})",
        "jax.jit(jax.vmap(jax.grad(lambda k: odeint(f, 1., ts, k)[-1])))(jnp.arange(1., 3.))"]
PARTS = ["ode.initial_step_size(lambda y, t: t - y, 0., jnp.ones(2), 4, 1e-3, 1e-3, -jnp.ones(2))",
         "ode.mean_error_ratio(jnp.array([1e-3, 2e-3]), 1e-2, 1e-2, jnp.ones(2), 2 * jnp.ones(2))",
         "[ode.optimal_step_size(jnp.float32(.1), jnp.float32(r)) for r in (0, 1e-9, .5, 1, 99)]",
         "ode.runge_kutta_step(lambda y, t: t - y, jnp.ones(2), -jnp.ones(2), 0., jnp.float32(.1))",
         "ode.fit_4th_order_polynomial(*map(jnp.float32, (0., 1., .3, .1, .2, .5)))",
         "ode.interp_fit_dopri(jnp.zeros(2), jnp.ones(2), jnp.arange(14.).reshape(7, 2), "
         "jnp.float32(.1))",
         "[ode.abs2(jnp.array([1 + 2j])), ode.abs2(jnp.array([3.]))]"]
REFUSED = {
    "odeint(f, 1., ts, 'a')":
        "The contents of odeint *args must be arrays or scalars, but got a.",
    "odeint(f, 1., jnp.arange(3), 2.)": "t must be an array of floats, but got [0 1 2].",
    "odeint(lambda y, t: (y, y), 1., ts)":
        "Sum of sizes 1 must be equal to dimension 0 of the operand shape [2]",
    "jax.jvp(lambda y: odeint(f, y, ts, 2.), (1.,), (1.,))":
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.",
}


def test_states_and_their_derivatives_are_those_of_jax(jax_oracle):
    same(jax_oracle, f"[{', '.join(RUNS)}]", rtol=2e-4, within=__name__)


def test_the_parts_of_a_step_are_those_of_jax(jax_oracle):
    same(jax_oracle, f"[{', '.join(PARTS)}]", rtol=2e-5, within=__name__)


@pytest.mark.parametrize("source", REFUSED)
def test_refusals_are_jaxs(jax_oracle, source):
    same_error(jax_oracle, source, REFUSED[source], within=__name__)


def test_exact_solutions_are_met_within_the_tolerance():
    with jax.enable_x64(True):
        ts = np.linspace(0.0, 5.0, 40)
        oscillation = ode.odeint(lambda y, t: jnp.stack([y[1], -y[0]]), np.array([0.0, 1.0]), ts)
        np.testing.assert_allclose(oscillation, np.stack([np.sin(ts), np.cos(ts)], 1), atol=2e-7)
        growth = ode.odeint(lambda y, t: y * (1 - y), 0.1, ts, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(growth, 1 / (1 + 9 * np.exp(-ts)), atol=2e-9)
        coarse = ode.odeint(lambda y, t: y * (1 - y), 0.1, ts, rtol=1e-3, atol=1e-3)
        error = np.abs(coarse - 1 / (1 + 9 * np.exp(-ts))).max()
        assert 1e-9 < error < 1e-2


def test_derivatives_are_exact_within_the_tolerance():
    with jax.enable_x64(True):
        ts = np.array([0.0, 0.4, 1.0])
        run = lambda y0, k, ts: ode.odeint(lambda y, t, k: -k * y, y0, ts, k)[-1]
        found = jax.grad(run, argnums=(0, 1, 2))(2.0, 3.0, ts)
        end = np.exp(-3.0)
        np.testing.assert_allclose(found[0], end, rtol=1e-6)
        np.testing.assert_allclose(found[1], -2 * end, rtol=1e-6)
        np.testing.assert_allclose(found[2], [6 * end, 0, -6 * end], atol=1e-6)
        test_util.check_grads(lambda y, k: ode.odeint(
            lambda y, t, k: jnp.sin(k * t) - y**2, y, ts, k), (0.5, 1.5), 1, modes=["rev"],
            atol=1e-4, rtol=1e-4)


def test_integers_among_the_arguments_and_equal_times_do_no_harm():
    # JAX 0.10.2 refuses the first, and answers NaN for the second.
    ts = jnp.array([0.0, 0.0, 1.0])
    f = lambda y0: ode.odeint(lambda y, t, n: -y * n, y0, ts, 2)
    np.testing.assert_allclose(f(1.0), [1, 1, np.exp(-2)], rtol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda y: f(y).sum())(1.0), 2 + np.exp(-2), rtol=1e-5)


def test_a_state_of_integers_is_refused():
    with pytest.raises(TypeError, match="y0 must hold floats"):
        ode.odeint(lambda y, t: -y, 1, jnp.array([0.0, 1.0]))

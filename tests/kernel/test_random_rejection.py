"""Are the distributions made by rejection those of JAX, number for number?

Loops must turn as often as JAX's for each element, so counts agree to the last, and floats but for
the rounding of XLA's fusions.

Read before: ``test_random.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import evaluate

R = jax.random
SHAPES = "np.float32([.01, .3, 1, 2.5, 40])"
START = "R = jax.random; k = R.key(42); "

# Each is compiled anew on both sides, which takes a second: so few, on many numbers.
FLOATS = [
    f"R.gamma(k, {SHAPES})", f"R.beta(k, {SHAPES}, .5)",
    "R.dirichlet(k, np.ones((2, 3), 'float32'), (4, 2))", f"R.t(k, {SHAPES})",
    f"R.f(k, {SHAPES}, 3.)", "R.ball(k, 3, 1.5, (4,))",
    "R.gamma(R.key(0, impl='rbg'), 3, (4,))",
    "jax.vmap(lambda k, a: R.gamma(k, a, (2,)))(R.split(k, 3), np.float32([1, 2, 3]))",
]
COUNTS = [
    "R.poisson(k, np.float32([*[3.] * 100, *[50.] * 100, 0, .1, 9.9, 10, 1e6, -1, np.nan]))",
    "R.poisson(R.PRNGKey(1), 20, (2,), 'uint8')",
    "R.binomial(k, np.float32([*[5] * 100, *[90] * 100, 0, 5, 30, 200, 1e6, np.nan, -1, np.inf]),"
    " np.float32([*[.3] * 200, .5, 0, .9, 1, .25, .5, .5, .5]))",
    "R.multinomial(k, np.float32([5, 40]), np.float32([[.2, .8, 0], [.1, .3, .6]]))",
]
REFUSED = {
    "R.poisson(R.key(0, impl='rbg'), 3.)": "is only implemented for the threefry2x32 RNG",
    "R.gamma(k, 1., dtype='int32')": "must be a float dtype",
    "R.binomial(k, 5, .5, dtype='int32')": "must be a float dtype",
    "R.dirichlet(k, 2.)": "dirichlet requires alpha.ndim >= 1",
    "R.gamma(k, np.ones(3), (4,))": "",
    "R.dirichlet(k, np.ones((2, 3)), (3,))": "",
    "R.ball(k, 3, np.ones(2))": "",
    "R.multinomial(k, np.int32([5, 7]), np.float32([.2, .8]))": "",
}
SLOPES = [
    f"jax.grad(lambda a: R.gamma(k, a).sum())({SHAPES})",
    f"jax.grad(lambda a: R.loggamma(k, a).sum())({SHAPES})",
]
# Forward mode goes through the loops of the slope, as often as it is asked to.
SECOND = [
    f"jax.jit(lambda a: jax.jvp(jax.grad(lambda a: jnp.sin(R.{draw}).sum()), (a,), (a,))[1])"
    f"({SHAPES})" for draw in ("gamma(k, a)", "loggamma(k, a)", "dirichlet(k, a)")
]


def together(expressions):
    return START + f"result = [{', '.join(expressions)}]"


@pytest.mark.usefixtures("little_effort")
def test_floats_are_those_of_jax(jax_oracle):
    same(jax_oracle, together(FLOATS), rtol=1e-5)


def test_counts_are_those_of_jax(jax_oracle):
    same(jax_oracle, together(COUNTS), rtol=0)


@pytest.mark.usefixtures("little_effort")
def test_derivatives_are_those_of_jax(jax_oracle):
    same(jax_oracle, together(SLOPES), rtol=2e-5)


@pytest.mark.usefixtures("little_effort")
def test_second_derivatives_are_those_of_jax(jax_oracle):
    same(jax_oracle, together(SECOND), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("expression", REFUSED)
def test_what_jax_refuses_is_refused(jax_oracle, expression):
    same_error(jax_oracle, START + f"result = {expression}", REFUSED[expression])


@pytest.mark.usefixtures("little_effort")
def test_numpy_makes_the_same_gammas_and_programs_are_well_formed():
    def both(key, a):
        return R.gamma(key, a), R.loggamma(key, a)

    key, a = R.key(5), np.float32([.4, 1, 7])
    for fun in (both, lambda key, a: jax.jvp(lambda a: both(key, a), (a,), (a,))):
        closed = jax.make_jaxpr(fun)(key, a)
        check_jaxpr(closed)
        for got, want in zip(evaluate(closed, key, a), jax.tree.leaves(jax.jit(fun)(key, a))):
            np.testing.assert_allclose(got, want, rtol=2e-5)


def test_a_gamma_uses_its_key():
    with jax.debug_key_reuse(True):
        key = R.key(0)
        with pytest.raises(jax.errors.KeyReuseError):
            jax.jit(lambda key: R.gamma(key, 1.) + R.normal(key))(key)

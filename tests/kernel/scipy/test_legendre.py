"""Are the tables of associated Legendre functions SciPy's and JAX's?  (deprecated, as in JAX)"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from both import same, same_error

import saem as jax
import saem.numpy as jnp

POINTS = [-0.97, -0.5, 0.0, 0.3, 0.999]

pytestmark = pytest.mark.filterwarnings("ignore:jax.scipy.special.lpmn:DeprecationWarning")


def test_values_are_those_of_scipy():
    with jax.enable_x64(True):
        z = jnp.array(POINTS)
        order, degree = np.ogrid[:9, :9]
        expected = scipy.special.lpmv(order[..., None], degree[..., None], np.array(POINTS))
        expected = np.where((order <= degree)[..., None], expected, 0)
        np.testing.assert_allclose(jax.scipy.special.lpmn_values(8, 8, z, False), expected,
                                   rtol=1e-12, atol=1e-12)
        values, slopes = jax.scipy.special.lpmn(8, 8, z)
        np.testing.assert_allclose(values, expected, rtol=1e-11, atol=1e-11)
        step = 1e-6
        near = [scipy.special.lpmv(order[..., None], degree[..., None], np.array(POINTS) + s)
                for s in (step, -step)]
        slope = np.where((order <= degree)[..., None], (near[0] - near[1]) / (2 * step), 0)
        np.testing.assert_allclose(slopes[..., :-1], slope[..., :-1], rtol=1e-6, atol=1e-3)


def test_tables_are_those_of_jax(jax_oracle):
    def program():
        special = jax.scipy.special
        z = jnp.array([-0.97, -0.5, 0.0, 0.3, 0.999], jnp.float32)
        ends = jnp.array([-1.0, 1.0])
        return [
            special.lpmn_values(5, 5, z, True), special.lpmn_values(5, 5, z, False),
            special.lpmn(4, 4, z), special.lpmn(3, 3, ends), special.lpmn(0, 0, z),
            special.lpmn_values(m=1, n=1, z=z, is_normalized=True),
            jax.jacfwd(lambda z: special.lpmn_values(3, 3, z, True))(z),
            jax.grad(lambda z: special.lpmn_values(3, 3, z, False).sum())(z),
        ]

    same(jax_oracle, program, rtol=2e-5)


def unequal():
    jax.scipy.special.lpmn(2, 3, jnp.ones(2))


def of_rank_two():
    jax.scipy.special.lpmn_values(2, 2, jnp.ones((2, 2)), True)


def of_integers():
    jax.scipy.special.lpmn(2, 2, jnp.arange(2))


@pytest.mark.parametrize(("program", "sentence"), [
    (unequal, "Computations for m!=n are not yet supported"),
    (of_rank_two, "z must be a 1D array"),
    (of_integers, "z.dtype=int32 is not supported")])
def test_refusals(jax_oracle, program, sentence):
    same_error(jax_oracle, program, sentence)


def test_a_negative_degree_is_refused():
    with pytest.raises(ValueError, match="must not be negative"):
        jax.scipy.special.lpmn(-1, -1, jnp.ones(2))


def test_the_names_are_deprecated():
    with pytest.warns(DeprecationWarning, match="no replacement is planned"):
        assert jax.scipy.special.lpmn_values is not None

"""Do weights start as on real JAX, bit for bit?

Read before: ``library.py``.
Invariant: plain distributions agree to the last bit; orthogonal matrices, whose QR is LAPACK's, to
rounding.
"""

from __future__ import annotations

import pytest
from library import check

from saem.nn import initializers

NAMED = ("glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform "
         "lecun_normal lecun_uniform xavier_normal xavier_uniform").split()
MODES = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg", "other")
DISTRIBUTIONS = ("normal", "uniform", "truncated_normal", "other")


@pytest.mark.parametrize("name", NAMED)
def test_named(jax_oracle, name):
    check(jax_oracle, [
        f"ini.{name}()(key(), (3, 4))", f"ini.{name}()(key(1), (3, 4, 5), jnp.bfloat16)",
        f"ini.{name}(dtype='float16')(key(1), (3, 4, 5))", f"ini.{name}()(key(), (3,))",
        f"ini.{name}(in_axis=0, out_axis=1, batch_axis=2)(key(1), (3, 4, 5))",
        f"ini.{name}((0, 1), 2)(key(1), (3, 4, 5), jnp.complex64)",
        f"ini.{name}()(key(), (0, 3))", f"ini.{name}.__name__"], rtol=0)


@pytest.mark.parametrize("mode", MODES)
def test_variance_scaling(jax_oracle, mode):
    check(jax_oracle, [f"ini.variance_scaling(2., '{mode}', '{d}')(key(2), (4, 5, 6))"
                       for d in DISTRIBUTIONS], rtol=0)


@pytest.mark.parametrize("name", ["normal", "uniform", "truncated_normal"])
def test_plain(jax_oracle, name):
    check(jax_oracle, [
        f"ini.{name}()(key(), (3, 4))", f"ini.{name}(.5)(key(), (3, 4), jnp.bfloat16)",
        f"ini.{name}(.5)(key(), (3, 4), jnp.complex64)", f"ini.{name}(.5, jnp.float16)(key(), ())",
        f"ini.{name}(.5)(key(), (3, 4), int)", f"ini.{name}()(jax.random.PRNGKey(0), [3, 4])",
        "ini.truncated_normal(.5, lower=-1, upper=3)(key(), (9,))"], rtol=0)


def test_constants(jax_oracle):
    check(jax_oracle, [
        "ini.zeros(key(), (2,))", "ini.ones(key(), (2,), int)", "ini.ones(key(), (2,), 'bfloat16')",
        "ini.constant(3)(key(), (2,))", "ini.constant(3, int)(key(), (2,))",
        "ini.constant(jnp.arange(3))(key(), (2, 3))",
        "ini.constant(jnp.arange(3))(key(), (2, 2))"], rtol=0)


def test_refused_shapes(jax_oracle):
    check(jax_oracle, ["ini.orthogonal()(key(), (3,))", "ini.delta_orthogonal()(key(), (3, 4))",
                       "ini.delta_orthogonal()(key(), (3, 4, 2))"])


def test_they_are_known_by_their_protocol():
    for kind in (initializers.zeros, initializers.normal(), initializers.orthogonal()):
        assert isinstance(kind, initializers.Initializer)
    assert not isinstance(3, initializers.Initializer)

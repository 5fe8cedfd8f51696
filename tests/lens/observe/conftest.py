"""What tests of observation share: a recorder that listens from the first call on."""

import pytest

import saem as jax
from saem.observe.places import Places
from saem.observe.recorder import Recorder


@pytest.fixture
def recorder():
    jax.clear_caches()
    made = Recorder(named=Places())
    made.start()
    yield made
    made.stop()

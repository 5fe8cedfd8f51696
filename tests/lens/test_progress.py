"""What runs long is seen from another thread, and told with its reason."""

from __future__ import annotations

import time

import saem as jax
import saem.numpy as jnp
from saem.observe.progress import IDLE, Watch, unrolled

X = jnp.ones(3)


def test_what_runs_long_is_seen_from_another_thread():
    told = []

    def until(condition):
        return any(condition() or time.sleep(0.05) for _ in range(600))

    def slow(x):
        assert until(lambda: any(one.function == "slow" for one in told))
        return x

    watch = Watch(told.append)
    jax.jit(slow)(X)
    assert until(lambda: told[-1] == IDLE)
    watch.stop()
    assert told[0].activity == "trace"
    assert "time.sleep(0.05)" in told[0].place.text


def test_an_unrolled_loop_is_named_with_its_share():
    def loop(x):
        for _ in range(50):
            x = jnp.sin(x)
        return x * 2

    said = unrolled(jax.make_jaxpr(loop)(X).jaxpr.eqns)
    assert "50 times" in said.en
    assert "98%" in said.en

"""What runs long is seen from another thread, and told with its reason."""

from __future__ import annotations

import threading
import time

import saem as jax
import saem.numpy as jnp
from saem.observe.progress import IDLE, Watch, unrolled

X = jnp.ones(3)


def test_what_runs_long_is_seen_from_another_thread():
    told = []
    ready = threading.Event()

    def slow(x):
        for _ in range(60):
            x = jnp.sin(x) + 1
        ready.set()
        time.sleep(1.3)
        return x

    watch = Watch(told.append)
    jax.jit(slow)(X)
    time.sleep(0.6)
    watch.stop()
    assert ready.is_set()
    assert told[0].activity == "trace"
    assert told[0].function == "slow"
    assert told[0].place.text == "time.sleep(1.3)"
    assert told[-1] == IDLE


def test_an_unrolled_loop_is_named_with_its_share():
    def loop(x):
        for _ in range(50):
            x = jnp.sin(x)
        return x * 2

    said = unrolled(jax.make_jaxpr(loop)(X).jaxpr.eqns)
    assert "50 times" in said.en
    assert "98%" in said.en

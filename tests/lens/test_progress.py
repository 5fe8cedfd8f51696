"""What runs long is seen from another thread, and told with its reason."""

from __future__ import annotations

import threading
import time

import numpy as np

import saem as jax
import saem.numpy as jnp
from saem.compile import dispatch
from saem.observe.progress import IDLE, Watch, folded, look, unrolled, why

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


def test_a_constant_that_xla_computes_is_named_with_its_size_and_line():
    def table(x):
        steps = jnp.cumsum(jnp.ones(1_000_000))
        return x + steps[-1]

    said = folded(jax.make_jaxpr(table)(X).jaxpr)
    assert "4 MB at test_progress.py, line" in said.en
    assert "상수 4 MB" in said.ko
    assert folded(jax.make_jaxpr(lambda x: x + jnp.ones(1_000_000).sum())(X).jaxpr) is None
    assert folded(jax.make_jaxpr(lambda x: jnp.cumsum(jnp.ones(1_000_000) * x[0]))(X).jaxpr) is None


def test_a_copy_to_a_device_is_told_with_its_size(monkeypatch):
    seen = []
    put = dispatch._jaxlib.batched_device_put

    def slow(*args):
        found = look(threading.get_ident())
        seen.append((found[:2], why(found[0], found[3])))
        return put(*args)

    monkeypatch.setattr(dispatch._jaxlib, "batched_device_put", slow)
    jax.device_put(np.zeros((1000, 500), np.float32))
    ((activity, name), said), = seen
    assert (activity, name) == ("transfer", "f32[1000,500]")
    assert "2 MB" in said.en
    assert "2 MB" in said.ko

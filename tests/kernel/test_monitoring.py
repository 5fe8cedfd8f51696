"""Do listeners hear, under JAX's names, what the engine does?

Read before: ``saem.monitoring``.
Invariant: names, order and keywords are JAX's.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import source_of

import saem as jax
from saem import monitoring
from saem.compile import executables as compiler
from saem.core import config
from saem.core.events import bus
from saem.experimental.compilation_cache import compilation_cache


def listened(run):
    """Return what listeners were told while ``run`` ran."""
    told = []
    monitoring.register_event_listener(lambda event, **k: told.append(("event", event, k)))
    monitoring.register_event_duration_secs_listener(
        lambda event, s, **k: told.append(("time", event, k)))
    monitoring.register_event_time_span_listener(
        lambda event, a, b, **k: told.append(("span", event, k)))
    monitoring.register_scalar_listener(lambda event, v, **k: told.append(("scalar", event, k)))
    run()
    monitoring.clear_event_listeners()
    return told


def compiled():
    def step(x):
        return x * 2.125 + 1

    return listened(lambda: jax.jit(step)(np.float32(1)))


def kept_on_disk(folder):
    """Return what is told of a program that is compiled twice, with a cache in ``folder``."""
    settings = {"jax_compilation_cache_dir": folder,
                "jax_persistent_cache_min_compile_time_secs": 0}

    def run():
        before = {name: getattr(jax.config, name) for name in settings}
        for name, value in settings.items():
            jax.config.update(name, value)
        for _ in range(2):
            jax.jit(lambda x: x * 7.5 - 2)(np.float32(1))
            jax.clear_caches()
        for name, value in before.items():
            jax.config.update(name, value)

    return [t for t in listened(run) if "compilation_cache" in t[1] and "saved" not in t[1]
            and "tasks" not in t[1]]


@pytest.fixture(autouse=True)
def _forget():
    compiler.clear()
    yield
    monitoring.clear_event_listeners()
    assert not bus.active


def test_a_compilation_is_heard_as_in_jax(jax_oracle):
    theirs = jax_oracle.run(source_of(compiled)).value
    wanted = [t for t in theirs if "compilation_cache" not in t[1]]
    assert wanted and compiled() == wanted


@pytest.mark.clears_caches
def test_a_cache_on_disk_is_heard_as_in_jax(jax_oracle, tmp_path):
    def program(folder):
        found = kept_on_disk(folder)
        compilation_cache.reset_cache()
        return found

    wanted = jax_oracle.run(source_of(program), folder=str(tmp_path / "theirs")).value
    with config.enable_compilation_cache(True):
        assert wanted and kept_on_disk(str(tmp_path / "ours")) == wanted


def test_a_program_may_record_by_itself():
    told = []
    listeners = [
        ("event", lambda e, **k: told.append((e, k)), ()),
        ("event_duration_secs", lambda e, s, **k: told.append((e, s, k)), (1.5,)),
        ("event_time_span", lambda e, a, b, **k: told.append((e, a, b, k)), (1.0, 2.0)),
        ("scalar", lambda e, v, **k: told.append((e, v, k)), (7,)),
    ]
    for name, listener, values in listeners:
        getattr(monitoring, f"register_{name}_listener")(listener)
        getattr(monitoring, f"record_{name}")("/mine", *values, step=3)
    assert told == [("/mine", {"step": 3}), ("/mine", 1.5, {"step": 3}),
                    ("/mine", 1.0, 2.0, {"step": 3}), ("/mine", 7, {"step": 3})]
    assert bus.active
    for name, listener, *_ in listeners:
        name = name.replace("_secs", "")
        getattr(monitoring, f"unregister_{name}_listener")(listener)
        with pytest.raises(ValueError, match="is no registered"):
            getattr(monitoring, f"unregister_{name}_listener")(listener)
    assert not bus.active
    monitoring.record_event("/mine")
    assert len(told) == 4


def test_nobody_is_told_after_all_was_cleared():
    told = []
    for register in (monitoring.register_event_listener, monitoring.register_scalar_listener,
                     monitoring.register_event_duration_secs_listener):
        register(lambda *a, **k: told.append(a))
    monitoring.clear_event_listeners()
    jax.jit(lambda x: x - 3.25)(np.float32(2))
    assert told == []


def test_seconds_are_seconds():
    spans, durations = {}, {}
    monitoring.register_event_time_span_listener(
        lambda e, a, b, **k: spans.update({e: b - a}))
    monitoring.register_event_duration_secs_listener(lambda e, s, **k: durations.update({e: s}))
    jax.jit(lambda x: x * 1.0625)(np.float32(2))
    assert len(durations) == 3 and spans.keys() == durations.keys()
    for name, seconds in durations.items():
        assert 0 < seconds < 60
        np.testing.assert_allclose(spans[name], seconds, rtol=1e-3, atol=1e-6)

"""Calls that C++ answers are counted without leaving it."""

from __future__ import annotations

import threading
import types

import pytest

import saem as jax
import saem.numpy as jnp
from saem.core.events import bus
from saem.observe import calls
from saem.observe.recorder import Recorder

X = jnp.ones(3)


@pytest.fixture
def recording():
    recorder = Recorder()
    recorder.start()
    yield recorder
    recorder.stop()


def rows(recorder):
    return {f.summary.name: f.summary for f in recorder.snapshot().functions}


def test_hits_are_counted_on_the_fast_path(recording):
    @jax.jit
    def step(x):
        return x + 1

    for _ in range(1001):
        step(X)
    assert not bus.hits
    assert (rows(recording)["step"].traces, rows(recording)["step"].hits) == (1, 1000)
    step(jnp.ones(4))
    step(X)
    assert rows(recording)["step"].hits == 1001
    assert rows(recording)["step"].calls == 1003


class OnlyNext:
    """A counter as Python 3.14 has it: its state cannot be read, and 3.12 warns of reading it."""

    def __init__(self):
        self._next = 0

    def __next__(self):
        self._next += 1
        return self._next - 1

    def __reduce__(self):
        raise TypeError("cannot pickle 'itertools.count' object")


def test_counts_are_taken_without_pickling(monkeypatch):
    monkeypatch.setattr(calls, "itertools", types.SimpleNamespace(count=OnlyNext))
    counts = calls.Calls()
    step = jax.jit(lambda x: x - 5)
    step(X)
    counts.start()
    try:
        taken = []
        for times in (3, 0, 2):
            for _ in range(times):
                step(X)
            taken.append([count for _, count in counts.take()])
    finally:
        counts.stop()
    assert taken == [[3], [], [2]]


def test_hits_of_two_threads_are_all_counted(recording):
    @jax.jit
    def step(x):
        return x * 2

    step(X)
    runs = [threading.Thread(target=lambda: [step(X) for _ in range(500)]) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert rows(recording)["step"].hits == 1000


def test_a_kept_program_that_computes_with_an_old_value_is_told(recording):
    scale = 2.0

    @jax.jit
    def scaled(x):
        return x * scale

    scaled(X)
    scaled(X)
    assert recording.snapshot().functions[0].records[-1].kind == "hit"
    assert recording.snapshot().functions[0].records[-1].reasons == ()
    scale = 3.0
    scaled(X)
    last = recording.snapshot().functions[0].records[-1]
    assert (last.kind, last.reasons[0].tag, last.reasons[0].path) == ("hit", "closure", "scale")


def test_the_third_compile_for_one_cause_is_warned_of(recording):
    @jax.jit
    def grow(x):
        return x - 1

    for size in range(2, 5):
        grow(jnp.ones(size))
        assert rows(recording)["grow"].warning is None
    grow(jnp.ones(5))
    warning = rows(recording)["grow"].warning
    assert "`x`" in warning.en
    assert "3" in warning.en
    assert "3번" in warning.ko

"""Calls that C++ answers are counted without leaving it, and progress is seen from outside."""

from __future__ import annotations

import threading
import time

import pytest

import saem as jax
import saem.numpy as jnp
from saem.core.events import bus
from saem.observe import cards, language
from saem.observe.progress import IDLE, Watch, unrolled
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


@pytest.mark.parametrize("error", jax.errors.__dict__.values())
def test_every_error_of_the_engine_has_a_card(error):
    if isinstance(error, type) and issubclass(error, Exception):
        made = error.__new__(error)
        assert cards.card_of(made) in cards.CARDS.values()


def test_a_card_tells_the_way_of_the_value():
    def asks(x):
        y = x * 2
        return 1 if y > 0 else 2

    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        jax.jit(asks)(1.0)
    model = cards.error_model(caught.value, caught.value.__traceback__)
    assert [step.name for step in model.path] == ["x", "y", "gt", "bool"]
    assert model.path[1].place.text == "y = x * 2"
    assert model.got == ("bool[]",)
    assert len(model.mends) == 2
    for lang in language.LANGUAGES:
        assert getattr(model.title, lang)


def test_a_card_of_a_gradient():
    with pytest.raises(TypeError) as caught:
        jax.grad(lambda x: x * 2)(X)
    assert cards.error_model(caught.value).tag == "grad.C4"

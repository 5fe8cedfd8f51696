"""Does the engine tell watchers what it does, no more and no less, and never break for them?"""

from __future__ import annotations

import dataclasses
import functools
import json
import threading

import numpy as np
import pytest

import saem as jax
from saem import lax
from saem.core import events
from saem.core.events import bus

X = np.asarray([1.0, 2.0], np.float32)


@pytest.fixture
def seen():
    found = []
    end = bus.subscribe(found.append, eager=True)
    yield found
    end()


def of(found, kind):
    return [e for e in found if isinstance(e, kind)]


def test_one_call_is_told_in_order(seen):
    x = jax.device_put(X)
    seen.clear()
    jax.jit(lambda x: lax.sin(lax.mul(x, 1.375)))(x)
    kinds = [type(e).__name__ for e in seen]
    assert kinds == ["CacheMiss", "TraceBegin", "TraceEnd", "Lowering", "Compile"]
    numbers = [e.sequence for e in seen]
    assert numbers == sorted(set(numbers))
    assert {e.thread for e in seen} == {threading.get_ident()}
    assert {e.function.identity for e in seen} == {seen[0].function.identity}
    end = of(seen, events.TraceEnd)[0]
    assert end.equations == 2 and end.seconds > 0 and not end.failed
    compiled = of(seen, events.Compile)[0]
    assert not compiled.found and compiled.program == of(seen, events.Lowering)[0].program


def test_a_trace_that_is_used_again_is_told(seen):
    def f(x):
        return lax.mul(x, 2.125)

    jax.make_jaxpr(f)(X)
    seen.clear()
    jax.jit(f).lower(X)
    assert [type(e).__name__ for e in seen][:2] == ["CacheMiss", "TraceKept"]
    assert not of(seen, events.TraceBegin)


def test_the_transformations_of_a_function_are_told(seen):
    def f(x):
        return lax.mul(x, x)

    for made, said in [(f, ()), (jax.grad(f), ("grad",)), (jax.vmap(jax.grad(f)), ("vmap", "grad")),
                       (functools.partial(jax.jacrev(f)), ("jacrev",))]:
        jax.jit(made)(X if "vmap" in said else X[0])
        miss = of(seen, events.CacheMiss)[-1]
        assert (miss.function.name, miss.function.transforms) == ("f", said)
    renamed = jax.grad(f)
    renamed.__name__ = "slope"
    for made, x, said in [(jax.pmap(f), X[:1], ("f", ("pmap",))),
                          (jax.jit(renamed), X[0], ("slope", ("grad",)))]:
        made(x)
        last = of(seen, events.CacheMiss)[-1].function
        assert (last.name, last.transforms) == said


def test_events_are_plain_values(seen):
    f = jax.jit(lambda p, n: lax.mul(p["w"], float(n)), static_argnums=1)
    f({"w": X}, 3)
    lax.sin(X)
    assert len(seen) >= 6
    for event in seen:
        json.dumps(dataclasses.asdict(event))
        with pytest.raises(dataclasses.FrozenInstanceError):
            event.time = 0


def test_a_failing_trace_is_told_and_the_next_call_traces_again(seen):
    attempts = []

    @jax.jit
    def f(x):
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("first")
        return lax.add(x, x)

    with pytest.raises(ValueError, match="first"):
        f(X)
    assert [e.failed for e in of(seen, events.TraceEnd)] == [True]
    assert not of(seen, events.Compile)
    f(X)
    assert [e.failed for e in of(seen, events.TraceEnd)] == [True, False]


def test_a_failing_inner_trace_fails_both(seen):
    @jax.jit
    def inner(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jax.jit(lambda x: inner(x))(X)
    assert [(e.function.name, e.failed) for e in of(seen, events.TraceEnd)] == [
        ("inner", True), ("<lambda>", True)]


def test_moves_are_told_with_their_bytes(seen):
    x = jax.device_put(X)
    lax.add(x, x).tolist()
    moves = of(seen, events.Transfer)
    assert [(m.direction, m.bytes) for m in moves] == [("host_to_device", 8), ("device_to_host", 8)]
    assert moves[0].target == "cpu:0" and moves[0].caller.file == __file__


def test_eager_operations_are_told_with_their_line(seen):
    lax.cos(jax.device_put(X))
    (op,) = of(seen, events.EagerOp)
    assert op.primitive == "cos" and op.caller.function.startswith("test_eager_operations")


def test_a_broken_watcher_is_dropped_and_breaks_nothing():
    def broken(event):
        raise RuntimeError("watcher")

    before = len(bus.failures)
    end = bus.subscribe(broken)
    np.testing.assert_array_equal(jax.jit(lambda x: lax.sub(x, 0.5))(X), X - 0.5)
    assert len(bus.failures) == before + 1 and str(bus.failures[-1]) == "watcher"
    end()
    bus.failures.clear()
    assert not bus.active


def test_nothing_is_told_without_a_watcher():
    found = []
    end = bus.subscribe(found.append)
    end()
    jax.jit(lambda x: lax.add(x, 0.125))(X)
    assert found == [] and not bus.active and not bus.hits


def test_hits_are_counted_for_functions_compiled_before():
    f = jax.jit(lambda x: lax.add(x, x))
    x = jax.device_put(X)
    for _ in range(3):
        f(x)
    found = []
    end = bus.subscribe(found.append, hits=True)
    for _ in range(4):
        f(x)
    end()
    assert len(of(found, events.CacheHit)) == 4 and not of(found, events.CacheMiss)


def test_a_second_signature_is_a_second_miss(seen):
    f = jax.jit(lambda x: lax.add(x, x))
    f(X)
    f(X)
    f(X[:1])
    f(1.0)
    f(np.float32(1))
    shapes = [(m.signature.arguments[0].shape, m.signature.arguments[0].weak_type)
              for m in of(seen, events.CacheMiss)]
    assert shapes == [((2,), False), ((1,), False), ((), True), ((), False)]


def test_placement_is_part_of_the_signature(seen):
    f = jax.jit(lambda x: lax.mul(x, x))
    free, placed = jax.device_put(X), jax.device_put(X, jax.devices()[0])
    f(free)
    f(placed)
    f(placed)
    misses = of(seen, events.CacheMiss)
    assert [m.signature.arguments[0].committed for m in misses] == [False, True]
    assert len(of(seen, events.TraceEnd)) == 1
    assert [e.found for e in of(seen, events.Compile)][-1] is True


def test_versions_of_a_function_have_numbers_of_their_own(seen):
    def run():
        def step(x):
            return lax.add(x, x)

        jax.jit(step)(X)

    run()
    run()
    one, two = (m.function for m in of(seen, events.CacheMiss))
    assert (one.file, one.qualname, one.line) == (two.file, two.qualname, two.line)
    assert one.identity != two.identity

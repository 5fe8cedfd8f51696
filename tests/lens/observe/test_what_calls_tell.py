"""What do calls tell of buffers, bytes and settings, and only what is so?

Each fact is checked against what can be seen without events: addresses of buffers, deleted arrays,
NumPy's own view of memory.

Read before: ``saem.jit.signature``, ``saem.compile.arrays``.
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
from saem.core import events
from saem.core.events import bus

jnp = jax.numpy
P, Mesh, NamedSharding = (jax.sharding.PartitionSpec, jax.sharding.Mesh,
                          jax.sharding.NamedSharding)


@pytest.fixture
def heard():
    found: list[events.Event] = []
    end = bus.subscribe(found.append, hits=True)
    yield found
    end()


def of(found, kind):
    return [e for e in found if isinstance(e, kind)]


def test_a_donated_buffer_that_a_result_takes_over_is_told_as_reused(heard):
    f = jax.jit(lambda x, y: (x + 1.0, y.sum()), donate_argnums=(0,))
    for _ in range(2):  # the second call is a hit
        x, y = jnp.ones(1000), jnp.ones(1000)
        where = x.unsafe_buffer_pointer()
        out, _ = f(x, y)
        assert x.is_deleted() and not y.is_deleted()
        assert out.unsafe_buffer_pointer() == where
    told = of(heard, events.Donation)
    assert [(d.path, d.bytes, d.reused) for d in told] == [("x", 4000, True)] * 2
    assert told[0].function.name == "<lambda>"


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_a_donated_buffer_that_no_result_can_use_is_told_as_not_reused(heard):
    x = jnp.ones(1000)
    jax.jit(lambda p: p["w"].sum(), donate_argnums=0)({"w": x})
    assert [(d.path, d.reused) for d in of(heard, events.Donation)] == [("p['w']", False)]


def test_donation_over_several_devices_is_told_too(heard):
    mesh = Mesh(np.array(jax.devices()), ("d",))
    x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("d")))
    jax.jit(lambda x: x * 2.0, donate_argnums=0)(x)
    (told,) = of(heard, events.Donation)
    assert (told.path, told.bytes) == ("x", 32)


def test_without_donation_nothing_is_told_of_it(heard):
    jax.jit(lambda x: x + 1.0)(jnp.ones(3))
    assert not of(heard, events.Donation)


def test_numbers_are_fetched_once_and_told_once(heard):
    x = jax.device_put(np.arange(4, dtype=np.float32))
    y = x + 1
    heard.clear()
    y.tolist(), float(y[0]), repr(y)
    moves = of(heard, events.Transfer)
    assert [m.direction for m in moves if m.bytes == 16] == ["device_to_host"]


def test_numpy_shares_the_memory_of_an_array_on_the_cpu_so_no_bytes_move(heard):
    x = jnp.arange(1000.0) + 1
    heard.clear()
    view = np.asarray(x)
    assert view.__array_interface__["data"][0] == x.unsafe_buffer_pointer()
    assert not of(heard, events.Transfer)


def test_a_callback_is_told_with_its_name(heard):
    def double(x):
        return np.asarray(x) * 2

    shape = jax.ShapeDtypeStruct((3,), np.float32)
    jax.jit(lambda x: jax.pure_callback(double, shape, x))(jnp.ones(3)).block_until_ready()
    (told,) = of(heard, events.Callback)
    assert "double" in told.name and told.seconds >= 0
    (compiled,) = [e for e in of(heard, events.Compile) if e.function.name == "<lambda>"]
    assert compiled.flops is None  # XLA cannot tell the cost of what Python does


def test_costs_of_a_compile_are_xlas_own(heard):
    f = jax.jit(lambda x, y: x @ y)
    x = jnp.ones((32, 64))
    f(x, x.T)
    (told,) = [e for e in of(heard, events.Compile) if e.function.name == "<lambda>"]
    analysis = f.lower(x, x.T).compile().cost_analysis()
    assert told.flops == analysis["flops"] >= 2 * 32 * 64 * 32
    assert (told.argument_bytes, told.output_bytes) == (2 * 32 * 64 * 4, 32 * 32 * 4)


def last(recorder):
    records = [r for f in recorder.snapshot().functions for r in f.records]
    return max(records, key=lambda r: r.id)


def test_a_mesh_that_is_set_is_a_reason(recorder):
    f = jax.jit(lambda x: x + 1.0)
    x = np.ones(8, np.float32)
    f(x)
    with jax.set_mesh(Mesh(np.array(jax.devices()), ("d",))):
        f(x)
    assert ("mesh", None, "-", "d=8") in [(r.tag, r.path, r.old, r.new)
                                          for r in last(recorder).reasons]


def test_where_an_array_was_put_is_part_of_the_reason(recorder):
    f = jax.jit(lambda x: x + 1.0)
    f(jnp.ones(3))
    exec(compile("y = jax.device_put(jnp.ones(3), jax.devices()[2])", "mover.py", "exec"),
         names := {"jax": jax, "jnp": jnp})
    f(names["y"])
    says = [r.says.en for r in last(recorder).reasons]
    assert any("`cpu:2`" in text and "mover.py, line 1" in text for text in says), says


def test_a_hit_told_as_stale_is_counted_apart_from_true_ones(recorder):
    class Config:
        def __init__(self, rate):
            self.rate = rate

    cfg = Config(1.0)
    f = jax.jit(lambda x, cfg: x * cfg.rate, static_argnums=1)
    x = jnp.ones(3)
    for _ in range(3):
        f(x, cfg)
    recorder.settle()  # calls that C++ answers are looked at when a cell ends
    cfg.rate = 2.0
    for _ in range(2):
        np.testing.assert_array_equal(f(x, cfg), np.ones(3))
    (row,) = [f for f in recorder.snapshot().functions if f.summary.name == "<lambda>"]
    assert [(r.kind, r.count, [w.tag for w in r.reasons]) for r in row.records] == [
        ("found" if row.summary.found else "compile", 1, ["first_call"]), ("hit", 2, []),
        ("hit", 2, ["static_mutated"])]
    assert row.summary.hits == 4


def test_a_program_traced_before_anyone_watched_is_not_called_stale():
    scale = [1.0]
    f = jax.jit(lambda x: x * scale[0])
    x = jnp.ones(3)
    f(x)
    scale[0] = 2.0
    found: list[events.Event] = []
    end = bus.subscribe(found.append, hits=True)
    f(x)
    end()
    (hit,) = of(found, events.CacheHit)
    assert hit.stale == ()

"""The recorder: joined events, versions, threads, bounded memory."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading

import made
import pytest

from saem.core import events
from saem.observe.places import Places
from saem.observe.recorder import Recorder
from saem.observe.report import explain, history, history_text

KERNEL = pathlib.Path(__file__).parents[2] / "kernel"
STEP = made.function()
BASE = made.signature(made.argument())
OTHER = made.signature(made.argument(shape=(4,)))


@pytest.fixture
def watched():
    bus, recorder = events.Bus(), Recorder(named=Places())
    recorder.start(bus)
    yield bus, recorder
    assert bus.failures == []


def only_row(recorder):
    (row,) = recorder.snapshot().functions
    return row


def test_one_call_is_one_record(watched):
    bus, recorder = watched
    made.whole_call(bus, STEP, BASE)
    (record,) = only_row(recorder).records
    assert (record.kind, record.equations, record.signature) == ("compile", 5, "x: f32[3]")
    assert (record.seconds.trace, record.seconds.lower, record.seconds.compile) == (
        0.002, 0.001, 0.03)
    assert record.cost.flops == 12.0
    assert record.headline.en == "compiled in 30 ms; traced in 2 ms"
    assert only_row(recorder).summary.seconds == pytest.approx(0.033)


def test_traced_again_but_found(watched):
    bus, recorder = watched
    made.whole_call(bus, STEP, BASE)
    made.whole_call(bus, made.function(identity=2), BASE, found=True)
    row = only_row(recorder)
    assert row.records[1].headline.en == (
        "traced again in 2 ms; same program, so nothing was compiled")
    assert row.records[1].reasons[0].tag == "redefinition"
    summary = row.summary
    assert (summary.versions, summary.traces, summary.compiles, summary.found) == (2, 2, 1, 1)


def test_hits_are_counted_in_one_record(watched):
    bus, recorder = watched
    made.whole_call(bus, STEP, BASE)
    for _ in range(3):
        bus.publish(events.CacheHit(function=STEP, caller=None))
    row = only_row(recorder)
    assert [r.kind for r in row.records] == ["compile", "hit"]
    assert (row.records[1].count, row.summary.hits, row.summary.calls) == (3, 3, 4)


def test_inner_call_is_traced_and_not_compiled(watched):
    bus, recorder = watched
    inner = made.function("inner", identity=9)
    bus.publish(made.miss(STEP, BASE))
    bus.publish(made.miss(inner, BASE))
    bus.publish(made.trace_end(inner))
    bus.publish(made.trace_end(STEP))
    bus.publish(made.compiled(STEP))
    kinds = {f.summary.name: f.records[0].kind for f in recorder.snapshot().functions}
    assert kinds == {"step": "compile", "inner": "trace"}


def test_a_trace_that_raised_has_failed(watched):
    bus, recorder = watched
    bus.publish(made.miss(STEP, BASE))
    recorder.settle()
    assert only_row(recorder).records[0].kind == "failed"


def test_another_placement_compiles_without_a_trace(watched):
    bus, recorder = watched
    bus.publish(made.miss(STEP, BASE))
    bus.publish(made.compiled(STEP))
    record = only_row(recorder).records[0]
    assert record.kind == "compile"
    assert "trace was kept" in record.headline.en
    assert only_row(recorder).summary.traces == 0


def test_a_trace_of_before_that_is_used_again_is_no_failure(watched):
    bus, recorder = watched
    bus.publish(events.CacheMiss(function=STEP, signature=BASE, caller=None))
    bus.publish(events.TraceKept(function=STEP))
    recorder.settle()
    (record,) = only_row(recorder).records
    assert (record.kind, record.headline.en) == (
        "trace", "the trace of an earlier call was kept; not compiled by itself")


def test_rerun_cell_is_a_new_version_of_one_function(watched):
    bus, _ = watched
    places = Places()
    recorder = Recorder(named=places)
    recorder.start(bus)
    for run, file in enumerate(("cell-a.py", "cell-b.py"), start=1):
        places.announce(file, count=run, cell_id="one")
        made.whole_call(bus, made.function(file=file, identity=run), BASE)
    summary = only_row(recorder).summary
    assert (summary.versions, summary.place.label.en) == (2, "cell 2, line 3")


def test_memory_is_bounded():
    bus, recorder = events.Bus(), Recorder(functions=3, records=4)
    recorder.start(bus)
    for number in range(10):
        made.whole_call(bus, made.function(f"f{number}", identity=number), BASE)
    for size in range(10):
        made.whole_call(bus, made.function("f9", identity=9),
                        made.signature(made.argument(shape=(size + 1,))))
    rows = recorder.snapshot().functions
    assert [row.summary.name for row in rows] == ["f7", "f8", "f9"]
    assert (len(rows[-1].records), rows[-1].dropped) == (4, 7)


def test_the_function_unused_for_longest_goes_first_and_that_is_said():
    bus, recorder = events.Bus(), Recorder(functions=3, named=Places())
    recorder.start(bus)
    for number, name in enumerate(("step", "a", "b", "step", "c", "step", "d")):
        made.whole_call(bus, made.function(name, identity=number), BASE)
    model = recorder.snapshot()
    assert [row.summary.name for row in model.functions] == ["step", "c", "d"]
    assert model.functions[0].summary.traces == 3
    assert model.dropped == 2
    assert "… 2 functions not used for long" in history_text(model, "en")


def test_threads_write_while_others_read():
    bus, recorder = events.Bus(), Recorder(records=2000)
    recorder.start(bus)
    stop = threading.Event()
    seen: list[int] = []

    def read():
        while not stop.is_set():
            whole = recorder.snapshot()
            hash(whole)
            seen.append(sum(len(f.records) for f in whole.functions))

    def write(number):
        fun = made.function(f"f{number}", identity=number)
        for size in range(100):
            made.whole_call(bus, fun, made.signature(made.argument(shape=(size,))))

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert bus.failures == []
    assert seen == sorted(seen)
    assert [f.summary.compiles for f in recorder.snapshot().functions] == [100] * 4


def test_a_broken_watcher_is_dropped_and_recording_goes_on(watched):
    bus, recorder = watched
    recorder.watch(lambda summary, record: 1 / 0)
    told = []
    recorder.watch(lambda summary, record: told.append(record.kind))
    made.whole_call(bus, STEP, BASE)
    assert told[-1] == "compile"
    assert len(recorder.failures) == 1


def test_without_a_listener_nothing_is_published():
    bus = events.Bus()
    recorder = Recorder()
    recorder.start(bus, hits=True)
    # Hits are counted around the C++ path: no call has to leave it.
    assert (bus.active, bus.hits) == (True, False)
    recorder.stop()
    assert (bus.active, bus.hits) == (False, False)


def test_text_in_both_languages(watched):
    bus, recorder = watched
    made.whole_call(bus, STEP, BASE)
    made.whole_call(bus, STEP, OTHER)
    english, korean = (history_text(recorder.snapshot(), lang) for lang in ("en", "ko"))
    assert "argument `x`: `f32[3]` → `f32[4]`" in english
    assert "인자 `x`: `f32[3]` → `f32[4]`" in korean
    assert "first call" in repr(history(lang="en", of=recorder))
    shown = repr(explain(lang="en", of=recorder))
    assert "f32[4]" in shown
    assert "first call" not in shown


def test_asking_without_a_recording_says_what_to_do():
    with pytest.raises(RuntimeError, match="load_ext"):
        history(of=Recorder(), lang="en")


def test_asking_what_ran_starts_no_backend():
    code = (
        "from saem.observe.environment import environment; from saem.placement import devices; "
        "assert environment().devices == (); assert not devices.started(); devices.devices(); "
        "assert environment().devices[0].platform == 'cpu'"
    )
    environment = {**os.environ, "PYTHONPATH": str(KERNEL)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)

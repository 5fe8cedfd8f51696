"""Does the profiler record what was asked for?"""

from __future__ import annotations

import gzip
import json
import socket

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import profiler


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """One recording, as the events Chrome's viewers read."""
    folder = tmp_path_factory.mktemp("profile")

    @profiler.annotate_function
    def called():
        return jnp.sin(np.arange(3.0)).block_until_ready()

    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    with profiler.trace(folder, create_perfetto_trace=True, profiler_options=options):
        with profiler.TraceAnnotation("a named part"):
            called()
        with profiler.StepTraceAnnotation("a step", step_num=7):
            called()
    found = list(folder.glob("plugins/profile/*/perfetto_trace.json.gz"))
    assert len(found) == 1 and list(found[0].parent.glob("*.xplane.pb"))
    return json.loads(gzip.decompress(found[0].read_bytes()))["traceEvents"]


def test_what_is_annotated_is_recorded(recording):
    names = {event.get("name") for event in recording}
    assert "a named part" in names
    assert any("called" in str(name) for name in names)
    steps = [event for event in recording if event.get("name") == "a step"]
    assert steps and str(steps[0]["args"]["step_num"]) == "7"


def test_an_annotated_function_is_still_itself():
    def f(x, *, y=1):
        """Add."""
        return x + y

    annotated = profiler.annotate_function(f, name="adding")
    assert annotated(1, y=2) == 3 and annotated.__name__ == "f" and annotated.__doc__ == "Add."


def test_one_recording_at_a_time(tmp_path):
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="Only one profile"):
            profiler.start_trace(tmp_path)
    finally:
        profiler.stop_trace()
    with pytest.raises(ValueError, match="create_perfetto_trace"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)


def test_a_recording_ends_when_its_block_raises(tmp_path):
    with pytest.raises(ZeroDivisionError), profiler.trace(tmp_path):
        raise ZeroDivisionError
    assert list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()


def test_the_server_listens_and_is_alone():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    profiler.start_server(port)
    try:
        with pytest.raises(ValueError, match="Only one profiler server"):
            profiler.start_server(port)
        with socket.create_connection(("localhost", port), timeout=10):
            pass
    finally:
        profiler.stop_server()
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()


def test_the_memory_profile_is_a_gzipped_pprof_with_the_live_buffers(tmp_path):
    kept = jax.device_put(np.ones(12345, np.float32))
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    written = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    assert b"buffer" in written and kept.shape == (12345,)
    assert profiler.device_memory_profile()[:2] == b"\x1f\x8b"

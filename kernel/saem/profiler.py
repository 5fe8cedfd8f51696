"""Where does the time of a program go?  (``jax.profiler``)

XLA's own profiler records what its runtime, its programs and these annotations do, and writes it
for TensorBoard, XProf or Perfetto.

Read before: ``saem._jaxlib``.
Invariant: at most one recording and one server at a time (tests/kernel/test_profiler.py).
Source: the documentation of jax.profiler.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from saem import _jaxlib
from saem.core import errors
from saem.placement import devices as _devices

_profiler = _jaxlib.profiler
ProfileData = _jaxlib.profile_data.ProfileData
ProfileEvent = _jaxlib.profile_data.ProfileEvent
ProfilePlane = _jaxlib.profile_data.ProfilePlane
ProfileOptions = _profiler.ProfileOptions


def register_subprocess(pid: int, port: int) -> None:
    """Let a trace of this process include that of process ``pid``, which serves at ``port``."""
    _profiler.register_subprocess(pid, port)


class _Recording:
    """What is recorded now, if anything."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Any = None
        self.directory = ""
        self.for_perfetto = False
        self.server: Any = None


_now = _Recording()


def start_trace(log_dir: os.PathLike | str, create_perfetto_link: bool = False,
                create_perfetto_trace: bool = False,
                profiler_options: Any = None) -> None:
    """Start recording; ``stop_trace`` writes it under ``log_dir``.

    ``create_perfetto_trace`` adds a file ``perfetto_trace.json.gz``.
    Raises: RuntimeError if a recording runs already.
    """
    if create_perfetto_link:
        raise errors.explained(
            errors.ArgumentError, "profiler.C1",
            "create_perfetto_link=True would serve the recording to a web page, which is not done.",
            advice="Use create_perfetto_trace=True and open the file perfetto_trace.json.gz there.")
    with _now.lock:
        if _now.session is not None:
            raise RuntimeError(
                "Profile has already been started. Only one profile may be run at a time.")
        _devices.backend()  # a runtime that starts later would not be recorded
        _now.session = _profiler.ProfilerSession(profiler_options or ProfileOptions())
        _now.directory = os.fspath(log_dir)
        _now.for_perfetto = create_perfetto_trace


def stop_trace() -> None:
    """Stop the profile that ``start_trace`` began, and write it to the directory named there.

    Raises: RuntimeError if no profile is being recorded.
    """
    with _now.lock:
        session, _now.session = _now.session, None
        if session is None:
            raise RuntimeError("No profile started")
        session.stop_and_export(_now.directory)
        if _now.for_perfetto:
            written = Path(_now.directory).glob("plugins/profile/*/*.trace.json.gz")
            newest = max(written, key=lambda path: path.stat().st_mtime)
            shutil.copyfile(newest, newest.parent / "perfetto_trace.json.gz")


@contextlib.contextmanager
def trace(log_dir: os.PathLike | str, create_perfetto_link: bool = False,
          create_perfetto_trace: bool = False, profiler_options: Any = None) -> Iterator[None]:
    """Record what happens inside the block and write it under ``log_dir``."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Return a server, started on ``port``, from which a profiler may ask for recordings.

    Raises: ValueError if one runs already.
    """
    with _now.lock:
        if _now.server is not None:
            raise ValueError("Only one profiler server can be active at a time.")
        if requires_backend:
            _devices.backend()
        _now.server = _profiler.start_server(port)
        return _now.server


def stop_server() -> None:
    """End the server.

    Raises: ValueError if there is none.
    """
    with _now.lock:
        if _now.server is None:
            raise ValueError("No active profiler server.")
        _now.server = None


_TraceMe: Any = _profiler.TraceMe


class TraceAnnotation(_TraceMe):
    """``with TraceAnnotation("load"):`` names what the host does inside the block."""


class StepTraceAnnotation(TraceAnnotation):
    """``with StepTraceAnnotation("train", step_num=i):`` marks one step of a program."""

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable, name: str | None = None, **decorator_kwargs: Any) -> Callable:
    """Return ``func`` with each call annotated by ``name``, its own name if None."""
    label = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(func))

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return the live buffers of ``backend`` as a gzipped pprof file."""
    return gzip.compress(_devices.backend(backend).heap_profile())


def save_device_memory_profile(filename: Any, backend: str | None = None) -> None:
    """Write ``device_memory_profile`` to ``filename``."""
    Path(filename).write_bytes(device_memory_profile(backend))


__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation",
    "TraceAnnotation", "annotate_function", "device_memory_profile", "register_subprocess",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace",
    "trace",
]

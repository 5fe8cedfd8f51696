"""How does JupyterLab's side panel follow a kernel?

It opens a comm named ``saem.lens`` with a greeting; the kernel answers with ``hello`` and a
snapshot, then appends records as they come.  All messages are the dataclasses of
``saem.observe.schema``; what does not fit them is answered by an error and otherwise ignored.

Read before: ``saem.observe.schema`` (the messages), ``saem.lens.pulse``.  Read after: nothing.
Invariant: a message is handled from immutable snapshots alone, so it may come on any thread
(tests/lens/test_panel.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from saem.lens.pulse import Pulse
from saem.observe import language
from saem.observe.environment import environment
from saem.observe.recorder import Recorder, recorder
from saem.observe.schema import (
    VERSION,
    Append,
    Failure,
    FunctionSummary,
    Greeting,
    Hello,
    Progress,
    Record,
    Request,
    Snapshot,
    Text,
)
from saem.observe.typed_json import SchemaError, from_json, to_json

TARGET = "saem.lens"
_PAUSE = 0.05
_OTHER_VERSION = Text(
    "The panel and the kernel speak different versions of the protocol. Install the same version "
    "of saem in JupyterLab's environment and in the kernel's.",
    "패널과 커널의 프로토콜 버전이 다릅니다. JupyterLab 환경과 커널 환경에 같은 버전의 saem을 "
    "설치하십시오.",
)
_NOT_UNDERSTOOD = Text(
    "The kernel did not understand a message.", "커널이 메시지를 이해하지 못했습니다."
)


class Panel:
    """Serves every panel that opens a comm to this kernel."""

    def __init__(self, of: Recorder = recorder) -> None:
        self._recorder = of
        self._lock = threading.Lock()
        # By client: a page that is loaded again does not close the comm that it had.
        self._comms: dict[str, Any] = {}
        self._waiting: dict[int, Append] = {}
        self._pulse = Pulse(self._send_waiting, _PAUSE)
        self._end: Callable[[], None] = of.watch(self._record)

    def opened(self, comm: Any, message: dict[str, Any]) -> None:
        """A panel opened ``comm``; ``message`` carries its greeting."""
        try:
            greeting: Greeting = from_json(Greeting, message["content"]["data"])
        except (SchemaError, KeyError, TypeError):
            _send(comm, Failure("error", "message", _NOT_UNDERSTOOD))
            return
        if greeting.version != VERSION:
            _send(comm, Failure("error", "version", _OTHER_VERSION))
            return
        language.follow(greeting.locale)
        comm.on_msg(lambda received: self.received(comm, received))
        comm.on_close(lambda _message: self.closed(comm))
        _send(comm, Hello("hello", VERSION, language.current(), environment()))
        client = greeting.client or comm.comm_id
        with self._lock:
            earlier = self._comms.pop(client, None)
            self._comms[client] = comm
        if earlier is not None:
            earlier.close()
        self._snapshot(comm)

    def received(self, comm: Any, message: dict[str, Any]) -> None:
        """Take in a request of the panel."""
        try:
            request: Request = from_json(Request, message["content"]["data"])
        except (SchemaError, KeyError, TypeError):
            _send(comm, Failure("error", "message", _NOT_UNDERSTOOD))
            return
        if request.what == "snapshot":
            self._snapshot(comm)
            return
        self._recorder.clear()
        with self._lock:
            self._waiting.clear()
            comms = list(self._comms.values())
        for each in comms:
            self._snapshot(each)

    def progress(self, running: Progress) -> None:
        """Tell every panel what has been running for a while, or that it ended."""
        with self._lock:
            comms = list(self._comms.values())
        for comm in comms:
            _send(comm, running)

    def closed(self, comm: Any) -> None:
        """A panel went away."""
        with self._lock:
            self._comms = {name: c for name, c in self._comms.items() if c is not comm}

    def flush(self) -> None:
        """Send now what waits to be sent."""
        self._pulse.flush()

    def stop(self) -> None:
        """Serve no longer, and close all comms."""
        self._end()
        self._pulse.stop()
        with self._lock:
            comms, self._comms = list(self._comms.values()), {}
        for comm in comms:
            comm.close()

    def _snapshot(self, comm: Any) -> None:
        _send(comm, Snapshot("snapshot", self._recorder.snapshot()))

    def _record(self, summary: FunctionSummary, record: Record) -> None:
        if self._comms:
            with self._lock:
                self._waiting[record.id] = Append("append", summary, record)
            self._pulse.beat()

    def _send_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            comms = list(self._comms.values())
        for append in waiting.values():
            for comm in comms:
                _send(comm, append)


def _send(comm: Any, message: Any) -> None:
    comm.send(to_json(message))

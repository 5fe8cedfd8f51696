"""How does the panel get known data? This stands in for ``%load_ext saem.lens`` in a kernel.

Run in a cell with the history to publish; it speaks the panel's protocol over the comm.

Read before: ``saem.observe.schema``.  Read after: ``test_lab.py``.
Invariant: it sends what it was given and computes nothing.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import comm

COMMS: list[Any] = []


def publish(path: str, version: int = 2) -> None:
    """Serve the history in a JSON file to every panel that connects."""
    history = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))

    def opened(channel: Any, message: dict[str, Any]) -> None:
        assert message["content"]["data"]["type"] == "hello"
        COMMS.append(channel)
        environment = history["environment"]
        hello = {"version": version, "language": "en", "environment": environment}
        channel.send({"type": "hello", **hello})
        if version == 2:
            channel.send({"type": "snapshot", "history": history})
        channel.on_msg(lambda received: answered(channel, received["content"]["data"]))

    def answered(channel: Any, request: dict[str, Any]) -> None:
        functions = [] if request["what"] == "clear" else history["functions"]
        channel.send({"type": "snapshot", "history": {**history, "functions": functions}})

    comm.get_comm_manager().register_target("saem.lens", opened)


def append(function: dict[str, Any], record: dict[str, Any]) -> None:
    """Send one more record to every panel."""
    for channel in COMMS:
        channel.send({"type": "append", "function": function, "record": record})

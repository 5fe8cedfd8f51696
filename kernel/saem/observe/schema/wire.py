"""What do the kernel and JupyterLab's panel send each other (Jupyter comm, target ``saem.lens``)?

Read before: ``schema.history``.  Read after: ``saem.lens.panel``, ``extension/src/lab``.
Invariant: what does not fit is refused (tests/lens/test_panel.py).
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from saem.observe.schema.common import Environment, Place, Text
from saem.observe.schema.history import FunctionSummary, HistoryModel, Record


@dataclasses.dataclass(frozen=True)
class Hello:
    """Kernel → panel, first of all: the protocol's version, what runs, and the language."""

    type: Literal["hello"]
    version: int
    language: Literal["en", "ko"]
    environment: Environment


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """Kernel → panel: everything so far; replaces what the panel had."""

    type: Literal["snapshot"]
    history: HistoryModel


@dataclasses.dataclass(frozen=True)
class Append:
    """Kernel → panel: one record, new or (same id) renewed, and its row's new summary."""

    type: Literal["append"]
    function: FunctionSummary
    record: Record


@dataclasses.dataclass(frozen=True)
class Progress:
    """Kernel → panel: what has been running for a while; ``activity`` is idle when it ended.

    ``began`` is a time in seconds since 1970.  ``why`` says, after ten seconds, why it may be slow.
    """

    type: Literal["progress"]
    activity: Literal["trace", "lower", "compile", "transfer", "idle"]
    function: str
    place: Place | None
    began: float
    why: Text | None


@dataclasses.dataclass(frozen=True)
class Failure:
    """Kernel → panel: a request could not be served; ``tag`` is ``version`` or ``message``."""

    type: Literal["error"]
    tag: Literal["version", "message"]
    message: Text


@dataclasses.dataclass(frozen=True)
class Greeting:
    """Panel → kernel, in the comm's open message: its schema's version, and its locale (ko_KR).

    ``client`` names the browser's page, before and after it is loaded again; "" is no name.
    """

    type: Literal["hello"]
    version: int
    locale: str
    client: str


@dataclasses.dataclass(frozen=True)
class Request:
    """Panel → kernel: send a snapshot, or forget the history (answered by an empty snapshot)."""

    type: Literal["request"]
    what: Literal["snapshot", "clear"]

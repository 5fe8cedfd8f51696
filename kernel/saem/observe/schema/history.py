"""What is shown of the calls that were traced and compiled?

Read before: ``schema.common``.  Read after: ``saem.observe.recorder``.
Invariant: a record whose id is known replaces the earlier one.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from saem.observe.schema.common import Environment, Place, Text

Tag = Literal[
    "first_call",
    "shape",
    "dtype",
    "weak_type",
    "static_value",
    "structure",
    "position_keyword",
    "committed",
    "device",
    "sharding",
    "mesh",
    "redefinition",
    "closure",
    "config",
    "donation",
    "options",
    "static_mutated",
    "nested",
    "dropped",
]
# The key of the row that counts operations which were loaded from disk; its name is a word.
OPERATIONS = "saem:operations"
# So many functions, and records of each, are kept in the kernel and on the page.
MOST_FUNCTIONS = 500
MOST_RECORDS = 500
Kind = Literal["trace", "compile", "found", "hit", "failed"]


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why a call was traced again.

    ``tag`` is stable.  ``path`` names the argument or setting in the caller's words.  ``says`` is
    the sentence, ``advice`` what would avoid it (empty where there is nothing to avoid).
    """

    tag: Tag
    path: str | None
    old: str | None
    new: str | None
    says: Text
    advice: Text


@dataclasses.dataclass(frozen=True)
class Seconds:
    """Time spent in each step; None where the step was not reached."""

    trace: float | None = None
    lower: float | None = None
    compile: float | None = None


@dataclasses.dataclass(frozen=True)
class Cost:
    """XLA's own estimates for a compiled program; None where it gives none."""

    flops: float | None
    bytes_accessed: float | None
    code_bytes: int | None
    argument_bytes: int | None
    output_bytes: int | None
    temp_bytes: int | None


@dataclasses.dataclass(frozen=True)
class Record:
    """One mark on a function's row.

    ``kind``: ``trace`` (traced; not or not yet compiled), ``compile`` (XLA compiled it), ``found``
    (traced, and the same program was there already: nothing compiled), ``hit`` (no trace),
    ``failed`` (the trace raised).  ``count`` is 1, or the number of calls in a run of hits.
    ``headline`` says what happened and what it cost.  A record whose ``id`` is known replaces the
    earlier one: a ``trace`` becomes a ``compile`` when XLA is done.
    """

    id: int
    kind: Kind
    time: float
    count: int
    version: int
    signature: str
    headline: Text
    reasons: tuple[Reason, ...] = ()
    seconds: Seconds = Seconds()
    equations: int | None = None
    program: str | None = None
    cost: Cost | None = None
    caller: Place | None = None


@dataclasses.dataclass(frozen=True)
class FunctionSummary:
    """One row: a function as a person means it, in all its versions.

    ``key`` identifies the row.  ``place`` is where its newest version was written.  ``calls``
    counts the calls seen (misses and hits); None while hits are not recorded.  ``seconds`` is the
    time spent in tracing, lowering and compiling together.  ``warning`` is there once one cause
    has made it compile three times.
    """

    key: str
    name: str
    place: Place | None
    versions: int
    traces: int
    compiles: int
    found: int
    hits: int
    calls: int | None
    seconds: float
    warning: Text | None


@dataclasses.dataclass(frozen=True)
class FunctionHistory:
    """A row with its marks, oldest first; ``dropped`` older marks were forgotten to save memory."""

    summary: FunctionSummary
    records: tuple[Record, ...]
    dropped: int


@dataclasses.dataclass(frozen=True)
class HistoryModel:
    """What was traced and compiled, function by function, in the order of their first call.

    ``dropped`` is how many functions are left out: of those unused for longest, where there are
    too many.
    """

    kind: Literal["history"]
    version: int
    functions: tuple[FunctionHistory, ...]
    environment: Environment
    dropped: int = 0

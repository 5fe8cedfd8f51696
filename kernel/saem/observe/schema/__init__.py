"""Which JSON does Saem show and send: jaxprs, compile histories and the live panel's messages?

Every model here is a frozen dataclass of plain values.  ``typed_json`` turns one into JSON and
back; ``python -m saem.observe.schema --typescript`` writes the same models as TypeScript types
(``extension/src/schema.ts``), so kernel and browser cannot disagree about a field.

Sentences that a person reads travel as ``Text``, made in the kernel in both languages: a renderer
never composes a sentence.  Words between backticks in a ``Text`` are code.  Fixed labels (column
heads, kinds of mark) come from ``saem.observe.messages`` and reach TypeScript as data.

Read before: ``saem.core.events``.  Read after: ``saem.observe.recorder``, ``.jaxpr_model``.
Invariant: ``from_json(cls, to_json(model)) == model``, and ``VERSION`` grows when a field changes
its meaning or goes away (tests/lens/test_schema.py).
"""

from __future__ import annotations

import dataclasses
from typing import Literal

VERSION = 1

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
Kind = Literal["trace", "compile", "found", "hit", "failed"]
KeyAction = Literal["created", "split", "folded", "returned", "used", "unknown"]


@dataclasses.dataclass(frozen=True)
class Text:
    """One sentence or label in both languages; code stands between backticks."""

    en: str
    ko: str


@dataclasses.dataclass(frozen=True)
class Place:
    """A place in the user's source, as a person would name it.

    ``label`` is ``cell 5, line 2`` or ``model.py, line 12``.  ``cell_id`` is the notebook's id of
    the cell, ``cell`` its execution count and ``run`` how many times that cell had run, where the
    code came from a notebook; else None.  ``text`` is the source line, without its indentation.
    Lines count from 1, columns from 0.
    """

    label: Text
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    text: str
    cell: int | None
    cell_id: str | None
    run: int | None


@dataclasses.dataclass(frozen=True)
class Device:
    """One device: its number, platform (cpu, gpu, tpu) and description."""

    id: int
    platform: str
    description: str


@dataclasses.dataclass(frozen=True)
class Environment:
    """What ran: versions of the engine, of jaxlib and of Python, and the devices."""

    engine: str
    jaxlib: str
    python: str
    devices: tuple[Device, ...]


# ---- a jaxpr ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Atom:
    """A variable or literal as printed: ``text`` is ``a`` or ``2.0:f32[]``, ``type`` ``f32[3]``.

    ``id`` is unique in the whole model for a variable (``v3``) and None for a literal or ``_``.
    """

    id: str | None
    text: str
    type: str


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One static parameter of an equation, printed on one line."""

    name: str
    value: str


@dataclasses.dataclass(frozen=True)
class Nested:
    """A jaxpr held by a parameter of an equation; ``label`` is ``jaxpr`` or ``branches[0]``."""

    label: str
    body: Body


@dataclasses.dataclass(frozen=True)
class Equation:
    """One equation.  ``id`` is unique in the model and says where it is: ``e2`` or ``e2.0.1``.

    ``stack`` lists the transformations it came from, outermost first.  ``colour`` tells whether it
    computes the function (forward) or carries cotangents back (backward).
    """

    id: str
    primitive: str
    parameters: tuple[Parameter, ...]
    inputs: tuple[Atom, ...]
    outputs: tuple[Atom, ...]
    place: Place | None
    stack: tuple[str, ...]
    colour: Literal["forward", "backward"]
    nested: tuple[Nested, ...]


@dataclasses.dataclass(frozen=True)
class Body:
    """A jaxpr: binders of constants and inputs, equations in order, and the outputs."""

    constants: tuple[Atom, ...]
    inputs: tuple[Atom, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]


@dataclasses.dataclass(frozen=True)
class Token:
    """A piece of a printed line; tokens of a line, joined, are the line after its indentation.

    ``id`` is the variable's id for a variable, else None.
    """

    text: str
    kind: Literal["variable", "type", "primitive", "parameter", "literal", "keyword", "plain"]
    id: str | None


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of the printed jaxpr.  ``equation`` is the id of the equation it belongs to."""

    indent: int
    tokens: tuple[Token, ...]
    equation: str | None


@dataclasses.dataclass(frozen=True)
class ProgramLine:
    """One line of StableHLO text and the ids of the equations it came from."""

    text: str
    equations: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class SourceBlock:
    """Source code that equations point into: consecutive lines of one file or cell.

    ``file`` equals ``Place.file`` of the equations that point here; ``first_line`` is the number
    of ``lines[0]``.
    """

    file: str
    label: Text
    first_line: int
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class JaxprModel:
    """A jaxpr to be shown as text and as graph, linked to the source and, if known, to StableHLO.

    ``dot`` is Graphviz source whose nodes have the ids of equations (``e2``) and variables
    (``v3``) as node ids (attribute ``id``), so that a click on the drawing finds the equation.
    """

    kind: Literal["jaxpr"]
    version: int
    title: str
    body: Body
    lines: tuple[Line, ...]
    sources: tuple[SourceBlock, ...]
    dot: str
    program: tuple[ProgramLine, ...] | None
    environment: Environment


# ---- a compile history --------------------------------------------------------------------------


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

    trace: float | None
    lower: float | None
    compile: float | None


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
    reasons: tuple[Reason, ...]
    seconds: Seconds
    equations: int | None
    program: str | None
    cost: Cost | None
    caller: Place | None


@dataclasses.dataclass(frozen=True)
class FunctionSummary:
    """One row: a function as a person means it, in all its versions.

    ``key`` identifies the row.  ``place`` is where its newest version was written.  ``calls``
    counts the calls seen (misses and hits); None while hits are not recorded.  ``seconds`` is the
    time spent in tracing, lowering and compiling, all told.
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


@dataclasses.dataclass(frozen=True)
class FunctionHistory:
    """A row with its marks, oldest first; ``dropped`` older marks were forgotten to save memory."""

    summary: FunctionSummary
    records: tuple[Record, ...]
    dropped: int


@dataclasses.dataclass(frozen=True)
class HistoryModel:
    """What was traced and compiled, function by function, in the order of their first call."""

    kind: Literal["history"]
    version: int
    functions: tuple[FunctionHistory, ...]
    environment: Environment


# ---- PRNG keys ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class KeyUse:
    """One use of a key: ``action`` is used (a sampler drew from it) or split.

    ``reused``: the key had been used before, so the same random numbers come again.
    """

    action: KeyAction
    place: Place | None
    reused: bool


@dataclasses.dataclass(frozen=True)
class KeyNode:
    """One PRNG key.  ``id`` is unique in the model; ``key`` are its words in hexadecimal.

    ``action`` tells how it was made: created (of a seed), split or folded (of ``parent``), returned
    (by a jitted function that took ``parent``), or unknown (before the recording).  ``number``
    counts the children of one parent.
    """

    id: str
    key: str
    action: KeyAction
    parent: str | None
    number: int
    place: Place | None
    uses: tuple[KeyUse, ...]
    reused: bool


@dataclasses.dataclass(frozen=True)
class KeysModel:
    """The family trees of PRNG keys, parents before children; ``reused`` counts keys used again.

    ``dropped`` older keys were forgotten to save memory.
    """

    kind: Literal["keys"]
    version: int
    keys: tuple[KeyNode, ...]
    reused: int
    dropped: int
    environment: Environment


# ---- messages of the live panel (Jupyter comm, target ``saem.lens``) ----------------------------


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
class Failure:
    """Kernel → panel: a request could not be served; ``tag`` is ``version`` or ``message``."""

    type: Literal["error"]
    tag: Literal["version", "message"]
    message: Text


@dataclasses.dataclass(frozen=True)
class Greeting:
    """Panel → kernel, in the comm's open message: the version it speaks, and its locale (ko_KR)."""

    type: Literal["hello"]
    version: int
    locale: str


@dataclasses.dataclass(frozen=True)
class Request:
    """Panel → kernel: send a snapshot, or forget the history (answered by an empty snapshot)."""

    type: Literal["request"]
    what: Literal["snapshot", "clear"]


MODELS: tuple[type, ...] = (JaxprModel, HistoryModel)
# Models that no view of the browser draws yet.
KEPT_MODELS: tuple[type, ...] = (KeysModel,)
KERNEL_MESSAGES: tuple[type, ...] = (Hello, Snapshot, Append, Failure)
PANEL_MESSAGES: tuple[type, ...] = (Greeting, Request)

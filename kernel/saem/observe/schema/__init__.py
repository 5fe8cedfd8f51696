"""Which JSON does Saem show and send: jaxprs, compile histories and the live panel's messages?

Every model here is a frozen dataclass of plain values.  ``typed_json`` turns one into JSON and
back; ``python -m saem.observe.schema --typescript`` writes the same models as TypeScript types
(``extension/src/schema.ts``), so kernel and browser cannot disagree about a field.

Sentences that a person reads travel as ``Text``, made in the kernel in both languages: a renderer
never composes a sentence.  Words between backticks in a ``Text`` are code.  Fixed labels (column
heads, kinds of mark) come from ``saem.observe.words`` and reach TypeScript as data.

Read before: ``saem.core.events``.  Read after: ``saem.observe.recorder``, ``.jaxpr_model``.
Invariant: ``from_json(cls, to_json(model)) == model``, and ``VERSION`` grows when a field changes
its meaning or goes away (tests/lens/test_schema.py).
"""

from __future__ import annotations

import typing

from saem.observe.schema.common import VERSION, Device, Environment, Place, Text
from saem.observe.schema.history import (
    MOST_FUNCTIONS,
    MOST_RECORDS,
    OPERATIONS,
    Cost,
    FunctionHistory,
    FunctionSummary,
    HistoryModel,
    Kind,
    Reason,
    Record,
    Seconds,
    Tag,
)
from saem.observe.schema.jaxpr import (
    Atom,
    Body,
    Equation,
    JaxprModel,
    Kernel,
    Line,
    Nested,
    Parameter,
    ProgramLine,
    SourceBlock,
    Token,
)
from saem.observe.schema.keys import KeyAction, KeyNode, KeysModel, KeyUse
from saem.observe.schema.views import (
    Attempt,
    AutodiffModel,
    BenchModel,
    BenchStage,
    CompiledModel,
    DevicesModel,
    DiffRow,
    Donated,
    ErrorModel,
    GateRow,
    GatesModel,
    HeldArray,
    Lesson,
    Moved,
    PathStep,
    Picture,
    Residual,
    SeenFunction,
    SeenLine,
    SeenLoop,
    SeenValue,
    Shard,
    Step,
    StepsModel,
    TracersModel,
)
from saem.observe.schema.wire import (
    Append,
    Failure,
    Greeting,
    Hello,
    Progress,
    Request,
    Snapshot,
)

Model = (
    JaxprModel
    | HistoryModel
    | KeysModel
    | TracersModel
    | StepsModel
    | AutodiffModel
    | BenchModel
    | CompiledModel
    | DevicesModel
    | ErrorModel
    | GatesModel
)
MODELS: tuple[type, ...] = typing.get_args(Model)
KERNEL_MESSAGES: tuple[type, ...] = (Hello, Snapshot, Append, Progress, Failure)
PANEL_MESSAGES: tuple[type, ...] = (Greeting, Request)

__all__ = [
    "KERNEL_MESSAGES",
    "MODELS",
    "MOST_FUNCTIONS",
    "MOST_RECORDS",
    "OPERATIONS",
    "PANEL_MESSAGES",
    "VERSION",
    "Append",
    "Atom",
    "Attempt",
    "AutodiffModel",
    "BenchModel",
    "BenchStage",
    "Body",
    "CompiledModel",
    "Cost",
    "Device",
    "DevicesModel",
    "DiffRow",
    "Donated",
    "Environment",
    "Equation",
    "ErrorModel",
    "Failure",
    "FunctionHistory",
    "FunctionSummary",
    "GateRow",
    "GatesModel",
    "Greeting",
    "HeldArray",
    "Hello",
    "HistoryModel",
    "JaxprModel",
    "Kernel",
    "KeyAction",
    "KeyNode",
    "KeyUse",
    "KeysModel",
    "Kind",
    "Lesson",
    "Line",
    "Model",
    "Moved",
    "Nested",
    "Parameter",
    "PathStep",
    "Picture",
    "Place",
    "ProgramLine",
    "Progress",
    "Reason",
    "Record",
    "Request",
    "Residual",
    "Seconds",
    "SeenFunction",
    "SeenLine",
    "SeenLoop",
    "SeenValue",
    "Shard",
    "Snapshot",
    "SourceBlock",
    "Step",
    "StepsModel",
    "Tag",
    "Text",
    "Token",
    "TracersModel",
]

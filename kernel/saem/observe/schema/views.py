"""What is shown of tracers, of values on their way, of transformations, devices and errors?

Read before: ``schema.common``, ``schema.jaxpr``.  Read after: ``saem.lens``, which makes these.
Invariant: plain values only.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from saem.observe.schema.common import Device, Environment, Place, Text
from saem.observe.schema.history import Cost
from saem.observe.schema.jaxpr import JaxprModel

# ---- the X-ray of tracers -----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SeenValue:
    """One local variable after a line ran.

    ``kind``: ``plain`` (an ordinary Python value), ``array`` (numbers on a device), ``abstract`` (a
    tracer that knows only its type), ``concrete`` (a tracer over known numbers).  ``stack`` lists
    the transformations that watch it, outermost first: ``jit``, ``vmap[axis=0 size=32]``, ``jvp``.
    """

    name: str
    kind: Literal["plain", "array", "abstract", "concrete"]
    type: str
    stack: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class SeenLine:
    """One line of a traced function: how often it ran, and what it assigned (the last time)."""

    line: int
    text: str
    runs: int
    values: tuple[SeenValue, ...]


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Python asked a tracer for numbers: ``what`` is ``bool``, ``int``, …; it got them if
    ``allowed``."""

    line: int
    what: str
    name: str
    allowed: bool
    says: Text


@dataclasses.dataclass(frozen=True)
class SeenLoop:
    """A Python loop that was unrolled: its line, how often it went round, and its equations."""

    line: int
    times: int
    equations: int
    says: Text


@dataclasses.dataclass(frozen=True)
class SeenFunction:
    """One function that ran under a trace: ``stack`` are the transformations of its arguments."""

    name: str
    file: str
    label: Text
    cell_id: str | None
    calls: int
    stack: tuple[str, ...]
    arguments: tuple[SeenValue, ...]
    lines: tuple[SeenLine, ...]
    attempts: tuple[Attempt, ...]
    loops: tuple[SeenLoop, ...]
    result: SeenValue | None


@dataclasses.dataclass(frozen=True)
class TracersModel:
    """The source of every traced function, annotated.

    ``error`` is how the call ended, if badly; ``explained`` is the card of an error of the engine.
    """

    kind: Literal["tracers"]
    version: int
    title: str
    functions: tuple[SeenFunction, ...]
    error: str | None
    environment: Environment
    explained: ErrorModel | None = None


# ---- a jaxpr on real values ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Picture:
    """The numbers of one variable: statistics, and a small grid of them (rows of equal length).

    The grid shows at most 12 × 24 numbers of the first slice; None stands for what is not finite.
    ``text`` are the first few as text.
    """

    name: str
    variable: str | None
    type: str
    grid: tuple[tuple[float | None, ...], ...]
    minimum: float | None
    maximum: float | None
    mean: float | None
    deviation: float | None
    nans: int
    infs: int
    size: int
    text: str


@dataclasses.dataclass(frozen=True)
class Step:
    """What one equation gave."""

    equation: str
    outputs: tuple[Picture, ...]


@dataclasses.dataclass(frozen=True)
class StepsModel:
    """A jaxpr run equation by equation; ``born`` are equations that made a first NaN or Inf."""

    kind: Literal["steps"]
    version: int
    jaxpr: JaxprModel
    inputs: tuple[Picture, ...]
    steps: tuple[Step, ...]
    born: tuple[str, ...]
    environment: Environment


# ---- transformations ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Residual:
    """A value that the forward pass keeps for the backward pass."""

    variable: str | None
    name: str
    type: str
    bytes: int
    maker: str | None
    readers: tuple[str, ...]
    place: int | None


@dataclasses.dataclass(frozen=True)
class AutodiffModel:
    """A gradient's program: which equations go forward, which back, and what is kept between."""

    kind: Literal["autodiff"]
    version: int
    jaxpr: JaxprModel
    saved: tuple[Residual, ...]
    bytes: int
    environment: Environment


@dataclasses.dataclass(frozen=True)
class DiffRow:
    """One row of an aligned diff: equations on the left and right, None where there is none."""

    left: str | None
    right: str | None
    same: bool


@dataclasses.dataclass(frozen=True)
class BenchStage:
    """A function after one more transformation; ``error`` says why there is no program."""

    label: str
    jaxpr: JaxprModel | None
    rows: tuple[DiffRow, ...]
    saved: tuple[Residual, ...]
    bytes: int
    error: Text | None


@dataclasses.dataclass(frozen=True)
class BenchModel:
    """A function under a list of transformations, stage by stage, each beside the one before.

    ``chips`` are the transformations chosen (innermost first), ``offered`` those to choose from.
    """

    kind: Literal["bench"]
    version: int
    title: str
    chips: tuple[str, ...]
    offered: tuple[str, ...]
    stages: tuple[BenchStage, ...]
    environment: Environment


# ---- a compiled program -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class CompiledModel:
    """What XLA made of a program: the jaxpr with its kernels, and what it costs.

    If it runs on several ``devices``, kernels and costs are those of one.
    """

    kind: Literal["compiled"]
    version: int
    jaxpr: JaxprModel
    cost: Cost
    seconds: float | None
    environment: Environment
    devices: int = 1


# ---- devices ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Shard:
    """A rectangle of an array (its first two axes, in parts of the whole) and its devices."""

    top: float
    left: float
    height: float
    width: float
    devices: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class HeldArray:
    """An array by the name it has in the notebook, and where it is."""

    name: str
    type: str
    bytes: int
    committed: bool
    sharding: str
    shards: tuple[Shard, ...]


@dataclasses.dataclass(frozen=True)
class Moved:
    """Transfers of one kind between two places."""

    source: str
    target: str
    count: int
    bytes: int
    place: Place | None


@dataclasses.dataclass(frozen=True)
class Donated:
    """Buffers given away to calls of one function."""

    function: str
    path: str
    count: int
    bytes: int
    reused: int


@dataclasses.dataclass(frozen=True)
class DevicesModel:
    """Where arrays are, what moved between places, and what was given away."""

    kind: Literal["devices"]
    version: int
    devices: tuple[Device, ...]
    arrays: tuple[HeldArray, ...]
    moved: tuple[Moved, ...]
    donated: tuple[Donated, ...]
    environment: Environment


# ---- errors and gates ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PathStep:
    """A value on its way to an error: its name and the line that made it.

    Without a place it is an argument, what asked for the value, or what holds it.
    """

    name: str
    place: Place | None


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A lesson to read: ``file`` is its notebook, without folder and ending."""

    label: Text
    file: str


@dataclasses.dataclass(frozen=True)
class ErrorModel:
    """An exception explained: what was needed, what came, and ways to mend it."""

    kind: Literal["error"]
    version: int
    tag: str
    name: str
    title: Text
    needed: Text
    got: tuple[str, ...]
    place: Place | None
    path: tuple[PathStep, ...]
    mends: tuple[Text, ...]
    lesson: Lesson
    message: str


@dataclasses.dataclass(frozen=True)
class GateRow:
    """One gate of one learner's notebook; ``state`` is right, wrong, waiting or unanswered."""

    notebook: str
    gate: str
    question: str
    guess: str
    truth: str
    state: Literal["right", "wrong", "waiting", "unanswered"]


@dataclasses.dataclass(frozen=True)
class GatesModel:
    """The gates of a folder of notebooks, for the leader of a session."""

    kind: Literal["gates"]
    version: int
    rows: tuple[GateRow, ...]
    unreadable: tuple[str, ...]

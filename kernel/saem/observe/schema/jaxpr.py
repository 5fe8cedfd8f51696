"""What is shown of a jaxpr?

Read before: ``schema.common``.  Read after: ``saem.observe.jaxpr_model``.
Invariant: an equation's id says where it is, and is unique in its model.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from saem.observe.schema.common import Environment, Place, Text


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

    ``place`` is a number in the model's ``places``.  ``stack`` lists the transformations it came
    from, outermost first.  ``colour`` is whether it computes the function (forward) or carries
    cotangents back (backward).  ``bytes`` are those of its operands and results; ``flops`` is XLA's
    estimate of this equation alone, None where it was not asked for.
    """

    id: str
    primitive: str
    parameters: tuple[Parameter, ...]
    inputs: tuple[Atom, ...]
    outputs: tuple[Atom, ...]
    place: int | None
    stack: tuple[str, ...]
    colour: Literal["forward", "backward"]
    bytes: int
    flops: float | None
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
class Kernel:
    """One instruction that XLA runs: a fusion of operations, a call, a loop, …

    ``share`` is its part of the bytes that all instructions touch.  ``equations`` are those of the
    jaxpr that ended in it, by their place in the source.
    """

    name: str
    kind: str
    operations: tuple[str, ...]
    type: str
    bytes: int
    share: float
    equations: tuple[str, ...]
    text: str


@dataclasses.dataclass(frozen=True)
class JaxprModel:
    """A jaxpr as text and as graph, linked to the source and, if known, to StableHLO.

    ``places`` are what equations point to by number, and ``callers``, for each of them, the numbers
    of the places of the calls that led there, the innermost first; ``program`` is the StableHLO
    text, and ``kernels`` are what XLA made of it.
    """

    kind: Literal["jaxpr"]
    version: int
    title: str
    body: Body
    lines: tuple[Line, ...]
    places: tuple[Place, ...]
    callers: tuple[tuple[int, ...], ...]
    sources: tuple[SourceBlock, ...]
    program: tuple[ProgramLine, ...] | None
    kernels: tuple[Kernel, ...] | None
    environment: Environment

"""What do all models share: version, sentences, places, devices?

Read before: nothing.  Read after: ``saem.observe.schema``.
Invariant: plain values only.
"""

from __future__ import annotations

import dataclasses

VERSION = 2


@dataclasses.dataclass(frozen=True)
class Text:
    """One sentence or label in both languages; code is between backticks."""

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

"""What does a lesson say, cell by cell?

A lesson source is an English MyST notebook: text cells begin with ``+++ {"id": "…"}``, code cells
are ``{code-cell}`` blocks with ``:id:`` and perhaps ``:tags:``.

Read before: ``saem.l10n.project``, ``saem.l10n.pycode``.  Read after: ``saem.l10n.units``.
Invariant: every cell has an id of its own that an author wrote (tests/notebooks/test_units.py).
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import jupytext

from saem.l10n import pycode
from saem.l10n.project import clean

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class SourceError(ValueError):
    """A lesson source is not written as it must be."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell: ``kind`` is ``'markdown'`` or ``'code'``."""

    id: str
    kind: str
    source: str
    tags: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A lesson: its name (``01-arrays``) and its cells."""

    name: str
    cells: tuple[Cell, ...]


def read(path: Path) -> Lesson:
    """The lesson in the file ``path``.  Raises SourceError, ValueError."""
    try:
        return parse(path.stem, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: a lesson needs to be UTF-8 text: {error}") from error


def parse(name: str, text: str) -> Lesson:
    """The lesson ``name`` written in ``text``.

    Raises SourceError; ValueError if a merge conflict is left in it.
    """
    notebook = jupytext.reads(clean(text, name), "md:myst")
    cells: list[Cell] = []
    seen: set[str] = set()
    for position, node in enumerate(notebook.cells, start=1):
        identity = node.metadata.get("id")
        start = node.source.strip().split("\n")[0][:60]
        if not isinstance(identity, str) or not _ID.fullmatch(identity):
            raise SourceError(
                f"{name}: cell {position} ({start!r}) needs an id of letters, digits, - and _; "
                f'got {identity!r}. Write +++ {{"id": "…"}} before text, :id: … in a code cell.'
            )
        if identity in seen:
            raise SourceError(f"{name}: two cells have the id {identity!r}; rename one of them.")
        seen.add(identity)
        if node.cell_type == "code":
            try:
                pycode.shape(node.source)
            except SyntaxError as error:
                raise SourceError(f"{name}: cell {identity}, line {error.lineno}: "
                                  f"not Python: {error.msg}.") from error
        tags = tuple(node.metadata.get("tags", ()))
        cells.append(Cell(identity, node.cell_type, node.source, tags))
    return Lesson(name, tuple(cells))

"""What, exactly, does a translator translate?

A unit is a top-level Markdown block, a code comment, or a string given to ``t("…")``.  Its context
is ``cell-id|kind|index``.  Code fences, raw HTML, rules and display formulas are no units.

Read before: ``saem.l10n.source``, ``saem.l10n.pycode``.  Read after: ``saem.l10n.catalog``.
Invariant: composing a cell of unchanged units gives the cell (tests/notebooks/test_units.py).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

from markdown_it import MarkdownIt

from saem.l10n import pycode
from saem.l10n.source import Cell, Lesson

_VERBATIM = {"fence", "code_block", "html_block", "hr"}
_KINDS = {
    "heading_open": "heading",
    "paragraph_open": "text",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "blockquote_open": "quote",
    "table_open": "table",
}


@dataclasses.dataclass(frozen=True)
class Unit:
    """One thing to translate."""

    cell: str
    kind: str
    index: int
    text: str

    @property
    def context(self) -> str:
        """The name of this unit, unlike any other in the lesson."""
        return f"{self.cell}|{self.kind}|{self.index}"


@dataclasses.dataclass(frozen=True)
class Piece:
    """A unit's place in its cell: lines ``first`` to ``last`` (exclusive), from ``column`` on."""

    unit: Unit
    first: int
    last: int
    column: int = 0


def units(lesson: Lesson) -> list[Unit]:
    """All units of a lesson, in reading order; a string used twice is one unit."""
    found: list[Unit] = []
    strings: set[str] = set()
    for cell in lesson.cells:
        found += [piece.unit for piece in pieces(cell)]
        for unit in _strings(cell):
            if unit.text not in strings:
                strings.add(unit.text)
                found.append(unit)
    return found


def pieces(cell: Cell) -> list[Piece]:
    """The units that stand in a cell's own text (strings do not: code keeps them)."""
    return list(_blocks(cell) if cell.kind == "markdown" else _comments(cell))


def compose(cell: Cell, translate: Callable[[Unit], str]) -> str:
    """The cell's source with every unit replaced by ``translate(unit)``."""
    lines = cell.source.split("\n")
    for piece in reversed(pieces(cell)):
        new = translate(piece.unit).split("\n")
        if piece.unit.kind == "comment":
            head = lines[piece.first][: piece.column]
            if head.strip():
                new = [f"{head}# {' '.join(new)}"]
            else:
                new = [f"{head}# {line}".rstrip() for line in new]
        lines[piece.first : piece.last] = new
    return "\n".join(lines)


@functools.lru_cache(maxsize=4096)  # one check of the lessons asks for each text three times
def blocks(text: str) -> tuple[tuple[str, int, int], ...]:
    """Top-level Markdown blocks that hold prose: kind, first line, last line (exclusive)."""
    lines = text.split("\n")
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.level or token.map is None or token.nesting < 0 or token.type in _VERBATIM:
            continue
        first, last = token.map
        while last > first and not lines[last - 1].strip():
            last -= 1
        if not _formula("\n".join(lines[first:last])):
            found.append((_KINDS[token.type], first, last))
    return tuple(found)


def _blocks(cell: Cell) -> Iterator[Piece]:
    lines = cell.source.split("\n")
    counts: dict[str, int] = {}
    for kind, first, last in blocks(cell.source):
        index = counts[kind] = counts.get(kind, -1) + 1
        yield Piece(Unit(cell.id, kind, index, "\n".join(lines[first:last])), first, last)


def _comments(cell: Cell) -> Iterator[Piece]:
    lines = cell.source.split("\n")
    groups: list[Piece] = []
    for line, column, text in pycode.comments(cell.source):
        alone = not lines[line][:column].strip()
        last = groups[-1] if groups else None
        if alone and last and last.last == line and last.column == column and _alone(lines, last):
            unit = dataclasses.replace(last.unit, text=f"{last.unit.text}\n{text}")
            groups[-1] = dataclasses.replace(last, unit=unit, last=line + 1)
        else:
            unit = Unit(cell.id, "comment", len(groups), text)
            groups.append(Piece(unit, line, line + 1, column))
    yield from groups


def _alone(lines: list[str], piece: Piece) -> bool:
    return not lines[piece.first][: piece.column].strip()


def _strings(cell: Cell) -> Iterator[Unit]:
    if cell.kind == "code":
        for index, text in enumerate(dict.fromkeys(pycode.strings(cell.source))):
            yield Unit(cell.id, "string", index, text)


def _formula(text: str) -> bool:
    bare = text.strip()
    return len(bare) > 4 and bare.startswith("$$") and bare.find("$$", 2) == len(bare) - 2

"""How is a position named for the user, and which versions of a function are *one function*?

The engine has file names.  In a notebook each run of a cell is compiled under a name of its own,
which means nothing to a person; ``saem.lens``, which sees the cells run, gives ``places`` the cell
that a file name stands for.

Read before: ``saem.core.events`` (Position, FunctionRef).  Read after: ``saem.observe.recorder``.
Invariant: a label names a cell only if that cell was announced (tests/lens/test_ipython.py).
"""

from __future__ import annotations

import dataclasses
import linecache
import os
import threading

from saem.core.events import FunctionRef, Position
from saem.observe.schema import Place, Text

_MAGIC_FILES = ("<timed exec>", "<timed eval>", "<magic-timeit>")


@dataclasses.dataclass(frozen=True)
class CellRun:
    """One run of a notebook cell: execution count, notebook's id if known, and which run it is."""

    count: int
    cell_id: str | None
    run: int


class Places:
    """Names of the cells that ran in this process."""

    def __init__(self, limit: int = 4096) -> None:
        self._lock = threading.Lock()
        self._cells: dict[str, CellRun] = {}
        self._runs: dict[str, int] = {}
        self._current: CellRun | None = None
        self._counts: dict[str, int] = {}
        self._limit = limit

    def announce(self, file: str, count: int, cell_id: str | None) -> CellRun:
        """Say that cell ``cell_id``, as execution ``count``, now runs as ``file``."""
        with self._lock:
            owner = cell_id or file
            self._runs[owner] = self._runs.get(owner, 0) + 1
            cell = CellRun(count, cell_id, self._runs[owner])
            self._cells.pop(file, None)
            self._cells[file] = cell
            self._current = cell
            if cell_id is not None:
                self._counts[cell_id] = count
            while len(self._cells) > self._limit:
                self._cells.pop(next(iter(self._cells)))
            return cell

    def count_of(self, cell_id: str | None) -> int | None:
        """The execution count with which a cell of this id last ran; None if it did not."""
        return None if cell_id is None else self._counts.get(cell_id)

    def current(self) -> str | None:
        """The id of the cell that ran last (its execution count where it has none)."""
        cell = self._current
        return None if cell is None else cell.cell_id or str(cell.count)

    def running_cell(self) -> Place | None:
        """The cell that ran last, as a place without a line; None outside notebooks."""
        cell = self._current
        if cell is None:
            return None
        label = Text(f"cell {cell.count}", f"셀 {cell.count}")
        return Place(label, "", 1, 0, 1, 0, "", "", cell.count, cell.cell_id, cell.run)

    def cell(self, file: str) -> CellRun | None:
        """The latest run of the cell that is compiled as ``file``; None if it is not a cell."""
        if file in _MAGIC_FILES:
            return self._current
        return self._cells.get(file)

    def label(self, file: str, line: int) -> Text:
        """``cell 5, line 2``, or ``model.py, line 12``."""
        block = self.block_label(file)
        return Text(f"{block.en}, line {line}", f"{block.ko} {line}행")

    def block_label(self, file: str) -> Text:
        """``cell 5``, or ``model.py``."""
        cell = self.cell(file)
        if cell is None:
            name = os.path.basename(file) or file
            return Text(name, name)
        return Text(f"cell {cell.count}", f"셀 {cell.count}")

    def place(self, position: Position | None) -> Place | None:
        """The position in a person's words."""
        if position is None or not position.file:
            return None
        cell = self.cell(position.file)
        return Place(
            label=self.label(position.file, position.line),
            file=position.file,
            line=position.line,
            column=position.column,
            end_line=position.end_line,
            end_column=position.end_column,
            function=position.function,
            text=linecache.getline(position.file, position.line).strip(),
            cell=cell.count if cell else None,
            cell_id=cell.cell_id if cell else None,
            run=cell.run if cell else None,
        )

    def place_of_function(self, function: FunctionRef) -> Place | None:
        """Where the function was written."""
        line = max(function.line, 1)
        return self.place(
            Position(function.file, line, 0, line, 0, function.qualname) if function.file else None
        )

    def key(self, function: FunctionRef) -> str:
        """A text that is equal for two versions of what a person calls one function.

        A named top-level function of a notebook is known by its name, as Python does: defining it
        again, in the same cell or in another, replaces it.  A function without a name, or inside
        another, is known by its cell (or file) too; a lambda also by its line.
        """
        cell = self.cell(function.file)
        anonymous = "<" in function.qualname
        if cell is not None and not anonymous:
            return f"notebook|{function.qualname}"
        owner = (cell.cell_id if cell else None) or function.file
        line = f"|{function.line}" if function.qualname.endswith("<lambda>") else ""
        return f"{owner}|{function.module}|{function.qualname}{line}"


places = Places()

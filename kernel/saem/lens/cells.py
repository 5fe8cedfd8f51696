"""Which notebook cell does a file name stand for?

IPython compiles every run of a cell under a made-up file name.  Before each run this module gives
``saem.observe.places`` (and the engine's error messages) the cell that the name means.

Read before: ``saem.observe.places``.  Read after: ``saem.lens.extension``.
Invariant: silent runs, which no person started, are not announced (tests/lens/test_ipython.py).
"""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from saem.core.errors import cell_names
from saem.observe.places import Places, places

# How many cells that ran before the lens was loaded are looked up.
_PAST = 200


def file_of(shell: InteractiveShell, raw: str, transformed: str | None, count: int) -> str:
    """The file name under which IPython compiles a cell."""
    if transformed is None:
        try:
            transformed = shell.transform_cell(raw)
        except SyntaxError:
            transformed = raw
    return shell.compile.get_code_name(raw, transformed, count)


def announce(shell: InteractiveShell, info: Any, named: Places = places) -> None:
    """Name the cell that is about to run, of which IPython's ``pre_run_cell`` gives ``info``."""
    if info.silent:
        return
    transformed = getattr(info, "transformed_cell", None)
    cell_id = getattr(info, "cell_id", None)
    # What runs outside the history, on behalf of a cell, goes by that cell's number.
    known = None if info.store_history else named.count_of(cell_id)
    count = _count(shell, info.store_history) if known is None else known
    file = file_of(shell, info.raw_cell, transformed, _count(shell, info.store_history))
    _name(file, count, cell_id, named)


def _count(shell: InteractiveShell, stored: bool) -> int:
    """The execution count of the cell about to run.

    Versions of IPython differ in whether ``execution_count`` has been raised by now; the inputs
    stored so far, which start with an empty one, do not.
    """
    history = shell.history_manager
    if stored and history is not None:
        return len(history.input_hist_raw)
    return shell.execution_count


def announce_past(shell: InteractiveShell, named: Places = places) -> None:
    """Name the cells that ran before, and the one that runs now."""
    history = shell.history_manager
    raws = list(history.input_hist_raw) if history is not None else []
    start = max(1, len(raws) - _PAST)
    for count in range(start, len(raws)):
        current = count == len(raws) - 1
        cell_id = current_cell_id(shell) if current else None
        # The history has no newlines at a cell's end, but the file's name depends on them.
        sent = (_requested(shell, "content", "code") or "") if current else ""
        raw = sent if sent.rstrip("\n") == raws[count] else raws[count]
        _name(file_of(shell, raw, None, count), count, cell_id, named)


def name_running(shell: InteractiveShell, file: str, named: Places = places) -> None:
    """Name a file of code that the running cell compiles by itself."""
    history = shell.history_manager
    stored = None if history is None else len(history.input_hist_raw) - 1
    _name(file, stored or shell.execution_count - 1, current_cell_id(shell), named)


def current_cell_id(shell: InteractiveShell) -> str | None:
    """The notebook's id of the running cell, if the front end sent one with the request."""
    return _requested(shell, "metadata", "cellId")


def _requested(shell: InteractiveShell, part: str, name: str) -> str | None:
    """A text in the front end's request to run this cell; None outside a kernel."""
    ask = getattr(shell, "get_parent", None)
    parent = ask() if ask is not None else None
    found = parent.get(part, {}).get(name) if isinstance(parent, dict) else None
    return found if isinstance(found, str) else None


def _name(file: str, count: int, cell_id: str | None, named: Places) -> None:
    named.announce(file, count, cell_id)
    # The engine's messages are English, as JAX's are.
    cell_names[file] = named.block_label(file).en

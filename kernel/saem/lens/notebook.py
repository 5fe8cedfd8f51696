"""What does the notebook around a call hold, and what did learners answer in a folder of notebooks?

Read before: ``saem.lens.views``.  Read after: nothing.
Invariant: notebooks are read and never written (tests/lens/test_views.py).
"""

from __future__ import annotations

import html.parser
import json
import pathlib
from collections.abc import Iterator
from typing import Any

from IPython.core.getipython import get_ipython

from saem.lens import magics, views
from saem.observe import words
from saem.observe.schema import VERSION, GateRow, GatesModel

LONGEST = 200  # letters of an answer that an overview shows


def devices() -> views.View:
    """Show where the notebook's arrays are, what moved between places, what was donated."""
    shell = get_ipython()
    return views.devices({} if shell is None else magics.visible(shell))


def gates(folder: str | pathlib.Path) -> views.View:
    """Show which gates were answered, and how, in all notebooks below ``folder``.

    Raises: FileNotFoundError if there is no such folder.
    """
    rows: list[GateRow] = []
    unreadable: list[str] = []
    root = pathlib.Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(words.say_plainly("gates.folder", folder=root))
    for file in sorted(root.rglob("*.ipynb")):
        if ".ipynb_checkpoints" in file.parts:
            continue
        name = _printable(file.relative_to(root).as_posix())
        try:
            notebook = json.loads(file.read_text(encoding="utf-8-sig"))
            rows += _rows(name, notebook)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            unreadable.append(name)
    return views.View(GatesModel("gates", VERSION, tuple(rows), tuple(unreadable)))


def _printable(text: str) -> str:
    """The text with '?' for what no file can hold: parts of letters, names in another encoding."""
    return text.encode("utf-8", "replace").decode()


class _Verdicts(html.parser.HTMLParser):
    """Finds the verdicts in an output: elements that carry ``data-gate`` and ``data-state``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {k: _cut(_printable(v or "")) for k, v in attributes}
        if "data-gate" in named:
            self.found.append(named)


def _cut(text: str) -> str:
    """The text, or its beginning: one long answer must not hide those of others."""
    return text if len(text) <= LONGEST else text[:LONGEST - 1] + "…"


# What the outputs of one gate may say, the less certain first: where a question was answered after
# the cell that judges it ran, that cell still shows it unanswered.
_CERTAINTY = {"waiting": 1, "right": 2, "wrong": 2}


def _rows(name: str, notebook: dict[str, Any]) -> Iterator[GateRow]:
    """The gates of one notebook, each with its latest state in the outputs."""
    latest: dict[str, dict[str, str]] = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            shown = output.get("data", {}).get("text/html", "")
            reader = _Verdicts()
            reader.feed("".join(shown) if isinstance(shown, list) else str(shown))
            for verdict in reader.found:
                before = latest.get(verdict["data-gate"], {})
                new, old = (_CERTAINTY.get(v.get("data-state", ""), 0) for v in (verdict, before))
                latest[verdict["data-gate"]] = {**before, **verdict} if new >= old else {
                    **verdict, **before}
    for gate, verdict in latest.items():
        state = verdict.get("data-state", "unanswered")
        known = state if state in ("right", "wrong", "waiting") else "unanswered"
        yield GateRow(name, gate, verdict.get("data-question", ""), verdict.get("data-guess", ""),
                      verdict.get("data-truth", ""), known)  # type: ignore[arg-type]

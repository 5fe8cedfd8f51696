"""What did a reviewer remark on a translation?

A note is a line of the PO entry's translator comment: ``note (minsu): …``.

Read before: nothing.  Read after: ``saem.l10n.review``.
Invariant: a note changes neither the translation nor its signature (tests/notebooks/test_desk.py).
"""

from __future__ import annotations

import re

import polib

_NOTE = re.compile(r"^note \(([\w.@+-]+)\): (.*)$", re.M)


def add(entry: polib.POEntry, by: str, words: str) -> None:
    """Add a note of one line."""
    line = f"note ({by}): {words}"
    entry.tcomment = f"{entry.tcomment}\n{line}" if entry.tcomment else line


def of(entry: polib.POEntry) -> list[tuple[str, str]]:
    """All notes, with who wrote each."""
    return _NOTE.findall(entry.tcomment or "")

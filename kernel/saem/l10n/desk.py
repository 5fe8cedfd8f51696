"""How does a reviewer change a translation without losing anybody's work?

A ``Desk`` holds one lesson's PO file as it was read.  Each change names the version that the
reviewer saw; if the file on disk is another by now, the change is refused.

Read before: ``saem.l10n.review``.  Read after: ``saem.l10n.review_server``.
Invariant: a change is written whole, to the file that the reviewer saw, or not at all
(tests/notebooks/test_desk.py).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

import polib

from saem.l10n import catalog, notes
from saem.l10n.project import Project, write
from saem.l10n.review import ReviewError, check_name, replace, review
from saem.l10n.source import Lesson, read
from saem.l10n.units import units


class ChangedError(ReviewError):
    """The file is not the one that the reviewer saw."""


class Desk:
    """One lesson in one language on the desk of ``reviewer``."""

    def __init__(self, project: Project, lesson: str, language: str, reviewer: str):
        check_name(reviewer)
        self.project, self.language, self.reviewer = project, language, reviewer
        self.source = project.lesson(lesson)
        self.path = project.catalog(self.source.stem, language)
        self._lock = threading.Lock()

    def lesson(self) -> Lesson:
        """The lesson as it is now."""
        return read(self.source)

    def read(self) -> tuple[polib.POFile, str]:
        """The PO file and its version."""
        text = self.path.read_text(encoding="utf-8")
        return catalog.parse(text, self.path.name), version(text)

    def edit(self, unit: str, text: str, seen: str) -> str:
        """Put ``text`` in place of a translation; the reviewer becomes its translator."""

        def act(entry: polib.POEntry) -> None:
            if not text.strip():
                raise ReviewError(f"{unit}: a translation cannot be empty.",
                                  f"{unit}: 번역은 비워 둘 수 없습니다.")
            replace(entry, text, self.reviewer)

        return self._change(unit, seen, act)

    def accept(self, unit: str, seen: str) -> str:
        """Accept a translation.  Raises ReviewError if the reviewer translated it."""
        return self._change(unit, seen, lambda entry: review(entry, self.reviewer))

    def comment(self, unit: str, text: str, seen: str) -> str:
        """Leave a note beside a translation for the next person who works on it."""

        def act(entry: polib.POEntry) -> None:
            words = " ".join(text.split())
            if not words:
                raise ReviewError(f"{unit}: a comment cannot be empty.",
                                  f"{unit}: 메모는 비워 둘 수 없습니다.")
            notes.add(entry, self.reviewer, words)

        return self._change(unit, seen, act)

    def _change(self, unit: str, seen: str, act: Callable[[polib.POEntry], None]) -> str:
        """Do ``act`` to the entry of ``unit`` and write the file; returns its new version."""
        with self._lock:
            po, now = self.read()
            if now != seen:
                raise ChangedError(f"{self.path.name} was changed by somebody else since this page "
                                   "read it. Load the page again; nothing was written.",
                                   f"{self.path.name}: 이 페이지를 연 뒤에 다른 사람이 파일을 "
                                   "바꾸어 저장하지 않았습니다. 페이지를 다시 여십시오.")
            entry = catalog.active(po).get(unit)
            texts = {u.context: u.text for u in units(self.lesson())}
            if entry is None or entry.msgid != texts.get(unit):
                raise ChangedError(f"{unit} is not what the lesson has now. "
                                   "Run `saem l10n merge`; nothing was written.",
                                   f"{unit}: 지금의 수업과 달라 저장하지 않았습니다. "
                                   "`saem l10n merge`를 실행하십시오.")
            act(entry)
            text = catalog.text(po)
            write(self.path, text)
            return version(text)


def version(text: str) -> str:
    """A name for one state of a file, the same only for the same text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]

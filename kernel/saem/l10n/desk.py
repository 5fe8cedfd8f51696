"""How does a reviewer change a translation without losing anybody's work?

A ``Desk`` holds one lesson's PO file.  Each change names the entry as the reviewer saw it
(``catalog.version``); if the entry in the file is another by now, the change is refused.  Reviewers
of other entries, and commands, may write the same file meanwhile: each waits for the other.

Read before: ``saem.l10n.review``.  Read after: ``saem.l10n.review_server``.
Invariant: a change is written whole, to the entry that the reviewer saw, or not at all
(tests/notebooks/test_desk.py).
"""

from __future__ import annotations

from collections.abc import Callable

import polib

from saem.l10n import catalog, notes
from saem.l10n.project import Project
from saem.l10n.review import ReviewError, check_name, replace, review
from saem.l10n.source import Lesson, read
from saem.l10n.units import units


class ChangedError(ReviewError):
    """The entry is not as the reviewer saw it."""


class Desk:
    """One lesson in one language on the desk of ``reviewer``."""

    def __init__(self, project: Project, lesson: str, language: str, reviewer: str):
        check_name(reviewer)
        self.project, self.language, self.reviewer = project, language, reviewer
        self.source = project.lesson(lesson)
        self.path = project.catalog(self.source.stem, language)
        if not self.path.is_file():
            raise ReviewError(
                f"{self.path} is not there yet. Run `saem l10n merge {lesson}` first.",
                f"{self.path} 파일이 아직 없습니다. "
                f"먼저 `saem l10n merge {lesson}`을 실행하십시오.")

    def lesson(self) -> Lesson:
        """The lesson as it is now."""
        return read(self.source)

    def read(self) -> polib.POFile:
        """The PO file as it is now."""
        return catalog.load(self.path, self.language)

    def edit(self, unit: str, text: str, seen: str) -> None:
        """Put ``text`` in place of a translation; the reviewer becomes its translator."""

        def act(entry: polib.POEntry) -> None:
            if not text.strip():
                raise ReviewError(f"{unit}: a translation cannot be empty.",
                                  f"{unit}: 번역은 비워 둘 수 없습니다.")
            replace(entry, text, self.reviewer)

        self._change(unit, seen, act)

    def accept(self, unit: str, seen: str) -> None:
        """Accept a translation.  Raises ReviewError if the reviewer translated it."""
        self._change(unit, seen, lambda entry: review(entry, self.reviewer))

    def comment(self, unit: str, text: str, seen: str) -> None:
        """Leave a note beside a translation for the next person who works on it."""

        def act(entry: polib.POEntry) -> None:
            words = " ".join(text.split())
            if not words:
                raise ReviewError(f"{unit}: a comment cannot be empty.",
                                  f"{unit}: 메모는 비워 둘 수 없습니다.")
            notes.add(entry, self.reviewer, words)

        self._change(unit, seen, act)

    def _change(self, unit: str, seen: str, act: Callable[[polib.POEntry], None]) -> None:
        """Do ``act`` to the entry of ``unit`` and write the file."""
        with self.project.changing():
            po = self.read()
            entry = catalog.active(po).get(unit)
            texts = {u.context: u.text for u in units(self.lesson())}
            if entry is None or entry.msgid != texts.get(unit):
                raise ReviewError(f"{unit} is not what the lesson has now. "
                                  "Run `saem l10n merge`; nothing was written.",
                                  f"{unit}: 지금의 수업과 달라 저장하지 않았습니다. "
                                  "`saem l10n merge`를 실행하십시오.")
            if catalog.version(entry) != seen:
                raise ChangedError(f"Somebody else changed {unit} since this page read it. It is "
                                   "shown as it is now; nothing was written.",
                                   f"{unit}: 이 페이지를 연 뒤에 다른 사람이 바꾸어 저장하지 "
                                   "않았습니다. 지금의 번역을 보여 드립니다.")
            act(entry)
            catalog.save(po, self.path)

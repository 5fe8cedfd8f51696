"""In which language is a lesson shown, and where are its strings?

The language is, in this order: what the notebook's setup cell gave to ``begin``; the environment
variable ``SAEM_LANG``; English.  The lens has the same one.  Strings of lessons are
looked up in ``strings/<language>.json``, which ``saem l10n build`` writes from the PO files; what
the gates themselves say is in ``observe.words``.

Read before: ``saem.observe.language``.  Read after: ``saem.lesson.gates``.
Invariant: a string without a translation is shown as it is (tests/notebooks/test_gates.py).
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any

from saem.observe import words
from saem.observe.language import LANGUAGES, choose, current

_lesson: str | None = None
# A language that lessons are written in, but neither gates nor the lens: those stay English.
_language: str | None = None


def begin(lesson: str, language: str | None = None) -> None:
    """Say which lesson this notebook is, and in which language it and the lens are shown.

    Raises ValueError for a language that no lesson is written in.
    """
    global _lesson, _language
    _language = None
    if language is not None and language not in LANGUAGES and _has_strings(language):
        _language = language
    elif language is not None:
        choose(language)
    _lesson = lesson


def language() -> str:
    """The language of this process: from ``begin``, else ``SAEM_LANG``, else English."""
    return _language or current()


def t(text: str) -> str:
    """The string ``text`` of the current lesson in the learner's language; as it is if unknown."""
    return _strings(language()).get(_lesson or "", {}).get(text, text)


def say(key: str, **values: Any) -> str:
    """One of the gates' own sentences, filled in."""
    return words.say(f"gate.{key}", **values)


def _has_strings(language: str) -> bool:
    return (importlib.resources.files("saem.lesson") / "strings" / f"{language}.json").is_file()


@functools.cache
def _strings(language: str) -> dict[str, dict[str, str]]:
    """All lessons' strings in one language: ``{lesson: {English: translation}}``."""
    file = importlib.resources.files("saem.lesson") / "strings" / f"{language}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

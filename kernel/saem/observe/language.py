"""In which language does Saem write for the user, and how does it write numbers?

Read before: nothing.  Read after: ``saem.observe.messages``.
Invariant: the chosen language is always one of ``LANGUAGES`` (tests/lens/test_messages.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Literal

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = ("en", "ko")


def from_locale(locale: str) -> Language:
    """The language for a locale such as ``ko_KR``, ``ko-KR`` or ``en``; English if not known.

    Windows writes ``Korean_Korea.949``.
    """
    return "ko" if re.split(r"[-_.]", locale.lower())[0] in ("ko", "kor", "korean") else "en"


class _Choice:
    """The language of this process, and whether a person chose it."""

    language: Language = from_locale(os.environ.get("SAEM_LANG", ""))
    by_person: bool = "SAEM_LANG" in os.environ


_choice = _Choice()


def current() -> Language:
    """The language chosen for this process."""
    return _choice.language


def choose(language: str) -> Language:
    """Choose the language of this process: ``'en'`` or ``'ko'``.

    Raises: ValueError for any other language.
    """
    _choice.language = checked(language)
    _choice.by_person = True
    _tell()
    return _choice.language


def follow(locale: str) -> Language:
    """Take the language of a front end's locale, unless a person chose one."""
    if not _choice.by_person:
        _choice.language = from_locale(locale)
        _tell()
    return _choice.language


# Called when the language changes, so that what is shown already can be shown in it.
when_changed: list[Callable[[Language], None]] = []


def _tell() -> None:
    for listener in when_changed:
        listener(_choice.language)


def checked(language: str | None) -> Language:
    """``language`` if it is one of ``LANGUAGES``, the chosen one if it is None.

    Raises: ValueError for any other language.
    """
    if language is None:
        return current()
    for known in LANGUAGES:
        if language == known:
            return known
    raise ValueError(f"a language needs to be 'en' or 'ko', but got {language!r}")


def duration(seconds: float) -> str:
    """A time with three significant digits: ``2.13 ms``, ``41 s``."""
    rounded = float(f"{seconds:.3g}")
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if rounded >= size:
            return f"{rounded / size:g} {unit}"
    return f"{seconds / 1e-6:.2g} µs"


def quantity(amount: float, unit: str = "") -> str:
    """A count with a prefix of thousands: ``1.5 kB``, ``12.6 MFLOP``, ``640 B``."""
    rounded = float(f"{amount:.3g}")
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rounded >= size:
            return f"{rounded / size:g} {prefix}{unit}"
    return f"{amount:g} {unit}".rstrip()

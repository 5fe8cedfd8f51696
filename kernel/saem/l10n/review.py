"""Who translated a unit, who reviewed it, and is that still true?

A signature is a translator's comment on the PO entry, which every PO editor keeps::

    # saem: translator=jiwon reviewer=minsu hash=3f9a0c51d2be

``hash`` is of source and translation, so any edit voids the signature by itself.

Read before: nothing.  Read after: ``saem.l10n.catalog``.
Invariant: no person reviews a translation of their own (tests/notebooks/test_review.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import re

import polib

from saem.l10n.project import HIDDEN_ENDS

_LINE = re.compile(r"^saem: translator=(\S+)(?: reviewer=(\S+))? hash=([0-9a-f]{12})$", re.M)
_NAME = re.compile(r"[\w.@+-]+")


class ReviewError(ValueError):
    """A signature or a change that is refused; ``said`` says why, by language."""

    def __init__(self, english: str, korean: str):
        super().__init__(english)
        self.said = {"en": english, "ko": korean}


@dataclasses.dataclass(frozen=True)
class Signature:
    """Who stands for a translation as it is."""

    translator: str
    reviewer: str | None


def digest(entry: polib.POEntry) -> str:
    """What a signature signs."""
    signed = f"{entry.msgctxt}\0{entry.msgid}\0{entry.msgstr}"
    return hashlib.sha256(signed.encode()).hexdigest()[:12]


def signature(entry: polib.POEntry) -> Signature | None:
    """The valid signature of an entry; None if there is none or something was edited since."""
    found = _LINE.search(entry.tcomment or "")
    if found is None or found[3] != digest(entry) or "fuzzy" in entry.flags:
        return None
    return Signature(found[1], found[2])


def sign(entry: polib.POEntry, translator: str) -> None:
    """``translator`` stands for this translation.

    Raises ReviewError if there is nothing to sign, or a review would be lost.
    """
    _check(entry, translator)
    before = signature(entry)
    if before is not None and before.translator == translator:
        return
    if before is not None and before.reviewer:
        raise ReviewError(f"{entry.msgctxt} is translated by {before.translator} and reviewed.",
                          f"{entry.msgctxt}: {before.translator} 님의 번역이며 검토도 끝났습니다.")
    _write(entry, Signature(translator, None))


def replace(entry: polib.POEntry, text: str, translator: str) -> None:
    """Make ``text`` the translation, of the present English and signed by ``translator``.

    Ends of lines that cannot be seen, which come with pasted text, become spaces.
    Raises ReviewError if ``text`` is empty.
    """
    entry.tcomment = _LINE.sub("", entry.tcomment or "").strip("\n")
    entry.msgstr = HIDDEN_ENDS.sub(" ", text)
    entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
    entry.previous_msgid = None
    sign(entry, translator)


def review(entry: polib.POEntry, reviewer: str) -> None:
    """``reviewer`` found this translation right.

    Raises ReviewError if it is not signed, or the reviewer is its translator.
    """
    _check(entry, reviewer)
    signed = signature(entry)
    if signed is None:
        raise ReviewError(
            f"{entry.msgctxt} has no valid translator's signature; its translator must run "
            "`saem l10n sign` first.",
            f"{entry.msgctxt}: 번역자의 유효한 서명이 없습니다. 번역자가 먼저 `saem l10n sign`을 "
            "실행해야 합니다.",
        )
    if signed.translator.casefold() == reviewer.casefold():
        raise ReviewError(f"{entry.msgctxt} was translated by {reviewer}; someone else reviews.",
                          f"{entry.msgctxt}: {reviewer} 님의 번역이므로 다른 사람이 검토합니다.")
    _write(entry, Signature(signed.translator, reviewer))


def check_name(name: str) -> None:
    """Raises ReviewError for what cannot stand in a signature."""
    if not _NAME.fullmatch(name):
        raise ReviewError(f"a name needs letters, digits and . @ + - _ only, but got {name!r}.",
                          f"이름에는 문자, 숫자, . @ + - _만 쓸 수 있습니다: {name!r}.")


def _check(entry: polib.POEntry, name: str) -> None:
    check_name(name)
    if not entry.msgstr or "fuzzy" in entry.flags:
        raise ReviewError(f"{entry.msgctxt} is missing, stale or a draft: translate it first.",
                          f"{entry.msgctxt}: 번역이 없거나 초안이거나 원문이 바뀌었습니다. 먼저 "
                          "번역해 주십시오.")


def _write(entry: polib.POEntry, signed: Signature) -> None:
    rest = _LINE.sub("", entry.tcomment or "").strip("\n")
    reviewer = f" reviewer={signed.reviewer}" if signed.reviewer else ""
    line = f"saem: translator={signed.translator}{reviewer} hash={digest(entry)}"
    entry.tcomment = f"{rest}\n{line}" if rest else line

"""Where do translations live, and in which state is each?

One PO file per lesson and language: no dates, no line numbers, no wrapping, entries in reading
order, so that a diff shows what changed and nothing else.  States:

========== ==============================================================================
missing    no translation
draft      flagged fuzzy, with no previous source: somebody wants another look
stale      flagged fuzzy, with the previous source: the English changed since
translated a translation of the present English
reviewed   translated, signed by a translator, and by a reviewer who is somebody else
========== ==============================================================================

Read before: ``saem.l10n.units``.  Read after: ``saem.l10n.merge``, ``saem.l10n.review``.
Invariant: reading a file and writing it changes no byte (tests/notebooks/test_catalog.py).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import polib

from saem.l10n.project import clean, write
from saem.l10n.review import signature
from saem.l10n.units import Unit

_LINE = re.compile(r'''\s*(#.*|((msgctxt|msgid|msgid_plural|msgstr(\[\d+\])?)\s*)?'''
                   r'''"([^"\\]|\\.)*"\s*)?''')
_PART = re.compile(r"\s*(?:#~\s*)?(msgctxt|msgid_plural|msgid|msgstr)\b")
STATES = ("missing", "draft", "stale", "translated", "reviewed")


def empty(language: str) -> polib.POFile:
    """A PO file with no entries."""
    po = polib.POFile(wrapwidth=0)
    po.metadata = {
        "Project-Id-Version": "saem",
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
    }
    return po


def load(path: Path, language: str) -> polib.POFile:
    """The PO file ``path``; an empty one if there is none yet.

    Raises ValueError if the file cannot be read as PO.
    """
    if not path.is_file():
        return empty(language)
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: a PO file needs to be UTF-8 text: {error}") from error


def parse(text: str, name: str = "PO text") -> polib.POFile:
    """The PO file written in ``text``.

    Raises ValueError, also if two entries have one context: which is meant, a person must say.
    """
    text = clean(text, name)
    if not text.strip():
        raise ValueError(f"{name}: a PO file needs at least its header, but it is empty.")
    _check_lines(text, name)
    try:
        # polib takes one line for a file name; PO text always has more.
        po = polib.pofile(text + "\n", wrapwidth=0, check_for_duplicates=False)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"{name}: not a PO file: {error}") from error
    lines: dict[str, int] = {}
    for entry in po:
        if entry.obsolete or entry.msgctxt is None:
            continue
        first = lines.setdefault(entry.msgctxt, max(entry.linenum, 1))
        if first < entry.linenum:
            raise ValueError(f"{name}: the unit {entry.msgctxt} stands there twice, at lines "
                             f"{first} and {entry.linenum}. Remove one of the two entries.")
    return po


def _check_lines(text: str, name: str) -> None:
    """Raises ValueError for lines that polib would take, and lose something.

    It drops the last letter of a text whose closing mark is missing, and gives the comments of an
    entry without msgstr to the next one.
    """
    last = ""
    for number, line in enumerate([*text.split("\n"), 'msgid ""'], 1):
        if not _LINE.fullmatch(line):
            raise ValueError(
                f"{name}: not a PO file: line {number} needs to be a comment, or a text between "
                f"quotation marks, but got {line[:60]!r}. Is a mark missing, or one inside the "
                'text unescaped (it is written \\")?')
        part = _PART.match(line)
        if part is not None:
            if last.startswith("msgid") and part[1] in ("msgctxt", "msgid"):
                raise ValueError(f"{name}: not a PO file: the entry that ends before line {number} "
                                 'has no msgstr. Put it back; msgstr "" is no translation yet.')
            last = part[1]


def text(po: polib.POFile) -> str:
    """The file as it is stored."""
    return str(po).rstrip("\n") + "\n"


def save(po: polib.POFile, path: Path) -> None:
    """Write ``po`` to ``path``."""
    write(path, text(po))


def active(po: polib.POFile) -> dict[str, polib.POEntry]:
    """Entries in use, by context."""
    return {entry.msgctxt: entry for entry in po if not entry.obsolete}


def state(entry: polib.POEntry | None) -> str:
    """One of ``STATES``."""
    if entry is None or not entry.msgstr:
        return "missing"
    if "fuzzy" in entry.flags:
        return "stale" if entry.previous_msgid else "draft"
    signed = signature(entry)
    return "reviewed" if signed is not None and signed.reviewer else "translated"


def state_of(text: str, entry: polib.POEntry | None) -> str:
    """The state of the translation of ``text``, which may not be what ``entry`` translates."""
    if entry is not None and entry.msgid != text:
        return "stale" if entry.msgstr else "missing"
    return state(entry)


def states(units: Iterable[Unit], po: polib.POFile) -> dict[str, str]:
    """The state of each unit of a lesson, by context; one that the file lacks is missing."""
    entries = active(po)
    return {unit.context: state_of(unit.text, entries.get(unit.context)) for unit in units}


def version(entry: polib.POEntry | None) -> str:
    """A name for an entry as it is, comments too; '' for none."""
    return "" if entry is None else hashlib.sha256(str(entry).encode()).hexdigest()[:16]


def basis(entry: polib.POEntry) -> str:
    """The English that the translation translates."""
    return entry.previous_msgid or entry.msgid

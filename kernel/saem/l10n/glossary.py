"""Which words did the team agree on, and how is an English word read in Korean?

Read before: nothing.  Read after: ``saem.l10n.lint``.
Invariant: a term with rejected forms gives its reason (tests/notebooks/test_glossary.py).
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from pathlib import Path

import yaml


class GlossaryError(ValueError):
    """``glossary.yml`` is not written as it must be."""


@dataclasses.dataclass(frozen=True)
class Term:
    """An English term with its accepted and rejected translations.

    ``accepted`` has what the lint looks for, stems of verbs among them; ``shown``, if given, is
    what the pages of the glossary show instead.
    """

    term: str
    accepted: tuple[str, ...]
    shown: str = ""
    rejected: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    reading: str | None = None
    reason: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    proposed: tuple[Mapping[str, str], ...] = dataclasses.field(default=(), hash=False)
    decided: tuple[Mapping[str, str], ...] = dataclasses.field(default=(), hash=False)

    @property
    def translation(self) -> str:
        """What a reader of the glossary sees."""
        return self.shown or ", ".join(self.accepted)

    def occurs(self, english: str) -> bool:
        """Whether the term, its plural, or one of its forms stands in the text."""
        return self._pattern.search(english) is not None

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = "|".join(re.escape(word) for word in (self.term, *self.forms))
        return re.compile(rf"(?<![\w-])(?:{words})(?:s|es)?(?![\w-])", re.I)


@dataclasses.dataclass(frozen=True)
class Glossary:
    """All terms, and readings of names by their exact spelling."""

    terms: tuple[Term, ...]
    readings: Mapping[str, str]

    def reading(self, word: str) -> str | None:
        """How ``word`` is read in Korean; None if it is not known."""
        return self.readings.get(word) or self.readings.get(word.lower())


def load(path: Path) -> Glossary:
    """The glossary in ``path``.  Raises GlossaryError."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeError) as error:
        raise GlossaryError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict) or not isinstance(data.get("terms"), list):
        raise GlossaryError(f"{path}: a glossary needs a list `terms:`.")
    terms = tuple(_term(item, str(path)) for item in data["terms"])
    names = [term.term.lower() for term in terms]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise GlossaryError(f"{path}: given twice: {', '.join(sorted(twice))}.")
    readings = {term.term: term.reading for term in terms if term.reading}
    readings |= {str(name): reading for name, reading in (data.get("readings") or {}).items()}
    return Glossary(terms, readings)


def _term(item: Mapping, where: str) -> Term:
    known = [field.name for field in dataclasses.fields(Term)]
    if not isinstance(item, Mapping):
        raise GlossaryError(f"{where}: an entry needs term and accepted, but got {item!r}.")
    unknown = set(item) - set(known)
    if unknown or not item.get("term") or not item.get("accepted"):
        raise GlossaryError(f"{where}: an entry needs term and accepted, and may have "
                            f"{', '.join(known)}; got {dict(item)}.")
    reason = item.get("reason", {})
    if item.get("rejected") and set(reason) != {"en", "ko"}:
        raise GlossaryError(f"{where}: {item['term']} rejects words: give a reason (en, ko).")
    return Term(
        term=item["term"],
        accepted=tuple(item["accepted"]),
        shown=item.get("shown", ""),
        rejected=tuple(item.get("rejected", ())),
        forms=tuple(item.get("forms", ())),
        reading=item.get("reading"),
        reason=dict(reason),
        proposed=tuple(item.get("proposed", ())),
        decided=tuple(item.get("decided", ())),
    )

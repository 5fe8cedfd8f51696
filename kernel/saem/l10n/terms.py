"""Where is a term used, who wants another word for it, and what was decided?

A proposal and a decision are part of the term's entry in ``glossary.yml``.  Only that entry is
written anew; the rest of the file, with its comments, stays as it is.

Read before: ``saem.l10n.glossary``.  Read after: ``saem.l10n.team_commands``.
Invariant: a decision says who made it and why, and what it replaced (tests/notebooks/test_team.py).
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from pathlib import Path
from typing import Any

import yaml

from saem.l10n import catalog
from saem.l10n.glossary import Glossary, GlossaryError, Term, load
from saem.l10n.lint.base import prose
from saem.l10n.project import Project, write
from saem.l10n.source import read
from saem.l10n.units import units


@dataclasses.dataclass(frozen=True)
class Use:
    """One place where a term is used; ``words`` are the accepted ones that translate it there."""

    lesson: str
    unit: str
    english: str
    translation: str
    words: tuple[str, ...]


def find(glossary: Glossary, name: str) -> Term:
    """The term called ``name``, in English or by a translation that is its alone.

    Raises GlossaryError, which names the terms that come near.
    """
    wanted = unicodedata.normalize("NFC", name).casefold()
    for term in glossary.terms:
        if term.term.casefold() == wanted:
            return term
    called = [t for t in glossary.terms if wanted in map(str.casefold, t.accepted)]
    if len(called) == 1:
        return called[0]
    near = [t.term for t in called or glossary.terms
            if wanted[:4] in t.term.casefold()
            or any(wanted in word.casefold() for word in (*t.accepted, *t.rejected))]
    raise GlossaryError(f"the glossary has no term {name!r}"
                        + (f"; it has {', '.join(near)}." if near else
                           "; all terms are in notebooks/glossary.yml."))


def uses(project: Project, term: Term, language: str) -> list[Use]:
    """Every unit whose English has the term, with its translation."""
    found = []
    for path in project.lessons():
        entries = catalog.active(catalog.load(project.catalog(path.stem, language), language))
        for unit in units(read(path)):
            if term.occurs(prose(unit.text)):
                entry = entries.get(unit.context)
                text = entry.msgstr if entry is not None else ""
                words = tuple(word for word in term.accepted if word in prose(text))
                found.append(Use(path.stem, unit.context, unit.text, text, words))
    return found


def propose(path: Path, name: str, word: str, by: str, why: str) -> None:
    """Propose ``word`` for a term.

    Raises GlossaryError if it is empty or used already, or no reason given.
    """
    term = find(load(path), name)
    if not word.strip():
        raise GlossaryError(f"{name}: a proposal needs a word, but got {word!r}.")
    if not why.strip():
        raise GlossaryError(f"{name}: a proposal needs a reason.")
    if word in term.accepted or word in [p["word"] for p in term.proposed]:
        raise GlossaryError(f"{name}: {word} is accepted or proposed already.")
    _replace(path, term, {"proposed": [*term.proposed, {"word": word, "by": by, "why": why}]})


def decide(path: Path, name: str, word: str, by: str, english: str, korean: str) -> None:
    """Make ``word`` the first accepted one for a term; the one before it is rejected.

    ``english`` and ``korean`` say why.  Raises GlossaryError if the word is not proposed, or the
    same person did.
    """
    term = find(load(path), name)
    proposal = next((p for p in term.proposed if p["word"] == word), None)
    if proposal is None:
        raise GlossaryError(f"{name}: nobody proposed {word}.")
    if proposal["by"].casefold() == by.casefold():
        raise GlossaryError(f"{name}: {by} proposed {word}; someone else decides.")
    if not (english.strip() and korean.strip()):
        raise GlossaryError(f"{name}: a decision needs its reason in English and in Korean.")
    before = term.accepted[0]
    decision = {"word": word, "instead of": before, "by": by, "proposed by": proposal["by"]}
    _replace(path, term, {
        "accepted": [word, *(w for w in term.accepted[1:] if w != word)],
        "rejected": [*(w for w in term.rejected if w != word), before],
        "reason": {"en": english, "ko": korean},
        "proposed": [p for p in term.proposed if p["word"] != word],
        "decided": [*term.decided, decision],
    })


def _replace(path: Path, term: Term, changes: dict[str, Any]) -> None:
    """Write the entry of ``term`` anew with ``changes``; check that the file can still be read."""
    text = path.read_text(encoding="utf-8")
    entries = list(re.finditer(r"^- (?:term: .*\n(?:  .*\n)*|\{.*\}\n)", text, re.M))
    for entry in entries:
        (found,) = yaml.safe_load(entry[0])
        if found["term"] == term.term:
            break
    else:
        raise GlossaryError(f"{path}: the entry of {term.term!r} is not written as the others are.")
    fields = {key: value for key, value in (found | changes).items() if value}
    lines = [f"{key}: {_flow(value)}" for key, value in fields.items()]
    new = text[:entry.start()] + "- " + "\n  ".join(lines) + "\n" + text[entry.end():]
    write(path, new)
    try:
        load(path)
    except (GlossaryError, yaml.YAMLError):
        write(path, text)
        raise


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=True, width=10**6,
                          sort_keys=False)
    return text.removesuffix("...\n").strip()

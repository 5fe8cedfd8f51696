"""What is wrong with a lesson and its translation?

``lint(project)`` runs every rule over every unit, and compares the notebooks of each lesson.

Read before: ``saem.l10n.lint.base``.  Read after: ``saem.l10n.commands``.
Invariant: a rule that is not in ``RULES`` does not exist, and each one in it has fixtures
(tests/notebooks/test_lint.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import polib

from saem.l10n.build import planned
from saem.l10n.catalog import active, load, state, state_of
from saem.l10n.glossary import Glossary
from saem.l10n.glossary import load as load_glossary
from saem.l10n.lint.base import MARKDOWN, Finding, Hit, Pair, finding
from saem.l10n.lint.bilingual import KEPT, LINKS, NUMBERS, STATE, TERMS
from saem.l10n.lint.glyphs import GLYPHS
from saem.l10n.lint.korean import DUAL, EMPHASIS, NFC, REGISTER, stray_emphasis
from saem.l10n.lint.markup import BLOCKS, DIRECTIONS, HTML
from saem.l10n.lint.particles import PARTICLE
from saem.l10n.lint.spacing import SPACING
from saem.l10n.lint.structure import MESSAGES, REASONS, differences
from saem.l10n.project import Project
from saem.l10n.source import Lesson, read
from saem.l10n.units import units

RULES = (STATE, EMPHASIS, PARTICLE, DUAL, REGISTER, NFC, TERMS, KEPT, LINKS, NUMBERS, GLYPHS,
         BLOCKS, HTML, DIRECTIONS)
# Rules that need a package of their own: they run where it is installed and are asked for.
OPTIONAL = (SPACING,)


def lint(project: Project, say: str = "en", spacing: bool = False,
         only: Sequence[Path] = ()) -> list[Finding]:
    """All findings, messages in the language ``say``; ``spacing`` adds hints on word spacing.

    ``only`` names sources of lessons and pages; by default all are read.
    Raises SourceError, GlossaryError.
    """
    glossary = load_glossary(project.glossary)
    findings: list[Finding] = []
    for path in only or (*project.lessons(), *project.pages()):
        lesson = read(path)
        findings += _source(lesson, say)
        for language in project.languages:
            findings += _translation(project, lesson, language, glossary, say, spacing)
            if path not in project.pages():
                findings += _structure(project, lesson, language, say)
    return findings


def check_pair(pair: Pair, say: str = "en", file: str = "", unit: str = "",
               spacing: bool = False) -> Iterator[Finding]:
    """What every rule finds in one unit; nothing but its state is judged if it is untranslated."""
    for rule in RULES + (OPTIONAL if spacing else ()):
        if rule.languages and pair.language not in rule.languages:
            continue
        if rule is STATE or pair.state not in ("missing", "stale"):
            for hit in rule.check(pair):
                yield finding(rule, hit, file, unit, say)


def fixed(pair: Pair) -> str:
    """The translation with every mechanical finding put right."""
    for _ in range(len(pair.translation)):  # one place at a time: fixes may touch each other
        hits = [f for f in check_pair(pair) if f.mechanical and f.wrong in pair.translation]
        if not hits:
            break
        text = pair.translation.replace(hits[0].wrong, hits[0].suggestion, 1)
        pair = dataclasses.replace(pair, translation=text)
    return pair.translation


def fix(project: Project, lesson: Lesson, language: str) -> tuple[polib.POFile, int]:
    """The PO file of a lesson with mechanical findings put right, and how many units changed.

    Nothing is written.  A changed unit loses its signature, so that somebody reads it again.
    """
    glossary = load_glossary(project.glossary)
    po = load(project.catalog(lesson.name, language), language)
    changed = 0
    entries = active(po)
    for unit in units(lesson):
        entry = entries.get(unit.context)
        if entry is not None and entry.msgid == unit.text and entry.msgstr:
            text = fixed(Pair(unit.kind, unit.text, entry.msgstr, state(entry), glossary,
                              language))
            changed += text != entry.msgstr
            entry.msgstr = text
    return po, changed


def _source(lesson: Lesson, say: str) -> Iterator[Finding]:
    for unit in units(lesson):
        if unit.kind in MARKDOWN:
            for detail in stray_emphasis(unit.text):
                yield finding(EMPHASIS, Hit(detail, detail), f"en/{lesson.name}", unit.context, say)


def _translation(
    project: Project, lesson: Lesson, language: str, glossary: Glossary, say: str, spacing: bool
) -> Iterator[Finding]:
    entries = active(load(project.catalog(lesson.name, language), language))
    for unit in units(lesson):
        entry = entries.get(unit.context)
        translation = entry.msgstr if entry is not None else ""
        condition = state_of(unit.text, entry)
        pair = Pair(unit.kind, unit.text, translation, condition, glossary, language)
        yield from check_pair(pair, say, f"{language}/{lesson.name}", unit.context, spacing)


def _structure(project: Project, lesson: Lesson, language: str, say: str) -> Iterator[Finding]:
    one = planned(project, lesson, project.source_language)
    two = planned(project, lesson, language)
    for rule, detail in differences(one, two):
        yield Finding(rule, f"{language}/{lesson.name}", detail, MESSAGES[rule][say].format(detail),
                      REASONS[say])

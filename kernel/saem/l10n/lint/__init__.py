"""What is wrong with a lesson and its translation?

``lint(project)`` runs every rule over every unit, and compares the notebooks of each lesson.

Read before: ``saem.l10n.lint.base``.  Read after: ``saem.l10n.commands``.
Invariant: a rule that is not in ``RULES`` does not exist, and each one in it has fixtures
(tests/notebooks/test_lint.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from saem.l10n.build import planned
from saem.l10n.catalog import active, load, state
from saem.l10n.glossary import Glossary
from saem.l10n.glossary import load as load_glossary
from saem.l10n.lint.base import MARKDOWN, Finding, Pair
from saem.l10n.lint.bilingual import KEPT, LINKS, STATE, TERMS
from saem.l10n.lint.korean import DUAL, EMPHASIS, NFC, REGISTER, stray_emphasis
from saem.l10n.lint.particles import PARTICLE
from saem.l10n.lint.structure import MESSAGES, differences
from saem.l10n.project import Project
from saem.l10n.source import Lesson, read
from saem.l10n.units import units

RULES = (STATE, EMPHASIS, PARTICLE, DUAL, REGISTER, NFC, TERMS, KEPT, LINKS)


def lint(project: Project, say: str = "en") -> list[Finding]:
    """All findings, messages in the language ``say``.  Raises SourceError, GlossaryError."""
    glossary = load_glossary(project.glossary)
    findings: list[Finding] = []
    for path in project.lessons():
        lesson = read(path)
        findings += _source(lesson, say)
        for language in project.languages:
            findings += _translation(project, lesson, language, glossary, say)
            findings += _structure(project, lesson, language, say)
    return findings


def check_pair(pair: Pair, say: str = "en", where: str = "") -> Iterator[Finding]:
    """What every rule finds in one unit; nothing but its state is judged if it is untranslated."""
    for rule in RULES:
        if rule is STATE or pair.state not in ("missing", "stale"):
            for detail in rule.check(pair):
                yield Finding(rule.id, where, rule.message[say].format(detail))


def _source(lesson: Lesson, say: str) -> Iterator[Finding]:
    for unit in units(lesson):
        if unit.kind in MARKDOWN:
            for detail in stray_emphasis(unit.text):
                where = f"en/{lesson.name} {unit.context}"
                yield Finding(EMPHASIS.id, where, EMPHASIS.message[say].format(detail))


def _translation(
    project: Project, lesson: Lesson, language: str, glossary: Glossary, say: str
) -> Iterator[Finding]:
    entries = active(load(project.catalog(lesson.name, language), language))
    for unit in units(lesson):
        entry = entries.get(unit.context)
        if entry is not None and entry.msgid != unit.text:
            entry = None
        translation = entry.msgstr if entry is not None else ""
        pair = Pair(unit.kind, unit.text, translation, state(entry), glossary)
        yield from check_pair(pair, say, f"{language}/{lesson.name} {unit.context}")


def _structure(project: Project, lesson: Lesson, language: str, say: str) -> Iterator[Finding]:
    one = planned(project, lesson, project.source_language)
    two = planned(project, lesson, language)
    for rule, detail in differences(one, two):
        message = MESSAGES[rule][say].format(detail)
        yield Finding(rule, f"{language}/{lesson.name}", message)

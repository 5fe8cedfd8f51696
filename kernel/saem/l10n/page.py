"""How does a reviewer see both languages side by side?

One HTML page a lesson, with no script and no outside file: English on the left, translation on the
right, state, previous English of stale units, and what the lint says.

Read before: ``saem.l10n.lint``.  Read after: ``saem.l10n.commands``.
Invariant: everything shown is escaped (tests/notebooks/test_review.py).
"""

from __future__ import annotations

import html

import polib

from saem.l10n.catalog import active, state
from saem.l10n.glossary import Glossary
from saem.l10n.lint import check_pair
from saem.l10n.lint.base import Pair, prose
from saem.l10n.review import signature
from saem.l10n.source import Lesson
from saem.l10n.units import Unit, units

_STYLE = """
body { font: 16px/1.6 sans-serif; margin: 2em auto; max-width: 80em; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid #ccc; padding: 0.5em; vertical-align: top; width: 50%; }
.text { white-space: pre-wrap; } .about { color: #666; font-size: 0.8em; }
.finding { color: #b3441e; } .before { color: #666; text-decoration: line-through; }
"""


def page(lesson: Lesson, po: polib.POFile, glossary: Glossary, say: str) -> str:
    """The review page of a lesson."""
    entries = active(po)
    rows = "".join(_row(unit, entries.get(unit.context), glossary, say) for unit in units(lesson))
    language = html.escape(po.metadata.get("Language", ""))
    title = html.escape(f"{lesson.name} · en → {language}")
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1><table>{rows}</table></body></html>\n"
    )


def _row(unit: Unit, entry: polib.POEntry | None, glossary: Glossary, say: str) -> str:
    condition = state(entry)
    translation = entry.msgstr if entry is not None else ""
    signed = signature(entry) if entry is not None else None
    about = f"{unit.context} · {condition}"
    if signed is not None:
        about += f" · {signed.translator} → {signed.reviewer or '…'}"
    before = ""
    if condition == "stale" and entry is not None:
        before = f'<div class="text before">{html.escape(entry.previous_msgid)}</div>'
    pair = Pair(unit.kind, unit.text, translation, condition, glossary)
    notes = "".join(
        f'<div class="finding">{html.escape(f"{f.rule}: {f.message}")}</div>'
        for f in check_pair(pair, say)
    )
    terms = ", ".join(
        f"{t.term} → {t.accepted[0]}" for t in glossary.terms if t.occurs(prose(unit.text))
    )
    return (
        f'<tr id="{html.escape(unit.context)}"><td>{before}'
        f'<div class="text">{html.escape(unit.text)}</div>'
        f'<div class="about">{html.escape(terms)}</div></td>'
        f'<td><div class="text">{html.escape(translation)}</div>{notes}'
        f'<div class="about">{html.escape(about)}</div></td></tr>'
    )

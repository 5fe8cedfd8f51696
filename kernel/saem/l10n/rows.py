"""What does a reviewer see of one unit?

Both languages rendered, how each changed, the glossary's words, what the lint found, who signed,
and what was remarked.  ``row`` gives HTML for the static page and for the one in the browser.

Read before: ``saem.l10n.lint``.  Read after: ``saem.l10n.page``.
Invariant: everything shown is escaped (tests/notebooks/test_review.py).
"""

from __future__ import annotations

import dataclasses
import difflib
import html
import re

import polib
from markdown_it import MarkdownIt

from saem.l10n import notes
from saem.l10n.catalog import state_of, version
from saem.l10n.glossary import Glossary
from saem.l10n.lint import check_pair
from saem.l10n.lint.base import MARKDOWN, Pair, prose
from saem.l10n.lint.bilingual import TERMS
from saem.l10n.review import signature
from saem.l10n.units import Unit

# No HTML of its own, and no pictures: those would be asked from other machines.
_RENDER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")

SAY = {
    "en": {
        "missing": "missing", "draft": "draft", "stale": "the English changed",
        "translated": "translated", "reviewed": "reviewed", "before": "before",
        "edit": "edit (e)", "accept": "accept (a)", "comment": "comment (c)", "save": "save",
        "cancel": "cancel", "left": "{} to review", "next": "next (n)",
        "help": "j, k: down, up · n: next to review · e: edit · Ctrl+Enter: save · Esc: close, "
                "keeping what you typed · a: accept · c: comment",
        "done": "Everything is reviewed.",
        "unsaved": "Save or cancel what you typed here first.",
        "unreachable": "The server did not answer: nothing was saved, and what you typed is still "
                       "here. Start `saem l10n review` again.",
        "action": "There is no such action.",
        "request": "A request needs a unit of the lesson, and no more than {} bytes.",
        "file": "A file cannot be read, and nothing was written: {}",
        "address": "Open the address that `saem l10n review` printed.",
        "elsewhere": "There is nothing here.",
        "language": "No lesson is translated into {}.",
        "lesson": "There is no lesson {}.",
    },
    "ko": {
        "missing": "번역 없음", "draft": "초안", "stale": "원문이 바뀜",
        "translated": "번역됨", "reviewed": "검토됨", "before": "이전",
        "edit": "고치기 (e)", "accept": "승인 (a)", "comment": "메모 (c)", "save": "저장",
        "cancel": "취소", "left": "검토할 문단 {}개", "next": "다음 (n)",
        "help": "j, k: 아래, 위 · n: 다음 검토할 문단 · e: 고치기 · Ctrl+Enter: 저장 · "
                "Esc: 쓴 글을 남겨 두고 닫기 · a: 승인 · c: 메모",
        "done": "모두 검토했습니다.",
        "unsaved": "여기에 쓴 글을 먼저 저장하거나 취소하세요.",
        "unreachable": "서버가 응답하지 않아 저장하지 못했습니다. 쓴 글은 그대로 있습니다. "
                       "`saem l10n review`를 다시 시작하세요.",
        "action": "그런 동작은 없습니다.",
        "request": "요청에는 수업의 문단이 있어야 하고 {}바이트를 넘을 수 없습니다.",
        "file": "파일을 읽을 수 없어 저장하지 않았습니다: {}",
        "address": "`saem l10n review`가 출력한 주소를 여십시오.",
        "elsewhere": "여기에는 아무것도 없습니다.",
        "language": "이 언어로 번역된 수업이 없습니다: {}",
        "lesson": "그런 수업은 없습니다: {}",
    },
}


@dataclasses.dataclass(frozen=True)
class Context:
    """What all rows of a page share.  ``before`` has translations as they were, by context."""

    glossary: Glossary
    say: str
    before: dict[str, str]
    live: bool = False
    language: str = "ko"


def row(unit: Unit, entry: polib.POEntry | None, context: Context) -> str:
    """The row of one unit."""
    say = SAY[context.say]
    condition = state_of(unit.text, entry)
    translation = entry.msgstr if entry is not None else ""
    buttons = "".join(f'<button data-do="{what}">{html.escape(say[what])}</button>'
                      for what in ("edit", "accept", "comment")) if context.live else ""
    return (
        f'<section class="row {condition}" id="{html.escape(unit.context)}" tabindex="0" '
        f'data-state="{condition}" data-seen="{version(entry)}" '
        f'data-text="{html.escape(translation)}">'
        f'<div class="side en" lang="en">{_changed(_earlier(entry), unit.text, say)}'
        f"{rendered(unit.kind, unit.text)}{_terms(unit, translation, context)}</div>"
        f'<div class="side other">'
        f"{_changed(context.before.get(unit.context), translation, say)}"
        f'<div class="translation" lang="{html.escape(context.language)}">'
        f"{rendered(unit.kind, translation)}</div>"
        f'<div class="findings">{findings(unit, translation, condition, context)}</div>'
        f"{_notes(entry)}"
        f'<div class="about"><span class="state">{html.escape(say[condition])}</span> '
        f"{html.escape(_signed(entry))} <code>{html.escape(unit.context)}</code>"
        f'<span class="actions">{buttons}</span></div></div></section>'
    )


def rendered(kind: str, text: str) -> str:
    """A text as a reader of the lesson sees it."""
    if kind in MARKDOWN:
        return f'<div class="text">{_RENDER.render(text)}</div>'
    mark = "# " if kind == "comment" else ""
    return f'<div class="text"><pre>{html.escape(mark + text)}</pre></div>'


def word_diff(old: str, new: str) -> str:
    """Both texts in one: words that went in ``<del>``, words that came in ``<ins>``."""
    one, two = (re.findall(r"\s+|[^\s]+", text) for text in (old, new))
    parts = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        gone, come = (html.escape("".join(words)) for words in (one[a:b], two[c:d]))
        if kind == "equal":
            parts.append(gone)
        else:
            parts.append((f"<del>{gone}</del>" if gone else "")
                         + (f"<ins>{come}</ins>" if come else ""))
    return "".join(parts)


def _earlier(entry: polib.POEntry | None) -> str | None:
    return entry.previous_msgid if entry is not None else None


def _changed(old: str | None, new: str, say: dict[str, str]) -> str:
    if not old or old == new:
        return ""
    label = html.escape(say["before"])
    return f'<div class="change"><b>{label}</b> {word_diff(old, new)}</div>'


def _terms(unit: Unit, translation: str, context: Context) -> str:
    chips = []
    for term in context.glossary.terms if context.language in TERMS.languages else ():
        if term.occurs(prose(unit.text)):
            used = next((word for word in term.accepted if word in prose(translation)), None)
            mark = "used" if used else "unused"
            text = f"{term.term} → {used or term.accepted[0]}"
            chips.append(f'<span class="term {mark}">{html.escape(text)}</span>')
    return f'<div class="terms">{" ".join(chips)}</div>' if chips else ""


def findings(unit: Unit, translation: str, condition: str, context: Context) -> str:
    """What the lint finds in one translation, as HTML."""
    pair = Pair(unit.kind, unit.text, translation, condition, context.glossary, context.language)
    return "".join(
        f'<div class="finding" title="{html.escape(f.reason)}">'
        f"<b>{html.escape(f.rule)}</b> {html.escape(f.message)}</div>"
        for f in check_pair(pair, context.say) if f.rule != "untranslated")


def _notes(entry: polib.POEntry | None) -> str:
    found = notes.of(entry) if entry is not None else []
    return "".join(f'<div class="note"><b>{html.escape(by)}</b> {html.escape(words)}</div>'
                   for by, words in found)


def _signed(entry: polib.POEntry | None) -> str:
    signed = signature(entry) if entry is not None else None
    return "" if signed is None else f"{signed.translator} → {signed.reviewer or '…'}"

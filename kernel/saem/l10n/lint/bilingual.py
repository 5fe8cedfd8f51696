"""Does the translation keep what the English has: terms, code, formulas, links, places to fill?

Read before: ``saem.l10n.lint.korean``.  Read after: ``saem.l10n.lint.structure``.
Invariant: terms are looked for in prose only, never in code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from saem.l10n.lint.base import MATH, Pair, Rule, code_spans, prose

_LINK = re.compile(r"\]\(([^)\s]+)\)|(https?://[^\s)>\]]+)")
_FIELD = re.compile(r"(?<!\{)\{(\w*)[^{}]*\}(?!\})")


def _terms(pair: Pair) -> Iterator[str]:
    english, korean = prose(pair.source), prose(pair.translation)
    for term in pair.glossary.terms:
        if not term.occurs(english):
            continue
        if not any(word in korean for word in term.accepted):
            yield f"{term.term} → {', '.join(term.accepted)}"
        for word in term.rejected:
            if _says(korean, word, term.accepted) and not _belongs(pair, english, word):
                yield f"{word} ✗ ({term.term} → {term.accepted[0]})"


def _says(korean: str, word: str, accepted: tuple[str, ...]) -> bool:
    """Whether the word stands there, other than as a part of an accepted one."""
    for good in accepted:
        if word in good:
            korean = korean.replace(good, "")
    return word in korean


def _belongs(pair: Pair, english: str, word: str) -> bool:
    """Whether another term in the same text is rightly translated by this word."""
    return any(word in t.accepted and t.occurs(english) for t in pair.glossary.terms)


def _kept(pair: Pair) -> Iterator[str]:
    yield from _difference(code_spans(pair.source), code_spans(pair.translation), "`{}`")
    yield from _difference(
        (m[1] for m in MATH.finditer(pair.source)),
        (m[1] for m in MATH.finditer(pair.translation)),
        "${}$",
    )
    if pair.kind == "string":
        fields, others = _FIELD.findall(pair.source), _FIELD.findall(pair.translation)
        yield from _difference(fields, others, "{{{}}}")


def _links(pair: Pair) -> Iterator[str]:
    old, new = (
        Counter(a or b for a, b in _LINK.findall(text)) for text in (pair.source, pair.translation)
    )
    yield from ((old - new) + (new - old)).keys()


def _difference(old: Iterable[str], new: Iterable[str], form: str) -> Iterator[str]:
    """What only one of the two has, however often: a language may repeat a name or not."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    yield from (form.format(x) for x in before if x not in after)
    yield from (form.format(x) for x in after if x not in before)


def _state(pair: Pair) -> Iterator[str]:
    if pair.state in ("missing", "stale", "draft"):
        yield {
            "missing": "missing / 없음",
            "stale": "stale / 원문이 바뀜",
            "draft": "draft / 초안",
        }[pair.state]


TERMS = Rule(
    "glossary",
    {
        "en": "The glossary says otherwise: {}.",
        "ko": "용어집과 다릅니다: {}.",
    },
    _terms,
)
KEPT = Rule(
    "code-kept",
    {
        "en": "Code or a formula is in one language only: {}.",
        "ko": "코드나 수식이 한쪽 언어에만 있습니다: {}.",
    },
    _kept,
)
LINKS = Rule(
    "links-kept",
    {
        "en": "A link is in one language only: {}.",
        "ko": "링크가 한쪽 언어에만 있습니다: {}.",
    },
    _links,
)
STATE = Rule(
    "untranslated",
    {
        "en": "Needs a translator: {}.",
        "ko": "번역이 필요합니다: {}.",
    },
    _state,
)

"""Does the translation keep what the English has: terms, code, formulas, links, places to fill?

Read before: ``saem.l10n.lint.korean``.  Read after: ``saem.l10n.lint.structure``.
Invariant: terms are looked for in prose only, never in code.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator

from saem.l10n.lint.base import MATH, Hit, Pair, Rule, code_spans, prose

_LINK = re.compile(r"\]\(([^)\s]+)\)|(https?://[^\s)>\]]+)")
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d+(?:,\d{3})*(?:\.\d+)?")
_CARDINALS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_WORDS = {word: str(n) for n, word in enumerate(_CARDINALS)}
_WORDS |= {word: str(n) for n, word in enumerate(_ORDINALS, start=1)}
_WORDS |= {"once": "1", "twice": "2", "both": "2", "half": "2", "thousand": "1000",
           "hundred": "100", "nothing": "0"}


def _terms(pair: Pair) -> Iterator[Hit]:
    english, korean = prose(pair.source), prose(pair.translation)
    for term in pair.glossary.terms:
        if not term.occurs(english):
            continue
        if not any(word in korean for word in term.accepted):
            yield Hit(f"{term.term} → {', '.join(term.accepted)}", "", term.accepted[0])
        for word in term.rejected:
            if _says(korean, word, term.accepted) and not _belongs(pair, english, word):
                yield Hit(f"{word} ✗ ({term.term} → {term.accepted[0]})", word, term.accepted[0])


def _says(korean: str, word: str, accepted: tuple[str, ...]) -> bool:
    """Whether the word stands there, other than as a part of an accepted one."""
    for good in accepted:
        if word in good:
            korean = korean.replace(good, "")
    return word in korean


def _belongs(pair: Pair, english: str, word: str) -> bool:
    """Whether another term in the same text is rightly translated by this word."""
    return any(word in t.accepted and t.occurs(english) for t in pair.glossary.terms)


def _kept(pair: Pair) -> Iterator[Hit]:
    yield from _difference(code_spans(pair.source), code_spans(pair.translation), "`{}`")
    yield from _difference(
        (m[1] for m in MATH.finditer(pair.source)),
        (m[1] for m in MATH.finditer(pair.translation)),
        "${}$",
    )
    if pair.kind == "string":
        yield from _difference(_fields(pair.source), _fields(pair.translation), "{{{}}}")


def _fields(text: str) -> list[str]:
    """The places that ``str.format`` fills: name, or number, with conversion and format.

    None in a text that ``str.format`` does not take.
    """
    found: list[str] = []
    try:
        for _, name, form, conversion in string.Formatter().parse(text):
            if name is not None:
                number = name or str(len(found))
                found.append(f"{number}{f'!{conversion}' if conversion else ''}"
                             f"{f':{form}' if form else ''}")
    except ValueError:
        return []
    return found


def _links(pair: Pair) -> Iterator[Hit]:
    old, new = (
        Counter(a or b for a, b in _LINK.findall(text)) for text in (pair.source, pair.translation)
    )
    yield from (Hit(link, "", link) for link in old - new)
    yield from (Hit(link, link) for link in new - old)


def _numbers(pair: Pair) -> Iterator[Hit]:
    """Numbers in digits; Korean may write in digits what English writes in words."""
    old, new = (Counter(_digits(text)) for text in (pair.source, pair.translation))
    words = {_WORDS[w] for w in re.findall(r"[a-z]+", pair.source.lower()) if w in _WORDS}
    yield from (Hit(number, "", number) for number in old - new)
    yield from (Hit(number, number) for number in new - old if number not in words
                and number not in old)


def _digits(text: str) -> Iterator[str]:
    text = re.sub(r"https?://\S+", "", re.sub(r"\{[^{}]*\}", "", prose(text)))
    for number in _NUMBER.findall(text):
        yield number.replace(",", "").lstrip("0") or "0"


def _difference(old: Iterable[str], new: Iterable[str], form: str) -> Iterator[Hit]:
    """What one of the two has more often than the other; the order is free."""
    before, after = Counter(old), Counter(new)
    yield from (Hit(form.format(x), "", form.format(x)) for x in before - after)
    yield from (Hit(form.format(x), form.format(x)) for x in after - before)


def _state(pair: Pair) -> Iterator[Hit]:
    if pair.state in ("missing", "stale", "draft"):
        yield Hit({
            "missing": "missing / 없음",
            "stale": "stale / 원문이 바뀜",
            "draft": "draft / 초안",
        }[pair.state])


TERMS = Rule(
    "glossary",
    {
        "en": "The glossary says otherwise: {}.",
        "ko": "용어집과 다릅니다: {}.",
    },
    {
        "en": "One word for one thing in all lessons; notebooks/glossary.yml has the reasons.",
        "ko": "모든 수업에서 한 가지를 한 낱말로 부릅니다. 까닭은 용어집에 있습니다.",
    },
    _terms,
    ("ko",),
)
KEPT = Rule(
    "code-kept",
    {
        "en": "Code or a formula does not stand as often in both languages: {}.",
        "ko": "코드나 수식이 나오는 횟수가 두 언어에서 다릅니다: {}.",
    },
    {
        "en": "Code and formulas are the same in every language.",
        "ko": "코드와 수식은 어느 언어에서나 같습니다.",
    },
    _kept,
)
LINKS = Rule(
    "links-kept",
    {
        "en": "A link is in one language only: {}.",
        "ko": "링크가 한쪽 언어에만 있습니다: {}.",
    },
    {
        "en": "A reader of either language must be able to go to the same places.",
        "ko": "어느 언어로 읽든 같은 곳으로 갈 수 있어야 합니다.",
    },
    _links,
)
NUMBERS = Rule(
    "numbers-kept",
    {
        "en": "A number is in one language only: {}.",
        "ko": "숫자가 한쪽 언어에만 있습니다: {}.",
    },
    {
        "en": "A number that was changed or lost makes the sentence wrong.",
        "ko": "숫자가 바뀌거나 빠지면 틀린 문장이 됩니다.",
    },
    _numbers,
)
STATE = Rule(
    "untranslated",
    {
        "en": "Needs a translator: {}.",
        "ko": "번역이 필요합니다: {}.",
    },
    {
        "en": "Readers see the English, or an older translation, until this is done.",
        "ko": "번역하기 전까지 독자는 영어 원문이나 예전 번역을 봅니다.",
    },
    _state,
)

"""Is the Korean text sound in itself: emphasis, dual forms, register, Unicode?

Read before: ``saem.l10n.lint.base``.  Read after: ``saem.l10n.lint.bilingual``.
Invariant: emphasis is judged by rendering it, not by a guess at the rules of CommonMark.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from markdown_it import MarkdownIt

from saem.l10n.lint.base import MARKDOWN, MATH, Pair, Rule, prose

# Without text_join, escaped characters stay apart from text and are not taken for leftovers.
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable("text_join")
_LEFT_OVER = re.compile(r"\*+(?=\S)|(?<=\S)\*+|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
_DUAL = re.compile(
    r"은\(는\)|는\(은\)|이\(가\)|가\(이\)|을\(를\)|를\(을\)|과\(와\)|와\(과\)|\(으\)로|\(이\)라|은/는|을/를|이/가|와/과"
)
_CASUAL = re.compile(
    r"(?P<word>\S*(?:(?<![니시])다|(?<!필)(?<!중)(?<!주)(?<!수)(?<!개)요|(?<!니)까|[는은]가|[하되보쓰]자))"
    r"(?P<stop>[.!?])(?=\s|$)"
)


def stray_emphasis(text: str) -> Iterator[str]:
    """Emphasis marks that CommonMark leaves in the text as it renders it."""
    plain = MATH.sub(lambda m: "$" + "m" * len(m[1]) + "$", text)
    for block in _MARKDOWN.parse(plain):
        for token in block.children or ():
            if token.type == "text" and _LEFT_OVER.search(token.content):
                yield token.content.strip()


def _emphasis(pair: Pair) -> Iterator[str]:
    if pair.kind in MARKDOWN:
        yield from stray_emphasis(pair.translation)


def _dual(pair: Pair) -> Iterator[str]:
    yield from (match[0] for match in _DUAL.finditer(prose(pair.translation)))


def _register(pair: Pair) -> Iterator[str]:
    if pair.kind != "heading":
        text = re.sub(r"[*_]{1,3}", "", prose(pair.translation))
        yield from (match[0] for match in _CASUAL.finditer(text))


def _nfc(pair: Pair) -> Iterator[str]:
    text = pair.translation
    if unicodedata.normalize("NFC", text) != text:
        yield next(w for w in text.split() if unicodedata.normalize("NFC", w) != w)


EMPHASIS = Rule(
    "emphasis",
    {
        "en": "Emphasis marks stay visible here: {}. Move the parenthesis or the particle out.",
        "ko": "강조 기호가 그대로 보입니다: {}. 괄호나 조사를 강조 밖으로 옮겨 주십시오.",
    },
    _emphasis,
)
DUAL = Rule(
    "dual-form",
    {
        "en": "A dual form; choose the one that fits: {}.",
        "ko": "조사를 둘 다 적지 말고 맞는 것 하나만 적어 주십시오: {}.",
    },
    _dual,
)
REGISTER = Rule(
    "register",
    {
        "en": "The sentence does not end in 합니다체: {}.",
        "ko": "문장이 합니다체로 끝나지 않습니다: {}.",
    },
    _register,
)
NFC = Rule(
    "nfc",
    {
        "en": "Hangul is not in Unicode form NFC: {}.",
        "ko": "한글이 유니코드 NFC 형식이 아닙니다: {}.",
    },
    _nfc,
)

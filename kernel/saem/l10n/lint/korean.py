"""Is the Korean text sound in itself: emphasis, dual forms, register, Unicode?

Read before: ``saem.l10n.lint.base``.  Read after: ``saem.l10n.lint.bilingual``.
Invariant: emphasis is judged by rendering it, not by a guess at the rules of CommonMark.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from markdown_it import MarkdownIt

from saem.l10n.lint.base import CODE_SPAN, MARKDOWN, MATH, Hit, Pair, Rule, prose
from saem.l10n.lint.hangul import right
from saem.l10n.lint.particles import DUAL_FORM, FORMS, ending

# Without text_join, escaped characters stay apart from text and are not taken for leftovers.
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable("text_join")
_LEFT_OVER = re.compile(r"\*+(?=\S)|(?<=\S)\*+|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
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


def _emphasis(pair: Pair) -> Iterator[Hit]:
    if pair.kind in MARKDOWN:
        for text in stray_emphasis(pair.translation):
            yield Hit(text, text)


def _dual(pair: Pair) -> Iterator[Hit]:
    quoted = [(m.start(), m.end()) for m in CODE_SPAN.finditer(pair.translation)]
    for use in DUAL_FORM.finditer(pair.translation):
        if any(first <= use.start("form") < last for first, last in quoted):
            continue
        form = use["form"]
        end = ending(use["word"], pair.glossary) if use["word"] else None
        if end is None:
            yield Hit(form, form)
        else:
            particle = right(FORMS[form], end)
            yield Hit(f"{use[0]} → {use['word']}{particle}", use[0],
                      f"{use['word']}{particle}", mechanical=True)


def _register(pair: Pair) -> Iterator[Hit]:
    if pair.kind != "heading":
        text = re.sub(r"[*_]{1,3}", "", prose(pair.translation))
        yield from (Hit(match[0], match[0]) for match in _CASUAL.finditer(text))


def _nfc(pair: Pair) -> Iterator[Hit]:
    for word in pair.translation.split():
        composed = unicodedata.normalize("NFC", word)
        if composed != word:
            yield Hit(composed, word, composed, mechanical=True)


EMPHASIS = Rule(
    "emphasis",
    {
        "en": "Emphasis marks stay visible here: {}. Move the parenthesis or the particle out.",
        "ko": "강조 기호가 그대로 보입니다: {}. 괄호나 조사를 강조 밖으로 옮겨 주십시오.",
    },
    {
        "en": "CommonMark closes emphasis only where no letter follows a mark after punctuation.",
        "ko": "문장 부호 뒤의 강조 기호에 글자가 바로 이어지면 강조가 닫히지 않습니다.",
    },
    _emphasis,
)
DUAL = Rule(
    "dual-form",
    {
        "en": "A dual form; choose the one that fits: {}.",
        "ko": "조사를 둘 다 적지 말고 맞는 것 하나만 적어 주십시오: {}.",
    },
    {
        "en": "A reader stumbles over two particles; the word before decides which one it is.",
        "ko": "조사를 둘 다 적으면 읽기 어렵습니다. 앞말에 따라 하나로 정해집니다.",
    },
    _dual,
    ("ko",),
)
REGISTER = Rule(
    "register",
    {
        "en": "The sentence does not end in 합니다체: {}.",
        "ko": "문장이 합니다체로 끝나지 않습니다: {}.",
    },
    {
        "en": "The lessons address the reader in one register, 합니다체.",
        "ko": "수업은 처음부터 끝까지 합니다체로 씁니다.",
    },
    _register,
    ("ko",),
)
NFC = Rule(
    "nfc",
    {
        "en": "Hangul is not in Unicode form NFC: {}.",
        "ko": "한글이 유니코드 NFC 형식이 아닙니다: {}.",
    },
    {
        "en": "Search and comparison fail between composed and decomposed Hangul.",
        "ko": "풀어 쓴 한글은 검색이나 비교에서 다른 글자로 취급됩니다.",
    },
    _nfc,
)

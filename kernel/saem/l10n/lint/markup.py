"""Does the translation keep the blocks and the HTML of the English, and hide nothing?

Read before: ``saem.l10n.lint.base``.  Read after: ``saem.l10n.lint.structure``.
Invariant: Markdown is read by the parser that cuts lessons into units.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from saem.l10n.lint.base import MARKDOWN, Hit, Pair, Rule

_PARSER = MarkdownIt("commonmark").enable("table")
_NAMES = {"p": "paragraph", "ul": "list", "ol": "numbered list", "blockquote": "quotation",
          "hr": "rule", "code": "code", "": "HTML"}
# What these attributes say is read by people: it is translated.
_WORDS = re.compile(r"""\b(alt|title|aria-label)\s*=\s*("[^"]*"|'[^']*')""")
# Characters that turn the direction of the text around them, and that are not seen.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def _blocks(pair: Pair) -> Iterator[Hit]:
    if pair.kind in MARKDOWN:
        one, two = (", ".join(_named(text)) for text in (pair.source, pair.translation))
        if one != two:
            yield Hit(f"{one} ≠ {two}")


def _named(text: str) -> list[str]:
    """The top-level blocks of a text, as a reader calls them; a heading with its marks."""
    return [f"{token.markup} heading" if token.type == "heading_open"
            else _NAMES.get(token.tag, token.tag)
            for token in _PARSER.parse(text) if not token.level and token.nesting >= 0]


def _html(pair: Pair) -> Iterator[Hit]:
    if pair.kind in MARKDOWN:
        old, new = (Counter(_tags(_PARSER.parse(text)))
                    for text in (pair.source, pair.translation))
        yield from (Hit(tag, "", tag) for tag in old - new)
        yield from (Hit(tag, tag) for tag in new - old)


def _tags(tokens: Iterable[Token]) -> Iterator[str]:
    """All HTML in a text, the words in its attributes left out."""
    for token in tokens:
        if token.type in ("html_inline", "html_block"):
            yield _WORDS.sub(r"\1=…", token.content.strip())
        yield from _tags(token.children or ())


def _directions(pair: Pair) -> Iterator[Hit]:
    for mark in dict.fromkeys(_DIRECTIONS.findall(pair.translation)):
        yield Hit(f"U+{ord(mark):04X}", mark)


BLOCKS = Rule(
    "blocks-kept",
    {
        "en": "The blocks differ: {}.",
        "ko": "문단, 제목, 목록의 구성이 다릅니다: {}.",
    },
    {
        "en": "A unit is one block: a heading of its level, one paragraph, one list.",
        "ko": "번역 단위는 한 블록입니다. 제목은 같은 수준의 제목으로, 문단은 한 문단으로 "
              "옮깁니다.",
    },
    _blocks,
)
HTML = Rule(
    "html-kept",
    {
        "en": "An HTML tag is in one language only: {}.",
        "ko": "HTML 태그가 한쪽 언어에만 있습니다: {}.",
    },
    {
        "en": "Pages show HTML as it is: a tag that was lost or added changes what is around it.",
        "ko": "HTML은 그대로 쓰이므로 태그가 빠지거나 더해지면 둘레의 모습이 달라집니다.",
    },
    _html,
)
DIRECTIONS = Rule(
    "direction-marks",
    {
        "en": "There is a character that turns the direction of the text: {}.",
        "ko": "글의 방향을 바꾸는 문자가 있습니다: {}.",
    },
    {
        "en": "It is not seen, and what is shown is not what the file says. Delete it.",
        "ko": "눈에 보이지 않으며, 화면에 나오는 글을 파일에 적힌 글과 다르게 만듭니다. "
              "지우십시오.",
    },
    _directions,
)

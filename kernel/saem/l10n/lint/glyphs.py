"""Can the fonts of a plot draw what a lesson writes into it?

Strings that go through ``t("…")`` stand in plots, whose fonts are DejaVu Sans, which matplotlib
brings, and NanumGothic.  What neither can draw would be an empty box.

Read before: ``saem.l10n.lint.base``.  Read after: ``saem.l10n.lint.spacing``.
Invariant: the verdict is the same on every machine, with or without Korean fonts.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from pathlib import Path

from saem.l10n.lint.base import Hit, Pair, Rule

# What every Korean font has besides ASCII: syllables, letters, and the punctuation of Korean text.
_SYLLABLES = range(ord("가"), ord("힣") + 1)
KOREAN = frozenset("ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎㅏㅑㅓㅕㅗㅛㅜㅠㅡㅣ、。·…〈〉《》「」『』")


@functools.cache
def _dejavu() -> frozenset[int]:
    """The characters of the font that matplotlib brings."""
    folder = Path(importlib.import_module("matplotlib").get_data_path())  # 0.2 s, for strings only
    font = importlib.import_module("matplotlib.ft2font").FT2Font
    return frozenset(font(str(folder / "fonts" / "ttf" / "DejaVuSans.ttf")).get_charmap())


def drawable(character: str) -> bool:
    """Whether one of the fonts of a plot has the character."""
    code = ord(character)
    return (character.isspace() or code in _SYLLABLES or character in KOREAN
            or code in _dejavu())


def _glyphs(pair: Pair) -> Iterator[Hit]:
    if pair.kind == "string":
        for character in dict.fromkeys(pair.translation):
            if not drawable(character):
                yield Hit(f"{character} (U+{ord(character):04X})", character)


GLYPHS = Rule(
    "glyphs",
    {
        "en": "No font of the plots has this character: {}.",
        "ko": "그림에 쓰는 글꼴에 이 글자가 없습니다: {}.",
    },
    {
        "en": "A character without a glyph becomes an empty box in a plot.",
        "ko": "글꼴에 없는 글자는 그림에서 빈 네모로 나타납니다.",
    },
    _glyphs,
    ("ko",),
)

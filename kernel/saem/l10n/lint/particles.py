"""Does the particle after code, a formula, a parenthesis or a Latin word fit?

Code is read by the last name or number in it, arguments left out: `jax.grad(f)(x)` ends as 그래드
does, `f32[3]` as 삼.  What follows a parenthesis agrees with the word before it.

Read before: ``saem.l10n.lint.hangul``.  Read after: ``saem.l10n.lint.korean``.
Invariant: as in ``hangul``: no verdict without a reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from saem.l10n.glossary import Glossary
from saem.l10n.lint.base import Hit, Pair, Rule
from saem.l10n.lint.hangul import PAIRS, final, final_of_letters, final_of_number, right

_PARTICLE = "|".join(sorted({p for pair in PAIRS for p in pair}, key=len, reverse=True))
# The word, perhaps a parenthesis after it, closing emphasis or quotes, the particle, its end.
_USE = re.compile(
    r"(?P<word>`[^`\n]+`|\$[^$\n]+\$|[A-Za-z][A-Za-z0-9_]*|\d[\d,]*(?:\.\d+)?|[가-힣]+)"
    r"(?P<aside>[*_]{0,3}\([^()\n]*\))?[*_]{0,3}[\"'”’]?"
    rf"(?P<particle>{_PARTICLE})(?P<more>(?:는|도|의|만|부터|서|써)?)(?![가-힣])"
)


# Both forms of a particle, as in 값을(를) or 은/는, after the word that decides.
FORMS = {
    "은(는)": "은", "는(은)": "은", "은/는": "은", "을(를)": "을", "를(을)": "을", "을/를": "을",
    "이(가)": "이", "가(이)": "이", "이/가": "이", "과(와)": "과", "와(과)": "과", "와/과": "과",
    "(으)로": "으로", "(이)라": "이라고",
}
_WORD = r"`[^`\n]+`|\$[^$\n]+\$|[A-Za-z][A-Za-z0-9_]*|\d[\d,]*(?:\.\d+)?|[가-힣]+?|"
DUAL_FORM = re.compile(
    rf"(?P<word>{_WORD})(?P<form>{'|'.join(map(re.escape, FORMS))})")


def _check(pair: Pair) -> Iterator[Hit]:
    for use in _USE.finditer(pair.translation):
        word, particle = use["word"], use["particle"]
        if re.match("[가-힣]", word):
            if not use["aside"]:
                continue
        if use["more"] and particle not in ("으로", "로", "과", "와"):
            continue
        end = ending(word, pair.glossary)
        if end is not None and right(particle, end) != particle:
            fitting = right(particle, end)
            better = use[0][:use.start("particle") - use.start()] + fitting + use["more"]
            yield Hit(f"{use[0]} → {fitting}", use[0], better, mechanical=True)


def refit(text: str, glossary: Glossary) -> str:
    """``text`` with particles that fit: what is left to do when a code span in it was changed."""
    pair = Pair("text", "", text, "translated", glossary)
    for hit in list(PARTICLE.check(pair)):
        text = text.replace(hit.wrong, hit.right, 1)
    return text


def ending(word: str, glossary: Glossary) -> str | None:
    """The final consonant of a word as it is read; None if its reading is not known."""
    if word.startswith("$"):
        return _formula(word.strip("$").strip(), glossary)
    if word.startswith("`"):
        return _code(word.strip("`").strip(), glossary)
    if word[0].isdigit():
        return final_of_number(word.replace(",", ""))
    return final(word) if "가" <= word[0] <= "힣" else _name(word, glossary)


def _formula(formula: str, glossary: Glossary) -> str | None:
    """A formula that ends in a name or a number, or is f(x); powers and fractions have readings
    of their own."""
    number = re.search(r"(?:^|[\s=])(\d+(?:\.\d+)?)$", formula)
    if number:
        return final_of_number(number[1])
    letter = (re.search(r"(?:^|[^\w\\^{}])\\?([A-Za-z]+)$", formula)
              or re.fullmatch(r"[A-Za-z]\(([A-Za-z])\)", formula))
    return _name(letter[1], glossary) if letter else None


_CALL = re.compile(r"(?<=[\w)\]])\([^()]*(?:\([^()]*\)[^()]*)*\)$")


def _code(code: str, glossary: Glossary) -> str | None:
    bare = code
    while _CALL.search(bare):
        bare = _CALL.sub("", bare)
    bare = re.sub(r"[^\w]+$", "", bare)  # brackets, quotes and stops are not read
    number = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)$", bare)
    if number:
        return final_of_number(number[1])
    name = re.search(r"([A-Za-z_]\w*)$", bare)
    return _name(name[1], glossary) if name else None


def _name(name: str, glossary: Glossary) -> str | None:
    """A name by its reading, else by that of its last part, or of the digits that it ends in."""
    last = name.strip("_").rsplit("_", 1)[-1]
    reading = glossary.reading(name) or glossary.reading(last)
    if reading:
        return final(reading)
    digits = re.search(r"\d+$", last)
    return final_of_number(digits[0]) if digits else final_of_letters(last)


# 으로 after Hangul: no Korean word ends in an open syllable or one in ㄹ and 으로.  Of the other
# particles most also end words (결과, 마을, 종로), so only 를 is judged besides.
_TO = re.compile(
    r"(?P<word>[가-힣]*[가-힣])(?P<close>[*_]{0,3}[\"'”’]?)으로"
    r"(?P<more>(?:는|도|의|만|부터|서|써)*)(?![가-힣])"
)


def _after_hangul(pair: Pair) -> Iterator[Hit]:
    for use in re.finditer(r"([가-힣]+)를(?![가-힣])", pair.translation):
        if final(use[1]):
            yield Hit(f"{use[0]} → 을", use[0], f"{use[1]}을", mechanical=True)
    for use in _TO.finditer(pair.translation):
        if right("으로", final(use["word"]) or "") == "로":
            better = f"{use['word']}{use['close']}로{use['more']}"
            yield Hit(f"{use[0]} → 로", use[0], better, mechanical=True)


PARTICLE = Rule(
    "particle",
    {
        "en": "The particle does not fit the word before it: {}.",
        "ko": "조사가 앞말과 맞지 않습니다: {}.",
    },
    {
        "en": "The form of a particle follows the sound in which the word before it ends.",
        "ko": "조사의 꼴은 앞말을 소리 내어 읽을 때의 끝소리를 따릅니다.",
    },
    lambda pair: (found for check in (_check, _after_hangul) for found in check(pair)),
    ("ko",),
)

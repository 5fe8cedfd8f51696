"""Which particle follows a word?  That depends on how the word, as it is read, ends.

Read before: nothing.  Read after: ``saem.l10n.lint.particles``.
Invariant: a word whose reading is not known gets no verdict (tests/notebooks/test_lint.py).
"""

from __future__ import annotations

import re
import unicodedata

# After a consonant, after a vowel.  으로 stands alone: after ㄹ it is 로.
PAIRS = (
    ("을", "를"), ("은", "는"), ("이", "가"), ("과", "와"), ("으로", "로"),
    ("이라는", "라는"), ("이라고", "라고"), ("이나", "나"),
)
_NASAL_OR_LIQUID = {"L": "ㄹ", "R": "ㄹ", "M": "ㅁ", "N": "ㄴ"}
_LETTERS = dict.fromkeys("ABCDEFGHIJKOPQSTUVWXYZ", "") | _NASAL_OR_LIQUID
_DIGITS = dict(zip("0123456789", ("ㅇ", "ㄹ", "", "ㅁ", "", "", "ㄱ", "ㄹ", "ㄹ", ""), strict=True))
_FINALS = ["", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"]


def final(syllables: str) -> str | None:
    """The final consonant of a Korean word, ``''`` for none; None if it is not Korean."""
    last = unicodedata.normalize("NFC", syllables)[-1:]
    if not "가" <= last <= "힣":
        return None
    return _FINALS[(ord(last) - ord("가")) % 28]


def final_of_number(digits: str) -> str:
    """The final consonant of a number as it is read: 10 십, 300 삼백, 2.50 이 점 오영."""
    if "." in digits:
        return _DIGITS[digits[-1]]
    zeros = len(digits) - len(digits.rstrip("0"))
    if zeros == 0 or not digits.strip("0"):
        return _DIGITS[digits[-1]]
    if zeros >= 8:
        return "ㄱ" if zeros < 12 else ""
    return {1: "ㅂ", 2: "ㄱ", 3: "ㄴ"}.get(zeros, "ㄴ")


def final_of_letters(word: str) -> str | None:
    """The final consonant of an acronym or a single letter, read letter by letter."""
    if len(word) == 1 or re.fullmatch(r"[A-Z]{2,5}", word):
        return _LETTERS.get(word[-1].upper())
    return None


def right(particle: str, end: str) -> str:
    """The form of ``particle`` that follows a word ending in the consonant ``end``."""
    for after_consonant, after_vowel in PAIRS:
        if particle in (after_consonant, after_vowel):
            soft = end == "" or (end == "ㄹ" and after_consonant == "으로")
            return after_vowel if soft else after_consonant
    raise ValueError(f"right needs one of {PAIRS}, but got {particle!r}.")

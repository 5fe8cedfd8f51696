"""Are Korean words spaced as a morphological analyser would space them?

A hint, not a verdict, for analysers are wrong about technical words that are not in the glossary.
It needs the package ``kiwipiepy`` (``pip install 'saem[spacing]'``) and runs only when asked for
(``saem l10n lint --spacing``).

Read before: ``saem.l10n.lint.base``.  Read after: ``saem.l10n.lint.structure``.
Invariant: code, formulas and Latin words are never respaced.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from collections.abc import Iterator
from typing import Any

from saem.l10n.lint.base import Hit, Pair, Rule, prose


@functools.cache
def _analyser(words: tuple[str, ...]) -> Any:
    """The analyser, which takes each of ``words`` for one noun."""
    try:
        analyser = importlib.import_module("kiwipiepy").Kiwi()
    except ImportError as error:
        raise ValueError("hints on spacing need the package kiwipiepy; "
                         "try: pip install 'saem[spacing]'") from error
    for word in words:
        analyser.add_user_word(word, "NNG")
    return analyser


def _spacing(pair: Pair) -> Iterator[Hit]:
    words = {part for term in pair.glossary.terms for word in term.accepted
             for part in re.findall(r"[가-힣]{2,}", word)}
    analyser = _analyser(tuple(sorted(words)))
    for run in re.findall(r"[가-힣][가-힣 ]+[가-힣]", prose(pair.translation)):
        better = analyser.space(run)
        if better != run:
            yield from _changes(run, better)


def _changes(before: str, after: str) -> Iterator[Hit]:
    """The words around each place where a space came or went."""
    old, new = before.split(), after.split()
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if kind != "equal":
            wrong, right = " ".join(old[a:b]), " ".join(new[c:d])
            yield Hit(f"{wrong} → {right}", wrong, right)


SPACING = Rule(
    "spacing",
    {
        "en": "A hint on spacing: {}.",
        "ko": "띄어쓰기를 확인해 주십시오: {}.",
    },
    {
        "en": "Wrong spacing slows reading down; the analyser may be wrong about technical words.",
        "ko": "띄어쓰기가 틀리면 읽기 어렵습니다. 다만 분석기가 전문 용어를 잘못 볼 수 있습니다.",
    },
    _spacing,
    ("ko",),
)

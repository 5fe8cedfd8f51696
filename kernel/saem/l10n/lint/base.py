"""What is a lint rule, and what does it say?

A rule is an id, a message in both languages, and a check that yields what is wrong, piece by piece.

Read before: ``saem.l10n.catalog``.  Read after: ``saem.l10n.lint.korean``.
Invariant: every rule has fixtures that it must catch and fixtures that it must let pass
(tests/notebooks/test_lint.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping

from saem.l10n.glossary import Glossary

MARKDOWN = ("heading", "text", "list", "quote", "table")
CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
MATH = re.compile(r"(?<![\\$])\$(?![\s$])([^$\n]+?)(?<![\s\\])\$(?!\d)")


@dataclasses.dataclass(frozen=True)
class Pair:
    """A unit in both languages, as a rule sees it."""

    kind: str
    source: str
    translation: str
    state: str
    glossary: Glossary
    language: str = "ko"


@dataclasses.dataclass(frozen=True)
class Hit:
    """One place where a rule is broken: ``wrong`` stands there, ``right`` should.

    ``detail`` describes the two to a reader.  ``mechanical`` says that replacing the one by the
    other needs no judgement.
    """

    detail: str
    wrong: str = ""
    right: str = ""
    mechanical: bool = False


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule: ``check`` yields what fills the ``{}`` of the message; ``reason`` justifies it."""

    id: str
    message: Mapping[str, str]
    reason: Mapping[str, str]
    check: Callable[[Pair], Iterator[Hit]]
    languages: tuple[str, ...] = ()  # those that it is about; none named: all


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something wrong: which rule, in which file (``ko/01-arrays``) and unit, what, and why.

    ``suggestion`` is what to write in place of ``wrong``, as far as the rule knows.
    """

    rule: str
    file: str
    unit: str
    message: str
    reason: str
    wrong: str = ""
    suggestion: str = ""
    mechanical: bool = False

    @property
    def where(self) -> str:
        """The place in one text: ``ko/01-arrays title|text|0``."""
        return f"{self.file} {self.unit}".strip()


def finding(rule: Rule, hit: Hit, file: str, unit: str, say: str) -> Finding:
    """The finding of ``rule`` for ``hit``, worded in the language ``say``."""
    detail = hit.detail.removesuffix(".")  # the message ends with a full stop
    return Finding(rule.id, file, unit, rule.message[say].format(detail), rule.reason[say],
                   hit.wrong, hit.right, hit.mechanical)


def code_spans(text: str) -> list[str]:
    """The insides of all code spans."""
    return [match[2].strip() for match in CODE_SPAN.finditer(text)]


def prose(text: str) -> str:
    """The text with code spans, formulas and link targets blanked out."""
    text = CODE_SPAN.sub("`…`", text)
    text = MATH.sub("`…`", text)
    return re.sub(r"\]\([^)\s]*\)", "]", text)

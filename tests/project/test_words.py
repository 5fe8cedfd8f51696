"""Are comments and docstrings in plain technical English?

The field has a word for each of these; a learner who is not a native speaker knows that one.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "kernel" / "saem"
# From a retired word to the words to use.
RETIRED = {
    r"dear(er)?": "expensive",
    r"kin": "and related functions",
    r"tickets?": "token",
    r"beholden": "depends on",
    r"hands? on": "pass on, return",
    r"li(e|es) as": "is placed as, has the layout",
    r"(is|are|be) cut (as|along|alike)": "sharded",
    r"cut alike": "sharded the same way",
    r"what is no": "a non-array, a value that is not …",
    r"nobody|whoever": "no caller, the caller, the user",
    r"told|tells|heard": "is given, returns, states, gets",
}
PATTERN = re.compile(rf"\b({'|'.join(RETIRED)})\b")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of docstrings and comments, with their numbers."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) \
                and ast.get_docstring(node) is not None:
            first = node.body[0]
            for number in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                yield number, lines[number - 1]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")),
                         ids=lambda path: str(path.relative_to(PACKAGE)))
def test_words_are_the_fields(path):
    found = [f"{path.relative_to(PACKAGE)}:{number}: {match[0]!r}: write {better}"
             for number, line in prose(path.read_text("utf-8"))
             for match in PATTERN.finditer(line)
             for word, better in RETIRED.items() if re.fullmatch(word, match[0])]
    assert not found, "\n".join(found)


def test_a_retired_word_is_found():
    assert [n for n, line in prose('"""Sums and their kin."""\nx = 1  # dear\n')
            if PATTERN.search(line)] == [1, 2]

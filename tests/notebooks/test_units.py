"""Are lessons cut into the units a translator expects, and put together again unharmed?"""

from __future__ import annotations

import ast

import pytest

from saem.l10n import pycode
from saem.l10n.source import Cell, SourceError, parse, read
from saem.l10n.units import compose, units


def test_units_of_a_lesson(tree):
    found = {u.context: u.text for u in units(read(tree.lesson("01")))}
    assert found == {
        "title|heading|0": "# A title",
        "title|text|0": "First paragraph with `code` and 3 numbers.",
        "title|list|0": "- one\n- two",
        "maths|text|0": "Second paragraph.",
        "run|comment|0": "A comment\nof two lines",
        "run|comment|1": "trailing",
        "run|string|0": "Hello",
    }


def test_compose_unchanged_is_the_cell(tree):
    for cell in read(tree.lesson("01")).cells:
        assert compose(cell, lambda unit: unit.text) == cell.source


def test_compose_replaces_prose_and_keeps_code():
    source = "if x:\n    # one\n    # two\n    y = '# no comment'  # three\n"
    new = compose(Cell("a", "code", source), lambda u: u.text.upper())
    assert new == "if x:\n    # ONE\n    # TWO\n    y = '# no comment'  # THREE\n"


def test_a_longer_comment_takes_more_lines():
    new = compose(Cell("a", "code", "# one\nx = 1"), lambda u: "하나\n둘")
    assert new == "# 하나\n# 둘\nx = 1"


@pytest.mark.parametrize(
    "source",
    [
        "%timeit f(x)", "x = 1\n!ls 'a", "%%html\n<b>it's</b>", "if a:\n    %time b()",
        "%%time\nx = 1",
    ],
)
def test_magics_become_python_of_as_many_lines(source):
    python = pycode.python(source)
    ast.parse(python)
    assert python.count("\n") == source.count("\n")


def test_directives_are_no_comments():
    assert pycode.comments("x = 1  # noqa: E501\ny = 2  # type: int\n# fmt: off") == []


@pytest.mark.parametrize("call", ["t(name)", "t('a', 'b')", "t(f'{x}')", "t()"])
def test_t_needs_a_plain_string(call):
    with pytest.raises(SyntaxError, match="plain string"):
        pycode.strings(call)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Text without an id.\n", "needs an id"),
        ('+++ {"id": "a b"}\n\nText.\n', "needs an id"),
        ('+++ {"id": "a"}\n\nText.\n\n+++ {"id": "a"}\n\nMore.\n', "two cells"),
    ],
)
def test_every_cell_needs_an_id_of_its_own(text, complaint):
    header = "---\nkernelspec: {name: python3, display_name: P, language: python}\n---\n\n"
    with pytest.raises(SourceError, match=complaint):
        parse("01-x", header + text)

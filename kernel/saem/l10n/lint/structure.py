"""Are two built notebooks of one lesson the same but for their words?

Read before: ``saem.l10n.assemble``.  Read after: ``saem.l10n.lint``.
Invariant: code is compared as syntax trees, so that only comments may differ; the one exception
is the language's name in the setup cell (tests/notebooks/test_lint.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import nbformat

from saem.l10n.assemble import SETUP
from saem.l10n.pycode import shape

REASONS = {
    "en": "A lesson is one program: in every language it has the same cells, tags and code.",
    "ko": "수업은 하나의 프로그램입니다. 어느 언어에서나 셀, 태그, 코드가 같아야 합니다.",
}
MESSAGES = {
    "cells": {
        "en": "The cells differ in id, order or kind: {}.",
        "ko": "셀의 id, 순서 또는 종류가 다릅니다: {}.",
    },
    "tags": {
        "en": "The tags of a cell differ: {}.",
        "ko": "셀의 태그가 다릅니다: {}.",
    },
    "code": {
        "en": "The code of a cell differs: {}.",
        "ko": "셀의 코드가 다릅니다: {}.",
    },
}


def differences(
    source: nbformat.NotebookNode, other: nbformat.NotebookNode
) -> Iterator[tuple[str, str]]:
    """Pairs of a rule (a key of ``MESSAGES``) and what is wrong."""
    ids = [(c.id, c.cell_type) for c in source.cells]
    if ids != [(c.id, c.cell_type) for c in other.cells]:
        others = [(c.id, c.cell_type) for c in other.cells]
        wrong = [a for a, b in zip(ids, others, strict=False) if a != b]
        yield "cells", wrong[0][0] if wrong else f"{len(ids)} ≠ {len(others)}"
        return
    for one, two in zip(source.cells, other.cells, strict=True):
        if one.metadata.get("tags", []) != two.metadata.get("tags", []):
            yield "tags", one.id
        if one.cell_type == "code" and _shape(source, one) != _shape(other, two):
            yield "code", one.id


def _shape(notebook: nbformat.NotebookNode, cell: nbformat.NotebookNode) -> str:
    source = cell.source
    if cell.id == SETUP:
        language = notebook.metadata["saem"]["language"]
        source = source.replace(f'language="{language}"', 'language="…"')
    try:
        return shape(source)
    except SyntaxError as error:
        return f"{source}\0{error}"

"""What does a figure of a lesson show, for a reader who cannot see it?

A build writes the alternative text of each figure into its output's metadata, where nbconvert,
the site and the review page find it: the heading that the figure stands under, and the words that
its cell writes into it (``t("…")``), in the notebook's language.

Read before: ``saem.l10n.pycode``.  Read after: ``saem.l10n.build``, ``saem.l10n.site``.
Invariant: every figure of a built notebook has a text (tests/notebooks/test_lessons.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import nbformat

from saem.l10n.pycode import strings

PNG = "image/png"
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)


def describe(notebook: nbformat.NotebookNode, words: Mapping[str, str]) -> None:
    """Give each figure of ``notebook`` its text; ``words`` translates the strings of the cells."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = (_HEADING.findall(cell.source) or [heading])[-1]
            continue
        for output in cell.outputs:
            if PNG in output.get("data", {}):
                written = dict.fromkeys(words.get(text, text) for text in strings(cell.source))
                text = ": ".join(filter(None, [heading, ", ".join(written)]))
                output.metadata.setdefault(PNG, {})["alt"] = text.replace("`", "")


def text_of(output: nbformat.NotebookNode) -> str:
    """The text of a figure; empty where a build wrote none."""
    return str(output.metadata.get(PNG, {}).get("alt", ""))

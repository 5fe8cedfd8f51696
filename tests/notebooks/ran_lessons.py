"""How does one run of a lesson serve all tests that look at what it does?

A lesson takes up to fourteen seconds, so a process runs it once in each language (``conftest.py``
puts the tests of one lesson side by side).  In English, where ``answers/`` has guesses and code for
it, one cell more stands at its end, which tries these in the kernel.

Read before: ``saem.l10n.execute``, ``try_lesson.py``.
Read after: ``test_lessons.py``, ``test_answers.py``.
Invariant: the cell at the end runs after all others and is no part of the notebook given back.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import nbformat

from saem.l10n import build as building
from saem.l10n import project
from saem.l10n.execute import execute
from saem.l10n.source import read

HERE = Path(__file__).parent
TREE = project.find(HERE)
WITH_ANSWERS = sorted(path.stem for path in (HERE / "answers").glob("*.toml"))
CHECK = "exercise.check("
TRY = """import sys
sys.path.append({here!r})
import try_lesson
print(try_lesson.replies({lesson!r}, get_ipython().user_ns, {checks!r}))"""


@functools.cache
def _run(lesson, language):
    notebook = building.planned(TREE, read(TREE.lesson(lesson)), language)
    if lesson not in WITH_ANSWERS or language != TREE.source_language:
        execute(notebook)
        return notebook, None
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    checks = {source.split(CHECK)[1].split('"')[1]: source
              for source in sources if CHECK in source}
    text = TRY.format(here=str(HERE), lesson=lesson, checks=checks)
    notebook.cells.append(nbformat.v4.new_code_cell(text, id="answers"))
    execute(notebook)
    said = "".join(o.text for o in notebook.cells.pop().outputs if o.get("name") == "stdout")
    return notebook, json.loads(said)


def executed(lesson, language):
    """The notebook as its sources make it now, run."""
    return _run(lesson, language)[0]


def replies(lesson):
    """What gates and exercises reply to the answers kept for the lesson."""
    return _run(lesson, TREE.source_language)[1]

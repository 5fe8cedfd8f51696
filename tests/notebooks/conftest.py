"""What do the tests of lessons share?  A small project in a folder of its own, and gates unasked.

Read before: ``saem.l10n.project``.  Read after: any test here.
"""

from __future__ import annotations

import pytest
from small_lesson import LESSON

from saem.l10n import project as projects
from saem.lesson import predict, words
from saem.observe import language

GLOSSARY = "terms:\n- {term: array, accepted: [배열]}\nreadings: {code: 코드}\n"


def pytest_collection_modifyitems(items):
    """Put the tests of one lesson side by side: a process runs each lesson once, and where another
    takes over the rest of the tests, at most one lesson is run by both.  The last lessons go first:
    near the end of a run others take over again and again, and the first ones are short."""
    def lesson(item):
        params = item.callspec.params if hasattr(item, "callspec") else {}
        return str(params.get("lesson", ""))

    def group(item):
        return "lessons" if lesson(item) else item.path

    places = {name: at for at, name in enumerate(dict.fromkeys(map(group, items)))}
    items.sort(key=lesson, reverse=True)
    items.sort(key=lambda item: places[group(item)])


@pytest.fixture
def tree(tmp_path):
    """A project of one small lesson, translated into nothing yet."""
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    settings = 'source_language = "en"\nlanguages = ["ko"]\nrepository = "someone/lessons"\n'
    (notebooks / "lessons.toml").write_text(settings)
    (notebooks / "01-small.md").write_text(LESSON)
    (notebooks / "glossary.yml").write_text(GLOSSARY)
    return projects.find(tmp_path)


@pytest.fixture
def fresh(monkeypatch):
    """No question asked yet, no lesson begun, English."""
    monkeypatch.setattr(predict, "_asked", {})
    monkeypatch.setattr(words, "_lesson", None)
    before = language.current()
    language.choose("en")
    yield
    language.choose(before)

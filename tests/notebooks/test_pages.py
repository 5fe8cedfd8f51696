"""Are the glossary and the ground rules there in every language, made of their sources alone?"""

from __future__ import annotations

from pathlib import Path

import polib
import pytest

from saem.l10n import build, catalog, project
from saem.l10n.build import write_texts
from saem.l10n.glossary import load
from saem.l10n.lint import lint
from saem.l10n.merge import merge
from saem.l10n.pages import check_pages, planned_pages
from saem.l10n.source import read
from saem.l10n.units import units

TREE = project.find(Path(__file__))
RULES = '+++ {"id": "title"}\n\n# Rules\n\nRead it aloud.\n'


@pytest.fixture
def with_rules(tree):
    (tree.notebooks / "rules.md").write_text(RULES)
    return tree


def translate(tree, words):
    source = tree.notebooks / "rules.md"
    po, _ = merge(units(read(source)), polib.POFile())
    for entry in po:
        entry.msgstr = words.get(entry.msgid, "")
    catalog.save(po, tree.catalog("rules", "ko"))


def test_the_pages_in_the_tree_are_up_to_date():
    assert check_pages(TREE) == []


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_glossary_page_has_every_term_and_every_reading(language):
    page = (TREE.root / language / "glossary.md").read_text(encoding="utf-8")
    glossary = load(TREE.glossary)
    rows = {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines()}
    assert {term.term for term in glossary.terms} <= rows
    for term in glossary.terms:
        assert all(word in page for word in (term.translation, *term.rejected)), term.term
        assert term.reason.get(language, "") in page
    assert all(name in rows or f"`{name}`" in rows for name in glossary.readings)


def test_links_between_pages_lead_somewhere():
    for path, text in planned_pages(TREE).items():
        for target in ("glossary.md", "ground-rules.md"):
            if f"]({target})" in text:
                assert (path.parent / target).is_file()


def test_a_page_is_written_once_and_translated(with_rules):
    translate(with_rules, {"# Rules": "# 규칙", "Read it aloud.": "소리 내어 읽습니다."})
    assert {p.name for p in write_texts(with_rules)} == {"glossary.md", "rules.md", "ko.json"}
    assert write_texts(with_rules) == []
    english, korean = ((with_rules.root / code / "rules.md").read_text(encoding="utf-8")
                       for code in ("en", "ko"))
    assert "Read it aloud." in english
    assert "소리 내어 읽습니다." in korean


def test_what_is_missing_appears_in_english(with_rules):
    translate(with_rules, {"# Rules": "# 규칙"})
    write_texts(with_rules)
    korean = (with_rules.root / "ko" / "rules.md").read_text(encoding="utf-8")
    assert "# 규칙" in korean
    assert "Read it aloud." in korean


def test_a_page_edited_by_hand_is_found(with_rules):
    write_texts(with_rules)
    page = with_rules.root / "ko" / "rules.md"
    page.write_text(page.read_text(encoding="utf-8") + "!", encoding="utf-8")
    assert check_pages(with_rules) == ["ko/rules.md is not what its sources say."]
    assert any("ko/rules.md" in problem for problem in build.check(with_rules))


def test_the_lint_reads_pages(with_rules):
    translate(with_rules, {"# Rules": "# 규칙", "Read it aloud.": "소리 내어 읽는다."})
    found = [f.rule for f in lint(with_rules) if "rules" in f.file]
    assert found == ["register"]


def test_a_page_is_no_lesson(with_rules):
    assert [p.name for p in with_rules.pages()] == ["rules.md"]
    assert [p.name for p in with_rules.lessons()] == ["01-small.md"]

"""Does a third language start with one command?  The fixture is Japanese, two lessons of it."""

from __future__ import annotations

import json

import nbformat
import pytest
from click.testing import CliRunner
from small_lesson import LESSON, contents

from saem.l10n import build as building
from saem.l10n import catalog, project
from saem.l10n.commands import l10n
from saem.l10n.lint import lint
from saem.lesson import words

# Units of the two lessons and what a Japanese translator wrote for them.
JAPANESE = {
    "# A title": "# 題名",
    "First paragraph with `code` and 3 numbers.": "最初の段落には`code`と3個の数があります。",
    "- one\n- two": "- 一\n- 二",
    "Second paragraph.": "二番目の段落です。",
    "A comment\nof two lines": "二行の\nコメント",
    "trailing": "行末のコメント",
    "Hello": "こんにちは",
}
FRAME = {"English": "日本語", "This part is not translated yet.": "まだ翻訳されていません。"}


@pytest.fixture
def japanese(tree):
    """A project of two lessons in English and Korean, and from now on in Japanese."""
    (tree.notebooks / "02-more.md").write_text(LESSON)
    (tree.root / "kernel" / "saem" / "lesson" / "strings").mkdir(parents=True)
    CliRunner().invoke(l10n, ["--root", str(tree.root), "merge"])
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), "new", "ja"])
    assert run.exit_code == 0, run.output
    return project.find(tree.root)


def translate(tree, lesson, words):
    path = tree.catalog(lesson, "ja")
    po = catalog.load(path, "ja")
    for entry in po:
        entry.msgstr = words.get(entry.msgid, "")
    catalog.save(po, path)


def test_settings_and_files_are_there(japanese):
    assert japanese.languages == ("ko", "ja")
    names = sorted(p.name for p in (japanese.notebooks / "locale" / "ja").iterdir())
    assert names == ["01-small.po", "02-more.po", "frame.po"]
    assert catalog.load(japanese.catalog("01-small", "ja"), "ja").metadata["Language"] == "ja"
    settings = (japanese.root / project.SETTINGS).read_text()
    assert 'languages = ["ko", "ja"]' in settings
    assert 'repository = "someone/lessons"' in settings


def test_a_translated_lesson_is_built_and_speaks_its_language(japanese, monkeypatch):
    translate(japanese, "01-small", JAPANESE)
    translate(japanese, "frame", FRAME)
    building.write_texts(japanese)
    assert json.loads(japanese.strings("ja").read_text())["01-small"] == {"Hello": "こんにちは"}
    path = building.build(japanese, japanese.lesson("01"), "ja", run=False)
    cells = {c.id: c.source for c in nbformat.read(path, as_version=4).cells}
    assert cells["title"].startswith("# 題名\n\n最初の段落には")
    assert cells["run"].startswith("# 二行の\n# コメント\n")
    links = "[English](../en/01-small.ipynb) · [한국어](../ko/01-small.ipynb)"
    assert links in cells["saem-header"]
    korean = building.planned(japanese, building.read(japanese.lesson("01")), "ko")
    assert "[日本語](../ja/01-small.ipynb)" in korean.cells[0].source

    # Two lessons: the second shows the English, with the badge that the frame translates.
    path = building.build(japanese, japanese.lesson("02"), "ja", run=False)
    text = nbformat.read(path, as_version=4).cells[3].source
    assert "まだ翻訳されていません。" in text and "Second paragraph." in text


def test_at_run_time_strings_are_japanese_and_the_lens_is_english(japanese, monkeypatch, fresh):
    found = {"ja": {"01-small": {"Hello": "こんにちは"}}}
    monkeypatch.setattr(words, "_strings", lambda code: found.get(code, {}))
    monkeypatch.setattr(words, "_has_strings", lambda code: code in found)
    words.begin("01-small", "ja")
    assert (words.language(), words.t("Hello")) == ("ja", "こんにちは")
    assert words.current() == "en"
    words.begin("01-small", "en")
    assert words.t("Hello") == "Hello"
    with pytest.raises(ValueError, match="'en' or 'ko'"):
        words.begin("01-small", "fr")


def test_rules_about_korean_leave_japanese_alone(japanese):
    for lesson in ("01-small", "02-more"):
        translate(japanese, lesson, JAPANESE)
    assert [f for f in lint(japanese) if f.file.startswith("ja/")] == []
    translate(japanese, "01-small", JAPANESE | {"Second paragraph.": "**二番目**の`x`です。"})
    assert {f.rule for f in lint(japanese) if f.file.startswith("ja/")} == {"code-kept"}


def test_status_knows_it(japanese):
    run = CliRunner().invoke(l10n, ["--root", str(japanese.root), "status", "--json"])
    rows = [(r["lesson"], r["language"], r["missing"]) for r in json.loads(run.output)]
    assert ("02-more", "ja", 7) in rows and len(rows) == 4


@pytest.mark.parametrize("code", ["en", "ko", "Japanese", "../x", ""])
def test_what_is_no_new_language_is_refused(tree, code):
    before = (tree.root / project.SETTINGS).read_text()
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), "new", code])
    assert run.exit_code == 1
    assert (tree.root / project.SETTINGS).read_text() == before


def test_a_broken_file_of_the_new_language_leaves_the_settings_alone(tree):
    tree.catalog("01-small", "ja").parent.mkdir(parents=True)
    tree.catalog("01-small", "ja").write_text("broken\n")
    before = contents(tree.root)
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), "new", "ja"])
    assert run.exit_code == 1 and "01-small.po" in run.output
    assert contents(tree.root) == before


def test_a_language_that_could_not_be_written_is_begun_again(tree, monkeypatch):
    def full(po, path):
        raise OSError(f"{path} cannot be written: No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr(catalog, "save", full)
        run = CliRunner().invoke(l10n, ["--root", str(tree.root), "new", "ja"])
        assert run.exit_code == 1 and "No space left" in run.output
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), "new", "ja"])
    assert run.exit_code == 0 and "ja" in project.find(tree.root).languages

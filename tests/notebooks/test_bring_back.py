"""Does an edited notebook come back into its PO file, and nothing but its texts?"""

from __future__ import annotations

import itertools

import nbformat
import pytest
from click.testing import CliRunner

from saem.l10n import build as building
from saem.l10n import catalog
from saem.l10n.bring_back import ImportRefused, bring_back
from saem.l10n.commands import l10n
from saem.l10n.merge import merge
from saem.l10n.review import replace, signature
from saem.l10n.source import read
from saem.l10n.units import units


@pytest.fixture
def built(tree):
    """The Korean notebook of the small lesson, its second paragraph not translated."""
    po, _ = merge(units(read(tree.lesson("01"))), catalog.empty("ko"))
    for entry in po:
        if entry.msgctxt not in ("maths|text|0", "run|comment|1"):
            kind = entry.msgctxt.split("|")[1]
            entry.msgstr = {"heading": "# 제목", "list": "- 하나\n- 둘"}.get(kind, "번역입니다.")
    catalog.save(po, tree.catalog("01-small", "ko"))
    return building.build(tree, tree.lesson("01"), "ko", run=False)


def edit(path, change):
    notebook = nbformat.read(path, as_version=4)
    change({cell.id: cell for cell in notebook.cells}, notebook)
    nbformat.write(notebook, path)


def entries(tree):
    return catalog.active(catalog.load(tree.catalog("01-small", "ko"), "ko"))


def test_edited_texts_come_back_signed(tree, built):
    def change(cells, notebook):
        cells["title"].source = cells["title"].source.replace("번역입니다.", "더 나은 번역입니다.")
        cells["run"].source = cells["run"].source.replace("# 번역입니다.", "# 설명입니다.")
        text = cells["maths"].source
        cells["maths"].source = text.replace("Second paragraph.", "둘째 문단입니다.")

    edit(built, change)
    done = bring_back(tree, built, "jiwon")
    assert set(done.changed) == {"title|text|0", "run|comment|0", "maths|text|0"}
    found = entries(tree)
    assert found["title|text|0"].msgstr == "더 나은 번역입니다."
    assert found["run|comment|0"].msgstr == "설명입니다."
    assert found["maths|text|0"].msgstr == "둘째 문단입니다."
    assert signature(found["title|text|0"]).translator == "jiwon"
    assert catalog.state(found["run|comment|1"]) == "missing"

    again = building.planned(tree, read(tree.lesson("01")), "ko")
    sources = {c.id: c.source for c in again.cells}
    assert "더 나은 번역입니다." in sources["title"]
    assert sources["maths"] == "$$f(x) = x_1 * x_2$$\n\n둘째 문단입니다."


def test_the_badge_of_a_comment_does_not_come_along(tree, built):
    def change(cells, notebook):
        cells["run"].source = cells["run"].source.replace("# trailing", "# 뒤따름")

    edit(built, change)
    assert bring_back(tree, built, "jiwon").changed == ("run|comment|1",)
    assert entries(tree)["run|comment|1"].msgstr == "뒤따름"


def test_a_block_that_changed_is_translated_in_its_place(tree, built):
    source = tree.lesson("01")
    source.write_text(source.read_text().replace("First paragraph", "The first paragraph"))
    po, _ = merge(units(read(source)), catalog.load(tree.catalog("01-small", "ko"), "ko"))
    catalog.save(po, tree.catalog("01-small", "ko"))
    path = building.build(tree, source, "ko", run=False)
    assert bring_back(tree, path, "jiwon").changed == ()

    def change(cells, notebook):
        english = "The first paragraph with `code` and 3 numbers."
        assert english in cells["title"].source and "번역입니다." in cells["title"].source
        korean = "첫 문단의 `code`와 3입니다."
        cells["title"].source = cells["title"].source.replace(english, korean)

    edit(path, change)
    assert bring_back(tree, path, "jiwon").changed == ("title|text|0",)
    assert entries(tree)["title|text|0"].msgstr == "첫 문단의 `code`와 3입니다."
    assert catalog.state(entries(tree)["title|text|0"]) == "translated"


def test_a_notebook_that_was_not_edited_changes_nothing(tree, built):
    before = tree.catalog("01-small", "ko").read_bytes()
    assert bring_back(tree, built, "jiwon").changed == ()
    assert tree.catalog("01-small", "ko").read_bytes() == before


@pytest.mark.parametrize(
    ("complaint", "change"),
    [
        ("The code of a cell differs: run",
         lambda cells, nb: cells["run"].update(source=cells["run"].source.replace("1 + 1", "2"))),
        ("The code of a cell differs: run",
         lambda cells, nb: cells["run"].update(source=cells["run"].source.replace("Hello", "야"))),
        ("The tags", lambda cells, nb: cells["run"].metadata.update(tags=["raises-exception"])),
        ("The cells differ", lambda cells, nb: nb.cells.pop()),
        ("has 1 blocks",
         lambda cells, nb: cells["maths"].update(source=cells["maths"].source + "\n\n새 문단.")),
        ("is generated", lambda cells, nb: cells["saem-header"].update(source="다른 머리말")),
    ],
)
def test_changed_code_and_structure_are_refused(tree, built, complaint, change):
    edit(built, change)
    before = tree.catalog("01-small", "ko").read_bytes()
    with pytest.raises(ImportRefused, match=complaint):
        bring_back(tree, built, "jiwon")
    assert tree.catalog("01-small", "ko").read_bytes() == before


def test_only_built_notebooks_of_other_languages_can_come_back(tree, built):
    english = building.build(tree, tree.lesson("01"), "en", run=False)
    with pytest.raises(ImportRefused, match=r"edited in notebooks/01-small\.md"):
        bring_back(tree, english, "jiwon")
    edit(built, lambda cells, notebook: notebook.metadata.pop("saem"))
    with pytest.raises(ImportRefused, match="was not built by"):
        bring_back(tree, built, "jiwon")


@pytest.mark.parametrize("text", ["no json", "{}", '{"cells": 3}'])
def test_what_is_no_notebook_is_refused(tree, tmp_path, text):
    path = tmp_path / "other.ipynb"
    path.write_text(text)
    with pytest.raises(ImportRefused, match="is not a notebook"):
        bring_back(tree, path, "jiwon")


def test_the_command(tree, built):
    edit(built, lambda cells, nb: cells["maths"].update(source="$$f(x) = x_1 * x_2$$\n\n둘째."))
    words = ["--root", str(tree.root), "import", str(built), "--by", "jiwon"]
    run = CliRunner().invoke(l10n, words)
    assert run.exit_code == 0
    assert run.output.startswith("ko/01-small: 1 unit(s) changed\n  maths|text|0")


def test_an_older_notebook_writes_over_nobody_s_text(tree, built):
    """Somebody else translated, and the English changed, since the notebook was built."""
    def improve(cells, notebook):
        cells["title"].source = cells["title"].source.replace("번역입니다.", "내 번역입니다.")

    edit(built, improve)
    catalog_file = tree.catalog("01-small", "ko")
    po = catalog.load(catalog_file, "ko")
    replace(catalog.active(po)["maths|text|0"], "다른 사람의 번역입니다.", "minsu")
    catalog.save(po, catalog_file)
    before = catalog_file.read_bytes()
    with pytest.raises(ImportRefused, match=r"built before .* differs .* in .*maths\|text\|0"):
        bring_back(tree, built, "jiwon")
    assert catalog_file.read_bytes() == before

    done = CliRunner().invoke(l10n, ["--root", str(tree.root), "import", str(built), "--by",
                                     "jiwon", "--anyway"])
    assert done.exit_code == 0, done.output
    assert entries(tree)["title|text|0"].msgstr == "내 번역입니다."


def test_the_advice_of_a_refused_import_can_be_followed(tree, built):
    def improve(cells, notebook):
        cells["title"].source = cells["title"].source.replace("번역입니다.", "내 번역입니다.")

    edit(built, improve)
    po = catalog.load(tree.catalog("01-small", "ko"), "ko")
    replace(catalog.active(po)["title|text|0"], "다른 사람의 번역입니다.", "minsu")
    catalog.save(po, tree.catalog("01-small", "ko"))
    with pytest.raises(ImportRefused) as refused:
        bring_back(tree, built, "jiwon")
    for step in ("Copy your notebook aside", "delete ko/01-small.ipynb",
                 "saem l10n build 01-small", "--anyway"):
        assert step in str(refused.value)
    built.rename(tree.root / "mine.ipynb")
    building.build(tree, tree.lesson("01"), "ko", run=False)
    edit(built, lambda cells, notebook: cells["title"].update(
        source=cells["title"].source.replace("다른 사람의 번역입니다.", "내 번역입니다.")))
    assert bring_back(tree, built, "jiwon").changed == ("title|text|0",)


def test_a_translator_imports_the_same_notebook_again(tree, built):
    texts = ("번역입니다.", "첫 번역입니다.", "둘째 번역입니다.")
    for before, text in itertools.pairwise(texts):
        edit(built, lambda cells, _, before=before, text=text: cells["title"].update(
            source=cells["title"].source.replace(before, text)))
        bring_back(tree, built, "jiwon")
        assert entries(tree)["title|text|0"].msgstr == text


@pytest.mark.parametrize("facts", [{"language": "ko"}, [], {"language": "ko", "lesson": 3}])
def test_facts_of_another_kind_are_refused(tree, built, facts):
    edit(built, lambda cells, notebook: notebook.metadata.update(saem=facts))
    with pytest.raises(ImportRefused, match="does not say of which lesson it is"):
        bring_back(tree, built, "jiwon")

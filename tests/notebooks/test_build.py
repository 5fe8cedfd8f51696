"""Are notebooks built as their sources say, and is it seen when they are not?"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from small_lesson import contents

from saem.l10n import build as building
from saem.l10n import catalog, figures, project
from saem.l10n.assemble import HEADER, SETUP
from saem.l10n.commands import l10n
from saem.l10n.execute import ExecutionError, normal_text
from saem.l10n.merge import merge
from saem.l10n.source import read
from saem.l10n.units import units


def translate(tree, **translations):
    """Write the PO file; units not named are translated as ``번역``."""
    source = tree.lesson("01")
    po, _ = merge(units(read(source)), catalog.load(tree.catalog("01-small", "ko"), "ko"))
    for entry in po:
        if not entry.msgstr:
            usual = {"heading": "# 번역", "list": "- 번역\n- 번역"}.get(
                entry.msgctxt.split("|")[1], "번역")
            entry.msgstr = translations.get(entry.msgctxt.replace("|", "_"), usual)
    catalog.save(po, tree.catalog("01-small", "ko"))


def built(tree, language):
    path = building.build(tree, tree.lesson("01"), language, run=False)
    return nbformat.read(path, as_version=4)


def cell(notebook, identity):
    return next(c for c in notebook.cells if c.id == identity)


def test_header_and_setup_come_first(tree):
    notebook = built(tree, "en")
    assert [c.id for c in notebook.cells[:2]] == [HEADER, SETUP]
    address = "https://colab.research.google.com/github/someone/lessons/blob/main/en/01-small.ipynb"
    assert f"[Open in Colab]({address})" in notebook.cells[0].source
    assert "Edit that file, not this one" in notebook.cells[0].source
    assert 'lesson.begin("01-small", language="en")' in notebook.cells[1].source


@pytest.mark.parametrize(("language", "words", "menu"), [
    ("en", "Open in Colab", "Upload notebook"), ("ko", "Colab에서 열기", "노트북 업로드")])
def test_without_a_repository_the_link_opens_colab_and_says_how_to_upload(tree, language, words,
                                                                          menu):
    settings = tree.root / project.SETTINGS
    settings.write_text(settings.read_text().replace("someone/lessons", ""))
    header = built(project.find(tree.root), language).cells[0].source
    assert "colab.research.google.com/github" not in header
    link, found, after = header.partition(f"**[{words}](https://colab.research.google.com/)**")
    assert found and menu in after and "](" not in link


def test_every_lesson_has_its_colab_link_in_every_language():
    whole = dataclasses.replace(project.find(Path(__file__)), repository="some-one/le.ss_ons",
                                branch="docs/2.x")
    for source in whole.lessons():
        for language, words in (("en", "Open in Colab"), ("ko", "Colab에서 열기")):
            header = building.planned(whole, read(source), language).cells[0].source
            address = ("https://colab.research.google.com/github/some-one/le.ss_ons/blob/docs/2.x/"
                       f"{language}/{source.stem}.ipynb")
            assert header.count(f"[{words}]({address})") == 1
            assert "Upload notebook" not in header


BAD_NAMES = ["lessons", "some/one/lessons", "/lessons", "someone/", "some one/lessons", "-a/b",
             "a-/b", "a--b/c", "someone/..", "someone/lessons)", 'someone/"><script>', "a/b\n",
             "https://github.com/someone/lessons", "한국/수업"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_repository_that_github_does_not_take_is_refused(tree, name):
    with pytest.raises(ValueError, match="owner/name"):
        dataclasses.replace(tree, repository=name)


@pytest.mark.parametrize("name", ["", "a..b", "/main", "main/", "ma in", "main)", "x.lock", "-x"])
def test_a_branch_that_git_does_not_take_is_refused(tree, name):
    with pytest.raises(ValueError, match="branch"):
        dataclasses.replace(tree, branch=name)


@pytest.fixture
def whole(tree):
    """The small project, translated, built with outputs as if it had run, and up to date."""
    translate(tree)
    building.write_texts(tree)
    for language in ("en", "ko"):
        notebook = built(tree, language)
        cell(notebook, "run").outputs = [nbformat.v4.new_output("stream", text="Hello 2\n")]
        nbformat.write(notebook, tree.built("01-small", language))
    assert building.check(tree) == []
    return tree


def test_publishing_links_every_notebook_and_keeps_outputs(whole):
    run = CliRunner().invoke(l10n, ["--root", str(whole.root), "publish", "me/mine",
                                    "--branch", "dev"])
    assert run.exit_code == 0, run.output
    assert run.output.splitlines() == [
        "wrote notebooks/lessons.toml", "wrote en/01-small.ipynb", "wrote ko/01-small.ipynb"]
    named = project.find(whole.root)
    assert (named.repository, named.branch) == ("me/mine", "dev")
    assert building.check(named) == []
    assert len(building.check(whole)) == 2  # with the earlier repository they would differ
    for language in ("en", "ko"):
        notebook = nbformat.read(named.built("01-small", language), as_version=4)
        assert f"github/me/mine/blob/dev/{language}/01-small.ipynb" in notebook.cells[0].source
        assert cell(notebook, "run").outputs[0].text == "Hello 2\n"
    again = CliRunner().invoke(l10n, ["--root", str(whole.root), "publish", "me/mine"])
    assert (again.exit_code, again.output) == (0, "")
    gone = CliRunner().invoke(l10n, ["--root", str(whole.root), "publish", ""])
    assert gone.exit_code == 0
    assert project.find(whole.root).repository == ""
    assert building.check(project.find(whole.root)) == []


@pytest.mark.parametrize("spoil", ["name", "notebook"])
def test_publishing_that_is_refused_changes_nothing(whole, spoil):
    if spoil == "notebook":
        path = whole.built("01-small", "ko")
        path.write_text(path.read_text().replace("번역", "손으로"))
    before = contents(whole.root)
    run = CliRunner().invoke(l10n, ["--root", str(whole.root), "publish",
                                    "no name" if spoil == "name" else "me/mine"])
    assert run.exit_code == 1 and run.output.startswith("Error: ")
    assert contents(whole.root) == before


FAULTS = {  # a file, what it holds then, and what is said
    "notebooks/locale/ko/01-small.po": [
        (b"", "is empty"), (b'msgid "a"\nmsgstr "\xff"\n', "UTF-8"), (b"<<<<<<< HEAD\n", "line 1"),
        (b'msgid "a"\nmsgstr "b "c""\n', "unescaped"),
        (b'msgid ""\nmsgstr ""\n=======\n', "line 3 is the mark of a merge conflict"),
        (b'msgctxt "a|text|0"\nmsgid "b"\nmsgstr "c"\n\n' * 2,
         "the unit a|text|0 stands there twice, at lines 1 and 5")],
    "notebooks/glossary.yml": [
        (b"", "terms:"), (b"terms: [\n", "not YAML"), (b"terms: [3]\n", "got 3"),
        (b"terms:\n- {accepted: [a]}\n", "term and accepted")],
    "notebooks/01-small.md": [
        (b"\xff", "UTF-8"),
        (b'+++ {"id": "a"}\n\n<<<<<<< HEAD\nOne.\n=======\nTwo.\n>>>>>>> other\n',
         "line 3 is the mark of a merge conflict (<<<<<<< HEAD)"),
        (b"```{code-cell} ipython3\n:id: a\n\nx = (\n```\n", "cell a, line 1: not Python")],
}


@pytest.mark.parametrize(("file", "content", "complaint"), [
    (file, *fault) for file, faults in FAULTS.items() for fault in faults])
@pytest.mark.parametrize("command", [
    ["merge"], ["lint", "--json"], ["lint", "--fix"], ["build", "--no-run"]])
def test_a_broken_file_is_named_and_nothing_is_written(tree, command, file, content, complaint):
    translate(tree)
    (tree.root / file).write_bytes(content)
    before = contents(tree.root)
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), *command])
    assert (run.exit_code, run.output[:7]) == (1, "Error: ")
    assert complaint in run.output and Path(file).stem in run.output
    assert contents(tree.root) == before


@pytest.mark.parametrize("broken", ["02-other", "rules"])
@pytest.mark.parametrize("command", [["merge"], ["lint", "--fix"], ["build", "--no-run"]])
def test_a_broken_file_that_is_read_last_leaves_those_before_it_alone(tree, command, broken):
    translate(tree, title_text_0="`code`과 3을(를) 봅니다.")
    source = tree.lesson("01")
    for name in ("02-other", "rules"):
        (tree.notebooks / f"{name}.md").write_text(source.read_text())
    source.write_text(source.read_text().replace("Second", "Another"))
    tree.catalog(broken, "ko").write_text("broken\n")
    before = contents(tree.root)
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), *command])
    assert run.exit_code == 1 and f"{broken}.po" in run.output
    assert contents(tree.root) == before


def test_a_byte_order_mark_is_no_part_of_a_file(tree):
    translate(tree)
    files = tree.lesson("01"), tree.catalog("01-small", "ko")
    lesson, po = read(files[0]), catalog.load(files[1], "ko")
    for file in files:
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read(files[0]) == lesson
    assert catalog.text(catalog.load(files[1], "ko")) == catalog.text(po)


@pytest.mark.parametrize("command", [
    ["build", "01", "--no-run", "--lang", "fr"], ["run", "01", "--lang", "fr"],
    ["build", "01", "--no-run", "--lang", ""], ["assign", "01", "--to", "kim", "--lang", "fr"],
    ["sign", "01", "--by", "kim", "--lang", "en"], ["accept", "01", "--by", "kim", "--lang", "en"],
    ["review", "01", "--by", "kim", "--no-browser", "--lang", "fr"],
    ["page", "01", "page.html", "--lang", "fr"], ["term", "show", "array", "--lang", "fr"],
])
def test_a_language_that_nobody_began_is_refused(tree, command):
    translate(tree)
    before = contents(tree.root)
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), *command])
    assert run.exit_code == 1
    assert f"{command[-1]!r} is not one of the languages" in run.output
    assert contents(tree.root) == before


def test_a_folder_that_cannot_be_written_is_named(tree):
    translate(tree)
    (tree.root / "ko").write_text("a file, where the folder should be")
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), "build", "01", "--no-run"])
    assert run.exit_code == 1
    assert f"Error: {tree.root / 'ko'}" in run.output and "cannot be written" in run.output


@pytest.mark.parametrize(("line", "complaint"), [
    ('repository = "no name"', "owner/name"), ("repository = 3", "repository"),
    ('languages = "ko"', "languages"), ("source_language = ", "lessons.toml"),
])
def test_bad_settings_are_told_with_their_file(tree, line, complaint):
    key = line.split()[0]
    settings = tree.root / project.SETTINGS
    kept = [x for x in settings.read_text().splitlines() if not x.startswith(key)]
    settings.write_text("\n".join([*kept, line]))
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), "build", "--check"])
    assert run.exit_code == 1
    assert run.output.startswith("Error: ") and complaint in run.output
    assert str(settings) in run.output


def test_translated_units_stand_in_their_places(tree):
    translate(tree, title_heading_0="# 제목", run_comment_0="설명입니다.")
    notebook = built(tree, "ko")
    assert cell(notebook, "title").source.startswith(
        "# 제목\n\n번역\n\n- 번역\n- 번역\n\n```python")
    assert cell(notebook, "run").source.startswith("# 설명입니다.\nfrom saem")
    assert 't("Hello")' in cell(notebook, "run").source
    assert cell(notebook, "maths").source == "$$f(x) = x_1 * x_2$$\n\n번역"


def test_stale_and_missing_blocks_carry_a_badge(tree):
    source = tree.lesson("01")
    assert 'class="saem-missing"' in cell(built(tree, "ko"), "maths").source
    translate(tree, maths_text_0="둘째 문단입니다.")
    assert "⚠" not in cell(built(tree, "ko"), "maths").source
    source.write_text(source.read_text().replace("Second paragraph.", "Second paragraphs."))
    translate(tree)
    text = cell(built(tree, "ko"), "maths").source
    badge, english, folded = (text.index(part) for part in (
        'class="saem-stale"', "Second paragraphs.", 'class="saem-earlier"'))
    assert badge < english < folded < text.index("둘째 문단입니다.") < text.index("</details>")


def test_a_build_writes_over_no_edited_notebook(tree):
    translate(tree)
    path = tree.built("01-small", "ko")
    built(tree, "ko")
    good = path.read_text()
    path.write_text(good.replace("번역", "손으로"))
    edited = path.read_text()
    with pytest.raises(ValueError, match=r"edited since it was built.*l10n import ko/01-small"):
        built(tree, "ko")
    assert path.read_text() == edited
    own = tree.catalog("01-small", "ko")
    own.write_text(own.read_text().replace("번역", "손으로"))
    built(tree, "ko")  # the same texts are in the PO file now
    assert "손으로" in path.read_text()


def test_check_sees_every_way_to_be_out_of_date(tree):
    translate(tree)
    assert len(building.check(tree)) == 5  # a notebook and a page a language, and the strings
    for language in ("en", "ko"):
        built(tree, language)
    building.write_texts(tree)
    assert building.check(tree) == []

    path = tree.built("01-small", "ko")
    good = path.read_text()
    path.write_text(good.replace("번역", "손으로"))
    assert ["edited by hand" in problem for problem in building.check(tree)] == [True]
    path.write_text(good)

    source = tree.lesson("01")
    source.write_text(source.read_text().replace("1 + 1", "1 + 2"))
    assert len(building.check(tree)) == 2


def test_strings_for_run_time_leave_stale_ones_out(tree):
    translate(tree, run_string_0="안녕하십니까")
    building.write_texts(tree)
    stored = json.loads(tree.strings("ko").read_text())
    assert stored == {"01-small": {"Hello": "안녕하십니까"}}
    source = tree.lesson("01")
    source.write_text(source.read_text().replace('t("Hello")', 't("Hello!")'))
    translate(tree)
    building.write_texts(tree)
    assert json.loads(tree.strings("ko").read_text()) == {"01-small": {}}


def test_a_build_runs_the_cells(tree):
    building.build(tree, tree.lesson("01"), "en")
    notebook = nbformat.read(tree.built("01-small", "en"), as_version=4)
    run = cell(notebook, "run")
    assert run.outputs[0].text == "Hello 2\n"
    assert "execution" not in run.metadata
    assert building.check(tree)[0].startswith("ko/")


@pytest.mark.parametrize(
    ("code", "tags", "complaint"),
    [("1 / 0", "[slow]", "ZeroDivisionError"), ("1 / 1", "[raises-exception]", "nothing raised")],
)
def test_raising_and_its_tag_go_together(tree, code, tags, complaint):
    source = tree.lesson("01")
    text = source.read_text().replace("1 + 1", code).replace("[slow]", tags)
    source.write_text(text)
    with pytest.raises(ExecutionError, match=complaint):
        building.build(tree, source, "en")
    assert not tree.built("01-small", "en").exists()


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("File /x/lib/python3.11/site-packages/numpy/a.py:3", "File numpy/a.py:3"),
        ("/tmp/ipykernel_12/345.py", "<cell 345>"),
        ("<object at 0x7f00aa00bb>", "<object at 0x…>"),
        ("0xff and 3/4", "0xff and 3/4"),
    ],
)
def test_what_differs_between_machines_is_taken_out(text, normal):
    assert normal_text(text) == normal


def command(tree, *words):
    return CliRunner().invoke(l10n, ["--root", str(tree.root), *words])


def test_a_figure_is_described_by_its_heading_and_words():
    code = nbformat.v4.new_code_cell('plt.plot(x, label=t("loss"))\nplt.xlabel(t("step"))')
    code.outputs = [nbformat.v4.new_output("display_data", {"image/png": "AAAA"})]
    text = nbformat.v4.new_markdown_cell("# 수업\n\n## `grad` 쓰기")
    figures.describe(nbformat.v4.new_notebook(cells=[text, code]), {"loss": "손실"})
    assert figures.text_of(code.outputs[0]) == "grad 쓰기: 손실, step"


def test_the_commands_work_together(tree):
    assert "7 new" in command(tree, "merge").output
    assert command(tree, "lint").exit_code == 1
    translate(tree, title_text_0="첫 문단의 `code`와 3입니다.")
    assert command(tree, "lint").exit_code == 0
    assert command(tree, "build", "--check").exit_code == 1
    assert command(tree, "build", "--no-run").exit_code == 0
    assert command(tree, "build", "--check").exit_code == 0

    assert "7 unit(s)" in command(tree, "sign", "01", "--by", "jiwon").output
    refused = command(tree, "accept", "01", "--by", "jiwon")
    assert refused.exit_code == 1
    assert "someone else" in refused.output
    assert command(tree, "accept", "01", "--by", "minsu", "--unit", "title|text|0").exit_code == 0
    row = json.loads(command(tree, "status", "--json").output)[0]
    assert (row["reviewed"], row["translated"], row["units"]) == (1, 6, 7)

    page = tree.root / "page.html"
    assert command(tree, "page", "01", str(page)).exit_code == 0
    assert "jiwon → minsu" in page.read_text()
    assert 'msgctxt "title|text|0"' in command(tree, "extract", "01").output


def test_a_wrong_name_is_one_sentence(tree):
    result = command(tree, "merge", "99")
    assert result.exit_code == 1
    assert "lesson '99' is not one of: 01-small." in result.output

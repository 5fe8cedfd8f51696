"""Is the static site whole: every lesson in every language, every link leading somewhere?"""

from __future__ import annotations

import dataclasses
import html.parser
import json
import re
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

from saem.l10n import build as building
from saem.l10n import catalog, project
from saem.l10n.commands import l10n
from saem.l10n.merge import merge
from saem.l10n.site import build_site
from saem.l10n.source import read
from saem.l10n.units import units

TREE = project.find(Path(__file__))


class Reader(html.parser.HTMLParser):
    """The links, sources and ids of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.loaded = [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif found.get("src") or tag == "link":
            self.loaded.append(found.get("src") or found.get("href"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site of this tree's lessons."""
    out = tmp_path_factory.mktemp("site")
    return out, build_site(TREE, out)


@pytest.fixture(scope="module")
def pages(site):
    return {path: Reader(path) for path in site[1].pages if path.suffix == ".html"}


def test_every_lesson_has_a_page_in_every_language(site):
    out, _ = site
    for lesson in TREE.lessons():
        for language in ("en", "ko"):
            assert (out / language / f"{lesson.stem}.html").is_file()
            assert (out / language / f"{lesson.stem}.ipynb").is_file()


def test_other_pages_of_text_are_there(site):
    out, _ = site
    for path in (TREE.root / "ko").glob("*.md"):
        assert (out / "ko" / f"{path.stem}.html").is_file()


def test_every_link_inside_leads_to_a_page_and_a_place(pages):
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.is_file():
                wrong.append((path.name, link))
            elif anchor and target.suffix == ".html" and anchor not in pages[target].ids:
                wrong.append((path.name, link))
    assert wrong == []


def test_nothing_is_loaded_from_another_machine(pages):
    for page in pages.values():
        assert [x for x in page.loaded if not x.startswith(("data:", "../", "search.js"))] == []


def test_ids_are_unique_and_the_same_in_every_language(site, pages):
    out, _ = site
    for lesson in TREE.lessons():
        known = {c.id for c in read(lesson).cells}
        cells = [[i for i in pages[out / code / f"{lesson.stem}.html"].ids if i in known]
                 for code in ("en", "ko")]
        assert cells[0] == cells[1] and len(set(cells[0])) == len(cells[0])


def test_formulas_are_mathml_and_outputs_are_there(site):
    out, _ = site
    text = (out / "ko" / "01-arrays.html").read_text()
    assert "<math" in text and "\\nabla" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert "data:image/png" in text and "saem-static" in text


def test_the_search_finds_what_pages_have(site, pages):
    out, _ = site
    for code in ("en", "ko"):
        text = (out / code / "search.js").read_text().removeprefix("window.saemSearch = ")
        index = json.loads(text.rstrip(";\n"))
        assert all(s["anchor"] in pages[out / code / f"{s['page']}.html"].ids for s in index)
        assert any("XLA" in s["text"] for s in index)
        assert "</" not in text


def test_a_site_is_built_the_same_twice(site, tmp_path):
    out, made = site
    build_site(TREE, tmp_path)
    for path in made.pages:
        assert (tmp_path / path.relative_to(out)).read_bytes() == path.read_bytes()


def colab(text):
    """The attributes of a page's link to Colab, and the text about uploading ('' if none)."""
    found = re.search(r'<a class="colab"([^>]*)>', text)
    upload = re.search(r'<small class="upload">(.*?)</small>', text)
    return dict(re.findall(r'([\w-]+)="([^"]*)"', found[1])), upload[1] if upload else ""


def test_every_page_of_a_published_lesson_opens_in_colab(tmp_path):
    build_site(dataclasses.replace(TREE, repository="someone/lessons", branch="dev"), tmp_path)
    for lesson in TREE.lessons():
        for code in ("en", "ko"):
            link, upload = colab((tmp_path / code / f"{lesson.stem}.html").read_text())
            assert link == {"href": "https://colab.research.google.com/github/someone/lessons/blob/"
                                    f"dev/{code}/{lesson.stem}.ipynb"}
            assert upload == ""


@pytest.mark.parametrize(("arguments", "environment"), [
    (["--repository", "me/mine"], {}), ([], {"SAEM_REPOSITORY": "me/mine"})])
def test_the_command_takes_a_repository(small, tmp_path, arguments, environment):
    run = CliRunner().invoke(l10n, ["--root", str(small.root), "site", str(tmp_path / "site"),
                                    *arguments], env=environment)
    assert run.exit_code == 0, run.output
    link, _ = colab((tmp_path / "site" / "ko" / "01-small.html").read_text())
    assert link["href"].endswith("/github/me/mine/blob/main/ko/01-small.ipynb")


def test_the_command_refuses_a_name_that_is_none(small, tmp_path):
    run = CliRunner().invoke(l10n, ["--root", str(small.root), "site", str(tmp_path / "site"),
                                    "--repository", '"><script>'])
    assert run.exit_code == 1 and "owner/name" in run.output
    assert not (tmp_path / "site").exists()


def test_without_a_repository_a_page_links_to_colab_and_says_how_to_upload(site):
    assert TREE.repository == ""
    out, _ = site
    for lesson in TREE.lessons():
        for code, menu in (("en", "Upload notebook"), ("ko", "노트북 업로드")):
            text = (out / code / f"{lesson.stem}.html").read_text()
            link, upload = colab(text)
            assert link == {"href": "https://colab.research.google.com/",
                            "data-place": f"blob/main/{code}/{lesson.stem}.ipynb"}
            assert menu in upload
            assert f'<a href="{lesson.stem}.ipynb" download>' in text


@pytest.fixture
def small(tree):
    """The small lesson, translated, built in both languages."""
    po, _ = merge(units(read(tree.lesson("01"))), catalog.empty("ko"))
    for entry in po:
        entry.msgstr = "번역"
    catalog.save(po, tree.catalog("01-small", "ko"))
    for code in ("en", "ko"):
        building.build(tree, tree.lesson("01"), code, run=False)
    return tree


def test_what_a_program_printed_is_escaped(small, tmp_path):
    path = small.built("01-small", "en")
    notebook = nbformat.read(path, as_version=4)
    cell = next(c for c in notebook.cells if c.id == "run")
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="<script>1</script>"),
        nbformat.v4.new_output("error", ename="E", evalue="x", traceback=["\x1b[31m<b>x</b>"]),
        nbformat.v4.new_output("execute_result", {"text/plain": "<i>"}, execution_count=1),
    ]
    nbformat.write(notebook, path)
    build_site(small, tmp_path / "site")
    text = (tmp_path / "site" / "en" / "01-small.html").read_text()
    for bad in ("<script>1", "<b>x", "<i>", "\x1b"):
        assert bad not in text
    assert "&lt;script&gt;1" in text and "&lt;b&gt;x" in text


def test_a_link_to_a_lesson_that_is_not_there_becomes_text(small, tmp_path):
    source = small.lesson("01")
    source.write_text(source.read_text().replace(
        "Second paragraph.", "See [nine](09-x.ipynb) and [this](01-small.ipynb#run)."))
    building.build(small, source, "en", run=False)
    made = build_site(small, tmp_path / "site")
    assert made.missing == (("en/01-small", "09-x.ipynb"),)
    text = (tmp_path / "site" / "en" / "01-small.html").read_text()
    assert '<span class="not-yet">nine</span>' in text
    assert '<a href="01-small.html#run">this</a>' in text


def test_where_a_page_is_in_one_language_alone_the_switch_leads_to_the_index(small, tmp_path):
    (small.root / "ko" / "01-small.ipynb").unlink()
    building.build(small, small.lesson("01"), "en", run=False)
    (small.root / "ko" / "02-other.ipynb").write_bytes(
        (small.root / "en" / "01-small.ipynb").read_bytes())
    (small.notebooks / "02-other.md").write_text(small.lesson("01").read_text())
    build_site(small, tmp_path / "site")
    for page, switch in (("en/01-small", "../ko/index.html"), ("ko/02-other", "../en/index.html"),
                         ("ko/glossary", "../en/glossary.html")):
        path = tmp_path / "site" / f"{page}.html"
        links = [link for link in Reader(path).links if link.startswith("../")]
        assert switch in links
        assert all((path.parent / link).resolve().is_file() for link in links)


@pytest.mark.parametrize("place", ["index.html", "en/01-small.html", "ko/01-small.ipynb"])
def test_a_site_is_written_over_an_earlier_one_alone(small, tmp_path, place):
    out = tmp_path / "site"
    (out / place).parent.mkdir(parents=True)
    (out / place).write_text("somebody's own")
    run = CliRunner().invoke(l10n, ["--root", str(small.root), "site", str(out)])
    assert run.exit_code == 1 and f"{out / place} is there" in run.output
    assert [p for p in out.rglob("*") if p.is_file()] == [out / place]
    assert (out / place).read_text() == "somebody's own"
    (out / place).rename(out / "CNAME")
    assert build_site(small, out).pages == build_site(small, out).pages
    assert (out / "CNAME").read_text() == "somebody's own"


def test_without_notebooks_there_is_no_site(tree, tmp_path):
    with pytest.raises(FileNotFoundError, match="l10n build"):
        build_site(tree, tmp_path / "site")

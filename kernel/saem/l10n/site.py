"""How do the built lessons become a site that needs neither a kernel nor a server?

One page for each lesson and language is made of the notebook in the tree, with its outputs:
pictures, text, and the lens's views, which bring their own renderer.  Formulas become MathML.
Cells have the same ids in all languages, so the language switch keeps the reader's place, and one
index a language serves the search.  Nothing is loaded from another machine, and the pages also work
from a folder.

Read before: ``saem.l10n.build``.  Read after: ``saem.l10n.commands``.
Invariant: a link inside the site leads to a page of the site (tests/notebooks/test_site.py).
"""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
from latex2mathml.converter import convert as mathml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from saem.core.files import write_whole
from saem.l10n.assemble import HEADER, HIDE_INPUT, SETUP, frame
from saem.l10n.execute import error_text
from saem.l10n.figures import text_of
from saem.l10n.glossary import Glossary, load
from saem.l10n.project import COLAB, Project, write

_STATIC = Path(__file__).parent / "static"
_HEADING = re.compile(r"^(#{1,3})\s+(.*?)\s*$", re.M)
GLOSSARY = "glossary"

SAY = {
    "en": {
        "title": "Saem: lessons", "lessons": "Lessons", "glossary": "Glossary",
        "search": "Search", "nothing": "Nothing found.", "contents": "On this page",
        "code": "Code", "term": "Term", "accepted": "In Korean", "not": "Not", "why": "Why",
        "before": "Previous", "after": "Next", "notebook": "Download the notebook",
        "colab": "Open in Colab",
        "upload": "Download the notebook first. In Colab, choose File › Upload notebook, then "
                  "that file.",
        "about": "Learn how a JAX-style array engine works, on an engine made to be read. Each "
                 "page shows a lesson with its outputs; to predict and run, open it as a notebook.",
    },
    "ko": {
        "title": "Saem: 수업", "lessons": "수업", "glossary": "용어집",
        "search": "검색", "nothing": "찾은 것이 없습니다.", "contents": "이 페이지의 차례",
        "code": "코드", "term": "용어", "accepted": "한국어", "not": "쓰지 않는 말", "why": "까닭",
        "before": "이전", "after": "다음", "notebook": "노트북 내려받기",
        "colab": "Colab에서 열기",
        "upload": "먼저 노트북을 내려받으십시오. 그다음 Colab의 파일 › 노트북 업로드(Upload "
                  "notebook)에서 내려받은 파일을 고르십시오.",
        "about": "JAX 방식의 배열 엔진이 어떻게 동작하는지, 읽으라고 만든 엔진으로 배웁니다. "
                 "페이지마다 수업과 그 출력이 있습니다. 예측하고 실행하려면 노트북으로 여십시오.",
    },
}


@dataclasses.dataclass(frozen=True)
class Section:
    """One heading of a lesson with the prose under it: what the search finds."""

    page: str
    anchor: str
    title: str
    heading: str
    text: str


@dataclasses.dataclass(frozen=True)
class Site:
    """What was written, and the links that lead nowhere yet: pairs of a page and a target."""

    pages: tuple[Path, ...]
    missing: tuple[tuple[str, str], ...]


@dataclasses.dataclass
class _Page:
    """One page while it is made."""

    name: str
    title: str
    body: str
    headings: list[tuple[int, str, str]]
    sections: list[Section]


def build_site(project: Project, out: Path) -> Site:
    """Write the site of all built notebooks into the folder ``out``.

    Raises FileNotFoundError if no notebook is built, FileExistsError if files in ``out`` are not of
    a site; nothing is written then.
    """
    languages = [code for code in (project.source_language, *project.languages)
                 if any((project.root / code).glob("[0-9][0-9]-*.ipynb"))]
    if not languages:
        raise FileNotFoundError("no notebook is built; run `saem l10n build` first.")
    names = {code: [p.stem for p in project.lessons() if project.built(p.stem, code).is_file()]
             for code in languages}
    prose = {code: sorted(p for p in (project.root / code).glob("*.md") if p.stem != GLOSSARY)
             for code in languages}
    known = {code: [GLOSSARY, *names[code], *(p.stem for p in prose[code])] for code in languages}
    # First: by it the folder is known again.
    texts = {"index.html": _entrance({code: frame(project, code)["name"] for code in languages})}
    copies: dict[str, Path] = {}
    missing: list[tuple[str, str]] = []
    for code in languages:
        pages = [_lesson(project, code, name, names[code], missing) for name in names[code]]
        pages += [_text(path, code, known[code], missing) for path in prose[code]]
        pages.append(_glossary(load(project.glossary), code))
        shell = functools.partial(_shell, project, code, known, pages)
        texts[f"{code}/index.html"] = shell(_index(code, pages), None)
        for page in pages:
            texts[f"{code}/{page.name}.html"] = shell(page.body, page)
        for name in names[code]:
            copies[f"{code}/{name}.ipynb"] = project.built(name, code)
        found = [dataclasses.asdict(s) for page in pages for s in page.sections]
        texts[f"{code}/search.js"] = f"window.saemSearch = {_script_json(found)};\n"
    style = (_STATIC / "site.css").read_text(encoding="utf-8")
    colours = HtmlFormatter(cssclass="source").get_style_defs(".source")
    dark = HtmlFormatter(style="github-dark", cssclass="source").get_style_defs(".source")
    texts["site.css"] = (
        f"{style}\n{colours}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n")
    texts["site.js"] = (_STATIC / "site.js").read_text(encoding="utf-8")
    _refuse_other_files(out, [*texts, *copies])
    for place, text in texts.items():
        write(out / place, text)
    for place, notebook in copies.items():
        write_whole(out / place, notebook.read_bytes())
    return Site(tuple(out / place for place in texts), tuple(dict.fromkeys(missing)))


def _refuse_other_files(out: Path, places: list[str]) -> None:
    """Refuse to write over files in ``out``, unless an earlier site is there.

    Raises FileExistsError.
    """
    entrance = out / "index.html"
    if entrance.is_file() and entrance.read_bytes().startswith(_ENTRANCE.encode()):
        return
    for place in places:
        if (out / place).exists():
            raise FileExistsError(f"{out / place} is there and no part of a site that was written "
                                  "before. Name an empty or a new folder.")


def words_for(code: str) -> dict[str, str]:
    """The site's own words in a language; English where they are not written."""
    return SAY.get(code, SAY["en"])


# --- one lesson ----------------------------------------------------------------------------------


def _lesson(project: Project, code: str, name: str, known: list[str],
            missing: list[tuple[str, str]]) -> _Page:
    notebook = nbformat.read(project.built(name, code), as_version=4)
    headings: list[tuple[int, str, str]] = []
    sections: list[Section] = []
    parts = []
    title = name
    for cell in notebook.cells:
        if cell.id == HEADER:
            continue
        if cell.cell_type == "code":
            parts.append(_code_cell(cell, code))
            continue
        for count, found in enumerate(_HEADING.finditer(_without_code(cell.source))):
            anchor = cell.id if count == 0 else f"{cell.id}-{count}"
            text = _plain(found[2])
            headings.append((len(found[1]), anchor, text))
            title = text if len(found[1]) == 1 else title
        anchor = next((a for _, a, _ in headings[::-1]), cell.id)
        sections.append(Section(name, anchor, title, headings[-1][2] if headings else title,
                                _plain(cell.source)))
        link = _links(f"{code}/{name}", known, missing)
        text = _markdown(cell.source, link, cell.id)
        parts.append(f'<section id="{html.escape(cell.id)}">{text}</section>')
    return _Page(name, title, "\n".join([_open(project, code, name), *parts]), headings, sections)


def _open(project: Project, code: str, name: str) -> str:
    """The ways to run a lesson: the notebook itself, and Colab.

    Where no repository is known, the link opens Colab itself, and the words after it say how to
    upload the notebook there.  It also has the place of the notebook inside a repository: the
    script makes it lead to the lesson if the site is served as OWNER.github.io.
    """
    say = {key: html.escape(value) for key, value in words_for(code).items()}
    address = html.escape(project.colab(name, code))
    place = html.escape(f"blob/{project.branch}/{code}/{name}.ipynb")
    badge = (f'<a class="colab" href="{address}">{say["colab"]}</a>' if address else
             f'<a class="colab" href="{COLAB}" data-place="{place}">{say["colab"]}</a>')
    upload = "" if address else f'<small class="upload">{say["upload"]}</small>'
    return (f'<p class="open">{badge}<a href="{name}.ipynb" download>{say["notebook"]}</a>'
            f"{upload}</p>")


def _text(path: Path, code: str, known: list[str], missing: list[tuple[str, str]]) -> _Page:
    """A page of text that is no lesson, such as the team's ground rules."""
    source = path.read_text(encoding="utf-8")
    first = _HEADING.search(_without_code(source))
    title = _plain(first[2]) if first else path.stem
    body = _markdown(source, _links(f"{code}/{path.stem}", known, missing), path.stem)
    section = Section(path.stem, path.stem, title, title, _plain(source))
    return _Page(path.stem, title, f'<section id="{path.stem}">{body}</section>', [], [section])


def _links(page: str, known: list[str], missing: list[tuple[str, str]]) -> Callable[[str], str]:
    """What a link to another notebook becomes: its page, or '' where there is none."""

    def link(target: str) -> str:
        found = re.fullmatch(r"([\w-]+)\.(?:ipynb|md)(#.*)?", target)
        if found is None:
            return target
        if found[1] not in known:
            missing.append((page, target))
            return ""
        return f"{found[1]}.html{found[2] or ''}"

    return link


def _markdown(text: str, link: Callable[[str], str], cell: str) -> str:
    """A text cell as HTML; its headings after the first have anchors of their own."""
    md = _renderer()
    tokens = md.parse(text)
    opened = [t for t in tokens if t.type == "heading_open" and t.tag in ("h1", "h2", "h3")]
    for count, heading in enumerate(opened[1:], start=1):
        heading.attrs["id"] = f"{cell}-{count}"
    for token in tokens:
        children = token.children or []
        for child in children:
            if child.type == "link_open":
                target = link(str(child.attrs.get("href", "")))
                if target:
                    child.attrs["href"] = target
                else:  # the text stays, the link goes
                    child.attrs = {"class": "not-yet"}
                    child.tag = "span"
                    child.meta["gone"] = True
            if child.type == "link_close" and any(c.meta.get("gone") for c in children):
                opened = [c for c in children[:children.index(child)] if c.type == "link_open"]
                child.tag = opened[-1].tag
    return md.renderer.render(tokens, md.options, {})


@functools.cache
def _renderer() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": True}).enable("table")
    return md.use(dollarmath_plugin, renderer=_formula, allow_space=False)


def _formula(text: str, options: dict) -> str:
    return mathml(text, display="block" if options["display_mode"] else "inline")


def _code_cell(cell: nbformat.NotebookNode, code: str) -> str:
    source = highlight(cell.source, PythonLexer(), HtmlFormatter(cssclass="source"))
    hidden = cell.id == SETUP or HIDE_INPUT in cell.metadata.get("tags", ())
    if hidden:
        label = html.escape(words_for(code)["code"])
        source = f"<details><summary>{label}</summary>{source}</details>"
    outputs = "".join(_output(o) for o in cell.outputs)
    shown = f'<div class="outputs">{outputs}</div>' if outputs else ""
    return f'<section class="code" id="{html.escape(cell.id)}">{source}{shown}</section>'


def _output(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        return f'<pre class="{html.escape(output.name)}">{html.escape(output.text)}</pre>'
    if output.output_type == "error":
        return f'<pre class="error">{html.escape(error_text(output))}</pre>'
    data = output.data
    if "text/html" in data:  # what the lens made: it escapes what comes from programs
        return f'<div class="view">{data["text/html"]}</div>'
    if "image/svg+xml" in data:
        return f'<div class="view">{data["image/svg+xml"]}</div>'
    if "image/png" in data:
        picture = html.escape("".join(data["image/png"].split()))
        alt = html.escape(text_of(output))
        return f'<img alt="{alt}" src="data:image/png;base64,{picture}">'
    return f"<pre>{html.escape(data.get('text/plain', ''))}</pre>"


def _without_code(text: str) -> str:
    """Markdown without fenced code, whose comments look like headings."""
    return re.sub(r"^(```+|~~~+).*?^\1", "", text, flags=re.M | re.S)


def _plain(text: str) -> str:
    """Markdown as a search finds it: words without marks."""
    text = re.sub(r"<[^>]+>|!?\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", _without_code(text))
    return " ".join(re.sub(r"[`*#|]+|\$", "", text).split())


# --- what stands around --------------------------------------------------------------------------


def _index(code: str, pages: list[_Page]) -> str:
    say = words_for(code)
    items = "".join(f'<li><a href="{p.name}.html">{html.escape(_number(p))}{html.escape(p.title)}'
                    "</a></li>" for p in pages)
    return f"<h1>{html.escape(say['title'])}</h1><p>{html.escape(say['about'])}</p>" \
           f'<ul class="lessons">{items}</ul>'


def _number(page: _Page) -> str:
    return f"{page.name[:2]} · " if page.name[:2].isdigit() else ""


def _glossary(glossary: Glossary, code: str) -> _Page:
    say = words_for(code)
    rows, sections = [], []
    korean = ' lang="ko"'
    languages = (' lang="en"', korean, korean, "")
    for term in sorted(glossary.terms, key=lambda t: t.term.casefold()):
        anchor = "term-" + re.sub(r"[^a-z0-9]+", "-", term.term.lower())
        cells = (term.term, term.translation, ", ".join(term.rejected),
                 term.reason.get(code, term.reason.get("en", "")))
        shown = "".join(f"<td{language}>{html.escape(cell)}</td>"
                        for language, cell in zip(languages, cells, strict=True))
        rows.append(f'<tr id="{anchor}">{shown}</tr>')
        sections.append(Section(GLOSSARY, anchor, say["glossary"], term.term,
                                " ".join(cells[1:])))
    titles = [say[key] for key in ("term", "accepted", "not", "why")]
    head = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in titles)
    body = (f"<h1>{html.escape(say['glossary'])}</h1>"
            f'<div class="view"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
            "</table></div>")
    return _Page(GLOSSARY, say["glossary"], body, [], sections)


def _shell(project: Project, code: str, known: dict[str, list[str]], pages: list[_Page], body: str,
           page: _Page | None) -> str:
    """A whole page around ``body``; ``page`` is None for the index.

    ``known`` has the pages of each language: the switch leads to the index where one is missing.
    """
    say = words_for(code)
    here = page.name if page else "index"
    others = "".join(
        f'<a class="language" lang="{other}" hreflang="{other}" '
        f'href="../{other}/{here if here in there else "index"}.html"'
        f'{" aria-current=true" if other == code else ""}>'
        f"{html.escape(frame(project, other)['name'])}</a>" for other, there in known.items())
    menu = "".join(
        f'<li><a href="{p.name}.html"{" aria-current=page" if p is page else ""}>'
        f"{html.escape(_number(p))}{html.escape(p.title)}</a></li>" for p in pages)
    contents = "".join(f'<li><a href="#{anchor}">{html.escape(text)}</a></li>'
                       for level, anchor, text in (page.headings if page else []) if level == 2)
    contents = (f'<nav class="contents" aria-label="{html.escape(say["contents"])}"><b>'
                f"{html.escape(say['contents'])}</b><ul>{contents}</ul></nav>") if contents else ""
    title = html.escape(f"{page.title} · Saem" if page else say["title"])
    search = html.escape(say["search"])
    return (
        f'<!doctype html><html lang="{code}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title>{_ICON}<link rel="stylesheet" href="../site.css"></head><body>'
        f'<header><a class="home" href="index.html">Saem 샘</a>'
        f'<input type="search" placeholder="{search}" aria-label="{search}" '
        f'data-nothing="{html.escape(say["nothing"])}"><nav class="languages">{others}</nav>'
        '<ol id="results" hidden></ol></header><div class="columns">'
        f'<details class="menu"><summary>{html.escape(say["lessons"])}</summary>'
        f"<nav><ul>{menu}</ul></nav></details>"
        f"<main>{body}{_neighbours(page, pages, say)}</main>{contents}</div>"
        '<script src="search.js"></script><script src="../site.js"></script></body></html>\n'
    )


def _neighbours(page: _Page | None, pages: list[_Page], say: dict[str, str]) -> str:
    if page is None:
        return ""
    at = pages.index(page)
    links = []
    for label, other in (("before", at - 1), ("after", at + 1)):
        if 0 <= other < len(pages):
            links.append(f'<a class="{label}" href="{pages[other].name}.html">'
                         f"<small>{html.escape(say[label])}</small> "
                         f"{html.escape(pages[other].title)}</a>")
    return f'<nav class="neighbours">{"".join(links)}</nav>'


_ENTRANCE = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Saem</title>'
_ICON = '<link rel="icon" href="data:,">'  # none: a browser would ask for one


def _entrance(names: dict[str, str]) -> str:
    """The page that sends a reader to the index in the language of the browser.

    ``names`` has the languages by their codes.
    """
    links = " ".join(f'<a lang="{code}" href="{code}/index.html">{html.escape(name)}</a>'
                     for code, name in names.items())
    script = (f"const have = {json.dumps(list(names))}; const want = navigator.languages.flatMap("
              "l => [l, l.split('-')[0]]).find(l => have.includes(l)) ?? have[0];"
              "location.replace(want + '/index.html');")
    return (f'{_ENTRANCE}<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"{_ICON}</head><body>{links}<script>{script}</script></body></html>\n")


def _script_json(value: object) -> str:
    """JSON that may stand in a script."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")

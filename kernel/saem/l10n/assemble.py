"""What is in the notebook of a lesson in one language, before it runs?

A header, a setup cell, and the lesson's cells with each unit in that language.  A unit that has no
translation appears in English, and so does one whose English changed, with the earlier translation
folded beneath it; both carry a visible badge.

Read before: ``saem.l10n.units``, ``saem.l10n.catalog``.  Read after: ``saem.l10n.build``.
Invariant: ids, order, tags and code are the same in every language, but for the language's name in
the setup cell (tests/notebooks/test_lessons.py).
"""

from __future__ import annotations

import hashlib
import json

import nbformat
import polib

import saem
from saem.l10n.catalog import active, load, state
from saem.l10n.project import COLAB, Project
from saem.l10n.source import Cell, Lesson
from saem.l10n.units import Unit, compose

HEADER, SETUP = "saem-header", "saem-setup"
GENERATED_TAG = "saem-generated"
HIDE_INPUT = "hide-input"
NAMES = {"en": "English", "ko": "한국어"}

_SAY = {
    "en": {
        "generated": "Generated from {source}. Edit that file, not this one.",
        "colab": "Open in Colab",
        "upload": "there, choose *File › Upload notebook*, then this file",
        "wheel": "Where PyPI has no Saem, its wheel (`make wheel`) may lie in this folder.",
        "setup": "Prepares the notebook: installs Saem where it is missing (in Colab, say).",
    },
    "ko": {
        "generated": "{source}에서 만들어진 파일입니다. 이 파일이 아니라 원본을 고쳐 주십시오.",
        "colab": "Colab에서 열기",
        "upload": "Colab이 열리면 *파일 › 노트북 업로드*(Upload notebook)에서 이 파일을 고르십시오",
        "wheel": "PyPI에 Saem이 없다면 `make wheel`로 만든 휠 파일을 이 폴더에 두면 됩니다.",
        "setup": "노트북을 준비합니다. Saem이 없는 곳(예: Colab)에서는 먼저 설치합니다.",
        "missing": "아직 번역되지 않은 부분입니다.",
        "stale": "영어 원문이 바뀌어 다시 번역해야 합니다.",
        "earlier": "이전 원문의 번역 보기",
        "draft": "번역 초안입니다.",
    },
}

_BADGES = {
    "missing": "This part is not translated yet.",
    "stale": "The English has changed, and is not translated yet.",
    "earlier": "Show the translation of what it was",
    "draft": "A draft of a translation.",
}

_SETUP = """\
# {comment}
import importlib.metadata
import importlib.util
import runpy

if importlib.util.find_spec("saem") is None:
    # {wheel}
    %pip install --quiet --no-deps --find-links . "saem=={version}"
    importlib.invalidate_caches()
    saem_files = importlib.metadata.distribution("saem")
    prepare = runpy.run_path(str(saem_files.locate_file("saem/lesson/prepare.py")))["prepare"]
    prepare(language="{language}")

from saem import lesson

lesson.begin("{name}", language="{language}")"""


FRAME = "frame"


def frame_units() -> list[Unit]:
    """What stands around lessons, as units: a new language translates it in ``frame.po``."""
    return [Unit(FRAME, key, 0, text)
            for key, text in ({"name": NAMES["en"]} | _SAY["en"] | _BADGES).items()]


def frame(project: Project, language: str) -> dict[str, str]:
    """What stands around lessons in a language; English where it is not translated.

    ``name`` is the language's own name, its code where that is not translated.
    """
    if language in _SAY:
        return {"name": NAMES[language]} | _SAY[language]
    entries = active(load(project.catalog(FRAME, language), language))
    said = {unit.kind: entries[unit.context].msgstr for unit in frame_units()
            if unit.context in entries and entries[unit.context].msgstr}
    english = {unit.kind: unit.text for unit in frame_units()}
    return english | {"name": language} | said


def assemble(
    project: Project, lesson: Lesson, language: str, po: polib.POFile | None
) -> nbformat.NotebookNode:
    """The notebook without outputs; ``po`` is None for the source language."""
    entries = active(po) if po is not None else None
    say = frame(project, language)
    cells = [_header(project, lesson, language, say), _setup(lesson, language, say)]
    cells += [_cell(cell, say, entries) for cell in lesson.cells]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"file_extension": ".py", "name": "python"},
        }
    )
    notebook.metadata["saem"] = {
        "generated_from": f"notebooks/{lesson.name}.md",
        "language": language,
        "lesson": lesson.name,
        "source_hash": content_hash(notebook),
    }
    return notebook


def content_hash(notebook: nbformat.NotebookNode) -> str:
    """A hash of everything but outputs: the same for the same lesson and translation."""
    content = [
        [c.id, c.cell_type, c.source, list(c.metadata.get("tags", ()))] for c in notebook.cells
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:16]


def strings(lesson_units: list[Unit], po: polib.POFile) -> dict[str, str]:
    """What ``t("…")`` finds at run time: English to translation, stale ones left out."""
    entries = active(po)
    return {
        unit.text: entries[unit.context].msgstr
        for unit in lesson_units
        if unit.kind == "string" and state(entries.get(unit.context)) in ("translated", "reviewed")
    }


def _header(project: Project, lesson: Lesson, language: str, say: dict[str, str]
            ) -> nbformat.NotebookNode:
    others = [code for code in (project.source_language, *project.languages) if code != language]
    links = [f"[{frame(project, code)['name']}](../{code}/{lesson.name}.ipynb)" for code in others]
    address = project.colab(lesson.name, language)
    badge = f"**[{say['colab']}]({address or COLAB})**"
    links.insert(0, badge if address else f"{badge} ({say['upload']})")
    note = say["generated"].replace("{source}", f"notebooks/{lesson.name}.md")
    return _new("markdown", HEADER, f"<!-- {note} -->\n{' · '.join(links)}", [GENERATED_TAG])


def _setup(lesson: Lesson, language: str, say: dict[str, str]) -> nbformat.NotebookNode:
    source = _SETUP.format(comment=say["setup"], name=lesson.name, language=language,
                           version=saem.__version__, wheel=say["wheel"])
    return _new("code", SETUP, source, [GENERATED_TAG])


def _cell(
    cell: Cell, say: dict[str, str], entries: dict[str, polib.POEntry] | None
) -> nbformat.NotebookNode:
    def translate(unit: Unit) -> str:
        if entries is None:
            return unit.text
        entry = entries.get(unit.context)
        if entry is None or entry.msgid != unit.text:
            entry = None
        condition = state(entry)
        if entry is None or condition == "missing":
            return _badged(unit.kind, unit.text, condition, say[condition])
        if condition == "stale":
            badged = _badged(unit.kind, unit.text, condition, say[condition])
            return badged + _earlier(unit.kind, entry.msgstr, say["earlier"])
        if condition == "draft":
            return _badged(unit.kind, entry.msgstr, condition, say[condition])
        return entry.msgstr

    return _new(cell.kind, cell.id, compose(cell, translate), list(cell.tags))


def _badged(kind: str, text: str, condition: str, note: str) -> str:
    """The text with a mark that a reader sees."""
    if kind == "comment":
        return f"{text} (⚠ {note})"
    if kind == "heading":
        return f"{text} ⚠"
    return f'<div class="saem-{condition}">⚠ {note}</div>\n\n{text}'


EARLIER = "saem-earlier"


def _earlier(kind: str, text: str, label: str) -> str:
    """The translation of what a block was before, folded; headings and comments have none."""
    if kind in ("heading", "comment"):
        return ""
    return (f'\n\n<details class="{EARLIER}"><summary>{label}</summary>\n\n{text}\n\n'
            "</details>")


def _new(kind: str, identity: str, source: str, tags: list[str]) -> nbformat.NotebookNode:
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    metadata: dict[str, object] = {"tags": tags} if tags else {}
    if HIDE_INPUT in tags:
        metadata["jupyter"] = {"source_hidden": True}
    return make(source=source, id=identity, metadata=metadata)

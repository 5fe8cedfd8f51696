"""Which pages are there beside the lessons?  The glossary, and how the team works.

``en/glossary.md`` and ``ko/glossary.md`` are made of ``glossary.yml``; every other text in
``notebooks/`` that is no lesson (``ground-rules.md``) becomes a page in each language, by the same
units and PO files as a lesson.

Read before: ``saem.l10n.units``, ``saem.l10n.glossary``, ``saem.l10n.assemble``.
Read after: ``saem.l10n.build``.
Invariant: a page depends on its sources alone, to the byte (tests/notebooks/test_pages.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from saem.l10n.assemble import assemble
from saem.l10n.catalog import load
from saem.l10n.glossary import Term
from saem.l10n.glossary import load as load_glossary
from saem.l10n.project import Project
from saem.l10n.source import read

_COLUMNS = {
    "en": (("English", "Korean", "not", "why"), ("name", "reading")),
    "ko": (("영어", "한국어", "쓰지 않는 말", "까닭"), ("이름", "읽는 법")),
}

_SAY = {
    "en": {
        "generated": "Generated from {source}. Edit that file, not this one.",
        "title": "Glossary",
        "intro": "The words that the lessons use, in both languages. How they were chosen is told "
                 "in [how this team translates](ground-rules.md).",
        "readings_title": "Names from code",
        "readings": "How names from code are read aloud in Korean. The particle after a name "
                    "follows its reading.",
    },
    "ko": {
        "generated": "{source}에서 만들어진 파일입니다. 이 파일이 아니라 원본을 고쳐 주십시오.",
        "title": "용어집",
        "intro": "수업에서 쓰는 말을 두 언어로 모았습니다. 어떻게 골랐는지는 "
                 "[우리 팀이 번역하는 방법](ground-rules.md)에 있습니다.",
        "readings_title": "코드에 나오는 이름",
        "readings": "코드에 나오는 이름을 한국어로 읽는 법입니다. "
                    "이름 뒤의 조사는 읽는 소리를 따릅니다.",
    },
}


def planned_pages(project: Project) -> dict[Path, str]:
    """The text of every page in every language, by the file it belongs in.

    Raises SourceError, GlossaryError.
    """
    pages = {}
    for language in (project.source_language, *project.languages):
        folder = project.root / language
        pages[folder / "glossary.md"] = _glossary(project, language)
        for source in project.pages():
            pages[folder / source.name] = _text(project, source, language)
    return pages


def check_pages(project: Project) -> list[str]:
    """What is out of date, one sentence each."""
    return [f"{path.relative_to(project.root)} is not what its sources say."
            for path in outdated(planned_pages(project))]


def outdated(wanted: Mapping[Path, str]) -> dict[Path, str]:
    """The files, and what they should hold, whose text is not that of ``wanted``."""
    return {path: text for path, text in wanted.items()
            if not path.is_file() or path.read_text(encoding="utf-8") != text}


def _text(project: Project, source: Path, language: str) -> str:
    """A page of prose: the cells of its source, each unit in ``language``."""
    page = read(source)
    po = None
    if language != project.source_language:
        po = load(project.catalog(page.name, language), language)
    notebook = assemble(project, page, language, po)
    prose = [cell.source for cell in notebook.cells
             if cell.cell_type == "markdown" and cell.id in {c.id for c in page.cells}]
    return "\n\n".join([_note(f"notebooks/{source.name}", language), *prose]) + "\n"


def _glossary(project: Project, language: str) -> str:
    say = _SAY.get(language, _SAY["en"])
    columns, reading_columns = _COLUMNS.get(language, _COLUMNS["en"])
    glossary = load_glossary(project.glossary)
    terms = sorted(glossary.terms, key=lambda term: term.term.lower())
    named = {term.term for term in terms}
    readings = [(f"`{name}`", reading) for name, reading in glossary.readings.items()
                if name not in named]
    return "\n".join([
        _note("notebooks/glossary.yml", language), "",
        f"# {say['title']}", "", say["intro"], "",
        *_table(columns, [_row(term, language) for term in terms]), "",
        f"## {say['readings_title']}", "", say["readings"], "",
        *_table(reading_columns, sorted(readings, key=lambda row: row[0].lower())),
    ]) + "\n"


def _row(term: Term, language: str) -> tuple[str, ...]:
    reason = term.reason.get(language, term.reason.get("en", ""))
    return term.term, term.translation, ", ".join(term.rejected), reason


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [_line(head), _line(("---",) * len(head)), *map(_line, rows)]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _note(source: str, language: str) -> str:
    say = _SAY.get(language, _SAY["en"])
    return f"<!-- {say['generated'].format(source=source)} -->"

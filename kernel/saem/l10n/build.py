"""How do the built notebooks come to be, and are they up to date?

Read before: ``saem.l10n.assemble``, ``saem.l10n.execute``.  Read after: ``saem.l10n.commands``.
Invariant: ``check`` executes nothing, and is silent exactly when a build would change no cell
(tests/notebooks/test_build.py).
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import nbformat
import polib

from saem.l10n.assemble import HEADER, SETUP, assemble, content_hash, strings
from saem.l10n.catalog import load
from saem.l10n.execute import execute
from saem.l10n.figures import describe
from saem.l10n.pages import check_pages, outdated, planned_pages
from saem.l10n.project import SETTINGS, Project, write
from saem.l10n.source import Lesson, read
from saem.l10n.units import units


def translations(project: Project, lesson: str, language: str) -> polib.POFile | None:
    """The PO file of a lesson; None for the source language."""
    if language == project.source_language:
        return None
    return load(project.catalog(lesson, language), language)


def planned(project: Project, lesson: Lesson, language: str) -> nbformat.NotebookNode:
    """The notebook as a build would make it, not run."""
    return assemble(project, lesson, language, translations(project, lesson.name, language))


def write_texts(project: Project) -> list[Path]:
    """Write the strings that lessons look up at run time, and the pages; return what changed."""
    changed = outdated({**_strings(project), **planned_pages(project)})
    for path, text in changed.items():
        write(path, text)
    return list(changed)


def build(project: Project, source: Path, language: str, run: bool = True) -> Path:
    """Write the notebook of one lesson in one language, with outputs if ``run``.

    Raises SourceError, ExecutionError; ValueError if somebody edited the notebook that is there.
    """
    lesson = read(source)
    notebook = planned(project, lesson, language)
    refuse_edited(project, lesson.name, language, notebook)
    if run:
        execute(notebook)
        po = translations(project, lesson.name, language)
        describe(notebook, strings(units(lesson), po) if po is not None else {})
    path = project.built(lesson.name, language)
    nbformat.validate(notebook)
    write(path, nbformat.writes(notebook).rstrip("\n") + "\n")
    return path


def refuse_edited(project: Project, lesson: str, language: str, wanted: nbformat.NotebookNode
                  ) -> None:
    """Refuse to write ``wanted`` over a built notebook that was edited and says something else.

    Raises ValueError.
    """
    path = project.built(lesson, language)
    try:
        stored = project.stored(lesson, language)
    except Exception:  # what json and validators raise: there is nothing to read in it
        return
    facts = None if stored is None else stored.metadata.get("saem")
    if stored is None or not isinstance(facts, dict) or content_hash(stored) in (
            facts.get("source_hash"), content_hash(wanted)):
        return
    name = path.relative_to(project.root)
    where = f"notebooks/{lesson}.md and its PO files" if language == project.source_language else (
        f"its PO file: saem l10n import {name} --by YOUR-NAME")
    raise ValueError(
        f"{name} was edited since it was built, and a build would lose that. Take what is worth "
        f"keeping over into {where}. Then delete {name} and build again.")


def renew_frame(project: Project, source: Path, language: str) -> bool:
    """Write anew what stands around a lesson, and keep its outputs; whether it changed.

    Raises FileNotFoundError if the notebook is not built, ValueError if more than that is out of
    date.
    """
    lesson = read(source)
    path = project.built(lesson.name, language)
    name = path.relative_to(project.root)
    if not path.is_file():
        raise FileNotFoundError(f"{name} is not built. Run `saem l10n build {lesson.name}`.")
    stored, wanted = nbformat.read(path, as_version=4), planned(project, lesson, language)
    if _inside(stored) != _inside(wanted):
        raise ValueError(f"{name} is not as its source makes it. "
                         f"Run `saem l10n build {lesson.name}`.")
    if _content(stored) == _content(wanted):
        return False
    kept = {c.id: c for c in stored.cells}
    for cell in wanted.cells:
        if cell.cell_type == "code":
            cell.outputs = kept[cell.id].outputs
            cell.execution_count = kept[cell.id].execution_count
    write(path, nbformat.writes(wanted).rstrip("\n") + "\n")
    return True


def publish(project: Project, repository: str, branch: str) -> list[Path]:
    """Name the public repository in the settings, and link every built notebook to it.

    Returns the files that changed.  Raises ValueError for a name that GitHub does not take, or if
    a notebook is out of date; nothing has changed then.
    """
    named = dataclasses.replace(project, repository=repository, branch=branch)
    problems = check(project)
    if problems:
        raise ValueError("\n".join(problems))
    settings = project.root / SETTINGS
    before = text = settings.read_text(encoding="utf-8")
    for key, value in (("repository", repository), ("branch", branch)):
        text, found = re.subn(rf"(?m)^{key}\s*=.*$", f'{key} = "{value}"', text)
        text = text if found else f'{key} = "{value}"\n{text}'
    changed = [settings] if text != before else []
    write(settings, text)
    for source in project.lessons():
        for language in (project.source_language, *project.languages):
            if renew_frame(named, source, language):
                changed.append(project.built(source.stem, language))
    return changed


def check(project: Project) -> list[str]:
    """What is out of date, one sentence each."""
    problems = []
    for source in project.lessons():
        lesson = read(source)
        for language in (project.source_language, *project.languages):
            name = project.built(lesson.name, language).relative_to(project.root)
            built = project.stored(lesson.name, language)
            if built is None:
                problems.append(f"{name} is not built.")
            elif _content(built) != _content(planned(project, lesson, language)):
                problems.append(f"{name} differs from its source or was edited by hand.")
    problems += [f"{path.relative_to(project.root)} is out of date."
                 for path in outdated(_strings(project))]
    problems += check_pages(project)
    return [f"{problem} Run `saem l10n build`." for problem in problems]


def _content(notebook: nbformat.NotebookNode) -> tuple:
    """All that a build decides, outputs aside."""
    cells = [(c.id, c.cell_type, c.source, dict(c.metadata)) for c in notebook.cells]
    return cells, dict(notebook.metadata)


def _inside(notebook: nbformat.NotebookNode) -> list[tuple]:
    """The cells of the lesson, without those that stand around it."""
    return [cell for cell in _content(notebook)[0] if cell[0] not in (HEADER, SETUP)]


def _strings(project: Project) -> dict[Path, str]:
    """The file of each language, and the strings of all lessons as it should hold them."""
    lessons, wanted = [read(source) for source in project.lessons()], {}
    for language in project.languages:
        found = {lesson.name: strings(units(lesson), load(
            project.catalog(lesson.name, language), language)) for lesson in lessons}
        wanted[project.strings(language)] = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
    return wanted

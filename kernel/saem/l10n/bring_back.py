"""How does an edited notebook come back into its PO file?

Some translators edit the built Korean notebook itself.  Its cells are those of the lesson, so each
text is cut into units again and taken over where it differs from what the build would write.  Code
and structure are not a translator's to change: a notebook that changed them is refused, with the
cells named, and nothing is written.  So is one that was built before the lesson or the translation
changed, where it would put its text over another translator's, or beneath other English.

Read before: ``saem.l10n.assemble``, ``saem.l10n.units``.  Read after: ``saem.l10n.commands``.
Invariant: building after an import gives the texts of the imported notebook
(tests/notebooks/test_bring_back.py).
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import nbformat

from saem.l10n.assemble import EARLIER, HEADER, SETUP
from saem.l10n.build import planned
from saem.l10n.catalog import active, load, save
from saem.l10n.lint.structure import MESSAGES, differences
from saem.l10n.merge import merge
from saem.l10n.project import Project
from saem.l10n.review import replace, signature
from saem.l10n.source import Cell, Lesson, read
from saem.l10n.units import Unit, pieces, units

# What a build puts behind a heading or a comment that is not translated.
_BADGE = re.compile(r"\s*(?:\(⚠[^()]*\)|⚠)$")


# The earlier translation, which a build folds beneath a block that changed.
_FOLDED = re.compile(rf'\n\n<details class="{EARLIER}">.*?</details>', re.S)


class ImportRefused(ValueError):
    """The notebook changed what only the lesson's source may change."""


@dataclasses.dataclass(frozen=True)
class Imported:
    """What an import took over: which lesson and language, and the contexts of changed units."""

    lesson: str
    language: str
    changed: tuple[str, ...]


def bring_back(project: Project, path: Path, translator: str, anyway: bool = False) -> Imported:
    """Take the texts of the notebook at ``path`` over into its PO file, signed by ``translator``.

    ``anyway``: also over what changed since the notebook was built.
    Raises ImportRefused, ReviewError.
    """
    notebook, lesson, language = _belongs(project, path)
    expected = planned(project, lesson, language)
    _check_structure(expected, notebook, path)
    catalog = project.catalog(lesson.name, language)
    po, _ = merge(units(lesson), load(catalog, language))
    entries = active(po)
    is_older = notebook.metadata.saem.get("source_hash") != expected.metadata.saem["source_hash"]
    changed, others = [], []
    for cell, before, now in zip(lesson.cells, _own(expected), _own(notebook), strict=True):
        for unit, old, new in _texts(cell, before.source, now.source, path):
            if old != new:
                signed = signature(entries[unit.context])
                if signed is None or signed.translator != translator or signed.reviewer:
                    others.append(unit.context)
                replace(entries[unit.context], _BADGE.sub("", new), translator)
                changed.append(unit.context)
    if is_older and others and not anyway:
        built = project.built(lesson.name, language).relative_to(project.root)
        raise ImportRefused(
            f"{path} was built before the lesson or its translation changed, and differs from "
            f"what is there now in {', '.join(others)}. Nothing was imported. Copy your "
            f"notebook aside, delete {built}, build it again with `saem l10n build "
            f"{lesson.name}`, and carry your edits over into the new one. Or import yours with "
            "--anyway, which puts its text over the present one.")
    if changed:
        save(po, catalog)
    return Imported(lesson.name, language, tuple(changed))


def _belongs(project: Project, path: Path) -> tuple[nbformat.NotebookNode, Lesson, str]:
    """The notebook, and the lesson and language that it was built from."""
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat raises what json and validators raise
        raise ImportRefused(f"{path} is not a notebook: {error}") from error
    facts = notebook.metadata.get("saem")
    if not isinstance(facts, dict) or not isinstance(facts.get("lesson"), str):
        raise ImportRefused(f"{path} does not say of which lesson it is: it was not built by "
                            "`saem l10n build`.")
    language = facts.get("language")
    if language == project.source_language:
        raise ImportRefused(f"{path} is the {language} notebook: its texts are edited in "
                            f"{facts.get('generated_from')}.")
    if language not in project.languages:
        raise ImportRefused(f"{path} was not built by `saem l10n build` for one of "
                            f"{', '.join(project.languages)}.")
    return notebook, read(project.lesson(facts["lesson"])), language


def _check_structure(expected: nbformat.NotebookNode, notebook: nbformat.NotebookNode, path: Path
                     ) -> None:
    wrong = [MESSAGES[rule]["en"].format(detail)
             for rule, detail in differences(expected, notebook)]
    if wrong:
        raise ImportRefused(f"{path}: only texts and comments can be imported. {' '.join(wrong)} "
                            "Put the code back, or change the lesson's source.")
    for one, two in zip(expected.cells, notebook.cells, strict=True):
        if one.id in (HEADER, SETUP) and one.source != two.source:
            raise ImportRefused(f"{path}: the cell {one.id} is generated; put it back.")


def _own(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.id not in (HEADER, SETUP)]


def _texts(cell: Cell, before: str, now: str, path: Path) -> list[tuple[Unit, str, str]]:
    """Each unit of a cell with its text as built and as edited."""
    found = pieces(cell)
    old, new = (pieces(dataclasses.replace(cell, source=_FOLDED.sub("", source)))
                for source in (before, now))
    if not len(found) == len(old) == len(new) or _kinds(found) != _kinds(new):
        raise ImportRefused(
            f"{path}: cell {cell.id} has {len(found)} blocks ({', '.join(_kinds(found))}) in the "
            f"lesson, but {len(new)} ({', '.join(_kinds(new))}) here. Keep each paragraph one "
            "paragraph; badges of unfinished translations go when the translation is there.")
    return [(piece.unit, a.unit.text, b.unit.text)
            for piece, a, b in zip(found, old, new, strict=True)]


def _kinds(found: list) -> list[str]:
    return [piece.unit.kind for piece in found]

"""How far is each translation, who works on it, and when did its notebook last run?

The owners of a lesson's translation are two fields in the header of its PO file, so that they
change where the translation does.  Runs are facts about a machine, not about the text: they are in
``.saem/runs.json``, which git ignores.

Read before: ``saem.l10n.catalog``.  Read after: ``saem.l10n.team_commands``.
Invariant: translator and reviewer of a lesson are two people (tests/notebooks/test_team.py).
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from typing import Any

from saem.l10n import catalog
from saem.l10n.assemble import content_hash
from saem.l10n.build import planned
from saem.l10n.execute import ExecutionError, execute
from saem.l10n.lint.base import prose
from saem.l10n.project import Project, write
from saem.l10n.review import ReviewError, check_name
from saem.l10n.source import Lesson, read
from saem.l10n.units import units

TRANSLATOR, REVIEWER = "X-Saem-Translator", "X-Saem-Reviewer"
_WORD = re.compile(r"[^\W\d_]+")


def assign(project: Project, lesson: str, language: str, translator: str | None = None,
           reviewer: str | None = None) -> tuple[str, str]:
    """Note who translates a lesson and who reviews it; returns both, as ``owners`` does.

    An empty name leaves the place open, None leaves it as it is.
    Raises ReviewError if they are one person.
    """
    before = owners(project, lesson, language)
    translator, reviewer = (old if new is None else new
                            for old, new in zip(before, (translator, reviewer), strict=True))
    for name in filter(None, (translator, reviewer)):
        check_name(name)
    if translator and translator.casefold() == reviewer.casefold():
        raise ReviewError(f"{lesson}: {translator} cannot review what {translator} translates.",
                          f"{lesson}: {translator} 님은 자신의 번역을 검토할 수 없습니다.")
    path = project.catalog(lesson, language)
    po = catalog.load(path, language)
    for field, name in ((TRANSLATOR, translator), (REVIEWER, reviewer)):
        po.metadata.pop(field, None)
        if name:
            po.metadata[field] = name
    catalog.save(po, path)
    return translator, reviewer


def owners(project: Project, lesson: str, language: str) -> tuple[str, str]:
    """The translator and the reviewer of a lesson; empty where there is none."""
    metadata = catalog.load(project.catalog(lesson, language), language).metadata
    return metadata.get(TRANSLATOR, ""), metadata.get(REVIEWER, "")


def words(text: str) -> int:
    """How many words of prose a text has; code, formulas and links are none."""
    return len(_WORD.findall(prose(text)))


def progress(project: Project, now: datetime.datetime | None = None) -> list[dict[str, Any]]:
    """One row for each lesson and language: units and words by state, owners, the last green run.

    ``run_days`` is the age of that run, None if there is none of the lesson as it is now.
    Pages of prose follow; they do not run (``runs``).
    """
    now = now or datetime.datetime.now(datetime.UTC)
    rows = []
    for path in (*project.lessons(), *project.pages()):
        lesson, runs = read(path), path not in project.pages()
        found = units(lesson)
        for language in project.languages:
            po = catalog.load(project.catalog(path.stem, language), language)
            states = catalog.states(found, po)
            counts = Counter(states.values())
            done = sum(words(u.text) for u in found
                       if states[u.context] in ("translated", "reviewed"))
            rows.append({
                "lesson": path.stem, "language": language, "units": len(found),
                **{name: counts[name] for name in catalog.STATES},
                "words": sum(words(u.text) for u in found), "words_translated": done,
                "translator": po.metadata.get(TRANSLATOR, ""),
                "reviewer": po.metadata.get(REVIEWER, ""),
                "runs": runs,
                "run_days": run_days(project, lesson, language, now) if runs else None,
            })
    return rows


def run(project: Project, lesson: Lesson, language: str) -> str:
    """Execute the notebook of a lesson and note it if it is green; returns the error, else ''."""
    notebook = planned(project, lesson, language)
    digest = content_hash(notebook)
    try:
        execute(notebook)
    except ExecutionError as error:
        return str(error)
    note_run(project, lesson.name, language, digest)
    return ""


def note_run(project: Project, lesson: str, language: str, digest: str) -> None:
    """Note that the notebook with the content ``digest`` ran green now."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    stored = _runs(project) | {f"{language}/{lesson}": {"when": now, "content": digest}}
    write(_runs_file(project), json.dumps(stored, indent=1, sort_keys=True) + "\n")


def run_days(project: Project, lesson: Lesson, language: str, now: datetime.datetime
             ) -> float | None:
    """How many days ago the lesson, as it is now, last ran green; None if it never did."""
    noted = _runs(project).get(f"{language}/{lesson.name}")
    if noted is None or noted["content"] != content_hash(planned(project, lesson, language)):
        return None
    return (now - datetime.datetime.fromisoformat(noted["when"])).total_seconds() / 86400


def _runs_file(project: Project) -> Any:
    return project.root / ".saem" / "runs.json"


def _runs(project: Project) -> dict[str, dict[str, str]]:
    try:
        return json.loads(_runs_file(project).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}

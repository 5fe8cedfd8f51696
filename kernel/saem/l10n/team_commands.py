"""Which commands does the team type?

``saem l10n status``, ``assign``, ``run``, ``sign``, ``accept`` and ``term``.

Read before: ``saem.l10n.team``, ``saem.l10n.terms``, ``saem.l10n.review``.
Read after: ``saem.l10n.commands``.
Invariant: a command that refuses changes nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
from collections.abc import Callable
from typing import Any, TypeVar

import click
import polib
from rich.console import Console
from rich.table import Table
from rich.text import Text

from saem.l10n import catalog, glossary, review, team, terms
from saem.l10n.project import Project
from saem.l10n.source import read

T = TypeVar("T")
# Columns of a terminal: from WIDE the whole table of progress has room, from NARROW the short one.
WIDE, NARROW = 110, 75
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _translation(ctx: click.Context, parameter: click.Parameter, code: str) -> str:
    ctx.obj.check_language(code, translation=True)
    return code


def _chosen(ctx: click.Context, parameter: click.Parameter, codes: tuple[str, ...]
            ) -> tuple[str, ...]:
    for code in codes:
        ctx.obj.check_language(code)
    return codes


language_option = click.option("--lang", default="ko", show_default=True, callback=_translation,
                               help="The language of the translation.")
languages_option = click.option("--lang", "languages", multiple=True, callback=_chosen,
                                help="Only this language.")
def alone(command: Callable[..., T]) -> Callable[..., T]:
    """A command that reads, changes and writes: it waits for others that do."""

    @functools.wraps(command)
    def run(tree: Project, *args: Any, **options: Any) -> T:
        with tree.changing():
            return command(tree, *args, **options)

    return run


name_option = click.option("--by", required=True, help="Your name, as it will be kept.")


@click.command()
@as_json_option
@click.option("--max-age", type=click.FloatRange(0),
              help="Fail if a last green run is more days ago.")
@click.pass_obj
def status(tree: Project, as_json: bool, max_age: float | None) -> None:
    """Show how far each translation is, and its last green run."""
    rows = team.progress(tree)
    old = [row for row in rows if max_age is not None and row["runs"]
           and (row["run_days"] is None or row["run_days"] > max_age)]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
    else:
        # Where there is no terminal, as in a log, lines may be long.
        width = shutil.get_terminal_size((120, 24)).columns
        Console(width=width).print(_table(rows, width))
        for row in old:
            ran = ("has not run yet as it is now" if row["run_days"] is None
                   else f"last ran without a failure {row['run_days']:.1f} days ago")
            click.echo(f"{row['language']}/{row['lesson']}: {ran}. "
                       f"Try: saem l10n run {row['lesson']}")
    raise SystemExit(1 if old else 0)


def _table(rows: list[dict], width: int) -> Table:
    """The rows; in a narrow terminal without counts of units and words, and who works on each."""
    titles = ("lesson", "lang", "units", *catalog.STATES, "words", "done", "by", "run")
    left_out = () if width >= WIDE else ("units", "words", "by")
    shown = [at for at, title in enumerate(titles) if title not in left_out]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for at in shown:
        table.add_column(titles[at], overflow="fold", no_wrap=width >= NARROW and at == 0)
    for row in rows + [_total(rows)] if rows else []:
        age = "–" if row["run_days"] is None else f"{row['run_days']:.1f} d"
        names = [row["translator"], row["reviewer"]]
        by = " → ".join(name or "–" for name in names) if any(names) else "–"
        cells = [row["lesson"], row["language"], row["units"],
                 *(row[state] for state in catalog.STATES), row["words"], _done(row), by, age]
        table.add_row(*(Text(str(cells[at])) for at in shown))
    return table


def _done(row: dict) -> str:
    """How much of the words is translated: 100% only if no unit is left."""
    percent = 100 * row["words_translated"] // max(row["words"], 1)
    left = row["units"] - row["translated"] - row["reviewed"]
    return f"{min(percent, 99) if left else percent}%"


def _total(rows: list[dict]) -> dict:
    summed = {key: sum(row[key] for row in rows)
              for key in ("units", *catalog.STATES, "words", "words_translated")}
    return {"lesson": "all", "language": "", "translator": "", "reviewer": "", "run_days": None,
            **summed}


@click.command()
@click.argument("lesson")
@language_option
@click.option("--to", "translator", help="Who translates; '' for nobody yet.")
@click.option("--reviewer", help="Who reviews; '' for nobody yet.")
@click.pass_obj
@alone
def assign(tree: Project, lesson: str, lang: str, translator: str | None, reviewer: str | None
           ) -> None:
    """Note who translates LESSON and who reviews it.

    What is left out stays as it is.
    """
    name = tree.lesson(lesson).stem
    translator, reviewer = team.assign(tree, name, lang, translator, reviewer)
    names = f"{translator or 'nobody'} translates, {reviewer or 'nobody'} reviews"
    click.echo(f"{lang}/{name}: {names}")


@click.command("run")
@click.argument("lessons", nargs=-1)
@languages_option
@click.pass_obj
def run_lessons(tree: Project, lessons: tuple[str, ...], languages: tuple[str, ...]) -> None:
    """Execute LESSONS, write no notebook, and note which ran green."""
    failed = False
    for path in tree.chosen(lessons):
        for language in languages or (tree.source_language, *tree.languages):
            error = team.run(tree, read(path), language)
            failed = failed or bool(error)
            click.echo(f"{language}/{path.stem}: {error or 'green'}")
    raise SystemExit(1 if failed else 0)


@click.command()
@click.argument("lesson")
@language_option
@name_option
@click.option("--unit", "contexts", multiple=True, help="Only this unit, as cell|kind|index.")
@click.pass_obj
@alone
def sign(tree: Project, lesson: str, lang: str, by: str, contexts: tuple[str, ...]) -> None:
    """Stand for the translations of LESSON that are not signed yet."""

    def unsigned(entry: polib.POEntry) -> None:
        if review.signature(entry) is None:
            review.sign(entry, by)

    _each(tree, lesson, lang, contexts, unsigned)


@click.command()
@click.argument("lesson")
@language_option
@name_option
@click.option("--unit", "contexts", multiple=True, help="Only this unit, as cell|kind|index.")
@click.pass_obj
@alone
def accept(tree: Project, lesson: str, lang: str, by: str, contexts: tuple[str, ...]) -> None:
    """Accept the signed translations of LESSON without the page."""
    _each(tree, lesson, lang, contexts, lambda e: review.review(e, by))


def _each(tree: Project, lesson: str, lang: str, contexts: tuple[str, ...],
          act: Callable[[polib.POEntry], None]) -> None:
    """Do ``act`` to the chosen entries and save, or, if one refuses, change nothing."""
    name = tree.lesson(lesson).stem
    path = tree.catalog(name, lang)
    if not path.is_file():
        raise ValueError(f"{lang}/{name} has no PO file yet. Run `saem l10n merge {lesson}` first.")
    po = catalog.load(path, lang)
    entries = catalog.active(po)
    unknown = [context for context in contexts if context not in entries]
    if unknown:
        raise ValueError(f"{path.name} has no unit {', '.join(unknown)}.")
    chosen = contexts or [c for c, e in entries.items() if catalog.state(e) == "translated"]
    for context in chosen:
        act(entries[context])
    catalog.save(po, path)
    click.echo(f"{path.relative_to(tree.root)}: {len(chosen)} unit(s)")


@click.group()
def term() -> None:
    """Look a term up, propose another word for it, decide."""


@term.command("show")
@click.argument("name")
@language_option
@as_json_option
@click.pass_obj
def show_term(tree: Project, name: str, lang: str, as_json: bool) -> None:
    """Show the term NAME and where it is used, in both languages."""
    found = terms.find(glossary.load(tree.glossary), name)
    places = terms.uses(tree, found, lang)
    if as_json:
        click.echo(json.dumps({"term": dataclasses.asdict(found),
                               "uses": [dataclasses.asdict(use) for use in places]},
                              ensure_ascii=False))
        return
    click.echo(f"{found.term} → {', '.join(found.accepted)}")
    for label, values in (("not", found.rejected), ("reason", found.reason.values())):
        if values:
            click.echo(f"  {label}: {', '.join(values)}")
    for item in found.proposed:
        click.echo(f"  proposed by {item['by']}: {item['word']} ({item['why']})")
    for item in found.decided:
        click.echo(f"  decided by {item['by']}: {item['word']} instead of {item['instead of']}")
    for use in places:
        click.echo(f"{use.lesson} {use.unit}: {', '.join(use.words) or '?'}")
        click.echo(f"  {' '.join(use.english.split())}\n  {' '.join(use.translation.split())}")


@term.command("propose")
@click.argument("name")
@click.argument("word")
@name_option
@click.option("--why", required=True, help="The reason, in any language.")
@click.pass_obj
@alone
def propose_term(tree: Project, name: str, word: str, by: str, why: str) -> None:
    """Propose WORD for the term NAME."""
    terms.propose(tree.glossary, name, word, by, why)
    click.echo(f"{name}: {by} proposed {word}")


@term.command("decide")
@click.argument("name")
@click.argument("word")
@name_option
@click.option("--why-en", required=True, help="The reason in English.")
@click.option("--why-ko", required=True, help="The reason in Korean.")
@click.pass_obj
@alone
def decide_term(tree: Project, name: str, word: str, by: str, why_en: str, why_ko: str) -> None:
    """Make WORD, which somebody else proposed, the word for NAME."""
    terms.decide(tree.glossary, name, word, by, why_en, why_ko)
    click.echo(f"{name} → {word}; run `saem l10n lint` to see what must change")


COMMANDS = (status, assign, run_lessons, sign, accept, term)

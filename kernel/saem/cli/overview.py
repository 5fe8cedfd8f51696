"""What did the learners of a session answer?

``saem gates FOLDER`` reads the notebooks that learners saved below a folder.  The first part of a
notebook's path is the learner, as in ``minsu/lessons/ko/01-arrays.ipynb``.

Read before: ``saem.lens.notebook``.  Read after: ``saem.cli.commands``.
Invariant: notebooks are read and never written.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from saem.cli.server import choose_language
from saem.cli.tables import print_table
from saem.core.lazy import later

# IPython and all: 0.3 s, for which other commands need not wait.
notebook: Any = later("saem.lens.notebook")
page_file: Any = later("saem.l10n.page_file")

_MARKS = {"right": "✓", "wrong": "✗", "waiting": "…", "unanswered": "–"}
_STYLES = {"right": "green", "wrong": "red"}


@click.command("gates")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--lang", type=click.Choice(["en", "ko"]), help="Language of the page.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False),
              help="Write a page (.html), too.")
def gates(folder: Path, as_json: bool, lang: str | None, page: Path | None) -> None:
    """Show what learners answered in the notebooks below FOLDER."""
    if page is not None:
        page_file.check(page)
    view = notebook.gates(folder)
    view.lang = choose_language(lang, os.environ)
    rows = [{"learner": row.notebook.split("/")[0], **dataclasses.asdict(row)}
            for row in view.model.rows]
    if page is not None:
        try:
            view.save(page)
        except OSError as error:
            raise click.ClickException(
                f"Cannot write the page {page}: {error.strerror or error}. Try another FILE."
            ) from error
    for name in view.model.unreadable:
        click.echo(f"{name} cannot be read as a notebook; its answers are not counted.", err=True)
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    if not rows:
        click.echo(f"No notebook with a question was found below '{folder}'. "
                   "Name the folder in which learners saved theirs.")
        return
    print_table(_table(rows))
    counts = {state: sum(row["state"] == state for row in rows) for state in _MARKS}
    click.echo(", ".join(f"{number} {state}" for state, number in counts.items()))


def _table(rows: list[dict]) -> Table:
    """A line for each learner and notebook with an answer; a learner without any has one line."""
    table = Table("learner", "notebook", "gates", "answered")
    for learner in dict.fromkeys(row["learner"] for row in rows):
        own = [row for row in rows if row["learner"] == learner]
        begun = dict.fromkeys(r["notebook"] for r in own if r["state"] != "unanswered")
        for name in begun:
            answers = [row["state"] for row in own if row["notebook"] == name]
            marks = Text(" ").join(Text(_MARKS[s], _STYLES.get(s, "")) for s in answers)
            count = sum(state in _STYLES for state in answers)
            table.add_row(Text(learner), Text(Path(name).stem), marks, f"{count}/{len(answers)}")
        if not begun:
            table.add_row(Text(learner), "–", "", "")
    return table

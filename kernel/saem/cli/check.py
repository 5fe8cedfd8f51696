"""What does ``saem check FILE.ipynb…`` print?

Read before: ``saem.l10n.check``.  Read after: nothing.
Invariant: no file is changed.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import click

from saem.l10n.check import TOLERANCE, Difference, check


class Tolerance(click.FloatRange):
    """A finite number that is not negative."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value, param, ctx):
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not finite.", param, ctx)
        return number


SECONDS = click.IntRange(min=1)


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE.ipynb…",
                type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--timeout", type=SECONDS, default=300, show_default=True,
              help="Seconds that one cell may take.")
@click.option("--tolerance", type=Tolerance(), default=TOLERANCE, show_default=True,
              help="For decimal numbers.")
@click.option("--kernel", "kernel_name", default="", help="Instead of the notebook's own.")
def check_notebooks(files: tuple[Path, ...], as_json: bool, timeout: int, tolerance: float,
                    kernel_name: str) -> None:
    """Run notebooks and compare what they show with what they store; no file is changed.

    A file that cannot be run is a difference too, of cell "?".
    """
    rows = []
    for path in files:
        try:
            found = check(path, timeout, tolerance, kernel_name)
        except ValueError as error:
            found = [Difference("?", 0, str(error))]
        rows += [{"file": str(path), **dataclasses.asdict(d)} for d in found]
        if not as_json:
            click.echo("\n".join([f"{path}: {len(found)} difference(s)", *map(str, found)])
                       if found else f"{path}: as stored")
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
    raise SystemExit(1 if rows else 0)

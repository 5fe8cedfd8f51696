"""Which subcommands has `saem`, and what does each print?

Read before: ``saem.cli.main``.  Read after: ``saem.cli.lessons``, ``saem.cli.server``,
``saem.cli.doctor``, ``saem.cli.check``.
Invariant: a failure that the user can fix is one plain message and exit status 1, never a
traceback.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from saem.cli.cache import cache
from saem.cli.coverage import VERSION as JAX_VERSION
from saem.cli.coverage import counts, oracle_of, survey
from saem.cli.doctor import examine, version_of
from saem.cli.lessons import (
    LANGUAGES,
    LessonError,
    Outcome,
    copy_lessons,
    find_lessons,
    first_lesson,
)
from saem.cli.main import end_interrupted
from saem.cli.overview import gates
from saem.cli.server import (
    ServerError,
    choose_language,
    choose_port,
    make_command,
    make_environment,
    require_jupyterlab,
    run_server,
    write_settings,
)
from saem.cli.tables import print_table
from saem.core.lazy import later
from saem.dropin import run

kernelspec: Any = later("saem.dropin.kernelspec")  # which loads Jupyter's client

VERSION = (
    f"saem {version_of('saem') or '(a clone, not installed)'} "
    f"(jaxlib {version_of('jaxlib')}, Python {platform.python_version()})"
)


class _Saem(click.Group):
    """Ends with one line where Ctrl-C stops a command, or its text cannot be written."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            end_interrupted()
        except BrokenPipeError:  # the reader has seen enough; click ends quietly
            raise
        except OSError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Saem, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message=VERSION, version="")
def saem() -> None:
    """Saem: learn how a JAX-style array engine works."""


@saem.command()
@click.option("--lang", type=click.Choice(LANGUAGES), help="Language; else that of your locale.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1; else a free one.")
@click.option("--no-browser", is_flag=True, help="Print the address; open no browser.")
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default="saem-lessons")
def lab(lang: str | None, port: int | None, no_browser: bool, folder: Path) -> None:
    """Copy the lessons into DIR and open the first in JupyterLab.

    DIR is saem-lessons by default. Your own changes are never overwritten. The server can be
    reached from this machine only.
    """
    language = choose_language(lang, os.environ)
    folder = folder.expanduser()
    try:
        require_jupyterlab()
        free_port = choose_port(port)
        source = find_lessons()
        lesson = first_lesson(source, language)
        report(copy_lessons(source, folder), folder)
        write_settings(folder, language)
    except (LessonError, ServerError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"Cannot write in {folder}: {error}") from error
    click.echo(f"Opening {lesson} on http://127.0.0.1:{free_port}/ (Ctrl-C stops JupyterLab)")
    command = make_command(folder, lesson, free_port, not no_browser, retry=port is None)
    raise SystemExit(run_server(command, make_environment(folder, language, os.environ)))


def report(outcomes: list[Outcome], folder: Path) -> None:
    """Print what was copied, and name every file of the learner's that was kept."""
    written = sum(outcome.kind == "written" for outcome in outcomes)
    renewed = sum(outcome.kind == "renewed" for outcome in outcomes)
    if written or renewed:
        click.echo(f"Lessons in {folder}: {written} new, {renewed} renewed.")
    else:
        click.echo(f"Lessons in {folder}: up to date.")
    for outcome in outcomes:
        if outcome.beside is not None:
            click.echo(
                f"  {outcome.path.relative_to(folder)} has your changes and stays as it is; "
                f"the new version is {outcome.beside.relative_to(folder)}"
            )


@saem.command()
def doctor() -> None:
    """Say what is installed and missing, and which devices there are."""
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "found", "to try"):
        table.add_column(heading, overflow="fold")
    sick = False
    for finding in examine():
        sick = sick or (finding.needed and bool(finding.cure))
        style = "red" if finding.needed and finding.cure else "yellow" if finding.cure else ""
        # Text, not markup: a path may hold square brackets
        cells = (finding.name, finding.found, finding.cure)
        table.add_row(*(Text(cell, style=style) for cell in cells))
    print_table(table)
    if sick:
        raise SystemExit(1)


@saem.command()
@click.argument("module", default="jax")
@click.option("--names", is_flag=True, help="List each name that is not here, with the reason.")
@click.option("--json", "as_json", is_flag=True, help="Print a row for each name, as JSON.")
def coverage(module: str, names: bool, as_json: bool) -> None:
    """Count the public names of JAX 0.10.2 that are here.

    MODULE names one module, such as jax.numpy; by default all are counted.
    """
    rows = list(survey(module))
    if not rows:
        raise click.ClickException(
            f"JAX {JAX_VERSION} has no public module {module!r}. Try: saem coverage jax.numpy")
    if as_json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("namespace", "names", "present", "left out", "%", "same signature", "oracle"):
        table.add_column(heading, overflow="fold")
    for name, count in counts(rows).items():
        table.add_row(name, str(count.names), str(count.present), str(count.left_out),
                      f"{count.percent:.0f}", f"{count.same} of {count.compared}",
                      oracle_of(name))
    print_table(table)
    if names:
        for row in rows:
            if not row.present:
                print(f"{row.module}.{row.name}: {row.reason or 'missing'}")


@saem.command("run", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED,
                metavar="(SCRIPT | -m MODULE | -c CODE | -) [ARGUMENTS]")
def run_program(arguments: tuple[str, ...]) -> None:
    """Run a Python program with `import jax` answered by Saem."""
    run.main(arguments)


@saem.group()
def kernel() -> None:
    """The Jupyter kernel "Saem", in which `import jax` gives Saem."""


@kernel.command("install")
@click.option("--user", is_flag=True, help="For this user; else for this Python's environment.")
@click.option("--prefix", type=click.Path(path_type=Path), help="Below this folder.")
@click.option("--name", default="saem", show_default=True, help="The kernel's name.")
@click.option("--display-name", default="Saem", show_default=True, help="What Jupyter shows.")
def install_kernel(user: bool, prefix: Path | None, name: str, display_name: str) -> None:
    """Let Jupyter offer the kernel "Saem" of this Python.

    `jupyter kernelspec list` shows the installed kernels, and `jupyter kernelspec remove` removes
    one.
    """
    try:
        where = kernelspec.install(user=user, prefix=prefix, name=name, display_name=display_name)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"Cannot install the kernel {name!r}: {error}") from error
    click.echo(f"The kernel {display_name!r} is installed in {where}")


class Later(click.Command):
    """A command that is loaded when it is called; ``saem --help`` shows its line without that."""

    def __init__(self, name: str, place: str, short_help: str):
        super().__init__(name, short_help=short_help)
        self.place = place

    def load(self) -> click.Command:
        """Return the command itself, at ``place`` ("module:name")."""
        module, _, name = self.place.partition(":")
        return getattr(importlib.import_module(module), name)

    def make_context(self, info_name: str | None, args: list[str],
                     parent: click.Context | None = None, **extra: Any) -> click.Context:
        return self.load().make_context(info_name, args, parent, **extra)


# What works on notebooks: Jupyter's libraries take half a second to load.
saem.add_command(Later("check", "saem.cli.check:check_notebooks",
                       "Run notebooks and compare what they show with what they store; no file is "
                       "changed."))
saem.add_command(Later("l10n", "saem.l10n.commands:l10n",
                       "Translate lessons and build their notebooks."))
# What is kept from one kernel to the next.
saem.add_command(cache)
# The leader of a session looks at the learners' gates.
saem.add_command(gates)

"""Which commands does a translator type?  ``saem l10n …``.

Read before: the modules that the commands call.  Read after: nothing.
Invariant: a command that finds something wrong ends with exit code 1 and changes nothing.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import webbrowser
from pathlib import Path

import click

from saem.l10n import build as building
from saem.l10n import catalog, glossary, languages, page, page_file, project, review, team
from saem.l10n.assemble import content_hash
from saem.l10n.bring_back import bring_back
from saem.l10n.desk import Desk
from saem.l10n.execute import ExecutionError
from saem.l10n.lint import fix as run_fix
from saem.l10n.lint import lint as run_lint
from saem.l10n.merge import merge as run_merge
from saem.l10n.project import Project
from saem.l10n.review_server import ReviewServer
from saem.l10n.source import SourceError, read
from saem.l10n.team_commands import (
    COMMANDS,
    alone,
    as_json_option,
    language_option,
    languages_option,
    name_option,
)
from saem.l10n.units import units

_ERRORS = (
    SourceError, ExecutionError, review.ReviewError, glossary.GlossaryError,
    OSError, SyntaxError, ValueError,
)


class _Group(click.Group):
    """Says what went wrong in one sentence instead of a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `saem l10n ... | head` has seen enough; click ends quietly
            raise
        except _ERRORS as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group)
@click.option("--root", type=click.Path(path_type=Path, exists=True), help="A clone of Saem.")
@click.pass_context
def l10n(ctx: click.Context, root: Path | None) -> None:
    """Translate lessons and build their notebooks."""
    ctx.obj = project.find(root)


@l10n.command()
@click.argument("lessons", nargs=-1)
@click.pass_obj
def extract(tree: Project, lessons: tuple[str, ...]) -> None:
    """Print the units of LESSONS (all by default) as a PO template."""
    for path in tree.chosen(lessons):
        template, _ = run_merge(units(read(path)), catalog.empty(""))
        click.echo(catalog.text(template), nl=False)


@l10n.command()
@click.argument("lessons", nargs=-1)
@click.pass_obj
@alone
def merge(tree: Project, lessons: tuple[str, ...]) -> None:
    """Bring the PO files of LESSONS up to date with their sources."""
    words = glossary.load(tree.glossary)
    done = []  # all of it before the first file is written: a later one may be broken
    for path in tree.chosen(lessons) + (tree.pages() if not lessons else []):
        found = units(read(path))
        for language in tree.languages:
            file = tree.catalog(path.stem, language)
            done.append((file, *run_merge(found, catalog.load(file, language), words)))
    for file, merged, report in done:
        catalog.save(merged, file)
        counts = ", ".join(f"{n} {what}" for what, n in dataclasses.asdict(report).items())
        click.echo(f"{file.relative_to(tree.root)}: {counts}")


@l10n.command()
@click.argument("lessons", nargs=-1)
@languages_option
@click.option("--check", is_flag=True, help="Only say whether the notebooks are up to date.")
@click.option("--run/--no-run", default=True, help="Execute the notebooks.")
@click.pass_obj
def build(
    tree: Project, lessons: tuple[str, ...], languages: tuple[str, ...], check: bool, run: bool
) -> None:
    """Build and execute the notebooks of LESSONS, and the other pages."""
    if check:
        problems = building.check(tree)
        for problem in problems:
            click.echo(problem)
        raise SystemExit(1 if problems else 0)
    for path in building.write_texts(tree):
        click.echo(f"wrote {path.relative_to(tree.root)}")
    for source in tree.chosen(lessons):
        if source in tree.pages():
            continue
        for language in languages or (tree.source_language, *tree.languages):
            path = building.build(tree, source, language, run)
            if run:
                digest = content_hash(building.planned(tree, read(source), language))
                team.note_run(tree, source.stem, language, digest)
            click.echo(f"wrote {path.relative_to(tree.root)}")


@l10n.command()
@click.argument("lessons", nargs=-1)
@as_json_option
@click.option("--say", type=click.Choice(["en", "ko"]), default="en", help="Language of messages.")
@click.option("--fix", "fixing", is_flag=True, help="Put right what needs no judgement, then lint.")
@click.option("--spacing", is_flag=True, help="Add hints on word spacing (needs kiwipiepy).")
@click.pass_obj
def lint(tree: Project, lessons: tuple[str, ...], as_json: bool, say: str, fixing: bool,
         spacing: bool) -> None:
    """Look for mistakes in LESSONS and their translations.

    By default all lessons and pages are read.
    """
    chosen = tree.chosen(lessons) + ([] if lessons else tree.pages())
    if fixing:
        for name, language, changed in _fix(tree, chosen):
            if not as_json:
                click.echo(f"{language}/{name}: changed {changed} unit(s)")
    findings = run_lint(tree, say, spacing, chosen)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(f) for f in findings], ensure_ascii=False))
    else:
        for found in findings:
            click.echo(f"{found.where}: {found.rule}: {found.message}")
        for rule, reason in sorted({(f.rule, f.reason) for f in findings}):
            click.echo(f"  {rule}: {reason}")
        click.echo(f"{len(findings)} finding(s) in {len(chosen)} lesson(s) and page(s).")
    raise SystemExit(1 if findings else 0)


@alone
def _fix(tree: Project, sources: list[Path]) -> list[tuple[str, str, int]]:
    """Put right what needs no judgement; returns how many units of which PO files changed."""
    done = [(path.stem, language, *run_fix(tree, read(path), language))
            for path in sources for language in tree.languages]
    for name, language, po, changed in done:
        if changed:
            catalog.save(po, tree.catalog(name, language))
    return [(name, language, changed) for name, language, _, changed in done if changed]


@l10n.command("review")
@click.argument("lesson")
@language_option
@name_option
@click.option("--say", type=click.Choice(["en", "ko"]), default="ko", help="Language of the page.")
@click.option("--against", default="HEAD", help="Compare translations with this git revision.")
@click.option("--port", type=click.IntRange(0, 65535), default=0,
              help="Port on 127.0.0.1; else a free one.")
@click.option("--no-browser", is_flag=True, help="Print the address; open no browser.")
@click.pass_obj
def open_review(tree: Project, lesson: str, lang: str, by: str, say: str, against: str, port: int,
                no_browser: bool) -> None:
    """Review LESSON in the browser: both languages side by side."""
    desk = Desk(tree, lesson, lang, by)
    try:
        server = ReviewServer(desk, say, against, port)
    except OSError as error:
        raise OSError(f"port {port} cannot be used: {error.strerror}. Name another one with "
                      "--port, or none to take a free one.") from error
    click.echo(f"Reviewing {desk.source.stem} as {by} on {server.address} (Ctrl-C ends)")
    if not no_browser:
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        click.echo("Everything that you changed is saved.")
    finally:
        server.server_close()


@l10n.command("page")
@click.argument("lesson")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@language_option
@click.option("--say", type=click.Choice(["en", "ko"]), default="ko", help="Language of the page.")
@click.option("--against", default="HEAD", help="Compare translations with this git revision.")
@click.pass_obj
def write_page(tree: Project, lesson: str, output: Path, lang: str, say: str, against: str) -> None:
    """Write the review page of LESSON to a file, for a pull request.

    OUTPUT ends in .html.
    """
    page_file.check(output)
    source = tree.lesson(lesson)
    path = tree.catalog(source.stem, lang)
    text = page.page(read(source), catalog.load(path, lang), glossary.load(tree.glossary), say,
                     before=page.earlier(path, against), notebook=tree.stored(source.stem, lang))
    project.write(output, text)
    click.echo(f"wrote {output}")


@l10n.command()
@click.argument("repository")
@click.option("--branch", help="The branch that holds the built notebooks; as it is, by default.")
@click.pass_obj
def publish(tree: Project, repository: str, branch: str | None) -> None:
    """Name the public REPOSITORY from which Colab opens lessons.

    It is called owner/name on GitHub. Nothing runs, and outputs stay. Name '' to let the links open
    Colab itself again.
    """
    for path in building.publish(tree, repository, branch or tree.branch):
        click.echo(f"wrote {path.relative_to(tree.root)}")


@l10n.command("site")
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--repository", envvar="SAEM_REPOSITORY", show_envvar=True, default="",
              help="owner/name on GitHub for the Colab links, if lessons.toml names none.")
@click.pass_obj
def write_site(tree: Project, out: Path, repository: str) -> None:
    """Write all built lessons as a static site into the folder OUT."""
    if repository:
        tree = dataclasses.replace(tree, repository=repository)
    build_site = importlib.import_module("saem.l10n.site").build_site  # needs saem[docs]
    made = build_site(tree, out)
    for page_name, target in made.missing:
        click.echo(f"{page_name}: {target} is not built yet; its link is left out")
    click.echo(f"wrote {len(made.pages)} files; open {out / 'index.html'}")


@l10n.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@name_option
@click.option("--anyway", is_flag=True, help="Also over texts that changed since it was built.")
@click.pass_obj
@alone
def import_notebook(tree: Project, file: Path, by: str, anyway: bool) -> None:
    """Take the texts of an edited notebook back into its PO file."""
    done = bring_back(tree, file, by, anyway)
    click.echo(f"{done.language}/{done.lesson}: {len(done.changed)} unit(s) changed")
    for context in done.changed:
        click.echo(f"  {context}")


@l10n.command("new")
@click.argument("language")
@click.pass_obj
@alone
def new_language(tree: Project, language: str) -> None:
    """Begin the translation into LANGUAGE (a code such as ja or pt-BR)."""
    for path in languages.begin(tree, language):
        click.echo(f"wrote {path.relative_to(tree.root)}")
    click.echo(f"Next: translate the PO files, then `saem l10n build --lang {language}`.")


for command in COMMANDS:
    l10n.add_command(command)

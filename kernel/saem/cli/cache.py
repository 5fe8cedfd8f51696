"""What does `saem cache` show, and how is the folder of compiled programs cleared and moved?

``saem cache`` (or ``saem cache show``) shows where programs are kept from one kernel to the next,
how many, how often they were found, and why if they are not used.  ``where`` prints the folder
alone, ``clear`` removes the programs, ``move`` brings them to another disk and leaves a link.

Read before: ``saem.disk.cache_folder``, ``saem.cli.commands``.
Invariant: nothing but files of the cache is removed (tests/kernel/test_cli_cache.py).
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from saem.cli.tables import print_table
from saem.core import config
from saem.disk import cache_folder
from saem.disk.cache_folder import Place

OFF = {
    "jax_enable_compilation_cache": "turned off (SAEM_ENABLE_COMPILATION_CACHE or "
                                    "JAX_ENABLE_COMPILATION_CACHE)",
    "jax_compilation_cache_dir": "turned off: jax_compilation_cache_dir names no folder of this "
                                 "machine",
    "jax_compilation_cache_max_size": "turned off: jax_compilation_cache_max_size is 0",
    "home": "there is no home folder; SAEM_CACHE_DIR may name a folder",
}


@dataclass(frozen=True)
class Shown:
    """What `saem cache --json` prints; ``folder`` is None where programs have no place.

    ``limit`` is -1 without a limit; ``problem`` is why programs are not kept or not found, else ''.
    ``saved_seconds`` is what compiling would have taken beyond loading, in all kernels so far.
    """

    folder: str | None
    chosen_by: str
    programs: int
    bytes: int
    limit: int
    hits: int
    saved_seconds: float
    problem: str


def shown() -> Shown:
    """Look at the folder as a kernel started now would."""
    where = cache_folder.place()
    if where is None:
        return Shown(None, "", 0, 0, 0, 0, 0.0, _why_off())
    found = cache_folder.programs(where.folder)
    sums = cache_folder.journal(where.folder)
    return Shown(str(where.folder), where.chosen_by, len(found), sum(size for _, size in found),
                 where.limit, sums["hits"], round(sums["saved"], 1), problem(where))


def _why_off() -> str:
    if not config.enable_compilation_cache.value:
        return OFF["jax_enable_compilation_cache"]
    if config.compilation_cache_dir.is_chosen and (
            not config.compilation_cache_dir.value or "://" in config.compilation_cache_dir.value):
        return OFF["jax_compilation_cache_dir"]
    if config.compilation_cache_max_size.value == 0:
        return OFF["jax_compilation_cache_max_size"]
    return OFF["home"]


def problem(where: Place) -> str:
    """Return why a kernel would not use the folder, or could not write there; '' if it can."""
    why = cache_folder.refusal(where)
    if why:
        return f"not used: {why}"
    nearest = where.folder
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not os.path.isdir(nearest):
        return f"not used: {nearest} is not a folder"
    if nearest == where.folder and not os.access(nearest, os.R_OK | os.X_OK):
        return f"not used: {nearest} may not be read"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"nothing new is kept: {nearest} may not be written to"
    free = shutil.disk_usage(nearest).free
    if free < 2**20:
        return f"nothing new is kept: the disk of {nearest} is full"
    return ""


def size_text(size: int) -> str:
    """A number of bytes as a person reads it: 512 B, 1.2 kB, 256.0 MB (1 kB is 1,024 bytes)."""
    if size < 2**10:
        return f"{size} B"
    for unit, one in (("kB", 2**10), ("MB", 2**20)):
        if size < one * 2**10:
            return f"{size / one:.1f} {unit}"
    return f"{size / 2**30:.1f} GB"


def _here_or_before(context: click.Context, parameter: click.Parameter, given: bool) -> bool:
    """The option counts before the subcommand, too: `saem cache --json show`."""
    return given or (context.parent is not None and bool(context.parent.params.get("as_json")))


as_json_option = click.option("--json", "as_json", is_flag=True, callback=_here_or_before,
                              help="Print JSON.")


@click.group(invoke_without_command=True)
@as_json_option
@click.pass_context
def cache(context: click.Context, as_json: bool) -> None:
    """Show, clear or move the folder where compiled programs are kept."""
    if context.invoked_subcommand is None:
        _print(as_json)


@cache.command()
@as_json_option
def show(as_json: bool) -> None:
    """Show the folder, what it holds, and how often programs were found there."""
    _print(as_json)


def _print(as_json: bool) -> None:
    told = shown()
    if as_json:
        click.echo(json.dumps(asdict(told), ensure_ascii=False))
        return
    limit = "no limit" if told.limit < 0 else f"limit {size_text(told.limit)}"
    rows = [("folder", "none")]
    if told.folder is not None:
        rows = [("folder", told.folder), ("chosen by", told.chosen_by),
                ("programs", str(told.programs)), ("size", f"{size_text(told.bytes)} ({limit})"),
                ("found", f"{told.hits} times by kernels that ended, which saved "
                          f"{told.saved_seconds:.1f} s of compiling")]
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    if told.problem:
        table.add_row(Text("problem", style="yellow"), Text(told.problem, style="yellow"))
    print_table(table)


@cache.command()
@as_json_option
def where(as_json: bool) -> None:
    """Print the folder alone; nothing and exit status 1 if programs have no place."""
    place = cache_folder.place()
    if as_json:
        click.echo(json.dumps(None if place is None else str(place.folder), ensure_ascii=False))
    elif place is not None:
        click.echo(place.folder)
    raise SystemExit(place is None)


@cache.command()
@as_json_option
def clear(as_json: bool) -> None:
    """Remove all programs; kernels that run now are not disturbed."""
    place = _usable()
    count, size = cache_folder.clear(place.folder)
    left = len(cache_folder.programs(place.folder))
    if as_json:
        click.echo(json.dumps({"folder": str(place.folder), "removed": count, "bytes": size,
                               "left": left}, ensure_ascii=False))
    else:
        click.echo(f"Removed {_programs(count)} ({size_text(size)}) from {place.folder}.")
    if left:
        raise click.ClickException(f"{_programs(left)} could not be removed.")


@cache.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@as_json_option
def move(folder: Path, as_json: bool) -> None:
    """Move the programs to DIR/programs, on another disk for example, and use them there.

    A link is left in the old place. If SAEM_CACHE_DIR names the old place, it must name DIR then.
    """
    place = _usable()
    if not place.personal:
        raise click.ClickException(
            f"{place.folder} was chosen by jax_compilation_cache_dir. Change that setting instead.")
    target = folder.expanduser().absolute() / cache_folder.PROGRAMS
    try:
        count, size, linked = _move(place, target)
    except (OSError, shutil.Error) as error:
        raise click.ClickException(f"Cannot move {place.folder} to {target}: {error}") from error
    if as_json:
        click.echo(json.dumps({"from": str(place.folder), "to": str(target), "moved": count,
                               "bytes": size, "linked": linked}, ensure_ascii=False))
        return
    click.echo(f"Moved {_programs(count)} ({size_text(size)}) from {place.folder} to {target}.")
    if linked:
        click.echo(f"{place.folder} is a link to it now.")
    elif place.folder != target:
        click.echo(f"To use them, set SAEM_CACHE_DIR={target.parent}")


def _usable() -> Place:
    """Return the place of programs.

    Raises: ClickException if there is none, or it must not be touched.
    """
    place = cache_folder.place()
    if place is None:
        raise click.ClickException(f"Programs are not kept: {_why_off()}.")
    why = cache_folder.refusal(place)
    if why:
        raise click.ClickException(f"The folder is left as it is: {why}.")
    return place


def _move(place: Place, target: Path) -> tuple[int, int, bool]:
    """Move the programs of ``place`` into ``target``; returns their number and bytes, and whether
    the old place is a link to the new one."""
    source = place.folder
    held = source.resolve()
    if target == source and not source.is_symlink():
        return 0, 0, False
    if target.is_symlink() and target.resolve() == held:
        target.unlink()  # back to where a link was left
    if target.resolve() == held:
        return 0, 0, source.is_symlink()
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    why = cache_folder.refusal(Place(target, "", True, 0, 0.0, 0))
    if why:
        raise OSError(why)
    count = total = 0
    for path, size in cache_folder.programs(held):
        data, used = cache_folder.read(path, personal=True)
        cache_folder.write(target / path.name, data)
        os.utime(target / path.name, (used, used))
        count, total = count + 1, total + size
    sums = cache_folder.journal(held)
    cache_folder.append(target, hits=sums["hits"], saved=sums["saved"])
    cache_folder.clear(held)  # only now: what failed before lost nothing
    if place.chosen_by == "SAEM_CACHE_DIR" or target == source:
        return count, total, False
    return count, total, _link(source, held, target)


def _link(source: Path, held: Path, target: Path) -> bool:
    """Leave a link to ``target`` where the programs were; returns whether it could be left."""
    try:
        if source.is_symlink():
            source.unlink()
            held.rmdir()
        elif source.is_dir():
            source.rmdir()
        source.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        source.symlink_to(target, target_is_directory=True)
    except OSError:  # a system without links, or a file of somebody else in the folder
        return False
    return True


def _programs(count: int) -> str:
    return "1 program" if count == 1 else f"{count} programs"

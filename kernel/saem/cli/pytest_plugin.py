"""How does pytest test notebooks?

``pytest -p saem.cli.pytest_plugin notebooks/`` collects every ``.ipynb`` file as one test, which
fails where ``saem check`` finds a difference.  Settings in an ini file: ``saem_tolerance``,
``saem_timeout``, ``saem_kernel``.  The notebooks run in kernels of their own; only the process of
pytest itself must not import the real ``jax``.

Read before: ``saem.l10n.check``.  Read after: nothing.
Invariant: without ``-p`` the plugin is not loaded, so no other test run changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from saem.cli.check import SECONDS, Tolerance
from saem.l10n.check import TOLERANCE, check


class DifferenceError(AssertionError):
    """A notebook that does not show what it stores."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings."""
    parser.addini("saem_tolerance", "what decimal numbers may differ by", default=str(TOLERANCE))
    parser.addini("saem_timeout", "seconds that one cell may take", default="300")
    parser.addini("saem_kernel", "the kernel to use instead of the notebook's own", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse settings that ``saem check`` would refuse before anything runs."""
    try:
        _limits(config)
    except click.BadParameter as error:
        raise pytest.UsageError(error.message) from error


def _limits(config: pytest.Config) -> tuple[int, float]:
    """Return the seconds that a cell may take and the tolerance.  Raises click.BadParameter."""
    found = []
    for name, kind in (("saem_timeout", SECONDS), ("saem_tolerance", Tolerance())):
        try:
            found.append(kind.convert(config.getini(name), None, None))
        except click.BadParameter as error:
            raise click.BadParameter(f"{name}: {error.message}") from error
    return found[0], found[1]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect notebooks, but not what Jupyter saves on the side."""
    if file_path.suffix == ".ipynb" and ".ipynb_checkpoints" not in file_path.parts:
        return NotebookFile.from_parent(parent, path=file_path)
    return None


class NotebookFile(pytest.File):
    """One notebook, which is one test: its cells need each other."""

    def collect(self) -> Iterator[pytest.Item]:
        yield NotebookItem.from_parent(self, name="notebook")


class NotebookItem(pytest.Item):
    """The run of one notebook."""

    def runtest(self) -> None:
        found = check(self.path, *_limits(self.config), self.config.getini("saem_kernel"))
        if found:
            raise DifferenceError("\n".join(map(str, found)))

    def repr_failure(self, excinfo, style=None):
        """The differences alone; a traceback of this file would not help."""
        if isinstance(excinfo.value, (DifferenceError, ValueError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"notebook: {self.path.name}"

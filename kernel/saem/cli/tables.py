"""How wide is a table that a command prints?

At a terminal, as wide as that; in a file or a pipe long enough that no path is broken.

Read before: nothing.  Read after: ``saem.cli.commands``.
Invariant: what a program reads from a pipe has one line for each row (tests/kernel/test_cli.py).
"""

from __future__ import annotations

import shutil

from rich.console import Console
from rich.table import Table

# Without a terminal: a part, a path of the usual length, and what to try.
_WIDE = 240


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal, or wide enough where there is none."""
    Console(width=shutil.get_terminal_size((_WIDE, 24)).columns).print(table)

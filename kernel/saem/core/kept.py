"""How much is kept of what can be made again?

A jitted function keeps a trace and a program for each signature, an operation one for each shape.
A session that meets ever new shapes must not grow without end, so all such tables together keep at
most ``CAPACITY`` entries: when they hold more, the largest table loses its older half.  What was
lost is traced again when it is needed, and compiled again if its program is gone from
``compile.executables``, too; what C++ remembers (its own 4,096 signatures) it still answers.

``forget`` empties all tables, for a process that may hold no more programs (``compile.mappings``).

Read before: nothing.  Read after: ``jit.jitted``, ``compile.dispatch``.
Invariant: ``shrink`` leaves tables of up to ``SMALL`` entries alone (tests/kernel/test_kept.py).
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

CAPACITY = 4096
SMALL = 8
# The tables are counted each time so many entries were added.
ROUND = 256

_numbers = itertools.count()
_added = itertools.count(1)
_tables: weakref.WeakValueDictionary[int, Kept] = weakref.WeakValueDictionary()


class Kept(dict):
    """A table of what was made for one function, the oldest entry first."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        super().__init__()
        _tables[next(_numbers)] = self

    def keep(self, key: Any, made: Any) -> None:
        """Add an entry; older ones may go."""
        self[key] = made
        if next(_added) % ROUND == 0:
            shrink()

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the entry, which ``make`` returns if there is none."""
        try:
            return self[key]
        except KeyError:
            pass  # not in here: an error of ``make`` would show this one before itself
        made = make()
        self.keep(key, made)
        return made


def living() -> list[Kept]:
    """Return the tables whose functions are still there."""
    found = (table() for table in _tables.valuerefs())  # a copy: other threads may add tables
    return [table for table in found if table is not None]


def forget() -> None:
    """Empty all tables."""
    for table in living():
        table.clear()


def shrink() -> None:
    """Let the largest tables lose their older halves until all hold ``CAPACITY`` together."""
    tables = sorted(living(), key=len)
    total = sum(map(len, tables))
    while total > CAPACITY and tables and len(tables[-1]) > SMALL:
        largest = tables[-1]
        for key in list(largest)[: len(largest) // 2]:
            total -= largest.pop(key, None) is not None
        tables.sort(key=len)

"""How often was a kept program called, at no cost to the call?

jaxlib's C++ answers a call whose signature it knows, and gives each answer to the *post hook*.  The
hook here adds one to a counter of the function, a tenth of a microsecond; no call leaves the C++
path.  ``saem.observe.recorder`` takes the counts at each trace and at the end
of a cell.

Read before: ``core.config`` (post_hook).  Read after: ``saem.observe.recorder``.
Invariant: every call is counted once, on whatever thread (tests/lens/test_calls.py).
"""

from __future__ import annotations

import itertools
import types
from collections import defaultdict
from typing import Any

from saem.core import config
from saem.core.events import Changed
from saem.jit import signature

# Counters of functions that are not called any more are dropped beyond this number.
_KEPT = 4096


class Calls:
    """Counts the calls that C++ answers, by function."""

    def __init__(self) -> None:
        self._counters: defaultdict[Any, Any] = defaultdict(itertools.count)
        self._taken: dict[Any, int] = {}
        self._before: Any = None
        self._on = False

    def start(self) -> None:
        """Count from now on."""
        if self._on:
            return
        counters = self._counters

        def hook(fun: Any, _args: Any, _kwargs: Any, _out: Any) -> None:
            next(counters[fun])

        self._before = config.post_hook.value
        config.post_hook.set_global(hook)
        self._on = True

    def stop(self) -> None:
        """Count no longer."""
        if self._on:
            config.post_hook.set_global(self._before)
            self._on = False

    def take(self) -> list[tuple[Any, int]]:
        """The jitted functions of the user's called since the last time, and how often."""
        found = []
        for fun, counter in list(self._counters.items()):
            # Asking moves the counter on by one, as a call does: the next question leaves that out.
            total = next(counter)
            new = total - self._taken.get(fun, 0)
            self._taken[fun] = total + 1
            if new:
                info = getattr(fun, "info", None)
                if info is not None and not info.library:
                    found.append((info, new))
        if len(self._counters) > _KEPT:
            self.clear()
        return found

    def clear(self) -> None:
        """Forget all counts."""
        for fun in list(self._counters):
            del self._counters[fun]
            self._taken.pop(fun, None)


def stale(info: Any) -> tuple[Changed, ...]:
    """What the kept programs of a function took from its surroundings and that is other now.

    Empty if one of them is up to date, since it may be the one that answered.
    """
    found: tuple[Changed, ...] = ()
    for key, entry in list(info.entries.items()):
        if not entry.seen:
            return ()
        found = signature.changed(info, entry.seen, types.SimpleNamespace(statics=key[1]))
        if not found:
            return ()
    return found

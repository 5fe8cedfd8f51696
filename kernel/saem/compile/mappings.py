"""When does a process hold more programs than the system lets it?

On Linux a process may have some 65,530 memory mappings (``vm.max_map_count``).  The code of a
program takes 3 to 12 of them or more, so a session that has compiled some 6,000 programs reaches
the limit, and there XLA's compiler ends the process.  Before that happens, the programs that can be
made again are dropped (``compile.dispatch.keep_within_limit``).

Read before: nothing.  Read after: ``compile.dispatch``.
Invariant: a process that goes on compiling programs does not reach the limit by programs that Saem
keeps (tests/kernel/test_kept.py).
"""

from __future__ import annotations

from pathlib import Path

# Mappings are counted once in so many compilations, since counting takes some 10 ms when there
# are many, and programs may take three quarters of those that the system allows.
ROUND = 128
SHARE = 0.75

MAPPINGS = Path("/proc/self/maps")
LIMIT = Path("/proc/sys/vm/max_map_count")


class Watch:
    """Counts compilations, and sometimes mappings."""

    def __init__(self) -> None:
        self.compiled = 0
        self.allowed = 0

    def too_many(self) -> bool:
        """Return whether programs should be dropped now; to be asked after each compilation."""
        self.compiled += 1
        if self.compiled % ROUND or not MAPPINGS.exists():
            return False
        return count() > max(int(limit() * SHARE), self.allowed)

    def dropped(self) -> None:
        """Note that programs were dropped: what others hold must not make each round drop again."""
        self.allowed = (count() + limit()) // 2 if count() > limit() * SHARE else 0


def count() -> int:
    """Return how many memory mappings this process has."""
    return MAPPINGS.read_bytes().count(b"\n")


def limit() -> int:
    """Return how many memory mappings the system allows a process."""
    return int(LIMIT.read_text())


watch = Watch()

"""How are programs written to disk while the user goes on?

A first compile must not wait for a disk.  What is to be kept waits here until nothing was compiled
for a moment; then a thread compresses and writes it, and ends.  A process that ends
writes what still waits, for a few seconds at most; one that is killed leaves it unwritten, which
costs a compile in the next.

Read before: ``disk.cache_folder``.  Read after: ``disk.disk_cache``.
Invariant: no job runs twice, and none is waited for but at the end
(tests/kernel/test_cache_folder.py).
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable

from saem.disk import cache_folder

# Jobs are done when none came for QUIET_SECONDS (the user's programs are compiled), when the oldest
# has waited for MOST_SECONDS, or when MOST_WAITING of them wait.
QUIET_SECONDS = 0.25
MOST_SECONDS = 5.0
MOST_WAITING = 64
# So long the end of a process waits for them.
EXIT_SECONDS = 5.0

Job = Callable[[], None]


class Writer:
    """Jobs that wait, the thread that does them, and what is to be done once at the end.

    ``in_child`` is done in a child process, where no job waits.
    """

    def __init__(self, at_end: Job, in_child: Job = lambda: None):
        self.at_end = at_end
        self.in_child = in_child
        self._changed = threading.Condition()
        self._waiting: list[Job] = []
        self._first = self._last = 0.0  # when the oldest and the newest of them came
        self._working = False
        self._hurry = False
        self._registered = False

    def add(self, job: Job) -> None:
        """Do ``job`` soon, in another thread; here and now where no thread can be started."""
        self.open()
        with self._changed:
            self._last = time.monotonic()
            if not self._waiting:
                self._first = self._last
            self._waiting.append(job)
            idle, self._working = not self._working, True
            if len(self._waiting) >= MOST_WAITING:
                self._changed.notify_all()
        if idle:
            try:
                threading.Thread(target=self._run, name="saem-compile-cache", daemon=True).start()
            except RuntimeError:  # the process ends, or may start no more threads
                self._hurry = True
                self._run()

    def open(self) -> None:
        """Register, once, what is done when the process ends or forks."""
        if not self._registered:
            self._registered = True
            atexit.register(self.close)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._forked)

    def flush(self, seconds: float = 60.0) -> bool:
        """Write what waits, now; returns whether all of it is written after ``seconds``."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._working, seconds)
            finally:
                self._hurry = False

    def close(self) -> None:
        """The process ends: write what waits, and do what is to be done at the end."""
        if self.flush(EXIT_SECONDS):
            self.at_end()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._waiting and (seconds := self._seconds_left()) > 0:
                    self._changed.wait(seconds)
                jobs, self._waiting = self._waiting, []
                if not jobs:
                    self._working = False
                    self._changed.notify_all()
                    return
            for job in jobs:
                try:
                    job()
                except Exception as error:  # out of memory, say: later jobs are done all the same
                    cache_folder.note(f"A program could not be kept: {error!r}", loud=False)
            jobs.clear()

    def _seconds_left(self) -> float:
        """Return how many seconds to wait before the jobs are done."""
        if self._hurry or len(self._waiting) >= MOST_WAITING:
            return 0.0
        now = time.monotonic()
        return min(self._last + QUIET_SECONDS, self._first + MOST_SECONDS) - now

    def _forked(self) -> None:
        """In a child process there is no such thread, and the parent writes what waits."""
        self._changed = threading.Condition()
        self._waiting = []
        self._working = self._hurry = False
        self.in_child()

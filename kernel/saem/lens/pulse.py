"""How is a view kept up to date without a message for every event?

Read before: nothing.  Read after: ``saem.lens.widget``, ``saem.lens.panel``.
Invariant: after the last ``beat`` the action runs once more, at most ``pause`` seconds later, and
never twice at the same time (tests/lens/test_panel.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pulse:
    """Runs ``action`` soon after ``beat()``, and at most once in ``pause`` seconds.

    The action runs on a thread of its own, so that it never runs inside the event that it shows.
    """

    def __init__(self, action: Callable[[], None], pause: float) -> None:
        self._action = action
        self._pause = pause
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._timer: threading.Timer | None = None
        self._last = -pause
        self._stopped = False

    def beat(self) -> None:
        """Ask for the action."""
        with self._lock:
            if self._timer is not None or self._stopped:
                return
            wait = max(0.01, self._last + self._pause - time.monotonic())
            self._timer = threading.Timer(wait, self._fire)
            self._timer.daemon = True
            self._timer.start()

    def flush(self) -> None:
        """Run the action now if it was asked for and has not run yet."""
        with self._lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            self._run()

    def stop(self) -> None:
        """Never run the action again."""
        with self._lock:
            self._stopped = True
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _fire(self) -> None:
        with self._lock:
            mine = self._timer is threading.current_thread()
            if mine:
                self._timer = None
        if mine:
            self._run()

    def _run(self) -> None:
        with self._running:
            self._last = time.monotonic()
            self._action()

"""What happens at ``%load_ext saem.lens``, and how is it undone?

Read before: ``saem.lens.cells``, ``.display``, ``.tracebacks``, ``.panel``.  Read after: nothing.
Invariant: loading twice is loading once, and after unloading the shell and the engine are as
before (tests/lens/test_ipython.py).
"""

from __future__ import annotations

import os
from typing import Any

import comm
import IPython
from IPython.core.interactiveshell import InteractiveShell

from saem.core import source
from saem.lens import cells, display, magics, tracebacks
from saem.lens.page import carrier
from saem.lens.panel import TARGET, Panel
from saem.observe.places import places
from saem.observe.progress import Watch
from saem.observe.recorder import recorder

# IPython's frames are not the user's code: what a magic runs was written in a cell.
source.exclude(os.path.join(os.path.dirname(IPython.__file__), ""))


class _Loaded:
    """The lens in one shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        recorder.start(hits=True)
        carrier.forget()
        cells.announce_past(shell)
        display.install(shell)
        tracebacks.install(shell)
        magics.install(shell)
        self.panel = Panel()
        self.watch = Watch(self.panel.progress)
        comm.get_comm_manager().register_target(TARGET, self.panel.opened)
        shell.events.register("pre_run_cell", self.before)
        shell.events.register("post_run_cell", self.after)

    def before(self, info: Any) -> None:
        """A cell is about to run."""
        cells.announce(self.shell, info)
        carrier.began(places.current())

    def after(self, result: Any) -> None:
        """A cell has run: what it began and did not end has failed."""
        recorder.settle()
        self.panel.flush()
        if hasattr(self.shell, "kernel"):  # a terminal has shown the engine's own message
            tracebacks.explain(self.shell, result.error_in_exec)

    def undo(self) -> None:
        self.shell.events.unregister("pre_run_cell", self.before)
        self.shell.events.unregister("post_run_cell", self.after)
        comm.get_comm_manager().unregister_target(TARGET, self.panel.opened)
        self.watch.stop()
        self.panel.stop()
        magics.remove(self.shell)
        tracebacks.remove(self.shell)
        display.remove(self.shell)
        recorder.stop()


_loaded: list[_Loaded] = []


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Start the lens in this shell."""
    if not _loaded:
        _loaded.append(_Loaded(shell))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Stop the lens; what was recorded stays."""
    while _loaded:
        _loaded.pop().undo()

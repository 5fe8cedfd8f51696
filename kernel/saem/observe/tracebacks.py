"""What does a user see of an error that ends a program or a cell?

The traceback without the engine's frames, also where no function called the user's
(``core.frames``), if the error explains itself or a card does.

Read before: ``core.frames``, ``observe.cards``.  Read after: ``saem.lens.tracebacks``.
Invariant: the first frame, and every frame outside the engine, stays (tests/lens/test_ipython.py).
"""

from __future__ import annotations

import pathlib
import sys
from types import TracebackType

import saem
from saem.core import config, frames
from saem.observe import cards

RUNNER = pathlib.Path(saem.__file__).parent.as_posix() + "/dropin/run.py"


def shortened(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the engine's frames, if the error explains itself or a card does."""
    if config.traceback_filtering.value == "off":
        return trace
    return frames.shortened(error, trace, known=cards.is_engines(error)) or trace


def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the error that ended a program, as Python does, without the engine's frames."""
    error.__traceback__ = _of_program(trace)
    seen: set[int] = set()
    each: BaseException | None = error
    while not (each is None or id(each) in seen or isinstance(each, frames.UnfilteredStackTrace)):
        seen.add(id(each))
        before = each.__cause__ or each.__context__
        frames.leave_out(each, known=cards.is_engines(each))
        each = before
    sys.__excepthook__(kind, error, error.__traceback__)


def _of_program(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on: without that of who runs it."""
    start, each = trace, trace
    while each is not None:
        if each.tb_frame.f_code.co_filename.replace("\\", "/") == RUNNER:
            start = each.tb_next
        each = each.tb_next
    return start

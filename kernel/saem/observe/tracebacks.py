"""Which lines of a traceback does a user see?

An error explains itself: it names the user's own line and says what to try.  The frames inside the
engine between that line and the message say nothing more to a user of the engine, so notebooks and
``python -m saem run`` leave them out.  An error inside the engine that was not foreseen keeps its
frames: there, they are what a bug report needs.  ``jax_traceback_filtering="off"`` shows all.

Read before: ``core.errors``, ``observe.cards``.  Read after: ``saem.lens.tracebacks``.
Invariant: the first frame, and every frame outside the engine, stays (tests/lens/test_ipython.py).
"""

from __future__ import annotations

import pathlib
import sys
from types import TracebackType

import saem
from saem.core import config
from saem.observe import cards

ENGINE = pathlib.Path(saem.__file__).parent.as_posix() + "/"
RUNNER = ENGINE + "dropin/run.py"
LEFT_OUT = """
Frames inside Saem were left out. JAX_TRACEBACK_FILTERING=off shows them."""


def shortened(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the engine's frames, if the error explains itself or a card does.

    An error raised by a user's function that the engine was running explains itself too.
    """
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    whole = config.traceback_filtering.value == "off"
    if not frames or whole or (_inside(frames[-1]) and not cards.is_engines(error)):
        return frames[0] if frames else None
    kept: TracebackType | None = None
    for frame in reversed(frames):
        if frame is frames[0] or not _inside(frame):
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _inside(frame: TracebackType) -> bool:
    return _file(frame).startswith(ENGINE)


def _file(frame: TracebackType) -> str:
    return frame.tb_frame.f_code.co_filename.replace("\\", "/")


def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the error that ended a program, as Python does, without the engine's frames."""
    mode = config.traceback_filtering.value
    error.__traceback__ = _of_program(trace)
    if mode in ("off", "tracebackhide", "remove_frames"):
        sys.__excepthook__(kind, error, error.__traceback__)
        if mode != "remove_frames":
            return
        print("\nThe same without the frames inside Saem:\n", file=sys.stderr)
    fewer = _shorten_all(error)
    sys.__excepthook__(kind, error, error.__traceback__)
    if fewer and mode != "remove_frames":
        print(LEFT_OUT, file=sys.stderr)


def _of_program(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on: without that of who runs it."""
    start, each = trace, trace
    while each is not None:
        if _file(each) == RUNNER:
            start = each.tb_next
        each = each.tb_next
    return start


def _shorten_all(error: BaseException | None) -> bool:
    """Leave the engine's frames out of an error and those before it; return if there were any."""
    changed, seen = False, set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        before = error.__traceback__
        error.__traceback__ = shortened(error, before)
        changed |= _length(error.__traceback__) < _length(before)
        error = error.__cause__ or error.__context__
    return changed


def _length(trace: TracebackType | None) -> int:
    count = 0
    while trace is not None:
        count, trace = count + 1, trace.tb_next
    return count

"""Which lines of a traceback does a user see?

An error explains itself: it names the user's own line and says what to try.  The frames inside the
engine between that line and the message say nothing more to a user of the engine.  So functions
that call the user's (``boundary``) leave them out of the errors that pass through them, as
``jax_traceback_filtering`` says.  An error that Python raised inside the engine was not foreseen,
and keeps its frames: there, they are what a bug report needs.

Read before: ``core.errors``, ``core.source``.  Read after: ``saem.observe.tracebacks``.
Invariant: every frame outside the engine stays (tests/kernel/test_frames.py).
"""

from __future__ import annotations

import builtins
import functools
import opcode
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from saem.core import config, errors, source

F = TypeVar("F", bound=Callable)

RAISE = opcode.opmap["RAISE_VARARGS"]
# How Python begins to say that a call does not fit a function's parameters.
ARGUMENTS = re.compile(r"\S+\(\) (takes|missing|got) ")
NOTE = """--------------------
Frames inside Saem were left out. JAX_TRACEBACK_FILTERING=off shows them."""
WHOLE = """--------------------
All frames, those inside Saem too; they are left out of the traceback that follows."""


class UnfilteredStackTrace(Exception):
    """What an error was before frames were left out of it: its message and its whole traceback."""

    # The error's traceback without frames, which grows at its start where the error goes on.
    left: TracebackType | None = None


def boundary(fun: F) -> F:
    """Return ``fun`` with the engine's frames left out of the errors that pass through it.

    Decorates the functions that call a user's function.
    """
    @functools.wraps(fun)
    def entered(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            leave_out(error)
            raise

    return cast(F, entered)


def leave_out(error: BaseException, known: bool = False) -> None:
    """Change the traceback of ``error`` as the setting ``jax_traceback_filtering`` says.

    To be called where it was caught, and before ``raise``, which then adds no frame.  ``known``
    says that it explains itself.
    """
    mode = config.traceback_filtering.value
    if mode == "auto":
        # IPython leaves out what is hidden, and shows it when it is asked to.
        mode = "tracebackhide" if hasattr(builtins, "__IPYTHON__") else "quiet_remove_frames"
    whole = error.__traceback__
    if mode == "tracebackhide":
        hide(whole)
    elif mode != "off":
        fewer = shortened(error, whole, known)
        if fewer is whole:
            return
        if mode == "remove_frames":
            keep_whole(error, whole, fewer)
        elif mode == "quiet_remove_frames" and NOTE not in getattr(error, "__notes__", ()):
            error.add_note(NOTE)
        error.__traceback__ = fewer


def keep_whole(error: BaseException, whole: TracebackType | None, left: TracebackType | None
               ) -> None:
    """Give ``error`` a cause that holds its whole traceback, of which ``left`` is what is left.

    Where it passed through a function of the engine before, only the start of ``whole`` is new.
    """
    before = error.__cause__
    if not isinstance(before, UnfilteredStackTrace):
        before = UnfilteredStackTrace(f"{type(error).__name__}: {error}\n\n{WHOLE}")
        before.__cause__, before.__context__ = error.__cause__, error.__context__
        before.__suppress_context__ = error.__suppress_context__
        error.__cause__, error.__context__ = before, None
    new = []
    while whole is not None and whole is not before.left:
        new.append(whole)
        whole = whole.tb_next
    for frame in reversed(new):
        before.__traceback__ = TracebackType(
            before.__traceback__, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    before.left = left


def shortened(error: BaseException, trace: TracebackType | None, known: bool = False
              ) -> TracebackType | None:
    """Return the traceback without the engine's frames, or itself if it needs them or has none.

    An error raised by a user's function that the engine was running explains itself too.
    """
    frames = frames_of(trace)
    inside = [source.is_internal(frame.tb_frame.f_code.co_filename) for frame in frames]
    if not any(inside) or (
            inside[-1] and not (known or was_foreseen(error, frames[-1]))):
        return trace
    kept: TracebackType | None = None
    for frame, internal in zip(reversed(frames), reversed(inside)):
        if not internal:
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def was_foreseen(error: BaseException, frame: TracebackType) -> bool:
    """Return whether an error that began in ``frame``, of the engine, explains itself.

    The engine raised it by ``raise``, or XLA did, or a user's function takes other arguments.
    """
    if isinstance(error, errors.Explained | errors.JaxRuntimeError):
        return True
    if isinstance(error, TypeError) and ARGUMENTS.match(str(error)):
        return True
    raised = frame.tb_frame.f_code.co_code[frame.tb_lasti] == RAISE
    return raised and not isinstance(error, AssertionError)


def hide(trace: TracebackType | None) -> None:
    """Mark the engine's frames for IPython, pytest and debuggers, which pass over them."""
    for frame in frames_of(trace):
        if source.is_internal(frame.tb_frame.f_code.co_filename):
            frame.tb_frame.f_locals["__tracebackhide__"] = True


def frames_of(trace: TracebackType | None) -> list[TracebackType]:
    """Return the frames of a traceback, the outermost first."""
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found

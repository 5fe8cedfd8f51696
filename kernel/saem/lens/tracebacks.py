"""Which lines of a traceback does a learner see?

An error explains itself: it names the user's own line and says what to try.  The frames inside the
engine between that line and the message say nothing more to a user of the engine, so they are left
out.  ``%xmode Verbose`` and then ``%tb`` shows them all.  An error inside the engine that was not
foreseen keeps its frames: there, they are what a bug report needs.

Read before: ``saem.core.errors``.  Read after: ``saem.lens.extension``.
Invariant: the first frame, and every frame outside the engine, stays (tests/lens/test_ipython.py).
"""

from __future__ import annotations

import pathlib
from types import TracebackType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

import saem
from saem.lens.display import bundle
from saem.observe import cards, language

ENGINE = pathlib.Path(saem.__file__).parent.as_posix() + "/"


def shortened(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the engine's frames, if the error explains itself or a card does.

    An error raised by a user's function that the engine was running explains itself too.
    """
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    if not frames or (_inside(frames[-1]) and not cards.is_engines(error)):
        return frames[0] if frames else None
    kept: TracebackType | None = None
    for frame in reversed(frames):
        if frame is frames[0] or not _inside(frame):
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _inside(frame: TracebackType) -> bool:
    return frame.tb_frame.f_code.co_filename.replace("\\", "/").startswith(ENGINE)


def explain(shell: InteractiveShell, error: BaseException | None) -> None:
    """Show the card of an error of the engine, in the learner's language, under its traceback."""
    if error is None or not cards.is_engines(error):
        return
    model = cards.error_model(error, error.__traceback__)
    # The text is the same in every language; a terminal has the engine's own message.
    text = f"{model.name}: {' → '.join(step.name for step in model.path) or model.tag}"
    shell.display_pub.publish(bundle(model, text, language.current()))


def install(shell: InteractiveShell) -> None:
    """Let the shell leave the engine's frames out."""
    formatter = shell.InteractiveTB
    whole = formatter.structured_traceback

    def structured(kind: Any, error: Any, trace: Any = None, *args: Any, **named: Any) -> list[str]:
        if formatter.mode != "Verbose" and isinstance(trace, TracebackType):
            trace = shortened(error, trace)
        return whole(kind, error, trace, *args, **named)

    vars(formatter)["structured_traceback"] = structured


def remove(shell: InteractiveShell) -> None:
    """Let the shell show every frame again."""
    vars(shell.InteractiveTB).pop("structured_traceback", None)

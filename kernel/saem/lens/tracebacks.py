"""What does a learner see of an error in a notebook?

The traceback without the engine's frames (``observe.tracebacks``), and under it the error's card.
``%xmode Verbose`` and then ``%tb`` shows every frame.

Read before: ``observe.tracebacks``.  Read after: ``saem.lens.extension``.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from saem.lens.display import bundle
from saem.observe import cards, language
from saem.observe.tracebacks import shortened


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

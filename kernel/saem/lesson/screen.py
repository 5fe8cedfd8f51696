"""Where is a gate or the result of an exercise shown: as a widget, as HTML, or printed?

In a notebook kernel with anywidget (and so ipywidgets) a gate is a widget.  With
``SAEM_LESSON_STATIC=1`` (set when lessons are built), or without anywidget, it is HTML beside plain
text.  Elsewhere it is printed.

Read before: ``saem.lesson.render``.  Read after: ``saem.lesson.notebook``.
Invariant: this module imports neither IPython nor widgets; ``saem.lesson.notebook``, which does,
is loaded only inside a notebook kernel (tests/notebooks/test_gates.py).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

from saem.lesson.gates import Gate
from saem.lesson.render import (
    exercise_html,
    exercise_text,
    question_html,
    question_text,
    verdict_html,
    verdict_text,
)


def show(gate: Gate) -> None:
    """Show the question, and the verdict whenever a cell judges it."""
    shell = _kernel_shell()
    if shell is None:
        print(question_text(gate))
        gate.changed.append(lambda gate: print(verdict_text(gate)))
        return
    if _static() or importlib.util.find_spec("anywidget") is None:
        _publish(shell, question_text(gate), question_html(gate))
    else:
        importlib.import_module("saem.lesson.notebook").show(gate)
    gate.judged.append(lambda gate: _publish(shell, verdict_text(gate), verdict_html(gate)))


def report(name: str, state: str, hint: str, details: tuple[str, ...]) -> None:
    """Show how the answer to an exercise did."""
    text = exercise_text(name, state, hint, details)
    shell = _kernel_shell()
    if shell is None:
        print(text)
    else:
        _publish(shell, text, exercise_html(name, state, hint, details))


def _publish(shell: object, text: str, html: str) -> None:
    shell.display_pub.publish({"text/plain": text, "text/html": html})  # type: ignore[attr-defined]


def _static() -> bool:
    return os.environ.get("SAEM_LESSON_STATIC") == "1"


def _kernel_shell() -> object | None:
    """The IPython shell of a notebook kernel; None in a script or a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if hasattr(shell, "kernel") else None

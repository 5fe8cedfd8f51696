"""How does a lesson ask?  ``predict.choice``, ``number``, ``text``, ``argument``, ``line``,
``shape``.

Each shows a question and returns a gate; a later cell judges it::

    guess = predict.number("compiles", t("How many times will `update` compile?"))
    …
    with guess.watch("compiles", of="update"):
        for batch in batches:
            update(batch)

Read before: ``saem.lesson.gates``.  Read after: ``saem.lesson.screen``.
Invariant: asking the same question again after its result was shown does not make the next guess
look like a prediction (tests/notebooks/test_gates.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from saem.lesson import screen
from saem.lesson.gates import Choice, Gate, Kind, Number, Shape, Text
from saem.lesson.words import say

_asked: dict[str, Gate] = {}


def choice(name: str, question: str, options: Mapping[Any, str] | Sequence[str]) -> Gate:
    """Ask for one of ``options``: labels, or a mapping from each value to its label.

    Raises ValueError if there are fewer than two.
    """
    labels: dict[object, str] = {}
    labels.update(options if isinstance(options, Mapping) else zip(options, options, strict=True))
    if len(labels) < 2:
        raise ValueError(f"choice needs two or more different options, but got {options!r}.")
    return _ask(name, question, Choice(labels))


def number(name: str, question: str, tolerance: float = 0.0) -> Gate:
    """Ask for a number; a guess within ``tolerance`` of the truth is right."""
    return _ask(name, question, Number(tolerance))


def text(name: str, question: str) -> Gate:
    """Ask for a short text."""
    return _ask(name, question, Text())


def argument(name: str, question: str, of: Callable) -> Gate:
    """Ask which argument of ``of`` it is; judge it by ``gate.watch("argument", of=…)``."""
    names = list(inspect.signature(of).parameters)
    options = {path: f"`{path}`" for path in names}
    return choice(name, question, {**options, say("nothing"): say("nothing")})


def line(name: str, question: str, of: Callable) -> Gate:
    """Ask which line of ``of`` it is; judge it by ``gate.watch("line")``."""
    lines = [text for text in inspect.getsource(of).splitlines() if text.strip()]
    options = {text.strip(): f"{number:>2}  `{text}`" for number, text in enumerate(lines, 1)}
    return choice(name, question, options)


def shape(name: str, question: str) -> Gate:
    """Ask for the shape of an array, which is drawn as it is written."""
    return _ask(name, question, Shape())


def reset(name: str | None = None) -> None:
    """Take back the guess of the question ``name``, or all guesses.

    Raises KeyError if that question was not asked yet.
    """
    for gate in _asked.values() if name is None else (_asked[name],):
        gate.reset()


def answer(name: str, value: object) -> None:
    """Commit a guess to the question ``name`` where there are no widgets.

    Raises KeyError if that question was not asked yet.
    """
    if name not in _asked:
        raise KeyError(f"answer needs a question asked before; {name!r} is not in {list(_asked)}.")
    _asked[name].answer(value)


def _ask(name: str, question: str, kind: Kind) -> Gate:
    before = _asked.get(name)
    seen = before is not None and (before.seen or before.truth is not None)
    gate = _asked[name] = Gate(name, question, kind, seen)
    screen.show(gate)
    return gate

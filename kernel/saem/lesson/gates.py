"""What is a predict gate, and when is a guess right?

A gate is a question with a guess and a truth, each of which may come first.  It does not depend on
notebooks; ``saem.lesson.screen``, which shows it, is called at every change.

Read before: ``saem.lesson.judge``.  Read after: ``saem.lesson.predict``, ``saem.lesson.screen``.
Invariant: a guess is judged by the first truth seen after the question was asked, and one made
when a truth was known stays marked so (tests/notebooks/test_gates.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping

from saem.lesson.judge import Truth, Watch


@dataclasses.dataclass(frozen=True)
class Guess:
    """What the learner said, and whether the result was known by then."""

    value: object
    after: bool


@dataclasses.dataclass(frozen=True)
class Choice:
    """One of several options: the value of each, and its label."""

    options: Mapping[object, str]

    def read(self, answer: object) -> object:
        """The option meant by its value or its label."""
        for value in self.options:
            if answer == value and type(answer) is type(value):
                return value
        for value, label in self.options.items():
            if str(answer) == label:
                return value
        raise ValueError(f"choice needs one of {list(self.options)}, but got {answer!r}.")

    def same(self, guess: object, truth: object) -> bool:
        return guess == truth

    def label(self, value: object) -> str:
        return self.options.get(value, str(value))


@dataclasses.dataclass(frozen=True)
class Number:
    """A number; ``tolerance`` is absolute."""

    tolerance: float = 0.0

    def read(self, answer: object) -> float:
        """Raises ValueError for what is not a finite number."""
        try:
            value = float(answer)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(f"number needs a finite number, such as 2 or 0.5, but got {answer!r}.")
        return value

    def same(self, guess: object, truth: object) -> bool:
        return abs(float(guess) - float(truth)) <= self.tolerance  # type: ignore[arg-type]

    def label(self, value: object) -> str:
        return f"{float(value):g}"  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Text:
    """A short text; case, spaces around it and Unicode form do not matter."""

    def read(self, answer: object) -> str:
        """Raises ValueError for an empty answer."""
        if not str(answer).strip():
            raise ValueError("text needs an answer, but got nothing.")
        return str(answer)

    def same(self, guess: object, truth: object) -> bool:
        return _plain(guess) == _plain(truth)

    def label(self, value: object) -> str:
        return str(value)


@dataclasses.dataclass(frozen=True)
class Shape:
    """The shape of an array; an answer may be ``(3, 4)``, ``"3, 4"``, ``"f32[3,4]"``, an array."""

    def read(self, answer: object) -> tuple[int, ...]:
        """Raises ValueError for what names no shape."""
        answer = getattr(answer, "shape", answer)
        if isinstance(answer, str):
            # A Korean or Japanese keyboard may write （３，４）.
            answer = unicodedata.normalize("NFKC", answer)
            inside = answer.strip().rpartition("[")[2].strip("()[] ").strip(",")
            parts = [part.strip() for part in inside.replace("×", ",").split(",") if part.strip()]
            if not all(part.isdigit() for part in parts):
                raise ValueError(f"shape needs sizes such as (3, 4), but got {answer!r}.")
            return tuple(map(int, parts))
        if isinstance(answer, int):
            return (answer,)
        if not isinstance(answer, (tuple, list)) or not all(
                isinstance(size, int) and size >= 0 for size in answer):
            raise ValueError(f"shape needs sizes such as (3, 4), but got {answer!r}.")
        return tuple(answer)

    def same(self, guess: object, truth: object) -> bool:
        return self.read(guess) == self.read(truth)

    def label(self, value: object) -> str:
        return str(self.read(value))


Kind = Choice | Number | Text | Shape


class Gate:
    """A question, the learner's guess, and what happened."""

    def __init__(
        self, name: str, question: str, kind: Kind, seen: bool = False
    ) -> None:
        self.name = name
        self.question = question
        self.kind = kind
        self.seen = seen
        self.guess: Guess | None = None
        self.truth: Truth | None = None
        self.latest: Truth | None = None
        self.changed: list[Callable[[Gate], None]] = []
        self.judged: list[Callable[[Gate], None]] = []

    def answer(self, value: object) -> None:
        """Commit a guess; the first one stays.

        Raises ValueError if ``value`` cannot be an answer to this question.
        """
        guess = self.kind.read(value)
        if self.guess is None:
            self.guess = Guess(guess, after=self.seen or self.truth is not None)
        for listener in self.changed:
            listener(self)

    def reset(self) -> None:
        """Take the guess back; the next one is marked as made after the result, if it is known."""
        self.guess = None
        self.seen = self.seen or self.truth is not None
        for listener in self.changed:
            listener(self)

    def judge(self, value: object, lines: tuple[str, ...] = ()) -> None:
        """Say what happened: ``value`` is the right answer of this run."""
        self.latest = Truth(value, lines)
        if self.truth is None:
            self.truth = self.latest
        for listener in (*self.changed, *self.judged):
            listener(self)

    @contextlib.contextmanager
    def watch(self, what: str, of: Callable | str | None = None) -> Iterator[Watch]:
        """Let the engine judge what the block does: its ``compiles``, ``traces``, the ``argument``
        that made it trace again, or the ``line`` where the engine raised an error.

        ``of`` names the function meant.  A block that raises leaves the question open, unless the
        question is at which line.
        """
        watch = Watch(what, of)
        watch.start()
        try:
            yield watch
        except Exception:
            watch.stop()
            if what == "line" and watch.raised is not None:
                self.judge(*watch.line())
            raise
        finally:
            watch.stop()
        truth = watch.truth()
        self.judge(truth.value, truth.lines)

    @property
    def right(self) -> bool | None:
        """Whether the guess was right; None while there is no guess or no truth."""
        if self.guess is None or self.truth is None:
            return None
        return self.kind.same(self.guess.value, self.truth.value)

    def __repr__(self) -> str:
        return f"<Gate {self.name!r}>"


def _plain(text: object) -> str:
    """Text as compared: one Unicode form, no case, no outer space or code marks."""
    return unicodedata.normalize("NFC", str(text)).strip().strip("`'\"").casefold()

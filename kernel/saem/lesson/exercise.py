"""How does a lesson let the learner write something, and judge what it does?

The learner replaces ``exercise.todo()`` in a function.  A later cell calls that function in several
ways; each way carries the hint that helps when it fails::

    def padded_sum(values):
        return exercise.todo()

    with exercise.check("padded-sum") as check:
        with check.hint(t("The padding must not change the sum.")):
            assert padded_sum([1.0, 2.0]) == 3.0
        with check.hint(t("Make every array equally long.")), check.watch("compiles") as seen:
            …
            assert seen.count == 1

The first block that fails, by an assertion or by any other error of the learner's code, shows its
hint.  No answer is stored: every function that behaves as asked is right.

Read before: ``saem.lesson.gates``, ``saem.lesson.judge``.  Read after: ``saem.lesson.render``.
Invariant: a lesson without an answer runs to its end (tests/notebooks/test_exercise.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import NoReturn

import saem
from saem.lesson import screen
from saem.lesson.judge import Watch
from saem.lesson.words import say

STATES = ("unanswered", "wrong", "right")


class NotAnswered(Exception):
    """The learner has not replaced ``exercise.todo()`` yet."""


class _Failed(Exception):
    """A block failed and its hint is known; ends the check."""


@dataclasses.dataclass(frozen=True)
class Result:
    """How an answer did: one of ``STATES``, the hint of the block that failed, and details."""

    name: str
    state: str
    hint: str = ""
    details: tuple[str, ...] = ()


results: dict[str, Result] = {}
"""The latest result of each exercise, by its name."""


class Check:
    """Judges one answer; made by :func:`check`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.result = Result(name, "right")

    @contextlib.contextmanager
    def hint(self, text: str) -> Iterator[None]:
        """A block whose failure means what ``text`` explains."""
        try:
            yield
        except NotAnswered:
            self._end(Result(self.name, "unanswered"))
        except _Failed:
            raise
        except AssertionError as error:
            self._end(Result(self.name, "wrong", text, _lines(str(error))))
        except Exception as error:
            # The words are shown as code: a mark of code inside would end it.
            words = re.sub(r":\n\s*", ": ", str(error), count=1).split("\n", 1)[0].replace("`", "'")
            raised = f"{type(error).__name__}: {words}"
            # A misspelt name is not a mistake that the hint of this block is about.
            hint = "" if isinstance(error, NameError) else text
            self._end(Result(self.name, "wrong", hint, (say("raised", error=raised),)))

    @contextlib.contextmanager
    def watch(self, what: str, of: Callable | str | None = None) -> Iterator[Watch]:
        """Count what the engine does in the block: ``compiles`` or ``traces`` (``seen.count``).

        What was compiled before is forgotten first, so that a second run of the check counts as
        the first did.
        """
        saem.clear_caches()
        seen = Watch(what, of)
        seen.start()
        try:
            yield seen
        finally:
            seen.stop()

    def _end(self, result: Result) -> NoReturn:
        self.result = result
        raise _Failed


@contextlib.contextmanager
def check(name: str) -> Iterator[Check]:
    """Judge the answer to the exercise ``name`` by the ``hint`` blocks inside, and show the result.

    An error outside a ``hint`` block is the lesson's own fault and is raised.
    """
    judge = Check(name)
    with contextlib.suppress(_Failed):
        yield judge
    result = results[name] = judge.result
    screen.report(name, result.state, result.hint, result.details)


def todo() -> NoReturn:
    """Stand where the learner's answer belongs.

    Raises NotAnswered whenever it is reached.
    """
    raise NotAnswered(say("todo"))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.split("\n") if line.strip())

"""What did the engine just do?  Events, turned into the answer to a question.

A :class:`Watch` listens while a block runs and then knows how often a function was compiled or
traced, and which argument made it happen again.

Read before: ``saem.core.events``.  Read after: ``saem.lesson.gates``.
Invariant: the listener goes when the block ends, however it ends (tests/notebooks/test_gates.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from saem.core.events import (
    Argument,
    CacheMiss,
    Compile,
    ErrorRaised,
    Event,
    Signature,
    TraceBegin,
    bus,
)
from saem.core.source import source_line
from saem.lesson.words import say
from saem.observe import cards, reasons
from saem.observe.places import places
from saem.observe.reasons import printed, short_type
from saem.observe.words import in_language

WATCHES = ("compiles", "traces", "argument", "line")


@dataclasses.dataclass(frozen=True)
class Truth:
    """What happened: the value a guess is compared with, and lines that say why."""

    value: object
    lines: tuple[str, ...] = ()


class Watch:
    """Collects the engine's events about the function ``of`` (all functions if None)."""

    def __init__(self, what: str, of: Callable | str | None) -> None:
        if what not in WATCHES:
            raise ValueError(f"watch needs one of {WATCHES}, but got {what!r}.")
        self.what = what
        self.of = of if of is None or isinstance(of, str) else of.__name__
        self.misses: list[CacheMiss] = []
        self.raised: ErrorRaised | None = None
        self.programs: set[str] = set()
        # Of the misses, by number: those whose program was found, in this process or on disk, and
        # those that were traced.
        self.reused: set[int] = set()
        self.loaded: set[int] = set()
        self.traced: set[int] = set()
        self._stop: Callable[[], None] | None = None

    def start(self) -> None:
        """Listen from now on."""
        self._stop = bus.subscribe(self._see)

    def stop(self) -> None:
        """Listen no longer."""
        if self._stop is not None:
            self._stop()
            self._stop = None

    def _see(self, event: Event) -> None:
        if isinstance(event, ErrorRaised):
            self.raised = event
        if isinstance(event, CacheMiss) and self._meant(event):
            self.misses.append(event)
        elif isinstance(event, TraceBegin) and self._meant(event) and self.misses:
            self.traced.add(len(self.misses) - 1)
        elif isinstance(event, Compile) and self._meant(event):
            self.programs.add(event.program)
            if event.found and self.misses:
                found = self.loaded if event.disk == "found" else self.reused
                found.add(len(self.misses) - 1)

    def _meant(self, event: CacheMiss | Compile | TraceBegin) -> bool:
        return self.of is None or event.function.name == self.of

    @property
    def count(self) -> int:
        """How many programs (``compiles``), or else traces, were seen so far."""
        return len(self.programs if self.what == "compiles" else self.misses)

    def line(self) -> tuple[str, tuple[str, ...]]:
        """The source line at which the engine raised an error, and what that error means in the
        learner's language; nothing if it raised none."""
        if self.raised is None or self.raised.where is None:
            return "", ()
        title = cards.title(self.raised.tag, self.raised.error)
        said = self.raised.message.splitlines()[0] if title is None else in_language(title)
        return source_line(self.raised.where), (f"`{self.raised.error}`: {said}",)

    def truth(self) -> Truth:
        """The answer to the question ``what``.

        A program counts once, also if it was found: running the lesson's cell a second time must
        not turn a right guess into a wrong one.
        """
        if self.what == "line":
            return Truth(*self.line())
        if self.what == "argument":
            changes = [c for old, new in self._pairs() for c in changed_paths(old, new)]
            return Truth(changes[0] if changes else say("nothing"), self._lines())
        return Truth(self.count, self._lines())

    def _pairs(self) -> list[tuple[Signature, Signature]]:
        """Signatures of consecutive misses of the same function."""
        last: dict[str, Signature] = {}
        pairs = []
        for miss in self.misses:
            name = miss.function.qualname
            if name in last:
                pairs.append((last[name], miss.signature))
            last[name] = miss.signature
        return pairs

    def _lines(self) -> tuple[str, ...]:
        last: dict[str, CacheMiss] = {}
        lines = []
        for at, miss in enumerate(self.misses):
            before = last.get(miss.function.qualname)
            what = say(self._how(at), function=miss.function.name,
                       signature=printed(miss.signature, _short))
            lines.append(f"{at + 1}. {what} — {_reason(before, miss)}")
            last[miss.function.qualname] = miss
        return tuple(lines)

    def _how(self, at: int) -> str:
        """What became of the miss with the number ``at``."""
        if at not in self.reused | self.loaded:
            return "compiled"
        if at not in self.traced:
            return "kept"
        return "loaded" if at in self.loaded else "found"


def changed_paths(old: Signature, new: Signature) -> list[str]:
    """Names of the arguments, static ones included, that differ between two calls."""
    mine = {a.path for a in new.arguments} | {s.path for s in new.static}
    paths = [change.path for change in reasons.compare(old, new)]
    return [path for path in dict.fromkeys(paths) if path in mine]


def _reason(before: CacheMiss | None, miss: CacheMiss) -> str:
    """Why the call was traced, in the panel's words: the most telling of what differs."""
    if before is None:
        return say("first")
    earlier = reasons.Earlier(
        before.signature, before.function.identity, True,
        places.place_of_function(before.function), before.function.transforms)
    found = reasons.why(
        miss.function.name, miss.signature, miss.function.identity,
        places.place_of_function(miss.function), (earlier,), None, miss.mutated,
        miss.function.transforms)
    return in_language(found[0].says)


def _short(a: Argument) -> str:
    """``f32[3]``, with the place of a committed array."""
    return short_type(a) + (f"@{a.placement}" if a.committed else "")


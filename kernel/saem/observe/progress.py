"""What has the engine been doing for so long?

Nothing is measured while programs run: a thread looks at the stacks of other threads four times a
second (``sys._current_frames``).  A frame of the tracer, of the lowering, of XLA's compiler or of a
copy to a device shows what is going on, and its locals for which function.  After ten seconds the
program's own equations tell why it may be slow: a line that wrote most of them was unrolled, or XLA
computes a large constant.

Read before: ``transform.staging``.  Read after: ``saem.lens.panel``.
Invariant: looking changes nothing in the thread that works (tests/lens/test_progress.py).
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from saem.compile import dispatch, executables, lowering
from saem.core import source
from saem.core.jaxpr import Jaxpr, Literal
from saem.jit import jitted
from saem.observe import words
from saem.observe.jaxpr_model import bytes_of, nested_of
from saem.observe.language import quantity
from saem.observe.messages import fill
from saem.observe.places import Places, places
from saem.observe.schema import Place, Progress, Text
from saem.placement import spread
from saem.transform import staging

_PAUSE = 0.25
SHOWN_AFTER = 0.5
WHY_AFTER = 10.0
_TRACING = staging.trace_flat.__code__
_LOWERING = lowering.write_module.__code__
_COMPILING = executables.backend_compile_and_load.__code__
_BUILDING = executables.find_or_compile.__code__
_CALLING = jitted.Jitted.trace.__code__
_COPYING = frozenset(copy.__code__ for copy in (
    dispatch.put, dispatch._move, spread.put_host, spread.move))
# A constant of fewer bytes does not hold XLA up.
_LARGE = 1 << 20
IDLE = Progress("progress", "idle", "", None, 0.0, None)


def look(thread: int, named: Places = places) -> tuple[str, str, Place | None, FrameType] | None:
    """What ``thread`` is doing: activity, function, the learner's line, and the frame that says so;
    None if it is not tracing, lowering, compiling or copying."""
    frame = sys._current_frames().get(thread)
    found: FrameType | None = None
    activity, name = "", ""
    place: Place | None = None
    while frame is not None:
        code = frame.f_code
        if code is _COMPILING and not activity:
            activity, found = "compile", frame
        elif code is _LOWERING and not activity:
            activity, found = "lower", frame
            name = str(getattr(frame.f_locals.get("options"), "name", ""))
        elif code in _COPYING and activity in ("", "transfer"):
            activity, found = "transfer", frame
            aval = frame.f_locals.get("aval")
            name = name if aval is None else aval.str_short(True)
        elif code is _TRACING and activity in ("", "trace"):
            activity, found = "trace", frame  # the outermost trace is the one that is waited for
            name = str(frame.f_locals.get("debug_name", "")) or name
        elif code is _CALLING and activity == "trace":
            name = str(getattr(frame.f_locals.get("self"), "name", "")) or name
        elif code is _BUILDING and activity == "compile":
            name = str(getattr(frame.f_locals.get("lowered"), "name", ""))
            found = frame
        if place is None and not source.is_internal(code.co_filename):
            place = named.place(source.position((code, frame.f_lasti, code.co_filename)))
        frame = frame.f_back
    return (activity, name, place, found) if found is not None else None


def why(activity: str, frame: FrameType) -> Text | None:
    """Why what runs in ``frame`` may be slow, as far as its locals tell."""
    if activity == "trace":
        context = frame.f_locals.get("context")
        return unrolled(list(getattr(getattr(context, "trace", None), "eqns", ())))
    if activity == "transfer":
        aval = frame.f_locals.get("aval")
        if aval is None:
            return None
        size = math.prod(aval.shape) * aval.dtype.itemsize
        return fill(words.WORDS["progress.copied"], size=quantity(size, "B"))
    lowered = frame.f_locals.get("lowered")
    if activity == "compile" and lowered is not None:
        constant = folded(lowered.closed.jaxpr)
        if constant is not None:
            return constant
        lines = lowered.text.count("\n")
        return fill(words.WORDS["progress.large"], lines=lines)
    return None


def unrolled(eqns: list[Any], named: Places = places) -> Text | None:
    """The line that wrote most of the equations, if it did so again and again."""
    if not eqns:
        return None
    spots = Counter(eqn.source for eqn in eqns if eqn.source is not None)
    if not spots:
        return None
    spot, times = spots.most_common(1)[0]
    where = named.place(source.position(spot))
    if where is None or times < 20:
        return None
    line = sum(count for s, count in spots.items()
               if s[2] == spot[2] and _line(s) == where.line)
    return fill(words.WORDS["progress.unrolled"], times=times, share=round(100 * line / len(eqns)),
                equations=len(eqns), where_en=where.label.en, where_ko=where.label.ko)


def folded(jaxpr: Jaxpr, named: Places = places) -> Text | None:
    """The largest array that is computed from no input, which XLA may do while it compiles."""
    size, spot = max(_constants(jaxpr, set(jaxpr.constvars)), default=(0, None),
                     key=lambda found: found[0])
    if size < _LARGE:
        return None
    where = None if spot is None else named.place(source.position(spot))
    told = "progress.constant" if where is None else "progress.constant_at"
    return fill(words.WORDS[told], size=quantity(size, "B"),
                **({} if where is None else {"where_en": where.label.en,
                                             "where_ko": where.label.ko}))


def _constants(jaxpr: Jaxpr, known: set[Any]) -> Iterator[tuple[int, Any]]:
    """Sizes and sources of what equations compute from known arrays alone."""
    for eqn in jaxpr.eqns:
        free = [isinstance(v, Literal) or v in known for v in eqn.invars]
        if eqn.operation.effects or not all(free):
            for _, body in nested_of(eqn):
                if len(body.invars) == len(free):
                    inside = {v for v, known_ in zip(body.invars, free) if known_}
                    yield from _constants(body, inside | set(body.constvars))
            continue
        known.update(eqn.outvars)
        # What is made of scalars alone (a range, a fill) is written down, not computed.
        if any(v in known for v in eqn.invars if not isinstance(v, Literal)):
            yield max(map(bytes_of, eqn.outvars)), eqn.source


def _line(spot: Any) -> int:
    position = source.position(spot)
    return 0 if position is None else position.line


class Watch:
    """Tells ``listener`` what a thread has been doing for longer than half a second, and when it
    is over."""

    def __init__(self, listener: Callable[[Progress], None], thread: int | None = None) -> None:
        self._listener = listener
        self._thread = threading.get_ident() if thread is None else thread
        self._end = threading.Event()
        self._since: tuple[tuple[str, str], float] | None = None
        self._told: Progress | None = None
        self._runner = threading.Thread(target=self._run, name="saem-progress", daemon=True)
        self._runner.start()

    def stop(self) -> None:
        """Watch no longer."""
        self._end.set()

    def _run(self) -> None:
        while not self._end.wait(_PAUSE):
            try:
                self.tick(time.time())
            except RuntimeError:  # a stack that changed under our eyes: look again next time
                continue

    def tick(self, now: float) -> None:
        """Look once."""
        seen = look(self._thread)
        if seen is None:
            self._since = None
            if self._told is not None:
                self._told = None
                self._listener(IDLE)
            return
        activity, name, place, frame = seen
        if self._since is None or self._since[0] != (activity, name):
            self._since = ((activity, name), now - (0 if self._since is None else _PAUSE))
        began = self._since[1]
        if now - began < SHOWN_AFTER:
            return
        reason = why(activity, frame) if now - began >= WHY_AFTER else None
        made = Progress("progress", activity, name, place, began, reason)  # type: ignore[arg-type]
        if self._told is None or (made.activity, made.function, made.why) != (
                self._told.activity, self._told.function, self._told.why):
            self._told = made
            self._listener(made)

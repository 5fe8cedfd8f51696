"""What was traced and compiled in this process, function by function?

The recorder listens to the engine's bus and joins the events of one call (miss, trace, lowering,
compile) into one record.  Rows are functions as the user means them: versions of a redefined
function share a row.

Read before: ``saem.core.events``, ``saem.observe.schema``, ``.reasons``.  Read after: ``.report``.
Invariant: what a reader gets is immutable; any thread may read while another runs programs; memory
is bounded by ``functions × records`` (tests/lens/test_recorder.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

from saem.core import events
from saem.core.source import function_ref
from saem.observe import messages, reasons, words
from saem.observe.calls import Calls, stale
from saem.observe.environment import environment
from saem.observe.language import duration
from saem.observe.lineage import Lineage
from saem.observe.places import Places, places
from saem.observe.schema import (
    MOST_FUNCTIONS,
    MOST_RECORDS,
    OPERATIONS,
    VERSION,
    Cost,
    Donated,
    FunctionHistory,
    FunctionSummary,
    HistoryModel,
    KeysModel,
    Kind,
    Moved,
    Place,
    Record,
    Text,
)

Watcher = Callable[[FunctionSummary, Record], None]
# Per function: how many earlier signatures are compared with, and how many versions are known.
_KEPT_VERSIONS = 64
# So many compiles for one cause are worth a warning.
_WARNED = 3
_COST_FIELDS = tuple(field.name for field in dataclasses.fields(Cost))


class _Row:
    """One function: its versions, its earlier signatures and its records."""

    def __init__(self, key: str, limit: int) -> None:
        self.key = key
        self.name = ""
        self.place: Place | None = None
        self.versions = 0
        self.numbers: dict[int, int] = {}
        self.earlier: deque[reasons.Earlier] = deque(maxlen=_KEPT_VERSIONS)
        self.records: deque[Record] = deque(maxlen=limit)
        self.dropped = 0
        self.used = 0
        self.misses = 0
        self.counts = dict.fromkeys(("trace", "compile", "found", "hit"), 0)
        self.seconds = 0.0
        # How often it was compiled because of one difference (tag and argument).
        self.causes: Counter[tuple[str, str]] = Counter()
        self.warning: Text | None = None

    def version_of(self, identity: int) -> int:
        """1 for the first version of the function, 2 after it was redefined once, …"""
        if identity not in self.numbers:
            self.versions += 1
            self.numbers[identity] = self.versions
            if len(self.numbers) > _KEPT_VERSIONS:
                del self.numbers[next(iter(self.numbers))]
        return self.numbers[identity]

    def put(self, record: Record) -> None:
        """Add the record, or renew the one with its id."""
        for index in range(len(self.records) - 1, -1, -1):
            if self.records[index].id == record.id:
                self.records[index] = record
                return
        if len(self.records) == self.records.maxlen:
            self.dropped += 1
        self.records.append(record)

    def summary(self, counts_hits: bool) -> FunctionSummary:
        counts = self.counts
        return FunctionSummary(
            key=self.key,
            name=self.name,
            place=self.place,
            versions=self.versions,
            traces=counts["trace"],
            compiles=counts["compile"],
            found=counts["found"],
            hits=counts["hit"],
            calls=self.misses + counts["hit"] if counts_hits else None,
            seconds=self.seconds,
            warning=self.warning,
        )


class _Open:
    """A call that missed and whose trace, lowering or compile may still come."""

    def __init__(self, row: _Row, earlier: reasons.Earlier, record: Record, again: bool) -> None:
        self.row = row
        self.identity = earlier.identity
        self.earlier = earlier
        self.record = record
        self.again = again
        self.traced = False
        # The seconds it took to load the program from the cache on disk, None if it did not.
        self.loaded: float | None = None


class Recorder:
    """Keeps the history of one process; at most ``functions`` rows of ``records`` marks each."""

    def __init__(
        self, functions: int = MOST_FUNCTIONS, records: int = MOST_RECORDS, named: Places = places,
    ) -> None:
        self._lock = threading.RLock()
        self._rows: dict[str, _Row] = {}
        self._dropped = 0
        self._uses = itertools.count()
        self._open: dict[int, list[_Open]] = {}
        self._moved: dict[str, Place] = {}
        self._functions = functions
        self._records = records
        self._places = named
        self._watchers: tuple[Watcher, ...] = ()
        self._unsubscribe: Callable[[], None] | None = None
        self._hits = False
        self._calls = Calls()
        self._paused: set[int] = set()
        self._moves: dict[tuple[str, str], Moved] = {}
        self._donations: dict[tuple[str, str], Donated] = {}
        self.failures: deque[BaseException] = deque(maxlen=16)
        self.lineage = Lineage(named=named)

    # ---- starting, stopping, reading ----

    @property
    def recording(self) -> bool:
        """Whether the recorder listens."""
        return self._unsubscribe is not None

    def start(self, bus: events.Bus = events.bus, hits: bool = True) -> None:
        """Listen to ``bus`` from now on; with ``hits``, count the calls that trace nothing too."""
        with self._lock:
            self.stop()
            self._hits = hits
            self._unsubscribe = bus.subscribe(self.receive)
            if hits and bus is events.bus:
                self._calls.start()

    def stop(self) -> None:
        """Listen no longer; what was recorded stays."""
        with self._lock:
            if self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None
                self.count_calls()
                self._calls.stop()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Take in nothing that happens on this thread inside the block."""
        thread = threading.get_ident()
        self.count_calls()
        fresh = thread not in self._paused
        self._paused.add(thread)
        try:
            yield
        finally:
            self._calls.take()
            if fresh:
                self._paused.discard(thread)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._rows.clear()
            self._dropped = 0
            self._open.clear()
            self._moved.clear()
            self._moves.clear()
            self._donations.clear()
            self._calls.take()
            self.lineage.clear()

    def keys(self) -> KeysModel:
        """The PRNG keys that were made and used, as family trees."""
        with self._lock:
            return self.lineage.snapshot()

    def moves(self) -> tuple[tuple[Moved, ...], tuple[Donated, ...]]:
        """The transfers and the donations seen so far."""
        with self._lock:
            return tuple(self._moves.values()), tuple(self._donations.values())

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` with every new or renewed record; returns the function that ends it."""
        with self._lock:
            self._watchers = (*self._watchers, watcher)

        def end() -> None:
            with self._lock:
                self._watchers = tuple(w for w in self._watchers if w is not watcher)

        return end

    def snapshot(self, function: Any = None) -> HistoryModel:
        """All rows, or the row of one Python function, as they are now."""
        wanted = None if function is None else self._wanted(function)
        self.count_calls()
        with self._lock:
            rows = [r for k, r in self._rows.items() if wanted is None or k == wanted]
            functions = tuple(
                FunctionHistory(r.summary(self._hits), tuple(r.records), r.dropped) for r in rows
            )
            dropped = self._dropped if wanted is None else 0
        return HistoryModel("history", VERSION, functions, environment(), dropped)

    def of(self, function: events.FunctionRef) -> HistoryModel:
        """The row of the function that events call ``function``."""
        with self._lock:
            row = self._rows[self._places.key(function)]
            made = FunctionHistory(row.summary(self._hits), tuple(row.records), row.dropped)
        return HistoryModel("history", VERSION, (made,), environment())

    def _wanted(self, function: Any) -> str:
        return self._places.key(function_ref(inspect.unwrap(function)))

    def settle(self, thread: int | None = None) -> None:
        """Say that nothing runs now on ``thread``: a trace begun there and not ended has failed."""
        thread = threading.get_ident() if thread is None else thread
        self.count_calls()
        with self._lock:
            for call in self._open.pop(thread, []):
                if not call.traced:
                    self._renew(call, kind="failed")

    # ---- events ----

    def receive(self, event: events.Event) -> None:
        """Take in one event, on whichever thread it was published."""
        handler = _HANDLERS.get(type(event))
        if handler is not None and event.thread not in self._paused:
            with self._lock:
                handler(self, event)

    def _row(self, function: events.FunctionRef) -> _Row:
        row = self._row_of(self._places.key(function))
        row.name = function.name
        row.place = self._places.place_of_function(function)
        return row

    def _row_of(self, key: str) -> _Row:
        """The row of ``key``, made if there is none; then the one unused for longest may go."""
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= self._functions:
                self._rows.pop(min(self._rows, key=lambda k: self._rows[k].used))
                self._dropped += 1
            row = self._rows[key] = _Row(key, self._records)
        row.used = next(self._uses)
        return row

    def count_calls(self) -> None:
        """Take in the calls that C++ answered since the last time."""
        with self._lock:
            for info, count in self._calls.take() if self._hits else ():
                self._add_hits(info.reference, count, stale(info), self._places.running_cell())

    def _miss(self, event: events.CacheMiss) -> None:
        self.count_calls()
        row = self._row(event.function)
        identity = event.function.identity
        found = reasons.why(
            row.name, event.signature, identity, row.place, tuple(row.earlier), self._moved,
            event.mutated, event.function.transforms,
        )
        again = bool(row.earlier)
        row.misses += 1
        row.earlier.append(reasons.Earlier(
            event.signature, identity, False, row.place, event.function.transforms))
        record = Record(
            id=event.sequence,
            kind="trace",
            time=event.time,
            count=1,
            version=row.version_of(identity),
            signature=reasons.printed(event.signature),
            headline=messages.HEADLINES["trace.open"],
            reasons=found,
            caller=self._places.place(event.caller),
        )
        call = _Open(row, row.earlier[-1], record, again)
        self._open.setdefault(event.thread, []).append(call)
        row.put(record)
        self._tell(row, record)

    def _find(self, event: Any) -> _Open | None:
        """The latest open call of the event's function on its thread."""
        for call in reversed(self._open.get(event.thread, [])):
            if call.identity == event.function.identity:
                return call
        return None

    def _trace_end(self, event: events.TraceEnd) -> None:
        call = None if event.transform != "jit" else self._find(event)
        if call is None or call.traced:
            return
        if event.failed:
            self._abandon_inner(event.thread, call)
            self._open[event.thread].remove(call)
            self._renew(call, kind="failed")
            return
        call.traced = True
        call.row.counts["trace"] += 1
        self._abandon_inner(event.thread, call)
        call.row.seconds += event.seconds
        seconds = dataclasses.replace(call.record.seconds, trace=event.seconds)
        self._renew(call, seconds=seconds, equations=event.equations)

    def _trace_kept(self, event: events.TraceKept) -> None:
        call = self._find(event)
        if call is not None:
            call.traced = True
            self._renew(call)

    def _abandon_inner(self, thread: int, call: _Open) -> None:
        """Calls opened inside a trace that ended: without an end of their own, they failed."""
        stack = self._open[thread]
        inner = stack[stack.index(call) + 1 :]
        del stack[stack.index(call) + 1 :]
        for other in inner:
            if not other.traced:
                self._renew(other, kind="failed")

    def _lowering(self, event: events.Lowering) -> None:
        call = self._find(event)
        if call is not None:
            call.row.seconds += event.seconds
            seconds = dataclasses.replace(call.record.seconds, lower=event.seconds)
            self._renew(call, seconds=seconds, program=event.program)

    def _compile(self, event: events.Compile) -> None:
        call = self._find(event)
        if call is None:
            return
        self._open[event.thread].remove(call)
        row = call.row
        for index, earlier in enumerate(row.earlier):
            if earlier is call.earlier:
                row.earlier[index] = dataclasses.replace(earlier, compiled=True)
        kind: Kind = "found" if event.found else "compile"
        row.counts[kind] += 1
        row.seconds += event.seconds
        seconds = dataclasses.replace(
            call.record.seconds, compile=None if event.found else event.seconds
        )
        cost = Cost(*(getattr(event, name) for name in _COST_FIELDS))
        call.loaded = event.seconds if event.disk == "found" else None
        if kind == "compile":
            _blame(row, call.record)
        self._renew(call, kind=kind, seconds=seconds, program=event.program, cost=cost)

    def _hit(self, event: events.CacheHit) -> None:
        self._add_hits(event.function, 1, event.stale, self._places.place(event.caller))

    def _add_hits(self, function: events.FunctionRef, count: int,
                  changed: tuple[events.Changed, ...], caller: Place | None) -> None:
        """Add calls that found their program: to the last mark if it is of such calls."""
        row = self._row(function)
        row.counts["hit"] += count
        version = row.version_of(function.identity)
        last = row.records[-1] if row.records else None
        why = reasons.stale(row.name, changed)
        if (last is not None and last.kind == "hit" and last.version == version
                and last.reasons == why and _cell(last.caller) == _cell(caller)):
            record = dataclasses.replace(last, count=last.count + count, time=time.time())
        else:
            record = Record(
                id=events.CacheHit(function=function, caller=None).sequence,
                kind="hit",
                time=time.time(),
                count=count,
                version=version,
                signature="",
                headline=Text("", ""),
                reasons=why,
                caller=caller,
            )
        variant = "hit.stale" if why else "hit"
        headline = messages.fill(messages.HEADLINES[variant], count=record.count)
        record = dataclasses.replace(record, headline=headline)
        row.put(record)
        self._tell(row, record)

    def _operation_loaded(self, event: events.OperationLoaded) -> None:
        """All operations that were found on disk are one mark on a row of its own."""
        row = self._row_of(OPERATIONS)
        row.name, row.versions = words.WORDS["operations"].en, 1
        row.counts["found"] += 1
        row.seconds += event.seconds
        count = row.counts["found"]
        record = Record(
            id=row.records[-1].id if row.records else event.sequence,
            kind="found",
            time=event.time,
            count=count,
            version=1,
            signature="",
            headline=messages.fill(messages.HEADLINES["loaded"], count=count,
                                   load=duration(row.seconds)),
        )
        row.put(record)
        self._tell(row, record)

    def _transfer(self, event: events.Transfer) -> None:
        place = self._places.place(event.caller)
        if place is not None:
            self._moved[event.target] = place
        route = (event.source, event.target)
        old = self._moves.get(route, Moved(*route, 0, 0, None))
        self._moves[route] = Moved(*route, old.count + 1, old.bytes + event.bytes,
                                   place or old.place)

    def _donation(self, event: events.Donation) -> None:
        key = (event.function.name, event.path)
        old = self._donations.get(key, Donated(*key, 0, 0, 0))
        self._donations[key] = Donated(*key, old.count + 1, old.bytes + event.bytes,
                                       old.reused + event.reused)

    def _key(self, event: events.KeyEvent) -> None:
        self.lineage.receive(event)

    def _renew(self, call: _Open, **changes: Any) -> None:
        record = dataclasses.replace(call.record, **changes)
        record = dataclasses.replace(record, headline=_headline(record, call))
        call.record = record
        call.row.put(record)
        self._tell(call.row, record)

    def _tell(self, row: _Row, record: Record) -> None:
        summary = row.summary(self._hits)
        for watcher in self._watchers:
            try:
                watcher(summary, record)
            except Exception as error:  # a broken view must not end the recording
                self.failures.append(error)
                self._watchers = tuple(w for w in self._watchers if w is not watcher)


def _cell(place: Place | None) -> object:
    return None if place is None else (place.cell_id, place.cell)


def _blame(row: _Row, record: Record) -> None:
    """Count what made a function compile again; the third time for one cause is worth a warning."""
    for reason in record.reasons:
        if reason.tag not in ("first_call", "nested", "dropped"):
            cause = (reason.tag, reason.path or "")
            row.causes[cause] += 1
            if row.causes[cause] >= _WARNED:
                row.warning = messages.warning(row.name, reason, row.causes[cause])


def _headline(record: Record, call: _Open) -> Text:
    """What happened and what it cost."""
    seconds, loaded = record.seconds, call.loaded
    variant: str = record.kind
    if record.kind == "found" and call.again:
        variant = "found.again"
    if loaded is not None:
        variant = "found.disk"
    if record.kind in ("found", "compile") and seconds.trace is None:
        variant = f"{record.kind}.kept"
    if record.kind == "trace" and seconds.trace is None:
        variant = "trace.kept" if call.traced else "trace.open"
    shown = {
        "trace": duration(seconds.trace or 0.0),
        "compile": duration(seconds.compile or 0.0),
        "load": duration(loaded or 0.0),
        "count": record.count,
    }
    return messages.fill(messages.HEADLINES[variant], **shown)


_HANDLERS: dict[type, Callable[[Recorder, Any], None]] = {
    events.CacheMiss: Recorder._miss,
    events.TraceEnd: Recorder._trace_end,
    events.TraceKept: Recorder._trace_kept,
    events.Lowering: Recorder._lowering,
    events.Compile: Recorder._compile,
    events.CacheHit: Recorder._hit,
    events.Transfer: Recorder._transfer,
    events.KeyEvent: Recorder._key,
    events.Donation: Recorder._donation,
    events.OperationLoaded: Recorder._operation_loaded,
}

recorder = Recorder()

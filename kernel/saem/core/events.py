"""Which events does the engine publish?

Every event is an immutable, JSON-serialisable fact: something was traced, missed a cache, was
compiled, moved, donated.  The engine publishes; ``saem.observe`` listens and explains.  With no
listener the cost of an event is one attribute test::

    if bus.active:
        bus.publish(TraceEnd(...))

Read before: ``core.record``.  Read after: ``saem.observe.schema`` (the JSON form of these classes).
Invariant: an event holds plain values only (no array, tracer or function), so it can be kept,
sent and replayed (tests/kernel/test_events_engine.py).
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time
from collections.abc import Callable

from saem.core.record import Record


class FunctionRef(Record):
    """Which Python function: where it was written and a number unique to this function object.

    ``identity`` differs between two versions of a redefined function; ``file`` and ``qualname``
    stay the same when a cell is run again, so together they name the *function a person means*.
    ``transforms`` are those it is the result of, the outermost first: ``vmap``, ``grad``.
    """

    name: str
    qualname: str
    module: str
    file: str
    line: int
    identity: int
    transforms: tuple[str, ...] = ()


class Argument(Record):
    """One dynamic leaf of a call, in the caller's words.

    ``path`` is what the caller would write: ``x``, ``params['w'][0]``, ``batch.labels``.
    ``given`` is ``'position'`` or ``'keyword'`` for the top-level argument it belongs to.
    ``kind`` is ``'array'``, ``'numpy'``, ``'scalar'`` or ``'key'``.  Of an array over several
    devices, ``sharding`` is its spec and ``mesh`` the axes of its mesh (``data=4, model=2``).
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    weak_type: bool
    committed: bool
    placement: str
    kind: str
    given: str
    sharding: str = ""
    mesh: str = ""


class StaticArgument(Record):
    """One static argument: its name, how it was given, its repr and its hash."""

    path: str
    value: str
    hash: int
    given: str


class Changed(Record):
    """A value that a trace took from its surroundings and that is another now.

    ``kind`` is ``'static'`` (the contents of a static argument), ``'closure'`` or ``'global'``.
    """

    kind: str
    path: str
    old: str
    new: str


class Signature(Record):
    """All that decides whether a program can serve a call: the cache key, spelled out.

    ``mesh`` are the axes of the mesh that was set, ``options`` what ``jit`` was given beside the
    function, ``closure`` the values that this function object closes over.
    """

    arguments: tuple[Argument, ...]
    static: tuple[StaticArgument, ...]
    structure: str
    donated: tuple[str, ...]
    config: tuple[tuple[str, str], ...]
    mesh: str = ""
    options: tuple[tuple[str, str], ...] = ()
    closure: tuple[tuple[str, str], ...] = ()


class Position(Record):
    """A place in the user's source: file (or notebook cell file), 1-based line, 0-based column."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str


_sequence = itertools.count(1)


class Event(Record, kw_only=True):
    """Base of all events: when, on which thread, and a number that orders them in the process."""

    time: float = dataclasses.field(default_factory=time.time)
    thread: int = dataclasses.field(default_factory=threading.get_ident)
    sequence: int = dataclasses.field(default_factory=lambda: next(_sequence))


class CacheMiss(Event, kw_only=True):
    """A call of a jitted function found no program for its signature; a trace follows.

    ``mutated``: static arguments of earlier calls whose contents changed since.
    """

    function: FunctionRef
    signature: Signature
    caller: Position | None
    mutated: tuple[Changed, ...] = ()


class CacheHit(Event, kw_only=True):
    """A call found its program.  Calls that C++ answers are events only on request of a listener.

    ``stale``: what the program took from its surroundings when it was traced and is other now.
    """

    function: FunctionRef
    caller: Position | None
    stale: tuple[Changed, ...] = ()


class TraceBegin(Event, kw_only=True):
    """Tracing of a function starts.  ``transform`` is jit, make_jaxpr, vmap, grad, …"""

    function: FunctionRef
    transform: str


class TraceEnd(Event, kw_only=True):
    """Tracing ended after ``seconds`` with ``equations``; ``failed`` if the function raised."""

    function: FunctionRef
    transform: str
    seconds: float
    equations: int
    failed: bool = False


class TraceKept(Event, kw_only=True):
    """A miss was answered by a trace of before: of another ``jit`` of the function, say."""

    function: FunctionRef


class Lowering(Event, kw_only=True):
    """A jaxpr was written as StableHLO text of ``characters`` length."""

    function: FunctionRef
    seconds: float
    characters: int
    program: str


class Compile(Event, kw_only=True):
    """XLA compiled a program (``found=False``) or the same program was found (``found=True``).

    ``program`` is the content key (hex) of the text, options and devices.  ``disk`` is what the
    cache on disk had: '' (it was not used), 'found', 'absent' or 'damaged'.  Costs are XLA's own
    estimates, None where it gives none: ``flops``, ``bytes_accessed``, ``code_bytes``,
    ``argument_bytes``, ``output_bytes``, ``temp_bytes``.
    """

    function: FunctionRef
    program: str
    found: bool
    seconds: float
    flops: float | None
    bytes_accessed: float | None
    code_bytes: int | None
    argument_bytes: int | None
    output_bytes: int | None
    temp_bytes: int | None
    disk: str = ""


class OperationLoaded(Event, kw_only=True):
    """A function of the library, whose compilations are not published, was found on disk.

    ``name`` is that of its program, ``seconds`` what loading it took.
    """

    name: str
    seconds: float


class EagerOp(Event, kw_only=True):
    """One primitive ran outside any trace.  Published only while a listener has requested these."""

    primitive: str
    caller: Position | None


class Transfer(Event, kw_only=True):
    """Bytes moved: ``direction`` is host_to_device, device_to_host or device_to_device."""

    direction: str
    bytes: int
    source: str
    target: str
    caller: Position | None


class Donation(Event, kw_only=True):
    """An argument's buffer was given to a call: ``reused`` or deleted without reuse."""

    function: FunctionRef
    path: str
    bytes: int
    reused: bool


class KeyEvent(Event, kw_only=True):
    """What happened to a PRNG key.  ``key`` and ``parent`` are their words in hexadecimal.

    ``action``: created (of a seed), split, folded or cloned (of ``parent``), returned (by a jitted
    function that took ``parent``), used (a sampler drew from it), reused (it was used before).
    """

    action: str
    key: str
    parent: str | None
    caller: Position | None


class Callback(Event, kw_only=True):
    """The program called back into Python."""

    name: str
    seconds: float


class ErrorRaised(Event, kw_only=True):
    """An error with a stable ``tag`` (such as ``add.C1``) was raised at ``where``."""

    tag: str
    error: str
    message: str
    where: Position | None


class Bus:
    """Delivers events to listeners in the order published.

    ``active`` is True while there is at least one listener; ``hits`` while one asked for cache
    hits, for which calls leave the C++ fast path.  A listener that raises is removed and its error
    is kept in ``failures``: watching must never break the watched program.
    """

    def __init__(self) -> None:
        self.active = False
        self.hits = False
        self.eager = False
        # Called with the new value of ``hits``: the C++ path must then be left.
        self.when_hits_change: Callable[[bool], None] = lambda hits: None
        self._listeners: tuple[tuple[Callable[[Event], None], bool, bool], ...] = ()
        self._lock = threading.Lock()
        self.failures: list[BaseException] = []

    def subscribe(self, listener: Callable[[Event], None], hits: bool = False, eager: bool = False
                  ) -> Callable[[], None]:
        """Call ``listener`` with every event from now on; returns the function that ends it.

        Every hit, and every operation outside traces, is an event only if ``hits`` or ``eager``.
        """
        entry = (listener, hits, eager)
        with self._lock:
            self._set((*self._listeners, entry))

        def unsubscribe() -> None:
            with self._lock:
                self._set(tuple(e for e in self._listeners if e is not entry))

        return unsubscribe

    def _set(self, listeners: tuple) -> None:
        self._listeners = listeners
        self.active = bool(listeners)
        hits = any(wanted for _, wanted, _ in listeners)
        self.eager = any(wanted for _, _, wanted in listeners)
        if hits != self.hits:
            self.hits = hits
            self.when_hits_change(hits)

    def publish(self, event: Event) -> None:
        """Hand ``event`` to every listener."""
        for entry in self._listeners:
            try:
                entry[0](event)
            except Exception as error:  # a broken watcher must not break the program
                self.failures.append(error)
                with self._lock:
                    self._set(tuple(e for e in self._listeners if e is not entry))


bus = Bus()

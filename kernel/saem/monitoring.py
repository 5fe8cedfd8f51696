"""How do listeners get, under JAX's names, what the engine does and how long it takes?

(``jax.monitoring``)  Listeners get what the event bus publishes of traces and compilations, in the
form of names, seconds and keywords, and whatever a program records by itself.

Read before: ``core.events``.
Invariant: with no listener here the engine publishes nothing on this module's behalf
(tests/kernel/test_monitoring.py).
Source: the documentation of jax.monitoring; the names are those JAX 0.10.2 was seen to record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem.core import events
from saem.core.events import bus

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs",
    "record_event_time_span", "record_scalar", "register_event_duration_secs_listener",
    "register_event_listener", "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]

_TRACE = "/jax/core/compile/jaxpr_trace_duration"
_LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_COMPILE = "/jax/core/compile/backend_compile_duration"
_CACHE = "/jax/compilation_cache/"

_listeners: dict[str, list[Callable[..., None]]] = {
    "event": [], "duration": [], "time_span": [], "scalar": []}
_stop_watching: list[Callable[[], None]] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell every event listener that ``event`` happened.

    >>> jax.monitoring.record_event("/my/event")
    """
    for listener in tuple(_listeners["event"]):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell every duration listener that ``event`` took ``duration`` seconds.

    >>> jax.monitoring.record_event_duration_secs("/my/step", 0.5)
    """
    for listener in tuple(_listeners["duration"]):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int
                           ) -> None:
    """Tell every time span listener when ``event`` began and ended, in seconds of ``time.time``.

    >>> jax.monitoring.record_event_time_span("/my/step", 1.0, 2.0)
    """
    for listener in tuple(_listeners["time_span"]):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell every scalar listener that ``event`` had ``value``.

    >>> jax.monitoring.record_scalar("/my/loss", 0.5)
    """
    for listener in tuple(_listeners["scalar"]):
        listener(event, value, **kwargs)


def register_event_listener(callback: Callable[..., None]) -> None:
    """Call ``callback(event, **kwargs)`` for every event.

    >>> seen = []
    >>> listener = lambda event, **kwargs: seen.append(event)
    >>> jax.monitoring.register_event_listener(listener)
    >>> jax.monitoring.record_event("/my/event")
    >>> jax.monitoring.unregister_event_listener(listener)
    >>> seen
    ['/my/event']
    """
    _register("event", callback)


def register_event_duration_secs_listener(callback: Callable[..., None]) -> None:
    """Call ``callback(event, seconds, **kwargs)`` for everything that takes time."""
    _register("duration", callback)


def register_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Call ``callback(event, start, end, **kwargs)`` for everything that takes time."""
    _register("time_span", callback)


def register_scalar_listener(callback: Callable[..., None]) -> None:
    """Call ``callback(event, value, **kwargs)`` for every value recorded."""
    _register("scalar", callback)


def unregister_event_listener(callback: Callable[..., None]) -> None:
    """Forget a listener.  Raises: ValueError if it is none, as do the next three."""
    _unregister("event", callback)


def unregister_event_duration_listener(callback: Callable[..., None]) -> None:
    """Forget a listener to what has a duration."""
    _unregister("duration", callback)


def unregister_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Forget a listener to what takes time."""
    _unregister("time_span", callback)


def unregister_scalar_listener(callback: Callable[..., None]) -> None:
    """Forget a listener to values that are recorded."""
    _unregister("scalar", callback)


def clear_event_listeners() -> None:
    """Forget all listeners."""
    for listeners in _listeners.values():
        listeners.clear()
    _rest()


def _register(kind: str, callback: Callable[..., None]) -> None:
    _listeners[kind].append(callback)
    if not _stop_watching:
        _stop_watching.append(bus.subscribe(_tell))


def _unregister(kind: str, callback: Callable[..., None]) -> None:
    if callback not in _listeners[kind]:
        raise ValueError(f"{callback} is no registered {kind} listener.")
    _listeners[kind].remove(callback)
    _rest()


def _rest() -> None:
    """Leave the event bus when there is no listener."""
    if _stop_watching and not any(_listeners.values()):
        _stop_watching.pop()()


def _tell(event: events.Event) -> None:
    """Record an event of the bus under JAX's names."""
    if isinstance(event, events.TraceEnd) and event.transform == "jit":
        _took(_TRACE, event, event.function.name)
    elif isinstance(event, events.Lowering):
        _took(_LOWER, event, f"jit({event.function.name})")
    elif isinstance(event, events.Compile) and (not event.found or event.disk):
        if event.disk:
            record_event(_CACHE + "compile_requests_use_cache")
            record_event(_CACHE + ("cache_hits" if event.found else "cache_misses"))
        if event.found:
            record_event_duration_secs(_CACHE + "cache_retrieval_time_sec", event.seconds)
        _took(_COMPILE, event, f"jit({event.function.name})")


def _took(name: str, event: Any, fun_name: str) -> None:
    start = event.time - event.seconds
    record_scalar(name, start, fun_name=fun_name)
    record_event_duration_secs(name, event.seconds, fun_name=fun_name)
    record_event_time_span(name, start, event.time, fun_name=fun_name)

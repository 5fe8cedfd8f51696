"""What still refers to a value that should be gone?

A tracer that outlives its trace is held by something a traced function wrote to: a global, an
attribute, a list, a closure.  Python's garbage collector knows what refers to an object; following
that upwards until something has a name gives ``cache['h'][0]``, as one would write it.

A leak is found where the tracer is used; with ``checking_leaks`` on, when its trace ends.

Read before: ``core.source``, ``core.errors``.  Read after: ``transform.staging``.
Invariant: nothing is held or changed by looking, the engine's own objects are never named, and a
trace whose tracers only the engine still holds passes (tests/kernel/test_leaks.py).
Source: the documentation of jax.checking_leaks.
"""

from __future__ import annotations

import collections
import functools
import gc
import sys
import weakref
from collections.abc import Iterator
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from saem.core import config, errors, paths, source
from saem.core.trace import Trace, Tracer

# How far to look: steps from the value to a name, and referrers of one object.
_DEPTH = 6
# Names of the engine's modules; in the drop-in its tracers are of a module of jax.
_ENGINE = ("saem.", "jax.")
_MOST_REFERRERS = 200

_CONTAINERS = (list, tuple, dict, set, collections.deque)


class _Further:
    """A place without a name yet, from where ``path`` leads to the value: look for its holder."""

    __slots__ = ("place", "path", "depth")

    def __init__(self, place: Any, path: str, depth: int = 0):
        self.place = place
        self.path = path
        self.depth = depth


def holder(value: Any) -> str:
    """Return what holds ``value``, in Python's words, or an empty string if nothing has a name.

    For example ``the global variable `cache['h'][0]` of __main__``.
    """
    queue = collections.deque([_Further(value, "")])
    visited = {id(value)}
    while queue:
        here = queue.popleft()
        for place in _referrers(here.place, visited):
            found = _step(place, here.place, here.path)
            if isinstance(found, str):
                return found
            if found is not None and here.depth < _DEPTH:
                found.depth = here.depth + 1
                queue.append(found)
        if isinstance(here.place, _CONTAINERS):
            local = _local_variable(here.place, here.path)
            if local:
                return local
    return ""


def _referrers(held: Any, visited: set[int]) -> Iterator[Any]:
    """Yield what refers to ``held``, except frames, this search and the engine's own objects."""
    for place in gc.get_referrers(held)[:_MOST_REFERRERS]:
        engine = type(place).__module__.startswith(_ENGINE) and not isinstance(place, type)
        passing = isinstance(place, (FrameType, ModuleType, _Further, Iterator))
        if not engine and not passing and id(place) not in visited:
            visited.add(id(place))
            yield place


def _step(place: Any, held: Any, path: str) -> str | _Further | None:
    """Return the name of ``place``, which holds ``held``, or where to look next; None: nowhere."""
    if isinstance(place, dict):
        return _in_dict(place, held, path)
    if isinstance(place, CellType):
        return _in_closure(place, path)
    if isinstance(place, FunctionType):
        return _in_defaults(place, held)
    if isinstance(place, (list, tuple, collections.deque)):
        index = next((i for i, x in enumerate(place) if x is held), None)
        return None if index is None else _Further(place, f"[{index}]{path}")
    if isinstance(place, (set, frozenset)):
        return _Further(place, path)
    if isinstance(place, type):
        return _in_class(place, held, path)
    name = _attribute(place, held)
    return None if name is None else _Further(place, f".{name}{path}")


def _attribute(owner: Any, held: Any) -> str | None:
    """Return the attribute of the instance ``owner`` that is ``held``, without running code."""
    own = getattr(owner, "__dict__", None)
    if isinstance(own, dict):
        return next((k for k, v in own.items() if v is held), None)
    slots = (name for cls in type(owner).__mro__ for name in vars(cls).get("__slots__", ()))
    return next((name for name in slots if getattr(owner, name, None) is held), None)


def _in_class(owner: type, held: Any, path: str) -> str | None:
    name = next((k for k, v in vars(owner).items() if v is held), None)
    if name is None or owner.__module__.startswith(_ENGINE):
        return None
    return f"the class attribute `{owner.__qualname__}.{name}{path}`"


def _in_dict(place: dict, held: Any, path: str) -> str | _Further | None:
    key = next((k for k, v in list(place.items()) if v is held), None)
    if key is None:
        return None
    module = place.get("__name__")
    loaded = sys.modules.get(module) if isinstance(module, str) else None
    if "__builtins__" in place or getattr(loaded, "__dict__", None) is place:
        if str(module).split(".")[0] == "saem":
            return None
        return f"the global variable `{key}{path}`" + (f" of {module}" if module else "")
    for owner in gc.get_referrers(place)[:_MOST_REFERRERS]:
        if isinstance(owner, type) and vars(owner).get(key) is held:
            return _in_class(owner, held, path)
        if not isinstance(owner, (dict, list, tuple, FrameType)) \
                and getattr(owner, "__dict__", None) is place:
            return _Further(owner, f".{key}{path}")
    return _Further(place, f"[{key!r}]{path}")


def _in_closure(cell: CellType, path: str) -> str | None:
    """Return which variable of which user's function ``cell`` is."""
    for cells in gc.get_referrers(cell):
        if not isinstance(cells, tuple):
            continue
        for function in gc.get_referrers(cells):
            if isinstance(function, FunctionType) and function.__closure__ is cells \
                    and not source.is_internal(function.__code__.co_filename):
                names = dict(zip(map(id, cells), function.__code__.co_freevars))
                return (f"the closure variable `{names[id(cell)]}{path}` of "
                        f"`{function.__qualname__}`")
    return None


def _in_defaults(function: FunctionType, held: Any) -> str | None:
    if source.is_internal(function.__code__.co_filename):
        return None
    if held is function.__defaults__ or held is function.__kwdefaults__:
        return f"a default argument of `{function.__qualname__}`"
    return None


def _local_variable(container: Any, path: str) -> str:
    """Return which local variable of a running user's function ``container`` is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not source.is_internal(frame.f_code.co_filename):
            for name, value in frame.f_locals.items():
                if value is container:
                    return f"the local variable `{name}{path}` of `{frame.f_code.co_name}`"
        frame = frame.f_back
    return ""


# -- tracers that leaked ---------------------------------------------------------------------------

checking_leaks = functools.partial(config.check_tracer_leaks, True)


def check_leaks(finished: weakref.ref[Trace]) -> None:
    """Refuse a finished trace of which tracers are still held.

    The caller holds neither the trace nor its tracers any more, so a trace that nothing else holds
    is gone, and no objects need be searched, which takes long.
    Raises: Exception that names each tracer and what holds it.
    """
    trace = finished()
    if trace is None:
        return
    gc.collect()
    lines = []
    for tracer in gc.get_referrers(trace):
        if isinstance(tracer, Tracer) and tracer._trace is trace:
            held = holder(tracer)
            if held:
                made = paths.origin(tracer)
                place = f", made in {errors.place_and_line(made)}" if made is not None else ""
                lines.append(f"{tracer!r} is held by {held}{place}")
    if lines:
        raise errors.explained(
            Exception, "trace.leaked",
            f"Leaked trace {type(trace).__name__}. Leaked tracer(s):\n\n" + "\n".join(lines) + "\n",
            advice="Return values from the traced function instead of storing them.")


def leaked_tracer(tracer: Any) -> errors.UnexpectedTracerError:
    """Return the error for a tracer used outside the trace that made it."""
    path = paths.path(tracer)[0]
    made = paths.origin(tracer)
    held = holder(tracer)
    known = [f"It was made in {errors.place_and_line(made)}"] if made is not None else []
    if held:
        known.append(f"It is held by {held}.")
        path.append((held.split("`")[1], None))
    return errors.explained(
        errors.UnexpectedTracerError,
        "tracer.leaked",
        "Encountered an unexpected tracer. A function transformed by saem had a side effect that "
        f"let {'an' if tracer.kind[0] in 'aeiou' else 'a'} {tracer.kind} of type "
        f"{errors.tracer_type(tracer)} (made under "
        f"{' > '.join(tracer._trace.stack) or 'no transformation'}) escape its trace.",
        advice="\n".join([
            *known, "Return the value from the function instead of storing it in a global, an "
            "attribute or a list that outlives the call.",
            "To find it where it happens: with jax.checking_leaks(): ..."]),
        path=tuple(path),
    )

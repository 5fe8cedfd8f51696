"""By which of the user's own lines was a traced value computed?

A recording interpreter has the equation of every value it gave out, and each equation knows its
line.  Going back from a value, always along the first operand that depends on an argument, gives a
path such as ``x → z → w``, named by what those lines assign to.

Read before: ``core.source``.  Read after: ``core.errors``, ``core.conversions``.
Invariant: used only when an error is made, so tracing pays nothing for it
(tests/kernel/test_conversions.py).
"""

from __future__ import annotations

import re
from typing import Any

from saem.core import source
from saem.core.events import Position

# The names a statement assigns to; compiled only when an error is made.
_ASSIGNS = (r"\s*([A-Za-z_][\w.]*(?:\s*,\s*[A-Za-z_]\w*)*)\s*(?::[^=]+)?"
            r"(?:[-+*/@%&|^]|//|\*\*|<<|>>)?=(?!=)")

Step = tuple[str, Position | None]


def inner(tracer: Any) -> Any:
    """Return the recorded value under a tracer that carries one along (a primal, a stack)."""
    while not hasattr(tracer._trace, "eqns"):
        below = getattr(tracer, "primal", getattr(tracer, "val", None))
        if not hasattr(below, "_trace"):
            return None
        tracer = below
    return tracer


def origin(tracer: Any) -> Position | None:
    """Return the line that made ``tracer``, None if it is an argument or was not recorded."""
    tracer = inner(tracer)
    if tracer is None:
        return None
    return next((eqn.position() for eqn in reversed(tracer._trace.eqns)
                 if any(v is tracer._var for v in eqn.outvars)), None)


def path(tracer: Any) -> tuple[list[Step], list[str]]:
    """Return the steps from an argument to ``tracer``, and the arguments it depends on.

    A step is a name and a place; that of an argument has no place.
    """
    tracer = inner(tracer)
    if tracer is None:
        return [], []
    trace = tracer._trace
    makers = {v: eqn for eqn in trace.eqns for v in eqn.outvars}
    numbers = {v: i for i, v in enumerate(trace.invars)}
    outer = {v: c for v, c in zip(trace.constvars.values(), trace.consts) if hasattr(c, "_trace")}
    names = [*trace.arg_names, *(f"argument {i}" for i in range(len(trace.arg_names),
                                                                len(numbers)))]
    reached = _reached(tracer._var, makers)
    steps: list[Step] = []
    var = tracer._var
    while var in makers:
        eqn = makers[var]
        steps.append(_step(eqn))
        var = next((a for a in eqn.invars if _depends(a, makers, numbers, outer)), None)
    if var in numbers:
        steps.append((names[numbers[var]], None))
    elif var in outer:
        steps += path(outer[var])[0][::-1]
    return _merged(steps[::-1]), [n for v, n in zip(trace.invars, names) if v in reached]


def _reached(var: Any, makers: dict[Any, Any]) -> set[Any]:
    """Return every variable that ``var`` depends on, itself included."""
    found: set[Any] = set()
    todo = [var]
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += [a for a in (makers[here].invars if here in makers else ())
                     if not hasattr(a, "val")]
    return found


def _depends(atom: Any, makers: dict, numbers: dict, outer: dict) -> bool:
    return not hasattr(atom, "val") and any(
        v in numbers or v in outer for v in _reached(atom, makers))


def assigned(line: str) -> str | None:
    """Return what ``line`` assigns to, None if it assigns nothing."""
    found = re.match(_ASSIGNS, line)
    return found and found.group(1)


def _step(eqn: Any) -> Step:
    """Return what an equation's line assigns to, or else the primitive, and the place."""
    where = eqn.position()
    return assigned(source.source_line(where)) or eqn.operation.name, where


def _merged(steps: list[Step]) -> list[Step]:
    """Return ``steps`` with those of one line as one."""
    merged: list[Step] = []
    for name, where in steps:
        last = merged[-1][1] if merged else None
        if where is not None and last is not None and (last.file, last.line) == (
                where.file, where.line):
            merged.pop()
        merged.append((name, where))
    return merged

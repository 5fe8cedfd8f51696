"""Where in the user's code did this happen?

Every equation remembers the code object and instruction of the nearest frame outside the engine,
which costs a short walk up the stack; line and column are computed only on request.

Read before: ``core.events`` (Position).  Read after: ``core.jaxpr``.
Invariant: frames of this package are never reported as the user's.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import os
import sys
import weakref
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from saem.core.events import FunctionRef, Position

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Rooms that act for the user: a gate's or a lens's own frames are still not the user's code.
_internal: dict[str, bool] = {}
_excluded: list[str] = []

# Code objects of two files compare equal if their text does, so the file is part of the key.
Source = tuple[CodeType, int, str]


# Inside so many ``callers_kept`` blocks are we?
_kept = 0
_MOST_CALLERS = 40


class WithCallers(tuple):
    """A ``Source`` that also knows the calls that led to it, the innermost first."""

    callers: tuple[Source, ...]


def is_internal(filename: str) -> bool:
    """Return whether ``filename`` is the engine's own, or Python's."""
    internal = filename.startswith((_PACKAGE, "<frozen", "<__array_function__", *_excluded))
    _internal[filename] = internal
    return internal


def exclude(path: str) -> None:
    """Count files whose name begins with ``path`` as internal: a library's that wraps this one."""
    _excluded.append(path)
    _internal.clear()


def capture(depth: int = 2) -> Source | None:
    """Return (code, instruction, file) of the nearest caller outside the engine, or None."""
    frame = sys._getframe(depth)
    internal = _internal
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        inside = internal.get(name)
        if inside is None:
            inside = is_internal(name)
        if not inside:
            return _with_callers(frame) if _kept else (code, frame.f_lasti, name)
        frame = frame.f_back
    return None


@contextlib.contextmanager
def callers_kept() -> Iterator[None]:
    """Let every ``capture`` inside the block know its callers too, which costs a longer walk."""
    global _kept
    _kept += 1
    try:
        yield
    finally:
        _kept -= 1


def _with_callers(frame: FrameType) -> Any:
    """Return the source of ``frame`` with those of the frames outside the engine around it.

    The frame of a module or cell is the last; what runs cells is left out.
    """
    found: list[Source] = []
    at: FrameType | None = frame
    while at is not None and len(found) <= _MOST_CALLERS:
        code = at.f_code
        if not (_internal.get(code.co_filename) or is_internal(code.co_filename)):
            found.append((code, at.f_lasti, code.co_filename))
            if code.co_name == "<module>":
                break
        at = at.f_back
    made = WithCallers(found[0])
    made.callers = tuple(found[1:])
    return made


def callers_of(source: Source | None) -> tuple[Source, ...]:
    """Return the calls that led to ``source``, innermost first; none if they were not kept."""
    return source.callers if isinstance(source, WithCallers) else ()


@functools.lru_cache(4096)
def _resolve(code: CodeType, instruction: int, file: str) -> Position:
    positions = list(code.co_positions())
    index = min(instruction // 2, len(positions) - 1)
    line, end_line, column, end_column = positions[index]
    line = line or code.co_firstlineno
    return Position(
        file=file,
        line=line,
        column=column or 0,
        end_line=end_line or line,
        end_column=end_column or 0,
        function=getattr(code, "co_qualname", code.co_name),
    )


def position(source: Source | None) -> Position | None:
    """Return the file, line and column of ``source``."""
    return None if source is None else _resolve(*source)


def here() -> Position | None:
    """Return the position of the nearest caller outside the engine."""
    return position(capture(2))


def source_line(where: Position | None) -> str:
    """Return the text of the line at ``where``, without indentation, or an empty string."""
    return "" if where is None else linecache.getline(where.file, where.line).strip()


_identities: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_numbers = itertools.count(1)


def _identity(fun: Any) -> int:
    """Return the number of this function object; unlike ``id`` it is never given out again."""
    fun = getattr(fun, "__func__", fun)
    try:
        return _identities.setdefault(fun, next(_numbers))
    except TypeError:  # not weakly referable, or not hashable
        return id(fun)


def function_ref(fun: Any) -> FunctionRef:
    """Return a description of ``fun`` that outlives it: names, place and identity."""
    inner = fun
    transforms: list[str] = []
    while isinstance(inner, functools.partial) or hasattr(inner, "__wrapped__"):
        done = getattr(inner, "__transform__", None)
        if isinstance(done, str):
            transforms.append(done)
        inner = inner.func if isinstance(inner, functools.partial) else inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is None:
        method = type(inner).__dict__.get("__call__")
        code = getattr(method, "__code__", None)
    # The function that pmap makes has the name that jaxprs print, not that of the user's function.
    named = (inner, fun) if transforms[:1] == ["pmap"] else (fun, inner)
    name = next((n for x in named if (n := getattr(x, "__name__", None))), type(inner).__name__)
    return FunctionRef(
        name=str(name),
        qualname=str(getattr(inner, "__qualname__", name)),
        module=str(getattr(inner, "__module__", "") or ""),
        file=code.co_filename if code else "",
        line=code.co_firstlineno if code else 0,
        identity=_identity(fun),
        transforms=tuple(transforms),
    )

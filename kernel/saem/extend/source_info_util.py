"""How do libraries read and set where equations come from?  (``jax.extend.source_info_util``)

An equation remembers the place in user code and the names under which it was written.  Interpreters
write equations on behalf of others: they make the place and names of those current.

Read before: ``core.source``, ``core.scopes``, ``core.provenance``.
Invariant: equations and errors never name a file that was excluded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from saem.core import source
from saem.core.provenance import (
    NameStack,
    SourceInfo,
    Traceback,
    as_entries,
    summary,
)
from saem.core.provenance import (
    name_stack as names_on,
)
from saem.core.scopes import Renaming
from saem.core.source import exclude as register_exclusion
from saem.core.trace import Scope, Wrapping, inside_program, state

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack",
    "set_name_stack", "summarize", "transform_name_stack", "user_context",
]


def current() -> SourceInfo:
    """Return the place and the names of an equation that is written now.

    >>> str(current().name_stack)
    ''
    """
    return SourceInfo.of(state.source or source.capture(), state.stack)


def current_name_stack() -> NameStack:
    """Return the scopes and transformations under which equations are written now.

    >>> with jax.named_scope("encoder"):
    ...     print(current_name_stack())
    encoder
    """
    return names_on(state.stack)


def new_name_stack(name: str = "") -> NameStack:
    """Return a stack of one scope, of none if ``name`` is empty.

    >>> str(new_name_stack("encoder").transform("jvp").extend("layer"))
    'encoder/jvp(layer)'
    """
    return NameStack().extend(name) if name else NameStack()


def new_source_info() -> SourceInfo:
    """Return that of an equation of which nothing is known."""
    return SourceInfo(None, NameStack())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Return ``file:line:column (function)`` of at most ``num_frames`` places."""
    return summary(source_info.source) if num_frames > 0 else ""


class _Entered(Renaming):
    """A change of the stack of names that gives the new one on entry."""

    def __enter__(self) -> NameStack:
        super().__enter__()
        return current_name_stack()


class extend_name_stack(_Entered):
    """``with extend_name_stack("encoder") as names:`` adds a scope, as ``jax.named_scope`` does."""

    def __init__(self, name: str):
        super().__init__(lambda stack: (*stack, Scope(name)))


class transform_name_stack(_Entered):
    """``with transform_name_stack("mine") as names:`` shows the next scope as ``mine(scope)``."""

    def __init__(self, name: str):
        super().__init__(lambda stack: (*stack, Wrapping(name)))


class set_name_stack(Renaming):
    """``with set_name_stack(names):`` writes equations under ``names`` alone."""

    def __init__(self, name_stack: NameStack):
        entries = as_entries(name_stack)

        def renamed(stack: tuple) -> tuple:
            return (*stack[:len(stack) - len(inside_program(stack))], *entries)

        super().__init__(renamed)


def reset_name_stack() -> set_name_stack:
    """Return ``set_name_stack`` of no names."""
    return set_name_stack(NameStack())


@contextlib.contextmanager
def user_context(traceback: Traceback | None, *, name_stack: NameStack | None = None
                 ) -> Iterator[Any]:
    """Write equations on behalf of what stands at ``traceback``, under ``name_stack`` if given."""
    saved = state.source
    if traceback is not None:
        state.source = traceback.source
    try:
        with contextlib.nullcontext() if name_stack is None else set_name_stack(name_stack):
            yield
    finally:
        state.source = saved

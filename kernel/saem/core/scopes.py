"""How does a program name its parts?

``named_scope`` puts a name on the stack of transformations that every equation remembers.  The
names reach the text given to XLA, and so profiles and the optimised program.

Read before: ``core.trace``.  Read after: ``compile.lowering``.
Invariant: a name changes what is shown, never what is computed or when it is compiled
(tests/kernel/test_scopes.py).
Source: the documentation of jax.named_scope.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from saem.core.errors import ArgumentTypeError, explained
from saem.core.trace import Scope, Trace, eval_trace, state


class Renaming(contextlib.ContextDecorator):
    """``with`` it, the stack of names is what ``renamed`` makes of it; also a decorator."""

    def __init__(self, renamed: Callable[[tuple], tuple]):
        self.renamed = renamed
        self.outside: list[tuple[Trace, tuple, tuple]] = []

    def _recreate_cm(self) -> Renaming:  # each call of a decorated function has its own
        return Renaming(self.renamed)

    def __enter__(self) -> Any:
        Scope.used = True
        trace = state.trace
        self.outside.append((trace, trace.stack, state.stack))
        state.stack = self.renamed(state.stack)
        if trace is not eval_trace:  # interpreters that start inside go on from its stack
            trace.stack = self.renamed(trace.stack)

    def __exit__(self, *exc: Any) -> None:
        trace, own, stack = self.outside.pop()
        state.stack = stack
        if trace is not eval_trace:
            trace.stack = own


class named_scope(Renaming):
    """``with named_scope("encoder"):`` names the operations inside; also a decorator.

    Raises: TypeError if ``name`` is not a string.
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise explained(
                ArgumentTypeError, "named_scope.C1",
                "named_scope name argument must be a string.",
                advice=f"It got a {type(name).__name__}: named_scope('layer').")
        self.name = name
        entry = Scope(name)
        super().__init__(lambda stack: (*stack, entry))


@contextlib.contextmanager
def own_scope(name: str) -> Iterator[None]:
    """Name what the engine does inside; stacks are searched only where users name scopes."""
    stack = state.stack
    state.stack = (*stack, Scope(name))
    try:
        yield
    finally:
        state.stack = stack


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """Return ``fun`` with what it does named ``name``, its own name if None."""
    label = name or getattr(fun, "__name__", None) or type(fun).__name__

    @functools.wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(label):
            return fun(*args, **kwargs)

    return named

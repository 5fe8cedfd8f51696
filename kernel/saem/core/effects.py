"""What may a program do besides computing its results, and in which order?

An equation with an *effect* is never dropped.  Effects come ordered and unordered.  Order is a
value like any other: a number called the *token*, which every ordered equation takes and returns,
so that nothing (XLA, control flow, a later call) can run the second before the first.
``in_order`` threads it through a program just before it is lowered; the thread keeps the token
that the last program returned and gives it to the next.

Read before: ``core.jaxpr``.  Read after: ``effects.callbacks``, ``compile.dispatch``.
Invariant: ordered effects of one thread happen in the order of its program, through control flow
and from call to call (tests/kernel/test_callbacks.py).
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import sys
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.jaxpr import ClosedJaxpr, Eqn, Var, once_per_program
from saem.core.source import position

TOKEN = ShapedArray((), np.dtype(np.uint32))


class Effect:
    """One kind of effect; ``text`` is what jaxprs print, by default the name of the class."""

    __slots__ = ("text", "ordered")

    def __init__(self, text: str = "", ordered: bool = False):
        self.text = text or type(self).__name__
        self.ordered = ordered

    def __repr__(self) -> str:
        return self.text


class DebugEffect(Effect):
    """Something is shown for debugging."""

    __slots__ = ()


class OrderedDebugEffect(DebugEffect):
    """Something is shown, in the order of the program."""

    __slots__ = ()


DEBUG = DebugEffect("Debug")
ORDERED_DEBUG = OrderedDebugEffect("OrderedDebug", ordered=True)
IO = Effect("IO")
ORDERED_IO = Effect("OrderedIO", ordered=True)


def is_ordered(effects: Iterable[Any]) -> bool:
    """Return whether some of ``effects`` must keep their order."""
    return any(getattr(effect, "ordered", False) for effect in effects)


@once_per_program
def in_order(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return ``closed`` with a token as first input and output, taken through its ordered eqns.

    Raises: NotImplementedError for an ordered effect inside a primitive without ``with_token``.
    """
    first = token = Var(TOKEN)
    eqns = []
    for eqn in closed.jaxpr.eqns:
        if is_ordered(eqn.effects):
            prim, place = with_token(eqn)
            operands = [*eqn.invars[:place], token, *eqn.invars[place:]]
            token = Var(TOKEN)
            eqn = eqn.replace(operation=prim, invars=operands, outvars=[token, *eqn.outvars])
        eqns.append(eqn)
    jaxpr = closed.jaxpr
    return ClosedJaxpr(jaxpr.replace(invars=[first, *jaxpr.invars], eqns=eqns,
                                     outvars=[token, *jaxpr.outvars]), closed.consts)


def with_token(eqn: Eqn) -> tuple[Any, int]:
    """Return the primitive of ``eqn`` that passes on a token, and which operand that is.

    A primitive that does so has a method ``with_token``; the token is then its first output.
    """
    rule = eqn.operation.with_token
    if rule is None:
        raise errors.explained(
            NotImplementedError, "effects.C1",
            f"Ordered effects are not supported in `{eqn.operation.name}`.",
            advice="Use ordered=False there, or move the ordered callback outside.",
            where=position(eqn.source))
    return rule()


# -- at run time -----------------------------------------------------------------------------------


class _Thread(threading.local):
    """The effects of the programs that one thread started."""

    token: Any = None
    # How many callbacks this thread is inside of.
    depth: int = 0


_thread = _Thread()
_unfinished: collections.deque[Any] = collections.deque()
_unreported: list[Exception] = []


def token() -> Any:
    """Return the token the next ordered program of this thread takes."""
    last = _thread.token
    if last is not None and last.is_ready():
        try:
            last.block_until_ready()
        except Exception:  # that program has raised its error already
            last = None
    return np.zeros((), np.uint32) if last is None else last


def keep_token(token: Any) -> None:
    """Keep the token that an ordered program of this thread returns."""
    _thread.token = token


def wait_for_token() -> None:
    """Wait until all ordered effects of this thread have happened."""
    if _thread.token is not None:
        last, _thread.token = _thread.token, None
        last.block_until_ready()


class calling:
    """``with calling():`` around a callback: what it starts must not wait for what called it."""

    def __enter__(self) -> None:
        _thread.depth += 1

    def __exit__(self, *exc: Any) -> None:
        _thread.depth -= 1


def make_room() -> None:
    """Wait until no other program that calls Python runs.

    A callback occupies one of the few threads that run programs.  If several did, and each waited
    for a computation of its own, no thread would be left to do it.
    """
    while _unfinished and not _thread.depth:
        _finish_oldest()


def started(token: Any, closed: ClosedJaxpr) -> None:
    """Remember by its ``token`` that ``closed``, which calls Python, runs."""
    _unfinished.append((token, closed.derived("effects", lambda: closed.effects)))


def _finish_oldest() -> None:
    try:
        token, effects = _unfinished.popleft()
        token.block_until_ready()
    except IndexError:  # another thread waited for it
        pass
    except Exception as error:
        failure = with_cause(error)
        heard = failure is error and CALLBACK in str(error)  # by who waited for the results
        if effects and not heard:  # without effects it is raised where the results are used
            _unreported.append(failure)


def effects_barrier() -> None:
    """Wait until every effect of every program started so far has happened.

    Raises: what the first failed callback raised, after waiting for all.
    """
    while _unfinished:
        _finish_oldest()
    _thread.token = None
    if _unreported:
        failure = _unreported[0]
        _unreported.clear()
        raise failure from failure.__cause__


# With what the texts of failures of callbacks begin.
CALLBACK = "callback.raised"

_failures: collections.deque[tuple[str, Exception]] = collections.deque(maxlen=16)


def failed(error: Exception, cause: Exception) -> Exception:
    """Return ``error``, having kept it and its ``cause`` for the call that will raise it."""
    _failures.append((str(error), cause))
    return error


def failure_in(message: str) -> tuple[str, Exception] | None:
    """Return the failure of a callback that XLA reports by ``message``: its text and its cause."""
    for failure in list(_failures):
        if failure[0] in message:
            with contextlib.suppress(ValueError):  # another thread was first
                _failures.remove(failure)
            return failure
    return None


def with_cause(error: Exception) -> Exception:
    """Return what to raise for ``error``, by which XLA reports that a callback failed."""
    failure = failure_in(str(error))
    if failure is None:
        return error
    text, cause = failure
    made = type(error)(f"INTERNAL: CpuCallback error calling callback: {text}")
    made.__cause__ = cause
    return made


@atexit.register
def _finish() -> None:
    """Let what programs still have to print appear before Python ends, failures included."""
    try:
        effects_barrier()
    except Exception as error:
        sys.excepthook(type(error), error, None)

"""How is something computed while a program is traced, not when it runs?

``ensure_compile_time_eval`` puts an interpreter on top that runs what depends on known values alone
and leaves the rest to the trace below.  A function that is traced inside gets the same interpreter,
put on top of its own trace.

Read before: ``core.trace``.  Read after: ``transform.staging``.
Invariant: an operation on known values inside leaves no equation behind
(tests/kernel/test_config_effects.py).
Source: the documentation of jax.ensure_compile_time_eval.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from saem.core import config
from saem.core.primitive import Primitive
from saem.core.trace import Trace, Tracer, current, eval_trace, state


class CompileTimeTrace(Trace):
    """Runs operations whose arguments are all known; hands the others to its parent."""

    def __init__(self, parent: Trace):
        self.parent: Trace = parent
        self.stack = parent.stack

    def process(self, prim: Primitive, args: tuple) -> Any:
        traced = any(isinstance(x, Tracer) for x in args)
        with current(self.parent if traced else eval_trace) as trace:
            return trace.process(prim, args)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Compute what is known at once, even inside a function that is being traced.

    So ``if jnp.all(x > 0):`` works inside on an array ``x`` that is no argument of the function.

    >>> with jax.ensure_compile_time_eval():
    ...     total = jnp.array([1, 2]).sum()
    >>> total
    Array(3, dtype=int32)
    """
    trace = state.trace if state.trace is eval_trace else CompileTimeTrace(state.trace)
    with (config.holding(config.compile_time, True),  # for the functions that are traced inside
          config.holding(config.staging, None),  # calls on known values may take the fast path
          current(trace)):
        yield

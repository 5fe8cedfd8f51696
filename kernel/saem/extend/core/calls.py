"""What stands for calls of functions in programs of other libraries?  (``jax.extend.core``)

In Saem a call is an equation of ``jit``.  Libraries that walk programs also name the primitives
``call`` and ``closed_call``; no program made here holds one, and to bind one computes the program
that it calls.

Read before: ``core.handles``.
Invariant: binding a call gives what its program gives (tests/kernel/test_extend.py).
"""

from __future__ import annotations

from typing import Any

from saem.core.handles import Handle
from saem.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr


class CallPrimitive(Handle):
    """A primitive that calls the program ``call_jaxpr``."""

    call_primitive = True

    def __init__(self, name: str):
        super().__init__(name)
        self.multiple_results = True

    def bind(self, *args: Any, call_jaxpr: Jaxpr | ClosedJaxpr, **_params: Any) -> list[Any]:
        """Return what the program gives on ``args``."""
        if isinstance(call_jaxpr, ClosedJaxpr):
            return list(eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args))
        return list(eval_jaxpr(call_jaxpr, (), *args))


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Return what the wrapped function ``f`` gives on ``args``; ``params`` are not used."""
    return f.call_wrapped(*args)


class TraceTag:
    """An object that identifies the tracers of one transformation."""


call_p = CallPrimitive("call")
closed_call_p = CallPrimitive("closed_call")

"""How does a library write an interpreter of its own?  (``jax.core.Trace``)

It derives from ``Trace`` and says in ``process_primitive(primitive, tracers, params)`` what becomes
of each operation, and from ``jax.core.Tracer`` for the values it watches.  While its rules run, the
interpreter below is current: ``take_current_trace`` gives that one, ``set_current_trace`` sets one.

It sees every operation, also those on constants alone.  Functions of the library come to it as
calls of ``jit``, as they do in JAX, and functions with rules of their own by
``process_custom_jvp_call`` and ``process_custom_vjp_call``.

Read before: ``core.trace``, ``core.handles``, ``extend.readers``.
Invariant: an interpreter that hands every operation to the one below changes no result
(tests/kernel/test_interpreters.py).
Source: the documentation of haiku.to_dot and of jax.extend.core; observed behaviour of JAX 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from saem.core import errors
from saem.core import trace as core_trace
from saem.core.handles import Handle, handle_of
from saem.core.primitive import Primitive
from saem.extend.linear_util import wrap_init
from saem.extend.readers import take_current_trace


class _Interpreters(type):
    """The class of ``Trace``, of which every interpreter is an instance."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, core_trace.Trace) if cls is Trace else super().__instancecheck__(x)


class Trace(core_trace.Trace, metaclass=_Interpreters):
    """An interpreter that a library writes; ``parent_trace`` is the one below, if it has one."""

    inlines: ClassVar[bool] = False
    sees_all: ClassVar[bool] = True
    hands_down: ClassVar[bool] = True
    # What ``stack`` is while a named scope is entered, None before there was one.
    _stack: tuple[str, ...] | None = None
    parent_trace: core_trace.Trace | None = None

    def __init__(self) -> None:
        """Make an interpreter; a derived class sets ``parent_trace``, the one below it."""

    @property
    def parent(self) -> core_trace.Trace | None:  # type: ignore[override]
        return self.parent_trace

    @property
    def stack(self) -> tuple[str, ...]:
        if self._stack is not None:
            return self._stack
        below = () if self.parent_trace is None else self.parent_trace.stack
        return (*below, type(self).__name__)

    @stack.setter
    def stack(self, names: tuple[str, ...]) -> None:
        self._stack = names

    # How a function that is no operation of its own is handed on.
    wrapped = staticmethod(wrap_init)

    def process(self, prim: Primitive, args: tuple) -> Any:
        with take_current_trace():
            out = prim.hand_to(self, handle_of(prim), args)
        return list(out) if prim.multiple_results else out

    def process_primitive(self, primitive: Handle, tracers: Sequence[Any], params: dict[str, Any]
                          ) -> Any:
        """Return the result of ``primitive`` on ``tracers``, a list if it has several.

        Raises: NotImplementedError where a derived class does not define it.
        """
        raise self.lacks("process_primitive", "any primitive")

    def process_custom_jvp_call(self, primitive: Handle, fun: Any, jvp: Any,
                                tracers: Sequence[Any], *, symbolic_zeros: bool) -> list[Any]:
        """Return the results of ``fun.call_wrapped``, whose forward derivative is ``jvp``.

        ``jvp.call_wrapped`` takes primals, then tangents, and gives results, then their tangents.

        Raises: NotImplementedError where a derived class does not define it.
        """
        raise self.lacks("process_custom_jvp_call", "custom_jvp primitives")

    def process_custom_vjp_call(self, primitive: Handle, fun: Any, fwd: Any, bwd: Any,
                                tracers: Sequence[Any], out_trees: Callable, symbolic_zeros: bool
                                ) -> list[Any]:
        """Return the results of ``fun.call_wrapped``, whose backward pass is ``fwd`` and ``bwd``.

        ``fwd.call_wrapped`` takes each operand and whether it is differentiated, and gives
        residuals, then results; ``bwd.call_wrapped`` takes residuals, then cotangents.

        Raises: NotImplementedError where a derived class does not define it.
        """
        raise self.lacks("process_custom_vjp_call", "custom_vjp primitives")

    def lacks(self, method: str, what: str) -> NotImplementedError:
        """Return the error for an interpreter that does not define what becomes of an operation."""
        return errors.explained(
            NotImplementedError, "interpreter.C1",
            f"{type(self)} must override {method} to handle {what}",
            advice=f"Define {method} in {type(self).__name__}.")


__all__ = ["Trace"]

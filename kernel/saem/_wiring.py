"""Which two wirings come late, and why?

Eager evaluation needs the compiler, which stands beside the core; array operators and methods
need promotion, which stands above the primitives.  Both are joined here,
once, when ``saem`` is imported.

Read before: ``core.trace``, ``compile.dispatch``, ``numpy.operators``, ``numpy.methods``.
Invariant: arrays and tracers have the same operators, methods and properties.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem import _jaxlib
from saem.compile import arrays as _arrays  # noqa: F401 - puts the conversions on the array class
from saem.compile.dispatch import apply_primitive
from saem.core import lazy
from saem.core import refs as core_refs
from saem.core.refs import is_ref
from saem.core.trace import Tracer, eval_trace
from saem.numpy.methods import METHODS, PROPERTIES
from saem.numpy.operators import OPERATORS

eval_trace.apply = apply_primitive
refs = lazy.later("saem.refs.arrays")
core_refs.chapter = lazy.later("saem.refs")


def _method(fun: Callable) -> Callable:
    """Return ``fun`` as a plain Python function, which a class binds to its instances."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return fun(self, *args, **kwargs)

    method.__name__ = getattr(fun, "__name__", "method")
    method.__doc__ = fun.__doc__
    return method


for _name, _row in OPERATORS.items():
    setattr(_jaxlib.ArrayImpl, _name, _row.array)
    setattr(Tracer, _name, _row.tracer)
for _class in (_jaxlib.ArrayImpl, Tracer):
    for _name, _fun in METHODS.items():
        setattr(_class, _name, _fun if _class is not Tracer else _method(_fun))
    for _name, _fun in PROPERTIES.items():
        setattr(_class, _name, property(_fun))


def _of_ref(name: str, otherwise: Callable) -> Callable:
    """Return the method ``name`` of tracers: of a reference's handle where the tracer is one."""

    def method(self: Any, *args: Any) -> Any:
        if is_ref(self.aval):
            return getattr(refs, name)(self, *args)
        return otherwise(self, *args)

    method.__name__ = method.__qualname__ = name
    return method


def _no_setitem(self: Any, *args: Any) -> None:
    _jaxlib.ArrayImpl.__setitem__(self, *args)  # which refuses


Tracer.__getitem__ = _of_ref("get", METHODS["__getitem__"])  # type: ignore[attr-defined]
Tracer.__setitem__ = _of_ref(  # type: ignore[attr-defined]
    "set", getattr(Tracer, "__setitem__", _no_setitem))
Tracer.at = property(_of_ref("ViewMaker", PROPERTIES["at"]))  # type: ignore[attr-defined]

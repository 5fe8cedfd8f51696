"""How does an object live where its arrays are?

Each method of the class is a colocated function; the object is made when one is first called.

Read before: ``experimental.colocated_python.func``.
Invariant: one object answers all calls.
"""

from __future__ import annotations

from typing import Any

from saem.experimental.colocated_python.func import colocated_python


def colocated_python_class(cls: type[object]) -> type[object]:
    """Return a class like ``cls`` whose methods run on the machines that hold their arguments."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        self._arguments = args, kwargs
        self._made: Any = None

    def method(name: str, fun: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            def run(*args: Any, **kwargs: Any) -> Any:
                if self._made is None:
                    given, named = self._arguments
                    self._made = cls(*given, **named)
                return getattr(self._made, name)(*args, **kwargs)

            return colocated_python(run)(*args, **kwargs)

        call.__name__, call.__doc__ = name, fun.__doc__
        return call

    methods = {name: method(name, fun) for name, fun in vars(cls).items()
               if callable(fun) and not name.startswith("__")}
    return type(cls.__name__, (), {"__init__": __init__, "__doc__": cls.__doc__,
                                   "__module__": cls.__module__, **methods})

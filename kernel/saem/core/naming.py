"""How does one function get a second public name?

``jnp.abs`` and ``jnp.absolute`` compute the same, and each is shown under its own name.

Read before: nothing.
Invariant: a public function shows the name that JAX's has (tests/kernel/test_signatures.py).
"""

from __future__ import annotations

import sys
import types
from typing import Any


def called(name: str, function: Any) -> Any:
    """Return a function that does the same under another name, with signature and docstring.

    Its home is the module that calls this, where ``pickle`` finds it.
    """
    same: Any = types.FunctionType(function.__code__, function.__globals__, name,
                              function.__defaults__, function.__closure__)
    same.__kwdefaults__ = function.__kwdefaults__
    same.__dict__.update(function.__dict__)
    for attribute in ("__doc__", "__annotations__"):
        setattr(same, attribute, getattr(function, attribute))
    same.__module__ = sys._getframe(1).f_globals["__name__"]
    same.__qualname__ = name
    return same

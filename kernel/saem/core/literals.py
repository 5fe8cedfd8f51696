"""What is a Python number to the rules of a primitive that a library defines?

It has a dtype there, as an array has: rules ask for it.  It is a Python number nevertheless.

Read before: ``core.avals``.  Read after: ``core.handles``.
Invariant: such a number is used as the plain one of its value is (tests/kernel/test_dropin.py).
Source: what JAX gives to the rules of primitives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core.avals import aval_of


class _Typed:
    """A Python number that knows its dtype."""

    dtype: np.dtype

    def __new__(cls, value: Any, dtype: np.dtype) -> Any:
        number = super().__new__(cls, value)
        number.dtype = dtype
        return number

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()}, dtype={self.dtype})"


class TypedInt(_Typed, int):
    """A whole number that knows its dtype."""


class TypedFloat(_Typed, float):
    """A float that knows its dtype."""


class TypedComplex(_Typed, complex):
    """A complex number that knows its dtype."""


_KINDS: dict[type, Any] = {int: TypedInt, float: TypedFloat, complex: TypedComplex}


def typed(x: Any) -> Any:
    """Return ``x``; a number of Python with its dtype."""
    kind = _KINDS.get(type(x))
    return x if kind is None else kind(x, aval_of(x).dtype)

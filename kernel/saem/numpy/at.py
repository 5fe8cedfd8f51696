"""What is ``x.at[idx].set(y)``?

The way to "change" an array that never changes: the result is a new array with ``y`` at ``idx``.
Under jit XLA writes in place where the old array is not used any more.

Read before: ``numpy.indexing``.
Invariant: the array ``x`` is never altered.  Source: documentation of jax.numpy.ndarray.at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem.numpy.indexing import getitem, scatter_apply, scatter_update


class IndexUpdateHelper:
    """``x.at``: waits for the index."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """``x.at[idx]``: waits for what to do there.

    All methods take ``mode`` ('drop', 'clip', 'promise_in_bounds'), ``indices_are_sorted`` and
    ``unique_indices``; they return a new array of the shape and dtype of ``x``.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, *, fill_value: Any = None, **options: Any) -> Any:
        """Return ``x[idx]``; outside, the nearest element, or ``fill_value`` with mode='fill'."""
        return getitem(self.array, self.index, fill_value=fill_value, **options)

    def apply(self, func: Callable, **options: Any) -> Any:
        """Return ``x`` with ``func`` applied to the elements at idx."""
        return scatter_apply(self.array, self.index, func, **options)


def _update(kind: str, sentence: str) -> Callable:
    def method(self: IndexUpdateRef, values: Any, **options: Any) -> Any:
        return scatter_update(self.array, self.index, values, kind, **options)

    method.__name__ = kind
    method.__doc__ = sentence
    return method


for _kind, _sentence in {
    "set": "Return ``x`` with ``values`` at idx.",
    "add": "Return ``x`` with ``values`` added at idx, as often as an index occurs.",
    "subtract": "Return ``x`` with ``values`` subtracted at idx.",
    "multiply": "Return ``x`` multiplied by ``values`` at idx.",
    "divide": "Return ``x`` divided by ``values`` at idx.",
    "power": "Return ``x`` to the power of ``values`` at idx.",
    "min": "Return the smaller of ``x`` and ``values`` at idx.",
    "max": "Return the greater of ``x`` and ``values`` at idx.",
}.items():
    setattr(IndexUpdateRef, _kind, _update(_kind, _sentence))
IndexUpdateRef.mul = IndexUpdateRef.multiply  # type: ignore[attr-defined]

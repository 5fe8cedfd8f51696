"""What do ``jnp.r_[1:4, 0, x]`` and ``jnp.c_[x, y]`` build?

Ranges, numbers and arrays between the brackets are joined along an axis.  A text first says along
which ("1"), with how many axes at least ("1,2"), and which axis what has fewer gets ("1,2,0");
"r" and "c" ask for matrices.

Read before: ``numpy.joining``, ``numpy.matrices``.
Invariant: ``c_[…]`` is ``r_['-1,2,0', …]`` (tests/kernel/numpy/test_ufuncs.py).
Source: the NumPy reference of numpy.r_.
"""

from __future__ import annotations

from typing import Any

from saem.core import errors
from saem.core.avals import aval_of
from saem.numpy.creation import asarray
from saem.numpy.joining import concatenate
from saem.numpy.matrices import ogrid
from saem.ops.shape import reshape


class Joined:
    """``r_`` and ``c_``: ``axis``, least ``rank``, and the axis ``single`` of one-axis arrays."""

    def __init__(self, name: str, axis: int, rank: int, single: int):
        self.name = name
        self.axis, self.rank, self.single = axis, rank, single

    def __repr__(self) -> str:
        return f"<saem.numpy.{self.name}>"

    def __len__(self) -> int:
        return 0

    def directive(self, text: str) -> tuple[int, int, int]:
        """Return the axis, rank and single axis that ``text`` gives.

        Raises: ValueError if it is neither 'r', 'c' nor up to three integers.
        """
        if text in ("r", "c"):
            return self.axis, self.rank, self.single
        try:
            numbers = [int(part) for part in text.split(",")]
            if len(numbers) <= 3:
                return (*numbers, *(self.axis, self.rank, self.single)[len(numbers):])
        except ValueError:
            pass
        raise errors.explained(errors.ArgumentError, f"{self.name}.C1",
                               f"could not understand directive {text!r}",
                               advice="For example '0,2': along axis 0, two axes at least.")

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not items:
            raise IndexError("tuple index out of range")
        settings: tuple[int, int, int] = (self.axis, self.rank, self.single)
        matrix = ""
        if isinstance(items[0], str):
            matrix = items[0] if items[0] in ("r", "c") else ""
            settings, items = self.directive(items[0]), items[1:]
        axis, rank, single = settings
        parts = []
        for item in items:
            if isinstance(item, str):
                raise errors.explained(errors.ArgumentError, f"{self.name}.C2",
                                       "string directive must be placed at the beginning",
                                       advice="It holds for everything between the brackets.")
            counted = isinstance(item, slice)
            part = ogrid[item] if counted else asarray(item)
            parts.append(raised(part, rank, single))
        out = concatenate(parts, axis=axis)
        if not matrix or out.ndim > 1:
            return out
        n = aval_of(out).size
        return reshape(out, (1, n) if matrix == "r" else (n, 1))


def raised(x: Any, rank: int, single: int) -> Any:
    """Return ``x`` with axes of size 1 up to ``rank``; its own end at axis ``single``."""
    shape = aval_of(x).shape or (1,)
    missing = rank - len(shape)
    if missing <= 0:
        return reshape(x, shape) if shape != aval_of(x).shape else x
    before = missing if single < 0 else min(single, missing)
    if single < -1:
        before = max(missing + single + 1, 0)
    return reshape(x, ((1,) * before + shape + (1,) * (missing - before)))


r_ = Joined("r_", 0, 1, -1)
c_ = Joined("c_", -1, 2, 0)

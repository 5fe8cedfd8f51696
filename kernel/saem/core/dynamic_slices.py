"""How do I write a slice whose start is known only when a program runs?

``x[i:i + 3]`` needs ``i`` while tracing, because the size of the result follows from both bounds.
``x[ds(i, 3)]`` gives the size by itself, so ``i`` may be traced.

Read before: ``core.tree``.  Read after: ``numpy.index_plan``, ``refs.arrays``, which read slices.
Invariant: a read that would go beyond the end begins earlier, so that its size stays
(tests/kernel/numpy/test_dynamic_slices.py).
Source: the documentation of jax.ds.
"""

from __future__ import annotations

import operator
from typing import Any

from saem.core import containers, errors
from saem.core.trace import Tracer


@containers.register_pytree_node_class
class Slice:
    """``size`` elements from ``start``, each ``stride`` after the other."""

    __slots__ = ("size", "start", "stride")
    __hash__ = None

    def __init__(self, start: Any, size: Any, stride: int = 1):
        self.start = start
        self.size = size
        self.stride = stride
        if isinstance(stride, int) and stride < 0:
            raise errors.explained(
                errors.ArgumentError, "ds.C1", f"`stride` must be >= 0, got {stride}.",
                advice="Read forwards, then reverse what was read with x[::-1].")

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is known only when the program runs."""
        return isinstance(self.start, Tracer)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is known only when the program runs."""
        return isinstance(self.size, Tracer)

    def length(self) -> int:
        """Return the size as an int.  Raises: TypeError for one that is known only later."""
        if self.is_dynamic_size:
            raise errors.explained(
                errors.ArgumentTypeError, "ds.C2",
                "Shapes must be 1D sequences of concrete values of integer type, got a slice "
                f"whose size is {self.size}.",
                advice="Mark the size static, for example jax.jit(f, static_argnames='size').")
        return operator.index(self.size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slice):
            return NotImplemented
        return (self.start, self.size, self.stride) == (other.start, other.size, other.stride)

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size!r}, stride={self.stride!r})"

    def tree_flatten(self) -> tuple[tuple, tuple]:
        values = (self.start, self.size)
        held = tuple(None if isinstance(v, Tracer) else v for v in values)
        return tuple(v for v in values if isinstance(v, Tracer)), (
            tuple(isinstance(v, Tracer) for v in values), held, self.stride)

    @classmethod
    def tree_unflatten(cls, aux: tuple, children: tuple) -> Slice:
        traced, held, stride = aux
        given = iter(children)
        start, size = (next(given) if t else h for t, h in zip(traced, held))
        return cls(start, size, stride)


def dslice(start: Any, size: Any = None, stride: int | None = None) -> slice | Slice:
    """Return the slice of ``size`` elements from ``start``, which may be traced.

    ``ds(None)`` is ``:``, ``ds(j)`` is ``:j``, ``ds(i, j)`` is ``i:i+j``.

    Raises: ValueError for a negative ``stride``.

    >>> import saem as jax
    >>> import saem.numpy as jnp
    >>> jax.jit(lambda x, i: x[jax.ds(i, 2)])(jnp.arange(10), 4)
    Array([4, 5], dtype=int32)
    """
    if start is None:
        return slice(None)
    step = 1 if stride is None else stride
    return Slice(0, start, step) if size is None else Slice(start, size, step)


ds = dslice

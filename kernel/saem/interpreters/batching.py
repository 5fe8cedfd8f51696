"""How is a primitive of the user's mapped over a stack?  (``jax.interpreters.batching``)

A rule takes the arguments and, of each, the axis of the stack (``not_mapped``, which is None, for
an argument that is the same for all); it returns the result and its axis.

Read before: ``core.handles``.
Invariant: only primitives made by ``extend.core.Primitive`` take rules from here.
"""

from __future__ import annotations

from typing import Any

from saem.core.handles import Handle
from saem.core.handles import batchers as primitive_batchers
from saem.ops.families import align_batch
from saem.ops.linear import moveaxis as _moveaxis
from saem.transform.vmap import match_dim

not_mapped = None


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """Return the stack ``x`` with its batch axis in front, repeated if it has none."""
    return match_dim(x, bdim, 0, size)


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """Return ``x`` with the axis ``src`` at ``dst``."""
    return _moveaxis(x, src, dst)


def defvectorized(primitive: Handle) -> None:
    """Say that ``primitive`` works element by element on one argument."""

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        return primitive.bind(*args, **params), dims[0]

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: Handle) -> None:
    """Say that ``primitive`` works element by element, stretching axes of size 1."""

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
        xs, dim = align_batch(size, args, dims)
        return primitive.bind(*xs, **params), dim

    primitive_batchers[primitive] = batch


__all__ = ["bdim_at_front", "defbroadcasting", "defvectorized", "moveaxis", "not_mapped",
           "primitive_batchers"]

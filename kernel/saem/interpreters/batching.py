"""How is a primitive of the user's mapped over a stack?  (``jax.interpreters.batching``)

A rule takes the arguments and, of each, the axis of the stack (``not_mapped``, which is None, for
an argument that is the same for all); it returns the result and its axis.

Read before: ``core.handles``.
Invariant: only primitives made by ``extend.core.Primitive`` take rules from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from saem.core import axes
from saem.core.handles import Handle
from saem.core.handles import batchers as primitive_batchers
from saem.ops.families import align_batch
from saem.ops.linear import moveaxis as _moveaxis
from saem.transform.vmap import match_dim
from saem.transform.vmappable import register_vmappable, unregister_vmappable

not_mapped = None


class AxisData(NamedTuple):
    """The axis that is mapped: its name (None if it has none), size, and mesh axes."""

    name: Any
    size: int
    spmd_name: Any
    explicit_mesh_axis: Any


def _axis_data(args: Any, dims: Any) -> AxisData:
    axis = axes.batching()
    size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
    if axis is None:
        return AxisData(None, size, None, None)
    spmd = axis.spmd if axis.spmd is None or isinstance(axis.spmd, tuple) else (axis.spmd,)
    return AxisData(axis.name, size, spmd, None)


class _WithAxis(dict):
    """Rules that also want to know the mapped axis, by primitive."""

    def __init__(self, leading: Callable[[AxisData], tuple]):
        super().__init__()
        self.leading = leading

    def __setitem__(self, primitive: Handle, rule: Callable) -> None:
        super().__setitem__(primitive, rule)
        primitive_batchers[primitive] = lambda args, dims, **params: rule(
            *self.leading(_axis_data(args, dims)), args, dims, **params)


# Rules ``(axis size, axis name, None, args, dims, **params)``.
axis_primitive_batchers = _WithAxis(lambda axis: (axis.size, axis.name, None))
# Rules ``(axis data, args, dims, **params)``.
fancy_primitive_batchers = _WithAxis(lambda axis: (axis,))


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """Return ``sz`` copies of ``x`` side by side along a new ``axis``."""
    return match_dim(x, None, axis, sz)


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """Return the stack ``x`` with its batch axis in front, repeated if it has none."""
    return match_dim(x, bdim, 0, size)


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """Return ``x`` with the axis ``src`` at ``dst``."""
    return _moveaxis(x, src, dst)


def defvectorized(primitive: Handle) -> None:
    """Register that ``primitive`` works element by element on one argument."""

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        return primitive.bind(*args, **params), dims[0]

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: Handle) -> None:
    """Register that ``primitive`` works element by element, stretching axes of size 1."""

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
        xs, dim = align_batch(size, args, dims)
        return primitive.bind(*xs, **params), dim

    primitive_batchers[primitive] = batch


def defreducer(primitive: Handle) -> None:
    """Register that ``primitive`` reduces its one argument over its parameter ``axes``."""

    def batch(args: Any, dims: Any, *, axes: Any, **params: Any) -> tuple[Any, int]:
        (x,), (dim,) = args, dims
        moved = tuple(a + (a >= dim) for a in axes)
        return primitive.bind(x, axes=moved, **params), dim - sum(a < dim for a in moved)

    primitive_batchers[primitive] = batch


__all__ = ["AxisData", "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting",
           "defreducer", "defvectorized", "fancy_primitive_batchers", "moveaxis", "not_mapped",
           "primitive_batchers", "register_vmappable", "unregister_vmappable"]

"""Which axes have names here, and how long are they?

``vmap(f, axis_name="i")`` and ``shard_map`` give an axis a name while ``f`` is traced; collectives
(``psum``, ``axis_index``) refer to it by that name.  The names in force are this thread's
*axis environment*, innermost last.  It is part of the key of every trace that ``jit`` keeps.

Read before: ``core.trace``.  Read after: ``ops.collectives``, ``transform.vmap``.
Invariant: the environment is restored on every way out of ``with bound(…)``
(tests/kernel/test_axes.py).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from saem.core import errors
from saem.core.jaxpr import ClosedJaxpr, Jaxpr, sub_jaxprs
from saem.core.primitive import Primitive
from saem.core.trace import Trace
from saem.core.trace import state as trace_state


class Axis(NamedTuple):
    """A named axis.

    ``spmd`` names the mesh axes that shard a mapped axis; ``mesh`` is that of an axis over devices,
    along which values are tracked as varying or not if ``checked``; ``sharding`` is that of an axis
    that Explicit mesh axes shard (one entry).
    """

    name: Hashable
    size: int
    spmd: Any = None
    mesh: Any = None
    checked: bool = False
    sharding: Any = None


class _State(threading.local):
    """The axes with names, and the one whose batch rules run now, with the trace they run under."""

    def __init__(self) -> None:
        self.env: tuple[Axis, ...] = ()
        self.batching: tuple[Axis, Trace] | None = None
        self.checked = False


state = _State()


class bound:
    """``with bound(axis, …):`` gives names to axes inside the block; a later name hides an earlier.

    ``only`` forgets the axes outside, for programs that were traced elsewhere.
    """

    __slots__ = ("env", "saved")

    def __init__(self, *axes: Axis, only: bool = False):
        names = {axis.name for axis in axes}
        kept = () if only else tuple(a for a in state.env if a.name not in names)
        self.env = (*kept, *axes)

    def __enter__(self) -> None:
        self.saved = (state.env, state.checked, state.batching)
        state.env = self.env
        state.checked = any(axis.checked for axis in self.env)
        state.batching = None

    def __exit__(self, *exc: Any) -> None:
        state.env, state.checked, state.batching = self.saved


def batching() -> Axis | None:
    """Return the axis that the batch rule running now maps over, None if it has no name."""
    found = state.batching
    return found[0] if found is not None and found[1] is trace_state.trace else None


def batch_entry() -> Any:
    """Return along which Explicit mesh axes the axis mapped over is sharded, None if it is not."""
    axis = batching()
    return None if axis is None or axis.sharding is None else axis.sharding.spec.partitions[0]


def find(name: Hashable) -> Axis | None:
    """Return the axis called ``name``, None if there is none."""
    for axis in reversed(state.env):
        if axis.name == name:
            return axis
    return None


def size_of(names: Iterable[Hashable]) -> int:
    """Return the product of the sizes of the axes ``names``.

    Raises: NameError naming one that is not bound.
    """
    size = 1
    for name in names:
        axis = find(name)
        if axis is None:
            raise errors.explained(
                NameError, "axis.unbound",
                f"unbound axis name: {name}. Names in force: {names_in_force()}.")
        size *= axis.size
    return size


def outermost_first(names: Sequence[Hashable]) -> tuple:
    """Return ``names`` in the order in which their axes were bound: of ``shard_map``, the mesh's.
    """
    return tuple([axis.name for axis in state.env if axis.name in names])


def names_in_force() -> str:
    return ", ".join(str(axis.name) for axis in state.env) or "none"


def require(names: Sequence[Hashable], caller: str) -> None:
    """Check that ``names`` are bound.

    Raises: NameError naming one that is not.
    """
    for name in names:
        if find(name) is None:
            raise errors.explained(
                NameError, "axis.unbound",
                f"Found an unbound axis name: {name}. To fix this, please call {caller} under "
                f"`jax.shard_map`, or under vmap with axis_name={name!r}. "
                f"Names in force: {names_in_force()}.")


def as_names(axis_name: Any) -> tuple:
    """Return one axis name, or a tuple or list of them, as a tuple.

    Raises: TypeError for what has no hash, as an array.
    """
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    hash(names)
    return names


def names_in(prim: Primitive) -> frozenset:
    """Return the axis names that ``prim`` or a program inside it refers to."""
    if prim.collective_axes is not None:
        return frozenset(prim.collective_axes)
    return frozenset().union(*(names_in_jaxpr(inner) for _, inner in sub_jaxprs(prim)))


def names_in_jaxpr(program: ClosedJaxpr | Jaxpr) -> frozenset:
    """Return the axis names that equations of ``program`` refer to."""
    if isinstance(program, ClosedJaxpr):
        return program.derived("axis names", lambda: names_in_jaxpr(program.jaxpr))
    return frozenset().union(*(names_in(eqn.operation) for eqn in program.eqns))

"""In which memory of its device does a value lie?

Almost always in the device's own.  A value may also lie in its host's; its aval then prints
``f32<host>[3]``, and what is computed of it stays there.  Values of both kinds do not meet in one
operation: one of them is moved first (``device_put``).

Read before: ``core.avals``.  Read after: ``placement.layouts``, ``jit.transfers``.
Invariant: until a value lies elsewhere nothing asks here (``in_use`` is false, ``when_used`` wait).
Source: observed behaviour of jax.memory.Space and of jaxprs whose values lie in a host's memory.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from saem.core import errors, sharded
from saem.core.avals import ShapedArray
from saem.core.jaxpr import sub_jaxprs
from saem.core.primitive import Primitive


class MemorySpace(enum.Enum):
    """A kind of memory, as a place to put values: that of the device, or of its host."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    def kind(self, device: object) -> str:
        """Return what ``device`` calls this memory."""
        return "pinned_host" if self is MemorySpace.Host else _own_kind(device)


def _own_kind(device: Any) -> str:
    return device.default_memory().kind


DEVICE, HOST = MemorySpace.Device, MemorySpace.Host
ShapedArray.memory_space = DEVICE


class Use:
    """Whether any value was ever put elsewhere, and who wants to know of the first."""

    in_use: ClassVar[bool] = False
    when_used: ClassVar[list[Callable[[], None]]] = []

    @classmethod
    def begin(cls) -> None:
        """Say that a value lies, or is to lie, elsewhere than in its device's own memory."""
        if not cls.in_use:
            cls.in_use = True
            for react in cls.when_used:
                react()


class HostArray(ShapedArray):
    """The aval of a value that lies in the memory of the host."""

    __slots__ = ()
    memory_space = HOST

    def __init__(self, shape: Any, dtype: Any, weak_type: bool = False):
        Use.begin()
        super().__init__(shape, dtype, weak_type)

    def update(self, **changes: Any) -> ShapedArray:
        space = changes.pop("memory_space", HOST)
        return placed(super().update(**changes), space)

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        return placed(super().to_tangent_aval(), HOST)

    def str_short(self, short_dtypes: bool = True) -> str:
        name, _, rest = super().str_short(short_dtypes).partition("[")
        return f"{name}<host>[{rest}"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is HostArray and self.shape == other.shape
            and self.dtype == other.dtype and self.weak_type == other.weak_type)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type, HOST))


def placed(aval: Any, space: MemorySpace) -> Any:
    """Return ``aval`` as that of a value in ``space``; what is no array, as it is."""
    if space is HOST and type(aval) is ShapedArray:
        return HostArray(aval.shape, aval.dtype, aval.weak_type)
    if space is DEVICE and type(aval) is HostArray:
        return ShapedArray(aval.shape, aval.dtype, aval.weak_type)
    return aval


def space_of(aval: Any) -> MemorySpace:
    """Return the memory in which a value of ``aval`` lies."""
    return HOST if type(aval) is HostArray else DEVICE


def typed(prim: Primitive, avals: Sequence[Any]) -> Any:
    """Return what ``prim.typing`` says of ``avals``, with the memory in which the results lie."""
    spaces = result_spaces(prim, avals) if Use.in_use else None
    typed = sharded.typed(prim, avals) if sharded.state.used else prim.typing(*avals)
    if spaces is None:
        return typed
    if prim.multiple_results:
        return [placed(a, spaces[i % len(spaces)]) for i, a in enumerate(typed)]
    return placed(typed, spaces[0])


def result_spaces(prim: Primitive, avals: Sequence[Any]) -> list[MemorySpace] | None:
    """Return where the results of ``prim`` lie, None if its typing rule says that itself.

    One answer is for all results.
    Raises: ValueError if two operands that are no scalars lie in different memories.
    """
    if getattr(prim, "knows_its_memory", False) or (prim.multiple_results and sub_jaxprs(prim)):
        return None
    if prim.name == "sort":
        return [space_of(aval) for aval in avals]
    if prim.name == "broadcast_in_dim" or prim.name.startswith("scatter"):
        return [space_of(avals[0])]
    arrays = [aval for aval in avals if isinstance(aval, ShapedArray) and aval.shape]
    for aval in arrays[1:]:
        if space_of(aval) is not space_of(arrays[0]):
            raise errors.explained(
                errors.ArgumentError, "memory.C1",
                f"memory_space of all inputs passed to `{prim.name}` must be the same. Got one "
                f"operand with type: {arrays[0].str_short(False)} and another operand with type: "
                f"{aval.str_short(False)}.",
                advice="Move one of them first: jax.device_put(x, jax.memory.Space.Device).")
    return [space_of(arrays[0]) if arrays else DEVICE]

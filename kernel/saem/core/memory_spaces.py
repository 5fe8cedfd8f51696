"""Which memory of its device holds a value?

Almost always the device's own.  A value may also be in its host's; its aval then prints
``f32<host>[3]``, and what is computed of it stays there.  Values of both kinds do not meet in one
operation: one of them is moved first (``device_put``).

Read before: ``core.avals``.  Read after: ``placement.layouts``, ``jit.transfers``.
Invariant: types are inferred without ``memory_types`` unless an operand is in its host's memory.
Source: observed behaviour of jax.memory.Space and of jaxprs with values in a host's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.jaxpr import sub_jaxprs
from saem.core.placement_types import MemorySpace
from saem.core.primitive import Primitive

DEVICE, HOST = MemorySpace.Device, MemorySpace.Host


def placed(aval: Any, space: MemorySpace) -> Any:
    """Return ``aval`` as that of a value in ``space``; the type of a reference unchanged."""
    if type(aval) is not ShapedArray or space is MemorySpace.Any or space is space_of(aval):
        return aval
    return aval.update(memory=space)


def space_of(aval: Any) -> MemorySpace:
    """Return the memory that holds a value of ``aval``."""
    return DEVICE if aval.placement is None else aval.placement.memory


def memory_types(prim: Primitive, avals: Sequence[Any], outs: list[ShapedArray]
                 ) -> list[ShapedArray]:
    """Return ``outs``, the types of the results of ``prim``, with the memories that hold them."""
    spaces = result_spaces(prim, avals)
    return outs if spaces is None else [
        placed(a, spaces[i % len(spaces)]) for i, a in enumerate(outs)]


def result_spaces(prim: Primitive, avals: Sequence[Any]) -> list[MemorySpace] | None:
    """Return the memories of the results of ``prim``, None if its typing rule gives them itself.

    One answer is for all results.
    Raises: ValueError if two operands that are not scalars are in different memories.
    """
    if prim.types_memory or (prim.multiple_results and sub_jaxprs(prim)):
        return None
    if prim.memory is not None:
        return prim.memory([space_of(aval) for aval in avals])
    arrays = [aval for aval in avals if isinstance(aval, ShapedArray) and aval.shape]
    for aval in arrays[1:]:
        if space_of(aval) is not space_of(arrays[0]):
            raise errors.explained(
                errors.ArgumentError, "memory.C1",
                f"memory_space of all inputs passed to `{prim.name}` must be the same. Got one "
                f"operand with type: {arrays[0].str_short()} and another operand with type: "
                f"{aval.str_short()}.",
                advice="Move one of them first: jax.device_put(x, jax.memory.Space.Device).")
    return [space_of(arrays[0]) if arrays else DEVICE]

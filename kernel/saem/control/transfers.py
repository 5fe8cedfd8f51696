"""How are values placed on devices, fetched from them and waited for?

``device_put`` commits values to a device, ``device_get`` brings them to NumPy,
``block_until_ready`` waits: operations return before they are finished (asynchronous dispatch).

Read before: ``xla.dispatch``.
Invariant: placing a traced value does not take it out of its trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem import _jaxlib
from saem.control.placing import ShardingConstraint, prefix
from saem.core import tree
from saem.core.primitive import primitive
from saem.core.trace import Tracer, bind
from saem.ops.linear import Identity
from saem.xla import arrays, devices, dispatch
from saem.xla.guards import explicit
from saem.xla.shardings import NamedSharding, resolve


@primitive("device_put")
class DevicePut(Identity):
    """The identity, onto ``device``; inside a program, whose place is chosen, only a wish."""

    device: Any = None


dispatch.eager_rules[DevicePut] = lambda prim, x: arrays.device_put(x, prim.device)


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: bool = False,
               may_alias: bool | None = None) -> Any:
    """Return pytree ``x`` on ``device`` (a Device, a sharding, a pytree of them), committed.

    Without ``device`` values become uncommitted arrays on the default device; arrays stay.
    """

    def put_one(leaf: Any, where: Any) -> Any:
        if isinstance(where, devices.MemorySpace) and not isinstance(leaf, Tracer):
            where = in_memory(leaf, where)
        if isinstance(leaf, Tracer):
            if isinstance(where, NamedSharding):
                return bind(ShardingConstraint(where), leaf)
            return bind(DevicePut(where), leaf)
        return arrays.device_put(leaf, where)

    leaves, structure = tree.flatten(x)
    places = [d if isinstance(d, (_jaxlib.Device, devices.MemorySpace)) else
              resolve(d, "device_put")
              for d in prefix("device_put device", device, x)]
    with explicit("explicit_device_put"):
        placed = structure.unflatten([put_one(leaf, d) for leaf, d in zip(leaves, places)])
    given = prefix("device_put donate", donate, x) if donate else ()
    for leaf, d, new in zip(leaves, given, tree.leaves(placed)):
        # Where it stays in its place the new array has the same buffer.
        if d and isinstance(leaf, _jaxlib.ArrayImpl) and leaf.sharding != new.sharding:
            leaf.delete()
    return placed


def in_memory(x: Any, space: devices.MemorySpace) -> Any:
    """Return the sharding ``x`` has, or would get, in another kind of memory."""
    sharding = x.sharding if isinstance(x, _jaxlib.Array) else devices.single_device(
        devices.default_device())
    return sharding.with_memory_kind(space.kind(sharding._device_assignment[0]))


def device_get(x: Any) -> Any:
    """Return pytree ``x`` with NumPy arrays in place of arrays."""

    def get(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, _jaxlib.ArrayImpl) else leaf

    with explicit("explicit_device_get"):
        for leaf in tree.leaves(x):
            if isinstance(leaf, _jaxlib.ArrayImpl):
                leaf.copy_to_host_async()
        return tree.map_(get, x)


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays in pytree ``x`` are computed; returns ``x``."""
    for leaf in tree.leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start copying all arrays in pytree ``x`` to the host; returns ``x`` at once."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, _jaxlib.ArrayImpl):
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """Return the arrays of ``platform`` that are alive."""
    return devices.backend(platform).live_arrays()

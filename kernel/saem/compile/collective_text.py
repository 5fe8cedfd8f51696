"""How are collectives between devices written?

A program over a mesh runs once on every device; a collective lists which devices act together, by
their numbers in the mesh.

Read after: ``compile.text``, ``ops.collectives``, ``parallel.shard_map``.
Invariant: each row of a group lists its devices in the order of the axis names.
Source: StableHLO specification, all_reduce, partition_id; the Shardy dialect.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from saem.core.avals import ShapedArray
from saem.core.record import Record

Groups = tuple[tuple[int, ...], ...] | None


class DeviceAxes(Record):
    """The mesh in which a program is lowered: sizes by name, and which names are manual.

    If it is ``silent``, no result comes out of there, and XLA knows of no place for effects.
    """

    sizes: dict[Hashable, int]
    manual: frozenset
    symbol: str
    silent: bool = False

    @property
    def left(self) -> list[Hashable]:
        """The axes that are left to the partitioner."""
        return [name for name in self.sizes if name not in self.manual]

    def groups(self, names: Sequence[Hashable], index_groups: Groups = None) -> np.ndarray:
        """Return the rows of partition numbers that act together along ``names``."""
        order = list(self.sizes)
        ids = np.arange(int(np.prod(list(self.sizes.values()), dtype=int)))
        ids = ids.reshape(tuple(self.sizes.values()))
        rest = [i for i, name in enumerate(order) if name not in names]
        ids = ids.transpose([*rest, *(order.index(name) for name in names)])
        rows = ids.reshape(-1, int(np.prod([self.sizes[n] for n in names], dtype=int)))
        if index_groups is None:
            return rows
        longest = max(map(len, index_groups))
        return np.array([[*row[list(group)], *[-1] * (longest - len(group))]
                         for row in rows for group in index_groups])


def device_axes(ctx: Any, prim: Any) -> DeviceAxes:
    """Return the mesh of the ``shard_map`` being lowered.  Raises: NameError outside of one."""
    found = ctx.module.device_axes
    if found is None:
        raise NameError(f"{prim.name} is not inside shard_map: no device axis has a name here.")
    return found


CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def groups_text(rows: np.ndarray, what: str = "replica_groups") -> str:
    """Return the attribute ``what`` that lists device numbers, ``rows``: [groups, members]."""
    n, m = rows.shape
    return f"{what} = dense<{rows.tolist()}> : tensor<{n}x{m}xi64>"


def reduce_region(ctx: Any, op: str, dtype: Any) -> Any:
    """Return the region that combines two scalars by ``op``."""
    scalar = ShapedArray((), dtype)
    return ctx.region([scalar, scalar],
                      lambda a, b: [ctx.elementwise(f"stablehlo.{op}", a, b, out=scalar)])


def axis_index_text(ctx: Any, mesh: DeviceAxes, name: Hashable) -> str:
    """Write the index along ``name`` of the device that runs the program."""
    order = list(mesh.sizes)
    inner = int(np.prod([mesh.sizes[n] for n in order[order.index(name) + 1:]], dtype=int))
    unsigned = ShapedArray((), np.dtype(np.uint32))
    step = ctx.constant(np.uint32(inner), unsigned)
    size = ctx.constant(np.uint32(mesh.sizes[name]), unsigned)
    number = ctx.elementwise("stablehlo.partition_id", out=unsigned)
    number = ctx.elementwise("stablehlo.divide", number, step, out=unsigned)
    number = ctx.elementwise("stablehlo.remainder", number, size, out=unsigned)
    return ctx.convert(number, np.dtype(np.int32))

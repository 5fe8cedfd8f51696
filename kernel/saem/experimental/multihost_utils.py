"""How do processes exchange values and wait for each other?

Every function here is called by all processes; with one process each is what it would be
with many.

Read before: ``saem.distributed``.
Invariant: what comes back is the same in every process, except what is documented as local.
Source: the documentation of jax.experimental.multihost_utils.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.core import lazy, tree
from saem.core.trace import Tracer
from saem.jit.decorator import jit
from saem.jit.transfers import device_put
from saem.ops.constraints import prefix, with_sharding_constraint
from saem.placement import devices
from saem.placement.meshes import AxisType, Mesh
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding
from saem.placement.spread import make_array_from_process_local_data, own_part


def _by_process() -> tuple[Mesh, NamedSharding]:
    """Return a mesh with one row of devices for each process, and a sharding by rows."""
    everyone = devices.devices()
    rows = [[d for d in everyone if d.process_index == n] for n in range(devices.process_count())]
    mesh = Mesh(rows, ("processes", "local"), (AxisType.Auto,) * 2)
    return mesh, NamedSharding(mesh, PartitionSpec("processes"))


def _stacked(x: Any) -> Any:
    """Return the array whose row n is what process n gave."""
    _, rows = _by_process()
    value = np.asarray(x)[None]
    return make_array_from_process_local_data(rows, value, (devices.process_count(),
                                                            *value.shape[1:]))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Return what each process gave, stacked along a new first axis, as NumPy in every process.

    With ``tiled`` the values are joined along their first axis instead.  An array that already
    spans the processes comes back whole.
    """
    def gather(x: Any) -> np.ndarray:
        if not getattr(x, "is_fully_addressable", True):
            return np.asarray(_replicate(x, x.sharding.mesh))
        if devices.process_count() == 1:
            value = np.asarray(x)
            return value if tiled else value[None]
        mesh, _ = _by_process()
        whole = np.asarray(_replicate(_stacked(x), mesh))
        return whole.reshape(-1, *whole.shape[2:]) if tiled and whole.ndim > 1 else whole

    return tree.map_(gather, in_tree)


def _replicate(x: Any, mesh: Mesh) -> Any:
    return jit(_same, out_shardings=NamedSharding(mesh, PartitionSpec()))(x)


def _same(x: Any) -> Any:
    return x


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Return in every process the values that the source (process 0 by default) gave."""
    if is_source is None:
        is_source = devices.process_index() == 0
    if devices.process_count() == 1:
        return tree.map_(np.asarray, in_tree)
    source = process_allgather(np.asarray(is_source))
    chosen = int(np.argmax(source))
    return tree.map_(lambda x: np.asarray(process_allgather(x)[chosen]), in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until every process is here, under the same ``name``.

    Raises: AssertionError if the processes came with different names.
    """
    assert_equal(np.uint32(zlib.crc32(name.encode())),
                 f"sync_global_devices name mismatch ('{name}')")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Wait for every process, and refuse values that are not the same in all.

    Raises: AssertionError with ``fail_message``.
    """
    expected = broadcast_one_to_all(in_tree)
    same = [np.array_equal(a, b) for a, b in zip(tree.leaves(in_tree), tree.leaves(expected))]
    if not np.all(process_allgather(np.asarray(all(same)))):
        raise AssertionError(f"{fail_message} Expected: {expected}; got: {in_tree}.")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Return arrays over ``global_mesh`` of which each process gave its own part.

    Raises: ValueError if ``pspecs`` is None.
    """
    leaves, structure = tree.flatten(local_inputs)
    specs = _specs(pspecs, local_inputs)
    return structure.unflatten([_assembled(x, NamedSharding(global_mesh, spec))
                                for x, spec in zip(leaves, specs)])


def _assembled(x: Any, sharding: NamedSharding) -> Any:
    if isinstance(x, Tracer) and devices.process_count() == 1:
        return with_sharding_constraint(x, sharding)  # its own part is the whole
    return make_array_from_process_local_data(sharding, np.asarray(x))


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Return the part of each array that is in this process, over the process's own devices.

    Raises: ValueError if ``pspecs`` is None.
    """
    leaves, structure = tree.flatten(global_inputs)
    specs = _specs(pspecs, global_inputs)
    return structure.unflatten([_local_part(x, global_mesh, spec)
                                for x, spec in zip(leaves, specs)])


def _local_part(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    here = NamedSharding(mesh.local_mesh, spec)
    if isinstance(x, Tracer):
        return with_sharding_constraint(x, here)
    if getattr(x, "is_fully_addressable", True):
        return device_put(x, here)
    return own_part(device_put(x, NamedSharding(mesh, spec)), here)


def _specs(pspecs: Any, values: Any) -> list[PartitionSpec]:
    """Return a spec for each leaf of ``values``.  Raises: ValueError for None."""
    specs = prefix("pspecs", pspecs, values)
    if None in specs:
        raise ValueError("`None` is not a valid input to the pspecs argument. Please use "
                         "jax.sharding.PartitionSpec() if you wanted to replicate your input.")
    return specs


_preemption: list[Any] = []


def reached_preemption_sync_point(step_id: int) -> bool:
    """Return whether all processes are at the step after which they stop, as one of them must.

    A process learns so by SIGTERM; then all agree on the next step that each has yet to begin.
    Call it at every step, in every process.

    Without ``jax.distributed.initialize`` it is False.
    """
    if not devices.processes:
        return False
    if not _preemption:
        manager = _jaxlib.create_preemption_sync_manager()
        manager.initialize(devices.processes[0].client)
        _preemption.append(manager)
    return _preemption[0].reached_sync_point(step_id)


__getattr__ = lazy.says_what_is_left_out(__name__)

__all__ = ["assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
           "host_local_array_to_global_array", "process_allgather",
           "reached_preemption_sync_point", "sync_global_devices"]

"""In which order should devices stand in a mesh?

On CPUs and on the GPUs of one machine every two devices are equally near, so their order is that in
which they are given, else that of their numbers.

Read before: ``placement.meshes``.
Invariant: the mesh holds each device once.
Source: the documentation of jax.experimental.mesh_utils.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import lazy
from saem.placement import devices as device_module


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *,
                       contiguous_submeshes: bool = False, allow_split_physical_axes: bool = False
                       ) -> np.ndarray:
    """Return ``devices`` (all of the default backend) as an array of ``mesh_shape``.

    Raises: ValueError if their number is not the size of the mesh.
    """
    have = list(device_module.devices() if devices is None else devices)
    need = math.prod(mesh_shape)
    if len(have) != need:
        raise ValueError(f"Number of devices {len(have)} must equal the product of mesh_shape "
                         f"{tuple(mesh_shape)}")
    return np.array(have, dtype=object).reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int],
                              devices: Sequence[Any] | None = None, *,
                              process_is_granule: bool = False,
                              should_sort_granules_by_key: bool = True,
                              allow_split_physical_axes: bool = False) -> np.ndarray:
    """Return a mesh whose axes are made of an outer part over groups and an inner one within.

    Groups are processes with ``process_is_granule``, else the slices of a TPU.

    Raises: ValueError if the outer parts do not multiply to the number of groups, or if devices
    belong to no slice.
    """
    have = list(device_module.devices() if devices is None else devices)
    group = "process_index" if process_is_granule else "slice_index"
    groups: dict[int, list[Any]] = {}
    for device in have:
        if not hasattr(device, group):
            raise ValueError(f"Device {device} does not have attribute {group}. Devices other than "
                             "TPUs are grouped by process: give process_is_granule=True.")
        groups.setdefault(getattr(device, group), []).append(device)
    if len(groups) != math.prod(dcn_mesh_shape):
        raise ValueError(f"Number of slices {len(groups)} must equal the product of "
                         f"dcn_mesh_shape {tuple(dcn_mesh_shape)}")
    blocks = [create_device_mesh(mesh_shape, groups[n]) for n in sorted(groups)]
    whole = np.stack(blocks).reshape((*dcn_mesh_shape, *mesh_shape))
    order = [a for pair in zip(range(len(mesh_shape)), range(len(mesh_shape), 2 * len(mesh_shape)))
             for a in pair]
    sizes = [outer * inner for outer, inner in zip(dcn_mesh_shape, mesh_shape)]
    return whole.transpose(order).reshape(sizes)


__getattr__ = lazy.says_what_is_left_out(__name__)

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]

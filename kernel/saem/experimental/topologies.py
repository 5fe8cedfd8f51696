"""How are programs compiled for devices that are not here?  (``jax.experimental.topologies``)

A description of devices; the CPU's client describes only those that are attached.

Read before: ``placement.devices``.
Invariant: a description holds devices of one platform.
Source: the documentation of jax.experimental.topologies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.experimental.mesh_utils import create_device_mesh
from saem.placement import devices as device_module
from saem.placement.meshes import AxisType, Mesh


class TopologyDescription:
    """Devices, attached or not."""

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return the description of the devices of ``platform`` that are here."""
    return TopologyDescription(device_module.devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any
                      ) -> TopologyDescription:
    """Refuse: no client here describes devices that are not attached.

    Raises: NotImplementedError.
    """
    name = platform or device_module.default_backend()
    raise NotImplementedError(
        f"topology not implemented for {name}. Compile for the devices that are attached: "
        "get_attached_topology().")


def make_mesh(topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple[str, ...], *,
              contiguous_submeshes: bool = False) -> Mesh:
    """Return a mesh of the devices that ``topo`` describes."""
    grid = create_device_mesh(mesh_shape, list(topo.devices),
                              contiguous_submeshes=contiguous_submeshes)
    return Mesh(grid, axis_names, (AxisType.Auto,) * len(axis_names))


__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

"""How are arrays placed on devices?  The public names of meshes and shardings.

Read before: ``placement.meshes``, ``placement.shardings``.
Invariant: nothing is defined here; these are names of ``placement``, ``ops`` and ``parallel``.
"""

from __future__ import annotations

from saem._jaxlib import Sharding
from saem.core.placement_types import ManualAxisType
from saem.ops.constraints import reshard
from saem.parallel.axis_modes import auto_axes, explicit_axes
from saem.placement.devices import SingleDeviceSharding, make_single_device_sharding
from saem.placement.meshes import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "auto_axes", "explicit_axes",
    "get_abstract_mesh", "get_mesh", "make_single_device_sharding",
    "reshard", "set_mesh", "use_abstract_mesh",
]

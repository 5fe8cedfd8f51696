"""Cases of ``control/placing.py`` and ``transfers.py``: on one device, which changes nothing."""

from __future__ import annotations

import numpy as np

import saem as jax
from cases import case, each
from saem.jit.transfers import COPY, REUSE, DevicePut
from saem.ops.constraints import ShardingConstraint
from saem.ops.reshard import Reshard
from saem.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

ONE = Mesh(np.array(jax.devices()[:1]), ("d",))

CASES = [
    *each(ShardingConstraint(NamedSharding(ONE, PartitionSpec("d"))), "f32", "bf16", "i32", "bool"),
    *each(Reshard(NamedSharding(ONE, PartitionSpec("d")), NamedSharding(ONE, PartitionSpec(None))),
          "f32", "i32"),
    case(ShardingConstraint(NamedSharding(ONE, PartitionSpec(None, "d"))), "f32[2,3]"),
    case(ShardingConstraint(SingleDeviceSharding(jax.devices()[0])), "f32[3]"),
    case(DevicePut((jax.devices()[0],)), "f32[3]"),
    case(DevicePut((NamedSharding(ONE, PartitionSpec("d")), None), (None, None), (REUSE, COPY)),
         "f32[3]", "i32[2,3]"),
]

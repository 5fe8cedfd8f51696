"""Cases of ``control/partitioning.py``: on one device a function is what it computes."""

from __future__ import annotations

import numpy as np

import saem.numpy as jnp
from cases import case
from saem import tree
from saem.core.avals import ShapedArray
from saem.parallel.custom_partitioning import CustomPartitioning, rule_of
from saem.transform.staging import trace_flat

F32 = ShapedArray((2, 3), np.dtype(np.float32))
PROGRAM = trace_flat(lambda x, y: [jnp.sin(x) * y, x + 1], [F32, F32], name="jit")


def partition(*_):
    raise AssertionError("on one device nothing is divided")


CASES = [
    case(CustomPartitioning(PROGRAM, partition, None, None, True, rule_of("i j, i j -> i j, i j"),
                            tree.structure((0, 0)), tree.structure([0, 0])),
         "f32[2,3]", "f32[2,3]", differentiable=False, batchable=False),
]

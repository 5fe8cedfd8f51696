"""Cases of ``control/marks.py``: attributes, which change no value."""

from __future__ import annotations

import numpy as np

import saem.numpy as jnp
from cases import case, each
from saem.core.avals import ShapedArray
from saem.experimental.marks import ComputeOn, MetadataCall, MetadataValue
from saem.memory import Space
from saem.transform.staging import trace_flat

F32 = ShapedArray((3,), np.dtype(np.float32))
PROGRAM = trace_flat(lambda x, y: [jnp.sin(x) * y, x + 1], [F32, F32], name="jit")

CASES = [
    *each(MetadataValue((("k", "v"),)), "f32", "i32", "bool"),
    case(MetadataCall(PROGRAM, (("k", "v"),)), "f32[3]", "f32[3]"),
    case(ComputeOn(PROGRAM, "device_host", (Space.Device, Space.Device)), "f32[3]", "f32[3]"),
]

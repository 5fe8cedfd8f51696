"""Cases of ``control/buffers.py``: Python writes into a program's buffers."""

from __future__ import annotations

import numpy as np

from cases import case
from saem import tree
from saem.core.avals import ShapedArray
from saem.effects.buffers import BufferCallback

ONE, TWO = tree.structure(((0,), {})), tree.structure((0, 0))


def twice(context, out, x):
    np.asarray(out[0])[...] = 2 * np.asarray(x)
    np.asarray(out[1])[...] = np.asarray(x) > 0


def _call(method: str) -> BufferCallback:
    avals = (ShapedArray((3,), np.dtype(np.float32)), ShapedArray((3,), np.dtype(np.int32)))
    return BufferCallback(twice, False, False, ONE, (), TWO, avals, method)


CASES = [case(_call(method), "f32[3]", differentiable=False)
         for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")]

"""Cases of ``control/callbacks.py`` and ``control/debugging.py``: programs that call Python."""

from __future__ import annotations

import numpy as np

from cases import case
from saem import tree
from saem.core import effects
from saem.core.avals import ShapedArray
from saem.effects.callbacks import DebugCallback, IoCallback, PureCallback
from saem.effects.debugging import DebugPrint
from saem.effects.host_calls import FlatCallback
from saem.parallel.inspecting import InspectSharding

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


class Host:
    """A function whose printed form is the same in every run, as names of tests must be."""

    def __init__(self, fun):
        self.fun = fun

    def __call__(self, *args):
        return self.fun(*args)

    def __repr__(self):
        return self.fun.__name__


def _call(fun, arity):
    return FlatCallback(Host(fun), tree.structure(((0,) * arity, {})))


def _sine(x):
    return np.sin(x).astype(np.float32)


def _sum_and_floor(x, y):
    """Return values that depend on the last axes alone, so that stacks work too."""
    x, y = np.asarray(x), np.asarray(y)
    return (x + y).astype(np.float32), np.floor(x + 0 * y).astype(np.int32)


def _pure(method):
    two = (ShapedArray((3, 4), F32), ShapedArray((3, 4), I32))
    return [
        case(PureCallback(_call(_sine, 1), (ShapedArray((3,), F32),), None, method), "f32[3]",
             differentiable=False),
        case(PureCallback(_call(_sum_and_floor, 2), two, None, method), "f32[3,4]", "f32[3,4]",
             differentiable=False),
    ]


CASES = [
    *_pure("sequential"), *_pure("sequential_unrolled"), *_pure("expand_dims"),
    *_pure("broadcast_all"),
    case(PureCallback(_call(_sine, 1), (ShapedArray((), F32),), None, "legacy_vectorized"),
         "f32[]", differentiable=False),
    case(PureCallback(_call(_sine, 1), (ShapedArray((3,), F32),)), "f32[3]",
         differentiable=False, batchable=False),
    case(IoCallback(_call(_sine, 1), (ShapedArray((3,), F32),)), "f32[3]", differentiable=False),
    case(IoCallback(_call(_sine, 1), (ShapedArray((3,), F32),), None, True), "f32[3]",
         differentiable=False, batchable=False),
    case(DebugCallback(_call(_sine, 1), effects.DEBUG), "f32[3]"),
    case(DebugCallback(_call(_sum_and_floor, 2), effects.ORDERED_DEBUG), "f32[3]", "i32[3]"),
    case(InspectSharding(Host(type)), "f32[3,4]"),
    case(DebugPrint("{} {}", True, tree.structure(((0, 0), {}))), "f32[2]", "bool[2]"),
]

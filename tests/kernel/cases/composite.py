"""Cases of ``export/composite.py`` and of work that is kept (``effects/barrier.py``)."""

from __future__ import annotations

from cases import case
from saem.core import tree
from saem.core.avals import ShapedArray
from saem.effects.barrier import Sink
from saem.export.composite import Composite
from saem.lax import cos, div, sin
from saem.loops.carry import trace_body

_FEW = ShapedArray((3,), "float32")
_TAN = trace_body(lambda x: (div(sin(x), cos(x)), x), tree.structure((0,)), [_FEW], "case").closed

# A composite has neither derivative nor batch rule, as in JAX.
NEITHER = {"differentiable": False, "batchable": False}

CASES = [
    case(Composite("case.tan", 0, (), _TAN), "f32[3]", **NEITHER),
    case(Composite("case.tan", 2, (("scale", (2.0,), tree.structure(0)),), _TAN), "f32[3]",
         **NEITHER),
    case(Sink(), "f32[3]", differentiable=False),
]

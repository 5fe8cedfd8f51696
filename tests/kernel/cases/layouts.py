"""Cases of ``control/formats.py``: values laid out in memory."""

from __future__ import annotations

from cases import case, each
from saem.ops.constraints import Layout, LayoutConstraint

CASES = [
    *each(LayoutConstraint(Layout((1, 0))), "f32", "i8", "bool", "c64", shape="2,3"),
    case(LayoutConstraint(Layout((2, 0, 1))), "f32[2,3,4]"),
    case(LayoutConstraint(Layout(())), "f32[]"),
]

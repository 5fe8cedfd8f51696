"""Cases of ``ops/collectives.py``: over axes of the operand itself; names are in test_axes.py."""

from __future__ import annotations

from cases import case, each
from saem.ops import collectives as c

CASES = [
    *each(c.PSum((0,)), "f32", "bf16", "i32", "c64"),
    *each(c.PSum((0, 1)), "f32"),
    *each(c.PSum((1,)), "f32", shape="2,3,4"),
    *(one for prim in (c.PMax, c.PMin) for one in [
        *each(prim((0,)), "f32", "i32", "u8", "bool", differentiable=False),
        *each(prim((1, 2)), "f32", shape="2,3,4", differentiable=False),
        case(prim((0,)), "bf16[3]", differentiable=False)]),
]

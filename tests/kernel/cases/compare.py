"""Cases of ``ops/compare.py``: comparisons and bits."""

from __future__ import annotations

from cases import case, each, spec
from saem.ops import compare as c

CASES = []
for _prim in (c.Eq(), c.Ne(), c.Lt(), c.Le(), c.Gt(), c.Ge()):
    CASES += [
        *each(_prim, "f32", "bf16", "f16", "i32", "u8", "bool", arity=2, domain="integral"),
        *each(_prim, "f32", shape="30", domain="special", arity=2),
        *each(_prim, "i8", "u32", shape="30", domain="edges", arity=2),
        *each(_prim, "f32", shape="", arity=2),
        *each(_prim, "f32", shape="0,2", arity=2),
        case(_prim, "f32[2,3]", "f32[]"),
        case(_prim, "f32[2,1]", "f32[1,3]"),
    ]
for _prim in (c.Eq(), c.Ne()):
    CASES += each(_prim, "c64", shape="30", domain="integral", arity=2)
for _prim in (c.EqTotal(), c.LtTotal(), c.LeTotal()):
    CASES += [
        *each(_prim, "f32", "bf16", "f16", shape="30", domain="special", arity=2),
        *each(_prim, "i32", "u8", "bool", arity=2),
    ]
for _prim in (c.And(), c.Or(), c.Xor()):
    CASES += [
        *each(_prim, "i32", "u8", "bool", arity=2),
        *each(_prim, "i8", "u32", shape="30", domain="edges", arity=2),
        *each(_prim, "bool", shape="", arity=2),
        *each(_prim, "i32", shape="0", arity=2),
    ]
CASES += [
    *each(c.Not(), "i32", "u8", "bool"),
    *each(c.Not(), "i8", shape="13", domain="edges"),
    *each(c.Not(), "bool", shape=""),
]
for _prim in (c.ShiftLeft(), c.ShiftRightLogical(), c.ShiftRightArithmetic()):
    CASES += [
        *each(_prim, "i32", "u8", "i8", "u32", shape="40", domain="edges", arity=2),
        *[case(_prim, spec(f"{d}[40]", "edges"), spec(f"{d}[40]", "below:40"))
          for d in ("i8", "u8", "i16", "u16", "i32", "u32")],
        case(_prim, "u32[2,3]", spec("u32[]", "below:9")),
        case(_prim, "u32[0]", spec("u32[0]", "below:9")),
    ]
for _prim in (c.PopulationCount(), c.Clz()):
    CASES += [
        *each(_prim, "i8", "u8", "i16", "i32", "u32", shape="30", domain="edges"),
        *each(_prim, "i32", shape=""),
    ]

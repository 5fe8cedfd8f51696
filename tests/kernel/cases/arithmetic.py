"""Cases of ``ops/arithmetic.py``."""

from __future__ import annotations

from cases import case, each, spec
from saem.ops.arithmetic import Add, Div, IntegerPow, Mul, Neg, Sub

NUMBERS = ("f32", "bf16", "f16", "i32", "u8", "c64")

CASES = [
    *each(Neg(), *NUMBERS),
    *each(Neg(), "f32", shape="0,3"),
    *each(Neg(), "f32", shape="15", domain="special"),
    *each(Neg(), "i8", shape="13", domain="edges"),
]
for _prim in (Add(), Sub(), Mul()):
    CASES += [
        *each(_prim, *NUMBERS, arity=2),
        *each(_prim, "f32", shape="", arity=2),
        *each(_prim, "f32", shape="3,0", arity=2),
        *each(_prim, "i8", "u32", shape="13", domain="edges", arity=2),
        *each(_prim, "f32", shape="15", domain="special", arity=2),
        case(_prim, "f32[2,3]", "f32[]"),
        case(_prim, "f32[]", "f32[2,3]"),
    ]
CASES += [
    *each(Div(), "f32", "bf16", "f16", "i32", "u8", "c64", domain="nonzero", arity=2),
    case(Div(), "f32[2,3]", spec("f32[]", "nonzero")),
    case(Div(), "f32[]", spec("f32[2,3]", "nonzero")),
    *each(Div(), "f32", shape="30", domain="special", arity=2),
    *each(Div(), "i8", "i32", "u32", shape="40", domain="edges", arity=2),
]
for _y in (2, 3, -1, -2, 7, 0, 1):
    CASES += each(IntegerPow(_y), "f32", "c64", domain="nonzero")
CASES += [
    *each(IntegerPow(3), "bf16", "i32", "u8"),
    *each(IntegerPow(2), "f32", shape=""),
    *each(IntegerPow(2), "f32", shape="0"),
    *each(IntegerPow(-3), "f32", shape="15", domain="special"),
]

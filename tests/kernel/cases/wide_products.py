"""Cases of the upper halves of products (``ops/arithmetic.py``)."""

from __future__ import annotations

from cases import case, each
from saem.ops.arithmetic import MulHi

CASES = [
    *each(MulHi(), "i8", "u8", "i16", "u16", "i32", "u32", shape="40", domain="edges", arity=2),
    *each(MulHi(), "i32", shape="", arity=2),
    *each(MulHi(), "u32", shape="0,2", arity=2),
    case(MulHi(), "i32[2,1]", "i32[1,3]"),
    case(MulHi(), "u32[2,3]", "u32[]"),
]

"""Cases of ``ops/sort.py``: one and several operands, ties, NaN and zeros of both signs."""

from __future__ import annotations

from cases import case, each, spec
from saem.ops.sort import Sort, TopK

TIES = [2.0, 1.0, 2.0, 1.0, 3.0]
ZEROS = [0.0, -0.0, float("nan"), -1.0, 0.0, -0.0, float("inf"), float("nan")]

CASES = [
    *each(Sort(0), "f32", "bf16", "f16", "i32", "u8", domain="distinct"),
    *each(Sort(1), "f32", "i8", domain="distinct"),
    case(Sort(0), "bool[5]"),
    case(Sort(1), spec("c64[2,4]", "distinct"), derivative_tolerance=1e-2),
    case(Sort(0), spec("f32[15]", "special")),
    case(Sort(0), spec("f32[8]", ZEROS), differentiable=False),
    case(Sort(0), "f32[0,3]"),
    case(Sort(0, True, 1), spec("f32[6]", "distinct"), "f32[6]", "i32[6]"),
    case(Sort(0, True, 2), spec("i32[5]", [2, 1, 2, 1, 3]), spec("f32[5]", "distinct")),
    case(Sort(0, True, 1), spec("f32[5]", TIES), "i32[5]", differentiable=False),
    case(Sort(1, False, 1), spec("f32[2,5]", "distinct")),
    case(TopK(2, 0), spec("f32[5]", "distinct")),
    case(TopK(3, 1), spec("f32[2,5]", "distinct")),
    case(TopK(2, 0), spec("f32[4,3]", "distinct")),
    case(TopK(0, 0), "f32[4]"),
    case(TopK(2, 0), spec("bf16[5]", "distinct")),
    case(TopK(2, 1), spec("i32[2,5]", "distinct")),
    case(TopK(2, 0), "u8[6]"),
    case(TopK(2, 0), "bool[6]"),
    case(TopK(3, 0), spec("f32[5]", TIES), differentiable=False),
    case(TopK(15, 0), spec("f32[15]", "special")),
]

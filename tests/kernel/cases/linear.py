"""Cases of ``ops/linear.py``: stretching, summing, permuting, adding cotangents."""

from __future__ import annotations

from cases import case, each
from saem.ops.linear import AddAny, BroadcastInDim, ReduceSum, Transpose

CASES = [
    case(BroadcastInDim((2, 3)), "f32[]"),
    case(BroadcastInDim((2, 3), (1,)), "f32[3]"),
    case(BroadcastInDim((2, 3), (0, 1)), "f32[2,1]"),
    case(BroadcastInDim((4, 2, 3), (0, 2)), "bf16[1,3]"),
    case(BroadcastInDim((2, 0), (1,)), "f32[0]"),
    case(BroadcastInDim((2, 3), (1,)), "i32[3]"),
    case(BroadcastInDim((2, 3), (0,)), "bool[2]"),
    case(BroadcastInDim((2, 3), (0,)), "c64[2]"),
    *each(ReduceSum((0,)), "f32", "bf16", "f16", "i32", "u8", "c64"),
    *each(ReduceSum((1,)), "f32"),
    *each(ReduceSum((0, 2)), "f32", shape="2,3,4"),
    *each(ReduceSum((0,)), "f32", "i32", shape="0,3"),
    case(ReduceSum((0, 1)), "f32[2,3]"),
    *each(Transpose((1, 0)), "f32", "bf16", "i8", "bool", "c64", shape="2,3"),
    *each(Transpose((2, 0, 1)), "f32", shape="2,3,4"),
    case(Transpose(()), "f32[]"),
    case(Transpose((1, 0)), "f32[0,3]"),
    *each(AddAny(), "f32", "bf16", "c64", shape="2,3", arity=2),
    *each(AddAny(), "f32", shape="", arity=2),
]

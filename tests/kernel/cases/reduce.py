"""Cases of ``ops/reduce.py``: extremes, products, bitwise folds, places of extremes."""

from __future__ import annotations

import numpy as np

from cases import case, each, spec
from saem.ops.reduce import (
    ArgMax,
    ArgMin,
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceXor,
)

I32, U8 = np.dtype("int32"), np.dtype("uint8")
REALS = ("f32", "bf16", "f16", "i32", "i8", "u32")
TIES = [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]


def extremum(make):
    return [
        *each(make((1,)), *REALS, domain="distinct"),
        *each(make((0,)), "i8", "u8", domain="edges"),
        case(make((0, 2)), spec("f32[2,3,4]", "distinct")),
        case(make((1,)), spec("f32[4,5]", "special")),
        case(make((0,)), "bool[3,4]"),
        case(make((0,)), spec("c64[3,4]", "distinct"), differentiable=False),
        case(make((0,)), "f32[0,3]", differentiable=False),
        case(make((0,)), "i32[0,3]"),
        case(make((1,)), spec("f32[2,3]", TIES), differentiable=False),
    ]


def place(make):
    return [
        *each(make((1,), I32), *REALS, "bool", domain="distinct"),
        case(make((0,), U8), spec("f32[3,4]", "distinct")),
        case(make((1,), I32), spec("f32[4,5]", "special")),
        case(make((1,), I32), spec("f32[2,3]", TIES)),
        case(make((1,), I32), spec("i32[2,3]", TIES)),
    ]


CASES = [
    *extremum(ReduceMax),
    *extremum(ReduceMin),
    *place(ArgMax),
    *place(ArgMin),
    *each(ReduceProd((1,)), "f32", "bf16", "f16", "i32", "c64"),
    case(ReduceProd((0, 2)), spec("f32[3,2,2]", "nonzero")),
    case(ReduceProd((0,)), "f32[5]"),
    case(ReduceProd((0,)), spec("f32[4]", [0.0, 2.0, 0.0, 3.0])),
    case(ReduceProd((0,)), spec("f32[4]", [0.0, 2.0, 5.0, 3.0])),
    case(ReduceProd((0,)), "f32[0,3]"),
    case(ReduceProd((0,)), "f32[1,3]"),
    *(case(make((1,)), spec(f"{d}[3,4]", "edges" if d != "bool" else "any"))
      for make in (ReduceAnd, ReduceOr, ReduceXor) for d in ("bool", "i32", "u8")),
    *(case(make((0,)), f"{d}[0,2]")
      for make in (ReduceAnd, ReduceOr, ReduceXor) for d in ("bool", "i32", "u8")),
]

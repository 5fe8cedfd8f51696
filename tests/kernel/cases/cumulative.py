"""Cases of ``ops/cumulative.py``: partial folds from either end."""

from __future__ import annotations

from cases import case, each, spec
from saem.ops.cumulative import CumLogSumExp, CumMax, CumMin, CumProd, CumSum

CASES = [
    *each(CumSum(1), "f32", "bf16", "f16", "i32", "u8", "c64"),
    *each(CumSum(0, True), "f32", "i32"),
    *each(CumProd(1), "f32", "bf16", "i32", "c64"),
    *each(CumProd(0, True), "f32", shape="7"),
    case(CumProd(0), spec("f32[5]", [2.0, 0.0, 3.0, 0.0, 1.0])),
    *(case(make(axis, reverse), spec(f"{d}[3,5]", "distinct"))
      for make in (CumMax, CumMin)
      for d, axis, reverse in (("f32", 1, False), ("f32", 0, True), ("bf16", 1, False),
                               ("i32", 1, True), ("u8", 0, False))),
    *(case(make(0), spec("c64[5]", "distinct"), differentiable=False) for make in (CumMax, CumMin)),
    *(case(make(0), spec("f32[4]", [1.0, 3.0, 3.0, 2.0]), differentiable=False)
      for make in (CumMax, CumMin)),
    *each(CumLogSumExp(1), "f32", "bf16", "f16", "c64"),
    *each(CumLogSumExp(0, True), "f32", shape="6"),
    case(CumLogSumExp(0), spec("f32[4]", [float("-inf"), float("-inf"), 1.0, 2.0]),
         differentiable=False),
    *(each(make(0), "f32", shape=shape)[0]
      for make in (CumSum, CumProd, CumMax, CumMin, CumLogSumExp) for shape in ("0,3", "1")),
]

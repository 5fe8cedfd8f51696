"""Cases of ``ops/contract.py``: matrix products of every layout and dtype."""

from __future__ import annotations

import numpy as np

from cases import case
from saem.ops.contract import DotGeneral, Precision
from saem.ops.dot_algorithms import DotAlgorithmPreset

MATMUL = (((1,), (0,)), ((), ()))
BATCHED = (((2,), (1,)), ((0,), (0,)))
TWISTED = (((3, 0), (1, 2)), ((2,), (3,)))
F32, I32 = np.dtype("float32"), np.dtype("int32")

CASES = [
    *(case(DotGeneral(MATMUL), f"{d}[3,4]", f"{d}[4,2]")
      for d in ("f32", "bf16", "f16", "i32", "i8", "u8", "bool", "c64")),
    case(DotGeneral(MATMUL, None, F32), "bf16[3,4]", "bf16[4,2]"),
    case(DotGeneral(MATMUL, None, I32), "i8[3,4]", "i8[4,2]"),
    case(DotGeneral(MATMUL, None, F32), "i8[3,4]", "i8[4,2]"),
    case(DotGeneral(MATMUL, None, I32), "f32[3,4]", "f32[4,2]"),
    case(DotGeneral(MATMUL), "i8[3,4]", "f32[4,2]"),
    case(DotGeneral(MATMUL), "bf16[3,4]", "f32[4,2]", derivative_tolerance=3e-2),
    case(DotGeneral(MATMUL, (Precision.HIGHEST, Precision.HIGH)), "f32[3,4]", "f32[4,2]"),
    case(DotGeneral(MATMUL, DotAlgorithmPreset.F32_F32_F32), "f32[3,4]", "f32[4,2]"),
    case(DotGeneral(MATMUL, DotAlgorithmPreset.BF16_BF16_F32), "f32[3,4]", "f32[4,2]",
         tolerance=2e-2),
    case(DotGeneral(BATCHED), "f32[2,3,4]", "f32[2,4,5]"),
    case(DotGeneral(TWISTED), "f32[2,3,4,5]", "f32[6,5,2,4]", derivative_tolerance=1e-2),
    case(DotGeneral((((), ()), ((), ()))), "f32[2]", "f32[3]"),
    case(DotGeneral((((), ()), ((), ()))), "f32[]", "f32[3]"),
    case(DotGeneral((((0,), (0,)), ((), ()))), "f32[3]", "f32[3]"),
    case(DotGeneral((((1,), (0,)), ((), ()))), "f32[3,4]", "f32[4]"),
    case(DotGeneral((((), ()), ((0,), (0,)))), "f32[3]", "f32[3]"),
    case(DotGeneral(MATMUL), "f32[3,0]", "f32[0,2]"),
    case(DotGeneral(MATMUL), "f32[0,3]", "f32[3,2]"),
]

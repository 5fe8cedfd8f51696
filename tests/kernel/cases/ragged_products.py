"""Cases of ``linalg/ragged_products.py`` and ``linalg/scaled_products.py``."""

from __future__ import annotations

import numpy as np

from cases import case, spec
from saem.linalg.ragged_products import RaggedDotDimensionNumbers, RaggedDotGeneral
from saem.linalg.scaled_products import BFLOAT16, ScaledDot

BOTH = (0, 1)  # sizes of groups are integers


def ragged(contract, batch, axis, groups, *options):
    return RaggedDotGeneral(
        RaggedDotDimensionNumbers((contract, batch), (axis,), groups), *options)


NONE = ((), ())
ROWS = ragged(((1,), (1,)), NONE, 0, (0,))
SUMS = ragged(((0,), (0,)), NONE, 0, ())
EXAMPLES = ragged(((2,), (1,)), ((0,), (0,)), 0, ())
# Axes in all orders, and sizes that differ along batch and free axes.
TWISTED = ragged(((0,), (3,)), ((2,), (1,)), 3, (2,))
TWISTED_SUMS = ragged(((3, 1), (0, 2)), ((2,), (1,)), 1, ())
SIZES, MORE = spec("i32[3]", [2, 0, 3]), spec("i32[2]", [1, 2])
F32 = np.dtype("float32")
SCALED = ScaledDot((((1,), (0,)), ((), ())), F32)
SCALED_BATCH = ScaledDot((((2,), (1,)), ((0,), (0,))), BFLOAT16)

CASES = [
    *(case(ROWS, f"{d}[5,2]", f"{d}[3,2,4]", SIZES, wrt=BOTH, **(
        {"derivative_tolerance": 3e-2} if d == "bf16" else {}))
      for d in ("f32", "bf16", "i32", "c64")),
    case(ROWS, "bf16[5,2]", "f32[3,2,4]", SIZES, wrt=BOTH, derivative_tolerance=3e-2),
    case(ROWS, "f32[7,2]", "f32[3,2,4]", spec("u8[3]", [2, 0, 3]), wrt=BOTH),  # rows in no group
    case(ROWS, "f32[4,2]", "f32[2,2,3]", spec("i32[2]", [3, 9]), wrt=BOTH),  # more than there are
    case(ragged(((1,), (1,)), NONE, 0, (0,), None, F32), "bf16[5,2]", "bf16[3,2,4]", SIZES,
         wrt=BOTH, derivative_tolerance=3e-2),
    case(SUMS, "f32[5,2]", "f32[5,4]", SIZES, wrt=BOTH),
    case(EXAMPLES, "f32[3,2,4]", "f32[3,4,5]", MORE, wrt=BOTH),
    case(TWISTED, "f32[4,2,3,5]", "f32[2,3,3,4]", SIZES, wrt=BOTH),
    case(TWISTED, "f32[4,2,3,5]", "f32[2,3,3,4]", spec("i32[3,2,3]", "below:3"), wrt=BOTH),
    case(TWISTED_SUMS, "f32[2,4,3,5]", "f32[5,3,4]", MORE, wrt=BOTH, derivative_tolerance=1e-2),
    case(TWISTED_SUMS, "f32[2,4,3,5]", "f32[5,3,4]", spec("i32[3,5,2]", "below:3"), wrt=BOTH,
         derivative_tolerance=1e-2),
    case(SCALED, "f32[2,6]", "f32[6,3]", spec("f32[2,3]", "positive"), "f32[2,3]",
         differentiable=False, tolerance=1e-2),  # XLA need not round scaled operands to bfloat16
    case(SCALED, "f8_e4m3fn[2,4]", "f8_e4m3fn[4,3]", spec("f8_e8m0fnu[2,2]", "positive"),
         spec("f8_e8m0fnu[1,3]", "positive"), differentiable=False),
    case(SCALED_BATCH, "bf16[2,3,4]", "f32[2,4,5]", "bf16[2,3,1]", "f32[2,2,5]",
         differentiable=False),
]

"""Cases of ``signal/convolve.py`` and ``ops/approx_top_k.py``: axes, gaps, steps, dtypes."""

from __future__ import annotations

import numpy as np

from cases import case, spec
from saem.ops.approx_top_k import ApproxTopK
from saem.ops.contract import Precision
from saem.signal.convolution_shapes import ConvDimensionNumbers
from saem.signal.convolve import ConvGeneralDilated

PLAIN = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
IMAGES = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
MIXED = ConvDimensionNumbers((2, 0, 3, 1), (1, 3, 0, 2), (3, 1, 2, 0))


def conv(strides=(1,), padding=((0, 0),), left=(1,), right=(1,), numbers=PLAIN, features=1,
         examples=1, precision=None, preferred=None):
    return ConvGeneralDilated(strides, padding, left, right, numbers, features, examples,
                              precision, preferred)


F32 = np.dtype("float32")
LOOSE = {"derivative_tolerance": 5e-3}

CASES = [
    case(conv(), "f32[2,3,5]", "f32[4,3,2]", **LOOSE),
    case(conv((2,), ((1, 2),)), "f32[1,2,5]", "f32[3,2,2]", **LOOSE),
    case(conv((2,), ((1, 2),), (3,), (2,)), "f32[1,2,4]", "f32[2,2,3]", **LOOSE),
    case(conv((3,), ((-1, 1),)), "f32[1,1,6]", "f32[1,1,2]", **LOOSE),
    case(conv((1,), ((0, 0),)), "f32[1,1,2]", "f32[1,1,4]"),
    case(conv((), (), (), (), ConvDimensionNumbers((0, 1), (0, 1), (0, 1))), "f32[2,3]",
         "f32[4,3]"),
    case(conv((1, 2), ((1, 0), (0, 1)), (1, 1), (1, 2), IMAGES), "f32[2,4,5,3]", "f32[2,2,3,4]",
         **LOOSE),
    case(conv((2, 1), ((0, 1), (1, 1)), (2, 1), (1, 1), MIXED), "f32[2,4,2,3]", "f32[2,4,3,2]",
         **LOOSE),
    case(conv(features=2), "f32[2,4,5]", "f32[6,2,2]", **LOOSE),
    case(conv((2,), ((1, 1),), features=4), "f32[1,4,5]", "f32[8,1,3]", **LOOSE),
    case(conv(examples=2), "f32[4,3,5]", "f32[6,3,2]", **LOOSE),
    case(conv((1, 1), ((0, 0), (1, 1)), (1, 1), (1, 1), IMAGES, features=3), "f32[1,3,3,3]",
         "f32[2,2,1,6]", **LOOSE),
    case(conv(precision=(Precision.HIGHEST, Precision.HIGHEST)), "f32[1,2,4]", "f32[1,2,2]"),
    case(conv(), "c64[1,2,4]", "c64[2,2,2]", **LOOSE),
    case(conv(), "bf16[1,2,4]", "bf16[2,2,2]"),
    case(conv(preferred=F32), "bf16[1,2,4]", "bf16[2,2,2]", derivative_tolerance=3e-2),
    case(conv(), "i32[1,2,4]", "i32[2,2,2]"),
    case(conv(), "bool[1,2,4]", "bool[2,2,2]"),
    case(conv(), "f32[0,2,4]", "f32[2,2,2]"),
    case(conv(), "f32[1,0,4]", "f32[2,0,2]"),
    *(case(ApproxTopK(2, axis, 0.95, is_max, -1, whole), spec("f32[4,5]", "distinct"))
      for axis in (0, -1) for is_max in (True, False) for whole in (True, False)),
    case(ApproxTopK(1, 0, 0.5, True, -1, True), spec("bf16[4]", "distinct")),
]

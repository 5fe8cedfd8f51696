"""Cases of ``ops/slicing.py`` and ``dynamic_slicing.py``.  Starts also lie outside of the array."""

from __future__ import annotations

import numpy as np

from cases import case, each, spec
from saem.ops.dynamic_slicing import DynamicSlice, DynamicUpdateSlice
from saem.ops.slicing import Pad, Slice

DTYPES = ("f32", "bf16", "i32", "u8", "bool", "c64")
ANYWHERE = "any"  # integers from -9 to 9

CASES = [
    *each(Slice((1, 0), (3, 2)), *DTYPES),
    *each(Slice((0, 1), (3, 4), (2, 2)), "f32", "i32"),
    *each(Slice((0, 1), (3, 4), (5, 1)), "f32"),
    *each(Slice((1, 1), (1, 3)), "f32"),
    *each(Slice((2, 1), (2, 4), (1, 2)), "f32"),
    *each(Slice((), ()), "f32", shape=""),
    *each(Slice((0,), (0,)), "f32", shape="0"),
    *[case(Pad(((1, 2, 0), (0, 1, 2))), f"{d}[3,4]", f"{d}[]") for d in DTYPES],
    *[case(Pad(config), "f32[3,4]", "f32[]") for config in (
        ((0, 0, 0), (0, 0, 0)), ((-1, 0, 0), (0, -2, 0)), ((-1, -1, 1), (2, -3, 2)),
        ((-2, 3, 1), (-1, -1, 0)), ((-3, 0, 0), (0, -4, 0)), ((4, -5, 3), (-5, 2, 1)))],
    case(Pad(()), "f32[]", "f32[]"),
    case(Pad(((2, 1, 3),)), "f32[0]", "f32[]"),
    case(Pad(((0, 0, 0), (1, 1, 0))), "f32[0,2]", "f32[]"),
    *[case(DynamicSlice((2, 3)), f"{d}[3,4]", spec("i32[]", ANYWHERE), spec("i32[]", ANYWHERE))
      for d in DTYPES],
    *[case(DynamicSlice((1, 4)), "f32[3,4]", spec(f"{i}[]", start), spec(f"{i}[]", "below:2"))
      for i, start in (("i32", "below:3"), ("u8", "below:9"), ("i8", ANYWHERE))],
    case(DynamicSlice((2,)), "f32[5]", spec("i32[]", np.int32(2**31 - 1))),
    case(DynamicSlice((2,)), "f32[5]", spec("u32[]", np.uint32(2**32 - 1))),
    case(DynamicSlice((0, 2)), "f32[3,4]", "i32[]", "i32[]"),
    case(DynamicSlice((0,)), "f32[0]", "i32[]"),
    case(DynamicSlice(()), "f32[]"),
    *[case(DynamicUpdateSlice(), f"{d}[3,4]", f"{d}[2,3]", spec("i32[]", ANYWHERE),
           spec("i32[]", ANYWHERE)) for d in DTYPES],
    case(DynamicUpdateSlice(), "f32[5]", "f32[2]", spec("u8[]", "below:9")),
    case(DynamicUpdateSlice(), "f32[3,4]", "f32[3,4]", "i32[]", "i32[]"),
    case(DynamicUpdateSlice(), "f32[3,4]", "f32[0,2]", "i32[]", "i32[]"),
    case(DynamicUpdateSlice(), "f32[0]", "f32[0]", "i32[]"),
    case(DynamicUpdateSlice(), "f32[]", "f32[]"),
]

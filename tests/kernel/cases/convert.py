"""Cases of ``ops/convert.py``: dtypes, bits, precision."""

from __future__ import annotations

import numpy as np

from cases import case, dtype_of, each, spec
from saem.ops.convert import BitcastConvertType, ConvertElementType, Copy, ReducePrecision

NAMES = ("f32", "bf16", "f16", "i32", "u8", "i8", "bool", "c64")

CASES = [case(ConvertElementType(dtype_of(new)), f"{old}[3,4]")
         for new in NAMES for old in NAMES]
for _new in NAMES:
    CASES += [
        *each(ConvertElementType(dtype_of(_new)), "f32", "bf16", shape="15", domain="special"),
        *each(ConvertElementType(dtype_of(_new)), "i32", "u32", shape="13", domain="edges"),
    ]
CASES += [
    case(ConvertElementType(dtype_of("i32")),
         spec("f32[6]", [3e9, -3e9, 2147483520.0, 1e30, -0.9, 255.5])),
    case(ConvertElementType(dtype_of("u8")), spec("f32[6]", [3e9, -3.0, 255.5, 256.0, -0.9, 1.9])),
    case(ConvertElementType(dtype_of("i8")), spec("f32[6]", [127.5, -128.9, -129.0, 0.5, 1, 300])),
    case(ConvertElementType(dtype_of("f16")), spec("f32[4]", [1e6, -1e6, 65519.0, 1e-3]),
         differentiable=False),
    case(ConvertElementType(dtype_of("f8_e4m3fn")), "f32[3,4]", differentiable=False),
    case(ConvertElementType(dtype_of("f32")), "f8_e4m3fn[3,4]", differentiable=False),
    case(ConvertElementType(np.dtype("float32"), weak_type=True), "f32[]"),
    case(ConvertElementType(np.dtype("int32")), "f32[0]"),
    *[case(BitcastConvertType(dtype_of(new)), f"{old}[3,4]") for old, new in (
        ("f32", "i32"), ("i32", "f32"), ("f32", "u32"), ("bf16", "u16"), ("f16", "i16"),
        ("f32", "u8"), ("u32", "u16"), ("u8", "u32"), ("u8", "i8"), ("bf16", "u8"))],
    *[case(BitcastConvertType(dtype_of(d)), f"{d}[3,4]", differentiable=False)
      for d in ("f32", "c64")],
    case(BitcastConvertType(dtype_of("u8")), "f32[]"),
    case(BitcastConvertType(dtype_of("u32")), "u8[4]"),
    case(BitcastConvertType(dtype_of("u32")), "f32[0,2]"),
    *[case(ReducePrecision(e, m), f"{d}[40]", differentiable=False)
      for e, m in ((5, 10), (8, 7), (4, 3), (3, 1), (8, 0)) for d in ("f32", "bf16", "f16")],
    case(ReducePrecision(8, 23), "f32[3,4]", derivative_tolerance=0.05),
    case(ReducePrecision(5, 10), spec("f32[60]", "special")),
    case(ReducePrecision(4, 0), spec("f32[60]", "special"), differentiable=False),
    case(ReducePrecision(5, 10), spec("f32[6]", [65519.0, 65520.0, 1e-5, 6.1e-5, -7e4, 1e-9]),
         differentiable=False),
    case(ReducePrecision(5, 3), "f32[]", differentiable=False),
    *each(Copy(), "f32", "bf16", "i32", "bool", "c64"),
    *each(Copy(), "f32", shape=""),
    *each(Copy(), "f32", shape="0,3"),
]

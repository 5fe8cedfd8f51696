"""Cases of ``ops/numbers.py``: rounding, order, powers, complex numbers."""

from __future__ import annotations

import numpy as np

from cases import case, each, spec
from saem.ops import numbers as n

FLOATS = ("f32", "bf16", "f16")
EVEN, AWAY = n.RoundingMethod.TO_NEAREST_EVEN, n.RoundingMethod.AWAY_FROM_ZERO
# No zeros of both signs: which of them max and min return is not specified.
LEFT = (np.nan, 1, np.inf, -np.inf, 2, np.nan)
RIGHT = (1, np.nan, 3, -np.inf, np.inf, np.nan)

CASES = [
    *each(n.Sign(), *FLOATS, "i32", "u8", domain="nonzero"),
    *each(n.Sign(), "c64", domain="nonzero", differentiable=False),
    *each(n.Sign(), "i8", "u32", shape="13", domain="edges"),
    *each(n.Abs(), *FLOATS, "i32", "i8", "c64", domain="nonzero"),
    *each(n.Abs(), "i8", shape="13", domain="edges"),
    *each(n.Abs(), "c64", shape="3", domain=0.0, differentiable=False),
    *each(n.Real(), "c64"), *each(n.Imag(), "c64"),
    *each(n.Real(), "c64", shape=""), *each(n.Imag(), "c64", shape="0"),
    *each(n.Conj(np.dtype("complex64")), "c64"),
    *each(n.Conj(np.dtype("float32")), "f32"),
    *each(n.Conj(np.dtype("float32")), "f32", shape=""),
    *each(n.Complex(), "f32", arity=2), *each(n.Complex(), "f32", shape="0", arity=2),
    case(n.Complex(), "f32[3]", "f32[]"), case(n.Complex(), "f32[]", "f32[3]"),
    case(n.Complex(), "f32[2,1]", "f32[1,3]"),
]
for _prim in (n.Floor(), n.Ceil(), n.Round(EVEN), n.Round(AWAY), n.IsFinite(), n.Sign(), n.Abs()):
    CASES += [
        *each(_prim, "f32", "bf16", "f16", shape="30", domain="special"),
        *each(_prim, "f32", shape="", domain="non-integer"),
        *each(_prim, "f32", shape="0,2"),
    ]
for _prim in (n.Floor(), n.Ceil(), n.Round(EVEN), n.Round(AWAY), n.IsFinite()):
    CASES += each(_prim, *FLOATS, domain="non-integer")
for _prim in (n.Max(), n.Min()):
    CASES += [
        *each(_prim, *FLOATS, "i32", "u8", "bool", "c64", arity=2),
        *each(_prim, "i8", "u32", shape="40", domain="edges", arity=2),
        *each(_prim, "f32", shape="", arity=2), *each(_prim, "i32", shape="0", arity=2),
        case(_prim, "f32[2,3]", "f32[]"), case(_prim, "f32[]", "f32[2,3]"),
        case(_prim, "f32[2,1]", "f32[1,3]"),
        case(_prim, spec("f32[6]", LEFT), spec("f32[6]", RIGHT), differentiable=False,
             batchable=False),
    ]
CASES += [
    *each(n.Rem(), *FLOATS, "i32", "u8", domain="nonzero", arity=2),
    *each(n.Rem(), "i8", "i32", "u32", shape="60", domain="edges", arity=2),
    *each(n.Rem(), "f32", shape="60", domain="special", arity=2),
    case(n.Rem(), "f32[5]", spec("f32[]", "nonzero")),
    *each(n.Rem(), "f32", shape="", domain="nonzero", arity=2),
    *[case(n.Pow(), spec(f"{d}[3,4]", "positive"), f"{d}[3,4]") for d in (*FLOATS, "c64")],
    case(n.Pow(), spec("f32[3,4]", "nonzero"), "i32[3,4]", tolerance=1e-3),
    case(n.Pow(), spec("c64[3,4]", "nonzero"), spec("i32[3,4]", "below:4"), tolerance=1e-3),
    case(n.Pow(), spec("f32[5]", "positive"), "f32[]"),
    case(n.Pow(), spec("f32[]", "positive"), "f32[5]"),
    case(n.Pow(), spec("f32[5]", "nonzero"), spec("i32[]", 3)),
    case(n.Pow(), spec("f32[5]", "nonzero"), spec("u8[]", 2)),
    case(n.Pow(), spec("f32[]", 0.0), spec("i32[]", 0), batchable=False),
    case(n.Pow(), spec("f32[0]", "positive"), "f32[0]"),
    *each(n.Pow(), "f32", shape="60", domain="special", arity=2),
    *each(n.Atan2(), *FLOATS, domain="nonzero", arity=2),
    *each(n.Atan2(), "c64", domain="positive", arity=2),
    *each(n.Atan2(), "f32", shape="60", domain="special", arity=2),
    case(n.Atan2(), spec("f32[2,3]", "nonzero"), spec("f32[]", "nonzero")),
    case(n.Atan2(), "f32[0]", "f32[0]"),
    *each(n.Nextafter(), *FLOATS, domain="nonzero", arity=2, differentiable=False),
    *each(n.Nextafter(), "f32", shape="", domain="nonzero", arity=2, differentiable=False),
    case(n.Nextafter(), spec("f32[4]", "nonzero"), "f32[]", differentiable=False),
]

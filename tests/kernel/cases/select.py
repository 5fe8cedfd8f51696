"""Cases of ``ops/select.py``: choosing and limiting."""

from __future__ import annotations

from cases import case, spec
from saem.ops.select import Clamp, SelectN


def _above(rng, shape):
    return rng.uniform(0.5, 1.0, shape)


def _below(rng, shape):
    return -_above(rng, shape)


CASES = [
    *[case(SelectN(), "bool[3,4]", f"{d}[3,4]", f"{d}[3,4]")
      for d in ("f32", "bf16", "f16", "i32", "u8", "bool", "c64")],
    case(SelectN(), "bool[]", "f32[3,4]", "f32[3,4]"),
    case(SelectN(), "bool[]", "f32[]", "f32[]"),
    case(SelectN(), "bool[0,3]", "f32[0,3]", "f32[0,3]"),
    case(SelectN(), spec("i32[3,4]", "below:3"), "f32[3,4]", "f32[3,4]", "f32[3,4]"),
    case(SelectN(), spec("i32[3,4]", "any"), "f32[3,4]", "f32[3,4]", "f32[3,4]"),
    case(SelectN(), spec("u8[]", "below:3"), "f32[2]", "f32[2]", "f32[2]"),
    case(SelectN(), spec("i32[5]", "below:1"), "f32[5]"),
    *[case(Clamp(), spec(f"{d}[]", -1), f"{d}[3,4]", spec(f"{d}[]", 1))
      for d in ("f32", "bf16", "f16", "i32")],
    case(Clamp(), spec("f32[3,4]", _below), spec("f32[3,4]", "distinct"), spec("f32[3,4]", _above)),
    case(Clamp(), *[spec("f32[3,4]", "distinct")] * 3, differentiable=False),
    case(Clamp(), spec("f32[]", -2.0), spec("f32[5]", "distinct"), spec("f32[5]", _above)),
    case(Clamp(), *[spec("f32[40]", "special")] * 3),
    case(Clamp(), *[spec("u8[30]", "edges")] * 3),
    case(Clamp(), "bool[12]", "bool[12]", "bool[12]"),
    case(Clamp(), "bool[]", "bool[3,4]", "bool[]"),
    case(Clamp(), spec("f32[]", _below), "f32[]", spec("f32[]", _above)),
    case(Clamp(), spec("f32[]", _below), "f32[0]", spec("f32[]", _above)),
]

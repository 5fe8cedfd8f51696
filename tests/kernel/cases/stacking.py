"""Cases of ``ops/stacking.py``."""

from __future__ import annotations

from cases import case, each
from saem.ops.stacking import Stack, Unstack

CASES = [
    *each(Stack(1), "f32", "bf16", "i32", "bool", "c64", arity=2),
    *(case(Stack(axis), "f32[2,3]", "f32[2,3]", "f32[2,3]") for axis in (0, 1, 2)),
    case(Stack(0), "f32[]", "f32[]"),
    case(Stack(0), "f32[0,2]"),
    *each(Unstack(1), "f32", "bf16", "i32", "bool", "c64"),
    *(case(Unstack(axis), "f32[2,3,4]") for axis in (0, 1, 2)),
    case(Unstack(0), "f32[3]"),
]

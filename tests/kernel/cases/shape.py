"""Cases of ``ops/shape.py``: where elements stand."""

from __future__ import annotations

import numpy as np

from cases import case, each
from saem.ops import filling
from saem.ops import shape as s

DTYPES = ("f32", "bf16", "i32", "u8", "bool", "c64")

CASES = [
    *each(s.Reshape((4, 3)), *DTYPES),
    *each(s.Reshape((2, 6)), "f32", shape="3,2,2"),
    *each(s.Reshape((1, 1)), "f32", shape=""),
    *each(s.Reshape(()), "f32", "bool", shape="1,1"),
    *each(s.Reshape((3, 0)), "f32", shape="0,2"),
    *each(s.Squeeze((1,)), *DTYPES, shape="3,1,2"),
    *each(s.Squeeze((0, 2)), "f32", shape="1,3,1"),
    *each(s.Squeeze((0, 1)), "f32", "bool", shape="1,1"),
    *each(s.Squeeze((1,)), "f32", shape="0,1"),
    *each(s.Concatenate(0), *DTYPES, arity=2),
    *each(s.Concatenate(1), "f32", arity=3),
    *each(s.Concatenate(0), "f32", arity=1),
    case(s.Concatenate(1), "f32[2,1]", "f32[2,3]"),
    case(s.Concatenate(1), "f32[2,0]", "f32[2,3]"),
    case(s.Concatenate(0), "f32[0]", "f32[0]"),
    case(s.Concatenate(1), "f32[1,1,2]", "f32[1,3,2]", "f32[1,2,2]"),
    *each(s.Split((1, 2), 0), *DTYPES, shape="3,4"),
    *each(s.Split((1, 0, 3), 1), "f32", shape="2,4"),
    *each(s.Split((4,), 1), "f32", shape="2,4"),
    *each(s.Split((0, 0), 0), "f32", shape="0,4"),
    *each(s.Rev((0,)), *DTYPES),
    *each(s.Rev((0, 2)), "f32", shape="2,3,4"),
    *each(s.Rev(()), "f32", shape=""),
    *each(s.Rev((0,)), "f32", shape="0,2"),
    *each(s.Tile((2, 3)), *DTYPES, shape="3,2"),
    *each(s.Tile((1, 0)), "f32", shape="3,2"),
    *each(s.Tile(()), "f32", shape=""),
    *each(s.Tile((2,)), "f32", shape="0"),
    *[case(filling.Iota(np.dtype(d), (3, 4), axis)) for d in
      ("int32", "uint8", "float32", "complex64", "int8") for axis in (0, 1)],
    case(filling.Iota(np.dtype("int32"), (0,), 0)),
    case(filling.Iota(np.dtype("float32"), (2, 0, 3), 2)),
]

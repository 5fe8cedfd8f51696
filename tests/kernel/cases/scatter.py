"""Cases of ``ops/scatter.py``: windows written, subtracted, multiplied, kept if extreme."""

from __future__ import annotations

import numpy as np

from cases import case, spec
from cases.gather import REALS, ROWS, Around, write_cases
from saem.ops.scatter import Scatter, ScatterMax, ScatterMin, ScatterMul, ScatterSub

ODD = [np.nan, 1.0, -np.inf, np.inf]

CASES = [
    *write_cases(Scatter, (*REALS, "c64", "bool"), unique=True),
    *write_cases(ScatterSub, (*REALS, "c64"), unique=True),
    # With repeated places, only the operand of scatter-mul has a derivative.
    *write_cases(ScatterMul, (*REALS, "c64"), differentiable=False, unique=True),
    *write_cases(ScatterMin, (*REALS, "bool"), domain="distinct", unique=True),
    *write_cases(ScatterMax, (*REALS, "bool"), domain="distinct", unique=True),
    *[case(kind(ROWS.as_scatter()), spec("f32[3,4]", ODD), spec("i32[4,1]", Around(3)),
           spec("f32[4,4]", ODD), differentiable=False) for kind in (ScatterMin, ScatterMax)],
]

"""Cases of ``control/checks.py``: a check that nothing takes out of its program."""

from __future__ import annotations

import numpy as np

from cases import case
from saem import tree
from saem.core.avals import ShapedArray
from saem.experimental.checkify.checks import (
          Check,
          Error,
          FailedCheckError,
          Kind,
          NaNError,
          Site,
          Slot,
)

_KIND = Kind(FailedCheckError, (ShapedArray((3,), np.dtype(np.float32)),))
_SITES = (Site(FailedCheckError, ("{}", tree.structure(((0,), {}))), None, True),
          Site(NaNError, "log", None, False))
_BOTH = tree.structure(Error({_KIND: Slot(0, 0, (0,)), Kind(NaNError): Slot(0, 0, ())}, _SITES))

CASES = [
    case(Check(tree.structure(Error({_KIND: Slot(0, 0, (0,))}, _SITES)), True),
         "bool[]", "i32[]", "f32[3]"),
    case(Check(_BOTH, True), "bool[]", "i32[]", "f32[3]", "bool[]", "i32[]"),
]

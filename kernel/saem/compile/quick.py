"""Which programs does XLA compile with its quick settings?

Small ones.  Of the two code generators of XLA's CPU compiler the older one takes half the time of
the one used by default, and what it makes of small programs runs as fast.  It is chosen only where
its code gives the same results to the last bit; else, and for loops and large arrays, XLA's full
settings are used.  Three things decide:

- Some operations are computed otherwise (``quick_code`` is False).
- A sum of floats over several axes (``folds_many``) is added in another order, and XLA may join
  folds over one axis to such a one.  In a program of arrays of one axis a fold has one order.
- Of a product and a sum that it goes into, XLA may round the sum alone, and each generator chooses
  where; so it does which of two NaNs an operation returns (``chooses_nan``).  A function of the
  library may state that both make the same choices in its program (``same_rounding``).

Read before: ``core.primitive``, ``compile.lowering``.  Read after: ``compile.executables``.
Invariant: the choice changes no bit of any result (tests/kernel/test_quick.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from saem import _jaxlib
from saem.core import config, dtypes
from saem.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, sub_jaxprs

# The border.  Measured on two cores: up to here a program compiles in 0.3 to 0.6 of the time, and
# runs in 0.9 to 1.1 of it; from 100,000 numbers on some programs (softmax, sin) run longer.
MOST_EQUATIONS = 100
MOST_NUMBERS = 16_384
FLOAT32 = np.dtype("float32")

# Where both code generators are known to round a function of the library in the same way.
SameRounding = bool | Literal["scalars"]


def quick_options(program: ClosedJaxpr | None, devices: Sequence[Any],
                  same_rounding: SameRounding = False) -> dict[str, Any]:
    """Return the compile options that ``program`` gets on ``devices``: quick ones, or none.

    ``same_rounding``: it is known that both generators round its products and sums the same way,
    and return the same NaNs; "scalars": where its results are scalars.
    """
    options = _jaxlib.QUICK_OPTIONS
    if not options or program is None or not config.shortcuts.value:
        return {}
    if len(devices) > 1 or devices[0].platform != "cpu":
        return {}
    if any(name in os.environ.get("XLA_FLAGS", "") for name in options):
        return {}  # the user has chosen
    found = Found()
    if not found.all_quick(program.jaxpr):
        return {}
    if found.folds and found.axes > 1:
        return {}
    if same_rounding == "scalars":
        same_rounding = not any(v.aval.shape for v in program.jaxpr.outvars)
    chooses = found.chooses_nan or (found.multiplies and found.adds)
    return {} if chooses and not same_rounding else options


class Found:
    """What is found in a program: how many equations, of arrays of how many axes, and whether it
    multiplies, adds and folds floats, or chooses between NaNs.
    """

    __slots__ = ("adds", "axes", "chooses_nan", "equations", "folds", "multiplies")

    def __init__(self) -> None:
        self.equations = self.axes = 0
        self.folds = self.multiplies = self.adds = self.chooses_nan = False

    def all_quick(self, jaxpr: Jaxpr) -> bool:
        """Look through ``jaxpr`` and the programs inside, up to an equation that is not quick.

        Returns whether there is none: each is small, and both generators give the same bits.
        """
        self.equations += len(jaxpr.eqns)
        if self.equations > MOST_EQUATIONS or not self.all_small(jaxpr.invars):
            return False
        for eqn in jaxpr.eqns:
            prim = eqn.operation
            if not prim.quick_code or not self.all_small(eqn.outvars):
                return False
            if any(v.aval.dtype == FLOAT32 for v in eqn.outvars):
                self.multiplies |= prim.multiplies
                self.adds |= prim.adds
                self.folds |= prim.folds_many
                self.chooses_nan |= prim.chooses_nan
            if not all(map(self.all_quick, programs_inside(eqn))):
                return False
        return True

    def all_small(self, variables: Iterable[Var]) -> bool:
        """Return whether all are arrays of few numbers, of dtypes whose arithmetic was compared."""
        for v in variables:
            if v.aval.size > MOST_NUMBERS or not generators_agree(v.aval.dtype):
                return False
            self.axes = max(self.axes, v.aval.ndim)
        return True


def programs_inside(eqn: Eqn) -> list[Jaxpr]:
    """Return the programs that are written for an equation, or are inside it."""
    prim = eqn.operation
    if prim.written_as is not None:
        return [prim.written_as(tuple([a.aval for a in eqn.invars])).jaxpr]
    if not prim.multiple_results:  # only others hold programs
        return []
    return [inner if isinstance(inner, Jaxpr) else inner.jaxpr for _, inner in sub_jaxprs(prim)]


def generators_agree(dtype: Any) -> bool:
    """Return whether both code generators compute the same bits in ``dtype``, as tests compare.

    They round intermediate results of complex numbers and of floats below 32 bits differently.
    Double precision is left out: it is rare at a prompt.
    """
    return dtypes.is_extended(dtype) or dtype.kind in "biu" or dtype == FLOAT32

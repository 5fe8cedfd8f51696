"""Which programs does XLA compile with its quick settings?

Small ones.  Of the two code generators of XLA's CPU compiler the older one takes half the time of
the one used by default, and what it makes of small programs runs as fast.  It is chosen only where
its code gives the same results to the last bit; else, and for loops and large arrays, XLA's full
settings are used.  Three things decide:

- Some operations are computed otherwise (``quick_code`` is False).
- Over several axes a sum of floats (``folds_many``) is added in another order, and XLA may join
  folds over one axis to such a one.
- Of a product and a sum that it goes into, XLA may round the sum alone.  Where two products meet in
  one sum, or one goes into several, each generator chooses otherwise.

Read before: ``core.primitive``, ``compile.lowering``.  Read after: ``compile.executables``.
Invariant: the choice changes no bit of any result (tests/kernel/test_quick.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.core import config, dtypes
from saem.core.avals import ShapedArray
from saem.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, sub_jaxprs

# The border.  Measured on two cores: up to here a program compiles in 0.3 to 0.6 of the time, and
# runs in 0.9 to 1.1 of it; from 100,000 numbers on some programs (softmax, sin) run longer.
MOST_EQUATIONS = 100
MOST_NUMBERS = 16_384
FLOAT32 = np.dtype("float32")


def quick_options(program: ClosedJaxpr | None, devices: Sequence[Any]) -> dict[str, Any]:
    """Return the compile options that ``program`` gets on ``devices``: quick ones, or none."""
    options = _jaxlib.QUICK_OPTIONS
    if not options or program is None or not config.shortcuts.value:
        return {}
    if len(devices) > 1 or devices[0].platform != "cpu":
        return {}
    if any(name in os.environ.get("XLA_FLAGS", "") for name in options):
        return {}  # the user has chosen
    return options if Count().all_quick(program.jaxpr) else {}


class Count:
    """How many equations a program has, and whether it multiplies and adds floats."""

    __slots__ = ("adds", "equations", "multiplies")

    def __init__(self) -> None:
        self.equations = 0
        self.multiplies = self.adds = False

    def all_quick(self, jaxpr: Jaxpr) -> bool:
        """Count the equations of ``jaxpr`` and of the programs inside, up to one that is not quick.

        Returns whether there is none: each is small, and both generators give the same bits.
        """
        self.equations += len(jaxpr.eqns)
        if self.equations > MOST_EQUATIONS or not all_small(v.aval for v in jaxpr.invars):
            return False
        for eqn in jaxpr.eqns:
            prim = eqn.operation
            if not prim.quick_code or not all_small(v.aval for v in eqn.outvars):
                return False
            if any(v.aval.dtype == FLOAT32 for v in eqn.outvars):
                self.multiplies |= prim.multiplies
                self.adds |= prim.adds
                if prim.folds_many or (self.multiplies and self.adds):
                    return False
            if not all(map(self.all_quick, programs_inside(eqn))):
                return False
        return True


def programs_inside(eqn: Eqn) -> list[Jaxpr]:
    """Return the programs that an equation stands for or holds."""
    prim = eqn.operation
    if prim.written_as is not None:
        return [prim.written_as(tuple([a.aval for a in eqn.invars])).jaxpr]
    if not prim.multiple_results:  # only others hold programs
        return []
    return [inner if isinstance(inner, Jaxpr) else inner.jaxpr for _, inner in sub_jaxprs(prim)]


def all_small(avals: Iterable[ShapedArray]) -> bool:
    """Return whether all are arrays of few numbers, of dtypes whose arithmetic was compared."""
    return all(aval.size <= MOST_NUMBERS and generators_agree(aval.dtype) for aval in avals)


def generators_agree(dtype: Any) -> bool:
    """Return whether both code generators compute the same bits in ``dtype``, as tests compare.

    They round intermediate results of complex numbers and of floats below 32 bits differently.
    Double precision is left out: it is rare at a prompt.
    """
    return dtypes.is_extended(dtype) or dtype.kind in "biu" or dtype == FLOAT32

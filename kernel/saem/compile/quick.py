"""Which programs does XLA compile with its quick settings?

Small ones.  Of the two code generators of XLA's CPU compiler the older one takes half the time of
the one used by default, and what it makes of small programs runs as fast.  It is chosen where its
code gives the same results to the last bit, which each primitive declares (``quick_code``) and
tests compare; else, and for loops and large arrays, XLA's full settings are used.  Over several
axes a sum of floats (``folds_many``) is added in another order, and XLA may join folds over one
axis to such a one, so programs with a fold are compiled in full.

Read before: ``core.primitive``, ``compile.lowering``.  Read after: ``compile.executables``.
Invariant: the choice changes no bit of what one operation gives (tests/kernel/test_quick.py).  In a
program of many products and sums a last bit may differ, in about one of 500 random ones: XLA may
round a product and the sum it goes into once instead of twice, where which of them is its choice.
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
    return options if room_left(program.jaxpr, MOST_EQUATIONS) >= 0 else {}


def room_left(jaxpr: Jaxpr, room: int) -> int:
    """Return ``room`` less the equations of ``jaxpr``; -1 if there are more, or any is not small.

    Equations of the programs inside count too.
    """
    if len(jaxpr.eqns) > room or not all_small(v.aval for v in jaxpr.invars):
        return -1
    for eqn in jaxpr.eqns:
        prim = eqn.operation
        if not prim.quick_code or not all_small(v.aval for v in eqn.outvars):
            return -1
        if prim.folds_many and eqn.outvars[0].aval.dtype.kind == "f":
            return -1
        room -= 1
        for inner in programs_inside(eqn):
            room = room_left(inner, room)
            if room < 0:
                return -1
    return room


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

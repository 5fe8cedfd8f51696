"""Which programs would XLA compile to wrong code, or to code that never ends?

On CPU XLA gives products and reductions to a library of kernels (YNNPACK), and joins a product with
the reduction that reads it.  In jaxlib 0.10.2 two kinds of such code are wrong:

- Of a product with some tens of thousands of columns, joined with a sum over its rows, a part of
  the results is wrong: ``jit(vmap(lambda x: (w @ x).sum()))`` of 40,001 examples.
- A reduction of an array with seven or more axes may end the process.

Such programs are compiled with ``_jaxlib.SOUND_OPTIONS``, which give only single products to the
library.

LAPACK works on a stack in parallel: a thread of XLA's pool gives the matrices to that pool, and
waits.  When as many stacks are worked on at once as there are threads, none of them ever ends:
twelve independent QR decompositions of stacks stop on two processors with jaxlib 0.10.2 (with 0.12
they ended).  Programs with several are compiled with ``_jaxlib.ORDERED_OPTIONS``, which work on one
after the other.

Read before: ``compile.quick``.  Read after: ``compile.executables``.
Invariant: programs without such products and arrays are compiled as XLA does by itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from saem import _jaxlib
from saem.core.jaxpr import ClosedJaxpr, Jaxpr, sub_jaxprs

# Half of the fewest columns with which wrong results were seen (float64), and the fewest axes with
# which the process ended.
MANY_COLUMNS = 8_192
MANY_AXES = 7


def sound_options(program: ClosedJaxpr | None, devices: Sequence[Any]) -> dict[str, Any]:
    """Return the compile options without which ``program`` might run wrong code, else none."""
    if program is None or devices[0].platform != "cpu":
        return {}
    found: dict[str, Any] = {}
    if _jaxlib.SOUND_OPTIONS and is_faulty(program.jaxpr):
        found |= _jaxlib.SOUND_OPTIONS
    if stacks_of_matrices(program.jaxpr) > 1:
        found |= _jaxlib.ORDERED_OPTIONS
    chosen = os.environ.get("XLA_FLAGS", "")  # by the user
    return {name: value for name, value in found.items() if name not in chosen}


def stacks_of_matrices(jaxpr: Jaxpr | ClosedJaxpr) -> int:
    """Return how many operations of ``jaxpr``, and of programs inside, work on several matrices."""
    count = 0
    for eqn in jaxpr.eqns:
        prim = eqn.operation
        if prim.takes_matrices:
            count += any(n != 1 for a in eqn.invars for n in a.aval.shape[:-2])
        elif prim.multiple_results:
            count += sum(stacks_of_matrices(inner) for _, inner in sub_jaxprs(prim))
    return count


def is_faulty(jaxpr: Jaxpr | ClosedJaxpr) -> bool:
    """Return whether XLA might make wrong code of ``jaxpr``, or of a program inside."""
    for eqn in jaxpr.eqns:
        prim = eqn.operation
        if any(len(a.aval.shape) >= MANY_AXES for a in eqn.invars):
            return True
        if prim.is_product and any(d > MANY_COLUMNS for d in eqn.outvars[0].aval.shape):
            return True
        if prim.multiple_results and any(is_faulty(inner) for _, inner in sub_jaxprs(prim)):
            return True
    return False

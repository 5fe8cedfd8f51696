"""Which programs would XLA compile to wrong code, and how are they compiled?

On CPU XLA hands products and reductions to a library of kernels (YNNPACK), and joins a product with
the reduction that reads it.  In jaxlib 0.10.2 two kinds of such code are wrong:

- Of a product with some tens of thousands of columns, joined with a sum over its rows, a part of
  the results is wrong: ``jit(vmap(lambda x: (w @ x).sum()))`` of 40,001 examples.
- A reduction of an array with seven or more axes may end the process.

Such programs are compiled with ``_jaxlib.SOUND_OPTIONS``, which hand single products alone to the
library.

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
    options = _jaxlib.SOUND_OPTIONS
    if not options or program is None or devices[0].platform != "cpu":
        return {}
    if any(name in os.environ.get("XLA_FLAGS", "") for name in options):
        return {}  # the user has chosen
    return options if is_faulty(program.jaxpr) else {}


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

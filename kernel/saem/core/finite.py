"""Which operation first gave a NaN or an infinity?

With ``debug_nans`` or ``debug_infs`` on, the results of every program are looked at.  When one is
not finite, the program is run again on NumPy, equation by equation and into loops and branches,
until an operation gives such a number: that one is named, at its line.

Read before: ``core.jaxpr`` (evaluate).  Read after: ``compile.dispatch``.
Invariant: without these settings nothing is looked at (tests/kernel/test_finite.py).
Source: the documentation of jax.debug_nans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import config, dtypes, errors, jaxpr
from saem.core.jaxpr import ClosedJaxpr, Eqn


class _Found(Exception):
    """An equation gave a number that is not finite."""

    def __init__(self, eqn: Eqn, kind: str):
        self.eqn = eqn
        self.kind = kind


def wanted() -> bool:
    """Return whether results are to be looked at."""
    return config.debug_nans.value or config.debug_infs.value


def blemish(x: Any) -> str:
    """Return 'nan' or 'inf' if ``x`` holds one and that is looked for, else an empty string."""
    if not dtypes.is_inexact(x.dtype):
        return ""
    values = np.asarray(x)
    if config.debug_nans.value and np.isnan(values).any():
        return "nan"
    return "inf" if config.debug_infs.value and np.isinf(values).any() else ""


def check(outs: Sequence[Any], closed: ClosedJaxpr, args: Sequence[Any], name: str) -> None:
    """Refuse results of ``closed``, called ``name``, on ``args`` that are not finite.

    Raises: FloatingPointError naming the operation and its line.
    """
    kind = next(filter(None, map(blemish, outs)), "")
    if not kind:
        return
    eqn = None
    try:
        with np.errstate(all="ignore"), jaxpr.watching(_look):
            jaxpr.evaluate(closed, *args)
        why = "Run again step by step, it gave none: the compiled program computes otherwise."
    except _Found as found:
        eqn, kind = found.eqn, found.kind
        why = f"It is inside `{name}`." if len(closed.eqns) > 1 else ""
    except Exception as error:  # an argument that was donated, a rule that needs other devices
        why = f"Which operation gave it is not known ({type(error).__name__})."
    where = eqn.position() if eqn is not None else None
    raise errors.explained(
        FloatingPointError, f"finite.{kind}",
        f"invalid value ({kind}) encountered in {name if eqn is None else eqn.operation.name}",
        where=where, advice=why)


def check_made(x: Any, name: str = "convert_element_type") -> Any:
    """Return ``x``, an array made of numbers of the user by the operation ``name``.

    Raises: FloatingPointError if it holds a number that is looked for.
    """
    kind = blemish(x)
    if kind:
        raise errors.explained(
            FloatingPointError, f"finite.{kind}",
            f"invalid value ({kind}) encountered in {name}",
            advice="The array is made of such numbers.")
    return x


def _look(eqn: Eqn, outs: Sequence[np.ndarray]) -> None:
    for out in outs:
        kind = blemish(out)
        if kind:
            raise _Found(eqn, kind)

"""How does one compute many derivatives along a line at once?  (``jax.experimental.jet``)

Read before: ``saem.experimental.jet.taylor``, which says how.
Invariant: the derivatives are those that ``jvp`` nested in itself gives along the curve
(tests/kernel/test_jet.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors, lazy, tree
from saem.core.avals import aval_of, is_array_like
from saem.core.frames import boundary
from saem.core.trace import concrete_or_none
from saem.experimental.jet.taylor import all_terms, factorials, has_tangent, jet_flat, scaled
from saem.ops.convert import convert, convert_element_type
from saem.ops.linear import broadcast_in_dim, zeros_of
from saem.transform.derivatives import as_array


@boundary
def jet(fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]],
        factorial_scaled: bool = True, **_: Any) -> tuple[Any, Any]:
    """Return ``fun`` of power series, as its value and the terms of the series that come out.

    Argument i is the series with the value ``primals[i]`` at zero and the terms ``series[i]``:
    derivatives by the variable of the series or, without ``factorial_scaled``, coefficients.  In
    the second result a list of terms stands for each leaf of the first.  An integer whose terms
    are not all zero becomes a float.

    Raises: ValueError for arguments that are no arrays, or series of different lengths.

    >>> from saem.experimental.jet import jet
    >>> out, (first, second) = jet(lambda x: x ** 3, (2.,), ((1., 0.),))
    >>> first, second
    (Array(12., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    """
    for number, (x, terms) in enumerate(zip(primals, series)):
        if not is_array_like(x):
            raise _refusal("jet.C1", f"primal value at position {number} is not an array")
        for place, term in enumerate(terms):
            if not is_array_like(term):
                raise _refusal(
                    "jet.C2", f"term {place} for argument {number} is not an array")
    lengths = {len(terms) for terms in series}
    if len(lengths) > 1:
        raise _refusal("jet.C3", "jet terms have inconsistent lengths for different arguments")
    order = lengths.pop() if lengths else 0
    scale = factorials(order) if factorial_scaled else [1.0] * order
    values = [moving(as_array(x), terms) for x, terms in zip(primals, series)]
    given = [[scaled(like(t, x), 1 / f) for t, f in zip(terms, scale)]
             if has_tangent(aval_of(x)) else None for x, terms in zip(values, series)]
    out_trees: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        outs, out_tree = tree.flatten(fun(*xs))
        out_trees.append(out_tree)
        return outs

    outs, found = jet_flat(flat, values, given, order)
    outs = [as_array(x) for x in outs]
    terms = [[as_array(scaled(t, f)) for t, f in zip(all_terms(x, s, order), scale)]
             if has_tangent(aval_of(x)) else [zeros(x, factorial_scaled)] * order
             for x, s in zip(outs, found)]
    return out_trees[0].unflatten(outs), out_trees[0].unflatten(terms)


def moving(x: Any, terms: Sequence[Any]) -> Any:
    """Return ``x`` in a dtype that has derivatives, unless all ``terms`` are known to be zero."""
    if has_tangent(aval_of(x)):
        return x
    known = [concrete_or_none(t) for t in terms]
    if all(t is not None and not np.any(t) for t in known):
        return x
    return convert(x, dtypes.default_dtype(float), aval_of(x).weak_type)


def like(term: Any, x: Any) -> Any:
    """Return ``term`` in the dtype of ``x``."""
    term = as_array(term)
    dtype = aval_of(x).to_tangent_aval().dtype
    return term if aval_of(term).dtype == dtype else convert_element_type(term, dtype)


def zeros(x: Any, scaled: bool) -> Any:
    """Return the terms of a number without derivative: of its type, of floats if ``scaled``."""
    aval = aval_of(x)
    return as_array(broadcast_in_dim(0.0, aval.shape, ()) if scaled else zeros_of(aval))


def _refusal(tag: str, sentence: str) -> Exception:
    return errors.explained(
        errors.ArgumentError, tag, f"{sentence}.", advice="Pass one array and one list of terms "
        "for each argument: jet(f, (x, y), ((dx, ddx), (dy, ddy))).")


__getattr__ = lazy.says_what_is_left_out(__name__)

__all__ = ["jet"]


def __dir__() -> list[str]:
    """Return the public names alone, without the modules of this package."""
    return __all__

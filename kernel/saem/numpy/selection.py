"""How is one of several values chosen, element by element?

Both (or all) values are computed, then one is taken: nothing here is control flow.

Read before: ``numpy.promote``, ``numpy.floating_point``.  Read after: ``numpy.creation``.
Invariant: a choice between arrays records broadcasts and one ``select_n``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.frames import boundary
from saem.core.lazy import later
from saem.core.trace import Tracer
from saem.numpy.axes import refuse_out
from saem.numpy.logic import greater, less, truth
from saem.numpy.promote import (
    as_value,
    broadcast_shapes,
    broadcast_to,
    broadcast_together,
    check_arraylike,
    convert_value,
    dtype_of,
    if_else,
    listed,
    promote_args,
    promote_dtypes,
)
from saem.ops import arithmetic as ops
from saem.ops import compare, numbers
from saem.ops.select import select_n
from saem.typing import Array, ArrayLike

floating_point: Any = later("saem.numpy.floating_point")


def choose_where(condition: Any, x: Any, y: Any) -> Any:
    """Return x where ``condition`` is not zero, else y: jnp.where of three arguments."""
    check_arraylike("where", condition, x, y)
    condition = truth(as_value(condition))
    x, y = promote_dtypes(as_value(x), as_value(y))
    if not aval_of(condition).shape:
        x, y = broadcast_together(x, y)
    else:
        condition, x, y = broadcast_together(condition, x, y)
    return select_n(condition, y, x)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """Return of the choices, at each place, the one whose condition is the first true there.

    Raises: ArgumentError if the lists have different lengths or are empty.

    >>> jnp.select([jnp.array([True, False])], [jnp.array([1, 2])], 9)
    Array([1, 9], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise errors.explained(
            errors.ArgumentError, "select.C1",
            "condlist must have length equal to choicelist "
            f"({len(condlist)} vs {len(choicelist)})",
            advice="Give one choice for each condition.")
    if not len(condlist):
        raise errors.explained(errors.ArgumentError, "select.C2", "condlist must be non-empty",
                               advice="Give at least one condition and its choice.")
    check_arraylike("select", *condlist, *choicelist, default)
    conditions = [truth(as_value(c)) for c in condlist]
    *choices, out = promote_dtypes(*[as_value(c) for c in (*choicelist, default)])
    out, *stretched = broadcast_together(out, *conditions, *choices)
    count = len(conditions)
    for condition, choice in zip(reversed(stretched[:count]), reversed(stretched[count:])):
        out = if_else(condition, choice, out)
    return out


@boundary
def piecewise(x: ArrayLike, condlist: Array | Sequence[ArrayLike], funclist: Sequence[Any],
              *args: Any, **kw: Any) -> Array:
    """Return at each place the value of the function of the last condition that is true there.

    An entry of ``funclist`` is a constant or is called with (x, *args, **kw); one entry more than
    conditions stands for all other places, else 0.
    Raises: ArgumentError if the lists do not fit together.

    >>> jnp.piecewise(jnp.array([-1., 2.]), [jnp.array([True, False])], [lambda x: -x,
    ...     lambda x: 10 * x])
    Array([ 1., 20.], dtype=float32)
    """
    check_arraylike("piecewise", x)
    x = as_value(x)
    count, given = len(condlist), len(funclist)
    condlist = list(condlist)
    if given not in (count, count + 1) or not count:
        raise errors.explained(
            errors.ArgumentError, "piecewise.C1",
            f"with {count} condition(s), either {count} or {count + 1} functions are expected; "
            f"got {given}", advice="The last of one more stands for all other places." if count
            else "Give at least one condition.")
    dtype = dtype_of(x)
    size = broadcast_shapes(aval_of(x).shape, *(np.shape(c) for c in condlist))
    functions = [*funclist[:count], *(funclist[count:] or [0])]

    def value(entry: Any) -> Any:
        result = entry(x, *args, **kw) if callable(entry) else entry
        return broadcast_to(convert_value(as_value(result), dtype, False), size)

    out = value(functions[-1])
    for condition, entry in zip(condlist, functions):
        out = if_else(broadcast_to(truth(as_value(condition)), size), value(entry), out)
    return out


def choose(a: ArrayLike, choices: Array | Sequence[ArrayLike], out: None = None,
           mode: str = "raise") -> Array:
    """Return at each place the element of the choice whose number ``a`` has there.

    ``mode`` for numbers out of range: 'wrap', 'clip', or 'raise' (needs known numbers).
    Raises: ValueError for numbers out of range; TypeError for numbers that are no integers.

    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
    Array([10,  2], dtype=int32)
    """
    refuse_out("choose", out)
    choices = listed(choices)
    check_arraylike("choose", a, *choices)
    a = as_value(a)
    count = len(choices)
    if not dtypes.is_integer(dtype_of(a)):
        raise errors.explained(
            errors.ArgumentError, "choose.C1", "`a` array must be integer typed",
            advice="Convert it: a.astype(int).")
    if mode == "raise":
        if isinstance(a, Tracer):
            raise errors.explained(
                errors.ConcretizationTypeError, "choose.C2",
                "The error occurred because jnp.choose was jit-compiled with mode='raise', which "
                f"needs the numbers, but got {aval_of(a).str_short(True)}.",
                advice="Use mode='wrap' or mode='clip'.")
        if np.any((np.asarray(a) < 0) | (np.asarray(a) >= count)):
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        rest = numbers.rem(a, np.asarray(count, dtype_of(a))[()])
        negative = compare.lt(rest, np.asarray(0, dtype_of(a))[()])
        a = if_else(negative, ops.add(rest, np.asarray(count, dtype_of(a))[()]), rest)
    elif mode == "clip":
        a = clip(a, 0, count - 1)
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    cases = promote_dtypes(*[as_value(c) for c in choices])
    cases = [convert_value(c, dtype_of(c), False) for c in cases]
    a, *cases = broadcast_together(a, *cases)
    if len(cases) == 1:
        return cases[0]
    return select_n(convert_value(a, np.dtype("int32"), False), *cases)


# -- larger and smaller ----------------------------------------------------------------------------


def maximum(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return the larger of x and y; NaN if either is.

    >>> jnp.maximum(jnp.array([1, 5]), 3)
    Array([3, 5], dtype=int32)
    """
    return numbers.max(*promote_args("maximum", x, y))


def minimum(x: ArrayLike, y: ArrayLike, /) -> Any:
    """Return the smaller of x and y; NaN if either is.

    >>> jnp.minimum(jnp.array([1, 5]), 3)
    Array([1, 3], dtype=int32)
    """
    return numbers.min(*promote_args("minimum", x, y))


def _but_nan(name: str, better: Callable, x: Any, y: Any) -> Any:
    x, y = promote_args(name, x, y)
    return if_else(compare.bitwise_or(better(x, y), floating_point.isnan(y)), x, y)


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the larger of x1 and x2, or the one that is a number.

    >>> jnp.fmax(jnp.array([1., jnp.nan]), 0.)
    Array([1., 0.], dtype=float32)
    """
    return _but_nan("fmax", greater, x1, x2)


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the smaller of x1 and x2, or the one that is a number.

    >>> jnp.fmin(jnp.array([1., jnp.nan]), 2.)
    Array([1., 2.], dtype=float32)
    """
    return _but_nan("fmin", less, x1, x2)


def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None,
         max: ArrayLike | None = None) -> Array:
    """Return ``arr`` with what is below ``min`` raised to it, and above ``max`` lowered to it.

    Raises: ArgumentError for complex arguments.

    >>> jnp.clip(jnp.array([-1, 5, 9]), 0, 6)
    Array([0, 5, 6], dtype=int32)
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function. Pass an array: clip(arr).")
    check_arraylike("clip", arr)
    x = as_value(arr)
    bounds = [as_value(b) for b in (min, max) if b is not None]
    check_arraylike("clip", *bounds, position=1)
    if any(dtypes.is_complex(dtype_of(v)) for v in (x, *bounds)):
        raise errors.explained(
            errors.ArgumentError, "clip.C1",
            "Clip received a complex value either through the input or the min/max keywords. "
            "Complex values have no ordering and cannot be clipped. Please convert to a real value "
            "or array by taking the real or imaginary components via jax.numpy.real/imag "
            "respectively.")
    if min is not None:
        x = maximum(min, x)
    if max is not None:
        x = minimum(max, x)
    return promote_args("clip", x)[0]

"""What does a special function do with its operands before it computes?

Every function here is elementwise: its operands meet in one floating dtype and broadcast; half
floats are computed in float32.  ``elementwise`` does this for all of them, so that the body of a
function is the mathematics alone.

Read before: ``numpy.promote``.  Read after: ``special.entropies``.
Invariant: the result has the dtype in which the operands meet, and is weak if all of them are; a
function may ask for less (``weak_by_first``).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from saem import lax
from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.custom_derivatives import custom_jvp
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, as_array
from saem.numpy.promote import promote_args_inexact
from saem.ops.linear import literal
from saem.transform.derivatives import jvp
from saem.typing import Array


def floats(name: str, *args: Any) -> list[Array]:
    """Return ``args`` as arrays of the floating dtype in which they meet.

    Raises: TypeError for lists.
    """
    arrays = array_argument(name, *args)
    return [as_array(x) for x in promote_args_inexact(name, *(arrays if len(args) > 1
                                                              else (arrays,)))]


def weak_by_first(out: Array, first: Any) -> Array:
    """Return ``out``, which stays weak only where the operand ``first`` has rank 0.

    An array of booleans or integers beside Python numbers meets them in a weak floating dtype;
    functions whose constants have the dtype of their first operand give strong results, as in JAX,
    unless that operand is a number.
    """
    aval = aval_of(out)
    if not aval.weak_type or not aval_of(first).shape:
        return out
    return lax.convert_element_type(out, aval.dtype)


def refuse_complex(name: str, x: Array, error: type[Exception] = errors.ArgumentError) -> None:
    """Refuse complex operands.  Raises: ``error``, a ValueError unless given."""
    if dtypes.is_complex(aval_of(x).dtype):
        raise errors.explained(error, f"{name}.C1",
                               f"{name} does not support complex-valued inputs.",
                               advice="Take the real part first.")


def elementwise(fun: Callable | None = None, *, complex_too: bool = False,
                arrays: tuple[str, ...] | None = None, wide: bool = False, by_first: bool = False
                ) -> Any:
    """Make a function of equal floating arrays a library function of any operands.

    complex_too: complex operands reach ``fun``, which computes or refuses them; else ValueError.
    arrays: which parameters are operands; all if None, and the others are static.
    wide: computed in the default floating dtype, and the result stays in it.
    by_first: the result is weak only where the first operand is (``weak_by_first``).
    """
    if fun is None:
        return functools.partial(elementwise, complex_too=complex_too, arrays=arrays,
                                 wide=wide, by_first=by_first)
    signature = inspect.signature(fun)
    name = fun.__name__
    operands = tuple(signature.parameters) if arrays is None else arrays
    static = tuple(p for p in signature.parameters if p not in operands)

    @functools.wraps(fun)
    def computed(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        first = given[operands[0]]
        xs = floats(name, *[given[p] for p in operands])
        if not complex_too:
            refuse_complex(name, xs[0])
        dtype = aval_of(xs[0]).dtype
        narrow = dtypes.is_float(dtype) and dtypes.itemsize_bits(dtype) < 32
        if wide:
            narrow, to = False, dtypes.default_dtype(float)
            xs = [lax.convert_element_type(x, to) if aval_of(x).dtype != to else x for x in xs]
        if narrow:
            xs = [lax.convert_element_type(x, np.float32) for x in xs]
        given.update(zip(operands, xs))
        out = fun(*bound.args, **bound.kwargs)
        if not narrow:
            return weak_by_first(out, first) if by_first else out
        parts = [y if dtypes.is_complex(aval_of(y).dtype) else lax.convert_element_type(y, dtype)
                 for y in (out if isinstance(out, tuple) else (out,))]
        return tuple(parts) if isinstance(out, tuple) else parts[0]

    return library_function(computed, static_argnames=static or None, whole=True)


def by_partials(fun: Callable) -> Callable:
    """Give ``fun``, whose loops run until they converge, derivatives of every order and mode.

    A loop of unknown length cannot be run backwards; but each partial derivative is a forward-mode
    derivative along one unit vector, and the tangent is linear in these.
    """
    ruled = custom_jvp(fun)

    def partial(i: int) -> Callable:
        def along(*args: Array) -> Array:
            units = [lax.full_like(x, 1 if j == i else 0) for j, x in enumerate(args)]
            return jvp(fun, args, tuple(units))[1]
        return by_partials(along)

    @ruled.defjvp
    def rule(primals: tuple, tangents: tuple) -> tuple:
        slopes = [partial(i)(*primals) * dx for i, dx in enumerate(tangents)]
        return ruled(*primals), sum(slopes[1:], slopes[0])

    return ruled


def horner(coefficients: Any, x: Array) -> Array:
    """Return the polynomial of x whose ``coefficients`` are given from the highest power down."""
    dtype = aval_of(x).dtype
    total = lax.full_like(x, float(coefficients[0]))
    for c in coefficients[1:]:
        total = total * x + literal(float(c), dtype)
    return total

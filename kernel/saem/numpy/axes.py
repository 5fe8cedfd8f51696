"""How does a jax.numpy function read its ``axis`` and ``out`` arguments?

Axes count from the front or, negative, from the back; None is all of them; a tuple is several.

Read before: ``ops.shape``.  Read after: ``numpy.reductions``, ``numpy.manipulation``.
Invariant: what comes back are distinct Python ints, counted from the front.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.dispatch import put_value
from saem.core import errors
from saem.core.conversions import refuse
from saem.core.dimensions import as_size
from saem.core.trace import Tracer, concrete_or_none, is_concrete
from saem.numpy.promote import as_value, check_arraylike
from saem.ops.linear import broadcast_in_dim
from saem.ops.shape import canonical_axis

Axis = int | tuple[int, ...] | None


def numbers_may_be_arrays(function: Any) -> Any:
    """Let static arguments of a library function (axes, counts) be lists or arrays of integers.

    Static arguments need a hash, which these do not have: C++ refuses them before it calls us.
    Then the numbers that they hold are passed.  What has no numbers, such as a tracer, is read or
    refused by the function itself, whose operations run one by one.
    """
    numbers = function.info.parameters.static_argnums
    names = function.info.parameters.static_argnames

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ValueError:
            static = [x for i, x in enumerate(args) if i in numbers]
            static += [x for name, x in kwargs.items() if name in names]
            if has_hash(static):
                raise
        known = has_hash(list(map(hashable_axes, static)))
        args = tuple([hashable_axes(x) if i in numbers else x for i, x in enumerate(args)])
        kwargs = {name: hashable_axes(x) if name in names else x for name, x in kwargs.items()}
        return (function if known else function.info.fun)(*args, **kwargs)

    return wrapper


def has_hash(values: list[Any]) -> bool:
    """Return whether each of ``values`` can be hashed, as static arguments must."""
    try:
        hash(tuple(values))
    except TypeError:
        return False
    return True


def hashable_axes(axis: Any) -> Any:
    """Return lists of axes as tuples, and integer arrays as the numbers that they hold."""
    is_array = isinstance(axis, (_jaxlib.ArrayImpl, np.ndarray))
    if is_array and axis.ndim <= 1 and axis.dtype.kind in "iu":
        axis = axis.tolist()
    return tuple([hashable_axes(a) for a in axis]) if type(axis) in (list, tuple) else axis


def known_number(value: Any, what: str) -> int:
    """Return the number ``value``, an argument called ``what``, which decides shapes.

    Raises: ConcretizationTypeError if it is not known while the function is traced.
    """
    if not is_concrete(value):
        raise refuse(
            value, errors.ConcretizationTypeError, f"tracer.{what}",
            f"Abstract tracer value encountered where concrete value is expected: {{}}. The "
            f"argument `{what}` decides the shape of the result.",
            "Mark the argument of the jitted function static: jax.jit(f, static_argnames=...).")
    return as_size(concrete_or_none(value))


def as_tuple(axis: Any) -> tuple[Any, ...]:
    """Return one axis, or several, as a tuple.

    Raises: TypeError if it is neither; ConcretizationTypeError if it is not known yet.
    """
    if isinstance(axis, Tracer):
        axis = known_number(axis, "axis")
    try:
        return (operator.index(axis),)
    except TypeError:
        return tuple(axis)


def canonical_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes that ``axis`` names, in its order; all of them for None.

    Raises: ValueError if one does not exist or is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = as_tuple(axis)
    axes = tuple([canonical_axis(a, ndim) for a in given])
    if len(set(axes)) != len(axes):
        raise twice(given)
    return axes


def reduced_axes(axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int | str, ...]]:
    """Return the axes of an array that ``axis`` names; and, if it names axes of mapped functions,
    too, these and the array's in its order, else nothing.

    Raises: as ``canonical_axes``.
    """
    if isinstance(axis, str):
        return (), (axis,)
    if type(axis) is not tuple or not any(isinstance(a, str) for a in axis):
        return canonical_axes(axis, ndim), ()
    mixed = tuple([a if isinstance(a, str) else canonical_axis(a, ndim) for a in axis])
    if len(set(mixed)) != len(mixed):
        raise twice(axis)
    return tuple([a for a in mixed if not isinstance(a, str)]), mixed


def twice(axes: tuple[Any, ...]) -> Exception:
    """Return the error for ``axes`` that name one axis twice."""
    return errors.explained(
        errors.ArgumentError, "axis.duplicate", f"duplicate value in 'axis': {axes}",
        advice="Name each axis once; a negative number counts from the back.")


def refuse_out(name: str, out: Any) -> None:
    """Refuse an ``out`` argument.

    Raises: NotImplementedError if it is given.
    """
    if out is not None:
        raise errors.explained(
            NotImplementedError, f"{name}.out",
            f"The 'out' argument to jnp.{name} is not supported.",
            advice=f"Arrays are immutable: take the result, x = jnp.{name}(...).")


def array_argument(name: str, *args: Any) -> Any:
    """Return arguments of ``name`` as arrays or tracers; NumPy arrays and numbers are put.

    Raises: TypeError for a non-array, such as a list.
    """
    check_arraylike(name, *args)
    return as_array(args[0]) if len(args) == 1 else [as_array(x) for x in args]


def as_array(x: Any) -> Any:
    """Return ``x`` as an array if it is a NumPy array or a number, weak if a Python number."""
    if isinstance(x, Tracer):
        return x
    x = as_value(x)
    if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        return put_value(x)
    return x


def keep_axes(reduced: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Return a reduction of an array of ``shape`` with its ``axes`` kept, at size 1."""
    kept = tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return broadcast_in_dim(reduced, kept, tuple([i for i in range(len(shape)) if i not in axes]))

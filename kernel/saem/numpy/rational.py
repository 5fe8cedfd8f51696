"""Which whole numbers divide, and are divided by, two others?

Read before: ``loops.while_loop``, ``numpy.arithmetic``.
Invariant: results are not negative, and gcd(0, 0) is 0 (tests/kernel/numpy/test_ufuncs.py).
Source: Euclid, Elements VII.2.
"""

from __future__ import annotations

from typing import Any

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.loops.while_loop import while_loop
from saem.numpy.arithmetic import floor_divide
from saem.numpy.promote import broadcast_together, if_else, like, promote_args
from saem.ops import arithmetic as ops
from saem.ops import compare, numbers
from saem.ops.convert import convert
from saem.ops.reduce import reduce_or
from saem.typing import Array, ArrayLike


def _magnitudes(name: str, x1: Any, x2: Any) -> list[Any]:
    """Return the operands in one shape and dtype, without signs.

    Raises: ValueError unless they are integers.
    """
    pair = promote_args(name, x1, x2)
    dtype = aval_of(pair[0]).dtype
    if not dtypes.is_integer(dtype):
        raise errors.explained(errors.ArgumentError, f"{name}.C1",
                               f"Arguments to jax.numpy.{name} must be integers.",
                               advice=f"Got {dtype.name}.")
    pair = broadcast_together(*pair)
    if aval_of(pair[0]).shape:  # as JAX: weak only as scalars
        pair = [convert(x, dtype, False) for x in pair]
    return pair if dtypes.is_unsigned(dtype) else [numbers.abs(x) for x in pair]


def _divisor(a: Any, b: Any) -> Any:
    def rest(pair: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = pair
        more = compare.ne(b, like(b, 0))
        left = numbers.rem(a, if_else(more, b, like(b, 1)))
        return if_else(more, b, a), if_else(more, left, b)

    def unfinished(pair: tuple[Any, Any]) -> Any:
        b = pair[1]
        return reduce_or(compare.ne(b, like(b, 0)), tuple(range(aval_of(b).ndim)))

    return while_loop(unfinished, rest, (a, b))[0]


@library_function
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greatest number that divides both.

    Raises: ValueError unless they are integers.

    >>> jnp.gcd(12, 18)
    Array(6, dtype=int32, weak_type=True)
    """
    return _divisor(*_magnitudes("gcd", x1, x2))


@library_function
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the least number that both divide, 0 if one of them is 0.

    Raises: ValueError unless they are integers.

    >>> jnp.lcm(4, 6)
    Array(12, dtype=int32, weak_type=True)
    """
    a, b = _magnitudes("lcm", x1, x2)
    common = _divisor(a, b)
    none = compare.eq(common, like(common, 0))
    return if_else(none, like(a, 0), ops.mul(a, floor_divide(b, if_else(none, like(b, 1), common))))

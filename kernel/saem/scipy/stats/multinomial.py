"""How likely are the counts of several kinds of results?

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.scipy.special import xlogy
from saem.scipy.special.operands import floats
from saem.typing import Array, ArrayLike


@library_function(whole=True)
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the logarithm of the probability of the counts x [..., k] of ``n`` trials.

    p: [..., k], the probability of each kind.

    Raises: ValueError if ``x`` or ``n`` are not integers.

    >>> logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
    Array(-0.6931473, dtype=float32)
    """
    (p,) = floats("multinomial.logpmf", p)
    for counts in (x, n):
        if not dtypes.is_integer(aval_of(counts).dtype):
            raise errors.explained(
                errors.ArgumentError, "multinomial.C1",
                f"x and n must be of integer type; got {aval_of(counts).dtype.name}.",
                advice="They count: convert them with .astype(int).")
    x, n = jnp.asarray(x, p.dtype), jnp.asarray(n, p.dtype)
    orders = lax.lgamma(n + 1) + jnp.sum(xlogy(x, p) - lax.lgamma(x + 1), -1)
    return jnp.where(jnp.equal(jnp.sum(x), n), orders, -np.inf)


@library_function
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the probability of the counts x [..., k] of ``n`` trials.

    >>> pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
    Array(0.49999994, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))

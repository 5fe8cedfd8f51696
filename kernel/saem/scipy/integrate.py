"""How is an integral taken of sampled values?

The public namespace ``jax.scipy.integrate``.

Read before: ``numpy.calculus``.
Invariant: the same values as ``numpy.trapezoid`` (tests/kernel/scipy/test_small.py).
"""

from __future__ import annotations

from saem import numpy as jnp
from saem.typing import Array, ArrayLike

__all__ = ["trapezoid"]


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
              ) -> Array:
    """Return the integral of ``y`` along ``axis`` by trapezoids: at the places x, or ``dx`` apart.

    >>> trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)
    """
    return jnp.trapezoid(y, x, dx, axis)

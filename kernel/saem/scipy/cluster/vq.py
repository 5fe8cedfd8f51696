"""Which of some known vectors is nearest to each observation?

The public namespace ``jax.scipy.cluster.vq``.

Read before: ``saem.numpy``.
Invariant: as SciPy's function of this name (tests/kernel/scipy/test_small.py).
"""

from __future__ import annotations

from saem import numpy as jnp
from saem.core import errors
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.numpy.promote import promote_dtypes_inexact
from saem.typing import Array, ArrayLike

__all__ = ["vq"]


@library_function(static_argnames=("check_finite",), whole=True)
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the place of the nearest row of ``code_book`` [k, n] to each of ``obs`` [m, n].

    Vectors stand for m, and k, numbers.  check_finite: not used.
    Returns: [m] places, and [m] distances.  Raises: ValueError for other ranks.

    >>> vq(jnp.array([0., 1., 9.]), jnp.array([0., 10.]))[0]
    Array([0, 0, 1], dtype=int32)
    """
    obs, code_book = promote_dtypes_inexact(*array_argument("vq", obs, code_book))
    if obs.ndim != code_book.ndim:
        raise errors.explained(errors.ArgumentError, "vq.C1",
                               "Observation and code_book should have the same rank",
                               advice=f"Got {obs.shape} and {code_book.shape}.")
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.ndim != 2:
        raise errors.explained(errors.ArgumentError, "vq.C2",
                               "ndim different than 1 or 2 are not supported",
                               advice=f"Got {obs.shape}.")
    apart = obs[:, None] - code_book[None]
    squares = jnp.square(apart.real) + jnp.square(apart.imag) if jnp.iscomplexobj(apart) \
        else jnp.square(apart)
    distances = jnp.sqrt(jnp.sum(squares, -1))
    return jnp.argmin(distances, -1), jnp.min(distances, -1)

"""How likely are random probabilities of several kinds?

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import errors
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.numpy.promote import promote_dtypes_inexact
from saem.scipy.special import xlogy
from saem.typing import Array, ArrayLike

# How far probabilities may be from summing to 1.
TOLERANCE = 1e-5


@library_function(whole=True)
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the logarithm of the density at the probabilities x [k, ...] or [k - 1, ...].

    alpha: [k].  Where the last probability is left out, it is what misses to 1.
    Returns: [...], -inf where x are no probabilities.  Raises: ValueError for other shapes.

    >>> logpdf(jnp.array([0.5, 0.5]), jnp.array([1., 1.]))
    Array(0., dtype=float32)
    """
    x, alpha = promote_dtypes_inexact(*array_argument("dirichlet.logpdf", x, alpha))
    if alpha.ndim != 1:
        raise errors.explained(
            errors.ArgumentError, "dirichlet.C1",
            f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}",
            advice="One concentration for each kind.")
    if x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise errors.explained(
            errors.ArgumentError, "dirichlet.C2",
            "`x` must have either the same number of entries as `alpha` or one entry fewer; got "
            f"x.shape={x.shape}, alpha.shape={alpha.shape}", advice="Kinds are the first axis.")
    if x.shape[0] == alpha.shape[0] - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)], 0)
    weights = jnp.reshape(alpha, (-1,) + (1,) * (x.ndim - 1))
    scale = lax.lgamma(jnp.sum(alpha)) - jnp.sum(lax.lgamma(alpha))
    out = jnp.sum(xlogy(weights - 1, x), 0) + scale
    valid = jnp.all(x > 0, 0) & (jnp.abs(jnp.sum(x, 0) - 1) < TOLERANCE)
    return jnp.where(valid, out, -np.inf)


@library_function
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the density at the probabilities x, as ``logpdf`` takes them.

    >>> pdf(jnp.array([0.5, 0.5]), jnp.array([1., 1.]))
    Array(1., dtype=float32)
    """
    return jnp.exp(logpdf(x, alpha))

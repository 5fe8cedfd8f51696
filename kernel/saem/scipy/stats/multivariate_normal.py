"""How likely are vectors of a normal distribution?

Read before: ``stats.families``, ``saem.numpy.linalg``.
Invariant: densities are those of JAX (tests/kernel/scipy/test_stats_density.py).
"""

from __future__ import annotations

import functools
import math
from typing import Any

from saem import lax
from saem import numpy as jnp
from saem.core import errors
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.numpy.promote import promote_dtypes_inexact
from saem.typing import Array, ArrayLike


@functools.partial(jnp.vectorize, signature="(n,n),(n)->(n)")
def _solved(root, step):
    """Return root^-1 step; many steps of one root are the right sides of one system."""
    return lax.linalg.triangular_solve(root, step[:, None], left_side=True, lower=True)[:, 0]


@library_function(whole=True)
def _logpdf(x, mean, cov):
    operands = array_argument("multivariate_normal.logpdf", x, mean, cov)
    x, mean, cov = promote_dtypes_inexact(*operands)
    if not mean.shape:
        return -((x - mean) ** 2 / cov + math.log(2 * math.pi) + jnp.log(cov)) / 2
    n = mean.shape[-1]
    if not cov.shape:
        distance = jnp.einsum("...i,...i->...", x - mean, x - mean) / cov
        return -(distance + n * (math.log(2 * math.pi) + jnp.log(cov))) / 2
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise errors.explained(
            errors.ArgumentError, "multivariate_normal.C1",
            "multivariate_normal.logpdf got incompatible shapes",
            advice=f"cov is [..., n, n] for a mean [..., n]; got {cov.shape} and {mean.shape}.")
    root = jnp.linalg.cholesky(cov)
    scaled = _solved(root, x - mean)
    volume = jnp.sum(jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)), -1)
    return -(jnp.sum(scaled * scaled, -1) + n * math.log(2 * math.pi)) / 2 - volume


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: Any = None) -> Array:
    """Return the logarithm of the density at the vectors x [..., n].

    mean: [..., n].  cov: [..., n, n], or a number for independent elements of one variance.
    Raises: NotImplementedError for ``allow_singular``; ValueError for shapes that do not fit.

    >>> logpdf(0.0, 0.0, 1.0)
    Array(-0.9189385, dtype=float32, weak_type=True)
    """
    if allow_singular is not None:
        raise errors.explained(
            NotImplementedError, "multivariate_normal.singular",
            "allow_singular argument of multivariate_normal.logpdf",
            advice="Add a small multiple of the identity to the covariance.")
    return _logpdf(x, mean, cov)


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Return the density at the vectors x [..., n], with arguments as of ``logpdf``.

    >>> pdf(0.0, 0.0, 1.0)
    Array(0.3989423, dtype=float32, weak_type=True)
    """
    return jnp.exp(_logpdf(x, mean, cov))

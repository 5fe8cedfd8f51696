"""How are random vectors with a given covariance made, and random orthogonal matrices?

Read before: ``random.continuous``, ``numpy.linalg``.
Invariant: same key, shape and dtype give the numbers of JAX to rounding
(tests/kernel/test_random_matrices.py).
Source: Mezzadri 2007, "How to generate random matrices from the classical compact groups".
"""

from __future__ import annotations

from typing import Any

import numpy as np

import saem.numpy as jnp
from saem.core import dtypes, errors, promotion
from saem.numpy import linalg
from saem.numpy.axes import known_number
from saem.numpy.promote import broadcast_shapes, check_arraylike
from saem.random.continuous import standard_normal
from saem.random.keys import as_shape, float_dtype, placed, takes_any_key, used
from saem.typing import Array, ArrayLike, DTypeLike, Shape


def multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike,
                        shape: Shape | None = None, dtype: DTypeLike | None = None,
                        method: str = "cholesky", *, out_sharding: Any = None) -> Array:
    """Return normal vectors with the given mean and covariance.

    ``mean`` has the shape (..., n), ``cov`` (..., n, n); the result ``shape`` + (n,), where
    ``shape`` is by default what the leading axes of both stretch to.  ``method`` decides how the
    root of ``cov`` is found: ``"cholesky"`` (quickest), ``"eigh"`` or ``"svd"`` (also for a
    singular ``cov``).

    Raises: ValueError for shapes that do not fit or another method.

    >>> import saem as jax, saem.numpy as jnp
    >>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
    (3, 2)
    """
    if out_sharding is not None:
        return placed(multivariate_normal, out_sharding, key, mean, cov, shape, dtype, method)
    check_arraylike("multivariate_normal", mean, cov)
    mean, cov = jnp.asarray(mean), jnp.asarray(cov)
    if dtype is None:
        dtype = jnp.result_type(mean, cov)
        if not jnp.issubdtype(dtype, np.floating):
            dtype = promotion.at_least(dtype, np.float32)
    dtype = float_dtype("multivariate_normal", dtype)
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method argument must be one of {'svd', 'eigh', 'cholesky'}, got "
                         f"{method!r}")
    shape = _shape_of_vectors(mean, cov, shape)
    used(key)
    return _multivariate_normal(key, shape, dtype, method, mean, cov)


def _shape_of_vectors(mean: Array, cov: Array, shape: Shape | None) -> tuple[int, ...]:
    """Return how many vectors are drawn, as a shape; refuse a mean and covariance of no vector."""
    if mean.ndim < 1:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == "
                         f"{mean.ndim}")
    if cov.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {cov.ndim}")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError("multivariate_normal requires cov.shape == (..., n, n) for n="
                         f"{n}, but got cov.shape == {cov.shape}.")
    leading = broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    shape = leading if shape is None else tuple(as_shape(shape))
    if broadcast_shapes(shape, leading) != shape:
        raise errors.explained(
            errors.ShapeError, "multivariate_normal.C1",
            f"shape argument {shape} cannot hold the leading axes {leading} of mean and cov",
            advice="Leave shape out, or add axes in front.")
    return shape


@takes_any_key(3)
def _multivariate_normal(key, shape, dtype, method, mean, cov):
    sample = standard_normal(key, (*shape, mean.shape[-1]), dtype)
    moved = jnp.einsum("...ij,...j->...i", _root(cov, method), sample)
    return jnp.broadcast_to(mean, moved.shape) + moved


def _root(cov: Array, method: str) -> Array:
    """Return a matrix whose product with its transpose is ``cov``."""
    if method == "svd":
        u, s, _ = linalg.svd(cov)
        return u * jnp.sqrt(s[..., None, :])
    if method == "eigh":
        w, v = linalg.eigh(cov)
        return v * jnp.sqrt(w[..., None, :])
    return linalg.cholesky(cov)


def orthogonal(key: ArrayLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None,
               m: int | None = None, *, out_sharding: Any = None) -> Array:
    """Return random matrices of shape (n, m), orthogonal (unitary if complex), all equally likely.

    ``m`` is ``n`` by default.  The shorter of rows and columns are orthonormal.

    Raises: ValueError for a dtype that is neither float nor complex.

    >>> import saem as jax, saem.numpy as jnp
    >>> q = jax.random.orthogonal(jax.random.key(0), 3)
    >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
    True
    """
    if out_sharding is not None:
        return placed(orthogonal, out_sharding, key, n, shape, dtype, m)
    dtype = dtypes.canonicalize(float if dtype is None else dtype, explicit=True)
    if not dtypes.is_inexact(dtype):
        raise ValueError(f"dtype argument to `orthogonal` must be a float or complex dtype, got "
                         f"{dtype}")
    n = known_number(n, "n")
    m = n if m is None else known_number(m, "m")
    used(key)
    return _orthogonal(key, as_shape(shape), dtype, n, m)


@takes_any_key(4)
def _orthogonal(key, shape, dtype, n, m):
    q, r = linalg.qr(standard_normal(key, (*shape, max(n, m), min(n, m)), dtype))
    d = jnp.diagonal(r, axis1=-2, axis2=-1)
    x = q * jnp.expand_dims(d / jnp.abs(d).astype(dtype), -2)
    return jnp.matrix_transpose(x) if n < m else x

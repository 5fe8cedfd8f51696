"""Which matrices does the polar decomposition of ``jax.lax.linalg`` take?

Read before: ``linalg.polar``.
Invariant: x = U H with UᴴU = 1 and H Hermitian, when the last result is True.
Source: the documentation of jax.lax.linalg.qdwh.
"""

from __future__ import annotations

from typing import Any

from saem.core import dtypes, errors
from saem.linalg.polar import polar
from saem.numpy.axes import array_argument
from saem.transform.mapping import vmap


def qdwh(x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None,
         eps: float | None = None, dynamic_shape: tuple[int, int] | None = None
         ) -> tuple[Any, Any, Any, Any]:
    """Return U and H with x = U H, the number of steps, and whether they converged.

    Shapes: x (…, m, n) with m >= n, U (…, m, n), H (…, n, n).  ``eps``: the accuracy;
    ``dynamic_shape``: how many rows and columns of x count, the others being taken as zero.

    Raises: ValueError for more columns than rows, and for integers.

    >>> lax.linalg.qdwh(jnp.array([[2., 0.], [0., 3.]]))[0].round(3)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    x = array_argument("qdwh", x)
    if not dtypes.is_inexact(x.dtype):
        raise errors.explained(
            errors.ArgumentError, "qdwh.dtype",
            f"qdwh needs floating point or complex numbers, got {x.dtype.name}.",
            advice="Convert first, for example with x.astype(jnp.float32).")
    if x.ndim < 2 or x.shape[-2] < x.shape[-1]:
        raise errors.explained(
            errors.ArgumentError, "qdwh.shape",
            f"The input matrix of shape M x N must have M >= N, got {x.shape}.",
            advice="Decompose the adjoint instead.")
    if x.ndim > 2:
        found = vmap(lambda one: qdwh(
            one, is_hermitian=is_hermitian, max_iterations=max_iterations, eps=eps,
            dynamic_shape=dynamic_shape))(x.reshape(-1, *x.shape[-2:]))
        return tuple(part.reshape(*x.shape[:-2], *part.shape[1:]) for part in found)
    m, n = x.shape if dynamic_shape is None else dynamic_shape
    most = 10 if max_iterations is None else int(max_iterations)
    eps = float(dtypes.finfo(x.dtype).eps) if eps is None else float(eps)
    return polar(x, m, n, most=most, eps=eps, hermitian=bool(is_hermitian))

"""How is a system with a sparse matrix solved?  (``spsolve``)

On the host, by SciPy's sparse LU decomposition: the matrix is never dense, so a system of 100,000
unknowns fits.  The primitive ``spsolve`` is linear in the right-hand side, and its transpose solves
with the transposed matrix; a change of the matrix changes the solution by ``-A⁻¹ dA x``.

Read before: ``matrices``.  Read after: nothing.
Invariant: solutions and derivatives are those of the dense system
(tests/kernel/test_sparse_linalg.py).
Source: the documentation of scipy.sparse.linalg.spsolve and of jax.experimental.sparse.linalg.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import errors
from saem.core.lazy import later
from saem.effects.callbacks import pure_callback
from saem.experimental.sparse.matrices import csr_matvec_p, defined, places_by_rows
from saem.interpreters import ad, batching
from saem.transform.programs import ShapeDtypeStruct
from saem.typing import Array

scipy_sparse: Any = later("scipy.sparse")
scipy_solvers: Any = later("scipy.sparse.linalg")


def _solve_on_host(data: Any, indices: Any, indptr: Any, b: Any) -> np.ndarray:
    """Return the solution of one system, NaN where the matrix is singular."""
    b = np.asarray(b)
    parts = [np.array(x) for x in (data, indices, indptr)]  # SciPy sums repeated elements in place
    matrix = scipy_sparse.csr_matrix(tuple(parts), shape=(b.size, b.size))
    return scipy_solvers.spsolve(matrix, b).astype(b.dtype)


def _solve(data: Array, indices: Array, indptr: Array, b: Array, *, tol: float, reorder: int
           ) -> Array:
    del tol, reorder  # they are for libraries of GPUs
    dtype = b.dtype
    wide = jnp.promote_types(dtype, np.float32)  # SciPy has no numbers of 16 bits
    out = pure_callback(_solve_on_host, ShapeDtypeStruct(b.shape, wide), data.astype(wide), indices,
                        indptr, b.astype(wide), vmap_method="sequential")
    return out.astype(dtype)


def _transposed(data: Array, indices: Array, indptr: Array) -> tuple[Array, Array, Array]:
    """Return the transposed matrix in CSR form: its elements sorted by their columns."""
    n = indptr.shape[0] - 1
    row, col, _ = places_by_rows(indices, indptr, (n, n))
    order = jnp.argsort(col, stable=True)
    counts = jnp.zeros(n, indptr.dtype).at[col].add(1)
    starts = jnp.pad(jnp.cumsum(counts), (1, 0))
    return data[order], row[order].astype(indices.dtype), starts.astype(indptr.dtype)


def _jvp(primals: Any, tangents: Any, **about: Any) -> tuple[Any, Any]:
    data, indices, indptr, b = primals
    x = spsolve_p.bind(*primals, **about)
    change, *_, right = tangents
    if not isinstance(change, ad.Zero):
        moved = csr_matvec_p.bind(change, indices, indptr, x, shape=(b.size, b.size),
                                  transpose=False)
        right = ad.add_tangents(right, -moved)
    return x, spsolve_p.bind(data, indices, indptr, right, **about)


def _transpose(ct: Any, data: Any, indices: Any, indptr: Any, b: Any, **about: Any) -> Any:
    assert ad.is_undefined_primal(b)
    return None, None, None, spsolve_p.bind(*_transposed(data, indices, indptr), ct, **about)


def _batch(args: Any, dims: Any, **about: Any) -> tuple[Any, int]:
    """Solve one system after the other: ``map`` keeps each a primitive, with its derivative."""
    stacked = [d is not None for d in dims]
    rows = [batching.moveaxis(x, d, 0) for x, d in zip(args, dims) if d is not None]

    def one(row: Any) -> Any:
        each = iter(row)
        return spsolve_p.bind(*[next(each) if many else x for x, many in zip(args, stacked)],
                              **about)

    return lax.map(one, rows), 0


spsolve_p = defined("spsolve", _solve)
batching.primitive_batchers[spsolve_p] = _batch
ad.primitive_jvps[spsolve_p] = _jvp
ad.primitive_transposes[spsolve_p] = _transpose


def spsolve(data: Array, indices: Array, indptr: Array, b: Array, tol: float = 1e-6,
            reorder: int = 1) -> Array:
    """Return the solution ``x`` of ``A x = b`` for a square matrix in CSR form.

    ``data``, ``indices``: [nse]; ``indptr``: int[n+1]; ``b``: [n].  SciPy decomposes the matrix on
    the host; the numbers of a GPU are fetched for it.  ``tol`` and ``reorder`` (1, 2, 3 or 4) are
    for GPU libraries, and change nothing.

    Raises: ValueError for operands that do not fit.

    >>> import saem.numpy as jnp
    >>> from saem.experimental.sparse import CSR
    >>> from saem.experimental.sparse.linalg import spsolve
    >>> A = CSR.fromdense(jnp.array([[2., 0.], [1., 4.]]))
    >>> spsolve(A.data, A.indices, A.indptr, jnp.array([2., 9.]))
    Array([1., 2.], dtype=float32)
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    shapes = (f"data.shape={data.shape} indices.shape={indices.shape} "
              f"indptr.shape={indptr.shape}")
    if any(x.ndim != 1 for x in (data, indices, indptr, b)):
        raise errors.explained(
            errors.ArgumentError, "spsolve.C1",
            f"Arrays must be one-dimensional. Got {shapes} b.shape={b.shape}",
            advice="Solve for several right-hand sides with jax.vmap.")
    if indptr.shape[0] != b.shape[0] + 1 or data.shape != indices.shape:
        raise errors.explained(
            errors.ArgumentError, "spsolve.C2",
            f"Invalid CSR buffer sizes: {shapes} b.shape={b.shape}",
            advice="indptr has one number more than there are rows.")
    if data.dtype != b.dtype or not np.issubdtype(data.dtype, np.inexact):
        raise errors.explained(
            errors.ArgumentError, "spsolve.C3",
            f"data types do not match: data.dtype={data.dtype.name} b.dtype={b.dtype.name}",
            advice="Both are of one floating or complex dtype.")
    if reorder not in (1, 2, 3, 4):
        raise ValueError(f"reorder={reorder} not valid, must be one of [1, 2, 3, 4]")
    return spsolve_p.bind(data, indices, indptr, b, tol=tol, reorder=reorder)

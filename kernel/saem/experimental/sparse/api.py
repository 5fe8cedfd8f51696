"""What is there for sparse arrays of every format?  (``jax.experimental.sparse.api``)

Read before: ``sparse.transform``.
Invariant: the same call makes the same array in each format (tests/kernel/test_sparse.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import saem.numpy as jnp
from saem.experimental.sparse.base import JAXSparse
from saem.experimental.sparse.bcoo_format import BCOO
from saem.experimental.sparse.bcsr import BCSR
from saem.experimental.sparse.coo import COO, CSC, CSR
from saem.experimental.sparse.transform import todense, todense_p
from saem.ops.convert import holds
from saem.typing import DTypeLike

_FORMATS: dict[str, Callable[..., Any]] = {
    "bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _format(sparse_format: str) -> Any:
    if sparse_format not in _FORMATS:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized; must be one of "
                         f"{list(_FORMATS)}")
    return _FORMATS[sparse_format]


def empty(shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
          sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse:
    """Return a sparse array of zeros that stores nothing (or ``nse=`` elements of padding).

    >>> sparse.empty((2, 2)).todense()
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    return _format(sparse_format)._empty(tuple(shape), dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None,
        index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse:
    """Return the sparse matrix with ones on diagonal ``k``.

    Raises: OverflowError if ``index_dtype`` does not count its rows and columns.

    >>> from saem.experimental import sparse
    >>> sparse.eye(3, k=1)
    BCOO(float32[3, 3], nse=2)
    """
    N, M, k = operator.index(N), operator.index(N if M is None else M), operator.index(k)
    if not holds(np.dtype(index_dtype), max(N, M)):
        raise OverflowError(f"eye: index_dtype={np.dtype(index_dtype)} cannot count {max(N, M)} "
                            "rows or columns. Try: index_dtype='int32'.")
    size = max(0, min(N, M - k) if k >= 0 else min(N + k, M))
    at = jnp.arange(size, dtype=index_dtype)
    rows, cols = (at, at + k) if k >= 0 else (at - k, at)
    made = BCOO((jnp.ones(size, dtype), jnp.stack([rows, cols], 1)), shape=(N, M),
                indices_sorted=True, unique_indices=True)
    n_batch, n_dense = kwds.pop("n_batch", 0), kwds.pop("n_dense", 0)
    if kwds:
        raise TypeError(f"eye: unexpected arguments {sorted(kwds)}")
    kind = _format(sparse_format)
    if kind in (BCOO, BCSR):
        made = made.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
        if n_batch or n_dense == 2:  # a row has one element at most
            made = made.sum_duplicates(nse=min(made.nse, 1))
        return made if kind is BCOO else BCSR.from_bcoo(made)
    if kind is COO:
        return COO((made.data, rows, cols), shape=made.shape, rows_sorted=True, cols_sorted=True)
    by_rows = BCSR.from_bcoo(made if kind is CSR else made.transpose())
    out = CSR((by_rows.data, by_rows.indices, by_rows.indptr), shape=by_rows.shape)
    return out if kind is CSR else out.transpose()


__all__ = ["empty", "eye", "todense", "todense_p"]

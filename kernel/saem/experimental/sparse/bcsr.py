"""How is a sparse matrix stored by rows?  Batched compressed rows: ``BCSR``.

``indptr[i]`` is where row ``i`` begins in ``indices`` (columns) and ``data``; what stands behind
the last row is padding.  Operations go through BCOO, which has the same elements in the same order.

Read before: ``bcoo_format``.
Invariant: as for BCOO, each function gives what the dense operation gives
(tests/kernel/test_sparse.py).
Source: the documentation of jax.experimental.sparse.BCSR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import saem.numpy as jnp
from saem.core import containers
from saem.experimental.sparse.base import JAXSparse, Shape, SparseInfo, nfold_vmap
from saem.experimental.sparse.bcoo_format import BCOO, bcoo_extract, bcoo_fromdense, refit, whole
from saem.experimental.sparse.bcoo_products import DotDimensionNumbers, bcoo_dot_general
from saem.experimental.sparse.bcoo_structure import bcoo_broadcast_in_dim, bcoo_concatenate
from saem.typing import Array, ArrayLike, DTypeLike


class BCSR(JAXSparse):
    """A sparse matrix, or a batch of them, stored row by row.

    ``BCSR((data, indices, indptr), shape=shape)`` takes the arrays; ``BCSR.fromdense(x)`` finds
    them.

    >>> import saem.numpy as jnp
    >>> from saem.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[0., 1.], [2., 0.]]))
    >>> m.indptr.tolist(), m.todense().tolist()
    ([0, 1, 2], [[0.0, 1.0], [2.0, 0.0]])
    """

    data: Array
    indices: Array
    indptr: Array
    indices_sorted: bool
    unique_indices: bool
    n_sparse = 2

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        rows = self.shape[self.n_batch]
        if self.indptr.ndim != self.indices.ndim or self.indptr.shape[-1] != rows + 1:
            raise ValueError(f"Invalid indptr.shape={self.indptr.shape} for shape={self.shape}: "
                             f"needed {rows + 1} entries.")
        if self.data.ndim < self.indices.ndim or \
                self.data.shape[self.n_batch] != self.indices.shape[-1]:
            raise ValueError(f"Invalid data.shape={self.data.shape} for "
                             f"indices.shape={self.indices.shape}")

    @property
    def nse(self) -> int:
        """The number of elements stored (per batch)."""
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        """The number of batch axes.  Raises: ValueError if one was mapped that there is not."""
        return self.checked_batch(self.indices.ndim - 1)

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - self.indices.ndim

    @property
    def _bufs(self) -> tuple[Array, Array, Array]:
        return self.data, self.indices, self.indptr

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _sparse_shape(self) -> Shape:
        return self.shape[self.n_batch:self.n_batch + 2]

    def _layout(self) -> str:
        found = (("n_batch", self.n_batch), ("n_dense", self.n_dense))
        return "".join(f", {name}={n}" for name, n in found if n)

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """Return the dense array ``mat`` as BCSR; see ``bcsr_fromdense``."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Return a BCOO array with two sparse axes, stored by rows.

        Raises: NotImplementedError for another number of sparse axes.
        """
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BSCR.from_bcoo requires n_sparse=2; got {arr.n_sparse}")
        if not arr.indices_sorted:
            arr = arr.sort_indices()
        data, indices = whole(arr)
        rows = arr.sparse_shape[0]
        numbers = jnp.arange(rows + 1)
        starts = nfold_vmap(
            lambda column: jnp.searchsorted(column.astype(numbers.dtype), numbers), arr.n_batch)(
            indices[..., 0]).astype(indices.dtype)
        return cls((data, indices[..., 1], starts), shape=arr.shape, indices_sorted=True,
                   unique_indices=arr.unique_indices)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCSR:
        """Return a matrix of ``scipy.sparse`` as BCSR."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        mat = mat.tocsr()
        index_dtype = index_dtype or jnp.int32
        return cls((jnp.asarray(mat.data), jnp.asarray(mat.indices).astype(index_dtype),
                    jnp.asarray(mat.indptr).astype(index_dtype)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
               ) -> BCSR:
        if len(shape) - n_dense - n_batch != 2:
            raise ValueError(f"BCSR._empty: needed two sparse axes, got shape {tuple(shape)}")
        return cls.from_bcoo(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype,
                                         n_dense=n_dense, n_batch=n_batch, nse=nse))

    def to_bcoo(self) -> BCOO:
        """Return it as BCOO, with the same elements in the same order."""
        rows, cols = self._sparse_shape

        def one(indices: Array, indptr: Array) -> Array:
            place = jnp.arange(self.nse)
            starts = indptr.astype(place.dtype)
            row = (jnp.searchsorted(starts, place, side="right") - 1).astype(indices.dtype)
            inside = place < starts[-1]
            return jnp.stack([jnp.where(inside, row, rows), jnp.where(inside, indices, cols)],
                             1).astype(indices.dtype)

        indices = nfold_vmap(one, self.n_batch)(self.indices, self.indptr)
        return BCOO((self.data, indices), shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)

    def todense(self) -> Array:
        """Return the dense array."""
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Return it with each place stored once, and without zeros if ``remove_zeros``."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse=nse, remove_zeros=remove_zeros))

    def transpose(self, axes: Any = None) -> BCSR:
        """Raise: NotImplementedError; transpose ``to_bcoo()``."""
        raise NotImplementedError("Transpose is not implemented. Try: x.to_bcoo().transpose()")

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        """Return the arrays and what is static."""
        return (self.data, self.indices, self.indptr), self._info._asdict()

    def _fill(self, children: Sequence[Any], static: dict[str, Any]) -> None:
        self.data, self.indices, self.indptr = children
        self.shape = refit(static["shape"], self.data, self.indices, 1)
        self.indices_sorted = static["indices_sorted"]
        self.unique_indices = static["unique_indices"]


containers.register_pytree_node_class(BCSR)


def bcsr_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = jnp.int32) -> BCSR:
    """Return the dense array ``mat`` as BCSR with ``nse`` elements per batch.

    >>> sparse.bcsr_fromdense(jnp.array([[0., 2.], [3., 0.]])).indices
    Array([1, 0], dtype=int32)
    """
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                                         index_dtype=index_dtype))


def bcsr_todense(mat: BCSR) -> Array:
    """Return the dense array that ``mat`` stands for.

    >>> sparse.bcsr_todense(sparse.BCSR.fromdense(jnp.array([[0., 2.], [3., 0.]])))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """
    return mat.todense()


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Return the elements of the dense ``mat`` at the places stored.

    >>> sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.array([[1., 2.], [3.,
    ...     4.]]))
    Array([2., 3.], dtype=float32)
    """
    mat, indices = jnp.asarray(mat), jnp.asarray(indices)
    n_batch = indices.ndim - 1
    empty = jnp.zeros((*indices.shape, *mat.shape[n_batch + 2:]), mat.dtype)
    places = BCSR((empty, indices, indptr), shape=mat.shape).to_bcoo()
    return bcoo_extract(places, mat, assume_unique=True).data


def bcsr_dot_general(lhs: BCSR | Array, rhs: Array, *, dimension_numbers: DotDimensionNumbers,
                     precision: None = None, preferred_element_type: Any = None,
                     out_sharding: Any = None) -> Array:
    """Return ``lax.dot_general`` of a BCSR array and a dense one.

    >>> M = sparse.BCSR.fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> sparse.bcsr_dot_general(M, jnp.array([1., 10.]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([20.,  3.], dtype=float32)
    """
    return bcoo_dot_general(*(m.to_bcoo() if isinstance(m, BCSR) else m for m in (lhs, rhs)),
                            dimension_numbers=dimension_numbers, precision=precision,
                            preferred_element_type=preferred_element_type,
                            out_sharding=out_sharding)


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Shape, broadcast_dimensions: Sequence[int],
                          sharding: Any = None) -> BCSR:
    """Return ``mat`` stretched to ``shape``, which must leave it two sparse axes."""
    return BCSR.from_bcoo(bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Return the arrays one after the other along ``dimension``."""
    return BCSR.from_bcoo(bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return ``mat`` with each place stored once."""
    return mat.sum_duplicates(nse=nse, remove_zeros=False)



"""How are the older formats for one matrix stored: ``COO``, ``CSR`` and ``CSC``?

They hold what BCOO and BCSR hold without batch and dense axes; what they compute with are the
primitives of ``matrices``.

Read before: ``matrices``.
Invariant: each function gives what the dense operation gives (tests/kernel/test_sparse.py).
Source: the documentation of jax.experimental.sparse.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

import saem.numpy as jnp
from saem.core import containers
from saem.experimental.sparse.base import JAXSparse, Shape
from saem.experimental.sparse.bcoo_format import BCOO, known
from saem.experimental.sparse.bcsr import BCSR
from saem.experimental.sparse.matrices import (
    COOInfo,
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
)
from saem.numpy.promote import promote_dtypes
from saem.typing import Array, ArrayLike, DTypeLike


class _OneMatrix(JAXSparse):
    """A matrix without batch and dense axes."""

    @property
    def nse(self) -> int:
        """The number of elements stored."""
        return self.data.size

    @abc.abstractmethod
    def to_bcoo(self) -> BCOO:
        """Return it as BCOO."""

    @abc.abstractmethod
    def _times(self, dense: ArrayLike, transpose: bool, ndim: int) -> Array:
        """Return the matrix, or its transpose, times a dense array of ``ndim`` axes."""

    def __matmul__(self, other: Any) -> Array:
        if isinstance(other, JAXSparse):
            raise NotImplementedError(f"{type(self).__name__} @ a sparse array. Try: x.to_bcoo() "
                                      "@ y")
        other = jnp.asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(f"matmul with object of shape {other.shape}")
        return self._times(other, False, other.ndim)


class COO(_OneMatrix):
    """A sparse matrix as lists of rows, columns and elements.

    >>> sparse.COO.fromdense(jnp.array([[0., 2.], [3., 0.]])).data
    Array([2., 3.], dtype=float32)
    """

    data: Array
    row: Array
    col: Array

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int],
                 rows_sorted: bool = False, cols_sorted: bool = False):
        self.data, self.row, self.col = map(jnp.asarray, args)
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    @property
    def _bufs(self) -> tuple[Array, ...]:
        return self.data, self.row, self.col

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32
                  ) -> COO:
        """Return the dense matrix ``mat`` as COO."""
        mat, nse = _given(mat, nse, "coo_fromdense")
        data, row, col = coo_fromdense_p.bind(mat, nse=nse, index_dtype=index_dtype)
        return cls((data, row, col), shape=mat.shape, rows_sorted=True)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None,
                          n_dense: int = 0, n_batch: int = 0) -> COO:
        """Return a matrix of ``scipy.sparse`` as COO."""
        if n_dense or n_batch:
            raise NotImplementedError("COO.from_scipy_sparse with nonzero n_dense/n_batch.")
        m = BCOO.from_scipy_sparse(mat, index_dtype=index_dtype)
        return cls((m.data, m.indices[:, 0], m.indices[:, 1]), shape=m.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32") -> COO:
        _matrix(shape, cls)
        empty = jnp.empty(0, index_dtype)
        return cls((jnp.empty(0, dtype), empty, empty), shape=shape, rows_sorted=True,
                   cols_sorted=True)

    def to_bcoo(self) -> BCOO:
        """Return it as BCOO."""
        return BCOO((self.data, jnp.stack([self.row, self.col], 1)), shape=self.shape)

    def todense(self) -> Array:
        """Return the dense matrix."""
        return coo_todense_p.bind(self.data, self.row, self.col, spinfo=self._info)

    def _times(self, dense: ArrayLike, transpose: bool, ndim: int) -> Array:
        data, dense = promote_dtypes(self.data, dense)
        product = coo_matvec_p if ndim == 1 else coo_matmat_p
        return product.bind(data, self.row, self.col, dense, spinfo=self._info,
                            transpose=transpose)

    def transpose(self, axes: Any = None) -> COO:
        """Return the transpose."""
        _no_axes(axes)
        return COO((self.data, self.col, self.row), shape=self.shape[::-1],
                   rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted)

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        """Return the arrays and what is static."""
        return (self.data, self.row, self.col), {
            "shape": self.shape, "rows_sorted": self._rows_sorted,
            "cols_sorted": self._cols_sorted}

    def _fill(self, children: Sequence[Any], static: dict[str, Any]) -> None:
        self.data, self.row, self.col = children
        self.shape = static["shape"]
        self._rows_sorted, self._cols_sorted = static["rows_sorted"], static["cols_sorted"]


class _Compressed(_OneMatrix):
    """A matrix stored line by line: by rows (``CSR``) or by columns (``CSC``)."""

    data: Array
    indices: Array
    indptr: Array

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=shape)

    @property
    def _bufs(self) -> tuple[Array, ...]:
        return self.data, self.indices, self.indptr

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        """Return the arrays and what is static."""
        return (self.data, self.indices, self.indptr), {"shape": self.shape}

    def _fill(self, children: Sequence[Any], static: dict[str, Any]) -> None:
        self.data, self.indices, self.indptr = children
        self.shape = static["shape"]

    def _times_by_rows(self, dense: ArrayLike, transpose: bool, ndim: int, shape: Shape) -> Array:
        """Return the product, the arrays being those of a matrix of ``shape`` stored by rows."""
        data, dense = promote_dtypes(self.data, dense)
        product = csr_matvec_p if ndim == 1 else csr_matmat_p
        return product.bind(data, self.indices, self.indptr, dense, shape=shape,
                            transpose=transpose)


class CSR(_Compressed):
    """A sparse matrix stored row by row.

    >>> sparse.CSR.fromdense(jnp.array([[0., 2.], [3., 0.]])).indptr
    Array([0, 1, 2], dtype=int32)
    """

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32
                  ) -> CSR:
        """Return the dense matrix ``mat`` as CSR."""
        mat, nse = _given(mat, nse, "csr_fromdense")
        return cls(tuple(csr_fromdense_p.bind(
            mat, nse=nse, index_dtype=np.dtype(index_dtype))), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32") -> CSR:
        _matrix(shape, cls)
        return cls((jnp.empty(0, dtype), jnp.empty(0, index_dtype),
                    jnp.zeros(shape[0] + 1, index_dtype)), shape=shape)

    def to_bcoo(self) -> BCOO:
        """Return it as BCOO."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()

    def todense(self) -> Array:
        """Return the dense matrix."""
        return csr_todense_p.bind(self.data, self.indices, self.indptr, shape=self.shape)

    def _times(self, dense: ArrayLike, transpose: bool, ndim: int) -> Array:
        return self._times_by_rows(dense, transpose, ndim, self.shape)

    def transpose(self, axes: Any = None) -> CSC:
        """Return the transpose, the same arrays read by columns."""
        _no_axes(axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


class CSC(_Compressed):
    """A sparse matrix stored column by column.

    >>> sparse.CSC.fromdense(jnp.array([[0., 2.], [3., 0.]])).indptr
    Array([0, 1, 2], dtype=int32)
    """

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32
                  ) -> CSC:
        """Return the dense matrix ``mat`` as CSC."""
        return CSR.fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).transpose()

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32") -> CSC:
        _matrix(shape, cls)
        return CSR._empty(shape[::-1], dtype=dtype, index_dtype=index_dtype).transpose()

    def to_bcoo(self) -> BCOO:
        """Return it as BCOO."""
        return self.transpose().to_bcoo().transpose()

    def todense(self) -> Array:
        """Return the dense matrix."""
        return self.transpose().todense().T

    def _times(self, dense: ArrayLike, transpose: bool, ndim: int) -> Array:
        return self._times_by_rows(dense, not transpose, ndim, self.shape[::-1])

    def transpose(self, axes: Any = None) -> CSR:
        """Return the transpose, the same arrays read by rows."""
        _no_axes(axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


for _kind in (COO, CSR, CSC):
    containers.register_pytree_node_class(_kind)


def _matrix(shape: Sequence[int], cls: type) -> None:
    if len(shape) != 2:
        raise ValueError(f"{cls.__name__} must have ndim=2; got shape={tuple(shape)}")


def _no_axes(axes: Any) -> None:
    if axes is not None and tuple(axes) != (1, 0):
        raise NotImplementedError("axes argument to transpose()")


def _given(mat: ArrayLike, nse: int | None, name: str) -> tuple[Array, int]:
    """Return a matrix to store, and how many elements to keep: all that are not 0 by default."""
    mat = jnp.asarray(mat)
    if mat.ndim != 2:
        raise ValueError(f"a matrix is needed, with two axes; got shape {mat.shape}. Try: "
                         "BCOO.fromdense(x)")
    return mat, known(jnp.count_nonzero(mat), name) if nse is None else nse


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32
                  ) -> COO:
    """Return the dense matrix ``mat`` as COO.

    >>> sparse.coo_fromdense(jnp.array([[0., 2.], [3., 0.]])).row
    Array([0, 1], dtype=int32)
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Array:
    """Return the dense matrix.

    >>> sparse.coo_todense(sparse.COO.fromdense(jnp.array([[0., 2.], [3., 0.]])))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """
    return mat.todense()


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """Return ``mat @ v``, or ``mat.T @ v``."""
    return mat._times(v, transpose, 1)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return ``mat @ B``, or ``mat.T @ B``."""
    return mat._times(B, transpose, 2)


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32
                  ) -> CSR:
    """Return the dense matrix ``mat`` as CSR.

    >>> sparse.csr_fromdense(jnp.array([[0., 2.], [3., 0.]])).indices
    Array([1, 0], dtype=int32)
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_todense(mat: CSR) -> Array:
    """Return the dense matrix.

    >>> sparse.csr_todense(sparse.CSR.fromdense(jnp.array([[0., 2.], [3., 0.]])))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """
    return mat.todense()


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """Return ``mat @ v``, or ``mat.T @ v``."""
    return mat._times(v, transpose, 1)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return ``mat @ B``, or ``mat.T @ B``."""
    return mat._times(B, transpose, 2)


__all__ = [
    "COO", "CSC", "CSR", "COOInfo", "Shape", "coo_fromdense", "coo_fromdense_p", "coo_matmat",
    "coo_matmat_p", "coo_matvec", "coo_matvec_p", "coo_todense", "coo_todense_p", "csr_fromdense",
    "csr_fromdense_p", "csr_matmat", "csr_matmat_p", "csr_matvec", "csr_matvec_p", "csr_todense",
    "csr_todense_p"]

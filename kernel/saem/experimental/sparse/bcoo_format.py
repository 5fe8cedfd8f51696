"""How is an array stored that is mostly zeros?  Batched coordinates: ``BCOO``.

A list of ``nse`` elements, each with the coordinates at which it stands.  The axes of the array are
batch axes, then sparse axes, then dense axes::

    indices : batch..., nse, n_sparse        where each element stands along the sparse axes
    data    : batch..., nse, dense...        what stands there: a block along the dense axes

An element whose coordinates are out of range is padding and counts for nothing, so that arrays with
different numbers of elements can be stacked.  A batch axis of size 1 stands for any size.

Read before: ``sparse.base``.  Read after: ``bcoo_structure``, ``bcoo_products``.
Invariant: every function gives the array that the dense operation gives on ``todense()``, under
``jit``, ``grad`` and ``vmap`` (tests/kernel/test_sparse.py).
Source: the documentation of jax.experimental.sparse.BCOO.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import saem.numpy as jnp
from saem import lax
from saem.core import containers, errors
from saem.core.trace import Tracer
from saem.experimental.sparse.base import (
    JAXSparse,
    Shape,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
    nfold_vmap,
)
from saem.numpy.promote import with_rank
from saem.typing import Array, ArrayLike, DTypeLike


class BCOOProperties(NamedTuple):
    """How the axes of a BCOO array divide, and how many elements it stores."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def properties(data: Any, indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """Return how the axes divide.

    Raises: ValueError when ``data``, ``indices`` and ``shape`` do not fit each other.
    """
    if indices.ndim < 2:
        raise ValueError(f"Invalid indices.shape={indices.shape}: needed (batch..., nse, n_sparse)")
    n_batch, nse, n_sparse = indices.ndim - 2, *indices.shape[-2:]
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(f"Invalid indices.shape={indices.shape} for shape={tuple(shape)}")
    if len(data.shape) != n_batch + 1 + n_dense or data.shape[n_batch] not in (1, nse):
        raise ValueError(f"Invalid data.shape={data.shape} for nse={nse}, n_batch={n_batch}, "
                         f"n_dense={n_dense}")
    for array, name in ((data, "data"), (indices, "indices")):
        for have, size in zip(array.shape[:n_batch], shape):
            if have not in (1, size):
                raise ValueError(f"{name} batch dimensions not compatible for "
                                 f"{name}.shape={array.shape}, shape={tuple(shape)}")
    if tuple(data.shape[n_batch + 1:]) != tuple(shape[n_batch + n_sparse:]):
        raise ValueError(f"Invalid data.shape={data.shape} for shape={tuple(shape)}, "
                         f"n_dense={n_dense}")
    if not jnp.issubdtype(indices.dtype, jnp.integer):
        raise ValueError(f"indices must have an integer dtype; got {indices.dtype}")
    return BCOOProperties(n_batch, n_sparse, n_dense, nse)


class BCOO(JAXSparse):
    """A sparse array as a batched list of coordinates and elements.

    ``BCOO((data, indices), shape=shape)`` takes the arrays; ``BCOO.fromdense(x)`` finds them.

    >>> import saem.numpy as jnp
    >>> from saem.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 1.], [2., 0.]]))
    >>> m
    BCOO(float32[2, 2], nse=2)
    >>> (m @ jnp.array([1., 10.])).tolist()
    [10.0, 2.0]
    """

    data: Array
    indices: Array
    shape: Shape
    indices_sorted: bool
    unique_indices: bool

    def __init__(self, args: tuple[Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices = map(jnp.asarray, args)
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        properties(self.data, self.indices, self.shape)

    # -- what it is ----------------------------------------------------------------------------

    @property
    def nse(self) -> int:
        """The number of elements stored (per batch)."""
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of batch axes.  Raises: ValueError if one was mapped that there is not."""
        return self.checked_batch(self.indices.ndim - 2)

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def _bufs(self) -> tuple[Array, Array]:
        return self.data, self.indices

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def sparse_shape(self) -> Shape:
        """The sizes of the sparse axes."""
        return self.shape[self.n_batch:self.n_batch + self.n_sparse]

    def _layout(self) -> str:
        found = (("n_batch", self.n_batch), ("n_dense", self.n_dense))
        return "".join(f", {name}={n}" for name, n in found if n)

    # -- from and to other forms ---------------------------------------------------------------

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """Return the dense array ``mat`` as BCOO; see ``bcoo_fromdense``."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCOO:
        """Return a matrix of ``scipy.sparse`` as BCOO.

        Raises: NotImplementedError for batch or dense axes, which scipy's matrices do not have.
        """
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy with nonzero n_dense/n_batch.")
        mat = mat.tocoo()
        indices = jnp.column_stack((mat.row, mat.col)).astype(index_dtype or jnp.int32)
        return cls((jnp.asarray(mat.data), indices), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
               ) -> BCOO:
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if min(n_sparse, n_batch, n_dense, nse) < 0:
            raise ValueError(f"Invalid inputs: shape={shape}, n_dense={n_dense}, "
                             f"n_batch={n_batch}, nse={nse}")
        batch, sparse, dense = split(shape, n_batch, n_sparse)
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.full((*batch, nse, n_sparse), jnp.array(sparse, index_dtype), index_dtype)
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    def todense(self) -> Array:
        """Return the dense array."""
        return bcoo_todense(self)

    def update_layout(self, *, n_batch: int | None = None, n_dense: int | None = None,
                      on_inefficient: str | None = "error") -> BCOO:
        """Return the same array with its axes divided otherwise; see ``bcoo_update_layout``."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense,
                                  on_inefficient=on_inefficient)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Return it with each coordinate once, and without zeros if ``remove_zeros``."""
        return (bcoo_eliminate_zeros if remove_zeros else bcoo_sum_duplicates)(self, nse=nse)

    def sort_indices(self) -> BCOO:
        """Return it with its elements in the order of their coordinates."""
        return bcoo_sort_indices(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Return it with axes in the order ``axes``; by default reversed."""
        return bcoo_transpose(self, permutation=range(self.ndim)[::-1] if axes is None else axes)

    def tree_flatten(self) -> tuple[tuple[Array, Array], dict[str, Any]]:
        """Return the arrays and what is static."""
        return (self.data, self.indices), self._info._asdict()

    def _fill(self, children: Sequence[Any], static: dict[str, Any]) -> None:
        self.data, self.indices = children
        self.shape = refit(static["shape"], self.data, self.indices, 2)
        self.indices_sorted = static["indices_sorted"]
        self.unique_indices = static["unique_indices"]


containers.register_pytree_node_class(BCOO)


def refit(shape: Shape, data: Any, indices: Any, own: int) -> Shape:
    """Return ``shape`` for arrays that ``vmap`` or ``scan`` gave other batch axes.

    ``own`` is how many axes of ``indices`` are no batch axes.  Leaves that are no arrays leave the
    shape as it is.
    """
    if not (hasattr(data, "ndim") and hasattr(indices, "ndim")) or indices.ndim < own:
        return shape
    n_batch = indices.ndim - own
    n_sparse = indices.shape[-1] if own == 2 else 2
    n_rest = n_sparse + data.ndim - 1 - n_batch
    if n_rest < 0 or n_batch + n_rest == len(shape):
        return shape
    batch = [max(a, b) for a, b in zip(data.shape[:n_batch], indices.shape[:n_batch])]
    return (*batch, *shape[len(shape) - n_rest:])


# -- parts that the functions share ----------------------------------------------------------------


def split(values: Sequence[Any], n_batch: int, n_sparse: int) -> tuple[Any, Any, Any]:
    """Return the parts of ``values`` for batch, sparse and dense axes."""
    return values[:n_batch], values[n_batch:n_batch + n_sparse], values[n_batch + n_sparse:]


def whole(mat: BCOO) -> tuple[Array, Array]:
    """Return data and indices with every batch axis at its full size."""
    batch = mat.shape[:mat.n_batch]
    return (jnp.broadcast_to(mat.data, (*batch, mat.nse, *mat.data.shape[mat.n_batch + 1:])),
            jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[mat.n_batch:])))


def columns(indices: Array) -> tuple[Array, ...]:
    """Return the coordinates along each sparse axis."""
    return tuple(indices[..., i] for i in range(indices.shape[-1]))


def in_range(indices: Array, sparse_shape: Sequence[int]) -> Array:
    """Return which elements are no padding."""
    sizes = jnp.asarray(sparse_shape, indices.dtype)
    return jnp.all(indices < with_rank(sizes, sizes.shape, indices.ndim), axis=-1)


def masked(keep: Array, data: Array) -> Array:
    """Return ``data`` with zeros where ``keep``, one truth value per element, is false."""
    keep = keep.reshape(keep.shape + (1,) * (data.ndim - keep.ndim))
    return jnp.where(keep, data, jnp.zeros((), data.dtype))


def known(count: Any, name: str) -> int:
    """Return a number that decides a shape.

    Raises: ConcretizationTypeError inside a compiled function, where it is not known.
    """
    if isinstance(count, Tracer):
        raise errors.ConcretizationTypeError(
            count, f"The number of stored elements decides a shape: give nse= to {name}.")
    return int(count)


# -- dense arrays ----------------------------------------------------------------------------------


def bcoo_todense(mat: BCOO) -> Array:
    """Return the dense array that ``mat`` stands for: elements of one place are added.

    >>> sparse.bcoo_todense(sparse.BCOO.fromdense(jnp.array([0., 2.])))
    Array([0., 2.], dtype=float32)
    """
    _, sparse, dense = split(mat.shape, mat.n_batch, mat.n_sparse)

    def one(data: Array, indices: Array) -> Array:
        if not sparse:
            return data.sum(0).astype(data.dtype)
        empty = jnp.zeros((*sparse, *dense), data.dtype)
        return empty.at[columns(indices)].add(data, mode="drop")

    return nfold_vmap(one, mat.n_batch)(*whole(mat))


def bcoo_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = jnp.int32) -> BCOO:
    """Return the dense array ``mat`` as BCOO with ``nse`` elements per batch.

    ``nse`` may be left out where the numbers are known: it is then the largest number of
    elements (blocks along dense axes) that are not zero in one batch.

    Raises: ValueError for numbers of axes that do not fit; ConcretizationTypeError without ``nse``
    inside a compiled function.

    >>> sparse.bcoo_fromdense(jnp.array([0., 2., 3.])).data
    Array([2., 3.], dtype=float32)
    """
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if min(n_sparse, n_batch, n_dense) < 0:
        raise ValueError(f"Invalid inputs: mat.ndim={mat.ndim}, n_batch={n_batch}, "
                         f"n_dense={n_dense}")
    mask = mat != 0
    if n_dense:
        mask = mask.any(tuple(range(mat.ndim - n_dense, mat.ndim)))
    if nse is None:
        counts = mask.sum(tuple(range(n_batch, mask.ndim)))
        nse = known(counts.max(initial=0), "bcoo_fromdense")
    _, sparse, _ = split(mat.shape, n_batch, n_sparse)

    def find(mask: Array) -> Array:
        if not sparse:
            return jnp.zeros((nse, 0), index_dtype)
        places = jnp.nonzero(mask, size=nse, fill_value=sparse)
        return jnp.stack(places, axis=1).astype(index_dtype)

    indices = nfold_vmap(find, n_batch)(mask)
    data = _extract(indices, mat, n_batch)
    if not sparse:  # there is one place: the first element fills it, the others are padding
        first = jnp.arange(nse) == 0
        data = masked(jnp.broadcast_to(first, data.shape[:n_batch + 1]), data)
    if mat.dtype == bool:
        data = data * 1  # elements of one place are added, which booleans cannot be
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _extract(indices: Array, arr: Array, n_batch: int) -> Array:
    """Return the elements of ``arr`` at ``indices``, zero where they are out of range."""

    def one(indices: Array, arr: Array) -> Array:
        if indices.shape[1] == 0:
            return jnp.broadcast_to(arr[None], (indices.shape[0], *arr.shape))
        return arr.at[columns(indices)].get(mode="fill", fill_value=0)

    batch = arr.shape[:n_batch]
    return nfold_vmap(one, n_batch)(
        jnp.broadcast_to(indices, (*batch, *indices.shape[n_batch:])), arr)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Return the elements of the dense ``arr`` at the places that ``sparr`` stores.

    Where a place is stored several times the first gets the element and the others zero, unless
    ``assume_unique``.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2.]))
    >>> sparse.bcoo_extract(M, jnp.array([5., 6.])).data
    Array([6.], dtype=float32)
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(f"First argument to bcoo_extract should be a BCOO array. Got "
                        f"type(sparr)={type(sparr)}")
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} arr.shape={arr.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    _, indices = whole(sparr)
    data = _extract(indices, arr, sparr.n_batch)
    if not unique:
        first = nfold_vmap(_is_first, sparr.n_batch)(indices)
        data = masked(first, data)
    return BCOO((data, sparr.indices if data.shape[:sparr.n_batch] == sparr.indices.shape[:-2]
                 else indices), shape=sparr.shape, indices_sorted=sparr.indices_sorted,
                unique_indices=sparr.unique_indices)


def _is_first(indices: Array) -> Array:
    """Return, for each element, whether no element before it stands at the same place."""
    if indices.shape[1] == 0:
        return jnp.arange(indices.shape[0]) == 0
    order = _order(indices)
    ordered = indices[order]
    new = jnp.concatenate([jnp.ones(1, bool), jnp.any(ordered[1:] != ordered[:-1], axis=1)])
    return jnp.zeros(indices.shape[0], bool).at[order].set(new[:indices.shape[0]])


def _order(indices: Array) -> Array:
    """Return the order of the elements by their coordinates; equal ones stay in order."""
    return jnp.lexsort(columns(indices)[::-1])


# -- order, duplicates, layout ---------------------------------------------------------------------


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Return ``mat`` with its axes in the order ``permutation``.

    Raises: TypeError for an invalid permutation; NotImplementedError when an axis would leave its
    part (batch, sparse or dense).

    >>> M = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 4.]]))
    >>> sparse.bcoo_transpose(M, permutation=(1, 0)).todense()
    Array([[0., 3.],
           [2., 4.]], dtype=float32)
    """
    p = [int(a) for a in permutation]
    if sorted(p) != list(range(mat.ndim)):
        raise TypeError(f"permutation={tuple(p)} is no permutation of {mat.ndim} axes")
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    if sorted(p[:b]) != list(range(b)) or sorted(p[s:]) != list(range(s, mat.ndim)):
        raise NotImplementedError(
            "transpose permutations that permute a mix of batch, sparse, and dense dimensions.")
    batch, sparse, dense = split(p, mat.n_batch, mat.n_sparse)
    columns_to = [a - b for a in sparse]
    indices = mat.indices.transpose(*batch, b, b + 1)[..., np.array(columns_to, int)]
    data = mat.data.transpose(*batch, b, *[a - mat.n_sparse + 1 for a in dense])
    kept = columns_to == sorted(columns_to)
    return BCOO((data, indices), shape=[mat.shape[a] for a in p],
                indices_sorted=mat.indices_sorted and kept, unique_indices=mat.unique_indices)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Return ``mat`` with its elements in the order of their coordinates, padding last.

    >>> M = sparse.BCOO((jnp.array([1., 2.]), jnp.array([[2], [0]])), shape=(3,))
    >>> sparse.bcoo_sort_indices(M).data
    Array([2., 1.], dtype=float32)
    """
    if mat.n_sparse == 0:
        return mat

    def one(data: Array, indices: Array) -> tuple[Array, Array]:
        order = _order(indices)
        return data[order], indices[order]

    data, indices = nfold_vmap(one, mat.n_batch)(*whole(mat))
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True,
                unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Return ``mat`` with each coordinate stored once, in order, padded to ``nse`` elements.

    Without ``nse`` it is the largest number of coordinates in one batch, which must be known.

    Raises: ValueError where it is not, inside a compiled function.

    >>> M = sparse.BCOO((jnp.array([1., 2.]), jnp.array([[1], [1]])), shape=(3,))
    >>> sparse.bcoo_sum_duplicates(M).data
    Array([3.], dtype=float32)
    """
    data, indices = whole(mat)
    return _unique(mat, data, indices, in_range(indices, mat.sparse_shape), nse)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """Return ``mat`` with each coordinate stored once and without elements that are zero."""
    data, indices = whole(mat)
    keep = in_range(indices, mat.sparse_shape)
    stored = data != 0
    if mat.n_dense:
        stored = stored.any(tuple(range(-mat.n_dense, 0)))
    return _unique(mat, data, indices, keep & stored, nse)


def _summed(mat: BCOO, data: Array, indices: Array, size: int) -> BCOO:
    """Return the sum of all elements where no axis is sparse, padded to ``size`` elements."""
    total = data.sum(mat.n_batch, keepdims=True).astype(data.dtype)
    padded = [(0, size - 1 if i == mat.n_batch else 0) for i in range(data.ndim)]
    nowhere = jnp.zeros((*indices.shape[:-2], size, 0), indices.dtype)
    return BCOO((jnp.pad(total, padded), nowhere), shape=mat.shape, indices_sorted=True,
                unique_indices=True)


def _unique(mat: BCOO, data: Array, indices: Array, keep: Array, nse: int | None) -> BCOO:
    """Return the elements that ``keep`` names, each coordinate once."""
    end = jnp.asarray(mat.sparse_shape, indices.dtype)
    indices = jnp.where(keep[..., None], indices, end)
    data = masked(keep, data)
    if mat.n_sparse == 0:
        return _summed(mat, data, indices, 1 if nse is None else nse)

    def group(indices: Array) -> tuple[Array, Array, Array]:
        """Return the order, each ordered element's group, and the number of groups."""
        order = _order(indices)
        ordered = indices[order]
        new = jnp.any(ordered[1:] != ordered[:-1], axis=1)
        number = jnp.cumsum(jnp.concatenate([jnp.zeros(min(1, len(order)), int),
                                             new.astype(int)]))
        inside = in_range(ordered, mat.sparse_shape)
        return order, jnp.where(inside, number, indices.shape[0]), \
            jnp.max(jnp.where(inside, number + 1, 0), initial=0)

    order, number, counts = nfold_vmap(group, mat.n_batch)(indices)
    if nse is None:
        count = jnp.max(counts, initial=0)
        if isinstance(count, Tracer):
            raise ValueError("bcoo_sum_duplicates: nse must be specified when using the function "
                             "within jit, vmap, and other transformations requiring abstract "
                             "evaluation. It decides the result's shape.")
        nse = int(count)
    if nse == 0:
        at = (slice(None),) * mat.n_batch + (slice(0),)
        return BCOO((data[at], indices[at]), shape=mat.shape, indices_sorted=True,
                    unique_indices=True)

    def collect(data: Array, indices: Array, order: Array, number: Array) -> tuple[Array, Array]:
        # What stands in groups that do not fit is dropped, as JAX does.
        number = jnp.where(number < nse, number, nse)
        places = jnp.broadcast_to(end, (nse, mat.n_sparse)).astype(indices.dtype)
        total = jnp.zeros((nse, *data.shape[1:]), data.dtype)
        return (total.at[number].add(data[order], mode="drop"),
                places.at[number].set(indices[order], mode="drop"))

    made = nfold_vmap(collect, mat.n_batch)(data, indices, order, number)
    return BCOO(made, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """Return ``mat`` with ``n_batch`` batch axes and ``n_dense`` dense axes.

    More batch or dense axes need more storage: then ``on_inefficient`` decides between an error
    (SparseEfficiencyError), ``"warn"`` (SparseEfficiencyWarning) and nothing (None).
    """
    b = mat.n_batch if n_batch is None else int(n_batch)
    d = mat.n_dense if n_dense is None else int(n_dense)
    if b < 0 or d < 0 or b + d > mat.ndim:
        raise ValueError(f"n_batch={b} and n_dense={d} do not fit {mat.ndim} axes.")
    if (b, d) == (mat.n_batch, mat.n_dense):
        return mat
    for name, now, old in (("n_batch", b, mat.n_batch), ("n_dense", d, mat.n_dense)):
        if now > old and on_inefficient is not None:
            _inefficient(f"For matrix of shape {mat.shape}, increasing {name} from {old} to {now}",
                         on_inefficient)
    new = mat
    if d < new.n_dense or b < new.n_batch:
        new = _sparser(new, min(b, new.n_batch), min(d, new.n_dense))
    while new.n_dense < d:
        new = _one_more_dense(new)
    while new.n_batch < b:
        new = _one_more_batch(new)
    return new


def _inefficient(what: str, action: str) -> None:
    message = (f"{what} results in inefficient storage. To disable this "
               f"{'error' if action == 'error' else 'warning'}, set the on_inefficient argument of "
               "bcoo_update_layout to 'warn' or None.")
    if action == "error":
        raise SparseEfficiencyError(message)
    if action != "warn":
        raise ValueError(f"on_inefficient={action!r} must be 'error', 'warn' or None.")
    warnings.warn(message, SparseEfficiencyWarning, stacklevel=4)


def _sparser(mat: BCOO, n_batch: int, n_dense: int) -> BCOO:
    """Return ``mat`` with fewer batch and dense axes: those that are too many become sparse."""

    inner = mat.shape[n_batch:mat.ndim - n_dense]

    def one(data: Array, indices: Array) -> tuple[Array, Array]:
        def part(data: Array) -> tuple[Array, Array]:
            return flat(BCOO((data, indices), shape=inner))._bufs

        # Dense axes that stay are moved in front while the others are made sparse.
        for _ in range(n_dense):
            data = jnp.moveaxis(data, -1, 0)
        data, places = nfold_vmap(part, n_dense)(data)
        for _ in range(n_dense):
            data, places = jnp.moveaxis(data, 0, -1), places[0]
        return data, places

    data, indices = nfold_vmap(one, n_batch)(*whole(mat))
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices,
                indices_sorted=mat.indices_sorted and mat.n_batch - n_batch <= 1
                and n_dense == mat.n_dense)


def _one_more_dense(mat: BCOO) -> BCOO:
    """Return ``mat`` with its last sparse axis dense."""
    size = mat.sparse_shape[-1]

    def one(data: Array, indices: Array) -> tuple[Array, Array]:
        inside = in_range(indices, mat.sparse_shape)
        places = jnp.where(inside, indices[:, -1], size)
        wide = jnp.zeros((data.shape[0], size, *data.shape[1:]), data.dtype)
        wide = wide.at[jnp.arange(data.shape[0]), places].set(data, mode="drop")
        rest = jnp.where(inside[:, None], indices[:, :-1],
                         jnp.asarray(mat.sparse_shape[:-1], indices.dtype))
        return wide, rest

    data, indices = nfold_vmap(one, mat.n_batch)(*whole(mat))
    return BCOO((data, indices), shape=mat.shape)


def _one_more_batch(mat: BCOO) -> BCOO:
    """Return ``mat`` with its first sparse axis a batch axis."""
    size, rest = mat.sparse_shape[0], mat.sparse_shape[1:]

    def one(data: Array, indices: Array) -> tuple[Array, Array]:
        inside = in_range(indices, mat.sparse_shape)

        def row(number: Array) -> tuple[Array, Array]:
            mine = inside & (indices[:, 0] == number)
            return masked(mine, data), jnp.where(mine[:, None], indices[:, 1:],
                                                 jnp.asarray(rest, indices.dtype))

        return nfold_vmap(row, 1)(jnp.arange(size))

    data, indices = nfold_vmap(one, mat.n_batch)(*whole(mat))
    return BCOO((data, indices), shape=mat.shape)


def flat(mat: BCOO) -> BCOO:
    """Return ``mat`` with sparse axes only: every batch and dense axis becomes one."""
    b, s, d = mat.n_batch, mat.n_sparse, mat.n_dense
    if b == d == 0:
        return mat
    data, indices = whole(mat)
    batch, _, dense = split(mat.shape, b, s)
    full = (*batch, mat.nse, *dense)
    grid = lambda axis: jnp.broadcast_to(
        lax.broadcasted_iota(indices.dtype, full, axis), full).reshape(-1)
    middle = jnp.broadcast_to(
        indices.reshape(*batch, mat.nse, *(1,) * d, s), (*full, s)).reshape(math.prod(full), s)
    parts = [*(grid(i)[:, None] for i in range(b)), middle,
             *(grid(b + 1 + i)[:, None] for i in range(d))]
    return BCOO((data.reshape(-1), jnp.concatenate(parts, axis=1)), shape=mat.shape,
                unique_indices=mat.unique_indices,
                indices_sorted=mat.indices_sorted and b <= 1 and d == 0)

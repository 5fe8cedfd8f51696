"""How are sparse arrays multiplied: with dense arrays, with each other, place by place?

A product with a dense array goes through the stored elements once: each is multiplied with the row
of the dense array that its coordinates name, and added to its place in the result.  So the work
grows with what is stored, and derivatives come from gathers and scatters.

Read before: ``bcoo_format``.
Invariant: the result is ``lax.dot_general`` of the dense arrays (tests/kernel/test_sparse.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import saem.numpy as jnp
from saem import lax
from saem.core.promotion import result_type
from saem.experimental.sparse.base import nfold_vmap
from saem.experimental.sparse.bcoo_format import (
    BCOO,
    bcoo_sum_duplicates,
    bcoo_update_layout,
    columns,
    flat,
    in_range,
    masked,
    whole,
)
from saem.typing import Array, ArrayLike, Shape

DotDimensionNumbers = tuple[tuple[Any, Any], tuple[Any, Any]]


def bcoo_dot_general(lhs: BCOO | Array, rhs: BCOO | Array, *,
                     dimension_numbers: DotDimensionNumbers, precision: None = None,
                     preferred_element_type: Any = None, out_sharding: Any = None) -> BCOO | Array:
    """Return ``lax.dot_general`` of two arrays of which at least one is sparse.

    Sparse with dense is dense; sparse with sparse is sparse, with at most as many elements as there
    are pairs of stored elements.

    Raises: TypeError for axes that do not fit; NotImplementedError for an ``out_sharding``, and for
    sparse arrays whose dense axes or whose sparse axes are batch axes of the product.

    >>> M = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
    >>> sparse.bcoo_dot_general(M, jnp.array([1., 10.]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([20.,  3.], dtype=float32)
    """
    if out_sharding is not None:
        raise NotImplementedError("bcoo_dot_general with out_sharding: place the result with "
                                  "jax.device_put.")
    numbers = _tuples(dimension_numbers)
    shapes = (x.shape if isinstance(x, BCOO) else jnp.shape(x) for x in (lhs, rhs))
    _check_axes(*shapes, numbers)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_sparse(lhs, rhs, numbers, preferred_element_type)
    if isinstance(lhs, BCOO):
        return _sparse_dense(lhs, jnp.asarray(rhs), numbers, preferred_element_type)
    if not isinstance(rhs, BCOO):
        return lax.dot_general(lhs, rhs, numbers, precision=precision,
                               preferred_element_type=preferred_element_type)
    (lc, rc), (lb, rb) = numbers
    out = _sparse_dense(rhs, jnp.asarray(lhs), ((rc, lc), (rb, lb)), preferred_element_type)
    n, free = len(lb), rhs.ndim - len(rc) - len(rb)  # the result has rhs's free axes first
    return out.transpose(*range(n), *range(n + free, out.ndim), *range(n, n + free))


def _tuples(numbers: Any) -> Any:
    return tuple(tuple(tuple(int(a) for a in axes) for axes in pair) for pair in numbers)


def _check_axes(lhs: Shape, rhs: Shape, numbers: Any) -> None:
    """Check that summed and batch axes exist and have equal sizes.  Raises: TypeError."""
    (lc, rc), (lb, rb) = numbers
    left, right = (*lc, *lb), (*rc, *rb)
    if len(lc) != len(rc) or len(lb) != len(rb) or not (
            all(0 <= a < len(lhs) for a in left) and all(0 <= b < len(rhs) for b in right)):
        raise TypeError(f"dot_general needs axes of operands of shapes {lhs} and {rhs} in pairs, "
                        f"got dimension_numbers={numbers}.")
    for a, b in zip(left, right):
        if lhs[a] != rhs[b]:
            raise TypeError("dot_general requires contracting and batch dimensions to have the "
                            f"same shape, got {lhs[a]} and {rhs[b]}.")


def _free(ndim: int, *used: tuple[int, ...]) -> list[int]:
    return [a for a in range(ndim) if not any(a in axes for axes in used)]


def _sparse_dense(lhs: BCOO, rhs: Array, numbers: Any, preferred: Any) -> Array:
    (lc, rc), (lb, rb) = numbers
    dtype = result_type(lhs.dtype, rhs.dtype) if preferred is None else np.dtype(preferred)
    free_l, free_r = _free(lhs.ndim, lc, lb), _free(rhs.ndim, rc, rb)
    one_list = flat(lhs)
    indices = one_list.indices
    keep = in_range(indices, one_list.shape)
    rows = rhs.transpose(*rb, *rc, *free_r).astype(dtype)
    rows = rows[tuple(indices[:, a] for a in (*lb, *lc))] if lb or lc else \
        jnp.broadcast_to(rows, (indices.shape[0], *rows.shape))
    data = masked(keep, one_list.data).astype(dtype)
    product = data.reshape(-1, *(1,) * len(free_r)) * rows
    product = masked(keep, product)  # a row that padding names may hold anything
    out = jnp.zeros((*(lhs.shape[a] for a in (*lb, *free_l)), *(rhs.shape[a] for a in free_r)),
                    dtype)
    if not lb and not free_l:
        return product.sum(0).astype(dtype)
    return out.at[tuple(indices[:, a] for a in (*lb, *free_l))].add(product, mode="drop")


def _sparse_sparse(lhs: BCOO, rhs: BCOO, numbers: Any, preferred: Any) -> BCOO:
    (lc, rc), (lb, rb) = numbers
    n = len(lb)
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_dot_general: contraction over dense dimensions of sparse "
                                  "operands. Make them sparse with update_layout(n_dense=0).")
    if lb != tuple(range(n)) or rb != tuple(range(n)) or min(lhs.n_batch, rhs.n_batch) < n:
        raise NotImplementedError("bcoo_dot_general: batch dimensions of the product must be the "
                                  "leading batch dimensions of both sparse operands.")
    lhs, rhs = (bcoo_update_layout(m, n_batch=n) if m.n_batch > n else m for m in (lhs, rhs))
    dtype = result_type(lhs.dtype, rhs.dtype) if preferred is None else np.dtype(preferred)
    free_l, free_r = _free(lhs.ndim, lc, lb), _free(rhs.ndim, rc, rb)
    free_shape = tuple(lhs.shape[a] for a in free_l) + tuple(rhs.shape[a] for a in free_r)

    def one(ld: Array, li: Array, rd: Array, ri: Array) -> tuple[Array, Array]:
        same = (in_range(li, lhs.sparse_shape)[:, None] & in_range(ri, rhs.sparse_shape)[None])
        for a, b in zip(lc, rc):
            same &= li[:, None, a - n] == ri[None, :, b - n]
        data = jnp.where(same, ld.astype(dtype)[:, None] * rd.astype(dtype)[None], 0)
        left = [jnp.broadcast_to(li[:, None, a - n], same.shape) for a in free_l]
        right = [jnp.broadcast_to(ri[None, :, b - n], same.shape) for b in free_r]
        places = jnp.stack([*left, *right], -1) if free_shape else \
            jnp.zeros((*same.shape, 0), li.dtype)
        places = jnp.where(same[..., None], places, jnp.asarray(free_shape, places.dtype))
        return data.astype(dtype).reshape(-1), places.reshape(same.size, len(free_shape))

    data, indices = nfold_vmap(one, n)(*whole(lhs), *whole(rhs))
    out = BCOO((data, indices), shape=lhs.shape[:n] + free_shape)
    places = math.prod(free_shape)
    return bcoo_sum_duplicates(out, nse=places) if out.nse > places else out


def bcoo_dot_general_sampled(A: ArrayLike, B: ArrayLike, indices: Array, *,
                             dimension_numbers: DotDimensionNumbers) -> Array:
    """Return the elements of ``lax.dot_general(A, B, dimension_numbers)`` at ``indices``.

    ``indices`` has the shape (batch..., nse, n_sparse); only rows that it names are multiplied
    when it covers all axes of the result and has no batch axes.
    """
    A, B = jnp.asarray(A), jnp.asarray(B)
    (ac, bc), (ab, bb) = _tuples(dimension_numbers)
    free_a, free_b = _free(A.ndim, ac, ab), _free(B.ndim, bc, bb)
    shape = tuple(A.shape[a] for a in (*ab, *free_a)) + tuple(B.shape[b] for b in free_b)
    if indices.ndim != 2 or indices.shape[1] != len(shape):
        out = lax.dot_general(A, B, ((ac, bc), (ab, bb)))
        n_batch = indices.ndim - 2
        return nfold_vmap(lambda i, out: out.at[columns(i)].get(mode="fill", fill_value=0),
                          n_batch)(indices, out)
    at = columns(indices)
    n, m = len(ab), len(ab) + len(free_a)
    rows = A.transpose(*ab, *free_a, *ac)[at[:m]]
    others = B.transpose(*bb, *free_b, *bc)[at[:n] + at[m:]]
    product = (rows * others).reshape(indices.shape[0], -1).sum(1)
    return masked(in_range(indices, shape), product)


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """Return the data of ``sp_mat * v``, whose places are those of ``sp_mat``.

    ``v`` has the shape of ``sp_mat`` or one that stretches to it.

    Raises: ValueError for shapes that do not fit; NotImplementedError if the product would have a
    larger shape than ``sp_mat``.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2.]))
    >>> sparse.bcoo_multiply_dense(M, jnp.array([5., 6.]))
    Array([12.], dtype=float32)
    """
    v = jnp.asarray(v)
    if jnp.broadcast_shapes(sp_mat.shape, v.shape) != sp_mat.shape:
        raise NotImplementedError(
            f"multiplication between a sparse array of shape {sp_mat.shape} and a dense array of "
            f"shape {v.shape} would have more places than the sparse array.")
    v = jnp.broadcast_to(v, sp_mat.shape)
    data, indices = whole(sp_mat)

    def one(data: Array, indices: Array, v: Array) -> Array:
        if indices.shape[1] == 0:
            return data * v[None]
        return data * v.at[columns(indices)].get(mode="fill", fill_value=0)

    return nfold_vmap(one, sp_mat.n_batch)(data, indices, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Return the elementwise product of two sparse arrays.

    Axes of size 1 stretch.  Every pair of stored elements is compared.  An axis that is a batch
    or dense axis of one operand alone becomes sparse.

    Raises: TypeError for ranks that differ.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2.]))
    >>> sparse.bcoo_multiply_sparse(M, M).todense()
    Array([0., 4.], dtype=float32)
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError("bcoo_multiply_sparse: operands have different numbers of axes: "
                        f"{lhs.shape} and {rhs.shape}")
    if (lhs.n_batch, lhs.n_dense) != (rhs.n_batch, rhs.n_dense):
        common = {"n_batch": min(lhs.n_batch, rhs.n_batch),
                  "n_dense": min(lhs.n_dense, rhs.n_dense)}
        lhs, rhs = (bcoo_update_layout(m, **common) for m in (lhs, rhs))
    shape = tuple(np.broadcast_shapes(lhs.shape, rhs.shape))
    b, s = lhs.n_batch, lhs.n_sparse
    sparse = shape[b:b + s]

    def one(ld: Array, li: Array, rd: Array, ri: Array) -> tuple[Array, Array]:
        same = in_range(li, lhs.sparse_shape)[:, None] & in_range(ri, rhs.sparse_shape)[None]
        places = []
        for k in range(s):
            left, right = li[:, None, k], ri[None, :, k]
            if lhs.sparse_shape[k] == rhs.sparse_shape[k]:
                same &= left == right
            places.append(jnp.broadcast_to(
                right if lhs.sparse_shape[k] == 1 else left, same.shape))
        data = masked(same, ld[:, None] * rd[None])
        at = jnp.stack(places, -1) if s else jnp.zeros((*same.shape, 0), li.dtype)
        at = jnp.where(same[..., None], at, jnp.asarray(sparse, at.dtype))
        return data.reshape(-1, *data.shape[2:]), at.reshape(-1, s)

    spread = [jnp.broadcast_to(x, (*shape[:b], *x.shape[b:]))
              for m in (lhs, rhs) for x in (m.data, m.indices)]
    return BCOO(nfold_vmap(one, b)(*spread), shape=shape)

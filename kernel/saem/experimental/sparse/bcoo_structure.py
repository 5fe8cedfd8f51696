"""How is a sparse array cut, joined, stretched and summed without making it dense?

Each function changes coordinates and keeps the elements; what falls outside becomes padding.

Read before: ``bcoo_format``.
Invariant: ``f(mat).todense()`` is the dense function of ``mat.todense()``
(tests/kernel/test_sparse.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import saem.numpy as jnp
from saem import lax
from saem.core.promotion import result_type
from saem.experimental.sparse.base import Shape, nfold_vmap
from saem.experimental.sparse.bcoo_format import (
    BCOO,
    bcoo_sum_duplicates,
    bcoo_update_layout,
    columns,
    flat,
    in_range,
    masked,
    split,
    whole,
)
from saem.ops.convert import holding
from saem.ops.windows import GatherDimensionNumbers
from saem.typing import Array


def _rebuilt(mat: BCOO, data: Array, indices: Array, keep: Array, shape: Sequence[int],
             **known: bool) -> BCOO:
    """Return new coordinates, padding where ``keep`` is false, with no more than fit."""
    n_batch = indices.ndim - 2
    sparse = tuple(shape)[n_batch:n_batch + indices.shape[-1]]
    indices = jnp.where(keep[..., None], indices, jnp.asarray(sparse, indices.dtype))
    out = BCOO((masked(keep, data), indices), shape=shape, **known)
    places = math.prod(sparse)
    return bcoo_sum_duplicates(out, nse=places) if out.nse > places else out


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Shape, broadcast_dimensions: Sequence[int],
                          sharding: Any = None) -> BCOO:
    """Return ``mat`` stretched to ``shape``, its axes at ``broadcast_dimensions``.

    New axes before the first sparse axis are batch axes, those after the first dense axis dense,
    all others sparse: along these, elements are stored again for each place.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2.]))
    >>> sparse.bcoo_broadcast_in_dim(M, shape=(2, 2), broadcast_dimensions=(1,)).todense()
    Array([[0., 2.],
           [0., 2.]], dtype=float32)
    """
    if sharding is not None:
        raise NotImplementedError("bcoo_broadcast_in_dim with sharding")
    dims = [int(a) for a in broadcast_dimensions]
    _check_stretch(mat, shape, dims)
    b_dims, s_dims, d_dims = split(dims, mat.n_batch, mat.n_sparse)
    n_batch = dims[mat.n_batch] if mat.ndim > mat.n_batch else len(shape)
    n_dense = len(shape) - min(d_dims) if d_dims else 0
    batch, sparse, dense = split(shape, n_batch, len(shape) - n_dense - n_batch)
    data, indices = whole(mat)
    keep = in_range(indices, mat.sparse_shape)
    dense_at = [n_batch + 1 + a - (len(shape) - n_dense) for a in d_dims]
    data = lax.broadcast_in_dim(data, (*batch, mat.nse, *dense), (*b_dims, n_batch, *dense_at))
    indices = lax.broadcast_in_dim(indices, (*batch, *indices.shape[-2:]),
                                   (*b_dims, n_batch, n_batch + 1))
    keep = lax.broadcast_in_dim(keep, (*batch, mat.nse), (*b_dims, n_batch))
    kept = [a - n_batch for a in s_dims]
    new, times = _repeated(indices, sparse, {
        a: i for i, a in enumerate(kept) if mat.sparse_shape[i] == sparse[a]})
    return _rebuilt(mat, jnp.repeat(data, times, axis=n_batch), new,
                    jnp.repeat(keep, times, axis=n_batch), shape)


def _check_stretch(mat: BCOO, shape: Shape, dims: list[int]) -> None:
    """Refuse to stretch ``mat`` to ``shape`` with its axes at ``dims``.  Raises: ValueError."""
    if len(dims) != mat.ndim or sorted(set(dims)) != dims:
        raise ValueError(f"broadcast_dimensions must be increasing, one per axis; got {dims} for "
                         f"shape {mat.shape}")
    if any(n not in (1, shape[a]) for n, a in zip(mat.shape, dims)):
        raise ValueError(f"bcoo_broadcast_in_dim: axes of shape {mat.shape} at {dims} do not "
                         f"stretch to shape {tuple(shape)}")


def _repeated(indices: Array, sparse: Shape, column_of: dict[int, int]) -> tuple[Array, int]:
    """Return ``indices`` of elements that stand at every place of some sparse axes, and how often.

    ``column_of`` gives for each other axis of ``sparse`` the column of ``indices`` that is its own.
    """
    *batch, nse, _ = indices.shape
    repeated = [a for a in range(len(sparse)) if a not in column_of]
    grid = np.meshgrid(*(np.arange(sparse[a]) for a in repeated), indexing="ij")
    places = {a: np.ravel(g) for a, g in zip(repeated, grid)}
    times = math.prod([sparse[a] for a in repeated])
    columns = [
        jnp.repeat(indices[..., column_of[a]], times, axis=len(batch)) if a in column_of else
        jnp.broadcast_to(jnp.asarray(np.tile(places[a], nse), indices.dtype),
                         (*batch, nse * times))
        for a in range(len(sparse))]
    if not columns:
        return jnp.zeros((*batch, nse * times, 0), indices.dtype), times
    return jnp.stack(columns, -1), times


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Return the arrays, of one layout, one after the other along ``dimension``.

    Raises: ValueError for layouts or shapes that differ, or for dense arrays; TypeError for ranks
    or dtypes that differ, or an axis that is not there.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2.]))
    >>> sparse.bcoo_concatenate([M, M], dimension=0).todense()
    Array([0., 2., 0., 2.], dtype=float32)
    """
    axis = int(dimension)
    _check_joined(operands, axis)
    first = operands[0]
    b, s = first.n_batch, first.n_sparse
    shape = list(first.shape)
    shape[axis] = sum(m.shape[axis] for m in operands)
    parts = [whole(m) for m in operands]
    starts = list(itertools.accumulate((m.shape[axis] for m in operands), initial=0))
    if axis < b:
        nse = max(m.nse for m in operands)
        made = [_padded(m, d, i, nse) for m, (d, i) in zip(operands, parts)]
        return BCOO((jnp.concatenate([d for d, _ in made], axis),
                     jnp.concatenate([i for _, i in made], axis)), shape=shape)
    datas, indices = [], []
    for m, (data, index), start in zip(operands, parts, starts):
        if axis < b + s:
            index = holding(index, shape[axis])
            keep = in_range(index, m.sparse_shape)
            moved = index.at[..., axis - b].add(start)
            index = jnp.where(keep[..., None], moved, jnp.asarray(shape[b:b + s], index.dtype))
            data = masked(keep, data)
        else:
            after = shape[axis] - start - m.shape[axis]
            data = jnp.pad(data, [(start, after) if a == axis - s + 1 else (0, 0)
                                  for a in range(data.ndim)])
        datas.append(data)
        indices.append(index)
    return BCOO((jnp.concatenate(datas, b), jnp.concatenate(indices, b)), shape=shape)


def _check_joined(operands: Sequence[BCOO], axis: int) -> None:
    """Refuse arrays that ``bcoo_concatenate`` cannot join along ``axis``."""
    if not operands:
        raise ValueError("bcoo_concatenate: operands cannot be empty.")
    if not all(isinstance(m, BCOO) for m in operands):
        raise ValueError("bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got "
                         f"{list(operands)}")
    first = operands[0]
    if len({m.dtype for m in operands}) > 1:
        raise TypeError("bcoo_concatenate requires arguments to have the same dtypes, got "
                        f"{', '.join(m.dtype.name for m in operands)}. Convert them with astype.")
    if not 0 <= axis < first.ndim:
        raise TypeError(f"concatenate dimension out of bounds: dimension {axis} for shapes "
                        f"{', '.join(str(m.shape) for m in operands)}.")
    if any(m.ndim != first.ndim for m in operands):
        raise TypeError("Cannot concatenate arrays with different numbers of dimensions: got "
                        f"{', '.join(str(m.shape) for m in operands)}.")
    for m in operands:
        if (m.n_batch, m.n_dense) != (first.n_batch, first.n_dense):
            raise ValueError("bcoo_concatenate requires inputs to have matching layouts.")
        if [n for a, n in enumerate(m.shape) if a != axis] != \
                [n for a, n in enumerate(first.shape) if a != axis]:
            raise ValueError("Cannot concatenate arrays with shapes "
                             f"{[m.shape for m in operands]} along dimension {axis}")


def _padded(mat: BCOO, data: Array, indices: Array, nse: int) -> tuple[Array, Array]:
    """Return data and indices with padding up to ``nse`` elements."""
    more = nse - mat.nse
    at = mat.n_batch
    data = jnp.pad(data, [(0, more) if a == at else (0, 0) for a in range(data.ndim)])
    filling = jnp.broadcast_to(jnp.asarray(mat.sparse_shape, indices.dtype),
                               (*indices.shape[:-2], more, mat.n_sparse))
    return data, jnp.concatenate([indices, filling], at)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None,
                 sharding: Any = None) -> BCOO:
    """Return ``mat`` with shape ``new_sizes``: batch, sparse and dense axes each among themselves.

    Raises: ValueError when an axis would have to leave its part.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2.]))
    >>> sparse.bcoo_reshape(M, new_sizes=(2, 1)).todense()
    Array([[0.],
           [2.]], dtype=float32)
    """
    if sharding is not None:
        raise NotImplementedError("bcoo_reshape with sharding")
    if dimensions is not None:
        mat = mat.transpose(dimensions)
    new = tuple(int(n) for n in new_sizes)
    if math.prod(new) != mat.size:
        raise ValueError(f"cannot reshape array of shape {mat.shape} into shape {new}")
    batch, sparse, dense = split(mat.shape, mat.n_batch, mat.n_sparse)
    first = _axes_of(new, math.prod(batch), bool(batch))
    last = _axes_of(new[::-1], math.prod(dense), bool(dense))
    if first is None or last is None or first + last > len(new) or \
            math.prod(new[first:len(new) - last]) != math.prod(sparse):
        raise ValueError(
            "bcoo_reshape: new shape cannot mix batch, sparse and dense dimensions; got "
            f"shape={mat.shape} new_shape={new} with n_batch={mat.n_batch}, n_dense={mat.n_dense}")
    new_sparse = new[first:len(new) - last]
    data, indices = whole(mat)
    indices = holding(indices, math.prod(sparse))
    keep = in_range(indices, sparse)
    place = jnp.ravel_multi_index(columns(indices), sparse, mode="clip") if sparse else \
        jnp.zeros(indices.shape[:-1], indices.dtype)
    out = jnp.stack(jnp.unravel_index(place, new_sparse), -1) if new_sparse else \
        jnp.zeros((*place.shape, 0), indices.dtype)
    data = data.reshape(*new[:first], mat.nse, *new[len(new) - last:])
    return _rebuilt(mat, data, out.reshape(*new[:first], mat.nse, len(new_sparse)),
                    keep.reshape(*new[:first], mat.nse), new,
                    unique_indices=mat.unique_indices, indices_sorted=mat.indices_sorted)


def _axes_of(sizes: Sequence[int], size: int, some: bool) -> int | None:
    """Return how many leading ``sizes`` have the product ``size``, None if none have."""
    if not some:
        return 0
    product = 1
    for n, have in enumerate(sizes, 1):
        product *= have
        if product == size:
            return n
    return None


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Return ``operand`` reversed along ``dimensions``.

    Raises: TypeError for an axis that is not there.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2.]))
    >>> sparse.bcoo_rev(M, (0,)).todense()
    Array([2., 0.], dtype=float32)
    """
    if any(not 0 <= a < operand.ndim for a in dimensions):
        raise TypeError("rev dimensions must all be less than operand ndim, got dimensions "
                        f"{tuple(dimensions)} for operand ndim {operand.ndim}.")
    batch, sparse, dense = _parted(operand, dimensions)
    data, indices = whole(operand)
    data = jnp.flip(data, (*batch, *(a - operand.n_sparse + 1 for a in dense)))
    indices = jnp.flip(indices, tuple(batch))
    keep = in_range(indices, operand.sparse_shape)
    for a in sparse:
        k = a - operand.n_batch
        indices = indices.at[..., k].set(operand.shape[a] - 1 - indices[..., k])
    return _rebuilt(operand, data, indices, keep, operand.shape,
                    unique_indices=operand.unique_indices)


def _parted(mat: BCOO, axes: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the batch, sparse and dense ones of ``axes``, counted from 0."""
    axes = [int(a) + mat.ndim * (a < 0) for a in axes]
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    return ([a for a in axes if a < b], [a for a in axes if b <= a < s],
            [a for a in axes if a >= s])


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> BCOO:
    """Return ``lax.slice`` of ``mat``.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
    >>> sparse.bcoo_slice(M, start_indices=(1,), limit_indices=(3,)).todense()
    Array([2., 3.], dtype=float32)
    """
    strides = [1] * mat.ndim if strides is None else [int(n) for n in strides]
    cuts = list(zip(map(int, start_indices), map(int, limit_indices), strides))
    if len(cuts) != mat.ndim or any(not 0 <= a <= z <= n or step < 1 for (a, z, step), n in
                                    zip(cuts, mat.shape)):
        raise ValueError(f"bcoo_slice: start={start_indices}, limit={limit_indices}, "
                         f"strides={strides} do not fit shape {mat.shape}")
    shape = [-(-(z - a) // step) for a, z, step in cuts]
    batch, sparse, dense = split([slice(*cut) for cut in cuts], mat.n_batch, mat.n_sparse)
    data, indices = whole(mat)
    data, indices = data[(*batch, slice(None), *dense)], indices[tuple(batch)]
    keep = in_range(indices, mat.sparse_shape)
    out = []
    for column, cut in zip(columns(indices), sparse):
        keep &= (column >= cut.start) & (column < cut.stop) & \
            ((column - cut.start) % cut.step == 0)
        out.append((column - cut.start) // cut.step)
    new = jnp.stack(out, -1) if out else indices
    return _rebuilt(mat, data, new, keep, shape, unique_indices=mat.unique_indices)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]
                       ) -> BCOO:
    """Return ``lax.dynamic_slice`` of ``mat``: starts are moved inside.

    Raises: ValueError unless there is a start for each axis; TypeError for sizes that do not fit.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
    >>> sparse.bcoo_dynamic_slice(M, (1,), (2,)).todense()
    Array([2., 3.], dtype=float32)
    """
    sizes = [int(n) for n in slice_sizes]
    if len(start_indices) != mat.ndim:
        raise ValueError("Length of slice indices must match number of operand dimensions "
                         f"({len(start_indices)} vs {mat.shape})")
    if len(sizes) != mat.ndim or any(not 0 <= n <= m for n, m in zip(sizes, mat.shape)):
        raise TypeError(f"slice_sizes must be at most the operand's shape {mat.shape}, got {sizes}")
    starts = [jnp.clip(jnp.where(jnp.asarray(a) < 0, jnp.asarray(a) + n, a),
                       0, n - m) for a, n, m in zip(start_indices, mat.shape, sizes)]
    b, s, d = split(starts, mat.n_batch, mat.n_sparse)
    bs, ss, ds = split(sizes, mat.n_batch, mat.n_sparse)
    data, indices = whole(mat)
    zero = jnp.zeros((), jnp.int32)
    data = lax.dynamic_slice(data, [*b, zero, *d], [*bs, mat.nse, *ds])
    indices = lax.dynamic_slice(indices, [*b, zero, zero], [*bs, mat.nse, mat.n_sparse])
    keep = in_range(indices, mat.sparse_shape)
    out = []
    for column, start, size in zip(columns(indices), s, ss):
        moved = column - start.astype(column.dtype)
        keep &= (moved >= 0) & (moved < size)
        out.append(moved)
    new = jnp.stack(out, -1) if out else indices
    return _rebuilt(mat, data, new, keep, sizes, unique_indices=mat.unique_indices)


def bcoo_gather(operand: BCOO, start_indices: Array, dimension_numbers: GatherDimensionNumbers,
                slice_sizes: Shape, *, unique_indices: bool = False,
                indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None
                ) -> BCOO:
    """Return ``lax.gather`` of ``operand`` as indexing with arrays makes it: starts are clamped.

    Where the slices' axes do not stand last in the result, all axes of it are sparse.

    Raises: NotImplementedError for gathers with batching dimensions.
    """
    d = dimension_numbers
    batch = start_indices.shape[:-1]
    kept = [a for a in range(operand.ndim) if a not in d.collapsed_slice_dims]
    if d.operand_batching_dims:
        raise NotImplementedError("bcoo_gather with operand_batching_dims")

    def one(start: Array) -> BCOO:
        starts: list[Any] = [jnp.zeros((), start.dtype)] * operand.ndim
        for k, axis in enumerate(d.start_index_map):
            starts[axis] = start[k]
        part = bcoo_dynamic_slice(operand, starts, slice_sizes)
        return bcoo_squeeze(part, dimensions=d.collapsed_slice_dims)

    made = nfold_vmap(one, len(batch))(start_indices)
    shape = (*batch, *(slice_sizes[a] for a in kept))
    out = BCOO((made.data, made.indices), shape=shape)
    others = [a for a in range(len(shape)) if a not in d.offset_dims]
    order = np.argsort([*others, *d.offset_dims])  # where each axis of the result stands in ``out``
    return out if list(order) == list(range(out.ndim)) else flat(out).transpose(order)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Return the sum of ``mat`` along ``axes``; elements that meet are stored side by side.

    >>> M = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 4.]]))
    >>> sparse.bcoo_reduce_sum(M, axes=(1,)).todense()
    Array([2., 7.], dtype=float32)
    """
    batch, sparse, dense = _parted(mat, axes)
    data, indices = whole(mat)
    data = masked(in_range(indices, mat.sparse_shape), data) if sparse else data
    data = data.sum(tuple(a - mat.n_sparse + 1 for a in dense)) if dense else data
    indices = _moved_out(mat, indices, sparse)
    if batch:  # the batches summed become more elements
        stay = [a for a in range(mat.n_batch) if a not in batch]
        times = math.prod([mat.shape[a] for a in batch])
        merge = lambda x: x.transpose(
            *stay, *batch, *range(mat.n_batch, x.ndim)).reshape(
            *(mat.shape[a] for a in stay), times * mat.nse, *x.shape[mat.n_batch + 1:])
        data, indices = merge(data), merge(indices)
    shape = [n for a, n in enumerate(mat.shape) if a not in (*batch, *sparse, *dense)]
    return BCOO((data, indices), shape=shape)


def _moved_out(mat: BCOO, indices: Array, sparse: Sequence[int]) -> Array:
    """Return ``indices`` without the columns of the axes ``sparse``, padding still padding."""
    if not sparse:
        return indices
    stay = [k for k in range(mat.n_sparse) if k + mat.n_batch not in sparse]
    keep = in_range(indices, mat.sparse_shape)
    sizes = jnp.asarray([mat.sparse_shape[k] for k in stay], indices.dtype)
    return jnp.where(keep[..., None], indices[..., np.array(stay, int)], sizes)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Return ``arr`` without the axes ``dimensions``, all of size 1.

    >>> M = sparse.BCOO.fromdense(jnp.array([[0., 2.]]))
    >>> sparse.bcoo_squeeze(M, dimensions=(0,)).todense()
    Array([0., 2.], dtype=float32)
    """
    batch, sparse, dense = _parted(arr, dimensions)
    if any(arr.shape[a] != 1 for a in (*batch, *sparse, *dense)):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={arr.shape} and dimensions={tuple(dimensions)}")
    data, indices = whole(arr)
    if sparse:
        data = masked(in_range(indices, arr.sparse_shape), data)
        indices = _moved_out(arr, indices, sparse)
    data = jnp.squeeze(data, (*batch, *(a - arr.n_sparse + 1 for a in dense)))
    indices = jnp.squeeze(indices, tuple(batch))
    shape = [n for a, n in enumerate(arr.shape) if a not in (*batch, *sparse, *dense)]
    return BCOO((data, indices), shape=shape, unique_indices=arr.unique_indices,
                indices_sorted=arr.indices_sorted)


def bcoo_conv_general_dilated(lhs: Any, rhs: Any, *, window_strides: Sequence[int], padding: Any,
                              lhs_dilation: Any = None, rhs_dilation: Any = None,
                              dimension_numbers: Any = None, feature_group_count: int = 1,
                              batch_group_count: int = 1, precision: Any = None,
                              preferred_element_type: Any = None, out_sharding: Any = None) -> BCOO:
    """Return the convolution of two sparse signals of shape (1, 1, n), with stride 1.

    The axes of ``dimension_numbers`` are in their usual order: (batch, feature, place).

    Raises: NotImplementedError for all other convolutions.
    """
    plain = (lhs.ndim == rhs.ndim == 3 and lhs.shape[:2] == rhs.shape[:2] == (1, 1)
             and tuple(window_strides) == (1,) and lhs_dilation in (None, (1,), [1])
             and rhs_dilation in (None, (1,), [1]) and feature_group_count == 1
             and batch_group_count == 1 and out_sharding is None
             and _in_usual_order(lhs.shape, rhs.shape, dimension_numbers))
    if not plain:
        raise NotImplementedError("bcoo_conv_general_dilated: only one-dimensional convolutions "
                                  "with one batch, one feature and stride 1.")
    lhs, rhs = (bcoo_update_layout(x, n_batch=0, n_dense=0, on_inefficient=None)
                for x in (lhs, rhs))
    n, m = lhs.shape[2], rhs.shape[2]
    before, after = lax.padtype_to_pads((n,), (m,), (1,), padding)[0] \
        if isinstance(padding, str) else padding[0]
    size = n + before + after - m + 1
    dtype = preferred_element_type or result_type(lhs.dtype, rhs.dtype)
    keep = in_range(lhs.indices, lhs.shape)[:, None] & in_range(rhs.indices, rhs.shape)[None]
    place = lhs.indices[:, None, 2] - rhs.indices[None, :, 2] + before
    keep &= (place >= 0) & (place < size)
    data = (lhs.data[:, None].astype(dtype) * rhs.data[None].astype(dtype)).reshape(-1)
    zero = jnp.zeros_like(place)
    indices = jnp.stack([zero, zero, place], -1).reshape(-1, 3)
    return _rebuilt(lhs, data, indices, keep.reshape(-1), (1, 1, size))


def _in_usual_order(lhs: Shape, rhs: Shape, dimension_numbers: Any) -> bool:
    found = lax.conv_dimension_numbers(lhs, rhs, dimension_numbers)
    return {tuple(spec) for spec in found} == {(0, 1, 2)}


def side_by_side(x: BCOO, y: BCOO) -> BCOO:
    """Return the sum of two arrays of one shape and layout: the elements of both."""
    dtype = result_type(x.dtype, y.dtype)
    (xd, xi), (yd, yi) = whole(x), whole(y)
    return BCOO((jnp.concatenate([xd.astype(dtype), yd.astype(dtype)], x.n_batch),
                 jnp.concatenate([xi, yi], x.n_batch)), shape=x.shape)

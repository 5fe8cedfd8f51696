"""Which primitives compute with one sparse matrix?  (``coo_matvec``, ``csr_todense``, …)

Each is a function of arrays: the elements stored, their places, and a dense operand where there is
one.  It is linear in the elements and in the dense operand.  So a tangent is the operation again;
the cotangent of the dense operand is the product with the transposed matrix, and the cotangent of
an element is the product of the two numbers that the element links.

Read before: ``interpreters.ad``.  Read after: ``coo``, whose classes apply these primitives,
``solving``.
Invariant: a jaxpr has the equations that JAX prints (tests/kernel/test_sparse_matrices.py).
Source: the documentation of jax.experimental.sparse, and the jaxprs that JAX prints.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import saem.numpy as jnp
from saem.core.avals import ShapedArray
from saem.experimental.sparse.base import Shape
from saem.extend.core import Primitive
from saem.interpreters import ad, batching, mlir
from saem.transform.mapping import vmap
from saem.transform.programs import eval_shape
from saem.typing import Array, DTypeLike


class COOInfo(NamedTuple):
    """What a COO matrix is beside its arrays: its shape, and how its elements are sorted."""

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


# -- the functions, on places given as rows and columns --------------------------------------------


def _places(row: Array, col: Array, spinfo: COOInfo) -> tuple[Array, Array, Shape]:
    return row, col, tuple(spinfo.shape)


def places_by_rows(indices: Array, indptr: Array, shape: Shape) -> tuple[Array, Array, Shape]:
    """Return rows and columns from where each row starts: count the starts up to each element."""
    starts = jnp.zeros(indices.shape, jnp.int32).at[indptr].add(1)
    return jnp.cumsum(starts) - 1, indices, tuple(shape)


def _turned(row: Array, col: Array, shape: Shape) -> tuple[Array, Array, Shape]:
    return col, row, shape[::-1]


def _at(x: Any, *places: Array) -> Array:
    """Return elements of ``x``, 0 for places that it does not have, which padding may name."""
    return jnp.asarray(x).at[places].get(mode="fill", fill_value=0)


def _todense(data: Array, row: Array, col: Array, shape: Shape) -> Array:
    if data.shape != row.shape:
        raise ValueError(f"one place for each element is needed; got {data.shape} elements and "
                         f"{row.shape} places. Try: pass data, rows and columns of one length")
    return jnp.zeros(shape, data.dtype).at[row, col].add(data)


def _product(data: Array, row: Array, col: Array, shape: Shape, dense: Array, ndim: int) -> Array:
    """Return the matrix times ``dense``, a vector or a matrix."""
    if dense.ndim != ndim or dense.shape[0] != shape[1] or dense.dtype != data.dtype:
        what = "vector" if ndim == 1 else "matrix"
        raise TypeError(
            f"a matrix of shape {shape} and {data.dtype} was to be multiplied with a {what} of "
            f"{shape[1]} rows of that dtype; got shape {dense.shape} and {dense.dtype}. "
            "Try: pass both in one dtype, with sizes that fit")
    each = data[(..., *(None,) * (ndim - 1))] * _at(dense, col)
    return jnp.zeros((shape[0], *dense.shape[1:]), data.dtype).at[row].add(each)


def _found(mat: Array, nse: int, index_dtype: DTypeLike) -> tuple[Array, Array, Array]:
    """Return elements, rows and columns; what is missing to ``nse`` elements are zeros."""
    row, col = (i.astype(index_dtype) for i in jnp.nonzero(mat, size=nse, fill_value=0))
    return jnp.where(jnp.arange(nse) < jnp.count_nonzero(mat), _at(mat, row, col), 0), row, col


def _found_by_rows(mat: Array, nse: int, index_dtype: DTypeLike) -> tuple[Array, Array, Array]:
    data, _, col = _found(mat, nse, index_dtype)
    ends = jnp.minimum(jnp.cumsum(jnp.count_nonzero(mat, axis=1)), nse)
    return data, col, jnp.pad(ends, (1, 0)).astype(index_dtype)


# -- primitives ------------------------------------------------------------------------------------


def defined(name: str, fun: Callable, several: bool = False) -> Any:
    """Return a primitive that is computed, shaped and batched as ``fun`` is."""
    primitive = Primitive(name)
    primitive.multiple_results = several

    def types(*avals: Any, **params: Any) -> Any:
        outs = eval_shape(functools.partial(fun, **params), *avals)
        return [ShapedArray(x.shape, x.dtype) for x in outs] if several else ShapedArray(
            outs.shape, outs.dtype)

    def batched(args: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
        out = vmap(functools.partial(fun, **params), in_axes=tuple(dims))(*args)
        return out, [0] * len(out) if several else 0

    primitive.def_impl(fun)
    primitive.def_abstract_eval(types)
    mlir.register_lowering(primitive, mlir.lower_fun(fun, multiple_results=several))
    batching.primitive_batchers[primitive] = batched
    return primitive


def _define_todense(name: str, places: Callable) -> Any:
    primitive = defined(name, lambda data, i, j, **about: _todense(data, *places(i, j, **about)))

    def transpose(ct: Any, data: Any, i: Any, j: Any, **about: Any) -> Any:
        row, col, _ = places(i, j, **about)
        return _at(ct, row, col), None, None

    ad.defjvp(primitive, lambda t, data, i, j, **about: primitive.bind(t, i, j, **about),
              None, None)
    ad.primitive_transposes[primitive] = transpose
    return primitive


def _define_product(name: str, places: Callable, ndim: int) -> Any:
    """Define the product with a dense array of ``ndim`` axes."""

    def linked(i: Any, j: Any, transpose: bool, about: Any) -> tuple[Array, Array, Shape]:
        where = places(i, j, **about)
        return _turned(*where) if transpose else where

    def fun(data: Array, i: Array, j: Array, dense: Array, *, transpose: bool, **about: Any
            ) -> Array:
        return _product(data, *linked(i, j, transpose, about), dense, ndim)

    def transposed(ct: Any, data: Any, i: Any, j: Any, dense: Any, *, transpose: bool, **about: Any
                   ) -> Any:
        if ad.is_undefined_primal(dense):
            return None, None, None, primitive.bind(data, i, j, ct, transpose=not transpose,
                                                    **about)
        row, col, _ = linked(i, j, transpose, about)
        links = _at(ct, row) * _at(dense, col)
        return links if ndim == 1 else links.sum(1), None, None, None

    primitive = defined(name, fun)
    ad.defjvp(primitive,
              lambda t, data, i, j, dense, **params: primitive.bind(t, i, j, dense, **params),
              None, None,
              lambda t, data, i, j, dense, **params: primitive.bind(data, i, j, t, **params))
    ad.primitive_transposes[primitive] = transposed
    return primitive


def _define_fromdense(name: str, found: Callable, places: Callable) -> Any:
    """Define the stored form of a dense matrix: its elements are linear in it, its places not."""
    primitive = defined(name, found, several=True)

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        (mat,), (t,) = primals, tangents
        outs = data, i, j = primitive.bind(mat, **params)
        row, col = places(i, j, mat.shape)
        t = jnp.where(jnp.arange(data.size) < jnp.count_nonzero(mat),
                      _at(ad.instantiate_zeros(t), row, col), 0)
        return outs, [t, *(ad.Zero(ShapedArray(x.shape, x.dtype).to_tangent_aval())
                           for x in (i, j))]

    ad.primitive_jvps[primitive] = jvp
    return primitive


coo_todense_p = _define_todense("coo_todense", _places)
coo_matvec_p = _define_product("coo_matvec", _places, 1)
coo_matmat_p = _define_product("coo_matmat", _places, 2)
coo_fromdense_p = _define_fromdense(
    "coo_fromdense", _found, lambda row, col, shape: (row, col))

csr_todense_p = _define_todense("csr_todense", places_by_rows)
csr_matvec_p = _define_product("csr_matvec", places_by_rows, 1)
csr_matmat_p = _define_product("csr_matmat", places_by_rows, 2)
csr_fromdense_p = _define_fromdense(
    "csr_fromdense", _found_by_rows, lambda *where: places_by_rows(*where)[:2])

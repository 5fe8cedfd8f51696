"""How are matrices with a pattern made: identity, triangles, diagonals, grids?

Read before: ``numpy.creation``.  Read after: ``numpy.reductions``.
Invariant: a pattern depends on shapes alone, so it is the same for every value.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.dispatch import put
from saem.core import config, dtypes, errors
from saem.core.arguments import check_callable
from saem.core.avals import aval_of, kept
from saem.core.dimensions import as_size
from saem.core.trace import Tracer
from saem.jit.library import library_function
from saem.numpy import arithmetic
from saem.numpy.axes import as_array, known_number, numbers_may_be_arrays
from saem.numpy.creation import FLOAT, array, canonical_shape, check_dtype, on_host, placed
from saem.numpy.filling import arange, filled, filled_at
from saem.numpy.promote import (
    FLOAT32,
    as_value,
    check_arraylike,
    convert_value,
    if_else,
    promote_args,
    scalar,
    weakly_like,
)
from saem.numpy.ranges import linspace
from saem.ops import arithmetic as ops
from saem.ops import compare, filling, slicing
from saem.ops import shape as shaping
from saem.ops.convert import convert_element_type
from saem.ops.linear import broadcast_in_dim
from saem.transform.mapping import vmap
from saem.typing import Array, ArrayLike, DTypeLike

INT32 = np.dtype("int32")


def _places(shape: tuple[int, int], k: int, order: Callable) -> Any:
    """Return where ``order(row + k, column)`` holds in a matrix of ``shape``."""
    rows = filling.broadcasted_iota(INT32, shape, 0)
    columns = filling.broadcasted_iota(INT32, shape, 1)
    return order(ops.add(rows, convert_value(k, INT32, False)), columns)


_ORDERS = {"eq": compare.eq, "ge": compare.ge}


def _traced_pattern(*, shape: tuple[int, int], k: int, order: str, dtype: Any) -> Any:
    return convert_element_type(_places(shape, k, _ORDERS[order]), dtype)


_pattern_on_device = library_function(_traced_pattern,
                               static_argnames=("shape", "k", "order", "dtype"))


def _pattern(shape: tuple[int, int], k: Any, order: str, dtype: Any) -> Any:
    if isinstance(k, Tracer):
        return _traced_pattern(shape=shape, k=k, order=order, dtype=dtype)
    if on_host(shape[0] * shape[1]):
        made = np.eye(*shape, k) if order == "eq" else np.tri(*shape, k)
        return put(kept(made.astype(dtype)))
    make = _traced_pattern if config.staging.value else _pattern_on_device
    return make(shape=shape, k=k, order=order, dtype=dtype)


def _matrix_shape(name: str, n: Any, m: Any) -> tuple[int, int]:
    try:
        shape = as_size(n), as_size(n if m is None else m)
    except TypeError:
        canonical_shape((n, n if m is None else m))
        raise
    if any(size < 0 for size in shape):
        raise ValueError(f"{name}: negative dimensions are not allowed, got {n} and {m}")
    return shape


def eye(N: int, M: int | None = None, k: int | ArrayLike = 0, dtype: DTypeLike | None = None, *,
        device: Any = None) -> Array:
    """Return a matrix with ones on diagonal ``k`` (0: the main one, 1: above it), else zeros.

    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    dtype = dtypes.canonicalize(FLOAT) if dtype is None else check_dtype("eye", dtype)
    check_arraylike("eye", k)
    if np.ndim(k) or not dtypes.is_integer(aval_of(k).dtype):
        raise errors.explained(errors.ArgumentError, "eye.C2",
                               f"k must be a scalar integer; got {k}",
                               advice="It counts diagonals: 0 is the main one, 1 the one above.")
    made = _pattern(_matrix_shape("eye", N, M), diagonal_number(k), "eq", dtype)
    return filled_at(made, device) if isinstance(device, _jaxlib.Device) else placed(made, device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Return the square identity matrix.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    dtype = dtypes.canonicalize(FLOAT) if dtype is None else check_dtype("identity", dtype)
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return a matrix with ones on and below diagonal ``k``, else zeros; of float32 by default.

    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    dtype = FLOAT32 if dtype is None else check_dtype("tri", dtype)
    return _pattern(_matrix_shape("tri", N, M), diagonal_number(k), "ge", dtype)


def diagonal_number(k: Any) -> Any:
    """Return the number of a diagonal: a Python int, or a traced integer as it is.

    Raises: TypeError for a non-integer.
    """
    if isinstance(k, Tracer) and not aval_of(k).shape and dtypes.is_integer(aval_of(k).dtype):
        return k
    return operator.index(k)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    check_arraylike(name, m)
    m = as_value(m)
    aval = aval_of(m)
    if aval.ndim < 2:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C1",
            f"Argument to jax.numpy.{name} must be at least 2D",
            advice="Make a matrix of it first: x[None, :].")
    k = diagonal_number(k)
    mask = _places(aval.shape[-2:], k if lower else k - 1, compare.ge)
    mask = broadcast_in_dim(mask, aval.shape, (aval.ndim - 2, aval.ndim - 1))
    zero = weakly_like(m, 0)
    return if_else(mask, m, zero) if lower else if_else(mask, zero, m)


@library_function(static_argnames="k")
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices with what is above diagonal ``k`` set to zero.

    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle("tril", m, k, True)


@library_function(static_argnames="k")
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices with what is below diagonal ``k`` set to zero.

    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k, False)


# -- diagonals -------------------------------------------------------------------------------------


@numbers_may_be_arrays
@library_function(static_argnames="k")
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return a vector as the diagonal ``k`` of a matrix, or that diagonal of a matrix.

    Raises: ArgumentError for other ranks.

    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    check_arraylike("diag", v)
    v = as_value(v)
    k = operator.index(k)
    aval = aval_of(v)
    if aval.ndim == 1:
        return _on_diagonal(v, k)
    if aval.ndim == 2:
        return _diagonal_of(v, k)
    raise errors.explained(
        errors.ArgumentError, "diag.C1", "diag input must be 1d or 2d",
        advice="Use jnp.diagonal for stacks of matrices, jnp.diagflat to flatten first.")


def _on_diagonal(v: Any, k: int) -> Any:
    aval = aval_of(v)
    n = aval.shape[0] + abs(k)
    zero = weakly_like(v, 0)
    # Counted by rows: below the main diagonal, the first rows hold nothing.
    padded = slicing.pad(v, zero, ((max(0, -k), max(0, k), 0),))
    mask = _places((n, n), k, compare.eq)
    return if_else(mask, broadcast_in_dim(padded, (n, 1), (0,)), zero)


def _diagonal_of(x: Any, k: int) -> Any:
    """Return diagonal ``k`` of a matrix: a strided slice of its numbers laid out in one row."""
    rows, columns = aval_of(x).shape
    first, column = max(0, -k), max(0, k)
    length = max(0, min(rows - first, columns - column))
    flat = shaping.reshape(x, (rows * columns,))
    if not length:
        return slicing.slice(flat, (0,), (0,))
    start = first * columns + column
    stop = start + (length - 1) * (columns + 1) + 1
    return slicing.slice(flat, (start,), (stop,), (columns + 1,))


@numbers_may_be_arrays
@library_function(static_argnames="k")
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return all elements of ``v`` as the diagonal ``k`` of a matrix.

    >>> jnp.diagflat(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    check_arraylike("diagflat", v)
    v = as_value(v)
    return _on_diagonal(shaping.reshape(v, (aval_of(v).size,)), operator.index(k))


@library_function(static_argnames=("N", "increasing"), whole=True)
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Return the matrix whose columns are the powers of vector ``x``.

    Raises: ArgumentError if ``x`` is no vector or ``N`` negative.

    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    check_arraylike("vander", x)
    x = as_value(x)
    aval = aval_of(x)
    if aval.ndim != 1:
        raise errors.explained(errors.ArgumentError, "vander.C1",
                               "x must be a one-dimensional array", advice="Flatten it first.")
    n = aval.shape[0] if N is None else operator.index(N)
    if n < 0:
        raise errors.explained(errors.ArgumentError, "vander.C2", "N must be nonnegative")
    dtype = dtypes.computed(aval.dtype)
    x = convert_value(x, dtype, aval.weak_type)
    powers = filling.iota(dtype, n)
    if not increasing:
        powers = ops.sub(scalar(n - 1, dtype), powers)
    bases = broadcast_in_dim(x, (aval.shape[0], 1), (0,))
    return arithmetic.power(bases, broadcast_in_dim(powers, (1, n), (1,)))


# -- grids -----------------------------------------------------------------------------------------


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
             ) -> list[Any]:
    """Return vectors as coordinates of the points of a grid, one array for each axis.

    Raises: ArgumentError for arguments that are no vectors, or an unknown ``indexing``.

    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([3, 4]))
    [Array([[1, 2],
           [1, 2]], dtype=int32), Array([[3, 3],
           [4, 4]], dtype=int32)]
    """
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise errors.explained(errors.ArgumentError, "meshgrid.C1",
                               "jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise errors.explained(errors.ArgumentError, "meshgrid.C2",
                               f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    shapes = [aval_of(as_value(x)).shape for x in xi]
    if any(len(s) != 1 for s in shapes):
        raise errors.explained(
            errors.ArgumentError, "meshgrid.C3",
            f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {shapes}")
    return _meshgrid(*xi, sparse=bool(sparse), indexing=indexing)


@library_function(static_argnames=("sparse", "indexing"))
def _meshgrid(*xi: Any, sparse: bool, indexing: str) -> list[Any]:
    vectors = [shaping.reshape(as_array(x), (aval_of(as_value(x)).size,)) for x in xi]
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    sizes = [0] * len(vectors)
    for axis, v in zip(axes, vectors):
        sizes[axis] = aval_of(v).shape[0]
    out = []
    for axis, v in zip(axes, vectors):
        thin = [n if i == axis else 1 for i, n in enumerate(sizes)]
        out.append(broadcast_in_dim(v, thin if sparse else sizes, (axis,)))
    return out


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None,
            sparse: bool = False) -> Array | tuple[Array, ...]:
    """Return the coordinates of the points of a grid of ``dimensions``, along a new first axis.

    With ``sparse`` they come as a tuple of arrays that broadcast.

    >>> jnp.indices((2, 2))
    Array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 1]]], dtype=int32)
    """
    sizes = canonical_shape(tuple([known_number(n, "dimensions") for n in dimensions]))
    dtype = dtypes.default_dtype(int) if dtype is None else check_dtype("indices", dtype)
    return _indices(sizes=sizes, dtype=dtype, sparse=bool(sparse))


@library_function(static_argnames=("sizes", "dtype", "sparse"))
def _indices(*, sizes: tuple[int, ...], dtype: Any, sparse: bool) -> Any:
    grids = []
    for axis, n in enumerate(sizes):
        thin = tuple(n if i == axis else 1 for i in range(len(sizes)))
        grids.append(broadcast_in_dim(filling.iota(dtype, n), thin if sparse else sizes, (axis,)))
    if sparse:
        return tuple(grids)
    if not grids:
        return filled((0,), scalar(0, dtype))
    return shaping.concatenate([shaping.expand_dims(g, (0,)) for g in grids], 0)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Return vectors as arrays that broadcast to their product, for use as an index.

    Raises: ValueError for arguments that are no vectors; NotImplementedError for booleans.

    >>> jnp.arange(9).reshape(3, 3)[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
    Array([[1, 2],
           [7, 8]], dtype=int32)
    """
    check_arraylike("ix_", *args)
    out = []
    for axis, x in enumerate(args):
        x = array(x, copy=False)
        if len(aval_of(x).shape) != 1:
            raise ValueError("Arguments to jax.numpy.ix_ must be 1-dimensional, got shape "
                             f"{aval_of(x).shape}")
        if dtypes.is_bool(aval_of(x).dtype):
            raise NotImplementedError("Boolean arguments to jax.numpy.ix_ are not implemented. "
                                      "Give the places where they are true: jnp.nonzero(x)[0].")
        if not aval_of(x).size:
            x = convert_value(x, dtypes.default_dtype(int), False)
        thin = tuple(aval_of(x).shape[0] if i == axis else 1 for i in range(len(args)))
        out.append(shaping.reshape(x, thin))
    return tuple(out)


class Grid:
    """What ``jnp.mgrid[0:2, 0:3]`` and ``jnp.ogrid`` share: slices become counted axes."""

    def __init__(self, name: str, sparse: bool):
        self.name = name
        self.sparse = sparse

    def __repr__(self) -> str:
        return f"<saem.numpy.{self.name}>"

    def __getitem__(self, key: Any) -> Any:
        single = isinstance(key, slice)
        axes = [self.axis(s) for s in ((key,) if single else key)]
        if single:
            return axes[0]
        grids = meshgrid(*axes, indexing="ij", sparse=self.sparse)
        if not grids:
            return grids if self.sparse else array([], dtype=dtypes.default_dtype(int))
        with config.numpy_dtype_promotion("standard"):  # slices are no operands
            joined = promote_args(self.name, *grids)
        if self.sparse:
            return type(grids)(joined)
        return shaping.concatenate([shaping.expand_dims(g, (0,)) for g in joined], 0)

    def axis(self, s: slice) -> Any:
        """Return the numbers of one slice; an imaginary step is their number."""
        start = 0 if s.start is None else s.start
        if s.step is not None and np.iscomplexobj(s.step) and (step := complex(s.step)).imag:
            return linspace(start, s.stop, int(abs(step)))
        return arange(start, s.stop, s.step)


mgrid = Grid("mgrid", False)
ogrid = Grid("ogrid", True)


def fromfunction(function: Callable, shape: Any, *, dtype: DTypeLike = float,
                 **kwargs: Any) -> Array:
    """Return the values of ``function(i, j, …)`` at the coordinates of a grid of ``shape``.

    The function is called once, with one traced number for each axis.

    >>> jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    check_callable(function)
    sizes = canonical_shape(shape)
    mapped = functools.partial(function, **kwargs)
    for axis in reversed(range(len(sizes))):
        mapped = vmap(mapped, in_axes=tuple(0 if i == axis else None for i in range(len(sizes))))
    return mapped(*[arange(n, dtype=dtype) for n in sizes])

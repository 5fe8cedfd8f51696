"""Which matrices have a name, and how are they made from a few numbers?

Matrices made of an argument take its elements by an index that is known beforehand; those made of a
size alone are computed by NumPy.

Read before: ``numpy.indexing``.
Invariant: an argument with leading axes gives a stack of matrices.
Source: the SciPy reference, scipy.linalg, "Special matrices".
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.numpy.creation import asarray
from saem.numpy.filling import arange, zeros, zeros_like
from saem.numpy.joining import concatenate
from saem.numpy.promote import broadcast_together, if_else, promote_dtypes
from saem.numpy.rearranging import flip
from saem.numpy.reductions import strong
from saem.ops.linear import literal
from saem.ops.slicing import pad
from saem.typing import Array, ArrayLike, DTypeLike


def _refuse(name: str, sentence: str) -> Exception:
    return errors.explained(errors.ArgumentError, f"{name}.C1", sentence,
                            advice=f"See scipy.linalg.{name}.")


def _vectors(name: str, *args: Any) -> list[Any]:
    """Return arguments as vectors (…, n) of one dtype; a number is a vector of one."""
    arrays = [array_argument(name, x) for x in args]
    return promote_dtypes(*[x.reshape(1) if not x.ndim else x for x in arrays])


def _zero(x: Any) -> Array:
    return zeros_like(x, shape=())


def _joined(first: Any, second: Any, axis: int) -> Array:
    """Return both along ``axis``, a negative number; the axes before it broadcast."""
    return concatenate(broadcast_together(first, second, own=-axis), axis)


@library_function
def block_diag(*arrs: Any) -> Array:
    """Return the matrix with ``arrs`` along its diagonal, and zeros elsewhere.

    Raises: ValueError for more than two axes.

    >>> jax.scipy.linalg.block_diag(jnp.ones((1, 1)), 2 * jnp.ones((1, 2)))
    Array([[1., 0., 0.],
           [0., 2., 2.]], dtype=float32)
    """
    blocks = [array_argument("block_diag", x) for x in arrs] or [zeros((1, 0))]
    for number, x in enumerate(blocks):
        if x.ndim > 2:
            raise _refuse("block_diag", "Arguments to jax.scipy.linalg.block_diag must have at "
                          f"most 2 dimensions, got {aval_of(x).str_short(True)} at argument "
                          f"{number}.")
    blocks = promote_dtypes(*[x.reshape((1,) * (2 - x.ndim) + x.shape) for x in blocks])
    columns = sum(x.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        after = columns - before - x.shape[1]
        zero = literal(0, aval_of(x).dtype)
        rows.append(pad(x, zero, ((0, 0, 0), (before, after, 0))))
        before += x.shape[1]
    return concatenate(rows, axis=0)


@library_function(whole=True)
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrices (…, n, m) constant along diagonals: column ``c``, row ``r`` (c conj.).

    >>> jax.scipy.linalg.toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 4]))
    Array([[1, 4],
           [2, 1],
           [3, 2]], dtype=int32)
    """
    (c,) = _vectors("toeplitz", c)
    r = c.conj() if r is None else r
    c, r = _vectors("toeplitz", c, r)
    n, m = c.shape[-1], r.shape[-1]
    values = strong(_joined(flip(c, -1), r[..., 1:], -1), c.dtype)
    if not n or not m:
        return zeros((*values.shape[:-1], n, m), c.dtype)
    return values[..., arange(m)[None] - arange(n)[:, None] + (n - 1)]


@library_function(whole=True)
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrices (…, n, m) constant along antidiagonals: column ``c``, last row ``r``.

    >>> jax.scipy.linalg.hankel(jnp.array([1, 2]))
    Array([[1, 2],
           [2, 0]], dtype=int32)
    """
    (c,) = _vectors("hankel", c)
    r = zeros(c.shape, c.dtype) if r is None else r
    c, r = _vectors("hankel", c, r)
    n, m = c.shape[-1], r.shape[-1]
    values = _joined(c, r[..., 1:], -1)
    if not n or not m:
        return zeros((*values.shape[:-1], n, m), c.dtype)
    return values[..., arange(m)[None] + arange(n)[:, None]]


@library_function
def circulant(c: ArrayLike) -> Array:
    """Return the matrices (…, n, n) whose columns are ``c`` (…, n), turned on by one each.

    >>> jax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    (c,) = _vectors("circulant", c)
    n = c.shape[-1]
    if not n:
        return zeros((*c.shape[:-1], 0, 0), c.dtype)
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % n]


@library_function(whole=True)
def companion(a: ArrayLike) -> Array:
    """Return the matrices whose characteristic polynomial has the coefficients ``a`` (…, n + 1).

    Raises: ValueError for fewer than two coefficients.

    >>> jax.scipy.linalg.companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = array_argument("companion", a)
    if not a.ndim or a.shape[-1] < 2:
        raise _refuse("companion", "The length of `a` along the last axis must be at least 2; got "
                      f"shape {a.shape}.")
    first = -(a[..., 1:] / a[..., :1])
    n = first.shape[-1]
    first = first[..., None, :]
    rest = broadcast_together(first, asarray(np.eye(n - 1, n, dtype=first.dtype)))[1]
    return concatenate([first, rest], axis=-2)


@library_function(static_argnames=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Return the matrix C with C v = convolve(a, v, mode) for vectors v of length ``n``.

    Raises: ValueError for another mode, or lengths of zero; TypeError if n is no integer.

    >>> jax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    a, n = array_argument("convolution_matrix", a), operator.index(n)
    if n <= 0:
        raise _refuse("convolution_matrix", f"n must be a positive integer; got {n}.")
    if not a.ndim or not a.shape[-1]:
        raise _refuse("convolution_matrix", f"len(a) must be at least 1; got shape {a.shape}.")
    if mode not in ("full", "valid", "same"):
        raise _refuse("convolution_matrix",
                      f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    m = a.shape[-1]
    places = np.arange(m + n - 1)[:, None] - np.arange(n)
    inside = (places >= 0) & (places < m)
    whole = if_else(inside, a[..., np.where(inside, places, 0)], _zero(a))
    if mode == "full":
        return whole
    if mode == "same":
        start, rows = (min(m, n) - 1) // 2, max(m, n)
    else:
        start, rows = min(m, n) - 1, max(m, n) - min(m, n) + 1
    return whole[..., start:start + rows, :]


@library_function
def fiedler(a: ArrayLike) -> Array:
    """Return the matrices (…, n, n) of the distances |a[i] - a[j]|.

    >>> jax.scipy.linalg.fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    (a,) = _vectors("fiedler", a)
    return abs(a[..., :, None] - a[..., None, :])


@library_function
def fiedler_companion(a: ArrayLike) -> Array:
    """Return the five-diagonal matrices with characteristic polynomial ``a`` (…, n + 1).

    >>> jax.scipy.linalg.fiedler_companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = _vectors("fiedler_companion", a)
    n = a.shape[-1] - 1
    values = a / a[..., :1]
    if n < 1:
        return values[..., None, :0][..., :0, :]
    # Where the number of a coefficient stands, it is negated; 0 is no element, -1 is a one.
    where = np.zeros((n, n), int)
    where[1:2, 0] = -1
    for i in range(0, n, 2):
        where[i, max(i - 1, 0)] = i + 1
        where[i, i + 1:i + 2], where[i, i + 2:i + 3] = i + 2, -1
    for i in range(3, n, 2):
        where[i, i - 2] = -1
    ones = asarray((where < 0).astype(values.dtype))
    return if_else(where > 0, -values[..., np.where(where > 0, where, 0)], ones)


@library_function
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Return the matrices of a population: fertilities ``f`` (…, n), survival ``s`` (…, n - 1).

    Raises: ValueError for lengths that do not fit.

    >>> jax.scipy.linalg.leslie(jnp.array([1., 2.]), jnp.array([0.5]))
    Array([[1. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    f, s = _vectors("leslie", f, s)
    n = f.shape[-1]
    if n < 2:
        raise _refuse("leslie", "The length of f along the last axis must be at least 2; got shape "
                      f"{f.shape}.")
    if s.shape[-1] != n - 1:
        raise _refuse("leslie", "Incorrect lengths for f and s. The length of s along the last "
                      f"axis must be one less than the length of f; got f shape {f.shape} and s "
                      f"shape {s.shape}.")
    below = if_else(np.eye(n - 1, n, dtype=bool), s[..., :, None], _zero(s))
    return _joined(f[..., None, :], below, -2)


# -- made of a size alone --------------------------------------------------------------------------


def _float(values: np.ndarray) -> Any:
    return asarray(values.astype(dtypes.canonicalize(np.dtype("float64"))))


def _size(name: str, n: int, least: int) -> int:
    n = int(n) if n == int(n) else operator.index(n)  # 2.0 is a size, 2.5 a TypeError
    if n < least:
        raise _refuse(name, f"n must be a positive integer; got {n}.")
    return n


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Return the matrix (n, n) of the discrete Fourier transform, times 1 / √n ("sqrtn") or 1 / n.

    Raises: ValueError for another scale, or a dtype that is not complex.

    >>> jax.scipy.linalg.dft(2).round(3)
    Array([[ 1.+0.j,  1.+0.j],
           [ 1.+0.j, -1.+0.j]], dtype=complex64)
    """
    if scale not in (None, "sqrtn", "n"):
        raise _refuse("dft", f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    dtype = dtypes.canonicalize(np.dtype("complex128") if dtype is None else np.dtype(dtype))
    if not dtypes.is_complex(dtype):
        raise _refuse("dft", f"dtype must be a complex floating-point type; got {dtype.name}.")
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    values = np.exp(-2j * np.pi * turns / max(n, 1))
    if n > 0 and scale is not None:
        values = values / (math.sqrt(n) if scale == "sqrtn" else n)
    return asarray(values.astype(dtype))


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Return the matrix (n, n) of ones and minus ones with orthogonal rows; n is a power of 2.

    Raises: ValueError for another n; TypeError for booleans.

    >>> jax.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    if n < 1 or 2 ** (int(n).bit_length() - 1) != n:
        raise _refuse("hadamard", f"n must be a positive power of 2; got {n}.")
    dtype = dtypes.canonicalize(np.dtype(dtype))
    if n > 1 and dtypes.is_bool(dtype):
        raise errors.explained(errors.DTypeError, "hadamard.dtype",
                               "neg does not accept dtype bool: minus one is not a boolean.",
                               advice="Take a dtype of signed numbers.")
    values = np.ones((1, 1))
    while len(values) < n:
        values = np.block([[values, values], [values, -values]])
    return asarray(values.astype(dtype))


def helmert(n: int, full: bool = False) -> Array:
    """Return the matrix of Helmert contrasts (n - 1, n); with ``full`` a row of 1 / √n before.

    >>> jax.scipy.linalg.helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    n = _size("helmert", n, 1)
    i = np.arange(1, n)
    values = np.tril(np.ones((n - 1, n)), 0)
    values[i - 1, i] = -i
    values = values / np.sqrt(i * (i + 1))[:, None]
    if full:
        values = np.concatenate([np.full((1, n), 1 / math.sqrt(n)), values])
    return _float(values)


def hilbert(n: int) -> Array:
    """Return the matrix (n, n) of 1 / (i + j + 1).

    >>> jax.scipy.linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i = np.arange(operator.index(n))
    return _float(1 / (i[:, None] + i + 1.0))


def invhilbert(n: int) -> Array:
    """Return the inverse of ``hilbert(n)``, whose elements are integers.

    >>> jax.scipy.linalg.invhilbert(2)
    Array([[ 3.999998, -5.999995],
           [-5.999995, 11.999994]], dtype=float32)
    """
    values = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            values[i, j] = float((-1) ** (i + j) * (i + j + 1) * math.comb(n + i, n - j - 1)
                                 * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2)
    return _float(values)


def _kinds(name: str, kind: str | None) -> str:
    kind = "symmetric" if kind is None else kind
    if kind not in ("symmetric", "lower", "upper"):
        raise _refuse(name, "Expected kind to be one of: ['symmetric', 'lower', 'upper']; got "
                      f"{kind}")
    return kind


def _binomials(n: int) -> np.ndarray:
    return np.array([[math.comb(i, j) for j in range(n)] for i in range(n)],
                    float).reshape(n, n)


def pascal(n: int, kind: str | None = None) -> Array:
    """Return the matrix (n, n) of binomial coefficients: C(i, j) ("lower"), or their product.

    >>> jax.scipy.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    kind, low = _kinds("pascal", kind), _binomials(n)
    return _float(low if kind == "lower" else low.T if kind == "upper" else low @ low.T)


def invpascal(n: int, kind: str | None = None) -> Array:
    """Return the inverse of ``pascal(n, kind)``, whose elements are integers.

    >>> jax.scipy.linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    kind = _kinds("invpascal", kind)
    i = np.arange(n)
    low = _binomials(n) * np.where((i[:, None] - i) % 2, -1.0, 1.0)
    return _float(low if kind == "lower" else low.T if kind == "upper" else low.T @ low)

"""How are polynomials evaluated, multiplied and differentiated?

A polynomial is the vector of its coefficients, the highest power first.

Read before: ``numpy.calculus``.
Invariant: ``polyval(polymul(p, q), x)`` is ``polyval(p, x) * polyval(q, x)``
(tests/kernel/numpy/test_calculus.py).
Source: the NumPy reference of poly, polyval and related functions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors, lazy
from saem.core.avals import aval_of
from saem.core.trace import Tracer, concrete_or_none
from saem.jit.library import library_function
from saem.numpy.arithmetic import add, multiply, negative
from saem.numpy.axes import array_argument, canonical_axes
from saem.numpy.calculus import convolve
from saem.numpy.joining import concatenate
from saem.numpy.promote import (
    broadcast_shapes,
    broadcast_to,
    promote_dtypes,
    promote_dtypes_inexact,
    scalar,
)
from saem.ops import arithmetic as ops
from saem.ops import slicing
from saem.ops.linear import broadcast_in_dim
from saem.typing import Array, ArrayLike

decompositions = lazy.later("saem.numpy.linalg.decompositions")
special = lazy.later("saem.numpy.own_derivatives")


@library_function(static_argnames=("unroll",), whole=True)
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Return the value at ``x`` of the polynomial ``p``, by Horner's rule.

    >>> jnp.polyval(jnp.array([1, 2, 3]), 2)
    Array(11, dtype=int32)
    """
    p, x = promote_dtypes(*array_argument("polyval", p, x))
    if not p.shape:
        raise errors.explained(
            errors.JAXIndexError, "polyval.C1", "tuple index out of range: polyval needs "
            "coefficients along an axis, got a scalar.", advice="Use jnp.atleast_1d.")
    shape = broadcast_shapes(p.shape[1:], x.shape)
    out = broadcast_to(scalar(0, p.dtype), shape)
    for i in range(p.shape[0]):
        out = add(multiply(out, x), slicing.index_in_dim(p, i, 0, False))
    return out


@library_function
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the sum of two polynomials, given along the first axis.

    Further axes of the shorter one (of the second, where both are as long) broadcast.
    Raises: ValueError if they do not.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([1, 0, 3]))
    Array([1, 1, 5], dtype=int32)
    """
    a1, a2 = promote_dtypes(*array_argument("polyadd", a1, a2))
    longer, shorter = (a2, a1) if a2.shape[0] > a1.shape[0] else (a1, a2)
    extra = longer.shape[0] - shorter.shape[0]
    last = slicing.slice_in_dim(longer, extra, None) if extra else longer
    total = ops.add(last, broadcast_to(shorter, last.shape))
    return concatenate([slicing.slice_in_dim(longer, 0, extra), total]) if extra else total


@library_function
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the difference of two polynomials, as ``polyadd(a1, -a2)``.

    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([1, 0, 3]))
    Array([-1,  1, -1], dtype=int32)
    """
    a1, a2 = promote_dtypes(*array_argument("polysub", a1, a2))
    return polyadd(a1, ops.neg(a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Return the product of two polynomials; leading zeros are cut first on request.

    Raises: ConcretizationTypeError for cutting under jit.

    >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    a1, a2 = promote_dtypes_inexact(*array_argument("polymul", a1, a2))
    _check_vectors("polymul", a1, a2)
    if trim_leading_zeros:
        a1, a2 = _trimmed("polymul", a1), _trimmed("polymul", a2)
    if not (a1.shape[0] and a2.shape[0]):
        zero = broadcast_in_dim(scalar(0, a1.dtype), (1,), ())
        a1, a2 = (a if a.shape[0] else zero for a in (a1, a2))
    return convolve(a1, a2, mode="full")


def _check_vectors(name: str, *polynomials: Any) -> None:
    """Raise TypeError for a number in place of coefficients."""
    if not all(p.ndim for p in polynomials):
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C0",
            f"{name} needs coefficients along an axis, got a scalar.",
            advice="Use jnp.atleast_1d.")


def _trimmed(name: str, a: Any) -> Any:
    """Return ``a`` without its leading zeros."""
    known = concrete_or_none(a)
    if known is None:
        raise errors.explained(
            errors.ConcretizationTypeError, f"{name}.trim",
            "trim_leading_zeros needs the coefficients, but they are traced.",
            advice="Leave it False under jit.")
    nonzero = np.nonzero(np.asarray(known))[0]
    start = int(nonzero[0]) if nonzero.size else aval_of(a).shape[0]
    return slicing.slice_in_dim(a, start, None)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """Return quotient and remainder of two polynomials; the remainder keeps the length of ``u``.

    Raises: ConcretizationTypeError for cutting leading zeros under jit.

    >>> jnp.polydiv(jnp.array([1., -3., 2.]), jnp.array([1., -1.]))
    (Array([ 1., -2.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    u, v = promote_dtypes_inexact(*array_argument("polydiv", u, v))
    _check_vectors("polydiv", u, v)
    quotient, rest = _polydiv(u, v)
    return quotient, _trimmed("polydiv", rest) if trim_leading_zeros else rest


@library_function(whole=True)
def _polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    n, m = u.shape[0], v.shape[0]
    head = slicing.index_in_dim(v, 0, 0, False)
    quotient = []
    for k in range(max(n - m + 1, 0)):
        factor = ops.div(slicing.index_in_dim(u, k, 0, False), head)
        quotient.append(broadcast_in_dim(factor, (1,), ()))
        shifted = slicing.pad(v, scalar(0, v.dtype), ((k, n - m - k, 0),))
        u = ops.sub(u, multiply(shifted, factor))
    if not quotient:
        return broadcast_in_dim(scalar(0, u.dtype), (1,), ()), u
    return concatenate(quotient), u


@library_function(static_argnames=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Return the ``m``-th derivative of a polynomial.

    Raises: ValueError for negative ``m``.

    >>> jnp.polyder(jnp.array([1., 2., 3.]))
    Array([2., 2.], dtype=float32)
    """
    (p,) = promote_dtypes_inexact(array_argument("polyder", p))
    if m < 0:
        raise errors.explained(errors.ArgumentError, "polyder.C1",
                               "Order of derivative must be positive", advice=f"Got {m}.")
    if operator.index(m) == 0:
        return p
    _check_vectors("polyder", p)
    size = p.shape[0]
    if m >= size:
        return broadcast_in_dim(scalar(0, p.dtype), (0,), ())
    powers = np.arange(size - 1, m - 1, -1, dtype=float)
    factors = np.prod([powers - k for k in range(m)], axis=0)
    return multiply(slicing.slice_in_dim(p, 0, size - m), factors.astype(p.dtype))


@library_function(static_argnames=("m",))
def polyint(p: ArrayLike, m: int = 1, k: int | ArrayLike | None = 0) -> Array:
    """Return the ``m``-th antiderivative of a polynomial, with integration constants ``k``.

    Raises: ValueError for negative ``m`` or constants that do not fit.

    >>> jnp.polyint(jnp.array([2., 2.]))
    Array([1., 2., 0.], dtype=float32)
    """
    p, constants = promote_dtypes_inexact(*array_argument("polyint", p, 0 if k is None else k))
    if m < 0:
        raise errors.explained(errors.ArgumentError, "polyint.C1",
                               "Order of integral must be positive (see polyder)",
                               advice=f"Got {m}.")
    if m == 0:
        return p
    _check_vectors("polyint", p)
    if constants.ndim > 1 or (constants.ndim and constants.shape[0] not in (1, m)):
        raise errors.explained(
            errors.ArgumentError, "polyint.C2",
            "k must be a scalar or a rank-1 array of length 1 or m.",
            advice=f"Got shape {constants.shape}.")
    if not constants.ndim:
        constants = broadcast_in_dim(constants, (1,), ())
    if constants.shape[0] != m:
        constants = broadcast_to(constants, (m,))
    for i in range(m):
        powers = np.arange(p.shape[0], 0, -1).astype(p.dtype)
        p = concatenate([ops.div(p, powers), slicing.slice_in_dim(constants, i, i + 1)])
    return p


@library_function(whole=True)
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the polynomial, of leading coefficient 1, with these zeros.

    Of a square matrix it is the characteristic polynomial.  Raises: ValueError for other shapes.

    >>> jnp.poly(jnp.array([1., 2.]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    (zeros,) = promote_dtypes_inexact(array_argument("poly", seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0]:
        zeros = decompositions.eigvals(zeros)
    if zeros.ndim > 1:
        raise errors.explained(
            errors.ArgumentError, "poly.C1",
            "input must be 1d or non-empty square 2d array.", advice=f"Got shape {zeros.shape}.")
    if not math.prod(zeros.shape):
        return broadcast_in_dim(scalar(1, zeros.dtype), (), ())
    if not zeros.ndim:
        zeros = broadcast_in_dim(zeros, (1,), ())
    out = broadcast_in_dim(scalar(1, zeros.dtype), (1,), ())
    for i in range(zeros.shape[0]):
        zero = slicing.slice_in_dim(zeros, i, i + 1)
        one = broadcast_in_dim(scalar(1, zeros.dtype), (1,), ())
        out = convolve(out, concatenate([one, negative(zero)]), mode="full")
    return out


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """Return an array without slices of zeros at the front ('f'), the back ('b'), or both.

    Raises: ConcretizationTypeError under jit; ValueError for an axis that does not exist.

    >>> jnp.trim_zeros(jnp.array([0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    filt = array_argument("trim_zeros", filt)
    known = concrete_or_none(filt)
    if known is None:
        raise errors.unknown(
            "trim_zeros.C1", filt, "The length of the result of jnp.trim_zeros depends on the "
            "values.", advice="Use jnp.where to mask the zeros.")
    trim = trim.lower()
    places = np.nonzero(np.atleast_1d(np.asarray(known)))
    for i in canonical_axes(axis, filt.ndim):
        start, stop = 0, filt.shape[i]
        if not places[i].size:
            stop = 0 if "f" in trim or "b" in trim else stop
        else:
            start = int(places[i].min()) if "f" in trim else start
            stop = int(places[i].max()) + 1 if "b" in trim else stop
        filt = slicing.slice_in_dim(filt, start, stop, axis=i)
    return filt


# -- windows ---------------------------------------------------------------------------------------


def _steps(count: int) -> np.ndarray:
    """Return 0, 1, … as far as a window of ``count`` points reaches; ``count`` may be any number.
    """
    return np.arange(math.ceil(count - 0.5), dtype=np.float64)


def _window(values: np.ndarray) -> Any:
    dtype = dtypes.default_dtype(float)
    return array_argument("window", values.astype(dtype))


def _points(M: Any) -> int:
    """Return the length of a window.

    Raises: TypeError if it is negative or no number.
    """
    M = int(M)
    if M < 0:
        raise errors.explained(errors.ArgumentTypeError, "window.C1",
                               f"a window has no negative number of points; got {M}.")
    return M


def bartlett(M: int) -> Any:
    """Return a triangle of ``M`` points, zero at both ends.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    M = _points(M)
    if M <= 1:
        return _window(np.ones(M))
    return _window(1 - np.abs(2 * _steps(M) - M + 1) / (M - 1))


def _cosines(M: int, *weights: float) -> Any:
    M = _points(M)
    if M <= 1:
        return _window(np.ones(M))
    angle = 2 * np.pi * _steps(M) / (M - 1)
    return _window(np.asarray(sum(w * np.cos(k * angle) for k, w in enumerate(weights))))


def blackman(M: int) -> Any:
    """Return a window of ``M`` points made of three cosines.

    >>> jnp.blackman(3).round(3)
    Array([-0.,  1., -0.], dtype=float32)
    """
    return _cosines(M, 0.42, -0.5, 0.08)


def hamming(M: int) -> Any:
    """Return a raised cosine of ``M`` points, 0.08 at both ends.

    >>> jnp.hamming(3).round(3)
    Array([0.08000001, 1.        , 0.08000001], dtype=float32)
    """
    return _cosines(M, 0.54, -0.46)


def hanning(M: int) -> Any:
    """Return a raised cosine of ``M`` points, zero at both ends.

    >>> jnp.hanning(5).round(3)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _cosines(M, 0.5, -0.5)


def kaiser(M: int, beta: Any) -> Any:
    """Return Kaiser's window of ``M`` points: a Bessel function of ``beta``.

    >>> jnp.kaiser(3, 0.)
    Array([1., 1., 1.], dtype=float32)
    """
    if not isinstance(beta, Tracer):
        return _window(np.kaiser(M, float(beta)))
    (beta,) = promote_dtypes_inexact(array_argument("kaiser", beta))
    M = _points(M)
    across = np.linspace(-1., 1., M) if M > 1 else np.zeros(M)
    half_circle = array_argument("kaiser", np.sqrt(1 - across ** 2).astype(beta.dtype))
    window = special.i0(multiply(half_circle, beta))
    return ops.div(window, broadcast_to(special.i0(beta), window.shape))

"""How are products with logarithms taken where the logarithm is infinite?

x log y is 0 where x is 0, whatever y is; entropies, divergences and the logit are built of it.

Read before: ``special.operands``.  Read after: ``special.gammas``.
Invariant: at the edges of their domains functions have SciPy's values and JAX's derivatives
(tests/kernel/scipy/test_special.py).
Source: Box and Cox 1964 (``boxcox``); Kullback and Leibler 1951.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core.avals import aval_of
from saem.custom_derivatives import custom_jvp
from saem.jit.library import library_function
from saem.nn import normalization
from saem.scipy.special.operands import elementwise
from saem.typing import Array, ArrayLike


@custom_jvp
def _xlogy(x: Array, y: Array) -> Array:
    return jnp.where((x == 0) & (y == y), 0, x * jnp.log(y))


_xlogy.defjvps(lambda dx, out, x, y: dx * jnp.log(y), lambda dy, out, x, y: dy * x / y)


@custom_jvp
def _xlog1py(x: Array, y: Array) -> Array:
    return jnp.where((x == 0) & (y == y), 0, x * jnp.log1p(y))


_xlog1py.defjvps(lambda dx, out, x, y: dx * jnp.log1p(y), lambda dy, out, x, y: dy * x / (1 + y))


@custom_jvp
def _xlogx(x: Array) -> Array:
    return _xlogy(x, x)


_xlogx.defjvps(lambda dx, out, x: dx * (jnp.log(x) + 1))


@elementwise(complex_too=True)
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x log(y), and 0 where x is 0.

    >>> xlogy(jnp.array([0., 2.]), jnp.array([0., 1.]))
    Array([0., 0.], dtype=float32)
    """
    return _xlogy(x, y)


@elementwise(complex_too=True)
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x log(1 + y), and 0 where x is 0.

    >>> xlog1py(jnp.array([0., 2.]), jnp.array([-1., 0.]))
    Array([0., 0.], dtype=float32)
    """
    return _xlog1py(x, y)


@elementwise
def entr(x: ArrayLike) -> Array:
    """Return -x log(x), an element of an entropy: 0 at 0 and -inf below.

    >>> entr(jnp.array([-1., 0., 1.]))
    Array([-inf,  -0.,  -0.], dtype=float32)
    """
    return jnp.where(x < 0, -np.inf, -_xlogx(x))


def _close(p: Array, q: Array) -> tuple[Array, Array, Array, Array]:
    """Return where p and q are close, p (1 elsewhere), y = (p - q) / (p + q), and atanh(y) - y.

    There log(p / q) = 2 atanh(y), in which nothing cancels as it does in log(p) - log(q).
    """
    close = (p < 2 * q) & (q < 2 * p) & (p + q < np.inf)
    p, q = jnp.where(close, p, 1), jnp.where(close, q, 1)
    y = (p - q) / (p + q)
    square, series = y * y, 0
    for odd in range(35, 1, -2):  # |y| < 1/3: as many terms as double precision needs
        series = (series + 1 / odd) * square
    return close, p, y, y * series


@custom_jvp
def _log_ratio(p: Array, q: Array) -> Array:
    close, _, y, rest = _close(p, q)
    return jnp.where(close, 2 * (y + rest), jnp.log(p) - jnp.log(q))


_log_ratio.defjvps(lambda dp, out, p, q: dp / p, lambda dq, out, p, q: -dq / q)


@custom_jvp
def _relative(p: Array, q: Array) -> Array:
    return p * _log_ratio(p, q)


_relative.defjvps(lambda dp, out, p, q: dp * (_log_ratio(p, q) + 1),
                  lambda dq, out, p, q: -dq * p / q)


@custom_jvp
def _divergence(p: Array, q: Array) -> Array:
    close, close_p, y, rest = _close(p, q)
    near = 2 * close_p * (y * y / (1 + y) + rest)  # p - q = 2 p y / (1 + y)
    return jnp.where(close, near, _relative(p, q) - p + q)


_divergence.defjvps(lambda dp, out, p, q: dp * _log_ratio(p, q),
                    lambda dq, out, p, q: dq * jnp.where(q < np.inf, (q - p) / q, 1))


def _inside(of: Callable[[Array, Array], Array], p: Array, q: Array) -> tuple[Array, Array, Array]:
    """Return where p and q are positive, ``of`` them there, and what p log(p / q) is elsewhere."""
    if aval_of(q).shape != jnp.broadcast_shapes(aval_of(p).shape, aval_of(q).shape):
        q = lax.convert_element_type(q, aval_of(q).dtype)  # a stretched q is never weak, as in JAX
    both = (p > 0) & (q > 0)
    # What is not chosen is computed at 1, so that its derivative is no NaN.
    inside = of(jnp.where(both, p, 1), jnp.where(both, q, 1))
    return both, inside, jnp.where((p == 0) & (q >= 0), 0, np.inf)


@elementwise(by_first=True)
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Return p log(p / q), an element of a relative entropy; inf where p or q is negative.

    >>> rel_entr(jnp.array([0., 2.]), jnp.array([1., 2.]))
    Array([0., 0.], dtype=float32)
    """
    return jnp.where(*_inside(_relative, p, q))


@elementwise(by_first=True)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Return p log(p / q) - p + q, an element of a divergence that is never negative.

    >>> kl_div(jnp.array([0., 2.]), jnp.array([1., 2.]))
    Array([1., 0.], dtype=float32)
    """
    both, inside, outside = _inside(_divergence, p, q)
    return jnp.where(both, inside, outside - p + q)


@custom_jvp
def _logit(x: Array) -> Array:
    return jnp.log(x / (1 - x))


_logit.defjvps(lambda dx, out, x: dx / (x * (1 - x)))


@elementwise(complex_too=True)
def logit(x: ArrayLike) -> Array:
    """Return log(x / (1 - x)), the inverse of expit.

    >>> logit(jnp.array([0., 0.5, 1.]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    return _logit(x)


@elementwise(complex_too=True)
def expit(x: ArrayLike) -> Array:
    """Return 1 / (1 + exp(-x)).

    >>> expit(jnp.array([0., 100.]))
    Array([0.5, 1. ], dtype=float32)
    """
    return lax.logistic(x)


@custom_jvp
def _boxcox(log: Array, lmbda: Array) -> Array:
    """Return expm1(lmbda log) / lmbda, and log where lmbda is 0."""
    flat = lmbda == 0
    return jnp.where(flat, log, jnp.expm1(lmbda * log) / jnp.where(flat, 1, lmbda))


_boxcox.defjvps(
    lambda dlog, out, log, lmbda: dlog * jnp.exp(lmbda * log),
    lambda dl, out, log, lmbda: dl * jnp.where(
        lmbda == 0, log * log / 2,
        (jnp.exp(lmbda * log) * log - out) / jnp.where(lmbda == 0, 1, lmbda)))


@elementwise(complex_too=True)
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return (x**lmbda - 1) / lmbda, and log(x) where lmbda is 0.

    >>> boxcox(jnp.array([1., 3.]), 2.0)
    Array([0., 4.], dtype=float32)
    """
    return _boxcox(*jnp.broadcast_arrays(jnp.log(x), lmbda))


@elementwise(complex_too=True)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return ((1 + x)**lmbda - 1) / lmbda, and log1p(x) where lmbda is 0.

    >>> boxcox1p(jnp.array([0., 2.]), 2.0)
    Array([0., 4.], dtype=float32)
    """
    return _boxcox(*jnp.broadcast_arrays(jnp.log1p(x), lmbda))


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return exp(x) / sum(exp(x)) over ``axis`` (all axes if None).

    >>> softmax(jnp.array([1000., 1000.]))
    Array([0.5, 0.5], dtype=float32)
    """
    return normalization.softmax(x, axis=axis)


@library_function(static_argnames=("axis",))
def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return log(softmax(x)) over ``axis`` (all axes if None).

    >>> log_softmax(jnp.array([0., 1000.]))
    Array([-1000.,     0.], dtype=float32)
    """
    return normalization.log_softmax(x, axis=axis)

"""Where is a polynomial zero, and which polynomial passes closest to points?

Zeros are eigenvalues of a companion matrix; the closest polynomial is a least-squares solution with
a Vandermonde matrix.

Read before: ``numpy.polynomials``, ``numpy.linalg``.
Invariant: values are NumPy's (tests/kernel/test_linalg.py).
Source: the NumPy reference of roots and polyfit; Edelman & Murakami, "Polynomial roots from
companion matrix eigenvalues" (1995).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.trace import concrete_or_none
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.numpy.filling import zeros
from saem.numpy.linalg.decompositions import eigvals
from saem.numpy.linalg.equations import inv, lstsq
from saem.numpy.matrices import eye, vander
from saem.numpy.promote import promote_dtypes_inexact
from saem.numpy.searching import where
from saem.numpy.sorting import argsort
from saem.numpy.take_and_put import take
from saem.typing import Array, ArrayLike


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Return the complex zeros of the polynomial with coefficients ``p``, the highest power first.

    ``strip_zeros``: leave out leading zeros of ``p``, which must then be known; without it ``p``
    may be traced, and for each leading zero there is a NaN at the end.

    Raises: ValueError for more than one axis; ConcretizationTypeError for a traced ``p``.

    >>> jnp.roots(jnp.array([1., -3., 2.]))
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    (p,) = promote_dtypes_inexact(array_argument("roots", p))
    p = p.reshape(1) if not p.ndim else p
    if p.ndim != 1:
        raise errors.explained(
            errors.ArgumentError, "roots.rank", "Input must be a rank-1 array.",
            advice=f"Got shape {p.shape}.")
    if not strip_zeros:
        return _zeros_and_nan(p) if p.shape[0] > 1 else zeros(0, dtypes.complex_dtype(p.dtype))
    known = concrete_or_none(p)
    if known is None:
        raise errors.explained(
            errors.ConcretizationTypeError, "roots.traced",
            "The number of zeros that jnp.roots finds depends on the leading coefficients, "
            "which are traced.",
            advice="With strip_zeros=False a leading coefficient of zero gives a zero of NaN.")
    places = np.flatnonzero(np.asarray(known))
    if not len(places):
        return zeros(0, dtypes.complex_dtype(p.dtype))
    p = p[int(places[0]):]
    return _zeros(p) if p.shape[0] > 1 else zeros(0, dtypes.complex_dtype(p.dtype))


@library_function(whole=True)
def _zeros(p: Any) -> Any:
    n = p.shape[0] - 1
    companion = eye(n, k=-1, dtype=p.dtype).at[0].set(-p[1:] / p[0])
    return eigvals(companion)


@library_function
def _zeros_and_nan(p: Any) -> Any:
    places = np.arange(p.shape[0])
    lead = (p != 0).argmax()
    found = _zeros(take(p, (places + lead) % p.shape[0]))
    found = take(found, argsort(found == 0, stable=True))
    return where(places[:-1] < p.shape[0] - 1 - lead, found, complex(np.nan, np.nan))


@library_function(static_argnames=("deg", "rcond", "full", "cov"), whole=True)
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool | str = False) -> Array | tuple[Array, ...]:
    """Return the polynomial of degree ``deg`` closest to ``y`` at ``x``, least squares.

    Shapes: x (m,), y (m,) or (m, k), weights ``w`` (m,); the result is (deg + 1,) or
    (deg + 1, k), the highest power first.  ``full``: also residuals, rank, singular values and
    rcond; ``cov``: also the covariance of the coefficients ("unscaled": for known errors 1 / w).

    Raises: ValueError or TypeError for shapes that do not fit.

    >>> jnp.polyfit(jnp.array([0., 1., 2.]), jnp.array([1., 3., 5.]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    arrays = (x, y) if w is None else (x, y, w)
    x, y, *weights = array_argument("polyfit", *arrays)
    deg = operator.index(deg)
    check_fit(x, y, deg, weights, rcond is None, bool(cov and not full and cov != "unscaled"))
    if rcond is None:
        rcond = len(x) * float(dtypes.finfo(x.dtype).eps)
    left, right = promote_dtypes_inexact(vander(x, deg + 1), y)
    if weights:
        left = left * weights[0][:, None]
        right = right * (weights[0][:, None] if right.ndim == 2 else weights[0])
    # Columns of one length: powers of x differ by orders of magnitude.
    scale = ((left * left.conj()).real.sum(axis=0)) ** 0.5
    found, residuals, rank, s = lstsq(left / scale[None], right, rcond)
    found = found / (scale if found.ndim == 1 else scale[:, None])
    if full:
        return found, residuals, rank, s, array_argument("polyfit", rcond)
    if not cov:
        return found
    base = inv(left.T @ left)
    if cov != "unscaled":
        residuals = residuals / (x.shape[0] - deg - 1)
        base = base * residuals[None] if y.ndim == 1 else base[:, :, None] * residuals[None, None]
    elif y.ndim == 2:
        base = base[:, :, None]
    return found, base


def check_fit(x: Array, y: Array, deg: int, weights: list[Array], default_rcond: bool, scaled: bool
              ) -> None:
    """Refuse arguments of ``polyfit`` that do not fit; ``scaled`` if it scales a covariance.

    Raises: ValueError or TypeError.
    """
    length = "expected x and y to have same length"
    for wrong, kind, tag, sentence in (
            (deg < 0, errors.ArgumentError, "degree", "expected deg >= 0"),
            (x.ndim != 1, errors.ArgumentTypeError, "x", "expected 1D vector for x"),
            (not x.size, errors.ArgumentTypeError, "empty", "expected non-empty vector for x"),
            (not 1 <= y.ndim <= 2, errors.ArgumentTypeError, "y", "expected 1D or 2D array for y"),
            (x.shape[:1] != y.shape[:1], errors.ArgumentTypeError, "length", length),
            (default_rcond and not dtypes.is_inexact(x.dtype), errors.ArgumentError, "dtype",
             f"data type {x.dtype.type!r} not inexact"),
            (any(w.ndim != 1 for w in weights), errors.ArgumentTypeError, "weights",
             "expected a 1-d array for weights"),
            (any(w.shape[:1] != y.shape[:1] for w in weights), errors.ArgumentTypeError, "weights",
             "expected w and y to have the same length"),
            (scaled and x.shape[:1] <= (deg + 1,), errors.ArgumentError, "covariance",
             "the number of data points must exceed order to scale the covariance matrix")):
        if wrong:
            raise errors.explained(kind, f"polyfit.{tag}", sentence,
                                   advice=f"Got x {x.shape}, y {y.shape} and deg {deg}.")

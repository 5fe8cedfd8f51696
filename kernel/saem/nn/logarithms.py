"""How are logarithms of sums and differences of exponentials taken without overflow?

The largest exponent is taken out first, so that no exponential is above 1.

Read before: ``saem.numpy``.  Read after: ``nn.normalization``.
Invariant: ``logsumexp`` is finite where its true value is (tests/kernel/test_nn.py); no derivative
runs through the shift, which does not change the value.
Source: Blanchard, Higham, Higham 2021, "Accurately computing the log-sum-exp and softmax
functions"; Mächler 2012, "Accurately computing log(1 - exp(-|a|))" (equation 7).
"""

from __future__ import annotations

import math

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.custom_derivatives import custom_jvp
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, numbers_may_be_arrays, reduced_axes
from saem.numpy.promote import promote_args_inexact
from saem.numpy.reductions import count_along
from saem.ops.linear import literal
from saem.typing import Array, ArrayLike, Axis


def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None
              ) -> Array | tuple[Array, Array]:
    """Return log(sum(b exp(a))) over ``axis`` (all axes if None); b is 1 if None.

    return_sign: return the logarithm of the modulus, and the sign (phase of complex numbers).
    where: which elements are in the sum.

    >>> logsumexp(jnp.array([1000., 1000.]))
    Array(1000.6931, dtype=float32)
    """
    return _logsumexp(a, axis, b, keepdims, return_sign, where)


@numbers_may_be_arrays
@library_function(static_argnums=(1, 3, 4))
def _logsumexp(a: ArrayLike, axis: Axis, b: ArrayLike | None, keepdims: bool, return_sign: bool,
               where: ArrayLike | None) -> Array | tuple[Array, Array]:
    if b is not None:
        a, b = promote_args_inexact("logsumexp", a, b)
        a = jnp.where(b != 0, a, -np.inf)
    else:
        (a,) = promote_args_inexact("logsumexp", a)
    a = jnp.asarray(a)
    if where is not None:
        a = jnp.where(where, a, 0)
    axes, mixed = reduced_axes(axis, a.ndim)
    largest = jnp.max(a.real, axis=mixed or axes, keepdims=True, where=where, initial=-np.inf)
    largest = lax.stop_gradient(lax.select(jnp.isfinite(largest), largest,
                                           lax.full_like(largest, 0)))
    terms = lax.exp(lax.sub(a, largest.astype(a.dtype)))
    if b is not None:
        terms = lax.mul(terms, jnp.broadcast_to(b, terms.shape))
    total = jnp.sum(terms, axis=mixed or axes, keepdims=True, where=where)
    sign = lax.sign(total)
    if return_sign or not jnp.issubdtype(total.dtype, jnp.complexfloating):
        total = lax.abs(total)
    out = lax.add(lax.log(total), largest.astype(total.dtype))
    if not keepdims:
        out, sign = (lax.squeeze(x, axes) for x in (out, sign))
    if return_sign:
        return out, sign
    if b is not None and not jnp.issubdtype(out.dtype, jnp.complexfloating):
        out = jnp.where(sign < 0, np.nan, out)
    return out


@library_function(static_argnames=("axis", "keepdims"), whole=True)
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None,
               keepdims: bool = False) -> Array:
    """Return log(mean(exp(x))) over ``axis`` (all axes if None).

    >>> logmeanexp(jnp.array([1000., 1000.]))
    Array(1000., dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    shape = jnp.shape(x)
    if where is None:
        count = float(count_along(shape, *reduced_axes(axis, len(shape))))
        return total - jnp.log(literal(count, total.dtype))
    counted = jnp.broadcast_to(jnp.asarray(where), shape).astype(total.dtype)
    return total - jnp.log(jnp.sum(counted, axis=axis, keepdims=keepdims))


@custom_jvp
@library_function
def log1mexp(x: ArrayLike) -> Array:
    """Return log(1 - exp(-x)) for x ≥ 0, exact for x near 0 and for large x.

    >>> log1mexp(jnp.array([1e-10, 100.]))
    Array([-23.02585,  -0.     ], dtype=float32)
    """
    x = array_argument("log1mexp", x)
    near = jnp.log(-jnp.expm1(-x))
    far = jnp.log1p(-jnp.exp(-x))
    return jnp.where(x < math.log(2.0), near, far)


log1mexp.defjvps(lambda dx, out, x: dx / jnp.expm1(x))

"""Which functions stand between the layers of a network?

Each takes an array of any shape and works elementwise (``glu`` halves one axis).  Most are one line
of jax.numpy; a derivative of its own is given only where the plain one is wrong at a kink.

Read before: ``saem.numpy``.  Read after: ``nn.normalization``.
Invariant: integers become floats where the formula needs them, and the derivative of ``relu`` and
``relu6`` at a kink is 0 (tests/kernel/test_nn.py).
Source: the papers that the docstrings name.
"""

from __future__ import annotations

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core.avals import aval_of
from saem.custom_derivatives import custom_jvp
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, numbers_may_be_arrays
from saem.numpy.promote import promote_args_inexact
from saem.typing import Array, ArrayLike

# The fixpoint of mean 0 and variance 1 (Klambauer et al. 2017, equation 14).
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@library_function
def identity(x: ArrayLike) -> Array:
    """Return ``x`` as an array.

    >>> identity(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return array_argument("identity", x)


# -- straight lines --------------------------------------------------------------------------------


@custom_jvp
@library_function
def relu(x: ArrayLike) -> Array:
    """Return max(x, 0) elementwise; the derivative at 0 is 0.

    >>> relu(jnp.array([-1., 2.]))
    Array([0., 2.], dtype=float32)
    """
    return jnp.maximum(x, 0)


relu.defjvps(lambda dx, out, x: lax.select(x > 0, dx, lax.full_like(dx, 0)))


@custom_jvp
@library_function
def relu6(x: ArrayLike) -> Array:
    """Return min(max(x, 0), 6) elementwise; the derivative at 0 and 6 is 0.

    >>> relu6(jnp.array([-1., 2., 9.]))
    Array([0., 2., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda dx, out, x: lax.select((x > 0) & (x < 6), dx, lax.full_like(dx, 0)))


@library_function
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Return x where it is at least 0, elsewhere ``negative_slope`` times x.

    >>> leaky_relu(jnp.array([-1., 2.]), 0.5)
    Array([-0.5,  2. ], dtype=float32)
    """
    x = array_argument("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


@library_function
def hard_tanh(x: ArrayLike) -> Array:
    """Return x between -1 and 1, and these bounds outside.

    >>> hard_tanh(jnp.array([-3., 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    x = array_argument("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@library_function(whole=True)
def hard_sigmoid(x: ArrayLike) -> Array:
    """Return relu6(x + 3) / 6.

    >>> hard_sigmoid(jnp.array([-4., 0., 4.]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return relu6(x + 3.0) / 6.0


@library_function(whole=True)
def hard_silu(x: ArrayLike) -> Array:
    """Return x times hard_sigmoid(x), a silu of straight lines (Howard et al. 2019).

    >>> hard_silu(jnp.array([-4., 3.]))
    Array([-0.,  3.], dtype=float32)
    """
    x = array_argument("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


# -- exponentials ----------------------------------------------------------------------------------


@library_function
def tanh(x: ArrayLike, /) -> Array:
    """Return the hyperbolic tangent of x.

    >>> tanh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return jnp.tanh(x)


@library_function
def sigmoid(x: ArrayLike) -> Array:
    """Return 1 / (1 + exp(-x)).

    >>> sigmoid(jnp.array([0., 100.]))
    Array([0.5, 1. ], dtype=float32)
    """
    return lax.logistic(array_argument("sigmoid", x))


@library_function(whole=True)
def log_sigmoid(x: ArrayLike) -> Array:
    """Return log(sigmoid(x)), exact for large negative x too.

    >>> log_sigmoid(jnp.array([-100., 100.]))
    Array([-100.,   -0.], dtype=float32)
    """
    x = array_argument("log_sigmoid", x)
    return -softplus(-x)


@library_function(whole=True)
def softplus(x: ArrayLike) -> Array:
    """Return log(1 + exp(x)), a smooth relu that overflows for no x.

    >>> softplus(jnp.array([-100., 100.]))
    Array([  0., 100.], dtype=float32)
    """
    return jnp.logaddexp(x, 0)


@library_function
def silu(x: ArrayLike) -> Array:
    """Return x times sigmoid(x), also called swish (Ramachandran et al. 2017).

    >>> silu(jnp.array([0., 100.]))
    Array([  0., 100.], dtype=float32)
    """
    x = array_argument("silu", x)
    return x * sigmoid(x)


swish = silu


@library_function(whole=True)
def mish(x: ArrayLike) -> Array:
    """Return x times tanh(softplus(x)) (Misra 2019).

    >>> mish(jnp.array([0., 100.]))
    Array([  0., 100.], dtype=float32)
    """
    x = array_argument("mish", x)
    return x * jnp.tanh(softplus(x))


@library_function
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return x where it is positive, elsewhere alpha (exp(x) - 1) (Clevert et al. 2015).

    >>> elu(jnp.array([-100., 2.]))
    Array([-1.,  2.], dtype=float32)
    """
    x = array_argument("elu", x)
    # exp of what is not chosen must not overflow: its derivative would be NaN.
    below = jnp.where(x > 0, 0.0, x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(below))


@library_function
def selu(x: ArrayLike) -> Array:
    """Return a scaled elu that keeps mean 0 and variance 1 (Klambauer et al. 2017).

    >>> selu(jnp.array([0., 1.]))
    Array([0.      , 1.050701], dtype=float32)
    """
    return SELU_SCALE * elu(x, SELU_ALPHA)


@library_function
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1) (Barron 2017).

    >>> celu(jnp.array([-100., 2.]))
    Array([-1.,  2.], dtype=float32)
    """
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@numbers_may_be_arrays
@library_function(static_argnames=("approximate",), same_rounding=True)
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Return x times the probability that a normal number is below x (Hendrycks, Gimpel 2016).

    approximate: use the formula with tanh instead of the error function.

    >>> gelu(jnp.array([0., 100.]))
    Array([  0., 100.], dtype=float32)
    """
    (x,) = promote_args_inexact("gelu", x)
    dtype = aval_of(x).dtype
    if approximate:
        inner = np.sqrt(2 / np.pi).astype(dtype) * (x + 0.044715 * x ** 3)
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return 0.5 * x * lax.erfc(-x * np.sqrt(0.5).astype(dtype))


@library_function(static_argnames=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Return the first half of ``axis`` times the sigmoid of the second (Dauphin et al. 2016).

    Raises: AssertionError for an odd number of elements along ``axis``.

    >>> glu(jnp.array([1., 2., 0., 100.]))
    Array([0.5, 2. ], dtype=float32)
    """
    x = array_argument("glu", x)
    assert x.shape[axis] % 2 == 0, (
        f"axis size must be divisible by 2, but axis {axis} of {x.shape} is odd: pad or trim it")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


# -- powers ----------------------------------------------------------------------------------------


@library_function
def soft_sign(x: ArrayLike) -> Array:
    """Return x / (1 + |x|).

    >>> soft_sign(jnp.array([-1., 3.]))
    Array([-0.5 ,  0.75], dtype=float32)
    """
    x = array_argument("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@library_function
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Return (x + sqrt(x² + b)) / 2, a relu made smooth without exponentials (Barron 2021).

    >>> squareplus(jnp.array([0., 1.5]))
    Array([1., 2.], dtype=float32)
    """
    x, b = array_argument("squareplus", x), array_argument("squareplus", b)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@library_function
def sparse_plus(x: ArrayLike) -> Array:
    """Return 0 below -1, x above 1, and (x + 1)² / 4 between.

    >>> sparse_plus(jnp.array([-2., 0., 2.]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = array_argument("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@library_function
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Return 0 below -1, 1 above 1, and (x + 1) / 2 between: the derivative of sparse_plus.

    >>> sparse_sigmoid(jnp.array([-2., 0., 2.]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)

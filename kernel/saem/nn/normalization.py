"""How are the numbers along an axis brought to a common scale?

To probabilities (``softmax``), to mean 0 and variance 1 (``standardize``), and integers to vectors
of one 1 and zeros (``one_hot``).

Read before: ``nn.activations``.  Read after: ``nn.attention``.
Invariant: softmax sums to 1 over ``axis`` where not all is masked, and elements that ``where``
masks are 0 and get no gradient (tests/kernel/test_nn.py).
"""

from __future__ import annotations

import warnings

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import config, dtypes, errors
from saem.core.dimensions import as_size
from saem.core.trace import concrete_or_error
from saem.custom_derivatives import custom_jvp
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, numbers_may_be_arrays
from saem.numpy.promote import promote_args, promote_args_inexact
from saem.ops.convert import holding
from saem.ops.shape import canonical_axis
from saem.typing import Array, ArrayLike, Axis, DTypeLike


def _numbers(name: str, x: ArrayLike) -> Array:
    """Return ``x`` as an array of floats.  Raises: TypeError for booleans and for lists."""
    x = array_argument(name, x)
    if dtypes.is_bool(x.dtype):
        raise errors.explained(
            errors.DTypeError, f"{name}.C1", f"{name} does not accept dtype bool.",
            advice="Convert first: x.astype(float).")
    return jnp.asarray(*promote_args_inexact(name, x))


def _shifted(x: Array, axis: Axis, where: ArrayLike | None) -> tuple[Array, Array]:
    """Return x minus its largest along ``axis``, and the exponentials of that."""
    largest = jnp.max(x, axis, where=where, initial=-np.inf, keepdims=True)
    kept = x if where is None else jnp.where(where, x, -np.inf)
    shifted = kept - lax.stop_gradient(largest)
    return shifted, jnp.exp(shifted)


def _softmax(x: Array, axis: Axis, where: ArrayLike | None) -> Array:
    terms = _shifted(x, axis, where)[1]
    out = terms / jnp.sum(terms, axis, where=where, keepdims=True)
    return out if where is None else jnp.where(where, out, 0)


_softmax_by_its_result = custom_jvp(_softmax, nondiff_argnums=(1,))


@_softmax_by_its_result.defjvp
def _softmax_jvp(axis, primals, tangents):
    (x, where), (dx, _) = primals, tangents
    out = _softmax_by_its_result(x, axis, where)
    # In each row the derivative is diag(y) - y yᵀ, so the result is all that must be kept.
    return out, out * (dx - jnp.sum(out * dx, axis, where=where, keepdims=True))


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Return exp(x) / sum(exp(x)) along ``axis``, one axis or several.

    where: which elements take part; the others are 0 in the result.

    >>> softmax(jnp.array([1000., 1000.]))
    Array([0.5, 0.5], dtype=float32)
    """
    return _softmax_along(x, axis, where)


@numbers_may_be_arrays
@library_function(static_argnums=(1,))
def _softmax_along(x: ArrayLike, axis: Axis, where: ArrayLike | None) -> Array:
    """Return the softmax along an axis that is a number, a tuple or None."""
    x = _numbers("softmax", x)
    rule = _softmax_by_its_result if config.softmax_custom_jvp.value else _softmax
    return rule(x, axis, where)


@library_function(static_argnames=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Return log(softmax(x)) along ``axis``, exact where the softmax underflows.

    where: which elements take part; the others are -inf in the result.

    >>> log_softmax(jnp.array([0., 1000.]))
    Array([-1000.,     0.], dtype=float32)
    """
    shifted, terms = _shifted(_numbers("log_softmax", x), axis, where)
    out = shifted - jnp.log(jnp.sum(terms, axis, where=where, keepdims=True))
    return out if where is None else jnp.where(where, out, -np.inf)


@library_function(static_argnames=("axis", "algorithm"), whole=True)
def standardize(x: ArrayLike, axis: Axis = -1, mean: ArrayLike | None = None,
                variance: ArrayLike | None = None, epsilon: ArrayLike = 1e-5,
                where: ArrayLike | None = None, *, algorithm: str = "fast") -> Array:
    """Return (x - mean) / sqrt(variance + epsilon) along ``axis``.

    mean, variance: taken from x along ``axis`` if None.  where: which elements they are taken of.
    algorithm: 'fast' takes the variance as mean(x²) - mean(x)², 'stable' in a second pass.
    Raises: ValueError for another algorithm.

    >>> standardize(jnp.array([1., 3.]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise errors.explained(
            errors.ArgumentError, "standardize.algorithm",
            f"Unknown algorithm '{algorithm}'. Expected 'fast' or 'stable'.",
            advice="'stable' is exact where the mean is large beside the deviation.")
    (x,) = promote_args("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            variance = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
            variance = jnp.clip(variance - jnp.square(mean), 0)
        else:
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    return (x - mean) * lax.rsqrt(variance + epsilon)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None,
            axis: int | str = -1) -> Array:
    """Return vectors of ``num_classes`` zeros, with a 1 at the place that each of x names.

    The vectors lie along the new axis ``axis``, or along a named axis of a mapped function.
    Places outside of the vector give zeros alone.  dtype: the default float if None.

    >>> one_hot(jnp.array([0, 2, 7]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    num_classes = concrete_or_error(as_size, num_classes, "The error arose in "
                                    "jax.nn.one_hot argument `num_classes`.")
    if dtype is None:
        dtype = dtypes.default_dtype(float)
    x = jnp.asarray(x)
    if not dtypes.is_integer(x.dtype):
        warnings.warn(f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype.name}",
                      DeprecationWarning, stacklevel=2)
    if not isinstance(axis, (int, np.integer)):
        size = lax.axis_size(axis)
        if num_classes != size:
            raise errors.explained(
                errors.ArgumentError, "one_hot.axis",
                f"Expected num_classes to match the size of axis {axis}, but {num_classes} != "
                f"{size}", advice="The classes lie along that axis.")
        return jnp.asarray(x == lax.axis_index(axis), dtype)
    return _one_hot(x, num_classes, dtype=np.dtype(dtype), axis=axis)


@library_function(static_argnames=("num_classes", "dtype", "axis"))
def _one_hot(x, num_classes, dtype, axis):
    x = holding(x, num_classes)
    axis = canonical_axis(axis, x.ndim + 1)
    column = jnp.expand_dims(x, axis)
    row = [num_classes if i == axis else 1 for i in range(x.ndim + 1)]
    return jnp.asarray(column == lax.broadcasted_iota(x.dtype, row, axis), dtype)

"""With which random numbers do the weights of a network start?

Each function here makes an initializer: a function of a key, a shape and a dtype.  Most are one
family: numbers whose variance is ``scale`` over the number of inputs, outputs, or a mean of both.

Read before: ``saem.random``.  Read after: ``nn.activations``.
Invariant: same key, shape and dtype give the numbers of jax.nn.initializers, bit for bit
(tests/kernel/test_initializers.py).
Source: LeCun et al. 1998; Glorot and Bengio 2010; He et al. 2015; Saxe et al. 2014 (orthogonal);
Xiao et al. 2018 (delta orthogonal).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from saem import numpy as jnp
from saem import random
from saem.core import dtypes, errors, lazy
from saem.numpy.axes import as_tuple
from saem.numpy.manipulation import as_shape
from saem.ops.constraints import reshard
from saem.typing import Array, ArrayLike, DTypeLike, Shape

matrices = lazy.later("saem.random.matrices")

# The standard deviation of a normal number that was drawn again outside of (-2, 2).
TRUNCATED_DEVIATION = 0.87962566103423978
# The same of a complex number whose modulus is below 2 in units of its deviation.
TRUNCATED_COMPLEX_DEVIATION = 0.95311164380491208


@runtime_checkable
class Initializer(Protocol):
    """A function from a key, a shape and a dtype to an array of that shape and dtype."""

    def __call__(self, key: Array, shape: Shape, dtype: DTypeLike | None = None,
                 out_sharding: Any = None) -> Array:
        """Return the array."""
        ...


def _dtype(dtype: Any, where: str = "") -> np.dtype:
    return dtypes.canonicalize(dtypes.default_dtype(float) if dtype is None else dtype,
                               explicit=True, where=where)


def _refused(tag: str, message: str, advice: str) -> Exception:
    return errors.explained(errors.ArgumentError, tag, message, advice=advice)


# -- constants -------------------------------------------------------------------------------------


def zeros(key: Array, shape: Shape, dtype: DTypeLike | None = None, out_sharding: Any = None
          ) -> Array:
    """Return zeros of ``shape``; ``key`` is not used.

    >>> zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return jnp.zeros(shape, _dtype(dtype, "zeros"), out_sharding=out_sharding)


def ones(key: Array, shape: Shape, dtype: DTypeLike | None = None, out_sharding: Any = None
         ) -> Array:
    """Return ones of ``shape``; ``key`` is not used.

    >>> ones(random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    return jnp.ones(shape, _dtype(dtype, "ones"), out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer that fills the shape with ``value``, broadcast.

    >>> constant(3.0)(random.key(0), (2,))
    Array([3., 3.], dtype=float32)
    """
    default = dtype

    def init(key: Array, shape: Shape, dtype: DTypeLike | None = default,
             out_sharding: Any = None) -> Array:
        return placed(jnp.full(shape, value, _dtype(dtype, "full")), out_sharding)

    return init


def placed(x: Array, out_sharding: Any) -> Array:
    """Return ``x`` with the requested sharding; ``x`` itself if there is none."""
    return x if out_sharding is None else reshard(x, out_sharding)


# -- plain distributions ---------------------------------------------------------------------------


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of normal numbers of mean 0 and deviation ``stddev``.

    >>> normal(5.0)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    default = dtype

    def init(key: Array, shape: Shape, dtype: DTypeLike | None = default,
             out_sharding: Any = None) -> Array:
        dtype = _dtype(dtype)
        drawn = random.normal(key, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.array(stddev, dtype)

    return init


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of numbers spread evenly over [0, ``scale``).

    >>> uniform(5.0)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    default = dtype

    def init(key: Array, shape: Shape, dtype: DTypeLike | None = default,
             out_sharding: Any = None) -> Array:
        dtype = _dtype(dtype)
        drawn = random.uniform(key, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.array(scale, dtype)

    return init


def truncated_normal(stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0,
                     upper: float = 2.0) -> Initializer:
    """Return an initializer of normal numbers between ``lower`` and ``upper``, times ``stddev``.

    The bounds are for the numbers before they are scaled.

    >>> truncated_normal(5.0)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    default = dtype

    def init(key: Array, shape: Shape, dtype: DTypeLike | None = default,
             out_sharding: Any = None) -> Array:
        dtype = _dtype(dtype)
        drawn = random.truncated_normal(key, lower, upper, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.array(stddev, dtype)

    return init


# -- scaled by the number of inputs and outputs ----------------------------------------------------


def fans(shape: Shape, in_axis: int | Sequence[int], out_axis: int | Sequence[int],
         batch_axis: int | Sequence[int]) -> tuple[float, float]:
    """Return the numbers of inputs and of outputs of each element of a layer's result.

    Axes that are neither inputs, outputs nor batches are the receptive field, part of both.
    Raises: ValueError if ``shape`` has too few axes.
    """
    if len(shape) <= 1 and (in_axis, out_axis) == (-2, -1):
        raise _refused(
            "variance_scaling.C1",
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor "
            "with default in_axis. Must be at least 2D or specify in_axis explicitly.",
            "A vector has no inputs: use normal or zeros.")
    inputs, outputs, batches = (math.prod(shape[i] for i in as_tuple(axis))
                                for axis in (in_axis, out_axis, batch_axis))
    field = math.prod(shape) / inputs / outputs / batches
    return inputs * field, outputs * field


def _truncated_complex(key: Array, upper: float, shape: Shape, dtype: np.dtype) -> Array:
    """Return complex normal numbers whose modulus is below ``upper``."""
    first, second = random.split(key)
    part = dtypes.real_dtype(dtype)
    # The squared modulus is exponential; its distribution function is inverted below upper².
    below = 1 - jnp.exp(jnp.array(-(upper ** 2), dtype))
    modulus = jnp.sqrt(-jnp.log(1 - below * random.uniform(first, shape, part).astype(dtype)))
    angle = 2 * np.pi * random.uniform(second, shape, part).astype(dtype)
    return modulus * jnp.exp(1j * angle)


def _complex_disc(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    """Return complex numbers spread evenly over the disc of radius sqrt(2)."""
    first, second = random.split(key)
    part = dtypes.real_dtype(dtype)
    modulus = jnp.sqrt(2 * random.uniform(first, shape, part)).astype(dtype)
    angle = 2 * np.pi * random.uniform(second, shape, part).astype(dtype)
    return modulus * jnp.exp(1j * angle)


# How many inputs the variance is divided by, of (inputs, outputs).
DENOMINATORS = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
    "fan_geo_avg": lambda inputs, outputs: (inputs * outputs) ** 0.5,
}


def variance_scaling(scale: float, mode: str, distribution: str,
                     in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
                     batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None
                     ) -> Initializer:
    """Return an initializer of numbers of mean 0 and variance ``scale`` / n.

    mode: n is the number of inputs ('fan_in'), of outputs ('fan_out'), or their arithmetic or
    geometric mean ('fan_avg', 'fan_geo_avg').
    distribution: 'normal', 'truncated_normal' (within two deviations) or 'uniform'.
    Raises: ValueError, when called, for another mode or distribution, or a shape of one axis.

    >>> variance_scaling(1.0, 'fan_avg', 'uniform')(random.key(0), (2, 3)).shape
    (2, 3)
    """
    default = dtype

    def init(key: Array, shape: Shape, dtype: DTypeLike | None = default,
             out_sharding: Any = None) -> Array:
        dtype = _dtype(dtype)
        inputs_outputs = fans(as_shape(shape), in_axis, out_axis, batch_axis)
        if mode not in DENOMINATORS:
            raise _refused("variance_scaling.mode",
                           f"invalid mode for variance scaling initializer: {mode}",
                           f"Use one of {', '.join(DENOMINATORS)}.")
        variance = jnp.array(scale / DENOMINATORS[mode](*inputs_outputs), dtype)
        complex_ = dtypes.is_complex(dtype)
        if distribution == "normal":
            return random.normal(key, shape, dtype, out_sharding=out_sharding) * jnp.sqrt(variance)
        if distribution == "uniform":
            if complex_:
                return placed(_complex_disc(key, shape, dtype) * jnp.sqrt(variance), out_sharding)
            drawn = random.uniform(key, shape, dtype, -1, out_sharding=out_sharding)
            return drawn * jnp.sqrt(3 * variance)
        if distribution == "truncated_normal":
            if complex_:
                deviation = jnp.sqrt(variance) / jnp.array(TRUNCATED_COMPLEX_DEVIATION, dtype)
                return placed(_truncated_complex(key, 2, shape, dtype) * deviation, out_sharding)
            deviation = jnp.sqrt(variance) / jnp.array(TRUNCATED_DEVIATION, dtype)
            drawn = random.truncated_normal(key, -2, 2, shape, dtype, out_sharding=out_sharding)
            return drawn * deviation
        raise _refused("variance_scaling.distribution",
                       f"invalid distribution for variance scaling initializer: {distribution}",
                       "Use 'normal', 'truncated_normal' or 'uniform'.")

    return init


def _named(name: str, scale: float, mode: str, distribution: str, paper: str) -> Any:
    """Return ``variance_scaling`` with its first three arguments given, called ``name``."""

    def made(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
             batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = (
        f"Return an initializer of variance {scale:g} / n, where n is '{mode}' ({paper}).\n\n"
        f"    The distribution is '{distribution}'; see ``variance_scaling`` for the arguments.\n\n"
        f"    >>> {name}()(random.key(0), (2, 3)).shape\n    (2, 3)\n    ")
    return made


glorot_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform", "Glorot and Bengio 2010")
glorot_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal",
                       "Glorot and Bengio 2010")
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun et al. 1998")
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal", "LeCun et al. 1998")
he_uniform = _named("he_uniform", 2.0, "fan_in", "uniform", "He et al. 2015")
he_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal", "He et al. 2015")
# Both papers are also called after the first author's given name.
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# -- orthogonal ------------------------------------------------------------------------------------


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
               ) -> Initializer:
    """Return an initializer of matrices with orthonormal columns, times ``scale``.

    ``column_axis`` is the axis of columns, all others together the rows; where there are more
    columns than rows, the rows are orthonormal.
    Raises: ValueError, when called, for fewer than two axes.

    >>> w = orthogonal()(random.key(0), (3, 2))
    >>> bool(jnp.allclose(w.T @ w, jnp.eye(2), atol=1e-6))
    True
    """
    default = dtype

    def init(key: Array, shape: Shape, dtype: DTypeLike | None = default,
             out_sharding: Any = None) -> Array:
        dtype = _dtype(dtype)
        if len(shape) < 2:
            raise _refused("orthogonal.shape",
                           "orthogonal initializer requires at least a 2D shape",
                           f"Got shape {tuple(shape)}.")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns
        drawn = matrices.orthogonal(key, rows, (), dtype, columns)
        others = tuple(np.delete(shape, column_axis))
        drawn = jnp.moveaxis(jnp.reshape(drawn, (*others, columns)), -1, column_axis)
        return placed(jnp.array(scale, dtype) * drawn, out_sharding)

    return init


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
                     ) -> Initializer:
    """Return an initializer of convolution kernels that are orthogonal at their centre, else 0.

    The shape is that of a kernel in one to three dimensions: (*window, inputs, outputs).
    Raises: ValueError, when called, for other ranks, or more inputs than outputs.

    >>> delta_orthogonal()(random.key(0), (3, 2, 4))[0]
    Array([[0., 0., 0., 0.],
           [0., 0., 0., 0.]], dtype=float32)
    """
    default = dtype

    def init(key: Array, shape: Shape, dtype: DTypeLike | None = default,
             out_sharding: Any = None) -> Array:
        dtype = _dtype(dtype)
        if len(shape) not in (3, 4, 5):
            raise _refused("delta_orthogonal.C1",
                           "Delta orthogonal initializer requires a 3D, 4D or 5D shape.",
                           f"Got shape {tuple(shape)}: (*window, inputs, outputs) is needed.")
        if shape[-1] < shape[-2]:
            raise _refused("delta_orthogonal.C2",
                           "`fan_in` must be less or equal than `fan_out`. ",
                           f"Got {shape[-2]} inputs and {shape[-1]} outputs.")
        matrix = orthogonal(scale, column_axis, dtype)(key, tuple(shape[-2:]))
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        return placed(jnp.zeros(shape, dtype).at[centre].set(matrix), out_sharding)

    return init


__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]

"""How is a neural network put together from functions?  (``jax.example_libraries.stax``)

A layer is a pair ``(init_fun, apply_fun)``::

    init_fun(rng, input_shape) -> (output_shape, params)
    apply_fun(params, inputs, rng=None) -> outputs

and ``serial`` and ``parallel`` put layers together.  A size of -1 stands for the size of a batch
that is not known yet.

Read before: ``saem.nn``, ``lax`` (convolutions, windows).
Invariant: shapes, parameters and outputs are JAX's (tests/kernel/test_example_libraries.py).
Source: the documentation of jax.example_libraries.stax.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import saem.numpy as jnp
from saem import lax, random
from saem.core.avals import ShapeDtypeStruct
from saem.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from saem.nn.initializers import glorot_normal, normal, ones, zeros
from saem.transform.programs import eval_shape

Layer = tuple[Callable[..., Any], Callable[..., Any]]

# Programs written for this module take functions of ``nn`` from it, some by other names.
glorot, randn, logsoftmax = glorot_normal, normal, log_softmax


# -- layers with parameters ------------------------------------------------------------------------


def Dense(out_dim: int, W_init: Callable = glorot_normal(), b_init: Callable = normal()) -> Layer:
    """Return the layer x W + b."""

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        k1, k2 = random.split(rng)
        params = W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def GeneralConv(dimension_numbers: tuple[str, str, str], out_chan: int,
                filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                padding: Any = "VALID", W_init: Callable | None = None,
                b_init: Callable = normal(1e-6)) -> Layer:
    """Return the convolution whose dimensions are named as for ``lax.conv_general_dilated``."""
    one = (1,) * len(filter_shape)
    return _convolution(
        dimension_numbers, out_chan, filter_shape, W_init, b_init,
        lambda x, W: lax.conv_general_dilated(x, W, strides or one, padding, one, one,
                                              dimension_numbers=dimension_numbers))


def GeneralConvTranspose(dimension_numbers: tuple[str, str, str], out_chan: int,
                         filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                         padding: Any = "VALID", W_init: Callable | None = None,
                         b_init: Callable = normal(1e-6)) -> Layer:
    """Return the transposed convolution, ``lax.conv_transpose``."""
    one = (1,) * len(filter_shape)
    return _convolution(
        dimension_numbers, out_chan, filter_shape, W_init, b_init,
        lambda x, W: lax.conv_transpose(x, W, strides or one, padding,
                                        dimension_numbers=dimension_numbers))


def _convolution(dimension_numbers: tuple[str, str, str], out_chan: int,
                 filter_shape: Sequence[int], W_init: Any, b_init: Callable, convolve: Callable
                 ) -> Layer:
    lhs, rhs, out = dimension_numbers
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        sizes = iter(filter_shape)
        kernel = [out_chan if c == "O" else input_shape[lhs.index("C")] if c == "I"
                  else next(sizes) for c in rhs]
        k1, k2 = random.split(rng)
        W = W_init(k1, kernel)
        b = b_init(k2, tuple(out_chan if c == "C" else 1 for c in out))
        known = tuple(1 if n == -1 else n for n in input_shape)
        shape = list(eval_shape(convolve, ShapeDtypeStruct(known, W.dtype), W).shape)
        if input_shape[lhs.index("N")] == -1:
            shape[out.index("N")] = -1
        return tuple(shape), (W, b)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return convolve(inputs, W) + b

    return init_fun, apply_fun


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
              scale: bool = True, beta_init: Callable = zeros, gamma_init: Callable = ones
              ) -> Layer:
    """Return the layer that makes mean 0 and variance 1 along ``axis``, then scales and shifts."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple(n for a, n in enumerate(input_shape) if a not in axes)
        k1, k2 = random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        gamma = gamma_init(k2, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        stretched = tuple(None if a in axes else slice(None) for a in range(jnp.ndim(x)))
        beta, gamma = params
        z = standardize(x, axes, epsilon=epsilon)
        z = gamma[stretched] * z if scale else z
        return z + beta[stretched] if center else z

    return init_fun, apply_fun


# -- layers without parameters ---------------------------------------------------------------------


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """Return the layer that applies ``fun`` to each element."""
    return (lambda rng, input_shape: (input_shape, ()),
            lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity: Layer = (lambda rng, input_shape: (input_shape, ()),
                   lambda params, inputs, **kwargs: inputs)


def _pooling(reducer: Callable, initial: float, mean: bool = False) -> Callable[..., Layer]:
    """Return what makes a layer that folds windows by ``reducer``."""

    def layer(window_shape: Sequence[int], strides: Sequence[int] | None = None,
              padding: str = "VALID", spec: str | None = None) -> Layer:
        """Return the layer for windows of ``window_shape`` along the axes of images (NHWC)."""
        steps = tuple(strides or (1,) * len(window_shape))
        batch, channel = (spec.index("N"), spec.index("C")) if spec else (0, len(window_shape) + 1)
        window, stride = list(window_shape), list(steps)
        for axis in sorted((batch, channel)):
            window.insert(axis, 1)
            stride.insert(axis, 1)

        def fold(x: Any) -> Any:
            return lax.reduce_window(x, initial, reducer, window, stride, padding)

        def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
            known = tuple(1 if n == -1 else n for n in input_shape)
            shape = list(eval_shape(fold, ShapeDtypeStruct(known, jnp.float32)).shape)
            if input_shape[batch] == -1:
                shape[batch] = -1
            return tuple(shape), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            out = fold(inputs)
            if not mean:
                return out
            ones_along = tuple(1 if a in (batch, channel) else n
                               for a, n in enumerate(inputs.shape))
            return out / fold(jnp.ones(ones_along, inputs.dtype))

        return init_fun, apply_fun

    return layer


MaxPool = _pooling(lax.max, -math.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, mean=True)

Flatten: Layer = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)))


def FanOut(num: int) -> Layer:
    """Return the layer that gives its input ``num`` times."""
    return (lambda rng, input_shape: ([input_shape] * num, ()),
            lambda params, inputs, **kwargs: [inputs] * num)


FanInSum: Layer = (lambda rng, input_shape: (input_shape[0], ()),
                   lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """Return the layer that joins its inputs along ``axis``."""

    def init_fun(rng: Any, input_shape: Sequence[Sequence[int]]) -> Any:
        at = axis % len(input_shape[0])
        joined = sum(shape[at] for shape in input_shape)
        return (*input_shape[0][:at], joined, *input_shape[0][at + 1:]), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Return the layer that keeps each element with probability ``rate`` while training.

    Its ``apply_fun`` needs ``rng=`` in mode ``"train"``, and raises ValueError without it.
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout layer requires apply_fun to be called with a PRNG key "
                             "argument. That is, instead of `apply_fun(params, inputs)`, call it "
                             "like `apply_fun(params, inputs, rng)` where `rng` is a PRNG key "
                             "(e.g. from `jax.random.key`).")
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


# -- putting layers together -----------------------------------------------------------------------


def serial(*layers: Layer) -> Layer:
    """Return the layers one after the other.

    >>> import saem as jax
    >>> from saem.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2))
    >>> shape, params = init(jax.random.key(0), (-1, 3))
    >>> shape, apply(params, jax.numpy.ones((5, 3))).shape
    ((-1, 2), (5, 2))
    """
    inits, applies = zip(*layers) if layers else ((), ())

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init in inits:
            rng, layer_rng = random.split(rng)
            input_shape, found = init(layer_rng, input_shape)
            params.append(found)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        for apply, found, key in zip(applies, params, _keys(kwargs, len(applies))):
            inputs = apply(found, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Return the layers side by side, each with an input and an output of its own."""
    inits, applies = zip(*layers) if layers else ((), ())

    def init_fun(rng: Any, input_shape: Sequence[Any]) -> Any:
        keys = random.split(rng, len(inits))
        made = [init(key, shape) for init, key, shape in zip(inits, keys, input_shape)]
        return tuple(shape for shape, _ in made), tuple(params for _, params in made)

    def apply_fun(params: Any, inputs: Sequence[Any], **kwargs: Any) -> Any:
        return [apply(found, x, rng=key, **kwargs) for apply, found, x, key in
                zip(applies, params, inputs, _keys(kwargs, len(applies)))]

    return init_fun, apply_fun


def _keys(kwargs: dict[str, Any], count: int) -> Sequence[Any]:
    """Return a key for each layer from ``kwargs["rng"]``, which is taken out."""
    rng = kwargs.pop("rng", None)
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Return the layer that ``make_layer(input_shape)`` makes when the shape is known."""
    return (lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
            lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs))

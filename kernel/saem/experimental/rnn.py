"""What does a network with long short-term memory compute?  (``jax.experimental.rnn``)

A cell keeps c, of which each step forgets a part and to which it adds another, and shows h of it:

    i, f, o = σ(…), σ(…), σ(…)    g = tanh(…)    c = f c + i g    h = o tanh(c)

where each … is a product of weights with the input, one with the last h, and two biases.  Layers
stand one on another; a bidirectional layer reads the sequence from both ends with other weights,
and the next one reads both results.  JAX calls cuDNN for it; here it is a scan on every platform.

Read before: ``loops.scan``.
Invariant: steps behind the end of a sequence change neither c nor h, and their result is 0.
Source: Hochreiter and Schmidhuber 1997, "Long Short-Term Memory"; Gers, Schmidhuber and Cummins
2000, "Learning to Forget" (f); the documentation of jax.experimental.rnn (the order of weights).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from saem import lax, random
from saem import numpy as jnp
from saem.core import errors
from saem.core.avals import aval_of
from saem.nn import sigmoid
from saem.typing import Array

# Weights of one kind, by the number of the layer: those of both directions are counted one by one.
Weights = dict[int, Array]

__all__ = ["get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates",
           "unpack_lstm_weights"]


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
            ) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Give (kind, layer, shape) of all weights in cuDNN's order.

    Kinds are 0 to 3: of the input, of the last h, and the biases of both.
    """
    directions = 2 if bidirectional else 1
    gates = 4 * hidden_size
    for layer in range(num_layers * directions):
        yield 0, layer, (gates, input_size if layer < directions else hidden_size * directions)
        yield 1, layer, (gates, hidden_size)
    for layer in range(num_layers * directions):
        yield 2, layer, (gates,)
        yield 3, layer, (gates,)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int,
                           bidirectional: bool) -> int:
    """Return how many weights an LSTM has.

    >>> get_num_params_in_lstm(input_size=4, hidden_size=6, num_layers=1, bidirectional=False)
    288
    """
    return sum([int(np.prod(shape)) for _, _, shape in _shapes(
        input_size, hidden_size, num_layers, bidirectional)])


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int,
                     bidirectional: bool) -> Array:
    """Return all weights in one vector, drawn uniformly between ±hidden_size ** -0.5.

    >>> init_lstm_weight(jax.random.key(0), 4, 6, 1, False).shape
    (288,)
    """
    most = np.sqrt(1.0 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, (count,), np.float32, -most, most)


def unpack_lstm_weights(weights: Array, input_size: int, hidden_size: int, num_layers: int,
                        bidirectional: bool) -> tuple[Weights, Weights, Weights, Weights]:
    """Return W_ih, W_hh, b_ih and b_hh from the vector ``weights``, each by layer.

    Rows of each are those of i, f, g and o.  Layers 2 k and 2 k + 1 of a bidirectional network are
    the two directions of one.

    Raises: ValueError if there are not as many weights as the sizes need.

    >>> w = init_lstm_weight(jax.random.key(0), 4, 6, 1, False)
    >>> unpack_lstm_weights(w, 4, 6, 1, False)[0][0].shape
    (24, 4)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if aval_of(weights).shape != (count,):
        raise errors.explained(
            errors.ArgumentError, "rnn.weights",
            f"weights of an LSTM of these sizes have shape ({count},), got "
            f"{aval_of(weights).shape}.",
            advice="init_lstm_weight makes them from the same sizes.")
    kinds: tuple[Weights, Weights, Weights, Weights] = ({}, {}, {}, {})
    at = 0
    for kind, layer, shape in _shapes(input_size, hidden_size, num_layers, bidirectional):
        size = int(np.prod(shape))
        kinds[kind][layer] = weights[at:at + size].reshape(shape)
        at += size
    return kinds


def swap_lstm_gates(weights: Array, input_size: int, hidden_size: int, num_layers: int,
                    bidirectional: bool) -> Array:
    """Return the vector ``weights`` with the rows of g and o exchanged, as other libraries have it.

    >>> swap_lstm_gates(jnp.arange(16.), 1, 1, 1, False)[:4]
    Array([0., 1., 3., 2.], dtype=float32)
    """
    kinds = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    parts = []
    for kind, layer, _ in _shapes(input_size, hidden_size, num_layers, bidirectional):
        i, f, g, o = jnp.split(kinds[kind][layer], 4)
        parts += [jnp.ravel(x) for x in (i, f, o, g)]
    return jnp.concatenate(parts)


def lstm(x: Array, h_0: Array, c_0: Array, weights: Array, seq_lengths: Array, input_size: int,
         hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
         precision: Any = None) -> tuple[Array, Array, Array]:
    """Return what the top layer shows at each step, and the last h and c of each layer.

    Shapes: ``x`` (batch, steps, input_size); ``h_0`` and ``c_0`` (layers, batch, hidden_size),
    where directions count as layers; ``weights`` as ``init_lstm_weight`` makes them;
    ``seq_lengths`` (batch,).  Results: (batch, steps, directions * hidden_size), and as ``h_0``.

    Raises: NotImplementedError for a ``dropout``; ValueError for weights and TypeError for other
    operands whose shapes do not fit.

    >>> w = init_lstm_weight(jax.random.key(0), 4, 6, 1, False)
    >>> start = jnp.zeros((1, 2, 6))
    >>> y, h, c = lstm(jnp.ones((2, 5, 4)), start, start, w, jnp.array([5, 3]), 4, 6, 1, 0., False)
    >>> y.shape, h.shape
    ((2, 5, 6), (1, 2, 6))
    """
    kinds = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _network(x, h_0, c_0, kinds, seq_lengths, input_size, hidden_size, num_layers, dropout,
                    bidirectional, precision)


def lstm_ref(x: Array, h_0: Array, c_0: Array, W_ih: Weights, W_hh: Weights, b_ih: Weights,
             b_hh: Weights, seq_lengths: Array, input_size: int, hidden_size: int, num_layers: int,
             dropout: float, bidirectional: bool) -> tuple[Array, Array, Array]:
    """Return what ``lstm`` does, of the weights that ``unpack_lstm_weights`` returns.

    Raises: NotImplementedError for a ``dropout``; TypeError for shapes that do not fit.
    """
    return _network(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, input_size, hidden_size,
                    num_layers, dropout, bidirectional, None)


def _network(x: Any, h_0: Any, c_0: Any, kinds: tuple[Weights, ...], seq_lengths: Any,
             input_size: int, hidden_size: int, num_layers: int, dropout: float,
             bidirectional: bool, precision: Any) -> tuple[Array, Array, Array]:
    if dropout:
        raise errors.explained(
            NotImplementedError, "rnn.dropout",
            "Dropout not supported in LSTM reference because we cannot determine CUDNN dropout "
            "mask.", advice="Drop inputs before the call, with a mask of jax.random.bernoulli.")
    directions = 2 if bidirectional else 1
    _check(x, h_0, c_0, kinds, seq_lengths, input_size, hidden_size, num_layers, directions)
    steps = np.arange(x.shape[1])
    here = jnp.asarray(steps[:, None] < seq_lengths)[..., None]
    y, last = jnp.moveaxis(x, 1, 0), []
    for number in range(num_layers):
        shown = []
        for layer in range(number * directions, (number + 1) * directions):
            weights = [kind[layer] for kind in kinds]
            one, *ends = _layer(y, here, h_0[layer], c_0[layer], weights,
                                reverse=layer % directions == 1, precision=precision)
            shown.append(one)
            last.append(ends)
        y = jnp.concatenate(shown, -1)
    h_n, c_n = (jnp.stack(ends) for ends in zip(*last))
    return jnp.moveaxis(y, 0, 1), h_n, c_n


def _layer(x: Any, here: Any, h: Any, c: Any, weights: list[Any], reverse: bool, precision: Any
           ) -> tuple[Any, Any, Any]:
    """Return h at each step, and the last h and c, of one layer in one direction.

    Shapes: ``x`` (steps, batch, n), ``here`` (steps, batch, 1), ``h`` and ``c`` (batch, hidden).
    """
    w_ih, w_hh, b_ih, b_hh = weights

    def step(carry: Any, row: Any) -> Any:
        h, c = carry
        given, here = row
        gates = given + jnp.matmul(h, w_hh.T, precision=precision) + b_hh[None]
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        new_c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        new_h = sigmoid(o) * jnp.tanh(new_c)
        carry = jnp.where(here, new_h, h), jnp.where(here, new_c, c)
        return carry, jnp.where(here, new_h, jnp.zeros_like(new_h))

    given = jnp.matmul(x, w_ih.T, precision=precision) + b_ih[None, None]
    (h, c), shown = lax.scan(step, (h, c), (given, here), reverse=reverse)
    return shown, h, c


def _check(x: Any, h_0: Any, c_0: Any, kinds: tuple[Weights, ...], seq_lengths: Any,
           input_size: int, hidden_size: int, num_layers: int, directions: int) -> None:
    """Raises: TypeError naming the operand whose shape does not fit the sizes."""
    shape = aval_of(x).shape
    batch = shape[0] if len(shape) == 3 else 0
    state = (num_layers * directions, batch, hidden_size)
    needed = [("x", x, (batch, shape[1] if len(shape) == 3 else 0, input_size)),
              ("h_0", h_0, state), ("c_0", c_0, state), ("seq_lengths", seq_lengths, (batch,))]
    names = ("W_ih", "W_hh", "b_ih", "b_hh")
    for kind, layer, wanted in _shapes(input_size, hidden_size, num_layers, directions == 2):
        needed.append((f"{names[kind]}[{layer}]", kinds[kind][layer], wanted))
    for name, value, wanted in needed:
        if aval_of(value).shape != wanted:
            raise errors.explained(
                errors.ShapeError, "rnn.shape",
                f"{name} of an LSTM with input_size={input_size}, hidden_size={hidden_size}, "
                f"num_layers={num_layers} and {directions} direction(s) has shape {wanted}, got "
                f"{aval_of(value).shape}." if len(shape) == 3 or name != "x" else
                f"x of an LSTM has shape (batch, steps, {input_size}), got {shape}.",
                advice="Directions count as layers in h_0, c_0 and the weights.")

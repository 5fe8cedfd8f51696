"""Do networks with long short-term memory compute what JAX's reference and a loop compute?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental import rnn

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

BATCH, STEPS, INPUT, HIDDEN = 3, 5, 4, 6
RAGGED = np.array([5, 2, 3], np.int32)


def network(layers, bidirectional, lengths=RAGGED):
    """Operands of a network, all from one key."""
    keys = jax.random.split(jax.random.key(0), 4)
    state = (layers * (2 if bidirectional else 1), BATCH, HIDDEN)
    x = jax.random.normal(keys[0], (BATCH, STEPS, INPUT))
    h, c = (jax.random.normal(key, state) for key in keys[1:3])
    w = rnn.init_lstm_weight(keys[3], INPUT, HIDDEN, layers, bidirectional)
    return x, h, c, w, jnp.asarray(lengths)


def reference(x, h, c, w, lengths, layers, bidirectional):
    weights = rnn.unpack_lstm_weights(w, INPUT, HIDDEN, layers, bidirectional)
    return rnn.lstm_ref(x, h, c, *weights, seq_lengths=lengths, input_size=INPUT,
                        hidden_size=HIDDEN, num_layers=layers, dropout=0.0,
                        bidirectional=bidirectional)


NAMES = {"network": network, "reference": reference}


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_it_is_jaxs_reference(jax_oracle, layers, bidirectional):
    sizes = f"{INPUT}, {HIDDEN}, {layers}, {bidirectional}"
    for lengths in ("[5, 5, 5]", "[5, 2, 3]"):
        same(jax_oracle, f"reference(*network({layers}, {bidirectional}, {lengths}), {layers}, "
             f"{bidirectional})", within=__name__)
    same(jax_oracle, f"jax.grad(lambda w: sum(x.sum() for x in reference(*network({layers}, "
         f"{bidirectional})[:3], w, RAGGED, {layers}, {bidirectional})))"
         f"(network({layers}, {bidirectional})[3])", within=__name__)
    same(jax_oracle, f"[rnn.get_num_params_in_lstm({sizes}), network({layers}, {bidirectional})[3],"
         f" rnn.unpack_lstm_weights(network({layers}, {bidirectional})[3], {sizes}),"
         f" rnn.swap_lstm_gates(network({layers}, {bidirectional})[3], {sizes})]", within=__name__)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_it_is_a_loop_over_steps(bidirectional):
    x, h_0, c_0, w, lengths = map(np.asarray, network(2, bidirectional))
    directions = 2 if bidirectional else 1
    kinds = [{k: np.asarray(v) for k, v in kind.items()} for kind in rnn.unpack_lstm_weights(
        jnp.asarray(w), INPUT, HIDDEN, 2, bidirectional)]
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    for example in range(BATCH):
        n, y = lengths[example], x[example]
        for number in range(2):
            shown = np.zeros((STEPS, directions * HIDDEN))
            for direction in range(directions):
                layer = number * directions + direction
                h, c = h_0[layer, example], c_0[layer, example]
                w_ih, w_hh, b_ih, b_hh = (kind[layer] for kind in kinds)
                for step in range(n)[::-1] if direction else range(n):
                    i, f, g, o = np.split(w_ih @ y[step] + b_ih + w_hh @ h + b_hh, 4)
                    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                    h = sigmoid(o) * np.tanh(c)
                    shown[step, direction * HIDDEN: (direction + 1) * HIDDEN] = h
                made = rnn.lstm(*map(jnp.asarray, (x, h_0, c_0, w, lengths)), INPUT, HIDDEN, 2,
                                0.0, bidirectional)
                np.testing.assert_allclose(made[1][layer, example], h, rtol=2e-5, atol=2e-6)
                np.testing.assert_allclose(made[2][layer, example], c, rtol=2e-5, atol=2e-6)
            y = shown
        np.testing.assert_allclose(made[0][example], y, rtol=2e-5, atol=2e-6)


def test_it_works_under_transformations():
    x, h, c, w, lengths = network(1, True)
    run = lambda x: rnn.lstm(x, h, c, w, lengths, INPUT, HIDDEN, 1, 0.0, True, "highest")[0]
    plain = run(x)
    np.testing.assert_allclose(jax.jit(run)(x), plain, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(run)(jnp.stack([x, 2 * x]))[1], run(2 * x), rtol=1e-5,
                               atol=1e-6)
    jax.test_util.check_grads(run, (x,), 1)


def test_what_does_not_fit_is_refused(jax_oracle):
    same_error(jax_oracle, "rnn.lstm_ref(*network(1, False)[:3], *rnn.unpack_lstm_weights("
               f"network(1, False)[3], {INPUT}, {HIDDEN}, 1, False), seq_lengths=RAGGED, "
               f"input_size={INPUT}, hidden_size={HIDDEN}, num_layers=1, dropout=0.5, "
               "bidirectional=False)", "Dropout not supported", within=__name__)
    x, h, c, w, lengths = network(1, True)
    for operands, sentence in (
            ((x[0], h, c, w, lengths), r"shape \(batch, steps, 4\), got \(5, 4\)"),
            ((x, h[:1], c, w, lengths), r"h_0 .* has shape \(2, 3, 6\), got \(1, 3, 6\)"),
            ((x, h, c, w, lengths[:2]), r"seq_lengths .* has shape \(3,\), got \(2,\)"),
            ((x[..., :2], h, c, w, lengths), r"x .* has shape \(3, 5, 4\), got \(3, 5, 2\)"),
            ((x, h, c, w[:9], lengths), r"have shape \(576,\), got \(9,\)")):
        with pytest.raises((TypeError, ValueError), match=sentence):
            rnn.lstm(*operands, INPUT, HIDDEN, 1, 0.0, True)

"""Do the optimizers and layers of ``example_libraries`` compute what JAX's compute?"""

from __future__ import annotations

import numpy as np
import pytest
from both import ours, source_of

import saem as jax
import saem.numpy as jnp
from saem.example_libraries import optimizers, stax

OPTIMIZERS = """
optimizers.sgd(0.1)
optimizers.sgd(optimizers.exponential_decay(0.1, 2, 0.9))
optimizers.momentum(optimizers.inverse_time_decay(0.1, 2, 0.9), 0.9)
optimizers.nesterov(optimizers.inverse_time_decay(0.1, 2, 0.9, staircase=True), 0.9)
optimizers.adagrad(optimizers.polynomial_decay(0.1, 3, 0.01, 2.))
optimizers.rmsprop(optimizers.piecewise_constant([1, 3], [0.1, 0.05, 0.01]))
optimizers.rmsprop_momentum(0.1)
optimizers.adam(0.1)
optimizers.adamax(0.1)
optimizers.sm3(0.1)
""".strip().splitlines()

def steps(optimizer):
    """Return the parameters after five steps."""
    def loss(params):
        w, b = params["w"], params["b"]
        return jnp.sum(jnp.sin(w) ** 2) + jnp.sum((b - 1.0) ** 2) + jnp.sum(w)

    init, update, get = optimizer
    state = init({"w": jnp.arange(6.0).reshape(2, 3) - 2, "b": jnp.float32(0.3)})
    for i in range(5):
        grads = optimizers.clip_grads(jax.grad(loss)(get(state)), 2.5)
        state = update(i, grads, state)
    state = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    return [np.asarray(x) for x in jax.tree.leaves(get(state))]


NETWORKS = """
(8, 3) | stax.serial(stax.Dense(5), stax.Relu, stax.Dense(2), stax.LogSoftmax)
(2, 6, 6, 3) | stax.serial(stax.Conv(4, (3, 3), padding='SAME'), stax.BatchNorm(), stax.Elu)
(2, 6, 6, 3) | stax.serial(stax.MaxPool((2, 2), (2, 2)), stax.Flatten, stax.Dense(3))
(2, 6, 6, 3) | stax.serial(stax.Conv(4, (2, 2), strides=(2, 2)), stax.SumPool((2, 2)))
(2, 6, 6, 3) | stax.AvgPool((2, 2), padding='SAME')
(2, 3, 3, 2) | stax.ConvTranspose(4, (3, 3), strides=(2, 2), padding='SAME')
(2, 5, 3) | stax.Conv1DTranspose(4, (3,), strides=(2,))
(2, 3, 6, 6) | stax.GeneralConv(('NCHW', 'OIHW', 'NHWC'), 4, (3, 3))
(4, 3) | stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Identity), stax.FanInSum)
(4, 3) | stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(2), stax.Tanh), stax.FanInConcat())
(4, 3) | stax.serial(stax.Dense(6), stax.Dropout(0.7), stax.Selu, stax.Gelu)
(4, 3) | stax.serial(stax.Softplus, stax.Sigmoid, stax.LeakyRelu, stax.Exp, stax.Softmax)
(4, 3) | stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
""".strip().splitlines()

def applied(layer, given):
    """Return a layer's shape, parameters and outputs."""
    init, apply = layer
    shape, params = init(jax.random.key(0), given)
    x = jax.random.normal(jax.random.key(1), given)
    outs = apply(params, x, rng=jax.random.key(2))
    return [list(shape), *[np.asarray(x) for x in jax.tree.leaves((params, outs))]]


def compare(mine, theirs):
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs):
        if isinstance(b, np.ndarray):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6)
        else:
            assert a == b


@pytest.mark.parametrize("program", OPTIMIZERS)
def test_optimizers(jax_oracle, program):
    source = f"steps({program})"
    compare(ours(source, __name__), jax_oracle.run(source_of(source, __name__)).value)


@pytest.mark.parametrize("program", NETWORKS)
def test_networks(jax_oracle, program):
    shape, _, layer = program.partition(" | ")
    source = f"applied({layer}, {shape})"
    compare(ours(source, __name__), jax_oracle.run(source_of(source, __name__)).value)


def test_an_unknown_batch_size_stays_unknown():
    shape, _ = stax.Conv(4, (3, 3))[0](jax.random.key(0), (-1, 6, 6, 1))
    assert shape == (-1, 4, 4, 4)


def test_states_are_pytrees_and_structures_are_checked():
    init, update, get = optimizers.adam(0.1)
    state = init({"a": jnp.ones(2)})
    assert len(jax.tree.leaves(state)) == 3
    stepped = jax.jit(update)(0, {"a": jnp.ones(2)}, state)
    np.testing.assert_allclose(get(stepped)["a"], 0.9, rtol=1e-5)
    with pytest.raises(TypeError, match="did not match the parameter tree structure"):
        update(0, {"b": jnp.ones(2)}, state)
    with pytest.raises(ValueError, match="requires apply_fun to be called with a PRNG key"):
        stax.Dropout(0.5)[1]((), jnp.ones(2))


def test_stax_hands_on_functions_of_nn():
    for name in ("elu", "gelu", "leaky_relu", "log_softmax", "relu", "selu", "sigmoid", "softmax",
                 "softplus", "standardize"):
        assert getattr(stax, name) is getattr(jax.nn, name)
    assert stax.logsoftmax is jax.nn.log_softmax
    assert stax.glorot is jax.nn.initializers.glorot_normal
    assert stax.randn is jax.nn.initializers.normal

"""equinox: its README's layer, an MLP trained with filtered transformations, layers of nn."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from curves import record


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array

    def __init__(self, in_size, out_size, key):
        wkey, bkey = jax.random.split(key)
        self.weight = jax.random.normal(wkey, (out_size, in_size))
        self.bias = jax.random.normal(bkey, (out_size,))

    def __call__(self, x):
        return self.weight @ x + self.bias


@jax.jit
@jax.grad
def loss_fn(model, x, y):
    pred_y = jax.vmap(model)(x)
    return jax.numpy.mean((y - pred_y) ** 2)


batch_size, in_size, out_size = 32, 2, 3
model = Linear(in_size, out_size, key=jax.random.PRNGKey(0))
x = jax.numpy.zeros((batch_size, in_size))
y = jax.numpy.zeros((batch_size, out_size))
record("readme", loss_fn(model, x, y).bias)

x = jr.normal(jr.key(1), (batch_size, in_size))
y = jnp.stack([jnp.sin(x[:, 0]), x[:, 1] ** 2, x[:, 0] * x[:, 1]], 1)
mlp = eqx.nn.MLP(2, 3, width_size=8, depth=2, activation=jax.nn.gelu, key=jr.key(2))
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(mlp, eqx.is_inexact_array))


@eqx.filter_jit
def step(model, state, x, y):
    loss, grads = eqx.filter_value_and_grad(
        lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
    updates, state = optimizer.update(grads, state, model)
    return loss, eqx.apply_updates(model, updates), state


losses = []
for _ in range(10):
    loss, mlp, state = step(mlp, state, x, y)
    losses.append(loss)
record("mlp", losses)

keys = jr.split(jr.key(3), 6)
record("layer norm", eqx.nn.LayerNorm(4)(jnp.arange(4.0)))
record("gru", eqx.nn.GRUCell(3, 5, key=keys[0])(jnp.ones(3), jnp.zeros(5)))
record("lstm", eqx.nn.LSTMCell(3, 5, key=keys[1])(jnp.ones(3), (jnp.zeros(5), jnp.ones(5)))[0])
record("conv", eqx.nn.Conv2d(1, 2, 3, key=keys[2])(jr.normal(keys[5], (1, 6, 6))))
record("pool", eqx.nn.MaxPool2d(2, 2)(jr.normal(keys[5], (1, 6, 6))))
record("attention", eqx.nn.MultiheadAttention(2, 4, key=keys[3])(
    jnp.ones((3, 4)), jr.normal(keys[4], (3, 4)), jnp.ones((3, 4))))
record("dropout", eqx.nn.Dropout(0.5)(jnp.ones(8), key=keys[4]))
norm, held = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="batch")
out, held = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
    jr.normal(keys[0], (5, 3)), held)
record("batch norm", out)
record("checked", eqx.error_if(jnp.ones(2), jnp.array(False), "no"))
try:
    eqx.filter_jit(lambda x: eqx.error_if(x, x.sum() > 1, "too large"))(jnp.ones(3))
    raise SystemExit("no error")
except Exception as error:
    assert "too large" in str(error), error
record("vmapped ensemble", eqx.filter_vmap(lambda k: eqx.nn.Linear(2, 2, key=k).weight)(keys))

"""flax.linen: an MLP, a CNN with batch norm and dropout, recurrent and attention layers."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from curves import record
from flax.training import train_state

x = jax.random.normal(jax.random.key(0), (8, 4))
y = jnp.arange(8) % 3


class MLP(nn.Module):
    features: tuple

    @nn.compact
    def __call__(self, x):
        for size in self.features[:-1]:
            x = nn.relu(nn.Dense(size)(x))
        return nn.Dense(self.features[-1])(x)


model = MLP((12, 8, 3))
state = train_state.TrainState.create(
    apply_fn=model.apply, params=model.init(jax.random.key(1), x)["params"], tx=optax.adam(0.02))


@jax.jit
def step(state, x, y):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


losses = []
for _ in range(10):
    state, loss = step(state, x, y)
    losses.append(loss)
record("mlp", losses)


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(4, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.avg_pool(nn.relu(x), (2, 2), (2, 2))
        x = x.reshape(x.shape[0], -1)
        x = nn.Dropout(0.25, deterministic=not train)(x)
        return nn.Dense(3)(x)


images = jax.random.normal(jax.random.key(3), (8, 6, 6, 1))
cnn = CNN()
variables = cnn.init({"params": jax.random.key(4), "dropout": jax.random.key(5)}, images, True)
params, stats = variables["params"], variables["batch_stats"]


@jax.jit
def cnn_step(params, stats, key):
    def loss_fn(params):
        logits, new = cnn.apply({"params": params, "batch_stats": stats}, images, True,
                                rngs={"dropout": key}, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), new

    (loss, new), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), new["batch_stats"], loss


losses = []
for i in range(5):
    params, stats, loss = cnn_step(params, stats, jax.random.key(i))
    losses.append(loss)
record("cnn", losses)

sequence = jax.random.normal(jax.random.key(6), (2, 5, 4))
lstm = nn.RNN(nn.LSTMCell(features=3))
record("lstm", lstm.apply(lstm.init(jax.random.key(7), sequence), sequence))
attention = nn.MultiHeadDotProductAttention(num_heads=2)
record("attention", attention.apply(attention.init(jax.random.key(8), sequence, sequence),
                                    sequence, sequence))
embed = nn.Embed(7, 3)
record("embed", embed.apply(embed.init(jax.random.key(9), jnp.arange(3)), jnp.arange(3)))
stacked = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True})(2)
record("vmap", stacked.apply(stacked.init(jax.random.key(10), sequence), sequence))


class Block(nn.Module):
    @nn.compact
    def __call__(self, carry, _):
        return nn.tanh(nn.Dense(4)(carry)), None


scanned = nn.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)()
record("scan", scanned.apply(scanned.init(jax.random.key(11), x, None), x, None)[0])
remat = nn.remat(MLP)((4, 2))
weights = remat.init(jax.random.key(12), x)
record("remat", jax.grad(lambda w: remat.apply(w, x).sum())(weights)["params"]["Dense_0"]["bias"])
assert "Dense_0" in nn.tabulate(model, jax.random.key(0))(x)

"""flax.nnx: the modules of its README, trained with nnx.jit and an optimizer."""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from curves import record
from flax import nnx


class MLP(nnx.Module):
    def __init__(self, din: int, dmid: int, dout: int, *, rngs: nnx.Rngs):
        self.linear1 = nnx.Linear(din, dmid, rngs=rngs)
        self.dropout = nnx.Dropout(rate=0.1, rngs=rngs)
        self.bn = nnx.BatchNorm(dmid, rngs=rngs)
        self.linear2 = nnx.Linear(dmid, dout, rngs=rngs)

    def __call__(self, x: jax.Array):
        x = nnx.gelu(self.dropout(self.bn(self.linear1(x))))
        return self.linear2(x)


class CNN(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 4, kernel_size=(3, 3), rngs=rngs)
        self.conv2 = nnx.Conv(4, 4, kernel_size=(3, 3), rngs=rngs)
        self.avg_pool = partial(nnx.avg_pool, window_shape=(2, 2), strides=(2, 2))
        self.linear1 = nnx.Linear(16, 8, rngs=rngs)
        self.linear2 = nnx.Linear(8, 10, rngs=rngs)

    def __call__(self, x):
        x = self.avg_pool(nnx.relu(self.conv1(x)))
        x = self.avg_pool(nnx.relu(self.conv2(x)))
        x = x.reshape(x.shape[0], -1)  # flatten
        x = nnx.relu(self.linear1(x))
        return self.linear2(x)


class AutoEncoder(nnx.Module):
    def __init__(self, rngs):
        self.encoder = nnx.Linear(2, 10, rngs=rngs)
        self.decoder = nnx.Linear(10, 2, rngs=rngs)

    def __call__(self, x) -> jax.Array:
        return self.decoder(self.encoder(x))


def train(model, loss_fn, steps=6):
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return loss

    return [step(model, optimizer) for _ in range(steps)]


x = jax.random.normal(jax.random.key(0), (16, 2))
y = jnp.sin(x)
model = MLP(2, 8, 2, rngs=nnx.Rngs(0))
record("mlp", train(model, lambda m: jnp.mean((m(x) - y) ** 2)))
model.eval()
record("mlp at evaluation", model(x))
record("running mean", model.bn.mean[...])
record("autoencoder", train(AutoEncoder(nnx.Rngs(1)), lambda m: jnp.mean((m(x) - x) ** 2)))
images, labels = jax.random.normal(jax.random.key(2), (6, 8, 8, 1)), jnp.arange(6)
record("cnn", train(CNN(rngs=nnx.Rngs(2)), lambda m: optax.
                    softmax_cross_entropy_with_integer_labels(m(images), labels).mean(), 4))

graphdef, params, rest = nnx.split(model, nnx.Param, ...)
merged = nnx.merge(graphdef, jax.tree.map(lambda p: 2 * p, params), rest)
record("split and merge", merged(x))


@nnx.vmap(in_axes=0, out_axes=0)
def make(rngs):
    return nnx.Linear(2, 3, rngs=rngs)


many = make(nnx.Rngs(3).fork(split=4))
record("vmapped modules", many.kernel[...])


@nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
def forward(layer, x):
    return nnx.tanh(layer(x))


@nnx.vmap(in_axes=0, out_axes=0)
def square(rngs):
    return nnx.Linear(2, 2, rngs=rngs)


record("scanned modules", forward(square(nnx.Rngs(4).fork(split=3)), x))
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), accuracy=nnx.metrics.Accuracy())
metrics.update(loss=jnp.array([1.0, 3.0]), logits=jax.nn.one_hot(labels, 6), labels=labels)
record("metrics", [float(v) for v in metrics.compute().values()])

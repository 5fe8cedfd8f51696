"""flax.nnx: variables that change in place under jax.jit, without nnx.jit (``hijax=True``)."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from curves import record
from flax import nnx

numbers = np.random.RandomState(0)
x = jnp.asarray(numbers.randn(16, 2), jnp.float32)
y = x[:, :1] * 2 + x[:, 1:]


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(2, 8, rngs=rngs)
        self.last = nnx.Linear(8, 1, rngs=rngs)
        self.calls = nnx.Variable(jnp.float32(0))

    def __call__(self, x):
        self.calls[...] += 1
        return self.last(nnx.relu(self.first(x)))


with nnx.var_defaults(hijax=True):
    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)


@jax.jit
def step(model, optimizer, x, y):
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)

    def loss_fn(params):
        model = nnx.merge(graphdef, params, rest)
        return jnp.mean((model(x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(nnx.with_vars(params, hijax=False))
    optimizer.update(model, grads)
    return loss


record("loss", [float(step(model, optimizer, x, y)) for _ in range(6)])
record("state", [float(model.calls[...]), *map(float, model.last.kernel[...][:, 0])])

count = nnx.Variable(jnp.float32(1), hijax=True)


@jax.jit
def grow(times):
    def body(_, total):
        count[...] *= 2
        return total + count[...]

    return jax.lax.fori_loop(0, times, body, jnp.float32(0))


record("loop", [float(grow(3)), float(grow(2)), float(count[...])])
branch = jax.jit(lambda go: jax.lax.cond(go, lambda: count.set_value(count[...] + 5), lambda: None))
branch(True)
branch(False)
record("branch", [float(count[...])])

"""flax.linen: layers that multiply in 8 bits, trained with their scales; a dtype of flax's own."""

import warnings

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from curves import record
from flax.linen import fp8_ops
from flax.training import train_state

x = jax.random.uniform(jax.random.key(1), (8, 16))
y = jax.random.normal(jax.random.key(2), (8, 4))


def trained(operation, dtype):
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Dense(16, dot_general_cls=operation, dtype=dtype)(x))
            return nn.DenseGeneral((4,), dot_general_cls=operation, dtype=dtype)(x)

    model = Model()
    state = train_state.TrainState.create(
        apply_fn=model.apply, params=model.init(jax.random.key(0), x), tx=optax.adam(1e-2))

    @jax.jit
    def step(state):
        def loss(params):
            return jnp.mean((state.apply_fn(params, x).astype(jnp.float32) - y) ** 2)

        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    for _ in range(3):
        state, value = step(state)
    scales = jax.tree.map(lambda x: x[:4], state.params["_overwrite_with_gradient"])
    return [value, *jax.tree.leaves(scales)]


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    for name in ("Fp8DotGeneralOp", "Fp8DirectDotGeneralOp", "NANOOFp8DotGeneralOp"):
        for number, value in enumerate(trained(getattr(nn, name), jnp.float32)):
            record(f"{name} {number}", value)


class Product(nn.Module):
    @nn.compact
    def __call__(self, x):
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (16, 4))
        return nn.Fp8Einsum()("bi,ij->bj", x, kernel)


model = Product()
params = model.init(jax.random.key(0), x)
grads = jax.jit(jax.grad(lambda p: jnp.sum(model.apply(p, x) ** 2)))(params)
for number, value in enumerate(jax.tree.leaves(grads)):
    record(f"Fp8Einsum {number}", value.ravel()[:8])


def reused(x, history, scale):
    history, scale = (jax.lax.convert_element_type(v, fp8_ops.fp32_max_grad)
                      for v in (history, scale))
    out, _ = jax.lax.scan(
        lambda c, _: (fp8_ops.in_qdq(jnp.float32, jnp.float8_e4m3fn, c, scale, history), None),
        jnp.array([x]), None, length=3)
    return out[0]


history, scale = jnp.zeros(3), jnp.ones(1)
for number in range(3):
    grad, history, scale = jax.jit(jax.grad(reused, (0, 1, 2)))(2.0 * number + 2, history, scale)
    record(f"fp32_max_grad {number}", jnp.stack([grad, *history, *scale]))

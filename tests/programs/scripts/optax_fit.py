"""optax: a linear model and a small network, fitted by many optimizers and schedules."""

import jax
import jax.numpy as jnp
import optax
from curves import line_search, record

key = jax.random.PRNGKey(42)
xs = jax.random.normal(key, (16, 2))
ys = xs @ jnp.array([0.7, -1.3])


@jax.jit
def loss_of(params, x, y):
    return jnp.mean(optax.l2_loss(jax.vmap(params["w"].dot)(x), y))


def fit(optimizer, steps=6):
    params = {"w": jnp.ones((2,))}
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        loss, grads = jax.value_and_grad(loss_of)(params, xs, ys)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for _ in range(steps):
        params, state, loss = step(params, state)
        losses.append(loss)
    return losses


schedule = optax.warmup_cosine_decay_schedule(0.0, 0.2, 2, 6)
for name, optimizer in {
    "adam": optax.adam(0.1), "sgd": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adamw": optax.adamw(schedule), "rmsprop": optax.rmsprop(0.05), "lion": optax.lion(0.02),
    "chain": optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam(),
                         optax.scale_by_schedule(schedule), optax.scale(-1.0)),
    "adafactor": optax.adafactor(0.1), "lamb": optax.lamb(0.1),
    "multi": optax.MultiSteps(optax.adam(0.1), 2),
}.items():
    record(name, fit(optimizer))

# The README's own lines, outside jit.
optimizer = optax.adam(0.1)
params = {"w": jnp.ones((2,))}
opt_state = optimizer.init(params)
compute_loss = lambda params, x, y: optax.l2_loss(params["w"].dot(x), y)
for x, y in zip(xs[:3], ys[:3]):
    grads = jax.grad(compute_loss)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state)
    params = optax.apply_updates(params, updates)
record("readme", params["w"])

# Losses and a line search.
logits, labels = jax.random.normal(key, (4, 3)), jnp.array([0, 2, 1, 1])
record("losses", jnp.stack([
    optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(),
    optax.softmax_cross_entropy(logits, jax.nn.one_hot(labels, 3)).mean(),
    optax.sigmoid_binary_cross_entropy(logits[:, 0], labels > 0).mean(),
    optax.huber_loss(logits).mean(), optax.cosine_distance(logits[0], logits[1]),
]))
record("lbfgs", line_search(
    optax.lbfgs(), lambda w: jnp.sum((w - jnp.array([1.0, 2.0])) ** 4), jnp.zeros(2), 4))

"""dm-haiku, distrax, blackjax, jraph: a network trained, distributions, a sampler, a graph net."""

import blackjax
import distrax
import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import optax
from curves import record

x = jax.random.normal(jax.random.PRNGKey(0), (8, 5))
y = jnp.arange(8) % 3


def softmax_cross_entropy(x, y):
    mlp = hk.Sequential([hk.Linear(12), jax.nn.relu, hk.Linear(3)])
    logits = hk.LayerNorm(-1, True, True)(mlp(x))
    return jnp.mean(optax.softmax_cross_entropy(logits, jax.nn.one_hot(y, 3)))


network = hk.without_apply_rng(hk.transform(softmax_cross_entropy))
params = network.init(jax.random.PRNGKey(42), x, y)
losses = []
step = jax.jit(jax.value_and_grad(network.apply))
for _ in range(6):
    loss, grads = step(params, x, y)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    losses.append(loss)
record("haiku", losses)
with_state = hk.transform_with_state(
    lambda x: hk.BatchNorm(True, True, 0.9, axis=(0, 1, 2))(hk.Conv2D(2, 3)(x), True))
images = jax.random.normal(jax.random.PRNGKey(3), (2, 5, 5, 1))
weights, state = with_state.init(jax.random.PRNGKey(1), images)
record("haiku with state", with_state.apply(weights, state, None, images)[0])
lstm = hk.transform(lambda xs: hk.dynamic_unroll(hk.LSTM(3), xs, hk.LSTM(3).initial_state(2))[0])
sequence = images[:, :, 0, :1].swapaxes(0, 1)
record("haiku lstm", lstm.apply(lstm.init(jax.random.PRNGKey(2), sequence), None, sequence))
perceptron = hk.transform(lambda x: hk.nets.MLP([3, 2], activation=jnp.tanh)(x))
inner = perceptron.init(jax.random.PRNGKey(4), x)
for name, draw in (("concrete", hk.to_dot), ("abstract", hk.experimental.abstract_to_dot)):
    graph = draw(lambda x: perceptron.apply(inner, None, x))(x)
    words = "shape=rect", "->", "subgraph", "mlp", "dot_general", "broadcast_in_dim", "tanh", "add"
    record(f"haiku graph, {name}", jnp.array([len(graph.splitlines()), *map(graph.count, words)]))

mu, scale = jnp.array([-1., 0., 1.]), jnp.array([0.1, 0.2, 0.3])
normal = distrax.MultivariateNormalDiag(mu, scale)
samples, log_prob = normal.sample_and_log_prob(seed=jax.random.PRNGKey(1234))
record("distrax", jnp.append(samples, log_prob))
record("distrax kl", jax.jit(lambda a, b: a.kl_divergence(b))(
    normal, distrax.MultivariateNormalDiag(mu + 2, scale + 0.1)))
flow = distrax.Transformed(distrax.Normal(0., 1.), distrax.Tanh())
record("distrax flow", flow.log_prob(jnp.array(0.3)))
record("distrax lambda", distrax.Lambda(lambda x: jnp.sinh(2 * x + 3)).inverse(jnp.array(2.0)))

log_density = lambda x: -0.5 * jnp.sum(x ** 2) - 0.1 * jnp.sum(x ** 4)
nuts = blackjax.nuts(log_density, step_size=0.3, inverse_mass_matrix=jnp.ones(2))
held = nuts.init(jnp.array([1.0, -0.5]))
path = []
for i in range(5):
    held, info = jax.jit(nuts.step)(jax.random.key(i), held)
    path.append(held.position)
record("blackjax", jnp.stack(path))

graph = jraph.GraphsTuple(
    n_node=jnp.array([3]), n_edge=jnp.array([2]), nodes=jnp.arange(3.0)[:, None] + 1,
    edges=jnp.ones((2, 1)), globals=jnp.ones((1, 1)), senders=jnp.array([0, 1]),
    receivers=jnp.array([2, 2]))
net = jraph.GraphConvolution(lambda nodes: nodes * 2.0)
record("jraph", net(graph).nodes)
gat = jraph.InteractionNetwork(
    lambda e, s, r: e + s * r, lambda n, received: n + received.sum(-1, keepdims=True))
record("jraph interaction", jax.jit(lambda g: gat(g).nodes)(graph))

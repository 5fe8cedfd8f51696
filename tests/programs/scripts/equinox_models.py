"""equinox: recurrent and attention models, ensembles, state, saved trees, loops, changed trees."""

import io

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from curves import record

key = jr.key(0)


class RNN(eqx.Module):
    hidden_size: int = eqx.field(static=True)
    cell: eqx.nn.GRUCell
    linear: eqx.nn.Linear
    bias: jax.Array

    def __init__(self, in_size, out_size, hidden_size, *, key):
        ckey, lkey = jr.split(key)
        self.hidden_size = hidden_size
        self.cell = eqx.nn.GRUCell(in_size, hidden_size, key=ckey)
        self.linear = eqx.nn.Linear(hidden_size, out_size, use_bias=False, key=lkey)
        self.bias = jnp.zeros(out_size)

    def __call__(self, xs):
        def step(carry, x):
            return self.cell(x, carry), None

        out, _ = jax.lax.scan(step, jnp.zeros(self.hidden_size), xs)
        return jax.nn.sigmoid(self.linear(out) + self.bias)


t = jnp.linspace(0, 6, 10)
sign = jnp.array([1., -1.] * 8)
xs = jnp.stack([jnp.stack([jnp.cos(t), s * jnp.sin(t)], 1) for s in sign])
xs = xs + 0.1 * jr.normal(key, xs.shape)
ys = (sign > 0).astype(jnp.float32)[:, None]


def train(model, loss_fn, steps=6, optimizer=optax.adam(1e-2)):
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state):
        loss, grads = eqx.filter_value_and_grad(loss_fn)(model)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return loss, eqx.apply_updates(model, updates), state

    losses = []
    for _ in range(steps):
        loss, model, state = step(model, state)
        losses.append(loss)
    return model, losses


def entropy(model):
    p = jax.vmap(model)(xs)
    return -jnp.mean(ys * jnp.log(p) + (1 - ys) * jnp.log(1 - p))


rnn, losses = train(RNN(2, 1, 8, key=key), entropy)
record("rnn", losses)


class Block(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norms: list
    mlp: eqx.nn.MLP
    dropout: eqx.nn.Dropout

    def __init__(self, size, key):
        k1, k2 = jr.split(key)
        self.attention = eqx.nn.MultiheadAttention(2, size, key=k1)
        self.norms = [eqx.nn.LayerNorm(size), eqx.nn.RMSNorm(size)]
        self.mlp = eqx.nn.MLP(size, size, 8, 1, activation=jax.nn.gelu, key=k2)
        self.dropout = eqx.nn.Dropout(0.1)

    def __call__(self, x, mask, key):
        k1, k2 = jr.split(key)
        h = jax.vmap(self.norms[0])(x)
        x = x + self.dropout(self.attention(h, h, h, mask=mask), key=k1)
        h = jax.vmap(self.norms[1])(x)
        return x + self.dropout(jax.vmap(self.mlp)(h), key=k2)


class Transformer(eqx.Module):
    embed: eqx.nn.Embedding
    position: eqx.nn.RotaryPositionalEmbedding
    blocks: Block
    head: eqx.nn.Linear

    def __init__(self, vocabulary, size, depth, key):
        k1, k2, k3 = jr.split(key, 3)
        self.embed = eqx.nn.Embedding(vocabulary, size, key=k1)
        self.position = eqx.nn.RotaryPositionalEmbedding(size)
        self.blocks = eqx.filter_vmap(lambda k: Block(size, k))(jr.split(k2, depth))
        self.head = eqx.nn.Linear(size, vocabulary, key=k3)

    def __call__(self, tokens, key):
        x = self.position(jax.vmap(self.embed)(tokens))
        mask = jnp.tril(jnp.ones((len(tokens), len(tokens)), bool))
        dynamic, static = eqx.partition(self.blocks, eqx.is_array)

        def step(x, layer):
            block, key = layer
            return eqx.combine(block, static)(x, mask, key), None

        depth = jax.tree.leaves(dynamic)[0].shape[0]
        x, _ = jax.lax.scan(jax.checkpoint(step), x, (dynamic, jr.split(key, depth)))
        return jax.vmap(self.head)(x)


tokens = jnp.arange(24).reshape(3, 8) * 7 % 11


def language(model):
    keys = jr.split(jr.key(5), 3)
    logits = jax.vmap(model)(tokens[:, :-1], keys)
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


record("transformer", train(Transformer(11, 8, 3, jr.key(1)), language, 4)[1])


class Conv(eqx.Module):
    layers: eqx.nn.Sequential

    def __init__(self, key):
        k1, k2, k3 = jr.split(key, 3)
        self.layers = eqx.nn.Sequential([
            eqx.nn.Conv2d(1, 3, 3, padding=1, key=k1), eqx.nn.BatchNorm(3, "batch", mode="batch"),
            eqx.nn.Lambda(jax.nn.relu), eqx.nn.AvgPool2d(2, 2), eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(27, 4, key=k2),
            eqx.nn.SpectralNorm(eqx.nn.Linear(4, 2, key=k3), "weight", key=k3)])

    def __call__(self, x, state):
        return self.layers(x, state)


conv, state = eqx.nn.make_with_state(Conv)(jr.key(2))
images = jr.normal(jr.key(3), (5, 1, 6, 6))


@eqx.filter_jit
def forward(model, state, images):
    return jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(images, state)


out, state = forward(conv, state, images)
out, state = forward(conv, state, 2 * images + 1)
record("stateful", out)
still = eqx.nn.inference_mode(conv)
record("at inference", forward(still, state, images)[0])

# Ensembles, trees saved, read and changed.
make = eqx.filter_vmap(lambda k: eqx.nn.MLP(2, 1, 4, 1, key=k))
ensemble = make(jr.split(jr.key(4), 3))
x = jr.normal(key, (6, 2))
record("ensemble", eqx.filter_vmap(lambda m, x: jax.vmap(m)(x), in_axes=(eqx.if_array(0), None))(
    ensemble, x))
record("ensemble's gradients", eqx.filter_vmap(eqx.filter_grad(
    lambda m: jnp.mean(jax.vmap(m)(x) ** 2)))(ensemble).layers[0].bias)
buffer = io.BytesIO()
eqx.tree_serialise_leaves(buffer, rnn)
buffer.seek(0)
back = eqx.tree_deserialise_leaves(buffer, RNN(2, 1, 8, key=jr.key(9)))
assert eqx.tree_equal(back, rnn)
record("read back", jax.vmap(back)(xs[:3]))
wider = eqx.tree_at(lambda m: (m.linear.weight, m.bias), rnn, replace_fn=lambda x: 2 * x)
record("changed tree", wider(xs[0]))
frozen = jax.tree.map(lambda _: False, rnn)
frozen = eqx.tree_at(lambda m: m.bias, frozen, True)
dynamic, static = eqx.partition(rnn, frozen)
record("only the bias", eqx.filter_grad(lambda d: entropy(eqx.combine(d, static)))(dynamic).bias)
record("shapes", eqx.filter_eval_shape(eqx.nn.Linear, 3, 4, key=key).weight.shape)
closed, _, _ = eqx.filter_make_jaxpr(lambda m, x: m(x))(rnn, xs[0])
assert "scan" in str(closed)
moving = eqx.filter(rnn, eqx.is_inexact_array)
record("jvp", eqx.filter_jvp(lambda m: m(xs[0]), (rnn,), (moving,))[1])
out, pull = eqx.filter_vjp(lambda m: m(xs[0]), rnn)
record("vjp", pull(jnp.ones(1))[0].bias)


@eqx.filter_custom_vjp
def doubled(x):
    return x * 2


doubled.def_fwd(lambda perturbed, x: (doubled(x), None))
doubled.def_bwd(lambda residuals, g, perturbed, x: g * 10)
record("custom vjp", jax.grad(lambda x: doubled(x).sum())(jnp.ones(2)))
record("jacrev", eqx.filter_jacrev(lambda x: jnp.sin(x) * x[0])(jnp.arange(1., 4.)))
loop = lambda kind, x: eqxi.while_loop(
    lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sin(c[1]) * 2), (0, x), kind=kind, max_steps=16)[1]
for kind in ("checkpointed", "bounded"):
    record(f"loop {kind}", [loop(kind, 0.7), jax.jit(jax.grad(lambda x, k=kind: loop(k, x)))(0.7)])


@eqxi.noinline
def apart(x, y):
    return jnp.sin(x) * y


record("compiled apart", [jax.jit(jax.grad(lambda x: apart(x, x) + apart(x * x, x)))(1.3),
                          jax.vmap(apart)(jnp.arange(2.), jnp.ones(2))[1]])
for pick in (0, 3):
    try:
        record(f"branch {pick}", eqx.branched_error_if(
            jnp.ones(1), jnp.array(pick == 3), jnp.array(1), ["first", "second"]))
    except eqx.EquinoxRuntimeError as error:
        record("error", "second" in str(error))
shared = eqx.nn.Shared((eqx.nn.Embedding(4, 3, key=key), eqx.nn.Linear(3, 4, key=key)),
                       lambda m: m[1].weight, lambda m: m[0].weight)
record("shared", shared()[1](jnp.ones(3)))
record("layers", jnp.concatenate([jnp.ravel(v) for v in (
    eqx.nn.ConvTranspose1d(1, 2, 3, key=key)(jnp.ones((1, 4))), eqx.nn.GroupNorm(2, 4)(
        jr.normal(key, (4, 3))), eqx.nn.PReLU(0.2)(jnp.array([-1., 1.])),
    eqx.nn.AdaptiveAvgPool1d(2)(jnp.ones((1, 5))), eqx.nn.WeightNorm(
        eqx.nn.Linear(2, 2, key=key))(jnp.ones(2)))]))

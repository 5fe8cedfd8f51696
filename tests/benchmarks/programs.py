"""Which programs of a usual size are measured, from Python text to a finished run?

Texts only: a network of 50 layers, a transformer of 12 blocks, a scan, a loop, a mapped gradient.
``rows.py`` makes rows of them: tracing, lowering, compiling, dispatching and running each.

Read after: ``rows.py``, which says how such texts are run.
Invariant: a text runs unchanged on Saem and on JAX, and defines ``step`` and its ``args``.
"""

from __future__ import annotations

# 50 layers, 100 arrays of parameters: the gradient of a loss.
MLP = """
def wave(*shape):
    n = 1
    for size in shape: n = n * size
    return jnp.sin(jnp.arange(n, dtype=jnp.float32)).reshape(shape) * 0.3
def loss(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.sum(x ** 2)
params = [(wave({width}, {width}), wave({width})) for _ in range(50)]
step, args = jax.grad(loss), (params, wave(8, {width}))
"""

# 12 blocks of attention and a feed-forward layer, forward and backward.
TRANSFORMER = """
batch, length, heads, width, hidden = 2, 32, 4, 64, 256
def wave(*shape):
    n = 1
    for size in shape: n = n * size
    return jnp.sin(jnp.arange(n, dtype=jnp.float32)).reshape(shape) * 0.1
def block_params():
    return dict(qkv=wave(width, 3 * width), out=wave(width, width), up=wave(width, hidden),
                down=wave(hidden, width), scale1=wave(width) + 1, scale2=wave(width) + 1)
def normed(x, scale):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale
def attention(p, x):
    q, k, v = jnp.split((x @ p["qkv"]).reshape(batch, length, heads, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4.0
    causal = jnp.tril(jnp.ones((length, length), dtype=bool))
    scores = jnp.where(causal, scores, -1e9)
    weights = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
    weights = weights / jnp.sum(weights, axis=-1, keepdims=True)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width) @ p["out"]
def loss(params, x):
    for p in params:
        x = x + attention(p, normed(x, p["scale1"]))
        h = normed(x, p["scale2"]) @ p["up"]
        x = x + (h * 0.5 * (1.0 + jnp.tanh(0.8 * (h + 0.045 * h ** 3)))) @ p["down"]
    return jnp.mean(x ** 2)
params = [block_params() for _ in range(12)]
step, args = jax.value_and_grad(loss), (params, wave(batch, length, width))
"""

# What a learner does in a first session, every number of it waited for.
INTRODUCTION = """
x = jnp.arange(10.0)
y = x * 2 + 1
shown = [jnp.sin(x).sum(), x.reshape(2, 5).T @ x.reshape(2, 5), x[2:5], x.mean(), x.std(),
         jnp.linspace(0, 1, 5), jax.grad(lambda x: jnp.sum(x ** 2))(x)]
key = jax.random.key(0)
k1, k2, k3 = jax.random.split(key, 3)
params = {"W1": jax.random.normal(k1, (4, 16)) * 0.5, "b1": jnp.zeros(16),
          "W2": jax.random.normal(k2, (16, 1)) * 0.5, "b2": jnp.zeros(1)}
X = jax.random.uniform(k3, (64, 4))
Y = jnp.sum(X ** 2, axis=1, keepdims=True)
def net(p, x): return jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"]
def loss(p): return jnp.mean((net(p, X) - Y) ** 2)
@jax.jit
def step(p):
    value, slope = jax.value_and_grad(loss)(p)
    return jax.tree.map(lambda a, b: a - 0.1 * b, p, slope), value
for _ in range(50): params, value = step(params)
shown += [value, jnp.sort(jax.random.normal(k3, (20,)))[:3], jnp.median(X),
          jnp.percentile(X, 90), jnp.argmax(Y)]
text = [str(s) for s in shown]
"""

SCAN = """
xs = jnp.arange(1000, dtype=jnp.float32)
def run(c, xs): return jax.lax.scan(lambda c, a: (jnp.sin(c) + a * 0.1, c * 2), c, xs)
step, args = run, (jnp.ones(8), xs)
"""

SCAN_GRADIENT = SCAN + """
def loss(c, xs):
    last, seen = run(c, xs)
    return jnp.sum(last) + jnp.sum(seen)
step = jax.grad(loss)
"""

WHILE = """
def run(x):
    return jax.lax.while_loop(
        lambda c: c[0] < 1000, lambda c: (c[0] + 1, jnp.sin(c[1]) + 0.1), (0, x))
step, args = run, (jnp.ones(8),)
"""

MAPPED_GRADIENT = """
def loss(x):
    for _ in range(30):
        x = jnp.sin(x * 1.5 + 0.25)
    return jnp.sum(x ** 2)
step, args = jax.vmap(jax.grad(loss)), (jnp.arange(80, dtype=jnp.float32).reshape(10, 8),)
"""

"""Programs as learners write them, whose views the browser tests look at.

Read before: nothing.  Read after: ``test_views.py``.
Invariant: each is deterministic.
"""

from __future__ import annotations

import saem as jax
import saem.numpy as jnp


def loss(w, x, y):
    """A small network's loss, with a Python loop that is unrolled."""
    hidden = x
    for layer in range(3):
        hidden = jnp.tanh(hidden @ w[layer])
    return jnp.mean((hidden[:, 0] - y) ** 2)


W = jnp.linspace(-1.0, 1.0, 48).reshape(3, 4, 4)
X = jnp.linspace(0.0, 1.0, 20).reshape(5, 4)
Y = jnp.arange(5.0)


def ill(x):
    """Its third operation makes a NaN."""
    shifted = x - 1.0
    scaled = shifted * 2.0
    return jnp.sum(jnp.log(scaled) + 1.0)


def branching(x):
    """Asks a traced value a question."""
    y = x * 2
    z = y + 1
    if jnp.sum(z) > 0:
        return z
    return -z


def rnn(w, xs):
    """A recurrent network by ``scan``."""
    def step(state, x):
        state = jnp.tanh(state @ w + x)
        return state, jnp.sum(state)

    final, sums = jax.lax.scan(step, jnp.zeros(4), xs)
    return jnp.sum(final) + jnp.sum(sums)


def orbit(position, velocity):
    """One hundred steps of a planet's way, for one starting point."""
    def step(_, state):
        place, speed = state
        speed = speed - 0.01 * place / (jnp.sum(place**2) + 0.01) ** 1.5
        return place + 0.01 * speed, speed

    return jax.lax.fori_loop(0, 100, step, (position, velocity))[0]


def long(x):
    """Two thousand equations."""
    for number in range(1000):
        x = jnp.sin(x) * (number + 1.0)
    return x

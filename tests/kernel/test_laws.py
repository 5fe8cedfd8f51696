"""Do the laws that hold for every program hold for random ones?

Programs are drawn from a handful of operations on vectors of three numbers, with a jit around a
part of some of them.  Each law is one equality between two ways to compute the same thing.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import saem as jax
from saem import lax
from saem.core.check import check_jaxpr

N = 3
UNARY = {
    "sin": (lax.sin, np.sin),
    "tanh": (lax.tanh, np.tanh),
    "neg": (lax.neg, np.negative),
    "square": (lambda x: lax.mul(x, x), np.square),
    "damp": (lambda x: lax.exp(lax.neg(lax.mul(x, x))), lambda x: np.exp(-x * x)),
    "reverse": (lambda x: lax.rev(x, (0,)), lambda x: x[::-1]),
    "running": (lambda x: lax.cumsum(x, axis=0), lambda x: np.cumsum(x)),
    "spread": (lambda x: lax.broadcast_in_dim(lax.reduce_sum(x, (0,)), (N,), ()),
               lambda x: np.full(N, x.sum(), x.dtype)),
    "half": (lambda x: lax.mul(x, np.float32(0.5)), lambda x: x * 0.5),
}
BINARY = {
    "add": (lax.add, np.add),
    "sub": (lax.sub, np.subtract),
    "mul": (lax.mul, np.multiply),
    "outer": (lambda x, y: lax.reduce_sum(lax.mul(lax.broadcast_in_dim(x, (N, N), (0,)),
                                                  lax.broadcast_in_dim(y, (N, N), (1,))), (0,)),
              lambda x, y: np.outer(x, y).sum(0)),
}


@dataclasses.dataclass(frozen=True)
class Program:
    """Steps ``(name, operand, operand)`` on a growing list of values, which starts with the input.

    From step ``jitted`` on, the steps run inside a jit that closes over the values before.
    """

    steps: tuple[tuple[str, int, int], ...]
    jitted: int

    def __call__(self, x):
        return self.run([x], 0)

    def run(self, values, number):
        if number == len(self.steps):
            return values[-1]
        if number == self.jitted:
            rest = jax.jit(lambda y: Program(self.steps, -1).run([*values[:-1], y], number))
            return rest(values[-1])
        return self.run([*values, self.step(values, number, 0)], number + 1)

    def on_numpy(self, x):
        values = [x]
        for number in range(len(self.steps)):
            values.append(self.step(values, number, 1))
        return values[-1]

    def step(self, values, number, where):
        name, a, b = self.steps[number]
        if name in UNARY:
            return UNARY[name][where](values[a % len(values)])
        return BINARY[name][where](values[a % len(values)], values[b % len(values)])


step = st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 5), st.integers(0, 5))
programs = st.builds(Program, st.lists(step, min_size=1, max_size=5).map(tuple),
                     st.integers(-1, 4))
vectors = st.lists(st.floats(-1.5, 1.5, width=32), min_size=N, max_size=N).map(
    lambda xs: np.asarray(xs, np.float32))
law = settings(max_examples=25, deadline=None, derandomize=True,
               suppress_health_check=list(HealthCheck))


def close(a, b, rtol=2e-4):
    a, b = np.asarray(a), np.asarray(b)
    scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)


def scalar(f):
    return lambda x: lax.reduce_sum(f(x), (0,))


@law
@given(programs, vectors)
def test_jit_changes_nothing_and_numpy_agrees(f, x):
    closed = jax.make_jaxpr(f)(x)
    check_jaxpr(closed)
    wanted = f.on_numpy(x.astype(np.float64))
    close(f(x), wanted)
    close(jax.jit(f)(x), wanted)
    close(jax.evaluate(closed, x)[0], wanted)


@law
@given(programs, st.lists(vectors, min_size=2, max_size=2))
def test_vmap_is_a_loop(f, rows):
    xs = np.stack(rows)
    wanted = np.stack([f.on_numpy(row.astype(np.float64)) for row in xs])
    close(jax.vmap(f)(xs), wanted)
    close(jax.vmap(f, in_axes=1, out_axes=1)(xs.T), wanted.T)
    check_jaxpr(jax.make_jaxpr(jax.vmap(f))(xs))


@law
@given(programs, vectors, vectors)
def test_jvp_is_the_limit_of_differences(f, x, v):
    x64, v64, step = x.astype(np.float64), v.astype(np.float64), 1e-6
    wanted = (f.on_numpy(x64 + step * v64) - f.on_numpy(x64 - step * v64)) / (2 * step)
    value, tangent = jax.jvp(f, (x,), (v,))
    close(value, f.on_numpy(x64))
    close(tangent, wanted, rtol=1e-3)
    close(jax.linearize(f, x)[1](v), wanted, rtol=1e-3)


@law
@given(programs, vectors, vectors, vectors)
def test_the_transpose_pairs_with_the_jvp(f, x, v, ct):
    pushed = jax.jvp(f, (x,), (v,))[1]
    (pulled,) = jax.vjp(f, x)[1](ct)
    close(np.dot(np.float64(ct), np.float64(pushed)), np.dot(np.float64(pulled), np.float64(v)),
          rtol=1e-3)


@law
@given(programs, st.lists(vectors, min_size=2, max_size=2))
def test_grad_and_vmap_commute(f, rows):
    xs = np.stack(rows)
    one_by_one = jax.vmap(jax.grad(scalar(f)))(xs)
    together = jax.grad(lambda xs: lax.reduce_sum(jax.vmap(scalar(f))(xs), (0,)))(xs)
    close(one_by_one, together)
    check_jaxpr(jax.make_jaxpr(jax.vmap(jax.grad(scalar(f))))(xs))


@pytest.mark.parametrize("table", [UNARY, BINARY])
def test_the_operations_are_what_numpy_says(table):
    x = np.asarray([0.3, -1.0, 2.0], np.float32)
    for ours, theirs in table.values():
        args = (x,) if table is UNARY else (x, x[::-1].copy())
        np.testing.assert_allclose(ours(*args), theirs(*args), rtol=1e-6)

"""What does a random program look like?

A ``Program`` is steps on a growing list of typed values (single numbers, vectors of 3, matrices of
2 x 3), ending in a value of the type it began with.  Steps are operations, or control flow and
transformations with a smaller program inside: cond, switch, scan, fori_loop, while_loop, jit,
checkpoint, custom_jvp, custom_vjp, vmap.  Inner programs may close over values outside.

The same steps run on an engine (Saem) and, in plain Python loops, on NumPy in double precision:
``Engine`` and ``Plain`` give each step its meaning.

Read before: ``saem.lax``.  Read after: ``drawing.py``, ``test_laws.py``.
Invariant: every program can be differentiated forward, and backward unless it has a while_loop.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import saem as jax
import saem.numpy as jnp
from saem import lax

SHAPES = ((), (3,), (2, 3))


# -- operations: (on Saem, on NumPy) ---------------------------------------------------------------


def _pick(np_like):
    """Read rows at places computed from the values themselves."""

    def pick(x):
        where = np_like.argsort(np_like.sin(x.reshape(-1) * 3))
        return x.reshape(-1)[where].reshape(x.shape)

    return pick


def _write(x):
    flat = x.reshape(-1)
    return flat.at[0].add(flat[-1] * 0.5).reshape(x.shape)


def _write_np(x):
    flat = x.reshape(-1).copy()
    flat[0] += flat[-1] * 0.5
    return flat.reshape(x.shape)


def _slide(x):
    flat = x.reshape(-1)
    start = lax.convert_element_type(flat[0] > 0, np.int32)
    return lax.dynamic_slice(jnp.concatenate([flat, flat[:1]]), (start,), flat.shape).reshape(
        x.shape)


def _slide_np(x):
    flat = x.reshape(-1)
    start = int(flat[0] > 0)
    return np.concatenate([flat, flat[:1]])[start:start + flat.size].reshape(x.shape)


UNARY: dict[str, tuple[Any, Any]] = {
    "sin": (jnp.sin, np.sin),
    "tanh": (jnp.tanh, np.tanh),
    "neg": (lambda x: -x, np.negative),
    "damp": (lambda x: x * jnp.exp(-x * x), lambda x: x * np.exp(-x * x)),
    "logistic": (lax.logistic, lambda x: 1 / (1 + np.exp(-x))),
    "log1p": (lambda x: jnp.log1p(x * x), lambda x: np.log1p(x * x)),
    "root": (lambda x: jnp.sqrt(x * x + 1), lambda x: np.sqrt(x * x + 1)),
    "half": (lambda x: x * 0.5, lambda x: x * 0.5),
    "power": (lambda x: (x * 0.5) ** 3, lambda x: (x * 0.5) ** 3),
    "clip": (lambda x: jnp.clip(x, -0.8, 0.9), lambda x: np.clip(x, -0.8, 0.9)),
    "reverse": (lambda x: x[..., ::-1] if x.ndim else x, lambda x: x[..., ::-1] if x.ndim else x),
    "running": (lambda x: jnp.cumsum(x, -1) * 0.5 if x.ndim else x,
                lambda x: np.cumsum(x, -1) * 0.5 if x.ndim else x),
    "sort": (lambda x: jnp.sort(x, -1) if x.ndim else x,
             lambda x: np.sort(x, -1) if x.ndim else x),
    "pick": (_pick(jnp), _pick(np)),
    "write": (_write, _write_np),
    "slide": (_slide, _slide_np),
    "center": (lambda x: x - x.mean(), lambda x: x - x.mean()),
    "largest": (lambda x: x * 0.3 + x.max(), lambda x: x * 0.3 + x.max()),
    "steps": (lambda x: x + jnp.floor(x), lambda x: x + np.floor(x)),
    "count": (lambda x: x * (x > 0).sum(), lambda x: x * (x > 0).sum()),
}
BINARY: dict[str, tuple[Any, Any]] = {
    "add": (lambda x, y: x + y, lambda x, y: x + y),
    "sub": (lambda x, y: x - y, lambda x, y: x - y),
    "mul": (lambda x, y: x * jnp.tanh(y), lambda x, y: x * np.tanh(y)),
    "div": (lambda x, y: x / (y * y + 1), lambda x, y: x / (y * y + 1)),
    "where": (lambda x, y: jnp.where(x > 0.1, x, y), lambda x, y: np.where(x > 0.1, x, y)),
    "max": (jnp.maximum, np.maximum),
    "hypot": (lambda x, y: jnp.sqrt(x * x + y * y + 1), lambda x, y: np.sqrt(x * x + y * y + 1)),
    "atan2": (lambda x, y: jnp.arctan2(x, y * y + 1), lambda x, y: np.arctan2(x, y * y + 1)),
}
# From any type to any other.
RESHAPE: dict[tuple, tuple[Any, Any]] = {
    ((), (3,)): (lambda x: x * jnp.array([1.0, -0.5, 2.0]), lambda x: x * np.array([1, -0.5, 2])),
    ((), (2, 3)): (lambda x: jnp.full((2, 3), x), lambda x: np.full((2, 3), x)),
    ((3,), ()): (jnp.sum, np.sum),
    ((3,), (2, 3)): (lambda x: jnp.stack([x, x[::-1]]), lambda x: np.stack([x, x[::-1]])),
    ((2, 3), ()): (lambda x: (x @ x.T).sum() * 0.1, lambda x: (x @ x.T).sum() * 0.1),
    ((2, 3), (3,)): (lambda x: x.mean(0), lambda x: x.mean(0)),
}
CONTROL = ("cond", "switch", "scan", "fori", "while", "jit", "checkpoint", "custom_jvp",
           "custom_vjp", "vmap")


# -- programs --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Step:
    """One step: what is done, on which values (numbers taken modulo what there is), with what."""

    kind: str
    name: str = ""
    a: int = 0
    b: int = 0
    shape: tuple = ()
    inner: tuple[Program, ...] = ()


@dataclasses.dataclass(frozen=True)
class Program:
    """Steps from one value of ``shape`` to one value of ``shape``."""

    shape: tuple
    steps: tuple[Step, ...]

    def run(self, world: Any, x: Any, outer: tuple = ()) -> Any:
        """Return the result on ``x`` in ``world``; ``outer`` are values closed over."""
        values = [*outer, x]
        for step in self.steps:
            values.append(world.step(step, values))
        made = values[len(outer) + 1:]
        return next((value for value in reversed(made) if value.shape == self.shape), x)

    def __call__(self, x: Any) -> Any:
        return self.run(ENGINE, x)

    def on_numpy(self, x: Any) -> Any:
        return self.run(PLAIN, np.asarray(x, np.float64))

    def written(self) -> list:
        """Return this program as lists, numbers and words, which ``read`` makes a program again."""
        return [list(self.shape), [
            [s.kind, s.name, s.a, s.b, list(s.shape), [p.written() for p in s.inner]]
            for s in self.steps]]

    def kinds(self) -> set[str]:
        """Return the kinds of steps in this program and inside it."""
        found = {s.kind for s in self.steps}
        return found.union(*(p.kinds() for s in self.steps for p in s.inner))


def read(written: Any) -> Program:
    """Return the program that was ``written``."""
    shape, steps = written
    return Program(tuple(shape), tuple(
        Step(kind, name, a, b, tuple(to), tuple(read(p) for p in inner))
        for kind, name, a, b, to, inner in steps))


class World:
    """What steps mean: subclasses say how control flow runs."""

    column: int

    def step(self, step: Step, values: list) -> Any:
        x = values[step.a % len(values)]
        if step.kind == "unary":
            return UNARY[step.name][self.column](x)
        if step.kind == "binary":
            same = [v for v in values if v.shape == x.shape]
            return BINARY[step.name][self.column](x, same[step.b % len(same)])
        if step.kind == "reshape":
            if x.shape == step.shape:
                return x
            return RESHAPE[x.shape, step.shape][self.column](x)
        # Control flow works on a value of its inner programs' type, and closes over another one.
        fitting = [v for v in values if v.shape == self.needs(step)]
        x = fitting[step.a % len(fitting)] if fitting else self.make(x, self.needs(step))
        other = values[step.b % len(values)]
        # A function with rules of its own has a derivative in its arguments only.
        closed = () if step.kind.startswith("custom") else (other,)
        bodies = [lambda v, p=p: p.run(self, v, closed) for p in step.inner]
        return getattr(self, step.kind)(x, other, *bodies)

    def needs(self, step: Step) -> tuple:
        """Return the type of value that a step of control flow works on."""
        return (2, 3) if step.kind in ("scan", "vmap") else step.inner[0].shape

    def make(self, x: Any, shape: tuple) -> Any:
        return x if x.shape == shape else RESHAPE[x.shape, shape][self.column](x)


class Engine(World):
    """Steps on Saem, by its control flow and transformations."""

    column = 0

    def cond(self, x, other, yes, no):
        return lax.cond(other.sum() > 0.2, yes, no, x)

    def switch(self, x, other, one, two, three):
        index = lax.convert_element_type(jnp.floor(other.sum()), np.int32)
        return lax.switch(index, [one, two, three], x)

    def scan(self, x, other, body):
        def step(carry, row):
            new = body(carry * 0.5 + row)
            return new, new * 2

        carry, rows = lax.scan(step, other.sum() * jnp.ones(3), x)
        return rows + carry

    def fori(self, x, other, body):
        return lax.fori_loop(0, 3, lambda i, v: body(v) + i * 0.1, x)

    def while_(self, x, other, body):
        def more(state):
            return (state[0] < 4) & (jnp.abs(state[1]).sum() < 30)

        return lax.while_loop(more, lambda s: (s[0] + 1, body(s[1]) * 1.5), (0, x))[1]

    def jit(self, x, other, body):
        return jax.jit(body)(x)

    def checkpoint(self, x, other, body):
        return jax.checkpoint(body)(x)

    def custom_jvp(self, x, other, body):
        @jax.custom_jvp
        def f(v, w):
            return body(v) * 0.5 + w.sum()

        @f.defjvp
        def rule(primals, tangents):
            return jax.jvp(lambda v, w: body(v) * 0.5 + w.sum(), primals, tangents)

        return f(x, other)

    def custom_vjp(self, x, other, body):
        def plain(v, w):
            return jnp.tanh(v) * w.sum()

        f = jax.custom_vjp(plain)
        f.defvjp(lambda v, w: (plain(v, w), (v, w)), lambda kept, ct: (
            ct * (1 - jnp.tanh(kept[0]) ** 2) * kept[1].sum(),
            jnp.full(kept[1].shape, (ct * jnp.tanh(kept[0])).sum())))
        return body(f(x, other))

    def vmap(self, x, other, body):
        return jax.vmap(body)(x)


class Plain(World):
    """Steps on NumPy, by Python's own control flow."""

    column = 1

    def cond(self, x, other, yes, no):
        return yes(x) if other.sum() > 0.2 else no(x)

    def switch(self, x, other, *branches):
        return branches[min(max(int(np.floor(other.sum())), 0), 2)](x)

    def scan(self, x, other, body):
        carry, rows = other.sum() * np.ones(3), []
        for row in x:
            carry = body(carry * 0.5 + row)
            rows.append(carry * 2)
        return np.stack(rows) + carry

    def fori(self, x, other, body):
        for i in range(3):
            x = body(x) + i * 0.1
        return x

    def while_(self, x, other, body):
        count = 0
        while count < 4 and np.abs(x).sum() < 30:
            count, x = count + 1, body(x) * 1.5
        return x

    def jit(self, x, other, body):
        return body(x)

    checkpoint = jit

    def custom_jvp(self, x, other, body):
        return body(x) * 0.5 + other.sum()

    def custom_vjp(self, x, other, body):
        return body(np.tanh(x) * other.sum())

    def vmap(self, x, other, body):
        return np.stack([body(row) for row in x])


for _world in (Engine, Plain):
    setattr(_world, "while", _world.while_)
ENGINE, PLAIN = Engine(), Plain()

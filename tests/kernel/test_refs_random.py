"""Does a random program that writes to references compute what it computes on arrays?

A program is a list of statements, some with programs inside: loops, branches, checkpoints, calls.
``with_references`` runs it on two references, ``with_arrays`` unrolls it and hands arrays on.
Values, and derivatives under every transformation, must be equal.

Read before: ``test_refs_transforms.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

# Each is given the array, the number of the step, a row, a factor and a value; gives the new array.
PLAIN = {
    "fill": lambda r, step, row, c, x: jnp.sin(r) * c + x,
    "add": lambda r, step, row, c, x: r + c * x,
    "row": lambda r, step, row, c, x: r.at[row].set(x * c),
    "step": lambda r, step, row, c, x: r.at[step % 3].set(r[(step + 1) % 3] * c + x),
    "slice": lambda r, step, row, c, x: r.at[:2].set(r[1:] * c),
    "rows": lambda r, step, row, c, x: r.at[jnp.array([0, 2])].set(r[jnp.array([2, 1])] + c),
}
NESTED = ("fori", "scan", "while", "cond", "switch", "inner", "checkpoint", "jit")


class Statement(NamedTuple):
    kind: str
    which: int
    row: int
    factor: float
    times: int
    bodies: tuple


def drawn(rng, depth=0):
    """Return a random program of two or three statements, nested up to two deep."""
    kinds = [*PLAIN, "fill", "read", "swap", *((*NESTED, "checkpoint") * (2 - depth))]
    return tuple(
        Statement(kind, int(rng.integers(2)), int(rng.integers(-3, 3)),
                  float(np.round(rng.normal(), 2)), int(rng.integers(4)),
                  (drawn(rng, depth + 1), drawn(rng, depth + 1)) if kind in NESTED else ())
        for kind in rng.choice(kinds, rng.integers(2, 4)))


def with_references(program, refs, x, step):
    for statement in program:
        x = ran(statement, refs, x, step)
    return x


def ran(statement, refs, x, step):
    """Run one statement on references; returns the new value."""
    kind, which, row, c, times, bodies = statement
    r: Any = refs[which]
    first, second = (lambda x, n, b=b: with_references(b, refs, x, n) for b in bodies or ((), ()))
    if kind in PLAIN:
        r[...] = PLAIN[kind](r[...], step, row, c, x)
    elif kind == "read":
        x = x + r[...].sum() * .1
    elif kind == "swap":
        x = x * .5 + jax.ref.swap(r, row, x * c)
    elif kind == "fori":
        x = lax.fori_loop(0, times, lambda n, x: first(x, step + n), x)
    elif kind == "scan":
        x, sums = lax.scan(lambda x, n: (first(x + n, step), r[...].sum()), x,
                           jnp.arange(float(times)))
        x = x + sums.sum() * .1
    elif kind == "while":
        x = lax.while_loop(lambda s: s[0] < times,
                           lambda s: (s[0] + 1, first(s[1], s[0])), (0, x))[1]
    elif kind == "cond":
        x = lax.cond(x > c, lambda x: first(x, step), lambda x: second(x, step), x)
    elif kind == "switch":
        x = lax.switch((step + times) % 2, [lambda x: first(x, step),
                                            lambda x: second(x, step)], x)
    elif kind == "inner":
        new = jax.new_ref(r[...] * x)
        x = with_references(bodies[0], [new, refs[1 - which]], x, step) + new[...].sum() * .1
    elif kind == "checkpoint":
        x = jax.checkpoint(first)(x, step)
    elif kind == "jit":
        x = jax.jit(first)(x, step)
    return x


def with_arrays(program, arrays, x, step):
    for kind, which, row, c, times, bodies in program:
        r = arrays[which]
        if kind in PLAIN:
            r = PLAIN[kind](r, step, row, c, x)
        elif kind == "read":
            x = x + r.sum() * .1
        elif kind == "swap":
            x, r = x * .5 + r[row], r.at[row].set(x * c)
        arrays = [r, arrays[1]] if which == 0 else [arrays[0], r]
        if kind in ("fori", "while"):
            for n in range(times):
                x, arrays = with_arrays(bodies[0], arrays, x, step + n if kind == "fori" else n)
        elif kind == "scan":
            total = 0.
            for n in range(times):
                x, arrays = with_arrays(bodies[0], arrays, x + n, step)
                total = total + arrays[which].sum()
            x = x + total * .1
        elif kind in ("cond", "switch"):
            flag = x > c if kind == "cond" else (step + times) % 2 == 0
            pair = [with_arrays(b, arrays, x, step) for b in bodies]
            x, arrays = jax.tree.map(lambda a, b, flag=flag: jnp.where(flag, a, b), *pair)
        elif kind == "inner":
            x, (new, other) = with_arrays(bodies[0], [r * x, arrays[1 - which]], x, step)
            x = x + new.sum() * .1
            arrays = [r, other] if which == 0 else [other, r]
        elif kind in ("checkpoint", "jit"):
            x, arrays = with_arrays(bodies[0], arrays, x, step)
    return x, arrays


def mentions(program, kind):
    return any(s.kind == kind or any(mentions(b, kind) for b in s.bodies) for s in program)


TRANSFORMS = {
    "itself": lambda f: f,
    "jit": jax.jit,
    "jvp": lambda f: lambda *args: jax.jvp(f, args, args),
    "vmap": lambda f: lambda x, a, b: jax.vmap(f, (0, None, 0))(
        jnp.stack([x, -x]), a, jnp.stack([b, b + 1])),
    "grad": lambda f: jax.grad(lambda *args: scalar(f(*args)), (0, 1, 2)),
    "jit of grad": lambda f: jax.jit(jax.value_and_grad(lambda *args: scalar(f(*args)), (0, 1, 2))),
    "vmap of grad": lambda f: lambda x, a, b: jax.vmap(
        jax.grad(lambda *args: scalar(f(*args)), (0, 1, 2)), (0, None, 0))(
            jnp.stack([x, -x]), a, jnp.stack([b, b + 1])),
    "forward over reverse": lambda f: lambda *args: jax.jvp(
        jax.grad(lambda *args: scalar(f(*args)), (0, 1, 2)), args, args),
    "linearize": lambda f: lambda *args: jax.linearize(f, *args)[1](*args),
}


def scalar(results):
    x, a, b = results
    return x + (a * b).sum()


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("seed", range(6))
def test_references_compute_as_arrays(seed, name):
    rng = np.random.default_rng([seed, list(TRANSFORMS).index(name)])
    program = drawn(rng)
    while "grad" in name + " grad" * (name == "forward over reverse") and mentions(
            program, "while"):  # it has no derivative backwards
        program = drawn(rng)
    x, (a, b) = jnp.float32(.7), jnp.asarray(rng.normal(size=(2, 3)), np.float32)

    def referring(x, a, b):
        refs = [jax.new_ref(a), jax.new_ref(b)]
        x = with_references(program, refs, x, jnp.int32(1))
        return x, refs[0][...], refs[1][...]

    def plain(x, a, b):
        x, arrays = with_arrays(program, [a, b], x, jnp.int32(1))
        return x, *arrays

    transform = TRANSFORMS[name]
    got, wanted = transform(referring)(x, a, b), transform(plain)(x, a, b)
    for mine, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4 * float(
            1 + np.abs(other).max()), err_msg=str(program))

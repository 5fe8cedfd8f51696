"""Do random programs mean on Saem what they mean on JAX?

The very text of ``programs.py`` runs in the second process too, with jax in the place of saem: the
same steps, under the same transformations, give the same values, dtypes and weak types.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from both import agree
from programs import BINARY, CONTROL, SHAPES, UNARY, Program, Step

import saem as jax
import saem.numpy as jnp

pytestmark = pytest.mark.usefixtures("little_effort")

TEXT = (Path(__file__).parent / "programs.py").read_text(encoding="utf-8")
THERE = (TEXT.replace("import saem as jax", "import jax").replace("import saem.numpy as jnp",
         "import jax.numpy as jnp").replace("from saem import lax", "from jax import lax"))
RUN = """
import sys, types
module = types.ModuleType("programs")
sys.modules["programs"] = module
exec(compile(text, "programs.py", "exec"), module.__dict__)
f = module.read(written)
ways = {
    "call": lambda x, v: jax.jit(f)(x),
    "jvp": lambda x, v: jax.jit(lambda x, v: jax.jvp(f, (x,), (v,)))(x, v),
    "vjp": lambda x, v: jax.jit(lambda x, v: jax.vjp(f, x)[1](v))(x, v),
    "vmap": lambda x, v: jax.jit(jax.vmap(f))(jnp.stack([x, v])),
    "second": lambda x, v: jax.jit(jax.grad(lambda x: jnp.vdot(
        v, jax.grad(lambda x: jnp.sum(jnp.sin(f(x))))(x))))(x),
}
result = [ways[way](jnp.asarray(x), jnp.asarray(v)) for way in chosen]
"""


def drawn(draw: random.Random, depth: int, shape: tuple, kinds: tuple, length: int) -> Program:
    """Return a random program, its control flow nested ``depth`` deep."""
    steps = []
    for _ in range(draw.randint(1, length)):
        a, b = draw.randint(0, 7), draw.randint(0, 7)
        kind = draw.choice(("unary", "binary", "reshape", "control", "control"))
        if kind == "control" and depth:
            name = draw.choice(kinds)
            inner = (3,) if name in ("scan", "vmap") else draw.choice(SHAPES)
            count = {"cond": 2, "switch": 3}.get(name, 1)
            steps.append(Step(name, "", a, b, inner, tuple(
                drawn(draw, depth - 1, inner, kinds, 2) for _ in range(count))))
        elif kind == "binary":
            steps.append(Step("binary", draw.choice(sorted(BINARY)), a, b))
        elif kind == "reshape":
            steps.append(Step("reshape", "", a, 0, draw.choice(SHAPES)))
        else:
            steps.append(Step("unary", draw.choice(sorted(UNARY)), a))
    return Program(shape, tuple(steps))


@pytest.mark.parametrize("seed", range(16))
def test_a_program_gives_what_jax_gives(jax_oracle, seed):
    draw = random.Random(seed)
    forward = seed % 4 == 0
    kinds = tuple(k for k in CONTROL if k != ("custom_vjp" if forward else "while"))
    f = drawn(draw, 2, draw.choice(SHAPES[1:]), kinds, 5)
    x, v = np.random.default_rng(seed).normal(size=(2, *f.shape)).astype(np.float32)
    chosen = ["call", "jvp", "vmap"] if forward else ["call", "vjp", "vmap", "second"]
    answer = jax_oracle.run(RUN, text=THERE, written=f.written(), x=x, v=v, chosen=chosen)
    names = {"jax": jax, "jnp": jnp, "text": TEXT, "written": f.written(), "x": x, "v": v,
             "chosen": chosen}
    body = RUN.replace('sys.modules["programs"] = module', "").replace(
        'types.ModuleType("programs")', "sys.modules['programs']").replace(
        'exec(compile(text, "programs.py", "exec"), module.__dict__)', "")
    exec(compile(body, "<here>", "exec"), names)
    agree(names["result"], answer.value, answer.weak, 2e-4)

"""How are many small programs with references asked of Saem and JAX at once?

Each program is a function of no arguments; all run here and, by their source, in one question in
JAX.  They may use ``v`` and ``m``, a vector and a matrix, beside what every program may.

Read before: ``both``.  Read after: ``test_refs``, ``test_refs_transforms``.
Invariant: every expected value comes from JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from both import agree, loaded
from oracle import Oracle
from sources import GIVEN, definitions, function_text

import saem.numpy as jnp

v = jnp.arange(3.)
m = jnp.arange(6.).reshape(2, 3)

_ALL = """
jnp, lax = jax.numpy, jax.lax

def run(text):
    names = dict(jax=jax, jnp=jnp, lax=lax, np=np, v=jnp.arange(3.), m=jnp.arange(6.).reshape(2, 3))
    exec(text, names)
    return names["result"]

result = {name: run(text) for name, text in programs.items()}
"""


class Programs(list[Callable[[], Any]]):
    """Programs that are asked together; as a decorator it takes one more."""

    def __call__(self, program: Callable[[], Any]) -> Callable[[], Any]:
        self.append(program)
        return program


def text_of(program: Callable[[], Any]) -> str:
    """Return the source of ``program`` and its call, with the definitions it needs."""
    text = function_text(program)
    needed = definitions(text, loaded(program.__module__), GIVEN | {"m", "v"})
    return "\n".join([*needed, text, f"result = {program.__name__}()"])


def same_programs(oracle: Oracle, programs: Programs, rtol: float = 2e-6) -> None:
    """Assert that every program returns one value on Saem and on JAX."""
    answer = oracle.run(_ALL, programs={p.__name__: text_of(p) for p in programs})
    for program in programs:
        name = program.__name__
        try:
            agree(program(), answer.value[name], answer.weak[name], rtol)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None

"""How are many small programs with references asked of Saem and JAX at once?

Each program is text that sets ``result``; all run here and, in one question, in JAX.

Read before: ``both``.  Read after: ``test_refs``, ``test_refs_transforms``.
Invariant: every expected value comes from JAX.
"""

from __future__ import annotations

import textwrap

from both import agree, ours
from oracle import Oracle

_ALL = """
jnp, lax = jax.numpy, jax.lax

def run(text):
    names = dict(jax=jax, jnp=jnp, lax=lax, np=np, v=jnp.arange(3.), m=jnp.arange(6.).reshape(2, 3))
    exec(text, names)
    return names["result"]

result = {name: run(text) for name, text in programs.items()}
"""


def same_programs(oracle: Oracle, programs: dict[str, str], rtol: float = 2e-6) -> None:
    """Assert that every program gives one ``result`` on Saem and on JAX."""
    texts = {name: textwrap.dedent(text).strip() for name, text in programs.items()}
    answer = oracle.run(_ALL, programs=texts)
    here = ours(_ALL, programs=texts)
    for name in programs:
        try:
            agree(here[name], answer.value[name], answer.weak[name], rtol)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None

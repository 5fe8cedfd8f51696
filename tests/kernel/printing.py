"""What does a program print, here and in JAX?

Programs are text, run here and in a second process with their output caught; many are asked of JAX
at once, since each question costs it a compilation.

Read before: ``both``.  Read after: ``test_callbacks``, ``test_debugging``.
Invariant: every expected line comes from JAX.
"""

from __future__ import annotations

import textwrap

from both import ours
from oracle import Oracle

_PRELUDE = """
import contextlib, io
jnp, P, lax = jax.numpy, jax.debug.print, jax.lax
x = jnp.arange(3.)

def caught(program):
    out = io.StringIO()
    names = {**globals_here}
    with contextlib.redirect_stdout(out):
        try:
            exec(program, names)
            jax.effects_barrier()
        except Exception as error:
            print("raised", type(error).__name__ if isinstance(error, RuntimeError) else "")
    return out.getvalue()

globals_here = dict(jax=jax, jnp=jnp, P=P, lax=lax, np=np, x=x)
"""


def both_print(oracle: Oracle, programs: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return by name what each program prints (here, in JAX); a raised error prints one line."""
    texts = {name: textwrap.dedent(text).strip() for name, text in programs.items()}
    source = _PRELUDE + "result = {name: caught(text) for name, text in programs.items()}\n"
    here = ours(source, programs=texts)
    there = oracle.run(source, programs=texts).value
    return {name: (here[name], there[name]) for name in programs}

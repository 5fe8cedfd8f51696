"""What does a program print, here and in JAX?

Programs are expressions, or functions of no arguments; they run here and, by their source, in a
second process, with their output caught.  Many are sent to JAX at once, since each question costs
it a compilation.

Read before: ``both``.  Read after: ``test_callbacks``, ``test_debugging``.
Invariant: every expected line comes from JAX.
"""

from __future__ import annotations

import contextlib
import io

import numpy as np
from both import Module, Program, ours, source_of
from oracle import Oracle

import saem as jax
import saem.numpy as jnp
from saem import lax


def caught(run):
    """Return what ``run`` prints; an error that it raises prints one line."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            run()
            jax.effects_barrier()
        except Exception as error:
            print("raised", type(error).__name__ if isinstance(error, RuntimeError) else "")
    return out.getvalue()


def all_caught(texts):
    """Return by name what each of ``texts`` prints."""
    names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np}
    return {name: caught(lambda text=text: exec(text, dict(names)))
            for name, text in texts.items()}


def both_print(oracle: Oracle, programs: dict[str, Program],
               within: Module) -> dict[str, tuple[str, str]]:
    """Return by name what each program prints (here, in JAX).

    Expressions may use the names of the module ``within``, functions those of theirs.
    """
    texts = {name: source_of(program, within) for name, program in programs.items()}
    there = oracle.run(source_of(all_caught), texts=texts).value
    return {name: (caught(lambda program=program: ours(program, within)), there[name])
            for name, program in programs.items()}

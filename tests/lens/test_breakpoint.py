"""Does a breakpoint read its commands in a notebook, wherever the callback runs?"""

from __future__ import annotations

import os
import pathlib
import sys

import pytest
from jupyter_client.manager import start_new_kernel

KERNEL = pathlib.Path(__file__).parents[2] / "kernel"
SETUP = """
import saem as jax, saem.numpy as jnp
def f(x):
    w = jnp.cumsum(jnp.sin(x))
    jax.debug.breakpoint()
    return w.sum()
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kernels start otherwise there")


@pytest.fixture(scope="module")
def notebook():
    """A function that runs a cell, types answers when asked, and returns all that was shown."""
    manager, client = start_new_kernel(
        kernel_name="python3", env={**os.environ, "PYTHONPATH": str(KERNEL)})

    def run(code, *answers):
        shown, typed = [], iter(answers)

        def asked(message):
            shown.append(message["content"]["prompt"])
            client.input(next(typed))

        def output(message):
            content = message["content"]
            shown.append({"stream": lambda: content["text"], "error": lambda: content["evalue"],
                          "execute_result": lambda: content["data"]["text/plain"],
                          }.get(message["msg_type"], str)())

        client.execute_interactive(code, allow_stdin=True, stdin_hook=asked, output_hook=output,
                                   timeout=60)
        return "".join(shown)

    run(SETUP)
    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("call", [
    "f(jnp.arange(3.))", "jax.jit(f)(jnp.arange(3.))",
    # So long that it runs in the background, and another thread asks.
    "r = jax.jit(f)(jnp.arange(3000000.)); jax.effects_barrier(); r",
])
def test_values_are_shown_in_the_cell_and_the_cell_goes_on(notebook, call):
    shown = notebook(call, "p w[:2]", "u", "bt", "c")
    assert "Entering jdb:" in shown and shown.count("(jdb) ") == 4
    assert "0.841" in shown and "a notebook cell" in shown
    assert "Array(" in shown.rsplit("(jdb) ", 1)[-1], "the cell's own result"
    assert "ipykernel" not in shown, "the frames that run cells are not the user's"


def test_q_ends_the_cell_with_an_error_and_the_kernel_lives(notebook):
    shown = notebook("jax.jit(f)(jnp.arange(3.))", "q")
    assert "DebuggerQuit" in shown
    assert notebook("jax.jit(lambda x: (jax.debug.print('still {}', x), x)[1])(1.)").startswith(
        "still 1.0")

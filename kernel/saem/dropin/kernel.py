"""What does the Jupyter kernel "Saem" do before a notebook's first cell?

It is IPython's kernel with ``saem.jax`` loaded: ``import jax`` gives Saem, and the lens shows what
the engine does.  Jupyter starts it by ``python -m saem.dropin.kernel -f <connection file>``, as the
kernelspec states.

Read before: ``dropin.kernelspec``, ``saem.jax``.
Invariant: notebooks written for JAX run in it unchanged (tests/lens/test_dropin_shell.py).
"""

from __future__ import annotations

from ipykernel.kernelapp import IPKernelApp

from saem import dropin


def main() -> None:
    """Start the kernel; the command line is the one IPython's kernel takes."""
    dropin.install()
    app = IPKernelApp.instance()
    app.extra_extensions = [*app.extra_extensions, "saem.jax"]
    app.initialize()
    app.start()


if __name__ == "__main__":
    main()

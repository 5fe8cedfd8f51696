"""What happens at ``%load_ext saem.jax``?

The drop-in is installed, so that ``import jax`` gives Saem in this notebook, and the lens is
loaded, so that the notebook shows what the engine does::

    %load_ext saem.jax
    import jax, flax

Read before: ``saem.dropin``, ``saem.lens``.
Invariant: loading twice is loading once; the real JAX is refused (tests/lens/test_dropin_shell.py).
"""

from __future__ import annotations

from typing import Any

from saem import dropin


def load_ipython_extension(shell: Any) -> None:
    """Install the drop-in in the shell's process and load the lens.

    Raises: RealJaxError when the real JAX was imported before.
    """
    dropin.install()
    shell.extension_manager.load_extension("saem.lens")


def unload_ipython_extension(shell: Any) -> None:
    """Unload the lens.  ``import jax`` gives Saem until the kernel is restarted."""
    shell.extension_manager.unload_extension("saem.lens")

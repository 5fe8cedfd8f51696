"""Where are the tools for batching rules?

The public names of ``jax.custom_batching``.

Read before: ``saem.control.custom_batching``.
Invariant: nothing is defined here but other names for what the control room has.
"""

from saem.control.custom_batching import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

"""Where are the tools for batching rules?

The public names of ``jax.custom_batching``.

Read before: ``saem.derivatives.custom_vmap``.
Invariant: nothing is defined here but other names for what the control room has.
"""

from saem.derivatives.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

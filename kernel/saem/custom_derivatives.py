"""Where are the tools for derivative rules?

The public names of ``jax.custom_derivatives``: ``custom_jvp``, ``custom_vjp`` and what their rules
meet.

Read before: ``saem.control.custom_jvp``, ``saem.control.custom_vjp``.
Invariant: nothing is defined here but other names for what the control room has.
"""

from saem.control.custom_call import SymbolicZero
from saem.control.custom_jvp import custom_jvp
from saem.control.custom_vjp import CustomVJPPrimal, custom_vjp, custom_vjp_primal_tree_values

__all__ = ["CustomVJPPrimal", "SymbolicZero", "custom_jvp", "custom_vjp",
           "custom_vjp_primal_tree_values"]

"""Where are the tools for derivative rules?

The public names of ``jax.custom_derivatives``: functions with rules, and what their rules meet.

Read before: ``saem.derivatives.custom_jvp``, ``saem.derivatives.custom_vjp``,
``saem.derivatives.closure_conversion``.
Invariant: this module defines nothing; it names what the rooms below define.
"""

from saem.core.handles import handle_named
from saem.derivatives.closure_conversion import (
    closure_convert,
    custom_gradient,
    linear_call,
    zero_from_primal,
)
from saem.derivatives.custom_jvp import CustomJVPCall, custom_jvp
from saem.derivatives.custom_rule import SymbolicZero
from saem.derivatives.custom_vjp import (
    CustomVJPCall,
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
from saem.derivatives.optimize_remat import RematOpt

custom_jvp_call_p = handle_named(CustomJVPCall.name)
custom_vjp_call_p = handle_named(CustomVJPCall.name)
remat_opt_p = handle_named(RematOpt.name)

__all__ = ["CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
           "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p",
           "custom_vjp_primal_tree_values", "linear_call", "remat_opt_p", "zero_from_primal"]

"""Where are the tools for derivative rules?

The public names of ``jax.custom_derivatives``: functions with rules, and what their rules meet.

Read before: ``saem.control.custom_jvp``, ``saem.control.custom_vjp``, ``saem.control.closure``.
Invariant: nothing is defined here but other names for what the control room has.
"""

from saem.control.closure import closure_convert, custom_gradient, linear_call, zero_from_primal
from saem.control.custom_call import SymbolicZero
from saem.control.custom_jvp import CustomJVPCall, custom_jvp
from saem.control.custom_vjp import (
    CustomVJPCall,
    CustomVJPPrimal,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
from saem.control.remat_opt import RematOpt
from saem.core.handles import handle_named

custom_jvp_call_p = handle_named(CustomJVPCall.name)
custom_vjp_call_p = handle_named(CustomVJPCall.name)
remat_opt_p = handle_named(RematOpt.name)

__all__ = ["CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
           "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p",
           "custom_vjp_primal_tree_values", "linear_call", "remat_opt_p", "zero_from_primal"]

"""Where are the tools for checkpointing?

The public names of ``jax.ad_checkpoint``.

Read before: ``saem.derivatives.checkpoint``.
Invariant: nothing is defined here but other names for what the control room has.
"""

from saem.derivatives.checkpoint import checkpoint, remat
from saem.derivatives.policies import (
           Offloadable,
           Recompute,
           Saveable,
           checkpoint_name,
           checkpoint_policies,
)
from saem.derivatives.saved_residuals import print_saved_residuals, saved_residuals

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name",
           "checkpoint_policies", "print_saved_residuals", "remat", "saved_residuals"]

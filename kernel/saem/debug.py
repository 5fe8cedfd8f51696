"""What can one look at while a program runs?  (``jax.debug``)"""

from __future__ import annotations

from saem.core.effects import DebugEffect, OrderedDebugEffect
from saem.effects.breakpoints import breakpoint
from saem.effects.callbacks import debug_callback as callback
from saem.effects.debugging import debug_print as print
from saem.effects.debugging import log
from saem.parallel.inspecting import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log",
    "print", "visualize_array_sharding", "visualize_sharding",
]

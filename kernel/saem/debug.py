"""What can one look at while a program runs?  (``jax.debug``)"""

from __future__ import annotations

from saem.control.breakpoints import breakpoint
from saem.control.callbacks import debug_callback as callback
from saem.control.debugging import debug_print as print
from saem.control.debugging import log
from saem.control.inspecting import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)
from saem.core.effects import DebugEffect, OrderedDebugEffect

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log",
    "print", "visualize_array_sharding", "visualize_sharding",
]

"""How do I choose the layout of an array?  (``jax.experimental.layout``)

See ``saem.placement.layouts``.
"""

from __future__ import annotations

from saem.ops.constraints import with_layout_constraint
from saem.placement.layouts import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]

"""How does an array lie in memory?  (``jax.experimental.layout``)  See ``saem.xla.storage``."""

from __future__ import annotations

from saem.control.formats import with_layout_constraint
from saem.xla.storage import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]

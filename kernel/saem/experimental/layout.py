"""How does an array lie in memory?  (``jax.experimental.layout``)  See ``saem.control.formats``."""

from __future__ import annotations

from saem.control.formats import Format, Layout, with_layout_constraint

__all__ = ["Format", "Layout", "with_layout_constraint"]

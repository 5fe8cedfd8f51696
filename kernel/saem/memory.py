"""Which kinds of memory may a value lie in?  (``jax.memory``)  See ``saem.xla.devices``."""

from __future__ import annotations

from saem.xla.devices import MemorySpace as Space

__all__ = ["Space"]

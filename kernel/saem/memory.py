"""Which kinds of memory may a value lie in?  (``jax.memory``)  See ``saem.core.memory_spaces``."""

from __future__ import annotations

from saem.core.memory_spaces import MemorySpace as Space

__all__ = ["Space"]

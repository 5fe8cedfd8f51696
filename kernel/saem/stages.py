"""What are the public stages of compilation?  See ``saem.control.stages``."""

from __future__ import annotations

from saem.control.stages import ArgInfo, Compiled, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced"]

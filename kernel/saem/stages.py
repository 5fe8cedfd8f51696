"""What are the public stages of compilation?  See ``saem.jit.stages``."""

from __future__ import annotations

from typing import Any

from saem.jit.stages import ArgInfo, Compiled, Lowered, Traced, Wrapped

CompilerOptions = dict[str, Any]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

"""How does Python write into a program's buffers?  (``jax.experimental.buffer_callback``)

See ``saem.effects.buffers``.
"""

from __future__ import annotations

from saem import _jaxlib
from saem.effects.buffers import buffer_callback

Buffer = _jaxlib.Buffer
ExecutionContext = _jaxlib.ExecutionContext
ExecutionStage = _jaxlib.ExecutionStage

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]

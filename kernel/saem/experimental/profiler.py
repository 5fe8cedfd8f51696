"""What did XLA measure of each instruction?  (``jax.experimental.profiler``)

Read before: ``saem.profiler``, which records traces.
"""

from __future__ import annotations

from saem import _jaxlib

__all__ = ["get_profiled_instructions_proto"]


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """Return the serialized ProfiledInstructionsProto of the trace in ``tensorboard_dir``.

    That is the folder ``plugins/profile/<run>`` of a log.  Only traces of NVIDIA GPUs have one.
    """
    return _jaxlib.profiler.get_profiled_instructions_proto(tensorboard_dir)

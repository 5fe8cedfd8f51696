"""How is a function divided among devices as its author says?

``jax.experimental.custom_partitioning``; see ``saem.control.partitioning``.
"""

from __future__ import annotations

from saem.control.partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

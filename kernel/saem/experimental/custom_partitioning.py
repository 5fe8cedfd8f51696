"""How is a function divided among devices as its author says?

``jax.experimental.custom_partitioning``; see ``saem.parallel.custom_partitioning``.
"""

from __future__ import annotations

from saem.parallel.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

"""How does an author define how a function is divided among devices?

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

"""How do two values get the same sharding?  (``jax.experimental.shard_alike``)

See ``saem.parallel.shard_alike``.
"""

from __future__ import annotations

from saem.parallel.shard_alike import shard_alike

__all__ = ["shard_alike"]

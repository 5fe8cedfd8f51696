"""How are two values cut alike?  (``jax.experimental.shard_alike``)  See ``saem.control.alike``."""

from __future__ import annotations

from saem.control.alike import shard_alike

__all__ = ["shard_alike"]

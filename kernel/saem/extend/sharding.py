"""How does XLA write shardings down?  (``jax.extend.sharding``)

Read before: ``placement.shardings``.
Invariant: what is written reads back as the same sharding.
Source: the documentation of jax.extend.sharding.
"""

from __future__ import annotations

from typing import Any

from saem import _jaxlib

GSPMDSharding = _jaxlib.GSPMDSharding


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Return the OpSharding that ``sharding`` writes."""
    made = _jaxlib.OpSharding()
    made.ParseFromString(sharding)
    return made


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Return the HloSharding that ``sharding`` writes."""
    return _jaxlib.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """Return ``sharding`` as bytes."""
    return sharding.to_proto().SerializeToString()


__all__ = ["GSPMDSharding", "get_hlo_sharding_from_serialized_proto",
           "get_op_sharding_from_serialized_proto", "get_serialized_proto_from_hlo_sharding"]

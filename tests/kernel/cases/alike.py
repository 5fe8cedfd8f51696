"""Cases of ``control/alike.py``: the identity on two values."""

from __future__ import annotations

from cases import case
from saem.parallel.shard_alike import ShardAlike

CASES = [case(ShardAlike(), "f32[3]", "f32[3]"), case(ShardAlike(), "f32[2,3]", "i32[2,3]")]

"""Which operations are scheduled together?  (``jax.experimental.scheduling_groups``)

See ``saem.experimental.marks``.
"""

from __future__ import annotations

from saem.experimental.marks import scheduling_group, xla_metadata_call

__all__ = ["scheduling_group", "xla_metadata_call"]

"""How do operations get attributes for XLA?  (``jax.experimental.xla_metadata``)

See ``saem.experimental.marks``.
"""

from __future__ import annotations

from saem.experimental.marks import set_xla_metadata

__all__ = ["set_xla_metadata"]

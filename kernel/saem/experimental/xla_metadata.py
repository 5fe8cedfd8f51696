"""How do operations get attributes for XLA?  (``jax.experimental.xla_metadata``)

See ``saem.control.marks``.
"""

from __future__ import annotations

from saem.control.marks import set_xla_metadata

__all__ = ["set_xla_metadata"]

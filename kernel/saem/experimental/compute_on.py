"""On which part of the machine is something computed?  (``jax.experimental.compute_on``)

See ``saem.experimental.marks``.
"""

from __future__ import annotations

from saem.experimental.marks import compute_on, compute_on2

__all__ = ["compute_on", "compute_on2"]

"""How do libraries mark that their frames are not the user's?  (``jax.extend.source_info_util``)

Read before: ``core.source``.
Invariant: equations and errors never name a file that was excluded.
"""

from __future__ import annotations

from saem.core.source import exclude as register_exclusion

__all__ = ["register_exclusion"]

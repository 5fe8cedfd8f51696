"""What are the decompositions under ``saem.numpy.linalg``?  (``jax.lax.linalg``)

The public names of that namespace; each is defined in ``saem.ops``, the place to read.

Read before: ``saem.lax``.
Invariant: nothing is defined here but other names for what the ops room has.
"""

from __future__ import annotations

from typing import Any

from saem.core.handles import primitive_called


def __getattr__(name: str) -> Any:
    """Return the primitive ``linalg.cholesky_p`` by its name (see ``saem.core.handles``)."""
    handle = primitive_called(name) if name.endswith("_p") else None
    if handle is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return handle

"""By which older name do libraries know ``jit`` over several devices?  (``jax.experimental.pjit``)

Of the module only ``pjit`` is here: it is ``jax.jit``, and as in JAX using the name is deprecated.

Read before: ``jit.decorator``.
Invariant: ``pjit(f, …)`` is what ``jit(f, …)`` is.
"""

from __future__ import annotations

import warnings
from typing import Any

from saem.jit.decorator import jit


def __getattr__(name: str) -> Any:
    if name != "pjit":
        raise AttributeError(f"module 'jax.experimental.pjit' has no attribute {name!r}")
    warnings.warn("jax.experimental.pjit.pjit is deprecated: use jax.jit.", DeprecationWarning,
                  stacklevel=2)
    return jit


__all__: list[str] = []

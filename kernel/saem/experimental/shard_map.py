"""Where was ``shard_map`` before it became public?  Here, with an older name of an option.

As in JAX the name is deprecated, and importing it is what warns.

Read before: ``parallel.shard_map``.
Invariant: it is ``saem.shard_map``, and its documentation has that name.
Source: the documentation of jax.experimental.shard_map.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from saem.parallel import shard_map as current


def _shard_map(f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True
               ) -> Callable:
    """Return ``saem.shard_map`` of ``f``; ``check_rep`` is what is now ``check_vma``."""
    return current.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                             check_vma=check_rep)


_shard_map.__name__ = _shard_map.__qualname__ = "shard_map"


def __getattr__(name: str) -> Any:
    if name != "shard_map":
        raise AttributeError(f"module 'jax.experimental.shard_map' has no attribute {name!r}")
    warnings.warn("jax.experimental.shard_map is deprecated. Use jax.shard_map instead.",
                  DeprecationWarning, stacklevel=2)
    return _shard_map


__all__: list[str] = []

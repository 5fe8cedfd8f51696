"""Where was ``shard_map`` before it became public?  Here, with older names of its options.

Read before: ``parallel.shard_map``.
Invariant: it is ``saem.shard_map``, and its documentation has that name.
Source: the documentation of jax.experimental.shard_map.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from saem.parallel import shard_map as current


def shard_map(f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True,
              auto: Any = frozenset()) -> Callable:
    """Return ``saem.shard_map`` of ``f``; ``auto`` names the axes that are not manual."""
    warnings.warn("jax.experimental.shard_map is deprecated. Use jax.shard_map instead.",
                  DeprecationWarning, stacklevel=2)
    names = frozenset(mesh.axis_names) - frozenset(auto)
    return current.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                             axis_names=names, check_vma=check_rep)


__all__ = ["shard_map"]

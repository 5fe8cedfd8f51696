"""By which older name do libraries know ``jit`` over several devices?  (``jax.experimental.pjit``)

Of the module only ``pjit`` is here: it is ``jax.jit``, whose specs may also stand on the mesh of
``with mesh:``.  As in JAX using the name is deprecated.

Read before: ``jit.decorator``.
Invariant: ``pjit(f, …)`` is what ``jit(f, …)`` is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from saem.core import tree
from saem.jit.decorator import jit
from saem.ops.constraints import is_place
from saem.placement.meshes import mesh_entered
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding


def __getattr__(name: str) -> Any:
    if name != "pjit":
        raise AttributeError(f"module 'jax.experimental.pjit' has no attribute {name!r}")
    warnings.warn("jax.experimental.pjit.pjit has been deprecated. Please use `jax.jit` instead.",
                  DeprecationWarning, stacklevel=2)
    return pjit_


def pjit_(fun: Callable, in_shardings: Any = None, out_shardings: Any = None, **options: Any
          ) -> Callable:
    """Return ``jit(fun, …)``; specs stand on the mesh of ``with mesh:`` if there is one."""

    def on_mesh(specs: Any) -> Any:
        mesh = mesh_entered.value
        return specs if mesh is None else tree.map_(
            lambda s: NamedSharding(mesh, s) if isinstance(s, PartitionSpec) else s, specs,
            is_leaf=is_place)

    return jit(fun, in_shardings=on_mesh(in_shardings), out_shardings=on_mesh(out_shardings),
               **options)


__all__: list[str] = []

"""Which mesh do older libraries find in force?  (``jax.interpreters.pxla``)

Of the module only ``thread_resources`` is here, and as in JAX it is deprecated.

Read before: ``placement.meshes``.
Invariant: ``thread_resources.env.physical_mesh`` is the mesh that ``with mesh:`` put in force.
"""

from __future__ import annotations

import warnings
from typing import Any

from saem.core import lazy
from saem.placement.meshes import Mesh, concrete_mesh, mesh_entered


class _Environment:
    @property
    def physical_mesh(self) -> Mesh:
        return mesh_entered.value or concrete_mesh()


class _ThreadResources:
    env = _Environment()


_thread_resources = _ThreadResources()


def __getattr__(name: str) -> Any:
    if name != "thread_resources":
        raise lazy.missing(__name__, name)
    warnings.warn("jax.interpreters.pxla.thread_resources is deprecated: use jax.set_mesh(mesh) "
                  "and jax.sharding.get_mesh().", DeprecationWarning, stacklevel=2)
    return _thread_resources


__all__: list[str] = []

"""How is a primitive run by XLA alone?  (``jax.interpreters.xla``)

Read before: ``jit.stages``.
Invariant: what it computes is what the primitive computes inside jit.
"""

from __future__ import annotations

import functools
from typing import Any

from saem.core.handles import Handle
from saem.jit.stages import jit


def apply_primitive(prim: Handle, *args: Any, **params: Any) -> Any:
    """Compile ``prim`` with ``params`` and run it, as ``p.def_impl(partial(apply_primitive, p))``
    asks."""
    return jit(functools.partial(prim.bind, **params))(*args)


__all__ = ["apply_primitive"]

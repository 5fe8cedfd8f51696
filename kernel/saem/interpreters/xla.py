"""How is a primitive run by XLA alone?  (``jax.interpreters.xla``)

Read before: ``jit.decorator``.
Invariant: what it computes is what the primitive computes inside jit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from saem.core import lazy
from saem.core.dtypes import canonicalize_dtype
from saem.core.handles import Handle
from saem.jit.decorator import jit


def apply_primitive(prim: Handle, *args: Any, **params: Any) -> Any:
    """Compile ``prim`` with ``params`` and run it, as ``p.def_impl(partial(apply_primitive, p))``
    asks."""
    return jit(functools.partial(prim.bind, **params))(*args)


# From a class to what makes an array of its values; ``core.pytype_aval_mappings`` is what decides
# whether they are taken.  Libraries add classes that wrap NumPy arrays.
canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = {
    np.ndarray: lambda x: x.astype(canonicalize_dtype(x.dtype), copy=False)}

__getattr__ = lazy.says_what_is_left_out(__name__)

__all__ = ["apply_primitive", "canonicalize_dtype_handlers"]

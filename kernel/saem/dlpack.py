"""How do arrays of other libraries come here without a copy?  (``jax.dlpack``)

Read before: ``numpy.creation``.
Invariant: nothing is defined here that jnp.from_dlpack does not do.
"""

from __future__ import annotations

from typing import Any

from saem import numpy as jnp
from saem.core import dtypes, errors


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """Return as an array what another library offers through ``__dlpack__``.

    Raises: TypeError for what offers nothing.

    >>> jax.dlpack.from_dlpack(np.array([1, 2], dtype=np.int32))
    Array([1, 2], dtype=int32)
    """
    if not hasattr(external_array, "__dlpack__") or not hasattr(
            external_array, "__dlpack_device__"):
        raise errors.explained(
            errors.ArgumentTypeError, "dlpack.C1",
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods.",
            advice="Pass the array itself, not a capsule made of it.")
    return jnp.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Return whether arrays of ``dtype`` can be handed over.

    >>> jax.dlpack.is_supported_dtype(jnp.float32)
    True
    """
    kind = jnp.dtype(dtype)
    if kind == jnp.bfloat16:
        return True
    return not dtypes.is_extended(kind) and kind.kind in "biufc" and kind.num < 24


__all__ = ["from_dlpack", "is_supported_dtype"]

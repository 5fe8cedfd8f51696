"""How do programs for any array library find out what ``jax.numpy`` can do?

The Python array API standard lets a program query a namespace for its abilities, its dtypes and its
devices.

Read before: nothing.
Source: Python array API standard 2024.12, inspection API.
Invariant: the answers are jax.numpy's (tests/kernel/numpy/test_array_api.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core.config import enable_x64
from saem.placement.devices import devices
from saem.typing import DTypeLike

VERSION = "2024.12"

_SIGNED, _UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
_REAL, _COMPLEX = ("float32", "float64"), ("complex64", "complex128")
KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


class ArrayNamespaceInfo:
    """What the namespace can do, and with which dtypes and devices.

    >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """

    def capabilities(self) -> dict[str, Any]:
        """Return which optional parts of the standard there are.

        Inside programs sizes must be known, so boolean masks and sizes that depend on values are
        not promised.
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """Return None: where an array lies is left open until one is committed to a device."""

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Return the dtypes of arrays that are made without naming one; all devices have these."""
        bits = 64 if enable_x64.value else 32
        return {
            "real floating": np.dtype(f"float{bits}"),
            "complex floating": np.dtype(f"complex{2 * bits}"),
            "integral": np.dtype(f"int{bits}"),
            "indexing": np.dtype(f"int{bits}"),
        }

    def devices(self) -> list[Any]:
        """Return all devices, and None for the one that is chosen when none is named."""
        return [None, *devices()]

    def dtypes(self, *, device: Any = None,
               kind: str | tuple[str, ...] | None = None) -> dict[str, DTypeLike]:
        """Return the standard's dtypes of a kind, or of several; all of them if None.

        Those of 64 bits are there where ``jax_enable_x64`` is on.
        Raises: KeyError for an unknown kind.
        """
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for one in kinds:
            if one not in KINDS:
                raise KeyError(f"{one!r} is no kind of dtypes; the kinds are {', '.join(KINDS)}")
        wide = () if enable_x64.value else ("int64", "uint64", "float64", "complex128")
        return {name: np.dtype(name) for one in kinds for name in KINDS[one] if name not in wide}


def namespace_info() -> ArrayNamespaceInfo:
    """Return what the standard lets programs ask of a namespace.

    >>> sorted(jnp.__array_namespace_info__().dtypes(kind="signed integer"))
    ['int16', 'int32', 'int8']
    """
    return ArrayNamespaceInfo()

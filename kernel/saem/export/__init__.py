"""How is a compiled function handed to another process?  (``jax.export``)

Read before: ``export.exported``.
Source: the documentation of jax.export.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core.errors import explained
from saem.export.exported import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from saem.export.file_format import (
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)

__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize",
    "export", "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape",
]


def _refused(name: str) -> Exception:
    return explained(
        NotImplementedError, "export.symbolic",
        f"{name}: symbolic shapes are not supported; every program has fixed shapes.",
        advice="Export one program for each shape, or pad arguments to one shape.")


class SymbolicScope:
    """Would hold the constraints of symbolic dimensions, which programs here do not have."""

    def __init__(self, constraints_str: Sequence[str] = ()):
        raise _refused("SymbolicScope")


def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (), scope: Any = None,
                   like: Sequence[int | None] | None = None) -> tuple[int, ...]:
    """Return the shape that ``shape_spec`` says in numbers, as in ``"2, 3"``.

    Raises: NotImplementedError for a dimension that is a name.
    """
    words = [word.strip() for word in (shape_spec or "").strip(" ()").split(",")]
    if not all(word.isdecimal() for word in words if word):
        raise _refused(f"symbolic_shape({shape_spec!r})")
    return tuple(int(word) for word in words if word)


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (),
                        scope: Any = None) -> Any:
    """Raises: NotImplementedError, since programs here have fixed shapes."""
    raise _refused("symbolic_args_specs")


def is_symbolic_dim(p: Any) -> bool:
    """Return whether ``p`` is a symbolic dimension: none is."""
    return False


def __dir__() -> list[str]:
    """Return the public names alone, without the modules of this package."""
    return __all__

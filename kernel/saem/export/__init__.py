"""How is a compiled function handed to another process?  (``jax.export``)

Read before: ``export.exported``, ``export.symbolic``.
Source: the documentation of jax.export.
"""

from __future__ import annotations

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
from saem.export.symbolic import (
    SymbolicScope,
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_shape,
)

__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize",
    "export", "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape",
]


def __dir__() -> list[str]:
    """Return the public names alone, without the modules of this package."""
    return __all__

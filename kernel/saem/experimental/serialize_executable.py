"""How is machine code kept?  (``jax.experimental.serialize_executable``)

See ``saem.export.executable_file``.
"""

from __future__ import annotations

from saem.export.executable_file import deserialize_and_load, serialize

__all__ = ["deserialize_and_load", "serialize"]

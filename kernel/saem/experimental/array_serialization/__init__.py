"""What do libraries that save arrays share?  (``jax.experimental.array_serialization``)

Saem saves no arrays to disk itself: checkpoint libraries do, and use the interface below.
"""

from saem.core import lazy as _lazy

__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.experimental.array_serialization.serialization": "",
})

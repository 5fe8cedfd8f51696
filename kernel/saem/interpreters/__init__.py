"""Where do rules of primitives stand that users define?  (``jax.interpreters``)"""

from saem.core import lazy as _lazy

# From a module to the names it offers here ("" for the module itself).
__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.interpreters.ad": "",
    "saem.interpreters.batching": "",
    "saem.interpreters.mlir": "",
    "saem.interpreters.partial_eval": "",
    "saem.interpreters.pxla": "",
    "saem.interpreters.xla": "",
})

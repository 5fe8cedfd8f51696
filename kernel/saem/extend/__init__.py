"""Where is what libraries built on the engine use?  (``jax.extend``)"""

from saem.core import lazy as _lazy

# From a module to the names it offers here ("" for the module itself).
__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.extend.backend": "",
    "saem.extend.core": "",
    "saem.extend.ifrt_programs": "",
    "saem.extend.linear_util": "",
    "saem.extend.mlir": "",
    "saem.extend.random": "",
    "saem.extend.sharding": "",
    "saem.extend.source_info_util": "",
})

"""Where are the parts of the API that JAX calls experimental?  (``jax.experimental``)"""

from saem.core import lazy as _lazy

# From a module to the names it offers here ("" for the module itself).
__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.control.callbacks": "io_callback",
    "saem.experimental.checkify": "",
    "saem.experimental.jet": "",
    "saem.experimental.shard_map": "",
    "saem.experimental.compilation_cache": "",
    "saem.experimental.layout": "",
    "saem.experimental.compute_on": "",
    "saem.experimental.control_deps": "",
    "saem.experimental.custom_partitioning": "",
    "saem.experimental.scheduling_groups": "",
    "saem.experimental.shard_alike": "",
    "saem.experimental.xla_metadata": "",
    "saem.experimental.serialize_executable": "",
    "saem.experimental.key_reuse": "",
    "saem.experimental.mesh_utils": "",
    "saem.experimental.multihost_utils": "",
    "saem.experimental.ode": "",
    "saem.experimental.random": "",
})

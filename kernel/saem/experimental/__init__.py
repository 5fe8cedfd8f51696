"""Where are the parts of the API that JAX calls experimental?  (``jax.experimental``)"""

from typing import Any

from saem.core import lazy as _lazy

# From a module to the names it offers here ("" for the module itself).
_find, __dir__ = _lazy.namespace(__name__, {
    "saem.core.dtypes": "primal_tangent_dtype",
    "saem.effects.callbacks": "io_callback",
    "saem.ops.extended": "EArray",
    "saem.experimental.array_serialization": "",
    "saem.experimental.checkify": "",
    "saem.experimental.colocated_python": "",
    "saem.experimental.jet": "",
    "saem.experimental.shard_map": "",
    "saem.experimental.compilation_cache": "",
    "saem.experimental.layout": "",
    "saem.experimental.buffer_callback": "",
    "saem.experimental.compute_on": "",
    "saem.experimental.control_deps": "",
    "saem.experimental.custom_partitioning": "",
    "saem.experimental.scheduling_groups": "",
    "saem.experimental.shard_alike": "",
    "saem.experimental.xla_metadata": "",
    "saem.experimental.serialize_executable": "",
    "saem.experimental.hijax": "",
    "saem.experimental.hijax.lowered": "cur_qdd",
    "saem.experimental.key_reuse": "",
    "saem.experimental.mesh_utils": "",
    "saem.experimental.multihost_utils": "",
    "saem.experimental.ode": "",
    "saem.experimental.pjit": "",
    "saem.experimental.profiler": "",
    "saem.experimental.random": "",
    "saem.experimental.rnn": "",
    "saem.experimental.sparse": "",
    "saem.experimental.topologies": "",
})

PALLAS = "leave the fusion to XLA (jax.jit), or write the kernel in C++ and call it with jax.ffi"

# What of JAX's this engine does not have, and what to do instead.
_ABSENT = {
    "fused": "compile the whole with jax.jit, which fuses by itself",
    "jax2tf": "write StableHLO with jax.export",
    "mosaic": "write the kernel in C++ and call it with jax.ffi",
    "pallas": PALLAS,
    "roofline": "read jax.jit(f).lower(x).compile().cost_analysis()",
    "source_mapper": "read places with lower(x).as_text(debug_info=True)",
    "transfer": "move arrays with jax.device_put under jax.distributed",
}


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise _lazy.LeftOut(
            f"module {__name__!r} has no attribute {name!r}. Instead: {_ABSENT[name]}.")
    return _find(name)

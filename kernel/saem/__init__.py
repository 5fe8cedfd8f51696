"""Saem (샘): an array engine to learn from, with JAX's public API, run by XLA through jaxlib.

    import saem as jax
    import saem.numpy as jnp

    def loss(w):
        return jnp.sum((w - 3.0) ** 2)

    jax.grad(loss)(jnp.arange(3.0))          # [-6. -4. -2.]
    jax.jit(loss), jax.vmap(loss)            # compiled; mapped over a stack of examples
    print(jax.make_jaxpr(loss)(1.0))         # the program that the engine sees

The source is meant to be read: begin with ``saem/little.py``, a small engine in one file;
ARCHITECTURE.md says how to go on.
"""

from __future__ import annotations

import typing as _typing
from typing import Any

__version__ = "0.1.0"
__version_info__ = (0, 1, 0)
__saem_version__ = __version__  # stays when `saem.dropin` sets __version__ to that of JAX
__saem__ = True

# jaxlib and NumPy come first, as few calls deep as can be: below `_wiring`, CPython 3.11 would ask
# the system for a new piece of its stack at each call of NumPy's type aliases (20 ms of 125).
from saem._jaxlib import Array, Device  # noqa: I001
from saem import _wiring  # noqa: F401 - the wiring comes first; see the file
from saem import numpy, tree
from saem.jit.jitted import clear_caches
from saem.jit.decorator import jit
from saem.jit.transfers import (
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
    live_arrays,
)
from saem.core import lazy as _lazy
from saem.core.avals import ShapeDtypeStruct
from saem.core.hi_types import typeof
from saem.core.config import (
    config,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    disable_jit,
    enable_checks,
    enable_custom_prng,
    enable_x64,
    explain_cache_misses,
    legacy_prng_key,
    log_compiles,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    softmax_custom_jvp,
    threefry_partitionable,
)
from saem.core.dtypes import float0
from saem.core.jaxpr import evaluate
from saem.placement.devices import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)

if _typing.TYPE_CHECKING:  # loaded when first named
    from saem.transform.derivatives import grad, jvp, linearize, value_and_grad, vjp
    from saem.transform.mapping import vmap

# Names that JAX removed, and what to use instead.
_REMOVED = {"device_put_replicated": "device_put", "device_put_sharded": "device_put"}


# What is loaded when first named: from a module to its names here ("" for the module itself).
_find, __dir__ = _lazy.namespace(__name__, {
    "saem.ad": "",
    "saem.ad_checkpoint": "",
    "saem.api_util": "",
    "saem.custom_batching": "",
    "saem.custom_derivatives": "",
    "saem.effects.callbacks": "pure_callback",
    "saem.placement.environment": "print_environment_info",
    "saem.core.config": "allow_f16_reductions array_garbage_collection_guard auto_pcast "
                        "check_tracer_leaks "
                        "make_user_context no_execution no_tracing thread_guard "
                        "transfer_guard_device_to_device transfer_guard_device_to_host "
                        "transfer_guard_host_to_device",
    "saem.core.dynamic_slices": "ds",
    "saem.core.effects": "effects_barrier",
    "saem.core.leaks": "checking_leaks",
    "saem.core.scopes": "named_call named_scope",
    "saem.debug": "",
    "saem.distributed": "",
    "saem.dlpack": "",
    "saem.dtypes": "",
    "saem.errors": "",
    "saem.example_libraries": "",
    "saem.experimental": "",
    "saem.export": "",
    "saem.extend": "",
    "saem.ffi": "",
    "saem.flatten_util": "",
    "saem.nn": "",
    "saem.image": "",
    "saem.scipy": "",
    "saem.interpreters": "",
    "saem.memory": "",
    "saem.monitoring": "",
    "saem.profiler": "",
    "saem.ref": "",
    "saem.lax": "",
    "saem.lib": "",
    "saem.random": "",
    "saem.sharding": "",
    "saem.stages": "",
    "saem.test_util": "",
    "saem.tree_util": "",
    "saem.typing": "",
    "saem.version": "",
    "saem.derivatives.checkpoint": "checkpoint remat",
    "saem.derivatives.closure_conversion": "closure_convert custom_gradient linear_transpose",
    "saem.derivatives.custom_jvp": "custom_jvp",
    "saem.derivatives.custom_vjp": "custom_vjp",
    "saem.derivatives.policies": "checkpoint_policies",
    "saem.ops.constraints": "reshard",
    "saem.parallel.pmap": "pmap",
    "saem.refs.arrays": "Ref empty_ref free_ref freeze new_ref",
    "saem.parallel.shard_map": "shard_map smap",
    "saem.derivatives.fwd_and_bwd": "fwd_and_bwd",
    "saem.placement.devices": "host_count host_id host_ids process_indices",
    "saem.placement.transfer_guards": "transfer_guard",
    "saem.placement.meshes": "make_mesh set_mesh",
    "saem.placement.partition_spec": "P",
    "saem.placement.shardings": "NamedSharding",
    "saem.placement.spread": "Shard make_array_from_callback make_array_from_process_local_data "
                       "make_array_from_single_device_arrays",
    "saem.transform.compile_time": "ensure_compile_time_eval",
    "saem.transform.derivatives": "grad jvp linearize value_and_grad vjp",
    "saem.transform.jacobians": "hessian jacfwd jacobian jacrev",
    "saem.transform.mapping": "vmap",
    "saem.transform.programs": "eval_shape make_jaxpr",
})


def __getattr__(name: str) -> Any:
    if name in _REMOVED:
        raise AttributeError(f"jax.{name} is deprecated; use jax.{_REMOVED[name]} instead.")
    return _find(name)


__all__ = [
    "Array", "Device", "ShapeDtypeStruct", "block_until_ready", "clear_caches", "config",
    "copy_to_host_async", "debug_infs", "debug_key_reuse", "debug_nans", "default_backend",
    "default_device", "default_matmul_precision", "default_prng_impl", "device_count",
    "device_get", "device_put", "devices", "disable_jit", "dtypes", "enable_checks",
    "enable_custom_prng", "enable_x64", "errors", "eval_shape", "evaluate",
    "explain_cache_misses", "float0", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jit",
    "jvp", "lax", "legacy_prng_key", "linearize", "live_arrays", "local_device_count",
    "local_devices", "log_compiles", "make_jaxpr", "numpy", "numpy_dtype_promotion",
    "numpy_rank_promotion", "process_count", "process_index", "random", "sharding",
    "softmax_custom_jvp", "stages", "threefry_partitionable", "tree", "tree_util", "typeof",
    "typing", "value_and_grad", "vjp", "vmap",
]

"""Which parts of jaxlib does the engine use, and how do its versions differ?

This is the one file that imports jaxlib: a list of names, and every difference between the
supported versions (0.10.2 to 0.12).  Nothing else is here.

Read before: nothing.  Read after: ``saem.core.config`` and ``saem.placement``.
Invariant: no other module imports jaxlib (import-linter, ``make check``), and the real ``jax`` is
never in the same process, because both put their methods on the one ``ArrayImpl`` class.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types

if "jax" in sys.modules and not getattr(sys.modules["jax"], "__saem__", False):
    raise ImportError(
        "saem cannot share a process with jax: both put their methods on jaxlib's one array class. "
        "jax is already imported here. Restart the kernel or process and import only saem; to "
        "compare the two, run jax in a second process."
    )

# XLA writes to stderr as it starts; a learner's first cell should stay clean.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# Where the real JAX needs another jaxlib, ``lesson/prepare.py`` puts ours into a folder of its own.
if "jaxlib" not in sys.modules and os.path.isdir(
        _own := os.path.join(os.path.dirname(os.path.dirname(__file__)), "saem_jaxlib")):
    sys.path.insert(0, _own)

import jaxlib
from jaxlib import _jax

__version__ = jaxlib.version.__version__ if hasattr(jaxlib, "version") else jaxlib.__version__
version_info = tuple(int(part) for part in __version__.split(".")[:3] if part.isdigit())

if not (0, 10, 2) <= version_info < (0, 13):
    raise ImportError(
        f"saem needs jaxlib 0.10 (from 0.10.2 on), 0.11 or 0.12, but found {__version__}. "
        "Try: pip install 'jaxlib>=0.10.2,<0.13', and restart the kernel or process."
    )


class _RefuseJax:
    """An import hook that explains why ``import jax`` cannot follow ``import saem``."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname == "jax":
            raise ImportError(
                "jax cannot be imported into a process where saem already runs: both put their "
                "methods on jaxlib's one array class. Write `import saem as jax`, or run jax in a "
                "second process."
            )
        return None


if not any(type(finder).__name__ == "_RefuseJax" for finder in sys.meta_path):
    sys.meta_path.insert(0, _RefuseJax())

Config = _jax.config.Config
unset = _jax.config.unset
trace_context = _jax.config.trace_context
trace_context_names = getattr(_jax.config, "trace_context_names", None)
jax_jit = _jax.jax_jit
pytree = _jax.pytree
PyTreeDef = _jax.PyTreeDef
registry = _jax.pytree.default_registry()
# It knows Python's own containers; to it an object of any other class is a leaf.
plain_registry = _jax.pytree.PyTreeRegistry()
JaxRuntimeError = _jax.JaxRuntimeError


spec_checks: list = []  # ``placement.shardings`` puts its own here


def _named_sharding() -> type:
    """Return jaxlib's NamedSharding, made to check specs by ``spec_checks``.

    Its constructor looks, once, for a function in a module of the jax package.  For that moment
    stand-ins of these names are there.
    """
    name = "jax._src.named_sharding"
    stand_in = types.ModuleType(name)
    stand_in.check_pspec = lambda mesh, spec, *_more: [
        check(mesh, spec) for check in spec_checks]
    sys.modules.update({name: stand_in, "jax": types.ModuleType("jax")})
    try:
        _jax.NamedSharding(types.SimpleNamespace(size=1, _internal_device_list=None), ())
    finally:
        del sys.modules[name], sys.modules["jax"]
    return _jax.NamedSharding


Array = _jax.Array
ArrayImpl = _jax.ArrayImpl
Client = _jax.Client
Device = _jax.Device
DeviceList = _jax.DeviceList
Sharding = _jax.Sharding
SingleDeviceSharding = _jax.SingleDeviceSharding
NamedSharding = _named_sharding()
GSPMDSharding = _jax.GSPMDSharding
CompileOptions = _jax.CompileOptions
ifrt_programs = getattr(_jax, "ifrt_programs", None)
DeviceAssignment = _jax.DeviceAssignment
LoadedExecutable = _jax.LoadedExecutable
ArrayCopySemantics = _jax.ArrayCopySemantics
HostBufferSemantics = _jax.HostBufferSemantics

# XLA flags by which small CPU programs compile quickly (``compile.quick``): in jaxlib 0.10 alone
# there are two code generators to choose from.
QUICK_OPTIONS = {"xla_cpu_use_fusion_emitters": False} if version_info[:2] == (0, 10) else {}

# XLA flags by which products and reductions are not joined for a library of kernels: up to jaxlib
# 0.11 some of that code is wrong (``compile.faults``).
SOUND_OPTIONS = {
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
} if version_info < (0, 12) else {}

# An XLA flag by which a CPU program runs its parts in one order, not at once (``compile.faults``).
ORDERED_OPTIONS = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}

# XLA flags by which a CPU program rounds each operation as it does alone, since none is joined with
# others (``transform.pullbacks``).
SEPARATE_OPTIONS = {
    "xla_disable_hlo_passes": "fusion,transpose-folding,algsimp",
    "xla_cpu_experimental_ynn_fusion_type":
        "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE",
}

register_custom_call_partitioner = _jax.register_custom_call_partitioner
hlo_module_cost_analysis = _jax.hlo_module_cost_analysis
mlir_module_to_xla_computation = _jax.mlir.mlir_module_to_xla_computation
serialize_portable_artifact = _jax.mlir.serialize_portable_artifact
refine_polymorphic_shapes = _jax.mlir.refine_polymorphic_shapes
deserialize_portable_artifact = _jax.mlir.deserialize_portable_artifact
hlo_to_stablehlo = _jax.mlir.hlo_to_stablehlo
encode_inspect_sharding_callback = _jax.encode_inspect_sharding_callback
make_gloo_tcp_collectives = _jax.make_gloo_tcp_collectives
get_distributed_runtime_service = _jax.get_distributed_runtime_service
get_distributed_runtime_client = _jax.get_distributed_runtime_client
create_preemption_sync_manager = _jax.create_preemption_sync_manager
batched_device_put = _jax.batched_device_put
batched_block_until_ready = _jax.batched_block_until_ready
batched_copy_array_to_devices_with_sharding = _jax.batched_copy_array_to_devices_with_sharding
PjRtLayout = _jax.PjRtLayout
guard_lib = _jax.guard_lib
collect_garbage = _jax.collect_garbage
buffer_to_dlpack_managed_tensor = _jax.buffer_to_dlpack_managed_tensor
dlpack_managed_tensor_to_buffer = _jax.dlpack_managed_tensor_to_buffer
Buffer = _jax.ffi.Buffer
ExecutionContext = _jax.ffi.ExecutionContext
ExecutionStage = _jax.ffi.ExecutionStage
register_custom_call_target = _jax.register_custom_call_target
set_tracer_class = _jax.set_tracer_class
set_typed_int_type = _jax.set_typed_int_type
set_typed_float_type = _jax.set_typed_float_type
set_typed_complex_type = _jax.set_typed_complex_type
set_typed_ndarray_type = _jax.set_typed_ndarray_type
pjit = _jax.pjit
PjitFunctionCache = _jax.PjitFunctionCache
PjitFunction = _jax.PjitFunction


def array_result_handler(aval, sharding, committed: bool):
    """Return what turns one buffer of an execution into an Array of ``aval``."""
    if version_info < (0, 11):
        return _jax.array_result_handler(aval, sharding, committed, True)
    return _jax.array_result_handler(aval, sharding, committed)


# Parts of jaxlib that few programs need: from our name to theirs, imported when first named.
_LATER = {
    "xla_client": "jaxlib.xla_client",
    "hlo": "jaxlib._hlo",
    "profiler": "jaxlib._profiler",
    "profile_data": "jaxlib._profile_data",
    "ir": "jaxlib.mlir.ir",
    "mlir_extension": "jaxlib.mlir._mlir_libs._jax_mlir_ext",
    # The dialects' compiled halves: the Python halves take 50 ms to import, and build nothing here.
    "stablehlo": "jaxlib.mlir._mlir_libs._stablehlo",
    "chlo": "jaxlib.mlir._mlir_libs._chlo",
    "sdy": "jaxlib.mlir._mlir_libs._sdy",
    "lapack": "jaxlib.lapack",
    "plugin_support": "jaxlib.plugin_support",
}
# What ``jaxlib.xla_client`` adds to ``_jax``: who makes a client needs it, with 3 ms of modules.
_OF_XLA_CLIENT = {
    "register_call_target": "register_custom_call_target",
    "register_as_batch_partitionable": "register_custom_call_as_batch_partitionable",
    **{name: name for name in (
        "HloSharding", "OpSharding", "make_cpu_client", "make_c_api_client",
        "load_pjrt_plugin_dynamically", "initialize_pjrt_plugin", "pjrt_plugin_loaded",
        "generate_pjrt_gpu_plugin_options", "register_custom_call_handler",
        "register_custom_type_handler", "register_custom_type")},
}


@functools.cache
def load_lapack() -> None:
    """Register LAPACK's routines, which XLA on CPU calls by name (``lapack_spotrf_ffi``).

    It takes 0.4 s, most of it for SciPy, from which jaxlib takes the routines themselves.
    """
    lapack, xla_client = __getattr__("lapack"), __getattr__("xla_client")
    for platform, targets in lapack.registrations().items():
        for name, function, version in targets:
            xla_client.register_custom_call_target(name, function, platform=platform,
                                                   api_version=version)
    for name in lapack.batch_partitionable_targets():
        xla_client.register_custom_call_as_batch_partitionable(name)
    lapack._lapack.initialize()


def __getattr__(name: str):
    if name in _LATER:
        found = importlib.import_module(_LATER[name])
    elif name in _OF_XLA_CLIENT:
        found = getattr(__getattr__("xla_client"), _OF_XLA_CLIENT[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found

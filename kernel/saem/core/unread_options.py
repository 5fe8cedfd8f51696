"""Which of JAX's options have no effect here?

A program that sets one of them still runs: the value is kept and can be read, and a
warning states once, with the reason, that it changes nothing. The names and defaults are those that
JAX 0.10.2 lists in ``config.values``.

Read after: ``core.config``.
Invariant: an option is here or among the settings (``declared.DECLARED``), never in both.
"""

from __future__ import annotations

import warnings
from typing import Any

_BY_REASON: dict[str, dict[str, Any]] = {
    "it is for devices, drivers or networks that Saem does not set up": {
        "jax_backend_target": "", "jax_xla_backend": "", "jax_pjrt_client_create_options": None,
        "jax_cuda_visible_devices": "all", "jax_rocm_visible_devices": "all",
        "jax_oneapi_visible_devices": "all", "jax_use_magma": "auto",
        "jax_threefry_gpu_kernel_lowering": False, "jax_bcoo_cusparse_lowering": False,
        "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
        "jax_ragged_dot_use_ragged_dot_instruction": True,
        "jax_mock_gpu_topology": "", "mock_num_gpu_processes": 0,
        "jax_sort_devices_by_process_index": True, "jax_check_proxy_envs": True,
        "jax_cpu_collectives_implementation": "gloo",
        "jax_cpu_get_global_topology_timeout_minutes": 5,
        "jax_cpu_get_local_topology_timeout_minutes": 2,
        "jax_cross_host_transfer_socket_address": "",
        "jax_cross_host_transfer_timeout_seconds": None,
        "jax_cross_host_transfer_transfer_size": None,
        "jax_cross_host_transport_addresses": "", "jax_force_dcn_cross_host_transfers": False,
        "jax_distributed_debug": False, "jax_enable_preemption_service": True,
        "jax_enable_recoverability": False, "jax_share_binary_between_hosts": False,
        "jax_share_binary_between_hosts_timeout_ms": 1_200_000,
    },
    "Saem has no Pallas": {
        "jax_mosaic_allow_hlo": False, "jax_pallas_enable_debug_checks": False,
        "jax_pallas_poison_buffers": False, "jax_pallas_use_mosaic_gpu": True,
        "jax_pallas_verbose_errors": False, "jax_use_emit_pipeline_primitive": False,
    },
    "Saem makes no profiles that guide the compiler": {
        "jax_enable_pgle": False, "jax_pgle_aggregation_percentile": 90,
        "jax_pgle_profiling_runs": 3, "jax_compilation_cache_expect_pgle": False,
        "jax_xla_profile_version": 0,
    },
    "the cache on disk has its own key and format": {
        "jax_compilation_cache_check_contents": False,
        "jax_compilation_cache_include_metadata_in_key": False,
        "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
        "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    },
    "programs are written, shown and logged in one way": {
        "jax_include_full_tracebacks_in_locations": True, "jax_traceback_in_locations_limit": 100,
        "jax_hlo_source_file_canonicalization_regex": None, "jax_source_url_schema": None,
        "jax_dump_ir_to": "", "jax_dump_ir_modes": "stablehlo",
        "jax_include_debug_info_in_dumps": True, "jax_pprint_use_color": True,
        "jax_log_checkpoint_residuals": False, "jax_logging_level": "NOTSET",
        "jax_debug_log_modules": "", "jax_compiler_detailed_logging_min_ops": 10,
        "jax_send_traceback_to_runtime": "off", "jax_captured_constants_report_frames": 0,
        "jax_captured_constants_warn_bytes": 2_000_000_000,
        "jax_embedded_constants_max_bytes": 32, "jax_use_simplified_jaxpr_constants": False,
        "jax_serialization_version": 0, "jax_export_calling_convention_version": 10,
        "jax_export_ignore_forward_compatibility": False,
        "jax_use_shardy_partitioner": True, "jax_tracer_error_num_traceback_frames": 5,
    },
    "Saem makes no programs of TensorFlow": {
        "jax2tf_associative_scan_reductions": False, "jax2tf_default_native_serialization": True,
    },
    "it chooses between two ways in which JAX itself is written, or checks one of them": {
        "jax_check_static_indices": False, "jax_custom_vjp3": False, "jax_remat3": False,
        "jax_scan3": False, "jax_use_direct_linearize": True, "jax_disable_bwd_checks": False,
        "jax_disable_vmap_shmap_error": False, "jax_disallow_mesh_context_manager": False,
        "jax_mutable_array_checks": True, "jax_refs_to_pins": False,
        "jax_remove_size_one_mesh_axis_from_type": False,
        "jax_debug_leaked_clients_on_clear_backends": False,
        "jax_experimental_unsafe_xla_runtime_errors": False,
        "eager_constant_folding": False, "check_vma": False,
        "jax_error_checking_behavior_divide": "ignore",
        "jax_error_checking_behavior_nan": "ignore", "jax_error_checking_behavior_oob": "ignore",
    },
}
DEFAULTS = {name: value for group in _BY_REASON.values() for name, value in group.items()}
_REASONS = {name: reason for reason, group in _BY_REASON.items() for name in group}
values: dict[str, Any] = dict(DEFAULTS)
_LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "jax_cpu_collectives_implementation": (None, "gloo", "mpi", "megascale"),
    "jax_use_magma": ("off", "on", "auto"),
    "jax_memory_fitting_level": _LEVELS, "jax_optimization_level": _LEVELS,
    "jax_logging_level": (None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "jax_send_traceback_to_runtime": ("off", "on", "full"),
    "jax_error_checking_behavior_divide": ("ignore", "raise"),
    "jax_error_checking_behavior_nan": ("ignore", "raise"),
    "jax_error_checking_behavior_oob": ("ignore", "raise"),
}
_told: set[str] = set()


def check(name: str, value: Any) -> None:
    """Refuse a ``value`` that the option ``name`` cannot have.

    Raises: ValueError for a text that is not among its choices, or for another kind of value.
    """
    choices, kind = _CHOICES.get(name), type(DEFAULTS[name])
    if choices is not None:
        if not (value is None or isinstance(value, str)) or value not in choices:
            none = "None or " if None in choices else ""
            raise ValueError(f"{name}: new enum value must be {none}in "
                             f"{[c for c in choices if c is not None]}, got {value} of type "
                             f"{type(value)}.")
    elif kind in (int, float) and value is not None:
        if not isinstance(value, (int, kind)):
            raise ValueError(f"{name} needs a value of type {kind.__name__}, got {value!r}.")


def keep(name: str, value: Any) -> None:
    """Keep ``value`` as that of the option ``name``.

    Raises: ValueError for a value that it cannot have.
    Warns: UserWarning, once for each option, where the value is not the default.
    """
    check(name, value)
    values[name] = value
    if value != DEFAULTS[name] and name not in _told:
        _told.add(name)
        warnings.warn(f"{name} changes nothing in Saem: {_REASONS[name]}.", UserWarning,
                      stacklevel=3)

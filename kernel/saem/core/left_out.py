"""Which public names of JAX are left out on purpose, and why?

A name that is neither here nor in this table is missing, and `saem coverage` counts it as such.
Using one of these names raises an error with the reason.

Read before: ``core.lazy``.
Invariant: no name of this table exists (tests/kernel/test_coverage.py).
"""

from __future__ import annotations

LEAKED = "it is an import of the module it stands in, not part of what that module offers"
INTERNAL = "it is an internal of JAX's implementation of the feature, which is built otherwise here"
REMOVED = "JAX deprecated it"
NO_SPARSE_PRIMITIVES = ("operations on BCOO and BCSR are made of gathers, scatters and sorts here, "
                        "and are no primitives of their own; call the function of that name")
UNFINISHED = "JAX's own documentation says that it is under development and will change"
WRITTEN_AS_TEXT = ("the engine writes programs as text, not by this; a rule builds operations of "
                   "its operands, and what the engine is to write in between is a function of "
                   "arrays: mlir.lower_fun(fun, multiple_results=False)(ctx, *operands)")

# Reasons by module; a name is in one module only.
REASONS: dict[str, dict[str, str]] = {
    "lax": {"stage_p": INTERNAL,
            "pvary": "JAX removed it; use lax.pcast(x, axis_name, to='varying')"},
    "numpy": {"fix": "JAX removed it; use jnp.trunc"},
    "": {"jax2tf_associative_scan_reductions": "it is a setting of jax2tf, which is not here",
         "remove_size_one_mesh_axis_from_type": "it is a setting of JAX's move to explicit "
                                                "sharding, which is complete here"},
    "extend": {
        "lowering": WRITTEN_AS_TEXT,
        "pallas": "Pallas is left out on purpose: its kernels are written for TPUs and GPUs",
        "xla": "jaxlib offers no call by which a program of Python becomes a pass of XLA"},
    "interpreters.mlir": dict.fromkeys(
        "AxisContext ConstantHandler LoweringParameters LoweringResult SPMDAxisContext "
        "ShapePolyLoweringState ShardingContext TokenSet core_call_lowering ir_tree_registry "
        "ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun lower_jaxpr_to_module "
        "lowerable_effects merge_mlir_modules register_constant_handler token_type "
        "DEVICE_TO_DEVICE_TYPE RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE Token"
        .split(), WRITTEN_AS_TEXT) | dict.fromkeys(["Mesh", "MeshAxisName"], LEAKED),
    "core": {
        "get_aval": "JAX removed it; use jax.typeof",
        **dict.fromkeys("AbstractToken TraceTag call_impl mapped_aval set_current_trace subjaxprs "
                        "take_current_trace unmapped_aval".split(),
                        "JAX removed it; it is in jax.extend.core"),
        **dict.fromkeys(
            "JaxprPpContext JaxprPpSettings OutputType abstract_token aval_mapping_handlers call "
            "concretization_function_error custom_typechecks literalable_types no_axis_name "
            "trace_ctx traverse_jaxpr_params".split(), REMOVED)},
    "interpreters.pxla": {
        **dict.fromkeys(
            "ArrayMapping Index MeshAxisName MeshComputation MeshExecutable _UNSPECIFIED "
            "are_hlo_shardings_equal array_mapping_to_axis_resources "
            "global_aval_to_result_handler global_avals_to_results_handler global_result_handlers "
            "is_hlo_sharding_replicated op_sharding_to_indices".split(), REMOVED),
        **dict.fromkeys(
            "Chunked MapTracer NoSharding PmapExecutable Replicated ShardedAxis ShardingSpec "
            "Unstacked parallel_callable shard_args spec_to_indices".split(),
            "JAX removed it; use jax.shard_map"),
        "create_compile_options": INTERNAL},
    "interpreters.xla": {"Backend": LEAKED},
    "interpreters.ad": dict.fromkeys(["jvp", "linearize"], INTERNAL),
    "interpreters.partial_eval": dict.fromkeys(
        "Val custom_partial_eval_rules dce_jaxpr_call_rule dce_jaxpr_closed_call_rule "
        "partial_eval_jaxpr_custom_rules".split(), INTERNAL),
    "experimental.mesh_utils": {
        "device_kind_handler_dict": "it lists how JAX lays meshes over TPU tori of each kind"},
    "experimental.jet": {
        **dict.fromkeys(
            "api_util jnp lax register_pytree_node safe_zip tree_flatten tree_structure "
            "tree_unflatten treedef_is_leaf unzip2 weakref_lru_cache".split(), LEAKED),
        **dict.fromkeys(
            "JetTrace JetTracer ZeroSeries ZeroTerm call_param_updaters def_comp def_deriv "
            "deflinear defzero deriv_prop fact jet2 jet_fun jet_rules jet_subtrace linear_prop "
            "traceable zero_prop zero_series zero_term".split(), INTERNAL)},
    "experimental.ode": {
        **dict.fromkeys("custom_derivatives map promote_dtypes_inexact safe_map safe_zip "
                        "tree_leaves tree_map zip".split(), LEAKED),
        "ravel_first_arg_": INTERNAL},
    "experimental.multihost_utils": {
        **dict.fromkeys(["ProcessFailureError", "live_devices"], UNFINISHED),
        **dict.fromkeys("P jnp safe_zip tree_flatten tree_unflatten".split(), LEAKED),
        **dict.fromkeys(
            "global_array_to_host_local_array_impl global_array_to_host_local_array_p "
            "gtl_abstract_eval host_local_array_to_global_array_impl "
            "host_local_array_to_global_array_p ltg_abstract_eval ltg_batcher".split(), INTERNAL)},
    "experimental.sparse": {
        "SparseTracer": INTERNAL,
        **dict.fromkeys(
            "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p "
            "bcoo_sort_indices_p bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p "
            "bcoo_transpose_p bcsr_dot_general_p bcsr_extract_p bcsr_fromdense_p bcsr_todense_p"
            .split(), NO_SPARSE_PRIMITIVES)},
    "experimental.sparse.linalg": dict.fromkeys(["mlir", "sparse"], LEAKED),
    "experimental.sparse.bcoo": {
        **dict.fromkeys(["CUSPARSE_DATA_DTYPES", "CUSPARSE_INDEX_DTYPES"], INTERNAL),
        **dict.fromkeys(
            "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p "
            "bcoo_sort_indices_p bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p "
            "bcoo_transpose_p coo_spmm_p coo_spmv_p".split(), NO_SPARSE_PRIMITIVES),
        **dict.fromkeys(
            "Array ArrayLike Buffer DTypeLike GatherDimensionNumbers GatherScatterMode "
            "canonicalize_axis jnp lax ranges_like remaining safe_zip split_list tree_util "
            "unzip2 vmap".split(), LEAKED)},
    "experimental.source_mapper": dict.fromkeys(
        "MappingsGenerator Pass SourceMap SourceMapDump all_passes canonicalize_filename common "
        "compile_with_env create_mlir_sourcemap filter_passes generate_map generate_sourcemaps hlo "
        "jaxpr mlir register_pass".split(), INTERNAL),
}


# Signatures that are not JAX's, and why; from "module.function" without "jax.".
SIGNATURES: dict[str, str] = {
    "lax.random_gamma_grad": "JAX shows *args; the two operands have names here",
    "export.export": "JAX's last parameter is private (_override_lowering_rules)",
}


def reason(module: str, name: str) -> str | None:
    """Return why ``name`` of ``module`` ("saem.nn") is left out, None if it is not."""
    return REASONS.get(module.partition(".")[2], {}).get(name)

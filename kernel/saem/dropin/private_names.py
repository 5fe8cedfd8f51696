"""Which private names of JAX are offered, and for whom?

Private modules (``jax._src``) are not an interface, and Saem's are others.  A few widely used
libraries import names from there nevertheless.  Each of those names is in the table below, with
Saem's object that does the same and the library that cannot do without it; nothing else under
``jax._src`` can be imported.

Read before: ``dropin.finder``.
Invariant: a name outside the table is an error that explains itself; each name in the table is
found, and the library beside it was read or run (tests/kernel/test_dropin.py).
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, NamedTuple

from saem.core import lazy

ROOT = "jax._src"


class PrivateName(NamedTuple):
    """One row: ``jax._src.<module>.<name>`` is ``source`` ("module:attribute") of Saem."""

    module: str
    name: str
    source: str
    needed_by: str


_STAND_INS = "saem.dropin.stand_ins"
_TEST_TOOLS = "saem.dropin.test_tools"

TABLE = (
    PrivateName("ad_checkpoint", "checkpoint", "saem.ad_checkpoint:checkpoint", "jaxcld 0.2"),
    PrivateName("ad_checkpoint", "saved_residuals", "saem.ad_checkpoint:saved_residuals",
                "haliax 1.4 (its tests)"),
    PrivateName("ad_util", "SymbolicZero", "saem.custom_derivatives:SymbolicZero", "bosdi 0.1"),
    PrivateName("ad_util", "Zero", "saem.interpreters.ad:Zero", "bosdi 0.1"),
    PrivateName("ad_util", "p2tz", f"{_STAND_INS}:p2tz", "jax-finufft 1.3"),
    PrivateName("ad_util", "stop_gradient_p", f"{_STAND_INS}:stop_gradient_p",
                "lineax 0.1 (sets its transpose rule)"),
    PrivateName("api", "_dtype", f"{_STAND_INS}:dtype_of", "pennylane 0.45 (jvp, vjp)"),
    PrivateName("api_util", "_ensure_index_tuple", "saem.core.arguments:as_numbers",
                "jaxloudnorm 0.3"),
    PrivateName("api_util", "infer_argnums_and_argnames",
                f"{_STAND_INS}:infer_argnums_and_argnames", "e3nn-jax 0.21"),
    PrivateName("array", "ArrayImpl", "saem._jaxlib:ArrayImpl", "xtrax 0.4"),
    PrivateName("array", "_reconstruct_array", f"{_STAND_INS}:reconstruct_array",
                "pickles of arrays that JAX wrote (probdiffeq 0.9 ships some)"),
    PrivateName("basearray", "Array", "saem:Array", "jax-ifnt 0.1 (imports the module)"),
    PrivateName("checkify", "Error", "saem.experimental.checkify:Error", "flax.nnx 0.12"),
    PrivateName("checkify", "checkify", "saem.experimental.checkify:checkify", "flax.nnx 0.12"),
    PrivateName("checkify", "user_checks", "saem.experimental.checkify:user_checks",
                "flax.nnx 0.12"),
    PrivateName("compiler", "backend_compile_and_load",
                "saem.compile.executables:backend_compile_and_load",
                "chex 0.1 (restrict_backends)"),
    PrivateName("config", "bool_state", f"{_STAND_INS}:bool_state", "jno 0.4 (solver settings)"),
    PrivateName("config", "numpy_rank_promotion", "saem.core.config:numpy_rank_promotion",
                "quaxed 0.10"),
    PrivateName("core", "AbstractValue", "saem.core:AbstractValue", "quax 0.4"),
    PrivateName("core", "ClosedJaxpr", "saem.extend.core:ClosedJaxpr", "asdex 0.5"),
    PrivateName("core", "DropVar", "saem.extend.core:DropVar", "jaxviz 0.1"),
    PrivateName("core", "Jaxpr", "saem.extend.core:Jaxpr", "asdex 0.5"),
    PrivateName("core", "JaxprEqn", "saem.extend.core:JaxprEqn", "asdex 0.5"),
    PrivateName("core", "JaxprEqnContext", "saem.core.provenance:JaxprEqnContext",
                "brainstate 0.5 (transform)"),
    PrivateName("core", "Literal", "saem.extend.core:Literal", "asdex 0.5"),
    PrivateName("core", "Var", "saem.extend.core:Var", "asdex 0.5"),
    PrivateName("core", "Primitive", "saem.extend.core:Primitive", "jax-md 0.2 (uma)"),
    PrivateName("core", "ShapedArray", "saem.core:ShapedArray",
                "flax.linen 0.12 (fp8_ops), quadax 0.3"),
    PrivateName("core", "ShardingTypeError", "saem.core.sharded:ShardingTypeError",
                "haliax 0.2 (tests)"),
    PrivateName("core", "Trace", "saem.core:Trace", "quax 0.4"),
    PrivateName("core", "TraceTag", "saem.extend.core:TraceTag", "quax 0.4"),
    PrivateName("core", "Tracer", "saem.core:Tracer", "quax 0.4"),
    PrivateName("core", "closed_call_p", "saem.extend.core.calls:closed_call_p",
                "brainstate 0.6 (its tests)"),
    PrivateName("core", "concrete_or_error", "saem.extend.core:concrete_or_error",
                "dynamiqs 0.3"),
    PrivateName("core", "full_lower", f"{_STAND_INS}:full_lower", "quax 0.4"),
    PrivateName("core", "get_opaque_trace_state", "saem.extend.core:get_opaque_trace_state",
                "jno 0.4"),
    PrivateName("core", "is_constant_dim", "saem.extend.readers:is_constant_dim",
                "saiunit 0.5 (jax.core has it until 0.11)"),
    PrivateName("core", "jaxpr_as_fun", "saem.extend.core:jaxpr_as_fun", "quax 0.4"),
    PrivateName("core", "set_current_trace", "saem.extend.core:set_current_trace", "quax 0.4"),
    PrivateName("core", "take_current_trace", "saem.extend.core:take_current_trace", "quax 0.4"),
    PrivateName("core", "trace_ctx", f"{_STAND_INS}:trace_ctx",
                "brainstate 0.5 (make_jaxpr), tests of quax 0.4"),
    PrivateName("core", "trace_state_clean", f"{_STAND_INS}:trace_state_clean", "numpyro 0.22"),
    PrivateName("dispatch", "apply_primitive", "saem.interpreters.xla:apply_primitive",
                "celerite2 0.3 (jax)"),
    PrivateName("dispatch", "wait_for_tokens", "saem.core.effects:effects_barrier",
                "equinox 0.13"),
    PrivateName("core", "unsafe_am_i_under_a_jit",
                "saem.extend.core:unsafe_am_i_under_a_jit_DO_NOT_USE", "jax-shapeguard 0.3"),
    PrivateName("distributed", "global_state", f"{_STAND_INS}:global_state",
                "orbax-checkpoint 0.12"),
    PrivateName("dtypes", "DType", "saem.core.dtypes:DType", "flax.linen 0.12 (fp8_ops)"),
    PrivateName("dtypes", "ExtendedDType", "saem.core.dtypes:ExtendedDType",
                "flax.linen 0.12 (fp8_ops)"),
    PrivateName("dtypes", "TypePromotionError", "saem.core.errors:TypePromotionError",
                "equinox 0.13 (nn.Embedding)"),
    PrivateName("dtypes", "canonicalize_dtype", "saem.dtypes:canonicalize_dtype", "apax 0.14"),
    PrivateName("dtypes", "dtype", f"{_STAND_INS}:dtype_of", "optree 0.20 (integrations.jax)"),
    PrivateName("dtypes", "extended", "saem.core.dtypes:extended", "flax.linen 0.12 (fp8_ops)"),
    PrivateName("dtypes", "finfo", "saem.dtypes:finfo", "flax.linen 0.12 (fp8_ops)"),
    PrivateName("dtypes", "float0", "saem.dtypes:float0", "jax-progress 0.1"),
    PrivateName("dtypes", "result_type", "saem.dtypes:result_type",
                "optree 0.20 (integrations.jax)"),
    PrivateName("dtypes", "supports_inf", f"{_STAND_INS}:supports_inf",
                "flax.linen 0.12 (fp8_ops)"),
    PrivateName("dtypes", "to_complex_dtype", "saem.core.dtypes:complex_dtype",
                "tinygp 0.3 (kernels.quasisep)"),
    PrivateName("flatten_util", "ravel_pytree", "saem.flatten_util:ravel_pytree",
                "blackjax 1.7 (smc)"),
    PrivateName("interpreters.ad", "JVPTracer", "saem.transform.jvp:JVPTracer",
                "awkward 2.14 (its kernels)"),
    PrivateName("interpreters.ad", "LinearizeTracer", "saem.transform.linearize:PartialTracer",
                "awkward 2.14 (its kernels)"),
    PrivateName("interpreters.ad", "Zero", "saem.interpreters.ad:Zero", "jax-finufft 1.3"),
    PrivateName("interpreters.ad", "add_tangents", "saem.interpreters.ad:add_tangents",
                "jax-finufft 1.3"),
    PrivateName("interpreters.ad", "is_undefined_primal",
                "saem.interpreters.ad:is_undefined_primal", "jax-finufft 1.3"),
    PrivateName("interpreters.ad", "primitive_jvps", "saem.interpreters.ad:primitive_jvps",
                "jax-finufft 1.3"),
    PrivateName("interpreters.ad", "primitive_transposes",
                "saem.interpreters.ad:primitive_transposes", "jax-finufft 1.3"),
    PrivateName("interpreters.batching", "BatchTrace", "saem.transform.vmap:BatchTrace",
                "brainstate 0.5"),
    PrivateName("interpreters.batching", "BatchTracer", "saem.transform.vmap:BatchTracer",
                "brainstate 0.5 (vmap)"),
    PrivateName("interpreters.batching", "is_vmappable", "saem.transform.vmappable:is_registered",
                "jaxoplanet 0.2 (object_stack)"),
    PrivateName("interpreters.batching", "make_iota", f"{_STAND_INS}:make_iota",
                "brainstate 0.5"),
    PrivateName("interpreters.batching", "moveaxis", "saem.interpreters.batching:moveaxis",
                "jax-finufft 1.3"),
    PrivateName("interpreters.batching", "primitive_batchers",
                "saem.interpreters.batching:primitive_batchers", "jax-finufft 1.3"),
    PrivateName("interpreters.batching", "to_elt", f"{_STAND_INS}:to_elt", "brainstate 0.5"),
    PrivateName("interpreters.mlir", "make_ir_context", "saem.interpreters.mlir:make_ir_context",
                "cadjoint 0.1, visu-hlo 1.1"),
    PrivateName("interpreters.mlir", "register_lowering",
                "saem.interpreters.mlir:register_lowering", "jax-finufft 1.3"),
    PrivateName("interpreters.partial_eval", "JaxprTracer",
                "saem.interpreters.partial_eval:JaxprTracer", "nlls-gram 2.13"),
    PrivateName("interpreters.partial_eval", "dce_jaxpr",
                "saem.interpreters.partial_eval:dce_jaxpr", "asdex 0.5"),
    PrivateName("lax.control_flow", "scan", "saem.lax:scan", "pytensor 2.38 (link.jax)"),
    PrivateName("lax.linalg", "triangular_solve", "saem.lax.linalg:triangular_solve", "gpfy 0.7"),
    PrivateName("lax", "linalg", "saem.lax:linalg", "unxt 1.11"),
    PrivateName("lib.mlir", "ir", "saem.extend.mlir:ir", "axnt 1.1 (its tests)"),
    PrivateName("lib.mlir.dialects", "hlo", "saem.extend.mlir.dialects:stablehlo",
                "JAX's own tutorial on primitives"),
    PrivateName("lib.xla_client", "XlaRuntimeError", "saem._jaxlib:JaxRuntimeError",
                "dynamiqs 0.3"),
    PrivateName("literals", "TypedComplex", "saem.core.literals:TypedComplex", "quax 0.4"),
    PrivateName("literals", "TypedFloat", "saem.core.literals:TypedFloat", "quax 0.4"),
    PrivateName("literals", "TypedInt", "saem.core.literals:TypedInt", "quax 0.4"),
    PrivateName("mesh", "get_concrete_mesh", "saem.placement.meshes:get_mesh", "haliax 0.2"),
    PrivateName("mesh", "use_abstract_mesh", "saem.sharding:use_abstract_mesh", "jaxtyc 0.7"),
    PrivateName("nn.functions", "glu", "saem.nn:glu", "sbijax 0.4"),
    PrivateName("nn.initializers", "constant", "saem.nn.initializers:constant", "pobax 0.0"),
    PrivateName("nn.initializers", "orthogonal", "saem.nn.initializers:orthogonal", "pobax 0.0"),
    PrivateName("numpy.array_methods", "_IndexUpdateHelper", "saem.numpy.at:IndexUpdateHelper",
                "unxt 1.11"),
    PrivateName("numpy.array_methods", "_IndexUpdateRef", "saem.numpy.at:IndexUpdateRef",
                "unxt 1.11"),
    PrivateName("numpy.einsum", "_einsum", f"{_STAND_INS}:contract_in_turn", "haliax 0.2 (dot)"),
    PrivateName("numpy.index_tricks", "CClass", f"{_STAND_INS}:CClass", "quaxed 0.10"),
    PrivateName("numpy.index_tricks", "RClass", f"{_STAND_INS}:RClass", "quaxed 0.10"),
    *(PrivateName("numpy.setops", f"_{name}", f"saem.numpy.sets:{name}", "unxt 2.0 (its tests)")
      for name in ("UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult")),
    PrivateName("numpy.ufuncs", "ufunc", "saem.numpy:ufunc", "jumanji 1.1 (by esquilax)"),
    PrivateName("numpy.util", "check_arraylike", "saem.numpy.promote:check_arraylike",
                "hidennsim 1.1"),
    PrivateName("numpy.util", "promote_args_inexact", "saem.numpy.promote:promote_args_inexact",
                "gwkokab 0.3"),
    PrivateName("numpy.util", "promote_dtypes_complex", f"{_STAND_INS}:promote_dtypes_complex",
                "s2fft 1.5"),
    PrivateName("numpy.util", "promote_dtypes_inexact", f"{_STAND_INS}:promote_dtypes_inexact",
                "orthax 0.2 (polyutils)"),
    PrivateName("numpy.vectorize", "_apply_excluded", f"{_STAND_INS}:apply_excluded",
                "quaxed 0.10"),
    PrivateName("numpy.vectorize", "_check_output_dims", f"{_STAND_INS}:check_output_dims",
                "quaxed 0.10"),
    PrivateName("numpy.vectorize", "_parse_gufunc_signature",
                "saem.numpy.functional:parse_signature", "quaxed 0.10, galax 0.0.2"),
    PrivateName("numpy.vectorize", "_parse_input_dimensions",
                f"{_STAND_INS}:parse_input_dimensions", "quaxed 0.10, galax 0.0.2"),
    PrivateName("pjit", "auto_axes", "saem.sharding:auto_axes", "jaxns 3.0"),
    PrivateName("pjit", "jit_p", "saem.extend.core.primitives:jit_p",
                "quax 0.4, pennylane 0.45 (capture)"),
    PrivateName("pretty_printer", "text", "jaxlib._pretty_printer:text", "haliax 0.2"),
    PrivateName("public_test_util", "check_close", f"{_STAND_INS}:check_close",
                "tinygp 0.3 (test_utils)"),
    PrivateName("random", "key", "saem.random:key", "cd-dynamax 0.5 (imports the module)"),
    *(PrivateName("random.threefry2x32", name, f"{_STAND_INS}:{name}", "quax 0.4 (examples.prng)")
      for name in ("threefry_random_bits", "threefry_seed", "threefry_split")),
    PrivateName("scipy.special", "gammaln", "saem.scipy.special:gammaln", "jaxns 3.0"),
    PrivateName("scipy.special", "logsumexp", "saem.scipy.special:logsumexp",
                "jaxns 3.0 (by jaxctx)"),
    PrivateName("sharding_impls", "UNSPECIFIED", f"{_STAND_INS}:UNSPECIFIED", "brainstate 0.5"),
    PrivateName("sharding_impls", "canonicalize_sharding", f"{_STAND_INS}:canonicalize_sharding",
                "jaxns 3.0"),
    PrivateName("source_info_util", "current", "saem.extend.source_info_util:current",
                "brainstate 0.5"),
    PrivateName("state.indexing", "Slice", "saem.core.dynamic_slices:Slice", "haliax 0.2"),
    PrivateName("state.types", "AbstractRef", "saem.core.refs:AbstractRef", "flax.nnx 0.12"),
    PrivateName("traceback_util", "_exclude_paths", "saem.core.source:_excluded", "flax 0.12"),
    PrivateName("test_util", "JaxTestCase", f"{_TEST_TOOLS}:JaxTestCase",
                "tests of jax-scipy-spatial 0.2, sglang-jax 0.1"),
    PrivateName("test_util", "JaxTestLoader", f"{_TEST_TOOLS}:JaxTestLoader",
                "tests of jax-scipy-spatial 0.2, sglang-jax 0.1"),
    PrivateName("test_util", "assert_num_jit_and_pmap_compilations",
                f"{_TEST_TOOLS}:assert_num_jit_and_pmap_compilations", "tests of plastax 0.1"),
    PrivateName("test_util", "check_close", f"{_STAND_INS}:check_close",
                "tests of jax-finufft 1.3"),
    PrivateName("test_util", "check_grads", "saem.test_util:check_grads",
                "tests of jax-finufft 1.3"),
    PrivateName("test_util", "count_pjit_cpp_cache_miss",
                f"{_TEST_TOOLS}:count_pjit_cpp_cache_miss", "tests of sglang-jax 0.1"),
    PrivateName("test_util", "dtypes", f"{_TEST_TOOLS}:dtypes", "tests of jax-scipy-spatial 0.2"),
    PrivateName("test_util", "is_device_tpu_at_least", f"{_TEST_TOOLS}:is_device_tpu_at_least",
                "tests of sglang-jax 0.1"),
    PrivateName("test_util", "rand_default", f"{_TEST_TOOLS}:rand_default",
                "tests of jax-scipy-spatial 0.2"),
    PrivateName("test_util", "sample_product", f"{_TEST_TOOLS}:sample_product",
                "tests of jax-scipy-spatial 0.2"),
    PrivateName("test_util", "with_config", f"{_TEST_TOOLS}:with_config",
                "tests of sglang-jax 0.1"),
    PrivateName("traceback_util", "api_boundary", f"{_STAND_INS}:api_boundary", "flax 0.12"),
    PrivateName("traceback_util", "filter_traceback", f"{_STAND_INS}:filter_traceback",
                "brainstate 0.5 (debug_nan)"),
    PrivateName("traceback_util", "include_frame", f"{_STAND_INS}:include_frame",
                "equinox 0.13"),
    PrivateName("traceback_util", "register_exclusion", "saem.core.source:exclude",
                "equinox 0.13, flax 0.12, jaxtyping 0.3"),
    PrivateName("tree_util", "_registry", f"{_STAND_INS}:registered_types",
                "flax.nnx 0.12, jaxlie 1.5 (manifold)"),
    PrivateName("tree_util", "flatten_one_level", "saem.core.tree:flatten_one_level",
                "orbax-checkpoint 0.12"),
    PrivateName("tree_util", "prefix_errors", f"{_STAND_INS}:prefix_errors",
                "flax 0.12 (tests of struct)"),
    PrivateName("tree_util", "register_pytree_node", "saem.tree_util:register_pytree_node",
                "hidennsim 1.1"),
    PrivateName("typing", "Array", "saem.typing:Array", "cuthbert 0.1"),
    PrivateName("typing", "ArrayLike", "saem.typing:ArrayLike", "cuthbert 0.1"),
    PrivateName("typing", "DType", "saem.core.dtypes:DType", "horqrux 0.9"),
    PrivateName("typing", "DTypeLike", "saem.typing:DTypeLike", "jaxpy 0.0"),
    PrivateName("typing", "SupportsDType", "saem.typing:SupportsDType", "jaxns 3.0 (by jaxctx)"),
    PrivateName("util", "canonicalize_axis", "saem.ops.shape:canonical_axis", "jaxloudnorm 0.3"),
    PrivateName("util", "safe_map", "saem.api_util:safe_map", "genjax 1.0, xtrax 0.4"),
    PrivateName("xla_bridge", "get_backend", "saem.extend.backend:get_backend",
                "JAX's Autodidax"),
    PrivateName("xla_bridge", "_backends", "saem.placement.devices:_backends",
                "chex 0.1 (set_n_cpu_devices)"),
    PrivateName("xla_bridge", "backends_are_initialized",
                "saem.placement.devices:started", "flax.nnx 0.12 (guides)"),
)


class PrivateModule(lazy.Importable):
    """A module below ``jax._src``: the names of the table, found when first asked for.

    A library that replaces one of them replaces Saem's object, so that its patch has an effect.
    """

    def __getattr__(self, name: str) -> Any:
        home, attribute = _home(self.__name__, name)
        if home is not None:
            return getattr(home, attribute)
        if f"{self.__name__}.{name}" in _modules:
            return importlib.import_module(f"{self.__name__}.{name}")
        raise AttributeError(_refusal(f"{self.__name__}.{name}"))

    def __setattr__(self, name: str, value: Any) -> None:
        home, attribute = _home(self.__name__, name)
        if home is None:
            super().__setattr__(name, value)
        else:
            setattr(home, attribute, value)

    def __dir__(self) -> list[str]:
        return [*lazy.loaded(self), *(n for module, n in _rows if module == self.__name__)]

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The names, so that what replaces one for a test (``mock.patch``) puts it back."""
        return {name: getattr(self, name) for name in dir(self)}


_rows = {(f"{ROOT}.{row.module}", row.name): row for row in TABLE}
# Every module that has a listed name, and the packages around it.
_modules = {ROOT} | {".".join([ROOT, *row.module.split(".")[:n]])
                     for row in TABLE for n in range(1, row.module.count(".") + 2)}


def _home(module: str, name: str) -> tuple[ModuleType | None, str]:
    """Return the module and the attribute that ``name`` of a private module is; None if none."""
    row = _rows.get((module, name))
    if row is None:
        return None, name
    home, _, attribute = row.source.partition(":")
    return importlib.import_module(home), attribute


def is_private(fullname: str) -> bool:
    """Return whether ``fullname`` is a private module of JAX."""
    return fullname == ROOT or fullname.startswith(ROOT + ".")


def make_module(fullname: str) -> PrivateModule:
    """Return the module ``fullname``.

    Raises: ModuleNotFoundError when it has no name of the table.
    """
    if fullname not in _modules:
        raise ModuleNotFoundError(_refusal(fullname), name=fullname)
    return PrivateModule(fullname, f"The names of {fullname} that Saem offers.")


def _refusal(fullname: str) -> str:
    return (f"Saem does not offer {fullname}: private modules of JAX are no interface. The few "
            f"names that widely used libraries need are listed in {__name__}; if a library that "
            "you use needs this one, please report it.")

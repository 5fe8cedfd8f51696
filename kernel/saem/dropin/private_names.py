"""Which private names of JAX are offered, and for whom?

Private modules (``jax._src``) are not an interface, and Saem's are others.  Libraries import names
from there nevertheless.  Most of these are public, too, in another module: a private module that
``PUBLIC`` lists offers what those public modules do.  Each other name is in ``TABLE``, with Saem's
object that does the same and the library that cannot do without it.  Nothing else under
``jax._src`` can be imported.

Read before: ``dropin.finder``.
Invariant: a name outside of both is an error that explains itself; each name in the table is
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
_LIST_TOOLS = "saem.dropin.list_tools"

TABLE = (
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
    PrivateName("compiler", "backend_compile_and_load",
                "saem.compile.executables:backend_compile_and_load",
                "chex 0.1 (restrict_backends)"),
    PrivateName("config", "bool_state", f"{_STAND_INS}:bool_state", "jno 0.4 (solver settings)"),
    PrivateName("core", "typeof", "saem:typeof", "libraries that work on jaxprs"),
    PrivateName("core", "JaxprEqnContext", "saem.core.provenance:JaxprEqnContext",
                "brainstate 0.5 (transform)"),
    PrivateName("core", "ShardingTypeError", "saem.core.sharded:ShardingTypeError",
                "haliax 0.2 (tests)"),
    PrivateName("core", "full_lower", f"{_STAND_INS}:full_lower", "quax 0.4"),
    PrivateName("core", "is_constant_dim", "saem.extend.readers:is_constant_dim",
                "saiunit 0.5 (jax.core has it until 0.11)"),
    PrivateName("core", "trace_ctx", f"{_STAND_INS}:trace_ctx",
                "brainstate 0.5 (make_jaxpr), tests of quax 0.4"),
    PrivateName("core", "trace_state_clean", f"{_STAND_INS}:trace_state_clean", "numpyro 0.22"),
    PrivateName("dispatch", "wait_for_tokens", "saem.core.effects:effects_barrier",
                "equinox 0.13"),
    PrivateName("core", "unsafe_am_i_under_a_jit",
                "saem.extend.core:unsafe_am_i_under_a_jit_DO_NOT_USE", "jax-shapeguard 0.3"),
    PrivateName("distributed", "global_state", f"{_STAND_INS}:global_state",
                "orbax-checkpoint 0.12"),
    PrivateName("dtypes", "DType", "saem.core.dtypes:DType", "flax.linen 0.12 (fp8_ops)"),
    PrivateName("dtypes", "ExtendedDType", "saem.core.dtypes:ExtendedDType",
                "flax.linen 0.12 (fp8_ops)"),
    PrivateName("dtypes", "dtype", f"{_STAND_INS}:dtype_of", "optree 0.20 (integrations.jax)"),
    PrivateName("dtypes", "supports_inf", f"{_STAND_INS}:supports_inf",
                "flax.linen 0.12 (fp8_ops)"),
    PrivateName("dtypes", "to_complex_dtype", "saem.core.dtypes:complex_dtype",
                "tinygp 0.3 (kernels.quasisep)"),
    PrivateName("interpreters.ad", "LinearizeTracer", "saem.transform.linearize:PartialTracer",
                "awkward 2.14 (its kernels)"),
    PrivateName("interpreters.batching", "BatchTrace", "saem.transform.vmap:BatchTrace",
                "brainstate 0.5"),
    PrivateName("interpreters.batching", "BatchTracer", "saem.transform.vmap:BatchTracer",
                "brainstate 0.5 (vmap)"),
    PrivateName("interpreters.batching", "is_vmappable", "saem.transform.vmappable:is_registered",
                "jaxoplanet 0.2 (object_stack)"),
    PrivateName("interpreters.batching", "make_iota", f"{_STAND_INS}:make_iota",
                "brainstate 0.5"),
    PrivateName("interpreters.batching", "to_elt", f"{_STAND_INS}:to_elt", "brainstate 0.5"),
    PrivateName("lax", "linalg", "saem.lax:linalg", "unxt 1.11"),
    PrivateName("lax.lax", "_const", f"{_STAND_INS}:number_like",
                "functions in the style of jax.lax's"),
    PrivateName("lax.lax", "_convert_element_type", f"{_STAND_INS}:convert_element_type",
                "functions in the style of jax.lax's"),
    PrivateName("lib.mlir", "ir", "saem.extend.mlir:ir", "axnt 1.1 (its tests)"),
    PrivateName("lib.mlir.dialects", "hlo", "saem.extend.mlir.dialects:stablehlo",
                "JAX's own tutorial on primitives"),
    PrivateName("lib.xla_client", "XlaRuntimeError", "saem._jaxlib:JaxRuntimeError",
                "dynamiqs 0.3"),
    PrivateName("literals", "TypedComplex", "saem.core.literals:TypedComplex", "quax 0.4"),
    PrivateName("literals", "TypedFloat", "saem.core.literals:TypedFloat", "quax 0.4"),
    PrivateName("literals", "TypedInt", "saem.core.literals:TypedInt", "quax 0.4"),
    PrivateName("mesh", "get_concrete_mesh", "saem.placement.meshes:concrete_mesh", "haliax 0.2"),
    PrivateName("numpy.array_methods", "_IndexUpdateHelper", "saem.numpy.at:IndexUpdateHelper",
                "unxt 1.11"),
    PrivateName("numpy.array_methods", "_IndexUpdateRef", "saem.numpy.at:IndexUpdateRef",
                "unxt 1.11"),
    PrivateName("numpy.einsum", "_einsum", f"{_STAND_INS}:contract_in_turn", "haliax 0.2 (dot)"),
    PrivateName("numpy.index_tricks", "CClass", f"{_STAND_INS}:CClass", "quaxed 0.10"),
    PrivateName("numpy.index_tricks", "RClass", f"{_STAND_INS}:RClass", "quaxed 0.10"),
    *(PrivateName("numpy.setops", f"_{name}", f"saem.numpy.sets:{name}", "unxt 2.0 (its tests)")
      for name in ("UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult")),
    PrivateName("numpy.util", "ensure_arraylike", f"{_STAND_INS}:ensure_arraylike",
                "functions in the style of jax.numpy's"),
    PrivateName("numpy.util", "promote_args", f"{_STAND_INS}:promote_args",
                "functions in the style of jax.numpy's"),
    PrivateName("numpy.util", "promote_dtypes", f"{_STAND_INS}:promote_dtypes",
                "functions in the style of jax.numpy's"),
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
    PrivateName("pretty_printer", "text", "jaxlib._pretty_printer:text", "haliax 0.2"),
    PrivateName("public_test_util", "check_close", f"{_STAND_INS}:check_close",
                "tinygp 0.3 (test_utils)"),
    *(PrivateName("random.threefry2x32", name, f"{_STAND_INS}:{name}", "quax 0.4 (examples.prng)")
      for name in ("threefry_random_bits", "threefry_seed", "threefry_split")),
    PrivateName("sharding_impls", "UNSPECIFIED", f"{_STAND_INS}:UNSPECIFIED", "brainstate 0.5"),
    PrivateName("sharding_impls", "canonicalize_sharding", f"{_STAND_INS}:canonicalize_sharding",
                "jaxns 3.0"),
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
    PrivateName("tree_util", "prefix_errors", f"{_STAND_INS}:prefix_errors",
                "flax 0.12 (tests of struct)"),
    PrivateName("typing", "DType", "saem.core.dtypes:DType", "horqrux 0.9"),
    *(PrivateName("util", name, f"{_LIST_TOOLS}:{name}", "libraries that work on jaxprs")
      for name in (
          "cache ceil_of_ratio concatenate fun_name merge_lists partition_list split_list "
          "split_list_checked subs_list tuple_delete tuple_insert tuple_update unflatten unzip2 "
          "unzip3 weakref_lru_cache wraps").split()),
    PrivateName("util", "foreach", "jaxlib.utils:foreach", "libraries that work on jaxprs"),
    PrivateName("util", "safe_zip", "jaxlib.utils:safe_zip", "libraries that work on jaxprs"),
    PrivateName("util", "canonicalize_axis", "saem.ops.shape:canonical_axis", "jaxloudnorm 0.3"),
    PrivateName("util", "safe_map", "saem.api_util:safe_map", "genjax 1.0, xtrax 0.4"),
    PrivateName("xla_bridge", "_backends", "saem.placement.devices:_backends",
                "chex 0.1 (set_n_cpu_devices)"),
    PrivateName("xla_bridge", "backends_are_initialized",
                "saem.placement.devices:started", "flax.nnx 0.12 (guides)"),
)


# The public modules ("" is ``jax``) that a private module's names are public in.
PUBLIC: dict[str, tuple[str, ...]] = {
    # Those that are public under their own names.
    **{name: (name,) for name in (
        "ad_checkpoint api_util custom_batching distributed dlpack errors ffi flatten_util "
        "interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval "
        "interpreters.pxla interpreters.xla monitoring nn.initializers numpy.fft numpy.linalg "
        "profiler random scipy.linalg scipy.signal scipy.special stages tree tree_util "
        "typing").split()},
    **{name: (f"experimental.{name}",)
       for name in ("checkify", "custom_partitioning", "layout", "mesh_utils")},
    "ad_util": ("interpreters.ad", "custom_derivatives"),
    "api": ("",),
    "array": ("",),
    "callback": ("", "experimental", "extend.core.primitives"),
    "compilation_cache": ("experimental.compilation_cache.compilation_cache",),
    "config": ("",),
    "core": ("core", "extend.core", "extend.core.primitives", "errors"),
    "custom_derivatives": ("custom_derivatives", "extend.core.primitives"),
    "debugging": ("debug", "extend.core.primitives"),
    "dispatch": ("extend.core.primitives", "interpreters.xla"),
    "dtypes": ("dtypes", "numpy"),
    "export._export": ("export",),
    "export.shape_poly": ("export",),
    "image.scale": ("image",),
    **{f"lax.{name}": ("lax",) for name in (
        "ann control_flow control_flow.conditionals control_flow.loops control_flow.solves "
        "convolution fft lax other parallel slicing special windowed_reductions").split()},
    "lax.linalg": ("lax.linalg", "extend.core.primitives"),
    "linear_util": ("extend.linear_util",),
    **dict.fromkeys("mesh named_sharding partition_spec sharding sharding_impls".split(),
                    ("sharding",)),
    "nn.functions": ("nn",),
    **{f"numpy.{name}": ("numpy",) for name in (
        "array_constructors array_creation einsum index_tricks indexing lax_numpy polynomial "
        "reductions setops sorting tensor_contractions ufunc_api ufuncs util vectorize "
        "window_functions").split()},
    "ops.scatter": ("ops",),
    "ops.special": ("nn", "scipy.special"),
    "pjit": ("experimental.pjit", "extend.core.primitives", "lax"),
    "public_test_util": ("test_util",),
    "shard_map": ("", "extend.core.primitives"),
    "source_info_util": ("extend.source_info_util",),
    "xla_bridge": ("extend.backend",),
}


class PrivateModule(lazy.Importable):
    """A module below ``jax._src``: names of public modules and of the table, found when asked for.

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
        names = {n for module, n in _rows if module == self.__name__}
        for public in PUBLIC.get(self.__name__.removeprefix(f"{ROOT}."), ()):
            names.update(n for n in dir(importlib.import_module(f"saem.{public}".rstrip(".")))
                         if not n.startswith("__"))
        return [*lazy.loaded(self), *names]

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The names, so that what replaces one for a test (``mock.patch``) puts it back."""
        return {name: getattr(self, name) for name in dir(self)}


_rows = {(f"{ROOT}.{row.module}", row.name): row for row in TABLE}
# Every module that has a listed name, and the packages around it.
_modules = {ROOT} | {".".join([ROOT, *module.split(".")[:n]])
                     for module in (*PUBLIC, *(row.module for row in TABLE))
                     for n in range(1, module.count(".") + 2)}


def _home(module: str, name: str) -> tuple[ModuleType | None, str]:
    """Return the module and the attribute that ``name`` of a private module is; None if none."""
    row = _rows.get((module, name))
    if row is not None:
        home, _, attribute = row.source.partition(":")
        return importlib.import_module(home), attribute
    for public in () if name.startswith("__") else PUBLIC.get(module.removeprefix(f"{ROOT}."), ()):
        found = importlib.import_module(f"saem.{public}".rstrip("."))
        if name in dir(found):
            return found, name
    return None, name


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

"""How does a program leave the process that made it?

``export(jit(f))(*args)`` lowers a function once and for all: an ``Exported`` holds its StableHLO in
the portable form that later compilers read, with the types of its arguments and results.  Calling
it is one equation, ``call_exported``, whose text is the exported program; its derivative is another
exported program, made when asked for.

Read before: ``jit.stages``, ``derivatives.custom_vjp``, ``export.file_format``.
Invariant: an ``Exported`` refers to nothing outside itself: constants are inside, Python is not.
Source: the documentation of jax.export; the StableHLO specification of portable artifacts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile import dispatch, embedded, mlir
from saem.compile.device_assignment import Spread
from saem.compile.sizes import Step, plan
from saem.compile.text import physical_aval, tensor_type
from saem.core import dtypes, tree
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from saem.core.dimensions import Dim, Scope, is_static
from saem.core.placement_types import Seen, explicit_sharding, sums_of_spec
from saem.core.primitive import NOT_LINEAR, Primitive, absent, primitive
from saem.core.record import Record
from saem.core.trace import bind
from saem.derivatives.custom_vjp import custom_vjp
from saem.export import file_format, polymorphic
from saem.jit.decorator import jit
from saem.jit.stages import Traced, Wrapped
from saem.ops import sharding_rules, sum_rules
from saem.ops.constraints import ShardingConstraint, reshard
from saem.placement.devices import default_device, lowering_platform
from saem.placement.meshes import AbstractMesh
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding
from saem.transform.derivatives import vjp

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

# The type of the index of a platform.
INDEX = ShapedArray((), np.dtype(np.int32))

# Targets of custom calls that are promised to mean the same in later compilers.
STABLE_TARGETS = re.compile(
    r"lapack_\w+|Sharding|SPMD\w+|xla\.sdy\.\w+|cu\w+_ffi|hip\w+_ffi|"
    r"cu_lu_pivots_to_permutation|hip_lu_pivots_to_permutation|Tpu\w*|"
    r"stablehlo\.dynamic_\w+|ApproxTopK|topk|TopK|annotate_device_placement|LayoutConstraint|"
    r"Eigh|Qr|LuDecomposition|ProductOf\w+")


class DisabledSafetyCheck(Record):
    """A check that ``export`` or ``call`` leaves out."""

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Call the program on other platforms than it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Export a program that calls ``target_name``, though its meaning may change."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the target of a ``custom_call`` check, None for another."""
        kind, _, target = self._impl.partition(":")
        return target if kind == "custom_call" else None

    def __repr__(self) -> str:
        return self._impl

    __str__ = __repr__


class Exported:
    """A program with its types, free of the process that made it.  ``call`` runs it."""

    def __init__(self, *, fun_name: str, in_tree: Any, in_avals: tuple[ShapedArray, ...],
                 out_tree: Any, out_avals: tuple[ShapedArray, ...], platforms: tuple[str, ...],
                 mlir_module_serialized: bytes, module_kept_var_idx: tuple[int, ...],
                 in_shardings: tuple[Any, ...] = (), out_shardings: tuple[Any, ...] = (),
                 nr_devices: int = 1, uses_global_constants: bool = False,
                 disabled_safety_checks: Sequence[DisabledSafetyCheck] = (),
                 calling_convention_version: int = maximum_supported_calling_convention_version,
                 _get_vjp: Callable[[Exported], Exported] | None = None):
        self.fun_name = fun_name
        self.in_tree = in_tree
        self.in_avals = in_avals
        self.out_tree = out_tree
        self.out_avals = out_avals
        self.platforms = platforms
        self.mlir_module_serialized = mlir_module_serialized
        self.module_kept_var_idx = module_kept_var_idx
        self.in_named_shardings = in_shardings or (None,) * len(in_avals)
        self.out_named_shardings = out_shardings or (None,) * len(out_avals)
        self.nr_devices = nr_devices
        self.disabled_safety_checks = tuple(disabled_safety_checks)
        self.calling_convention_version = calling_convention_version
        self.ordered_effects: tuple = ()
        self.unordered_effects: tuple = ()
        # Whether the program takes the index of its platform before its arguments.
        self.uses_global_constants = uses_global_constants
        self._get_vjp = _get_vjp

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    @property
    def in_shardings_hlo(self) -> tuple:
        """How the arguments are sharded, in the form of XLA; None where none was chosen."""
        return hlo_shardings(self.in_named_shardings, self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple:
        return hlo_shardings(self.out_named_shardings, self.out_avals)

    def in_shardings_jax(self, mesh: Any) -> tuple:
        """Return the shardings of the arguments on the devices of ``mesh``."""
        return tuple(on_mesh(s, mesh) for s in self.in_named_shardings)

    def out_shardings_jax(self, mesh: Any) -> tuple:
        """Return the shardings of the results on the devices of ``mesh``."""
        return tuple(on_mesh(s, mesh) for s in self.out_named_shardings)

    @functools.cached_property
    def scope(self) -> Scope | None:
        """The scope of the symbolic dimensions of the arguments, None if there are none."""
        return polymorphic.scope_of(self.in_avals)

    @functools.cached_property
    def steps(self) -> list[Step]:
        """How the dimension variables follow from the shapes of the arguments."""
        return plan([a.shape for a in self.in_avals], "argument {}".format)

    @property
    def module_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the arguments that the program takes."""
        return (*((INDEX,) if self.uses_global_constants else ()),
                *(self.in_avals[i] for i in self.module_kept_var_idx))

    def platform_index(self, platform: str) -> int:
        """Return the index of ``platform``; 0 for one it was not exported for, if that is allowed.
        """
        return self.platforms.index(platform) if platform in self.platforms else 0

    @functools.cached_property
    def _module(self) -> str:
        return str(_jaxlib.deserialize_portable_artifact(
            self.mlir_module_serialized, mlir.new_context()))

    def mlir_module(self) -> str:
        """Return the program as StableHLO text."""
        return self._module

    def has_vjp(self) -> bool:
        """Return whether the program can be differentiated."""
        return self._get_vjp is not None

    @functools.cached_property
    def _vjp(self) -> Exported:
        if self._get_vjp is None:
            raise ValueError("No VJP is available: the program was serialized without one. "
                             "Try: exported.serialize(vjp_order=1)")
        return self._get_vjp(self)

    def vjp(self) -> Exported:
        """Return the exported function from arguments and cotangents to cotangents, all flat.

        Raises: ValueError if none was kept.
        """
        return self._vjp

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, or write it into the one being traced.

        Raises: ValueError if arguments differ from those it was exported for.
        """
        leaves, structure = tree.flatten((args, kwargs))
        if structure != self.in_tree:
            raise other_structure(self, (args, kwargs))
        numbers = [x for x, a in zip(leaves, self.in_avals) if a.dtype != dtypes.float0]
        for number, (x, wanted) in enumerate(zip(leaves, self.in_avals)):
            if wanted.dtype != dtypes.float0:
                check_type(aval_of(x), wanted, self, number)
        if self.scope is not None:
            polymorphic.values_of(self, [aval_of(x) for x in leaves])
        return self.out_tree.unflatten(self._differentiable(*numbers))

    def _all(self, numbers: Sequence[Any]) -> list[Any]:
        """Return all arguments: those with numbers, and float0, which has none, in its places."""
        rest = iter(numbers)
        return [np.zeros(a.shape, dtypes.float0) if a.dtype == dtypes.float0 else next(rest)
                for a in self.in_avals]

    @functools.cached_property
    def _differentiable(self) -> Any:
        """The flat call with its backward pass, which is asked for when it is needed."""
        def flat(*xs: Any) -> list[Any]:
            args = zip(self._all(xs), self.in_named_shardings)
            return bind(CallExported(self), *(as_addends(x, s) for x, s in args))

        def forward(*xs: Any) -> tuple[Any, Any]:
            return made(*xs), xs  # by the rule again, for derivatives of higher order

        def backward(xs: Sequence[Any], cts: Sequence[Any]) -> tuple:
            found = self.vjp().call(*self._all(xs), *cts)
            return tuple(ct for ct, a in zip(found, self.in_avals) if a.dtype != dtypes.float0)

        flat.__name__ = f"{self.fun_name}_flat"
        forward.__name__, backward.__name__ = (
            f"{flat.__name__}_vjp_{which}" for which in ("fwd", "bwd"))
        made = custom_vjp(flat)
        made.defvjp(forward, backward)
        return made

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Return the program as bytes, with ``vjp_order`` orders of its derivative."""
        chain = [self]
        for _ in range(vjp_order):
            chain.append(chain[-1].vjp())
        return file_format.write(chain)


def hlo_shardings(shardings: Sequence[Any], avals: Sequence[ShapedArray]) -> tuple:
    return tuple(None if s is None else s._to_xla_hlo_sharding(len(physical_aval(a).shape))
                 for s, a in zip(shardings, avals))


def on_mesh(sharding: Any, mesh: Any) -> Any:
    """Return ``sharding`` on the devices of ``mesh``.

    Raises: ValueError if that mesh has other axes.
    """
    if sharding is None:
        return None
    if mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export "
                         f"{sharding.mesh}. Give one with axes of the same names and sizes.")
    return NamedSharding(mesh, sharding.spec)


def typed_along(avals: Sequence[ShapedArray], shardings: Sequence[Any]
                ) -> tuple[ShapedArray, ...]:
    """Return the types of what is sharded so: they name the Explicit axes along which it is."""
    if not shardings:
        return tuple(avals)
    found = [explicit_sharding(s, len(a.shape)) for s, a in zip(shardings, avals)]
    return tuple(a if s is None else a.update(sharding=s) for s, a in zip(found, avals))


# -- checking a call ------------------------------------------------------------------------------


def other_structure(exported: Exported, given: Any) -> Exception:
    """Return the error for a call with another structure of arguments."""
    found = tree.difference(exported.in_tree, given)
    where, what = found if found is not None else ((), "a container stands where a leaf was")
    place = ("args", "kwargs")[where[0].idx] + tree.keystr(where[1:]) if where else "the arguments"
    return ValueError(
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{exported.fun_name}' was exported, but they have the following structural differences:\n"
        f"   - {place}: {what} (exported with the first, called with the second).\n")


def as_addends(x: Any, sharding: Any) -> Any:
    """Return an argument, added up or made addends if the program takes other sums than it has."""
    if not Seen.sums or (isinstance(x, np.ndarray) and x.dtype == dtypes.float0):
        return x
    have, spec = aval_of(x).sums, PartitionSpec() if sharding is None else sharding.spec
    if have == sums_of_spec(spec):
        return x
    return reshard(x, PartitionSpec(*spec.partitions, unreduced=spec.unreduced,
                                    reduced=spec.reduced))


def check_type(got: ShapedArray, wanted: ShapedArray, exported: Exported, number: int) -> None:
    """Refuse an argument of another shape or dtype than the program takes.

    Raises: ValueError that names the argument.
    """
    if (got.shape, got.dtype) == (wanted.shape, wanted.dtype):
        return
    fits = [a == b for a, b in zip(got.shape, wanted.shape)]
    if len(got.shape) == len(wanted.shape) and got.dtype == wanted.dtype and all(
            same or isinstance(n, Dim) for same, n in zip(fits, wanted.shape)):
        return
    paths = tree.flatten_with_path(exported.in_tree.unflatten([0] * len(exported.in_avals)))[0]
    path = paths[number][0]
    name = ("args", "kwargs")[path[0].idx] + tree.keystr(path[1:])
    if got.dtype != wanted.dtype:
        raise ValueError(f"Dtype mismatch for {name}: expected {wanted.dtype} and called with "
                         f"{got.dtype}")
    if len(got.shape) != len(wanted.shape):
        raise ValueError(f"Rank mismatch for {name}: expected {wanted.shape} and called with "
                         f"{got.shape}")
    axis = next(i for i, (same, n) in enumerate(zip(fits, wanted.shape))
                if not same and not isinstance(n, Dim))
    raise ValueError(f"Shape mismatch for {name}.shape[{axis}] (expected same constant): expected "
                     f"{wanted.shape} and called with {got.shape}")


# -- the call as an equation ----------------------------------------------------------------------


@primitive("call_exported")
class CallExported(Primitive):
    """Call the program of ``exported`` on flat arguments."""

    exported: Exported

    multiple_results = True
    quick_code = False

    shard_results = sharding_rules.call_exported
    sum_results = sum_rules.call_exported
    starts_sums = True

    def typing(self, *avals):
        for number, (aval, wanted) in enumerate(zip(avals, self.exported.in_avals)):
            check_type(aval, wanted, self.exported, number)
        if self.exported.scope is None:
            return list(self.exported.out_avals)
        values = polymorphic.values_of(self.exported, avals)
        return [polymorphic.with_values(a, values) for a in self.exported.out_avals]

    def evaluate(self, *xs):
        # There is no jaxpr to follow: what was exported is the compiler's text alone.
        return [np.asarray(y) for y in dispatch.apply_primitive(self, xs)]

    def lower(self, ctx, *xs):
        exported = self.exported
        check_platform(exported, ctx.module)
        module = ctx.module
        given = [ctx.in_avals[i] for i in exported.module_kept_var_idx]
        key = (id(exported), *(a.shape for a in given))
        known = module.memo.get(key)
        outs_known = all(is_static(a.shape) for a in (*given, *ctx.out_avals))
        refine = exported.scope is not None and outs_known
        if known is None:
            module.keepalive.append(exported)
            known = module.memo[key] = embed(exported, module, given if refine else None)
        kept = [xs[i] for i in exported.module_kept_var_idx]
        shardings = [exported.in_named_shardings[i] for i in exported.module_kept_var_idx]
        kept = [constrained(ctx, x, s) for x, s in zip(kept, shardings)]
        if exported.uses_global_constants:
            kept.insert(0, ctx.constant(exported.platform_index(module.platform), INDEX))
        if refine or exported.scope is None:
            outs = ctx.emit_many(f"func.call @{known}({', '.join(kept)})", *kept,
                                 outs=ctx.out_avals)
        else:
            kept = [as_type(ctx, x, a) for x, a in zip(kept, exported.module_avals)]
            outs = ctx.emit_many(f"func.call @{known}({', '.join(kept)})", *kept,
                                 outs=exported.out_avals)
            outs = [as_type(ctx, y, a) for y, a in zip(outs, ctx.out_avals)]
        return [constrained(ctx, y, s) for y, s in zip(outs, exported.out_named_shardings)]

    jvp = absent("its derivative is another exported program, by the rule of custom_vjp: use grad "
                 "or vjp, not jvp", ValueError)
    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        raise NotImplementedError(
            "Batching rule for 'call_exported' not implemented: an exported program has one shape. "
            "Export the batched function: export(jit(vmap(f))).")


def check_platform(exported: Exported, module: Any) -> None:
    """Refuse a program exported for other platforms or another number of devices.

    Raises: ValueError.
    """
    disabled = DisabledSafetyCheck.platform() in exported.disabled_safety_checks
    if module.platform not in exported.platforms and not disabled:
        raise ValueError(
            f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but "
            f"it is used on '({module.platform!r},)'.")
    count = len(module.devices) or 1
    if exported.nr_devices not in (1, count):
        raise ValueError(
            f"Function {exported.fun_name} was exported for {exported.nr_devices} devices and is "
            f"called in a context with {count} devices, which is not allowed. Place the "
            "arguments: device_put(x, sharding).")


def constrained(ctx: Any, x: str, sharding: Any) -> str:
    return x if sharding is None else ShardingConstraint(sharding).lower(ctx, x)


def as_type(ctx: Any, x: str, wanted: ShapedArray) -> str:
    """Write ``x`` with other sizes left open in its type."""
    if tensor_type(ctx.avals[x]) == tensor_type(wanted):
        return x
    return ctx.emit(f"stablehlo.convert {x}", x, out=wanted)


def embed(exported: Exported, module: Any, given: Sequence[ShapedArray] | None = None) -> str:
    """Write the functions of ``exported`` into ``module``; returns the symbol of its main.

    Open sizes become those of arguments of ``given``.
    """
    text = exported.mlir_module()
    formal, outs = exported.module_avals, exported.out_avals
    if given is not None:
        values = polymorphic.values_of(exported, given)
        actual = (INDEX, *given) if exported.uses_global_constants else tuple(given)
        text = polymorphic.refined(text, formal, actual, outs)
        formal = actual
        outs = tuple(polymorphic.with_values(a, values) for a in outs)
    return embedded.embed(text, module, exported.fun_name,
                          lambda main: private_head(main, formal, outs))


def private_head(name: str, kept: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> str:
    """Return the first line of an exported ``main`` as a function called inside a module."""
    arguments = ", ".join(f"%arg{i}: {tensor_type(a)}" for i, a in enumerate(kept))
    results = ", ".join(tensor_type(a) for a in outs)
    return f"  func.func private @{name}({arguments}) -> ({results}) {{"


def deserialize(blob: Any) -> Exported:
    """Return the program that ``Exported.serialize`` wrote as bytes.

    Types are as they were, but no longer weak.

    Raises: ValueError if ``blob`` is no such program, is damaged, or of a later version.
    """
    found: Exported | None = None
    for parts in reversed(file_format.read(bytes(blob))):  # the highest derivative stands last
        get = None if found is None else functools.partial(_given, found)
        disabled = [DisabledSafetyCheck(name) for name in parts.pop("disabled")]
        found = Exported(**parts, _get_vjp=get, disabled_safety_checks=disabled)
    assert found is not None
    return found


def _given(program: Exported, _primal: Exported) -> Exported:
    return program


# -- exporting ------------------------------------------------------------------------------------


def default_export_platform() -> str:
    """Return the platform that a program is exported for if none is named.

    >>> jax.export.default_export_platform() in ("cpu", "cuda", "rocm", "tpu")
    True
    """
    return lowering_platform(default_device())


def export(fun_jit: Any, *, platforms: Sequence[str] | None = None,
           disabled_checks: Sequence[DisabledSafetyCheck] = ()) -> Callable[..., Exported]:
    """Return the function that exports ``fun_jit``, a jitted function, for example arguments.

    Arguments may be ShapeDtypeStructs.  ``platforms`` names those it will run on ('cpu', 'cuda',
    'rocm', 'tpu'), by default the one that is here.

    Raises: ValueError if ``fun_jit`` was not made by ``jit``.

    >>> exported = jax.export.export(jax.jit(lambda x: x + 1))(1.)
    >>> exported.call(2.)
    Array(3., dtype=float32, weak_type=True)
    """
    platforms = (platforms,) if isinstance(platforms, str) else platforms
    if not isinstance(fun_jit, Wrapped):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")

    def do_export(*args: Any, **kwargs: Any) -> Exported:
        polymorphic.scope_of([x for x in tree.leaves((args, kwargs))
                              if isinstance(getattr(x, "shape", None), tuple)])
        traced = fun_jit.trace(*args, **kwargs)
        return export_traced(traced, tuple(platforms or (default_export_platform(),)),
                             tuple(disabled_checks))

    return do_export


def export_traced(traced: Traced, platforms: tuple[str, ...],
                  disabled: tuple[DisabledSafetyCheck, ...]) -> Exported:
    """Export a traced function.

    Raises: NotImplementedError if it calls Python; ValueError if it calls what may change.
    """
    polymorphic.scope_of(traced.jaxpr.in_avals)
    plan([a.shape for a in traced.jaxpr.in_avals], "argument {}".format)
    lowered, where, _ = traced.written(platforms, embed=True)
    if lowered.module.callbacks:
        raise NotImplementedError(
            "serialization of host_callbacks is not yet implemented: the program calls Python "
            "(pure_callback, io_callback or debug.print), which stays in its process.")
    check_custom_calls(lowered.text, disabled)
    spread = where if isinstance(where, Spread) else None
    closed = traced.jaxpr
    ins, outs = ((), ()) if spread is None else (spread.ins, spread.outs)
    artifact = _jaxlib.serialize_portable_artifact(
        mlir.parse(lowered.located_text()), target_version(), True)
    return Exported(
        fun_name=traced.fun_name, in_tree=traced.in_tree, out_tree=traced.out_tree,
        in_avals=typed_along(closed.in_avals, ins), out_avals=typed_along(closed.out_avals, outs),
        platforms=platforms, mlir_module_serialized=artifact,
        in_shardings=tuple(map(abstract, ins)), out_shardings=tuple(map(abstract, outs)),
        module_kept_var_idx=tuple(i for i, k in enumerate(lowered.kept) if k),
        nr_devices=1 if spread is None else len(spread.slots),
        uses_global_constants=bool(lowered.platforms), disabled_safety_checks=disabled,
        _get_vjp=functools.partial(export_vjp, traced, where, disabled))


def abstract(sharding: Any) -> Any:
    """Return a sharding without its devices."""
    if not isinstance(sharding, NamedSharding):
        return None
    mesh, spec = sharding.mesh, sharding.spec
    types = mesh.axis_types if spec.unreduced or spec.reduced else None  # such axes are Explicit
    return NamedSharding(AbstractMesh(mesh.axis_sizes, mesh.axis_names, types), spec)


def target_version() -> str:
    """Return the StableHLO version that compilers of four weeks ago can read."""
    stablehlo = _jaxlib.stablehlo
    return stablehlo.get_version_from_compatibility_requirement(
        stablehlo.StablehloCompatibilityRequirement.WEEK_4)


def check_custom_calls(text: str, disabled: Sequence[DisabledSafetyCheck]) -> None:
    allowed = {check.is_custom_call() for check in disabled}
    targets = set(embedded.targets_in(text))
    unknown = sorted(t for t in targets - allowed if not STABLE_TARGETS.fullmatch(t))
    if unknown:
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility "
            f"guarantees: {', '.join(unknown)}. Pass disabled_checks="
            f"[DisabledSafetyCheck.custom_call({unknown[0]!r})] if the reader will have it.")


def export_vjp(traced: Traced, where: Any, disabled: tuple[DisabledSafetyCheck, ...],
               exported: Exported) -> Exported:
    """Export the function from arguments and cotangents of the results to cotangents."""
    call = traced._call
    count = len(exported.in_avals)

    def flat(*leaves: Any) -> tuple:
        args, kwargs = call.bound.rebuild(leaves)
        return tuple(tree.leaves(call.info.fun(*args, **kwargs)))

    def fun_vjp_jax(*args_and_cts: Any) -> Any:
        pullback = vjp(flat, *args_and_cts[:count])[1]
        return pullback(tuple(args_and_cts[count:]))

    spread = isinstance(where, Spread)
    ins, outs = (where.ins, where.outs) if spread else ((), ())
    avals = [*exported.in_avals, *map(cotangent_aval, exported.out_avals)]
    shardings = [*(ins or [None] * count), *(outs or [None] * len(exported.out_avals))]
    structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type, sharding=s)
               for a, s in zip(avals, shardings)]
    like = {"out_shardings": tuple(ins)} if ins else {}
    return export_traced(jit(fun_vjp_jax, **like).trace(*structs), exported.platforms, disabled)


def cotangent_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of the cotangent of a result: float0 where there is no derivative."""
    return aval if dtypes.is_inexact(aval.dtype) else aval.update(dtype=dtypes.float0)

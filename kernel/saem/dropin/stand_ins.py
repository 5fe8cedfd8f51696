"""What do libraries get for private names of JAX for which Saem has no object of its own?

Each definition here is named in the table of ``dropin.private_names``, with the library that needs
it.

Read before: ``dropin.private_names``.
Invariant: each does for its library what JAX's does, on Saem's own state; none is a placeholder
(tests/kernel/test_dropin.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from types import FrameType, TracebackType
from typing import Any, TypeVar

import numpy as np

from saem import lax, random
from saem.compile.arrays import rebuild
from saem.core import axes, config, dtypes, source, tree
from saem.core.arguments import as_tuple
from saem.core.avals import aval_of, is_array_like
from saem.core.handles import Zero, handle_of
from saem.core.trace import eval_trace, is_tracer, state
from saem.derivatives.stop_gradient import StopGradient
from saem.numpy import products, promote
from saem.numpy.axes import as_array
from saem.numpy.functional import checked_results, leading_axes, others_as_given
from saem.numpy.index_tricks import Joined
from saem.numpy.promote import broadcast_shapes, convert_value, join_types
from saem.ops.filling import iota
from saem.ops.shape import canonical_axis
from saem.placement import devices
from saem.placement.meshes import get_abstract_mesh
from saem.placement.partition_spec import PartitionSpec, axes_of
from saem.placement.shardings import NamedSharding, named_sharding
from saem.transform.vmap import BatchTrace
from saem.transform.vmappable import is_registered, vmappables
from saem.typing import DTypeLike, Shape

Function = TypeVar("Function", bound=Callable[..., Any])

stop_gradient_p = handle_of(StopGradient())


def api_boundary(fun: Function, **_options: Any) -> Function:
    """Return ``fun`` itself: which frames of a traceback are shown is the lens's affair."""
    return fun


def reconstruct_array(make: Callable, args: tuple, state: Any, aval_state: Mapping[str, Any]
                      ) -> Any:
    """Return an array from a pickle that JAX wrote: NumPy's parts of it, and its weak type."""
    value = make(*args)
    value.__setstate__(state)
    return rebuild(value, aval_state["weak_type"])


def include_frame(frame: FrameType) -> bool:
    """Return whether ``frame`` belongs to the user rather than to the engine or a library."""
    return not source.is_internal(frame.f_code.co_filename)


def trace_state_clean() -> bool:
    """Return whether no transformation is at work here."""
    return state.trace is eval_trace and not axes.state.env


UNSPECIFIED = None  # what ``jit`` takes where no sharding is given


class TraceContext:
    """Which interpreter is at work here?"""

    @property
    def trace(self) -> Any:
        """The interpreter; what writes a program takes further inputs by ``new_arg(aval)``."""
        return state.trace


trace_ctx = TraceContext()


def make_iota(size: int) -> Any:
    """Return the numbers of ``size`` examples."""
    return iota(dtypes.default_dtype(int), size)


def to_elt(trace: BatchTrace, index: Callable[[], Any], x: Any, spec: int | None) -> Any:
    """Return one example of the stack ``x``, along the axis ``spec``, as ``trace`` sees it."""
    if is_registered(x):
        return vmappables[type(x)].to_elt(functools.partial(to_elt, trace, index), index, x, spec)
    return x if spec is None else trace.wrap(as_array(x), canonical_axis(spec, np.ndim(x)))


class RegisteredTypes:
    """The container types of pytrees: ``cls in registered_types``."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and tree.is_tree_node(cls)

    def __getitem__(self, cls: type) -> ContainerType:
        if cls not in self:
            raise KeyError(cls)
        return ContainerType(cls)


class ContainerType:
    """How containers of the class ``cls`` are taken apart, one level, and made again."""

    def __init__(self, cls: type):
        self.cls = cls

    def to_iter(self, container: Any) -> tuple[Iterable[Any], Hashable]:
        """Return the children of ``container``, and what else it remembers."""
        return tree.flatten_one_level(container)

    def from_iter(self, remembered: Any, children: Iterable[Any]) -> Any:
        """Return the container of ``children``, which may be anything."""
        parts = list(children)
        return tree.PyTreeDef.from_node_data_and_children(
            tree.default_registry, (self.cls, remembered),
            [tree.structure(0)] * len(parts)).unflatten(parts)


registered_types = RegisteredTypes()


class GlobalState:
    """This process among those that ``distributed.initialize`` joined."""

    @property
    def process_id(self) -> int:
        """The number of this process, 0 where there is one."""
        return devices.processes[0].node_id if devices.processes else 0

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        return devices.processes[0].num_nodes if devices.processes else 1

    @property
    def client(self) -> Any:
        """The connection to the coordination service, None where there is one process."""
        return devices.processes[0].client if devices.processes else None


global_state = GlobalState()


# By dtype: how far apart two numbers may be that one rounding made; other dtypes are exact.
_CLOSE = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6,
          "float64": 1e-15, "complex128": 1e-15}


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Check that two trees of one structure hold arrays of equal shapes, and close numbers.

    A tolerance is one number, one for each dtype, or None: what rounding may change.  As in JAX the
    larger of those of both dtypes counts, and is multiplied by the number of elements.
    Raises: AssertionError if shapes or numbers differ, ValueError if structures do.
    """
    def check(x: Any, y: Any) -> None:
        x, y = (v if is_array_like(v) else np.asarray(v) for v in (x, y))
        kinds = [aval_of(x).dtype, aval_of(y).dtype]
        assert np.shape(x) == np.shape(y), f"{err_msg}: shapes {np.shape(x)} and {np.shape(y)}"
        wide = np.complex128 if any(map(dtypes.is_complex, kinds)) else np.float64
        sizes = [max(tolerance(given, kind) for kind in kinds) for given in (atol, rtol)]
        np.testing.assert_allclose(
            np.asarray(x).astype(wide), np.asarray(y).astype(wide), err_msg=err_msg,
            atol=sizes[0] * np.size(x), rtol=sizes[1] * np.size(x))

    tree.map_(check, xs, ys)


def tolerance(given: Any, dtype: Any) -> float:
    """Return the tolerance for ``dtype``: of one number, one for each dtype, or None."""
    usual = _CLOSE.get(dtype.name, 0.0)
    if isinstance(given, Mapping):
        return {np.dtype(kind): size for kind, size in given.items()}.get(dtype, usual)
    return usual if given is None else given


def infer_argnums_and_argnames(sig: inspect.Signature, argnums: int | Iterable[int] | None,
                               argnames: str | Iterable[str] | None
                               ) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return numbers and names of the same parameters: what is not given follows from the other.

    Parameters that can be passed in one way only have no counterpart.
    """
    words = [name if p.kind is p.POSITIONAL_OR_KEYWORD else None
             for name, p in sig.parameters.items()]
    numbers = None if argnums is None else as_tuple(argnums, int)
    names = None if argnames is None else as_tuple(argnames, str)
    if numbers is None:
        numbers = tuple(n for n, word in enumerate(words) if word and word in (names or ()))
    if names is None:
        names = tuple(word for n, word in enumerate(words) if word and n in numbers)
    return numbers, names


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """Return ``args`` as arrays of the one complex dtype in which they meet."""
    dtype, weak = join_types(args)
    dtype = dtypes.complex_dtype(dtypes.to_inexact(dtype))
    return [as_array(convert_value(x, dtype, weak)) for x in args]


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """Return ``args`` as arrays of the one inexact dtype in which they meet."""
    return [as_array(x) for x in promote.promote_dtypes_inexact(*args)]


def promote_dtypes(*args: Any) -> list[Any]:
    """Return ``args`` as arrays of the one dtype in which they meet."""
    return [as_array(x) for x in promote.promote_dtypes(*args)]


def promote_args(fun_name: str, *args: Any) -> list[Any]:
    """Return ``args`` as arrays of the one dtype in which they meet, arrays of one rank."""
    return [as_array(x) for x in promote.promote_shapes(
        fun_name, *promote.promote_args(fun_name, *args))]


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """Return ``args`` as arrays, one alone as itself.

    Raises: TypeError for what is neither an array nor a number.
    """
    promote.check_arraylike(fun_name, *args)
    arrays = tuple(as_array(x) for x in args)
    return arrays[0] if len(arrays) == 1 else arrays


def number_like(example: Any, val: Any) -> Any:
    """Return the number ``val`` as ``example`` is one: of its dtype, or of Python."""
    if type(example) in dtypes.PYTHON_NUMBERS:
        return type(example)(val)
    return np.asarray(val, aval_of(example).dtype)


def convert_element_type(operand: Any, new_dtype: Any = None, weak_type: bool = False,
                         **_options: Any) -> Any:
    """Return ``operand`` in ``new_dtype``, weakly if asked."""
    dtype = aval_of(operand).dtype if new_dtype is None else dtypes.canonicalize(new_dtype)
    return as_array(convert_value(operand, dtype, weak_type))


def dtype_of(x: Any) -> dtypes.DType:
    """Return the dtype that ``x`` has as an array."""
    return aval_of(x).dtype


def p2tz(primal: Any) -> Zero:
    """Return the tangent of ``primal`` that is zero."""
    return Zero(aval_of(primal).to_tangent_aval())


def bool_state(name: str, default: bool, help: str, *, include_in_jit_key: bool = False,
               include_in_trace_context: bool = False, **_options: Any) -> config.UserContext:
    """Return a switch of a library's own on which traces depend, ``default`` at first."""
    return config.make_user_context(default)


def contract_in_turn(operands: Sequence[Any], contractions: Sequence[tuple], precision: Any,
                     preferred_element_type: Any, _dot_general: Callable = lax.dot_general,
                     out_sharding: Any = None) -> Any:
    """Contract ``operands`` in the order of ``contractions``, as opt_einsum gives it."""
    steps = tuple([(places, subscripts) for places, _, subscripts in contractions])
    return products.contract_in_turn(
        list(operands), contractions=steps, precision=precision, preferred=preferred_element_type,
        out_sharding=out_sharding, dot=_dot_general)


def supports_inf(dtype: DTypeLike) -> bool:
    """Return whether the floating ``dtype`` has infinities; most of those of 8 bits have none."""
    return bool(np.isinf(np.asarray(np.inf, np.dtype(dtype))))


def canonicalize_sharding(sharding: NamedSharding | PartitionSpec | None, api_name: str
                          ) -> NamedSharding | None:
    """Return the argument ``out_sharding`` of ``api_name`` on a mesh without devices, or None.

    Raises: TypeError for other types; ValueError for a PartitionSpec where no mesh is in
    force, or along axes that are not Explicit.
    """
    if sharding is None:
        return None
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"`out_sharding` argument of {api_name} only supports instances of "
                        f"`NamedSharding` or `PartitionSpec`. Got {sharding} of type: "
                        f"{type(sharding)}")
    mesh = get_abstract_mesh() if isinstance(sharding, PartitionSpec) else sharding.mesh
    if mesh.empty:
        named_sharding(sharding, len(sharding.spec) if isinstance(sharding, NamedSharding) else 0)
        return None
    spec = sharding if isinstance(sharding, PartitionSpec) else sharding.spec
    found = NamedSharding(mesh.abstract_mesh, spec)
    for axis in chain.from_iterable(map(axes_of, found.spec)):
        if axis not in mesh.explicit_axes:
            raise ValueError(f"PartitionSpec passed to {api_name} cannot contain axis names that "
                             f"are of type Auto or Manual. Got PartitionSpec: {spec} with axis "
                             f"name: {axis}")
    return found


class RClass(Joined):
    """The class of ``numpy.r_``."""

    def __init__(self) -> None:
        super().__init__("r_", 0, 1, -1)


class CClass(Joined):
    """The class of ``numpy.c_``."""

    def __init__(self) -> None:
        super().__init__("c_", -1, 2, 0)


def parse_input_dimensions(args: Sequence[Any], input_core_dims: Sequence[tuple[str, ...]],
                           error_context: str = "") -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the shape to which the leading axes broadcast, and the sizes of the core dimensions.

    Raises: TypeError for another number of arguments; ValueError for shapes that do not fit.
    """
    if len(args) != len(input_core_dims):
        raise TypeError(f"wrong number of positional arguments: expected {len(input_core_dims)}, "
                        f"got {len(args)} {error_context}")
    sizes: dict[str, int] = {}
    leading = [leading_axes(x, core, sizes, error_context)
               for x, core in zip(args, input_core_dims)]
    return broadcast_shapes(*leading), sizes


def check_output_dims(func: Callable, dim_sizes: dict[str, int],
                      expected_output_core_dims: list[tuple[str, ...]], error_context: str = ""
                      ) -> Callable:
    """Return ``func`` with its results held to the core dimensions expected of them."""
    return checked_results(func, expected_output_core_dims, dim_sizes, error_context)


def apply_excluded(func: Callable, excluded: Collection[int | str], args: Sequence[Any],
                   kwargs: dict[str, Any]) -> tuple[Callable, Sequence[Any], dict[str, Any]]:
    """Return a function of the arguments that are not ``excluded``, and these arguments."""
    numbers = [i for i in range(len(args)) if i not in excluded]

    def of_others(*others: Any, **named: Any) -> Any:
        return others_as_given(func, args, kwargs, numbers, list(named))(*others, *named.values())

    return (of_others, [args[i] for i in numbers],
            {name: x for name, x in kwargs.items() if name not in excluded})


def filter_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Return ``traceback`` with the frames of the user alone."""
    frames = []
    while traceback is not None:
        if include_frame(traceback.tb_frame):
            frames.append(traceback)
        traceback = traceback.tb_next
    found = None
    for each in reversed(frames):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return found


def full_lower(x: Any) -> Any:
    """Return ``x``, or what a tracer adds nothing to."""
    return x.full_lower() if is_tracer(x) else x


def prefix_errors(prefix_tree: Any, full_tree: Any) -> list[Callable[[str], ValueError]]:
    """Return what keeps ``prefix_tree`` from being a prefix of ``full_tree``, place by place.

    Each is a function from the name under which the user gave the prefix to the error.
    """
    found: list[Callable[[str], ValueError]] = []

    def note(what: str, path: tuple, of_prefix: Any, of_full: Any) -> None:
        found.append(lambda name: ValueError(
            f"pytree structure error: different {what} at key path\n    {name}"
            f"{tree.keystr(path)}\nThe prefix pytree {name} has {of_prefix} there, the full "
            f"pytree {of_full}."))

    def compare(prefix: Any, full: Any, path: tuple) -> None:
        if tree.all_leaves([prefix]):
            return
        if type(prefix) is not type(full):
            note("types", path, type(prefix), type(full))
            return
        pairs, data = tree.flatten_one_level_with_keys(prefix)
        others, other_data = tree.flatten_one_level_with_keys(full)
        mine, theirs = list(pairs), list(others)
        if data != other_data:
            note("pytree metadata", path, data, other_data)
        elif len(mine) != len(theirs):
            note(f"lengths of {type(prefix).__name__}", path, len(mine), len(theirs))
        else:
            for (key, child), (_, other) in zip(mine, theirs):
                compare(child, other, (*path, key))

    compare(prefix_tree, full_tree, ())
    return found


def threefry_seed(seed: Any) -> Any:
    """Return the words of a key made from ``seed``: shape (2,), uint32."""
    return random.key_data(random.key(seed, impl="threefry2x32"))


def threefry_split(key: Any, shape: Shape) -> Any:
    """Return the words of ``shape`` new keys: shape (*shape, 2), uint32."""
    return random.key_data(random.split(_key(key), tuple(shape)))


def threefry_random_bits(key: Any, bit_width: int, shape: Shape) -> Any:
    """Return random numbers of ``bit_width`` bits, of ``shape``, from the words of a key."""
    return random.bits(_key(key), shape, np.dtype(f"uint{bit_width}"))


def _key(words: Any) -> Any:
    return random.wrap_key_data(words, impl="threefry2x32")

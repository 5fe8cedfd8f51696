"""How does a program meet its arguments?

``put`` brings a value to a device as an ``Array``; a ``Program`` is an executable with all it takes
to call it, from Python or from jaxlib's C++ fast path; ``apply_primitive`` runs one primitive.

Read before: ``xla.compile``.  Read after: ``control.jit``.
Invariant: a value whose place nobody chose is uncommitted and follows the computation; results are
committed exactly if some argument was.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saem import _jaxlib
from saem.core import config, dtypes, errors, source
from saem.core.avals import ShapedArray, aval_of
from saem.core.events import EagerOp, FunctionRef, Transfer, bus
from saem.core.jaxpr import ClosedJaxpr
from saem.core.trace import Tracer
from saem.xla import compile
from saem.xla.compile import find_or_compile
from saem.xla.devices import default_device, placement_name, single_device
from saem.xla.lowering import Lowering, avals_of, lower, one_equation
from saem.xla.text import physical_aval

ArrayImpl = _jaxlib.ArrayImpl
_COPY = _jaxlib.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_LEAF = _jaxlib.registry.flatten(0)[1]

# From the type of a value held as another array (a typed PRNG key) to the function that gives it.
held_as: dict[type, Callable[[Any], Any]] = {}


# Primitives whose eager form is no program of its own (placing an array on a device).
eager_rules: dict[type, Callable[..., Any]] = {}


def device_of(x: Any) -> Any:
    """Return the device of a single-device array, None if it lies on several."""
    return getattr(x._sharding, "_device", None)


def put(x: Any, device: Any = None, committed: bool = False) -> Any:
    """Return ``x`` as an Array on ``device`` (the default one if None)."""
    kind = type(x)
    if kind in held_as:
        base = put(held_as[kind](x), device, committed)
        return x.aval.dtype.wrap(base)
    aval = aval_of(x)
    if kind is ArrayImpl:
        return _move(x, aval, device, committed)
    if hasattr(kind, "__jax_array__"):
        return put(x.__jax_array__(), device, committed)
    device = device or default_device()
    if aval.dtype == dtypes.float0:
        # It has no numbers; the text of programs says i1.
        x = np.zeros(aval.shape, bool)
        aval = aval_of(x)
    host = x if isinstance(x, np.ndarray) and x.dtype == aval.dtype else np.asarray(x, aval.dtype)
    if bus.active:
        bus.publish(Transfer(direction="host_to_device", bytes=host.nbytes, source="host",
                             target=placement_name(device), caller=source.here()))
    return _jaxlib.batched_device_put(aval, single_device(device), [host], [device], committed,
                                      False, _COPY)


def _move(x: Any, aval: ShapedArray, device: Any, committed: bool) -> Any:
    here = device_of(x)
    if device is None or (here is device and x._committed == committed):
        return x
    if bus.active and here is not device:
        bus.publish(Transfer(direction="device_to_device", bytes=x.nbytes,
                             source=placement_name(here), target=placement_name(device),
                             caller=source.here()))
    return _jaxlib.batched_device_put(aval, single_device(device), [x], [device], committed)


def placement(args: Sequence[Any]) -> tuple[Any, bool]:
    """Return the device on which a program of ``args`` runs, and whether one of them demands it.

    Raises: ValueError if two committed arguments lie on different devices.
    """
    device = None
    for x in args:
        if type(x) in held_as:
            x = held_as[type(x)](x)
        if type(x) is ArrayImpl and x._committed:
            here = device_of(x)
            if device is not None and here is not device:
                raise errors.explained(
                    errors.ArgumentError, "device.C1",
                    "Received incompatible devices for jitted computation. Got arguments on "
                    f"{placement_name(device)} and {placement_name(here)}.",
                    advice="Move one of them: jax.device_put(x, device).")
            device = here
    return (device, True) if device is not None else (default_device(), False)


class FastPath(NamedTuple):
    """What jaxlib's C++ needs to answer a call by itself."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence[Any]
    out_shardings: Sequence[Any]
    out_avals: Sequence[Any]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[Any]
    const_args: Sequence[Any]


class Program:
    """An executable on a device with all it takes to call it."""

    __slots__ = ("executable", "lowered", "device", "committed", "consts", "handlers", "plain",
                 "sharding", "kept")

    def __init__(self, executable: Any, lowered: Lowering, device: Any, committed: bool):
        self.executable = executable
        self.lowered = lowered
        self.device = device
        self.committed = committed
        self.sharding = single_device(device)
        self.consts = [hold(put(c, device, committed)) for c in lowered.consts]
        physical = [physical_aval(a) for a in lowered.out_avals]
        self.handlers = [_jaxlib.array_result_handler(a, self.sharding, committed)
                         for a in physical]
        self.plain = not any(isinstance(a.dtype, dtypes.ExtendedDType) or a.dtype == dtypes.float0
                             for a in (*lowered.in_avals, *lowered.out_avals))
        self.kept = lowered.kept

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Run on flat arguments (all of them, kept or not); returns flat results."""
        device = self.device
        arrays = []
        for x, kept in zip(args, self.kept):
            if kept:
                if type(x) is not ArrayImpl or device_of(x) is not device:
                    x = hold(put(x, device))
                elif x.is_deleted():
                    raise deleted_argument(x)
                arrays.append(x)
        results = self.executable.execute_sharded([*self.consts, *arrays])
        outs = results.consume_with_handlers(self.handlers)
        if self.plain:
            return outs
        return [_present(x, aval) for x, aval in zip(outs, self.lowered.out_avals)]

    def fast_path(self, out_tree: Any) -> FastPath | None:
        """Return what lets C++ answer the next call, None if Python must."""
        if not self.plain or bus.hits or config.staging.value:
            return None
        # C++ counts the constants, which it puts first, among the arguments.
        kept = [*(True for _ in self.consts), *self.kept]
        ins = [self.sharding] * sum(kept)
        outs = self.lowered.out_avals
        return FastPath(self.executable, out_tree, ins, [self.sharding] * len(outs), list(outs),
                        [self.committed] * len(outs), kept, [None] * len(ins), self.consts)


def _present(x: Any, aval: ShapedArray) -> Any:
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return aval.dtype.wrap(x)  # type: ignore[attr-defined]
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return x


def hold(x: Any) -> Any:
    """Return the array by which a device holds ``x``."""
    function = held_as.get(type(x))
    return x if function is None else function(x)


def deleted_argument(x: Any) -> Exception:
    return errors.explained(
        RuntimeError, "array.deleted",
        f"Array has been deleted with shape={x.aval.str_short(short_dtypes=False)}.",
        advice="Its buffer was donated to an earlier call or deleted. Keep the result of that call "
        "and use it, or do not donate this argument.")


def build(closed: ClosedJaxpr, device: Any, committed: bool, *, name: str,
          function: FunctionRef | None = None, keep_unused: bool = False,
          donated: Sequence[bool] = (), options: dict[str, Any] | None = None) -> Program:
    """Lower and compile (or find) ``closed`` for ``device``."""
    begin = time.perf_counter()
    lowered = lower(closed, name=name, keep_unused=keep_unused, donated=donated)
    seconds = time.perf_counter() - begin
    executable = find_or_compile(lowered, device, function, options, seconds)
    return Program(executable, lowered, device, committed)


fast_path_cache = _jaxlib.PjitFunctionCache()
bus.when_hits_change = lambda hits: config.counting_hits.set_global(hits or None)


def make_fast(name: str, fun: Any, miss: Callable, static_argnums: Sequence[int] = (),
              static_argnames: Sequence[str] = (), key: Any = None) -> Any:
    """Return jaxlib's C++ callable in front of ``miss``."""
    return _jaxlib.pjit(name, fun, miss, list(static_argnums), list(static_argnames),
                        key if key is not None else object(), _jaxlib.registry, _shard_args,
                        fast_path_cache)


def _shard_args(shardings: Sequence[Any], layouts: Any, semantics: Any, args: Sequence[Any],
                **_unused: Any) -> list[Any]:
    """Bring arguments the C++ fast path cannot place itself to where the program wants them."""
    return [hold(put(x, s._device)) for x, s in zip(args, shardings)]


@functools.lru_cache(8192)
def primitive_callable(prim: Any) -> Any:
    """Return the compiled form of one primitive, for arguments outside any trace."""
    programs: dict[Any, Program] = {}
    out_tree = _LEAF

    def miss(*args: Any):
        nonlocal out_tree
        for x in args:
            if isinstance(x, Tracer):
                raise errors.leaked_tracer(x)
        avals = avals_of(args)
        device, committed = placement(args)
        key = (avals, device, committed, config.trace_key())
        program = programs.get(key)
        if program is None:
            closed = one_equation(prim, avals)
            program = programs[key] = build(closed, device, committed, name=prim.name)
            if prim.multiple_results:
                out_tree = _jaxlib.registry.flatten([0] * len(closed.jaxpr.outvars))[1]
        outs = program.run(args)
        return outs if prim.multiple_results else outs[0], program.fast_path(out_tree), False

    # While jit is disabled C++ calls the function itself; a primitive has no other form to run.
    return make_fast(prim.name, lambda *args: miss(*args)[0], miss)


def apply_primitive(prim: Any, args: Sequence[Any]) -> Any:
    """Run one primitive on concrete arguments."""
    if bus.active:
        bus.publish(EagerOp(primitive=prim.name, caller=source.here()))
    rule = eager_rules.get(type(prim))
    return primitive_callable(prim)(*args) if rule is None else rule(prim, *args)


def clear_executables() -> None:
    """Forget all executables and what C++ remembers of them."""
    compile.clear()
    fast_path_cache.clear()

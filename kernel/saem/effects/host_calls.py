"""What does XLA call when a program calls Python?

A ``HostCall``: it takes NumPy views of the operands, calls the function outside any trace, checks
that the results are what was promised, and hands NumPy arrays back.  ``Callback`` is the family of
primitives that lower to such a call.

Read before: ``core.effects``.  Read after: ``effects.callbacks``.
Invariant: equal callbacks have one host function, so equal programs are compiled once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar

import numpy as np

from saem import _jaxlib
from saem.compile.collective_text import DeviceAxes, axis_index_text
from saem.compile.device_assignment import hold
from saem.compile.regions import write_case
from saem.compile.text import physical_aval
from saem.core import config, dtypes, effects, errors, source, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.effects import TOKEN
from saem.core.events import Callback as CallbackEvent
from saem.core.events import bus
from saem.core.primitive import Primitive
from saem.core.trace import at_source, current, eval_trace
from saem.core.varying import vma_of
from saem.placement import devices

_COPY = _jaxlib.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


class FlatCallback:
    """A Python function of a pytree as a function of its flat leaves.

    ``static`` holds (position among the leaves, value) of a non-array.
    """

    __slots__ = ("callback_func", "in_tree", "static")

    def __init__(self, callback_func: Callable, in_tree: Any,
                 static: tuple[tuple[int, Any], ...] = ()):
        self.callback_func = callback_func
        self.in_tree = in_tree
        self.static = static

    def __call__(self, *leaves: Any) -> Any:
        args, kwargs = self.in_tree.unflatten(with_static(leaves, self.static))
        return self.callback_func(*args, **kwargs)

    def _key(self) -> tuple:
        try:
            hash(self.callback_func)
        except TypeError:
            return id(self.callback_func), self.in_tree, self.static
        return self.callback_func, self.in_tree, self.static

    def __eq__(self, other: object) -> bool:
        return type(other) is FlatCallback and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key()[:2])

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={self.callback_func!r}, in_tree={self.in_tree})"


def with_static(leaves: Sequence[Any], static: Sequence[tuple[int, Any]]) -> list[Any]:
    """Return ``leaves`` with the static values put in at their positions."""
    whole = list(leaves)
    for position, value in static:
        whole.insert(position, value)
    return whole


_LIBRARY = os.path.dirname(os.__file__) + os.sep
host_call_numbers = itertools.count(1)


class HostCall:
    """The Python function of one callback equation: NumPy views in, a tuple of arrays out."""

    __slots__ = ("prim", "in_avals", "number", "__weakref__")

    def __init__(self, prim: Callback, in_avals: tuple[ShapedArray, ...]):
        self.number = next(host_call_numbers)  # unlike ``id`` it is never given out again
        self.prim = prim
        self.in_avals = in_avals

    def __call__(self, *buffers: np.ndarray) -> tuple[np.ndarray, ...]:
        threaded = self.prim.threaded
        arrays = [on_host(b) for b in buffers[threaded:]]
        outs = run(self.prim, arrays)
        return (np.array(buffers[0]), *outs) if threaded else tuple(outs)


_host_calls: weakref.WeakValueDictionary[Any, HostCall] = weakref.WeakValueDictionary()


def host_call(prim: Callback, in_avals: tuple[ShapedArray, ...]) -> HostCall:
    """Return the one function of equal callbacks, so that equal programs are compiled once."""
    return _host_calls.setdefault((prim, in_avals), HostCall(prim, in_avals))


@functools.cache
def host_device() -> Any:
    """Return the CPU device of this process on which callbacks see their arguments."""
    return devices.local_devices(backend="cpu")[0]


def on_host(buffer: np.ndarray) -> Any:
    """Return a copy of ``buffer``, which XLA lends only for the call, as an array.

    Of keys it is their numbers, as in JAX.
    """
    device = host_device()
    return _jaxlib.batched_device_put(
        aval_of(buffer), devices.single_device(device), [buffer], [device], False, False, _COPY)


def on_the_host() -> contextlib.AbstractContextManager:
    """Return the context in which new arrays lie on the host, where they lie elsewhere."""
    if devices.backend().platform == "cpu":
        return contextlib.nullcontext()
    return config.default_device(host_device())


def as_value(array: Any, aval: ShapedArray) -> Any:
    """Return the value of ``aval`` that ``array`` holds: itself, or the keys it holds."""
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return aval.dtype.wrap(array)
    return array


def run(prim: Callback, arrays: Sequence[Any]) -> list[np.ndarray]:
    """Call the Python function of ``prim`` on ``arrays``, outside any trace; check its results.

    What it computes is computed on the host: a GPU whose program waits for it would wait for ever.

    Raises: RuntimeError that names the callback, with what it raised as its cause.
    """
    begin = time.perf_counter()
    try:
        with (config.holding(config.staging, None), current(eval_trace), at_source(None),
              effects.calling(), on_the_host()):
            found = prim.host(*arrays)
            outs = checked(prim, tree.leaves(found))
    except Exception as error:
        raise effects.failed(failure_of(prim, error), error) from error
    if bus.active:
        bus.publish(CallbackEvent(name=prim.host_name(), seconds=time.perf_counter() - begin))
    return outs


class BrokenPromise(RuntimeError):
    """A callback returned something of another type than it promised."""


def checked(prim: Callback, outs: Sequence[Any]) -> list[np.ndarray]:
    """Return what a callback returned as NumPy arrays of the promised types.

    Raises: BrokenPromise naming the result that is of another type.
    """
    promised = prim.out_avals
    if len(outs) != len(promised):
        raise BrokenPromise("Mismatched number of outputs from callback. "
                            f"Expected: {len(promised)}, Actual: {len(outs)}")
    made = []
    for number, (out, aval) in enumerate(zip(outs, promised)):
        value, held = np.asarray(hold(out)), physical_aval(aval)
        got = dtypes.canonicalize_dtype(value.dtype)
        for what, wanted, actual in (("shape", held.shape, value.shape),
                                     ("dtype", held.dtype, got)):
            if wanted != actual:
                raise BrokenPromise(f"Incorrect output {what} for return value #{number}: "
                                    f"Expected: {wanted}, Actual: {actual}")
        made.append(value.astype(held.dtype, copy=False))
    return made


def failure_of(prim: Callback, error: Exception) -> Exception:
    """Return the error for a failed callback: which one, why, and where."""
    what = "did not return what it promised" if isinstance(error, BrokenPromise) \
        else f"raised {type(error).__name__}"
    return errors.explained(
        RuntimeError, effects.CALLBACK,
        f"{prim.name}: the callback {prim.host_name()} {what}: {error}",
        where=place_of(sys.exc_info()[2]),
        advice="The engine can be used as before. The original error is the cause of this one.")


def in_library(file: str) -> bool:
    """Return whether ``file`` is Python's own library."""
    return file.startswith(_LIBRARY) and "site-packages" not in file


def place_of(traceback: TracebackType | None) -> Any:
    """Return the innermost position in user code of ``traceback``."""
    where = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not source.is_internal(code.co_filename) and not in_library(code.co_filename):
            where = source.position((code, traceback.tb_lasti, code.co_filename))
        traceback = traceback.tb_next
    return where


class Callback(Primitive):
    """A call of Python by a program.

    ``threaded`` is set while lowering: the first operand and output are then the token.
    """

    multiple_results = True
    effects: ClassVar[Any] = frozenset()
    threaded: ClassVar[bool]
    out_avals: ClassVar[Any] = ()

    def host(self, *arrays: Any) -> Any:
        """Call the Python function."""
        raise NotImplementedError(self.name)

    def host_name(self) -> str:
        """Return what a person calls the Python function."""
        return self.name

    @property
    def params(self):
        return {k: v for k, v in super().params.items() if k != "threaded"}

    def with_token(self) -> tuple[Callback, int]:
        return dataclasses.replace(self, threaded=True), 0

    def typing(self, *avals):
        return [TOKEN, *self.out_avals] if self.threaded else list(self.out_avals)

    def evaluate(self, *xs):
        first = list(xs[:self.threaded])
        return first + checked(self, tree.leaves(self.host(*xs[self.threaded:])))

    def lower(self, ctx, *xs):
        outs = [TOKEN, *self.out_avals] if self.threaded else self.out_avals
        inside = ctx.module.device_axes
        if inside is None or not inside.left or not self.effects:
            return self.write_call(ctx, xs, outs)
        if outs:
            raise NotImplementedError(
                "callbacks are only supported in spmd computations when all mesh axes are "
                "partitioned manually (no partial automatic sharding). Name all axes of the mesh "
                "in the axis_names of shard_map.")
        write_once(ctx, inside, xs, lambda *whole: self.write_call(ctx, whole, outs))
        return []

    def write_call(self, ctx: Any, xs: Sequence[str], outs: Sequence[ShapedArray]) -> list[str]:
        """Write the call with operands ``xs``."""
        platform = "cpu" if ctx.module.platform == "cpu" else "gpu"
        index = ctx.module.callback(host_call(self, tuple(ctx.in_avals)))
        kept = "true" if self.effects else "false"
        varies = any(vma_of(a) for a in ctx.in_avals)
        whole, note = on_several(ctx.module, len(outs), varies)
        parts = "_partitioned" if getattr(self, "partitioned", False) and whole else ""
        layouts = [", ".join(layout(a) for a in avals) for avals in (ctx.in_avals, outs)]
        return ctx.emit_many(
            f'"stablehlo.custom_call"({", ".join(xs)}) <{{call_target_name = '
            f'"xla_ffi{parts}_python_{platform}_callback", api_version = 4 : i32, '
            f"backend_config = {{index = {index} : ui64}}, has_side_effect = {kept}, "
            f"operand_layouts = [{layouts[0]}], result_layouts = [{layouts[1]}]}}>",
            *xs, outs=outs, attributes=note)


def write_once(ctx: Any, inside: DeviceAxes, xs: Sequence[str],
               write: Callable[..., list[str]]) -> None:
    """Write what ``write`` does with the whole operands, on the first device along the axes of
    the mesh that are left to the partitioner."""
    mesh = f"@{inside.symbol}"
    ins = ", ".join(f"<{mesh}, [{', '.join(['{}'] * len(physical_aval(ctx.avals[x]).shape))}]>"
                    for x in xs)
    names = ", ".join(f'"{name}"' for name in inside.left)

    def build(*whole: str) -> list[str]:
        indices = [axis_index_text(ctx, inside, name) for name in inside.left]
        total = functools.reduce(lambda a, b: ctx.elementwise("stablehlo.add", a, b), indices)
        return write_case(ctx, total, (), [lambda: write(*whole), list])

    region = ctx.region([ctx.avals[x] for x in xs], build, shardy=True)
    ctx.emit_many(
        f"sdy.manual_computation({', '.join(xs)}) in_shardings=[{ins}] out_shardings=[] "
        f"manual_axes={{{names}}}", *xs, outs=(), regions=[region])


def on_several(module: Any, results: int, varies: bool) -> tuple[bool, dict[str, str] | None]:
    """Return whether a program on several devices is written here as a whole, and the attribute
    by which a callback then runs once, on the first device with all of its operands."""
    inside = module.device_axes
    if len(module.devices) < 2:
        return False, None
    if inside is not None and (results or varies or not inside.silent):
        return False, None  # each device calls for itself
    mesh = "  sdy.mesh @first_device = <[], device_ids=[0]>"
    if mesh not in module.header:
        module.header.append(mesh)
    places = ", ".join(["<@first_device, []>"] * max(results, 1))
    return inside is None, {"sdy.sharding": f"#sdy.sharding_per_value<[{places}]>"}


def layout(aval: ShapedArray, order: Sequence[int] = ()) -> str:
    """Return the layout of ``aval`` as an MLIR attribute: its axes, the fastest first.

    ``order`` are the slowest, where they are in another order; axes inside a key are the fastest.
    """
    rank = len(physical_aval(aval).shape)
    whole = [*reversed(range(len(order), rank)), *order]
    return f"dense<{whole}> : tensor<{rank}xindex>"


def name_of(fun: Any) -> str:
    """Return ``f (cell 3, line 1)``: a function's name and where it was written."""
    ref = source.function_ref(fun)
    known = ref.line and not source.is_internal(ref.file)
    place = f" ({errors.file_name(ref.file)}, line {ref.line})" if known else ""
    return f"`{ref.name}`{place}"

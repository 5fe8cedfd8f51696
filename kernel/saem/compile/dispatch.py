"""How is a compiled program called?

``put`` brings a value to a device as an ``Array``; a ``Program`` is an executable with all it takes
to call it, from Python or from jaxlib's C++ fast path; ``apply_primitive`` runs one primitive.

Read before: ``compile.executables``, ``compile.device_assignment``.  Read after: ``jit.jitted``.
Invariant: a value that the user did not place is uncommitted and follows the computation; results
are committed exactly if some argument was or a place was demanded (tests/kernel/test_jit.py).
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saem import _jaxlib
from saem.compile import executables, mappings
from saem.compile.device_assignment import (
    Demands,
    Spread,
    devices_of,
    held_as,
    hold,
    named_by,
    place_names,
    placement,
)
from saem.compile.executables import find_or_compile
from saem.compile.lowering import Lowering, avals_of, lower, no_value, one_equation
from saem.compile.quick import SameRounding
from saem.compile.text import physical_aval
from saem.core import config, dtypes, effects, errors, finite, source
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from saem.core.events import EagerOp, FunctionRef, Transfer, bus
from saem.core.hi_types import is_high
from saem.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from saem.core.kept import Kept, forget
from saem.core.leaks import leaked_tracer
from saem.core.memory_spaces import HOST, placed, space_of
from saem.core.placement_types import Seen
from saem.core.sharded import as_sharded, plain
from saem.core.trace import Tracer, state
from saem.placement.devices import (
    default_device,
    lowering_platform,
    placement_name,
    single_device,
)
from saem.placement.layouts import (
    Layout,
    Terms,
    in_memory,
    is_usual,
    layouts_of,
    space_of_sharding,
    terms_of,
    unusual_layout,
    usual_layout,
)
from saem.placement.meshes import Mesh, mesh_context
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding, holds_addends, named_from_xla
from saem.placement.spread import move, place_like
from saem.placement.transfer_guards import unwatched

ArrayImpl = _jaxlib.ArrayImpl
_COPY = _jaxlib.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALWAYS = _jaxlib.ArrayCopySemantics.ALWAYS_COPY
_LEAF = _jaxlib.registry.flatten(0)[1]


def device_of(x: Any) -> Any:
    """Return the device of a single-device array, None if it is on several."""
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
    if is_high(aval):
        return aval.ty.raise_val(*[put(part, device, committed) for part in aval.ty.lower_val(x)])
    if kind is ShapeDtypeStruct:
        raise no_value(x)
    if hasattr(kind, "__jax_array__"):
        return put(x.__jax_array__(), device, committed)
    device = device or default_device()
    if aval.dtype == dtypes.float0:  # no device holds what has no numbers
        return np.zeros(aval.shape, dtypes.float0)
    host = x if isinstance(x, np.ndarray) and x.dtype == aval.dtype else np.asarray(x, aval.dtype)
    return put_host(host, aval, device, committed)


def put_value(x: Any, put: Callable[[Any], Any] = put) -> Any:
    """Return ``x``, a number or NumPy array, as an array, which ``put`` makes.

    While a program is staged it is a value of that.
    """
    return state.trace.constant(x, put) if config.staging.value else put(x)


def put_host(host: np.ndarray, aval: ShapedArray, device: Any = None, committed: bool = False
             ) -> Any:
    """Return NumPy's numbers as an Array of ``aval`` on ``device`` (the default one if None)."""
    device = device or default_device()
    if bus.active:
        bus.publish(Transfer(direction="host_to_device", bytes=host.nbytes, source="host",
                             target=placement_name(device), caller=source.here()))
    return _jaxlib.batched_device_put(aval, single_device(device), [host], [device], committed,
                                      False, _COPY, True)  # in the dtype of its aval


def _put_held(x: Any, device: Any, committed: bool = False) -> Any:
    """Return the array by which ``device`` holds ``x``; a float0 is i1 in the text of programs."""
    if type(x) is np.ndarray and x.dtype == dtypes.float0:
        x = np.zeros(x.shape, bool)
    return hold(put(x, device, committed))


def own(x: Any) -> Any:
    """Return the value ``x`` for a program to keep: of an array a copy.

    The caller may donate the array to another program, or delete it, while this one goes on.
    Programs share the copy, which is kept as long as one of them is.
    Raises: RuntimeError for an array that was deleted.
    """
    x = hold(x)
    if type(x) is not ArrayImpl:
        return x
    check_not_deleted(x)
    known = _copies.get(id(x))
    copy = known() if known is not None else None
    if copy is None:
        here = x._sharding
        copy, = unwatched(_jaxlib.batched_copy_array_to_devices_with_sharding,
                          [x], [here._internal_device_list], [here], [_ALWAYS])
        if known is None:  # else there is one to take it away
            weakref.finalize(x, _copies.pop, id(x), None).atexit = False
        _copies[id(x)] = weakref.ref(copy)
    return copy


# The copies of arrays, weakly, by the places of these in memory.
_copies: dict[int, weakref.ref] = {}


def put_made(x: Any) -> Any:
    """Return ``x``, numbers that a program makes, as an Array placed as results of programs are.

    On the default device or, while a mesh is in force, replicated on its devices.
    """
    mesh = mesh_context.value
    if mesh is None or not isinstance(mesh, Mesh):
        return put(x)
    return hold(place_like(x, NamedSharding(mesh, PartitionSpec())))


def put_results(values: Sequence[Any], where: Any, committed: bool) -> list[Any]:
    """Return what Python computed at ``where``, placed as results of a program there are.

    On the device, or replicated on the devices of a ``Spread``.
    """
    if isinstance(where, Spread):
        everywhere = NamedSharding(where.mesh, PartitionSpec())
        return [put_spread(x, everywhere) for x in values]
    return [put(x, where, committed) for x in values]


def on(device: Any, like: Any) -> Any:
    """Return the sharding on ``device``, in the kind of memory that holds ``like``."""
    return single_device(device) if space_of(like.aval) is not HOST else in_memory(
        single_device(device), "pinned_host")


def _move(x: Any, aval: ShapedArray, device: Any, committed: bool) -> Any:
    here = device_of(x)
    if device is None or (here is device and x._committed == committed):
        return x
    check_not_deleted(x)
    if bus.active and here is not device:
        bus.publish(Transfer(direction="device_to_device", bytes=x.nbytes,
                             source=place_names(x._sharding), target=placement_name(device),
                             caller=source.here()))
    if here is None:
        return move(x, on(device, x), committed)
    again = (plain(aval), on(device, x), [x], [device], committed)
    if here is device:
        return unwatched(_jaxlib.batched_device_put, *again)
    return _jaxlib.batched_device_put(*again)


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
    """An executable at a place (one device, or a ``Spread``) with all it takes to call it."""

    __slots__ = ("executable", "lowered", "device", "committed", "consts", "handlers", "plain",
                 "ins", "outs", "avals", "kept", "moves")

    def __init__(self, executable: Any, lowered: Lowering, where: Any, committed: bool):
        self.executable = executable
        self.lowered = lowered
        self.kept = lowered.kept
        self.moves = isinstance(where, Spread) and where.moves
        terms = lowered.terms
        # A memory that was named is a chosen place.
        self.committed = committed = committed or bool(terms and any(terms.out_kinds))
        physical = [physical_aval(a) for a in lowered.out_avals]
        # Constants are a part of the program: a guard of transfers lets them pass.
        unwatched(self.settle, where, physical)
        if terms is not None:
            self.device = None  # each argument is looked at
            self.ins = [in_memory(s, kind) for s, kind in zip(self.ins, terms.in_kinds)]
            self.outs = [in_memory(s, kind) for s, kind in zip(self.outs, terms.out_kinds)]
            # As in JAX, types do not tell of a memory that was demanded of one device alone.
            physical = [placed(a, space_of_sharding(s)) if isinstance(s, NamedSharding) else a
                        for a, s in zip(physical, self.outs)]
        self.avals = [as_sharded(a, s) for a, s in zip(physical, self.outs)]
        self.handlers = [_jaxlib.array_result_handler(a, s, committed)
                         for a, s in zip(self.avals, self.outs)]
        # The token is not a result to its caller.
        self.outs, self.avals = self.outs[lowered.ordered:], self.avals[lowered.ordered:]
        self.plain = not any(isinstance(a.dtype, dtypes.ExtendedDType) or a.dtype == dtypes.float0
                             for a in (*lowered.in_avals, *lowered.out_avals))

    def settle(self, where: Any, outs: Sequence[ShapedArray]) -> None:
        """Set ``device``, ``consts``, ``ins`` and ``outs``."""
        if isinstance(where, Spread):
            self.device = None
            self.settle_shardings(where, outs)
        else:
            self.device = where
            self.ins = [single_device(where)] * sum(self.kept)
            self.outs = [single_device(where)] * len(outs)
            self.consts = [_put_held(own(c), where, self.committed) for c in self.lowered.consts]

    def settle_shardings(self, where: Spread, outs: Sequence[ShapedArray]) -> None:
        """Set ``consts``, ``ins`` and ``outs`` of a program on several devices.

        Shardings are those demanded, else those that XLA's partitioner chose.
        """
        lowered = self.lowered
        if lowered.exchange is not None:
            where = lowered.exchange.placed(where)
        where = where.with_token() if lowered.ordered else where
        demanded = where.ins or (None,) * len(self.kept)
        demanded = [s for s, kept in zip(demanded, self.kept) if kept]
        count = len(lowered.consts)
        inputs = [physical_aval(aval_of(c)) for c in lowered.consts]
        inputs += [physical_aval(a) for a in lowered.in_avals]
        ins = settled_shardings(self.executable.get_parameter_shardings(), where.meshes, inputs,
                                [*(None for _ in lowered.consts), *demanded])
        self.consts = [hold(put_spread(own(c), s)) for c, s in zip(lowered.consts, ins)]
        self.ins = ins[count:]
        wanted = where.outs or (None,) * len(outs)
        self.outs = settled_shardings(self.executable.get_output_shardings(), where.meshes, outs,
                                      wanted)
        self.outs = [s if w is not None else in_usual_form(s, len(a.shape), where, self.ins)
                     for w, s, a in zip(wanted, self.outs, outs)]

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Run on flat arguments (all of them, kept or not); returns flat results.

        Raises: RuntimeError if the settings forbid it.
        """
        if config.no_execution.value:
            raise RuntimeError(f"JAX tried to execute function jit({self.lowered.name}), but the "
                               "no_execution config option is set")
        lowered = self.lowered
        exchange = lowered.exchange
        if exchange is not None:
            references, args = args, exchange.take(args)
        if lowered.module.callbacks:
            outs = self.run_with_effects(args)
        else:
            results = self.executable.execute_sharded([*self.consts, *self.place(args)])
            outs = results.consume_with_handlers(self.handlers)
        if finite.wanted():
            finite.check(outs, lowered.closed, args, lowered.name)
        if self.plain and exchange is None:
            return outs
        outs = [_present(x, aval) for x, aval in zip(outs, lowered.out_avals[lowered.ordered:])]
        return outs if exchange is None else exchange.put_back(references, outs)

    def run_with_effects(self, args: Sequence[Any]) -> list[Any]:
        """Run a program that calls Python: keep its token, and remember that it runs.

        Raises: JaxRuntimeError, caused by what a callback raised.
        """
        ordered = self.lowered.ordered
        arrays = self.place([effects.token(), *args] if ordered else args)
        effects.make_room()
        try:
            results = self.executable.execute_sharded([*self.consts, *arrays], with_tokens=True)
        except _jaxlib.JaxRuntimeError as error:
            failure = effects.with_cause(error)
            raise failure from failure.__cause__
        effects.started(results.consume_token(), self.lowered.closed)
        outs = results.consume_with_handlers(self.handlers)
        if ordered:
            effects.keep_token(outs.pop(0))
        return outs

    def place(self, args: Sequence[Any]) -> list[Any]:
        """Return the kept arguments as arrays, placed as the program needs them."""
        device = self.device
        if device is None:
            given = [x for x, kept in zip(args, self.kept) if kept]
            arrays = [put_spread(x, s) for x, s in zip(given, self.ins)]
            if any(self.lowered.donated):
                refuse_donated_twice(arrays, self.lowered.donated)
            return self.with_layouts(arrays) if Seen.storage else arrays
        arrays = []
        for x, kept in zip(args, self.kept):
            if kept:
                if type(x) is not ArrayImpl or device_of(x) is not device:
                    x = _put_held(x, device)
                elif x.is_deleted():
                    raise deleted_argument(x)
                arrays.append(x)
        return self.with_layouts(arrays) if Seen.storage else arrays

    def with_layouts(self, arrays: Sequence[Any]) -> list[Any]:
        """Return arguments with their axes in the order that the program was compiled for."""
        terms = self.lowered.terms
        layouts = terms.in_layouts if terms else (None,) * len(arrays)
        if Layout.AUTO in layouts:
            chosen = self.executable.get_parameter_layouts()[len(self.consts):]
            layouts = [Layout.from_xla(s) if w is Layout.AUTO else w
                       for w, s in zip(layouts, chosen)]
        return [with_layout(x, layout or usual_layout(x))
                for x, layout in zip(arrays, layouts)]

    def fast_path(self, out_tree: Any) -> FastPath | None:
        """Return what lets C++ answer the next call, None if Python must."""
        if not self.plain or bus.hits or config.staging.value or self.lowered.module.callbacks \
                or finite.wanted() or not config.shortcuts.value:
            return None
        if self.lowered.exchange is not None:
            return None  # C++ has no references, nor values that are no arrays
        if self.lowered.terms and any(map(any, self.lowered.terms[3:])):
            return None  # C++ would not check the layout of an argument
        if self.device is None and (self.moves or any(self.lowered.donated)):
            # C++ would not move an argument to the same devices in another order, and on several
            # CPUs one that is deleted would end the process, not the call.
            return None
        # C++ counts the constants, which it puts first, among the arguments.
        kept = [*(True for _ in self.consts), *self.kept]
        ins = [*(c._sharding for c in self.consts), *self.ins]
        return FastPath(self.executable, out_tree, ins, self.outs, self.avals,
                        [self.committed] * len(self.outs), kept, [None] * len(ins), self.consts)


def put_spread(x: Any, sharding: Any) -> Any:
    """Return the array that holds ``x``, with ``sharding`` (of one device or several)."""
    x = hold(x)
    if type(x) is ArrayImpl:
        check_not_deleted(x)
        if x._sharding == sharding:
            return x
    device = getattr(sharding, "_device", None)
    if device is not None and is_usual(sharding):
        return _put_held(x, device)
    return hold(spread_like(x, sharding))


def spread_like(x: Any, sharding: Any) -> Any:
    """Return the value ``x`` committed to a sharding over several devices.

    Addends of a sum are made, or added up, by a program; and a program exchanges the parts of an
    array between processes.
    Raises: RuntimeError for an array that was deleted.
    """
    if type(x) is not ArrayImpl:
        return place_like(x, sharding)
    check_not_deleted(x)
    if x._sharding == sharding:
        return place_like(x, sharding)
    here = x._sharding
    if Seen.sums and (holds_addends(here) or holds_addends(sharding)):
        if here.device_set != sharding.device_set:
            x = place_like(x, NamedSharding(sharding.mesh, PartitionSpec()))
        return resharded(x, sharding)
    if not crosses_processes(x, sharding):
        return place_like(x, sharding)
    # The program has the devices in their order here, and leaves the kind of memory.
    in_order = here._device_assignment == sharding._device_assignment
    via = sharding if in_order else NamedSharding(here.mesh, PartitionSpec())
    return place_like(resharded(x, via.with_memory_kind(here.memory_kind)), sharding)


def resharded(x: Any, sharding: Any) -> Any:
    """Return the array ``x`` with ``sharding`` on the same devices, by a program."""
    key = x.aval, x._sharding, sharding
    program = _resharding.get(key)
    if program is None:
        var = Var(x.aval)
        closed = ClosedJaxpr(Jaxpr([], [var], [var], []))
        demands = Demands((x._sharding,), (sharding,))
        program = build(closed, placement([x], demands)[0], True, name="resharded")
        _resharding.keep(key, program)
    return program.run([x])[0]


_resharding = Kept()


def crosses_processes(x: Any, sharding: Any) -> bool:
    """Whether parts of ``x`` may have to go to other processes to be placed as ``sharding`` says.

    The answer is the same in all of these, since they must run the same programs.
    """
    here = x._sharding
    return (not here.is_fully_addressable and not here.is_fully_replicated
            and here.device_set == sharding.device_set
            and not here.is_equivalent_to(sharding.with_memory_kind(here.memory_kind), x.ndim))


def with_layout(x: Any, layout: Layout) -> Any:
    """Return an array with its axes in the order of ``layout``; itself if they are.

    Raises: RuntimeError for an array that was deleted.
    """
    check_not_deleted(x)
    if Layout.from_xla(x._pjrt_layout).same_order(layout):
        return x
    aval, sharding = x.aval, x._sharding
    program = _copies_to_layouts.get((aval, sharding, layout))
    if program is None:
        var = Var(aval)
        closed = ClosedJaxpr(Jaxpr([], [var], [var], []))
        demands = Demands((sharding,), (sharding,), None, (unusual_layout(x),), (layout,))
        where, _ = placement([x], demands)
        program = build(closed, where, True, name="relaid", terms=terms_of(closed, (), demands))
        _copies_to_layouts.keep((aval, sharding, layout), program)
    return program.run([x])[0]


_copies_to_layouts = Kept()


def settled_shardings(chosen: Sequence[Any] | None, meshes: Sequence[Mesh],
                      avals: Sequence[ShapedArray], demanded: Sequence[Any]) -> list[Any]:
    """Return the shardings of arguments or results: as demanded, else as the partitioner chose."""
    if chosen is None or len(chosen) != len(avals):
        chosen = [_jaxlib.HloSharding.replicate()] * len(avals)
    return [wanted if isinstance(wanted, NamedSharding) else
            named_from_xla(s, meshes, len(aval.shape))
            for wanted, s, aval in zip(demanded, chosen, avals)]


def in_usual_form(sharding: NamedSharding, ndim: int, where: Spread, ins: Sequence[Any]
                  ) -> NamedSharding:
    """Return the equivalent of ``sharding``, which XLA chose for a result, that users expect.

    Where types decide, its spec has an entry for each axis; where all axes are Auto, it is the
    sharding of an input if one is equivalent for rank ``ndim``.
    """
    if where.by_type:
        return of_rank(sharding, ndim)
    if not where.mesh.explicit_axes:
        for other in ins:
            if len(other.spec) <= ndim and other.is_equivalent_to(sharding, ndim):
                return other
    return sharding


def of_rank(sharding: NamedSharding, ndim: int) -> NamedSharding:
    """Return ``sharding`` with an entry for each of ``ndim`` axes."""
    entries = sharding.spec.partitions
    return sharding.update(spec=sharding.spec.update(
        partitions=(*entries, *[None] * (ndim - len(entries)))))


def present(held: Any, like: Any) -> Any:
    """Return the value that ``held`` holds, of the type ``like`` has."""
    return _present(held, aval_of(like))


def _present(x: Any, aval: ShapedArray) -> Any:
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return aval.dtype.wrap(x)
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return x


def refuse_donated_twice(arrays: Sequence[Any], donated: Sequence[bool]) -> None:
    """Refuse an array that is donated and passed again: on several CPUs XLA ends the process.

    Raises: JaxRuntimeError, as XLA does on one device.
    """
    first: dict[int, int] = {}
    for number, (x, gives) in enumerate(zip(arrays, donated)):
        before = first.setdefault(id(x), number)
        if before != number and (gives or donated[before]):
            raise _jaxlib.JaxRuntimeError(
                "INVALID_ARGUMENT: Attempt to donate the same buffer twice in Execute() (flattened "
                f"argument {number}, first use: {before}). Pass a copy: jnp.copy(x).")


def check_not_deleted(x: Any) -> None:
    """Raises: RuntimeError if the array ``x`` was deleted or donated."""
    if x.is_deleted():
        raise deleted_argument(x)


def deleted_argument(x: Any) -> Exception:
    return errors.explained(
        RuntimeError, "array.deleted",
        f"Array has been deleted with shape={x.aval.str_short()}.",
        advice="Its buffer was donated to an earlier call or deleted. Keep the result of that call "
        "and use it, or do not donate this argument.")


def build(closed: ClosedJaxpr, where: Any, committed: bool, *, name: str,
          function: FunctionRef | None = None, keep_unused: bool = False,
          donated: Sequence[bool] = (), options: dict[str, Any] | None = None,
          terms: Terms | None = None, same_rounding: SameRounding = False) -> Program:
    """Lower and compile (or find) ``closed`` for a device or a ``Spread``."""
    begin = time.perf_counter()
    where = where.as_typed(closed) if isinstance(where, Spread) else where
    devices = devices_of(where)
    lowered = lower(closed, name=name, keep_unused=keep_unused, donated=donated,
                    spread=where if isinstance(where, Spread) else None,
                    platform=lowering_platform(devices[0]), terms=terms)
    seconds = time.perf_counter() - begin
    executable = find_or_compile(lowered, devices, function, options, seconds, same_rounding)
    keep_within_limit()
    return Program(executable, lowered, where, committed)


fast_path_cache = _jaxlib.PjitFunctionCache()


def make_fast(name: str, fun: Any, miss: Callable, static_argnums: Sequence[int] = (),
              static_argnames: Sequence[str] = (), *, library: bool = False) -> Any:
    """Return jaxlib's C++ callable in front of ``miss``.

    A function of the ``library`` takes no containers of the user's: an operand that is one, as in
    ``x * container``, is neither taken apart nor compared with others.
    """
    registry = _jaxlib.plain_registry if library else _jaxlib.registry
    return _jaxlib.pjit(name, fun, miss, list(static_argnums), list(static_argnames), object(),
                        registry, _shard_arg, fast_path_cache)


def _shard_arg(x: Any, sharding: Any, *_layout: Any) -> Any:
    """Place an argument for a program where the C++ fast path cannot do it itself."""
    return put_spread(x, sharding)


@functools.lru_cache(8192)
def primitive_callable(prim: Any) -> Any:
    """Return the compiled form of one primitive, for arguments outside any trace."""
    programs = Kept()
    demands = named_by(prim).demands(prim.in_shardings, prim.out_shardings)

    def miss(*args: Any) -> tuple[Any, FastPath | None, bool]:
        program, out_tree = program_of(prim, args, demands, programs)
        outs = program.run(args)
        return outs if prim.multiple_results else outs[0], program.fast_path(out_tree), False

    # While jit is disabled C++ calls the function itself; a primitive has no other form to run.
    return make_fast(prim.name, lambda *args: miss(*args)[0], miss, library=True)


def program_of(prim: Any, args: Sequence[Any], demands: Demands, programs: Kept
               ) -> tuple[Program, Any]:
    """Return the program of ``prim`` for such arguments, of those kept or new, and the structure of
    its results."""
    for x in args:
        if isinstance(x, Tracer):
            raise leaked_tracer(x)
    avals = avals_of(args)
    where, committed = placement(args, demands)
    layouts = layouts_of(args) if Seen.storage else None
    key = (avals, where, committed, config.trace_key(), layouts)
    known = programs.get(key)
    if known is None:
        closed = one_equation(prim, avals)
        terms = terms_of(closed, args, demands) if Seen.storage else None
        out_tree = _LEAF
        if prim.multiple_results:  # how many depends on the shapes of the operands
            out_tree = _jaxlib.registry.flatten([0] * len(closed.jaxpr.outvars))[1]
        known = build(closed, where, committed, name=prim.name, terms=terms,
                      donated=prim.donated_invars), out_tree
        programs.keep(key, known)
    return known


def apply_primitive(prim: Any, args: Sequence[Any]) -> Any:
    """Run one primitive on concrete arguments."""
    if bus.eager:
        bus.publish(EagerOp(primitive=prim.name, caller=source.here()))
    for x in args:
        if isinstance(x, np.ndarray) and (type(x) is not np.ndarray or not x.dtype.isnative):
            aval_of(x)  # refuses masks, and bytes in another order: C++ would not see them
    return primitive_callable(prim)(*args) if prim.eager is None else prim.eager(*args)


def keep_within_limit() -> None:
    """Drop all programs that can be made again if the system lets the process hold few more."""
    if mappings.watch.too_many():
        forget()
        clear_executables()
        mappings.watch.dropped()


def clear_executables() -> None:
    """Drop all compiled operations, and the calls to them that jaxlib's C++ keeps."""
    executables.clear()
    fast_path_cache.clear()

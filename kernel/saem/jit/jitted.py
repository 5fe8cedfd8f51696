"""What happens when a jitted function is called?

The first time: arguments are flattened, the function is traced, the program lowered, compiled (or
found) and run.  After that jaxlib's C++ answers by itself until something in the signature changes:
shape, dtype, weak type, a static value, structure, placement, a setting.

Read before: ``jit.call``, ``compile.dispatch``.  Read after: ``jit.decorator``.
Invariant: a traced program is kept for (function, options of jit, structure, static values and
their types, avals, named axes, mesh, settings), and nothing else decides; events name those that
changed (tests/lens/observe/test_recompile_table.py).
"""

from __future__ import annotations

import copyreg
import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from saem.compile import dispatch
from saem.compile.device_assignment import Demands, IncompatiblePlaces, placement
from saem.compile.dispatch import Program
from saem.compile.donation import warn_wasted
from saem.compile.lowering import used_inputs, with_values
from saem.compile.quick import SameRounding
from saem.core import config, errors, frames, source, tree
from saem.core.arguments import (
    Bound,
    Parameters,
    abstract_arguments,
    check_callable,
    check_static_hashable,
    described,
    name_of,
    shown_name,
)
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import unwrapped
from saem.core.events import CacheHit, CacheMiss, FunctionRef, bus
from saem.core.hi_types import AbstractHigh, array_of
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr
from saem.core.kept import Kept
from saem.core.lazy import later
from saem.core.leaks import leaked_tracer
from saem.core.placement_types import Seen
from saem.core.provenance import info_of
from saem.core.refs import check_references
from saem.core.trace import Trace, Tracer, bind, current, eval_trace, is_tracer, runs_at_once, state
from saem.jit import signature
from saem.ops.constraints import demands_of, is_place, place_of, prefix
from saem.ops.keys import key_watch
from saem.placement.devices import SingleDeviceSharding
from saem.placement.layouts import terms_of
from saem.placement.meshes import mesh_set
from saem.placement.shardings import on_devices
from saem.placement.spread import check_fits
from saem.transform.programs import table_of, tables, trace_key, traced
from saem.transform.staging import move_refs, move_tracer_consts

if TYPE_CHECKING:
    from saem.jit.call import JitCall

calls: Any = later("saem.jit.call")
logging: Any = later("logging")  # only settings that log need it
known_paths: Any = later("saem.transform.known_paths")  # only eager gradients need it


class Entry:
    """A traced program with its output structure and its executables by place."""

    __slots__ = ("closed", "out_tree", "programs", "moved", "call", "mesh", "donated", "seen",
                 "demands", "refs")

    def __init__(self, closed: ClosedJaxpr, out_tree: Any, moved: list[Any], mesh: Any,
                 donated: tuple[bool, ...], demands: Demands, refs: list[Any] | None):
        self.closed = closed
        self.out_tree = out_tree
        self.moved = moved
        # The operation that stands for it in other programs, made when one calls it.
        self.call: JitCall | None = None
        self.mesh = mesh
        self.donated = donated
        self.demands = demands
        # References and other values that change, which it closes over: its last inputs, or None.
        self.refs = refs
        # What it took from its surroundings, if there was a listener.
        self.seen: signature.Seen | None = None
        self.programs: dict[Any, Program] = {}

    def is_stale(self) -> bool:
        """Return whether a value that the function closes over has another type by now."""
        refs = self.refs or ()
        return any(aval_of(x) != aval for x, aval in zip(
            refs, self.closed.in_avals[len(self.closed.in_avals) - len(refs):]))


# The jitted functions that are there, without values.
_all_jits: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()


class Jitted:
    """A jitted function behind C++: the function, its options, the programs made of it."""

    def __init__(self, fun: Callable, parameters: Parameters, *, keep_unused: bool = False,
                 inline: bool = False, device: Any = None,
                 compiler_options: dict[str, Any] | None = None, library: bool = False,
                 in_shardings: Any = None, out_shardings: Any = None):
        self.fun = fun
        self.parameters = parameters
        self.keep_unused = bool(keep_unused)
        self.inline = inline
        self.device = device
        self.compiler_options = dict(compiler_options or {})
        self.library = library
        self.in_shardings = in_shardings
        self.out_shardings = out_shardings
        self.accepts: Callable[..., bool] | None = None
        # Whether all code generators of XLA round its products and sums the same way.
        self.same_rounding: SameRounding = False
        # Whether it is one call under grad too, outside programs.
        self.whole = False
        self.name = name_of(fun)
        self._reference: FunctionRef | None = None
        self.misses = 0
        places, structure = tree.flatten((in_shardings, out_shardings), is_leaf=is_place)
        option_key = (parameters.static_argnums, parameters.static_argnames,
                      parameters.donate_argnums, parameters.donate_argnames, keep_unused, inline,
                      device, repr(sorted(self.compiler_options.items())), structure, *places)
        self.entries: Kept = table_of(fun, option_key)

    def __deepcopy__(self, memo: dict) -> Jitted:
        return self  # programs cannot be copied; a copy of what is in front of it makes its own

    def given(self) -> dict[str, Any]:
        """Return what ``jit`` was given beside the function."""
        numbers = self.parameters
        return {"static_argnums": numbers.static_argnums or None,
                "static_argnames": numbers.static_argnames or None,
                "donate_argnums": numbers.donate_argnums or None,
                "donate_argnames": numbers.donate_argnames or None,
                "keep_unused": self.keep_unused, "inline": self.inline, "device": self.device,
                "compiler_options": self.compiler_options or None,
                "in_shardings": self.in_shardings, "out_shardings": self.out_shardings}

    @property
    def reference(self) -> FunctionRef | None:
        """Return how events name this function, None for the library's own composites."""
        if self.library:
            return None
        if self._reference is None:
            self._reference = source.function_ref(self.fun)
        return self._reference

    def bind_arguments(self, args: tuple, kwargs: dict[str, Any]) -> Bound:
        if kwargs and self.in_shardings is not None:
            raise ValueError("pjit does not support kwargs when in_shardings is specified. Give "
                             f"{self.name} its arguments {', '.join(kwargs)} by position.")
        bound = Bound(self.parameters, args, kwargs)
        if self.library:
            bound.leaves = with_arrays(bound.leaves)
        if bound.statics:
            if self.library:  # NumPy takes axis=[0, 1] for axis=(0, 1)
                bound.statics = tuple((k, tuple(v) if type(v) is list else v)
                                      for k, v in bound.statics)
            check_static_hashable(self.parameters, bound.statics)
        return bound

    def avals(self, bound: Bound) -> tuple[ShapedArray, ...]:
        """Return the avals of the dynamic leaves.

        Raises: TypeError naming the argument that is no array.
        """
        return abstract_arguments(self.fun, bound.leaves, lambda: self.leaf_names(bound))

    def leaf_names(self, bound: Bound) -> list[tuple[str, str]]:
        """Return (name, 'position' or 'keyword') for each dynamic leaf."""
        return bound.leaf_names(self.parameters)

    def paths(self, bound: Bound) -> list[str]:
        """Return the names of the dynamic leaves, as the caller would write them."""
        return [path for path, _ in self.leaf_names(bound)]

    def entry(self, bound: Bound, avals: tuple[ShapedArray, ...]) -> Entry:
        """Return the traced program for a call, tracing if there is none."""
        key = trace_key(bound, avals)
        entry = self.entries.get(key)
        if entry is None or (Seen.states and entry.is_stale()):
            if self.is_watched():
                self.publish_miss(bound)
            entry = self.trace(bound, avals)
            if bus.active and not self.library:
                entry.seen = signature.see(self, bound)
            if not entry.moved:
                self.entries.keep(key, entry)
        return entry

    def trace(self, bound: Bound, avals: tuple[ShapedArray, ...]) -> Entry:
        """Trace the function for ``avals``.  Raises: TypeError if the function has no hash."""
        hash(self.fun)
        fun = on_arrays(self.fun) if self.library else self.fun
        closed, out_tree = traced(fun, self.parameters, bound, avals, "jit", self.name,
                                  self.reference, library=self.library)
        closed, moved = move_tracer_consts(closed)
        closed, refs = move_refs(closed)
        donated = (False,) * len(moved) + self.donated(bound) + (False,) * len(refs)
        ins, outs = self.shardings(bound, out_tree)
        demands = demands_of(closed, ins and [*ins, *[None] * len(refs)], outs)
        entry = Entry(closed, out_tree, moved, mesh_set.value, donated, demands,
                      refs if any(a.changes for a in closed.in_avals) else None)
        check_shardings(entry)
        return entry

    def call_of(self, entry: Entry) -> JitCall:
        """Return the operation that stands for ``entry`` in other programs."""
        if entry.call is None:
            ins, outs = entry.demands[:2]
            placed = any(s is not None for s in (*ins, *outs))
            entry.call = calls.JitCall(
                entry.closed, self.name, entry.donated if any(entry.donated) else (),
                self.keep_unused, self.inline and not placed, entry.mesh,
                (*[None] * len(entry.moved), *ins) if ins else (), outs)
        return entry.call

    def shardings(self, bound: Bound, out_tree: Any) -> tuple[list[Any], list[Any]]:
        """Return the shardings ``jit`` was given, for each argument and each result; or nothing.

        Raises: ValueError if they do not fit the arguments' or results' structure.
        """
        ins: list[Any] = []
        outs: list[Any] = []
        if self.device is not None:
            there = SingleDeviceSharding(self.device)
            return [there] * len(bound.leaves), [there] * out_tree.num_leaves
        if self.in_shardings is not None:
            given = self.in_shardings
            given = tuple(given) if isinstance(given, list) else given
            args = bound.args if not is_place(given) else (bound.args, bound.kwargs)
            ins = [place_of(s, "in_shardings") for s in prefix("in_shardings", given, args)]
            ins += [None] * (len(bound.leaves) - len(ins))
        if self.out_shardings is not None:
            result = out_tree.unflatten([0] * out_tree.num_leaves)
            outs = [on_devices(place_of(s, "out_shardings"))
                    for s in prefix("out_shardings", self.out_shardings, result)]
        return ins, outs

    def donated(self, bound: Bound) -> tuple[bool, ...]:
        """Return for every dynamic leaf whether its buffer is donated."""
        numbers, names = self.parameters.donate_argnums, self.parameters.donate_argnames
        if not numbers and not names:
            return (False,) * len(bound.leaves)
        flags: list[bool] = []
        for number, value in bound.positions().items():
            flags += [number in numbers] * len(tree.leaves(value))
        for name, value in sorted(bound.kwargs.items()):
            flags += [name in names] * len(tree.leaves(value))
        return tuple(flags)

    def program(self, entry: Entry, bound: Bound, new: bool) -> Program:
        """Return the executable of ``entry`` where the arguments are.

        If there is none, listeners get a miss of that call, unless they had one (``new``).
        """
        where, committed = self.placement(entry, bound)
        terms = terms_of(entry.closed, bound.leaves, entry.demands) if Seen.storage else None
        key = (where, committed) if terms is None else (where, committed, terms)
        program = entry.programs.get(key)
        if program is None:
            if new and self.is_watched():
                self.publish_miss(bound)
            program = entry.programs[key] = dispatch.build(
                entry.closed, where, committed, name=self.name, function=self.reference,
                keep_unused=self.keep_unused, donated=entry.donated,
                options=self.compiler_options, terms=terms, same_rounding=self.same_rounding)
            warn_wasted(program.lowered.wasted)
        return program

    def is_watched(self) -> bool:
        """Return whether a listener or the log is to get the reasons for traces."""
        return (bus.active or config.explain_cache_misses.value) and not self.library

    def placement(self, entry: Entry, bound: Bound) -> tuple[Any, bool]:
        """Return where a call runs.

        Raises: ValueError, with the caller's names of the arguments that do not fit.
        """
        try:
            return placement(bound.leaves, entry.demands, self.used(entry.closed))
        except IncompatiblePlaces as error:
            raise error.named(self.paths(bound), self.name) from None

    def used(self, closed: ClosedJaxpr) -> Callable[[], Sequence[bool]] | None:
        """Return the function that gives which arguments ``closed`` takes; None if all."""
        return None if self.keep_unused else lambda: used_inputs(closed)

    def publish_miss(self, bound: Bound) -> None:
        """Publish the signature for which there was no program; log it if the settings ask so."""
        self.misses += 1
        event = CacheMiss(function=self.reference, signature=signature.describe(self, bound),
                          caller=source.here(), mutated=signature.mutated(self))
        bus.publish(event)
        if config.explain_cache_misses.value:
            explainer.log_miss(event)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Answer a call that C++ could not: (result, fast path or None, False)."""
        try:
            if config.disable_jit.value and not self.library:
                return self.fun(*args, **kwargs), None, False
            if self.accepts is not None and not self.accepts(*args):
                return NotImplemented, None, False
            trace = state.trace
            traced = trace is not eval_trace
            if traced and self.library and is_outside(args, kwargs):
                with current(eval_trace):
                    return self.call_outside(self.bind_arguments(args, kwargs))
            if self.inline and self.library and (
                    self.inlines_in(trace) if traced else not config.shortcuts.value):
                if kwargs:
                    kwargs = named_arrays(kwargs)
                return self.fun(*with_arrays(args), **kwargs), None, False
            if not traced:
                return self.call_outside(self.bind_arguments(args, kwargs))
            bound = self.bind_arguments(args, kwargs)
            if self.compiler_options:
                self.refuse_options()
            return self.call_inside(trace, bound), None, False
        except Exception as error:
            frames.leave_out(error)
            raise

    def inlines_in(self, trace: Trace) -> bool:
        """Return whether the interpreter ``trace`` is given the operations instead of the call.

        A program that is written down is; else it would interpret each of them at each call.
        """
        return trace.inlines and not ((self.whole or trace.calls_whole) and runs_at_once()
                                      and config.shortcuts.value and not config.disable_jit.value)

    def call_inside(self, trace: Trace, bound: Bound) -> Any:
        """Return the result of a call inside the interpreter ``trace``: one equation for it."""
        entry = self.entry(bound, self.avals(bound))
        if entry.refs is not None:
            self.add_references(bound, entry)
        closed, call = entry.closed, self.call_of(entry)
        opened = not self.library or is_one_operation(closed, trace)
        if call.inline and trace.inlines and opened:
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *entry.moved, *bound.leaves)
        else:
            outs = bind(call, *with_values([closed], [*entry.moved, *bound.leaves]))
        return entry.out_tree.unflatten(outs)

    def call_outside(self, bound: Bound) -> tuple[Any, Any, bool]:
        """Run the program of a call outside of traces: (result, fast path or None, False)."""
        for x in bound.leaves:
            if isinstance(x, Tracer):
                raise leaked_tracer(x)
        misses = self.misses
        entry = self.entry(bound, self.avals(bound))
        if entry.refs is not None:
            self.add_references(bound, entry)
        program = self.program(entry, bound, new=self.misses == misses)
        if bus.active and not self.library and self.misses == misses:
            stale = signature.changed(self, entry.seen, bound) if entry.seen else ()
            bus.publish(CacheHit(function=self.reference, caller=source.here(), stale=stale))
        if (bus.active or config.debug_key_reuse.value) and not self.library:
            outs = self.run_watched(entry, program, bound)
            if config.debug_key_reuse.value:  # C++ would not see the keys it uses again
                return entry.out_tree.unflatten(outs), None, False
        else:
            outs = program.run(bound.leaves)
        return entry.out_tree.unflatten(outs), program.fast_path(entry.out_tree), False

    def add_references(self, bound: Bound, entry: Entry) -> None:
        """Add to the leaves of a call the references that the function closes over.

        Raises: ValueError if one reference comes twice.
        """
        check_references(lambda: described(self.fun), "jit", bound.leaves,
                         lambda: self.paths(bound),
                         [*entry.moved, *(entry.refs or ())])
        bound.leaves = [*bound.leaves, *(entry.refs or ())]

    def run_watched(self, entry: Entry, program: Program, bound: Bound) -> list[Any]:
        """Run a program and publish what becomes of its keys and donated buffers."""

        def run() -> list[Any]:
            return key_watch.called(entry.closed, bound.leaves, self.name,
                                    lambda: program.run(bound.leaves))

        if not bus.active or not any(entry.donated):
            return run()
        return signature.with_donations(self, bound, run)

    def refuse_options(self) -> None:
        """Refuse compiler options of a function called inside a program, which is compiled whole.

        Raises: ValueError.
        """
        if config.staging.value:
            raise errors.explained(
                errors.ArgumentError, "jit.options",
                "`compiler_options` can only be passed to top-level `jax.jit`. Got "
                f"compiler_options={self.compiler_options} specified on a nested jit with name: "
                f"{self.name}.",
                advice="Give them to the jit that is called outside any other.")


class _Explainer:
    """Logs why functions are traced; ``saem.observe`` puts its own function here (``saem``)."""

    log_miss: Callable[[CacheMiss], None] = staticmethod(lambda event: None)


explainer: Any = _Explainer()


def is_one_operation(closed: ClosedJaxpr, trace: Trace) -> bool:
    """Return whether ``trace`` is given the one operation of ``closed`` instead of a call.

    So it is where a gradient linearizes, which follows operations (``transform.known_paths``).
    It follows none of several results, as are all that hold programs: their call is interpreted
    once.
    """
    eqns = closed.jaxpr.eqns
    return (len(eqns) == 1 and not trace.calls_whole
            and not eqns[0].operation.multiple_results)


def with_arrays(values: Sequence[Any]) -> Any:
    """Return ``values`` with the arrays that objects among them stand for (``__jax_array__``)."""
    for x in values:
        if hasattr(type(x), "__jax_array__"):
            return list(map(unwrapped, values))
    return list(map(array_of, values)) if AbstractHigh.used else values


def named_arrays(values: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments ``values`` as ``with_arrays`` returns those by position."""
    return dict(zip(values, with_arrays([*values.values()])))


def on_arrays(fun: Callable) -> Callable:
    """Return ``fun`` for arguments that may be pytrees and stand for arrays (``__jax_array__``)."""
    @functools.wraps(fun)
    def function(*args: Any, **kwargs: Any) -> Any:
        return fun(*with_arrays(args), **named_arrays(kwargs))

    return function


def is_outside(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Return whether a call has nothing to do with the current interpreter, nor any below.

    So it is if no program is written down, and the arguments hold no tracer.
    """
    if not runs_at_once() or not config.shortcuts.value:
        return False
    if any(map(is_tracer, args)):
        return False
    return not any(is_tracer(x) or hasattr(type(x), "__jax_array__")
                   for x in tree.leaves((args, kwargs)))


def check_shardings(entry: Entry) -> None:
    """Refuse shardings given to ``jit`` that do not fit the arguments or results.

    Raises: ValueError.
    """
    demands, closed, start = entry.demands[:2], entry.closed, len(entry.moved)
    if all(s is None for shardings in demands for s in shardings):
        return
    info, ins, outs = info_of(closed.jaxpr), closed.in_avals, closed.out_avals
    sides = (("arguments", ins[start:], info.safe_arg_names(len(ins))[start:]),
             ("outputs", outs, info.safe_result_paths(len(outs))))
    for shardings, (name, avals, paths) in zip(demands, sides):
        for sharding, aval, path in zip(shardings, avals, paths):
            if sharding is not None:
                known = f" with pytree key path {path}" if path else ""
                check_fits(sharding, aval, f"pjit {name}{known}")


def make_jit(fun: Callable, *, static_argnums: Any = None, static_argnames: Any = None,
             donate_argnums: Any = None, donate_argnames: Any = None, **options: Any) -> Any:
    """Return the C++ callable in front of a new ``Jitted`` (its attribute ``info``).

    ``options`` are those of ``Jitted``.
    """
    check_callable(fun)
    parameters = Parameters(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
    info = Jitted(fun, parameters, **options)
    # While jit is disabled C++ calls the function itself; the library's composites stay compiled.
    # Either has the signature of the function.
    plain = functools.wraps(fun)(lambda *args, **kwargs: info(*args, **kwargs)[0]) \
        if info.library else fun
    fast = dispatch.make_fast(info.name, plain, info, parameters.static_argnums,
                              parameters.static_argnames, library=info.library)
    functools.update_wrapper(fast, fun)
    if not hasattr(fun, "__name__"):
        fast.__name__ = shown_name(fun)
    copyreg.dispatch_table.setdefault(type(fast), _reduced)
    fast.info = info
    _all_jits[fast] = None
    return fast


def _reduced(fast: Any) -> Any:
    """Return how ``copy`` and ``pickle`` make a jitted function again: by name, or from its parts.

    Raises: PicklingError from pickle where the function inside has no name to find it by.
    """
    home = sys.modules.get(getattr(fast, "__module__", ""))
    if getattr(home, getattr(fast, "__name__", ""), None) is fast:
        return fast.__name__
    return copies.remade, (fast.info.fun, fast.info.given())


class _Copies:
    """Makes a jitted function of a function and what ``jit`` was given (``jit.decorator``)."""

    remade: Callable[..., Any]


copies = _Copies()


def clear_caches() -> None:
    """Drop every traced program and every executable.

    >>> jax.clear_caches()
    """
    for table in tables():  # of functions whose jit is gone, too
        table.clear()
    for fast in [ref() for ref in _all_jits.keyrefs()]:
        if fast is not None:
            fast.info.entries.clear()
            fast._clear_cache()
    known_paths.starts.clear()
    dispatch.primitive_callable.cache_clear()
    dispatch.clear_executables()

"""How do I see the program that a function traces to?

``make_jaxpr`` traces and returns the jaxpr, ``eval_shape`` only the types of the results.  They
and ``jit`` share one trace of a function at arguments of the same types.

Read before: ``transform.staging``.  Read after: ``jit.jitted``.
Invariant: neither runs anything on a device.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from saem import _jaxlib
from saem.core import axes, config, source, tree
from saem.core.arguments import (
    Bound,
    Parameters,
    abstract,
    abstract_arguments,
    check_callable,
    check_outputs,
    check_static_hashable,
    described,
    name_of,
    shown_name,
)
from saem.core.avals import ShapedArray, ShapeDtypeStruct
from saem.core.events import FunctionRef, TraceKept, bus
from saem.core.frames import boundary
from saem.core.hi_types import as_type, is_high, is_mutable
from saem.core.jaxpr import ClosedJaxpr, Origin
from saem.core.kept import Kept
from saem.core.lazy import later
from saem.core.refs import check_references
from saem.core.trace import Tracer
from saem.placement.meshes import AxisType
from saem.transform.staging import trace_flat

logging: Any = later("logging")  # only settings that log need it

# Per function and options the table of what was traced, for as long as the function lives.
traces: weakref.WeakKeyDictionary[Any, dict[Any, Kept]] = weakref.WeakKeyDictionary()


def tables() -> list[Kept]:
    """Return the tables of all functions as they are now: other threads may add some meanwhile."""
    functions = [ref() for ref in traces.keyrefs()]
    found = [traces.get(fun) for fun in functions if fun is not None]
    return [table for options in found if options for table in list(options.values())]


def table_of(fun: Callable, options: Hashable) -> Kept:
    """Return the table of what was made of ``fun`` with ``options``.

    It is a new one if ``fun`` has no hash or no weak references.
    """
    try:
        tables = traces.setdefault(fun, {})
    except TypeError:
        return Kept()
    table = tables.get(options)
    if table is None:
        table = tables[options] = Kept()
    return table


def trace_key(bound: Bound, avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
    """Return what decides which program a function is for these arguments."""
    return (bound.in_tree, bound.statics, *[type(x) for _, x in bound.statics], bound.nargs,
            avals, axes.state.env, config.trace_key())


def traced(fun: Callable, parameters: Parameters, bound: Bound, avals: Sequence[ShapedArray],
           transform: str, name: str, reference: FunctionRef | None, *, library: bool = False
           ) -> tuple[ClosedJaxpr, Any]:
    """Return the program of ``fun`` at ``bound``, and the structure of its result.

    ``jit`` with any options, ``make_jaxpr`` and ``eval_shape`` share one trace of a function.
    Not kept are functions of the ``library``, each of which has one jit, and programs that close
    over tracers or over values whose types change.
    """
    programs = Kept() if library else table_of(fun, "program")
    key = trace_key(bound, avals)
    found = programs.get(key)
    if found is None:
        names = [] if library else [path for path, _ in bound.leaf_names(parameters)]
        found = closed, _ = _trace(fun, bound, avals, transform, name, reference, names)
        if not any(isinstance(c, Tracer) or is_mutable(v.aval)
                   for c, v in zip(closed.consts, closed.jaxpr.constvars)):
            programs.keep(key, found)
    elif bus.active and reference is not None and transform == "jit":
        bus.publish(TraceKept(function=reference))
    return found


def _trace(fun: Callable, bound: Bound, avals: Sequence[ShapedArray], transform: str, name: str,
           reference: FunctionRef | None, names: list[str]) -> tuple[ClosedJaxpr, Any]:
    out_trees: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = bound.rebuild(leaves)
        outs, out_tree = tree.flatten(fun(*args, **kwargs))
        out_trees.append(out_tree)
        check_outputs(transform, fun, outs, out_tree)
        return outs

    begin = time.perf_counter()
    closed = trace_flat(flat, avals, name=transform, arg_names=names, debug_name=name,
                        function=reference if bus.active else None)
    if config.log_compiles.value:
        logging.getLogger("saem").warning("Finished tracing %s for %s in %.9f sec", name, transform,
                                          time.perf_counter() - begin)
    closed.jaxpr.origin = Origin("jit", fun, out_trees[0], arg_names=names or None)
    return closed, out_trees[0]


def trace_function(fun: Callable, args: tuple, kwargs: dict[str, Any],
                   static_argnums: Iterable[int] | int | None = None, name: str = "make_jaxpr"
                   ) -> tuple[ClosedJaxpr, Any]:
    """Return the jaxpr of ``fun`` at ``args`` and ``kwargs``, and the structure of its result."""
    parameters = Parameters(fun, static_argnums, None, None, None)
    bound = Bound(parameters, args, kwargs)
    check_static_hashable(parameters, bound.statics)
    avals = abstract_arguments(fun, bound.leaves, lambda: bound.leaf_names(parameters), abstract)
    if any(a.changes for a in avals):
        check_references(lambda: described(fun), name, bound.leaves,
                         lambda: [path for path, _ in bound.leaf_names(parameters)])
    return traced(fun, parameters, bound, avals, name, name_of(fun),
                  source.function_ref(fun) if bus.active else None)


def make_jaxpr(fun: Callable, static_argnums: int | Iterable[int] = (),
               axis_env: Iterable[tuple[Hashable, int]] | None = None,
               return_shape: bool = False) -> Callable[..., Any]:
    """Return the function that traces ``fun`` on example arguments and returns its jaxpr.

    Nothing is computed, so ShapeDtypeStructs will do as arguments.  Those in ``static_argnums`` are
    passed on as they are.  ``axis_env`` lists named axes, (name, size), that collectives may use.
    With ``return_shape`` the function returns (jaxpr, ShapeDtypeStructs of the results).

    >>> jax.make_jaxpr(lambda x: x * 2 + 1)(3.)
    { lambda ; a:f32[]. let
        b:f32[] = mul a 2.0:f32[]
        c:f32[] = add b 1.0:f32[]
      in (c,) }
    """
    check_callable(fun)
    numbers = None if static_argnums == () else static_argnums
    named = [axes.Axis(name, size) for name, size in axis_env or ()]

    @functools.wraps(fun)
    @boundary
    def make_jaxpr_f(*args: Any, **kwargs: Any) -> Any:
        with axes.bound(*named):
            closed, out_tree = trace_function(fun, args, kwargs, numbers)
        if return_shape:
            return closed, out_tree.unflatten([struct_of(a) for a in closed.out_avals])
        return closed

    name = shown_name(fun)
    if hasattr(fun, "__name__"):
        name = f"make_jaxpr({name})"
    make_jaxpr_f.__name__ = make_jaxpr_f.__qualname__ = name
    return make_jaxpr_f


def struct_of(aval: Any, sharding: Any = None, weak: bool = True) -> Any:
    """Return the struct of a result of type ``aval``, with ``sharding`` or that of the type.

    It is not weak unless the type is and ``weak``.
    A type has one where each axis of the mesh in force is Explicit or Manual.
    """
    if is_high(aval):
        return as_type(aval)
    if sharding is None:
        sharding = aval.sharding
        types = sharding.mesh.axis_types
        if not types or AxisType.Auto in types:
            sharding = None
    manual = aval.manual_axis_type if axes.state.checked else None
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=weak and aval.weak_type,
                            sharding=sharding, manual_axis_type=manual)


@boundary
def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return the result of ``fun`` with a ShapeDtypeStruct for each array, computing nothing.

    >>> jax.eval_shape(lambda x: x @ x, jnp.ones((2, 2)))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    check_callable(fun)
    if isinstance(fun, _jaxlib.PjitFunction) and fun.info.out_shardings is not None:
        return fun.eval_shape(*args, **kwargs)
    closed, out_tree = trace_function(fun, args, kwargs, name="eval_shape")
    return out_tree.unflatten([struct_of(a) for a in closed.out_avals])

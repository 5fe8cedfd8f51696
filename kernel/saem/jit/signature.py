"""How do events describe a call of a jitted function, and what its program took from outside?

A signature spells out the cache key in the caller's words.  What a trace takes from its
surroundings (the insides of a static argument, closed-over and global values) is noted at the trace
and compared at later calls: the kept program computes with the values of that time.

Read before: ``core.events``, ``core.arguments``.  Read after: ``jit.jitted``.
Invariant: everything here happens only while a listener is there (tests/lens/observe/).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.device_assignment import hold, place_names
from saem.compile.dispatch import device_of
from saem.core import config, dtypes, lazy
from saem.core.avals import aval_functions, aval_of
from saem.core.events import Argument, Changed, Donation, Signature, StaticArgument, bus
from saem.core.trace import Tracer
from saem.placement.meshes import mesh_context
from saem.placement.shardings import NamedSharding

ArrayImpl = _jaxlib.ArrayImpl
dis = lazy.later("dis")
# What a function uses but does not compute with; and how much of a value is shown.
_NOT_VALUES = (ModuleType, FunctionType, BuiltinFunctionType, MethodType, type)
_SHOWN = 200
_SMALL = 64
# Of so many kept programs the static arguments are looked at again.
_LOOKED_AT = 64

# What a trace took from its surroundings: (kind, name, identity, text) of each value.
Seen = tuple[tuple[str, str, int, str], ...]


def text_of(value: Any) -> str:
    """Return a value as text that changes when its contents do; of arrays only the type."""
    if isinstance(value, (np.ndarray, np.generic)) and value.size <= _SMALL:
        return repr(value)
    if type(value) in aval_functions and hasattr(value, "shape"):
        return aval_of(value).str_short(True)
    plain: Any = object.__repr__
    if type(value).__repr__ is plain and hasattr(value, "__dict__"):
        inside = ", ".join(f"{k}={v!r}" for k, v in vars(value).items())
        return f"{type(value).__name__}({inside})"[:_SHOWN]
    return repr(value)[:_SHOWN]


def describe(info: Any, bound: Any) -> Signature:
    """Return the signature of a call in the caller's words."""
    names = info.leaf_names(bound)
    arguments = tuple(
        describe_leaf(x, path, given) for x, (path, given) in zip(bound.leaves, names))
    static = tuple(
        StaticArgument(path=path, value=repr(v)[:_SHOWN], hash=hash(v),
                       given="position" if isinstance(k, int) else "keyword")
        for (k, v), path in zip(bound.statics, static_names(info, bound)))
    donated = tuple(path for (path, _), d in zip(names, info.donated(bound)) if d)
    return Signature(arguments, static, str(bound.in_tree), donated, config.trace_context_named(),
                     mesh_text(mesh_context.value), tuple(options(info)),
                     tuple((name, text_of(value)) for kind, name, value in surroundings(info.fun)
                           if kind == "closure"))


def static_names(info: Any, bound: Any) -> list[str]:
    return [info.parameters.positional_name(k) if isinstance(k, int) else k
            for k, _ in bound.statics]


def options(info: Any) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of what ``jit`` was given beyond the function; except donation."""
    given = {"in_shardings": info.in_shardings, "out_shardings": info.out_shardings,
             "keep_unused": info.keep_unused or None, "inline": info.inline or None,
             "device": info.device, "compiler_options": info.compiler_options or None,
             "static_argnums": info.parameters.static_argnums or None,
             "static_argnames": info.parameters.static_argnames or None}
    yield from ((name, str(value)[:_SHOWN]) for name, value in given.items() if value is not None)


def describe_leaf(x: Any, path: str, given: str) -> Argument:
    """Return how an event describes one dynamic leaf."""
    aval = aval_of(x)
    aval = getattr(aval, "inner_aval", aval)  # of a reference, what it holds
    array = type(x) is ArrayImpl
    kind = ("array" if array or isinstance(x, Tracer) else
            "key" if isinstance(aval.dtype, dtypes.ExtendedDType) else
            "scalar" if isinstance(x, dtypes.PYTHON_NUMBERS) else "numpy")
    held = hold(x)
    sharding = held._sharding if type(held) is ArrayImpl else None
    named = isinstance(sharding, NamedSharding)
    return Argument(
        path=path, shape=aval.shape, dtype=dtypes.short_name(aval.dtype),
        weak_type=aval.weak_type, committed=bool(sharding is not None and held._committed),
        placement="" if sharding is None else place_names(sharding), kind=kind,
        given=given, sharding=str(sharding.spec) if named else "",
        mesh=mesh_text(sharding.mesh) if named else "")


def mesh_text(mesh: Any) -> str:
    """Return ``data=4, model=2`` for a mesh, nothing for none."""
    return ", ".join(f"{name}={size}" for name, size in zip(
        getattr(mesh, "axis_names", ()), getattr(mesh, "axis_sizes", ())))


# -- values from outside ---------------------------------------------------------------------------


@functools.lru_cache(1024)
def global_names(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals that the body of a function reads."""
    return tuple(dict.fromkeys(
        str(i.argval) for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"))


def surroundings(fun: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield (kind, name, value) of what ``fun`` closes over or reads from its module."""
    while not isinstance(fun, FunctionType):
        inner = getattr(fun, "func", None) or getattr(fun, "__wrapped__", None) or getattr(
            fun, "__func__", None)
        if inner is None or inner is fun:
            return
        fun = inner
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or ()):
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if is_value(value):
            yield "closure", name, value
    for name in global_names(fun.__code__):
        if name in fun.__globals__ and is_value(fun.__globals__[name]):
            yield "global", name, fun.__globals__[name]


def is_value(value: Any) -> bool:
    """Return whether a function may compute with ``value``: it is no module, function or class."""
    return not isinstance(value, _NOT_VALUES) and not callable(value)


def see(info: Any, bound: Any) -> Seen:
    """Note what a trace takes from its surroundings."""
    statics = [("static", path, 0, text_of(v))
               for (_, v), path in zip(bound.statics, static_names(info, bound))]
    around = [(kind, name, id(value) if is_long(value) else 0, text_of(value))
              for kind, name, value in surroundings(info.fun)]
    return (*statics, *around)


def is_long(value: Any) -> bool:
    """Return whether ``value`` is an array that ``text_of`` gives by its type only."""
    return type(value) in aval_functions and hasattr(value, "shape") and not (
        isinstance(value, (np.ndarray, np.generic)) and value.size <= _SMALL)


def changed(info: Any, seen: Seen, bound: Any) -> tuple[Changed, ...]:
    """Return what is not as it was when the program was traced that answers this call."""
    found = []
    now = {(kind, name): (identity, text) for kind, name, identity, text in see(info, bound)}
    for kind, name, identity, before in seen:
        another, text = now.get((kind, name), (identity, before))
        if (identity, before) != (another, text):
            text = f"another {text}" if text == before else text
            found.append(Changed(kind=kind, path=name, old=before, new=text))
    return tuple(found)


def mutated(info: Any) -> tuple[Changed, ...]:
    """Return the static arguments of kept programs whose contents changed since."""
    found: dict[str, Changed] = {}
    for key, entry in list(info.entries.items())[:_LOOKED_AT]:
        for (_, value), (kind, path, _, before) in zip(key[1], entry.seen or ()):
            if before != (now := text_of(value)):
                found[path] = Changed(kind=kind, path=path, old=before, new=now)
    return tuple(found.values())


def pointers(values: Sequence[Any]) -> list[int | None]:
    """Return where the buffers of arrays (their first shards) begin, None of a non-array."""
    found: list[int | None] = []
    for x in values:
        held = hold(x)
        if type(held) is not ArrayImpl or held.is_deleted():
            found.append(None)
            continue
        one = held if device_of(held) is not None else held.addressable_shards[0].data
        found.append(one.unsafe_buffer_pointer())
    return found


def with_donations(info: Any, bound: Any, run: Callable[[], list[Any]]) -> list[Any]:
    """Run a call with donated buffers; publish for each whether a result took it over."""
    before = pointers(bound.leaves)
    outs = run()
    after = {p for p in pointers(outs) if p is not None}
    names = info.leaf_names(bound)
    for x, (path, _), gives, where in zip(bound.leaves, names, info.donated(bound), before):
        if gives and where is not None:
            bus.publish(Donation(function=info.reference, path=path, reused=where in after,
                                 bytes=math.prod(aval_of(x).shape) * aval_of(x).dtype.itemsize))
    return outs

"""Which names are set late, and why?

A room may import only those before it, but some call what is in later rooms.  Such a room declares
a name, and this module gives it its value, once, when ``saem`` is imported; each with its reason.
Chapters that are loaded when first used wire what is only theirs themselves: ``random.reuse``
(``key_watch``: no key is used before), ``random.keys`` (methods of key arrays),
``experimental.checkify.transform`` (``CheckEffect.guard``).

Read before: ``core.trace``, ``compile.dispatch``, ``numpy.operators``, ``numpy.methods``.
Invariant: arrays and tracers have the same operators, methods and properties, and the class
``jax.Array`` names them all (tests/kernel/test_array_methods.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from saem import _jaxlib
from saem.compile import arrays as _arrays
from saem.compile import executables
from saem.compile.dispatch import apply_primitive
from saem.core import config, handles, hi_types, lazy
from saem.core import refs as core_refs
from saem.core.avals import ShapedArray, ShapeDtypeStruct
from saem.core.dtypes import ExtendedDType
from saem.core.events import bus
from saem.core.hi_types import is_high
from saem.core.refs import AbstractRef, is_ref
from saem.core.trace import Tracer, eval_trace
from saem.jit import decorator, jitted
from saem.numpy.methods import LATER_METHODS, METHODS, PROPERTIES
from saem.numpy.operators import OPERATORS
from saem.ops.extended import EArray
from saem.ops.keys import KeyDType, PRNGKeyArray
from saem.placement import transfer_guards
from saem.placement.layouts import Format, place_of_struct
from saem.placement.meshes import mesh_context, mesh_entered
from saem.placement.shardings import unsharded

# Evaluation outside traces needs the compiler; the trace context comes before it.
eval_trace.process = apply_primitive  # type: ignore[method-assign]
# Programs kept on disk are a chapter of their own; it is loaded when something is compiled.
executables.disk_cache = lazy.later("saem.disk.disk_cache")
# The spine calls the chapter on references by this one name; it is loaded when there is one.
core_refs.chapter = lazy.later("saem.refs")
# Rules that a library defines get arrays, and the engine computes with numbers.
handles.linear_maps = lazy.later("saem.transform.linear_maps")
# Programs with values of types that a program defines; loaded when there is one.
hi_types.chapter = lazy.later("saem.experimental.hijax.lowered")
# ``jax.typeof(ref)`` as a ShapeDtypeStruct: types of arrays come before those of references.
ShapeDtypeStruct.reference = AbstractRef
# Its sharding and format; types of arrays come before meshes and layouts.
ShapeDtypeStruct.place = place_of_struct
ShapeDtypeStruct.formatted = Format
# ``jax.typeof(x).sharding`` of a value that no Explicit axis shards; types come before shardings.
ShapedArray.unsharded = unsharded
# A dtype of keys can make keys, and one of a program values and their sum, which takes operations.
random_bits: Any = lazy.later("saem.ops.random_bits")
KeyDType.filled = (  # type: ignore[method-assign]
    lambda self, shape, value: random_bits.keys_filled(self, shape, value))
ExtendedDType.wrap = lambda dtype, base: EArray(base, dtype)
calls: Any = lazy.later("saem.jit.call")
staging: Any = lazy.later("saem.transform.staging")
ExtendedDType.addition = lambda dtype, aval: calls.JitCall(staging.trace_flat(
    lambda *xs: [dtype._rules.add(dtype, *xs)], [aval, aval], name="add"), "add")
# While a listener counts hits, a setting keeps calls from C++, which would answer them unseen.
bus.when_hits_change = lambda hits: config.counting_hits.set_global(hits or None)
# A jitted function is copied and unpickled by ``jit``, which comes after the call itself.
jitted.copies.remade = decorator.remade
# Why a call was traced is explained outside the engine; loaded when a setting first needs it.
jitted.explainer = lazy.later("saem.observe.explainer")
# The meshes in force are part of the key of every trace; settings come before meshes.
config.contexts["mesh"] = mesh_context
config.contexts["mesh entered"] = mesh_entered
# jaxlib's C++ watches transfers and threads by a state of its own, set from the settings.
for _direction in transfer_guards.DIRECTIONS:
    config.SETTINGS["jax_transfer_guard_" + _direction].follower = (
        transfer_guards.set_transfer_guards)
config.transfer_guard.follower = transfer_guards.set_transfer_guard
config.array_garbage_collection_guard.follower = transfer_guards.set_garbage_guard
config.thread_guard.follower = transfer_guards.set_thread_guard

# -- operators and methods, which need promotion; that comes after the primitives ------------------

refs = lazy.later("saem.refs.arrays")


def _method(name: str, fun: Callable) -> Callable:
    """Return the method ``name`` of tracers: ``fun``, or that of a type that a program defines."""
    operator = name.startswith("__")

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_high(self.aval):
            if operator:
                return hi_types.operator_of(self.aval, name)(self, *args)
            return hi_types.attribute_of(self, name)(*args, **kwargs)
        return fun(self, *args, **kwargs)

    method.__name__ = getattr(fun, "__name__", "method")
    method.__doc__ = fun.__doc__
    return method


def _property(name: str, fun: Callable) -> property:
    """Return the property ``name`` of tracers: of the type if a program defines that."""
    return property(lambda self: hi_types.attribute_of(self, name) if is_high(self.aval)
                    else fun(self))


def _abstract(name: str, fun: Callable) -> Callable:
    """Return what ``jax.Array`` has under ``name``: the signature of ``fun``, and no answer."""

    @functools.wraps(fun)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"Cannot call abstract method {name}")

    return method


class _LaterMethod:
    """A method that is a function of a module, which is loaded when the method is looked up."""

    def __init__(self, home: str, name: str, abstract: bool):
        self.home, self.name, self.abstract = lazy.later(home), name, abstract

    def __get__(self, instance: Any, owner: type) -> Any:
        fun = getattr(self.home, self.name)
        if self.abstract:
            fun = _abstract(self.name, fun)
        return fun if instance is None else MethodType(fun, instance)


# What ``jax.Array?`` and ``x?`` show; jaxlib's classes have no documentation of their own.
_jaxlib.Array.__doc__ = """The class of arrays, and of the tracers that stand for them.

``isinstance(x, jax.Array)`` is true inside and outside functions that are traced, and ``jax.Array``
serves as a type annotation. Arrays are made by functions such as ``jnp.array``, ``jnp.zeros`` and
``jnp.arange``. They cannot be changed: ``x.at[i].set(v)`` returns a new array.
"""
_jaxlib.ArrayImpl.__doc__ = _jaxlib.Array.__doc__

for _name, _row in OPERATORS.items():
    setattr(_jaxlib.ArrayImpl, _name, _row.array)
    setattr(Tracer, _name, _row.tracer)
    setattr(_jaxlib.Array, _name, _abstract(_name, _row.tracer))
    if _name not in vars(PRNGKeyArray):  # what refuses keys says which dtypes it takes
        setattr(PRNGKeyArray, _name, _row.tracer)
for _name, _fun in METHODS.items():
    setattr(_jaxlib.ArrayImpl, _name, _fun)
    setattr(Tracer, _name, _method(_name, _fun))
    setattr(_jaxlib.Array, _name, _abstract(_name, _fun))
_jaxlib.Array.item = _abstract("item", _arrays.item)
for _home, _names in LATER_METHODS.items():
    for _name in _names.split():
        for _class in (_jaxlib.ArrayImpl, Tracer, _jaxlib.Array):
            setattr(_class, _name, _LaterMethod(_home, _name, _class is _jaxlib.Array))
for _name, _fun in [*PROPERTIES.items(), *((name, vars(Tracer)[name].fget)
                                           for name in ("dtype", "ndim", "shape", "size"))]:
    setattr(_jaxlib.Array, _name, property(_abstract(_name, _fun)))
for _name, _fun in PROPERTIES.items():
    setattr(_jaxlib.ArrayImpl, _name, property(_fun))
    setattr(Tracer, _name, _property(_name, _fun))


def _asked_by_name(name: str) -> property:
    """Return a property that leaves its answer to ``__getattr__``."""
    return property(lambda self: self.__getattr__(name))


# What arrays know of their place and size.  Traced values know their size, and say of the rest why
# they lack it; they would inherit what is abstract.
for _name in ("addressable_data", "addressable_shards", "committed", "copy_to_host_async", "device",
              "global_shards", "is_fully_addressable", "is_fully_replicated", "itemsize", "nbytes",
              "sharding"):
    _found: Any = vars(_jaxlib.ArrayImpl)[_name]
    _get: Any = getattr(_found, "fget", None)
    setattr(_jaxlib.Array, _name,
            property(_abstract(_name, _get)) if _get else _abstract(_name, _found))
    if _name not in vars(Tracer):
        setattr(Tracer, _name, _asked_by_name(_name))


splitting: Any = lazy.later("saem.numpy.splitting")
_jaxlib.ArrayImpl.__iter__ = lambda x: splitting.iterate(x)  # loaded when first iterated over


def _of_ref(name: str, otherwise: Callable, operator: str = "") -> Callable:
    """Return the method ``name`` of tracers: of a reference's handle where the tracer is one.

    It is Python's ``operator``, for which a type that a program defines is asked.
    """

    def method(self: Any, *args: Any) -> Any:
        if is_ref(self.aval):
            return getattr(refs, name)(self, *args)
        if is_high(self.aval) and operator:
            return hi_types.operator_of(self.aval, operator)(self, *args)
        return otherwise(self, *args)

    method.__name__ = method.__qualname__ = name
    return method


def _no_setitem(self: Any, *args: Any) -> None:
    _jaxlib.ArrayImpl.__setitem__(self, *args)  # which refuses


Tracer.__getitem__ = _of_ref("get", METHODS["__getitem__"], "__getitem__")
Tracer.__setitem__ = _of_ref(
    "set", getattr(Tracer, "__setitem__", _no_setitem), "__setitem__")
Tracer.at = property(_of_ref("ViewMaker", PROPERTIES["at"]))

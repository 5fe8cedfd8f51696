"""What happens when Python needs the numbers of a traced value?

If an interpreter knows them (under ``grad`` outside ``jit``), ``bool``, ``int``, ``item`` and
indexing get them; else the error says which value, which transformation hides it, and
what to do instead.

Read before: ``core.trace``.
Invariant: a tracer never turns into numbers silently (tests/kernel/test_conversions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from saem.core import dtypes, errors, paths
from saem.core.dimensions import known_count
from saem.core.hi_types import attribute_of, aval_method, is_high, operator_of
from saem.core.refs import is_ref
from saem.core.trace import Tracer, concrete_or_none, state

_USE_CONTROL_FLOW = (
    "The value is not known while the function is traced. Use jnp.where, lax.cond or "
    "lax.while_loop to let the array decide; or mark the argument static with static_argnums.")
_KEEP_ARRAY = (
    "The value is not known while the function is traced. Keep it an array: x.astype(float) "
    "converts without leaving the trace.")


def refuse(tracer: Tracer, error: type[Exception], tag: str, sentence: str, advice: str) -> Any:
    """Return the error for a conversion of ``tracer``, naming the transformation that hides it."""
    what = f"traced array with shape {errors.tracer_type(tracer)}"
    context = f" (kind: {tracer.kind}, under {' > '.join(tracer._trace.stack)})"
    asked = tag.rpartition(".")[2]
    steps, arguments = paths.path(tracer)
    return errors.explained(error, tag, sentence.format(what) + context,
                            advice="\n".join([*came_about(steps, arguments, asked), advice]),
                            path=(*steps, (asked, None)) if steps else ())


def came_about(steps: list[paths.Step], arguments: list[str], asked: str) -> list[str]:
    """Return lines that show the path from the arguments to a tracer and what was asked of it."""
    if not steps:
        return []
    lines = [f"How it came about: {' → '.join([name for name, _ in steps] + [asked])}"]
    lines += [f"  {name}: {errors.place_and_line(where)}" for name, where in steps
              if where is not None]
    if arguments:
        lines.append(f"Arguments it depends on: {', '.join(arguments)}.")
    return lines


def known(tracer: Tracer, asked: str) -> Any:
    """Return the numbers of ``tracer``, None if they are not known; ``asked`` is by what."""
    value = concrete_or_none(tracer)
    if state.watcher is not None:
        state.watcher(tracer, asked, value is not None)
    return value


def one_number(x: Any) -> None:
    """Refuse an array or tracer with axes, which is no Python number.  Raises: TypeError."""
    shape = getattr(x.aval, "shape", ())
    if shape:
        raise TypeError("Only scalar arrays can be converted to Python scalars; got "
                        f"arr.ndim={len(shape)}. Index it first, or use .item().")


def one_index(x: Any) -> None:
    """Refuse what cannot index a Python list.  Raises: TypeError."""
    if getattr(x.aval, "shape", ()) or not dtypes.is_integer(x.aval.dtype):
        raise TypeError("Only integer scalar arrays can be converted to a scalar index.")


def one_truth(x: Any) -> None:
    """Refuse what is not one element, whose truth is ambiguous.  Raises: ValueError."""
    size = x.aval.size
    if size > 1:
        raise ValueError("The truth value of an array with more than one element is ambiguous. "
                         "Use a.any() or a.all()")
    if size == 0:
        raise ValueError("The truth value of an empty array is ambiguous. Use `array.size > 0` to "
                         "check that an array is not empty.")


def _bool(self: Tracer) -> bool:
    value = known(self, "bool")
    if value is None:
        one_truth(self)
        raise refuse(self, errors.TracerBoolConversionError, "tracer.bool",
                     "Attempted boolean conversion of {}.", _USE_CONTROL_FLOW)
    return bool(value)


def _from_concrete(convert: Callable, name: str,
                   check: Callable[[Any], None] = lambda x: None) -> Callable[[Tracer], Any]:
    def method(self: Tracer, *given: Any) -> Any:
        value = known(self, name)
        if value is None:
            check(self)
            raise refuse_concretization(self, name)
        return convert(value, *given)

    return method


def _always_refused(name: str, check: Callable[[Any], None] = lambda x: None
                    ) -> Callable[[Tracer], Any]:
    def method(self: Tracer, *_args: Any, **_options: Any) -> Any:
        _refused_to(self, name)
        check(self)
        raise refuse_concretization(self, name)

    return method


def _refused_to(tracer: Tracer, asked: str) -> None:
    if state.watcher is not None:
        state.watcher(tracer, asked, False)


def refuse_concretization(tracer: Tracer, name: str) -> Any:
    """Return the error for asking ``tracer`` for numbers by ``name``."""
    return refuse(
        tracer, errors.ConcretizationTypeError, f"tracer.{name}",
        "Abstract tracer value encountered where concrete value is expected: {}. "
        f"The problem arose with the `{name}` function.", _KEEP_ARRAY)


def _index(self: Tracer) -> int:
    value = known(self, "index")
    if value is None:
        one_index(self)
        raise refuse(self, errors.TracerIntegerConversionError, "tracer.index",
                     "The __index__() method was called on {}.",
                     "Python needs a number here, for example to index a list. Index an array "
                     "instead: jnp.asarray(values)[i]; or mark the argument static.")
    return value.__index__()


def _array(self: Tracer, dtype: Any = None, copy: Any = None) -> np.ndarray:
    _refused_to(self, "np.asarray")
    raise refuse(self, errors.TracerArrayConversionError, "tracer.array",
                 "The numpy.ndarray conversion method __array__() was called on {}.",
                 "NumPy needs numbers, which are not known while tracing. Use the jax.numpy "
                 "function of the same name.")


def _len(self: Tracer) -> int:
    if is_high(self.aval):
        return operator_of(self.aval, "__len__")(self)
    return len(self.aval)


def _iter(self: Tracer) -> Any:
    if is_high(self.aval):
        return operator_of(self.aval, "__iter__")(self)
    if not self.aval.shape:
        raise TypeError("iteration over a 0-d array")
    return (self[i] for i in range(known_count(self.aval.shape[0])))


def _setitem(self: Any, index: Any, value: Any) -> None:
    raise immutable()


def immutable() -> TypeError:
    """Return the error for ``x[i] = v``."""
    return errors.explained(
        errors.ArgumentTypeError, "array.immutable",
        "JAX arrays are immutable and do not support in-place item assignment.",
        advice="Instead of x[idx] = y, use x = x.at[idx].set(y), which returns a new array; under "
        "jit no copy is made when the old one is not used again.")


# What arrays know of their place, and traced values do not: a part of an array, for example, is an
# array of its own, by which a derivative would be lost without a word.
_ASKED_OF_PLACES = ("devices", "addressable_data", "on_device_size_in_bytes",
                    "unsafe_buffer_pointer", "is_deleted", "delete")
_KNOWN_OF_PLACES = ("addressable_shards", "committed", "global_shards", "is_fully_addressable",
                    "is_fully_replicated", "traceback")
# What is there only for arrays; ``jax.block_until_ready`` passes over what does not have it.
_OF_ARRAYS = ("block_until_ready", "copy_to_host_async")


def _getattr(self: Tracer, name: str) -> Any:
    """Say why a traced value lacks what an array has."""
    if is_high(self.aval):
        return attribute_of(self, name)
    if is_ref(self.aval) and isinstance(
            method := getattr(type(self.aval), name, None), aval_method):
        return MethodType(method.fun, self)
    if name in _OF_ARRAYS:
        raise AttributeError(f"The '{name}' method is not available on traced array with shape "
                             f"{errors.tracer_type(self)}.")
    if name == "sharding":
        raise AttributeError(
            "The 'sharding' attribute is not available on traced array with shape "
            f"{errors.tracer_type(self)}. To query sharding information on tracers, use "
            "jax.typeof(x).")
    raise AttributeError(f"{type(self).__name__} has no attribute {name}")


def _pickled(self: Tracer, protocol: Any) -> Any:
    raise refuse(
        self, errors.ConcretizationTypeError, "tracer.pickle",
        "Abstract tracer value encountered where concrete value is expected: {}. A tracer cannot "
        "be pickled.", _KEEP_ARRAY)


for _name, _method in {
    "__getattr__": _getattr,
    "__reduce_ex__": _pickled,
    "itemsize": property(lambda self: self.aval.dtype.itemsize),
    "nbytes": property(lambda self: self.aval.dtype.itemsize * self.aval.size),
    "__bool__": _bool,
    "__int__": _from_concrete(int, "int", one_number),
    "__float__": _always_refused("float", one_number),
    "__complex__": _always_refused("complex", one_number),
    "__index__": _index,
    "__array__": _array,
    "__len__": _len,
    "__iter__": _iter,
    "__setitem__": _setitem,
    "__copy__": lambda self: self,  # it never changes, and is itself wherever it is known
    "__deepcopy__": lambda self, memo: self,
    "item": _from_concrete(lambda value, *place: value.item(*place), "item"),
    "tolist": _always_refused("tolist"),
    "tobytes": _always_refused("tobytes"),
    "__dlpack__": _always_refused("dlpack"),
    **{name: _always_refused(name) for name in _ASKED_OF_PLACES},
    **{name: property(_always_refused(name)) for name in _KNOWN_OF_PLACES},
}.items():
    setattr(Tracer, _name, _method)

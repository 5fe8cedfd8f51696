"""How does a program call a function compiled elsewhere?  (``jax.ffi``)

``ffi_call`` is an equation that becomes a custom call of XLA.  The function, written with the
headers in ``include_dir()``, is registered under a name for one platform; the engine knows its
result types from the caller and can neither differentiate nor look into it.

Read before: ``effects.callbacks`` (the ways to batch), ``placement.layouts``.
Invariant: the types and attributes in the text are those the caller gave; nothing is guessed.
Source: the documentation of jax.ffi; StableHLO specification, custom_call.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from saem.compile import dispatch
from saem.compile.libraries import libraries_of
from saem.compile.operations import quoted
from saem.compile.text import (
    dense,
    element_type,
    number_text,
    tensor_type,
)
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of, is_array_like
from saem.core.effects import Effect
from saem.core.primitive import Primitive, absent, primitive
from saem.core.trace import bind
from saem.effects.callbacks import batch_by_method, check_vmap_method
from saem.effects.host_calls import layout
from saem.ops import sharding_rules, sum_rules
from saem.placement.layouts import Layout

SIDE_EFFECT = Effect("FfiEffect")


class HashableArray:
    """An array among attributes, compared by its numbers."""

    __slots__ = ("val",)

    def __init__(self, val: np.ndarray):
        self.val = np.array(val)
        self.val.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, HashableArray) and self.val.dtype == other.val.dtype
                and self.val.shape == other.val.shape
                and self.val.tobytes() == other.val.tobytes())

    def __hash__(self) -> int:
        return hash((self.val.shape, self.val.dtype, self.val.tobytes()))

    def __repr__(self) -> str:
        return f"HashableArray({self.val!r})"


class FrozenDict(dict):
    """A dictionary among attributes, which does not change."""

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return f"FrozenDict({super().__repr__()})"


def frozen(name: str, value: Any) -> Any:
    """Return an attribute in a form that has a hash.

    Raises: TypeError for a traced value and other things without one.
    """
    if isinstance(value, np.ndarray):
        return HashableArray(value)
    if isinstance(value, dict):
        return FrozenDict({k: frozen(name, v) for k, v in value.items()})
    try:
        hash(value)
    except TypeError:
        raise errors.explained(
            errors.ArgumentTypeError, "ffi_call.C1",
            f"Non-hashable keyword argument to ffi_call {name}: {value}.",
            advice="Attributes are static: numbers, strings, NumPy arrays, dictionaries of them. "
            "Pass arrays that are computed as operands.") from None
    return value


def attribute(value: Any) -> str:
    """Return an attribute as MLIR writes it: ``3 : i64``, ``"text"``, ``dense<…> : tensor<…>``.

    Raises: TypeError for what has no such form.
    """
    if isinstance(value, HashableArray):
        array = value.val
        return f"{dense(array, array.dtype)} : {tensor_type(ShapedArray(array.shape, array.dtype))}"
    if isinstance(value, Mapping):
        return attributes(value.items())
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute, value))}]"
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, (str, np.str_)):
        return f'"{quoted(value)}"'
    if isinstance(value, np.dtype):
        return element_type(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, int):
        value = np.int64(value)
    elif isinstance(value, float):
        value = np.float64(value)
    if isinstance(value, np.generic) and dtypes.scalar_kind(value.dtype) in (
            "int", "uint", "float"):
        return f"{number_text(value, value.dtype)} : {element_type(value.dtype)}"
    raise errors.explained(
        errors.ArgumentTypeError, "ffi_call.C2",
        f"No attribute handler defined for type: {type(value)}.",
        advice="Attributes are bool, int, float, str, NumPy numbers and arrays, dtypes, and "
        "tuples and dictionaries of them.")


def attributes(pairs: Any) -> str:
    return f"{{{', '.join(f'{name} = {attribute(value)}' for name, value in pairs)}}}"


@primitive("ffi_call")
class FfiCall(Primitive):
    """The results of the function registered as ``target_name``; layouts are minor to major."""

    attributes: tuple[tuple[str, Any], ...]
    custom_call_api_version: int
    has_side_effect: bool
    input_layouts: tuple[tuple[int, ...], ...]
    input_output_aliases: tuple[tuple[int, int], ...]
    legacy_backend_config: str | None
    output_layouts: tuple[tuple[int, ...], ...]
    result_avals: tuple[ShapedArray, ...]
    target_name: str
    vmap_method: str | None

    multiple_results = True
    quick_code = False

    shard_results = sharding_rules.elsewhere
    sum_results = sum_rules.elsewhere

    @property
    def effects(self):
        return frozenset({SIDE_EFFECT}) if self.has_side_effect else frozenset()

    def typing(self, *avals):
        return list(self.result_avals)

    def evaluate(self, *xs):
        # Compiled code is all there is of its function: there is no second opinion.
        return [np.asarray(x) for x in dispatch.apply_primitive(self, xs)]

    def lower(self, ctx, *xs):
        ctx.module.libraries |= libraries_of([self.target_name])
        layouts = [layout(aval, order) for aval, order in zip(
            (*ctx.in_avals, *self.result_avals), (*self.input_layouts, *self.output_layouts))]
        attributes = self.configuration()
        if self.has_side_effect:
            attributes["has_side_effect"] = "true"
        attributes["operand_layouts"] = f"[{', '.join(layouts[:len(xs)])}]"
        attributes["result_layouts"] = f"[{', '.join(layouts[len(xs):])}]"
        attributes.update(aliases(self.input_output_aliases, len(self.result_avals)))
        return ctx.emit_many(
            f'stablehlo.custom_call @{symbol_name(self.target_name)}({", ".join(xs)})', *xs,
            outs=self.result_avals, attributes=attributes)

    def configuration(self) -> dict[str, str]:
        """Return the attributes of the interface and the parameters of the function."""
        if self.custom_call_api_version < 4:
            return {"api_version": f"{self.custom_call_api_version} : i32",
                    "backend_config": f'"{quoted(self.legacy_backend_config or "")}"'}
        return {"api_version": "4 : i32", "backend_config": attributes(self.attributes)}

    def refuse_derivative(self, *_args: Any) -> Any:
        raise errors.explained(
            errors.ArgumentError, "ffi_call.jvp",
            f"The FFI call to `{self.target_name}` cannot be differentiated. You can use "
            "`jax.custom_jvp` or `jax.custom_jvp` to add support.",
            advice="Wrap the call in jax.custom_vjp and give its derivative, which may be another "
            "FFI call.")

    jvp = refuse_derivative
    transpose = absent("it is not differentiated, so it is never transposed", ValueError)

    def batch(self, size, xs, dims):
        return batch_by_method(self, "ffi_call.C3", size, xs, dims,
                               functools.partial(self.on_stacks, size))

    def on_stacks(self, size: int, stacks: Sequence[Any]) -> FfiCall:
        """Return the call for operands with a leading axis, which longer ones have got."""
        before = [len(order) for order in self.input_layouts]
        longer = [len(aval_of(x).shape) > n for x, n in zip(stacks, before)]
        return FfiCall(
            self.attributes, self.custom_call_api_version, self.has_side_effect,
            tuple(_stacked_order(o) if more else o
                  for o, more in zip(self.input_layouts, longer)),
            self.input_output_aliases, self.legacy_backend_config,
            tuple(map(_stacked_order, self.output_layouts)),
            tuple(a.update(shape=(size, *a.shape)) for a in self.result_avals),
            self.target_name, self.vmap_method)


def aliases(pairs: Sequence[tuple[int, int]], results: int) -> dict[str, str]:
    """Return the attribute for results that take over the memory of operands, if any do."""
    shown = ", ".join(
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{o if results > 1 else ''}], operand_index = {i}, operand_tuple_indices = []>"
        for i, o in pairs)
    return {"output_operand_aliases": f"[{shown}]"} if shown else {}


def symbol_name(name: str) -> str:
    """Return ``name`` as a symbol of MLIR, quoted if it must be."""
    return name if re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII) else f'"{quoted(name)}"'


def _stacked_order(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return a layout, minor to major, with a new first axis as the slowest."""
    return (*(axis + 1 for axis in order), 0)


def minor_to_major(layout: Any, aval: Any) -> tuple[int, ...]:
    """Return the order of axes XLA speaks of: of a Layout, a major-to-minor tuple or None."""
    if layout is None:
        return tuple(range(len(aval.shape)))[::-1]
    if isinstance(layout, Layout):
        if layout.tiling:
            raise ValueError("The FFI does not support layouts with tiling")
        layout = layout.major_to_minor
    return tuple(layout)[::-1]


def layouts_for(what: str, layouts: Any, avals: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """Return one order of axes for each of ``avals``.

    Raises: ValueError if there are not as many layouts as values.
    """
    if layouts is None:
        layouts = (None,) * len(avals)
    if len(layouts) != len(avals):
        raise ValueError(f"The number of {what} arguments ({len(avals)}) must equal the number of "
                         f"{what} layouts ({len(layouts)}).")
    orders = tuple(minor_to_major(layout, aval) for layout, aval in zip(layouts, avals))
    for order, aval in zip(orders, avals):
        if sorted(order) != list(range(len(aval.shape))):
            raise ValueError(
                f"incorrect layout {order[::-1]} for {what} of type {aval.str_short()}, "
                f"layout must be a permutation of [0, {len(aval.shape)})")
    return orders


def checked_aliases(aliases: Mapping[int, int] | None, ins: Sequence[Any], outs: Sequence[Any]
                    ) -> tuple[tuple[int, int], ...]:
    """Return which operand's memory each result may take over.

    Raises: ValueError if a pair has other types or numbers that are not there.
    """
    for i, o in (aliases or {}).items():
        for kind, index, count in (("input", i, len(ins)), ("output", o, len(outs))):
            if not 0 <= index < count:
                raise ValueError(f"input_output_aliases contains the mapping '{i}:{o}' with {kind} "
                                 f"index {index} outside the range [0, {count}).")
        if (ins[i].shape, ins[i].dtype) != (outs[o].shape, outs[o].dtype):
            raise ValueError(
                f"input_output_aliases contains the mapping '{i}:{o}' referring to an input with "
                f"abstract value {ins[i].str_short()} and an output with a different abstract "
                f"value {outs[o].str_short()}.")
    return tuple(dict(aliases or {}).items())


def result_avals(wanted: Sequence[Any]) -> tuple[ShapedArray, ...]:
    """Return the types of the results that things with shape and dtype ask for."""
    for number, r in enumerate(wanted):
        if not (hasattr(r, "shape") and hasattr(r, "dtype")):
            raise errors.explained(
                errors.ArgumentError, "ffi_call.C8",
                "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. "
                f"Got {r} at position {number}.",
                advice="Pass jax.ShapeDtypeStruct(shape, dtype) for each result.")
    return tuple(ShapedArray(r.shape, dtypes.canonicalize(r.dtype)) for r in wanted)


def ffi_call(target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False,
             vmap_method: str | None = None, input_layouts: Sequence[Any] | None = None,
             output_layouts: Any = None, input_output_aliases: dict[int, int] | None = None,
             custom_call_api_version: int = 4, legacy_backend_config: str | None = None
             ) -> Callable[..., Any]:
    """Return the function ``(*arrays, **attributes)`` that calls what was registered under a name.

    ``result_shape_dtypes`` is what it returns: one thing with shape and dtype, or a sequence.

    Raises: ValueError for an unknown ``vmap_method``, and from the function for layouts or aliases
    that do not fit; TypeError for operands or attributes that cannot be passed.
    """
    check_vmap_method("ffi_call.C4", vmap_method)
    several = isinstance(result_shape_dtypes, Sequence)
    avals = result_avals(result_shape_dtypes if several else (result_shape_dtypes,))
    if not several and output_layouts is not None:
        output_layouts = (output_layouts,)

    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if not is_array_like(x):
                raise errors.explained(
                    errors.ArgumentTypeError, "ffi_call.C5",
                    f"Argument '{x}' of type '{type(x)}' is not a valid JAX type.",
                    advice="Operands are arrays; pass static values by keyword.")
        ins = [aval_of(x) for x in args]
        named = tuple(sorted((name, frozen(name, value)) for name, value in kwargs.items()))
        check_version(custom_call_api_version, named, legacy_backend_config)
        outs = bind(FfiCall(
            named, custom_call_api_version, has_side_effect,
            layouts_for("input", input_layouts, ins),
            checked_aliases(input_output_aliases, ins, avals), legacy_backend_config,
            layouts_for("output", output_layouts, avals), avals, target_name, vmap_method), *args)
        if not several:
            return outs[0]
        return tuple(outs) if isinstance(result_shape_dtypes, tuple) else list(outs)

    return call


def check_version(version: int, named: tuple, legacy: str | None) -> None:
    """Refuse attributes where the old interface has only a string, and the reverse.

    Raises: ValueError.
    """
    if version < 4 and named:
        raise ValueError("The use of ffi_call attributes requires a custom call API version of at "
                         f"least 4; got api_version={version}.")
    if version >= 4 and legacy is not None:
        raise ValueError("The use of the legacy_backend_config parameter requires "
                         f"custom_call_api_version < 4; got {version}.")

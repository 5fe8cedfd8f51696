"""How do arguments and results of a program lie in the memory of their devices?

In the device's own memory, their axes in the usual order: then nothing here is asked.  A program
may also take or give values in the host's memory, or with axes in another order: a ``Layout`` says
which, a ``Format`` is a layout with a sharding.  ``Terms`` collect what one program is asked for.

Read before: ``placement.shardings``, ``core.memory_spaces``.  Read after: ``compile.dispatch``.
Invariant: a program is called only with arrays that are placed as its terms say; others are copied
first.
Source: the documentation of jax.experimental.layout; attributes in the StableHLO that JAX writes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from saem import _jaxlib
from saem.core import errors
from saem.core.avals import ShapedArray
from saem.core.jaxpr import ClosedJaxpr
from saem.core.memory_spaces import HOST, MemorySpace, space_of
from saem.core.placement_types import Seen
from saem.core.record import Record
from saem.placement.meshes import mesh_context
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding


class _Auto:
    """Stands for a layout that the compiler chooses."""

    def __repr__(self) -> str:
        return "AUTO"


class Layout(Record):
    """The order of axes in memory, the slowest first, and how the fastest are tiled."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar[Any] = _Auto()

    def __init__(self, major_to_minor: Sequence[int],
                 tiling: tuple[tuple[int, ...], ...] | None = None,
                 sub_byte_element_size_in_bits: int = 0):
        super().__init__(tuple(major_to_minor), tiling, sub_byte_element_size_in_bits)

    def update(self, **fields: Any) -> Layout:
        """Return this layout with other ``fields``."""
        return dataclasses.replace(self, **fields)

    @classmethod
    def from_xla(cls, layout: Any) -> Layout:
        """Return a layout as a compiled program or an array gives it."""
        layout = layout._xla_layout()
        return cls(tuple(layout.minor_to_major())[::-1], tuple(layout.tiling()),
                   layout.element_size_in_bits())

    from_pjrt_layout = from_xla

    def check_compatible_aval(self, shape: Sequence[int]) -> None:
        """Refuse a shape with another number of axes.

        Raises: ValueError.
        """
        if len(self.major_to_minor) != len(shape):
            raise ValueError(
                "Length of major_to_minor and the rank of the value should match. Got "
                f"major_to_minor={self.major_to_minor} and shape={tuple(shape)}")

    def same_order(self, other: Layout) -> bool:
        """Return whether the axes lie in one order; tiles that are not given do not count."""
        return self.major_to_minor == other.major_to_minor and (
            not other.tiling or self.tiling == other.tiling)

    def text(self) -> str:
        """Return ``{1,0:T(8,128)}``, as XLA writes it."""
        tiles = "".join(f"({','.join(map(str, tile))})" for tile in self.tiling or ())
        bits = self.sub_byte_element_size_in_bits
        more = (f"T{tiles}" if tiles else "") + (f"E({bits})" if bits else "")
        return f"{{{','.join(map(str, self.major_to_minor[::-1]))}{':' if more else ''}{more}}}"


class Format(Record):
    """A layout with the sharding of the devices it holds on."""

    layout: Layout | None = None
    sharding: Any = None

    def __init__(self, layout: Any = None, sharding: Any = None):
        if not (layout is None or layout is Layout.AUTO or isinstance(layout, Layout)):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, "
                f"`Layout.AUTO` or an instance of `Layout`. Got {layout} of type {type(layout)}")
        if not (sharding is None or isinstance(sharding, _jaxlib.Sharding)):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are `None` or "
                f"an instance of `jax.Sharding`. Got {sharding} of type {type(sharding)}")
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {Layout}. Please pass a "
                "`jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the "
                f"sharding argument. Got sharding {sharding}")
        if layout is not None:
            Seen.storage = True
        super().__init__(layout, sharding)

    @property
    def device_local_layout(self) -> Layout | None:
        return self.layout


def place_of_struct(given: Any, shape: tuple) -> tuple[Any, Layout | None]:
    """Return the sharding and layout of what ``ShapeDtypeStruct`` was given as a sharding.

    Raises: TypeError for a layout left to be chosen, or a PartitionSpec without a mesh; ValueError
    for one of more axes than ``shape``, or any other value.
    """
    if isinstance(given, NamedSharding):
        given.check_compatible_aval(shape)
    if isinstance(given, _jaxlib.Sharding):
        return given, None
    if isinstance(given, Format):
        if given.layout is Layout.AUTO:
            raise TypeError("`Layout.AUTO`, a layout that XLA chooses, cannot be used in a "
                            f"`ShapeDtypeStruct`. Got {given}. Give it to jit's in_shardings.")
        return given.sharding, given.layout
    if not isinstance(given, PartitionSpec):
        raise ValueError(
            "sharding should be an instance of `jax.sharding.Sharding`, "
            "`jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. Got "
            f"{given} of type {type(given)}.")
    if len(given) > len(shape):
        raise ValueError(
            f"PartitionSpec {given} is only valid for values of rank at least {len(given)}, but "
            f"was applied to a value of rank {len(shape)}."
            + ("" if shape else " For scalars the PartitionSpec should be P()"))
    if mesh_context.value is None:
        raise TypeError(f"When specifying PartitionSpec to `ShapeDtypeStruct`, here {given}, the "
                        "context mesh cannot be empty. Please use `jax.set_mesh`.")
    return NamedSharding(mesh_context.value, given), None


def format_of(x: Any) -> Format:
    """Return the layout and the sharding of an array; a deleted one has no layout."""
    layout = None if x.is_deleted() else Layout.from_xla(x._pjrt_layout)
    return Format(layout, x._sharding)


class Terms(NamedTuple):
    """Memories and layouts that a program must have for its arguments and results.

    A memory is named by its kind; a layout is a Layout, ``Layout.AUTO``, or None for the usual one.
    ``named`` marks results whose memory was requested by name, not by their type.
    """

    in_kinds: tuple[str | None, ...]
    out_kinds: tuple[str | None, ...]
    named: tuple[bool, ...]
    in_layouts: tuple[Any, ...]
    out_layouts: tuple[Any, ...]

    def with_token(self) -> Terms:
        """Return the terms of the program that also takes and gives a token."""
        return Terms((None, *self.in_kinds), (None, *self.out_kinds), (False, *self.named),
                     (None, *self.in_layouts), (None, *self.out_layouts))

    def kept(self, kept: Sequence[bool]) -> Terms:
        """Return the terms for the arguments that are ``kept``."""
        ins = [tuple(v for v, k in zip(values, kept) if k)
               for values in (self.in_kinds, self.in_layouts)]
        return self._replace(in_kinds=ins[0], in_layouts=ins[1])


def terms_of(closed: ClosedJaxpr, args: Sequence[Any], demands: Any) -> Terms | None:
    """Return the terms of a call of a program, None if all are the usual ones.

    Raises: ValueError if an argument is in another memory than was demanded, or a layout does not
    fit.
    """
    in_avals, out_avals = closed.in_avals, closed.out_avals
    ins = demands.ins or (None,) * len(in_avals)
    outs = demands.outs or (None,) * len(out_avals)
    in_layouts = list(demands.in_layouts or (None,) * len(in_avals))
    for number, x in enumerate(args):
        if type(x) is _jaxlib.ArrayImpl:
            check_memory(x, ins[number])
            if in_layouts[number] is None and x._committed:
                in_layouts[number] = unusual_layout(x)
    out_layouts = demands.out_layouts or (None,) * len(out_avals)
    check_layouts("arguments", in_layouts, in_avals)
    check_layouts("outputs", out_layouts, out_avals)
    # A result whose layout an equation of the program sets keeps it.
    laid_out = {v for eqn in closed.eqns if eqn.operation.layout is not None
            for v in eqn.outvars}
    out_layouts = [Layout.AUTO if v in laid_out and w is None else w
                   for v, w in zip(closed.jaxpr.outvars, out_layouts)]
    terms = Terms(tuple(kind_of(s, a) for s, a in zip(ins, in_avals)),
                  tuple(kind_of(s, a) for s, a in zip(outs, out_avals)),
                  tuple(kind_of(s) is not None for s in outs),
                  tuple(in_layouts), tuple(out_layouts))
    return terms if any(map(any, terms)) else None


def check_layouts(what: str, layouts: Sequence[Any], avals: Sequence[ShapedArray]) -> None:
    """Refuse a layout with another number of axes than its value.

    Raises: ValueError.
    """
    for layout, aval in zip(layouts, avals):
        if isinstance(layout, Layout):
            try:
                layout.check_compatible_aval(aval.shape)
            except ValueError as error:
                raise ValueError(f"One of jit {what} is incompatible with its layout annotation "
                                 f"{layout}: {error}") from None


def kind_of(sharding: Any, aval: Any = None) -> str | None:
    """Return the memory that a sharding demands, or the type of a value; None for the usual one."""
    on_host = aval is not None and space_of(aval) is HOST
    kind = getattr(sharding, "memory_kind", None)
    if kind is not None and (on_host or not is_usual(sharding)):
        return kind
    return "pinned_host" if sharding is None and on_host else None


@functools.lru_cache(1024)
def in_memory(sharding: Any, kind: str | None) -> Any:
    """Return ``sharding`` in the memory called ``kind``, or as it is."""
    return sharding if kind is None else sharding.with_memory_kind(kind)


def layouts_of(args: Sequence[Any]) -> tuple:
    """Return the unusual layouts among arguments, part of the key of their program."""
    return tuple(unusual_layout(x) if type(x) is _jaxlib.ArrayImpl and x._committed else None
                 for x in args)


def is_usual(sharding: Any) -> bool:
    """Return whether a sharding is in the memory that its devices use by themselves."""
    kind = sharding.memory_kind
    return kind is None or kind == sharding._device_assignment[0].default_memory().kind


def space_of_sharding(sharding: Any) -> MemorySpace:
    """Return the memory that a sharding names."""
    return HOST if sharding.memory_kind == "pinned_host" else MemorySpace.Device


def check_memory(x: Any, wanted: Any) -> None:
    """Refuse an argument that is in another memory than its sharding demands.

    Raises: ValueError.
    """
    if wanted is not None and wanted.memory_kind not in (None, x._sharding.memory_kind):
        raise errors.explained(
            errors.ArgumentError, "memory.C2",
            "Memory kinds passed to jax.jit does not match memory kind on the respective arg. Got "
            f"jit memory kind: {wanted.memory_kind}, arg memory kind: {x._sharding.memory_kind} "
            f"for arg type: {x.aval.str_short()}.",
            advice="Move the argument first: jax.device_put(x, sharding).")


def unusual_layout(x: Any) -> Layout | None:
    """Return the layout of an array whose axes are not in the usual order, else None.

    Of one that was deleted, None: C++ would end the process.
    """
    if x.is_deleted():
        return None
    layout = Layout.from_xla(x._pjrt_layout)
    return None if layout.major_to_minor == tuple(range(len(layout.major_to_minor))) else layout


def usual_layout(x: Any) -> Layout:
    """Return the layout of an array of this rank whose last axis is the fastest."""
    return Layout(tuple(range(len(x._pjrt_layout._xla_layout().minor_to_major()))))


def layout_mode(layout: Any) -> str:
    """Return how the text of a program spells a layout."""
    return "auto" if layout is Layout.AUTO else layout.text()


def notes(kind: str | None, layout: Any) -> list[str]:
    """Return the attributes that give one argument or result its memory and layout."""
    found = [f'mhlo.memory_kind = "{kind}"'] if kind else []
    return found + [f'mhlo.layout_mode = "{layout_mode(layout)}"'] if layout is not None else found

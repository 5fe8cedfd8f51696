"""How is StableHLO written?

Lowering rules make operations through a ``Writer``, which collects those of one function and knows
the aval of every value it has named; a ``Module`` collects functions, and prints them as text.

Read before: ``core.jaxpr``, ``compile.operations``.  Read after: ``compile.lowering``.
Invariant: the text without locations is the same for the same program, whatever its names and
places in user code (it is the key of the compile cache).
Source: StableHLO specification; MLIR language reference (locations, dense literals).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.compile.collective_text import DeviceAxes
from saem.compile.operations import (
    FRONTEND,
    NOWHERE,
    Attribute,
    Function,
    Operation,
    Place,
    Region,
)
from saem.compile.sizes import Sizes
from saem.core import dtypes, errors, sharded
from saem.core.avals import ShapedArray
from saem.core.dimensions import Dim, Size, is_static
from saem.placement.meshes import Mesh
from saem.placement.shardings import annotation, mesh_text

_FLOAT_NAMES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"}


@functools.cache
def element_type(dtype: Any) -> str:
    """Return the MLIR name of ``dtype``: ``f32``, ``i1``, ``ui8``, ``complex<f32>``."""
    if dtype == dtypes.float0:
        return "i1"
    kind, name = dtypes.scalar_kind(dtype), dtype.name
    if kind == "bool":
        return "i1"
    if kind == "int":
        return f"i{dtypes.itemsize_bits(dtype)}"
    if kind == "uint":
        return f"ui{dtypes.itemsize_bits(dtype)}"
    if kind == "complex":
        return f"complex<f{dtype.itemsize * 4}>"
    if name.startswith(("float8_", "float4_", "float6_")):
        return "f" + name[5:].replace("_", "", 1).upper()
    return _FLOAT_NAMES[name]


def tensor_type(aval: ShapedArray) -> str:
    """Return ``tensor<2x3xf32>``; extended dtypes as the arrays that hold them."""
    try:
        return aval._mlir_type
    except AttributeError:
        held = physical_aval(aval)
        sizes = "".join(["?x" if type(n) is Dim else f"{n}x" for n in held.shape])
        aval._mlir_type = f"tensor<{sizes}{element_type(held.dtype)}>"
        return aval._mlir_type


# One object for equal avals, so that the name of its type is computed once.
strong_aval = functools.lru_cache(4096)(ShapedArray)


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """Return the aval of the array that holds a value.

    PRNG keys are held as unsigned integers, float0 (which has no numbers) as bool.
    """
    if aval.dtype == dtypes.float0:
        return ShapedArray(aval.shape, np.dtype(bool))
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        trailing, dtype = aval.dtype.physical
        held = ShapedArray((*aval.shape, *trailing), dtype)
        return held if type(aval) is ShapedArray else sharded.shard_like(held, aval)
    return aval


def number_text(value: Any, dtype: Any) -> str:
    """Return one number as an MLIR literal that reads back exactly."""
    kind = dtypes.scalar_kind(dtype)
    if kind in ("bool", "float0"):
        return "true" if value else "false"
    if kind in ("int", "uint"):
        return str(int(value))
    if kind == "complex":
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        pair = [number_text(part.type(v), part) for v in (value.real, value.imag)]
        return f"({', '.join(pair)})"
    wide = float(value)
    text = repr(wide) if dtype == np.float64 else np.format_float_scientific(
        value, unique=True, trim="0") if dtype.kind == "f" else repr(wide)
    if np.isfinite(wide) and np.asarray(float(text)).astype(dtype) == value:
        return text if "." in text else text.replace("e", ".0e") if "e" in text else text + ".0"
    bits = np.asarray(value, dtype).tobytes()[::-1].hex().upper()
    return "0x" + bits


def dense(value: np.ndarray, dtype: Any) -> str:
    """Return ``dense<…>`` for an array: one number if all are equal, else the bytes in hex."""
    flat = np.asarray(value, dtype).reshape(-1)
    if flat.size and (flat.size == 1 or flat.tobytes() == flat[:1].tobytes() * flat.size):
        return f"dense<{number_text(flat[0], flat.dtype)}>"
    if not flat.size:
        return "dense<>"
    if dtypes.scalar_kind(dtype) == "bool":  # how bits are packed differs between versions
        return f"dense<{str(np.asarray(value, dtype).tolist()).lower()}>"
    return f'dense<"0x{np.ascontiguousarray(flat).tobytes().hex().upper()}">'


def symbol(name: str) -> str:
    """Return ``name`` as MLIR's symbols allow: ASCII letters, digits and ``_``, no digit first."""
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    return f"_{kept}" if not kept or kept[0].isdigit() else kept


class Module:
    """A StableHLO module: functions, and a memo so that a repeated program is written once."""

    platform = "cpu"  # for which it is written, where that matters

    def __init__(self, name: str):
        self.name = name
        # In the order in which they were begun: ``main`` first.
        self.functions: list[Function] = []
        # Functions that came as text: those of exported programs.
        self.written: list[str] = []
        self.memo: dict[Any, Any] = {}
        self.keepalive: list[Any] = []
        self.header: list[str] = []
        self.used_names: set[str] = {"main"}
        self.repeated = 0  # the number for the next name that is taken
        # The devices of a program on several, in order, and the symbols of the meshes it names.
        self.devices: tuple = ()
        self.meshes: dict[Any, str] = {}
        # The sharding of a value that is whole on each, where types say how values are sharded.
        self.whole: Any = None
        # The mesh of the ``shard_map`` that is being written, None outside of one.
        self.device_axes: DeviceAxes | None = None
        # What writes the sizes that the types leave open; None if they are all known.
        self.sizes: Sizes | None = None
        # Python functions the program calls, in the order of their ``index`` in the text.
        self.callbacks: list[Callable] = []
        # The libraries whose routines the program calls, of those that must be loaded.
        self.libraries: set[str] = set()

    @property
    def is_partitioned(self) -> bool:
        """Whether XLA's partitioner divides among several devices what is written now."""
        return len(self.devices) > 1 and self.device_axes is None

    def function(self, visibility: str, name: str) -> Function:
        """Begin a function."""
        self.functions.append(Function(visibility, name))
        return self.functions[-1]

    def unique_name(self, wanted: str) -> str:
        """Return ``wanted`` made a legal symbol, numbered if it is taken."""
        name = base = symbol(wanted)
        while name in self.used_names:
            name = f"{base}_{self.repeated}"
            self.repeated += 1
        self.used_names.add(name)
        return name

    def mesh(self, mesh: Any) -> str:
        """Return the symbol of ``mesh``, declared once: ``@mesh``.

        Raises: ValueError if its devices are not those of the program, in their order.
        """
        name = self.meshes.get(mesh)
        if name is None and mesh.abstract_mesh is mesh:
            # Without devices it is the one of this shape that has them, whatever its axes' types.
            name = next((n for m, n in self.meshes.items() if m.shape_tuple == mesh.shape_tuple),
                        None)
        if name is None:
            if isinstance(mesh, Mesh) and self.devices and mesh._flat != self.devices:
                ids = [[d.id for d in devices] for devices in (self.devices, mesh._flat)]
                raise errors.explained(
                    errors.ArgumentError, "device.C1",
                    "Received incompatible devices for jitted computation. Got a program for "
                    f"devices {ids[0]}, and inside it a mesh of devices {ids[1]}.",
                    advice="Make all its meshes of the same devices in one order.")
            count = len(self.meshes)
            name = self.meshes[mesh] = f"@mesh_{count - 1}" if count else "@mesh"
            self.header.append(f"  sdy.mesh {name} = {mesh_text(mesh)}")
        return name

    def sharding(self, sharding: Any, ndim: int) -> str:
        """Return ``<@mesh, [{"x"}, {}]>``, by which Shardy names a NamedSharding."""
        return f"<{self.mesh(sharding.mesh)}, {annotation(sharding, ndim)}>"

    def callback(self, function: Callable) -> int:
        """Return the index by which the text calls ``function``."""
        self.callbacks.append(function)
        return len(self.callbacks) - 1

    def text(self, locations: bool, name: str = "jit") -> str:
        """Return the module, called ``name``, as text, with or without locations."""
        count = len(self.devices) or 1
        opened = "jax.uses_shape_polymorphism = true, " if self.sizes is not None else ""
        parts = [f"module @{name} attributes {{{opened}mhlo.num_partitions = {count} : i32, "
                 "mhlo.num_replicas = 1 : i32} {", *self.header]
        for function in self.functions:
            parts += function.lines(locations)
        return "\n".join([*parts, *self.written, f"}}{NOWHERE if locations else ''}\n"])


class Writer:
    """Makes the operations of one function: names values, keeps their avals.

    While a primitive lowers, ``in_avals`` and ``out_avals`` are those of its equation, ``place``
    is where that was written, and ``path`` the scopes and programs around it: ``jit(f)/scope/``.
    """

    def __init__(self, module: Module):
        self.module = module
        self.operations: list[Operation] = []
        self.avals: dict[str, ShapedArray] = {}
        self.count = 0
        self.place: Place | None = None
        self.path = ""
        self.depth = 0  # how many regions are open around what is made now
        self.in_avals: Sequence[ShapedArray] = ()
        self.out_avals: Sequence[ShapedArray] = ()
        # What is written once in this region: the result by text and type of the operation, and
        # what was stretched by its name and new shape.
        self.results: dict[str, str] = {}
        # Array constants of programs inside this function: they become arguments of it, called
        # ``%k0``, ``%k1``, … (inside a region that sees nothing from outside, something else).
        self.hoisted: dict[int, tuple[str, Any, ShapedArray]] = {}
        self.hoisted_name = "%k"

    def hoist(self, value: Any, aval: ShapedArray) -> str:
        """Return the name of an argument, added to this function, that carries ``value``."""
        if id(value) not in self.hoisted:
            name = f"{self.hoisted_name}{len(self.hoisted)}"
            self.avals[name] = aval
            self.hoisted[id(value)] = (name, value, aval)
        return self.hoisted[id(value)][0]

    def append(self, text: str, types: str, out: ShapedArray | None = None) -> str:
        """Append an operation of type ``types``; return the name of its result, if it has one.

        Inside a region (a loop, a branch) the same operation on the same values is written once.
        XLA would merge such operations, but only after it has moved some out of a loop, each to a
        place of its own.  Where XLA's partitioner divides the work, each use may be sharded in its
        own way.
        """
        if out is None:
            self.operations.append(Operation("", 0, text, types, self.place))
            return ""
        once = self.depth and not self.module.is_partitioned
        if once:
            key = f"{text} : {types}"
            found = self.results.get(key)
            if found is not None:
                aval = self.avals[found]  # keys have the type of the numbers that hold them
                if aval is out or (aval.dtype == out.dtype and aval.shape == out.shape):
                    return found
        name = f"%{self.count}"
        self.count += 1
        self.avals[name] = out
        self.operations.append(Operation(name, 1, text, types, self.place))
        if once:
            self.results[key] = name
        return name

    def type_of(self, *values: str) -> str:
        """Return the types of ``values``, separated by commas."""
        return ", ".join([tensor_type(self.avals[v]) for v in values])

    def emit(self, text: str, *operands: str, out: ShapedArray | None = None,
             attributes: dict[str, Attribute] | None = None,
             regions: Sequence[Region] = ()) -> str:
        """Append ``%n = text : (operand types) -> out type`` and return ``%n``.

        ``out`` is the equation's output unless given.  What has neither attributes nor regions
        depends on its operands alone: ``append`` writes it once.
        """
        aval = self.out_avals[0] if out is None else out
        avals = self.avals
        types = tensor_type(avals[operands[0]]) if len(operands) == 1 else self.type_of(*operands)
        types = f"({types}) -> {tensor_type(aval)}"
        if attributes is None and not regions:
            return self.append(text, types, aval)
        name = f"%{self.count}"
        self.count += 1
        avals[name] = aval
        self.operations.append(Operation(name, 1, text, types, self.place, attributes, regions))
        return name

    def emit_many(self, text: str, *operands: str, outs: Sequence[ShapedArray],
                  attributes: dict[str, Attribute] | None = None,
                  regions: Sequence[Region] = ()) -> list[str]:
        """Append an operation with any number of results, however often; returns their names."""
        name = f"%{self.count}"
        self.count += 1
        names = [f"{name}#{i}" for i in range(len(outs))] if len(outs) != 1 else [name]
        self.avals.update(zip(names, outs))
        types = ", ".join(map(tensor_type, outs))
        types = types if len(outs) == 1 else f"({types})"
        self.operations.append(Operation(
            name, len(outs), text, f"({self.type_of(*operands)}) -> {types}", self.place,
            attributes, regions))
        return names

    def apart(self, name: str, key: Any, write: Callable, *operands: str) -> str:
        """Write ``write(writer, *operands)`` as a function that XLA leaves a function; return it.

        XLA puts cheap operations into all that reads them, and computes them there again, for each
        neighbour that a roll or a window reads.  What is many operations is better computed once.
        Functions with the same ``key`` are one.  On GPUs, and where XLA's partitioner divides the
        work among devices, it is written here: what XLA makes of functions there was not measured.
        """
        module = self.module
        divided = module.devices and (module.device_axes is None or module.device_axes.left)
        if module.platform != "cpu" or divided or module.sizes is not None:
            return write(self, *operands)
        avals = [self.avals[x] for x in operands]
        key = name, key, *avals
        symbol = module.memo.get(key)
        if symbol is None:
            inner = Writer(module)
            inner.in_avals, inner.out_avals = self.in_avals, self.out_avals
            inner.place = self.place
            names = [f"%arg{i}" for i in range(len(operands))]
            inner.avals.update(zip(names, avals))
            symbol = module.memo[key] = module.unique_name(name)
            function = module.function("private", symbol)
            result = write(inner, *names)
            types = inner.type_of(result)
            function.define([f"{n}: {tensor_type(a)}" for n, a in zip(names, avals)],
                            inner.operations, [result], types, types)
        verb = "func.call" if self.depth else "call"
        return self.emit(f"{verb} @{symbol}({', '.join(operands)})", *operands,
                         attributes={FRONTEND: {"inlineable": "false"}})

    def unsharded(self, x: str, axes: Sequence[int]) -> str:
        """Return ``x``, whose ``axes`` the partitioner may not shard: it divides no such work."""
        module = self.module
        if not module.is_partitioned:
            return x
        aval = self.avals[x]
        entries = ", ".join(["{}" if i in axes else "{?}" for i in range(aval.ndim)])
        mesh = next(iter(module.meshes.values()))
        return self.append(f"sdy.sharding_constraint {x} <{mesh}, [{entries}]>",
                           tensor_type(aval), aval)

    def elementwise(self, op: str, *xs: str, out: ShapedArray | None = None) -> str:
        """Write an operation whose operands and result have one type; operands are stretched."""
        aval = self.out_avals[0] if out is None else out
        shape = aval.shape
        avals = self.avals
        given = [x if avals[x].shape == shape else self.stretch(x, shape) for x in xs]
        return self.append(f"{op} {', '.join(given)}", tensor_type(aval), aval)

    def broadcast(self, x: str, shape: tuple[int, ...], dims: Sequence[int] = ()) -> str:
        """Stretch ``x``, its axes placed at ``dims``, to ``shape``."""
        return self.broadcast_as(x, strong_aval(shape, self.avals[x].dtype), dims)

    def broadcast_as(self, x: str, out: ShapedArray, dims: Sequence[int] = ()) -> str:
        """Stretch ``x``, its axes placed at ``dims``, to the type ``out``."""
        if self.module.sizes is not None:
            held = physical_aval(out)
            if not is_static(held.shape):
                return self.sized("dynamic_broadcast_in_dim", [x], [held.shape], out,
                                  f", dims = {[*dims]}")
        return self.append(f"stablehlo.broadcast_in_dim {x}, dims = {[*dims]}",
                           f"({tensor_type(self.avals[x])}) -> {tensor_type(out)}", out)

    def sized(self, verb: str, xs: Sequence[str], shapes: Sequence[Sequence[Size]],
              out: ShapedArray, more: str = "") -> str:
        """Write an operation that takes ``shapes``, which are not all known, as operands."""
        assert self.module.sizes is not None
        vectors = [self.module.sizes.vector(shape) for shape in shapes]
        names = ", ".join([*xs, *(name for name, _ in vectors)])
        types = ", ".join([*(tensor_type(self.avals[x]) for x in xs), *(t for _, t in vectors)])
        return self.append(f"stablehlo.{verb} {names}{more}",
                           f"({types}) -> {tensor_type(out)}", out)

    def dimension(self, size: Any) -> str:
        """Write ``size`` as an integer of the equation's output type."""
        if self.module.sizes is None:
            raise NotImplementedError(
                f"The dimension '{size}' has no value outside an exported program. Compute with it "
                "inside the function that jax.export exports.")
        name = self.module.sizes.number(size)
        self.avals[name] = strong_aval((), np.dtype(np.int32))
        return self.convert(name, self.out_avals[0].dtype)

    def vector(self, sizes: Sequence[Size], dtype: Any) -> str:
        """Write ``sizes`` as an array of rank 1."""
        if self.module.sizes is None or is_static(sizes):
            return self.constant(np.array(sizes, dtype), strong_aval((len(sizes),), dtype))
        name, _ = self.module.sizes.vector(sizes)
        self.avals[name] = strong_aval((len(sizes),), np.dtype(np.int32))
        return self.convert(name, dtype)

    def number(self, size: Size) -> str:
        """Write ``size`` as a 32-bit integer of rank 0."""
        if self.module.sizes is None or not isinstance(size, Dim):
            return self.constant(size, strong_aval((), np.dtype(np.int32)))
        name = self.module.sizes.number(size)
        self.avals[name] = strong_aval((), np.dtype(np.int32))
        return name

    def reduce_window(self, x: str, start: str, fold: Callable[[str, str], str],
                      out: ShapedArray, *, dims: Sequence[Size], strides: Sequence[int],
                      padding: Sequence[Sequence[Size]], base: Sequence[int],
                      dilation: Sequence[int]) -> str:
        """Write a reduction over windows whose sizes or padding are not all known."""
        inner, scalar = Writer(self.module), self.avals[start]
        inner.avals.update({"%a": scalar, "%b": scalar})
        name = self.module.unique_name("fold")
        self.avals["%a"] = self.avals["%b"] = scalar
        saved = self.operations, self.results
        self.operations, self.results = inner.operations, {}
        result, kind = fold("%a", "%b"), tensor_type(scalar)
        self.operations, self.results = saved
        self.module.function("private", name).define(
            [f"%a: {kind}", f"%b: {kind}"], inner.operations, [result], kind, kind)
        wide = np.dtype(np.int32)
        lists = [self.vector(v, wide) for v in (dims, strides, base, dilation)]
        ends = [self.reshape(self.vector([pair[i] for pair in padding], wide),
                             (len(padding), 1)) for i in (0, 1)]
        padding = self.emit(f"stablehlo.concatenate {', '.join(ends)}, dim = 1", *ends,
                            out=strong_aval((len(padding), 2), wide))
        operands = [x, start, *lists, padding]
        return self.emit(f"stablehlo.custom_call @stablehlo.dynamic_reduce_window("
                         f"{', '.join(operands)})", *operands, out=out,
                         attributes={"called_computations": f"[@{name}]"})

    def slice(self, x: str, starts: Sequence[Size], limits: Sequence[Size],
              strides: Sequence[int] | None = None, out: ShapedArray | None = None) -> str:
        """Write the elements ``starts:limits:strides`` of ``x``, each one if strides are None."""
        strides = strides or (1,) * len(starts)
        if out is None:
            shape = tuple(-((a - b) // s) for a, b, s in zip(starts, limits, strides))
            out = strong_aval(shape, self.avals[x].dtype)
        if self.module.sizes is not None and not (is_static(starts) and is_static(limits)):
            return self.sized("real_dynamic_slice", [x], [starts, limits, strides], out)
        ranges = ", ".join([f"{a}:{b}:{s}" if s != 1 else f"{a}:{b}"
                            for a, b, s in zip(starts, limits, strides)])
        return self.emit(f"stablehlo.slice {x} [{ranges}]", x, out=out)

    def pad(self, x: str, value: str, low: Sequence[Size], high: Sequence[Size],
            out: ShapedArray, interior: Sequence[int] | None = None) -> str:
        """Write ``x`` with ``value`` before, behind, and between its elements along each axis."""
        gaps = [0] * len(low) if interior is None else list(interior)
        if not (is_static(low) and is_static(high)):
            return self.sized("dynamic_pad", [x, value], [list(low), list(high), gaps], out)
        return self.emit(f"stablehlo.pad {x}, {value}, low = {list(low)}, high = {list(high)}, "
                         f"interior = {gaps}", x, value, out=out)

    def stretch(self, x: str, shape: tuple[int, ...]) -> str:
        """Stretch ``x``, of rank 0 or with axes of size 1, to ``shape``; nothing if it has it."""
        aval = self.avals[x]
        have = aval.shape
        if have == shape:
            return x
        key = f"{x} : {shape}"
        found = self.results.get(key)
        if found is None:
            found = self.results[key] = self.broadcast_as(
                x, strong_aval(shape, aval.dtype), range(len(have)))
        return found

    def constant(self, value: Any, aval: ShapedArray) -> str:
        """Write a constant of ``aval`` (filled with ``value`` if that is one number)."""
        if self.module.sizes is not None and not is_static(aval.shape):
            return self.broadcast_as(self.constant(value, strong_aval((), aval.dtype)), aval)
        return self.append(f"stablehlo.constant {dense(np.asarray(value), aval.dtype)}",
                           tensor_type(aval), aval)

    def convert(self, x: str, dtype: Any) -> str:
        """Convert ``x`` to ``dtype``; nothing if it has it."""
        aval = self.avals[x]
        if aval.dtype == dtype:
            return x
        return self.emit(f"stablehlo.convert {x}", x, out=strong_aval(aval.shape, dtype))

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        aval = self.avals[x]
        if aval.shape == shape:
            return x
        return self.reshape_as(x, strong_aval(shape, aval.dtype))

    def reshape_as(self, x: str, out: ShapedArray) -> str:
        """Write ``x`` with the shape of ``out``."""
        if self.module.sizes is not None:
            held = physical_aval(out)
            if not is_static(held.shape):
                return self.sized("dynamic_reshape", [x], [held.shape], out)
        return self.emit(f"stablehlo.reshape {x}", x, out=out)

    def joined(self, x: str, y: str) -> tuple[int, ...]:
        """Return the shape to which two values of one rank, or of rank 0, stretch."""
        a, b = self.avals[x].shape, self.avals[y].shape
        if a == b or not b or not a:
            return a or b
        return tuple([m if n == 1 else n for n, m in zip(a, b, strict=True)])

    def compare(self, direction: str, x: str, y: str, total_order: bool = False) -> str:
        """Write ``x direction y`` elementwise; operands are stretched."""
        a, shape = self.avals[x], self.joined(x, y)
        x, y = self.stretch(x, shape), self.stretch(y, shape)
        kind = "TOTALORDER" if total_order else {
            "float": "FLOAT", "complex": "FLOAT", "int": "SIGNED"}.get(
            dtypes.scalar_kind(a.dtype), "UNSIGNED")
        return self.emit(f"stablehlo.compare {direction}, {x}, {y}, {kind}", x, y,
                         out=ShapedArray(shape, np.dtype(bool)))

    def in_memory(self, x: str, kind: str) -> str:
        """Write that ``x`` is to be in the memory called ``kind``."""
        return self.emit(
            f"stablehlo.custom_call @annotate_device_placement({x})", x, out=self.avals[x],
            attributes={"backend_config": '""', "has_side_effect": "true",
                        FRONTEND: {"_xla_buffer_placement": kind}})

    def choose(self, which: str, x: str, y: str) -> str:
        """Write ``x`` where ``which`` is true, else ``y``; of one shape, or ``which`` rank 0."""
        return self.emit(f"stablehlo.select {which}, {x}, {y}", which, x, y, out=self.avals[x])

    def barrier(self, xs: Sequence[str]) -> list[str]:
        """Write the values ``xs`` again: XLA computes all before any is used, and merges nothing
        across.
        """
        if not xs:
            return []
        return self.emit_many(f'"stablehlo.optimization_barrier"({", ".join(xs)})', *xs,
                              outs=[self.avals[x] for x in xs])

    def iota(self, axis: int, aval: ShapedArray) -> str:
        """Write an array of ``aval`` that counts along ``axis``."""
        if self.module.sizes is not None and not is_static(aval.shape):
            return self.sized("dynamic_iota", [], [aval.shape], aval, f", dim = {axis}")
        return self.append(f"stablehlo.iota dim = {axis}", tensor_type(aval), aval)

    def region(self, avals: Sequence[ShapedArray], build: Callable[..., Sequence[str]],
               shardy: bool = False, name: str = "") -> Region:
        """Return a region: ``build(*argument names)`` makes its operations, returns results.

        Programs inside are at the path of the operation, and of ``name`` where there is one.
        """
        saved = self.operations, self.results
        self.operations, self.results = [], {}
        self.depth += 1
        names = []
        for aval in avals:
            names.append(f"%b{self.count}")
            self.count += 1
            self.avals[names[-1]] = aval
        place, path = self.place, self.path
        if name and place is not None:
            self.path = f"{place[1]}/{name}/"
        results = build(*names)
        self.place, self.path = place, path
        arguments = [(name, tensor_type(aval)) for name, aval in zip(names, avals)]
        made = Region(arguments, self.operations, results, self.type_of(*results), shardy)
        self.operations, self.results = saved
        self.depth -= 1
        return made

    def reduce(self, op: str, x: str, init: Any, axes: Sequence[int],
               out: ShapedArray | None = None) -> str:
        """Reduce ``x`` over ``axes`` by the StableHLO operation ``op`` from ``init``."""
        aval = self.avals[x]
        start = self.constant(init, strong_aval((), aval.dtype))
        return self.emit(
            f"stablehlo.reduce({x} init: {start}) applies stablehlo.{op} across dimensions = "
            f"{list(axes)}", x, start, out=out)

    def reduce_by(self, build: Callable[..., Sequence[str]], xs: Sequence[str],
                  inits: Sequence[Any], axes: Sequence[int], outs: Sequence[ShapedArray]
                  ) -> list[str]:
        """Reduce ``xs`` together by the region ``build(*accumulated, *next)`` writes."""
        scalars = [ShapedArray((), self.avals[x].dtype) for x in xs]
        starts = [self.constant(v, a) for v, a in zip(inits, scalars)]
        region = self.region([*scalars, *scalars], build)
        operands = [*xs, *starts]
        return self.emit_many(
            f'"stablehlo.reduce"({", ".join(operands)}) <{{dimensions = array<i64: '
            f'{", ".join(map(str, axes))}>}}>'.replace("<i64: >", "<i64>"),
            *operands, outs=outs, regions=[region])

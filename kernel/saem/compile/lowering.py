"""How does a jaxpr become a StableHLO module?

Equation by equation, by the ``lower`` rules.  Array constants become extra arguments (so the text,
and with it the compile cache, does not depend on their numbers); unused arguments are dropped;
nested programs that repeat become one private function.

Read before: ``compile.text``.  Read after: ``compile.executables``.
Invariant: ``Lowering.text`` depends only on the program; tests/kernel/test_lowering.py.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile import donation
from saem.compile.operations import Function, Operation
from saem.compile.sizes import Sizes, open_sizes
from saem.compile.text import (
    Module,
    Writer,
    dense,
    physical_aval,
    symbol,
    tensor_type,
)
from saem.core import dtypes, hi_types, refs
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from saem.core.effects import in_order, is_ordered
from saem.core.hi_types import AbstractHigh, works_on_high
from saem.core.infer import infer
from saem.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, pick
from saem.core.placement_types import Seen
from saem.core.provenance import name_stack
from saem.core.record import Record
from saem.core.refs import is_ref, works_on_references
from saem.core.sharded import entries_of, entries_on
from saem.core.trace import Mark, Tracer, attributes_of
from saem.placement import layouts
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding, annotation

# The argument of ``main`` that says on which platform it runs, if it is written for several.
PLATFORM = "%platform"


@dataclasses.dataclass(eq=False, repr=False)
class Lowering:
    """A program as text, and how to call it.

    ``kept`` marks the arguments it takes; before them come ``consts``.  ``donated`` marks kept
    arguments whose buffers it may reuse; ``wasted`` are types of those it has no use for.
    If ``ordered``, the first argument and result are the token of its ordered effects.  ``closed``
    is the program that was written; ``terms`` (``placement.layouts``) has the memories and layouts
    of kept arguments and results.
    """

    module: Module
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    kept: tuple[bool, ...]
    consts: tuple[Any, ...]
    donated: tuple[bool, ...]
    name: str
    ordered: bool = False
    closed: ClosedJaxpr | None = None
    wasted: tuple[str, ...] = ()
    # What to do with references among its arguments, or values that are no arrays, if there are.
    exchange: Any = None
    terms: Any = None
    # Those that the text has a program for each of: its first argument is an index into them.
    platforms: tuple[str, ...] = ()

    @functools.cached_property
    def text(self) -> str:
        """The program as text that depends on it alone: it has no name and no places."""
        return self.module.text(False)

    def located_text(self) -> str:
        """Return the text XLA compiles: named after the function, with places in user code."""
        return self.module.text(True, self.symbol())

    def plain_text(self) -> str:
        """Return the text a person reads: named after the function, without places."""
        return self.module.text(False, self.symbol())

    def symbol(self) -> str:
        return symbol("jit_" + self.name).rstrip("_")


def needed_equations(jaxpr: Jaxpr) -> tuple[list[Eqn], set[Atom]]:
    """Return the equations that outputs or effects need, and all that is read."""
    live: set[Atom] = set(jaxpr.outvars)
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outvars) or eqn.operation.effects:
            eqns.append(eqn)
            live.update(eqn.invars)
    return eqns[::-1], live


def used_inputs(closed: ClosedJaxpr) -> tuple[bool, ...]:
    """Return for each input whether the program takes it: unused ones are dropped."""
    return closed.derived("used", lambda: used_among(
        closed.jaxpr.invars, needed_equations(closed.jaxpr)[1]))


def used_among(inputs: Sequence[Var], live: set[Atom]) -> tuple[bool, ...]:
    """Return for each input whether it is among the live values.

    Where sizes are open all are: each may be the one from which a size is known.
    """
    sizes_open = any(True for _ in open_sizes([v.aval.shape for v in inputs]))
    return tuple(sizes_open or v in live or v.aval.changes for v in inputs)


def with_values(programs: Sequence[ClosedJaxpr], inputs: Sequence[Any]) -> Sequence[Any]:
    """Return ``inputs`` of ``programs``, with zeros in place of a type that none of them uses.

    A function may ask a ShapeDtypeStruct that it is given for its dtype, say.
    Raises: TypeError if one of ``programs`` uses it.
    """
    for x in inputs:
        if type(x) is ShapeDtypeStruct:
            break
    else:
        return inputs
    used = [any(uses) for uses in zip(*map(used_inputs, programs))]
    for x, reads in zip(inputs, used):
        if reads and type(x) is ShapeDtypeStruct:
            raise no_value(x)
    return [np.zeros(x.shape, x.dtype) if type(x) is ShapeDtypeStruct else x for x in inputs]


def no_value(x: ShapeDtypeStruct) -> TypeError:
    """Return the error for a type where a value is needed."""
    return TypeError(
        "A ShapeDtypeStruct does not have a value and cannot be used as a constant in a JAX "
        f"function. Argument of shape {aval_of(x).str_short()} of type {type(x)} is not a valid "
        "JAX type: it has no numbers. Use it with eval_shape, make_jaxpr or lower.")


def lower(closed: ClosedJaxpr, *, name: str = "fn", keep_unused: bool = False,
          donated: Sequence[bool] = (), spread: Any = None, ordered: bool = False,
          platform: str | tuple[str, ...] = "cpu", embed: bool = False, terms: Any = None
          ) -> Lowering:
    """Write ``closed`` as a module whose ``main`` takes its constants, then its kept inputs.

    ``spread``, for several devices, has them and the shardings of arguments and results.  With
    ``embed`` the constants are written into the module, which then needs nothing else.  With a
    tuple of platforms the program is written for each; ``main`` first takes the index of one.

    Raises: TypeError if a constant is a tracer (it must have been moved to the inputs).
    """
    donated = tuple(donated or (False,) * len(closed.jaxpr.invars))
    return lower_as(closed, Options(name, keep_unused, donated, spread, ordered, platform, embed,
                                    terms))


class Options(Record):
    """What ``lower`` was given beside the program; ``donated`` has a flag for each argument."""

    name: str
    keep_unused: bool
    donated: tuple[bool, ...]
    spread: Any
    ordered: bool
    platform: str | tuple[str, ...]
    embed: bool
    terms: Any


def lower_as(closed: ClosedJaxpr, options: Options) -> Lowering:
    """Write ``closed``, first made a program without references, and with a token if it has
    ordered effects.
    """
    if AbstractHigh.used and works_on_high(closed):
        return hi_types.chapter.lower_as_arrays(closed, options, lower_as)
    if any(is_ref(v.aval) for v in closed.jaxpr.invars):
        exchange = refs.chapter.exchange(closed)
        spread = options.spread and exchange.placed(options.spread)
        lowered = lower_as(exchange.pure, dataclasses.replace(
            options, donated=exchange.donated(options.donated), spread=spread))
        return dataclasses.replace(lowered, exchange=exchange)
    if works_on_references(closed):
        return lower_as(refs.chapter.pure_program(closed), options)
    if not options.ordered and has_ordered_effects(closed):
        lowered = lower_as(in_order(closed), with_token(options))
        return dataclasses.replace(lowered, closed=closed)
    return write_module(closed, options)


def with_token(options: Options) -> Options:
    """Return the options for a program with a token as its first argument and result."""
    spread, terms = options.spread, options.terms
    return dataclasses.replace(options, ordered=True, donated=(False, *options.donated),
                               spread=spread and spread.with_token(),
                               terms=terms and terms.with_token())


def has_ordered_effects(closed: ClosedJaxpr) -> bool:
    """Return whether effects of ``closed`` must keep their order; most equations have no effect."""
    for eqn in closed.jaxpr.eqns:
        effects = eqn.operation.effects
        if effects and is_ordered(effects):
            return True
    return False


def write_module(closed: ClosedJaxpr, options: Options) -> Lowering:
    """Write a program without references, whose effects need no order or have a token."""
    jaxpr, spread = closed.jaxpr, options.spread
    kept = [options.keep_unused or used for used in used_inputs(closed)]
    inputs = pick(jaxpr.invars, kept)
    given = tuple(d for d, k in zip(options.donated, kept) if k)
    donations = donation.plan([v.aval for v in inputs], given, closed.out_avals,
                              spread is not None)
    terms = options.terms and options.terms.kept(kept)
    module = Module(options.name)
    main = module.function("public", "main")
    writer = Writer(module)
    writer.path = f"jit({options.name})/"
    env: dict[Var, str] = {}
    arguments = write_arguments(
        writer, inputs, argument_notes(module, inputs, kept, donations, spread, terms), env)
    platforms = options.platform if isinstance(options.platform, tuple) else ()
    if platforms:
        results = write_each(writer, closed, inputs, env, options, platforms)
    else:
        module.platform = options.platform
        results = write_program(writer, closed, inputs, env, options)
    consts = writer.hoisted.values()
    arguments = [f"{k}: {tensor_type(aval)}" for k, _, aval in consts] + arguments
    if platforms:
        arguments.insert(0, f'{PLATFORM}: tensor<i32> {{jax.global_constant = "_platform_index"}}')
    write_function(main, writer, arguments, results, result_notes(
        module, () if spread is None else spread.outs, closed.out_avals, terms))
    return Lowering(
        module=module, in_avals=tuple(v.aval for v in inputs), out_avals=tuple(closed.out_avals),
        kept=tuple(kept), consts=tuple(value for _, value, _ in consts),
        name=options.name, donated=tuple(map(bool, donations)), ordered=options.ordered,
        closed=closed, terms=terms, platforms=platforms,
        wasted=donation.wasted([v.aval for v in inputs], given, donations))


def write_program(writer: Writer, closed: ClosedJaxpr, inputs: Sequence[Var],
                  env: dict[Var, str], options: Options) -> list[str]:
    """Write ``closed``, its kept ``inputs`` named by ``env``, as a whole function; return results.
    """
    module, spread, terms = writer.module, options.spread, options.terms
    eqns, live = needed_equations(closed.jaxpr)
    scalars = hoist_arrays(writer, closed, live, env)
    if any(True for _ in open_sizes([v.aval.shape for v in closed.jaxpr.invars])):
        module.sizes = Sizes([(env[v], tensor_type(v.aval), v.aval.shape) for v in inputs])
    for var, value in scalars:
        env[var] = writer.constant(np.asarray(value), var.aval)
    results = write_equations(writer, eqns, closed.jaxpr.outvars, env)
    if Seen.sums and spread is not None and spread.outs:
        results = [r if s is None else as_demanded(writer, r, s, aval)
                   for r, s, aval in zip(results, spread.outs, closed.out_avals)]
    if terms and any(terms.named):
        results = [writer.in_memory(r, kind) if named else r for r, kind, named in zip(
            results, terms.out_kinds, terms.named)]
    if module.sizes is not None:
        writer.operations[:0] = module.sizes.operations
    if options.embed:
        embed_constants(writer)
    return results


def write_each(writer: Writer, closed: ClosedJaxpr, inputs: Sequence[Var], env: dict[Var, str],
               options: Options, platforms: Sequence[str]) -> list[str]:
    """Write ``closed`` as a private function for each of ``platforms``, and the choice of one.

    The argument ``PLATFORM`` of ``main`` is the index of the platform it runs on.
    """
    regions = []
    for platform in platforms:
        writer.module.platform = platform
        symbol = writer.module.unique_name(f"main_{platform}")
        function = writer.module.function("private", symbol)
        inner = Writer(writer.module)
        inner.path = writer.path
        names: dict[Var, str] = {}
        arguments = write_arguments(inner, inputs, [""] * len(inputs), names)
        results = write_program(inner, closed, inputs, names, options)
        consts = inner.hoisted.values()
        arguments += [f"{k}: {tensor_type(aval)}" for k, _, aval in consts]
        write_function(function, inner, arguments, results)
        operands = [*(env[v] for v in inputs),
                    *(writer.hoist(value, aval) for _, value, aval in consts)]
        regions.append(writer.region((), functools.partial(
            writer.emit_many, f"func.call @{symbol}({', '.join(operands)})", *operands,
            outs=closed.out_avals)))
    writer.avals[PLATFORM] = ShapedArray((), np.dtype(np.int32))
    return writer.emit_many(f'"stablehlo.case"({PLATFORM})', PLATFORM, outs=closed.out_avals,
                            regions=regions)


def hoist_arrays(writer: Writer, closed: ClosedJaxpr, live: set[Atom], env: dict[Var, str]
                 ) -> list[tuple[Var, Any]]:
    """Make array constants of ``closed`` arguments of the text; return those to be written into it.

    Raises: TypeError if a constant is a tracer.
    """
    written = []
    for var, value in zip(closed.jaxpr.constvars, closed.consts):
        if var not in live:
            continue
        if isinstance(value, Tracer):
            raise TypeError(f"lower: the constant {value} is a tracer; close over it as an input")
        if held_in_argument(var.aval):
            env[var] = writer.hoist(value, var.aval)
        else:
            written.append((var, value))
    return written


def write_arguments(writer: Writer, inputs: Sequence[Var], notes: Sequence[str],
                    env: dict[Var, str]) -> list[str]:
    """Name the arguments ``inputs``; return their declarations, each with its note."""
    declared = []
    for number, (var, note) in enumerate(zip(inputs, notes)):
        name = env[var] = f"%arg{number}"
        writer.avals[name] = var.aval
        declared.append(f"{name}: {tensor_type(var.aval)}{note}")
    return declared


def embed_constants(writer: Writer) -> None:
    """Write the array constants of a function as its first operations, not as arguments."""
    held = []
    for name, value, aval in writer.hoisted.values():
        physical = physical_aval(aval)
        number = np.asarray(getattr(value, "_base", value), physical.dtype)
        held.append(Operation(name, 1, f"stablehlo.constant {dense(number, physical.dtype)}",
                              tensor_type(aval)))
    writer.operations[:0] = held
    writer.hoisted.clear()


def held_in_argument(aval: ShapedArray) -> bool:
    """Return whether a constant of ``aval`` is passed to a program, not written into it."""
    return bool(aval.shape) or isinstance(aval.dtype, dtypes.ExtendedDType)


def argument_notes(module: Module, inputs: Sequence[Var], kept: Sequence[bool],
                   donations: Sequence[str], spread: Any, terms: Any) -> list[str]:
    """Return the attributes of each kept argument: sharding, memory and layout, donation."""
    shardings: Sequence[Any] = [None] * len(inputs)
    if spread is not None:
        module.devices = spread.slots
        module.mesh(spread.mesh)
        if spread.by_type:
            module.whole = NamedSharding(spread.mesh, PartitionSpec())
        if spread.ins:
            shardings = pick(spread.ins, kept)
    notes = []
    memory_notes = [layouts.notes(kind, layout) for kind, layout in zip(
        terms.in_kinds, terms.in_layouts)] if terms else [[]] * len(inputs)
    for var, donated, sharding, stored in zip(inputs, donations, shardings, memory_notes):
        sharded = sharding_note(module, sharding, var.aval) if sharding is not None else ""
        found = [note for note in (sharded, *stored, donated) if note]
        notes.append(f" {{{', '.join(found)}}}" if found else "")
    return notes


def result_notes(module: Module, wanted: Sequence[Any], avals: Sequence[ShapedArray],
                 terms: Any) -> list[str]:
    """Return the attributes of each result: its sharding, memory and layout, if demanded."""
    notes = [sharding_note(module, s, a) if s is not None else "" for s, a in zip(wanted, avals)]
    if terms:
        notes = [", ".join(filter(None, (note, *layouts.notes(kind, layout))))
                 for note, kind, layout in zip(notes or [""] * len(avals), terms.out_kinds,
                                               terms.out_layouts)]
    return [f" {{{note}}}" if note else "" for note in notes]


def sharding_note(module: Module, sharding: Any, aval: ShapedArray) -> str:
    """Return the attribute for Shardy that names ``sharding``, '' if it is not a NamedSharding."""
    if not hasattr(sharding, "spec"):
        return ""
    ndim = len(physical_aval(aval).shape)
    return f"sdy.sharding = #sdy.sharding{module.sharding(sharding, ndim)}"


def write_function(function: Function, writer: Writer, arguments: Sequence[str],
                   results: Sequence[str], notes: Sequence[str] = ()) -> None:
    """Define a function by the operations of ``writer``; ``notes`` are attributes of its results.
    """
    types = writer.type_of(*results) if results else ""
    noted = types if not any(notes) else ", ".join(
        writer.type_of(r) + note for r, note in zip(results, notes))
    function.define(arguments, writer.operations, results, types, noted)


def write_equations(writer: Writer, eqns: Sequence[Eqn], outvars: Sequence, env: dict[Var, str]
                    ) -> list[str]:
    """Lower ``eqns`` with ``env`` naming the variables; returns the names of ``outvars``."""
    literals: dict[Any, str] = {}

    def name_of(atom: Literal) -> str:
        key = literal_key(atom)
        name = literals.get(key)
        if name is None:
            name = literals[key] = writer.constant(np.asarray(atom.val), atom.aval)
        return name

    around = writer.in_avals, writer.out_avals, writer.place, writer.path
    path = scope = writer.path
    stack: Any = None
    attributes: dict[str, str] = {}
    for eqn in eqns:
        prim, invars, results = eqn.operation, eqn.invars, eqn.outvars
        if eqn.stack is not stack:
            stack = eqn.stack
            names = str(name_stack(stack))
            writer.path = scope = f"{path}{names}/" if names else path
            if Mark.used and attributes != (attributes := attributes_of(stack)):
                writer.results.clear()  # they carry other attributes
        begin = len(writer.operations)
        writer.place = eqn.source, scope + prim.path_name
        operands = [name_of(a) if type(a) is Literal else env[a] for a in invars]
        writer.in_avals = in_avals = [a.aval for a in invars]
        writer.out_avals = out_avals = [v.aval for v in results]
        if prim.physical is not None:
            prim = on_held_arrays(prim, in_avals, out_avals)
        out = prim.lower(writer, *operands)
        if attributes:
            for operation in writer.operations[begin:]:
                operation.add_frontend(attributes)
        outs = out if prim.multiple_results else (out,)
        if Seen.placements:
            outs = constrained_results(writer, eqn, outs)
        env.update(zip(results, outs))
    if attributes:
        writer.results.clear()
    writer.place = None  # what is returned has no place of its own
    returned = [name_of(a) if type(a) is Literal else env[a] for a in outvars]
    writer.in_avals, writer.out_avals, writer.place, writer.path = around
    return returned


def literal_key(atom: Literal) -> tuple:
    """Return a key that is equal for literals of the same dtype and the same bits."""
    val, dtype = atom.val, atom.aval.dtype
    if val == val and val and dtype.kind in "fiu":
        return dtype, type(val), val
    # A zero has a sign, a NaN has bits, a complex number has both in its parts.
    return dtype, val.tobytes() if isinstance(val, np.generic) else repr(val)


def on_held_arrays(prim: Any, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
                   ) -> Any:
    """Return ``prim``, or the same operation on the arrays that hold keys (``physical``)."""
    for aval in (*in_avals, *out_avals):
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            return prim.physical(in_avals, out_avals)
    return prim


def lower_primitive(writer: Writer, prim: Any, operands: Sequence[str],
                    in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
                    ) -> Sequence[str]:
    """Lower one primitive inside the rule of another."""
    around = writer.in_avals, writer.out_avals
    writer.in_avals, writer.out_avals = in_avals, out_avals
    if prim.physical is not None:
        prim = on_held_arrays(prim, in_avals, out_avals)
    out = prim.lower(writer, *operands)
    writer.in_avals, writer.out_avals = around
    return out if prim.multiple_results else (out,)


def constrained_results(writer: Writer, eqn: Eqn, names: Sequence[str]) -> list[str]:
    """Write the constraints that the results ``names`` of ``eqn`` are sharded as their types say.

    What a callback returns, and what is inside of ``shard_map``, need not be whole on each device.
    """
    module = writer.module
    free = eqn.operation.effects or module.device_axes is not None
    whole = None if free else module.whole
    return [constrained_by_type(writer, x, aval, whole)
            for x, aval in zip(names, writer.out_avals)]


def constrained_by_type(writer: Writer, x: str, aval: Any, whole: Any) -> str:
    """Write the constraint that ``x`` is sharded as its type says; returns its new name.

    Where ``Spread.by_type``, a type without a sharding says that each device has all (``whole``);
    elsewhere the partitioner may shard it.  What comes from Python comes from one device.
    """
    sharding = aval.explicit
    if sharding is None and not is_ref(aval):
        sharding = whole
    return x if sharding is None else constrained(writer, x, sharding)


def constrained(writer: Writer, x: str, sharding: Any) -> str:
    """Write the constraint, for the partitioner, that ``x`` has the NamedSharding ``sharding``.

    Along Auto axes of the mesh it may shard further.
    """
    mesh = sharding.mesh
    if not mesh.explicit_axes:
        return x
    aval = writer.avals[x]
    text = annotation(sharding, len(physical_aval(aval).shape), bool(mesh.auto_axes))
    return writer.append(f"sdy.sharding_constraint {x} <{writer.module.mesh(mesh)}, {text}>",
                         tensor_type(aval), aval)


def whole(writer: Writer, x: str, sharding: Any, aval: ShapedArray) -> str:
    """Write that ``x``, of ``aval``, is whole, where ``sharding`` will make addends of it.

    Else the partitioner takes the copies that devices have for the addends.
    """
    if unreduced_in(sharding) <= aval.sums.unreduced:
        return x
    return constrained(writer, x, entries_on(sharding, entries_of(aval), aval.sums))


def as_demanded(writer: Writer, x: str, sharding: Any, aval: ShapedArray) -> str:
    """Write that addends are made of the result ``x``, or added up, where ``sharding`` says so.

    Partitioners of jaxlib 0.11 and later add up only what an operation says.
    """
    x = whole(writer, x, sharding, aval)
    return x if aval.sums.unreduced <= unreduced_in(sharding) else constrained(writer, x, sharding)


def unreduced_in(sharding: Any) -> frozenset:
    """Return the axes along which devices hold addends."""
    return getattr(getattr(sharding, "spec", None), "unreduced", frozenset())


def private_function(module: Module, closed: ClosedJaxpr, name: str) -> tuple[str, list]:
    """Return the symbol of the private function that is ``closed``, and its further arguments.

    It is written once for all calls on a platform inside of ``shard_map``, and outside; its
    arguments besides the inputs of the program are array constants: (name, value, aval).
    """
    key = id(closed), module.platform, module.device_axes is None
    known = module.memo.get(key)
    if known is None:
        inner = Writer(module)
        symbol = module.unique_name(name)
        function = module.function("private", symbol)
        module.keepalive.append(closed)
        env: dict[Var, str] = {}
        inputs = closed.jaxpr.invars
        arguments = write_arguments(inner, inputs, [""] * len(inputs), env)
        results = inline(inner, closed, env)
        consts = list(inner.hoisted.values())
        arguments += [f"{k}: {tensor_type(aval)}" for k, _, aval in consts]
        write_function(function, inner, arguments, results)
        known = module.memo[key] = symbol, consts
    return known


def call(writer: Writer, closed: ClosedJaxpr, operands: Sequence[str], name: str) -> list[str]:
    """Call a nested program as a private function, written once however often it is called.

    Its array constants are further arguments, which the caller takes from its own.
    """
    if writer.module.sizes is not None:  # a function would need its sizes as arguments
        return lower_block(writer, closed, operands)
    symbol, consts = private_function(writer.module, closed, name)
    operands = [*operands, *(writer.hoist(value, aval) for _, value, aval in consts)]
    # Inside a region of another dialect the operation's own dialect is written.
    verb = "func.call" if writer.depth else "call"
    return writer.emit_many(f"{verb} @{symbol}({', '.join(operands)})", *operands,
                            outs=closed.out_avals)


def inline(writer: Writer, closed: ClosedJaxpr, env: dict[Var, str]) -> list[str]:
    """Write the equations of ``closed`` here, its inputs named by ``env``; returns its results."""
    eqns, live = needed_equations(closed.jaxpr)
    for var, value in zip(closed.jaxpr.constvars, closed.consts):
        if var in live:
            env[var] = writer.hoist(value, var.aval) if held_in_argument(var.aval) else (
                writer.constant(np.asarray(value), var.aval))
    return write_equations(writer, eqns, closed.jaxpr.outvars, env)


def lower_block(writer: Writer, closed: ClosedJaxpr, names: Sequence[str], name: str = ""
                ) -> list[str]:
    """Write ``closed`` here, or inside a region, with arguments ``names``; ``name`` is on its path.
    """
    path = writer.path
    writer.path = f"{path}{name}/" if name else path
    results = inline(writer, closed, dict(zip(closed.jaxpr.invars, names)))
    writer.path = path
    return results


def lower_apart(writer: Writer, closed: ClosedJaxpr, names: Sequence[str]) -> list[str]:
    """Write ``closed`` inside a region that sees nothing of the function around it.

    So its array constants are written there, too.
    """
    eqns, live = needed_equations(closed.jaxpr)
    env = dict(zip(closed.jaxpr.invars, names))
    for var, value in zip(closed.jaxpr.constvars, closed.consts):
        if var in live:
            env[var] = writer.constant(np.asarray(value), var.aval)
    return write_equations(writer, eqns, closed.jaxpr.outvars, env)


def one_equation(prim: Any, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Return the program that applies ``prim`` once to arguments of ``avals``."""
    invars = [Var(a) for a in avals]
    typed = infer(prim, avals)
    outvars = [Var(a) for a in typed] if prim.multiple_results else [Var(typed)]
    return ClosedJaxpr(Jaxpr([], invars, outvars, [Eqn(prim, invars, outvars, None, ())],
                             prim.name))


def avals_of(values: Sequence[Any]) -> tuple[ShapedArray, ...]:
    return tuple([aval_of(v) for v in values])

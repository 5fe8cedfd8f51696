"""How does a user define how a function is divided among devices?  (``custom_partitioning``)

As one equation, which XLA's partitioner meets as a call that it cannot look into.  A sharding rule
lists for Shardy which axes of operands and results go together; the user's ``partition``, called
while the program is compiled, answers how operands and results are sharded and what each device
computes.  On one device the function itself is written.

Read before: ``experimental.marks``, ``placement.shardings``.
Invariant: on one device and on several the values are those of the function (if ``partition`` says
so); a number in the text stands for what the partitioner asks, so no two functions share a program.
Source: the documentation of jax.experimental.custom_partitioning; the Shardy dialect, sharding
rules.
"""

from __future__ import annotations

import functools
import inspect
import io
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

from saem import _jaxlib
from saem.compile import lowering
from saem.compile.collective_text import DeviceAxes
from saem.compile.mlir import parse
from saem.compile.text import Module, Writer, physical_aval, tensor_type
from saem.core import axes, errors, tree
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from saem.core.jaxpr import ClosedJaxpr
from saem.core.primitive import absent, primitive
from saem.core.record import Record
from saem.core.trace import bind
from saem.jit.call import ProgramCall
from saem.parallel.shard_map_call import manual_axes_of
from saem.placement.shardings import NamedSharding, named_from_xla
from saem.transform.staging import move_tracer_consts, trace_flat

BATCHING = "…"


# -- sharding rules --------------------------------------------------------------------------------


def check_factor(name: str) -> None:
    """Refuse a factor whose name does not begin with a letter.  Raises: ValueError."""
    if not name[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got {name!r}")


class CompoundFactor(tuple):
    """One axis that is several factors, the slowest first: ``CompoundFactor("a", "b")``."""

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError("Each element of CompoundFactor must be a str, but got "
                                 f"{type(factor)}")
            check_factor(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """The factors of an array's axes; ``BATCHING`` stands for any number of leading ones."""

    __slots__ = ()

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for place, entry in enumerate(dim_mappings):
            if not isinstance(entry, (str, CompoundFactor)):
                raise ValueError("Each element of ArrayMapping must be a str or CompoundFactor, "
                                 f"but got {type(entry)}")
            if isinstance(entry, str) and entry.startswith(BATCHING):
                if place:
                    raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            elif isinstance(entry, str):
                check_factor(entry)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule(Record):
    """Which axes of operands and results go together: those of one factor.

    Factors are pass-through unless they are named as reductions, permutations, or in need of
    replication; ``factor_sizes`` gives those that stand only in compounds.
    """

    operand_mappings: tuple[ArrayMapping, ...]
    result_mappings: tuple[ArrayMapping, ...]
    reduction_factors: tuple[str, ...] = ()
    need_replication_factors: tuple[str, ...] = ()
    permutation_factors: tuple[str, ...] = ()
    factor_sizes: tuple[tuple[str, int], ...] = ()

    def __init__(self, operand_mappings: tuple[ArrayMapping, ...],
                 result_mappings: tuple[ArrayMapping, ...], *,
                 reduction_factors: tuple[str, ...] = (),
                 need_replication_factors: tuple[str, ...] = (),
                 permutation_factors: tuple[str, ...] = (), **factor_sizes: int):
        """Raises: ValueError for factors that do not fit together, TypeError for no mappings."""
        check_sizes([entry for mapping in (*operand_mappings, *result_mappings)
                     for entry in mapping], factor_sizes)
        special = {"reduction_factors": reduction_factors,
                   "need_replication_factors": need_replication_factors,
                   "permutation_factors": permutation_factors}
        check_special(special, factors_of((*operand_mappings, *result_mappings)))
        super().__init__(tuple(operand_mappings), tuple(result_mappings), *special.values(),
                         tuple(sorted(factor_sizes.items())))

    def __repr__(self) -> str:
        plain = [tuple(map(tuple, side)) for side in (self.operand_mappings, self.result_mappings)]
        return f"SdyShardingRule({plain[0]}, {plain[1]}, {dict(self.factor_sizes)})"

    def text(self, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> str:
        """Return the rule for arrays of these shapes, as Shardy writes it.

        Raises: ValueError if it does not fit them.
        """
        names: dict[str, str] = {}
        sizes = dict(self.factor_sizes)
        sides = [[self.axes(mapping, aval, names, sizes) for mapping, aval in zip(given, avals)]
                 for given, avals in self.sides(ins, outs)]
        kinds = "".join(
            f" {kind}={{{', '.join(names[f] for f in factors)}}}" for kind, factors in (
                ("reduction", self.reduction_factors),
                ("need_replication", self.need_replication_factors),
                ("permutation", self.permutation_factors)) if factors)
        known = ", ".join(f"{name}={sizes[factor]}" for factor, name in names.items())
        shown = ["(" + ", ".join(side) + ")" for side in sides]
        return f"#sdy.op_sharding_rule<{shown[0]}->{shown[1]} {{{known}}}{kinds}, custom>"

    def sides(self, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[tuple]:
        """Return mappings with the arrays they are of.  Raises: ValueError for other numbers."""
        for what, mappings, avals in (("operands", self.operand_mappings, ins),
                                      ("results", self.result_mappings, outs)):
            if len(mappings) != len(avals):
                raise ValueError(f"Sharding rule has {len(mappings)} {what}, but the operation has "
                                 f"{len(avals)} {what}")
        return [(self.operand_mappings, ins), (self.result_mappings, outs)]

    def axes(self, mapping: ArrayMapping, aval: ShapedArray, names: dict[str, str],
             sizes: dict[str, int]) -> str:
        """Return ``[i, jk]`` for one array, naming factors and noting their sizes."""
        whole: list[Any] = []
        for entry in mapping:
            if isinstance(entry, str) and entry.startswith(BATCHING):
                count = len(aval.shape) - (len(mapping) - 1)
                whole += [f"{entry}{i}" for i in range(count)]
            else:
                whole.append(entry)
        if len(whole) != len(aval.shape):
            raise ValueError(f"Sharding rule {mapping} has {len(whole)} axes, but the array has "
                             f"{len(aval.shape)}: {aval.str_short(True)}")
        shown = []
        for entry, size in zip(whole, aval.shape):
            factors = entry if isinstance(entry, CompoundFactor) else (entry,)
            if len(factors) == 1 and sizes.setdefault(entry, size) != size:
                raise ValueError(f"Factor {entry} has sizes {sizes[entry]} and {size}")
            shown.append("".join(names.setdefault(f, factor_name(len(names))) for f in factors))
        return f"[{', '.join(shown)}]"


def factors_of(mappings: Sequence[ArrayMapping]) -> set[str]:
    """Return all factors of some arrays, those in compounds too."""
    return {factor for mapping in mappings for entry in mapping
            for factor in (entry if isinstance(entry, CompoundFactor) else (entry,))
            if not factor.startswith(BATCHING)}


def check_sizes(entries: Sequence[Any], sizes: dict[str, int]) -> None:
    """Refuse sizes of factors that are whole axes, and compounds of factors without a size.

    Raises: ValueError.
    """
    whole = {entry for entry in entries if not isinstance(entry, CompoundFactor)}
    for factor in (f for e in entries if isinstance(e, CompoundFactor) for f in e):
        if factor not in whole and factor not in sizes:
            raise ValueError(f"Factor {factor} is only used in compound factors; must specify its "
                             f"size, {factor}=2 for example")
    for factor in sizes:
        if factor in whole:
            raise ValueError(f"Factor {factor} represents a whole dimension; do not specify its "
                             "size")
        if not any(factor in e for e in entries if isinstance(e, CompoundFactor)):
            raise ValueError(f"Factor {factor} is not used in the rule, but size is provided")


def check_special(special: dict[str, Any], used: set[str]) -> None:
    """Refuse reductions and the like that are no factors of the rule, or stand twice.

    Raises: ValueError.
    """
    seen: set[str] = set()
    for kind, factors in special.items():
        if not isinstance(factors, tuple):
            raise ValueError(f"{kind} must be a tuple of factors, but got {factors!r}")
        if len(set(factors)) != len(factors):
            raise ValueError(f"{kind} contains duplicated factors: {factors}")
        for factor in factors:
            if factor not in used:
                raise ValueError(f"Factor {factor} in {kind} is not used in the rule")
            if factor in seen:
                raise ValueError(f"Factor {factor} can only be in one of the reduction, need "
                                 "replication, or permutation factor sets.")
        seen |= set(factors)


def factor_name(number: int) -> str:
    """Return what Shardy calls factor ``number``: i, j, …, z, z_1, …"""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"


def rule_of(text: str, **options: Any) -> SdyShardingRule:
    """Return the rule of the text ``"... i j, j (k l) -> ... i k"``.

    Raises: ValueError for other text.
    """
    if text.count("->") != 1:
        raise ValueError(f"There is no -> in rule: {text!r}" if "->" not in text else
                         f"There is more than one -> in rule: {text!r}")
    sides = [tuple(array_mapping(part) for part in side.split(",")) if side.strip() else ()
             for side in text.split("->")]
    return SdyShardingRule(*sides, **options)


def array_mapping(text: str) -> ArrayMapping:
    unknown = next((c for c in text if not (c.isalnum() or c in "_.() ")), None)
    if unknown is not None:
        raise ValueError(f"Unknown character {unknown!r} in rule: {text!r}")
    entries: list[Any] = []
    compound: list[str] | None = None
    for word in text.replace("...", BATCHING).replace("(", " ( ").replace(")", " ) ").split():
        if word == "(" and compound is None:
            compound = []
        elif word == ")" and compound is not None:
            entries.append(CompoundFactor(*compound))
            compound = None
        elif word in "()":
            raise ValueError(f"Brackets are not balanced in rule: {text!r}")
        else:
            (entries if compound is None else compound).append(word)
    if compound is not None:
        raise ValueError(f"Brackets are not balanced in rule: {text!r}")
    return ArrayMapping(*entries)


# -- the primitive ---------------------------------------------------------------------------------


@primitive("custom_partitioning")
class CustomPartitioning(ProgramCall):
    """Call ``call``, which the user's ``partition`` divides among devices."""

    call: ClosedJaxpr
    partition: Callable
    propagate_user_sharding: Callable | None
    infer_sharding_from_operands: Callable | None
    decode_shardings: bool
    sharding_rule: SdyShardingRule | None
    in_tree: Any
    out_tree: Any
    static_args: tuple[Any, ...] = ()

    holds = "call"
    # How it is divided is not known of another program.
    nested = None

    def lower(self, ctx, *xs):
        if not ctx.module.devices:
            return lowering.call(ctx, self.call, xs, "custom_partitioning")
        mesh = next(iter(ctx.module.meshes))
        attributes = {"api_version": "2 : i32",
                      "backend_config": f'"{questions.number(self, mesh)}"'}
        if self.sharding_rule is not None:
            attributes["sdy.sharding_rule"] = self.sharding_rule.text(
                [physical_aval(a) for a in self.call.in_avals],
                [physical_aval(a) for a in self.call.out_avals])
        return ctx.emit_many(f"stablehlo.custom_call @{TARGET}({', '.join(xs)})", *xs,
                             outs=self.call.out_avals, attributes=attributes)

    jvp = absent("Differentiation rule for 'custom_partitioning' not implemented. Put it inside a "
                 "custom_vjp", NotImplementedError)
    transpose = absent("it is not differentiated, so it is never transposed", NotImplementedError)
    batch = absent("Batching rule for 'custom_partitioning' not implemented. Put it inside a "
                   "custom_vmap", NotImplementedError)


TARGET = "CustomSPMDPartitioning"


class Questions:
    """What the partitioner may ask, by the numbers that stand in programs' text."""

    def __init__(self) -> None:
        # Another process counts anew: its numbers must not find programs of this one on disk.
        self.process = os.urandom(8).hex()
        self.known: dict[str, tuple[CustomPartitioning, Any]] = {}
        self.numbers: dict[Any, str] = {}
        self.counter = itertools.count()

    def number(self, prim: CustomPartitioning, mesh: Any) -> str:
        """Return the number of ``prim`` on ``mesh``."""
        if not self.numbers:
            _jaxlib.register_custom_call_partitioner(
                TARGET, lambda sharding, *_: sharding, self.partitioned, self.inferred, True)
        key = (prim, mesh)
        if key not in self.numbers:
            self.numbers[key] = f"{self.process}-{next(self.counter)}"
            self.known[self.numbers[key]] = key
        return self.numbers[key]

    def inferred(self, arg_shapes: Any, arg_shardings: Any, result_shape: Any, config: bytes
                 ) -> Any:
        """Return the sharding of a result for which Shardy has none: replicated."""
        return _jaxlib.HloSharding.replicate()

    def partitioned(self, arg_shapes: Any, arg_shardings: Any, result_shape: Any,
                    result_sharding: Any, config: bytes) -> tuple:
        """Answer how a call is divided: each device's program, and all shardings."""
        prim, mesh = self.known[config.decode()]
        outs = prim.call.out_avals
        results = (result_sharding.tuple_elements() if prim.out_tree.num_leaves != 1
                   or result_shape.is_tuple() else [result_sharding])
        given = [described(s, mesh, a) for s, a in zip(arg_shardings, prim.call.in_avals)]
        wanted = [described(s, mesh, a) for s, a in zip(results, outs)]
        mesh, function, out_shardings, in_shardings = prim.partition(
            *prim.static_args, mesh, prim.in_tree.unflatten(given), prim.out_tree.unflatten(wanted))
        ins = tree.leaves(in_shardings)
        outs_said = tree.leaves(out_shardings)
        parts = [a.update(shape=s.shard_shape(a.shape)) for a, s in zip(prim.call.in_avals, ins)]

        def one_part(*leaves: Any) -> list[Any]:
            return tree.leaves(function(*prim.in_tree.unflatten(leaves)))

        with axes.bound(*manual_axes_of(mesh, mesh.axis_names, False)):
            closed = trace_flat(one_part, parts, name="custom_partitioning")
            check_parts(prim, closed, outs_said)
            code = bytecode(closed, mesh)
        chosen = [s._to_xla_hlo_sharding(len(a.shape)) for s, a in zip(outs_said, outs)]
        whole = chosen[0] if len(chosen) == 1 and not result_shape.is_tuple() else (
            _jaxlib.HloSharding.tuple_sharding(result_shape, chosen))
        return code, [s._to_xla_hlo_sharding(len(a.shape))
                                  for s, a in zip(ins, prim.call.in_avals)], whole


questions = Questions()


def described(sharding: Any, mesh: Any, aval: ShapedArray) -> ShapeDtypeStruct:
    """Return the type of an array with the sharding that XLA suggests."""
    named = named_from_xla(sharding, [mesh], len(aval.shape))
    spec = (*named.spec, *(None,) * (len(aval.shape) - len(named.spec)))
    return ShapeDtypeStruct(aval.shape, aval.dtype,
                            sharding=NamedSharding(named.mesh, type(named.spec)(*spec)))


def check_parts(prim: CustomPartitioning, closed: ClosedJaxpr, shardings: Sequence[Any]) -> None:
    """Refuse a device's program whose results are no parts of the whole.

    Raises: ValueError.
    """
    for number, (got, whole, s) in enumerate(zip(closed.out_avals, prim.call.out_avals, shardings)):
        wanted = whole.update(shape=s.shard_shape(whole.shape))
        if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
            raise errors.explained(
                errors.ArgumentError, "custom_partitioning.C1",
                "Mismatch in result shapes. Lowering a partition of custom_partitioning gave "
                f"{got.str_short(True)} for result {number}, but {wanted.str_short(True)} was "
                "needed.",
                advice="The function that partition returns computes one device's part of the "
                f"result, here that of {s}.")


def bytecode(closed: ClosedJaxpr, mesh: Any) -> bytes:
    """Return the program of one device of ``mesh`` as MLIR's bytes."""
    module = Module("part")
    module.device_axes = DeviceAxes(dict(mesh.shape), frozenset(mesh.axis_names), "@mesh")
    writer = Writer(module)
    names = {v: f"%arg{n}" for n, v in enumerate(closed.jaxpr.invars)}
    writer.avals.update((name, v.aval) for v, name in names.items())
    arguments = [f"{name}: {tensor_type(v.aval)}" for v, name in names.items()]
    results = lowering.inline(writer, closed, names)
    lowering.embed_constants(writer)
    lowering.write_function(module.function("public", "main"), writer, arguments, results)
    held = io.BytesIO()
    parse(module.text(False)).operation.write_bytecode(held)
    return held.getvalue()


# -- the decorator ---------------------------------------------------------------------------------


class custom_partitioning:
    """A function whose division among devices ``def_partition`` defines.

    Arguments of the numbers ``static_argnums`` are not traced, but given to all rules, first.
    """

    def __init__(self, fun: Callable, static_argnums: Sequence[int] = ()):
        self.fun = fun
        self.static_argnums = tuple(static_argnums)
        self.partition: Callable | None = None
        functools.update_wrapper(self, fun)

    def def_partition(self, partition: Callable, infer_sharding_from_operands: Any = None,
                      propagate_user_sharding: Any = None, decode_shardings: bool = True,
                      sharding_rule: Any = None, *, reduction_factors: Sequence[str] = (),
                      need_replication_factors: Sequence[str] = (),
                      permutation_factors: Sequence[str] = (), **factor_sizes: int) -> Callable:
        """Define how it is divided: ``partition(mesh, arg_shapes, result_shape)`` returns the mesh,
        what one device computes, the shardings of results and of arguments.

        ``sharding_rule`` is a ``SdyShardingRule``, its text (``"i j, j k -> i k"``), or a function
        of (mesh, argument types, result types) that returns one.

        Raises: ValueError for a rule that is not well formed, TypeError for one of another kind.
        """
        options = dict(reduction_factors=reduction_factors,
                       need_replication_factors=need_replication_factors,
                       permutation_factors=permutation_factors, **factor_sizes)
        if isinstance(sharding_rule, str):
            sharding_rule = rule_of(sharding_rule, **options)
        elif given := {name: value for name, value in options.items() if value != ()}:
            raise ValueError(f"Unknown keyword arguments: {given}. They belong to a rule that is "
                             "text.")
        elif not (sharding_rule is None or callable(sharding_rule)
                  or isinstance(sharding_rule, SdyShardingRule)):
            raise TypeError("rule must be a str, a SdyShardingRule or a function that returns one, "
                            f"but got {type(sharding_rule)}")
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.decode_shardings = decode_shardings
        self.sharding_rule = sharding_rule
        return partition

    def rule(self, ins: Any, outs: Any) -> SdyShardingRule | None:
        """Return the sharding rule for arguments and results of these types.

        Raises: NotImplementedError if there is a rule for the older partitioner alone.
        """
        rule = self.sharding_rule
        if rule is None and (self.infer_sharding_from_operands or self.propagate_user_sharding):
            raise errors.explained(
                NotImplementedError, "custom_partitioning.C2",
                "Shardy is used, but sharding propagation callbacks instead of sharding_rule are "
                "provided. Need to provide sharding_rule to migrate to Shardy.",
                advice='For example def_partition(partition, sharding_rule="i j -> i j").')
        if callable(rule) and not isinstance(rule, SdyShardingRule):
            rule = rule(None, ins, outs)
        return rule_of(rule) if isinstance(rule, str) else rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.partition is None:
            raise AttributeError(
                f"custom_partitioning: {self.fun.__name__} has no partition rule. Give it one: "
                "f.def_partition(partition, sharding_rule=...).")
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        whole = bound.args
        static = tuple(whole[n] for n in self.static_argnums)
        dynamic = tuple(x for n, x in enumerate(whole) if n not in self.static_argnums)
        leaves, in_tree = tree.flatten(dynamic)
        structure: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            rest = iter(in_tree.unflatten(values))
            outs, out_tree = tree.flatten(self.fun(*[
                x if n in self.static_argnums else next(rest) for n, x in enumerate(whole)]))
            structure.append(out_tree)
            return outs

        closed = trace_flat(flat, [aval_of(x) for x in leaves], name="custom_partitioning",
                            debug_name=self.fun.__name__)
        closed, moved = move_tracer_consts(closed)
        if moved or closed.consts:
            raise errors.explained(
                errors.ArgumentError, "custom_partitioning.C3",
                f"custom_partitioning: {self.fun.__name__} closes over arrays, which no sharding "
                "rule speaks of.", advice="Make them arguments.")
        rule = self.rule(in_tree.unflatten(closed.in_avals), structure[0].unflatten(
            closed.out_avals))
        call = CustomPartitioning(
            closed, self.partition, self.propagate_user_sharding,
            self.infer_sharding_from_operands, self.decode_shardings, rule, in_tree, structure[0],
            static)
        return structure[0].unflatten(bind(call, *leaves))

"""How does a function of one device's part appear inside a program of whole arrays?

As one equation ``shard_map[jaxpr={…} mesh=… in_specs=… out_specs=…]``.  The program inside speaks
of parts and of collectives between devices; the specs name the part of each operand that a device
gets, and how the parts of results are put together.  Its rules transform the program inside, where
the mesh axes have names, and add a spec for every new operand and result.

Read before: ``jit.call``, ``ops.collectives``, ``core.varying``.
Read after: ``parallel.shard_map``.
Invariant: with ``check_vma``, a result varies only along the mesh axes its spec names.
Source: the documentation of jax.shard_map; the Shardy dialect, sdy.manual_computation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from saem.compile.collective_text import DeviceAxes
from saem.compile.lowering import lower_block
from saem.compile.operations import Region
from saem.compile.text import physical_aval, tensor_type
from saem.core import axes
from saem.core import jaxpr as jaxpr_module
from saem.core.avals import ShapedArray
from saem.core.axes import Axis, names_in_jaxpr
from saem.core.jaxpr import (
    ClosedJaxpr,
    Eqn,
    Literal,
    eval_jaxpr,
    merge,
    pick,
    split_list,
    with_nones,
)
from saem.core.placement_types import NO_SUMS, sums_of_spec
from saem.core.primitive import UndefinedPrimal, primitive
from saem.core.refs import AbstractRef
from saem.core.sharded import entries_of, plain, shard_along, with_spec
from saem.core.trace import beneath, bind, bind_list, state
from saem.core.varying import varying, vma_of
from saem.ops import arithmetic
from saem.ops.device_sums import PSum
from saem.ops.linear import broadcast_in_dim, number_like
from saem.ops.reshard import retyped
from saem.ops.shape import squeeze
from saem.placement.meshes import AxisType, Mesh
from saem.placement.partition_spec import PartitionSpec, axes_of
from saem.placement.shardings import NamedSharding, tiles, unreduced_text
from saem.transform.linearize import PartialTrace, backward_pass, partial_eval_jaxpr
from saem.transform.nested import Contents, HigherOrder, Nested
from saem.transform.staging import trace_flat
from saem.transform.vmap import batch_jaxpr, fronted, match_dim, vmap_flat

P = PartitionSpec


def spec_axes(spec: Any) -> frozenset:
    """Return the mesh axes that ``spec`` names."""
    return frozenset(name for entry in spec.partitions for name in axes_of(entry))


def dual_spec(spec: Any) -> Any:
    """Return the spec of the cotangent of a value that has ``spec``."""
    return spec.update(unreduced=spec.reduced, reduced=spec.unreduced)


def local_aval(aval: ShapedArray, spec: Any, mesh: Any, manual: frozenset, checked: bool
               ) -> ShapedArray:
    """Return the aval of one device's part of a value of ``aval``, sharded along ``manual`` axes.

    If it is ``checked`` what varies, the type says so.
    """
    if isinstance(aval, AbstractRef):
        return aval.update(inner_aval=local_aval(aval.inner_aval, spec, mesh, manual, checked))
    vma, sums = vma_of(aval), NO_SUMS
    if checked:
        vma, sums = vma | spec_axes(spec), sums_of_spec(spec)
    shape = tuple(n // k for n, k in zip(aval.shape, tiles(mesh, spec, len(aval.shape))))
    part = varying(ShapedArray(shape, aval.dtype, aval.weak_type), vma)
    if aval.explicit is None:
        return part.with_sums(sums)
    entries = [tuple(n for n in axes_of(e) if n not in manual) for e in entries_of(aval)]
    inside = NamedSharding(retyped(mesh.abstract_mesh, manual, AxisType.Manual), P(*entries))
    return shard_along(plain(part), inside, inside.spec.partitions, vma, sums)


def global_aval(aval: ShapedArray, spec: Any, mesh: Any) -> ShapedArray:
    """Return the aval of the whole value whose parts have ``aval``."""
    shape = tuple(n * k for n, k in zip(aval.shape, tiles(mesh, spec, len(aval.shape))))
    whole = ShapedArray(shape, aval.dtype, aval.weak_type)
    if not mesh.explicit_axes:
        return whole
    named = [*map(axes_of, spec.partitions), *[()] * (len(aval.shape) - len(spec))]
    entries = [(*outer, *axes_of(inner)) for outer, inner in zip(named, entries_of(aval))]
    return with_spec(whole, NamedSharding(mesh.abstract_mesh, spec.update(partitions=entries)))


@primitive("shard_map")
class ShardMap(HigherOrder):
    """Run ``jaxpr`` on every device of ``mesh``, each on its part of the operands."""

    jaxpr: ClosedJaxpr
    mesh: Any
    in_specs: tuple
    out_specs: tuple
    manual_axes: frozenset
    check_vma: bool

    multiple_results = True

    # -- what the rules share --

    renamed: ClassVar[dict[str, str]] = {"newly_manual_axes": "manual_axes"}

    @property
    def params(self):
        return {"mesh": self.mesh, "in_specs": self.in_specs, "out_specs": self.out_specs,
                "jaxpr": self.jaxpr, "check_vma": self.check_vma,
                "newly_manual_axes": self.manual_axes}

    def printed_params(self):
        names = ", ".join(repr(n) for n in self.mesh.axis_names if n in self.manual_axes)
        return dict(sorted({**self.params, "mesh": str(self.mesh),
                            "newly_manual_axes": f"frozenset({{{names}}})"}.items()))

    @property
    def effects(self):
        return self.jaxpr.effects

    @property
    def collective_axes(self):
        return names_in_jaxpr(self.jaxpr) - self.manual_axes

    @property
    def out_shardings(self) -> tuple:
        """Those of ``out_specs``, where they cover all axes of a mesh of devices."""
        if not isinstance(self.mesh, Mesh) or len(self.manual_axes) < len(self.mesh.axis_names):
            return ()
        return tuple(NamedSharding(self.mesh, spec) for spec in self.out_specs)

    @property
    def named(self) -> tuple:
        """The manual axes in the order of the mesh."""
        return tuple(n for n in self.mesh.axis_names if n in self.manual_axes)

    def inside(self) -> axes.bound:
        """Return the context in which the program inside is traced."""
        return axes.bound(*manual_axes_of(self.mesh, self.manual_axes, self.check_vma))

    def around(self, program: ClosedJaxpr, in_specs: Sequence[Any], out_specs: Sequence[Any]
               ) -> ShardMap:
        """Return this call of another program made from its own."""
        return ShardMap(program, self.mesh, tuple(in_specs), tuple(out_specs), self.manual_axes,
                        self.check_vma)

    def size(self, names: Any) -> int:
        return math.prod(self.mesh.shape[n] for n in names)

    @property
    def nested(self) -> Nested:
        return Nested((self.jaxpr,), axes=tuple(
            manual_axes_of(self.mesh, self.manual_axes, self.check_vma)))

    def rebuilt(self, nested, operands, results):
        """Of what is new, a scalar is one for all devices, an array has a row for each."""
        program = nested.programs[0]

        def spec(origin: Any, specs: tuple, aval: ShapedArray) -> Any:
            if isinstance(origin, Contents):
                return self.in_specs[origin.operand]
            return specs[origin] if origin is not None else P(self.named) if aval.shape else P()

        return self.around(
            program, [spec(i, self.in_specs, a) for i, a in zip(operands, program.in_avals)],
            [spec(i, self.out_specs, a) for i, a in zip(results, program.out_avals)])

    # -- the rules --

    def typing(self, *avals):
        # Inside another shard_map results vary along its axes as those of the program do.
        further: frozenset = frozenset().union(*[
            vma_of(a) - (vma_of(i) if self.check_vma else frozenset())
            for a, i in zip(avals, self.jaxpr.in_avals)])
        return [varying(global_aval(a, s, self.mesh), (vma_of(a) | further) - self.manual_axes)
                for a, s in zip(self.jaxpr.out_avals, self.out_specs)]

    def evaluate(self, *xs):
        """Run all devices at once on NumPy: the mesh axes become axes of a stack."""
        names = self.named
        sizes = [self.mesh.shape[n] for n in names]
        stacks = [split_blocks(x, spec, names, sizes) for x, spec in zip(xs, self.in_specs)]
        program = self.jaxpr.derived("on a stack", lambda: on_stack(self.jaxpr, names, sizes))
        outs = jaxpr_module.evaluate(program, *stacks)
        return [join_blocks(out, spec, names) for out, spec in zip(outs, self.out_specs)]

    def lower(self, ctx, *xs):
        return lower_manual(self, ctx, xs)

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> list[Any]:
        """Run on the known operands in the parent; what the rest needs comes out as residuals.

        A residual that is an operand is not carried through; others are sharded along all axes on
        which they may differ, a scalar as an array of one.
        """
        unknown = tuple(not trace.is_known(x) for x in args)
        with self.inside():
            known, rest, out_unknown, count = partial_eval_jaxpr(self.jaxpr, unknown)
            known, rest, kept = self.jaxpr.derived(
                ("residuals", unknown, self.check_vma),
                lambda: carry_residuals(known, rest, count))
        known_args = pick(args, unknown, False)
        known_in = pick(self.in_specs, unknown, False)
        known_out = pick(self.out_specs, out_unknown, False)
        avals = known.out_avals[len(known_out):]
        made_specs = [self.residual_spec(aval) for aval in avals]
        with beneath(trace) as parent:
            outs = parent.process(self.around(known, known_in, [*known_out, *made_specs]),
                                  tuple(known_args)) if known.jaxpr.outvars or known.effects else []
        made = iter(zip(outs[len(known_out):], made_specs))
        residuals = [next(made) if k is None else (known_args[k], known_in[k]) for k in kept]
        rest_in = [*(s for _, s in residuals), *pick(self.in_specs, unknown)]
        rest_out = pick(self.out_specs, out_unknown)
        recorded = trace.emit(self.around(rest, rest_in, rest_out), [
            *(x for x, _ in residuals), *pick(args, unknown)]) if any(out_unknown) else ()
        return merge(out_unknown, recorded, outs[:len(known_out)])

    def residual_spec(self, aval: ShapedArray) -> Any:
        """Return the spec by which a residual is put together: sharded along its first axis."""
        differs = vma_of(aval) if self.check_vma else self.manual_axes
        names = tuple(n for n in self.named if n in differs)
        unreduced, reduced = aval.sums
        return P(*([names] if names else []), unreduced=unreduced, reduced=reduced)

    def transpose(self, cts, *args):
        linear = tuple(isinstance(a, UndefinedPrimal) for a in args)
        has_ct = tuple(ct is not None for ct in cts)
        with self.inside():
            program, reached = self.transposed(linear, has_ct)
        known_specs = pick(self.in_specs, linear, False)
        linear_specs = [dual_spec(s) for s in pick(self.in_specs, linear)]
        ct_specs = [dual_spec(s) for s in pick(self.out_specs, has_ct)]
        call = self.around(program, [*known_specs, *ct_specs],
                           pick(linear_specs, reached))
        known = pick(args, linear, False)
        given = [self.shared(ct, spec) for ct, spec in zip(cts, self.out_specs) if ct is not None]
        outs = bind(call, *known, *given) if any(reached) else ()
        return with_nones(linear, with_nones(reached, outs))

    def shared(self, ct: Any, spec: Any) -> Any:
        """Return each device's share of a cotangent whose value all of them gave (unchecked)."""
        copies = self.size(self.manual_axes - spec_axes(spec) - spec.unreduced)
        if self.check_vma or copies == 1:
            return ct
        return arithmetic.div(ct, number_like(ct, copies))

    def transposed(self, linear: tuple, has_ct: tuple) -> tuple[ClosedJaxpr, list[bool]]:
        """Return the program run backwards, and which linear operands a cotangent reaches.

        Its inputs are the other operands, then the cotangents that there are.
        """
        jaxpr = self.jaxpr.jaxpr
        specs = tuple(s for s, lin in zip(self.in_specs, linear) if lin)

        def make():
            reached: list[bool] = []
            residuals = pick(jaxpr.invars, linear, False)

            def pull(*flat: Any) -> list[Any]:
                values, given = split_list(flat, len(residuals))
                known = dict(zip(residuals, values))
                waiting = run_known(jaxpr.eqns, known)
                opened = jaxpr.replace(
                    constvars=list(known), eqns=waiting,
                    invars=pick(jaxpr.invars, linear))
                got = backward_pass(opened, list(known.values()),
                                    with_nones(has_ct, given))
                reached[:] = [ct is not None for ct in got]
                return [self.summed(ct, s) for ct, s in zip(got, specs) if ct is not None]

            avals = [v.aval for v in residuals]
            avals += [v.aval.to_ct_aval() for v, has in zip(jaxpr.outvars, has_ct) if has]
            program = trace_flat(pull, avals, name="transpose", debug_name=jaxpr.debug_name)
            return program, reached

        return self.jaxpr.derived(("transpose", self.check_vma, linear, has_ct, specs), make)

    def summed(self, ct: Any, spec: Any) -> Any:
        """Return a cotangent summed over the devices that share its operand.

        Where it is tracked what varies, becoming varying has been transposed to that sum already.
        """
        if self.check_vma:
            return ct
        names = tuple(n for n in self.named if n not in spec_axes(spec) | spec.reduced)
        return bind(PSum(names), ct) if self.size(names) > 1 else ct

    def batch(self, size, xs, dims):
        axis = axes.batching()
        along = axes.batch_entry() if axis is None or axis.spmd is None else axis.spmd
        spread = () if along is None else axes.as_names(along)
        batched = tuple(d is not None for d in dims)
        with self.inside():
            if spread:
                program, out_batched = batch_spread(self, size, batched, spread, axis)
            else:
                program, out_batched = batch_inside(self, size, batched, axis)
        entry = spread if spread else None
        outs = bind(self.around(
            program, [fronted_spec(s, entry) if b else s for s, b in zip(self.in_specs, batched)],
            [fronted_spec(s, entry) if b else s for s, b in zip(self.out_specs, out_batched)]),
            *fronted(xs, dims))
        return outs, [0 if b else None for b in out_batched]


def fronted_spec(spec: Any, entry: Any) -> Any:
    """Return the spec of a stack, sharded along ``entry``, of values that have ``spec``."""
    return spec.update(partitions=(entry, *spec.partitions))


def manual_axes_of(mesh: Any, names: Any, checked: bool) -> list[Axis]:
    """Return the axes ``names`` of ``mesh`` as the environment of a program on its devices."""
    return [Axis(n, size, mesh=mesh, checked=checked)
            for n, size in mesh.shape.items() if n in names]


# -- residuals -------------------------------------------------------------------------------------


def carry_residuals(known: ClosedJaxpr, rest: ClosedJaxpr, count: int
                    ) -> tuple[ClosedJaxpr, ClosedJaxpr, list[int | None]]:
    """Return both programs so that residuals can be sharded along their first axis.

    ``kept`` has for each residual the known input that it is, None if it is computed.
    """
    jaxpr = known.jaxpr
    split = len(jaxpr.outvars) - count
    inputs = {v: i for i, v in enumerate(jaxpr.invars)}
    residuals = jaxpr.outvars[split:]
    kept = [None if isinstance(v, Literal) else inputs.get(v) for v in residuals]
    carried = [k is None and not v.aval.shape for k, v in zip(kept, residuals)]

    def first(*args: Any) -> list[Any]:
        outs = eval_jaxpr(jaxpr, known.consts, *args)
        made = [broadcast_in_dim(x, (1,), ()) if c else x
                for x, c, k in zip(outs[split:], carried, kept) if k is None]
        return [*outs[:split], *made]

    def second(*args: Any) -> list[Any]:
        given = [squeeze(x, (0,)) if c else x for x, c in zip(args, carried)]
        return eval_jaxpr(rest.jaxpr, rest.consts, *given, *args[count:])

    avals = [aval.update(shape=(1,)) if c else aval
             for aval, c in zip(rest.in_avals, carried)] + rest.in_avals[count:]
    return (trace_flat(first, known.in_avals, name="partial_eval", debug_name=jaxpr.debug_name),
            trace_flat(second, avals, name="partial_eval", debug_name=jaxpr.debug_name), kept)


def run_known(eqns: Sequence[Eqn], known: dict[Any, Any]) -> list[Eqn]:
    """Run the equations that need only values in ``known``, which grows; returns the others."""
    waiting = []
    for eqn in eqns:
        if all(isinstance(a, Literal) or a in known for a in eqn.invars):
            values = [a.val if isinstance(a, Literal) else known[a] for a in eqn.invars]
            known.update(zip(eqn.outvars, bind_list(eqn.operation, values)))
        else:
            waiting.append(eqn)
    return waiting


# -- stacks ----------------------------------------------------------------------------------------


def batch_inside(call: ShardMap, size: int, batched: tuple[bool, ...], axis: Axis | None
                 ) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program on stacks, of which every device holds all examples."""
    # ``inside`` forgot the axis being batched; the program may speak of it.
    axes.state.batching = None if axis is None else (axis, state.trace)
    return batch_jaxpr(call.jaxpr, size, batched)


def batch_spread(call: ShardMap, size: int, batched: tuple[bool, ...], names: tuple, axis: Axis
                 ) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program on stacks whose examples are spread over the mesh axes ``names``."""
    copies = call.size(names)
    if size % copies:
        raise ValueError(
            f"vmap with spmd_axis_name={names} spreads {size} examples over {copies} devices, "
            "which does not divide evenly. Pad the mapped axis.")
    here = Axis(axis.name, size // copies)
    more = frozenset(names) if call.check_vma else frozenset()
    closed = call.jaxpr
    out_batched: list[bool] = []

    def mapped(*xs: Any) -> list[Any]:
        outs, dims = vmap_flat(
            lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args), here.size, xs,
            [0 if b else None for b in batched], here if here.name is not None else None)
        out_batched[:] = [d is not None for d in dims]
        return [x if d is None else match_dim(x, d, 0, here.size) for x, d in zip(outs, dims)]

    avals = [varying(a.update(shape=(here.size, *a.shape)), vma_of(a) | more) if b else a
             for a, b in zip(closed.in_avals, batched)]
    program = trace_flat(mapped, avals, name="vmap", debug_name=closed.jaxpr.debug_name)
    return program, out_batched


def on_stack(closed: ClosedJaxpr, names: Sequence[Any], sizes: Sequence[int]) -> ClosedJaxpr:
    """Return the program of all devices at once: one leading axis of a stack for each name."""

    def plain(*args: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    fun = plain
    for name, size in zip(reversed(names), reversed(sizes)):
        def fun(*args: Any, inner=fun, axis=Axis(name, size)) -> list[Any]:
            outs, dims = vmap_flat(inner, axis.size, args, [0] * len(args), axis)
            return [match_dim(x, d, 0, axis.size) for x, d in zip(outs, dims)]

    avals = [ShapedArray((*sizes, *a.shape), a.dtype, a.weak_type) for a in closed.in_avals]
    with axes.bound(only=True):
        return trace_flat(fun, avals, name="shard_map")


def split_blocks(x: np.ndarray, spec: Any, names: Sequence[Any], sizes: Sequence[int]
                 ) -> np.ndarray:
    """Return the parts of ``x`` by coordinates of the mesh: shape (*sizes, *shape of a part).

    Along unreduced axes the first device holds the sum, and the others zeros.
    """
    entries = [axes_of(e) for e in spec.partitions] + [()] * (x.ndim - len(spec))
    size_of = dict(zip(names, sizes))
    split: list[int] = []
    at: dict[Any, int] = {}
    kept = []
    for n, entry in zip(x.shape, entries):
        for name in entry:
            at[name] = len(split)
            split.append(size_of[name])
        kept.append(len(split))
        split.append(n // math.prod(size_of[name] for name in entry))
    blocks = x.reshape(split).transpose([*(at[n] for n in names if n in at), *kept])
    lead = [size_of[n] if n in at else 1 for n in names]
    blocks = blocks.reshape(*lead, *(split[i] for i in kept))
    whole = np.broadcast_to(blocks, (*sizes, *blocks.shape[len(names):]))
    if spec.unreduced:
        whole = whole.copy()
        for axis, name in enumerate(names):
            if name in spec.unreduced:
                whole[(slice(None),) * axis + (slice(1, None),)] = 0
    return whole


def join_blocks(blocks: np.ndarray, spec: Any, names: Sequence[Any]) -> np.ndarray:
    """Return the whole of which ``split_blocks`` made ``blocks``."""
    mentioned = spec_axes(spec)
    waiting = tuple(axis for axis, n in enumerate(names) if n in spec.unreduced)
    blocks = blocks.sum(waiting, dtype=blocks.dtype, keepdims=True)
    blocks = blocks[tuple(slice(None) if n in mentioned else 0 for n in names)]
    left = [n for n in names if n in mentioned]
    rank = blocks.ndim - len(left)
    order: list[int] = []
    shape = []
    for i, entry in enumerate([*map(axes_of, spec.partitions), *[()] * (rank - len(spec))]):
        group = [*(left.index(n) for n in entry), len(left) + i]
        order += group
        shape.append(math.prod(blocks.shape[k] for k in group))
    return blocks.transpose(order).reshape(shape)


# -- text ------------------------------------------------------------------------------------------


def lower_manual(call: ShardMap, ctx: Any, xs: Sequence[str]) -> list[str]:
    """Write ``call`` as sdy.manual_computation."""
    module = ctx.module
    symbol = module.mesh(call.mesh)
    outer = module.device_axes
    manual = call.manual_axes | (outer.manual if outer is not None else frozenset())
    out_avals = call.typing()
    module.device_axes = DeviceAxes(dict(call.mesh.shape), manual, symbol.lstrip("@"),
                                    not out_avals)
    if call.mesh.size == 1:  # the one device has all: nothing is sharded
        try:
            return lower_block(ctx, call.jaxpr, xs)
        finally:
            module.device_axes = outer
    try:
        passed = passed_through(call)
        region, inside = region_apart(ctx, call.jaxpr, passed)
    finally:
        module.device_axes = outer
    names = ", ".join(f'"{n}"' for n in call.named)
    specs = [*call.in_specs, *(P() for _ in inside)]
    xs = [*xs, *(ctx.hoist(value, aval) for value, aval in inside)]
    opened = len(manual) < len(call.mesh.axis_names)
    ins = ", ".join(sharding_text(symbol, call.mesh, s, ctx.avals[x], opened)
                    for s, x in zip(specs, xs))
    results = [*out_avals, *(ctx.avals[xs[i]] for i in passed)]
    out_specs = [*call.out_specs, *(call.in_specs[i] for i in passed)]
    outs = ", ".join(sharding_text(symbol, call.mesh, s, a, opened)
                     for s, a in zip(out_specs, results))
    return ctx.emit_many(
        f"sdy.manual_computation({', '.join(xs)}) in_shardings=[{ins}] out_shardings=[{outs}] "
        f"manual_axes={{{names}}}", *xs, outs=results, regions=[region])[:len(out_avals)]


def passed_through(call: ShardMap) -> list[int]:
    """Return which arguments are written as results too, of which no use is made.

    They hold addends along axes along which no result does.  Shardy's verifier (jaxlib 0.11 and
    later) knows nothing of the sums that the program makes of them, and refuses that they end.
    """
    open_axes = {n for spec in call.out_specs for n in spec.unreduced}
    return [i for i, spec in enumerate(call.in_specs) if not spec.unreduced <= open_axes]


def region_apart(ctx: Any, program: ClosedJaxpr, passed: Sequence[int]
                 ) -> tuple[Region, list[tuple[Any, ShapedArray]]]:
    """Return a region of ``program``, and the array constants (value, aval) inside it.

    A region of Shardy can use no value from outside, so these become its last arguments.  The
    arguments ``passed`` are its last results.
    """
    saved = ctx.hoisted, ctx.hoisted_name
    ctx.hoisted, ctx.hoisted_name = {}, f"%k{ctx.count}_"
    try:
        region = ctx.region(program.in_avals,
                            lambda *names: [*lower_block(ctx, program, names),
                                            *(names[i] for i in passed)], shardy=True)
        inside = list(ctx.hoisted.values())
    finally:
        ctx.hoisted, ctx.hoisted_name = saved
    region.arguments += [(name, tensor_type(aval)) for name, _, aval in inside]
    return region, [(value, aval) for _, value, aval in inside]


def sharding_text(symbol: str, mesh: Any, spec: Any, aval: ShapedArray, opened: bool) -> str:
    """Return ``<@mesh, [{"x"}, {}]>``; with ``opened`` XLA may shard each axis further."""
    rank = len(physical_aval(aval).shape)
    dims = []
    for entry in [*spec.partitions, *[None] * (rank - len(spec))]:
        named = [f'"{n}"' for n in axes_of(entry)] + (["?"] if opened else [])
        dims.append(f"{{{', '.join(named)}}}")
    return f"<{symbol}, [{', '.join(dims)}]{unreduced_text(mesh, spec)}>"


__all__ = ["ShardMap", "global_aval", "local_aval", "manual_axes_of", "spec_axes"]

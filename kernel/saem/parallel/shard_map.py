"""How is a program written for each device, with its part of the arrays?

``shard_map(f, mesh=…, in_specs=…, out_specs=…)`` calls ``f`` on one device's part of every
argument; collectives over the mesh axes are how parts meet.  With ``check_vma`` the engine knows
along which axes each value differs, so it finds where an ``out_specs`` promises too much, and it
differentiates without needless sums.

Read before: ``parallel.shard_map_call``.  Read after: ``parallel.pmap``.
Invariant: what the specs do not promise is checked before anything runs.
Source: the documentation of jax.shard_map.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from saem.core import axes, errors, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import bound
from saem.core.frames import boundary
from saem.core.placement_types import sums_of_spec
from saem.core.trace import bind
from saem.core.varying import vma_of
from saem.ops.device_sums import PVary, VaryUnreducedCast
from saem.ops.reshard import retyped, under
from saem.parallel.shard_map_call import ShardMap, local_aval, manual_axes_of, spec_axes
from saem.placement.meshes import AbstractMesh, AxisType, Mesh, concrete_mesh, get_abstract_mesh
from saem.placement.partition_spec import PartitionSpec, axes_of
from saem.placement.shardings import NamedSharding, check_spec
from saem.transform.derivatives import as_array
from saem.transform.restructure import open_consts
from saem.transform.staging import trace_flat

P = PartitionSpec


class _Infer:
    """``Infer``: take the specs from the arguments' shardings."""

    def __repr__(self) -> str:
        return "Infer"


Infer = _Infer()


def shard_map(f: Any = None, /, *, out_specs: Any, in_specs: Any = Infer, mesh: Any = None,
              axis_names: Any = frozenset(), check_vma: bool = True) -> Any:
    """Return ``f``, a function of parts, as a function of whole arrays over ``mesh``.

    ``axis_names`` are the mesh axes along which ``f`` works by hand (all, if empty); along the
    others XLA partitions it.  Without ``f``, returns a decorator.

    Raises: ValueError or TypeError when called, if a spec fits neither its value nor the mesh.

    >>> mesh, spec = jax.make_mesh((1,), ("i",)), jax.P("i")
    >>> x = jax.device_put(jnp.arange(3.), jax.NamedSharding(mesh, spec))
    >>> jax.shard_map(lambda part: part * 2, mesh=mesh, in_specs=spec, out_specs=spec)(x)
    Array([0., 2., 4.], dtype=float32)
    """
    if f is None:
        return lambda g: shard_map(g, out_specs=out_specs, in_specs=in_specs, mesh=mesh,
                                   axis_names=axis_names, check_vma=check_vma)
    if not isinstance(axis_names, (set, frozenset)):
        raise TypeError("`axis_names` argument of shard_map should be of type `frozenset` or `set`."
                        f" Got type: {type(axis_names)}")
    if not callable(f):
        raise TypeError(f"shard_map requires a callable for its first argument, but got {f!r} of "
                        f"type {type(f)}.")

    @functools.wraps(f)
    @boundary
    def shard_map_f(*args: Any, **kwargs: Any) -> Any:
        site = Site(f, mesh, axis_names, check_vma)
        if kwargs:
            raise TypeError("shard_map functions take positional arguments only, got "
                            f"{', '.join(kwargs)} by keyword.")
        leaves, in_tree = tree.flatten(args)
        leaves = [as_array(x) for x in leaves]
        specs = site.in_specs(in_specs, args, leaves)
        if not callable(out_specs):
            check_are_specs("out_specs", out_specs)
            site.check_specs("out_specs", tree.leaves(out_specs, is_leaf=is_spec))
        for x, spec in zip(leaves, specs):
            site.check_explicit(spec, aval_of(x))
        return site.call(in_tree, leaves, specs, out_specs)

    return shard_map_f


class Site:
    """One call of a shard-mapped function: its mesh, and names for errors about specs."""

    def __init__(self, f: Callable, mesh: Any, names: Any, check: bool):
        self.f = f
        self.name = getattr(f, "__name__", str(f))
        if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError("shard_map requires a `jax.sharding.Mesh` or a "
                            "`jax.sharding.AbstractMesh` instance for its second argument, but "
                            f"got {mesh} of type {type(mesh)}.")
        self.mesh = mesh if mesh is not None else mesh_here()
        self.check = check
        outer = {a.name for a in axes.state.env if a.mesh is not None}
        here = get_abstract_mesh()
        if mesh is not None and not here.empty and here != mesh.abstract_mesh:
            raise errors.explained(
                errors.ArgumentError, "shard_map.nested",
                f"The context mesh {here} should match the mesh passed to shard_map {mesh}",
                advice="Leave the mesh out: that in force is used. Of two make one with the axes "
                "of both, and name with axis_names those along which each works.")
        names = frozenset(names)
        everything = frozenset(self.mesh.axis_names)
        if not names <= everything:
            raise errors.explained(
                errors.ArgumentError, "shard_map.axis_names",
                f"jax.shard_map requires axis_names={names} to be a subset of "
                f"mesh.axis_names={everything}", advice="Name axes of the mesh.")
        self.manual = names or everything - outer
        self.sizes = self.mesh.shape

    # -- specs --

    def in_specs(self, given: Any, args: tuple, leaves: Sequence[Any]) -> list[Any]:
        """Return one spec for each leaf of ``args``, checked against it."""
        if given is Infer:
            specs = [inferred(x, self.manual, self.mesh) for x in leaves]
        else:
            given = tuple(given) if isinstance(given, list) else given
            specs = self.broadcast("in_specs", given, args)
        paths = [tree.keystr(path) for path, _ in tree.flatten_with_path(args)[0]]
        self.check_arguments(specs, leaves, paths)
        return specs

    def check_arguments(self, specs: Sequence[Any], leaves: Sequence[Any], paths: Sequence[str]
                        ) -> None:
        """Refuse specs that do not fit the arguments."""
        self.check_specs("in_specs", specs)
        for spec, x, path in zip(specs, leaves, paths):
            aval = aval_of(x)
            self.check_rank("in_specs", spec, aval, f"the passed args{path}", "input")
            self.check_division(spec, aval, path)

    def check_explicit(self, spec: Any, aval: ShapedArray) -> None:
        """Refuse a spec other than that by which types shard an argument, if all axes are typed."""
        everything = len(self.manual) == len(self.mesh.axis_names)
        if not everything and aval.sums != sums_of_spec(spec):
            raise errors.explained(
                errors.ArgumentError, "shard_map.unreduced",
                f"in_specs containing unreduced {spec} passed to shard_map should be equal to the "
                f"unreduced present on the in_aval {aval.str_short(True)}",
                advice="Reshard the argument first: jax.reshard(x, P(...)).")
        if not (everything and self.mesh.are_all_axes_explicit):
            return  # the partitioner may reshard
        have = aval.sharding.spec
        own = have.update(partitions=[
            tuple(n for n in axes_of(e) if n in self.manual) for e in have.partitions])
        given = spec._normalized_spec_for_aval(len(own))
        if own != given:
            raise errors.explained(
                errors.ArgumentError, "shard_map.explicit",
                f"in_specs passed to shard_map: {given} does not match the specs of the input: "
                f"{have} for arg: {aval.str_short()}. "
                "`in_specs` is "
                "an optional argument so you can omit specifying it and shard_map will infer the "
                "in_specs from the arguments. If you want to reshard your inputs, you can use "
                "`jax.reshard` on the arguments and then pass those args to shard_map.",
                advice="Leave in_specs out, or reshard the argument first.")

    def broadcast(self, what: str, given: Any, value: Any) -> list[Any]:
        """Return one spec for each leaf of ``value`` from the prefix pytree ``given``."""
        check_are_specs(what, given)
        try:
            found = tree.broadcast_prefix(given, value, is_leaf=is_spec,
                                          name=f"shard_map {what}")
        except ValueError as error:
            raise errors.explained(
                errors.ArgumentError, f"shard_map.{what}",
                f"shard_map {what} must be a prefix of the value it describes.\n{error}",
                advice=f"Give one spec, or a pytree of them as the "
                f"{'arguments' if what == 'in_specs' else 'results'} are.") from None
        return [P() if s is None else s for s in found]

    def check_specs(self, what: str, specs: Sequence[Any]) -> None:
        """Refuse a spec that names an axis which is not manual, or one twice."""
        for spec in (s for s in specs if s is not None):
            for name in sorted(spec_axes(spec) - self.manual, key=str):
                raise errors.explained(
                    errors.ArgumentError, f"shard_map.{what}",
                    f"shard_map {what} argument must refer to an axis marked as manual "
                    f"({frozenset(self.manual)}), but:\n\n  {what} refers to {name!r}",
                    advice=f"Check the {what} values passed to shard_map.")
            if sums_of_spec(spec).any:
                self.check_sums(what, spec)
            check_spec(self.mesh, spec)

    def check_sums(self, what: str, spec: Any) -> None:
        """Refuse a spec with axes of sums where types outside do not name all of them."""
        kind = "unreduced" if spec.unreduced else "reduced"
        if not self.mesh.are_all_axes_explicit:
            raise errors.explained(
                errors.ArgumentError, f"shard_map.{what}",
                f"{kind} in {what} {spec} can only be used when the mesh passed to shard_map "
                f"contains axis names all of type `Explicit`. Got mesh {self.mesh}",
                advice="Make the mesh with axis_types=(AxisType.Explicit, ...).")
        if self.manual != frozenset(self.mesh.axis_names):
            raise errors.explained(
                NotImplementedError, f"shard_map.{what}",
                f"unreduced/reduced can only be passed to {what} when shard_map is in full manual "
                f"mode. Got mesh axis names {self.mesh.axis_names}, manual_axes: {self.manual}, "
                f"specs: {spec}.", advice="Leave axis_names out.")

    def check_rank(self, what: str, spec: Any, aval: ShapedArray, which: str, kind: str) -> None:
        if len(spec) <= len(aval.shape):
            return
        more = "" if aval.shape or kind == "input" else (
            "\nFor scalar values (rank 0), consider using an out_specs entry of `P()`; if it "
            "differs between devices, add a singleton axis so that they can be concatenated.")
        raise errors.explained(
            errors.ArgumentError, f"shard_map.{what}",
            f"shard_map applied to the function '{self.name}' was given an {what} entry which is "
            f"too long to be compatible with the corresponding {kind} value from the function:\n\n"
            f"{what} is {spec} which has length {len(spec)}, but {which} has shape "
            f"{aval.str_short()}, which has rank {len(aval.shape)} (and "
            f"{len(aval.shape)} < {len(spec)})",
            advice=f"Revise the spec to be shorter, or give the {kind} more axes.{more}")

    def check_division(self, spec: Any, aval: ShapedArray, path: str) -> None:
        for number, entry in enumerate(spec.partitions):
            parts = math.prod(self.sizes[n] for n in axes_of(entry))
            if aval.shape[number] % parts:
                names = ", ".join(repr(n) for n in axes_of(entry))
                raise errors.explained(
                    errors.ArgumentError, "shard_map.division",
                    f"shard_map applied to the function '{self.name}' was given argument arrays "
                    "with axis sizes that are not evenly divisible by the corresponding mesh axis "
                    f"sizes:\n\nThe mesh given has shape {tuple(self.sizes.values())} with "
                    f"corresponding axis names {tuple(self.sizes)}.\n\nthe passed args{path} of "
                    f"shape {aval.str_short()} corresponds to in_specs of value "
                    f"{spec}, which maps array axis {number} (of size {aval.shape[number]}) to "
                    f"mesh axis {names} (of size {parts}), but {parts} does not evenly divide "
                    f"{aval.shape[number]}",
                    advice="Check the in_specs, change the mesh, or pad the argument.")

    def check_variation(self, spec: Any, aval: ShapedArray, path: str) -> None:
        """Refuse to put together a result from parts that may differ where the spec has no axis."""
        if not aval.sums.reduced.issuperset(spec.reduced):
            raise errors.explained(
                errors.ArgumentError, "shard_map.reduced",
                "out_specs passed to shard_map should be equal to the reduced present on the "
                f"out_aval. Got out_specs={spec} and out_aval={aval.str_short(True)}",
                advice="lax.pcast(x, axes, to='reduced') makes it reduced.")
        unreduced, reduced = aval.sums
        extra = (vma_of(aval) | unreduced | reduced) & self.manual
        extra -= spec_axes(spec) | spec.unreduced | spec.reduced
        if not extra:
            return
        show = lambda names: "{" + ",".join(sorted(map(str, names))) + "}"
        raise errors.explained(
            errors.ArgumentError, "shard_map.vma",
            f"shard_map applied to the function '{self.name}' was given out_specs which require "
            "replication which can't be statically inferred given the mesh:\n\nThe mesh given has "
            f"shape {tuple(self.sizes.values())} with corresponding axis names "
            f"{tuple(self.sizes)}.\n\nout_specs{path} is {spec} which implies that the "
            "corresponding output value is only varying across mesh axes "
            f"{show(spec_axes(spec))} and not {show(extra)}, but it was inferred to be possibly "
            f"varying over {show(vma_of(aval))}",
            advice="Sum or gather the value over those axes, name them in out_specs, or disable "
            "the check by passing the check_vma=False argument to `jax.shard_map`.")

    # -- the call --

    def call(self, in_tree: Any, leaves: Sequence[Any], specs: list[Any], out_given: Any) -> Any:
        """Trace ``f`` on parts and bind the equation."""
        found: list[Any] = []

        def flat(*parts: Any) -> list[Any]:
            result = self.f(*in_tree.unflatten(parts))
            outs, out_tree = tree.flatten(result)
            outs = [as_array(x) for x in outs]
            outs_specs = out_given(result) if callable(out_given) \
                else self.broadcast("out_specs", out_given, result)
            self.check_specs("out_specs", outs_specs)
            paths = [tree.keystr(path) for path, _ in tree.flatten_with_path(result)[0]]
            for spec, x, path in zip(outs_specs, outs, paths):
                aval = aval_of(x)
                self.check_rank("out_specs", spec, aval, f"{self.name}(*args){path}", "output")
                if self.check:
                    self.check_variation(spec, aval, path)
            found[:] = [out_tree, outs_specs]
            return [self.vary(x, spec) for x, spec in zip(outs, outs_specs)]

        avals = []
        for x, spec in zip(leaves, specs):
            aval = aval_of(x)
            avals.append(local_aval(aval, spec, self.mesh, self.manual, self.check))
        done = frozenset(a.name for a in axes.state.env if a.mesh is not None) | self.manual
        inside = retyped(self.mesh.abstract_mesh, done, AxisType.Manual)
        with bound(*manual_axes_of(self.mesh, self.manual, self.check)), under(inside):
            closed = trace_flat(flat, avals, name="shard_map", debug_name=self.name)
        program, consts = open_consts(closed)
        call = ShardMap(program, self.mesh, (*(P() for _ in consts), *specs), tuple(found[1]),
                        self.manual, self.check)
        return found[0].unflatten(bind(call, *consts, *leaves))

    def vary(self, x: Any, spec: Any) -> Any:
        """Return a result as one that varies along the axes its spec names."""
        if not self.check:
            return x
        aval = aval_of(x)
        for cast, missing in ((PVary, spec_axes(spec) - vma_of(aval)),
                              (VaryUnreducedCast, spec.unreduced - aval.sums.unreduced)):
            names = tuple(n for n in self.mesh.axis_names if n in missing)
            x = bind(cast(names), x) if names else x
        return x


def check_are_specs(what: str, given: Any) -> None:
    """Refuse other leaves than specs.

    Raises: TypeError naming the first.
    """
    wrong = [s for s in tree.leaves(given, is_leaf=is_spec) if not is_spec(s)]
    if wrong:
        raise errors.explained(
            errors.ArgumentTypeError, f"shard_map.{what}",
            f"shard_map {what} argument must be a pytree of `jax.sharding.PartitionSpec` "
            f"instances, but:\n\n  {what} is {wrong[0]} of type {type(wrong[0]).__name__}",
            advice=f"Check the {what} values passed to shard_map: write P('x').")


def is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def inferred(x: Any, manual: frozenset, mesh: Any) -> Any:
    """Return the spec by which types shard an argument, or that of a concrete one's own sharding.

    Raises: ValueError if it has none.
    """
    aval = aval_of(x)
    if aval.explicit is not None:
        spec = aval.sharding.spec
        return spec.update(partitions=[
            tuple(n for n in axes_of(e) if n in manual) for e in spec.partitions])
    sharding = getattr(x, "_sharding", None)
    if isinstance(sharding, NamedSharding):
        return sharding.spec
    if mesh.are_all_axes_explicit:  # types name no axis: it is replicated
        return P(*(None,) * len(aval.shape))
    raise errors.explained(
        errors.ArgumentError, "shard_map.infer",
        "shard_map was given no in_specs, and cannot infer them from an argument without a "
        f"NamedSharding: {aval_of(x).str_short(True)}.", advice="Pass in_specs=, one P for each.")


def mesh_here() -> Any:
    """Return the mesh in force: that of the enclosing shard_map, or the one that was set.

    Raises: ValueError if there is none.
    """
    for axis in reversed(axes.state.env):
        if axis.mesh is not None:
            return axis.mesh
    mesh = concrete_mesh()
    if mesh is None or mesh.empty:
        raise errors.explained(
            errors.ArgumentError, "shard_map.mesh",
            "The context mesh cannot be empty. Either use `jax.set_mesh(mesh)` or pass the `mesh` "
            "argument to `jax.shard_map`.", advice="For example mesh=jax.make_mesh((8,), ('x',)).")
    return mesh.abstract_mesh


def smap(f: Any = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any) -> Any:
    """Return ``f`` mapped by hand over the one mesh axis ``axis_name``, as ``vmap`` maps.

    ``in_axes`` and ``out_axes`` name the axis of each value that it shards; None replicates it.
    """
    if f is None:
        return lambda g: smap(g, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def specs(given: Any) -> Any:
        return tree.map_(lambda a: P() if a is None else P(*[None] * a, axis_name), given,
                         is_leaf=lambda a: a is None)

    return shard_map(f, in_specs=in_axes if in_axes is Infer else specs(in_axes),
                     out_specs=specs(out_axes), axis_names={axis_name})


__all__ = ["Infer", "shard_map", "smap"]

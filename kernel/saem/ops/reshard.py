"""How is a value resharded, as the program says?

``reshard`` is the one operation that moves data between devices because the types ask for it.  In a
stretch of program where the partitioner decides (``auto_axes``) it is the way in and out.

Read before: ``core.sharded``, ``placement.shardings``.  Read after: ``ops.constraints``.
Invariant: it is the identity on numbers; its transpose shards a cotangent as the operand was.
Source: the documentation of jax.sharding.reshard; the Shardy dialect, sdy.sharding_constraint.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from saem.compile import dispatch, lowering
from saem.compile.device_assignment import hold
from saem.core import axes, dtypes, errors, sharded, tree
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_functions, aval_of
from saem.core.infer import infer
from saem.core.placement_types import Sums, names_of
from saem.core.primitive import primitive
from saem.core.sharded import entries_of, like_type, same_sharding, with_entry
from saem.core.trace import bind
from saem.ops import sum_rules
from saem.ops.linear import Linear
from saem.placement.meshes import AbstractMesh, AxisType, Mesh, get_abstract_mesh, mesh_context
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import (
    NamedSharding,
    holds_addends,
    named_sharding,
    requested_sharding,
)


@primitive("reshard")
class Reshard(Linear):
    """The identity, on a value sharded as ``sharding`` says; ``back`` says how its operand is
    sharded.
    """

    sharding: Any
    back: Any

    joint_jvp = False

    requested_sharding = property(operator.attrgetter("sharding"))

    def printed_params(self):
        return {}

    @property
    def mesh(self) -> Any:
        return self.sharding.mesh

    def eager(self, x):
        infer(self, [aval_of(x)])  # refuses what does not fit, as in a program
        return placed(x, self.sharding)

    def shard_results(self, case: sharded.Case) -> Any:
        given = self.sharding.spec.partitions
        return (*given, *(None,) * (len(case.outs[0].shape) - len(given)))

    sum_results = sum_rules.wanted

    def typing(self, x):
        return x

    def evaluate(self, x):
        return x

    def lower(self, ctx, x):
        x = lowering.whole(ctx, x, self.sharding, ctx.in_avals[0])
        return lowering.constrained(ctx, x, self.sharding)

    def transpose(self, ct, x):
        return [bind(Reshard(dual(self.back), dual(self.sharding)), ct)]

    def batch(self, size, xs, dims):
        (x,), (dim,) = xs, dims
        entry = axes.batch_entry()
        made = Reshard(with_entry(self.sharding, dim, entry), with_entry(self.back, dim, entry))
        return bind(made, x), dim


def dual(sharding: Any) -> Any:
    """Return the sharding of the cotangent of a value that has ``sharding``."""
    spec = sharding.spec
    if not spec.unreduced and not spec.reduced:
        return sharding
    return sharding.update(spec=spec.update(unreduced=spec.reduced, reduced=spec.unreduced))


def _struct_aval(struct: ShapeDtypeStruct) -> ShapedArray:
    """Return the aval of a struct, sharded as its sharding says."""
    aval = struct._aval.update(dtype=dtypes.canonicalize(struct.dtype))
    given = struct.sharding
    if isinstance(given, PartitionSpec) and get_abstract_mesh().empty:
        return aval
    explicit = named_sharding(given, len(aval.shape))
    return aval if explicit is None else aval.update(sharding=explicit)


aval_functions[ShapeDtypeStruct] = _struct_aval


def reshard_to(x: Any, sharding: Any) -> Any:
    """Return ``x`` sharded as the NamedSharding ``sharding`` says."""
    aval = aval_of(x)
    full = with_rank(sharding, len(aval.shape))
    mesh = aval.explicit.mesh if aval.explicit is not None else here(full.mesh)
    return bind(Reshard(full, NamedSharding(mesh, aval.sharding.spec)), x)


def reduced_like(avals: Sequence[ShapedArray]) -> Any:
    """Return the sharding of numbers beside operands of ``avals`` that types call reduced.

    None if none of them is.
    """
    like = next((a.explicit for a in avals if a.sums.reduced), None)
    return None if like is None else sharded.entries_on(like, (), Sums(reduced=like.spec.reduced))


def is_open_number(aval: ShapedArray) -> bool:
    """Return whether a value of ``aval`` is a number that becomes reduced as what it meets."""
    return not aval.shape and not aval.sums.any


def here(mesh: Any) -> Any:
    """Return the mesh in force, without devices; that of ``mesh`` if there is none."""
    found = get_abstract_mesh()
    return mesh.abstract_mesh if found.empty else found


def with_rank(sharding: Any, ndim: int) -> Any:
    """Return ``sharding`` with one entry for each of ``ndim`` axes."""
    if len(sharding.spec) == ndim:
        return sharding
    rest = (None,) * (ndim - len(sharding.spec))
    spec = sharding.spec
    return NamedSharding(sharding.mesh, spec.update(partitions=(*spec.partitions, *rest)))


def placed(x: Any, sharding: Any) -> Any:
    """Return the array ``x`` moved as ``sharding`` says, outside any program.

    Along axes left to the partitioner it stays sharded as it is.
    """
    held = hold(x)
    have = getattr(held, "_sharding", None)
    mesh = sharding.mesh
    if not isinstance(mesh, Mesh):
        concrete = next((m for m in (getattr(have, "mesh", None), mesh_context.value)
                         if isinstance(m, Mesh) and m.shape_tuple == mesh.shape_tuple), None)
        if concrete is None:
            raise errors.explained(
                errors.ArgumentError, "sharding.C5",
                f"reshard to {sharding} needs devices, but no mesh with devices is in force.",
                advice="Put the program under jax.set_mesh(mesh), or give a NamedSharding of a "
                "mesh with devices.")
        mesh = concrete if concrete.axis_types == mesh.axis_types else Mesh(
            concrete.devices, concrete.axis_names, mesh.axis_types)
    kept = have.spec.partitions if isinstance(have, NamedSharding) else ()
    free = {n for n, kind in zip(mesh.axis_names, mesh.axis_types) if kind is AxisType.Auto}
    wanted = sharding.spec
    spec = wanted.update(partitions=merged(wanted.partitions, kept, free))
    target = NamedSharding(mesh, spec)
    if holds_addends(target) and have is None:  # a number from the host is whole at first
        held = dispatch.put_spread(x, NamedSharding(mesh, PartitionSpec()))
    return dispatch.present(dispatch.put_spread(held, target), x)


def merged(wanted: Sequence[Any], kept: Sequence[Any], free: set) -> list[Any]:
    """Return ``wanted`` entries, and of ``kept`` ones the mesh axes that are ``free``."""
    used = {n for entry in wanted for n in names_of(entry)}
    length = max(len(wanted), len(kept))
    pad = lambda entries: (*entries, *(None,) * (length - len(entries)))
    return [(*names_of(w), *(n for n in names_of(k) if n in free and n not in used)) or None
            for w, k in zip(pad(wanted), pad(kept))]


# -- where the partitioner decides -----------------------------------------------------------------


@functools.lru_cache(256)
def retyped(mesh: Any, names: frozenset, kind: AxisType) -> Any:
    """Return ``mesh`` with axes ``names`` of another type."""
    types = tuple(kind if n in names else t for n, t in zip(mesh.axis_names, mesh.axis_types))
    if isinstance(mesh, Mesh):
        return Mesh(mesh.devices, mesh.axis_names, types)
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, types,
                        abstract_device=mesh.abstract_device)


class under:
    """``with under(mesh):`` puts a mesh in force, one with devices if the mesh before had some."""

    def __init__(self, mesh: Any):
        self.mesh = mesh

    def __enter__(self) -> None:
        self.before = mesh_context.swap_local(self.mesh)

    def __exit__(self, *exc: Any) -> None:
        mesh_context.set_local(self.before)


def mesh_of(values: Sequence[Any], *given: Any) -> Any:
    """Return the mesh in force, else that of a sharded value, or of ``given``.

    Raises: ValueError if there is none.
    """
    if mesh_context.value is not None:
        return mesh_context.value
    for value in values:
        aval = aval_of(value)
        if aval.explicit is not None:
            have = getattr(hold(value), "_sharding", None)
            return aval.explicit.mesh if have is None else have.mesh
    for sharding in given:
        if isinstance(sharding, NamedSharding):
            return sharding.mesh
    raise errors.explained(
        errors.ArgumentError, "sharding.C6",
        "Context mesh cannot be empty: there is no mesh whose axes could change their type.",
        advice="Put the program under jax.set_mesh(mesh).")


def crossing(x: Any, before: Any, after: Any, spec: Any = None) -> Any:
    """Return ``x``, of a program under mesh ``before``, in one under
    ``after``.

    It is sharded along the axes that ``spec`` names, or keeps the sharding that types name in both.
    """
    aval = aval_of(x)
    rank = len(aval.shape)
    entries = entries_of(aval)
    explicit = after.explicit_axes
    kept = spec if spec is not None else PartitionSpec(*(
        tuple(n for n in names_of(e) if n in explicit) for e in entries))
    there = with_rank(NamedSharding(after.abstract_mesh, kept), rank)
    back = NamedSharding(before.abstract_mesh, aval.sharding.spec)
    return bind(Reshard(there, back), x)



def freely(fun: Callable, out_sharding: Any, who: str, *args: Any) -> Any:
    """Return ``fun(*args)``, computed where the partitioner decides, as ``out_sharding`` requests.

    ``who`` is the function that a caller gave it to.
    Source: what JAX's ``.at[…].get(out_sharding=…)`` and its samplers do.
    """
    leaves, structure = tree.flatten(args)
    given = requested_sharding(out_sharding, 1 << 30, who)
    if given is None:
        return fun(*args)
    before = mesh_of(leaves, given)
    after = retyped(before, frozenset(before.axis_names), AxisType.Auto)
    with under(after):
        out = fun(*structure.unflatten([crossing(x, before, after) for x in leaves]))
    if len(given.spec) > len(aval_of(out).shape):
        named_sharding(out_sharding, len(aval_of(out).shape))
    with under(before):
        return crossing(out, after, before, given.spec)


def reshard_like(ct: Any, aval: ShapedArray) -> Any:
    """Return a tangent or cotangent sharded as ``aval`` says, also along which axes it is a sum."""
    have = aval_of(ct)
    if len(have.shape) != len(aval.shape) or same_sharding(have, aval):
        return ct
    wanted = like_type(aval, have)
    return ct if wanted is None else bind(Reshard(wanted, like_type(have, aval)), ct)

"""How does a program choose where its values are placed, and how they are laid out in memory?

``with_sharding_constraint`` is an equation that sets for XLA's partitioner how a value is sharded;
a call of ``jit`` does so for its arguments and results.  What a program asks of its place are its
own shardings, and the mesh and devices that its equations name (``demands_of``).
``with_layout_constraint`` asks the compiler for an order of axes in memory.

Read before: ``placement.shardings``, ``placement.layouts``.  Read after: ``jit.transfers``.
Invariant: a constraint changes where a value is, never its numbers (tests/kernel/test_shardings.py,
test_stages.py).
Source: the documentation of jax.lax.with_sharding_constraint, jax.jit and
jax.experimental.layout; the Shardy dialect.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from saem import _jaxlib
from saem.compile import dispatch
from saem.compile.device_assignment import Demands, Named, hold, named_in
from saem.compile.text import physical_aval, tensor_type
from saem.core import axes, errors, tree
from saem.core.avals import aval_of
from saem.core.jaxpr import ClosedJaxpr
from saem.core.memory_spaces import MemorySpace
from saem.core.placement_types import Seen
from saem.core.primitive import primitive
from saem.core.trace import Tracer, bind
from saem.ops import sharding_rules
from saem.ops.linear import Identity
from saem.ops.reshard import reshard_to, with_rank
from saem.placement.devices import SingleDeviceSharding
from saem.placement.layouts import Format, Layout, is_usual
from saem.placement.meshes import Mesh, concrete_mesh, get_abstract_mesh, mesh_context, mesh_entered
from saem.placement.partition_spec import PartitionSpec, axes_of
from saem.placement.shardings import (
    NamedSharding,
    check_requested,
    named_sharding,
    on_devices,
    resolve,
    stacked,
)
from saem.placement.spread import check_rank


@primitive("sharding_constraint")
class ShardingConstraint(Identity):
    """The identity, on a value that is placed as ``sharding`` says."""

    sharding: Any

    passes_nan = True
    shard_results = sharding_rules.unchanged
    requested_sharding = property(operator.attrgetter("sharding"))

    @property
    def mesh(self) -> Any:
        return getattr(self.sharding, "mesh", None)

    @property
    def named_devices(self) -> tuple:
        sharding = self.sharding
        return (sharding,) if isinstance(sharding, SingleDeviceSharding) else ()

    def printed_params(self):
        return {"context_mesh": mesh_entered.value or concrete_mesh(), "layout": None,
                "sharding": self.sharding,
                "unconstrained_dims": frozenset(
                    i for i, e in enumerate(getattr(self.sharding, "spec", ()))
                    if e is PartitionSpec.UNCONSTRAINED)}

    def eager(self, x):
        if self.named_devices and is_usual(self.sharding):
            return dispatch.primitive_callable(self)(x)
        sharding = on_devices(self.sharding, getattr(x, "sharding", None))
        if self.mesh is not None and not isinstance(sharding.mesh, Mesh):
            raise TypeError(
                f"{self.mesh} has no devices, and neither the sharding of the value nor the mesh "
                f"in force is on such a mesh. The sharding on the input must be a NamedSharding, "
                f"got {getattr(x, 'sharding', None)}. Put the program under jax.set_mesh(mesh).")
        sharding = without_open_axes(sharding)
        return dispatch.present(dispatch.put_spread(x, sharding), x)

    def lower(self, ctx, x):
        return x if self.mesh is None else constrained(ctx, x, self.sharding)

    def batch(self, size, xs, dims):
        sharding = self.sharding
        if self.mesh is not None:
            # Without spmd_axis_name of vmap the partitioner decides on the new axis.
            axis = axes.batching()
            sharding = stacked(sharding, dims[0], PartitionSpec.UNCONSTRAINED
                               if axis is None or axis.spmd is None else axis.spmd)
        return bind(ShardingConstraint(sharding), xs[0]), dims[0]


def without_open_axes(sharding: Any) -> Any:
    """Return ``sharding`` with None for the axes that it leaves to the partitioner."""
    spec = getattr(sharding, "spec", ())
    if not spec or PartitionSpec.UNCONSTRAINED not in spec.partitions:
        return sharding
    entries = [None if p is PartitionSpec.UNCONSTRAINED else p for p in spec.partitions]
    while entries and entries[-1] is None:
        entries.pop()
    return sharding.update(spec=spec.update(partitions=entries))


def constrained(ctx: Any, x: str, sharding: Any) -> str:
    """Write that ``x`` is sharded as ``sharding`` says; returns its new name."""
    aval = ctx.avals[x]
    ndim = len(physical_aval(aval).shape)
    return ctx.append(f"sdy.sharding_constraint {x} {ctx.module.sharding(sharding, ndim)}",
                      tensor_type(aval), aval)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return pytree ``x`` placed as ``shardings`` (one, or a pytree prefix of them) say.

    A PartitionSpec stands on the mesh in force.

    Raises: ValueError if a sharding does not fit its value.

    >>> lax.with_sharding_constraint(jnp.array([1, 2]),
    ...     jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    Array([1, 2], dtype=int32)
    """
    leaves, structure = tree.flatten(x)
    refuse_devices("shardings", shardings)
    given = prefix("with_sharding_constraint", shardings, x)
    if any(s is None for s in given):
        raise ValueError("One of with_sharding_constraint arguments got sharding None which is not "
                         "allowed. Please only pass `Sharding` instances, or PartitionSpecs under "
                         "jax.set_mesh(mesh).")
    places = [place_of(s, "with_sharding_constraint") for s in given]
    wanted, layouts = split_formats(places)
    if any(isinstance(s, NamedSharding) and s.mesh.empty for s in wanted):
        raise ValueError("with_sharding_constraint needs a mesh with axes, got shardings "
                         f"{shardings}, of an empty one. Use jax.set_mesh(mesh) and a spec.")
    if any(isinstance(layout, Layout) for layout in layouts):
        x = structure.unflatten([v if w is None else bind(LayoutConstraint(w), v)
                                 for v, w in zip(leaves, layouts)])
        leaves = tree.leaves(x)
    manual = frozenset(get_abstract_mesh().manual_axes)
    for leaf, sharding in zip(leaves, wanted):
        if sharding is not None:
            check_rank(sharding, aval_of(leaf), "with_sharding_constraint arguments")
            named = {n for entry in getattr(sharding, "spec", ()) for n in axes_of(entry)}
            if named & manual:
                raise ValueError(
                    f"with_sharding_constraint got {sharding.spec}, which names the manual axes "
                    f"{sorted(named & manual, key=str)}: inside shard_map each device has its own "
                    "part along them. Name other axes, or constrain the value outside.")
    if Seen.placements:
        wanted = [asserted(leaf, s) for leaf, s in zip(leaves, wanted)]
    return structure.unflatten([
        leaf if s is None else bind(ShardingConstraint(s), leaf)
        for leaf, s in zip(leaves, wanted)])


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Return pytree ``xs`` sharded as ``out_shardings`` (one, or a pytree prefix of them) say.

    Raises: ValueError if a sharding does not fit its value, has no mesh, or names an axis along
    which the partitioner decides.
    """
    leaves, structure = tree.flatten(xs)
    found = []
    for leaf, given in zip(leaves, prefix("reshard out_shardings", out_shardings, xs)):
        check_requested(given, "reshard", other_mesh=True)
        sharding = named_sharding(given, len(aval_of(leaf).shape))
        if sharding is None:  # no axis is Explicit: the partitioner decides on all
            found.append(leaf if stays(leaf, given) else with_sharding_constraint(leaf, given))
        else:
            found.append(reshard_to(leaf, sharding))
    return structure.unflatten(found)


def stays(x: Any, given: Any) -> bool:
    """Return whether ``x`` is on the mesh of ``given``, all of whose axes are the partitioner's."""
    if isinstance(x, Tracer):
        return isinstance(given, PartitionSpec)
    mesh = given.mesh if isinstance(given, NamedSharding) else mesh_context.value
    have = getattr(x, "sharding", None)
    return isinstance(have, NamedSharding) and have.mesh == mesh


def asserted(x: Any, sharding: Any) -> Any:
    """Return the part of ``sharding`` that ``x`` still needs as a constraint for the partitioner.

    Along Explicit axes the type has it already: there it is only checked.
    Raises: AssertionError if the type has another; ValueError if some axes are not Explicit.
    """
    mesh = getattr(sharding, "mesh", None)
    here = get_abstract_mesh()
    if mesh is not None and not here.empty and here.are_all_axes_explicit and (
            mesh.shape_tuple == here.shape_tuple):
        mesh = here  # the types of the mesh in force are those of the program
    explicit = () if mesh is None else mesh.explicit_axes
    if not explicit:
        return sharding
    if not mesh.are_all_axes_explicit or mesh_context.value is None:
        named = {name for entry in sharding.spec.partitions for name in axes_of(entry)}
        if named & set(explicit):
            raise errors.explained(
                errors.ArgumentError, "with_sharding_constraint.C1",
                "The spec of NamedSharding passed to with_sharding_constraint can only refer to "
                f"Auto axes of the mesh. Got spec={sharding.spec} and mesh={mesh}. You probably "
                "meant to use `reshard` API?", advice="jax.reshard(x, P(...)) shards along others.")
        return sharding
    have = aval_of(x).sharding.spec
    wanted = with_rank(sharding, len(have)).spec
    if have != wanted:
        raise errors.explained(
            AssertionError, "with_sharding_constraint.C2",
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
            f"`Explicit`. The array sharding: {have} did not match the sharding provided: "
            f"{wanted}. Please use `jax.sharding.reshard` to shard your input to the sharding you "
            "want.", advice="jax.reshard(x, P(...)) does so.")
    return None


def is_place(x: Any) -> bool:
    """Return whether ``x`` is a leaf among shardings."""
    return x is None or x is Layout.AUTO or isinstance(x, (
        PartitionSpec, _jaxlib.Sharding, _jaxlib.Device, Format, MemorySpace))


def refuse_devices(what: str, given: Any) -> None:
    """Refuse devices, and leaves that are not places, among shardings.

    Raises: TypeError.
    """
    for leaf in tree.leaves(given, is_leaf=is_place):
        if isinstance(leaf, _jaxlib.Device) or not is_place(leaf):
            raise TypeError(
                f"{what} leaf specifications are expected to be PartitionSpec instances or None, "
                f"but got {leaf}. Shardings are taken, too: NamedSharding(mesh, P('x')), "
                "SingleDeviceSharding(device).")


def place_of(given: Any, what: str) -> Any:
    """Return what a caller gave as a place: a format as it is, else a sharding."""
    if given is Layout.AUTO:
        return Format(given)
    return given if isinstance(given, Format) else resolve(given, what)


def prefix(what: str, given: Any, value: Any) -> list[Any]:
    """Return one entry of the prefix pytree ``given`` for each leaf of ``value``.

    Raises: ValueError if it is no prefix.
    """
    if is_place(given):
        return [given] * len(tree.leaves(value))
    try:
        return tree.broadcast_prefix(given, value, is_leaf=is_place, name=what)
    except ValueError as error:
        value = "positional arguments tuple" if what == "in_shardings" else "corresponding value"
        what = _SPECIFIED.get(what, what)
        raise ValueError(f"{what} specification must be a tree prefix of the {value}\n{error}"
                         ) from None


_SPECIFIED = {"with_sharding_constraint": "with_sharding_constraint shardings",
              "in_shardings": "pjit in_shardings", "out_shardings": "pjit out_shardings"}


def demands_of(closed: ClosedJaxpr, ins: Sequence[Any] = (), outs: Sequence[Any] = ()
               ) -> Demands:
    """Return what a program asks of its place: its own shardings, and the mesh of its equations.

    Among the shardings of arguments and results may be formats, whose layouts are taken apart.
    """
    named = named_in(closed) if Mesh.in_use or Seen.devices else Named()
    if not any(s is not None for s in (*ins, *outs)):
        return named.demands()
    (ins, in_layouts), (outs, out_layouts) = map(split_formats, (ins, outs))
    return named.demands(tuple(ins), tuple(outs))._replace(
        in_layouts=tuple(in_layouts), out_layouts=tuple(out_layouts))


def split_formats(places: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the shardings of ``places`` and their layouts, () if none of them is a Format.

    A sharding to an unusual memory switches on the checks of where values are held, one to a device
    those of the devices that programs name.
    """
    for place in places:
        if isinstance(place, _jaxlib.Sharding) and not is_usual(place):
            Seen.storage = True
        if isinstance(place, SingleDeviceSharding):
            Seen.devices = True
    if not any(isinstance(place, Format) for place in places):
        return places, ()
    return ([p.sharding if isinstance(p, Format) else p for p in places],
            [p.layout if isinstance(p, Format) else None for p in places])


# -- the order of axes in memory -------------------------------------------------------------------


@primitive("layout_constraint")
class LayoutConstraint(Identity):
    """The identity, on a value that lies in memory as ``layout`` says."""

    layout: Layout

    shard_results = sharding_rules.unchanged

    def lower(self, ctx, x):
        ndim = len(ctx.avals[x].shape)
        # Behind the axes of a value come those of the array that holds it, as of a PRNG key.
        held = len(physical_aval(ctx.avals[x]).shape)
        order = [*range(held - 1, ndim - 1, -1), *self.layout.major_to_minor[::-1]]
        axes = f"dense<{order}> : tensor<{held}xindex>"
        return ctx.emit(
            f"stablehlo.custom_call @LayoutConstraint({x})", x,
            attributes={"backend_config": '""', "operand_layouts": f"[{axes}]",
                        "result_layouts": f"[{axes}]"})

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        order = tuple(a + (a >= d) for a in self.layout.major_to_minor)
        # One example after the other, each as it was.
        layout = Layout((d, *order), self.layout.tiling,
                        self.layout.sub_byte_element_size_in_bits)
        return bind(LayoutConstraint(layout), x), d

    def eager(self, x: Any) -> Any:
        """Return a value laid out, outside any program: in the memory where it lies."""
        held = hold(dispatch.put(x))
        if held is not x:  # keys, whose words have further axes
            return dispatch.primitive_callable(self)(x)
        committed = dispatch.place_like(held, held._sharding)
        return dispatch.with_layout(committed, self.layout)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Return pytree ``x``, laid out in memory as ``layouts`` (a Layout, or a pytree of them) say.

    Raises: ValueError if a layout is none, or has another number of axes than its value.
    """
    Seen.storage = True
    leaves, structure = tree.flatten(x)
    alone = isinstance(layouts, Layout)
    wanted = [layouts] * len(leaves) if alone else tree.leaves(
        layouts, is_leaf=lambda v: isinstance(v, Layout))
    if not all(isinstance(layout, Layout) for layout in wanted) or len(wanted) != len(leaves):
        raise ValueError("layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                         f"{[type(layout) for layout in wanted]}: give one Layout, or one for each "
                         f"of the {len(leaves)} values.")
    for leaf, layout in zip(leaves, wanted):
        shape = aval_of(leaf).shape
        if len(layout.major_to_minor) != len(shape):
            raise ValueError(
                "One of with_layout_constraint arguments is incompatible with its layout "
                f"annotation {layout}: Length of major_to_minor and the rank of the value should "
                f"match. Got major_to_minor={layout.major_to_minor} and shape={shape}")
    return structure.unflatten([bind(LayoutConstraint(w), v) for v, w in zip(leaves, wanted)])

"""How is the result of an operation sharded, given how its operands are?

One rule for each primitive or family, from the mesh axes along which each axis of each operand is
sharded (*entries*) to those of the result.  A rule never moves data in secret: where the result
could only be had by communication whose outcome is open, it refuses and names the way to request
what is wanted.

Read before: ``core.sharded``.  Read after: ``ops.reshard``.
Invariant: what a rule answers is what JAX's types say (tests/kernel/test_explicit.py).
Source: the documentation of jax.sharding, "explicit sharding"; observed behaviour.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from saem.core.placement_types import names_of
from saem.core.sharded import Case, agreed, entries_of

Entries = tuple


def wanted_or(case: Case, entries: Sequence[Any]) -> Entries:
    """Return the entries a parameter asks for, ``entries`` if it asks for none."""
    sharding = case.prim.requested_sharding
    if sharding is None:
        return tuple(entries)
    given = sharding.spec.partitions
    return (*given, *(None,) * (len(case.outs[0].shape) - len(given)))


# -- element by element ----------------------------------------------------------------------------


def elementwise(self: Any, case: Case) -> Any:
    """Each axis as the operands that shard it agree."""
    rank = len(case.outs[0].shape)
    specs = [spec for spec in case.specs if len(spec) == rank]
    found = agreed(specs, rank)
    if found is None:
        raise case.refuse(
            1, f"{self.name} got incompatible shardings for broadcasting: "
            f"{', '.join(map(str, specs))}.",
            "Reshard one of them as the other is sharded: jax.reshard(x, P(...)).")
    return [found] * len(case.outs) if self.multiple_results else found


def unchanged(self: Any, case: Case) -> Any:
    """Each result as its operand."""
    return list(case.specs) if self.multiple_results else case.specs[0]


def clamp(self: Any, case: Case) -> Any:
    """As the number between the bounds."""
    return case.specs[1]


def device_put(self: Any, case: Case) -> Any:
    """Each result where it is put; along Auto axes types say nothing."""
    places = self.params["devices"]
    return [place.spec.partitions + (None,) * (len(out.shape) - len(place.spec))
            if hasattr(place, "spec") else spec
            for place, out, spec in zip(places, case.outs, case.specs)]


def select_n(self: Any, case: Case) -> Any:
    which, *cases = case.specs
    if not case.same_specs(*range(1, len(case.avals))):
        shown = [case.shown(n + 1) for n in range(len(cases))]
        raise case.refuse(1, f"select cases must have the same shardings, got {shown}.",
                          "Reshard one of them as the other is sharded.")
    if case.avals[0].shape and which != cases[0]:
        raise case.refuse(
            3, "select `which` must be scalar or have the same sharding as cases, got `which` "
            f"sharding {case.shown(0)} but case sharding {case.shown(1)}.",
            "Reshard the condition as the cases are.")
    return cases[0]


# -- axes come, go and move ------------------------------------------------------------------------


def broadcast_in_dim(self: Any, case: Case) -> Any:
    entries: list[Any] = [None] * len(case.outs[0].shape)
    for target, entry in zip(self.broadcast_dimensions, case.specs[0]):
        entries[target] = entry
    return wanted_or(case, entries)


def iota(self: Any, case: Case) -> Any:
    return wanted_or(case, ())


def transpose(self: Any, case: Case) -> Any:
    return tuple(case.specs[0][p] for p in self.permutation)


def squeeze(self: Any, case: Case) -> Any:
    drop = {d % len(case.specs[0]) for d in self.dimensions}
    return tuple(e for axis, e in enumerate(case.specs[0]) if axis not in drop)


def reshape(self: Any, case: Case) -> Any:
    """Axes are joined, or one axis split, where the sharding of the result follows from that."""
    (aval,), (spec,) = case.avals, case.specs
    if self.sharding is not None:
        return wanted_or(case, ())
    shape, every = case.outs[0].shape, list(zip(aval.shape, spec))
    old = [(n, e) for n, e in every if n != 1]
    sizes = [n for n in shape if n != 1]
    if sizes != [n for n, _ in old]:  # where only ones come and go, all of them lose their entries
        found = regrouped(every, shape, case.mesh.shape)
        if found is not None and len(found) == len(shape):
            return tuple(found)
    found = regrouped(old, sizes, case.mesh.shape)
    if found is None:
        raise case.refuse(
            1, "This reshape is not supported. Please specify the sharding of the output via the "
            "`out_sharding` argument of jax.lax.reshape. Got operand type: "
            f"{aval.str_short()}, new sizes: {shape}",
            "For example jnp.reshape(x, shape, out_sharding=P(...)).")
    rest = iter(found)
    return tuple(None if n == 1 else next(rest) for n in shape)


def regrouped(old: Sequence[tuple[int, Any]], sizes: Sequence[int], mesh: dict) -> list[Any] | None:
    """Return the entries of axes of ``sizes`` made of the axes ``old``, None if they do not follow.

    Axes stand for themselves, but for one group that is joined to one axis, or one that is split.
    """
    if all(entry is None for _, entry in old):
        return [None] * len(sizes)
    if 0 in sizes:  # of nothing no axis comes: those in front that stay keep their entries
        same = len(list(itertools.takewhile(lambda pair: pair[0][0] == pair[1], zip(old, sizes))))
        if any(entry is not None for _, entry in old[same:]):
            return None
        return [*(entry for _, entry in old[:same]), *(None,) * (len(sizes) - same)]
    entries: list[Any] = []
    changed = 0
    i = j = 0
    while i < len(old) and j < len(sizes):
        a, b = i + 1, j + 1
        left, right = old[i][0], sizes[j]
        while left != right:
            if left < right:
                left, a = left * old[a][0], a + 1
            else:
                right, b = right * sizes[b], b + 1
        changed += (a - i, b - j) != (1, 1)
        if a - i > 1 and b - j > 1:
            return None
        part = joined([e for _, e in old[i:a]]) if a - i > 1 else \
            divided(old[i][1], sizes[j:b], mesh)
        if part is None:
            return None
        entries += part
        i, j = a, b
    return entries if changed <= 1 else None


def joined(entries: Sequence[Any]) -> list[Any] | None:
    """Return the entry of axes joined to one: those that are sharded must stand in front."""
    names = [names_of(e) for e in entries]
    count = sum(map(bool, names))
    if any(names[count:]):
        return None
    together = tuple(n for part in names for n in part)
    return [together if len(together) > 1 else together[0] if together else None]


def divided(entry: Any, sizes: Sequence[int], mesh: dict) -> list[Any] | None:
    """Return the entries of the axes ``sizes`` into which an axis sharded along ``entry`` is split.

    Its mesh axes go to the first of them; to a later one only when those before are used up.
    """
    if len(sizes) == 1:
        return [entry]
    parts: list[list[Any]] = [[] for _ in sizes]
    place, left = 0, sizes[0]
    for name in names_of(entry):
        while left == 1 and place + 1 < len(sizes):
            place, left = place + 1, sizes[place + 1]
        if left % mesh[name]:
            return None
        left //= mesh[name]
        parts[place].append(name)
    return [None if not p else p[0] if len(p) == 1 else tuple(p) for p in parts]


def concatenate(self: Any, case: Case) -> Any:
    if not case.same_specs(*range(len(case.specs))):
        shown = ", ".join(str(case.shown(n)) for n in range(len(case.specs)))
        raise case.refuse(1, f"All operands should have the same sharding. Got shardings {shown}",
                          "Reshard them to one sharding first.")
    return case.specs[0]


def stack(self: Any, case: Case) -> Any:
    entries = list(concatenate(self, case))
    entries.insert(self.axis, None)
    return tuple(entries)


def unstack(self: Any, case: Case) -> Any:
    spec, axis = case.specs[0], self.axis
    if spec[axis] is not None:
        raise case.refuse(1, f"unstack needs an axis that is not sharded, got axis {axis} of "
                          f"{case.avals[0].str_short()}.",
                          "Reshard the operand so that this axis is not sharded.")
    return [(*spec[:axis], *spec[axis + 1:])] * len(case.outs)


def tile(self: Any, case: Case) -> Any:
    (aval,), (spec,) = case.avals, case.specs
    reps = self.reps
    for axis, entry in enumerate(spec):
        if entry is not None and reps[axis] != 1:
            raise case.refuse(
                1, f"Operand cannot be sharded on dimension {axis} when the tiling is "
                f"non-trivial. Got input type: {aval.str_short()} with reps: "
                f"{tuple(reps)}", "Reshard the operand first.")
    return spec


def bitcast(self: Any, case: Case) -> Any:
    spec, rank = case.specs[0], len(case.outs[0].shape)
    return (*spec, *(None,) * (rank - len(spec)))[:rank]


# -- parts of axes ---------------------------------------------------------------------------------


def part_of(case: Case, name: str, shape: Sequence[int], spec: Entries) -> Entries:
    """Return ``spec`` for a result of ``shape``: an axis that changes must still be divisible."""
    for size, before, entry in zip(shape, case.avals[0].shape, spec):
        if entry is not None and size != before and size % case.parts(entry):
            names = ",".join(map(str, names_of(entry)))
            raise case.refuse(
                1, f"{name} on sharded dims where out dim ({size}) is not divisible by mesh axes "
                f"({case.parts(entry)}) with spec ({names}) is not implemented. Got input "
                f"type={case.avals[0].str_short(True)} and output shape={tuple(shape)}",
                "Reshard the operand so that this axis is not sharded, or index with "
                "x.at[i].get(out_sharding=P(...)).")
    return spec


def slice_(self: Any, case: Case) -> Any:
    return part_of(case, "slicing", case.outs[0].shape, case.specs[0])


def dynamic_slice(self: Any, case: Case) -> Any:
    return part_of(case, "dynamic_slice", case.outs[0].shape, case.specs[0])


def pad(self: Any, case: Case) -> Any:
    return part_of(case, "padding", case.outs[0].shape, case.specs[0])


def split(self: Any, case: Case) -> Any:
    return [part_of(case, "split", out.shape, case.specs[0]) for out in case.outs]


def dynamic_update_slice(self: Any, case: Case) -> Any:
    if not case.same_specs(0, 1):
        shown = [a.str_short() for a in case.avals[:2]]
        raise case.refuse(
            1, "dynamic_update_slice operand sharding must be equal to update sharding, got "
            f"operand sharding {shown[0]} and update sharding {shown[1]}.",
            "Reshard the update as the operand is.")
    return case.specs[0]


# -- axes are folded -------------------------------------------------------------------------------


def reduction(self: Any, case: Case) -> Any:
    """What remains is sharded as before, or as requested; a sharded axis is folded everywhere."""
    spec = case.specs[0]
    folded = {a % len(spec) for a in self.axes}
    entries = tuple(e for axis, e in enumerate(spec) if axis not in folded)
    return wanted_or(case, entries)


def generic_reduction(self: Any, case: Case) -> Any:
    """What remains of each operand is sharded as before."""
    folded = set(self.dimensions)
    return [tuple(e for axis, e in enumerate(spec) if axis not in folded)
            for spec, _ in zip(case.specs, case.outs)]


def select_and_scatter_add(self: Any, case: Case) -> Any:
    """As the operand from which the places are chosen."""
    return case.specs[1]


def window(self: Any, case: Case) -> Any:
    entries = part_of(case, self.name, case.outs[0].shape, case.specs[0])
    return [entries] * len(case.outs) if self.multiple_results else entries


def cumulative(self: Any, case: Case) -> Any:
    spec, axis = case.specs[0], self.axis
    if spec[axis] is not None:
        raise case.refuse(
            1, "Input should be unsharded over the axis being reduced. Got input type="
            f"{case.avals[0].str_short()} and axis={axis}",
            "Reshard the operand so that this axis is not sharded.")
    return spec


def sort(self: Any, case: Case) -> Any:
    for number, spec in enumerate(case.specs):
        if spec != case.specs[0]:
            shown = " ".join(str(case.shown(n)) for n in range(len(case.specs)))
            raise case.refuse(1, f"Arguments to sort must have equal shardings, got: {shown}",
                              "Reshard them to one sharding first.")
        if spec[self.dimension] is not None:
            raise case.refuse(
                2, "Arguments to sort must be unsharded over the sorting dimension. Got arg "
                f"sharding={case.shown(number)} and sorting dimension={self.dimension}",
                "Reshard the operand so that this axis is not sharded.")
    return case.specs


def top_k(self: Any, case: Case) -> Any:
    spec, axis = case.specs[0], self.axis
    if spec[axis] is not None:
        raise case.refuse(
            1, "The input should be unsharded over the axis along which to compute the top_k "
            f"values. Got input type={case.avals[0].str_short()} and axis={axis}",
            "Reshard the operand so that this axis is not sharded.")
    return [spec, spec]


def approx_top_k(self: Any, case: Case) -> Any:
    spec, axis = case.specs[0], self.reduction_dimension
    if spec[axis] is not None:
        raise case.refuse(
            1, f"reduction dimension {axis} in operand {case.avals[0].str_short()} should be "
            "unsharded i.e. the spec of that dim should be `None`.",
            "Reshard the operand so that this axis is not sharded.")
    return [spec, spec]


# -- products --------------------------------------------------------------------------------------


def dot_general(self: Any, case: Case) -> Any:
    """Free axes as in the operands, batch axes as in the left one; summed axes are whole."""
    (x, y), prim = case.specs[:2], self
    (xc, yc), (xb, yb) = prim.dimension_numbers
    _, left, right = prim.axes(len(x), len(y))
    if prim.out_sharding is not None:
        return wanted_or(case, ())
    for a, b in zip(xb, yb):
        if None not in (x[a], y[b]) and x[a] != y[b]:
            raise case.refuse(
                1, "dot_general requires lhs batch dimensions and rhs batch dimensions to have the "
                f"consistent sharding, got {tuple(x[i] for i in xb)} and "
                f"{tuple(y[i] for i in yb)}.", "Reshard one of them.")
    one, other = tuple(x[i] for i in xc), tuple(y[i] for i in yc)
    for a, b in zip(one, other):
        if None not in (a, b) and a != b:
            raise case.refuse(
                3, "dot_general requires contracting dimensions to have consistent sharding, got "
                f"{one} and {other}.", "Reshard one of them.")
        if a is not None and a == b:
            raise case.refuse(
                4, "Contracting dimensions are sharded and it is ambiguous how the output should "
                "be sharded. Please specify the output sharding via the `out_sharding` parameter. "
                f"Got lhs_contracting_spec={one} and rhs_contracting_spec={other}",
                "For example jnp.matmul(x, y, out_sharding=P(...)).")
    return (*(x[i] for i in (*xb, *left)), *(y[i] for i in right))


def ragged_dot(self: Any, case: Case) -> Any:
    """As the ordinary product; an axis of groups is whole."""
    entries = dot_general(self, case)
    if self.out_sharding is not None or len(entries) == len(case.outs[0].shape):
        return entries
    return (None, *entries)


def convolution(self: Any, case: Case) -> Any:
    """As the left operand on its examples and places; the kernel and all features are whole."""
    lhs, rhs = case.specs
    numbers = self.dimension_numbers
    if self.out_sharding is not None:
        return wanted_or(case, ())
    if any(entry is not None for entry in (lhs[numbers.lhs_spec[1]], *rhs)):
        raise case.refuse(
            1, "Please specify the output sharding via `out_sharding` parameter of "
            f"`conv_general_dilated`: {', '.join(a.str_short(True) for a in case.avals)}.",
            "Keep the kernel and the features of the left operand whole, or say out_sharding=.")
    out = case.outs[0].shape
    place = dict(zip(numbers.lhs_spec, numbers.out_spec))  # of an axis of lhs, in the result
    found = part_of(case, self.name, [out[place[axis]] for axis in range(len(out))], lhs)
    return tuple([found[axis] for axis in sorted(place, key=lambda axis: place[axis])])


def fft(self: Any, case: Case) -> Any:
    """As the operand, also along the axes that are transformed."""
    return case.specs[0]


def decomposition(self: Any, case: Case) -> Any:
    """Stacks of matrices may be sharded, those of all operands in the same way, but no matrix."""
    for place, (spec, core) in enumerate(zip(case.specs, self.cores)):
        if any(entry is not None for entry in spec[len(spec) - core:]):
            raise case.refuse(
                1, f"Input {place} to {self.name} must be unsharded on non-batch dimensions, but "
                f"got {case.shown(place).spec}.",
                "Reshard the operand so that these axes are not sharded.")
    stack, *others = [spec[:len(spec) - core] for spec, core in zip(case.specs, self.cores)]
    for other in others:
        if other != stack:
            raise case.refuse(
                2, f"All inputs to {self.name} must have the same batch sharding, but got "
                f"{stack} and {other}.", "Reshard one of them.")
    found = [(*stack, *(None,) * (len(out.shape) - len(stack))) for out in case.outs]
    return found if self.multiple_results else found[0]


def triangular_solve(self: Any, case: Case) -> Any:
    """As a product with the inverse: the axis of each operand that is summed over is whole.

    A stack that is whole goes along with one that is sharded.
    """
    a, b = case.specs
    stack = agreed((a[:-2], b[:-2]), len(a) - 2)
    if stack is None:
        raise case.refuse(
            2, "All inputs to triangular_solve must have the same batch sharding, but got "
            f"{a[:-2]} and {b[:-2]}.", "Reshard one of them.")
    last = self.left_side != self.transpose_a  # whether a is summed over its last axis
    for name, spec, axis in (("a", a, -1 if last else -2), ("b", b, -2 if self.left_side else -1)):
        if spec[axis] is not None:
            raise case.refuse(
                1, f"triangular solve input `{name}` must be unsharded on the contracting axis, "
                f"but got {case.shown('ab'.index(name)).spec} with left_side={self.left_side} and "
                f"transpose_a={self.transpose_a}.",
                "Reshard the operand so that this axis is not sharded.")
    free = a[-2 if last else -1], b[-1 if self.left_side else -2]
    return (*stack, *(free if self.left_side else free[::-1]))


# -- reading and writing by index ------------------------------------------------------------------


def gather(self: Any, case: Case) -> Any:
    """Axes read whole, and axes that operand and indices share, keep their sharding.

    By indices that are sharded otherwise it is open who reads what.
    """
    (x, indices), prim = case.specs, self
    numbers, sizes = prim.dimension_numbers, prim.slice_sizes
    shared = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims))
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    for axis, entry in enumerate(x):
        if entry is not None and axis not in shared and (
                sizes[axis] != case.avals[0].shape[axis] or axis in dropped):
            raise open_gather(case)
    lead = list(indices[:-1])
    if any(e is not None and place not in shared.values() for place, e in enumerate(lead)):
        raise open_gather(case)
    for axis, place in shared.items():
        if x[axis] is not None and lead[place] is None:
            lead[place] = x[axis]
        elif x[axis] is not None and lead[place] != x[axis]:
            raise open_gather(case)
    windows = iter([e for axis, e in enumerate(x) if axis not in dropped])
    leading = iter(lead)
    return tuple(next(windows) if axis in numbers.offset_dims else next(leading)
                 for axis in range(len(case.outs[0].shape)))


def open_gather(case: Case) -> Exception:
    x, indices = case.avals
    return case.refuse(
        1, "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
        "indexing as out sharding could not be resolved unambiguously (or would require "
        f"collectives on inputs). Got operand={x!r}, indices={indices!r}",
        "State the sharding of the result: x.at[i].get(out_sharding=P(...)).")


def scatter(self: Any, case: Case) -> Any:
    """The operand keeps its sharding if along sharded axes whole windows are written."""
    x, indices, updates = case.specs
    numbers = self.dimension_numbers
    shape, update_shape = case.avals[0].shape, case.avals[2].shape
    shared = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims))
    dropped = {*numbers.inserted_window_dims, *shared}
    window = iter(numbers.update_window_dims)
    fits = True
    seen = set()
    for axis, entry in enumerate(x):
        place = None if axis in dropped else next(window)
        if place is not None:
            seen.add(place)
            fits &= updates[place] in (None, entry)
            fits &= entry is None or update_shape[place] == shape[axis]
        elif entry is not None and (axis not in shared or indices[shared[axis]] not in (
                None, entry)):
            fits = False
    cut_elsewhere = any(e is not None for place, e in enumerate(updates) if place not in seen)
    fits &= all(e is None or place in shared.values() for place, e in enumerate(indices[:-1]))
    if not fits or (cut_elsewhere and not shared):
        raise case.refuse(
            1, "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for "
            "the scatter update as out sharding could not be resolved unambiguously (or would "
            f"require collectives on inputs). Got operand={case.avals[0]!r}, "
            f"indices={case.avals[1]!r}, updates={case.avals[2]!r}",
            "State the sharding of the result: x.at[i].set(y, out_sharding=P(...)).")
    return x


# -- outside the program ---------------------------------------------------------------------------


def elsewhere(self: Any, case: Case) -> Any:
    """What is computed elsewhere is given whole arrays, and gives such."""
    return [()] * len(case.outs) if self.multiple_results else ()


def call_exported(self: Any, case: Case) -> Any:
    """As the program was exported."""
    exported = self.exported
    return [entries_of(out) if said is None else
            (*said.spec.partitions, *(None,) * (len(out.shape) - len(said.spec)))
            for out, said in zip(exported.out_avals, exported.out_named_shardings)]


# -- keys ------------------------------------------------------------------------------------------


def keys(self: Any, case: Case) -> Any:
    """A stack of keys is sharded along its own axes; what each key gives is whole."""
    spec, rank = case.specs[0], len(case.outs[0].shape)
    return (*spec, *(None,) * (rank - len(spec)))[:rank]


def random_gamma(self: Any, case: Case) -> Any:
    """Replicated: the partitioner shards its program, which rejects and draws again."""
    return ()


def rng_bit_generator(self: Any, case: Case) -> Any:
    return [case.specs[0], ()]


# -- inside shard_map ------------------------------------------------------------------------------


def collective(self: Any, case: Case) -> Any:
    """Values on devices along a manual axis are put together; Explicit axes stay as they are."""
    return case.specs[0]


def folding_collective(self: Any, case: Case) -> Any:
    """As ``collective``; axes given by number (what ``vmap`` makes of names) are folded."""
    return tuple(e for axis, e in enumerate(case.specs[0]) if axis not in self.positional)


def exchange(self: Any, case: Case) -> Any:
    """A result of the operand's rank is sharded as the operand; one of another rank is not."""
    spec, rank = case.specs[0], len(case.outs[0].shape)
    return spec if len(spec) == rank else (None,) * rank

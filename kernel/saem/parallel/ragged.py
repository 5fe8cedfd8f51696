"""How do participants exchange parts of different lengths?

``ragged_all_to_all``: each sends slices of its operand, cut along the first axis, slice i to
participant i (or i // k if there are k slices for each), and gives the places where they are
written there.  What is not written to stays as it was in ``output``.

Read before: ``parallel.exchanges``.
Invariant: the sizes sent are the sizes received; this is not checked.
Source: the documentation of jax.lax.ragged_all_to_all.
"""

from __future__ import annotations

from typing import Any

from saem.compile.collective_text import Groups, device_axes, groups_text
from saem.core import axes as named_axes
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import as_names, size_of
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.trace import bind
from saem.ops.arithmetic import add, div, mul
from saem.ops.collectives import check_names, vary_over
from saem.ops.compare import lt
from saem.ops.cumulative import cumsum
from saem.ops.device_sums import canonical_groups, elsewhere, no_groups
from saem.ops.filling import broadcasted_iota
from saem.ops.gather import gather
from saem.ops.linear import broadcast_in_dim, literal, permute, stacked, zeros_of
from saem.ops.scatter import scatter, scatter_add
from saem.ops.select import select_n
from saem.ops.shape import concatenate, expand_dims, reshape
from saem.ops.windows import GatherDimensionNumbers, ScatterDimensionNumbers
from saem.parallel.exchanges import all_to_all

PLACES = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


@primitive("ragged_all_to_all")
class RaggedAllToAll(Primitive):
    """Operands: what is sent, what is written to, and the four vectors of ``PLACES``."""

    axis_name: tuple
    axis_index_groups: Groups

    @property
    def collective_axes(self):
        return as_names(self.axis_name)

    def typing(self, operand, output, *places):
        for name, aval in zip(PLACES, places):
            if not dtypes.is_integer(aval.dtype):
                raise errors.explained(
                    errors.ArgumentError, "ragged_all_to_all.C1",
                    f"ragged_all_to_all {name} must be integer type.",
                    advice="Convert it, for example with x.astype(int).")
            if aval.ndim != 1 or not aval.shape[0]:
                raise errors.explained(
                    errors.ArgumentError, "ragged_all_to_all.C2",
                    f"ragged_all_to_all {name} must be rank 1 with positive dimension size, but "
                    f"got shape {aval.shape}", advice="Give one number for each slice.")
        return output.strip_weak_type()

    def evaluate(self, *xs):
        raise elsewhere(self, self.collective_axes)

    def lower(self, ctx, *xs):
        rows = device_axes(ctx, self).groups(self.collective_axes, self.axis_index_groups)
        groups = groups_text(rows)
        return ctx.emit(
            f"stablehlo.custom_call @ragged_all_to_all({', '.join(xs)})", *xs,
            attributes={"api_version": "4 : i32",
                        "backend_config": f"{{channel_id = 1 : i64, {groups}}}"})

    def jvp(self, primals, tangents):
        out = bind(self, *primals)
        moved = tangents[:2]
        if all(t is None for t in moved):
            return out, None
        ts = [zeros_of(aval_of(x).to_tangent_aval()) if t is None else t
              for x, t in zip(primals, moved)]
        return out, bind(self, *ts, *primals[2:])

    def transpose(self, ct, operand, output, starts, sent, targets, received):
        """Send back what was sent; what was written over has no part in the result."""
        name, groups = self.axis_name, self.axis_index_groups
        here, there = (all_to_all(v, name, 0, 0, axis_index_groups=groups, tiled=True)
                       for v in (targets, starts))
        back = kept = None
        if isinstance(operand, UndefinedPrimal):
            zeros = zeros_of(operand.aval)
            back = bind(self, ct, vary_over(zeros, name, self.name), here, received, there, sent)
        if isinstance(output, UndefinedPrimal):
            kept = select_n(written(here, received, aval_of(ct).shape), ct, zeros_of(aval_of(ct)))
        return [back, kept, *[None] * 4]

    def batch(self, size, xs, dims):
        axis = named_axes.batching()
        if axis is not None and axis.name in self.collective_axes:
            no_groups(self)
            if len(self.collective_axes) > 1:
                raise errors.explained(
                    NotImplementedError, "ragged_all_to_all.batch",
                    "ragged_all_to_all over several axes is not implemented under vmap.",
                    advice="Map one axis of the product of their sizes.")
            return exchanged(size, *stacked(size, xs[:-1], dims[:-1])), 0
        operand, output, *places = stacked(size, xs, dims)
        flat = [reshape(v, (size * n, *rest)) for v in (operand, output)
                for _, n, *rest in [aval_of(v).shape]]
        lengths = [aval_of(v).shape[1] for v in (operand, output)]
        # Slices that go to one participant must stand together: examples come last.
        columns = [permute(v, (1, 0)) for v in places]
        for place, n in ((0, lengths[0]), (2, lengths[1])):
            shape, dtype = aval_of(columns[place]).shape, aval_of(columns[place]).dtype
            shift = mul(broadcasted_iota(dtype, shape, 1), literal(n, dtype))
            columns[place] = add(columns[place], shift)
        flat += [reshape(v, (aval_of(v).size,)) for v in columns]
        return reshape(bind(self, *flat), aval_of(output).shape), 0


def exchanged(size: int, operand: Any, output: Any, starts: Any, sent: Any, targets: Any) -> Any:
    """Return what all ``size`` participants have after the exchange; each operand is a stack."""
    (_, rows, *rest), (_, count), dtype = (
        aval_of(operand).shape, aval_of(starts).shape, aval_of(starts).dtype)
    shape = (size, count, rows)
    sender, slot, row = (broadcasted_iota(dtype, shape, axis) for axis in range(3))
    starts, sent, targets = (broadcast_in_dim(v, shape, (0, 1)) for v in (starts, sent, targets))
    each = literal(count // size, dtype)
    nowhere = literal(-1, dtype)
    target = select_n(lt(row, sent), broadcast_in_dim(nowhere, shape, ()), add(targets, row))

    def places(first: Any, second: Any) -> Any:
        return concatenate([expand_dims(first, (3,)), expand_dims(second, (3,))], 3)

    window = tuple(range(3, 3 + len(rest)))
    numbers = GatherDimensionNumbers(window, (0, 1), (0, 1))
    taken = gather(operand, places(sender, add(starts, row)), numbers, (1, 1, *rest), mode="clip")
    return scatter(output, places(div(slot, broadcast_in_dim(each, shape, ())), target), taken,
                   numbers.as_scatter(), mode="drop")


def written(starts: Any, sizes: Any, shape: tuple[int, ...]) -> Any:
    """Return, for a result of ``shape``, whether slices of its first axis were written over."""
    aval = aval_of(starts)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    count = zeros_of(ShapedArray((shape[0],), aval.dtype))
    one, minus = (broadcast_in_dim(literal(v, aval.dtype), aval.shape, ()) for v in (1, -1))
    begun = scatter_add(count, expand_dims(starts, (1,)), one, numbers)
    flags = lt(literal(0, aval.dtype), cumsum(
        scatter_add(begun, expand_dims(add(starts, sizes), (1,)), minus, numbers)))
    return broadcast_in_dim(flags, shape, (0,))


def ragged_all_to_all(operand: Any, output: Any, input_offsets: Any, send_sizes: Any,
                      output_offsets: Any, recv_sizes: Any, *, axis_name: Any,
                      axis_index_groups: Any = None) -> Any:
    """Return ``output`` with the slices that the participants along ``axis_name`` sent here.

    Slice i, of ``send_sizes[i]`` rows from ``input_offsets[i]`` on, is written at the receiver's
    row ``output_offsets[i]``; ``recv_sizes`` has the number of rows from each.
    Raises: ValueError for places that are no integer vectors.
    """
    try:
        names = check_names(axis_name, "ragged_all_to_all")
    except NameError as error:
        raise RuntimeError("ragged_all_to_all must be used within a mapped context like vmap or "
                           f"shard_map: {error}") from None
    groups = canonical_groups(axis_index_groups, size_of(names))
    xs = [vary_over(x, names, "ragged_all_to_all") for x in (
        operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)]
    return bind(RaggedAllToAll(names, groups), *xs)

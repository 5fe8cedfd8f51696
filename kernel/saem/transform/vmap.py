"""How does a function of one example become a function of a batch?

A ``BatchTracer`` carries a whole stack of values and the axis along which they are stacked.  An
operation on it runs the primitive's batch rule one interpreter down, where the stack is an array.

Read before: ``core.trace``.  Read after: ``transform.derivatives``.
Invariant: a value that is the same for every example stays unbatched.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from saem.core import axes, config
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import Axis
from saem.core.hi_types import is_high
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr, once_per_program
from saem.core.leaks import check_leaks
from saem.core.primitive import Primitive
from saem.core.sharded import with_axis, without_axis
from saem.core.trace import Trace, Tracer, current, run_under, state
from saem.ops.linear import broadcast_new_dim, moveaxis
from saem.transform.staging import trace_flat


class BatchTracer(Tracer):
    """One example of a stack ``val`` along axis ``dim``."""

    __slots__ = ("val", "dim")
    kind = "batch tracer"

    def __init__(self, trace: BatchTrace, val: Any, dim: int):
        self._trace = trace
        self.val = val
        self.dim = dim
        aval = aval_of(val)
        if aval.placement is None and type(aval) is ShapedArray:
            shape = aval.shape[:dim] + aval.shape[dim + 1:]
            self.aval = ShapedArray(shape, aval.dtype, aval.weak_type)
        else:
            self.aval = aval.row(trace.size, dim) if is_high(aval) else without_axis(aval, dim)

    @property
    def batch_dim(self) -> int:
        """The axis of the stack, by the name that JAX's tracers have for it."""
        return self.dim

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={aval_of(self.val)})"

    __str__ = __repr__


class BatchTrace(Trace):
    """Runs each primitive's batch rule under the parent interpreter."""

    def __init__(self, parent: Trace, size: int, name: str = "vmap"):
        self.parent = parent
        self.stack = (*parent.stack, name)
        self.calls_whole = parent.calls_whole
        self.size = size

    def process(self, prim: Primitive, args: tuple) -> Any:
        xs: list[Any] = []
        dims: list[int | None] = []
        batched = False
        for x in args:
            if type(x) is BatchTracer and x._trace is self:
                xs.append(x.val)
                dims.append(x.dim)
                batched = True
            else:
                xs.append(x)
                dims.append(None)
        saved = state.trace
        state.trace = parent = self.parent
        try:
            if not batched and not prim.touches_refs:
                return parent.process(prim, args)
            out, out_dim = prim.batch(self.size, xs, dims)
        finally:
            state.trace = saved
        if prim.multiple_results:
            return [self.wrap(o, d) for o, d in zip(out, out_dim)]
        return self.wrap(out, out_dim)

    def wrap(self, val: Any, dim: int | None) -> Any:
        return val if dim is None else BatchTracer(self, val, dim)

    def split(self, x: Any) -> tuple[Any, int | None]:
        """Return the stack and axis of an output of the mapped function."""
        if type(x) is BatchTracer and x._trace is self:
            return x.val, x.dim
        return x, None


class NamedBatchTrace(BatchTrace):
    """A batch trace whose axis has a name, which collectives use."""

    def __init__(self, parent: Trace, axis: Axis):
        super().__init__(parent, axis.size)
        self.axis = axis

    def process(self, prim: Primitive, args: tuple) -> Any:
        saved = axes.state.batching
        axes.state.batching = (self.axis, self.parent)
        try:
            if any(type(x) is BatchTracer and x._trace is self for x in args) \
                    or self.axis.name not in axes.names_in(prim):
                return super().process(prim, args)
            # No operand is a stack, but the operation is about the axis itself.
            with current(self.parent):
                out, out_dim = prim.batch(self.size, list(args), [None] * len(args))
        finally:
            axes.state.batching = saved
        if prim.multiple_results:
            return [self.wrap(o, d) for o, d in zip(out, out_dim)]
        return self.wrap(out, out_dim)


def vmap_flat(fun: Callable[..., Sequence[Any]], size: int, xs: Sequence[Any],
              dims: Sequence[int | None], axis: Axis | None = None
              ) -> tuple[list[Any], list[int | None]]:
    """Run ``fun`` once on stacks ``xs`` along ``dims``; returns output stacks and axes.

    ``axis`` gives the mapped axis a name (or, named None, the mesh axes that shard it).
    """
    trace = BatchTrace(state.trace, size) if axis is None else NamedBatchTrace(state.trace, axis)
    named = axis is not None and axis.name is not None
    tracers = [trace.wrap(x, d) for x, d in zip(xs, dims)]
    if named or axes.state.batching is not None:
        with axes.bound(*((axis,) if named else ())):
            outs = run_under(trace, fun, tracers)
    else:  # nothing to bind, nothing to hide
        outs = run_under(trace, fun, tracers)
    trace.live = False
    pairs = [trace.split(x) for x in outs]
    if config.check_tracer_leaks.value:
        finished = weakref.ref(trace)
        del trace, tracers, outs
        check_leaks(finished)
    return [x for x, _ in pairs], [d for _, d in pairs]


def moved(x: Any, dim: int, target: int) -> Any:
    """Return the stack ``x`` with its batch axis, which is ``dim``, at ``target``.

    Raises: ValueError for a value of a type that a program defines, whose axes it alone knows.
    """
    aval = aval_of(x)
    if is_high(aval):
        raise ValueError(
            f"vmap: a value of type {aval} is batched along {dim!r}, and is needed along axis "
            f"{target}. Inside a mapped function such a value can be handed to primitives that "
            "have a rule for it. Make an array of it before it is returned.")
    return moveaxis(x, dim, target)


def fronted(xs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Return ``xs`` with the batch axis of each stack among them in front."""
    return [x if not d else moved(x, d, 0) for x, d in zip(xs, dims)]


def match_dim(x: Any, dim: int | None, target: int, size: int, axis: Axis | None = None) -> Any:
    """Return the stack ``x`` with its batch axis at ``target``, broadcast if it was not batched.

    Where Explicit mesh axes shard ``axis``, or that of the batch rule running, they shard that too.
    """
    ndim = len(aval_of(x).shape)
    if dim is None:
        axis = axis or axes.batching()
        return broadcast_new_dim(x, size, target if target >= 0 else target + ndim + 1,
                                 None if axis is None else axis.sharding)
    return x if dim == target else moved(x, dim, target)


def batch_jaxpr(closed: ClosedJaxpr, size: int, batched: tuple[bool, ...],
                force_out: tuple[bool, ...] | None = None) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program on stacks (batch axis 0) and which of its outputs are stacks.

    ``force_out`` marks outputs that must be stacked even if they are the same for all examples.
    """
    dims = tuple([0 if b else None for b in batched])
    force = force_out or (False,) * len(closed.jaxpr.outvars)
    program, out_dims = stacked_program(closed, size, dims, axes.batching(), force)
    return program, [d is not None for d in out_dims]


@once_per_program
def stacked_program(closed: ClosedJaxpr, size: int, dims: tuple[int | None, ...],
                    axis: Axis | None, force_out: tuple[bool, ...] | None = None
                    ) -> tuple[ClosedJaxpr, list[int | None]]:
    """Return the program on stacks along ``dims`` of examples along ``axis``, and those of outputs.

    Stacks come out as they lie; with ``force_out`` their batch axis is 0, as ``batch_jaxpr`` says.
    """
    out_dims: list[int | None] = []

    def mapped(*xs: Any) -> list[Any]:
        outs, out_dims[:] = vmap_flat(
            lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args), size, xs, dims, axis)
        if force_out is None:
            return outs
        outs = [x if d is None and not force else match_dim(x, d, 0, size, axis)
                for x, d, force in zip(outs, out_dims, force_out)]
        out_dims[:] = [None if d is None and not force else 0
                       for d, force in zip(out_dims, force_out)]
        return outs

    sharding = None if axis is None else axis.sharding
    entry = None if sharding is None else sharding.spec.partitions[0]
    avals = [aval if d is None else aval.stacked(size, d) if is_high(aval)
             else with_axis(aval, size, sharding, entry, d)
             for aval, d in zip(closed.in_avals, dims)]
    program = trace_flat(mapped, avals, name="vmap", debug_name=closed.jaxpr.debug_name)
    return program, out_dims

"""How does a jitted function appear inside another program?

As one equation ``jit[name=f jaxpr={…}]`` whose rules apply the transformation to the program
inside, once per program, since what was derived is kept with it.  It carries what ``jit`` was given
for its arguments and results: donation, and where they are placed.

Read before: ``transform``.  Read after: ``jit.jitted``.
Invariant: the constants of the inner program are concrete; tracers it closed over are inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from saem.compile import lowering
from saem.compile.dispatch import put_value
from saem.core import axes, config
from saem.core import jaxpr as jaxpr_module
from saem.core.dtypes import PYTHON_NUMBERS
from saem.core.effects import in_order
from saem.core.jaxpr import ClosedJaxpr, Literal, merge, once_per_program, pick, split_list
from saem.core.primitive import Primitive, primitive
from saem.core.trace import bind, state
from saem.ops.constraints import constrained
from saem.placement.devices import SingleDeviceSharding
from saem.placement.shardings import NamedSharding, stacked
from saem.transform.linearize import PartialTrace, partial_eval_jaxpr
from saem.transform.nested import HigherOrder, Nested, without_unneeded
from saem.transform.vmap import stacked_program


class ProgramCall(HigherOrder):
    """What calls of one program share; the parameter called ``holds`` is that program."""

    __slots__ = ()
    holds: ClassVar[str] = "jaxpr"

    @property
    def nested(self) -> Nested:
        return Nested((self.program,))

    @property
    def program(self) -> ClosedJaxpr:
        return getattr(self, self.holds)

    @property
    def effects(self):
        return self.program.effects

    def with_program(self, closed: ClosedJaxpr) -> Primitive:
        """Return the call of another program made from this one."""
        return dataclasses.replace(self, **{self.holds: closed})

    def giving(self, closed: ClosedJaxpr, operands: Sequence[Any], results: Sequence[Any]
               ) -> Primitive:
        """Return the call of ``closed``, whose operands and results come of those numbered here.

        None stands for one of another kind, as for ``rebuilt``.
        """
        return self.with_program(closed)

    def rebuilt(self, nested, operands, results):
        return self.giving(nested.programs[0], operands, results)

    def batch(self, size, xs, dims):
        """Stacks go in and come out as they are, their batch axes where they lie."""
        if self.effects:
            return super().batch(size, xs, dims)
        program, out_dims = stacked_program(self.program, size, tuple(dims), axes.batching())
        return bind(self.of_stacks(Nested((program,)), dims, out_dims), *xs), out_dims

    def with_token(self) -> tuple[Primitive, int]:
        """Where the program runs, a rule that comes with it has no part any more."""
        return JitCall(in_order(self.program), self.name), 0

    def typing(self, *avals):
        return self.program.out_avals

    def evaluate(self, *xs):
        return jaxpr_module.evaluate(self.program, *xs)

    def lower(self, ctx, *xs):
        return lowering.lower_block(ctx, self.program, xs)


@primitive("jit")
class JitCall(ProgramCall):
    """Call the program ``jaxpr``."""

    jaxpr: ClosedJaxpr
    jaxpr_name: str
    donated_invars: tuple[bool, ...] = ()
    keep_unused: bool = False
    inline: bool = False
    ctx_mesh: Any = None  # that set_mesh had put in force, for who prints the program
    # Where arguments and results are to lie, None for those that the compiler places.
    in_shardings: tuple[Any, ...] = ()
    out_shardings: tuple[Any, ...] = ()

    renamed: ClassVar[dict[str, str]] = {"name": "jaxpr_name"}
    splits_by_result = True

    @property
    def called(self):
        return str(self.jaxpr_name)

    @property
    def path_name(self):
        return f"jit({self.jaxpr_name})"

    @property
    def params(self):
        return {"jaxpr": self.jaxpr, "name": self.jaxpr_name, "inline": self.inline,
                "donated_invars": self.donated_invars or (False,) * len(self.jaxpr.in_avals),
                "keep_unused": self.keep_unused,
                "in_shardings": self.in_shardings or (None,) * len(self.jaxpr.in_avals),
                "out_shardings": self.out_shardings or (None,) * len(self.jaxpr.out_avals)}

    @property
    def mesh(self):
        return next((s.mesh for s in (*self.in_shardings, *self.out_shardings)
                     if isinstance(s, NamedSharding)), None)

    @property
    def named_devices(self):
        return tuple(s for s in (*self.in_shardings, *self.out_shardings)
                     if isinstance(s, SingleDeviceSharding))

    def printed_params(self):
        shown: dict[str, Any] = {"name": self.jaxpr_name}
        if self.ctx_mesh is not None:
            shown["ctx_mesh"] = self.ctx_mesh
        if any(self.donated_invars):
            shown["donated_invars"] = self.donated_invars
        if any(s is not None for s in self.in_shardings):
            shown["in_shardings"] = tuple(s or UNSPECIFIED for s in self.in_shardings)
        if self.inline:
            shown["inline"] = True
        shown["jaxpr"] = self.jaxpr
        if self.keep_unused:
            shown["keep_unused"] = True
        if any(s is not None for s in self.out_shardings):
            shown["out_shardings"] = tuple(s or UNSPECIFIED for s in self.out_shardings)
        return shown

    def with_program(self, closed: ClosedJaxpr) -> JitCall:
        return JitCall(closed, self.jaxpr_name, (), self.keep_unused, False, self.ctx_mesh)

    def giving(self, closed: ClosedJaxpr, operands: Sequence[Any], results: Sequence[Any]
               ) -> JitCall:
        """What comes of a donated operand is donated; a companion lies where its value does."""
        made = self.with_program(closed)
        if self.donated_invars:
            made = dataclasses.replace(
                made, donated_invars=tuple(map(bool, from_sources(self.donated_invars, operands))))
        if self.in_shardings or self.out_shardings:
            made = made.placed(from_sources(self.in_shardings, operands),
                               from_sources(self.out_shardings, results))
        return made

    def placed(self, ins: Sequence[Any], outs: Sequence[Any]) -> JitCall:
        """Return this call with its arguments and results where ``ins`` and ``outs`` say."""
        return dataclasses.replace(self, in_shardings=tuple(ins), out_shardings=tuple(outs))

    def of_stacks(self, nested, dims, out_dims):
        made: Any = super().of_stacks(nested, dims, out_dims)
        if self.in_shardings or self.out_shardings:
            made = made.placed(map(of_stack, made.in_shardings, dims),
                               map(of_stack, made.out_shardings, out_dims))
        return made

    def transposed(self, nested, operands, cts, reached):
        """A cotangent lies where that lies whose cotangent it is."""
        made: Any = super().transposed(nested, operands, cts, [None] * len(reached))
        if self.in_shardings or self.out_shardings:
            ins = from_sources(self.in_shardings, operands)
            made = made.placed([*ins, *from_sources(self.out_shardings, cts)],
                               from_sources(self.in_shardings, reached))
        return made

    with_token = HigherOrder.with_token
    trimmed = without_unneeded

    def lower(self, ctx, *xs):
        outs = lowering.call(ctx, self.jaxpr, placed_as(ctx, xs, self.in_shardings),
                             self.jaxpr_name)
        return placed_as(ctx, outs, self.out_shardings)

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> list[Any]:
        """Run the part that needs no unknown input in the parent; record the rest."""
        unknown = tuple(not trace.is_known(x) for x in args)
        known, rest, out_unknown, count = partial_eval_jaxpr(self.jaxpr, unknown)
        numbers, results = range(len(args)), range(len(out_unknown))
        outs = self._run_known(trace, known, pick(args, unknown, False),
                               pick(numbers, unknown, False),
                               [*pick(results, out_unknown, False), *[None] * count])
        outs, residuals = split_list(outs, len(outs) - count)
        outs = [put_value(x) if type(x) in PYTHON_NUMBERS else x for x in outs]
        recorded = ()
        if any(out_unknown) or rest.effects:
            call = self.giving(rest, [*[None] * count, *pick(numbers, unknown)],
                               pick(results, out_unknown))
            recorded = trace.emit(call, [*residuals, *pick(args, unknown)])
        return merge(out_unknown, recorded, outs)

    def _run_known(self, trace: PartialTrace, program: ClosedJaxpr, args: Sequence[Any],
                   operands: Sequence[int | None], results: Sequence[int | None]) -> list[Any]:
        """Run ``program`` below ``trace``; inputs and repetitions do not pass through the call.

        Its inputs and outputs are the ``operands`` and ``results`` numbered here, or None.  Of what
        runs now no operand is donated that the linear program still needs.
        """
        moved: Sequence[bool] = ()
        if self.out_shardings:
            moved = [s is not None for s in from_sources(self.out_shardings, results)]
        trimmed, forward, kept = forward_inputs(program, tuple(moved))
        results = [results[i] for i in kept]
        if self.donated_invars and not config.staging.value:
            operands = [None if i in forward else number for i, number in enumerate(operands)]
        saved = state.trace
        state.trace = parent = trace.parent
        try:
            outs = (parent.process(self.giving(trimmed, operands, results), tuple(args))
                    if trimmed.jaxpr.outvars or trimmed.effects else ())
        finally:
            state.trace = saved
        values = (*args, *outs)
        return [source.val if isinstance(source, Literal) else values[source]
                for source in forward]


class Unspecified:
    """What is printed for an argument or result that the compiler places."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = Unspecified()


def from_sources(items: Sequence[Any], sources: Iterable[Any]) -> list[Any]:
    """Return the ``items`` numbered by ``sources``; None for other sources, or without items."""
    return [items[i] if items and isinstance(i, int) else None for i in sources]


def of_stack(sharding: Any, axis: int | None) -> Any:
    """Return the sharding of a stack along ``axis`` of values placed as ``sharding`` says."""
    if not isinstance(axis, int) or not isinstance(sharding, NamedSharding):
        return sharding
    mapped = axes.batching()
    entry = axes.batch_entry() if mapped is None or mapped.spmd is None else mapped.spmd
    made = stacked(sharding, axis, entry)
    entries = list(made.spec.partitions)
    while entries and entries[-1] is None:
        entries.pop()
    return made.update(spec=made.spec.update(partitions=entries))


def placed_as(ctx: Any, xs: Sequence[str], shardings: Sequence[Any]) -> Sequence[str]:
    """Write that values are placed as shardings on a mesh say; returns their names then."""
    return [constrained(ctx, x, s) if isinstance(s, NamedSharding) else x
            for x, s in zip(xs, shardings)] or xs


@once_per_program
def forward_inputs(program: ClosedJaxpr, moved: tuple[bool, ...]
                   ) -> tuple[ClosedJaxpr, list[Any], list[int]]:
    """Return the program without outputs that are inputs, literals or repeated, and their sources.

    A source is a literal, or a position among the inputs followed by the outputs that remain, whose
    numbers come last.  An output that is ``moved`` elsewhere remains.
    """
    places = {v: i for i, v in enumerate(program.jaxpr.invars)}
    count = len(places)
    kept: list[int] = []
    forward: list[Any] = []
    for number, v in enumerate(program.jaxpr.outvars):
        if moved and moved[number]:
            forward.append(count + len(kept))
            kept.append(number)
        elif isinstance(v, Literal):
            forward.append(v)
        else:
            if v not in places:
                places[v] = count + len(kept)
                kept.append(number)
            forward.append(places[v])
    outs = [program.jaxpr.outvars[i] for i in kept]
    return ClosedJaxpr(program.jaxpr.replace(outvars=outs), program.consts), forward, kept

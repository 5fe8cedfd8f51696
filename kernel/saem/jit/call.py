"""How does a jitted function appear inside another program?

As one equation ``jit[name=f jaxpr={…}]`` whose rules apply the transformation to the program
inside, once per program, since what was derived is kept with it.

Read before: ``transform``.  Read after: ``jit.jitted``.
Invariant: the constants of the inner program are concrete; tracers it closed over are inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from saem.compile import lowering
from saem.compile.dispatch import put_value
from saem.core import axes, config
from saem.core import jaxpr as jaxpr_module
from saem.core.effects import in_order
from saem.core.jaxpr import ClosedJaxpr, Literal, merge, once_per_program, pick, split_list
from saem.core.primitive import Primitive, primitive
from saem.core.trace import bind, state
from saem.transform.linearize import PartialTrace, partial_eval_jaxpr
from saem.transform.nested import HigherOrder, Nested
from saem.transform.vmap import stacked_program

_NUMBERS = (bool, int, float, complex)


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

    def giving(self, closed: ClosedJaxpr, operands: Sequence[int | None]) -> Primitive:
        """Return the call of ``closed``, whose operand ``i`` comes of operand ``operands[i]`` here.

        It is None for an operand of another kind.
        """
        return self.with_program(closed)

    def rebuilt(self, nested, operands, results):
        return self.giving(nested.programs[0], operands)

    def batch(self, size, xs, dims):
        """Stacks go into the program as they are: it finds their batch axes where they lie."""
        if not any(dims) or self.effects:
            return super().batch(size, xs, dims)
        program, out_batched = stacked_program(
            self.program, size, tuple(dims), None, axes.batching())
        call = self.giving(program, range(len(xs)))
        return bind(call, *xs), [0 if b else None for b in out_batched]

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
                "keep_unused": self.keep_unused}

    def printed_params(self):
        shown: dict[str, Any] = {"name": self.jaxpr_name}
        if self.ctx_mesh is not None:
            shown["ctx_mesh"] = self.ctx_mesh
        if any(self.donated_invars):
            shown["donated_invars"] = self.donated_invars
        if self.inline:
            shown["inline"] = True
        shown["jaxpr"] = self.jaxpr
        return {**shown, "keep_unused": True} if self.keep_unused else shown

    def with_program(self, closed: ClosedJaxpr) -> JitCall:
        return JitCall(closed, self.jaxpr_name, keep_unused=self.keep_unused,
                       ctx_mesh=self.ctx_mesh)

    def giving(self, closed: ClosedJaxpr, operands: Sequence[int | None]) -> JitCall:
        """Return the call of ``closed``, which donates the operands that come of donated ones."""
        made = self.with_program(closed)
        if not any(self.donated_invars):
            return made
        return dataclasses.replace(made, donated_invars=tuple(
            [i is not None and self.donated_invars[i] for i in operands]))

    with_token = HigherOrder.with_token

    def lower(self, ctx, *xs):
        return lowering.call(ctx, self.jaxpr, xs, self.jaxpr_name)

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> list[Any]:
        """Run the part that needs no unknown input in the parent; record the rest."""
        unknown = tuple(not trace.is_known(x) for x in args)
        known, rest, out_unknown, count = partial_eval_jaxpr(self.jaxpr, unknown)
        numbers = range(len(args))
        outs = self._run_known(trace, known, pick(args, unknown, False),
                               pick(numbers, unknown, False))
        outs, residuals = split_list(outs, len(outs) - count)
        outs = [put_value(x) if type(x) in _NUMBERS else x for x in outs]
        recorded = ()
        if any(out_unknown) or rest.effects:
            call = self.giving(rest, [*[None] * count, *pick(numbers, unknown)])
            recorded = trace.emit(call, [*residuals, *pick(args, unknown)])
        return merge(out_unknown, recorded, outs)

    def _run_known(self, trace: PartialTrace, program: ClosedJaxpr, args: Sequence[Any],
                   places: Sequence[int | None]) -> list[Any]:
        """Run ``program`` below ``trace``; inputs and repetitions do not pass through the call.

        ``places`` are those of ``args`` among the operands.  Of what runs now no operand is donated
        that the linear program still needs.
        """
        trimmed, forward = forward_inputs(program)
        if any(self.donated_invars) and not config.staging.value:
            places = [None if i in forward else place for i, place in enumerate(places)]
        saved = state.trace
        state.trace = parent = trace.parent
        try:
            outs = (parent.process(self.giving(trimmed, places), tuple(args))
                    if trimmed.jaxpr.outvars or trimmed.effects else ())
        finally:
            state.trace = saved
        values = (*args, *outs)
        return [source.val if isinstance(source, Literal) else values[source]
                for source in forward]


@once_per_program
def forward_inputs(program: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Return the program without outputs that are inputs, literals or repeated, and their sources.

    A source is a literal, or a position among the inputs followed by the outputs that remain.
    """
    places = {v: i for i, v in enumerate(program.jaxpr.invars)}
    kept: list[Any] = []
    for v in program.jaxpr.outvars:
        if not isinstance(v, Literal) and v not in places:
            places[v] = len(places)
            kept.append(v)
    forward = [v if isinstance(v, Literal) else places[v] for v in program.jaxpr.outvars]
    return ClosedJaxpr(program.jaxpr.replace(outvars=kept), program.consts), forward

"""How are residuals of a forward rule dropped when they are not used?

Then the function itself may run in its place, which may be cheaper: ``defvjp(..., optimize_remat=
True)`` asks for that.  While a program is written down the forward rule is one equation that knows
both programs; where dead code is removed, as in a checkpoint's first pass, it chooses.

Read before: ``jit.call``.  Read after: ``derivatives.custom_vjp``.
Invariant: both programs give the same results, or the rule of the user is wrong.
Source: the documentation of jax.custom_vjp.defvjp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saem.core.avals import aval_of
from saem.core.jaxpr import ClosedJaxpr, Var
from saem.core.primitive import absent, primitive
from saem.core.trace import bind, state
from saem.jit.call import JitCall, ProgramCall
from saem.transform.restructure import trim
from saem.transform.staging import StagingTrace, trace_flat
from saem.transform.vmap import batch_jaxpr, fronted


@primitive("remat_opt")
class RematOpt(ProgramCall):
    """Call ``fwd_jaxpr``: ``num_res`` residuals, then results, which ``fun_jaxpr`` gives alone."""

    fwd_jaxpr: ClosedJaxpr
    fun_jaxpr: ClosedJaxpr
    num_consts: int = 0
    num_res: int = 0

    holds = "fwd_jaxpr"
    # It is two programs for the same results.
    nested = None
    transpose = absent("it is the forward pass of a custom_vjp function, not linear",
                       NotImplementedError)

    def trimmed(self, needed):
        every = [True] * len(self.fwd_jaxpr.in_avals)
        count = sum(needed[:self.num_res])
        if count:
            fwd, _ = trim(self.fwd_jaxpr, tuple(needed))
            fun, _ = trim(self.fun_jaxpr, tuple(needed[self.num_res:]))
            return RematOpt(fwd, fun, self.num_consts, count), every, needed
        results = len(needed) - self.num_res
        return (JitCall(self.fun_jaxpr, self.fun_jaxpr.jaxpr.debug_name), every,
                [False] * self.num_res + [True] * results)

    def jvp(self, primals, tangents):
        return JitCall(self.fwd_jaxpr, self.fwd_jaxpr.jaxpr.debug_name).jvp(primals, tangents)

    def batch(self, size, xs, dims):
        flags = tuple(d is not None for d in dims)
        count = len(self.fwd_jaxpr.out_avals)
        programs = [batch_jaxpr(program, size, flags, (True,) * len(program.out_avals))[0]
                    for program in (self.fwd_jaxpr, self.fun_jaxpr)]
        outs = bind(RematOpt(*programs, self.num_consts, self.num_res), *fronted(xs, dims))
        return outs, [0] * count


def is_written_down() -> bool:
    """Return whether what happens now becomes part of a program."""
    return any(isinstance(trace, StagingTrace) for trace in state.trace.ancestors())


def either(fwd: Callable[..., Sequence[Any]], fun: Callable[..., Sequence[Any]],
           args: Sequence[Any], num_res: Callable[[], int], name: str) -> list[Any]:
    """Return ``fwd(*args)``, residuals first, as an equation that may turn into ``fun(*args)``."""
    avals = [aval_of(x) for x in args]
    programs = [trace_flat(f, avals, name="remat_opt", debug_name=name) for f in (fwd, fun)]
    consts = [c for program in programs for c in program.consts]
    variables = [v for program in programs for v in program.jaxpr.constvars]
    opened = []
    for program in programs:
        own = set(program.jaxpr.constvars)
        lead = [v if v in own else Var(v.aval) for v in variables]
        opened.append(ClosedJaxpr(program.jaxpr.replace(
            constvars=[], invars=[*lead, *program.jaxpr.invars])))
    return bind(RematOpt(*opened, len(consts), num_res()), *consts, *args)

"""How does a function get a forward derivative of its own?

``custom_jvp(f)`` with ``f.defjvp(rule)``: where ``f`` is differentiated, the rule is called with
primals and tangents instead of looking inside ``f``.  Since reverse mode is forward mode
transposed, the one rule serves both, if it is linear in the tangents.

Read before: ``derivatives.custom_rule``.  Read after: ``derivatives.custom_vjp``.
Invariant: without differentiation ``f`` is what it was; with it, ``f`` itself is never opened.
Source: the documentation of jax.custom_jvp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from saem.core import errors, lazy, tree
from saem.core.arguments import name_of
from saem.core.avals import aval_of
from saem.core.frames import boundary
from saem.core.jaxpr import ClosedJaxpr, pick, with_nones
from saem.core.primitive import UndefinedPrimal, primitive
from saem.core.record import Record
from saem.core.refs import is_ref
from saem.core.trace import Tracer, bind
from saem.derivatives.custom_rule import (
    Arguments,
    Batch,
    Call,
    FlatPrimal,
    RuledCall,
    RuledFunction,
    SymbolicZero,
    WrappedPrimal,
    WrappedRule,
    apply,
    none_for_zeros,
    pair,
    stage,
)
from saem.derivatives.further_results import FurtherJVP
from saem.derivatives.stop_gradient import stop_gradient
from saem.ops.linear import add_cotangents, zeros_of
from saem.transform.derivatives import as_array
from saem.transform.jvp import instantiate
from saem.transform.linear_maps import is_float0, tangent_type
from saem.transform.linearize import backward_pass, without_known

refs = lazy.later("saem.refs.operations")

# A rule on flat lists: primals and tangents (None is zero) to outputs and their tangents.
FlatRule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


class custom_jvp(RuledFunction):
    """A function whose derivative is the rule given to ``defjvp`` or ``defjvps``.

    Arguments in ``nondiff_argnums`` or ``nondiff_argnames`` may be any Python value; the rule gets
    them first: ``rule(*nondiff, primals, tangents)``.

    >>> square = jax.custom_jvp(lambda x: x * x)
    >>> square.defjvps(lambda dx, out, x: 100. * dx)
    >>> jax.grad(square)(3.)
    Array(100., dtype=float32, weak_type=True)
    """

    _inner_rules = ("def_vmap", "defjvp")
    jvp: Callable | None = None

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Make ``jvp(primals, tangents) -> (out, out_tangent)`` the rule; returns it.

        With ``symbolic_zeros``, tangents that are zero come as ``SymbolicZero``.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Give one rule ``jvp(tangent, out, *primals)`` per argument; None where it is zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``. Use defjvp, whose "
                            "rule gets those arguments first.")

        def jvp(primals, tangents):
            if len(jvps) != len(primals):
                raise ValueError(
                    f"defjvps was given {len(jvps)} rules, but {name_of(self.fun)} has "
                    f"{len(primals)} arguments. Give one for each; None where it is zero.")
            out = self(*primals)
            parts = [rule(t, out, *primals) for rule, t in zip(jvps, tangents) if rule is not None]
            leaves, out_tree = tree.flatten(out)
            flat = [tree.leaves(part) for part in parts]
            sums = [functools.reduce(add_cotangents, column) for column in zip(*flat)]
            zeros = [zeros_of(aval_of(x).to_tangent_aval()) for x in leaves]
            return out, out_tree.unflatten(sums if flat else zeros)

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name_of(self.fun)} using defjvp.")
        given = list(self.signature.resolve(args, kwargs))
        for i in self.nondiff_argnums:
            if -len(given) <= i < len(given):  # a traced value is allowed here, as a constant
                given[i] = tree.map_(
                    lambda x: stop_gradient(x) if isinstance(x, Tracer) else x, given[i])
        arguments = self.signature.split(tuple(given))
        fun = FlatPrimal(self.fun, arguments)
        rule = JVPRule(self.jvp, fun, arguments, self.symbolic_zeros)
        outs = apply(PythonCall(fun, fun, rule), arguments.leaves)
        return fun.out_tree.unflatten(outs)


class JVPRule(Record, eq=False):
    """A user's rule as a ``FlatRule``."""

    jvp: Callable
    fun: FlatPrimal
    arguments: Arguments
    symbolic_zeros: bool

    @property
    def __name__(self) -> str:
        return name_of(self.jvp)

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]
                 ) -> tuple[list[Any], list[Any]]:
        primals = [as_array(x) for x in primals]
        given = [as_array(t) if t is not None else zero_tangent(x, self.symbolic_zeros)
                 for x, t in zip(primals, tangents)]
        arguments = self.arguments
        out = self.jvp(*arguments.nondiff(), arguments.dynamic(primals), arguments.dynamic(given))
        who = f"Custom JVP rule {name_of(self.jvp)} for function {name_of(self.fun.fun)}"
        out, out_tangent = pair(who, "representing primal and tangent outputs, but got", out)
        outs, out_tree = tree.flatten(out)
        out_tangents, tangent_tree = tree.flatten(out_tangent)
        if out_tree != tangent_tree:
            raise errors.explained(
                errors.ArgumentTypeError, "custom_jvp.C6",
                f"{who} must produce primal and tangent outputs with equal container (pytree) "
                f"structures, but got {out_tree} and {tangent_tree} respectively.",
                advice="Return a tangent for every primal output, in the same containers.")
        self.fun.check_outputs(who, outs, out_tree)
        return outs, [self.checked(x, t) for x, t in zip(outs, out_tangents)]

    @staticmethod
    def checked(x: Any, tangent: Any) -> Any:
        """Return the tangent of output ``x``, None if it is a symbolic zero."""
        needed = aval_of(x).to_tangent_aval()
        got = tangent.aval if isinstance(tangent, SymbolicZero) else tangent_type(tangent)
        if needed.strip_weak_type() != got.strip_weak_type():
            raise errors.explained(
                errors.ArgumentTypeError, "custom_jvp.C7",
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes "
                f"and dtypes. Expected {needed.str_short()} (tangent type of "
                f"{aval_of(x).str_short()}) but got "
                f"{got.str_short()}.",
                advice="A tangent has the shape of its primal; integers have tangents of dtype "
                "float0.")
        return None if isinstance(tangent, SymbolicZero) or is_float0(tangent) else tangent


def zero_tangent(x: Any, symbolic: bool) -> Any:
    """Return the tangent of ``x`` that is zero, as a rule gets it."""
    aval = aval_of(x).to_tangent_aval()
    if is_ref(aval):
        return refs.zeros_behind(aval)
    return SymbolicZero(aval) if symbolic else as_array(zeros_of(aval))


class WrappedJVP(Record, eq=False):
    """A rule that an interpreter of a library binds, as a ``FlatRule``."""

    jvp: WrappedRule
    symbolic_zeros: bool

    @property
    def __name__(self) -> str:
        return self.jvp.__name__

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]
                 ) -> tuple[list[Any], list[Any]]:
        given = [zero_tangent(x, self.symbolic_zeros) if t is None else t
                 for x, t in zip(primals, tangents)]
        flat = self.jvp(*primals, *given)
        outs, moved = flat[:len(flat) // 2], flat[len(flat) // 2:]
        return outs, list(map(JVPRule.checked, outs, moved))


class PythonCall(Call):
    """A call of a custom_jvp function before it is an equation."""

    name = "custom_jvp_call"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
        return self.rule(primals, tangents)

    def batched(self, batch: Batch) -> PythonCall:
        return PythonCall(self.flat, lambda *xs: batch.settle(*batch.run(self.run, xs)),
                          BatchedRule(self.rule, batch))

    def staged(self, args: Sequence[Any]) -> list[Any]:
        closed, consts = stage(self.flat, args, self.name, self.run)
        prim = CustomJVPCall(closed, self.rule, len(consts), self.rule.symbolic_zeros)
        return bind(prim, *consts, *args)


class BatchedRule:
    """A flat rule on stacks; the tangents of a stack are stacked along the same axis."""

    def __init__(self, rule: FlatRule, batch: Batch):
        self.rule = rule
        self.batch = batch
        self.symbolic_zeros = getattr(rule, "symbolic_zeros", False)

    @property
    def __name__(self) -> str:
        return self.rule.__name__

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]
                 ) -> tuple[list[Any], list[Any]]:
        batch = self.batch
        count, nonzero = len(primals), [t is not None for t in tangents]
        moved: list[bool] = []

        def both(*flat: Any) -> list[Any]:
            rest = iter(flat[count:])
            outs, out_tangents = self.rule(
                flat[:count], [next(rest) if nz else None for nz in nonzero])
            moved[:] = [t is not None for t in out_tangents]
            return [*outs, *(t for t in out_tangents if t is not None)]

        dims = [*batch.dims, *(d for d, nz in zip(batch.dims, nonzero) if nz)]
        values, out_dims = batch.run(
            both, [*primals, *(t for t in tangents if t is not None)], dims)
        n = len(moved)
        rest = iter(zip(values[n:], out_dims[n:]))
        pairs = [next(rest) if m else (None, None) for m in moved]
        joint = [d if d is not None else t for d, (_, t) in zip(out_dims, pairs)]
        if batch.out_batched is None:
            batch.out_batched = [d is not None for d in joint]
        return batch.settle(values[:n], out_dims[:n]), [
            None if t is None else batch.front(t, d) if b else t
            for (t, d), b in zip(pairs, batch.out_batched)]


@primitive("custom_jvp_call")
class CustomJVPCall(RuledCall):
    """Call a program whose derivative is a rule; the first ``num_consts`` inputs have none."""

    call_jaxpr: ClosedJaxpr
    jvp_jaxpr_fun: FlatRule
    num_consts: int = 0
    symbolic_zeros: bool = False

    rule_parameter = "jvp_jaxpr_fun"
    batched_rule = BatchedRule
    further = FurtherJVP

    def printed_params(self):
        shown = {"name": self.call_jaxpr.jaxpr.debug_name, "call_jaxpr": self.call_jaxpr,
                 "jvp": self.jvp_jaxpr_fun}
        if self.num_consts:
            shown["num_consts"] = self.num_consts
        return {**shown, "symbolic_zeros": self.symbolic_zeros}

    @classmethod
    def bind_functions(cls, args, subfuns, symbolic_zeros=False):
        fun, jvp = subfuns
        rule = WrappedJVP(WrappedRule(jvp), symbolic_zeros)
        return list(apply(PythonCall(WrappedPrimal(fun), fun.call_wrapped, rule), args))

    def hand_to(self, interpreter, handle, args):
        count = self.num_consts

        def jvp(*flat: Any) -> list[Any]:
            xs, tangents = flat[:len(flat) // 2], flat[len(flat) // 2:]
            outs, moved = self.jvp_jaxpr_fun(xs, none_for_zeros(tangents))
            if self.symbolic_zeros:
                return [*outs, *(SymbolicZero.from_primal_value(x) if t is None else t
                                 for t, x in zip(moved, outs))]
            return [*outs, *map(instantiate, moved, outs)]

        return interpreter.process_custom_jvp_call(
            handle, interpreter.wrapped(self.function(args[:count])), interpreter.wrapped(jvp),
            args[count:], symbolic_zeros=self.symbolic_zeros)

    def jvp(self, primals, tangents):
        return self.jvp_jaxpr_fun(primals[self.num_consts:], self.of_explicit(tangents))

    def transpose(self, cts, *args):
        """Transpose the function itself, which must be linear; its rule is not used."""
        jaxpr = self.call_jaxpr.jaxpr
        linear = [isinstance(a, UndefinedPrimal) for a in args]
        known = pick(jaxpr.invars, linear, False)
        opened = jaxpr.replace(constvars=[*jaxpr.constvars, *known],
                               invars=pick(jaxpr.invars, linear))
        values = [*self.call_jaxpr.consts, *pick(args, linear, False)]
        return with_nones(linear, backward_pass(*without_known(opened, values), cts))

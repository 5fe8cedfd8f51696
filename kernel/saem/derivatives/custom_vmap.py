"""How does a function get a batch rule of its own?

``custom_vmap(f)`` with ``f.def_vmap(rule)``: where ``f`` meets a stack, ``rule(axis_size,
in_batched, *args)`` is called, with stacks along axis 0, and returns of each output whether it is a
stack.

Read before: ``derivatives.custom_jvp``.  Read after: nothing.
Invariant: without vmap ``f`` is what it was; under vmap, ``f`` itself is never opened.
Source: the documentation of jax.custom_batching.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from saem.core import errors, tree
from saem.core.arguments import name_of
from saem.core.avals import aval_of
from saem.core.frames import boundary
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr, pick
from saem.core.primitive import absent, primitive
from saem.core.record import Record
from saem.core.trace import bind
from saem.derivatives.custom_rule import FlatPrimal, RuledCall, Signature, stage
from saem.derivatives.further_results import FurtherBatch
from saem.loops.map import map_
from saem.ops.linear import broadcast_new_dim
from saem.transform.jvp import instantiate, jvp_flat, jvp_jaxpr, split_tangents
from saem.transform.vmap import fronted, vmap_flat

# A rule on flat lists: axis size, which inputs are stacks, inputs; outputs and which are stacks.
FlatRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]


class custom_vmap:
    """A function whose behaviour under vmap is the rule given to ``def_vmap``.

    >>> twice = jax.custom_batching.custom_vmap(lambda x: 2 * x)
    >>> rule = twice.def_vmap(lambda size, batched, x: (2 * x + size, batched[0]))
    >>> jax.vmap(twice)(jnp.array([1, 2]))
    Array([4, 6], dtype=int32)
    """

    def __init__(self, fun: Callable):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.signature = Signature("custom_vmap", fun, (), ())
        self.vmap_rule: Callable | None = None

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Make ``vmap_rule(axis_size, in_batched, *args) -> (out, out_batched)`` the rule.

        ``in_batched`` holds a bool for each leaf of the arguments, ``out_batched`` one for each
        leaf of ``out``.  Returns the rule.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name_of(self.fun)} using "
                "def_vmap.")
        arguments = self.signature.split(self.signature.resolve(args, kwargs))
        fun = FlatPrimal(self.fun, arguments)
        closed, consts = stage(fun, arguments.leaves, "custom_vmap", fun)
        rule = UserRule(self.vmap_rule, arguments.in_tree, fun.out_tree, name_of(self.fun))
        outs = bind(CustomVmapCall(closed, rule, len(consts)), *consts, *arguments.leaves)
        return fun.out_tree.unflatten(outs)


class UserRule(Record, eq=False):
    """A user's rule as a ``FlatRule``."""

    rule: Callable
    in_tree: Any
    out_tree: Any
    function: str

    def __call__(self, size: int, batched: Sequence[bool], xs: Sequence[Any]
                 ) -> tuple[list[Any], list[bool]]:
        name = name_of(self.rule)
        given = list(self.in_tree.unflatten(batched))
        answer = self.rule(size, given, *self.in_tree.unflatten(xs))
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise errors.explained(
                errors.ArgumentError, "custom_vmap.C1",
                f"custom vmap rule {name} must return a pair, the output and which of its leaves "
                f"are batched, but got {answer!r}.", advice="Return (out, True), say.")
        out, out_batched = answer
        outs, out_tree = tree.flatten(out)
        flags, flag_tree = tree.flatten(out_batched)
        if out_tree != flag_tree:
            raise errors.explained(
                errors.ArgumentError, "custom_vmap.C2",
                "structure of output value and output batching specification returned by custom "
                f"vmap rule ({name}) do not match.\nOutput values: {out_tree}\nBatching spec: "
                f"{flag_tree}", advice="Return one bool for every leaf of the output.")
        if out_tree != self.out_tree:
            raise errors.explained(
                errors.ArgumentError, "custom_vmap.C3",
                f"structure of output returned by custom vmap rule ({name}) does not match that of "
                f"original custom-vmapped function.\nOriginal output: {self.out_tree}\nRule "
                f"output: {out_tree}", advice=f"Return what {self.function} returns, stacked.")
        for x, flag in zip(outs, flags):
            shape = aval_of(x).shape
            if flag and shape[:1] != (size,):
                raise errors.explained(
                    errors.ArgumentError, "custom_vmap.C4",
                    f"custom vmap rule {name} marked an output of shape {shape} as batched, but "
                    f"its first axis is not the batch axis of size {size}.",
                    advice="Stack outputs along axis 0, or mark them False.")
        return outs, [bool(flag) for flag in flags]


class RuleJVP:
    """The rule of the derivative: the derivative of the rule."""

    def __init__(self, rule: FlatRule, nonzero: Sequence[bool], out_nonzero: Sequence[bool]):
        self.rule = rule
        self.nonzero = list(nonzero)
        self.out_nonzero = list(out_nonzero)

    def __call__(self, size: int, batched: Sequence[bool], xs: Sequence[Any]
                 ) -> tuple[list[Any], list[bool]]:
        n = len(self.nonzero)
        rest = iter(zip(xs[n:], batched[n:]))
        pairs = [next(rest) if nz else (None, False) for nz in self.nonzero]
        if not any(batched[:n]):
            outs, flags = self.only_tangents(size, xs[:n], pairs)
            if not any(flags[:len(self.out_nonzero)]):
                return outs, flags
        # A primal and its tangent are both stacks or neither is.
        flags = [b or t for b, (_, t) in zip(batched, pairs)]
        primals = [as_stack(x, b, f, size) for x, b, f in zip(xs[:n], batched, flags)]
        tangents = [as_stack(t, b, f, size) for (t, b), f in zip(pairs, flags)]
        return self.push(size, flags, primals, tangents)

    def push(self, size: int, flags: Sequence[bool], primals: Sequence[Any],
             tangents: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Run the rule on primals with tangents; returns outputs, tangents, and their flags."""
        found: list[bool] = []

        def run(*values: Any) -> list[Any]:
            outs, found[:] = self.rule(size, flags, values)
            return outs

        outs, out_tangents = jvp_flat(run, primals, tangents)
        moving = [(instantiate(t, x), f) for x, t, f, nz in zip(
            outs, out_tangents, found, self.out_nonzero) if nz]
        return [*outs, *(t for t, _ in moving)], [*found, *(f for _, f in moving)]

    def only_tangents(self, size: int, primals: Sequence[Any], pairs: Sequence[tuple[Any, bool]]
                      ) -> tuple[list[Any], list[bool]]:
        """Run the rule at one point with stacks of tangents, which it does not see."""
        n = len(primals)
        found: list[bool] = []
        given = [(t, 0 if b else None) for t, b in pairs if t is not None]

        def one(*tangents: Any) -> list[Any]:
            rest = iter(tangents)
            outs, found[:] = self.push(size, [False] * n, primals, [
                None if t is None else next(rest) for t, _ in pairs])
            return outs

        outs, dims = vmap_flat(one, size, [t for t, _ in given], [d for _, d in given])
        return fronted(outs, dims), [f or d is not None for f, d in zip(found, dims)]


def no_rule(size: int, batched: Sequence[bool], xs: Sequence[Any]) -> Any:
    """Refuse to batch a derivative in a closed-over value: the rule of the user does not see it."""
    raise NotImplementedError(
        "custom_vmap: a derivative in a closed-over value has no batching rule. Pass the value to "
        "the function as an argument.")


def as_stack(x: Any, is_stack: bool, wanted: bool, size: int) -> Any:
    """Return ``x`` repeated for every example if it must be a stack but is none."""
    return x if x is None or is_stack == wanted else broadcast_new_dim(x, size, 0)


@primitive("custom_vmap_call")
class CustomVmapCall(RuledCall):
    """Call a program whose batching is a rule; its first ``num_consts`` inputs have none."""

    call: ClosedJaxpr
    rule: FlatRule
    num_consts: int = 0

    holds = "call"
    rule_parameter = "rule"
    further = FurtherBatch
    transpose = absent("a custom_vmap function has no reverse mode; put custom_vjp around it",
                       NotImplementedError)

    def printed_params(self):
        rule: Any = self.rule
        if not isinstance(rule, UserRule):
            return {"call": self.call, "rule": type(rule)}
        consts = tree.structure([0] * self.num_consts)
        return {"call": self.call, "in_tree": tree.treedef_tuple([consts, rule.in_tree]),
                "out_tree": rule.out_tree, "rule": rule.rule}

    def jvp(self, primals, tangents):
        n = self.num_consts
        nonzero = tuple(t is not None for t in tangents)
        program, out_nonzero = jvp_jaxpr(self.call, nonzero)
        rule = no_rule if any(nonzero[:n]) else RuleJVP(self.rule, nonzero[n:], out_nonzero)
        outs = bind(CustomVmapCall(program, rule, n), *primals,
                    *(t for t in tangents if t is not None))
        return split_tangents(outs, out_nonzero)

    def batch(self, size, xs, dims):
        n = self.num_consts
        if any(d is not None for d in dims[:n]):
            raise NotImplementedError(
                "custom_vmap: a closed-over value is batched, and the rule does not see it. Pass "
                "it to the function as an argument.")
        flags = [d is not None for d in dims[n:]]
        outs, flags = self.rule(size, flags, fronted(xs[n:], dims[n:]))
        return outs, [0 if f else None for f in flags]

    def eager(self, *args):
        return eval_jaxpr(self.call.jaxpr, self.call.consts, *args)



def sequential_vmap(f: Callable) -> custom_vmap:
    """Return ``f`` so that vmap runs it on one example after the other, in a loop.

    >>> twice = jax.custom_batching.sequential_vmap(lambda x: 2 * x)
    >>> jax.vmap(twice)(jnp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        leaves, in_tree = tree.flatten(args)
        flags = tree.leaves(in_batched)

        def one(rows: Sequence[Any]) -> Any:
            rest = iter(rows)
            return mapped(*in_tree.unflatten(
                [next(rest) if b else x for x, b in zip(leaves, flags)]))

        out = map_(one, pick(leaves, flags))
        return out, tree.map_(lambda _: True, out)

    return mapped

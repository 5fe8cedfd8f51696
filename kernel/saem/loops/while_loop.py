"""How does a program repeat a step while a condition holds?

``while_loop`` traces its condition and its body and binds one primitive, ``while``.  On a stack of
examples whose conditions differ it goes on until all are done, those that are done standing still.
It has no reverse mode, since the number of residuals is not known; a ``fori_loop`` whose
bounds are known is a scan, and has.

Read before: ``loops.scan``, which has the loops that are run a known number of times.
Invariant: the condition gives one flag, or one for each of the leading rows of all that is carried.
Source: the documentation of jax.lax.while_loop and jax.lax.fori_loop; StableHLO, while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.compile.dispatch import put
from saem.compile.lowering import lower_block
from saem.compile.regions import any_true, choose_rows, write_while
from saem.core import config, dtypes, errors, tree
from saem.core import jaxpr as jaxpr_module
from saem.core import refs as core_refs
from saem.core.avals import aval_of
from saem.core.dimensions import Dim
from saem.core.effects import TOKEN, in_order, is_ordered
from saem.core.frames import boundary
from saem.core.hi_types import is_mutable
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr, merge, pick, split_list
from saem.core.placement_types import Seen
from saem.core.primitive import primitive
from saem.core.refs import is_ref, shifted
from saem.core.trace import Tracer, beneath, bind, bind_list, concrete_or_none
from saem.jit.call import JitCall
from saem.loops.carry import (
    Body,
    Spoken,
    Types,
    check_callable,
    check_carry,
    check_operands,
    fix_carry,
    run_at_once,
    trace_body,
    trace_carry,
    unchanged,
)
from saem.loops.scan import bind_scan
from saem.ops.arithmetic import add
from saem.ops.compare import lt
from saem.ops.convert import convert_element_type
from saem.ops.linear import number_like
from saem.transform.linearize import PartialTrace, partial_eval_jaxpr
from saem.transform.nested import (
    HigherOrder,
    Nested,
    carry_fixpoint,
    retyped,
    without_unneeded,
)
from saem.transform.restructure import reaches, rearranged, split_program, unread
from saem.transform.staging import trace_flat


@primitive("while")
class While(HigherOrder):
    """Apply ``body_jaxpr`` to what is carried while ``cond_jaxpr`` of it is true.

    Operands: constants of the condition, constants of the body, the carry.
    """

    cond_jaxpr: ClosedJaxpr
    body_jaxpr: ClosedJaxpr
    cond_nconsts: int
    body_nconsts: int

    multiple_results = True
    quick_code = False

    @property
    def effects(self):
        return self.cond_jaxpr.effects | shifted(self.body_jaxpr.effects, self.cond_nconsts)

    @property
    def nested(self) -> Nested:
        return Nested((self.body_jaxpr,), self.cond_nconsts, self.body_nconsts,
                      len(self.body_jaxpr.out_avals), condition=self.cond_jaxpr)

    def rebuilt(self, nested, operands, results):
        return While(nested.condition, nested.programs[0], nested.before, nested.consts)

    trimmed = without_unneeded

    def with_token(self):
        if is_ordered(self.cond_jaxpr.effects):
            return JitCall(asking_in_body(self), "while"), 0
        return super().with_token()

    def parts(self, items: Sequence[Any]) -> list[list[Any]]:
        """Return constants of the condition, constants of the body, and the carry."""
        return split_list(items, self.cond_nconsts, self.body_nconsts)

    def typing(self, *avals):
        cond_consts, body_consts, carry = self.parts(avals)
        check_operands(self, self.cond_jaxpr.in_avals, [*cond_consts, *carry])
        check_operands(self, self.body_jaxpr.in_avals, [*body_consts, *carry])
        return self.body_jaxpr.out_avals

    def evaluate(self, *args):
        cond_consts, body_consts, carry = self.parts(args)
        while True:
            (flags,) = jaxpr_module.evaluate(self.cond_jaxpr, *cond_consts, *carry)
            if not flags.any():
                return carry
            new = jaxpr_module.evaluate(self.body_jaxpr, *body_consts, *carry)
            carry = new if not flags.ndim else [
                np.where(flags.reshape(flags.shape + (1,) * (n.ndim - flags.ndim)), n, o)
                for n, o in zip(new, carry)]

    def lower(self, ctx, *args):
        cond_consts, body_consts, carry = self.parts(args)
        many = bool(self.cond_jaxpr.out_avals[0].shape)

        def flags(*state: str) -> str:
            return lower_block(ctx, self.cond_jaxpr, [*cond_consts, *state])[0]

        def step(*state: str) -> list[str]:
            new = lower_block(ctx, self.body_jaxpr, [*body_consts, *state])
            if not many:
                return new
            here = flags(*state)
            return [choose_rows(ctx, here, n, o) for n, o in zip(new, state)]

        avals = self.body_jaxpr.in_avals[self.body_nconsts:]
        return write_while(ctx, carry, avals, lambda *state: any_true(ctx, flags(*state)), step)

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> list[Any]:
        """Run below ``trace`` what needs no unknown value; record the whole loop for the rest."""
        if any(is_ref(aval_of(x)) for x in args):  # which must not be written twice
            return core_refs.chapter.through_refs(self, args)
        cond_unknown, body_unknown, carry_unknown = self.parts(
            [not trace.is_known(x) for x in args])
        if any(cond_unknown):
            return trace.emit(self, args)
        carry_unknown, _, _ = carry_fixpoint(lambda carry: partial_eval_jaxpr(
            self.body_jaxpr, (*body_unknown, *carry))[2:], carry_unknown)
        late_carry = self.cond_jaxpr.jaxpr.invars[self.cond_nconsts:]
        if all(carry_unknown) or any(reaches(
                self.cond_jaxpr.jaxpr.replace(invars=late_carry), carry_unknown)):
            return trace.emit(self, args)
        known, _, _, _ = split_program(
            self.body_jaxpr, [*body_unknown, *carry_unknown], carry_unknown)
        body = ClosedJaxpr(known.jaxpr.replace(outvars=known.jaxpr.outvars[
            :carry_unknown.count(False)]), known.consts)
        cond = rearranged(
            self.cond_jaxpr,
            [*self.cond_jaxpr.jaxpr.invars[:self.cond_nconsts],
             *pick(late_carry, carry_unknown, False)], self.cond_jaxpr.jaxpr.outvars)
        cond_consts, body_consts, carry = self.parts(args)
        consts = pick(body_consts, body_unknown, False)
        with beneath(trace):
            early = bind_list(While(cond, body, self.cond_nconsts, len(consts)),
                              [*cond_consts, *consts, *pick(carry, carry_unknown, False)])
        late = trace.emit(self, args)
        return merge(carry_unknown, pick(late, carry_unknown), early)

    def transpose(self, cts, *args):
        raise errors.explained(
            errors.ArgumentError, "while.reverse",
            "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
            "dynamic start/stop values: the number of steps, and so of residuals, is not known.",
            advice="Use lax.scan, or lax.fori_loop with bounds that are Python numbers; or forward "
            "mode, jax.jvp and jax.jacfwd.")

    def batch(self, size, xs, dims):
        if any(is_ref(aval_of(x)) for x in xs):
            return core_refs.chapter.batch_through_refs(self, size, xs, dims)
        guard = next((e for e in self.body_jaxpr.effects if hasattr(e, "only_where")), None)
        if guard is not None and not self.cond_jaxpr.out_avals[0].shape:
            loop, order = guarded(self, guard)
            return retyped(loop, size, [xs[i] for i in order], [dims[i] for i in order])
        return retyped(self, size, xs, dims)

    def eager(self, *args: Any) -> list[Any]:
        references = [id(x) for x in args if is_ref(aval_of(x))]
        if len(set(references)) < len(references):  # the condition looks at what the body changes
            return core_refs.chapter.through_refs(self, args)
        key = (self.cond_nconsts, self.body_nconsts)
        return run_at_once((self.body_jaxpr, self.cond_jaxpr), key, self, args)


def guarded(loop: While, guard: Any) -> tuple[While, list[int]]:
    """Return ``loop`` so that what its body checks counts only where its condition holds.

    On a stack the body also runs for examples that are done.  The list beside it marks which
    operand of ``loop`` each of its operands is: the body asks, too.
    """
    body = guard.only_where(loop.body_jaxpr)
    cond = loop.cond_jaxpr

    def step(*operands: Any) -> list[Any]:
        cond_consts, body_consts, carry = loop.parts(operands)
        (here,) = eval_jaxpr(cond.jaxpr, cond.consts, *cond_consts, *carry)
        return eval_jaxpr(body.jaxpr, body.consts, here, *body_consts, *carry)

    asked = list(range(loop.cond_nconsts))
    program = trace_flat(step, [*cond.in_avals[:len(asked)], *loop.body_jaxpr.in_avals],
                         name="while", debug_name=loop.body_jaxpr.jaxpr.debug_name)
    count = len(asked) + len(loop.body_jaxpr.in_avals)
    return (While(cond, program, loop.cond_nconsts, loop.cond_nconsts + loop.body_nconsts),
            [*asked, *range(count)])


def asking_in_body(loop: While) -> ClosedJaxpr:
    """Return ``loop`` as a program that takes a token and hands it on, first of all.

    A condition with ordered effects is asked once before the loop and then at the end of every
    step, so that its token can be carried; its answer is carried too.
    """
    ask = JitCall(in_order(loop.cond_jaxpr), "cond_fun")
    step = JitCall(in_order(loop.body_jaxpr), "body_fun")
    count = loop.cond_nconsts + loop.body_nconsts

    def whole(token: Any, *operands: Any) -> list[Any]:
        cond_consts, _, carry = loop.parts(operands)
        consts = operands[:count]
        token, flag = bind(ask, token, *cond_consts, *carry)
        inner = [aval_of(x) for x in (token, flag, *carry)]
        body = trace_flat(one_step, [*map(aval_of, consts), *inner], name="while")
        cond = trace_flat(lambda token, flag, *carry: [flag], inner, name="while")
        token, _, *carry = bind(While(cond, body, 0, count), *consts, token, flag, *carry)
        return [token, *carry]

    def one_step(*operands: Any) -> list[Any]:
        cond_consts, body_consts, (token, _, *carry) = loop.parts(operands)
        token, *carry = bind(step, token, *body_consts, *carry)
        return [*bind(ask, token, *cond_consts, *carry), *carry]

    carried = loop.body_jaxpr.in_avals[loop.body_nconsts:]
    consts = [*loop.cond_jaxpr.in_avals[:loop.cond_nconsts],
              *loop.body_jaxpr.in_avals[:loop.body_nconsts]]
    return trace_flat(whole, [TOKEN, *consts, *carried], name="while")


# -- the functions ---------------------------------------------------------------------------------


@boundary
def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """Return ``val`` after ``while cond_fun(val): val = body_fun(val)``, from ``init_val``.

    Raises: TypeError if ``cond_fun`` gives no boolean scalar, or ``body_fun`` changes the
    containers, shapes or dtypes of ``val``.

    >>> lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 1)
    Array(128, dtype=int32, weak_type=True)
    """
    check_callable("while_loop", "body_fun and cond_fun arguments", body_fun, cond_fun)
    if config.disable_jit.value:
        try:
            return _while_in_python(cond_fun, body_fun, init_val)
        except errors.ConcretizationTypeError:  # something outside is traced: trace this, too
            pass
    return bind_while(cond_fun, body_fun, body_fun, init_val, "while_loop", (body_fun, 0, None))


def _while_in_python(cond_fun: Callable, body_fun: Callable, val: Any) -> Any:
    # A body may change a NumPy array in place, which is its own.
    val = tree.map_(lambda x: x if isinstance(x, Tracer) else put(x), val)
    while cond_fun(val):
        val = body_fun(val)
    return val


def bind_while(cond_fun: Callable, body_fun: Callable, owner: Callable, init_val: Any, name: str,
               spoken: Spoken) -> Any:
    """Trace and bind a while loop; the trace of its body is kept with the function ``owner``."""
    leaves, carry_tree = tree.flatten(init_val)
    in_tree = tree.treedef_tuple([carry_tree])
    first = [aval_of(x) for x in leaves]
    test = trace_body(cond_fun, in_tree, first, name)
    body, leaves = trace_carry(
        lambda avals: trace_body(body_fun, in_tree, avals, name, owner), leaves, owner,
        lambda body: body.out_avals if body.out_tree == carry_tree else None)
    avals = [aval_of(x) for x in leaves]
    check_carry(name, spoken, Types(carry_tree, avals), body.results, body.closed)
    if avals != first:
        test = trace_body(cond_fun, in_tree, avals, name)
    _check_condition(name, test)
    fixed = [same and idle for same, idle in zip(
        unchanged(body.closed, len(body.consts), len(leaves)),
        unread(test.closed.jaxpr, test.closed.jaxpr.invars[len(test.consts):]))]
    test_program, test_consts = fix_carry(test.closed, test.consts, leaves, fixed)
    program, consts = fix_carry(body.closed, body.consts, leaves, fixed)
    program = ClosedJaxpr(program.jaxpr.replace(
        outvars=pick(program.jaxpr.outvars, fixed, False)), program.consts)
    start = pick(leaves, fixed, False)
    if Seen.states:
        for x in test_consts:
            if is_mutable(aval_of(x)) and any(x is y for y in consts):
                raise NotImplementedError(
                    f"the condition of `{name}` closes over a value of type {aval_of(x)}, which "
                    "its body closes over, too. Carry what the condition reads in arrays.")
    acts = test_program.effects or program.effects  # which may be what the condition looks at
    outs = bind(While(test_program, program, len(test_consts), len(consts)), *test_consts,
                *consts, *start) if start or acts or not any(fixed) else []
    return body.out_tree.unflatten(merge(fixed, pick(leaves, fixed), outs))


def _check_condition(name: str, test: Body) -> None:
    what = ""
    if not tree.treedef_is_leaf(test.out_tree) or test.out_tree.num_leaves != 1:
        what = f"pytree {test.out_tree}"
    elif test.out_avals[0].shape or test.out_avals[0].dtype != bool:
        what = f"output type(s) [{test.out_avals[0]!r}]"
    if what:
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C1",
            f"cond_fun must return a boolean scalar, but got {what}.",
            advice="Compare, and reduce with jnp.all or jnp.any.")


@boundary
def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, *,
              unroll: int | bool | None = None) -> Any:
    """Return ``val`` after ``for i in range(lower, upper): val = body_fun(i, val)``.

    With bounds that are known now it is a scan, which has a derivative in reverse mode.
    Raises: TypeError for bounds that are no integers of one dtype; ValueError for ``unroll`` with
    bounds that are not known.

    >>> lax.fori_loop(0, 4, lambda i, total: total + i, 0)
    Array(6, dtype=int32, weak_type=True)
    """
    check_callable("fori_loop", "body_fun argument", body_fun)
    known = [concrete_or_none(x) for x in (lower, upper)]
    lower, upper = _bounds(lower, upper)
    if all(x is not None and type(x) is not Dim and not np.ndim(x) for x in known):
        first, last = (int(x) for x in known)
        if config.disable_jit.value:
            for i in range(first, last):
                init_val = body_fun(i, init_val)
            return init_val
        out, _ = bind_scan(
            "fori_loop", lambda state, _: ((add(state[0], 1), body_fun(*state)), None), body_fun,
            (first, init_val), None, max(last - first, 0), unroll=1 if unroll is None else unroll,
            spoken=(body_fun, 1, 1))
        return out[1]
    if unroll is not None and not isinstance(unroll, bool) and unroll != 1:
        raise errors.explained(
            errors.ArgumentError, "fori_loop.C2",
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically known.",
            advice="Pass Python numbers as bounds, or leave unroll out.")
    one = number_like(lower, 1) if not aval_of(lower).weak_type else 1

    def step(state: Any) -> Any:
        i, stop, val = state
        return add(i, one), stop, body_fun(i, val)

    return bind_while(_before, step, body_fun, (lower, upper, init_val), "fori_loop",
                      (body_fun, 1, 2))[2]


def _before(state: Any) -> Any:
    """Return whether the counter of a fori loop has not reached its end."""
    i, stop, _ = state
    return lt(i, stop)


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the bounds of a fori loop; a weak one takes the dtype of the other.

    Raises: TypeError if their dtypes differ.
    """
    a, b = aval_of(lower), aval_of(upper)
    if type(upper) is int and dtypes.is_integer(a.dtype) and (
            a.dtype == b.dtype or not dtypes.is_unsigned(a.dtype)):
        return lower, upper if isinstance(lower, int) else np.asarray(upper).astype(a.dtype)[()]
    if a.dtype != b.dtype and all(dtypes.is_integer(v.dtype) and not dtypes.is_unsigned(v.dtype)
                                  for v in (a, b)):
        if a.weak_type:
            return convert_element_type(lower, b.dtype), upper
        if b.weak_type:
            return lower, convert_element_type(upper, a.dtype)
    if a.dtype != b.dtype:
        raise errors.explained(
            errors.ArgumentTypeError, "fori_loop.C1",
            "lower and upper arguments to fori_loop must have equal types, got "
            f"{a.dtype.name} and {b.dtype.name}.",
            advice="Convert one of them to the other's dtype.")
    return lower, upper

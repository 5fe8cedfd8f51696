"""How is memory traded for time in a backward pass?

``checkpoint(f)`` is one equation, ``remat2``.  Where reverse mode splits a program into what is
known now and what waits for cotangents, this equation keeps its known inputs and what its policy
names; everything else is computed again when it is needed, behind a barrier, so that XLA does not
recognise it and keep the first result after all.  (XLA's compiler for CPUs removes barriers before
it looks for such pairs, so there only what is kept between two compiled calls is sure to shrink.)

Read before: ``transform.linearize``, ``jit.call``.  Read after: ``derivatives.saved_residuals``.
Invariant: values and derivatives are those of ``f``; only what is stored between differs.
Source: Griewank and Walther 2000, "Revolve"; the documentation of jax.checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from saem.compile import lowering
from saem.core import axes, config, dtypes, errors, tree
from saem.core import refs as core_refs
from saem.core.arguments import as_tuple, check_callable, check_outputs, name_of, wraps
from saem.core.avals import ShapedArray, aval_of
from saem.core.frames import boundary
from saem.core.hi_types import is_mutable
from saem.core.jaxpr import (
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Origin,
    Var,
    eval_jaxpr,
    interpret,
    merge,
    once_per_program,
    pick,
    with_nones,
)
from saem.core.kept import Kept
from saem.core.memory_spaces import MemorySpace, placed
from saem.core.primitive import UndefinedPrimal, primitive
from saem.core.refs import is_ref
from saem.core.scopes import own_scope
from saem.core.trace import Tracer, at_source, beneath, bind, bind_list
from saem.derivatives.policies import Offloadable, Policy, is_saved
from saem.derivatives.saved_inside import apart
from saem.jit.call import JitCall, ProgramCall
from saem.jit.transfers import COPY, DevicePut
from saem.loops.conditional import Cond
from saem.loops.scan import Scan
from saem.ops.constraints import ShardingConstraint
from saem.ops.convert import reduce_precision
from saem.placement.shardings import NamedSharding
from saem.transform.linearize import PartialTrace, backward_pass, partial_eval_jaxpr
from saem.transform.nested import HigherOrder, without_unneeded
from saem.transform.programs import table_of
from saem.transform.restructure import open_consts
from saem.transform.staging import again, dead_code_free, trace_flat

TO_HOST = DevicePut((MemorySpace.Host,), (None,), (COPY,))
TO_DEVICE = DevicePut((MemorySpace.Device,), (None,), (COPY,))

# Whether XLA is kept from merging the second computation with the first: for all inputs, or each.
PreventCse = bool | tuple[bool, ...]


@primitive("remat2")
class Remat(ProgramCall):
    """Call ``jaxpr``, whose intermediate values are not kept for a backward pass.

    ``differentiated`` marks the second computation, which is the one behind a barrier.
    """

    jaxpr: ClosedJaxpr
    prevent_cse: PreventCse = True
    differentiated: bool = False
    policy: Policy | None = None

    def printed_params(self):
        return {**super().printed_params(), "policy": repr(self.policy)}

    def rebuilt(self, nested, operands, results):
        """A companion is behind the barrier, too; a token is not."""
        prevent: Any = self.prevent_cse
        if not isinstance(prevent, bool):
            prevent = tuple([number is not None and (number in operands[:place] or prevent[number])
                             for place, number in enumerate(operands)])
        return Remat(nested.programs[0], prevent, self.differentiated, self.policy)

    with_token = HigherOrder.with_token
    trimmed = without_unneeded

    def flags(self, numbers: Iterable[int], more: int = 0) -> PreventCse:
        """Return ``prevent_cse`` of the inputs ``numbers``, and of ``more`` new inputs."""
        given = self.prevent_cse
        return given if isinstance(given, bool) else (*(given[i] for i in numbers),
                                                      *[True] * more)

    def lower(self, ctx, *xs):
        prevent = self.prevent_cse
        guarded = [self.differentiated and (prevent if isinstance(prevent, bool) else prevent[i])
                   for i in range(len(xs))]
        behind = iter(ctx.barrier(pick(xs, guarded)))
        return lowering.lower_block(
            ctx, self.jaxpr, [next(behind) if g else x for x, g in zip(xs, guarded)], "checkpoint")

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> list[Any]:
        """Compute what is known now; record the rest, which computes the known part again.

        Where a reference has a derivative, it starts from what references hold now, since that may
        change until then.  Others are read and written again, as in JAX.
        """
        unknown = tuple(not trace.is_known(x) for x in args)
        if any(is_ref(aval_of(x)) for x in pick(args, unknown)):
            return core_refs.chapter.through_refs(self, args)
        policy = self.policy
        split = self.jaxpr.derived(("remat", unknown, policy),
                                   lambda: Split(self.jaxpr, unknown, policy))
        known = split.known
        with beneath(trace):
            outs = eval_jaxpr(known.jaxpr, known.consts,
                              *pick(args, unknown, False))
        n = len(outs) - split.saved_count
        prevent = self.prevent_cse
        if isinstance(prevent, tuple):
            prevent = (*[True] * split.saved_count, *(prevent[i] for i in split.read))
        again = Remat(split.again, prevent, True, policy)
        if any(is_mutable(v.aval) for v in split.again.jaxpr.invars):
            raise NotImplementedError(
                "Effects not supported in partial-eval of `checkpoint`/`remat`: what it computes "
                "again reads or changes a value of a type that changes. Do that outside of it.")
        recorded = (trace.emit(again, [*outs[n:], *(args[i] for i in split.read)])
                    if any(split.out_unknown) or again.effects else ())
        return merge(split.out_unknown, recorded, outs[:n])

    def transpose(self, cts, *args):
        linear = tuple(isinstance(a, UndefinedPrimal) for a in args)
        has_ct = tuple(ct is not None for ct in cts)
        program, reached = self.jaxpr.derived(
            ("remat transpose", linear, has_ct), lambda: pulled(self.jaxpr, linear, has_ct))
        known = [i for i, lin in enumerate(linear) if not lin]
        prim = Remat(program, self.flags(known, sum(has_ct)), self.differentiated, self.policy)
        outs = bind(prim, *(args[i] for i in known), *(c for c in cts if c is not None))
        return with_nones(linear, with_nones(reached, outs))

    def eager(self, *args: Any) -> list[Any]:
        """Run equation by equation, as ``f`` would; a key used a second time is no reuse."""
        again.depth += self.differentiated
        try:
            return eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, *args)
        finally:
            again.depth -= self.differentiated


def is_log(eqn: Eqn) -> bool:
    """Return whether ``eqn`` is about a reference that computing again is to leave alone."""
    return eqn.operation.touches_refs and any(
        is_ref(a.aval) and getattr(a.aval, "kind", None) is not None for a in eqn.invars)


# -- splitting -------------------------------------------------------------------------------------


class Split:
    """A program taken apart by which inputs are unknown, and by what a policy lets be saved.

    ``known``: known inputs to known outputs and ``saved_count`` saved values.  ``again``: saved
    values and the inputs numbered by ``read`` to unknown outputs.  It contains every known equation
    whose result it needs and that was not saved.
    """

    def __init__(self, closed: ClosedJaxpr, unknown: tuple[bool, ...], policy: Policy | None,
                 whole: bool = False):
        """Take ``closed`` apart; if ``whole``, the second part gives the known outputs too, and
        what is offloaded stays where it is made: the loop around moves it when it is all there."""
        self.whole = whole
        # The decision of the policy on each saved value.
        self.answers: dict[Var, Any] = {}
        if policy is not None:
            closed = without_jits(closed)
        self.jaxpr = jaxpr = closed.jaxpr
        self.consts = closed.consts
        self.waiting = {v for v, u in zip(jaxpr.invars, unknown) if u}
        # Known outputs of equations some of whose inputs are unknown, by a program of their own.
        self.mixed: dict[Eqn, tuple[ClosedJaxpr, list[Var], list[Var]]] = {}
        # Saved values that wait in the memory of the host, and the variables they have there.
        self.away: dict[Var, Var] = {}
        saved, later = self.decided(policy)
        self.out_unknown = [v in self.waiting for v in jaxpr.outvars]
        kept = self.set_again(saved, later)
        self.saved_count = len(kept)
        inputs = pick(jaxpr.invars, unknown, False)
        known = trace_flat(
            lambda *xs: self.run_known(dict(zip(inputs, xs)), kept), [v.aval for v in inputs],
            name="checkpoint", debug_name=jaxpr.debug_name)
        self.known = ClosedJaxpr(dead_code_free(known.jaxpr), known.consts)

    def decided(self, policy: Policy | None) -> tuple[dict[Var, None], list[Eqn]]:
        """Return the values that may be saved, in order, and the equations for later.

        Notes on the way what is unknown, and what is known of equations with unknown inputs.
        """
        saved: dict[Var, None] = {}
        later: list[Eqn] = []
        for eqn in self.jaxpr.eqns:
            if policy is not None and isinstance(eqn.operation, (Scan, Cond)) \
                    and self.inside_apart(eqn, policy, saved, later):
                continue
            if not self.waiting.isdisjoint(eqn.invars):
                residuals, again = self.taken_apart(eqn, policy)
                saved.update(dict.fromkeys(residuals))
                later += again
            elif eqn.operation.waits:  # begins what is for later
                self.waiting.update(eqn.outvars)
                later.append(eqn)
            elif is_log(eqn):
                saved.update(dict.fromkeys(eqn.outvars))
            elif answer := is_saved(policy, eqn):
                saved.update(dict.fromkeys(self.where_saved(answer, eqn.outvars, eqn, later)))
            else:
                later.append(eqn)
        return saved, later

    def set_again(self, saved: dict[Var, None], later: list[Eqn]) -> list[Var]:
        """Make the program for later of what is needed of ``later``; returns what it saves."""
        jaxpr = self.jaxpr
        outs = [v for v, u in zip(jaxpr.outvars, self.out_unknown) if u or self.whole]
        tail = dead_code_free(jaxpr.replace(eqns=later, outvars=outs))
        made = {v for eqn in tail.eqns for v in eqn.outvars}
        used = tail.reads()
        kept = [v for v in saved if v in used and v not in made]
        self.read = [i for i, v in enumerate(jaxpr.invars) if v in used]
        self.again = ClosedJaxpr(
            tail.replace(invars=[*kept, *(jaxpr.invars[i] for i in self.read)]), self.consts)
        return kept

    def where_saved(self, answer: Any, outvars: Sequence[Var], eqn: Eqn, later: list[Eqn]
                    ) -> Sequence[Var]:
        """Return the variables by which ``outvars``, made by ``eqn``, are saved.

        What a policy offloads waits in the host's memory, and is brought back later.
        """
        self.answers.update(dict.fromkeys(outvars, answer))
        if self.whole or not isinstance(answer, Offloadable):
            return outvars
        away = [Var(placed(v.aval, MemorySpace.Host)) for v in outvars]
        self.away.update(zip(outvars, away))
        later += [Eqn(TO_DEVICE, [a], [v], eqn.source, eqn.stack) for v, a in zip(outvars, away)]
        return away

    def inside_apart(self, eqn: Eqn, policy: Policy, saved: dict[Var, None], later: list[Eqn]
                     ) -> bool:
        """Split a scan or cond inside which the policy saves something; returns whether it does."""
        if is_saved(policy, eqn) or eqn.effects:
            return False
        unknown = tuple(isinstance(a, Var) and a in self.waiting for a in eqn.invars)
        operation = eqn.operation
        program, *_ = operation.nested.programs
        parts = program.derived(("saved inside", operation, unknown, policy), lambda: apart(
            operation, unknown, lambda body, flags: Split(body, flags, policy, True)))
        if parts is None:
            return False
        atoms = pick(eqn.invars, parts.unknown, False)
        inputs = list(dict.fromkeys(a for a in atoms if isinstance(a, Var)))
        values = [Var(aval) for aval in parts.saved]
        outs = pick(eqn.outvars, parts.out_unknown, False)
        known = Eqn(parts.known, atoms, [*outs, *values], eqn.source, eqn.stack)
        self.mixed[eqn] = (ClosedJaxpr(Jaxpr([], inputs, known.outvars, [known])), inputs,
                           [*outs, *values])
        self.waiting.update(v for v, waits in zip(eqn.outvars, parts.out_unknown) if waits)
        for value, answer in zip(values, parts.answers):
            saved.update(dict.fromkeys(self.where_saved(answer, [value], eqn, later)))
        later.append(eqn.replace(operation=parts.again, invars=[*eqn.invars, *values]))
        return True

    def taken_apart(self, eqn: Eqn, policy: Policy | None) -> tuple[list[Var], list[Eqn]]:
        """Split an equation with unknown inputs, noting which of its outputs are unknown.

        Returns the values of its known part that are saved, and what is computed later: all of it
        again, unless the policy lets results of its kind be saved.
        """
        if eqn.operation.partial_eval is None:
            self.waiting.update(eqn.outvars)
            return [], [eqn]
        inputs = list(dict.fromkeys(a for a in eqn.invars if isinstance(a, Var)))
        alone = ClosedJaxpr(Jaxpr([], inputs, eqn.outvars, [eqn]))
        known, rest, out_unknown, count = partial_eval_jaxpr(
            alone, tuple(v in self.waiting for v in inputs))
        ready = [v for v in inputs if v not in self.waiting]
        waits = [v for v in inputs if v in self.waiting]
        late = pick(eqn.outvars, out_unknown)
        outvars = pick(eqn.outvars, out_unknown, False)
        self.waiting.update(late)
        bound = [v for inner in rest.eqns for v in inner.outvars]
        if is_saved(policy, eqn) and all(bound.count(v) == 1 for v in rest.jaxpr.outvars):
            made = [*outvars, *rest.jaxpr.invars[:count]]
            self.mixed[eqn] = (known, ready, made)
            return made, renamed(rest, dict(zip(rest.jaxpr.invars[count:], waits)), late)
        if outvars:
            needed = [True] * len(outvars) + [False] * count
            trimmed = ClosedJaxpr(dead_code_free(known.jaxpr, needed), known.consts)
            self.mixed[eqn] = (trimmed, ready, outvars)
        return [], [eqn]

    def run_known(self, env: dict[Var, Any], kept: Sequence[Var]) -> list[Any]:
        """Run the known equations; returns the known outputs and the values of ``kept``.

        A saved value that is used here too is rounded to its dtype, so that both computations
        continue from the same number whatever precision XLA would have kept.
        """
        jaxpr = self.jaxpr
        env.update(zip(jaxpr.constvars, self.consts))
        shared = set(kept) & self.read_now()
        for eqn in jaxpr.eqns:
            with at_source(eqn.source, () if eqn in self.mixed else eqn.stack):
                if eqn in self.mixed:
                    program, inputs, outvars = self.mixed[eqn]
                    outs = eval_jaxpr(program.jaxpr, program.consts, *(env[v] for v in inputs))
                elif self.waiting.isdisjoint((*eqn.invars, *eqn.outvars)):
                    outvars = list(eqn.outvars)
                    outs = bind_list(eqn.operation, [
                        a.val if isinstance(a, Literal) else env[a] for a in eqn.invars])
                else:
                    continue
                env.update((v, rounded(x) if v in shared else x) for v, x in zip(outvars, outs))
                env.update((self.away[v], TO_HOST.put(env[v])) for v in outvars if v in self.away)
        outs = [a.val if isinstance(a, Literal) else env[a]
                for a, u in zip(jaxpr.outvars, self.out_unknown) if not u]
        return [*outs, *(env[v] for v in kept)]

    def read_now(self) -> set[Var]:
        """Return the variables that known equations read, or known outputs are."""
        jaxpr = self.jaxpr
        read = {a for eqn in jaxpr.eqns if self.waiting.isdisjoint(eqn.invars)
                for a in eqn.invars if isinstance(a, Var)}
        return read | {a for a in jaxpr.outvars if isinstance(a, Var)}


def renamed(closed: ClosedJaxpr, names: dict[Var, Var], outvars: Sequence[Var]) -> list[Eqn]:
    """Return the equations of ``closed``, which has no constants, with other variables outside.

    ``names`` renames inputs; the outputs, each made by an equation, become ``outvars``.
    """
    jaxpr = closed.jaxpr
    names = {**names, **dict(zip(jaxpr.outvars, outvars))}
    return [eqn.replace(invars=[a if isinstance(a, Literal) else names.get(a, a)
                                for a in eqn.invars],
                        outvars=[names.get(v, v) for v in eqn.outvars]) for eqn in jaxpr.eqns]


def rounded(x: Any) -> Any:
    """Return ``x`` rounded to its own dtype, if that is a float."""
    dtype = aval_of(x).dtype
    if not dtypes.is_float(dtype):
        return x
    limits = dtypes.finfo(dtype)
    return reduce_precision(x, exponent_bits=limits.nexp, mantissa_bits=limits.nmant)


@once_per_program
def without_jits(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return ``closed`` with jitted functions inside written out, so that a policy sees them."""
    if not any(isinstance(eqn.operation, JitCall) for eqn in closed.eqns):
        return closed

    def step(eqn: Eqn, values: list[Any]) -> list[Any]:
        with at_source(eqn.source, eqn.stack):
            call = eqn.operation
            if isinstance(call, JitCall):
                given = with_constraints(values, call.in_shardings)
                outs = interpret(call.jaxpr, given, step)
                return with_constraints(outs, call.out_shardings)
            return bind_list(eqn.operation, values)

    return trace_flat(lambda *xs: interpret(closed, xs, step), closed.in_avals, name="checkpoint",
                      debug_name=closed.jaxpr.debug_name)


def with_constraints(values: list[Any], shardings: tuple[Any, ...]) -> list[Any]:
    """Return ``values``, each placed as its sharding says; () and None say nothing."""
    return [bind(ShardingConstraint(s), x) if isinstance(s, NamedSharding) else x
            for x, s in zip(values, shardings)] or values


def pulled(closed: ClosedJaxpr, linear: tuple[bool, ...], has_ct: tuple[bool, ...]
           ) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program of non-linear inputs and cotangents to cotangents of linear inputs.

    It begins with the second computation.  The list beside it marks inputs that are reached.
    """
    known, rest, out_unknown, count = partial_eval_jaxpr(closed, linear)
    residuals, unknowns = rest.jaxpr.invars[:count], rest.jaxpr.invars[count:]
    opened = rest.jaxpr.replace(
        constvars=[*rest.jaxpr.constvars, *residuals], invars=unknowns)
    reached: list[bool] = []
    inputs = pick(closed.in_avals, linear, False)
    cts = [aval.to_ct_aval() for aval, has in zip(closed.out_avals, has_ct) if has]

    def pull(*flat: Any) -> list[Any]:
        with own_scope("rematted_computation"):
            outs = eval_jaxpr(known.jaxpr, known.consts, *flat[:len(inputs)])
        every = with_nones(has_ct, flat[len(inputs):])
        found = backward_pass(
            opened, [*rest.consts, *outs[len(outs) - count:]],
            pick(every, out_unknown))
        reached[:] = [ct is not None for ct in found]
        return [ct for ct in found if ct is not None]

    program = trace_flat(pull, [*inputs, *cts], name="transpose",
                         debug_name=closed.jaxpr.debug_name)
    return ClosedJaxpr(dead_code_free(program.jaxpr), program.consts), reached


# -- the public functions --------------------------------------------------------------------------


_NOT_GIVEN: Any = object()


def checkpoint(fun: Callable, *, prevent_cse: bool | Sequence[bool] = True,
               policy: Policy | None = None, static_argnums: int | tuple[int, ...] = (),
               static_argnames: str | Iterable[str] = (), concrete: Any = _NOT_GIVEN) -> Callable:
    """Return ``fun`` so that a backward pass computes its intermediate values again.

    ``policy`` (of ``checkpoint_policies``) selects those that are saved instead.  ``prevent_cse``
    may be False where XLA cannot merge the two computations anyway, as in the body of a scan; a
    sequence has one for each argument.

    Raises: NotImplementedError for ``concrete``, which JAX has withdrawn too.

    >>> jax.grad(jax.checkpoint(lambda x: jnp.sin(x) ** 2))(0.)
    Array(0., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    if concrete is not _NOT_GIVEN:
        raise NotImplementedError(
            "The `concrete` option to `jax.checkpoint` was deprecated in JAX v0.8.2, and removed "
            "in JAX v0.10.0. In its place please use `static_argnums`.")
    numbers, names = as_tuple(static_argnums, int), as_tuple(static_argnames, str)
    traced = table_of(fun, "checkpoint")

    @wraps(fun, "checkpoint")
    @boundary
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        static = static_positions(numbers, len(args))
        fixed = {i: args[i] for i in static}
        words = {k: v for k, v in kwargs.items() if k in names}
        dynamic = ([x for i, x in enumerate(args) if i not in static],
                   {k: v for k, v in kwargs.items() if k not in names})
        leaves, in_tree = tree.flatten(dynamic)
        closed, consts, out_tree = kept_body(traced, fun, leaves, in_tree, fixed, words, len(args))
        flags = prevent_cse if isinstance(prevent_cse, bool) else (
            *[True] * len(consts), *tree.broadcast_prefix((tuple(prevent_cse), True), (
                tuple(dynamic[0]), dynamic[1])))
        inputs = lowering.with_values([closed], [*consts, *leaves])
        outs = bind(Remat(closed, flags, False, policy), *inputs)
        return out_tree.unflatten(outs)

    return checkpointed


def remat(fun: Callable, *, prevent_cse: bool | Sequence[bool] = True,
          policy: Policy | None = None, static_argnums: int | tuple[int, ...] = (),
          concrete: Any = _NOT_GIVEN) -> Callable:
    """Return ``checkpoint(fun)``, whose static arguments are given by position only."""
    return checkpoint(fun, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums,
                      concrete=concrete)


def static_positions(numbers: Sequence[int], count: int) -> list[int]:
    """Return the static argument numbers counted from the front.

    Raises: ValueError for one that the call does not have.
    """
    if any(not -count <= n < count for n in numbers):
        raise errors.explained(
            errors.ArgumentError, "checkpoint.C1",
            "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only take integer "
            "values greater than or equal to `-len(args)` and less than `len(args)`, but got "
            f"{tuple(numbers)}, while `len(args)` = {count}",
            advice="Pass static arguments by position.")
    return [n % count for n in numbers]


def array_type(x: Any) -> ShapedArray:
    """Return the aval of an argument.  Raises: TypeError if it is no array."""
    try:
        return aval_of(x)
    except TypeError:
        raise errors.explained(
            errors.ArgumentTypeError, "checkpoint.C2",
            f"Argument {x!r} of type {type(x)} is not a valid JAX type",
            advice="Mark it static: checkpoint(f, static_argnums=...); or close over it.",
        ) from None


def kept_body(traced: Kept, fun: Callable, leaves: Sequence[Any], in_tree: Any,
              fixed: dict[int, Any], words: dict[str, Any], count: int
              ) -> tuple[ClosedJaxpr, list[Any], Any]:
    """Return what ``traced_body`` gives, from ``traced`` where it was traced on such arguments.

    It is traced each time where a static value has no hash, and where a constant is a tracer.
    """
    avals = [array_type(x) for x in leaves]
    key = (in_tree, tuple(fixed.items()), tuple(sorted(words.items())), count, tuple(avals),
           axes.state.env, config.trace_key())
    try:
        found = traced.get(key)
    except TypeError:
        return traced_body(fun, in_tree, avals, fixed, words, count)
    if found is None:
        found = traced_body(fun, in_tree, avals, fixed, words, count)
        if not any(isinstance(c, Tracer) for c in found[1]):
            traced.keep(key, found)
    return found


def traced_body(fun: Callable, in_tree: Any, avals: Sequence[ShapedArray], fixed: dict[int, Any],
                words: dict[str, Any], count: int) -> tuple[ClosedJaxpr, list[Any], Any]:
    """Return the program of ``fun``, the values it closes over, and the structure of its result.

    Raises: TypeError if ``fun`` has no hash.
    """
    hash(fun)
    out_trees: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        given, keywords = in_tree.unflatten(leaves)
        rest = iter(given)
        args = [fixed[i] if i in fixed else next(rest) for i in range(count)]
        outs, out_tree = tree.flatten(fun(*args, **keywords, **words))
        check_outputs("checkpoint", fun, outs, out_tree)
        out_trees.append(out_tree)
        return outs

    closed = trace_flat(flat, avals, name="checkpoint", debug_name=name_of(fun))
    closed.jaxpr.origin = Origin("checkpoint / remat", fun, out_trees[0])
    return (*open_consts(closed), out_trees[0])

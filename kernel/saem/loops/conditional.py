"""How does a program choose one of several ways by a value it computes?

``cond`` and ``switch`` trace every branch and bind one primitive, ``cond``, with the number of the
branch as its first operand.  Where a stack of examples chooses differently, all branches run and
``select_n`` takes from each what belongs to it.

Read before: ``loops.carry``, ``transform.restructure``.  Read after: ``loops.scan``.
Invariant: all branches have the same operands and the same output types, weak types apart.
Source: the documentation of jax.lax.cond and jax.lax.switch; StableHLO specification, case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saem.compile.dispatch import put
from saem.compile.lowering import lower_block, with_values
from saem.compile.regions import write_case
from saem.core import axes, config, dtypes, errors, tree
from saem.core import jaxpr as jaxpr_module
from saem.core import refs as core_refs
from saem.core.arguments import described
from saem.core.avals import ShapedArray, aval_of, is_array_like
from saem.core.effects import DebugEffect
from saem.core.frames import boundary
from saem.core.jaxpr import Atom, ClosedJaxpr, Eqn, Var, eval_jaxpr, merge, pick
from saem.core.primitive import primitive
from saem.core.refs import is_ref, shifted
from saem.core.trace import Tracer, beneath, bind, bind_list, is_concrete
from saem.core.varying import vma_of
from saem.derivatives.stop_gradient import stop_gradient
from saem.loops.carry import (
    Body,
    check_callable,
    check_operands,
    differing,
    must_say,
    paths_of,
    pcast_of,
    run_at_once,
    trace_body,
    union_consts,
)
from saem.ops.compare import eq, ne
from saem.ops.convert import convert_element_type
from saem.ops.linear import broadcast_in_dim, literal
from saem.ops.select import clamp, select_n
from saem.transform.linear_maps import as_array
from saem.transform.linearize import (
    PartialTrace,
    partial_eval_jaxpr,
)
from saem.transform.nested import HigherOrder, Nested, without_unneeded
from saem.transform.restructure import rearranged, split_program, zeros_atom
from saem.transform.vmap import match_dim, vmap_flat

INDEX = np.dtype("int32")
# For each branch the platforms that take it, None for all that are not named.
Platforms = tuple[tuple[str, ...] | None, ...]


def platform_number(platforms: Platforms, platform: str) -> int:
    """Return the number of the entry that names ``platform``, or of the None among them.

    Raises: NotImplementedError if there is neither.
    """
    for number, names in enumerate(platforms):
        if names is None or platform in names or (platform == "gpu" and "cuda" in names):
            return number
    raise errors.explained(
        NotImplementedError, "platform.C3",
        f"MLIR translation rule for primitive 'platform_index(platforms={platforms})' not found "
        f"for platform {platform}", advice="Give platform_dependent a default, or run elsewhere.")


@primitive("cond")
class Cond(HigherOrder):
    """Run the program of ``branches`` whose number is the first operand, on the others.

    With ``branches_platforms`` the number is that of the platform, known when it is lowered.
    """

    branches: tuple[ClosedJaxpr, ...]
    branches_platforms: Platforms | None = None

    multiple_results = True

    @property
    def effects(self):
        return shifted(frozenset().union(*(b.effects for b in self.branches)), 1)

    @property
    def params(self):
        return {k: v for k, v in super().params.items() if v is not None}

    def of(self, branches: Sequence[ClosedJaxpr]) -> Cond:
        """Return the choice among programs made from these."""
        return Cond(tuple(branches), self.branches_platforms)

    @property
    def nested(self) -> Nested:
        return Nested(self.branches, 1)

    def rebuilt(self, nested, operands, results):
        return self.of(nested.programs)

    trimmed = without_unneeded

    def typing(self, index, *avals):
        for branch in self.branches:
            check_operands(self, branch.in_avals, avals)
        return self.branches[0].out_avals

    def evaluate(self, index, *xs):
        last = len(self.branches) - 1
        number = int(index) if 0 <= int(index) <= last else last
        return jaxpr_module.evaluate(self.branches[number], *xs)

    def lower(self, ctx, index, *xs):
        if self.branches_platforms is not None:
            number = platform_number(self.branches_platforms, ctx.module.platform)
            return lower_block(ctx, self.branches[number], xs)
        return write_case(ctx, index, self.branches[0].out_avals, [
            lambda branch=branch: lower_block(ctx, branch, xs) for branch in self.branches])

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> list[Any]:
        """Choose below ``trace`` what is known; record the choice of what is not."""
        index, *xs = args
        if not trace.is_known(index):
            return trace.emit(self, args)
        unknown = [not trace.is_known(x) for x in xs]
        known, rest, out_unknown, handed = self.branches[0].derived(
            ("cond", tuple(unknown)), lambda: split_branches(self.branches, unknown),
            self.branches[1:])
        known_args = pick(xs, unknown, False)
        outs: list[Any] = []
        if known:
            with beneath(trace):
                outs = bind_list(self.of(known.branches), [index, *known_args])
        plain = out_unknown.count(False)
        values = [*outs[plain:], *(known_args[i] for i in handed), *pick(xs, unknown)]
        late = trace.emit(self.of(rest.branches), [index, *values]) if rest else []
        return merge(out_unknown, late, outs[:plain])

    def batch(self, size, xs, dims):
        index, *xs = xs
        index_dim, *dims = dims
        if index_dim is not None and any(is_ref(aval_of(x)) for x in xs):
            return core_refs.chapter.batch_through_refs(
                self, size, [index, *xs], [index_dim, *dims])
        if index_dim is not None:
            return self.choose_each(size, match_dim(index, index_dim, 0, size), xs, dims)
        return super().batch(size, [index, *xs], [index_dim, *dims])

    def guards(self) -> list[Any]:
        """Return the effects that may be limited to some examples (checks).

        Raises: NotImplementedError if there are others, of which each example would need its own.
        """
        guards = [e for e in self.effects if hasattr(e, "only_where")]
        if not all(isinstance(e, DebugEffect) or e in guards for e in self.effects):
            raise errors.explained(
                NotImplementedError, "cond.effects",
                "IO effect not supported in vmap-of-cond, got "
                f"{', '.join(map(str, self.effects))} with a batched predicate.",
                advice="Move the effect out of the branches.")
        return guards

    def choose_each(self, size: int, index: Any, xs: Sequence[Any], dims: Sequence[int | None]
                    ) -> tuple[list[Any], list[int | None]]:
        """Run every branch on all examples and take each example's own.

        A result that is one operand in every branch is that operand.
        """
        guards = self.guards()
        # Operands that have derivatives are stacks along axis 0.
        inexact = [dtypes.is_inexact(aval_of(x).dtype) for x in xs]
        stacks = [match_dim(x, d, 0, size) if f else x for x, d, f in zip(xs, dims, inexact)]
        stack_dims = [0 if f else d for d, f in zip(dims, inexact)]
        results = []
        for number, branch in enumerate(self.branches):
            here = eq(index, np.asarray(number, INDEX))
            operands = [differentiated_where(here, x) if f else x for x, f in zip(stacks, inexact)]
            places = stack_dims
            if guards and branch.effects:
                branch = guards[0].only_where(branch)
                operands, places = [here, *operands], [0, *places]
            outs, out_dims = vmap_flat(
                lambda *args, branch=branch: eval_jaxpr(branch.jaxpr, branch.consts, *args),
                size, operands, places, axes.batching())
            results.append([match_dim(x, d, 0, size) for x, d in zip(outs, out_dims)])
        chosen, chosen_dims = [], []
        for cases, number in zip(zip(*results), self.forwarded()):
            if number is not None:
                chosen.append(as_array(xs[number]))
                chosen_dims.append(dims[number])
                continue
            chosen_dims.append(0)
            shape = aval_of(cases[0]).shape
            which = index if len(shape) == 1 else broadcast_in_dim(index, shape, (0,))
            chosen.append(select_n(which, *cases))
        return chosen, chosen_dims

    def forwarded(self) -> list[int | None]:
        """Return for each result the number of the operand that it is in every branch, or None."""
        found = []
        for outs in zip(*(b.jaxpr.outvars for b in self.branches)):
            numbers = {b.jaxpr.invars.index(v) if v in b.jaxpr.invars else None
                       for b, v in zip(self.branches, outs)}
            found.append(numbers.pop() if len(numbers) == 1 else None)
        return found

    def eager(self, *args: Any) -> list[Any]:
        return run_at_once(self.branches, (), self, args)


def differentiated_where(here: Any, x: Any) -> Any:
    """Return the stack ``x``, with derivatives only for the examples that ``here`` marks.

    What a branch that was not chosen makes of an example (an infinite slope, for one) must not
    reach its derivative.
    """
    still, shape = stop_gradient(x), aval_of(x).shape
    return select_n(broadcast_in_dim(here, shape, (0,)), still, x)


def split_branches(branches: Sequence[ClosedJaxpr], unknown: Sequence[bool]
                   ) -> tuple[Cond | None, Cond | None, list[bool], list[int]]:
    """Split every branch into what is known and what waits for ``unknown`` operands.

    Returns both choices (None if they do nothing), which outputs are unknown, and the numbers of
    known operands that the second takes as they are.  The operands of the second are residuals
    (places that branches share by type), those known operands, the unknown ones.
    """
    first = [partial_eval_jaxpr(b, tuple(unknown))[2] for b in branches]
    forced = [any(flags) for flags in zip(*first)]
    halves = [Halves.of(b, unknown, forced) for b in branches]
    places, handed = _shared_residuals(halves)
    early = Cond(tuple([half.early(places) for half in halves]))
    late = Cond(tuple([half.late(places, handed) for half in halves]))
    useful = not all(forced) or places or early.effects
    return (early if useful else None, late if any(forced) or late.effects else None,
            forced, handed)


class Halves(NamedTuple):
    """One branch in two: what is known, which makes ``residuals``, and the rest, which takes them.

    ``placed`` gives by number of a place the residual that is there.
    """

    known: ClosedJaxpr
    rest: ClosedJaxpr
    residuals: list[Atom]
    placed: dict[int, Atom]

    @classmethod
    def of(cls, branch: ClosedJaxpr, unknown: Sequence[bool], forced: Sequence[bool]) -> Halves:
        """Return the halves of ``branch``, in which no residual has a place yet."""
        known, rest, _, count = split_program(branch, unknown, forced)
        outvars = known.jaxpr.outvars
        return cls(known, rest, outvars[len(outvars) - count:], {})

    def early(self, places: Sequence[ShapedArray]) -> ClosedJaxpr:
        """Return the program of what is known, which returns a value of each of ``places`` too."""
        jaxpr = self.known.jaxpr
        results = jaxpr.outvars[:len(jaxpr.outvars) - len(self.residuals)]
        eqns: list[Eqn] = []
        held = [self.placed[i] if i in self.placed else zeros_atom(aval, eqns)
                for i, aval in enumerate(places)]
        return rearranged(self.known, jaxpr.invars, [*results, *held], after=eqns)

    def late(self, places: Sequence[ShapedArray], handed: Sequence[int]) -> ClosedJaxpr:
        """Return the program of the rest, which takes ``places`` and the operands ``handed``."""
        operands, inputs = self.known.jaxpr.invars, self.rest.jaxpr.invars
        inner = dict(zip(self.residuals, inputs))
        wanted = [*((self.placed.get(i), aval) for i, aval in enumerate(places)),
                  *((operands[i], operands[i].aval) for i in handed)]
        leading = [inner[v] if v in inner else Var(aval) for v, aval in wanted]
        return rearranged(self.rest, [*leading, *inputs[len(self.residuals):]],
                          self.rest.jaxpr.outvars)


def _shared_residuals(halves: Sequence[Halves]) -> tuple[list[ShapedArray], list[int]]:
    """Give the residuals of all branches places, which branches share by type.

    Returns the types of the places, and the numbers of the operands that are residuals: these need
    no place.
    """
    places: list[ShapedArray] = []
    handed: list[int] = []
    for half in halves:
        operands = half.known.jaxpr.invars
        for atom in half.residuals:
            if atom not in operands:
                number = _place(places, half.placed, atom.aval.strip_weak_type())
                half.placed[number] = atom
            elif operands.index(atom) not in handed:
                handed.append(operands.index(atom))
    return places, handed


def _place(places: list[ShapedArray], mine: dict[int, Any], aval: ShapedArray) -> int:
    """Return the number of a free place of type ``aval``, a new one if there is none."""
    for number, have in enumerate(places):
        if have == aval and number not in mine:
            return number
    places.append(aval)
    return len(places) - 1


# -- the functions ---------------------------------------------------------------------------------

_MISSING: Any = object()


@boundary
def cond(pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any,
         operand: Any = _MISSING) -> Any:
    """Return ``true_fun(*operands)`` if the scalar ``pred`` is true, else ``false_fun(*operands)``.

    Both are traced, one runs.  The results must have the same containers, shapes and dtypes.
    The older form ``cond(pred, true_operand, true_fun, false_operand, false_fun)`` is accepted.
    Raises: TypeError for a ``pred`` that is no scalar, or results that differ.

    >>> lax.cond(True, lambda x: x + 1, lambda x: x - 1, 5)
    Array(6, dtype=int32, weak_type=True)
    """
    if len(operands) == 2 and callable(operands[1]) and not callable(true_fun):
        first, second = true_fun, operands[0]
        yes, no = false_fun, operands[1]
        return cond(pred, lambda both: yes(both[0]), lambda both: no(both[1]), (first, second))
    if operand is not _MISSING:
        if operands:
            raise errors.explained(
                errors.ArgumentTypeError, "cond.C5",
                "if 'operand' keyword is passed then no positional operands can be passed, got "
                f"operand={operand!r} and positional operands {operands}.",
                advice="Pass all operands by position.")
        operands = (operand,)
    check_callable("cond", "true_fun and false_fun arguments", true_fun, false_fun)
    _check_pred(pred)
    if config.disable_jit.value and is_concrete(pred):
        return (true_fun if pred else false_fun)(*operands)
    if isinstance(pred, (bool, int, float, np.generic)):
        index: Any = np.asarray(bool(pred), INDEX)[()]
    else:
        aval = aval_of(pred)
        flag = pred if aval.dtype == bool else ne(pred, literal(0, aval.dtype))
        index = convert_element_type(flag, INDEX)
    names = ("true_fun", "false_fun")
    return choose("cond", index, (false_fun, true_fun), operands, names, (1, 0))


def _check_pred(pred: Any) -> None:
    what = ""
    if pred is None:
        what = "cond predicate is None"
    elif not is_array_like(pred):
        what = f"Pred must be a scalar, got {pred} of type {type(pred)}"
    elif aval_of(pred).shape:
        what = f"Pred must be a scalar, got {pred} of shape {aval_of(pred).shape}"
    else:
        dtype = aval_of(pred).dtype
        if not (dtypes.is_bool(dtype) or dtypes.is_integer(dtype) or dtypes.is_float(dtype)):
            what = f"Pred type must be either boolean or number, got {dtype.name}"
    if what:
        raise errors.explained(
            errors.ArgumentTypeError, "cond.C4", f"{what}.",
            advice="Compare, and reduce with jnp.all or jnp.any; to choose element by element use "
            "jnp.where.")


@boundary
def switch(index: Any, branches: Sequence[Callable], *operands: Any,
           operand: Any = _MISSING) -> Any:
    """Return ``branches[index](*operands)``; an ``index`` out of range chooses the nearest branch.

    Raises: TypeError for an ``index`` that is no integer scalar, or results that differ.

    >>> lax.switch(1, [lambda x: x, lambda x: x + 10], 5)
    Array(15, dtype=int32, weak_type=True)
    """
    if operand is not _MISSING:
        operands = (*operands, operand)
    branches = tuple(branches)
    check_callable("switch", "branches argument", *branches, should="a sequence of callables")
    _check_index(index)
    if not branches:
        raise errors.explained(
            errors.ArgumentError, "switch.C6", "Empty branch sequence: switch needs a branch.",
            advice="Pass at least one function.")
    last = len(branches) - 1
    if not last:
        return branches[0](*operands)
    if not isinstance(index, Tracer):
        number = min(max(int(np.asarray(index).astype(INDEX)), 0), last)
        if config.disable_jit.value:
            return branches[number](*operands)
        index = np.asarray(number, INDEX)[()]
    else:
        index = clamp(np.asarray(0, INDEX)[()], convert_element_type(index, INDEX),
                      np.asarray(last, INDEX)[()])
    names = tuple(f"branch {i}" for i in range(len(branches)))
    return choose("switch", index, branches, operands, names, range(len(branches)))


def _check_index(index: Any) -> None:
    what = ""
    if not is_array_like(index):
        what = f"Index type must be an integer, got {index}"
    elif aval_of(index).shape:
        what = f"Branch index must be scalar, got {index} of shape {aval_of(index).shape}"
    elif not dtypes.is_integer(aval_of(index).dtype):
        what = f"Index type must be an integer, got {index} as {aval_of(index).dtype.name}"
    if what:
        raise errors.explained(
            errors.ArgumentTypeError, "switch.C4", f"{what}.",
            advice="Use one int32, such as jnp.argmax gives; a condition goes to lax.cond.")


def choose(name: str, index: Any, branches: Sequence[Callable], operands: tuple,
           names: Sequence[str], order: Sequence[int], platforms: Platforms | None = None) -> Any:
    """Trace ``branches`` and bind the choice; ``order`` is that in which errors name them."""
    leaves, in_tree = tree.flatten(operands)
    avals = [aval_of(x) for x in leaves]
    # Functions of users may have effects: they are traced in the order in which they are given.
    traced = {number: trace_body(branches[number], in_tree, avals, name) for number in order}
    bodies = [traced[number] for number in range(len(branches))]
    first = order[0]
    for number in order[1:]:
        _check_alike(name, [branches[i] for i in (first, number)],
                     [bodies[i] for i in (first, number)], names[0], names[order.index(number)])
    programs, consts = union_consts(bodies, order)
    inputs = [*consts, *leaves]
    programs, passed = programs[0].derived(
        "passed on", lambda: _passed_on(programs), tuple(programs[1:]))
    outs = bind(Cond(programs, platforms), index, *with_values(programs, inputs))
    if len(outs) < len(passed):
        given = [None if place is None else inputs[place] for place in passed]
        computed = iter(outs)
        outs = [next(computed) if place is None else x if isinstance(x, Tracer) else put(x)
                for place, x in zip(passed, given)]
    return bodies[0].out_tree.unflatten(outs)


def _passed_on(programs: Sequence[ClosedJaxpr]
               ) -> tuple[tuple[ClosedJaxpr, ...], list[int | None]]:
    """Return ``programs`` without results that are one and the same input in all of them.

    Beside them, for each result the number of that input, or None.
    """
    numbers = [{id(v): number for number, v in enumerate(program.jaxpr.invars)}
               for program in programs]
    found = []
    for atoms in zip(*(program.jaxpr.outvars for program in programs)):
        places = {known.get(id(atom)) for known, atom in zip(numbers, atoms)}
        found.append(places.pop() if len(places) == 1 else None)
    kept = [number is None for number in found]
    if not all(kept):
        programs = [ClosedJaxpr(program.jaxpr.replace(outvars=pick(program.jaxpr.outvars, kept)),
                                program.consts) for program in programs]
    return tuple(programs), found


def _check_alike(name: str, funs: Sequence[Callable], bodies: Sequence[Body], first: str,
                 second: str) -> None:
    """Refuse two branches whose results differ in containers, shapes or dtypes."""
    a, b = bodies
    strict = any(must_say(fun, a.closed, b.closed) for fun in funs)
    differ = a.out_tree != b.out_tree or any(map(
        lambda x, y: differing(x, y, strict), a.out_avals, b.out_avals))
    who = f"  {first} is {described(funs[0])}\n  {second} is {described(funs[1])}\n" \
        if differ else ""
    if a.out_tree != b.out_tree:
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C2",
            f"{name} branch outputs must have the same pytree structure, but they differ:\n{who}"
            f"  {first} returned {a.out_tree}\n  {second} returned {b.out_tree}",
            advice="Return the same containers from both.")
    if not who:
        return
    lines = []
    missing: frozenset = frozenset()
    for path, x, y in zip(paths_of(a.out_tree), a.out_avals, b.out_avals):
        if differing(x, y, strict):
            missing |= vma_of(x) ^ vma_of(y)
            at = f" at path {tree.keystr(path)}" if path else ""
            lines.append(
                f"  The output of {first}{at} has type {x.str_short()} but the "
                f"corresponding output of {second} has type {y.str_short()}, "
                f"so {differing(x, y, strict)}.")
    raise errors.explained(
        errors.ArgumentTypeError, f"{name}.C3",
        f"{name} branches must have equal output types but they differ.\n{who}" + "\n".join(lines),
        advice=f"Apply `{pcast_of(missing)}` to the result that varies less." if missing else
        "Convert one result, for example with .astype or jnp.zeros_like.")


__all__ = ["Cond", "choose", "cond", "platform_number", "switch"]

"""How do interpreters process a function with rules of its own?

As itself, a Python function, for as long as numbers are known: under ``grad`` and ``vmap`` outside
jit, rules are called on values, so prints and Python's control flow work in them.  Where a program
is being written down it becomes one equation, which keeps its rules for later transformations.

Read before: ``core.trace``, ``transform.staging``.  Read after: ``derivatives.custom_jvp``,
``derivatives.custom_vjp``.
Invariant: what such a function closes over becomes operands of its equation, scalars excepted.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from saem.core import axes, errors, tree
from saem.core.arguments import check_outputs, name_of
from saem.core.avals import ShapedArray, aval_functions, aval_of, is_array_like
from saem.core.jaxpr import ClosedJaxpr, Origin, eval_jaxpr
from saem.core.primitive import Primitive
from saem.core.record import Record
from saem.core.trace import Trace, Tracer, bind, eval_trace, run_under, state
from saem.jit.call import ProgramCall
from saem.transform.derivatives import as_array
from saem.transform.jvp import JVPTrace
from saem.transform.linearize import PartialTrace
from saem.transform.nested import Nested
from saem.transform.restructure import open_consts
from saem.transform.staging import trace_flat
from saem.transform.vmap import BatchTrace, batch_jaxpr, fronted, match_dim, vmap_flat

# -- arguments -------------------------------------------------------------------------------------


class Signature:
    """The parameters of a function with rules; which of them stay Python values.

    Raises: ValueError for a name in ``nondiff_argnames`` that the function does not have.
    """

    def __init__(self, kind: str, fun: Callable, nondiff_argnums: Any, nondiff_argnames: Any):
        self.kind = kind
        self.fun = fun
        try:
            self.signature: inspect.Signature | None = inspect.signature(fun)
        except (ValueError, TypeError):
            self.signature = None
        parameters = list(self.signature.parameters.values()) if self.signature else []
        self.positional = [
            p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        numbers = list(nondiff_argnums or ())
        names = [nondiff_argnames] if isinstance(nondiff_argnames, str) else list(nondiff_argnames)
        known = [p.name for p in self.positional]
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{kind}: nondiff_argnames has {name!r}, but {name_of(fun)} takes {known}.")
            numbers.append(known.index(name))
        self.nondiff = tuple(sorted(set(map(operator.index, numbers))))

    def resolve(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """Return all arguments by position, defaults filled in; keyword-only ones keep theirs.

        Raises: TypeError for a given keyword that has no position.
        """
        if not kwargs and (self.signature is None or len(args) == len(self.positional)):
            return args
        if self.signature is None:
            problem = f"its signature is not known, and it was given {sorted(kwargs)} by keyword"
        else:
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as error:
                problem = str(error)
            else:
                # With its defaults, since a keyword after one that is left out has a position too.
                bound.apply_defaults()
                placeless = [name for name in bound.kwargs if name in kwargs]
                if not placeless:
                    return bound.args
                problem = ("The following keyword arguments could not be resolved to positions: "
                           f"{', '.join(placeless)}")
        raise errors.explained(
            errors.ArgumentTypeError, f"{self.kind}.C1",
            f"The input arguments to the {self.kind}-decorated function {name_of(self.fun)} could "
            f"not be resolved to positional-only arguments. Binding failed with the error:\n"
            f"{problem}",
            advice="Rules take arguments by position. Make keyword-only arguments ordinary ones.")

    def split(self, args: tuple) -> Arguments:
        """Return the differentiable leaves of ``args`` beside what does not change."""
        places = {i + len(args) if i < 0 else i for i in self.nondiff}
        if places and min(places) < 0:
            raise ValueError(f"Positional argument indices must be at least -{len(args)}, the "
                             f"number of arguments; got nondiff_argnums={self.nondiff}.")
        static = {i: args[i] for i in sorted(places) if i < len(args)}
        if len(static) < len(places):
            raise IndexError(
                f"{self.kind}: nondiff_argnums={self.nondiff}, but {name_of(self.fun)} was called "
                f"with {len(args)} positional arguments.")
        found = Arguments([x for i, x in enumerate(args) if i not in static], static, len(args))
        for number, x in enumerate(found.leaves):
            if type(x) not in aval_functions and not is_array_like(x):
                raise errors.explained(
                    errors.ArgumentTypeError, f"{self.kind}.C9",
                    f"Error interpreting argument to {self.kind}_call as a JAX value. Argument "
                    f"{x!r} of type {type(x)} is not a valid JAX type, but was passed to the "
                    f"{self.kind} function {name_of(self.fun)}, as its leaf {number}.",
                    advice="Name such an argument in nondiff_argnums.")
        return found


class RuledFunction:
    """A Python function with rules of its own, as a user holds it.

    Arguments in ``nondiff_argnums`` or ``nondiff_argnames`` may be any Python value.
    """

    # Methods that give rules to the function inside, so that decorators stack.
    _inner_rules: ClassVar[tuple[str, ...]] = ()

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] | int = (),
                 nondiff_argnames: Sequence[str] | str = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.signature = Signature(type(self).__name__, fun, nondiff_argnums, nondiff_argnames)
        self.nondiff_argnums = self.signature.nondiff
        self.symbolic_zeros = False

    def __getattr__(self, name: str) -> Any:
        if name in self._inner_rules:
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, by its rules where it is transformed."""
        raise NotImplementedError(f"{type(self).__name__}.__call__")


class Arguments:
    """The arguments of one call: differentiable ``leaves``, their structure, static values."""

    def __init__(self, dynamic: Sequence[Any], static: dict[int, Any], count: int):
        self.leaves, self.in_tree = tree.flatten(tuple(dynamic))
        self.static = static
        self.count = count

    def dynamic(self, leaves: Sequence[Any]) -> tuple:
        """Return the differentiable arguments with ``leaves`` in place of their leaves."""
        return self.in_tree.unflatten(leaves)

    def all(self, leaves: Sequence[Any]) -> list[Any]:
        """Return every argument in the order of the call."""
        dynamic = self.dynamic(leaves)
        if not self.static:
            return list(dynamic)
        rest = iter(dynamic)
        return [self.static[i] if i in self.static else next(rest) for i in range(self.count)]

    def nondiff(self) -> list[Any]:
        """Return the static values in the order of the call."""
        return list(self.static.values())


class FlatPrimal:
    """The function that has the rules, on flat leaves; keeps the structure of its result."""

    def __init__(self, fun: Callable, arguments: Arguments):
        self.fun = fun
        self.arguments = arguments
        self.out_tree: Any = None
        # What a staged program returns, for checking rules against it; None outside programs.
        self.out_avals: Sequence[ShapedArray] | None = None

    def __call__(self, *leaves: Any) -> list[Any]:
        # Python numbers become arrays, so that a function may ask for their dtype and shape.
        args = self.arguments.all([as_array(x) for x in leaves])
        outs, self.out_tree = tree.flatten(self.fun(*args))
        check_outputs("custom_rule", self.fun, outs, self.out_tree)
        return outs

    def check_outputs(self, who: str, outs: Sequence[Any], out_tree: Any) -> None:
        """Refuse a rule whose primal outputs are not those of the function."""
        if self.out_avals is None:
            self.out_tree = out_tree
            return
        needed = types_in(self.out_tree, self.out_avals)
        if out_tree != self.out_tree:
            what = "of the same container/pytree structure), but instead the rule output's first " \
                "element had container/pytree structure"
        elif any(aval_of(x).strip_weak_type() != a.strip_weak_type()
                 for x, a in zip(outs, self.out_avals)):
            what = "with leaves of the same shape/dtype), but instead the rule output's first " \
                "element had shapes/dtypes of"
        else:
            return
        got = types_in(out_tree, [aval_of(x) for x in outs])
        name = name_of(self.fun)
        raise errors.explained(
            errors.ArgumentTypeError, "custom.C4",
            f"{who} must produce a pair (list or tuple of length two) where the first element "
            f"represents the primal output (equal to the output of the decorated function {name}, "
            f"and in particular {what}:\n    {got}\nwhile {name} had:\n    {needed}",
            advice=f"Compute the primal output in the rule as {name} does, or call {name} there.")


def types_in(structure: Any, avals: Sequence[ShapedArray]) -> str:
    """Return ``structure`` with types for leaves, as a message shows it."""
    shown = structure.unflatten([aval.str_short() for aval in avals])
    return str(shown).replace("'", "")


def pair(who: str, what: str, out: Any) -> Sequence[Any]:
    """Return ``out``, which must be a pair; ``what`` says of what, up to what it is instead."""
    if isinstance(out, (tuple, list)) and len(out) == 2:
        return out
    raise errors.explained(
        errors.ArgumentTypeError, "custom.C3",
        f"{who} must produce a pair (list or tuple of length two) {what} {out}.",
        advice="Return both, in a tuple.")


# -- zeros -----------------------------------------------------------------------------------------


class SymbolicZero:
    """A tangent or cotangent that is zero and was never computed; ``aval`` is its type."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: self.aval.size)

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """Return the zero tangent of ``value``."""
        return SymbolicZero(aval_of(value).to_tangent_aval())

    def __repr__(self) -> str:
        return "SymbolicZero"


def none_for_zeros(moved: Sequence[Any]) -> list[Any]:
    """Return tangents or cotangents with None for those that were never computed."""
    return [None if isinstance(t, SymbolicZero) else t for t in moved]


# -- interpreters ----------------------------------------------------------------------------------

class Call(Primitive):
    """A call before it is an equation: Python functions on flat values, and no program yet.

    ``run`` is the function on these operands (examples or stacks), ``flat`` the user's own, which
    knows the structure of its result.  Subclasses define ``jvp``, ``batched`` and ``staged``.
    """

    flat: FlatPrimal | WrappedPrimal
    run: Callable[..., list[Any]]
    rule: Any

    multiple_results = True


class WrappedPrimal(Record):
    """A function that has rules as an interpreter of a library binds it: ``fun.call_wrapped``."""

    fun: Any


class WrappedRule:
    """A rule of such a function, which may be called several times."""

    def __init__(self, fun: Any):
        self.fun = fun
        self.ran = False

    @property
    def __name__(self) -> str:
        return name_of(self.fun)

    def __call__(self, *args: Any) -> list[Any]:
        fun, self.ran = self.fun.anew() if self.ran else self.fun, True
        return list(fun.call_wrapped(*args))


class RuledCall(ProgramCall):
    """An equation that calls a program which brings a rule; its first ``num_consts`` inputs, what
    the function closed over, are none of the rule's."""

    __slots__ = ()
    holds = "call_jaxpr"
    rule_parameter: ClassVar[str]
    batched_rule: ClassVar[Callable[[Any, Any], Any]]
    # ``further(rule, program, count, consts)``: the rule for a program with further results.
    further: ClassVar[Callable[[Any, ClosedJaxpr, int, int], Any]]

    @property
    def nested(self) -> Nested:
        return Nested((self.program,), ruled=True)

    def rebuilt(self: Any, nested, operands, results):
        changes = {self.holds: nested.programs[0]}
        if count := list(results).count(None):
            rule = self.further(getattr(self, self.rule_parameter), nested.programs[0], count,
                                self.num_consts)
            changes |= {self.rule_parameter: rule, "num_consts": 0}
        return dataclasses.replace(self, **changes)

    def function(self: Any, consts: Sequence[Any]) -> Callable[..., list[Any]]:
        """Return the function of explicit inputs; ``consts`` is what it closes over."""
        program = self.program
        return lambda *xs: eval_jaxpr(program.jaxpr, program.consts, *consts, *xs)

    def of_explicit(self: Any, tangents: Sequence[Any]) -> Sequence[Any]:
        """Return the tangents of the inputs that the rule speaks of; the others must have none."""
        if any(t is not None for t in tangents[:self.num_consts]):
            raise closure_differentiated(self.name.removesuffix("_call"))
        return tangents[self.num_consts:]

    def batch(self: Any, size, xs, dims):
        flags = tuple(d is not None for d in dims)
        program, out_batched = batch_jaxpr(self.program, size, flags)
        batch = Batch(size, [0 if b else None for b in flags[self.num_consts:]])
        batch.out_batched = list(out_batched)
        rule = self.batched_rule(getattr(self, self.rule_parameter), batch)
        call = type(self)(**{**self.params, self.holds: program, self.rule_parameter: rule})
        return bind(call, *fronted(xs, dims)), [0 if b else None for b in out_batched]


_STEPPED = (JVPTrace, BatchTrace, PartialTrace)


def apply(call: Any, args: Sequence[Any]) -> list[Any]:
    """Interpret ``call`` on flat ``args`` under the current interpreter.

    It runs, runs its ``jvp``, becomes the same kind of call on stacks (``batched(batch)``), or
    binds itself as an equation (``staged(args)``).
    """
    trace: Trace = state.trace
    while isinstance(trace, (JVPTrace, PartialTrace)) and not _watches(trace, args):
        assert trace.parent is not None
        trace = trace.parent
    saved = state.trace
    state.trace = trace
    try:
        if trace is eval_trace:
            return call.run(*args)
        if isinstance(trace, JVPTrace):
            return trace.process(call, tuple(args))
        if isinstance(trace, BatchTrace) and _numbers_below(trace):
            pairs = [trace.split(x) for x in args]
            batch = Batch(trace.size, [d for _, d in pairs], trace)
            state.trace = trace.parent
            outs = apply(call.batched(batch), [x for x, _ in pairs])
            return [trace.wrap(x, 0 if b else None) for x, b in zip(outs, batch.out_batched or ())]
        return call.staged(args)
    finally:
        state.trace = saved


def _watches(trace: Trace, args: Sequence[Any]) -> bool:
    return any(isinstance(x, Tracer) and x._trace is trace for x in args)


def _numbers_below(trace: Trace) -> bool:
    """Return whether nothing below ``trace`` writes programs down."""
    return all(isinstance(t, _STEPPED) or t is eval_trace for t in trace.ancestors())


class Batch:
    """One application of vmap to a function with rules: how each of them is run on stacks.

    ``trace`` is the interpreter of the vmap if it is at work, ``axis`` its name if it has one.
    ``out_batched`` is decided by the function or, where it is never run, by its rule; later
    runs must agree.
    """

    def __init__(self, size: int, dims: Sequence[int | None], trace: BatchTrace | None = None):
        self.size = size
        self.dims = list(dims)
        self.trace = trace
        self.axis = axes.batching() if trace is None else getattr(trace, "axis", None)
        self.out_batched: list[bool] | None = None

    def run(self, fun: Callable[..., Sequence[Any]], xs: Sequence[Any],
            dims: Sequence[int | None] | None = None) -> tuple[list[Any], list[int | None]]:
        """Run ``fun`` of flat examples on stacks along ``dims``; returns stacks and axes.

        It runs on the caller's own interpreter while that works above the current one, so that
        stacks a function closes over are understood; in a backward pass, for example, on a new one.
        """
        dims = self.dims if dims is None else dims
        own = self.trace
        if own is None or not own.live or all(t is not state.trace for t in own.ancestors()):
            return vmap_flat(fun, self.size, xs, dims, self.axis)
        outs = run_under(own, fun, [own.wrap(x, d) for x, d in zip(xs, dims)])
        pairs = [own.split(x) for x in outs]
        return [x for x, _ in pairs], [d for _, d in pairs]

    def settle(self, outs: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
        """Return outputs with their batch axis in front, batched as has been decided."""
        if self.out_batched is None:
            self.out_batched = [d is not None for d in dims]
        return [self.front(x, d) if b else x for x, d, b in zip(outs, dims, self.out_batched)]

    def front(self, x: Any, dim: int | None) -> Any:
        return match_dim(x, dim, 0, self.size)


def stage(flat: FlatPrimal | WrappedPrimal, args: Sequence[Any], name: str,
          run: Callable[..., list[Any]]) -> tuple[ClosedJaxpr, list[Any]]:
    """Trace ``run`` for ``args``: its program, and what it closes over as leading operands."""
    closed = trace_flat(run, [aval_of(x) for x in args], name=name, debug_name=name_of(flat.fun))
    if run is flat and isinstance(flat, FlatPrimal):
        closed.jaxpr.origin = Origin(name.removesuffix("_call"), flat.fun, flat.out_tree)
        flat.out_avals = closed.out_avals
    return open_consts(closed)


def closure_differentiated(kind: str) -> Exception:
    """Return the error for a derivative in what a function with rules closes over."""
    return errors.explained(
        errors.UnexpectedTracerError, f"{kind}.C5",
        f"Detected differentiation of a {kind} function with respect to a closed-over value. That "
        f"isn't supported because the custom rule only specifies how to differentiate the {kind} "
        "function with respect to explicit input parameters.",
        advice="Pass the closed-over value to the function as an argument, and give the rule a "
        "derivative for it.")

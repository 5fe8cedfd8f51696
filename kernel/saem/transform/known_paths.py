"""How is a gradient that was computed before computed with less work in Python?

Outside ``jit`` a gradient runs jvp rules, records a linear program and transposes it, each time.
But a function that is called again mostly does the same operations on the same types.  They are its
*path*.  What comes after the function itself depends on nothing but the path and the numbers along
it, so it is one compiled program (the *pullback* of the path), found by content:

- At first everything is done as ``transform.linearize`` does it, and the path is written down.
- When the same path has ended ``SEEN_BEFORE`` times, its pullback is compiled, so that XLA rounds
  each operation as it does alone.  It is used only if all its bits agree with what the rules give,
  on these numbers and on others.
- From then on ``PathTrace`` follows: it runs each operation of the function at once, on its
  numbers, and puts off tangents as long as the operations are those of a path.  At the end of one
  it calls the pullback.  An operation that was not expected leaves the path: the tangents that
  were put off are computed by the rules, in their order, and all goes on as at first.

So the function itself runs each time, and may read the numbers that it computes.

Read before: ``transform.linearize``.  Read after: ``transform.derivatives``.
Invariant: following changes no bit, no type and no error (tests/kernel/test_known_paths.py).
Source: Griewank and Walther 2008, chapter 6 (what a reverse sweep needs of the forward one).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem._jaxlib import ArrayImpl
from saem.compile.dispatch import build, make_fast, placement, primitive_callable, put
from saem.compile.quick import generators_agree
from saem.core import config, dtypes, errors, finite, tree
from saem.core.avals import Seen, ShapedArray, aval_of
from saem.core.events import bus
from saem.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, eval_jaxpr
from saem.core.kept import Kept
from saem.core.primitive import Primitive
from saem.core.trace import Mark, Trace, bind, current, eval_trace, state
from saem.ops.arithmetic import Div, Mul
from saem.ops.linear import ones_of
from saem.placement.devices import devices
from saem.transform.jvp import JVPTrace, JVPTracer
from saem.transform.linearize import Linearized, PartialTrace, linear_part, linearize_flat
from saem.transform.staging import dead_code_free, trace_flat

# The border.  A pullback compiles in the time of some hundred calls by the rules.
SEEN_BEFORE = 10
# Paths are kept of so many operations, and as long as their values are so many numbers together.
MOST_STEPS = 100
MOST_NUMBERS = 1 << 20
# On how many further numbers a pullback is compared.
DRAWS = 4
# A function that leaves its paths so many times in succession is not followed any longer.
MOST_DEPARTURES = 8

_SCALARS = (bool, int, float, complex)
_READS_NUMBERS = (errors.ConcretizationTypeError, errors.TracerArrayConversionError,
                  errors.TracerIntegerConversionError)


class Step:
    """An operation on a path, and the steps that were seen to follow it."""

    __slots__ = ("after", "moves", "pullbacks", "run")

    def __init__(self, run: Any, moves: bool) -> None:
        self.run = run  # the operation, compiled
        self.moves = moves  # whether its result has a tangent
        self.after: dict[tuple, Step] = {}
        self.pullbacks: dict[int, Pullback] = {}  # by the place of the function's result


class Start(Step):
    """Where all paths of one function from inputs of the same types begin."""

    __slots__ = ("departures", "followed", "given_up", "steps")

    def __init__(self) -> None:
        super().__init__(None, True)
        self.steps = 0
        self.departures = 0  # how often a path was left since one was last ended
        self.followed = False  # whether a path has a pullback
        self.given_up = False


starts = Kept()


class PathTrace(JVPTrace):
    """Runs jvp rules or, while the operations are those of a known path, puts tangents off.

    Of a tracer whose tangent is put off, ``tangent`` is the number of the operation that made it
    (inputs count down from -1).
    """

    stack = ("linearize", "jvp")

    def __init__(self, start: Start, xs: Sequence[Any], nonzero: Sequence[bool]):
        self.parent = eval_trace
        self.start = start
        # The last operation on the path that is followed, None if there is none.
        self.step: Step | None = start if start.followed else None
        # What was done so far: operation, operands, result.
        self.taken: list[tuple[Primitive, tuple, Any]] = []
        self.is_path = True
        self.numbers = 0
        self.inputs = [JVPTracer(self, x, -1 - i) if nz else x
                       for i, (x, nz) in enumerate(zip(xs, nonzero))]
        if self.step is None:
            self.begin_tangents()

    def process(self, prim: Primitive, args: tuple) -> Any:
        if self.step is None:
            return self.by_rules(prim, args)
        key: list[Any] = [prim]
        primals = []
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                key.append(x.tangent)
                primals.append(x.primal)
            else:
                key.append(x.aval if type(x) is ArrayImpl else kind_of(x))
                primals.append(x)
        step = self.step.after.get(tuple(key)) if prim.eager is None else None
        if step is None:
            if any(map(self.is_mine, args)) or prim.touches_refs:
                self.leave()
            return self.by_rules(prim, args)
        state.trace = eval_trace
        try:
            out = step.run(*primals)
        finally:
            state.trace = self
        if step.moves:
            out = JVPTracer(self, out, len(self.taken))
        self.step = step
        self.taken.append((prim, args, out))
        return out

    def is_mine(self, x: Any) -> bool:
        return type(x) is JVPTracer and x._trace is self

    def by_rules(self, prim: Primitive, args: tuple) -> Any:
        """Process an operation by its jvp rule, and write it down."""
        out = super().process(prim, args)
        if self.is_path and any(map(self.is_mine, args)):
            self.is_path = is_one_call(prim) and len(self.taken) < MOST_STEPS
            if self.is_path:
                self.taken.append((prim, args, out))
                self.numbers += aval_of(out).size
                self.is_path = self.numbers <= MOST_NUMBERS
            if not self.is_path:
                self.taken = []
        return out

    def begin_tangents(self) -> None:
        """Let the inputs have tangents that are not known: from here on all is linearized."""
        self.parent = partial = PartialTrace(eval_trace, "linearize")
        for x in self.inputs:
            if type(x) is JVPTracer:
                x.tangent = partial.new_unknown(x.aval.to_tangent_aval())

    def leave(self) -> None:
        """Compute the tangents that were put off; from here on the rules are run at once."""
        self.step = None
        self.start.departures += 1
        if self.start.departures > MOST_DEPARTURES:
            self.start.given_up = True
        self.begin_tangents()
        for prim, args, out in self.taken:
            if type(out) is JVPTracer:
                out.tangent = super().process(prim, args).tangent

    def gradients(self, results: Sequence[Any]) -> list[Any]:
        """Return the gradients of the one result of the function, None where they are zero."""
        (result,) = results
        if self.step is not None:
            found = self.step.pullbacks.get(result.tangent) if self.is_mine(result) else None
            values = found.values(self) if found is not None and found.program is not None else None
            if found is not None and values is not None:
                self.start.departures = 0
                return found.gradients(values)
            self.leave()
        primal, tangent = self.split(result)
        linear = linear_part(self.parent, [primal], [tangent],
                             [aval_of(self.split(x)[0]) for x in self.inputs],
                             list(map(self.is_mine, self.inputs)))
        gradients = pulled_back(linear)
        if self.is_path and self.is_mine(result):
            self.learn(result, gradients)
        return gradients

    def learn(self, result: JVPTracer, gradients: Sequence[Any]) -> None:
        """Add the path to those of the function."""
        step: Step = self.start
        number = {id(x): -1 - i for i, x in enumerate(self.inputs)}
        for at, (prim, args, out) in enumerate(self.taken):
            key = prim, *[number[id(x)] if self.is_mine(x) else
                          x.aval if type(x) is ArrayImpl else kind_of(x) for x in args]
            number[id(out)] = at
            if None in key:
                return
            if key not in step.after:
                step.after[key] = Step(primitive_callable(prim), self.is_mine(out))
                self.start.steps += 1
                if self.start.steps > 4 * MOST_STEPS:
                    self.start.given_up = True
            step = step.after[key]
        place = number[id(result)]
        step.pullbacks.setdefault(place, Pullback()).learn(self, place, gradients)


class NotSeparate(Exception):
    """A program that would not give the bits of its operations: it goes by the rules."""


class Given(Trace):
    """Hands operations on, but for those of which the result is known."""

    def __init__(self, parent: Trace):
        self.parent = parent
        self.stack = parent.stack
        self.results: dict[tuple, Any] = {}

    def process(self, prim: Primitive, args: tuple) -> Any:
        known = self.results.get((prim, *map(id, args)))
        if known is not None:
            return known
        with current(self.parent):
            return self.parent.process(prim, args)


class Pullback:
    """The program of the values along a path to the gradients of its inputs."""

    __slots__ = ("nonzero", "program", "seen", "sources")

    def __init__(self) -> None:
        self.seen = 0  # how often the path ended here
        # The compiled program, once it was compared with the rules; None: not yet, or it differs.
        self.program: Any = None
        # Which values it takes: the number of the step, and of its operand (-1: its result).
        self.sources: list[tuple[int, int]] = []
        self.nonzero: list[bool] = []

    def values(self, trace: PathTrace) -> list[Any] | None:
        """Return what the program takes, None if one is not on a single CPU."""
        found = []
        for step, place in self.sources:
            if step < 0:
                x = trace.inputs[-1 - step]
            else:
                _, args, out = trace.taken[step]
                x = out if place < 0 else args[place]
            if type(x) is JVPTracer:
                x = x.primal
            if type(x) is ArrayImpl and getattr(x._sharding, "_device", None) not in cpus():
                return None
            found.append(x)
        return found

    def gradients(self, values: Sequence[Any]) -> list[Any]:
        """Return the gradients of the inputs, None where they are zero."""
        got = iter(self.program(*values))
        return [next(got) if nz else None for nz in self.nonzero]

    def learn(self, trace: PathTrace, result: int, gradients: Sequence[Any]) -> None:
        """Compile the program once the path was seen often; keep it if it gives the same bits."""
        self.seen += 1
        if self.seen != SEEN_BEFORE:
            return
        try:
            closed, self.sources = pullback_program(trace, result)
        except (NotSeparate, *_READS_NUMBERS):
            return
        self.nonzero = [ct is not None for ct in gradients]
        values = self.values(trace)
        if values is None:
            return
        wanted = [ct for ct in gradients if ct is not None]
        program = compiled(closed)
        try:
            same = gives(program, values, wanted) and agrees(program, closed, values)
        except _jaxlib.JaxRuntimeError:  # this XLA has no such options
            same = False
        if same:
            self.program = program
            trace.start.followed = True


def gives(program: Callable, values: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Return whether ``program`` gives the types and bits of ``wanted``."""
    got = program(*values)
    return same_types(got, wanted) and same_bits(got, wanted)


def agrees(program: Callable, closed: ClosedJaxpr, values: Sequence[Any]) -> bool:
    """Return whether ``program`` gives the bits of ``closed`` step by step, on other numbers.

    A rounding that differs may not show on few or special numbers, such as zeros.
    """
    random = np.random.default_rng(0)
    for _ in range(DRAWS):
        drawn = [near(x, random) for x in values]
        if not same_bits(program(*drawn), eval_jaxpr(closed.jaxpr, closed.consts, *drawn)):
            return False
    return True


def near(x: Any, random: np.random.Generator) -> Any:
    """Return a number or an array like ``x``: floats are between half of it and three halves."""
    dtype = aval_of(x).dtype
    if not dtypes.is_inexact(dtype):
        return x
    wide = np.asarray(x).astype(complex if dtypes.scalar_kind(dtype) == "complex" else float)
    factors = random.uniform(0.5, 1.5, wide.shape)
    drawn = np.where(wide == 0, factors, wide * factors).astype(dtype)
    if type(x) is ArrayImpl:
        return put(drawn)
    return drawn if type(x) is np.ndarray else type(x)(drawn[()])


def same_types(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two lists hold arrays of the same types, bound to their places alike."""
    return all(type(a) is type(b) is ArrayImpl and a.aval == b.aval
               and a._committed == b._committed for a, b in zip(some, others))


def same_bits(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two lists of arrays hold the same bits, NaNs being all the same."""
    return all(bits(a) == bits(b) for a, b in zip(some, others))


def bits(x: Any) -> bytes:
    x = np.asarray(x)
    return np.where(x != x, x.dtype.type(np.nan), x).tobytes() if dtypes.is_inexact(x.dtype) \
        else x.tobytes()


def kind_of(x: Any) -> Any:
    """Return what stands for the type of a number or NumPy array, None if it is another object."""
    kind = type(x)
    if kind is np.ndarray:
        return x.shape, x.dtype
    return kind if kind in _SCALARS or isinstance(x, np.generic) else None


def is_one_call(prim: Primitive) -> bool:
    """Return whether ``prim`` runs as one compiled call, with one result.

    What its jvp rule does follows from its parameters and the types, then: such a primitive calls
    no function of a user and reads no numbers.
    """
    return prim.eager is None and not prim.multiple_results and not prim.touches_refs


@functools.cache
def cpus() -> frozenset:
    """The devices that are CPUs."""
    return frozenset(d for d in devices("cpu") if d.platform == "cpu")


def sources_of(trace: PathTrace) -> list[list[tuple[int, int]]]:
    """Return for each step where its operands are from: (step, -1) is the result of a step,
    (-1 - i, 0) the input ``i``, and (step, place) an operand of this step that is none of them.
    """
    made = {id(x): (-1 - i, 0) for i, x in enumerate(trace.inputs)}
    found = []
    for number, (_, args, out) in enumerate(trace.taken):
        found.append([made.get(id(x), (number, place)) if type(x) is JVPTracer else (number, place)
                      for place, x in enumerate(args)])
        made[id(out)] = number, -1
    return found


def pullback_program(trace: PathTrace, result: int
                     ) -> tuple[ClosedJaxpr, list[tuple[int, int]]]:
    """Return the program of the path that ends in the step ``result``, and the values it takes."""
    operands = sources_of(trace)
    values = {(-1 - i, 0): x for i, x in enumerate(trace.inputs)}
    for number, ((_, args, out), sources) in enumerate(zip(trace.taken, operands)):
        values.update({s: x for s, x in zip(sources, args) if s not in values})
        values[number, -1] = out
    values = {s: x.primal if type(x) is JVPTracer else x for s, x in values.items()}

    def pull(*flat: Any) -> list[Any]:
        given = Given(state.trace)
        value = dict(zip(values, flat))
        for number, ((prim, _, _), sources) in enumerate(zip(trace.taken, operands)):
            key = prim, *[id(value[s]) for s in sources]
            value[number, -1] = given.results.setdefault(key, value[number, -1])

        def once_more(*inputs: Any) -> list[Any]:
            now = {**value, **{(-1 - i, 0): x for i, x in enumerate(inputs)}}
            for number, ((prim, _, out), sources) in enumerate(zip(trace.taken, operands)):
                if type(out) is JVPTracer:
                    now[number, -1] = again = bind(prim, *[now[s] for s in sources])
                    if again.primal is not value[number, -1]:
                        raise NotSeparate  # its rule computes the result in another way
            return [now[result, -1] if result >= 0 else now[result, 0]]

        with current(given):
            nonzero = [type(x) is JVPTracer for x in trace.inputs]
            _, linear = linearize_flat(once_more, flat[:len(nonzero)], nonzero)
            cts = linear.backward([ones_of(linear.out_avals[0])])
        return [ct for ct in cts if ct is not None]

    closed = trace_flat(pull, [aval_of(x) for x in values.values()], name="pullback")
    jaxpr = separated(dead_code_free(closed.jaxpr))
    read = {a for eqn in jaxpr.eqns for a in eqn.invars if not isinstance(a, Literal)}
    read.update(a for a in jaxpr.outvars if not isinstance(a, Literal))
    kept = [(s, v) for s, v in zip(values, jaxpr.invars) if v in read]
    return (ClosedJaxpr(jaxpr.replace(invars=[v for _, v in kept]), closed.consts),
            [s for s, _ in kept])


def separated(jaxpr: Jaxpr) -> Jaxpr:
    """Return ``jaxpr`` so that XLA, made to join no operations, rounds each as it does alone.

    Alone, a division by fewer numbers, which are stretched, is a product with their inverses.
    Raises: NotSeparate for operations of which it makes other code.
    """
    eqns = []
    for eqn in jaxpr.eqns:
        prim, out = eqn.operation, eqn.outvars[0]
        if not prim.separate_code or not generators_agree(out.aval.dtype):
            raise NotSeparate
        if type(prim) is Div and eqn.invars[1].aval.size < out.aval.size:
            divided, divisor = eqn.invars
            inverse = Var(divisor.aval)
            one = Literal(divisor.aval.dtype.type(1), ShapedArray((), divisor.aval.dtype))
            eqns.append(eqn.replace(invars=[one, divisor], outvars=[inverse]))
            eqn = eqn.replace(operation=Mul(), invars=[divided, inverse])
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


def compiled(closed: ClosedJaxpr) -> Any:
    """Return the function that runs ``closed``, each operation rounded as it is alone."""
    programs = Kept()
    out_tree = tree.structure([0] * len(closed.out_avals))

    def miss(*args: Any) -> tuple:
        where, committed = placement(args)
        key = where, committed, config.trace_key()
        program = programs.get(key)
        if program is None:
            program = build(closed, where, committed, name="pullback",
                            options=_jaxlib.SEPARATE_OPTIONS)
            programs.keep(key, program)
        return program.run(args), program.fast_path(out_tree), False

    return make_fast("pullback", lambda *args: miss(*args)[0], miss)


def start_of(function: Any, xs: Sequence[Any]) -> Start | None:
    """Return where paths of ``function`` from ``xs`` begin, None if none is looked for."""
    if (state.trace is not eval_trace or bus.eager or state.watcher is not None
            or not config.shortcuts.value or finite.wanted() or Seen.placements
            or config.disable_jit.value or config.no_tracing.value
            or config.check_tracer_leaks.value or config.debug_key_reuse.value
            or Mark.used):
        return None
    key = (function, tuple([x.aval for x in xs]), config.trace_key())
    start = starts.get(key)
    if start is None:
        start = Start()
        starts.keep(key, start)
    return None if start.given_up else start


def gradient_flat(fun: Callable[..., Sequence[Any]], xs: Sequence[Any], nonzero: Sequence[bool],
                  aux: list[Any], key: Any) -> tuple[list[Any], Callable[[], list[Any]]]:
    """Run ``fun`` at ``xs``; returns its outputs, and what computes the gradients of its output.

    There is to be one output, a number, when that is called; it returns the gradient of each input,
    None where it is zero.  ``key`` stands for the function: the same for calls that may do the
    same.  What ``fun`` puts into the list ``aux`` is replaced by its primals.
    """
    start = start_of(key, xs)
    if start is None:
        outs, linear = linearize_flat(fun, xs, nonzero, aux)
        return outs, lambda: pulled_back(linear)
    trace = PathTrace(start, xs, nonzero)
    with current(trace):
        results = fun(*trace.inputs)
    trace.live = False
    aux[:] = [trace.split(x)[0] for x in aux]
    return [trace.split(x)[0] for x in results], lambda: trace.gradients(results)


def pulled_back(linear: Linearized) -> list[Any]:
    return linear.backward([ones_of(linear.out_avals[0])])

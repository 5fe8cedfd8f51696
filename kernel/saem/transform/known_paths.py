"""How is a gradient that was computed before computed with less work in Python?

Outside ``jit`` a gradient runs jvp rules, records a linear program and transposes it, each time.
But a function that is called again mostly does the same operations on the same types.  They are its
*path*.  What comes after the function itself depends on nothing but the path and the numbers along
it, so it is one compiled program (the *pullback* of the path), found by content:

- At first everything is done as ``transform.linearize`` does it, and the path is written down.
- When the same path has ended ``SEEN_BEFORE`` times, its pullback is compiled, and kept if it gives
  the bits of the rules (``transform.pullbacks``).
- From then on ``PathTrace`` follows: it runs each operation of the function at once, on its
  numbers, and puts off tangents as long as the operations are those of a path.  At the end of one
  it calls the pullback.  An operation that was not expected leaves the path: the tangents that
  were put off are computed by the rules, in their order, and all goes on as at first.

So the function itself runs each time, and may read the numbers that it computes.

Read before: ``transform.pullbacks``.  Read after: ``transform.derivatives``.
Invariant: following changes no bit, no type and no error (tests/kernel/test_known_paths.py).
Source: Griewank and Walther 2008, chapter 6 (what a reverse sweep needs of the forward one).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem._jaxlib import ArrayImpl
from saem.compile.dispatch import primitive_callable
from saem.core import config, finite
from saem.core.avals import aval_of
from saem.core.dtypes import PYTHON_NUMBERS
from saem.core.events import bus
from saem.core.hi_types import AbstractHigh, is_high
from saem.core.kept import Kept
from saem.core.placement_types import Seen
from saem.core.primitive import Primitive
from saem.core.trace import Mark, eval_trace, marks_of, run_under, state
from saem.ops.linear import ones_of
from saem.transform.jvp import JVPTrace, JVPTracer
from saem.transform.linearize import Linearized, PartialTrace, linear_part, linearize_flat
from saem.transform.pullbacks import Pullback, Taken, pullback

# The border.  A pullback compiles in the time of some hundred calls by the rules.
SEEN_BEFORE = 100
# Paths are kept of so many operations, and as long as their values are so many numbers together.
MOST_STEPS = 100
MOST_NUMBERS = 1 << 20
# A function that leaves its paths so many times in succession is not followed any longer.
MOST_DEPARTURES = 8


class Step:
    """An operation on a path, and the steps that were seen to follow it."""

    __slots__ = ("after", "ends", "moves", "pullbacks", "run")

    def __init__(self, run: Any, moves: bool) -> None:
        self.run = run  # the operation, compiled
        self.moves = moves  # whether its result has a tangent
        self.after: dict[tuple, Step] = {}
        # By the number of the operation whose result is the function's: how often a path ended
        # there, and its pullback (None if there is none, or it gave other bits).
        self.ends: dict[int, int] = {}
        self.pullbacks: dict[int, Pullback | None] = {}


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
        self.taken: list[Taken] = []
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
        step = self.step.after.get(tuple(key)) if is_one_call(prim) else None
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
            values = None if found is None else found.values(self.inputs, self.taken)
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
        """Add the path to those of the function; once it was seen often, compile its pullback."""
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
        step.ends[place] = count = step.ends.get(place, 0) + 1
        if count == SEEN_BEFORE:
            step.pullbacks[place] = found = pullback(self.inputs, self.taken, place, gradients)
            self.start.followed |= found is not None


def kind_of(x: Any) -> Any:
    """Return what stands for the type of a number or NumPy array, None if it is another object."""
    kind = type(x)
    if kind is np.ndarray:
        return x.shape, x.dtype
    return kind if kind in PYTHON_NUMBERS or isinstance(x, np.generic) else None


def is_one_call(prim: Primitive) -> bool:
    """Return whether ``prim`` runs as one compiled call, with one result.

    What its jvp rule does follows from its parameters and the types, then: such a primitive calls
    no function of a user and reads no numbers.
    """
    return prim.eager is None and not prim.multiple_results and not prim.touches_refs


def start_of(function: Any, xs: Sequence[Any]) -> Start | None:
    """Return where paths of ``function`` from ``xs`` begin, None if none is looked for."""
    if (state.trace is not eval_trace or bus.eager or state.watcher is not None
            or not config.shortcuts.value or finite.wanted() or Seen.placements
            or config.disable_jit.value or config.no_tracing.value
            or config.check_tracer_leaks.value or config.debug_key_reuse.value
            or (Mark.used and marks_of(state.stack))
            or (AbstractHigh.used and any(is_high(aval_of(x)) for x in xs))):
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
    results = run_under(trace, fun, trace.inputs)
    trace.live = False
    aux[:] = [trace.split(x)[0] for x in aux]
    return [trace.split(x)[0] for x in results], lambda: trace.gradients(results)


def pulled_back(linear: Linearized) -> list[Any]:
    """Return the gradients of the one output of ``linear``, by its rules."""
    return linear.backward([ones_of(linear.out_avals[0].to_ct_aval())])

"""How do whole Taylor series flow forward?

Let x(t) be a power series and y = f(x).  A ``JetTracer`` is such a series: its value at t = 0 and a
stream of coefficients, each computed when it is asked for.  Of an operation that is linear, the
jvp rule gives the coefficients of the output one by one; products give them by convolution.  Of any
other operation, the jvp rule is a *differential equation*: y'(t) = J(x(t)) x'(t) is a program in
series, and its coefficient k - 1 gives coefficient k of y, which asks only for earlier ones of y
itself.  So no operation needs a further rule, and a series of K terms costs O(K^2) products, not
the 2^K of derivatives nested K times.

Programs inside a primitive become programs of values and coefficients, side by side
(``jet_jaxpr``), and a loop carries the coefficients of what it carries.

Read before: ``transform.jvp``, ``transform.nested``.
Invariant: the series of an output are the derivatives that nested ``jvp`` gives, and a loop of
series is the series of the loop (tests/kernel/test_jet.py).
Source: Griewank and Walther 2008, chapter 13; McIlroy 1999, "Power Series, Power Serious"
(streams that are defined by themselves); the documentation of jax.experimental.jet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import dtypes
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr, once_per_program, sub_jaxprs
from saem.core.primitive import Primitive
from saem.core.trace import Trace, Tracer, bind, bind_list, current, run_under, state
from saem.ops.arithmetic import Div, add, div, mul, neg, sub
from saem.ops.linear import number_like, zeros_of
from saem.transform.nested import Companions, with_companions
from saem.transform.staging import trace_flat

# -- streams of coefficients -----------------------------------------------------------------------


class Stream:
    """The coefficients of the results of one operation, from the first on; None is zero.

    ``following(k)`` gives coefficient k of each result, and may ask for those before.
    """

    def __init__(self, following: Callable[[int], Sequence[Any]]):
        self.following = following
        self.known: list[Sequence[Any]] = []

    def at(self, k: int) -> Sequence[Any]:
        """Return coefficient ``k`` of every result."""
        while len(self.known) < k:
            self.known.append(self.following(len(self.known) + 1))
        return self.known[k - 1]


class JetTracer(Tracer):
    """A power series: its value at zero, and result ``index`` of a stream."""

    __slots__ = ("primal", "stream", "index", "slope")
    kind = "concrete tracer"

    _trace: JetTrace

    def __init__(self, trace: JetTrace, primal: Any, stream: Stream, index: int = 0):
        self._trace = trace
        self.primal = primal
        self.stream = stream
        self.index = index
        self.slope: JetTracer | None = None
        self.aval = aval_of(primal)

    def concrete(self) -> Any:
        return self.primal

    def term(self, k: int) -> Any:
        """Return coefficient ``k``, None if it is zero."""
        return self.stream.at(k)[self.index] if k else self.primal

    def derivative(self) -> JetTracer:
        """Return the derivative of the series by its variable."""
        if self.slope is None:
            def following(k: int) -> list[Any]:
                return [self._trace.below(scaled, self.term(k + 1), k + 1)]

            first = self.term(1)
            if first is None:
                first = self._trace.below(zeros_of, self.aval.to_tangent_aval())
            self.slope = JetTracer(self._trace, first, Stream(following))
        return self.slope


def scaled(x: Any, factor: float) -> Any:
    """Return ``x * factor``; None is zero."""
    return x if x is None or factor == 1 else mul(x, number_like(x, factor))


def total(terms: Sequence[Any]) -> Any:
    """Return the sum of ``terms``, of which None is zero."""
    found = None
    for x in terms:
        if x is not None:
            found = x if found is None else add(found, x)
    return found


class JetTrace(Trace):
    """Follows power series through each operation, by the primitives' jvp rules."""

    def __init__(self, parent: Trace, order: int):
        self.parent: Trace = parent
        self.order = order
        self.stack = (*parent.stack, "jet")
        # Results by operation and operands: what an equation says of its own solution finds it.
        self.made: dict[Any, tuple[Sequence[Any], list[Any]]] = {}

    def owns(self, x: Any) -> bool:
        return type(x) is JetTracer and x._trace is self

    def below(self, fun: Callable[..., Any], *args: Any) -> Any:
        """Call ``fun`` one interpreter down."""
        with current(self.parent):
            return fun(*args)

    def process(self, prim: Primitive, args: tuple) -> Any:
        if not any(map(self.owns, args)):
            return self.below(bind, prim, *args)
        if prim.nested is not None and not prim.nested.ruled:
            outs = self.below(self.accompanied, prim, args)
        else:
            key = (prim, *map(id, args))
            if key not in self.made:
                self.made[key] = args, self.series(prim, args)
            outs = self.made[key][1]
        return list(outs) if prim.multiple_results else outs[0]

    def accompanied(self, prim: Primitive, args: Sequence[Any]) -> list[Any]:
        """Return the results of ``prim``, whose programs take and give values and coefficients."""
        terms = [[x.term(k) for k in range(1, self.order + 1)] if self.owns(x) else None
                 for x in args]
        outs, found = with_companions(
            prim, Companions(self.order, jet_jaxpr), [self.value(x) for x in args], terms)
        return [given(self, x, t) for x, t in zip(outs, found)]

    def series(self, prim: Primitive, args: Sequence[Any]) -> list[Any]:
        """Return the results of ``prim`` as series, those of numbers without derivative as they
        are."""
        primals = [self.value(x) for x in args]
        outs = self.below(bind_list, prim, primals)
        stream = Stream(self.coefficients(prim, args, primals, len(outs)))
        return [JetTracer(self, x, stream, i) if has_tangent(aval_of(x)) else x
                for i, x in enumerate(outs)]

    def value(self, x: Any) -> Any:
        """Return ``x`` at zero."""
        return x.primal if self.owns(x) else x

    def term(self, x: Any, k: int) -> Any:
        """Return coefficient ``k`` of ``x``, None if it is zero."""
        return x.term(k) if self.owns(x) else None if k else x

    def coefficients(self, prim: Primitive, args: Sequence[Any], primals: Sequence[Any],
                     count: int) -> Callable[[int], Sequence[Any]]:
        """Return the function that gives coefficient k of the results of ``prim``."""
        several = sum(map(self.owns, args)) > 1
        if prim.bilinear and several:
            return lambda k: [self.below(self.convolved, prim, *args, k)]
        if isinstance(prim, Div) and self.owns(args[1]):
            known: list[Any] = [None]

            def quotient(k: int) -> list[Any]:
                known.append(self.below(self.divided, *args, known, k))
                return known[-1:]

            return quotient
        if prim.linear or prim.bilinear or isinstance(prim, Div):
            return lambda k: self.below(self.pushed, prim, args, primals, k, count)
        slopes: list[Any] = []
        if sub_jaxprs(prim) and prim.multiple_results:
            def solved_apart(k: int) -> list[Any]:
                slopes.extend(self.slopes_apart(prim, args) if not slopes else ())
                return [self.below(scaled, s[k - 1], 1 / k) for s in slopes]

            return solved_apart

        def solved(k: int) -> list[Any]:
            if not slopes:
                slopes.append(self.slopes(prim, args))
            return [self.below(scaled, self.term(s, k - 1), 1 / k) if s is not None else None
                    for s in slopes[0]]

        return solved

    def slopes(self, prim: Primitive, args: Sequence[Any]) -> list[Any]:
        """Return the derivative of each result by the variable of the series, as series."""
        with current(self):
            _, slopes = prim.jvp(list(args), [
                x.derivative() if self.owns(x) else None for x in args])
        return list(slopes) if prim.multiple_results else [slopes]

    def slopes_apart(self, prim: Primitive, args: Sequence[Any]) -> list[list[Any]]:
        """Return all coefficients of the derivative of each result of ``prim``, whose rule may be
        any program.

        A program takes all coefficients at once, so it gets one fewer: else it might wait for
        itself.
        """
        order = self.order - 1
        inner = JetTrace(self.parent, order)
        xs: list[Any] = []
        dxs: list[Any] = []
        for x in args:
            if self.owns(x):
                first, *later = (x.derivative().term(k) for k in range(self.order))
                xs.append(given(inner, x.primal, [x.term(k) for k in range(1, self.order)]))
                dxs.append(given(inner, first, later))
            else:
                xs.append(x)
                dxs.append(None)
        with current(inner):
            _, slopes = prim.jvp(xs, dxs)
            found = [[inner.term(s, k) for k in range(self.order)] for s in slopes]
        inner.live = False
        return found

    # -- below this interpreter --

    def pushed(self, prim: Primitive, args: Sequence[Any], primals: Sequence[Any], k: int,
               count: int) -> Sequence[Any]:
        """Return coefficient ``k`` of a linear operation: what it makes of that of its operands."""
        terms = [x.term(k) if self.owns(x) else None for x in args]
        if all(t is None for t in terms):
            return [None] * count
        _, out = prim.jvp(list(primals), terms)
        return list(out) if prim.multiple_results else [out]

    def convolved(self, prim: Primitive, x: JetTracer, y: JetTracer, k: int) -> Any:
        """Return coefficient ``k`` of a product."""
        pairs = [(x.term(i), y.term(k - i)) for i in range(k + 1)]
        return total([bind(prim, a, b) for a, b in pairs if a is not None and b is not None])

    def divided(self, x: Any, y: JetTracer, known: Sequence[Any], k: int) -> Any:
        """Return coefficient ``k`` of a quotient, of which earlier ones are ``known``.

        It is what the product of quotient and divisor lacks of the dividend.
        """
        quotients = [div(self.value(x), y.primal), *known[1:]]
        have = total([mul(y.term(j), q) for j in range(1, k + 1)
                      if (q := quotients[k - j]) is not None and y.term(j) is not None])
        wanted = self.term(x, k)
        if have is None:
            return None if wanted is None else div(wanted, y.primal)
        return div(neg(have) if wanted is None else sub(wanted, have), y.primal)


def has_tangent(aval: ShapedArray) -> bool:
    return dtypes.scalar_kind(aval.to_tangent_aval().dtype) != "float0"


# -- functions on flat lists -----------------------------------------------------------------------


def jet_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any],
             series: Sequence[Sequence[Any] | None], order: int
             ) -> tuple[list[Any], list[list[Any] | None]]:
    """Run ``fun`` on flat series of ``order`` coefficients after the value; returns both.

    A series of None is a constant; a coefficient of None is zero.
    """
    trace = JetTrace(state.trace, order)

    def run() -> tuple[list[Any], list[list[Any] | None]]:
        outs = fun(*[given(trace, x, terms) for x, terms in zip(primals, series)])
        found = [[x.term(k) for k in range(1, order + 1)] if trace.owns(x) else None
                 for x in outs]
        return [trace.value(x) for x in outs], found

    values, found = run_under(trace, run, ())
    trace.live = False
    trace.made.clear()
    return values, [None if s is None or all(t is None for t in s) else s for s in found]


def given(trace: JetTrace, x: Any, terms: Sequence[Any] | None) -> Any:
    """Return ``x`` as the series with coefficients ``terms``."""
    if terms is None or not has_tangent(aval_of(x)):
        return x
    return JetTracer(trace, x, Stream(lambda k: [terms[k - 1] if k <= len(terms) else None]))


def all_terms(x: Any, terms: Sequence[Any] | None, order: int) -> list[Any]:
    """Return ``order`` coefficients, zeros of the type of ``x`` where they are zero."""
    aval = aval_of(x).to_tangent_aval()
    return [zeros_of(aval) if t is None else t for t in terms or [None] * order]


@once_per_program
def jet_jaxpr(closed: ClosedJaxpr, nonzero: tuple[bool, ...], order: int
              ) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program of values and coefficients to values and coefficients.

    Its inputs are all values, then ``order`` coefficients of each input that is ``nonzero``; its
    outputs are all values, then the coefficients of those outputs marked in the list beside it.
    """
    avals = list(closed.in_avals)
    terms = [a.to_tangent_aval() for a, nz in zip(avals, nonzero) if nz for _ in range(order)]
    moving: list[bool] = []

    def both(*flat: Any) -> list[Any]:
        rest = iter(flat[len(avals):])
        series = [[next(rest) for _ in range(order)] if nz else None for nz in nonzero]
        outs, found = jet_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), flat[:len(avals)],
            series, order)
        moving[:] = [s is not None for s in found]
        return [*outs, *(t for x, s in zip(outs, found) if s is not None
                         for t in all_terms(x, s, order))]

    program = trace_flat(both, [*avals, *terms], name="jet",
                         debug_name=closed.jaxpr.debug_name)
    return program, moving


def factorials(order: int) -> list[float]:
    """Return 1!, 2!, … as floats."""
    return [float(x) for x in np.cumprod(np.arange(1, order + 1, dtype=np.float64))]

"""Is the current interpreter restored on every way out, and is a leaked tracer found out?"""

from __future__ import annotations

import itertools
import sys
import threading

import numpy as np
import pytest

import saem as jax
from saem import _jaxlib, errors, lax
from saem.core import source
from saem.core.avals import aval_of
from saem.core.config import staging
from saem.core.events import TraceBegin, TraceEnd, bus
from saem.core.trace import eval_trace, state
from saem.experimental.jet import jet
from saem.extend.linear_util import wrap_init
from saem.interpreters.partial_eval import PartialVal, trace_to_jaxpr_nounits

X = np.asarray([1.0, 2.0], np.float32)
TRANSFORMS = {
    "jit": jax.jit,
    "make_jaxpr": jax.make_jaxpr,
    "vmap": jax.vmap,
    "grad": lambda f: jax.grad(lambda x: lax.reduce_sum(f(x), (0,))),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: jax.vjp(f, x),
    "linearize": lambda f: lambda x: jax.linearize(f, x),
    "eval_shape": lambda f: lambda x: jax.eval_shape(f, x),
    "jit of grad": lambda f: jax.jit(jax.grad(lambda x: lax.reduce_sum(f(x), (0,)))),
    "vmap of jit": lambda f: jax.vmap(jax.jit(f)),
}
# What runs a function inside an interpreter, too, but takes or gives something of its own.
ENTRIES = TRANSFORMS | {
    "checkpoint": lambda f: jax.grad(lambda x: lax.reduce_sum(jax.checkpoint(f)(x), (0,))),
    "linear_transpose": lambda f: lambda x: jax.linear_transpose(lambda y: lax.mul(f(X), y), x),
    "jet": lambda f: lambda x: jet(f, (x,), ((x, x),)),
    "vmap of a rule": lambda f: jax.vmap(with_rule(f)),
    "partial evaluation": lambda f: lambda x: trace_to_jaxpr_nounits(
        wrap_init(lambda y: [f(y)]), [PartialVal.unknown(aval_of(x))]),
    "cond": lambda f: lambda x: lax.cond(True, f, f, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, y: (f(c), y), x, x),
    "while_loop": lambda f: lambda x: lax.while_loop(lambda c: lax.lt(c[0], 0.0), f, x),
    "custom_linear_solve": lambda f: lambda x: lax.custom_linear_solve(
        lambda y: lax.mul(f(X), y), x, lambda mv, b: lax.div(b, mv(X)),
        lambda mv, b: lax.div(b, mv(X))),
}


def with_rule(f):
    """Return ``f`` with a derivative of its own, of which it is one half."""
    ruled = jax.custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0]))
    return ruled


class Stop(BaseException):
    """What no handler of exceptions catches."""


# Python says of an interrupt inside a callback of its own that it was ignored.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ENTRIES)
def test_an_interrupt_at_any_call_restores_the_ground_level(name):
    def level():
        guards = _jaxlib.guard_lib.thread_local_state()
        return (state.trace, state.stack, state.source, staging.get_local(),
                guards.explicit_device_put, guards.explicit_device_get)

    ground = level()
    for number in itertools.count(1):
        function = ENTRIES[name](lambda x: lax.mul(lax.sin(x), x))  # traced each time
        begun = itertools.count(1)
        interrupted = []

        def interrupt(frame, event, argument, begun=begun, number=number, seen=interrupted):
            if event == "call" and source.is_internal(frame.f_code.co_filename) and \
                    next(begun) == number:
                seen.append(frame.f_code.co_qualname)
                raise KeyboardInterrupt

        sys.setprofile(interrupt)
        try:
            function(X)
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        assert level() == ground, interrupted
        if not interrupted:
            break
    assert number > 20


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
def test_an_error_restores_the_ground_level(name, error):
    def f(x):
        lax.add(x, x)
        raise error

    with pytest.raises(error):
        ENTRIES[name](f)(X)
    assert state.trace is eval_trace and state.stack == () and state.source is None
    assert not staging.value


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_leaked_tracer_is_refused_everywhere(name):
    kept = []

    def f(x):
        kept.append(lax.mul(x, x))
        return x

    TRANSFORMS[name](f)(X)
    leaked = kept[0]
    uses = [lambda: lax.add(leaked, leaked), lambda: jax.jit(lambda y: lax.add(y, leaked))(X),
            lambda: jax.jit(lambda y: y)(leaked),
            lambda: jax.make_jaxpr(lambda y: lax.mul(leaked, y))(X)]
    for use in uses:
        with pytest.raises(errors.UnexpectedTracerError):
            use()
    assert state.trace is eval_trace


def test_a_tracer_of_a_sibling_trace_is_refused():
    kept = []
    jax.make_jaxpr(lambda x: kept.append(x) or x)(X)
    with pytest.raises(errors.UnexpectedTracerError):
        jax.make_jaxpr(lambda y: lax.add(y, kept[0]))(X)


def test_threads_have_their_own_interpreter():
    inside, go = threading.Event(), threading.Event()
    results = {}

    def slow(x):
        inside.set()
        assert go.wait(60)
        return lax.add(x, x)

    tracing = threading.Thread(target=lambda: results.update(traced=jax.jit(slow)(X)))
    tracing.start()
    assert inside.wait(60)
    results["eager"] = lax.mul(X, X)  # while the other thread stands in the middle of a trace
    results["jitted"] = jax.jit(lambda x: lax.neg(x))(X)
    go.set()
    tracing.join()
    np.testing.assert_array_equal(results["eager"], [1, 4])
    np.testing.assert_array_equal(results["jitted"], [-1, -2])
    np.testing.assert_array_equal(results["traced"], [2, 4])


def test_constants_are_not_copied_into_equations():
    table = np.arange(4, dtype=np.float32)
    closed = jax.make_jaxpr(lambda x: lax.add(lax.mul(x, table), table))(table)
    assert len(closed.consts) == 1 and closed.consts[0] is table


def test_a_failed_trace_is_told():
    seen = []
    end = bus.subscribe(seen.append)
    try:
        def f(x):
            lax.add(x, x)
            raise ValueError("inside")

        with pytest.raises(ValueError, match="inside"):
            jax.jit(f)(X)
        jax.jit(lambda x: lax.add(x, x))(X)
    finally:
        end()
    begins = [e for e in seen if isinstance(e, TraceBegin)]
    ends = [e for e in seen if isinstance(e, TraceEnd)]
    assert [e.failed for e in ends] == [True, False] and len(begins) == 2
    assert ends[0].equations == 1 and ends[0].function == begins[0].function

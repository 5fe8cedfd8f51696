"""Do the laws that hold for every program hold for random ones?

Programs come from ``drawing.py``: operations and control flow on typed values.  Each law is one
equality between two ways to compute the same thing.  What a law needs in order to hold (that no
branch is decided, and no order sorted, within rounding of a tie) is tested on NumPy first.

``SAEM_PROGRAMS=2000`` draws that many programs over all laws; the default is 240.

Read before: ``programs.py``, ``drawing.py``.
Invariant: the jaxpr checker passes after each transformation.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from drawing import inputs, programs
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from programs import BINARY, CONTROL, RESHAPE, UNARY

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.config import shortcuts
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import evaluate

pytestmark = pytest.mark.usefixtures("little_effort")
LAWS = 8
COUNT = max(1, int(os.environ.get("SAEM_PROGRAMS", "240")) // LAWS)
# Each example compiles programs, so a failing one is made smaller only in the long setting.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, *((Phase.shrink,) if COUNT > 30 else ()))
law = settings(max_examples=COUNT, deadline=None, derandomize=COUNT <= 30, phases=PHASES,
               report_multiple_bugs=False, suppress_health_check=list(HealthCheck))
REVERSIBLE = tuple(kind for kind in CONTROL if kind != "while")
FORWARD = tuple(kind for kind in CONTROL if kind != "custom_vjp")


def with_inputs(count=None, kinds=CONTROL, extra=0):
    """Draw a program, an input (or a stack of ``count``), and ``extra`` more of that shape."""
    return programs(kinds=kinds).flatmap(lambda f: st.tuples(
        st.just(f), *(inputs(f, count) for _ in range(1 + extra))))


def close(a, b, rtol=3e-4):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)


def steady(f, x):
    """Return f(x) on NumPy, if inputs a rounding away give nearly the same."""
    wanted = f.on_numpy(x)
    bound = 1e-4 * max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    noise = np.random.default_rng(0).choice([-2e-6, 2e-6], (3, *np.shape(x)))
    assume(np.all(np.isfinite(wanted)) and np.max(np.abs(wanted), initial=0.0) < 1e4)
    for other in noise:
        assume(np.max(np.abs(f.on_numpy(x + other) - wanted), initial=0.0) < bound)
    return wanted


def slope(f, x, v):
    """Return the derivative of f at x along v by differences, if both sides agree."""
    x, v, step = x.astype(np.float64), v.astype(np.float64), 1e-5
    here = f.on_numpy(x)
    right = (f.on_numpy(x + step * v) - here) / step
    left = (here - f.on_numpy(x - step * v)) / step
    scale = max(1.0, float(np.max(np.abs(right), initial=0.0)))
    assume(np.all(np.isfinite(right)) and scale < 1e4)
    assume(np.max(np.abs(right - left), initial=0.0) < 1e-3 * scale)
    return (right + left) / 2


def checked(f, *args):
    """Return the program of ``f``, found well formed."""
    closed = jax.make_jaxpr(f)(*args)
    check_jaxpr(closed)
    return closed


def total(f):
    return lambda x: jnp.sum(jnp.sin(f(x)))


@law
@given(with_inputs())
def test_jit_changes_nothing_and_numpy_agrees(drawn):
    f, x = drawn
    wanted = steady(f, x)
    closed = checked(f, x)
    close(jax.jit(f)(x), wanted)
    close(evaluate(closed, x)[0], wanted)
    close(f(jnp.asarray(x)), wanted)


@law
@given(with_inputs(2))
def test_vmap_is_a_loop(drawn):
    f, xs = drawn
    wanted = np.stack([steady(f, x) for x in xs])
    checked(jax.vmap(f), xs)
    close(jax.jit(jax.vmap(f))(xs), wanted)
    turned = jax.jit(jax.vmap(f, in_axes=-1, out_axes=-1))(np.moveaxis(xs, 0, -1))
    close(np.moveaxis(np.asarray(turned), -1, 0), wanted)


@law
@given(with_inputs(kinds=FORWARD, extra=1))
def test_jvp_is_the_limit_of_differences(drawn):
    f, x, v = drawn
    wanted = slope(f, x, v)
    checked(lambda x, v: jax.jvp(f, (x,), (v,)), x, v)
    close(jax.jit(lambda x, v: jax.jvp(f, (x,), (v,))[1])(x, v), wanted, rtol=2e-3)


@law
@given(with_inputs(kinds=REVERSIBLE, extra=2))
def test_the_transpose_pairs_with_differences(drawn):
    f, x, v, ct = drawn
    wanted = np.vdot(ct.astype(np.float64), slope(f, x, v))

    def pull(x, ct):
        return jax.vjp(f, x)[1](ct)[0]

    checked(pull, x, ct)
    pulled = np.asarray(jax.jit(pull)(x, ct), np.float64)
    close(np.vdot(pulled, v.astype(np.float64)), wanted, rtol=2e-3)


@law
@given(with_inputs(2, kinds=REVERSIBLE))
def test_grad_and_vmap_commute(drawn):
    f, xs = drawn
    for x in xs:
        steady(f, x)

    def one_by_one(xs):
        return jax.vmap(jax.grad(total(f)))(xs)

    def together(xs):
        return jax.grad(lambda xs: jnp.sum(jax.vmap(total(f))(xs)))(xs)

    checked(one_by_one, xs)
    checked(together, xs)
    close(*jax.jit(lambda xs: (one_by_one(xs), together(xs)))(xs))


@law
@given(with_inputs(kinds=REVERSIBLE))
def test_checkpoint_changes_no_gradient_and_keeps_only_inputs(drawn):
    f, x = drawn
    steady(f, x)
    plain, saved = jax.grad(total(f)), jax.grad(total(jax.checkpoint(f)))
    checked(saved, x)
    close(*jax.jit(lambda x: (plain(x), saved(x)))(x))
    kept = jax.linearize(jax.checkpoint(f), jnp.asarray(x))[1]
    residuals = jax.tree.leaves(kept)
    assert sum(np.size(r) for r in residuals) <= max(np.size(x), sum(
        np.size(r) for r in jax.tree.leaves(jax.linearize(f, jnp.asarray(x))[1])))


@law
@given(with_inputs(kinds=FORWARD, extra=1))
def test_linearize_is_jvp_and_vmap_of_jvp_is_jvp_of_vmap(drawn):
    f, x, v = drawn
    if "while" not in f.kinds():
        def both_ways(x, v):
            return jax.jvp(f, (x,), (v,))[1], jax.linearize(f, x)[1](v)

        checked(both_ways, x, v)
        close(*jax.jit(both_ways)(x, v), rtol=1e-3)
    xs, vs = np.stack([x, v]), np.stack([v, x])

    def orders(xs, vs):
        inside = jax.vmap(lambda x, v: jax.jvp(f, (x,), (v,))[1])(xs, vs)
        outside = jax.jvp(jax.vmap(f), (xs,), (vs,))[1]
        return inside, outside

    checked(orders, xs, vs)
    close(*jax.jit(orders)(xs, vs), rtol=1e-3)


def with_derivative(f):
    """Return ``f`` beside its derivative along the input itself, as what differentiates it now."""
    def both(x):
        return f(x), jax.jvp(f, (x,), (x,))[1] if "custom_vjp" not in f.kinds() else f(x)
    return both


@law
@given(with_inputs())
def test_the_long_way_gives_what_the_shortcuts_give(drawn):
    f, x = drawn
    steady(f, x)
    program = str(jax.make_jaxpr(f)(x))
    quick = with_derivative(f)(jnp.asarray(x))
    with shortcuts(False):
        assert str(jax.make_jaxpr(f)(x)) == program
        long_way = with_derivative(f)(jnp.asarray(x))
    for a, b in zip(quick, long_way, strict=True):
        assert a.dtype == b.dtype and a.weak_type == b.weak_type
        close(a, b, rtol=1e-5)


@pytest.mark.parametrize("unroll", [1, 2, 5, True])
def test_a_scan_is_its_unrolled_loop(unroll):
    xs = np.linspace(-1, 1, 5, dtype=np.float32)

    def body(c, x):
        return jnp.sin(c) * x + 0.5, c * x

    def looped(c):
        ys = []
        for x in xs:
            c, y = body(c, x)
            ys.append(y)
        return c, jnp.stack(ys)

    for f, g in ((lambda c: lax.scan(body, c, xs, unroll=unroll), looped),
                 (jax.jacrev(lambda c: lax.scan(body, c, xs, unroll=unroll)), jax.jacrev(looped))):
        for a, b in zip(f(0.3), g(0.3)):
            close(a, b)


@pytest.mark.parametrize("table", [UNARY, BINARY, RESHAPE], ids=["unary", "binary", "reshape"])
def test_the_operations_are_what_numpy_says(table):
    for key, (ours, theirs) in table.items():
        shape = key[0] if table is RESHAPE else (2, 3)
        x = np.linspace(-1.4, 1.7, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        args = (x, x[::-1, ::-1].copy()) if table is BINARY else (x,)
        close(ours(*map(jnp.asarray, args)), theirs(*args), rtol=1e-5)

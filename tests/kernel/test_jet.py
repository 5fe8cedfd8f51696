"""Are the terms of a Taylor series the derivatives, for every operation, through every program?

They are held against tables of numbers, against real JAX's nested ``jvp`` along a curve, and
against ``jax.experimental.jet`` where that has a rule.

Read before: ``both.py``, ``saem.experimental.jet.taylor``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from both import ours, same, same_error, source_of
from drawing import inputs, programs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from programs import CONTROL

import saem as jax
from saem import lax
from saem import numpy as jnp
from saem.core.infer import check_jaxpr
from saem.experimental.jet import jet

pytestmark = pytest.mark.usefixtures("little_effort")

X = jnp.array([0.3, 0.6])
T = (jnp.array([1.0, 2.0]), jnp.array([0.5, 0.0]), jnp.array([0.0, 1.0]))


def nested(f, x, terms):
    """Return the derivatives of f(x(t)) at 0, where x(t) has those terms, one jvp in another."""
    def curve(t):
        return f(x + sum(c * t**k / math.factorial(k) for k, c in enumerate(terms, 1)))

    def derivative(g):
        return lambda t: jax.jvp(g, (t,), (jnp.ones_like(t),))[1]

    out, g = [], curve
    for _ in terms:
        g = derivative(g)
        out.append(g(jnp.zeros(())))
    return f(x), out


# What comes of x = t (so the terms are the derivatives at 0), from tables of integer sequences.
SEQUENCES = {
    "jnp.exp(x)": [1] * 8,
    "jnp.exp(jnp.expm1(x))": [1, 2, 5, 15, 52, 203, 877, 4140],  # Bell
    "jnp.tan(x)": [1, 0, 2, 0, 16, 0, 272, 0],  # tangent numbers
    "1 / jnp.cos(x)": [0, 1, 0, 5, 0, 61, 0, 1385],  # Euler
    "jnp.arcsin(x)": [1, 0, 1, 0, 9, 0, 225, 0],
    "jnp.arctan(x)": [1, 0, -2, 0, 24, 0, -720, 0],
    "jnp.log1p(x)": [1, -1, 2, -6, 24, -120, 720, -5040],
    "1 / (1 - x)": [math.factorial(k) for k in range(1, 9)],
    "1 / (1 - x - x * x)": [f * math.factorial(k) for k, f in enumerate(
        [1, 2, 3, 5, 8, 13, 21, 34], 1)],  # Fibonacci
    "jnp.tanh(x)": [1, 0, -2, 0, 16, 0, -272, 0],
    "jnp.sqrt(1 - 2 * x)": [-1, -1, -3, -15, -105, -945, -10395, -135135],  # double factorials
    "(1 + x) ** 5": [5, 20, 60, 120, 120, 0, 0, 0],
}


@pytest.mark.parametrize("source", SEQUENCES)
def test_series_are_those_of_the_tables(source):
    with jax.enable_x64(True):
        one = [1.0] + [0.0] * 7
        _, terms = jet(eval(f"lambda x: {source}", {"jnp": jnp}), (0.0,), (one,))
    np.testing.assert_allclose(np.asarray(terms), SEQUENCES[source], rtol=1e-9, atol=1e-9)


FUNCTIONS = [
    "lax.exp2(x)", "jnp.log(x)", "jnp.cos(x)", "lax.sinh(x)", "lax.cosh(x)", "lax.acos(x)",
    "lax.asinh(x)", "lax.acosh(x + 1)", "lax.atanh(x)", "lax.rsqrt(x)", "lax.cbrt(x)",
    "lax.logistic(x)", "lax.erf(x)", "lax.erfc(x)", "lax.erf_inv(x)", "lax.lgamma(x)",
    "lax.digamma(x)", "lax.polygamma(1., x)", "jnp.abs(-x)", "jnp.sign(x) * x", "lax.square(x)",
    "x ** 3", "x ** -2", "x ** 2.5", "x ** x", "2. ** x", "x / (1 + x)", "3 / x", "x / 3",
    "jnp.maximum(x, .5)", "lax.clamp(.4, x, 1.)", "jnp.where(x > .5, x * x, x)", "jnp.prod(x)",
    "jnp.max(x)", "jnp.cumsum(x * x)", "jnp.cumprod(x)", "lax.cumlogsumexp(x)", "jnp.sort(-x * x)",
    "x[jnp.array([1, 0])] ** 2", "lax.dynamic_slice(x * x, (0,), (1,))", "x.at[0].set(3.) * x",
    "x.at[jnp.array([0, 0])].add(x) * x", "jnp.dot(x, jnp.sin(x))", "jnp.arctan2(x, 1 + x)",
    "jnp.outer(x, x) @ jnp.exp(x)", "x % .4", "jnp.concatenate([x * x, x])", "jnp.pad(x * x, 1)",
    "jnp.abs(x * (1 + 2j))", "jnp.real(jnp.exp(1j * x))", "lax.igamma(1., x)",
    "lax.betainc(1., 2., x)", "lax.stop_gradient(x) * x", "jnp.floor(x * 9) * x", "jnp.std(x)",
    "x + jnp.ones((3, 2)) * x[0]", "jnp.stack([x, x * x]).T.reshape(-1)",
    "jax.vmap(jnp.sin)(x) * x", "jax.jit(lambda y: jnp.sin(y) * x)(x * x)",
    "jax.grad(lambda y: jnp.sum(jnp.sin(y) * y))(x)",
    "jax.checkpoint(lambda y: jnp.sin(y) / y)(x)",
    "lax.cond(x[0] > 0, lambda y: jnp.sin(y) * x, jnp.cos, x * x)",
    "lax.switch(2, [jnp.cos, jnp.exp, lambda y: jnp.ones(2)], x)",
    "lax.scan(lambda c, y: (jnp.sin(c) * y, c * x), x[0], x)[1]",
    "lax.scan(lambda c, _: (c * 2, c), jnp.zeros(2), None, length=3)[0] + x",
    "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x))[1]",
    "lax.fori_loop(0, 3, lambda i, c: c * x + i, x)",
    "lax.associative_scan(lambda a, b: a * b, jnp.sin(x))",
    "lax.custom_linear_solve(lambda v: v * x, x * x, lambda f, b: b / x, symmetric=True)",
    "jax.shard_map(lambda x: jnp.sin(x) * lax.psum(x, 'i'), mesh=jax.make_mesh((1,), ('i',), "
    "axis_types=(jax.sharding.AxisType.Auto,)), in_specs=jax.P('i'), out_specs=jax.P('i'))(x)",
]


@pytest.mark.parametrize("source", FUNCTIONS)
def test_terms_are_the_nested_derivatives_of_jax(jax_oracle, source):
    wanted = jax_oracle.run(source_of(f"nested(lambda x: {source}, X, T)", __name__)).value
    got = ours(f"jet(lambda x: {source}, (X,), (T,))", __name__)
    for a, b in zip((got[0], *got[1]), (wanted[0], *wanted[1])):
        scale = max(1.0, float(np.max(np.abs(b))))
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-4, atol=3e-5 * scale)


ALIKE = [
    "jet(jnp.sin, (.5,), ((1., 0., 0.),))", "jet(jnp.sin, (.5,), ((),))",
    "jet(jnp.sin, (jnp.float32(.5),), ([jnp.float32(1), jnp.float32(2)],))",
    "jet(lambda x: jnp.float32(3.), (.5,), ((1., 0., 0.),))",
    "jet(lambda x, y: (x * y, {'q': x / y}), (.5, 2.), ((1., 0., 0.), (0., 1., 0.)))",
    "jet(lambda x: x ** 3, (2.,), ((1., 0., 0.),), factorial_scaled=False)",
    "jet(lambda x: jnp.exp(x) * x, (X,), (T,), factorial_scaled=True)",
    "jet(jax.jit(jnp.sin), (.5,), ((1., 0.),))",
    "jet(lambda x: (jnp.arange(3), x > 1), (X,), (T,))",
    "jet(lambda x: (jnp.arange(3), x > 1), (X,), (T,), factorial_scaled=False)",
    "jax.jit(lambda x: jet(jnp.sin, (x,), ((1., 0.),)))(.5)",
    "jax.vmap(lambda x: jet(jnp.sin, (x,), ((1., 0.),)))(X)",
    "jax.grad(lambda x: jet(jnp.sin, (x,), ((1., 0.),))[1][1])(.5)",
    "jet(lambda x: jet(jnp.exp, (x,), ((x, x * x),))[1][1], (X,), (T,))",
]


@pytest.mark.parametrize("source", ALIKE)
def test_results_are_formed_as_jaxs(jax_oracle, source):
    same(jax_oracle, source, rtol=1e-5, within=__name__)


@pytest.mark.parametrize(("source", "sentence"), [
    ("jet(lambda x, y: x, (.5, 2.), ((1., 0.), (0.,)))", "jet terms have inconsistent lengths"),
    ("jet(lambda d: d['a'], ({'a': .5},), ((1.,),))", "primal value at position 0 is not an array"),
    ("jet(jnp.sin, (.5,), (({'a': 1.},),))", "term 0 for argument 0 is not an array"),
])
def test_refusals_are_jaxs(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, within=__name__)


def test_an_integer_that_stays_where_it_is_stays_an_integer():
    value, terms = jet(lambda x, i: x[i] ** 2, (jnp.arange(3.), 1), ([jnp.ones(3), jnp.zeros(3)],
                                                                    [0, 0.]))
    assert (value, terms) == (1, [2, 2])
    value, terms = jet(lambda n: n ** 3, (2,), ([1, 0, 0],))  # one that moves is a number
    assert (value, terms) == (8, [12, 12, 6])


def test_custom_rules_are_asked_for_the_slope():
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda xs, dxs: (f(xs[0]), 3 * jnp.cos(xs[0]) * dxs[0]))
    for g in (f, jax.jit(f), lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]):
        _, terms = jet(g, (0.5,), ((1.0, 0.0, 0.0),))
        np.testing.assert_allclose(
            np.asarray(terms), [3 * np.cos(.5), -3 * np.sin(.5), -3 * np.cos(.5)], rtol=1e-6)

    @jax.custom_vjp
    def v(x):
        return jnp.sin(x)

    @jax.custom_jvp
    def e(x):
        return jnp.exp(x)

    # A rule that hands what it computes to a program.
    e.defjvp(lambda xs, dxs: (e(xs[0]), jax.jit(lambda y: 2 * y)(e(xs[0])) * dxs[0]))
    _, terms = jet(lambda x: e(x + jnp.sin(x) * 0), (0.0,), ((1.0, 0.0, 0.0, 0.0),))
    np.testing.assert_allclose(np.asarray(terms), [2, 4, 8, 16], rtol=1e-6)
    v.defvjp(lambda x: (v(x), x), lambda r, ct: (ct,))
    with pytest.raises(TypeError, match="forward-mode"):
        jet(v, (0.5,), ((1.0, 0.0),))


@pytest.mark.parametrize("f", [
    jnp.sin, jnp.exp, jnp.tanh, jnp.log, jnp.sqrt, lambda x: 1 / x, lambda x: jnp.sin(x) * x,
    lambda x: jnp.exp(jnp.sin(x) / x), lambda x: x ** 2.5])
def test_the_cost_grows_as_a_power_of_the_order(f):
    """Derivatives nested K times cost 2^K; series K^2, or K^3 for powers."""
    def size(order):
        terms = (1.0,) + (0.5,) * (order - 1)
        closed = jax.make_jaxpr(lambda x: jet(f, (x,), (terms,)))(0.5)
        check_jaxpr(closed)
        return len(closed.eqns)

    assert size(16) < 10 * size(8)


law = settings(max_examples=10, deadline=None, derandomize=True, report_multiple_bugs=False,
               phases=(Phase.generate,), suppress_health_check=list(HealthCheck))


@law
@given(programs(kinds=tuple(k for k in CONTROL if k != "custom_vjp")).flatmap(
    lambda f: st.tuples(st.just(f), inputs(f), inputs(f), inputs(f))))
def test_random_programs_have_the_series_of_nested_jvp(drawn):
    f, x, v, w = drawn
    check_jaxpr(jax.make_jaxpr(lambda x: jet(f, (x,), ((v, w),)))(x))
    value, (first, second) = jax.jit(lambda x, v, w: jet(f, (x,), ((v, w),)))(x, v, w)

    def push(x, v):
        return jax.jvp(f, (x,), (v,))[1]

    def nested(x, v, w):
        one, two = jax.jvp(push, (x, v), (v, w))
        return f(x), one, two

    for a, b in zip((value, first, second), jax.jit(nested)(x, v, w)):
        a, b = np.asarray(a), np.asarray(b)
        if np.all(np.isfinite(b)):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * max(1.0, np.max(np.abs(b))))

"""Are distributions SciPy's in value and JAX's in type, derivative and refusal?

One table: the arguments of each distribution.  Densities, probabilities, their logarithms and
quantiles are compared with SciPy, and with JAX their types, gradients and edges.

Read before: ``tests/kernel/library.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from library import check

import saem as jax
import saem.scipy.stats as st

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

X = np.array([-2.0, -0.7, 0.1, 0.4, 0.9, 1.3, 2.5, 6.0])
K = np.array([-1, 0, 1, 2, 3, 7])
Q = np.array([0.001, 0.2, 0.5, 0.83, 0.999])
PLACE = {"loc": 0.3, "scale": 1.7}

# Shape parameters, and whether loc (and scale) are taken.
CONTINUOUS = {
    "beta": ((2.0, 3.0), True), "cauchy": ((), True), "chi2": ((3.0,), True), "expon": ((), True),
    "gamma": ((2.5,), True), "gennorm": ((1.5,), False), "gumbel_l": ((), True),
    "gumbel_r": ((), True), "laplace": ((), True), "logistic": ((), True), "norm": ((), True),
    "pareto": ((2.0,), True), "t": ((4.0,), True), "truncnorm": ((-1.0, 2.0), True),
    "uniform": ((), True), "vonmises": ((1.5,), False), "wrapcauchy": ((0.3,), False),
}
DISCRETE = {"bernoulli": (0.3,), "betabinom": (6, 2.0, 1.5), "binom": (6, 0.3), "geom": (0.3,),
            "nbinom": (4.5, 0.3), "poisson": (2.5,)}
FUNCTIONS = "pdf logpdf cdf logcdf sf logsf ppf isf".split()
ASK_SCIPY = """
import scipy.stats as s
with np.errstate(all="ignore"):
    d = getattr(s, name)
    result = {f: np.asarray(getattr(d, f)(q if f in ("ppf", "isf") else x, *shapes, **place))
              for f in functions}
"""


def compared(jax_oracle, name, functions, shapes, place, x):
    wanted = jax_oracle.run(ASK_SCIPY, name=name, functions=functions, shapes=shapes, place=place,
                            x=x, q=Q).value
    for x64, rtol in ((True, 1e-9), (False, 1e-4)):
        with jax.enable_x64(x64):
            for f, want in wanted.items():
                arguments = (Q if f in ("ppf", "isf") else x, *shapes)
                got = np.asarray(getattr(getattr(st, name), f)(*arguments, **place))
                np.testing.assert_allclose(got, want, rtol, 1e-12 if x64 else 1e-6,
                                           err_msg=f"{name}.{f}, x64={x64}")


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_values_are_scipys(jax_oracle, name):
    shapes, placed = CONTINUOUS[name]
    functions = [f for f in FUNCTIONS if hasattr(getattr(st, name), f)]
    for place in ({}, PLACE) if placed else ({},):
        compared(jax_oracle, name, functions, shapes, place, X)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_values_are_scipys(jax_oracle, name):
    for place in ({}, {"loc": 2}):
        compared(jax_oracle, name, ["logpmf", "pmf"], DISCRETE[name], place, K)


LARGE = {"t": ("logpdf", (0, 1.5), (1e6,)), "binom": ("logpmf", (3, 40), (1000, 0.01)),
         "nbinom": ("logpmf", (3, 12), (1000.0, 0.99)),
         "betabinom": ("logpmf", (3, 20), (50, 900.0, 2.0))}


@pytest.mark.parametrize("name", LARGE)
def test_densities_of_large_parameters_keep_their_digits(jax_oracle, name):
    """In single precision, where log gammas of these parameters have errors of up to 1."""
    function, x, shapes = LARGE[name]
    wanted = jax_oracle.run(ASK_SCIPY, name=name, functions=[function], shapes=shapes, place={},
                            x=np.array(x), q=Q).value[function]
    got = getattr(getattr(st, name), function)(np.array(x, np.float32), *shapes)
    np.testing.assert_allclose(got, wanted, 2e-4)


EDGES = ("norm.logpdf(x, 0., 0.)", "laplace.pdf(x, 0., -1.)", "pareto.logpdf(x, 2., 0., 0.)",
         "uniform.pdf(x, 0., -2.)", "gamma.logpdf(x, 2., 0., 0.)", "logistic.logpdf(x, 0., 2.)",
         "logistic.pdf(x)", "poisson.cdf(x, 2.)", "poisson.cdf(x, 2., 1)", "uniform.cdf(x)",
         "cauchy.ppf(x)", "cauchy.isf(x, 1., 2.)", "gumbel_l.ppf(x)", "gumbel_r.ppf(x)",
         "chi2.logpdf(x, 2.)", "gamma.logpdf(x, 1.)", "gamma.logpdf(x, .5)",
         "wrapcauchy.pdf(x, .5)")


@pytest.mark.parametrize("call", EDGES)
def test_values_at_the_edges_are_scipys(jax_oracle, call):
    """At 0, at 1, at infinity, at NaN, beyond, and at scales of 0 or less."""
    x = np.array([0.0, 1.0, -1.0, 0.5, 2.0, 30.0, -30.0, np.inf, -np.inf, np.nan])
    ask = "import scipy.stats as s\nwith np.errstate(all='ignore'):\n    result = s." + call
    want = jax_oracle.run(ask, x=x).value
    got = eval(f"st.{call}", {"st": st, "x": x.astype(np.float32)})
    np.testing.assert_allclose(np.asarray(got), want, 1e-5, 1e-6)


@pytest.mark.parametrize(("name", "function", "shapes", "sign"), [
    ("gumbel_l", "cdf", (), 1), ("gumbel_r", "sf", (), -1), ("expon", "cdf", (), 1),
    ("pareto", "cdf", (2.0,), 1)])
def test_slopes_of_probabilities_are_densities(name, function, shapes, sign):
    """Also where the probability is nearly 1, and its slope small beside it."""
    family = getattr(st, name)
    x = np.linspace(1.5, 12, 8, dtype=np.float32) if shapes or name == "expon" else \
        sign * np.linspace(-1, 3, 8, dtype=np.float32)
    slopes = jax.vmap(jax.grad(lambda y: getattr(family, function)(y, *shapes)))(x)
    np.testing.assert_allclose(sign * np.asarray(slopes), family.pdf(x, *shapes), 2e-5)


@pytest.mark.parametrize("name", ["gumbel_l", "gumbel_r"])
def test_extremes_are_not_infinite(name):
    """The density exp(y - exp(y)) has the limit 0; SciPy and JAX give NaN."""
    family = getattr(st, name)
    x = np.array([-np.inf, np.inf], np.float32)
    assert family.pdf(x).tolist() == [0, 0]
    assert family.logpdf(x).tolist() == [-np.inf, -np.inf]


def test_sums_of_discrete_values(jax_oracle):
    for name in ("bernoulli", "poisson"):
        compared(jax_oracle, name, ["cdf"], DISCRETE[name], {}, X)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_on_jax(jax_oracle, name):
    shapes, placed = CONTINUOUS[name]
    module = getattr(st, name)
    rows = []
    extra = "".join(f", {s}" for s in shapes)
    for f in FUNCTIONS:
        if not hasattr(module, f):
            rows.append(f"hasattr(st.{name}, {f!r})")
            continue
        x = "q" if f in ("ppf", "isf") else "x"
        call = f"st.{name}.{f}"
        rows += [f"{call}({x}{extra})", f"{call}([1.]{extra})", f"{call}(.5{extra})"]
        if placed:
            rows += [f"{call}({x}{extra}, .3, 1.7)",
                     f"grads(lambda x, m, s: {call}(x{extra}, m, s), {x}[3:5], .2, 1.7)"]
        if f != "logpdf":
            continue
        rows += [f"{call}(1{extra})", f"jax.jit({call})(.5{extra})",
                 f"mapped(lambda x: {call}(x{extra}), {x})", f"{call}({x}[:, None]{extra})"]
        if shapes:
            inside = "x[2:4] + 2" if name == "pareto" else "x[2:4]"
            values = ", ".join(f"s{i}" for i in range(len(shapes)))
            rows.append(f"grads(lambda {values}: {call}({inside}, {values}){extra})")
    if name.startswith("gumbel"):  # JAX refuses their gradients with a TypeError
        rows = [row for row in rows if not row.startswith("grads")]
    check(jax_oracle, rows, rtol=3e-5, x=X.astype("f"), q=Q.astype("f"))


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_on_jax(jax_oracle, name):
    # Of strong shapes: a strong k with weak ones is weak here, and strong or weak in JAX.
    extra = "".join(f", np.float32({s})" for s in DISCRETE[name])
    rows = []
    for f in ("logpmf", "pmf"):
        call = f"st.{name}.{f}"
        rows += [f"{call}(k{extra})", f"{call}(1{extra})", f"{call}([1.]{extra})",
                 f"{call}(1.{extra}, loc=1)", f"mapped(lambda k: {call}(k{extra}), k)",
                 f"grads(lambda p: {call}(k[2:4]{extra[:extra.rindex(',')]}, p), np.float32(.4))"]
    check(jax_oracle, rows, rtol=3e-5, k=K)


MORE = {
    "counts": ["st.bernoulli.cdf(x, .3)", "st.bernoulli.ppf(q, .3)", "st.poisson.cdf(x, 2.)",
               "st.poisson.cdf(x, 2., 1)", "st.bernoulli.ppf(2., .3)"],
    "multinomial": ["st.multinomial.logpmf(jnp.array([1, 2, 0]), 3, p)",
                    "st.multinomial.pmf(jnp.array([[1, 2, 0], [1, 1, 2]]), 3, p)",
                    "grads(lambda p: st.multinomial.logpmf(jnp.array([1, 2, 0]), 3, p), p)"],
    "dirichlet": ["st.dirichlet.logpdf(p, a)", "st.dirichlet.pdf(p, a)",
                  "st.dirichlet.logpdf(p[:2], a)", "st.dirichlet.logpdf(p * 2, a)",
                  "st.dirichlet.logpdf(p[:1], a)", "st.dirichlet.logpdf(p, a[None])",
                  "st.dirichlet.pdf(jnp.stack([p, p[::-1]], 1), a)",
                  "grads(lambda a: st.dirichlet.logpdf(p, a), a)"],
    "mode": ["st.mode(m)", "st.mode(m, axis=1)", "st.mode(m, None)", "st.mode(m, keepdims=True)",
             "st.mode(m, None, keepdims=True)", "st.mode(m, nan_policy='omit')",
             "st.mode(m * 1., axis=-1, keepdims=True)", "st.mode(m, nan_policy='other')",
             "st.mode(jnp.array([1., np.nan, np.nan]))", "st.mode([1, 2])"],
    "rankdata": [f"st.rankdata({x}, {method!r}{axis})" for x in ("m", "m[0] * 1.", "m[:, :0]")
                 for method in ("average", "min", "max", "dense", "ordinal", "other")
                 for axis in ("", ", axis=0", ", axis=-1")]
    + ["st.rankdata(jnp.array([1., np.nan, 0]))", "st.rankdata(m, nan_policy='omit')"],
    "sem": ["st.sem(m)", "st.sem(m, None)", "st.sem(m, 1, ddof=0)", "st.sem(m, keepdims=True)",
            "st.sem(x, nan_policy='omit')", "st.sem(x, nan_policy='raise')", "st.sem([1., 2.])",
            "st.sem(m * 1., axis=-1, nan_policy='omit', keepdims=True)"],
}


@pytest.mark.parametrize("kind", MORE)
def test_calls(jax_oracle, kind):
    check(jax_oracle, MORE[kind], rtol=2e-5, x=X.astype("f"), q=Q.astype("f"),
          p=np.array([.2, .5, .3], "f"), a=np.array([1.5, 2., .7], "f"),
          m=np.array([[1, 2, 2, 5], [3, 2, 1, 1], [3, 0, 2, 1]]))

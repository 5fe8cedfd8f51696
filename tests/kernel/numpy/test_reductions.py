"""Do reductions agree with JAX: values, dtypes, weak types, errors?

Grids of functions, dtypes and axes, and the corners: no elements, NaN, masks, initial values.
"""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from agreement import check, check_gradient

import saem as jax
from saem import numpy as jnp

RNG = np.random.default_rng(0)
ARRAYS = {
    "f": RNG.normal(size=(3, 4)).astype(np.float32),
    "h": RNG.normal(size=(3, 4)).astype(ml_dtypes.bfloat16),
    "i": RNG.integers(-5, 6, (3, 4)).astype(np.int8),
    "u": RNG.integers(0, 6, (3, 4)).astype(np.uint8),
    "b": RNG.integers(0, 2, (3, 4)).astype(bool),
    "c": (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex64),
    "n": np.where(RNG.integers(0, 3, (3, 4)) == 0, np.nan, RNG.normal(size=(3, 4))).astype("f4"),
    "e": np.zeros((0, 3), np.float32),
    "z": np.float32(2.5),
    "v": np.array([3.0, np.nan, 1.0], np.float32),
    "x": np.arange(6, dtype=np.float32).reshape(2, 3),
}
WEAK = "jnp.broadcast_to(jnp.add(1.5,0.),(3,))"
AXES = ("", ",axis=0", ",axis=-1,keepdims=True", ",axis=(0,1)", ",axis=(1,)")


def grid(functions: str, arrays: str, options: tuple[str, ...] = AXES) -> list[str]:
    """Return calls of every function on every array, each with two options, taken in turn."""
    calls = itertools.product(functions.split(), arrays.split(), range(min(2, len(options))))
    turns = itertools.cycle(options)
    return [f"jnp.{f}({a}{next(turns)})" for f, a, _ in calls]


def every(functions: str, arrays: str, options: tuple[str, ...]) -> list[str]:
    return [f"jnp.{f}({a}{o})"
            for f, a, o in itertools.product(functions.split(), arrays.split(), options)]


def test_folds(jax_oracle):
    check(jax_oracle, grid("sum prod mean any all count_nonzero", "f h i b c"), **ARRAYS)


def test_extremes(jax_oracle):
    check(jax_oracle, grid("max min ptp", "h i u c") + grid("amax amin", "b x"), **ARRAYS)


def test_variances(jax_oracle):
    cases = grid("var std", "i c n") + every("var std", "x", (
        ",ddof=1", ",ddof=6", ",ddof=7", ",correction=1", ",correction=0.5", ",axis=0,ddof=1",
        ",ddof=1,correction=1", ",mean=jnp.mean(x)", ",dtype='int32'", ",where=x>1",
        ",axis=1,where=x>1,ddof=1"))
    # A variance of complex numbers in a real dtype has no one meaning, and is refused.
    check(jax_oracle, [c for c in cases if c != "jnp.var(x,dtype='int32')"]
          + ["jnp.var(c,dtype='float32')"], rtol=1e-5, **ARRAYS)


def test_past_nan(jax_oracle):
    functions = "nansum nanprod nanmax nanmin nanmean nanvar nanstd"
    check(jax_oracle, grid(functions, "n i b") + grid("nanargmax nanargmin", "f n i", (
        "", ",axis=0", ",axis=1,keepdims=True")), rtol=1e-5, **ARRAYS)


def test_places(jax_oracle):
    options = ("", ",axis=0", ",axis=-1,keepdims=True", ",keepdims=True")
    check(jax_oracle, grid("argmax argmin", "f h i u b n v", options)
          + grid("argmax argmin", "z", ("", ",keepdims=True")), **ARRAYS)


def test_running(jax_oracle):
    options = ("", ",axis=0", ",axis=-1", ",axis=1,dtype='int32'")
    cases = grid("cumsum cumprod nancumsum nancumprod", "f u b n", options)
    cases += grid("cumulative_sum cumulative_prod", "f i u b", (
        ",axis=0", ",axis=-1,include_initial=True"))
    check(jax_oracle, cases + ["jnp.cumulative_sum(x)", "jnp.cumulative_sum(z)", "jnp.cumsum(z)",
                               "jnp.cumsum(x,axis=5)", "jnp.cumsum(e,axis=0)"],
          rtol=1e-5, **ARRAYS)


CORNERS = """
jnp.sum(z)
jnp.sum(3)
jnp.sum(True)
jnp.max(3)
jnp.mean(3)
jnp.std(3)
jnp.sum(e)
jnp.sum(e,axis=0)
jnp.prod(e)
jnp.mean(e)
jnp.max(e)
jnp.max(e,axis=1)
jnp.max(e,initial=1)
jnp.min(e,axis=0,initial=7)
jnp.argmax(e)
jnp.argmax(e,axis=1)
jnp.argmax(x,axis=(0,1))
jnp.any(e)
jnp.all(e,axis=0)
jnp.sum(i,promote_integers=False)
jnp.sum(i,dtype='float16')
jnp.sum(f,dtype=int)
jnp.sum(x,axis=())
jnp.max(x,axis=())
jnp.sum(x,axis=5)
jnp.sum(x,axis=(0,0))
jnp.sum(x,axis=(0,-2))
jnp.sum(x,axis=1.0)
jnp.sum([1,2])
jnp.sum(None)
jnp.sum('a')
jnp.sum(x,out=x)
jnp.mean(x,out=x)
jnp.max(x,where=x>1)
jnp.max(x,where=x>1,initial=0)
jnp.max(x,where=x>1,initial=0,axis=0)
jnp.max(x,initial=jnp.ones(2))
jnp.max(x,initial=2)
jnp.sum(x,where=x)
jnp.sum(x,where=x>1,initial=2)
jnp.sum(x,where=jnp.array([True,False,True]),axis=1)
jnp.sum(x,where=[True,False,True])
jnp.prod(x,where=x>1)
jnp.all(x,where=x>1)
jnp.any(x,where=x<0)
jnp.mean(x,where=x>2)
jnp.mean(x,where=x>2,axis=0)
jnp.mean(x,where=jnp.array([True,False,True]))
jnp.mean(i,dtype='float16')
jnp.mean(x,dtype=int)
jnp.mean(h,dtype='float32')
jnp.nanmax(v)
jnp.nanmax(v[1:2])
jnp.nanmax(v[1:2],initial=2)
jnp.nanargmax(v[1:2])
jnp.nanmean(v,where=jnp.array([True,True,False]))
jnp.average(i)
jnp.average(x,axis=1,weights=jnp.ones(3),returned=True)
jnp.average(x,axis=0,weights=jnp.array([1,3]))
jnp.average(x,axis=(1,0),weights=x.T)
jnp.average(x,weights=jnp.ones(3))
jnp.average(x,axis=1,weights=jnp.ones(2))
jnp.average(x,weights=x,returned=True)
jnp.average(x,returned=True,axis=0)
jnp.average(x,axis=0,keepdims=True,weights=x)
jnp.ptp(x>1)
jnp.count_nonzero(x,axis=(0,1),keepdims=True)
jnp.sum({w})
jnp.max({w})
jnp.mean({w})
jnp.std({w})
jnp.cumsum({w})
jnp.nansum({w})
jnp.argmin({w})
jnp.sum({w},keepdims=True)
jnp.ptp({w})
jnp.average({w})
""".strip().format(w=WEAK).splitlines()


def test_corners(jax_oracle):
    check(jax_oracle, CORNERS, **ARRAYS)


def test_quantiles(jax_oracle):
    arrays = ARRAYS | {"q": np.array([0.1, 0.5, 1.0], np.float32)}
    options = tuple(f",{q}{axis},method='{method}'" for q, axis, method in itertools.product(
        ("0.3", "q"), ("", ",axis=0", ",axis=(0,1),keepdims=True"),
        ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")))
    cases = every("quantile", "f", options[::3]) + every("nanquantile", "n", options[::7])
    cases += grid("median nanmedian", "n i h") + grid("percentile", "x i", (
        ",30", ",30,axis=0", ",np.array([5,95])"))
    cases += ["jnp.quantile(x,1.5)", "jnp.quantile(c,.5)", "jnp.quantile(x,.5,method='foo')",
              "jnp.quantile(x,[.4])", "jnp.quantile(i,.5)", f"jnp.quantile({WEAK},.5)",
              "jnp.quantile(x,np.ones((1,2)))",
              "jnp.nanpercentile(n,20,axis=1)"]
    check(jax_oracle, cases, rtol=1e-5, **arrays)


def test_programs_hold_what_those_of_jax_hold(jax_oracle):
    for source in ("lambda x: jnp.sum(x, axis=1, keepdims=True)", "lambda x: jnp.mean(x)",
                   "lambda x: jnp.max(x, axis=-1)", "lambda x: jnp.argmax(x, 1)",
                   "lambda x: jnp.any(x)", "lambda x: jnp.sum(x.astype('int8'))"):
        ours = str(jax.make_jaxpr(eval(source, {"jnp": jnp}))(ARRAYS["x"]))
        assert ours == jax_oracle.jaxpr(source, ARRAYS["x"]), source


def test_derivatives_are_those_of_jax(jax_oracle):
    body = ("jnp.sum(jnp.var(x, axis=0) + jnp.std(x) + jnp.median(x, axis=0)"
            " + jnp.prod(x + 1, axis=0) + jnp.max(x, axis=0) + jnp.cumsum(x, 0)[1])")
    check_gradient(jax_oracle, body, ARRAYS["x"], rtol=1e-5)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "all", "any", "var", "std", "prod",
                                  "ptp", "average"])
def test_axes_may_be_a_list(name):
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4) % 7
    expected = getattr(np, name)(x, (0, 2))
    for out in (getattr(jnp, name)(x, [0, 2]), getattr(jnp, name)(x, axis=[0, 2]),
                jax.jit(lambda x: getattr(jnp, name)(x, [-3, -1]))(x)):
        np.testing.assert_allclose(out, expected, rtol=1e-5)

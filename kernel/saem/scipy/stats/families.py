"""What do all distributions have in common?

A continuous one is known by a few functions of y = (x - loc) / scale; a discrete one by the
logarithm of its probabilities of k - loc.  A family makes the public functions of these: ``pdf`` is
exp(logpdf), ``sf`` is 1 - cdf; but where the distribution gives a formula that keeps more digits,
it is used.

Read before: ``scipy.special``.  Read after: ``stats.norm``.
Invariant: outside of the support densities and their derivatives are 0, and NaN goes in and comes
out (tests/kernel/scipy/test_stats.py).
Source: the SciPy reference of scipy.stats.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from saem import numpy as jnp
from saem.core import dtypes, errors
from saem.jit.library import library_function
from saem.scipy.special.gammas import betaln
from saem.scipy.special.normal import single_or_double
from saem.scipy.special.operands import floats, refuse_complex, weak_by_first
from saem.typing import Array, ArrayLike

# What each public function returns, for its docstring.
MEANINGS = {
    "pdf": "the probability density at x", "logpdf": "the logarithm of the density at x",
    "cdf": "the probability of values up to {x}",
    "logcdf": "the logarithm of the probability of values up to x",
    "sf": "the probability of values above x",
    "logsf": "the logarithm of the probability of values above x",
    "ppf": "the value up to which the probability is {q}",
    "isf": "the value above which the probability is {q}",
    "pmf": "the probability of the whole number k",
    "logpmf": "the logarithm of the probability of the whole number k",
    "entropy": "the entropy, in nats,",
}
QUANTILES = ("ppf", "isf")


def complement(y: Array) -> Array:
    """Return 1 - exp(y) for y ≤ 0.

    expm1 is exact near 0; far below, its derivative expm1(y) + 1 would lose all digits.
    """
    near = y > -1
    return jnp.where(near, -jnp.expm1(jnp.where(near, y, -1)), 1 - jnp.exp(y))


def log_complement(y: Array) -> Array:
    """Return log(1 - exp(y)) for y ≤ 0."""
    near = y > -math.log(2.0)
    return jnp.where(near, jnp.log(-jnp.expm1(jnp.where(near, y, -1))),
                     jnp.log1p(-jnp.exp(jnp.where(near, -1, y))))


def public(name: str, family: str, parameters: list[inspect.Parameter], about: str,
           compute: Callable[..., Array], real: bool = False, floating: bool = False,
           weak: bool = False) -> Any:
    """Return ``compute``, of operands that meet in one dtype, as the library function ``name``.

    real: complex operands are refused.  floating: the first operand must be float32 or float64.
    weak: the result is weak where the operands meet in a weak dtype, as an array of booleans and
    Python numbers do; else only as ``weak_by_first`` allows.
    """
    signature = inspect.Signature(parameters)
    first = parameters[0].name

    def function(*args: Any, **kwargs: Any) -> Array:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        xs = floats(f"{family}.{name}", *bound.args)
        if real:
            refuse_complex(f"{family}.{name}", xs[0], errors.ArgumentTypeError)
        if floating:
            single_or_double(f"{family}.{name}", bound.args[0])
        out = compute(*jnp.broadcast_arrays(*xs))
        return out if weak else weak_by_first(out, bound.args[0])

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"saem.scipy.stats.{family}"
    function.__signature__ = signature.replace(return_annotation=Array)  # type: ignore[attr-defined]
    meaning = MEANINGS[name].format(x=first, q=first)
    function.__doc__ = f"Return {meaning}, of {about}.\n\n    All arguments broadcast together.\n"
    return library_function(function, whole=True)


def parameter(name: str, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter that takes an operand."""
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default,
                             annotation=ArrayLike)


class Continuous:
    """A distribution of real numbers, moved by ``loc`` and stretched by ``scale``.

    forms: functions of y and the shape parameters; ``logpdf`` is needed, others are derived.
    support: the bounds of y, outside of which the density is 0.  anchor: a point inside of it.
    placed: whether the public functions take ``loc`` and ``scale``.  real: the names of functions
    that refuse complex operands.  floating: quantiles are of float32 or float64 alone.
    weak: the names of functions that keep weak dtypes (``public``).
    even: densities at a negative scale are those at its opposite, as in JAX, where they are a
    function of scale²; else NaN.  At scale 0 they are NaN.
    """

    def __init__(self, name: str, about: str, shapes: tuple[str, ...] = (), *,
                 support: tuple[float, float] = (-np.inf, np.inf), anchor: float = 0.5,
                 quantile: str = "q", placed: bool = True, valid: Callable | None = None,
                 real: str = "", floating: bool = False, weak: str = "",
                 even: bool = False, **forms: Callable):
        self.name, self.about, self.shapes = name, about, shapes
        self.low, self.high = support
        self.anchor, self.quantile, self.placed, self.valid = anchor, quantile, placed, valid
        self.real, self.floating, self.weak = real.split(), floating, weak.split()
        self.even = even
        self.forms: Mapping[str, Callable] = forms

    def functions(self, names: str) -> list[Any]:
        """Return the public functions called ``names``, separated by spaces."""
        return [self.function(name) for name in names.split()]

    def function(self, name: str) -> Any:
        first = parameter(self.quantile if name in QUANTILES else "x")
        parameters = [first, *map(parameter, self.shapes)]
        if self.placed:
            parameters += [parameter("loc", 0), parameter("scale", 1)]

        def compute(x: Array, *rest: Array) -> Array:
            if not self.placed:
                return self.standard(name, x, *rest)
            *shapes, loc, scale = rest
            if name in QUANTILES:
                out = self.standard(name, x, *shapes) * scale + loc
                # As in JAX: the quantiles of such a family have the default floating dtype.
                return out.astype(dtypes.default_dtype(float)) if self.floating else out
            out = self.standard(name, (x - loc) / scale, *shapes)
            if name not in ("pdf", "logpdf"):
                return out
            if self.even:
                scale = jnp.where(scale < 0, -scale, scale)
            if name == "pdf":
                return jnp.where(scale > 0, out / scale, np.nan)
            return jnp.where((out == -np.inf) & (scale > 0), out, out - jnp.log(scale))

        return public(name, self.name, parameters, self.about, compute, real=name in self.real,
                      floating=self.floating and name in QUANTILES, weak=name in self.weak)

    def standard(self, name: str, y: Array, *shapes: Array) -> Array:
        """Return the function called ``name`` at y, for loc 0 and scale 1."""
        if name in QUANTILES:
            return self.quantiles(name, y, *shapes)
        below, above = y < self.low, y > self.high
        inside = ~(below | above)
        # Outside, formulas are evaluated at the anchor: their derivatives there are no NaN.
        out = self.derived(name)(jnp.where(inside, y, self.anchor), *shapes)
        at_low, at_high = {"pdf": (0, 0), "logpdf": (-np.inf, -np.inf), "cdf": (0, 1),
                           "logcdf": (-np.inf, 0), "sf": (1, 0), "logsf": (0, -np.inf)}[name]
        out = jnp.where(below, at_low, jnp.where(above, at_high, out))
        if self.valid is not None:
            out = jnp.where(self.valid(*shapes), out, np.nan)
        return out

    def quantiles(self, name: str, q: Array, *shapes: Array) -> Array:
        inside = (q >= 0) & (q <= 1)
        out = self.forms[name](jnp.where(inside, q, 0.5), *shapes)
        return jnp.where(inside, out, np.nan)

    def derived(self, name: str) -> Callable:
        """Return the form ``name``, derived of others if the distribution does not give it."""
        forms = self.forms
        if name in forms:
            return forms[name]
        if name in ("pdf", "cdf", "sf") and f"log{name}" in forms:
            return lambda y, *s: jnp.exp(forms[f"log{name}"](y, *s))
        if name.startswith("log"):
            plain = self.derived(name[3:])
            return lambda y, *s: jnp.log(plain(y, *s))
        other = self.derived("sf" if name == "cdf" else "cdf")
        return lambda y, *s: 1 - other(y, *s)


class Discrete:
    """A distribution of whole numbers, moved by ``loc``; ``logpmf`` is a function of k - loc.

    weak: whether the functions keep weak dtypes (``public``).
    """

    def __init__(self, name: str, about: str, shapes: tuple[str, ...], logpmf: Callable,
                 weak: bool = False):
        self.name, self.about, self.shapes, self.form = name, about, shapes, logpmf
        self.weak = weak

    def functions(self) -> list[Any]:
        """Return the public functions logpmf and pmf."""
        parameters = [parameter("k"), *map(parameter, self.shapes), parameter("loc", 0)]

        def logpmf(k: Array, *rest: Array) -> Array:
            *shapes, loc = rest
            return self.form(k - loc, *shapes)

        return [public("logpmf", self.name, parameters, self.about, logpmf, real=True,
                       weak=self.weak),
                public("pmf", self.name, parameters, self.about,
                       lambda *args: jnp.exp(logpmf(*args)), real=True, weak=self.weak)]


def where_possible(possible: Array, k: Array, fallback: float, form: Callable) -> Array:
    """Return ``form`` of k where ``possible``, else -inf; NaN stays."""
    out = form(jnp.where(possible, k, fallback))
    return jnp.where(jnp.isnan(k), k, jnp.where(possible, out, -np.inf))


def log_choose(n: Array, k: Array) -> Array:
    """Return the logarithm of the binomial coefficient."""
    return -betaln(k + 1, n - k + 1) - jnp.log1p(n)

"""Which rows test the types that a function gives for every kind of operand, dtype, shape and key?

A row only traces its call (``looked``), which costs a millisecond and no compilation: it gives
shapes, dtypes and weak types of the results, or the class of the error.  So each parameter of each
function can meet all kinds of values.

Read before: ``variations.py``.  Read after: ``test_types.py``.
Invariant: rows depend on the names and signatures of the functions alone.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Iterator

LOOKED = '''
def looked(f, *args):
    "The types of the results of f, which is only traced."
    found = jax.eval_shape(f, *args)
    return [(tuple(x.shape), str(x.dtype), bool(x.weak_type)) for x in jax.tree.leaves(found)]
'''


def row(call: str) -> str:
    """Return the row that traces ``call``."""
    return f"looked(lambda: {call})"


# -- random ----------------------------------------------------------------------------------------

# Calls of a {key}, parameters {a} and {b} with what they usually are, a {shape} and a {dtype}.
SAMPLERS: dict[str, tuple[str, ...]] = {
    "ball({key}, 3, {a}, {shape}, {dtype})": ("2",),
    "bernoulli({key}, {a}, {shape})": (".3",),
    "beta({key}, {a}, {b}, {shape}, {dtype})": ("2.", "3."),
    "binomial({key}, {a}, {b}, {shape}, {dtype})": ("10.", ".4"),
    "bits({key}, {shape}, {dtype})": (),
    "categorical({key}, {a}, -1, {shape})": ("L",),
    "cauchy({key}, {shape}, {dtype})": (),
    "chisquare({key}, {a}, {shape}, {dtype})": ("2.",),
    "dirichlet({key}, {a}, {shape}, {dtype})": ("W3",),
    "double_sided_maxwell({key}, {a}, {b}, {shape}, {dtype})": ("2.", "3."),
    "exponential({key}, {shape}, {dtype})": (),
    "f({key}, {a}, {b}, {shape}, {dtype})": ("2.", "3."),
    "gamma({key}, {a}, {shape}, {dtype})": ("2.",),
    "generalized_normal({key}, {a}, {shape}, {dtype})": ("2.",),
    "geometric({key}, {a}, {shape}, {dtype})": (".3",),
    "gumbel({key}, {shape}, {dtype})": (),
    "laplace({key}, {shape}, {dtype})": (),
    "loggamma({key}, {a}, {shape}, {dtype})": ("2.",),
    "logistic({key}, {shape}, {dtype})": (),
    "lognormal({key}, {a}, {shape}, {dtype})": ("2.",),
    "maxwell({key}, {shape}, {dtype})": (),
    "multinomial({key}, {a}, {b}, shape={shape}, dtype={dtype})": ("10.", "P2"),
    "multivariate_normal({key}, {a}, {b}, {shape}, {dtype})": ("W3", "P"),
    "normal({key}, {shape}, {dtype})": (),
    "orthogonal({key}, 3, {shape}, {dtype})": (),
    "pareto({key}, {a}, {shape}, {dtype})": ("2.",),
    "poisson({key}, {a}, {shape}, {dtype})": ("2.",),
    "rademacher({key}, {shape}, {dtype})": (),
    "randint({key}, {shape}, {a}, {b}, {dtype})": ("0", "9"),
    "rayleigh({key}, {a}, {shape}, {dtype})": ("2.",),
    "t({key}, {a}, {shape}, {dtype})": ("2.",),
    "triangular({key}, {a}, {b}, 9., {shape}, {dtype})": ("2.", "3."),
    "truncated_normal({key}, {a}, {b}, {shape}, {dtype})": ("-1.", "1."),
    "uniform({key}, {shape}, {dtype}, {a}, {b})": ("0.", "1."),
    "wald({key}, {a}, {shape}, {dtype})": ("2.",),
    "weibull_min({key}, {a}, {b}, {shape}, {dtype})": ("2.", "3."),
}
# None and keys are refused by both, by classes that JAX's own steps happen to raise: left out.
PARAMETERS = (
    "1", "1.", "True", "1j", "'a'", "[1., 2., 3.]", "cast(W3, 'float16')",
    "cast(W3, 'bfloat16')", "W3", "np.float64(W3)", "cast(W3, 'int32')", "cast(W3, 'int8')",
    "cast(W3, 'bool')", "cast(W3, 'complex64')", "np.float32(.5)", "np.float64(.5)", "W3[:0]",
    "W3[:2]", "W3[:, None]", "jnp.asarray(2.)", "(1., 2.)")
DTYPES = (
    "None", "'float16'", "'bfloat16'", "'float32'", "'float64'", "'int32'", "'int8'", "'int64'",
    "'uint32'", "'uint8'", "'uint4'", "'int4'", "'complex64'", "'complex128'", "float", "int",
    "bool", "complex", "'float8_e4m3fn'", "np.float32", "jnp.bfloat16", "'foo'", "3",
    "key(0).dtype")
SHAPES = (
    "()", "(3,)", "(2, 3)", "3", "[2]", "np.array([2])", "None", "2.5", "(2.,)", "'a'",
    "(np.int64(2),)", "(1, 3)", "(0,)", "True", "jnp.int32(2)", "np.array(3)", "((2,),)")
KEYS = (
    "key(0)", "random.PRNGKey(0)", "random.key(0, impl='rbg')", "random.PRNGKey(0, impl='rbg')",
    "random.split(key(0))", "random.split(random.PRNGKey(0))", "np.zeros(2, 'uint32')",
    "np.zeros(2, 'int32')", "np.zeros(3, 'uint32')", "np.zeros(2, 'f')", "np.zeros((), 'uint32')",
    "0", "1.5", "None", "'a'", "[0, 1]", "(0, 0)", "object()", "random.key")


def of_sampler(call: str, usual: tuple[str, ...]) -> Iterator[str]:
    """Yield the rows of one function of ``random``."""
    slots = dict(zip("ab", usual))
    shape = "(3,)" if not usual or call.startswith(("randint", "uniform", "weibull", "double",
                                                    "ball", "generalized")) else "None"

    def filled(**given: str) -> str:
        return row("random." + call.format_map(
            {"key": "key(0)", "shape": shape, "dtype": "None", **slots, **given}))

    yield from (filled(shape=s) for s in SHAPES)
    yield from (filled(key=k) for k in KEYS)
    if slots:
        yield from (filled(shape=s, a="W3") for s in SHAPES)
    for slot, value in itertools.product(slots, PARAMETERS):
        yield filled(**{slot: value})
        if "{dtype}" in call:
            yield filled(**{slot: value, "dtype": "'float16'"})
    if "{dtype}" in call:
        yield from (filled(dtype=d) for d in DTYPES)
        yield from (filled(dtype=d, **{slot: "W3"}) for slot in slots for d in DTYPES[:7])
    yield filled(key="k").replace("lambda:", "lambda k:")[:-1] + ", key(0))"


def of_random() -> list[str]:
    """Return the rows of ``random``."""
    return [r for call, usual in SAMPLERS.items() for r in of_sampler(call, usual)]


# -- special ---------------------------------------------------------------------------------------

OPERANDS = (
    "2", "1.5", "True", "1j", "[1., 2.]", "X", "cast(X, 'float16')", "cast(X, 'bfloat16')",
    "cast(X, 'int32')", "cast(X, 'int8')", "cast(X, 'uint8')", "cast(X, 'bool')",
    "cast(X, 'complex64')", "np.float64(X)", "np.int64(X)", "np.float32(1)", "jnp.asarray(2)",
    "jnp.asarray(2.)", "X[:0]", "X[0]", "X[:, :1]", "V[:3]", "'a'")
SPECIAL = {
    1: "digamma entr erf erfc erfcx erfinv exp1 expi expit factorial fresnel gamma gammaln gammasgn"
       " i0 i0e i1 i1e log_ndtr loggamma logit ndtr ndtri sici spence wofz dawsn log_softmax"
       " softmax logsumexp multigammaln",
    2: "beta betaln boxcox boxcox1p gammainc gammaincc kl_div owens_t poch rel_entr xlog1py xlogy"
       " zeta expn polygamma comb multigammaln",
    3: "betainc hyp1f1", 4: "hyp2f1",
}


def of_special() -> list[str]:
    """Return the rows of ``scipy.special``: each operand of each kind beside one of each other."""
    found = []
    for count, names in SPECIAL.items():
        for name in names.split():
            if count == 2:
                found += [f"sp.{name}({a}, {b})"
                          for a, b in itertools.product(OPERANDS, OPERANDS)
                          # the order of multigammaln is a number that the trace must know
                          if name != "multigammaln" or not b.startswith("jnp")]
            else:
                found += [f"sp.{name}({', '.join([*['X'] * at, value, *['X'] * (count - at - 1)])})"
                          for at in range(count) for value in OPERANDS]
                found += [f"sp.{name}({', '.join([value] * count)})" for value in OPERANDS]
    return [row(call) for call in found]


# -- stats -----------------------------------------------------------------------------------------

DISTRIBUTIONS = (
    "bernoulli beta betabinom binom cauchy chi2 expon gamma gennorm geom gumbel_l gumbel_r laplace"
    " logistic nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy").split()


def of_stats() -> list[str]:
    """Return the rows of ``scipy.stats``: each function of each distribution, by signature."""
    found = []
    for family in DISTRIBUTIONS:
        module = importlib.import_module(f"saem.scipy.stats.{family}")
        for name, function in vars(module).items():
            if getattr(function, "__module__", "") != module.__name__ or name[0] == "_" \
                    or name not in STATS_NAMES:
                continue
            parameters = inspect.signature(function).parameters.values()
            needed = [p for p in parameters if p.default is p.empty]
            usual = ["X", *["Q"] * (len(needed) - 1)]
            call = f"st.{family}.{name}"
            for value in OPERANDS:
                found += [f"{call}({', '.join([*usual[:i], value, *usual[i + 1:]])})"
                          for i in range(len(usual))]
                found += [f"{call}({', '.join(usual)}, {p.name}={value})" for p in parameters
                          if p not in needed]
            found.append(f"{call}({', '.join(['2'] * len(usual))})")
    return [row(call) for call in found]


STATS_NAMES = frozenset("pdf logpdf cdf logcdf sf logsf ppf isf pmf logpmf entropy".split())
GROUPS = {"random": of_random, "special": of_special, "stats": of_stats}

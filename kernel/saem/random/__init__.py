"""How are random numbers made so that a program gives the same ones again?

``jax.random``: a key goes in, numbers come out, and the key says which.  No state hides anywhere.

    key = random.key(0)
    key, subkey = random.split(key)
    x = random.normal(subkey, (3,))

Read before: ``ops.random_bits``.  Read after: nothing.
Invariant: same key, shape and dtype, same numbers as JAX 0.10.2 (tests/kernel/test_random.py).
"""

from __future__ import annotations

from saem.random.basic import bernoulli, bits, rademacher, randint, uniform
from saem.random.continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)
from saem.random.discrete import categorical, choice, geometric, permutation
from saem.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)

__all__ = [
    "PRNGKey", "bernoulli", "bits", "categorical", "cauchy", "choice", "clone",
    "double_sided_maxwell", "exponential",
    "fold_in", "geometric", "gumbel", "key", "key_data", "key_dtype", "key_impl", "laplace",
    "logistic", "lognormal", "maxwell", "normal", "pareto", "permutation", "rademacher", "randint",
    "rayleigh", "split", "triangular", "truncated_normal", "uniform", "wald", "weibull_min",
    "wrap_key_data",
]

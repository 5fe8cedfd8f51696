"""How are random numbers made so that a program gives the same ones again?

``jax.random``: a key goes in, numbers come out, which depend on the key alone.  No state hides
anywhere.

    key = random.key(0)
    key, subkey = random.split(key)
    x = random.normal(subkey, (3,))

Read before: ``ops.random_bits``.  Read after: nothing.
Invariant: same key, shape and dtype, same numbers as JAX 0.10.2 (tests/kernel/test_random.py).
"""

from __future__ import annotations

from saem.core import lazy as _lazy
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
from saem.random.counts import binomial, multinomial, poisson
from saem.random.discrete import categorical, choice, geometric, permutation
from saem.random.gamma import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    random_gamma_p,
    t,
)
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

# They load numpy.linalg.
__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.random.matrices": "multivariate_normal orthogonal",
})

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f",
    "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data",
    "key_dtype", "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell",
    "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation",
    "poisson", "rademacher", "randint", "random_gamma_p", "rayleigh", "split", "t", "triangular",
    "truncated_normal", "uniform",
    "wald", "weibull_min", "wrap_key_data",
]

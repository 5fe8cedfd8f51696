"""Which distributions and statistics are there?

The public namespace ``jax.scipy.stats``: a module for each distribution, loaded when first named.

Read before: ``scipy.special``.  Read after: ``stats.families``.
Invariant: values are SciPy's, signatures JAX's (tests/kernel/scipy/test_stats.py).
"""

from saem.core import lazy as _lazy

_DISTRIBUTIONS = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l "
    "gumbel_r laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t "
    "truncnorm uniform vonmises wrapcauchy")

__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.scipy.stats.density": "gaussian_kde",
    "saem.scipy.stats.summaries": "mode rankdata sem",
    **{f"saem.scipy.stats.{name}": "" for name in _DISTRIBUTIONS.split()},
})

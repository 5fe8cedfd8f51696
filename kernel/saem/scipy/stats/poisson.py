"""How likely are counts of independent events?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import lax
from saem import numpy as jnp
from saem.scipy.special import gammaincc, xlogy
from saem.scipy.stats.families import Discrete, parameter, public, where_possible
from saem.typing import Array


def log_probability(k: Array, mu: Array) -> Array:
    """Return the logarithm of mu**k exp(-mu) / k!."""
    possible = (k >= 0) & (k == jnp.round(k))
    return where_possible(possible, k, 0, lambda k: xlogy(k, mu) - lax.lgamma(k + 1) - mu)


logpmf, pmf = Discrete("poisson", "a Poisson distribution of mean ``mu``", ("mu",),
                       log_probability).functions()
cdf = public("cdf", "poisson", [parameter("k"), parameter("mu"), parameter("loc", 0)],
             "a Poisson distribution of mean ``mu``",
             lambda k, mu, loc: jnp.where(k < loc, 0, gammaincc(
                 jnp.floor(jnp.maximum(k - loc, 0)) + 1, mu)))

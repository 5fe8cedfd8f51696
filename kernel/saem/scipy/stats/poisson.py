"""How likely are counts of independent events?

Read before: ``stats.families``.
"""

from __future__ import annotations

import math

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import promotion
from saem.scipy.special import gammaincc, xlogy
from saem.scipy.stats.families import Discrete, parameter, public, where_possible
from saem.typing import Array


def log_probability(k: Array, mu: Array) -> Array:
    """Return the logarithm of mu**k exp(-mu) / k!."""
    possible = (k >= 0) & (k == jnp.round(k))
    return where_possible(possible, k, 0, lambda k: xlogy(k, mu) - lax.lgamma(k + 1) - mu)


logpmf, pmf = Discrete("poisson", "a Poisson distribution of mean ``mu``", ("mu",),
                       log_probability, weak=True).functions()
cdf = public("cdf", "poisson", [parameter("k"), parameter("mu"), parameter("loc", 0)],
             "a Poisson distribution of mean ``mu``",
             lambda k, mu, loc: jnp.where(k < loc, 0, gammaincc(
                 jnp.floor(jnp.maximum(k - loc, 0)) + 1, mu)))


# Up to this mean the entropy is a sum over counts, above it the first terms of its expansion.
SUMMED, COUNTS = 50, 150


def entropy_of(mu: Array, loc: Array) -> Array:
    """Return the entropy for the mean ``mu``.  Source: Knessl 1998, "Integral representations and
    asymptotic expansions for Shannon and Renyi entropies"."""
    dtype = mu.dtype
    mu = lax.convert_element_type(mu, promotion.at_least(dtype, np.float32))
    small = (mu > 0) & (mu <= SUMMED)
    mean = jnp.where(small, mu, 1)[..., None]
    counts = jnp.arange(COUNTS, dtype=mean.dtype)
    logs = counts * jnp.log(mean) - lax.lgamma(counts + 1) - mean
    total = -jnp.sum(jnp.exp(logs) * logs, -1)
    large = jnp.where(mu > SUMMED, mu, SUMMED)
    series = (math.log(2 * math.pi * math.e) + jnp.log(large)) / 2 - (
        1 / 12 + (1 / 24 + (19 / 360 + (9 / 80 + 863 / 2520 / large) / large) / large) / large
    ) / large
    out = jnp.where(small, total, jnp.where(mu > SUMMED, series, jnp.where(mu == 0, 0, np.nan)))
    return lax.convert_element_type(out, dtype)


entropy = public("entropy", "poisson", [parameter("mu"), parameter("loc", 0)],
                 "a Poisson distribution of mean ``mu``", entropy_of, real=True)

"""How many of n independent trials succeed?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import numpy as jnp
from saem.scipy.special import xlog1py, xlogy
from saem.scipy.stats.families import Discrete, log_choose, where_possible
from saem.typing import Array


def log_probability(k: Array, n: Array, p: Array) -> Array:
    """Return the logarithm of the binomial coefficient times p**k (1 - p)**(n - k)."""

    def form(k: Array) -> Array:
        outcomes = xlogy(k, p) + xlog1py(n - k, -p)
        # What is certain has one way to happen, whose logarithm rounding keeps from 0.
        certain = (outcomes == 0) | ((k == 0) & (n == 0))
        return jnp.where(certain, 0, log_choose(n, k) + outcomes)

    return where_possible((k >= 0) & (k <= n), k, 0, form)


logpmf, pmf = Discrete("binom", "a binomial distribution: successes of ``n`` trials", ("n", "p"),
                       log_probability, weak=True).functions()

"""How many failures come before the n-th success?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import lax
from saem.scipy.special import xlogy
from saem.scipy.stats.families import Discrete, where_possible
from saem.typing import Array


def log_probability(k: Array, n: Array, p: Array) -> Array:
    """Return the logarithm of the number of orders times p**n (1 - p)**k."""
    return where_possible(k >= 0, k, 0, lambda k: (
        lax.lgamma(k + n) - lax.lgamma(n) - lax.lgamma(k + 1) + xlogy(n, p) + xlogy(k, 1 - p)))


logpmf, pmf = Discrete(
    "nbinom", "a negative binomial distribution: failures before ``n`` successes", ("n", "p"),
    log_probability).functions()

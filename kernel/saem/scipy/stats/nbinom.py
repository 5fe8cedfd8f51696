"""How many failures come before the n-th success?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import numpy as jnp
from saem.scipy.special import betaln, xlogy
from saem.scipy.stats.families import Discrete, where_possible
from saem.typing import Array


def log_probability(k: Array, n: Array, p: Array) -> Array:
    """Return the logarithm of the number of orders times p**n (1 - p)**k."""
    return where_possible(k >= 0, k, 0, lambda k: (
        xlogy(n, p) + xlogy(k, 1 - p) - betaln(n, k + 1) - jnp.log(jnp.abs(n + k))))


logpmf, pmf = Discrete(
    "nbinom", "a negative binomial distribution: failures before ``n`` successes", ("n", "p"),
    log_probability).functions()

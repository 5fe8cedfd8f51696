"""How likely are the two results of a coin?

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import numpy as jnp
from saem.scipy.special import xlog1py, xlogy
from saem.scipy.stats.families import Discrete, parameter, public, where_possible
from saem.typing import Array


def log_probability(k: Array, p: Array) -> Array:
    """Return log(1 - p) for 0, log(p) for 1."""
    return where_possible((k >= 0) & (k <= 1), k, 0,
                          lambda k: xlogy(k, p) + xlog1py(1 - k, -p))


ABOUT = "a Bernoulli distribution: 1 with probability ``p``, else 0"
logpmf, pmf = Discrete("bernoulli", ABOUT, ("p",), log_probability).functions()
cdf = public("cdf", "bernoulli", [parameter("k"), parameter("p")], ABOUT,
             lambda k, p: jnp.where(jnp.isnan(k) | (p < 0) | (p > 1), np.nan, jnp.where(
                 k < 0, 0, jnp.where(k < 1, 1 - p, 1))), real=True)
ppf = public("ppf", "bernoulli", [parameter("q"), parameter("p")], ABOUT,
             lambda q, p: jnp.where((q >= 0) & (q <= 1) & (p >= 0) & (p <= 1),
                                    jnp.where(q <= 1 - p, jnp.zeros_like(q), 1), np.nan),
             real=True)

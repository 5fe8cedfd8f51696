"""How many trials does the first success take?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import numpy as jnp
from saem.scipy.special import xlog1py
from saem.scipy.stats.families import Discrete, where_possible
from saem.typing import Array


def log_probability(k: Array, p: Array) -> Array:
    """Return the logarithm of p (1 - p)**(k - 1)."""
    return where_possible(k > 0, k, 1, lambda k: xlog1py(k - 1, -p) + jnp.log(p))


logpmf, pmf = Discrete("geom", "a geometric distribution: trials up to the first success", ("p",),
                       log_probability).functions()
